//! The ownership of an executor: dropping the owner stops the pool, in the way that was selected.

use std::thread;

use super::{Handle, ScheduledThreadPoolExecutor};

/// Selects what happens to an executor when its owner is dropped. It is set with
/// [`Builder::on_drop`](crate::Builder::on_drop).
///
/// Two cases are the same for all policies. While the thread panics, the drop is
/// [`ShutdownNow`](Self::ShutdownNow), because a task that never ends must not turn a panic into a
/// hang. On one of the executor's own workers the drop waits for nothing, because the worker would
/// wait for itself; the executor then terminates by itself.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// use std::time::Duration;
/// use punctual::{DropPolicy, ScheduledThreadPoolExecutor};
///
/// let is_saved = Arc::new(AtomicBool::new(false));
/// {
///     let builder = ScheduledThreadPoolExecutor::builder().on_drop(DropPolicy::Close);
///     let (executor, saved) = (builder.build()?, Arc::clone(&is_saved));
///     executor.schedule(Duration::from_millis(5), move || saved.store(true, Ordering::SeqCst))?;
/// } // waits for the scheduled task
/// assert!(is_saved.load(Ordering::SeqCst));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropPolicy {
    /// Cancels the tasks that are not yet due, lets those that are due or running finish, and waits
    /// for the threads.
    #[default]
    Stop,
    /// Does the same without waiting, as
    /// [`shutdown_background`](ScheduledThreadPoolExecutor::shutdown_background) does: tasks that
    /// are due or running finish by themselves, unless the process ends first.
    ShutdownBackground,
    /// Closes, as [`close`](ScheduledThreadPoolExecutor::close) does: every task that the policies
    /// for a shutdown keep still runs, and the drop waits for it, however far in the future that
    /// is. If they keep periodic tasks, it waits until these have been cancelled.
    Close,
    /// Does what [`shutdown_now`](crate::Handle::shutdown_now) does: cancels all pending tasks,
    /// also those that are due, raises the [tokens](crate::TaskContext::token) of the running ones,
    /// and does not wait.
    ShutdownNow,
}

impl Drop for ScheduledThreadPoolExecutor {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let pool = self.handle.pool();
        let policy = if thread::panicking() { DropPolicy::ShutdownNow } else { self.on_drop };
        match policy {
            DropPolicy::Stop | DropPolicy::ShutdownBackground => pool.stop(),
            DropPolicy::Close => pool.shutdown(),
            DropPolicy::ShutdownNow => drop(pool.shutdown_now()),
        }
        if matches!(policy, DropPolicy::Stop | DropPolicy::Close) {
            // An error means that the pool waits for this thread, which is one of its workers, say.
            let _ = pool.join();
        }
    }
}

/// No type implements this trait. The executor's own `clone` requires it and hides the `clone` of
/// the handle, which `executor.clone()` would otherwise find through `Deref`; so the compiler can
/// tell the user what to write instead.
#[diagnostic::on_unimplemented(
    message = "an executor is an owner and cannot be cloned",
    label = "would return a handle, which keeps no executor alive",
    note = "to schedule from elsewhere write `executor.handle()`: it returns a `Handle`, which can \
            be cloned, and whose submissions are refused once the executor is gone",
    note = "to own it in several places share it: `Arc<ScheduledThreadPoolExecutor>`"
)]
pub trait Cloneable {}

impl ScheduledThreadPoolExecutor {
    #[doc(hidden)]
    #[allow(clippy::should_implement_trait, reason = "to be found before that of the handle")]
    #[must_use]
    pub fn clone<'a>(&'a self) -> Handle
    where
        // The bound is on a reference with a lifetime: a bound that has no parameter and is false
        // would be an error in this very line.
        &'a Self: Cloneable,
    {
        self.handle()
    }
}
