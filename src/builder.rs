//! The builder: it collects the settings, checks them, and makes the executor.
//!
//! The executor keeps the closures that it is built with, and calls them without holding a lock. A panic in such a
//! closure does not end the worker that called the closure. A handle keeps its executor's memory alive, so a closure
//! that holds a handle to its own executor is never freed.

use std::{fmt, time::Duration};

use crate::{
    Clock, ConfigError, Done, DrivenExecutor, DropPolicy, Failure, FailureReport, Observer,
    RejectedExecutionHandler, ScheduledThreadPoolExecutor, Submission, TaskContext, TaskRun,
    ThreadFactory,
    observing::WantedObservers,
    pool::{Callbacks, Config},
    sync::{Arc, cores},
    task::{Around, Closures, Points},
    unwind::{Contained, note_locations, share},
};

impl ScheduledThreadPoolExecutor {
    /// Creates an executor with this many worker threads and default settings. Starts no thread: each submission
    /// starts one, until there are that many. With a size of zero there is one worker, started when it is needed.
    /// Java: `new ScheduledThreadPoolExecutor(corePoolSize)`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(4);
    /// assert_eq!((executor.core_pool_size(), executor.pool_size()), (4, 0));
    /// executor.submit(|| "the first task starts the first thread")?.join()?;
    /// assert_eq!(executor.pool_size(), 1);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn new(core_pool_size: usize) -> Self {
        Self::from_config(Self::builder().core_pool_size(core_pool_size).config)
    }

    /// Returns a builder, for settings beyond the number of threads.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// Builds a [`ScheduledThreadPoolExecutor`] with settings other than the defaults.
///
/// ```
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2).thread_name("mailer");
/// let executor = builder.stack_size(256 * 1024).build()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    pub(crate) config: Config,
    closures: Closures,
    pub(crate) observing: WantedObservers,
    prestart: bool,
    on_drop: DropPolicy,
}

impl Builder {
    fn new() -> Self {
        let (thread_factory, rejection) = Config::defaults();
        Self {
            config: Config {
                core_pool_size: cores(),
                keep_alive: Duration::from_millis(10),
                core_timeout: false,
                max_pending: None,
                thread_name: "punctual".to_owned(),
                stack_size: None,
                timer_slack: Duration::from_nanos(1),
                lead: Duration::ZERO,
                clock: None,
                is_driven: false,
                stripes: (2 * cores()).next_power_of_two(),
                keep_delayed: true,
                keep_periodic: false,
                thread_factory,
                rejection,
                callbacks: Callbacks::default(),
                warn_after: None,
                submitter_span: false,
            },
            closures: Closures::default(),
            observing: WantedObservers::default(),
            prestart: false,
            on_drop: DropPolicy::default(),
        }
    }

    /// Sets the number of worker threads; the default is the number of logical cores that the process may use.
    /// Submissions start them one by one. With zero there is one worker as long as a task runs or is pending, and
    /// none once it has been idle for the [keep-alive](Self::keep_alive). Java: `corePoolSize`.
    #[doc(alias("worker_threads", "num_threads", "threads", "max_blocking_threads"))]
    pub fn core_pool_size(mut self, size: usize) -> Self {
        self.config.core_pool_size = size;
        self
    }

