//! A batch of tasks gets into its pool: what [launching](super::launching) does for one task, for many at once.
//!
//! The tasks have no settings of their own. In a plain pool they go straight into the queue. What the pool adds to each
//! task is given to all of them first, since the decorator of an executor is user code, and taken from them again if the
//! pool refuses them: so a batch that comes back is as it was.

use std::{
    panic,
    time::{Duration, Instant},
};

use super::TaskBuilder;
use crate::{
    RejectionReason, TaskHandle,
    pool::PoolRefs,
    sync::Arc,
    task::Task,
    time::{Clock, Timestamp},
    trace,
    unwind::discard,
};

/// A task of a batch, and when it is to run.
pub(crate) struct Planned {
    when: Planning,
    task: Arc<Task>,
}

#[derive(Clone, Copy)]
enum Planning {
    After(Duration),
    At(Option<Instant>),
}

impl Planned {
    #[inline]
    pub(crate) fn after(delay: Duration, task: Arc<Task>) -> Self {
        Self { when: Planning::After(delay), task }
    }

    pub(crate) fn at(instant: Option<Instant>, task: Arc<Task>) -> Self {
        Self { when: Planning::At(instant), task }
    }

    /// Returns when the task is due that is submitted now.
    #[inline]
    fn due(&self, clock: &Clock, now: Timestamp) -> Timestamp {
        match self.when {
            Planning::After(delay) => now.after(delay),
            Planning::At(None) => Timestamp::NEVER,
            Planning::At(Some(instant)) => clock.deadline_of(instant).max(now),
        }
    }
}

/// Submits all tasks. Returns the handle of each.
///
/// # Errors
///
/// Why none was admitted, and the tasks.
#[inline(never)]
#[track_caller]
pub(crate) fn submit_batch(
    pool_refs: &Arc<PoolRefs>,
    mut tasks: Vec<Planned>,
) -> Result<Vec<TaskHandle>, (RejectionReason, Vec<Planned>)> {
    let pool_ref = pool_refs.local();
    let pool = pool_ref.pool();
    let now = pool.clock().read();
    let is_extended = pool.extends_submissions || trace::is_listening();
    if is_extended {
        tasks = extend(pool_refs, tasks, now);
    }
    let due = |planned: &Planned| (planned.due(pool.clock(), now), Arc::clone(&planned.task));
    match pool_ref.admit_all(now, tasks.iter().map(due)) {
        Ok(tickets) => {
            if trace::is_listening() {
                let each = tasks.iter().map(|planned| planned.due(pool.clock(), now));
                each.zip(&tickets).for_each(|(due, ticket)| {
                    trace::scheduled(ticket.sequence, None, due.since(now));
                });
            }
            let handle =
                |(Planned { task, .. }, ticket)| TaskHandle::new(task, pool_ref.clone(), ticket);
            Ok(tasks.into_iter().zip(tickets).map(handle).collect())
        }
        Err(reason) => {
            if is_extended {
                tasks.iter().for_each(|planned| planned.task.strip());
            }
            Err((reason, tasks))
        }
    }
}

/// Gives each task what the pool adds to it.
#[cold]
#[track_caller]
fn extend(pool_refs: &Arc<PoolRefs>, tasks: Vec<Planned>, now: Timestamp) -> Vec<Planned> {
    let clock = pool_refs.pool().clock();
    for planned in &tasks {
        let builder = TaskBuilder::new(pool_refs);
        let due = planned.due(clock, now);
        if let Err(payload) = builder.extend(&*planned.task, false, now, due) {
            tasks.into_iter().for_each(discard);
            panic::resume_unwind(payload);
        }
    }
    tasks
}
