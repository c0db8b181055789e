//! `punctual`: this project.

use std::{
    io,
    time::{Duration, Instant},
};

use punctual::{ScheduledFuture, ScheduledThreadPoolExecutor, trigger::every};

use crate::measure::peer::Peer;

pub(in crate::measure) struct Punctual(ScheduledThreadPoolExecutor);

impl Peer for Punctual {
    type Handle = ScheduledFuture<()>;
    type Future = ScheduledFuture<u32>;

    fn new(workers: usize) -> Self {
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(workers);
        Self(builder.build().expect("its threads have the default name"))
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        self.0.schedule(delay, task).expect("it is open")
    }

    fn schedule_at<F: FnOnce() + Send + 'static>(&self, due: Instant, task: F) {
        drop(self.0.schedule_at(due, task).expect("it is open"));
    }

    fn cancel(&self, handle: Self::Handle) {
        handle.cancel();
    }

    fn reschedule<F: FnOnce() + Send + 'static>(
        &self,
        handle: Self::Handle,
        delay: Duration,
        _: impl FnOnce() -> F,
    ) -> Self::Handle {
        assert!(handle.reschedule(delay), "it is pending");
        handle
    }

    fn extend_often(&self, delay: Duration, count: u64, task: fn()) {
        let (builder, extender) = self.0.task().extender();
        let timeout = builder.schedule(delay, task).expect("it is open");
        for _ in 0..count {
            assert!(extender.extend(delay), "it is pending");
        }
        timeout.cancel();
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        self.0.submit(task).expect("it is open")
    }

    fn wait(&self, future: Self::Future) -> u32 {
        future.join().expect("it runs")
    }

    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        task: F,
    ) {
        drop(self.0.schedule_at_fixed_rate(initial, period, task).expect("it is open"));
    }

    fn repeat_with_report<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        mut task: F,
    ) {
        let body = move || -> io::Result<()> {
            task();
            Ok(())
        };
        let rate = every(period).first_in(initial);
        drop(self.0.repeat(rate, body).expect("it is open"));
    }

    fn shutdown_now(self) {
        drop(self.0.shutdown_now());
    }
}
