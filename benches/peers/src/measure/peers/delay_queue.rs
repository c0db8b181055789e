//! `tokio_util`'s `DelayQueue` behind a lock. One task polls it and runs the callbacks itself.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};
use tokio_util::time::delay_queue::{self, Key};

use crate::measure::{
    oneshot::{Oneshot, oneshot},
    peer::Peer,
};

enum Job {
    Once(Box<dyn FnOnce() + Send>),
    AtFixedRate { due: Instant, period: Duration, task: Box<dyn FnMut() + Send> },
}

struct State {
    jobs: delay_queue::DelayQueue<Job>,
    /// The waker of the polling task while there is no job, because an insertion does not wake it
    /// then.
    idle: Option<Waker>,
}

impl State {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Job> {
        match self.jobs.poll_expired(context) {
            Poll::Ready(Some(expired)) => return Poll::Ready(expired.into_inner()),
            Poll::Ready(None) => self.idle = Some(context.waker().clone()),
            Poll::Pending => {}
        }
        Poll::Pending
    }
}

pub(in crate::measure) struct DelayQueue {
    runtime: Runtime,
    state: Arc<Mutex<State>>,
}

impl DelayQueue {
    fn insert(&self, job: Job, due: Instant) -> Key {
        let mut state = self.state.lock();
        let key = {
            let _entered = self.runtime.enter();
            state.jobs.insert_at(job, due)
        };
        let idle = state.idle.take();
        drop(state);
        if let Some(waker) = idle {
            waker.wake();
        }
        key
    }
}

async fn run_jobs(state: Arc<Mutex<State>>) {
    loop {
        match poll_fn(|context| state.lock().poll(context)).await {
            Job::Once(task) => task(),
            Job::AtFixedRate { due, period, mut task } => {
                task();
                let due = due + period;
                state.lock().jobs.insert_at(Job::AtFixedRate { due, period, task }, due);
            }
        }
    }
}

impl Peer for DelayQueue {
    const MAX_WORKERS: usize = 1;

    type Handle = Key;
    type Future = Oneshot;

    fn new(_workers: usize) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build();
        let runtime = runtime.expect("its thread starts");
        let jobs = delay_queue::DelayQueue::new();
        let state = Arc::new(Mutex::new(State { jobs, idle: None }));
        runtime.spawn(run_jobs(Arc::clone(&state)));
        Self { runtime, state }
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        let due = Instant::now() + delay;
        self.insert(Job::Once(Box::new(task)), due)
    }

    fn schedule_at<F: FnOnce() + Send + 'static>(&self, due: std::time::Instant, task: F) {
        self.insert(Job::Once(Box::new(task)), due.into());
    }

    fn cancel(&self, handle: Self::Handle) {
        // The closure is dropped after the lock is released.
        let removed = self.state.lock().jobs.try_remove(&handle);
        drop(removed);
    }

    fn reschedule<F: FnOnce() + Send + 'static>(
        &self,
        handle: Self::Handle,
        delay: Duration,
        _: impl FnOnce() -> F,
    ) -> Self::Handle {
        let due = Instant::now() + delay;
        self.state.lock().jobs.reset_at(&handle, due);
        handle
    }

    fn submit<F: FnOnce() -> u32 + Send + 'static>(&self, task: F) -> Self::Future {
        let (sender, result) = oneshot();
        self.schedule(Duration::ZERO, move || sender.send(task()));
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
        let due = Instant::now() + initial;
        self.insert(Job::AtFixedRate { due, period, task: Box::new(task) }, due);
    }

    fn shutdown_now(self) {
        drop(self.runtime);
        drop(self.state);
    }
}
