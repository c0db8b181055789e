//! Requests for a moment: `reschedule`, `run_within` and `run_now`, for tasks that wait, run, are due
//! or have ended.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use punctual::{
    ManualClock, MissedRuns, ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskError,
    TaskHandle, TaskState, Trigger,
    trigger::{every, on_demand},
};

use crate::support::{Counter, Log, manual, manual_with, ms};

/// Returns a task as it looks from outside, by its future and by a handle that was made of it.
fn both<T>(future: &ScheduledFuture<T>) -> (Option<Duration>, TaskState) {
    let handle = future.task_handle();
    assert_eq!((handle.delay(), handle.state()), (future.delay(), future.state()));
    (future.delay(), future.state())
}

fn noting(clock: &ManualClock, runs: &Log<u64>) -> impl FnMut() + Send + 'static {
    let (clock, runs) = (clock.clone(), runs.clone());
    move || runs.push(u64::try_from(clock.elapsed().as_millis()).expect("a small number"))
}

/// A task with a run every ten milliseconds, the first after ten.
fn ticking(clock: &ManualClock, executor: &Executor, runs: &Log<u64>) -> ScheduledFuture<()> {
    executor.schedule_at_fixed_rate(ms(10), ms(10), noting(clock, runs)).expect("accepted")
}

#[test]
fn a_one_shot_task_runs_when_it_was_put_off_to() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || 7).expect("accepted");
    clock.run_for(ms(9));
    assert!(task.reschedule(ms(10)));
    assert_eq!(both(&task), (Some(ms(10)), TaskState::Scheduled));
    clock.run_for(ms(9));
    assert!(!task.is_done());
    clock.run_for(ms(1));
    assert_eq!(task.join().expect("it has run"), 7);
    assert!(!task.reschedule(ms(1)), "it has ended");
    assert_eq!(executor.statistics().runs, 1);
}

#[test]
fn a_one_shot_task_runs_when_it_was_brought_forward_to() {
    let (clock, executor) = manual(1);
    let [task, never] =
        [ms(100), Duration::MAX].map(|delay| executor.schedule(delay, || ()).expect("accepted"));
    assert!(task.reschedule(ms(5)));
    assert!(never.task_handle().reschedule(ms(7)));
    clock.run_for(ms(5));
    assert_eq!((task.is_done(), never.delay()), (true, Some(ms(2))));
    clock.run_for(ms(2));
    assert!(never.is_done());
    assert_eq!(executor.pending_count(), 0);
}

#[test]
fn a_moment_can_be_an_instant() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || ()).expect("accepted");
    assert!(task.reschedule_at(clock.now() + ms(30)));
    assert_eq!(task.delay(), Some(ms(30)));
    assert!(task.reschedule_at(None));
    assert_eq!(task.delay(), None);
    clock.run_for(ms(50));
    assert!(task.reschedule_at(clock.now() - ms(20)), "a moment that has passed means now");
    clock.run_until_idle();
    assert!(task.is_done());
}

/// The grid goes on from the moment that was asked for.
#[test]
fn a_fixed_rate_goes_on_from_there() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let task = ticking(&clock, &executor, &runs);
    clock.run_for(ms(13));
    assert!(task.reschedule(ms(2)));
    clock.run_for(ms(30));
    assert_eq!(runs.entries(), [10, 15, 25, 35]);
}

/// M139: what is due and waits for a worker can still be put off, wherever in the queue it is.
#[test]
fn what_is_due_can_be_put_off_as_long_as_no_worker_has_it() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let first = executor.schedule(ms(1), move || {
        is_started.add();
        gate.wait_for(1);
    });
    let tasks: Vec<_> =
        (0..40).map(|n| executor.schedule(ms(1), move || n).expect("accepted")).collect();
    clock.advance(ms(1));
    started.wait_for(1);
    assert!(!first.expect("accepted").reschedule(ms(5)), "it runs");
    for task in tasks.iter().skip(1).step_by(2) {
        assert!(task.reschedule(ms(50)));
        assert!(task.reschedule(ms(60)), "by its new place");
        assert_eq!(task.delay(), Some(ms(60)));
    }
    assert!(tasks[3].cancel());
    assert!(executor.remove(&tasks[5]));
    assert_eq!(executor.pending_count(), 38);
    release.add();
    clock.run_until_idle();
    for (number, task) in tasks.iter().enumerate() {
        let is_over = number % 2 == 0 || [3, 5].contains(&number);
        assert_eq!(task.is_done(), is_over, "{number}");
    }
    clock.run_for(ms(60));
    assert!(tasks.iter().all(|task| task.is_done()));
    assert_eq!(executor.statistics().runs, 39);
}

