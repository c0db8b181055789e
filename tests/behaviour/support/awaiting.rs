//! Awaiting futures: a waker that counts, one poll, and blocking on this thread.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use punctual::{ScheduledFuture, TaskError};

use super::{Patience, TURN};

/// A waker that counts how often it is woken.
#[derive(Debug, Default)]
pub struct Wakes(AtomicUsize);

impl Wakes {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once, as a runtime would that is woken through `waker`.
pub fn poll<T, W>(future: &mut ScheduledFuture<T>, waker: &Arc<W>) -> Poll<Result<T, TaskError>>
where
    T: 'static,
    W: Wake + Send + Sync + 'static,
{
    let waker = Waker::from(Arc::clone(waker));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Awaits the future on this thread, and polls it only when it was woken.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread, AtomicBool);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::SeqCst);
            self.0.unpark();
        }
    }
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut patience = Patience::new();
        while !unpark.1.swap(false, Ordering::SeqCst) {
            patience.go_on("it is woken");
            thread::park_timeout(TURN);
        }
    }
}
