//! The interface of the crate `scheduled-thread-pool` 0.2.8, on [`punctual`]: a drop-in.
//!
//! A program changes one line of its `Cargo.toml`, and none of its code:
//!
//! ```toml
//! [dependencies]
//! scheduled-thread-pool = { package = "punctual-thread-pool", version = "0.1" }
//! ```
//!
//! ```
//! # use punctual_thread_pool as scheduled_thread_pool;
//! use std::{sync::mpsc, time::Duration};
//! use scheduled_thread_pool::ScheduledThreadPool;
//!
//! let pool = ScheduledThreadPool::builder().num_threads(2).thread_name_pattern("ticker-{}").build();
//! let (tick, ticks) = mpsc::channel();
//! let series = pool.execute_at_fixed_rate(Duration::ZERO, Duration::from_millis(1), move || {
//!     let _ = tick.send(());
//! });
//! assert_eq!(ticks.iter().take(3).count(), 3);
//! series.cancel();
//! assert_eq!(ticks.iter().skip_while(|()| true).next(), None); // the closure has been dropped
//! ```
//!
//! # Common behaviour
//!
//! Every type, method, trait and marker trait, and what the tests of this crate compare by running the
//! same program on both crates: which jobs run, how often, in which order, never early; which calls
//! panic, and with which message; what a drop of the pool does to jobs that wait, repeat or run; the names
//! of the threads. A program compiles with one of the two exactly if it compiles with the other.
//!
//! # Differences
//!
//! | | here | `scheduled-thread-pool` |
//! |---|---|---|
//! | [`JobHandle::cancel`] | takes a waiting job out and drops what it has captured, on the calling thread, before it returns | marks the job, which stays in memory, with its captures, until it would have run |
//! | a cancelled job, when the pool is dropped | is gone, so the threads do not wait for it | keeps the threads alive until it would have run |
//! | [`DiscardPendingScheduled`](OnPoolDropBehavior::DiscardPendingScheduled) | the discarded jobs are dropped on the thread that drops the pool, before the drop returns | the last thread to end drops them, some time later |
//! | jobs for the same instant | run in the order of submission | run in any order |
//! | a panic of a captured value's drop, when a job has panicked too | is contained for jobs that repeat | aborts the process |
//! | a panic in the drop of a panic's payload | is contained | ends the thread, and is never noticed |
//! | a wake-up | one thread, for the job that is due first, without timer slack on Linux | all threads, each time a job becomes the first; up to 50 µs late on Linux |
//! | `Debug` of a [`JobHandle`] | its number and state | whether it was cancelled |
//!
//! The first row is the one to read before a change: **a captured value whose drop takes a lock must not
//! be in a job that is cancelled under that lock**; nor, for the third row, in a pool that is dropped
//! under it.
//!
//! # Below another crate
//!
//! A crate like `r2d2` names `scheduled-thread-pool` itself. To have it use this one, the repository has
//! a package of that name and version that only re-exports it, for `[patch.crates-io]`; a published
//! crate cannot do that.
//!
//! # On to punctual
//!
//! punctual also has what the interface has no word for: results, futures that are awaited, waiting for the
//! end, missed runs, time limits, tests on a clock that stands still.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod builder;

