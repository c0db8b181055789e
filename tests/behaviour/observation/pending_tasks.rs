//! The pending tasks, viewed and removed: a snapshot in due order, `remove`, `purge`.

use std::time::Duration;

use punctual::{
    CancelReason, ManualClock, PendingTask, ScheduledFuture, ScheduledThreadPoolExecutor, TaskId,
    TaskState, current_task,
};

use crate::support::{
    Counter, Drops, LONG, Log, assert_cancelled, elsewhere, eventually, hold, manual, ms,
};

fn ids(tasks: &[PendingTask]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id()).collect()
}

/// An executor with one worker, whose first task of five runs until the gate opens.
struct Scene {
    clock: ManualClock,
    executor: ScheduledThreadPoolExecutor,
    futures: Vec<ScheduledFuture<()>>,
    gate: Counter,
}

impl Scene {
    fn new() -> Self {
        let (clock, executor) = manual(1);
        let (begun, gate) = (Counter::new(), Counter::new());
        let futures = (0..5).map(|_| {
            let (begun, gate) = (begun.clone(), gate.clone());
            let task = move || {
                begun.add();
                gate.wait_for(1);
            };
            executor.schedule(ms(1), task).unwrap()
        });
        let futures = futures.collect();
        clock.advance(ms(1));
        begun.wait_for(1);
        Self { clock, executor, futures, gate }
    }

    fn waiting(&self) -> Vec<TaskId> {
        ids(&self.executor.pending_tasks())
    }

    fn end(self) {
        self.gate.add();
        self.clock.run_until_idle();
        self.executor.close().unwrap();
    }
}

/// QV-001: a running task is not among the pending tasks, and the others are, in order.
#[test]
fn waiting_tasks_are_listed_and_running_ones_are_not() {
    let scene = Scene::new();
    let ids: Vec<_> = scene.futures.iter().map(|task| task.id()).collect();
    assert_eq!(scene.waiting(), ids[1..]);
    assert_eq!(scene.executor.pending_count(), 4);
    scene.end();
}

/// QV-002: a running task cannot be removed; a pending one can, once, and then it is gone from the
/// view, and the others are not.
#[test]
fn a_task_that_waits_can_be_removed_once() {
    let scene = Scene::new();
    let (executor, futures) = (&scene.executor, &scene.futures);
    assert!(!executor.remove(&futures[0]));
    assert!(executor.remove(&futures[4]));
    assert!(!executor.remove(&futures[4]));
    assert!(!scene.waiting().contains(&futures[4].id()));
    assert!(scene.waiting().contains(&futures[3].id()));
    assert!(executor.remove(&futures[3]));
    assert!(!scene.waiting().contains(&futures[3].id()));
    assert_eq!(futures[0].state(), TaskState::Running);
    scene.gate.add();
    scene.clock.run_until_idle();
    assert_eq!(futures[0].state(), TaskState::Completed);
    assert!(!scene.executor.remove(&scene.futures[0]), "it has ended");
    scene.end();
}

/// QV-004: two tasks that are cancelled leave at once, so `purge` has nothing to do, and repeating
/// it changes nothing.
#[test]
fn cancelling_leaves_nothing_to_purge() {
    let scene = Scene::new();
    let seen = || {
        let now = scene.executor.statistics();
        (scene.executor.task_count(), now.pending, now.active, now.completed)
    };
    assert_eq!(seen(), (5, 4, 1, 0));
    assert!(scene.futures[4].cancel_and_signal());
    assert!(scene.futures[3].cancel());
    for _ in 0..2 {
        assert_eq!(scene.executor.purge(), 0);
        assert_eq!(seen(), (3, 2, 1, 0));
    }
    scene.end();
}

/// QV-004: `purge` finds a task that has been cancelled while its entry is still queued: the drop
/// of its captures, in the middle of the cancellation, observes that.
#[test]
fn purge_finds_tasks_that_are_being_cancelled() {
    let (_clock, executor) = manual(1);
    let (dropping, gate) = (Counter::new(), Counter::new());
    let capture = Slow(dropping.clone(), gate.clone());
    let future = executor.schedule(LONG, move || hold(&capture)).unwrap();
    let other = executor.schedule(LONG, || ()).unwrap();
    let handle = future.task_handle();
    let cancelling = elsewhere(move || handle.cancel());
    dropping.wait_for(1);
    assert_eq!(executor.pending_count(), 2);
    assert_eq!((executor.purge(), executor.pending_count()), (1, 1));
    assert_eq!((executor.purge(), executor.pending_count()), (0, 1));
    gate.add();
    assert!(cancelling.get());
    assert_eq!(executor.pending_count(), 1);
    let now = executor.statistics();
    assert_eq!((now.submitted, now.cancelled, now.pending), (2, 1, 1));
    assert!(!other.is_done());
}