    /// Sets how long a worker that may retire stays idle before it does; the default is ten milliseconds, as in Java. A
    /// worker may retire if there are more workers than the core pool size, because it was
    /// [lowered](crate::Handle::set_core_pool_size) or is zero, or if [core threads may time
    /// out](Self::allows_core_thread_timeout). One idle worker stays while one task waits for its moment, and two while
    /// several do, unless as many workers as the core pool size are busy. None stays for a task that waits for no
    /// moment: one that is paused, runs on demand, or waits for its group. Java: `keepAliveTime`.
    #[doc(alias("thread_keep_alive", "idle_timeout"))]
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.config.keep_alive = keep_alive;
        self
    }

    /// Sets whether workers of the core retire as well when they have been idle for the
    /// [keep-alive](Self::keep_alive); by default they stay. The next submission starts them again, and so does a
    /// worker that is about to run a task while others are pending and no other worker is idle: a due task waits
    /// only while as many workers as the core pool size are busy. Java: `allowCoreThreadTimeOut`.
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn allows_core_thread_timeout(mut self, allow: bool) -> Self {
        self.config.core_timeout = allow;
        self
    }

    /// Sets whether [`build`](Self::build) starts all workers of the core; by default submissions start them. Then no
    /// task waits for a thread to be started, and the caller learns at once if the system cannot provide the threads.
    /// Java: `prestartAllCoreThreads`, after the constructor.
    #[doc(alias = "prestartAllCoreThreads")]
    pub fn prestart_core_threads(mut self, prestart: bool) -> Self {
        self.prestart = prestart;
        self
    }

    /// Sets how many tasks may be pending, at least one; without this call there is no bound. A submission beyond it is
    /// [rejected](Self::rejected_execution_handler), as [`Saturated`](crate::RejectionReason::Saturated). Running tasks
    /// do not count, and a periodic task that has run is queued again in any case. With a bound, every submission,
    /// every cancellation and every worker that takes a task acquires one lock, which they all share.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{BlockPolicy, ScheduledThreadPoolExecutor};
    ///
    /// let builder = ScheduledThreadPoolExecutor::builder().max_pending(100);
    /// let patience = BlockPolicy::new(Duration::from_secs(60));
    /// let executor = builder.rejected_execution_handler(patience).build()?;
    /// for n in 0..1_000 {
    ///     executor.execute(move || drop(n))?; // blocks while a hundred are pending
    /// }
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("workQueue", "capacity", "backpressure", "queue_size", "bounded"))]
    pub fn max_pending(mut self, tasks: usize) -> Self {
        self.config.max_pending = Some(tasks);
        self
    }

    /// Sets the handler of tasks that are not admitted, because there is no [capacity](Self::max_pending) or the
    /// executor was shut down; the default is [`AbortPolicy`](crate::AbortPolicy). Java:
    /// `RejectedExecutionHandler`, which has an [example](RejectedExecutionHandler).
    pub fn rejected_execution_handler(
        mut self,
        handler: impl RejectedExecutionHandler + 'static,
    ) -> Self {
        self.config.rejection =
            Contained::new(share::<dyn RejectedExecutionHandler, _>(handler, |it| Arc::new(it)));
        self
    }

    /// Sets the factory that starts the threads; by default, the standard library does. A factory can count them, or
    /// bind them to cores. Java: `ThreadFactory`, which has an [example](ThreadFactory).
    #[doc(alias = "spawn_handler")]
    pub fn thread_factory(mut self, factory: impl ThreadFactory + 'static) -> Self {
        self.config.thread_factory =
            Contained::new(share::<dyn ThreadFactory, _>(factory, |it| Arc::new(it)));
        self
    }

    /// Sets the name of the threads, to which each adds a dash and a number from 1; the first is `punctual-1` by
    /// default. Linux shows the first 15 bytes.
    #[doc(alias = "thread_name_fn")]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.config.thread_name = name.into();
        self
    }

    /// Sets the size of the threads' stacks in bytes; by default [std](std::thread::Builder::stack_size) decides.
    #[doc(alias = "thread_stack_size")]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// Sets how much later than requested the system may wake a worker that waits for a deadline. Slack saves
    /// wake-ups, because timers can share one. The default is a nanosecond, which means none. Zero leaves the
    /// choice to the system, which on Linux means 50 µs: half as many wake-ups where deadlines are dense. More than
    /// a second counts as a second, since a timer with more slack than the system can count never fires. Works on
    /// Linux only, with the feature `timer-slack`, which is on by default.
    pub fn timer_slack(mut self, slack: Duration) -> Self {
        self.config.timer_slack = slack;
        self
    }

    /// Sets how long before each deadline a worker wakes; it then polls the clock until the deadline has come. This is
    /// precise, and costs CPU time. With the default, zero, a worker polls only after short waits, and only briefly.
    /// Never makes a task start early. Changes nothing on a [`ManualClock`](crate::ManualClock).
    ///
    /// On a virtual machine with two cores and a task every ten milliseconds, in microseconds:
    ///
    /// | lead | lateness, median | 99 of 100 | CPU for each task |
    /// |---|---|---|---|
    /// | none | 76 | 140 | 35 |
    /// | 60 | 16 | 80 | 60 |
    /// | 150 | 3 | 46 | 140 |
    /// | 300 | 3 | 22 | 275 |
    #[doc(alias("spin", "busy_wait"))]
    pub fn precise(mut self, lead: Duration) -> Self {
        self.config.lead = lead;
        self
    }

    /// Sets the clock that the executor reads; the default is [`Clock::system`]. A
    /// [`ManualClock`](crate::ManualClock) makes tests exact.
    #[doc(alias("start_paused", "mock_clock"))]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.config.clock = Some(clock.into());
        self
    }

    /// Sets whether one-shot tasks that are not yet due still run after [`shutdown`](crate::Handle::shutdown); by
    /// default they do. Those that are due run in any case. Java: `setExecuteExistingDelayedTasksAfterShutdownPolicy`.
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn executes_existing_delayed_tasks_after_shutdown(mut self, keep: bool) -> Self {
        self.config.keep_delayed = keep;
        self
    }

    /// Sets whether periodic tasks continue after [`shutdown`](crate::Handle::shutdown); by default they do not. If
    /// they do, the executor terminates only when they have been cancelled. Java:
    /// `setContinueExistingPeriodicTasksAfterShutdownPolicy`.
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn continues_existing_periodic_tasks_after_shutdown(mut self, keep: bool) -> Self {
        self.config.keep_periodic = keep;
        self
    }

    /// Sets what happens when the executor's owner is dropped; the default is [`DropPolicy::Stop`].
    pub fn on_drop(mut self, policy: DropPolicy) -> Self {
        self.on_drop = policy;
        self
    }

    /// Sets whether the span of each run stands under the `tracing` span in which its task was scheduled, which the
    /// task then holds until it has ended. By default it stands under whatever span its worker is in. The run of a
    /// one-shot task becomes a child. The runs of a periodic task would be children of work that is long over, so each
    /// [follows from](https://docs.rs/tracing/latest/tracing/struct.Span.html#method.follows_from) that span. While a
    /// subscriber listens, this costs a task two allocations; without the feature `tracing` it changes nothing.
    #[doc(alias = "instrument")]
    pub fn submitter_span(mut self, follow: bool) -> Self {
        self.config.submitter_span = follow;
        self
    }
}

