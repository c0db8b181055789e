//! The builder: it collects the settings, checks them, and makes the executor.

mod callbacks;
mod observing;

use std::{fmt, time::Duration};

use crate::{
    Clock, ConfigError, DrivenExecutor, DropPolicy, RejectedExecutionHandler,
    ScheduledThreadPoolExecutor, ThreadFactory,
    pool::{Callbacks, Config, ObservingConfig, share_factory, share_handler},
    sync::cores,
    unwind::{Contained, note_locations},
};

impl ScheduledThreadPoolExecutor {
    /// Creates an executor with this many worker threads and default settings. Starts no thread:
    /// each submission starts one, until there are that many. With a size of zero there is one
    /// worker, started when it is needed. Java: `new ScheduledThreadPoolExecutor(corePoolSize)`.
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

    /// Returns a builder, which sets more than the number of threads.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// Builds a [`ScheduledThreadPoolExecutor`] with settings other than the default.
///
/// ```
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::builder()
///     .core_pool_size(2)
///     .thread_name("mailer")
///     .stack_size(256 * 1024)
///     .executes_existing_delayed_tasks_after_shutdown(false)
///     .build()?;
/// # executor.close()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    config: Config,
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
                observing: ObservingConfig::default(),
            },
            prestart: false,
            on_drop: DropPolicy::default(),
        }
    }

    /// Sets the number of worker threads; the default is the number of logical cores that the
    /// process may use (`num_cpus::get`). Threads are started one by one, as tasks are submitted.
    /// With zero there is one worker as long as a task runs or is pending, and none once it has
    /// been idle for the [keep-alive](Self::keep_alive). Java: `corePoolSize`.
    #[doc(alias(
        "worker_threads",
        "num_threads",
        "threads",
        "num_workers",
        "max_blocking_threads"
    ))]
    pub fn core_pool_size(mut self, size: usize) -> Self {
        self.config.core_pool_size = size;
        self
    }

    /// Sets how long a worker that may retire stays idle before it does; the default is ten
    /// milliseconds, as in Java. A worker may retire if there are more workers than the core pool
    /// size, because that was [lowered](crate::Handle::set_core_pool_size) or is zero, or if
    /// [core threads may time out](Self::allows_core_thread_timeout). While one task waits for its
    /// moment one idle worker stays, and while several do two stay, unless as many workers as the core
    /// pool size are busy. The workers that stay sleep until the first tasks are due. None stays for a task that
    /// waits for no moment: one that is paused, on demand, or waits for its group. Java: `keepAliveTime`.
    #[doc(alias("thread_keep_alive", "idle_timeout"))]
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.config.keep_alive = keep_alive;
        self
    }

    /// Sets whether workers of the core retire as well when they have been idle for the
    /// [keep-alive](Self::keep_alive); by default they stay. The next submission starts them again,
    /// and so does a worker that is about to run a task while others are pending and no other
    /// worker is idle. So a task that is due waits only while as many workers as the core pool size
    /// are busy. Java: `allowCoreThreadTimeOut`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let (clock, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    /// let executor = builder.allows_core_thread_timeout(true).keep_alive(minute).build()?;
    /// executor.submit(|| ())?.join()?;
    /// assert_eq!(executor.pool_size(), 1);
    /// clock.run_for(minute);
    /// assert_eq!(executor.pool_size(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn allows_core_thread_timeout(mut self, allow: bool) -> Self {
        self.config.core_timeout = allow;
        self
    }

    /// Sets whether [`build`](Self::build) starts all workers of the core at once; by default
    /// submissions start them. If it does, no task waits for a thread to be started, and a system
    /// that cannot provide the threads reports it at the beginning. Java: `prestartAllCoreThreads`,
    /// after the constructor.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2);
    /// let executor = builder.prestart_core_threads(true).build()?;
    /// assert_eq!(executor.pool_size(), 2);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "prestartAllCoreThreads")]
    pub fn prestart_core_threads(mut self, prestart: bool) -> Self {
        self.prestart = prestart;
        self
    }

    /// Sets how many tasks may be pending, at least one; without this call there is no bound. A
    /// submission beyond the bound is [rejected](Self::rejected_execution_handler), as
    /// [`Saturated`](crate::RejectionReason::Saturated). Running tasks do not count, and a periodic
    /// task that has run is queued again in any case. A bound costs every submission, every
    /// cancellation and every worker that takes a task one lock, which all of them share.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{BlockPolicy, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::builder()
    ///     .max_pending(100)
    ///     .rejected_execution_handler(BlockPolicy::new(Duration::from_secs(60)))
    ///     .build()?;
    /// for n in 0..1_000 {
    ///     executor.execute(move || drop(n))?; // blocks while a hundred are pending
    /// }
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "workQueue")]
    #[doc(alias("capacity", "backpressure", "queue_size", "bounded"))]
    pub fn max_pending(mut self, tasks: usize) -> Self {
        self.config.max_pending = Some(tasks);
        self
    }

    /// Sets the handler that decides about rejected tasks, which are not admitted because there is
    /// no [capacity](Self::max_pending) or the executor was shut down; the default is
    /// [`AbortPolicy`](crate::AbortPolicy). Java: `RejectedExecutionHandler`.
    ///
    /// See [`RejectedExecutionHandler`] for an example, and [`CallerRunsPolicy`](crate::CallerRunsPolicy) and its like for
    /// handlers that are there already.
    pub fn rejected_execution_handler(
        mut self,
        handler: impl RejectedExecutionHandler + 'static,
    ) -> Self {
        self.config.rejection = Contained::new(share_handler(handler));
        self
    }

    /// Sets the factory that starts the threads; by default they are threads of std. A factory can
    /// start threads in another way, count them, or bind them to cores. Java: `ThreadFactory`.
    ///
    /// See [`ThreadFactory`] for an example.
    #[doc(alias = "spawn_handler")]
    pub fn thread_factory(mut self, factory: impl ThreadFactory + 'static) -> Self {
        self.config.thread_factory = Contained::new(share_factory(factory));
        self
    }

    /// Sets the name of the threads. Each is called by this name, a dash, and a number from 1. The
    /// default is `punctual`. Linux shows the first 15 bytes.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::builder().thread_name("mailer").build()?;
    /// let name = executor.submit(|| std::thread::current().name().map(str::to_owned))?;
    /// assert_eq!(name.join()?.as_deref(), Some("mailer-1"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "thread_name_fn")]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.config.thread_name = name.into();
        self
    }

    /// Sets the size of the threads' stacks in bytes; the default is that of
    /// [`std::thread::Builder::stack_size`].
    #[doc(alias = "thread_stack_size")]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// Sets how much later than requested the system may wake a worker that waits for a deadline.
    /// Slack saves wake-ups, because timers can share one. The default is a nanosecond, which means
    /// none. Zero leaves the choice to the system, which on Linux means 50 µs: half as many
    /// wake-ups where deadlines are dense, and all of them later. More than a second counts as a
    /// second: it would save nothing more, and a timer with more slack than the system can count never
    /// fires. Only Linux has timer slack, and only with the feature `timer-slack`, which is on by default; elsewhere this method changes
    /// nothing.
    pub fn timer_slack(mut self, slack: Duration) -> Self {
        self.config.timer_slack = slack;
        self
    }

    /// Sets how long before each deadline a worker wakes; it then polls the clock until the
    /// deadline has come. This is precise, and costs a core's time. The default is zero, with which
    /// a worker polls only after short waits, and briefly. Never makes a task start early. Changes
    /// nothing on a [`ManualClock`](crate::ManualClock).
    ///
    /// The following was measured when this setting was made, on a virtual machine with two cores and
    /// a task every ten milliseconds, in microseconds:
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

    /// Sets whether one-shot tasks that are not yet due still run after
    /// [`shutdown`](crate::Handle::shutdown); by default they do. Those that are due run in any
    /// case. Java: `setExecuteExistingDelayedTasksAfterShutdownPolicy`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let builder = ScheduledThreadPoolExecutor::builder();
    /// let executor = builder.executes_existing_delayed_tasks_after_shutdown(false).build()?;
    /// let later = executor.schedule(Duration::from_secs(60), || ())?;
    /// executor.shutdown();
    /// assert!(later.is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn executes_existing_delayed_tasks_after_shutdown(mut self, keep: bool) -> Self {
        self.config.keep_delayed = keep;
        self
    }

    /// Sets whether periodic tasks continue after [`shutdown`](crate::Handle::shutdown); by default
    /// they do not. If they do, the executor terminates only when they have been cancelled. Java:
    /// `setContinueExistingPeriodicTasksAfterShutdownPolicy`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    /// let executor = builder.continues_existing_periodic_tasks_after_shutdown(true).build()?;
    /// let (initial_delay, period) = (second, second);
    /// let beat = executor.schedule_at_fixed_rate(initial_delay, period, || ())?;
    /// executor.shutdown();
    /// clock.run_for(3 * second);
    /// assert_eq!(executor.statistics().runs, 3);
    /// beat.cancel(); // nothing else would end it
    /// executor.await_termination(Duration::MAX)?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn continues_existing_periodic_tasks_after_shutdown(mut self, keep: bool) -> Self {
        self.config.keep_periodic = keep;
        self
    }

    /// Sets what happens to the executor when its owner is dropped. The default is
    /// [`DropPolicy::Stop`]: tasks that are not yet due are cancelled, those that are due or
    /// running finish, and the drop waits for the threads. See [`DropPolicy`] for the others.
    pub fn on_drop(mut self, policy: DropPolicy) -> Self {
        self.on_drop = policy;
        self
    }

    /// Builds the executor. Starts no thread and does not block, unless the core is to be
    /// [prestarted](Self::prestart_core_threads); then it blocks while the threads are being
    /// started.
    ///
    /// # Errors
    ///
    /// * [`ConfigError::InvalidThreadName`] if no thread can have the name.
    /// * [`ConfigError::ZeroKeepAlive`] if core threads may time out and the keep-alive is zero.
    /// * [`ConfigError::ZeroMaxPending`] if no task may be pending.
    /// * [`ConfigError::ZeroStarvationTime`] if starvation is to be reported after no time at all.
    /// * [`ConfigError::Spawn`] if a thread that was to be prestarted cannot be started; the
    ///   threads before it have ended by then.
    pub fn build(self) -> Result<ScheduledThreadPoolExecutor, ConfigError> {
        self.check()?;
        let executor = ScheduledThreadPoolExecutor::from_config(self.config);
        if self.prestart {
            executor.prestart_all_core_threads().map_err(ConfigError::Spawn)?;
        }
        // The policy is set only now: on an error the drop has to wait, whatever was selected.
        Ok(executor.on_drop(self.on_drop))
    }

    /// Builds an executor that starts no thread: the calling thread [runs what is
    /// due](DrivenExecutor::run_due). What concerns threads has no effect there.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let mut executor = ScheduledThreadPoolExecutor::builder().build_driven()?;
    /// let answer = executor.submit(|| 6 * 7)?;
    /// assert_eq!(executor.run_due(), 1);
    /// assert_eq!(answer.join()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), except that nothing is started that could fail.
    #[doc(alias("current_thread", "new_current_thread", "single_threaded", "event_loop", "wasm"))]
    pub fn build_driven(self) -> Result<DrivenExecutor, ConfigError> {
        self.check()?;
        let config = Config {
            core_pool_size: 1,
            core_timeout: false,
            is_driven: true,
            stripes: 1,
            lead: Duration::ZERO,
            ..self.config
        };
        Ok(DrivenExecutor::from_config(config, self.on_drop))
    }

    /// Finds what is wrong with the settings.
    fn check(&self) -> Result<(), ConfigError> {
        if self.config.thread_name.contains('\0') {
            return Err(ConfigError::InvalidThreadName(self.config.thread_name.clone()));
        }
        if self.config.core_timeout && self.config.keep_alive.is_zero() {
            return Err(ConfigError::ZeroKeepAlive);
        }
        if self.config.max_pending == Some(0) {
            return Err(ConfigError::ZeroMaxPending);
        }
        if self.config.observing.starvation_after == Some(Duration::ZERO) {
            return Err(ConfigError::ZeroStarvationTime);
        }
        if self.config.callbacks.hooks.on_failure.is_some() {
            note_locations();
        }
        Ok(())
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        f.debug_struct("Builder")
            .field("core_pool_size", &config.core_pool_size)
            .field("thread_name", &config.thread_name)
            .field("keep_alive", &config.keep_alive)
            .field("allows_core_thread_timeout", &config.core_timeout)
            .field("prestart_core_threads", &self.prestart)
            .field("max_pending", &config.max_pending)
            .field("on_drop", &self.on_drop)
            .field("clock", &config.clock)
            .field("callbacks", &config.callbacks)
            .field("observing", &config.observing)
            .finish_non_exhaustive()
    }
}