/// Waits for a gate when it is dropped.
struct Slow(Counter, Counter);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.add();
        self.1.wait_for(1);
    }
}

/// QV-005: the view shows exactly the tasks that were scheduled.
#[test]
fn the_list_shows_the_scheduled_tasks() {
    let (_clock, executor) = manual(1);
    let mut futures: Vec<_> = (1..=9)
        .map(|number| executor.schedule(number * 7 % 10 * LONG, move || number).unwrap())
        .collect();
    let seen = ids(&executor.pending_tasks());
    futures.sort_by_key(|task| task.delay());
    assert_eq!(seen, futures.iter().map(|task| task.id()).collect::<Vec<_>>());
    let mut drained: Vec<_> = executor.shutdown_now().map(|task| task.id()).collect();
    let mut seen = seen;
    drained.sort_unstable();
    seen.sort_unstable();
    assert_eq!(drained, seen);
}

/// QV-006: an iterator over drained tasks that is dropped half-way, in whichever way, loses
/// nothing: the remaining tasks are still there, can be run, and end as cancelled when they are
/// dropped.
#[test]
fn an_iterator_dropped_half_way_leaves_the_rest() {
    let (clock, executor) = manual(1);
    // The only worker is busy, so that all are due and wait.
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begin, open) = (begun.clone(), gate.clone());
    let busy = move || {
        begin.add();
        open.wait_for(1);
    };
    executor.execute(busy).unwrap();
    begun.wait_for(1);
    let futures = [(); 10].map(|()| executor.schedule(ms(1), || 7).unwrap());
    clock.advance(ms(1));

    let mut pending = executor.shutdown_now();
    let mut sink = Vec::new();
    let refused = pending.try_for_each(|task| {
        let has_room = sink.len() < 2;
        // The sink drops the third, so it ends.
        if !has_room {
            return Err(task.id());
        }
        sink.push(task);
        Ok(())
    });
    let refused = refused.unwrap_err();
    assert_eq!((sink.len(), pending.len()), (2, 7));
    let state_of = |id| futures.iter().find(|future| future.id() == id).unwrap().state();
    assert_eq!(state_of(refused), TaskState::Cancelled);
    let waiting = futures.iter().filter(|future| !future.is_done()).count();
    assert_eq!(waiting, 9);

    sink.into_iter().chain(pending.by_ref().take(3)).for_each(punctual::DrainedTask::run);
    assert_eq!(pending.len(), 4);
    drop(pending);
    let completed = futures.iter().filter(|future| future.state() == TaskState::Completed);
    assert_eq!(completed.count(), 5);
    let cancelled: Vec<_> = futures.iter().filter(|future| future.is_cancelled()).collect();
    assert_eq!(cancelled.len(), 5);
    cancelled.into_iter().for_each(|one| assert_cancelled(one, CancelReason::ShutdownNow));
    gate.add();
    eventually("it terminates", || executor.is_terminated());
}

/// QV-007: the view is in due order, and equal deadlines are in the order of submission, whatever
/// the order of the heap; a view that was taken does not change.
#[test]
fn the_view_is_sorted_and_a_snapshot() {
    let (clock, executor) = manual(1);
    let mut expected: Vec<_> = (0..200_u32)
        .map(|number| {
            let delay = number * 7_919 % 50 * ms(1) + ms(1);
            (delay, number, executor.schedule(delay, || ()).unwrap())
        })
        .collect();
    expected.sort_by_key(|(delay, number, _)| (*delay, *number));
    let view = executor.pending_tasks();
    assert_eq!(ids(&view), expected.iter().map(|(.., task)| task.id()).collect::<Vec<_>>());
    assert!(view.iter().zip(&expected).all(|(seen, (delay, ..))| seen.delay == *delay));

    clock.run_for(ms(25));
    assert_eq!(view.len(), 200, "what was seen stays seen");
    assert_eq!(view[0].delay, ms(1));
    let now = executor.pending_tasks();
    assert_eq!(ids(&now), ids(&view)[200 - now.len()..]);
}

/// The view shows for each task what it is, when it is due, and how often it has run.
#[test]
fn the_view_describes_each_task() {
    let (clock, executor) = manual(1);
    let begin = clock.now();
    executor.task().name("never").schedule(Duration::MAX, || ()).unwrap();
    executor.task().name("beat").schedule_at_fixed_rate(ms(2), ms(10), || ()).unwrap();
    executor.schedule(ms(45), || ()).unwrap();
    clock.run_for(ms(35));
    let described: Vec<_> = executor
        .pending_tasks()
        .iter()
        .map(|task| {
            let name = task.name().map(|name| name.to_string());
            let next = task.next_run.map(|moment| moment - begin);
            (name, task.delay, next, task.run_count, task.is_periodic)
        })
        .collect();
    let expected = [
        (Some("beat".to_owned()), ms(7), Some(ms(42)), 4, true),
        (None, ms(10), Some(ms(45)), 0, false),
        (Some("never".to_owned()), Duration::MAX, None, 0, false),
    ];
    assert_eq!(described, expected);
}

