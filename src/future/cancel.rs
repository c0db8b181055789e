//! Cancelling a task: a handle that can be cloned, and a guard that cancels when it is dropped.

use std::{
    fmt,
    future::Future,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
};

use super::{ScheduledFuture, describe};
use crate::{
    CancelReason, TaskError, TaskId, TaskState, pool::PoolRef, queue::Ticket, sync::Arc,
    task::Runnable,
};

/// Cancels a task; from [`ScheduledFuture::cancel_handle`]. It is cheap to clone, does not depend on
/// the type of the result, and does nothing when it is dropped.
#[derive(Clone)]
pub struct CancelHandle {
    task: Arc<dyn Runnable>,
    pool_ref: PoolRef,
    ticket: Ticket,
}

impl CancelHandle {
    pub(crate) fn new(task: Arc<dyn Runnable>, pool_ref: PoolRef, ticket: Ticket) -> Self {
        Self { task, pool_ref, ticket }
    }

    /// Cancels the task: see [`ScheduledFuture::cancel`].
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn cancel(&self) -> bool {
        self.pool_ref.pool().cancel(&*self.task, self.ticket, CancelReason::Requested, false)
    }

    /// Cancels the task, and asks a running body to stop: see
    /// [`ScheduledFuture::cancel_and_signal`].
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn cancel_and_signal(&self) -> bool {
        self.pool_ref.pool().cancel(&*self.task, self.ticket, CancelReason::Requested, true)
    }

    /// Returns `true` if the task has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.task.state().is_done()
    }

    /// Returns `true` if the task was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.task.state() == TaskState::Cancelled
    }

    /// Returns the state of the task.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.task.state()
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId(self.ticket.sequence)
    }

    /// Returns the name of the task, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "CancelHandle", self.id(), self.name(), self.state())
    }
}

/// A future that cancels its task when it is dropped; from [`ScheduledFuture::cancel_on_drop`] or
/// [`ScheduledFuture::cancel_and_signal_on_drop`]. It dereferences to the future, and can be awaited
/// in its place.
#[must_use = "the task is cancelled at once if the guard is not kept"]
pub struct CancelOnDrop<T> {
    /// `None` once detached.
    pub(super) future: Option<ScheduledFuture<T>>,
    /// True if a running body is asked to stop as well.
    pub(super) signals: bool,
}

impl<T> CancelOnDrop<T> {
    /// Returns the future, which no longer cancels when it is dropped.
    pub fn detach(mut self) -> ScheduledFuture<T> {
        match self.future.take() {
            Some(future) => future,
            None => unreachable!("only this call takes the future, and it takes the guard too"),
        }
    }
}

impl<T> Deref for CancelOnDrop<T> {
    type Target = ScheduledFuture<T>;

    fn deref(&self) -> &ScheduledFuture<T> {
        match &self.future {
            Some(future) => future,
            None => unreachable!("the future is there until the guard is taken"),
        }
    }
}

impl<T> Future for CancelOnDrop<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.future {
            Some(future) => Pin::new(future).poll(context),
            None => unreachable!("the future is there until the guard is taken"),
        }
    }
}

impl<T> Drop for CancelOnDrop<T> {
    fn drop(&mut self) {
        match &self.future {
            Some(future) if self.signals => _ = future.cancel_and_signal(),
            Some(future) => _ = future.cancel(),
            None => {}
        }
    }
}

impl<T> fmt::Debug for CancelOnDrop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelOnDrop").field(&self.future).finish()
    }
}