use std::{
    marker::PhantomData,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use punctual::{
    Clock, RejectedExecutionError, ScheduledFuture, ScheduledThreadPoolExecutor, TaskHandle,
    trigger,
};

use crate::builder::{FinalStage, NumThreadsStage};

/// A handle on a job. Dropping it changes nothing: the job runs on.
#[derive(Debug)]
pub struct JobHandle(TaskHandle);

impl JobHandle {
    /// Cancels the job: it does not begin to run any more. One that is running finishes its run, and is
    /// not run again. What a waiting job has captured is dropped before this returns. Does nothing if
    /// the job has ended.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// The fate of the jobs that wait when the pool is dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnPoolDropBehavior {
    /// Each runs once more, when it is due, however far in the future that is. Jobs that repeat are not
    /// run again after that. This is the default.
    CompletePendingScheduled,

    /// None is run any more, not even one that is due.
    DiscardPendingScheduled,
}

/// A pool of threads that run closures at given times.
///
/// Dropping it admits no more jobs, does with those that wait what [`OnPoolDropBehavior`] says, and waits
/// for nothing: jobs that run finish by themselves, and then the threads end. A job that repeats and runs
/// while the pool is dropped is not run again.
///
/// All threads are started when the pool is built. A panic of a job ends that job and nothing else.
#[allow(missing_debug_implementations, reason = "the original has none, and a drop-in adds none")]
pub struct ScheduledThreadPool {
    /// Not there only while it is dropped.
    executor: Option<ScheduledThreadPoolExecutor>,
    on_drop: OnPoolDropBehavior,
    /// Not `UnwindSafe`, as the original: what compiles here compiles there.
    _not_unwind_safe: PhantomData<Box<dyn Send + Sync>>,
}

impl Drop for ScheduledThreadPool {
    fn drop(&mut self) {
        let Some(executor) = self.executor.take() else { return };
        match self.on_drop {
            OnPoolDropBehavior::CompletePendingScheduled => executor.close_background(),
            // The executor itself is built to do the same when it is dropped: to wait for nothing.
            OnPoolDropBehavior::DiscardPendingScheduled => drop(executor.shutdown_now()),
        }
    }
}

impl ScheduledThreadPool {
    /// Creates a pool with this many threads.
    ///
    /// # Panics
    ///
    /// If `num_threads` is zero, or the system refuses a thread.
    #[must_use]
    pub fn new(num_threads: usize) -> Self {
        Self::builder().num_threads(num_threads).build()
    }

    /// Returns a builder, which sets more than the number of threads.
    #[must_use]
    pub fn builder() -> NumThreadsStage {
        NumThreadsStage(())
    }

    /// Creates a pool with this many threads, which are named: each `{}` in the name stands for the number
    /// of the thread, from 0.
    ///
    /// # Panics
    ///
    /// As for [`new`](Self::new), and if the name contains a zero byte.
    #[deprecated(note = "use ScheduledThreadPool::builder", since = "0.2.7")]
    #[must_use]
    pub fn with_name(thread_name: &str, num_threads: usize) -> Self {
        Self::builder().num_threads(num_threads).thread_name_pattern(thread_name).build()
    }

    fn from_stage(stage: &FinalStage<'_>) -> Self {
        let executor = Some(builder::executor(stage));
        let on_drop = stage.on_drop_behavior;
        Self { executor, on_drop, _not_unwind_safe: PhantomData }
    }

    /// Runs the closure as soon as a thread is free.
    pub fn execute<F>(&self, job: F) -> JobHandle
    where
        F: FnOnce() + Send + 'static,
    {
        handle_of(self.executor().submit(job))
    }

    /// Runs the closure after a delay.
    ///
    /// # Panics
    ///
    /// If no [`Instant`] is that far in the future.
    pub fn execute_after<F>(&self, delay: Duration, job: F) -> JobHandle
    where
        F: FnOnce() + Send + 'static,
    {
        handle_of(self.executor().schedule_at(self.clock().now() + delay, job))
    }

    /// Runs the closure after a delay, and again and again at a fixed rate: each run is due `rate` after
    /// the run before *was due*. Runs that were missed are made up for. A run after which no [`Instant`]
    /// is that far in the future is the last one.
    ///
    /// With a rate of zero the job is always the one that has been due for longest, and never leaves its
    /// thread to a job that was submitted later.
    ///
    /// # Panics
    ///
    /// If no [`Instant`] is `initial_delay` in the future.
    ///
    /// If the closure panics it is not run again.
    pub fn execute_at_fixed_rate<F>(
        &self,
        initial_delay: Duration,
        rate: Duration,
        mut f: F,
    ) -> JobHandle
    where
        F: FnMut() + Send + 'static,
    {
        self.execute_at_dynamic_rate(initial_delay, move || {
            f();
            Some(rate)
        })
    }

    /// Runs the closure after a delay, and again and again at the rate that it returns: each run is due
    /// that much after the run before *was due*. Runs that were missed are made up for. `None` ends the
    /// series.
    ///
    /// # Panics
    ///
    /// As for [`execute_at_fixed_rate`](Self::execute_at_fixed_rate).
    pub fn execute_at_dynamic_rate<F>(&self, initial_delay: Duration, mut f: F) -> JobHandle
    where
        F: FnMut() -> Option<Duration> + Send + 'static,
    {
        self.repeat(initial_delay, move |due| Some(due + f()?))
    }

    /// Runs the closure after a delay, and again and again `delay` after the *end* of the run before. A run
    /// after which no [`Instant`] is that far in the future is the last one.
    ///
    /// # Panics
    ///
    /// As for [`execute_at_fixed_rate`](Self::execute_at_fixed_rate).
    pub fn execute_with_fixed_delay<F>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        mut f: F,
    ) -> JobHandle
    where
        F: FnMut() + Send + 'static,
    {
        self.execute_with_dynamic_delay(initial_delay, move || {
            f();
            Some(delay)
        })
    }

    /// Runs the closure after a delay, and again and again after the delay that it returns, which counts
    /// from the *end* of the run. `None` ends the series.
    ///
    /// # Panics
    ///
    /// As for [`execute_at_fixed_rate`](Self::execute_at_fixed_rate).
    pub fn execute_with_dynamic_delay<F>(&self, initial_delay: Duration, mut f: F) -> JobHandle
    where
        F: FnMut() -> Option<Duration> + Send + 'static,
    {
        let clock = self.clock().clone();
        self.repeat(initial_delay, move |_| {
            let delay = f()?;
            Some(clock.now() + delay)
        })
    }

    /// Runs a closure that is told when it was due, and returns when it is due next.
    fn repeat<F>(&self, initial_delay: Duration, mut run: F) -> JobHandle
    where
        F: FnMut(Instant) -> Option<Instant> + Send + 'static,
    {
        let mut due = self.clock().now() + initial_delay;
        let (first, executor) = (due.into(), self.executor().handle());
        let body = move || match run(due) {
            Some(next) if !executor.is_shutdown() => {
                due = next;
                ControlFlow::Continue(due)
            }
            _ => ControlFlow::Break(()),
        };
        // The trigger is asked once: after that each run says when the next one is.
        handle_of(self.executor().repeat(trigger::from_fn(move |_| Some(first)), body))
    }

    fn clock(&self) -> &Clock {
        self.executor().clock()
    }

    #[allow(clippy::expect_used, reason = "it is taken out by the drop and nowhere else")]
    fn executor(&self) -> &ScheduledThreadPoolExecutor {
        self.executor.as_ref().expect("the pool is not being dropped")
    }
}

/// Returns the handle of a job that was submitted. A pool that can be submitted to has not been shut down,
/// has all its threads, and has no bound: nothing is refused.
#[allow(clippy::expect_used, reason = "see above")]
fn handle_of(submitted: Result<ScheduledFuture<()>, RejectedExecutionError>) -> JobHandle {
    JobHandle(submitted.expect("the pool accepts every job").task_handle())
}

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