#[test]
fn a_running_series_is_rescheduled_for_afterwards() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let task = executor
        .schedule_at_fixed_rate(ms(10), ms(10), move || {
            is_started.add();
            gate.wait_for(is_started.get());
        })
        .expect("accepted");
    clock.advance(ms(10));
    started.wait_for(1);
    assert!(task.run_within(ms(3)));
    assert!(task.run_within(ms(4)), "the earlier of the two");
    release.add();
    clock.run_until_idle();
    assert_eq!(task.delay(), Some(ms(3)));

    clock.advance(ms(3));
    started.wait_for(2);
    assert!(task.run_within(ms(1)));
    assert!(task.reschedule(ms(50)), "the later wish holds");
    release.add();
    clock.run_until_idle();
    assert_eq!(task.delay(), Some(ms(50)));

    clock.advance(ms(50));
    started.wait_for(3);
    assert!(task.reschedule(ms(50)));
    assert!(task.run_within(ms(20)));
    release.add();
    clock.run_until_idle();
    assert_eq!(task.delay(), Some(ms(20)));

    clock.advance(ms(20));
    started.wait_for(4);
    release.add();
    clock.run_until_idle();
    assert_eq!(task.delay(), Some(ms(10)), "nothing was asked for: the schedule decides");
}

#[test]
fn run_within_brings_forward_and_never_puts_off() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || ()).expect("accepted");
    assert!(task.run_within(ms(20)));
    assert_eq!(task.delay(), Some(ms(10)));
    assert!(task.task_handle().run_within(ms(4)));
    assert_eq!(task.delay(), Some(ms(4)));
    clock.run_for(ms(4));
    assert!(task.is_done());
    assert!(!task.run_within(ms(1)));
}

#[test]
fn an_extra_run_leaves_the_schedule_as_it_is() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let task = ticking(&clock, &executor, &runs);
    clock.run_for(ms(13));
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let blocker = executor.submit(move || {
        is_started.add();
        gate.wait_for(1);
    });
    started.wait_for(1);
    assert!(task.run_now());
    assert!(task.run_now(), "it is due already");
    release.add();
    assert!(blocker.expect("accepted").join().is_ok());
    clock.run_until_idle();
    assert_eq!(task.delay(), Some(ms(7)));
    clock.run_for(ms(20));
    assert_eq!(runs.entries(), [10, 13, 20, 30]);
}

/// M134: what is asked for while it runs is one run more, after this one.
#[test]
fn an_extra_run_can_be_asked_for_during_a_run() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let task = executor
        .schedule_with_fixed_delay(ms(10), ms(10), move || {
            is_started.add();
            gate.wait_for(is_started.get());
        })
        .expect("accepted");
    clock.advance(ms(10));
    started.wait_for(1);
    assert!(task.run_now());
    release.add();
    release.add();
    clock.run_until_idle();
    assert_eq!((started.get(), task.delay()), (2, Some(ms(10))));
}

/// A run that is too late takes place if it is asked for, also by the body of an extra run: the run that is due is the one
/// that is meant.
#[test]
fn a_late_run_can_be_asked_for_during_an_extra_run() {
    let ways: [fn(&TaskHandle) -> bool; 2] =
        [|task| task.run_within(Duration::ZERO), TaskHandle::run_now];
    for ask in ways {
        let (clock, executor) = manual(1);
        let runs = Log::new();
        let mut note = noting(&clock, &runs);
        let (own, itself) = (clock.clone(), Arc::new(OnceLock::<TaskHandle>::new()));
        let task = Arc::clone(&itself);
        let body = move || {
            note();
            if own.elapsed() == ms(5) {
                own.advance(ms(20));
                assert!(task.get().is_some_and(ask));
            }
        };
        let task = executor.task().missed_runs(MissedRuns::Within(ms(5)));
        let task = task.repeat(every(ms(10)).first_in(ms(10)), body).expect("accepted");
        itself.set(task.task_handle()).expect("it is set once");
        clock.run_for(ms(5));
        assert!(task.run_now());
        clock.run_until_idle();
        assert_eq!(runs.entries(), [5, 25, 25], "the run of 10, and that of 20");
    }
}

/// M144: an extra run asks no trigger, and what was asked for before it stands.
#[test]
fn an_extra_run_is_no_run_of_the_trigger() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let moments = [5, 25, 45].map(|millis| clock.now() + ms(millis));
    let trigger = punctual::trigger::at(moments);
    let task = executor.repeat(trigger, noting(&clock, &runs)).expect("accepted");
    clock.run_for(ms(10));
    assert!(task.run_now());
    clock.run_for(ms(10));
    assert!(task.reschedule(ms(2)), "in place of the moment at 25");
    assert!(task.run_now());
    clock.run_for(ms(40));
    assert_eq!(runs.entries(), [5, 10, 20, 22, 45]);
    assert!(task.join().is_ok());
}

#[test]
fn a_one_shot_task_that_runs_now_does_not_run_again() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || ()).expect("accepted");
    assert!(task.run_now());
    clock.run_for(ms(20));
    assert_eq!((task.is_done(), executor.statistics().runs), (true, 1));
    assert!(!task.run_now());
}

