//! A submission to a group: the question whether it admits the task, and the entry of a task that is in the queue.
//!
//! Between the two the task has no place in the order of its group, and the group does not end: see
//! [`GroupState`].

use crate::{
    RejectionReason,
    entry::Ticket,
    layers::{GroupState, Joining},
    pool::{IfRunning, NotQueued, Pool, PoolRef},
    sync::Arc,
    task::Task,
    time::Timestamp,
};

/// Begins a submission to a group, if there is one. Returns why the group refuses it, if it does.
pub(super) fn join(
    pool_ref: &PoolRef,
    group: Option<&Arc<GroupState>>,
) -> (Option<Joining>, Option<RejectionReason>) {
    let Some(group) = group else { return (None, None) };
    if !group.belongs_to(pool_ref.pool()) {
        return (None, Some(RejectionReason::ForeignGroup));
    }
    match group.join() {
        Some(joining) => (Some(joining), None),
        None => (None, Some(RejectionReason::GroupShutdown)),
    }
}

/// Enters a task that is in the queue into its group. One that is not leaves it.
#[cold]
pub(super) fn enter_or_leave_group(
    pool: &Pool,
    task: &Arc<Task>,
    admitted: &Result<Ticket, NotQueued>,
    (now, deadline): (Timestamp, Timestamp),
) {
    let Ok(ticket) = *admitted else { return task.leave_group() };
    let (place, is_delayed) = ((ticket.sequence, ticket.slot), deadline > now);
    if let Some(reason) = task.enter_group(Arc::downgrade(task), place, deadline, is_delayed) {
        pool.cancel(&**task, ticket, reason, IfRunning::LetReturn);
    }
}
