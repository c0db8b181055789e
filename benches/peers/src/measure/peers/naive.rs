//! The textbook design: a binary heap, a lock, a condition variable. A cancelled task stays in
//! the heap until it is due.

use std::{
    cmp::{self, Reverse},
    collections::BinaryHeap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::measure::{
    oneshot::{Oneshot, oneshot},
    peer::Peer,
};

enum Work {
    Once(Box<dyn FnOnce() + Send>),
    AtFixedRate(Duration, Box<dyn FnMut() + Send>),
}

struct Job {
    due: Instant,
    number: u64,
    cancelled: Arc<AtomicBool>,
    work: Work,
}

impl PartialEq for Job {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Job {}

impl PartialOrd for Job {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Job {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

#[derive(Default)]
struct State {
    heap: BinaryHeap<Reverse<Job>>,
    next_number: u64,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, due: Instant, cancelled: Arc<AtomicBool>, work: Work) {
        let mut state = self.lock();
        if state.stopped {
            return;
        }
        let number = state.next_number;
        state.next_number += 1;
        let is_first = state.heap.peek().is_none_or(|Reverse(head)| due < head.due);
        state.heap.push(Reverse(Job { due, number, cancelled, work }));
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// The next due job. `None` when the pool shuts down.
    fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let Some(Reverse(head)) = state.heap.peek() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let wait = head.due.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Reverse(job) = state.heap.pop()?;
        // Another thread must wait for the new head while this thread runs the job.
        let is_more = !state.heap.is_empty();
        drop(state);
        if is_more {
            self.changed.notify_one();
        }
        Some(job)
    }

    fn work(&self) {
        while let Some(job) = self.take() {
            if job.cancelled.load(Ordering::Acquire) {
                continue;
            }
            match job.work {
                Work::Once(task) => task(),
                Work::AtFixedRate(period, mut task) => {
                    task();
                    self.push(job.due + period, job.cancelled, Work::AtFixedRate(period, task));
                }
            }
        }
    }
}

pub(in crate::measure) struct Naive {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Peer for Naive {
    type Handle = Arc<AtomicBool>;
    type Future = Oneshot;

    fn new(workers: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let workers = (0..workers).map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work())
        });
        let workers = workers.collect();
        Self { shared, workers }
    }

    fn schedule<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Handle {
        let cancelled = Arc::default();
        let work = Work::Once(Box::new(task));
        self.shared.push(Instant::now() + delay, Arc::clone(&cancelled), work);
        cancelled
    }

    fn schedule_at<F: FnOnce() + Send + 'static>(&self, due: Instant, task: F) {
        self.shared.push(due, Arc::default(), Work::Once(Box::new(task)));
    }

    fn cancel(&self, handle: Self::Handle) {
        handle.store(true, Ordering::Release);
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
        let work = Work::AtFixedRate(period, Box::new(task));
        self.shared.push(Instant::now() + initial, Arc::default(), work);
    }

    fn shutdown_now(self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        for worker in self.workers {
            worker.join().expect("no task panics");
        }
        drop(self.shared);
    }
}
