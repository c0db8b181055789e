//! How the executor works, seen and changed while it does.

use std::{io, time::Duration};

use super::Handle;
use crate::{
    ConfigError, RejectedExecutionHandler, Shared, ThreadFactory,
    pool::{share_factory, share_handler},
};

impl Handle {
    /// How many workers there are to be. Java: `getCorePoolSize`.
    #[doc(alias = "getCorePoolSize")]
    #[must_use]
    pub fn core_pool_size(&self) -> usize {
        self.pool().workers().core_size()
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
    #[must_use]
    pub fn keep_alive(&self) -> Duration {
        self.pool().workers().keep_alive()
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
    #[must_use]
    pub fn allows_core_thread_timeout(&self) -> bool {
        self.pool().workers().core_timeout()
    }

    /// Changes whether workers of the core go as well when they have been idle for the keep-alive;
    /// see [`Builder::allows_core_thread_timeout`](crate::Builder::allows_core_thread_timeout).
    /// Java: `allowCoreThreadTimeOut`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroKeepAlive`] if they would go at once; nothing is changed then.
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn set_allows_core_thread_timeout(&self, allow: bool) -> Result<(), ConfigError> {
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

    /// What starts the threads. It is a factory itself, and can be set
    /// [here](Self::set_thread_factory) or in another executor. Java: `getThreadFactory`.
    #[doc(alias = "getThreadFactory")]
    #[must_use]
    pub fn thread_factory(&self) -> Shared<dyn ThreadFactory> {
        self.pool().thread_factory().get().into()
    }

    /// Changes what starts the threads, from the next on. Takes what
    /// [`Builder::thread_factory`](crate::Builder::thread_factory) takes. Java: `setThreadFactory`.
    #[doc(alias = "setThreadFactory")]
    pub fn set_thread_factory(&self, factory: impl ThreadFactory + 'static) {
        self.pool().thread_factory().set(share_factory(factory));
    }

    /// Who decides about tasks that are not admitted. It is a handler itself, and can be set
    /// [here](Self::set_rejected_execution_handler) or in another executor. Java:
    /// `getRejectedExecutionHandler`.
    #[doc(alias = "getRejectedExecutionHandler")]
    #[must_use]
    pub fn rejected_execution_handler(&self) -> Shared<dyn RejectedExecutionHandler> {
        self.pool().rejection().get().into()
    }

    /// Changes who decides about tasks that are not admitted, from the next on. Takes what
    /// [`Builder::rejected_execution_handler`](crate::Builder::rejected_execution_handler) takes.
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

    /// How many tasks may wait, if there is a bound; see
    /// [`Builder::max_pending`](crate::Builder::max_pending).
    #[must_use]
    pub fn max_pending(&self) -> Option<usize> {
        self.pool().max_pending()
    }
}