#[test]
fn a_task_on_demand_runs_when_it_is_told() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let task = executor.repeat(on_demand().times(3), noting(&clock, &runs)).expect("accepted");
    clock.run_for(ms(100));
    assert_eq!(both(&task), (None, TaskState::Scheduled));
    assert!(task.run_now());
    clock.run_for(ms(10));
    assert!(task.reschedule(ms(5)));
    assert!(task.reschedule(ms(6)));
    clock.run_for(ms(10));
    assert!(task.run_within(ms(2)));
    assert!(task.run_within(ms(3)));
    clock.run_for(ms(10));
    assert_eq!(runs.entries(), [100, 116, 122]);
    assert!(task.join().is_ok(), "the third run was the last");
}

/// M136.
#[test]
fn a_time_limit_moves_with_the_task() {
    let (clock, executor) = manual(1);
    let limited = |delay| executor.task().timeout(ms(10)).schedule(delay, || 7).expect("accepted");
    let (off, forward, never) = (limited(ms(5)), limited(ms(500)), limited(Duration::MAX));
    assert!(off.reschedule(ms(100)));
    assert!(forward.reschedule(ms(5)));
    assert!(never.reschedule(ms(5)));
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let blocker = executor.schedule(ms(4), move || {
        is_started.add();
        gate.wait_for(1);
    });
    clock.advance(ms(4));
    started.wait_for(1);
    clock.advance(ms(11));
    for task in [forward, never] {
        assert!(task.join().expect_err("its time is over").is_timeout());
        assert!(!task.reschedule(ms(1)));
    }
    assert!(!off.is_done(), "its first limit would be over");
    release.add();
    clock.run_for(ms(90));
    assert_eq!(off.join().expect("in time"), 7);
    drop(blocker);
}

/// M135.
#[test]
fn what_a_shutdown_keeps_is_not_put_off() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || ()).expect("accepted");
    executor.shutdown();
    assert!(!task.reschedule(ms(20)));
    assert!(!task.pause());
    assert_eq!(task.delay(), Some(ms(10)));
    assert!(task.reschedule(ms(5)));
    clock.run_for(ms(5));
    assert!(task.is_done() && executor.is_terminated());
}

#[test]
fn after_shutdown_now_the_holder_of_the_task_decides() {
    let (_, executor) = manual(1);
    let [once, series] = [
        executor.schedule(ms(10), || ()).expect("accepted"),
        executor.repeat(every(ms(10)).first_in(ms(10)), || ()).expect("accepted"),
    ];
    let drained = executor.shutdown_now();
    for task in [once, series] {
        assert!(!task.reschedule(ms(5)) && !task.run_now() && !task.pause() && !task.resume());
        assert!(!task.set_trigger(every(ms(1))));
        assert_eq!(task.state(), TaskState::Scheduled);
    }
    drop(drained);
}

#[test]
fn a_cancelled_task_is_not_brought_back() {
    let (clock, executor) = manual(1);
    let task = executor.schedule_at_fixed_rate(ms(1), ms(1), || ()).expect("accepted");
    assert!(task.pause() && task.cancel());
    assert!(!task.reschedule(ms(5)) && !task.run_now() && !task.pause() && !task.resume());
    assert!(!task.set_trigger(every(ms(1))));
    clock.run_for(ms(10));
    assert_eq!((executor.statistics().runs, task.state()), (0, TaskState::Cancelled));
    assert!(matches!(task.join(), Err(TaskError::Cancelled(_))));
}

/// The bound counts tasks, and a task that is moved is one task.
#[test]
fn moving_a_task_takes_no_room() {
    let (clock, executor) = manual_with(|builder| builder.max_pending(2));
    let [one, other] = [ms(10), ms(20)].map(|delay| executor.schedule(delay, || ()).expect("room"));
    for _ in 0..5 {
        assert!(one.reschedule(ms(30)) && other.pause() && other.resume());
    }
    assert!(executor.schedule(ms(1), || ()).is_err());
    clock.run_for(ms(30));
    assert!(executor.schedule(ms(1), || ()).is_ok());
}

/// The list of pending tasks is in due order, and its handles control them.
#[test]
fn a_listed_task_can_be_moved() {
    let (_, executor) = manual(1);
    let tasks = [10, 20, 30].map(|delay| executor.schedule(ms(delay), || ()).expect("accepted"));
    let ids = || executor.pending_tasks().iter().map(|task| task.id()).collect::<Vec<_>>();
    assert!(executor.pending_tasks()[2].reschedule(ms(5)));
    assert_eq!(ids(), [2, 0, 1].map(|n: usize| tasks[n].id()));
    assert!(executor.pending_tasks()[0].pause());
    assert_eq!(ids(), [0, 1, 2].map(|n: usize| tasks[n].id()));
}
