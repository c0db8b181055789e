//! A task that is ended while its gate is asked, or while it waits to be asked again: its body does not
//! run, and a lease that was given is left.

use std::sync::Arc;

use punctual::{
    CallerRunsPolicy, CancelReason, Grace, ManualClock, RunGate,
    ScheduledThreadPoolExecutor as Executor, TaskHandle, TaskState, current_task,
    gate::{Entry, from_fn},
};

use super::support::{Leases, Seen};
use crate::support::{
    Counter, Drops, Log, assert_cancelled, elsewhere, eventually, hold, manual, manual_with, ms,
};

/// A gate that blocks until it is let go, and a body that must not run.
struct Scene {
    clock: ManualClock,
    executor: Executor,
    leases: Leases,
    asking: Counter,
    go_on: Counter,
    runs: Counter,
    drops: Drops,
}

impl Scene {
    fn new() -> Self {
        let (clock, executor) = manual(1);
        Self::on(clock, executor)
    }

    fn on(clock: ManualClock, executor: Executor) -> Self {
        let (asking, go_on, runs) = (Counter::new(), Counter::new(), Counter::new());
        let leases = Leases::new(&clock);
        Self { clock, executor, leases, asking, go_on, runs, drops: Drops::new() }
    }

    /// Gives a lease, or this answer in its place.
    fn gate(&self, answer: Option<Answer>) -> impl RunGate + use<> {
        let (asking, go_on, leases) =
            (self.asking.clone(), self.go_on.clone(), self.leases.clone());
        from_fn(move |_| {
            asking.add();
            go_on.wait_for(1);
            answer.map_or_else(|| leases.give(), |answer| answer())
        })
    }

    fn body(&self) -> impl Fn() + Send + 'static + use<> {
        let (runs, capture) = (self.runs.clone(), self.drops.token());
        move || {
            hold(&capture);
            runs.add();
        }
    }

    /// Lets the gate go, and checks that nothing has run, and that nothing of the task is left.
    fn assert_not_run(&self, leases: &[(u64, Seen)]) {
        self.go_on.add();
        eventually("the closure is dropped", || self.drops.count() == 1);
        self.clock.run_until_idle();
        self.clock.run_for(ms(1000));
        assert_eq!((self.runs.get(), self.asking.get()), (0, 1));
        assert_eq!(self.leases.seen(), leases);
        let seen = self.executor.statistics();
        assert_eq!((seen.runs, seen.cancelled, seen.active, seen.pending), (0, 1, 0, 0));
    }
}

fn not_run() -> [(u64, Seen); 2] {
    [(1, Seen::Watched), (1, Seen::NotRun(None))]
}

type Answer = fn() -> Entry;
/// An answer, or a lease, and what becomes of the lease.
type Case = (Option<Answer>, Vec<(u64, Seen)>);

/// The possible answers, and the fate of a lease then if the body does not run.
fn answers() -> [Case; 4] {
    let [run, again, skip]: [Answer; 3] = [|| Entry::Run, || Entry::Again(ms(10)), || Entry::Skip];
    let [run, again, skip] = [run, again, skip].map(|answer| (Some(answer), vec![]));
    [(None, not_run().to_vec()), run, again, skip]
}

/// G53, G54, M158, M159: a task that is cancelled while its gate is asked has ended at once, and its body does not
/// run, whatever the gate answers.
#[test]
fn a_task_is_cancelled_while_its_gate_is_asked() {
    for (answer, leases) in answers() {
        let scene = Scene::new();
        let task = scene.executor.task().gate(scene.gate(answer));
        let task = task.submit(scene.body()).unwrap();
        scene.asking.wait_for(1);
        assert_eq!(task.state(), TaskState::Running);
        assert!(task.cancel());
        assert_cancelled(&task, CancelReason::Requested);
        assert_eq!(scene.drops.count(), 0, "the worker has the closure");
        scene.assert_not_run(&leases);

        let scene = Scene::new();
        let task = scene.executor.task().gate(scene.gate(answer));
        let rate = task.schedule_at_fixed_rate(ms(0), ms(10), scene.body()).unwrap();
        scene.asking.wait_for(1);
        let handle = rate.task_handle();
        let waiter = elsewhere(move || handle.cancel_and_wait());
        eventually("it is cancelled", || rate.is_cancelled());
        scene.assert_not_run(&leases);
        assert_eq!(waiter.get(), Ok(true));
    }
}

/// A gate that blocks can be asked to stop, as a body can.
#[test]
fn a_gate_sees_that_its_task_is_cancelled() {
    let (_, executor) = manual(1);
    let asking = Counter::new();
    let begun = asking.clone();
    let gate = from_fn(move |_| {
        let token = current_task().unwrap().token();
        begun.add();
        token.wait();
        Entry::Run
    });
    let runs = Counter::new();
    let noted = runs.clone();
    let task = executor.task().gate(gate).submit(move || noted.add()).unwrap();
    asking.wait_for(1);
    assert_eq!(task.cancel_and_wait(), Ok(true));
    assert_eq!(runs.get(), 0);
}

