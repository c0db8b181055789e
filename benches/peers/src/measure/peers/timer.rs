//! `timer`: one thread for the deadlines, one for the callbacks.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use parking_lot::Mutex;
use timer::Guard;

use crate::measure::{
    oneshot::{Oneshot, oneshot},
    peer::Peer,
};

pub(in crate::measure) struct Timer {
    timer: timer::Timer,
    /// A guard that is dropped cancels.
    periodic: Mutex<Vec<Guard>>,
}

impl Peer for Timer {
    const MAX_WORKERS: usize = 1;

    type Handle = Guard;
    type Future = Oneshot;

    fn new(_workers: usize) -> Self {
        Self { timer: timer::Timer::new(), periodic: Mutex::default() }
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        let mut task = Some(task);
        self.timer.schedule_with_delay(delta(delay), move || {
            if let Some(task) = task.take() {
                task();
            }
        })
    }

    fn schedule_detached<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        self.schedule(delay, task).ignore();
    }

    fn cancel(&self, handle: Self::Handle) {
        drop(handle);
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        let (sender, result) = oneshot();
        self.schedule_detached(Duration::ZERO, move || sender.send(task()));
        result
    }

    fn wait(&self, future: Self::Future) -> u32 {
        future.wait()
    }

    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        task: F,
    ) {
        let guard = self.timer.schedule(Utc::now() + delta(initial), Some(delta(period)), task);
        self.periodic.lock().push(guard);
    }

    /// Calls are messages to the thread for the deadlines.
    fn settle(&self, _live: u64) {
        self.wait(self.submit(|| 1));
    }

    /// The drop stops it.
    fn shutdown_now(self) {}
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::nanoseconds(duration.as_nanos() as i64)
}
