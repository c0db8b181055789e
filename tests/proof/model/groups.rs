//! Tasks wait for their group while something releases, ends, moves or stops them.

use std::time::Duration;

use punctual::{BlockPolicy, Group, ScheduledFuture, ScheduledThreadPoolExecutor};
use shuttle::thread;

use crate::support::{Count, Door, check, executor, executor_with};

const STEP: Duration = Duration::from_nanos(10);

fn group(executor: &ScheduledThreadPoolExecutor, limit: usize) -> Group {
    executor.group("g").limit(limit).build().expect("a good limit")
}

/// Counts how many bodies run at once.
#[derive(Clone, Default)]
struct Inside {
    now: Count,
    left: Count,
    order: std::sync::Arc<shuttle::sync::Mutex<Vec<usize>>>,
}

impl Inside {
    fn body(&self, number: usize) -> impl FnOnce() + Send + 'static + use<> {
        let own = self.clone();
        move || {
            own.order.lock().expect("nobody panics").push(number);
            let entered = own.now.add() + 1;
            thread::yield_now();
            assert_eq!(entered, own.left.add() + 1, "they overlap");
        }
    }

    fn order(&self) -> Vec<usize> {
        self.order.lock().expect("nobody panics").clone()
    }
}

fn assert_at_rest(group: &Group) {
    let now = group.statistics();
    assert_eq!((now.pending, now.active, now.waiting), (0, 0, 0), "{now:?}");
    assert_eq!(now.submitted, now.completed + now.failed + now.cancelled, "{now:?}");
}

