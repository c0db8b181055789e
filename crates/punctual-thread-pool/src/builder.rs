//! The builder of a pool, in two stages: the number of threads comes first, and has no default.

use std::{ffi::CString, thread};

use punctual::{DropPolicy, ScheduledThreadPoolExecutor, Worker};

use crate::{OnPoolDropBehavior, ScheduledThreadPool};

/// The stage that takes the number of threads.
#[allow(missing_debug_implementations, reason = "the original has none, and a drop-in adds none")]
pub struct NumThreadsStage(pub(crate) ());

impl NumThreadsStage {
    /// Sets the number of threads.
    ///
    /// # Panics
    ///
    /// If `num_threads` is zero.
    #[must_use]
    pub fn num_threads<'a>(self, num_threads: usize) -> FinalStage<'a> {
        assert!(num_threads > 0, "num_threads must be positive");
        FinalStage {
            num_threads,
            thread_name_pattern: None,
            on_drop_behavior: OnPoolDropBehavior::CompletePendingScheduled,
        }
    }
}

/// The last stage, which takes what has a default, and builds the pool.
#[allow(missing_debug_implementations, reason = "the original has none, and a drop-in adds none")]
pub struct FinalStage<'a> {
    num_threads: usize,
    thread_name_pattern: Option<&'a str>,
    pub(crate) on_drop_behavior: OnPoolDropBehavior,
}

impl<'a> FinalStage<'a> {
    /// Names the threads: each `{}` in the name stands for the number of the thread, from 0. Without this
    /// call they have no name.
    #[must_use]
    pub fn thread_name_pattern(mut self, thread_name_pattern: &'a str) -> Self {
        self.thread_name_pattern = Some(thread_name_pattern);
        self
    }

    /// Sets the fate of the jobs that wait when the pool is dropped; by default they are
    /// [completed](OnPoolDropBehavior::CompletePendingScheduled).
    #[must_use]
    pub fn on_drop_behavior(mut self, on_drop_behavior: OnPoolDropBehavior) -> Self {
        self.on_drop_behavior = on_drop_behavior;
        self
    }

    /// Builds the pool, and starts all its threads.
    ///
    /// # Panics
    ///
    /// If the system refuses a thread; those that have been started end then. If the name contains a zero
    /// byte.
    #[must_use]
    pub fn build(self) -> ScheduledThreadPool {
        ScheduledThreadPool::from_stage(&self)
    }
}

/// Makes the executor that is below a pool.
pub(crate) fn executor(stage: &FinalStage<'_>) -> ScheduledThreadPoolExecutor {
    let names = stage.thread_name_pattern.map(Names::new);
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(stage.num_threads)
        .prestart_core_threads(true)
        .thread_factory(move |worker: Worker| {
            let mut thread = thread::Builder::new();
            if let (Some(names), Some(number)) = (&names, worker.index()) {
                thread = thread.name(names.name_of(number - 1));
            }
            thread.spawn(move || worker.run()).map(Some)
        })
        // A pending run of a job that repeats takes place after the drop, and is the last: see `repeat`.
        .continues_existing_periodic_tasks_after_shutdown(true)
        // The drop of a pool waits for nothing.
        .on_drop(DropPolicy::ShutdownNow)
        .build();
    #[allow(clippy::panic, reason = "the interface has no error for it")]
    executor.unwrap_or_else(|error| panic!("{error}"))
}

/// The names of the threads of one pool.
struct Names(String);

impl Names {
    /// Panics as the standard library does if no thread can have such a name. Here, because a panic of a
    /// thread factory is an error of the executor's.
    #[allow(clippy::expect_used, reason = "the interface has no error for it")]
    fn new(pattern: &str) -> Self {
        let names = Self(pattern.to_owned());
        CString::new(names.name_of(0)).expect("thread name may not contain interior null bytes");
        names
    }

    fn name_of(&self, number: usize) -> String {
        self.0.replace("{}", &number.to_string())
    }
}
