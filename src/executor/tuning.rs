//! The settings of an executor that can be read and changed while it runs.

use std::{io, time::Duration};

use super::Handle;
use crate::{
    ConfigError, RejectedExecutionHandler, Shared, ThreadFactory,
    pool::{share_factory, share_handler},
};

impl Handle {
    /// Returns the core pool size: how many workers the executor is to have. Java:
    /// `getCorePoolSize`.
    #[doc(alias = "getCorePoolSize")]
    #[doc(alias("worker_threads", "num_threads", "num_workers"))]
    #[must_use]
    pub fn core_pool_size(&self) -> usize {
        self.pool().workers().core_size()
    }

    /// Sets the core pool size: how many workers the executor is to have. Java: `setCorePoolSize`.
    ///
    /// Growing starts as many workers at once as there are pending tasks, even if a shutdown has
    /// left these, and blocks while the threads are being started. The other workers are started as
    /// they are needed: by later submissions, or when tasks are due and no worker is idle. If a
    /// worker cannot be started, the executor tries again when the next one is needed.
    ///
    /// Shrinking lets idle workers retire after the [keep-alive](Self::keep_alive), counted from
    /// their last task, and does not wait for that. Running tasks are not disturbed.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// executor.set_core_pool_size(4); // more work is to come
    /// assert_eq!(executor.core_pool_size(), 4);
    /// assert_eq!(executor.prestart_all_core_threads()?, 4);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "setCorePoolSize")]
    #[doc(alias("resize", "set_num_threads"))]
    pub fn set_core_pool_size(&self, size: usize) {
        self.pool().set_core_pool_size(size);
    }

    /// Returns how long a worker that may retire stays idle before it does. Java:
    /// `getKeepAliveTime`.
    #[doc(alias = "getKeepAliveTime")]
    #[must_use]
    pub fn keep_alive(&self) -> Duration {
        self.pool().workers().keep_alive()
    }

    /// Sets how long a worker that may retire stays idle before it does; see
    /// [`Builder::keep_alive`](crate::Builder::keep_alive). Java: `setKeepAliveTime`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(4);
    /// executor.set_keep_alive(Duration::from_secs(60))?;
    /// executor.set_allows_core_thread_timeout(true)?;
    /// assert!(executor.set_keep_alive(Duration::ZERO).is_err());
    /// assert_eq!(executor.keep_alive(), Duration::from_secs(60));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if it is zero and core threads may time out. Nothing is
    /// changed then.
    #[doc(alias = "setKeepAliveTime")]
    pub fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), ConfigError> {
        self.pool().set_times(Some(keep_alive), None)
    }

    /// Returns `true` if workers of the core retire as well when they have been idle for the
    /// keep-alive. Java: `allowsCoreThreadTimeOut`.
    #[doc(alias = "allowsCoreThreadTimeOut")]
    #[must_use]
    pub fn allows_core_thread_timeout(&self) -> bool {
        self.pool().workers().core_timeout()
    }

    /// Sets whether workers of the core retire as well when they have been idle for the keep-alive;
    /// see [`Builder::allows_core_thread_timeout`](crate::Builder::allows_core_thread_timeout).
    /// Java: `allowCoreThreadTimeOut`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if the keep-alive is zero, so that they would retire at once.
    /// Nothing is changed then.
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn set_allows_core_thread_timeout(&self, allow: bool) -> Result<(), ConfigError> {
        self.pool().set_times(None, Some(allow))
    }

    /// Starts a worker, so that no submission has to. Returns `true` if one was missing, and
    /// `false` if all workers of the core have been started or the executor was shut down. Blocks
    /// while the thread is being started. Java: `prestartCoreThread`.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// assert!(executor.prestart_core_thread()?);
    /// assert!(!executor.prestart_core_thread()?, "there is one");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error that kept the thread from being started.
    #[doc(alias = "prestartCoreThread")]
    pub fn prestart_core_thread(&self) -> io::Result<bool> {
        self.pool().start_core_worker()
    }

    /// Starts all workers of the core that are missing, and returns how many these were. Blocks
    /// while the threads are being started. Java: `prestartAllCoreThreads`.
    ///
    /// # Errors
    ///
    /// The error that kept a thread from being started; the threads before it have been started.
    #[doc(alias = "prestartAllCoreThreads")]
    pub fn prestart_all_core_threads(&self) -> io::Result<usize> {
        let mut started = 0;
        while self.prestart_core_thread()? {
            started += 1;
        }
        Ok(started)
    }

    /// Returns the factory that starts the threads. What it returns is a factory itself, and can be
    /// set [here](Self::set_thread_factory) or in another executor. Java: `getThreadFactory`.
    #[doc(alias = "getThreadFactory")]
    #[must_use]
    pub fn thread_factory(&self) -> Shared<dyn ThreadFactory> {
        self.pool().thread_factory().get().into()
    }

    /// Sets the factory that starts the threads, from the next thread on. Accepts what
    /// [`Builder::thread_factory`](crate::Builder::thread_factory) accepts. Java:
    /// `setThreadFactory`.
    #[doc(alias = "setThreadFactory")]
    pub fn set_thread_factory(&self, factory: impl ThreadFactory + 'static) {
        self.pool().thread_factory().set(share_factory(factory));
    }

    /// Returns the handler that decides about rejected tasks. What it returns is a handler itself,
    /// and can be set [here](Self::set_rejected_execution_handler) or in another executor. Java:
    /// `getRejectedExecutionHandler`.
    #[doc(alias = "getRejectedExecutionHandler")]
    #[must_use]
    pub fn rejected_execution_handler(&self) -> Shared<dyn RejectedExecutionHandler> {
        self.pool().rejection().get().into()
    }

    /// Sets the handler that decides about rejected tasks, from the next one on. Accepts what
    /// [`Builder::rejected_execution_handler`](crate::Builder::rejected_execution_handler) accepts.
    /// Java: `setRejectedExecutionHandler`.
    ///
    /// ```
    /// use punctual::{DiscardPolicy, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let before = executor.rejected_execution_handler();
    /// executor.set_rejected_execution_handler(DiscardPolicy);
    /// executor.set_rejected_execution_handler(before); // as it was
    /// ```
    #[doc(alias = "setRejectedExecutionHandler")]
    pub fn set_rejected_execution_handler(&self, handler: impl RejectedExecutionHandler + 'static) {
        self.pool().rejection().set(share_handler(handler));
    }

    /// Returns how many tasks may be pending, or `None` if there is no bound; see
    /// [`Builder::max_pending`](crate::Builder::max_pending).
    #[must_use]
    pub fn max_pending(&self) -> Option<usize> {
        self.pool().max_pending()
    }
}
