//! `tokio_util`'s `DelayQueue`. It has one owner; threads share it behind a lock.
//!
//! It is polled with a waker that does nothing, and asked again while it says that it waits: its
//! clock goes in steps of 1 ms, and each step waits for the runtime's timer.

use std::{
    sync::OnceLock,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio_util::time::{DelayQueue, delay_queue::Key};

use crate::measure::queue::{DelayPeer, Queue};

pub(in crate::measure) struct TokioUtil;

/// Its thread drives the timers.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build();
        runtime.expect("its thread starts")
    })
}

fn poll(queue: &mut DelayQueue<u64>) -> Poll<Option<u64>> {
    let expired = queue.poll_expired(&mut Context::from_waker(Waker::noop()));
    expired.map(|expired| expired.map(|expired| expired.into_inner()))
}

/// Polls until the result is not pending.
fn insist(mut poll: impl FnMut() -> Poll<Option<u64>>) -> Option<u64> {
    loop {
        match poll() {
            Poll::Ready(element) => return element,
            Poll::Pending => thread::yield_now(),
        }
    }
}

/// The queue itself.
pub(in crate::measure) struct Own {
    queue: DelayQueue<u64>,
    /// Every user of the queue has to be in the runtime's context.
    _entered: EnterGuard<'static>,
}

impl Queue for Own {
    type Key = Key;

    #[inline]
    fn insert(&mut self, delay: Duration, element: u64) -> Key {
        self.queue.insert(element, delay)
    }

    #[inline]
    fn take_expired(&mut self) -> Option<u64> {
        insist(|| poll(&mut self.queue))
    }

    #[inline]
    fn remove(&mut self, key: Key) -> u64 {
        self.queue.remove(&key).into_inner()
    }
}

/// A thread's access to the queue behind the lock.
pub(in crate::measure) struct Handle<'a> {
    queue: &'a Mutex<DelayQueue<u64>>,
    _entered: EnterGuard<'static>,
}

impl Queue for Handle<'_> {
    type Key = Key;

    #[inline]
    fn insert(&mut self, delay: Duration, element: u64) -> Key {
        self.queue.lock().insert(element, delay)
    }

    #[inline]
    fn take_expired(&mut self) -> Option<u64> {
        insist(|| poll(&mut self.queue.lock()))
    }

    #[inline]
    fn remove(&mut self, key: Key) -> u64 {
        self.queue.lock().remove(&key).into_inner()
    }
}

impl DelayPeer for TokioUtil {
    type Own = Own;
    type Shared = Mutex<DelayQueue<u64>>;
    type Handle<'a> = Handle<'a>;

    fn own() -> Own {
        let _entered = runtime().enter();
        Own { queue: DelayQueue::new(), _entered }
    }

    fn shared() -> Self::Shared {
        let _entered = runtime().enter();
        Mutex::new(DelayQueue::new())
    }

    fn handle(queue: &Self::Shared) -> Handle<'_> {
        Handle { queue, _entered: runtime().enter() }
    }
}
