//! Several tasks as one: run them all, take the first that succeeds, or take each as it ends.
//!
//! Neither a task nor the pool knows of it. Everything here is made of futures and of the poll
//! that each of their tasks has ([`wait`]):
//!
//! * A [`TaskSet`] waits for its futures one after the other: all have ended when the last that was
//!   waited for has, in whichever order they end, and no more than one waker is kept at a time.
//! * An [`ExecutorCompletionService`] gives each task a waker of its own, and so learns the order
//!   in which they end.
//! * [`invoke_all`](crate::Handle::invoke_all) is a set that cancels what it has submitted when it
//!   cannot go on, [`invoke_any`](crate::Handle::invoke_any) is a completion service that does.
//!
//! A wait without a limit that is known not to end is refused, as that for a single future is; see
//! [`completion`] for a wait for whichever of several ends first.

mod completion;
mod error;
mod invoke;
mod set;

use crate::{CancellationToken, ScheduledFuture, sync::Parker, time::Timestamp, wait};

pub use self::{
    completion::ExecutorCompletionService,
    error::{InvokeAnyError, InvokeError},
    set::{CancelAllOnDrop, JoinAll, TaskSet},
};

/// Blocks until the task has ended, or until `deadline`; whether it has ended. The result stays
/// where it is.
fn ends_by<T>(future: &ScheduledFuture<T>, deadline: Timestamp) -> bool {
    let task = future.task();
    let poll = |waker: &_| task.poll_done(waker).then_some(());
    let has_ended = wait::block_until(future.pool().clock(), deadline, poll).is_some();
    if !has_ended {
        task.forget(Parker::current().waker());
    }
    has_ended
}

/// Blocks until the task has ended, or until `token` is raised; whether it has ended. The result
/// stays where it is.
fn ends_unless<T>(future: &ScheduledFuture<T>, token: &CancellationToken) -> bool {
    let task = future.task();
    let has_ended = wait::block_on(future.pool().clock(), |waker| {
        // The task first: one that has ended has, whatever the token says.
        let ended = task.poll_done(waker).then_some(true);
        ended.or_else(|| token.poll(waker).map(|()| false))
    });
    let parker = Parker::current();
    token.forget(parker.waker());
    if !has_ended {
        task.forget(parker.waker());
    }
    has_ended
}