/// G61, G62, M178: two workers have taken two tasks: they start in their order, and never overlap.
#[test]
fn two_workers_start_in_order() {
    check(|| {
        let (_, executor) = executor(2);
        let (group, inside) = (group(&executor, 1), Inside::default());
        let tasks: Vec<_> =
            (0..3).map(|number| group.task().submit(inside.body(number)).expect("it is open")).collect();
        tasks.iter().for_each(|task| assert!(task.join().is_ok()));
        assert_eq!(inside.order(), [0, 1, 2]);
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// With two permits and three tasks no task waits for ever.
#[test]
fn permits_go_round() {
    check(|| {
        let (_, executor) = executor(2);
        let group = group(&executor, 2);
        let runs = Count::default();
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let counted = runs.clone();
                group.task().submit(move || counted.add()).expect("it is open")
            })
            .collect();
        tasks.iter().for_each(|task| assert!(task.join().is_ok()));
        assert_eq!(runs.get(), 4);
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// G63: a task is cancelled while the permit that it waits for is released: it runs or is cancelled, and the one behind
/// it runs in any case.
#[test]
fn a_task_gets_its_turn_or_is_cancelled() {
    check(|| {
        let (_, executor) = executor(2);
        let (group, inside) = (group(&executor, 1), Inside::default());
        let first = group.task().submit(inside.body(0)).expect("it is open");
        let second = group.task().submit(inside.body(1)).expect("it is open");
        let third = group.task().submit(inside.body(2)).expect("it is open");
        let is_cancelled = second.cancel();
        assert!(first.join().is_ok() && third.join().is_ok());
        assert_eq!(is_cancelled, second.join().is_err());
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// G63, M174: the first of those that wait is paused, or moved away, while the permit is released: the next gets its turn.
#[test]
fn the_first_steps_aside() {
    for moves in [false, true] {
        check(move || {
            let (clock, executor) = executor(2);
            let (group, inside) = (group(&executor, 1), Inside::default());
            let first = group.task().submit(inside.body(0)).expect("it is open");
            let second = group.task().submit(inside.body(1)).expect("it is open");
            let third = group.task().submit(inside.body(2)).expect("it is open");
            let is_aside = if moves { second.reschedule(STEP) } else { second.pause() };
            assert!(first.join().is_ok() && third.join().is_ok());
            if is_aside && !moves {
                assert!(second.resume());
            }
            clock.advance(STEP);
            assert!(second.join().is_ok());
            executor.close().expect("not on a worker");
            assert_at_rest(&group);
        });
    }
}

/// G63: the group is paused and resumed while tasks are taken, refused and queued again: none is left behind.
#[test]
fn a_pause_strands_nobody() {
    check(|| {
        let (_, executor) = executor(2);
        let (group, inside) = (group(&executor, 1), Inside::default());
        let pausing = group.clone();
        let pauser = thread::spawn(move || {
            pausing.pause();
            thread::yield_now();
            pausing.resume();
        });
        let tasks: Vec<_> =
            (0..3).map(|number| group.task().submit(inside.body(number)).expect("it is open")).collect();
        pauser.join().expect("nobody panics");
        tasks.iter().for_each(|task| assert!(task.join().is_ok()));
        assert_eq!(inside.order(), [0, 1, 2]);
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// G63: the limit is raised while a task is refused and queued again: it gets the new permit.
#[test]
fn a_raised_limit_is_not_missed() {
    check(|| {
        let (_, executor) = executor(3);
        let group = group(&executor, 1);
        let (door, passed) = (Door::default(), Count::default());
        let (opened, passes) = (door.clone(), door.clone());
        let counted = passed.clone();
        let first = group.task().submit(move || {
            passes.pass();
            counted.add();
        });
        let first = first.expect("it is open");
        let second = group.task().submit(move || opened.open()).expect("it is open");
        group.set_limit(2).expect("not zero");
        assert!(second.join().is_ok() && first.join().is_ok());
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// G64: a task is queued again, held, while the owner is dropped: what is due runs, in its turn.
#[test]
fn a_drop_runs_what_waits() {
    check(|| {
        let (_, executor) = executor(2);
        let (group, inside) = (group(&executor, 1), Inside::default());
        let tasks: Vec<_> =
            (0..3).map(|number| group.task().submit(inside.body(number)).expect("it is open")).collect();
        drop(executor);
        tasks.iter().for_each(|task| assert!(task.join().is_ok()));
        assert_eq!(inside.order(), [0, 1, 2]);
        assert_at_rest(&group);
        assert!(group.is_terminated());
    });
}

/// G64: the owner of a group that is paused is dropped: everything ends, and no thread waits for ever.
#[test]
fn a_drop_ends_a_paused_group() {
    check(|| {
        let (_, executor) = executor(2);
        let group = group(&executor, 1);
        let pausing = group.clone();
        let pauser = thread::spawn(move || _ = pausing.pause());
        let tasks: Vec<_> = (0..2).map(|_| group.task().submit(|| ()).expect("it is open")).collect();
        drop(executor);
        pauser.join().expect("nobody panics");
        assert!(tasks.iter().all(|task| task.is_done()));
        assert_at_rest(&group);
    });
}

/// G64: the executor is stopped at once while tasks are refused and queued again: each is given back or ended.
#[test]
fn a_stop_strands_nobody() {
    check(|| {
        let (_, executor) = executor(2);
        let group = group(&executor, 1);
        let tasks: Vec<_> = (0..3).map(|_| group.task().submit(|| ()).expect("it is open")).collect();
        for task in executor.shutdown_now() {
            task.run();
        }
        executor.close().expect("not on a worker");
        assert!(tasks.iter().all(|task| task.is_done()));
        assert_at_rest(&group);
        assert!(group.is_terminated());
    });
}

/// The group is stopped at once, or all of its tasks are cancelled, while they are refused and queued again.
#[test]
fn an_end_of_the_group_strands_nobody() {
    for stops in [false, true] {
        check(move || {
            let (_, executor) = executor(2);
            let group = group(&executor, 1);
            let runs = Count::default();
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    let counted = runs.clone();
                    group.task().submit(move || _ = counted.add()).expect("it is open")
                })
                .collect();
            if stops {
                drop(group.shutdown_now());
                assert_eq!(group.await_termination(Duration::MAX), Ok(true));
            } else {
                group.cancel_all();
            }
            tasks.iter().for_each(|task| _ = task.join());
            assert!(executor.submit(|| ()).expect("it is open").join().is_ok());
            executor.close().expect("not on a worker");
            assert_at_rest(&group);
        });
    }
}

/// A group is stopped while a series comes back from its run: the series ends, and the group with it.
#[test]
fn a_series_ends_with_its_group() {
    check(|| {
        let (_, executor) = executor(1);
        let group = group(&executor, 1);
        let series = group.task().schedule_at_fixed_rate(Duration::ZERO, STEP, || ());
        let series = series.expect("it is open");
        drop(group.shutdown_now());
        assert_eq!(group.await_termination(Duration::MAX), Ok(true));
        assert!(series.join().is_err_and(|error| error.is_cancelled()));
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// G64: a group is shut down while a submission is under way: the task is refused, or it runs before the end.
#[test]
fn a_submission_meets_the_end_of_its_group() {
    check(|| {
        let (_, executor) = executor(1);
        let group = group(&executor, 1);
        let submitting = group.clone();
        let runs = Count::default();
        let counted = runs.clone();
        let submitter = thread::spawn(move || submitting.task().submit(move || _ = counted.add()).is_ok());
        group.shutdown();
        assert_eq!(group.await_termination(Duration::MAX), Ok(true));
        let (ran, submitted) = (runs.get(), group.statistics().submitted);
        let is_admitted = submitter.join().expect("nobody panics");
        assert_eq!((runs.get(), u64::from(is_admitted)), (ran, submitted));
        assert_eq!(ran, usize::from(is_admitted));
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// A series and tasks that run once share a permit, while the series is moved: each goes on.
#[test]
fn a_series_shares_a_permit() {
    check(|| {
        let (clock, executor) = executor(2);
        let group = group(&executor, 1);
        let runs = Count::default();
        let counted = runs.clone();
        let series = group.task().schedule_at_fixed_rate(STEP, STEP, move || _ = counted.add());
        let series = series.expect("it is open");
        let once = group.task().schedule(STEP, || ()).expect("it is open");
        clock.advance(STEP);
        series.run_within(Duration::ZERO);
        assert!(once.join().is_ok());
        while runs.get() < 2 {
            clock.advance(STEP);
            thread::yield_now();
        }
        assert!(series.cancel());
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// A series is due, and its group refuses it: a body that waits at a door has the only permit. Returns what ends with
/// that body, the door, and the series.
fn a_refused_series(group: &Group) -> (ScheduledFuture<()>, Door, ScheduledFuture<()>) {
    let (begun, door) = (Door::default(), Door::default());
    let (begins, passes) = (begun.clone(), door.clone());
    let busy = group.task().submit(move || {
        begins.open();
        passes.pass();
    });
    begun.pass();
    let series = group.task().schedule_at_fixed_rate(Duration::ZERO, STEP, || ());
    (busy.expect("it is open"), door, series.expect("it is open"))
}

/// The executor is shut down while a worker has a series that its group refuses: the series does not come back to
/// wait for a permit that may never be released.
#[test]
fn a_shutdown_meets_a_series_that_is_refused() {
    check(|| {
        let (_, executor) = executor(2);
        let group = group(&executor, 1);
        let (busy, door, series) = a_refused_series(&group);
        executor.shutdown();
        assert!(series.join().is_err_and(|error| error.is_cancelled()));
        door.open();
        assert!(busy.join().is_ok());
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// A series is paused while a worker has it that its group refuses: it does not come back as one that is due, which
/// the drop of the owner would wait for.
#[test]
fn a_drop_meets_a_paused_series_that_is_refused() {
    check(|| {
        let (_, executor) = executor(2);
        let group = group(&executor, 1);
        let (busy, door, series) = a_refused_series(&group);
        series.pause();
        let opener = thread::spawn(move || door.open());
        drop(executor);
        opener.join().expect("nobody panics");
        assert!(busy.is_done() && series.join().is_err_and(|error| error.is_cancelled()));
        assert_at_rest(&group);
    });
}

/// A group is shut down while a submission begins to wait for room, which never comes: it is refused, and the group ends.
#[test]
fn a_submission_that_waits_for_room_meets_the_end_of_its_group() {
    check(|| {
        let (_, executor) = executor_with(|builder| {
            let handler = BlockPolicy::new(Duration::MAX);
            builder.core_pool_size(1).max_pending(1).rejected_execution_handler(handler)
        });
        let first = executor.schedule(STEP, || ()).expect("there is room");
        let group = group(&executor, 1);
        let submitting = group.clone();
        let submitter = thread::spawn(move || submitting.task().submit(|| ()).is_err());
        group.shutdown();
        assert_eq!(group.await_termination(Duration::MAX), Ok(true));
        assert!(submitter.join().expect("no thread panics"));
        assert!(first.cancel());
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}

/// A member whose turn comes just as it is cancelled: when the call has returned it is in no queue.
#[test]
fn a_member_that_is_cancelled_when_its_turn_comes_leaves_the_queue() {
    check(|| {
        let (_, executor) = executor(1);
        let group = group(&executor, 1);
        assert!(group.pause());
        let runs = Count::default();
        let counted = runs.clone();
        let task = group.task().submit(move || counted.add()).expect("it is open");
        while group.statistics().waiting == 0 {
            thread::yield_now();
        }
        let resumed = group.clone();
        let resumer = thread::spawn(move || resumed.resume());
        if task.cancel() {
            assert_eq!(executor.pending_count(), 0, "it has left");
        }
        assert!(resumer.join().expect("nobody panics"));
        // It may have begun before it was cancelled.
        assert!(runs.get() == 1 || task.is_cancelled());
        executor.close().expect("not on a worker");
        assert_at_rest(&group);
    });
}
