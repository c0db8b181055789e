//! Awaiting futures: a waker that counts, one poll, and blocking on this thread.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Instant,
};

use punctual::{ScheduledFuture, TaskError};

use super::LONG;

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

/// Awaits the future on this thread; panics if it is not woken within [`LONG`].
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let parked = Instant::now();
        thread::park_timeout(LONG);
        assert!(parked.elapsed() < LONG, "never woken");
    }
}
