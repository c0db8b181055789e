//! Timers of an executor that stops: each is woken, and none ends early with success.

use std::task::Poll;

use punctual::{
    CancelReason, DiscardOldestPolicy, DropPolicy, ScheduledThreadPoolExecutor, TimerStopped,
};

use crate::{
    support::awaiting::Wakes,
    support::{manual, manual_with, ms},
    timers::sleeping::poll,
};

fn reason(outcome: Poll<Result<(), TimerStopped>>) -> Option<CancelReason> {
    match outcome {
        Poll::Ready(Err(stopped)) => Some(stopped.reason()),
        _ => None,
    }
}

/// M208.
#[test]
fn shutdown_now_ends_it() {
    let (_clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    drop(timers.shutdown_now());
    assert_eq!(wakes.count(), 1);
    assert_eq!(reason(poll(&mut sleep, &wakes)), Some(CancelReason::Shutdown));
    assert_eq!(reason(poll(&mut sleep, &wakes)), Some(CancelReason::Shutdown), "it stays stopped");
    assert_eq!(reason(poll(&mut timers.sleep(ms(1)), &wakes)), Some(CancelReason::Shutdown));
    assert!(poll(&mut timers.sleep(ms(0)), &wakes).is_ready(), "nothing has to be waited for");
}

/// By the policy for delayed tasks, which lets them run.
#[test]
fn a_shutdown_lets_it_go_off_as_it_lets_tasks_run() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    timers.shutdown();
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(10));
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll(&mut sleep, &wakes), Poll::Ready(Ok(())));
}

#[test]
fn a_shutdown_that_keeps_no_delayed_tasks_keeps_no_timer() {
    let (_clock, timers) =
        manual_with(|builder| builder.executes_existing_delayed_tasks_after_shutdown(false));
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    timers.shutdown();
    assert_eq!(wakes.count(), 1);
    assert_eq!(reason(poll(&mut sleep, &wakes)), Some(CancelReason::Shutdown));
}

/// M210.
#[test]
fn a_drop_of_the_executor_wakes_it() {
    for policy in [DropPolicy::Stop, DropPolicy::ShutdownNow, DropPolicy::ShutdownBackground] {
        let timers = ScheduledThreadPoolExecutor::builder()
            .core_pool_size(1)
            .on_drop(policy)
            .build()
            .expect("the settings are good");
        let wakes = Wakes::new();
        let mut sleep = timers.sleep(ms(3_600_000));
        assert!(poll(&mut sleep, &wakes).is_pending());
        drop(timers);
        assert_eq!(wakes.count(), 1, "{policy:?}");
        assert!(reason(poll(&mut sleep, &wakes)).is_some(), "{policy:?}");
    }
}

/// A shut-down queue admits no entry that is later. The sleep keeps its place, is woken there, and finds
/// that it cannot wait any longer.
#[test]
fn one_that_is_put_off_after_a_shutdown_is_told_so() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    timers.shutdown();
    sleep.reset(ms(60));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(10));
    assert_eq!(wakes.count(), 1);
    assert_eq!(reason(poll(&mut sleep, &wakes)), Some(CancelReason::Shutdown));
}

/// A handler that makes room takes what is due first, whatever it is.
#[test]
fn one_that_is_discarded_for_a_task_is_told_so() {
    let (_clock, timers) = manual_with(|builder| {
        builder.max_pending(1).rejected_execution_handler(DiscardOldestPolicy)
    });
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    let task = timers.schedule(ms(20), || ()).expect("there is room now");
    assert_eq!(wakes.count(), 1);
    assert_eq!(reason(poll(&mut sleep, &wakes)), Some(CancelReason::Rejected));
    assert!(!task.is_done());
}

/// Whoever polls it next: a timer that entered the queue again would take the room which was made.
#[test]
fn one_that_is_discarded_is_told_so_by_another_waker() {
    let (clock, timers) = manual_with(|builder| {
        builder.max_pending(1).rejected_execution_handler(DiscardOldestPolicy)
    });
    let (wakes, others) = (Wakes::new(), Wakes::new());
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    let task = timers.schedule(ms(20), || ()).expect("there is room now");
    assert_eq!(reason(poll(&mut sleep, &others)), Some(CancelReason::Rejected));
    assert_eq!(timers.pending_count(), 1, "the task alone");
    assert!(!task.is_done());
    // One that has gone off was in time, for another waker as well.
    sleep.reset(ms(5));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(5));
    assert_eq!(poll(&mut sleep, &others), Poll::Ready(Ok(())));
}

/// A task that is run by hand ends; a timer that is run by hand has not come to its deadline.
#[test]
fn one_that_is_run_by_hand_is_not_due() {
    let (_clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    for task in timers.shutdown_now() {
        task.run();
    }
    assert_eq!(wakes.count(), 1);
    assert_eq!(reason(poll(&mut sleep, &wakes)), Some(CancelReason::Shutdown));
}

#[test]
fn a_timer_that_outlives_its_executor_can_be_reset_and_dropped() {
    let (_clock, timers) = manual(1);
    let wakes = Wakes::new();
    let (mut first, mut second) = (timers.sleep(ms(1)), timers.sleep(ms(1)));
    assert!(poll(&mut first, &wakes).is_pending());
    drop(timers);
    first.reset(ms(2));
    second.reset(ms(2));
    assert!(reason(poll(&mut first, &wakes)).is_some());
    assert!(reason(poll(&mut second, &wakes)).is_some());
    let stopped = match poll(&mut second, &wakes) {
        Poll::Ready(Err(stopped)) => stopped.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(stopped.contains("will not go off"), "{stopped}");
}
