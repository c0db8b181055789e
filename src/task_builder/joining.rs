//! A submission to a group: the question whether it admits the task, and the entry of a task that is in the queue.
//!
//! Between the two the task has no place in the order of its group, and the group does not end: see
//! [`GroupState`].

use crate::{
    RejectionReason,
    pool::{Pool, PoolRef},
    queue::Ticket,
    sync::Arc,
    task::{GroupState, Joining, Task},
    time::Timestamp,
    unwind::discard,
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

/// Enters a task that is in the queue into its group. If its handler has dealt with it, it leaves the group.
#[cold]
pub(super) fn enter_group(
    pool: &Pool,
    task: Arc<Task>,
    ticket: Ticket,
    now: Timestamp,
    deadline: Timestamp,
) {
    if ticket.slot == u32::MAX {
        return task.leave_group();
    }
    let (place, is_delayed) = ((ticket.sequence, ticket.slot), deadline > now);
    if let Some(reason) = task.enter_group(Arc::downgrade(&task), place, deadline, is_delayed) {
        pool.cancel(&*task, ticket, reason, false);
    }
    discard(task);
}
