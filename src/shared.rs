//! User code that can be replaced while an executor works: its thread factory and its rejection handler.
//! [`Shared`] is what a getter returns and a setter takes, [`Replaceable`] is where the pool keeps it.

use std::{any::Any, fmt, io, ops::Deref};

use crate::{
    rejection::{RejectedExecutionHandler, RejectedTask, Rejection, StockPolicy},
    sync::{Arc, Mutex, thread},
    thread_factory::{ThreadFactory, Worker},
    unwind::{Callback, Contained},
};

/// A [thread factory](ThreadFactory) or a [rejection handler](RejectedExecutionHandler) that is
/// held in several places: by an executor, and by those that have
/// [asked](crate::Handle::thread_factory) for it.
///
/// It implements what it shares, so it can be used wherever one of these is wanted: in another
/// [`Builder`](crate::Builder), or back where it came from. It is not wrapped again there, however
/// often that happens. It is as cheap to clone as the `Arc` inside.
///
/// ```
/// use punctual::{CallerRunsPolicy, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let before = executor.rejected_execution_handler();
/// executor.set_rejected_execution_handler(CallerRunsPolicy);
/// executor.set_rejected_execution_handler(before.clone()); // and back
/// let other = ScheduledThreadPoolExecutor::builder().rejected_execution_handler(before);
/// ```
pub struct Shared<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Shared<T> {
    /// Returns `true` if both share the very same value.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        Arc::ptr_eq(&this.0, &other.0)
    }
}

impl<T: ?Sized + 'static> Shared<T> {
    /// Returns `value` in an `Arc`. One that is shared already is unwrapped first; otherwise each
    /// round of reading and setting it would wrap it once more.
    fn arc_of<V: 'static>(value: V, erase: impl FnOnce(V) -> Arc<T>) -> Arc<T> {
        let any: &dyn Any = &value;
        match any.downcast_ref::<Self>() {
            Some(Self(shared)) => Arc::clone(shared),
            None => erase(value),
        }
    }
}

pub(crate) fn share_factory(factory: impl ThreadFactory + 'static) -> Arc<dyn ThreadFactory> {
    Shared::<dyn ThreadFactory>::arc_of(factory, |factory| Arc::new(factory))
}

pub(crate) fn share_handler(
    handler: impl RejectedExecutionHandler + 'static,
) -> Arc<dyn RejectedExecutionHandler> {
    Shared::<dyn RejectedExecutionHandler>::arc_of(handler, |handler| Arc::new(handler))
}

impl<T: ?Sized> From<Arc<T>> for Shared<T> {
    fn from(shared: Arc<T>) -> Self {
        Self(shared)
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<T: ?Sized + ThreadFactory> ThreadFactory for Shared<T> {
    fn new_thread(&self, worker: Worker) -> io::Result<Option<thread::JoinHandle<()>>> {
        self.0.new_thread(worker)
    }
}

impl<T: ?Sized + RejectedExecutionHandler> RejectedExecutionHandler for Shared<T> {
    fn rejected_execution(&self, task: RejectedTask<'_>) -> Rejection {
        self.0.rejected_execution(task)
    }

    fn policy(&self) -> Option<StockPolicy> {
        self.0.policy()
    }
}

/// User code that can be replaced at any time.
pub(crate) struct Replaceable<T: ?Sized>(Mutex<Callback<T>>);

impl<T: ?Sized> Replaceable<T> {
    pub(crate) fn new(value: Callback<T>) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    /// Replaces the value. Threads that have got the one before still use that.
    pub(crate) fn set(&self, value: Arc<T>) {
        let value = Contained::new(value);
        // Dropped when the lock is released.
        let _before = std::mem::replace(&mut *self.0.lock(), value);
    }
}