/// G53, M163: stopping the executor keeps the body from running, and ends the task when the gate has answered.
#[test]
fn an_executor_is_stopped_while_a_gate_is_asked() {
    for (answer, leases) in answers() {
        for is_periodic in [false, true] {
            let scene = Scene::new();
            let task = scene.executor.task().gate(scene.gate(answer));
            let future = if is_periodic {
                task.schedule_at_fixed_rate(ms(0), ms(10), scene.body()).unwrap()
            } else {
                task.submit(scene.body()).unwrap()
            };
            scene.asking.wait_for(1);
            assert_eq!(scene.executor.shutdown_now().len(), 0);
            assert!(!future.is_done());
            scene.assert_not_run(&leases);
            let is_skipped = answer.is_some_and(|it| matches!(it(), Entry::Skip)) && !is_periodic;
            let reason =
                if is_skipped { CancelReason::SkippedByGate } else { CancelReason::ShutdownNow };
            assert_cancelled(&future, reason);
            eventually("the end", || scene.executor.is_terminated());
        }
    }
}

/// G53: a one-shot task whose time is up while its gate is asked has timed out then.
#[test]
fn a_time_limit_expires_while_a_gate_is_asked() {
    for (answer, leases) in answers() {
        let scene = Scene::new();
        let task = scene.executor.task().timeout(ms(10)).gate(scene.gate(answer));
        let task = task.submit(scene.body()).unwrap();
        scene.asking.wait_for(1);
        scene.clock.advance(ms(9));
        assert!(!task.is_done());
        scene.clock.advance(ms(1));
        eventually("its time is up", || task.is_done());
        assert_cancelled(&task, CancelReason::TimedOut);
        scene.assert_not_run(&leases);
        assert_eq!(scene.executor.statistics().timed_out, 1);
    }
}

/// M162: the worker finds that the time is up by itself: the limit comes first, whichever thread is faster.
#[test]
fn a_gate_that_takes_all_the_time_lets_nothing_run() {
    let (clock, executor) = manual(1);
    let (leases, runs) = (Leases::new(&clock), Counter::new());
    for answer in [None, Some((|| Entry::Run) as Answer), Some(|| Entry::Skip)] {
        let (time, given, noted) = (clock.clone(), leases.clone(), runs.clone());
        let gate = from_fn(move |_| {
            time.advance(ms(10));
            answer.map_or_else(|| given.give(), |answer| answer())
        });
        let task = executor.task().timeout(ms(10)).gate(gate).submit(move || noted.add()).unwrap();
        clock.run_until_idle();
        assert_cancelled(&task, CancelReason::TimedOut);
    }
    leases.assert_left_once();
    assert_eq!((runs.get(), executor.statistics().timed_out), (0, 3));
}

/// The token of a series that is raised while its gate is asked calls the series off.
#[test]
fn a_series_is_called_off_while_its_gate_is_asked() {
    let (clock, executor) = manual(1);
    let (leases, runs) = (Leases::new(&clock), Counter::new());
    let given = leases.clone();
    let gate = from_fn(move |tick| {
        if tick.run_number() == 2 {
            current_task().unwrap().token().cancel();
        }
        given.give()
    });
    let noted = runs.clone();
    let body = move || noted.add();
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(10), body).unwrap();
    clock.run_for(ms(50));
    assert_cancelled(&rate, CancelReason::Requested);
    assert_eq!(runs.get(), 1);
    leases.assert_left_once();
}

/// The fate at a graceful shutdown of a task whose gate is to be asked again, or is being asked.
fn after_a_shutdown(is_periodic: bool, keep: bool, is_asked: bool) -> (Option<TaskState>, usize) {
    let (clock, executor) = manual_with(|builder| {
        builder
            .executes_existing_delayed_tasks_after_shutdown(keep && !is_periodic)
            .continues_existing_periodic_tasks_after_shutdown(keep && is_periodic)
    });
    let (asking, go_on, runs) = (Counter::new(), Counter::new(), Counter::new());
    let (begun, wait, noted) = (asking.clone(), go_on.clone(), runs.clone());
    let gate = from_fn(move |tick| {
        begun.add();
        wait.wait_for(1);
        if tick.attempt() == 1 { Entry::Again(ms(10)) } else { Entry::Run }
    });
    let body = move || noted.add();
    let task = executor.task().gate(gate);
    let handle: TaskHandle = if is_periodic {
        task.schedule_at_fixed_rate(ms(0), ms(100), body).unwrap().task_handle()
    } else {
        task.submit(body).unwrap().task_handle()
    };
    asking.wait_for(1);
    if is_asked {
        executor.shutdown();
        go_on.add();
    } else {
        go_on.add();
        eventually("it waits", || executor.pending_count() == 1);
        executor.shutdown();
    }
    clock.run_until_idle();
    let state = (!executor.is_terminated()).then(|| handle.state());
    clock.run_for(ms(50));
    handle.cancel();
    eventually("the end", || executor.is_terminated());
    (state, runs.get())
}

