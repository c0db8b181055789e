//! What it is to own an executor: when the owner goes the pool stops, in the way that was chosen.

use std::thread;

use super::{Handle, ScheduledThreadPoolExecutor};

/// What becomes of an executor when its owner is dropped; set by
/// [`Builder::on_drop`](crate::Builder::on_drop).
///
/// Two cases are the same for all. While the thread panics the drop is
/// [`ShutdownNow`](Self::ShutdownNow): a task that never ends must not turn a panic into a hang. And
/// on one of the executor's own workers it waits for nothing, as the worker would wait for itself;
/// the executor then goes on to its end alone.
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
/// } // waits for what was planned
/// assert!(is_saved.load(Ordering::SeqCst));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropPolicy {
    /// Cancels what is not yet due, lets what is due or running finish, and waits for the threads.
    #[default]
    Stop,
    /// The same without waiting, as
    /// [`shutdown_background`](ScheduledThreadPoolExecutor::shutdown_background): what is due or
    /// running finishes by itself, unless the process ends before.
    ShutdownBackground,
    /// As [`close`](ScheduledThreadPoolExecutor::close): everything that the policies for a
    /// shutdown keep still runs, and the drop waits for it, however far in the future that is. If
    /// they keep periodic tasks it waits until somebody has cancelled these.
    Close,
    /// As [`shutdown_now`](crate::Handle::shutdown_now): cancels all that waits, also what is due,
    /// raises the [tokens](crate::TaskContext::token) of what runs, and does not wait.
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
            // An error means that the pool waits for this thread: one of its workers, say.
            let _ = pool.join();
        }
    }
}

/// Nothing implements this. An executor has it asked for by what would else be, through `Deref`, the
/// clone of its handle, so that the compiler can say what to write.
#[diagnostic::on_unimplemented(
    message = "an executor is an owner and cannot be cloned",
    label = "would give a handle, which keeps no executor alive",
    note = "to schedule from elsewhere write `executor.handle()`: it gives a `Handle`, which can be \
            cloned, and whose submissions are refused once the executor is gone",
    note = "to own it in several places share it: `Arc<ScheduledThreadPoolExecutor>`"
)]
pub trait Cloneable {}

impl ScheduledThreadPoolExecutor {
    #[doc(hidden)]
    #[allow(clippy::should_implement_trait, reason = "to be found before that of the handle")]
    #[must_use]
    pub fn clone<'a>(&'a self) -> Handle
    where
        // Of a reference, with a lifetime: what can be seen to be false at once is an error here.
        &'a Self: Cloneable,
    {
        self.handle()
    }
}
