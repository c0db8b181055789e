//! `async-io`: a `Timer` in a task of an `async-executor`, whose workers are plain threads. The
//! crate's own thread watches the timers while no worker does.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use async_executor::{Executor, Task};
use futures_lite::StreamExt;
use parking_lot::Mutex;

use crate::measure::peer::Peer;

/// Ends the workers.
struct Stop {
    is_set: AtomicBool,
    wakers: Vec<Mutex<Option<Waker>>>,
}

impl Stop {
    fn poll(&self, worker: usize, context: &mut Context<'_>) -> Poll<()> {
        let mut waker = self.wakers[worker].lock();
        if self.is_set.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.wakers.iter().filter_map(|waker| waker.lock().take()).for_each(Waker::wake);
    }
}

pub(in crate::measure) struct AsyncIo {
    executor: Arc<Executor<'static>>,
    stop: Arc<Stop>,
    workers: Vec<JoinHandle<()>>,
}

impl Peer for AsyncIo {
    type Handle = Task<()>;
    type Future = Task<u32>;

    fn prepare() {
        async_io::block_on(async_io::Timer::after(Duration::from_millis(1)));
    }

    fn new(workers: usize) -> Self {
        let executor = Arc::new(Executor::new());
        let wakers = (0..workers).map(|_| Mutex::default()).collect();
        let stop = Arc::new(Stop { is_set: AtomicBool::new(false), wakers });
        let workers = (0..workers).map(|number| {
            let (executor, stop) = (Arc::clone(&executor), Arc::clone(&stop));
            let stopped = poll_fn(move |context| stop.poll(number, context));
            thread::spawn(move || async_io::block_on(executor.run(stopped)))
        });
        let workers = workers.collect();
        Self { executor, stop, workers }
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        if delay.is_zero() {
            return self.executor.spawn(async move { task() });
        }
        let due = Instant::now() + delay;
        self.executor.spawn(async move {
            async_io::Timer::at(due).await;
            task();
        })
    }

    fn schedule_detached<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        self.schedule(delay, task).detach();
    }

    fn cancel(&self, handle: Self::Handle) {
        drop(handle);
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        self.executor.spawn(async move { task() })
    }

    fn wait(&self, future: Self::Future) -> u32 {
        futures_lite::future::block_on(future)
    }

    fn schedule_at_fixed_rate<F: FnMut() + Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        mut task: F,
    ) {
        let first = Instant::now() + initial;
        let periodic = self.executor.spawn(async move {
            let mut timer = async_io::Timer::interval_at(first, period);
            while timer.next().await.is_some() {
                task();
            }
        });
        periodic.detach();
    }

    /// A cancelled task is dropped by a worker.
    fn settle(&self, _live: u64) {
        for _ in 0..4 {
            self.wait(self.submit(|| 1));
        }
    }

    fn shutdown_now(self) {
        self.stop.set();
        for worker in self.workers {
            worker.join().expect("no task panics");
        }
        drop(self.executor);
    }
}
