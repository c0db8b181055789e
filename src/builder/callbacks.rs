//! The callbacks: at the start and end of threads, around each run, for each submission, after a
//! panic, and when the executor has ended. All of them are called with no lock held, and none of
//! them ends a worker by panicking.
//!
//! The executor keeps these closures, and a handle keeps the memory of its executor, though not the
//! threads. So a closure that holds a handle to its own executor is never freed.

use super::Builder;
use crate::{
    Done, Failure, FailureReport, Submission, TaskContext, TaskRun,
    pool::Callbacks,
    sync::Arc,
    task::{Hooks, Wrapper},
    unwind::Contained,
};

impl Builder {
    /// Sets the callback that each worker calls first, in its thread. A panic in it is reported,
    /// and the worker starts all the same. The callback cannot wait for the end of its own
    /// executor, because the executor waits for this thread:
    /// [`await_termination`](crate::Handle::await_termination) returns
    /// [`WouldDeadlock`](crate::WouldDeadlock) at once, even with a time limit.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let threads = Arc::new(AtomicUsize::new(0));
    /// let (started, stopped) = (threads.clone(), threads.clone());
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .on_thread_start(move || drop(started.fetch_add(1, Ordering::SeqCst)))
    ///     .on_thread_stop(move || drop(stopped.fetch_sub(1, Ordering::SeqCst)))
    ///     .build()?;
    /// executor.submit(|| ())?.join()?;
    /// assert_eq!(threads.load(Ordering::SeqCst), 1);
    /// executor.close()?;
    /// assert_eq!(threads.load(Ordering::SeqCst), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "start_handler")]
    pub fn on_thread_start(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.callbacks().thread_start = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Sets the callback that each worker calls last, in its thread. It cannot wait for the end of
    /// its own executor either: see [`on_thread_start`](Self::on_thread_start).
    #[doc(alias = "exit_handler")]
    pub fn on_thread_stop(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.callbacks().thread_stop = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Sets the hook that is called before each run of each task, in the thread that runs it. If
    /// the hook panics, the closure does not run, and the run has failed with that panic. Java:
    /// `beforeExecute`.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use punctual::{Failure, ScheduledThreadPoolExecutor, TaskContext};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let also_tell = tell.clone();
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .before_execute(move |task: &TaskContext| {
    ///         tell.send(format!("{} begins", task.name().unwrap_or("it".into()))).ok();
    ///     })
    ///     .after_execute(move |_: &TaskContext, outcome: Result<(), &Failure>| {
    ///         also_tell.send(outcome.map_or("it failed", |()| "it is done").to_owned()).ok();
    ///     })
    ///     .build()?;
    /// executor.task().name("cleaning").submit(|| ())?.join()?;
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), ["cleaning begins", "it is done"]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "beforeExecute")]
    #[doc(alias("middleware", "on_before_task_poll"))]
    pub fn before_execute(mut self, hook: impl Fn(&TaskContext) + Send + Sync + 'static) -> Self {
        self.hooks().before = Some(Contained::new(Arc::new(hook)));
        self
    }

    /// Sets the hook that is called after each run of each task, with its outcome, before any other
    /// thread can see that outcome: when a future has ended, its hook has returned. If the hook
    /// panics, the outcome stands. It is not called if [`before_execute`](Self::before_execute)
    /// panicked. Java: `afterExecute`, which in a scheduled executor never sees a failure.
    #[doc(alias = "afterExecute")]
    pub fn after_execute(
        mut self,
        hook: impl Fn(&TaskContext, Result<(), &Failure>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks().after = Some(Contained::new(Arc::new(hook)));
        self
    }

    /// Sets the hook that is called once, when everything has ended, before any thread can observe
    /// the end. The last worker calls it, or, if no worker is left, the thread that shuts the
    /// executor down, so it may run inside the call of [`shutdown`](crate::Handle::shutdown). The
    /// executor has terminated only when the hook has returned, so in the hook
    /// [`await_termination`](crate::Handle::await_termination) returns
    /// [`WouldDeadlock`](crate::WouldDeadlock) at once. Java: `terminated`.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let builder = ScheduledThreadPoolExecutor::builder();
    /// let executor = builder.terminated(move || tell.send("it has ended").unwrap_or(())).build()?;
    /// executor.close()?;
    /// assert_eq!(told.try_recv()?, "it has ended");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn terminated(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.callbacks().terminated = Some(Contained::new(Arc::new(hook)));
        self
    }

    /// Sets a decorator, which wraps code around every closure. The decorator is called for each
    /// submission, in the thread that submits, and returns the wrapper that is called around each
    /// run. So it can carry the context of the submitter along, such as a trace or a request.
    /// Order, futures and the cost of cancelling are those of tasks without a decorator; a
    /// decorated task takes two allocations more. If the decorator panics, the panic propagates to
    /// the submitter. Java: `decorateTask`.
    ///
    /// ```
    /// use std::{cell::Cell, time::{Duration, Instant}};
    /// use punctual::{TaskRun, ScheduledThreadPoolExecutor, Submission};
    ///
    /// thread_local!(static REQUEST: Cell<u32> = const { Cell::new(0) });
    ///
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .decorate_task(|_: &Submission<'_>| {
    ///         let request = REQUEST.get(); // of the thread that submits
    ///         move |task: TaskRun<'_>| {
    ///             let before = REQUEST.replace(request);
    ///             let done = task.run();
    ///             REQUEST.set(before);
    ///             done
    ///         }
    ///     })
    ///     .build()?;
    /// REQUEST.set(42);
    /// assert_eq!(executor.submit(|| REQUEST.get())?.join()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "decorateTask")]
    #[doc(alias("middleware", "task_local"))]
    pub fn decorate_task<D, W>(mut self, decorator: D) -> Self
    where
        D: Fn(&Submission<'_>) -> W + Send + Sync + 'static,
        W: FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static,
    {
        let decorate = move |task: &Submission<'_>| Wrapper::new(decorator(task));
        self.callbacks().decorate = Some(Contained::new(Arc::new(decorate)));
        self
    }

    /// Sets the handler that is called for every run that fails, by a panic or by an `Err`, and for every
    /// panic in a hook, in the thread where it happened, before any other thread can see the outcome; for
    /// every panic in the drop of a capture or a result; and at the end of a periodic task that its user did not end, because a
    /// run exceeded its [time limit](crate::TaskBuilder::timeout) or the queue has no place for the
    /// task any more. [`FailureSource`](crate::FailureSource) tells these apart. A panic in the handler
    /// itself is caught and not reported. Without a handler, the end of a periodic task that its user did not end is one line on
    /// standard error, unless a panic has said it there or a subscriber of `tracing` hears it. To record where panics begin, the first executor that is
    /// built with a handler installs a panic hook in front of that of the process, which is called
    /// as before.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use punctual::{FailureReport, ScheduledThreadPoolExecutor};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .failure_handler(move |report: &FailureReport<'_>| drop(tell.send(report.to_string())))
    ///     .build()?;
    /// executor.task().name("backup").execute(|| panic!("disk full"))?;
    /// let line = told.recv()?;
    /// assert!(line.starts_with("a task (task ") && line.contains("\"backup\", run 1) panicked at "));
    /// assert!(line.ends_with(": disk full"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "UncaughtExceptionHandler")]
    #[doc(alias("panic_handler", "unhandled_panic", "on_panic"))]
    pub fn failure_handler(
        mut self,
        handler: impl Fn(&FailureReport<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks().on_failure = Some(Contained::new(Arc::new(handler)));
        self
    }

    pub(super) fn callbacks(&mut self) -> &mut Callbacks {
        &mut self.config.callbacks
    }

    fn hooks(&mut self) -> &mut Hooks {
        &mut self.config.callbacks.hooks
    }
}
