//! How the executor works, seen and changed while it does.

use std::{io, time::Duration};

use super::Handle;
use crate::{ConfigError, RejectedExecutionHandler, ThreadFactory, sync::Arc};

impl Handle {
    /// How many workers there are to be. Java: `getCorePoolSize`.
    #[doc(alias = "getCorePoolSize")]
    pub fn core_pool_size(&self) -> usize {
        self.pool().crew().core()
    }

    /// Changes how many workers there are to be. Growing starts workers at once, as many as there
    /// are tasks that wait, also if these were left by a shutdown, and the others as they are
    /// needed: with the submissions to come, or when tasks are due and nobody is idle. Blocks while
    /// the threads are being started. Shrinking lets idle workers go after the
    /// [keep-alive](Self::keep_alive), counted from their last task; what runs is not disturbed. Does
    /// not wait for that. A worker that cannot be started is tried again when the next is needed.
    /// Java: `setCorePoolSize`.
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
    pub fn set_core_pool_size(&self, size: usize) {
        self.pool().set_core_pool_size(size);
    }

    /// How long a worker that may go stays idle before it does. Java: `getKeepAliveTime`.
    #[doc(alias = "getKeepAliveTime")]
    pub fn keep_alive(&self) -> Duration {
        self.pool().crew().keep_alive()
    }

    /// Changes how long a worker that may go stays idle before it does; see
    /// [`Builder::keep_alive`](crate::Builder::keep_alive). Java: `setKeepAliveTime`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if it is zero and core threads may time out; nothing is
    /// changed then.
    #[doc(alias = "setKeepAliveTime")]
    pub fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), ConfigError> {
        self.pool().set_times(Some(keep_alive), None)
    }

    /// Whether workers of the core go as well when they have been idle for the keep-alive. Java:
    /// `allowsCoreThreadTimeOut`.
    #[doc(alias = "allowsCoreThreadTimeOut")]
    pub fn allows_core_thread_timeout(&self) -> bool {
        self.pool().crew().core_timeout()
    }

    /// Changes whether workers of the core go as well when they have been idle for the keep-alive;
    /// see [`Builder::allow_core_thread_timeout`](crate::Builder::allow_core_thread_timeout).
    /// Java: `allowCoreThreadTimeOut`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if they would go at once; nothing is changed then.
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn allow_core_thread_timeout(&self, allow: bool) -> Result<(), ConfigError> {
        self.pool().set_times(None, Some(allow))
    }

    /// Starts a worker, so that it need not be started by a submission. Whether one was still
    /// missing: `false` if all of the core have been started, or the executor was shut down.
    /// Blocks while the thread is being started. Java: `prestartCoreThread`.
    ///
    /// # Errors
    ///
    /// What kept the thread from being started.
    #[doc(alias = "prestartCoreThread")]
    pub fn prestart_core_thread(&self) -> io::Result<bool> {
        self.pool().start_core_worker()
    }

    /// Starts all the workers of the core that are still missing; gives how many these were.
    /// Blocks while the threads are being started. Java: `prestartAllCoreThreads`.
    ///
    /// # Errors
    ///
    /// What kept a thread from being started; those before it have been.
    #[doc(alias = "prestartAllCoreThreads")]
    pub fn prestart_all_core_threads(&self) -> io::Result<usize> {
        let mut started = 0;
        while self.prestart_core_thread()? {
            started += 1;
        }
        Ok(started)
    }

    /// What starts the threads. Java: `getThreadFactory`.
    #[doc(alias = "getThreadFactory")]
    pub fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        self.pool().thread_factory().get()
    }

    /// Changes what starts the threads, from the next on. Java: `setThreadFactory`.
    #[doc(alias = "setThreadFactory")]
    pub fn set_thread_factory(&self, factory: Arc<dyn ThreadFactory>) {
        self.pool().thread_factory().set(factory);
    }

    /// Who decides about tasks that are not let in. Java: `getRejectedExecutionHandler`.
    #[doc(alias = "getRejectedExecutionHandler")]
    pub fn rejected_execution_handler(&self) -> Arc<dyn RejectedExecutionHandler> {
        self.pool().rejection().get()
    }

    /// Changes who decides about tasks that are not let in, from the next on. Java:
    /// `setRejectedExecutionHandler`.
    #[doc(alias = "setRejectedExecutionHandler")]
    pub fn set_rejected_execution_handler(&self, handler: Arc<dyn RejectedExecutionHandler>) {
        self.pool().rejection().set(handler);
    }

    /// How many tasks may wait, if there is a bound; see
    /// [`Builder::max_pending`](crate::Builder::max_pending).
    pub fn max_pending(&self) -> Option<usize> {
        self.pool().max_pending()
    }
}