/// # Callbacks
impl Builder {
    /// Adds an [observer](Observer), which is told what the executor does: when a worker takes a task, when a run
    /// begins and ends, what fails. Each of the other methods of this block sets one method of an observer. An executor
    /// without an observer pays nothing. Each event costs a call of the observer, and the methods around a run cost as
    /// much as [`current_task`](crate::current_task).
    #[doc(alias("listener", "metrics", "instrument"))]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.config.callbacks.hooks.add(observer);
        self
    }

    /// Sets the callback that each worker calls first, in its thread. A panic in it is reported, and the worker
    /// starts all the same. The executor waits for this thread, so in the callback
    /// [`await_termination`](crate::Handle::await_termination) returns [`WouldDeadlock`](crate::WouldDeadlock) at
    /// once, even with a time limit.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let builder = ScheduledThreadPoolExecutor::builder();
    /// let executor = builder.on_thread_start(move || drop(tell.send("a thread"))).build()?;
    /// executor.execute(|| ())?;
    /// assert_eq!(told.recv()?, "a thread");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "start_handler")]
    pub fn on_thread_start(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.closures.thread_start = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Sets the callback that each worker calls last, in its thread. It cannot wait for the end of its executor
    /// either: see [`on_thread_start`](Self::on_thread_start).
    #[doc(alias = "exit_handler")]
    pub fn on_thread_stop(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.closures.thread_stop = Some(Contained::new(Arc::new(callback)));
        self
    }

    /// Sets the hook that is called before each run of each task, in the thread that runs it. If the hook panics,
    /// the closure does not run, and the run has failed with that panic. Java: `beforeExecute`.
    ///
    /// ```
    /// use punctual::{ScheduledThreadPoolExecutor, TaskContext};
    ///
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .before_execute(|task: &TaskContext| println!("{} begins", task.id()))
    ///     .after_execute(|_: &TaskContext, outcome| println!("failed: {}", outcome.is_err()))
    ///     .build()?;
    /// executor.submit(|| ())?.join()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("middleware", "on_before_task_poll"))]
    pub fn before_execute(mut self, hook: impl Fn(&TaskContext) + Send + Sync + 'static) -> Self {
        self.closures.before = Some(Contained::new(Arc::new(hook)));
        self
    }

    /// Sets the hook that is called after each run of each task, with its outcome, before any other thread can see that
    /// outcome: when a future has completed, its hook has returned. If the hook panics, the outcome stands. It is not
    /// called if [`before_execute`](Self::before_execute) panicked. Java: `afterExecute`, which in a scheduled executor
    /// never sees a failure.
    pub fn after_execute(
        mut self,
        hook: impl Fn(&TaskContext, Result<(), &Failure>) + Send + Sync + 'static,
    ) -> Self {
        self.closures.after = Some(Contained::new(Arc::new(hook)));
        self
    }

    /// Sets the hook that is called once, when everything has ended, before any thread can observe the end. The last
    /// worker calls it, or, if there is none, the thread that shuts the executor down, perhaps inside
    /// [`shutdown`](crate::Handle::shutdown). The executor terminates when the hook has returned, so in the hook
    /// [`await_termination`](crate::Handle::await_termination) returns [`WouldDeadlock`](crate::WouldDeadlock) at once.
    /// Java: `terminated`.
    pub fn terminated(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.closures.terminated = Some(Contained::new(Arc::new(hook)));
        self
    }

    /// Sets a decorator, which wraps code around every closure. It is called for each submission, in the thread that
    /// submits, and returns the wrapper that is called around each run: so it can carry the submitter's trace or
    /// request along. A decorated task costs two more allocations, and is otherwise like any other. If the decorator
    /// panics, the panic propagates to the submitter. Java: `decorateTask`.
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
    #[doc(alias("middleware", "task_local"))]
    pub fn decorate_task<W: FnMut(TaskRun<'_>) -> Done<'_> + Send + 'static>(
        mut self,
        decorator: impl Fn(&Submission<'_>) -> W + Send + Sync + 'static,
    ) -> Self {
        let decorate = move |task: &Submission<'_>| Around::of_wrapper(decorator(task));
        self.config.callbacks.decorate = Some(Contained::new(Arc::new(decorate)));
        self
    }

    /// Sets the failure handler. It is called for every run that fails, by a panic or an `Err`, and for every panic in
    /// a hook: in the thread where it happened, before any other thread can see the outcome. It is also called for
    /// every panic in the drop of a capture or a result, and when a periodic task ends unexpectedly, because a run
    /// exceeded its [time limit](crate::TaskBuilder::timeout) or the queue has no more room for the task.
    /// [`FailureSource`](crate::FailureSource) tells these apart. A panic in the handler is caught and not reported.
    ///
    /// A failed run is reported once its hooks have returned and its trigger has been asked, because the report says
    /// [what follows](crate::FailureReport::again_in). Without a handler, such an end of a periodic task is one line on
    /// standard error, unless a panic's message has said it there or a `tracing` subscriber hears it. To record where
    /// panics begin, the first executor that is built with a handler installs a panic hook in front of the process's
    /// own, which is called as before.
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
    /// assert!(line.starts_with("task \"backup\" (") && line.contains("), run 1: panicked at "));
    /// assert!(line.ends_with(": disk full"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("UncaughtExceptionHandler", "panic_handler", "unhandled_panic", "on_panic"))]
    pub fn failure_handler(
        mut self,
        handler: impl Fn(&FailureReport<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.closures.failed = Some(Contained::new(Arc::new(handler)));
        self
    }
}

/// # Building
impl Builder {
    /// Builds the executor. Starts no thread and does not block, unless the core is to be
    /// [prestarted](Self::prestart_core_threads); then it blocks while the threads are being started.
    ///
    /// # Errors
    ///
    /// * [`ConfigError::InvalidThreadName`] if no thread can have the name.
    /// * [`ConfigError::ZeroKeepAlive`] if core threads may time out and the keep-alive is zero.
    /// * [`ConfigError::ZeroMaxPending`] if no task may be pending.
    /// * [`ConfigError::ZeroStarvationTime`] if starvation is to be reported after no time at all.
    /// * [`ConfigError::Spawn`] if a thread that was to be prestarted cannot be started; the threads before it have
    ///   ended by then.
    pub fn build(self) -> Result<ScheduledThreadPoolExecutor, ConfigError> {
        let prestart = self.prestart;
        let (config, on_drop) = self.check()?;
        let executor = ScheduledThreadPoolExecutor::from_config(config);
        WantedObservers::begin(&executor);
        if prestart {
            executor.prestart_all_core_threads().map_err(ConfigError::Spawn)?;
        }
        // Only now: on an error the drop has to wait, whatever was selected.
        Ok(executor.on_drop(on_drop))
    }

    /// Builds an executor that starts no thread: the calling thread [runs what is due](DrivenExecutor::run_due).
    /// Settings that concern threads have no effect.
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build), but never [`ConfigError::Spawn`], since it starts no thread.
    #[doc(alias("current_thread", "new_current_thread", "single_threaded", "event_loop", "wasm"))]
    pub fn build_driven(mut self) -> Result<DrivenExecutor, ConfigError> {
        self.config.is_driven = true;
        let (config, on_drop) = self.check()?;
        let config = Config {
            core_pool_size: 1,
            core_timeout: false,
            stripes: 1,
            lead: Duration::ZERO,
            ..config
        };
        Ok(DrivenExecutor::from_config(config, on_drop))
    }

    fn check(mut self) -> Result<(Config, DropPolicy), ConfigError> {
        if self.config.thread_name.as_bytes().contains(&0) {
            return Err(ConfigError::InvalidThreadName(self.config.thread_name.clone()));
        }
        if self.config.core_timeout && self.config.keep_alive.is_zero() {
            return Err(ConfigError::ZeroKeepAlive);
        }
        if self.config.max_pending == Some(0) {
            return Err(ConfigError::ZeroMaxPending);
        }
        if self.observing.starves_at_once() {
            return Err(ConfigError::ZeroStarvationTime);
        }
        self.config.callbacks.hooks.add(self.closures);
        self.observing.add_to(&mut self.config);
        if self.config.callbacks.hooks.has(Points::FAILED) {
            note_locations();
        }
        Ok((self.config, self.on_drop))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        f.debug_struct("Builder")
            .field("core_pool_size", &config.core_pool_size)
            .field("thread_name", &config.thread_name)
            .field("max_pending", &config.max_pending)
            .finish_non_exhaustive()
    }
}
