//! A shutdown of an executor that has groups, while user code moves tasks: in the drop of one that is cancelled, or
//! on another thread.

use std::{sync::Arc, time::Duration};

use punctual::{
    CancelReason, Group, Handle, ManualClock, ScheduledThreadPoolExecutor as Executor, trigger,
};

use super::support::{Busy, noting, until_held};
use crate::{
    rounds::rounds,
    support::{LONG, Log, assert_cancelled, in_time, manual, manual_with, ms},
};

const HOUR: Duration = Duration::from_secs(3600);

/// Acts when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Schedules a task that a shutdown cancels, and that does this when its closure is dropped.
fn at_its_end(executor: &Handle, act: impl FnMut() + Send + 'static) {
    let acts = OnDrop(act);
    let task = executor.schedule(HOUR, move || drop(acts)).expect("accepted");
    drop(task);
}

/// An executor that keeps no delayed task, with a group that has no task.
fn strict() -> (ManualClock, Executor, Group) {
    let (clock, executor) = manual_with(|builder| {
        builder.core_pool_size(2).executes_existing_delayed_tasks_after_shutdown(false)
    });
    let group = executor.group("g").limit(1).build().expect("a good limit");
    (clock, executor, group)
}

/// A paused task that is resumed in the drop of another one ends with the shutdown as well, and so `close` returns.
#[test]
fn a_task_that_is_resumed_meanwhile_ends() {
    let (_clock, executor, _group) = strict();
    let paused = executor.schedule(HOUR, || ()).unwrap();
    assert!(paused.pause());
    let handle = paused.task_handle();
    at_its_end(&executor, move || _ = handle.resume());
    executor.shutdown();
    assert_cancelled(&paused, CancelReason::Shutdown);
    in_time("the end", || executor.close()).unwrap();
}

/// A debounced task that is called in the drop of another one ends as well: it does not run after the shutdown.
#[test]
fn a_task_that_is_called_meanwhile_ends() {
    let (clock, executor, _group) = strict();
    let runs = Log::new();
    let saves = runs.clone();
    let save = Arc::new(executor.task().debounce(ms(4000), move || saves.push(())).unwrap());
    let calls = Arc::downgrade(&save);
    at_its_end(&executor, move || {
        if let Some(save) = calls.upgrade() {
            save.call();
        }
    });
    executor.shutdown();
    assert!(save.task_handle().is_done());
    in_time("the end", || executor.close()).unwrap();
    clock.run_for(ms(5000));
    assert!(runs.entries().is_empty());
}

/// A series that waits for its group, and is released in the drop of another task, ends as well.
#[test]
fn a_series_that_is_released_meanwhile_ends() {
    let (clock, executor, group) = strict();
    let busy = Busy::start(&group);
    let runs = Log::new();
    let ticks = runs.clone();
    let series = group.task().schedule_at_fixed_rate(ms(1), ms(1), move || ticks.push(())).unwrap();
    clock.advance(ms(1));
    until_held(&group, 1);
    let releases = group.clone();
    at_its_end(&executor, move || _ = releases.set_limit(2));
    executor.shutdown();
    assert_cancelled(&series, CancelReason::Shutdown);
    busy.end();
    in_time("the end", || executor.close()).unwrap();
    assert!(runs.entries().is_empty());
}

/// A task that is due and waits for its group is released in the drop of another one: it runs, as every task that is
/// due does.
#[test]
fn a_task_that_is_released_meanwhile_runs() {
    let (clock, executor, group) = strict();
    let busy = Busy::start(&group);
    let runs = Log::new();
    let task = noting(&group, &runs, ms(1), 7);
    clock.advance(ms(1));
    until_held(&group, 1);
    let releases = group.clone();
    at_its_end(&executor, move || _ = releases.set_limit(2));
    executor.shutdown();
    assert!(in_time("it runs", move || task.join()).is_ok());
    assert_eq!(runs.entries(), [7]);
    busy.end();
    in_time("the end", || executor.close()).unwrap();
}

/// Whatever a task waits for that is no moment, an executor that does not keep delayed tasks ends it, and `close`
/// returns.
#[test]
fn what_waits_for_no_moment_ends() {
    let (clock, executor, group) = strict();
    let busy = Busy::start(&group);
    let held_and_paused = group.task().schedule(ms(1), || ()).unwrap();
    let held_and_moved = group.task().schedule(ms(1), || ()).unwrap();
    clock.advance(ms(1));
    until_held(&group, 2);
    assert!(held_and_paused.pause() && held_and_moved.reschedule(HOUR));
    let paused = executor.schedule(ms(1), || ()).unwrap();
    assert!(paused.pause());
    let in_group = group.task().schedule(HOUR, || ()).unwrap();
    assert!(in_group.pause());
    let on_demand = executor.repeat(trigger::on_demand(), || ()).unwrap();
    let never = executor.schedule(Duration::MAX, || ()).unwrap();
    executor.shutdown();
    for task in [&held_and_paused, &held_and_moved, &paused, &in_group, &on_demand, &never] {
        assert_cancelled(task, CancelReason::Shutdown);
    }
    busy.end();
    in_time("the end", || executor.close()).unwrap();
}

/// A held task that is paused, resumed or moved is shown with when it is due, and in that order.
#[test]
fn what_is_held_is_listed_by_when_it_is_due() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let tasks = [1, 2, 3].map(|delay| group.task().schedule(ms(delay), || ()).unwrap());
    clock.advance(ms(3));
    until_held(&group, 3);
    let listed = || executor.pending_tasks().iter().map(|task| task.id()).collect::<Vec<_>>();
    let [first, second, third] = [0, 1, 2].map(|index: usize| tasks[index].id());
    assert_eq!(listed(), [first, second, third]);
    assert!(tasks[0].reschedule(ms(7)));
    assert_eq!(listed(), [second, third, first]);
    assert_eq!(tasks[0].delay(), Some(ms(7)));
    assert!(tasks[1].pause());
    assert_eq!(listed(), [third, first, second]);
    assert!(tasks[1].resume());
    assert_eq!(listed(), [second, third, first]);
    busy.end();
}

/// A series that its group refuses while the executor is shut down does not come back to wait: it ends although the
/// permit is never released.
#[test]
fn a_series_that_is_refused_meanwhile_ends() {
    for _ in rounds("a series is refused during a shutdown", 2_000) {
        let (clock, executor) = manual(2);
        let group = executor.group("g").limit(1).build().unwrap();
        let busy = Busy::start(&group);
        let series = group.task().schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
        clock.advance(ms(1));
        executor.shutdown();
        let ended = series.join_within(LONG).expect("it ends");
        assert!(ended.is_err_and(|error| error.is_cancelled()));
        busy.end();
        executor.close().unwrap();
    }
}
