//! `tokio`, the runtime with several threads: a spawned sleep, and its abort.

use std::{thread, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::{Instant, interval_at, sleep_until},
};

use crate::measure::peer::Peer;

pub(in crate::measure) struct Tokio(Runtime);

impl Peer for Tokio {
    type Handle = JoinHandle<()>;
    type Future = JoinHandle<u32>;

    fn new(workers: usize) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build();
        Self(runtime.expect("its threads start"))
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        if delay.is_zero() {
            return self.0.spawn(async move { task() });
        }
        // The deadline counts from the call, not from the first poll.
        let due = Instant::now() + delay;
        self.0.spawn(async move {
            sleep_until(due).await;
            task();
        })
    }

    fn schedule_at<F: FnOnce() + Send + 'static>(&self, due: std::time::Instant, task: F) {
        self.0.spawn(async move {
            sleep_until(due.into()).await;
            task();
        });
    }

    fn cancel(&self, handle: Self::Handle) {
        handle.abort();
    }

    /// The timer alone, as a future that watches over another has it.
    fn extend_often(&self, delay: Duration, count: u64, _: fn()) {
        let _entered = self.0.enter();
        let mut timer = std::pin::pin!(tokio::time::sleep(delay));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(timer.as_mut().poll(&mut context).is_pending(), "it is far");
        for _ in 0..count {
            timer.as_mut().reset(Instant::now() + delay);
        }
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        self.0.spawn(async move { task() })
    }

    fn wait(&self, future: Self::Future) -> u32 {
        self.0.block_on(future).expect("it runs")
    }

    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        mut task: F,
    ) {
        let first = Instant::now() + initial;
        self.0.spawn(async move {
            let mut interval = interval_at(first, period);
            loop {
                interval.tick().await;
                task();
            }
        });
    }

    /// The timers are set and removed by the workers.
    fn settle(&self, live: u64) {
        let metrics = self.0.metrics();
        while metrics.num_alive_tasks() as u64 > live || metrics.global_queue_depth() > 0 {
            thread::sleep(Duration::from_micros(50));
        }
    }

    fn shutdown_now(self) {
        drop(self.0);
    }
}
