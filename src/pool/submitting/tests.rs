//! The window in which a task is queued and no worker is left: it is too short to hit by chance.

use std::io;

use super::*;
use crate::{ScheduledThreadPoolExecutor, Worker, patience::LONG, task::Node};

/// Queues a task as a submission does that saw a worker which has since retired.
fn offer_without_worker(pool: &Pool) -> (Arc<Task>, Ticket) {
    let task: Arc<Task> = Node::once(|| 7);
    let now = pool.clock().read();
    let ticket = pool.queue.offer(0, now, Timing::At(now), task.clone()).ok().expect("it is open");
    (task, ticket)
}

/// SP-024: a shutdown in that window does not terminate the pool: it sees the task, and the submitter starts a worker
/// for it.
#[test]
fn a_task_without_a_worker_delays_termination() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let pool = Arc::clone(executor.pool());
    let (task, ticket) = offer_without_worker(&pool);
    executor.shutdown();
    assert!(!executor.is_terminated());
    assert!(pool.rescue(ticket, Staffing::Complete).is_ok());
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_eq!(task.state(), crate::TaskState::Completed);
}

/// If no worker can be started for the task, the submission withdraws it, and it no longer delays termination.
#[test]
fn a_withdrawn_task_does_not_delay_termination() {
    let fails = |_: Worker| Err(io::Error::other("no threads today"));
    let builder = ScheduledThreadPoolExecutor::builder().thread_factory(fails);
    let executor = builder.build().expect("the settings are good");
    let pool = Arc::clone(executor.pool());
    let (task, ticket) = offer_without_worker(&pool);
    executor.shutdown();
    assert!(!executor.is_terminated());
    let refused = pool.rescue(ticket, Staffing::Complete).expect_err("there is no thread");
    assert!(matches!(refused.reason, RejectionReason::Spawn(_)));
    assert!(executor.is_terminated());
    assert_eq!((executor.pending_count(), task.state()), (0, crate::TaskState::Scheduled));
}

/// A task that was moved to another slot in that window is withdrawn all the same.
#[test]
fn a_task_that_was_moved_is_withdrawn() {
    let fails = |_: Worker| Err(io::Error::other("no threads today"));
    let builder = ScheduledThreadPoolExecutor::builder().thread_factory(fails);
    let executor = builder.build().expect("the settings are good");
    let pool = Arc::clone(executor.pool());
    let (_, ticket) = offer_without_worker(&pool);
    let moved = [Timing::Parked { due: Timestamp::NEVER }, Timing::At(Timestamp::PAST)];
    // Another task takes the slot between the two moves.
    let mut other = None;
    for timing in moved {
        let found = if other.is_none() { ticket } else { Ticket::without_slot(ticket.sequence) };
        let _ = pool.queue.reset(found, &mut |_, _| Some(timing));
        other.get_or_insert_with(|| offer_without_worker(&pool));
    }
    assert!(pool.rescue(ticket, Staffing::Complete).is_err());
    assert_eq!(executor.pending_count(), 1);
    drop(executor.shutdown_now());
}