/// The view includes what is due and waits for a worker; it has no delay left.
#[test]
fn a_due_task_that_waits_is_listed() {
    let scene = Scene::new();
    scene.clock.advance(ms(5));
    for task in scene.executor.pending_tasks() {
        assert_eq!((task.delay, task.next_run), (Duration::ZERO, Some(scene.clock.now() - ms(5))));
    }
    scene.end();
}

/// A listed task can be cancelled, which ends its future and drops its captures, and it reports its
/// state later; a view that is kept retains no closure.
#[test]
fn a_listed_task_can_be_cancelled() {
    let (clock, executor) = manual(1);
    let drops = Drops::new();
    let token = drops.token();
    let first = executor.schedule(ms(1), move || hold(&token)).unwrap();
    let second = executor.schedule(ms(2), || 7).unwrap();
    let view = executor.pending_tasks();
    assert!(view[0].cancel());
    assert_eq!((drops.count(), executor.pending_count()), (1, 1));
    assert_cancelled(&first, CancelReason::Requested);
    assert!(!view[0].cancel());
    clock.run_for(ms(2));
    assert_eq!(view[1].state(), TaskState::Completed);
    assert!(!view[1].cancel());
    assert_eq!(second.try_join().unwrap().unwrap(), 7);
}

/// CN-039: the `Debug` output of a pending task has its number and its name, like that of its
/// future.
#[test]
fn debug_shows_which_task_it_is() {
    let (_clock, executor) = manual(1);
    let task = executor.task().name("report").schedule(ms(1500), || ()).unwrap();
    let id = task.id();
    let shown = format!("{:?}", executor.pending_tasks());
    for part in [&format!("id: {id}"), "name: \"report\"", "delay: 1.5s", "is_periodic: false"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let shown = format!("{task:?}");
    assert!(shown.contains(&id.to_string()) && shown.contains("\"report\""), "{shown}");
}

/// QV-008: removing a task of another executor has no effect.
#[test]
fn a_task_of_another_executor_is_left_alone() {
    let (_clock, executor) = manual(1);
    let (_other_clock, other) = manual(1);
    let own = executor.schedule(LONG, || ()).unwrap();
    let foreign = other.schedule(LONG, || ()).unwrap();
    assert!(!executor.remove(&foreign));
    assert!(!other.remove(&own));
    assert_eq!((executor.pending_count(), other.pending_count()), (1, 1));
    assert!(!own.is_done() && !foreign.is_done());
}

/// QV-010: the future of a removed task completes as removed, the captures are dropped, and waiters
/// are told.
#[test]
fn the_future_of_a_removed_task_ends() {
    let (_clock, executor) = manual(1);
    let drops = Drops::new();
    let token = drops.token();
    let future = executor.schedule(LONG, move || hold(&token)).unwrap();
    assert!(executor.remove(&future));
    assert_eq!(drops.count(), 1);
    assert_cancelled(&future, CancelReason::Removed);

    let token = drops.token();
    let periodic = executor.schedule_at_fixed_rate(LONG, LONG, move || hold(&token)).unwrap();
    assert!(executor.remove(&periodic));
    assert_eq!((drops.count(), executor.pending_count()), (2, 0));
    assert_cancelled(&periodic, CancelReason::Removed);
}

/// A periodic task can be removed between two runs, however often it has run; while it runs it
/// cannot be removed, and runs again.
#[test]
fn a_periodic_task_can_be_removed_between_its_runs() {
    let (clock, executor) = manual(1);
    let numbers = Log::new();
    let log = numbers.clone();
    let periodic = executor.schedule_at_fixed_rate(ms(1), ms(1), move || {
        log.push(current_task().unwrap().run_number());
    });
    let periodic = periodic.unwrap();
    clock.run_for(ms(3));
    assert!(executor.remove(&periodic));
    clock.run_for(ms(3));
    assert_eq!(numbers.entries(), [1, 2, 3]);
    assert_cancelled(&periodic, CancelReason::Removed);
}

/// QV-011: an executor that was shut down and has one pending task terminates when that task is
/// removed.
#[test]
fn removing_the_last_task_ends_an_executor_that_was_shut_down() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let future = executor.schedule(Duration::MAX, || ()).unwrap();
    executor.shutdown();
    assert_eq!(executor.await_termination(ms(1)), Ok(false));
    assert!(executor.remove(&future));
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_cancelled(&future, CancelReason::Removed);
}
