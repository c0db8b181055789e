//! A submission to a group waits for room in the executor, and the group is shut down.

use std::time::Duration;

use punctual::{
    BlockPolicy, Grace, Group, ManualClock, RejectedExecutionError, RejectionReason,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor,
};

use super::support::assert_sound;
use crate::support::{Elsewhere, LONG, elsewhere, eventually, in_time, manual_with, ms};

const HOUR: Duration = Duration::from_secs(3600);

type Submitted = Result<ScheduledFuture<()>, RejectedExecutionError>;

/// An executor that is full, in which a submission waits for an hour, and a group that has no task.
fn full() -> (ManualClock, Executor, Group, ScheduledFuture<()>) {
    let (clock, executor) = manual_with(|builder| {
        let builder = builder.core_pool_size(1).max_pending(1);
        builder.rejected_execution_handler(BlockPolicy::new(HOUR))
    });
    let first = executor.schedule(2 * HOUR, || ()).unwrap();
    clock.run_until_idle();
    let group = executor.group("g").build().unwrap();
    (clock, executor, group, first)
}

/// Submits on a thread of its own, and returns when so many wait, and this one until then.
fn blocked(clock: &ManualClock, group: &Group, until: Duration) -> Elsewhere<Submitted> {
    let group = group.clone();
    let submission = elsewhere(move || group.task().schedule(HOUR, || ()));
    eventually("it waits for room", || clock.next_deadline() == Some(until));
    submission
}

fn assert_refused(submitted: Submitted) {
    let refused = submitted.expect_err("the group was shut down");
    assert!(matches!(refused.reason(), RejectionReason::GroupShutdown), "{refused:?}");
}

/// However the group is shut down, a submission that waits for room is refused at once, says why, and does not hold up
/// the end of the group, although there is no room still.
#[test]
fn a_submission_that_waits_for_room_is_told_of_the_end_of_its_group() {
    let ends: [fn(&Group); 3] = [
        |group| group.shutdown(),
        |group| drop(group.shutdown_now()),
        |group| {
            assert!(group.shutdown_within(Grace::patience(HOUR).then(HOUR)).unwrap().is_terminated)
        },
    ];
    for end in ends {
        let (clock, executor, group, first) = full();
        let submission = blocked(&clock, &group, HOUR);
        end(&group);
        assert_refused(in_time("the submission", move || submission.get()));
        assert_eq!(group.await_termination(LONG), Ok(true));
        assert_eq!((clock.elapsed(), first.is_done()), (Duration::ZERO, false));
        let now = group.statistics();
        assert_eq!((now.submitted, now.rejected), (0, 1));
        assert_sound(now);
        assert_eq!(executor.statistics().rejected, 1);
    }
}

/// Submissions to another group, and to none, wait on, and get the room that comes.
#[test]
fn submissions_to_others_wait_on() {
    let (clock, executor, group, first) = full();
    let other = executor.group("other").build().unwrap();
    let of_other = blocked(&clock, &other, HOUR);
    clock.advance(ms(1));
    let of_group = {
        let group = group.clone();
        elsewhere(move || group.task().schedule(HOUR, || ()))
    };
    group.shutdown();
    assert_refused(of_group.get());
    assert!(first.cancel());
    assert!(of_other.get().is_ok());
    assert_eq!(executor.pending_count(), 1);
    assert_eq!(group.await_termination(LONG), Ok(true));
}

/// A handler that tries again is not asked once more when the group was shut down.
#[test]
fn a_handler_that_retries_is_not_asked_again() {
    let (_clock, executor) = manual_with(|builder| builder.core_pool_size(1).max_pending(1));
    let _first = executor.schedule(HOUR, || ()).unwrap();
    let group = executor.group("g").build().unwrap();
    let ends = group.clone();
    executor.set_rejected_execution_handler(move |task: punctual::RejectedTask<'_>| {
        assert!(!ends.is_shutdown(), "it is asked once");
        ends.shutdown();
        task.retry()
    });
    assert_refused(group.task().schedule(HOUR, || ()));
    assert_eq!(group.await_termination(LONG), Ok(true));
}