/// M165: a graceful shutdown deals with a task that waits to be asked again as with any that is delayed, and with
/// one whose gate is asked just then in the same way.
#[test]
fn a_shutdown_keeps_what_its_policies_say() {
    for is_periodic in [false, true] {
        for is_asked in [false, true] {
            let after = |keep| after_a_shutdown(is_periodic, keep, is_asked);
            assert_eq!(after(true), (Some(TaskState::Scheduled), 1), "{is_periodic} {is_asked}");
            assert_eq!(after(false), (None, 0), "{is_periodic} {is_asked}");
        }
    }
}

/// The drop of the owner lets what is due run, and a task that waits to be asked again is not due.
#[test]
fn the_drop_of_the_owner_ends_what_waits() {
    let scene = Scene::new();
    let gate = scene.gate(Some(|| Entry::Again(ms(10))));
    let task = scene.executor.task().gate(gate).submit(scene.body()).unwrap();
    scene.asking.wait_for(1);
    let Scene { executor, go_on, runs, drops, .. } = scene;
    let dropping = elsewhere(move || drop(executor));
    crate::support::hold(&drops);
    go_on.add();
    dropping.get();
    let reason = match task.try_join() {
        Some(Err(punctual::TaskError::Cancelled(reason))) => reason,
        outcome => panic!("not cancelled: {outcome:?}"),
    };
    assert_eq!((reason, runs.get()), (CancelReason::ExecutorDropped, 0));
}

/// A run by hand asks no gate: the caller that runs the task has decided.
#[test]
fn a_run_by_hand_asks_nobody() {
    let (clock, executor) = manual(1);
    let (asked, runs) = (Counter::new(), Counter::new());
    let ask = asked.clone();
    let gate: Arc<dyn RunGate> = Arc::new(from_fn(move |_| {
        ask.add();
        Entry::Again(ms(10))
    }));
    let noted = runs.clone();
    let fresh = executor.task().gate(Arc::clone(&gate)).schedule(ms(60), move || noted.add());
    let noted = runs.clone();
    let waits = executor.task().gate(gate).submit(move || noted.add());
    let (fresh, waits) = (fresh.unwrap(), waits.unwrap());
    clock.run_until_idle();
    assert_eq!(asked.get(), 1);
    for task in executor.shutdown_now() {
        task.run();
    }
    assert!(fresh.join().is_ok() && waits.join().is_ok());
    assert_eq!((asked.get(), runs.get()), (1, 2));
}

/// Nor does a task that a handler runs in the thread that submits it.
#[test]
fn a_run_in_the_caller_asks_nobody() {
    let (_, executor) =
        manual_with(|builder| builder.max_pending(1).rejected_execution_handler(CallerRunsPolicy));
    let release = Counter::new();
    let wait = release.clone();
    let busy = executor.submit(move || wait.wait_for(1)).unwrap();
    eventually("it runs", || busy.state() == TaskState::Running);
    let waits = executor.submit(|| ()).unwrap();
    let asked = Log::new();
    let log = asked.clone();
    let gate = from_fn(move |_| {
        log.push(());
        Entry::Skip
    });
    let here = executor.task().gate(gate).submit(|| std::thread::current().id()).unwrap();
    assert_eq!(here.join().unwrap(), std::thread::current().id());
    assert_eq!(asked.entries().len(), 0);
    release.add();
    waits.join().unwrap();
}

/// A report of a shutdown says of a task that its gate has skipped that it was cancelled.
#[test]
fn a_report_names_what_a_gate_has_skipped() {
    let scene = Scene::new();
    let gate = scene.gate(Some(|| Entry::Skip));
    let task = scene.executor.task().name("swept").gate(gate).submit(scene.body()).unwrap();
    scene.asking.wait_for(1);
    let handle = scene.executor.handle();
    let report = elsewhere(move || handle.shutdown_within(Grace::patience(ms(1000))));
    eventually("it is shut down", || scene.executor.is_shutdown());
    scene.go_on.add();
    let report = report.get().unwrap();
    assert!(report.is_terminated && report.ran.is_empty());
    assert_eq!(report.cancelled.iter().map(|one| one.name()).collect::<Vec<_>>(), [Some("swept")]);
    assert_cancelled(&task, CancelReason::SkippedByGate);
}
