//! Every way to stop an executor, and its effect on tasks in every situation.
//!
//! The table is that of the documentation of `ScheduledThreadPoolExecutor`. Time stands still until
//! a way has taken effect, so "due" and "not yet due" are exact.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use punctual::{
    CancelReason::{self, ExecutorDropped, Shutdown, ShutdownNow},
    CancellationToken, DropPolicy, Handle, ManualClock, RejectedExecutionError, RejectionReason,
    ScheduledFuture, ScheduledThreadPoolExecutor, TaskState, current_task,
};

use crate::support::{
    Bomb, Counter, Drops, LONG, assert_cancelled, assert_terminated, elsewhere, eventually,
    manual_with, ms,
};

const SECOND: Duration = ms(1000);

struct Way {
    name: &'static str,
    stop: fn(ScheduledThreadPoolExecutor),
    /// The drop policy that the builder sets.
    on_drop: DropPolicy,
    /// Whether the call returns only when the executor has terminated.
    waits: bool,
    /// The fate of a one-shot task that is due, and of one that is not: `Ok` if it runs.
    due: Result<(), CancelReason>,
    later: Result<(), CancelReason>,
    /// How often a due periodic task still runs.
    periodic_runs: usize,
    /// The reason for which a periodic task that is not due is cancelled.
    periodic: CancelReason,
}

const WAYS: [Way; 17] = [
    Way::as_drop("drop", true, drop),
    Way::as_drop("shutdown_background", false, ScheduledThreadPoolExecutor::shutdown_background),
    Way::as_close("close", true, |executor| executor.close().unwrap()),
    Way::as_close("close_within, not raised", true, |executor| {
        executor.close_within(CancellationToken::new()).unwrap();
    }),
    Way::as_close("close_background", false, ScheduledThreadPoolExecutor::close_background),
    Way {
        later: Err(ExecutorDropped),
        ..Way::as_close("shutdown, and drop", true, |executor| executor.shutdown())
    },
    Way::as_shutdown_now("shutdown_now, and drop", true, |executor| {
        drop(executor.shutdown_now());
    }),
    Way::as_shutdown_now("shutdown_now, and close", true, |executor| {
        drop(executor.shutdown_now());
        executor.close().unwrap();
    }),
    Way {
        // The executor is shut down by its policies before the call checks the token.
        periodic: Shutdown,
        ..Way::as_shutdown_now("close_within, raised", true, |executor| {
            let raised = CancellationToken::new();
            raised.cancel();
            executor.close_within(&raised).unwrap();
        })
    },
    Way::as_shutdown_now("drop in a panic", false, drop_in_a_panic),
    Way::as_drop("drop as told", true, drop).told(DropPolicy::Stop),
    Way::as_drop("drop in the background", false, drop).told(DropPolicy::ShutdownBackground),
    Way::as_close("drop as close", true, drop).told(DropPolicy::Close),
    Way::as_close("shutdown, and drop as close", true, |executor| executor.shutdown())
        .told(DropPolicy::Close),
    Way::as_shutdown_now("drop as shutdown_now", false, drop).told(DropPolicy::ShutdownNow),
    Way::as_shutdown_now("drop as close, in a panic", false, drop_in_a_panic)
        .told(DropPolicy::Close),
    // The drop does not override an explicit call.
    Way::as_close("close, and not shutdown_now", true, |executor| executor.close().unwrap())
        .told(DropPolicy::ShutdownNow),
];

impl Way {
    const fn as_drop(
        name: &'static str,
        waits: bool,
        stop: fn(ScheduledThreadPoolExecutor),
    ) -> Self {
        Self {
            name,
            stop,
            on_drop: DropPolicy::Stop,
            waits,
            due: Ok(()),
            later: Err(ExecutorDropped),
            periodic_runs: 1,
            periodic: ExecutorDropped,
        }
    }

    const fn as_close(
        name: &'static str,
        waits: bool,
        stop: fn(ScheduledThreadPoolExecutor),
    ) -> Self {
        Self {
            name,
            stop,
            on_drop: DropPolicy::Stop,
            waits,
            due: Ok(()),
            later: Ok(()),
            periodic_runs: 0,
            periodic: Shutdown,
        }
    }

    const fn told(self, on_drop: DropPolicy) -> Self {
        Self { on_drop, ..self }
    }

    const fn as_shutdown_now(
        name: &'static str,
        waits: bool,
        stop: fn(ScheduledThreadPoolExecutor),
    ) -> Self {
        Self {
            name,
            stop,
            on_drop: DropPolicy::Stop,
            waits,
            due: Err(ShutdownNow),
            later: Err(ShutdownNow),
            periodic_runs: 0,
            periodic: ShutdownNow,
        }
    }
}

fn drop_in_a_panic(executor: ScheduledThreadPoolExecutor) {
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _owner = executor;
        resume_unwind(Box::new("planted"));
    }));
    assert!(unwound.is_err());
}

/// The bodies of the tasks, each with a capture that counts its drop.
#[derive(Clone, Default)]
struct Bodies {
    begun: Counter,
    gate: Counter,
    runs: Counter,
    drops: Drops,
}

impl Bodies {
    fn blocking(&self) -> Box<dyn FnMut() + Send> {
        let (Self { begun, gate, .. }, token) = (self.clone(), self.drops.token());
        Box::new(move || {
            let _captured = &token;
            begun.add();
            gate.wait_for(1);
        })
    }

    fn counting(&self) -> Box<dyn FnMut() + Send> {
        let (runs, token) = (self.runs.clone(), self.drops.token());
        Box::new(move || {
            let _captured = &token;
            runs.add();
        })
    }

    fn plain(&self) -> impl FnOnce() + Send + use<> {
        let token = self.drops.token();
        move || drop(token)
    }
}

/// Two workers, blocked by one task of each kind, and tasks of each kind behind them.
struct Scene {
    clock: ManualClock,
    handle: Handle,
    bodies: Bodies,
    /// Returns whether it has been asked to stop.
    running: ScheduledFuture<bool>,
    running_periodic: ScheduledFuture<()>,
    due: ScheduledFuture<()>,
    due_periodic: ScheduledFuture<()>,
    later: ScheduledFuture<()>,
    later_periodic: ScheduledFuture<()>,
}

impl Scene {
    const TASKS: usize = 6;

    fn new(on_drop: DropPolicy) -> (Self, ScheduledThreadPoolExecutor) {
        let (clock, executor) = manual_with(|builder| builder.core_pool_size(2).on_drop(on_drop));
        let bodies = Bodies::default();
        let mut block = bodies.blocking();
        let running = move || {
            block();
            current_task().expect("in a task").token().is_cancelled()
        };
        let every = |delay, body| executor.schedule_at_fixed_rate(delay, SECOND, body).unwrap();
        let scene = Self {
            running: executor.submit(running).unwrap(),
            running_periodic: every(Duration::ZERO, bodies.blocking()),
            due: executor.submit(bodies.plain()).unwrap(),
            due_periodic: every(Duration::ZERO, bodies.counting()),
            later: executor.schedule(SECOND, bodies.plain()).unwrap(),
            later_periodic: every(SECOND, bodies.counting()),
            handle: executor.handle(),
            clock,
            bodies,
        };
        scene.bodies.begun.wait_for(2);
        (scene, executor)
    }

    /// Returns `true` if the way has had its effects on pending tasks, which it has while the
    /// workers are blocked.
    fn is_stopped(&self, way: &Way) -> bool {
        self.later_periodic.is_done()
            && self.due.is_done() == way.due.is_err()
            && self.later.is_done() == way.later.is_err()
    }

    /// Lets the workers continue, and time advance.
    fn release(&self) {
        self.bodies.gate.add();
        eventually("it terminates", || {
            self.clock.advance(SECOND);
            self.handle.is_terminated()
        });
    }

    fn check(&self, way: &Way) {
        assert_terminated(&self.handle);
        assert_eq!(self.bodies.drops.count(), Self::TASKS);
        let is_told = way.due.is_err();
        assert!(matches!(self.running.try_join(), Some(Ok(told)) if told == is_told));
        assert_eq!(self.running_periodic.state(), TaskState::Cancelled);
        assert_ended(&self.due, way.due);
        assert_ended(&self.later, way.later);
        assert_eq!(self.due_periodic.state(), TaskState::Cancelled);
        assert_eq!(self.bodies.runs.get(), way.periodic_runs);
        assert_cancelled(&self.later_periodic, way.periodic);
    }
}

fn assert_ended(future: &ScheduledFuture<()>, expected: Result<(), CancelReason>) {
    match expected {
        Ok(()) => assert!(matches!(future.try_join(), Some(Ok(())))),
        Err(reason) => assert_cancelled(future, reason),
    }
}

/// Each way to stop treats running, due, future and periodic tasks as the table in the
/// documentation says, waits for the threads or not as it says, and leaves no closure behind.
#[test]
fn each_way_to_stop_keeps_its_line_of_the_table() {
    for way in &WAYS {
        // This is shown if the test fails: the last line is the way that failed.
        println!("{}", way.name);
        let (scene, executor) = Scene::new(way.on_drop);
        let (handle, stop) = (scene.handle.clone(), way.stop);
        let stopping = elsewhere(move || {
            stop(executor);
            handle.is_terminated()
        });
        if way.waits {
            eventually("it is stopped", || scene.is_stopped(way));
            scene.release();
            assert!(stopping.get(), "it has waited");
        } else {
            assert!(!stopping.get(), "it has not waited");
            assert!(scene.is_stopped(way));
            scene.release();
        }
        scene.check(way);
    }
}

/// A periodic task that runs while its executor is dropped ends with `ExecutorDropped` as its
/// reason.
#[test]
fn a_running_periodic_task_ends_with_the_reason_of_the_drop() {
    let (scene, executor) = Scene::new(DropPolicy::Stop);
    executor.shutdown_background();
    scene.release();
    assert_cancelled(&scene.running_periodic, ExecutorDropped);
}

/// On one of the executor's own workers no drop waits, whatever its policy; the tasks that the drop
/// keeps still run, and the executor terminates by itself.
#[test]
fn no_drop_waits_on_an_own_worker() {
    for (on_drop, later) in [
        (DropPolicy::Stop, Err(ExecutorDropped)),
        (DropPolicy::ShutdownBackground, Err(ExecutorDropped)),
        (DropPolicy::Close, Ok(())),
        (DropPolicy::ShutdownNow, Err(ShutdownNow)),
    ] {
        let (clock, executor) = manual_with(|builder| builder.on_drop(on_drop));
        let handle = executor.handle();
        let planned = handle.schedule(SECOND, || ()).unwrap();
        let dropping = handle.submit(move || drop(executor)).unwrap();
        assert!(dropping.join_within(LONG).unwrap().is_ok(), "{on_drop:?}");
        clock.run_for(SECOND);
        assert_eq!(handle.await_termination(LONG), Ok(true), "{on_drop:?}");
        assert_terminated(&handle);
        assert_ended(&planned, later);
    }
}

/// A closure that panics while it is dropped, because a panic drops its executor, does not abort
/// the process.
#[test]
fn a_capture_may_panic_while_its_executor_is_dropped_in_a_panic() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let drops = Drops::new();
    let (bomb, token) = (Bomb("planted in a capture"), drops.token());
    let futures = [
        executor.schedule(LONG, move || drop(bomb)).unwrap(),
        executor.schedule(LONG, move || drop(token)).unwrap(),
    ];
    drop_in_a_panic(executor);
    assert_eq!(drops.count(), 1);
    for future in &futures {
        assert_cancelled(future, ShutdownNow);
    }
}

/// An outside action on an executor and its two tasks.
type Stop = fn(&Handle, &[ScheduledFuture<()>; 2]);

/// Stops an executor whose only owners are two of its own pending tasks, and waits for its
/// termination.
fn stop_what_its_own_task_owns(stop: Stop) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    let owner = Arc::new(executor);
    let (first, second) = (Arc::clone(&owner), owner);
    let futures = [
        handle.schedule(LONG, move || drop(first)).unwrap(),
        handle
            .schedule_at_fixed_rate(LONG, LONG, move || {
                let _owner = &second;
            })
            .unwrap(),
    ];
    let stopped = handle.clone();
    elsewhere(move || stop(&stopped, &futures)).get();
    assert_eq!(handle.await_termination(LONG), Ok(true));
    assert_terminated(&handle);
}

/// An executor that its own tasks keep alive stops when they are cancelled or drained.
#[test]
fn an_executor_that_its_own_tasks_own_goes_with_them() {
    let stops: [Stop; 2] = [
        |_, futures| futures.iter().for_each(|future| assert!(future.cancel())),
        |handle, _| drop(handle.shutdown_now()),
    ];
    stops.into_iter().for_each(stop_what_its_own_task_owns);
}

/// A shutdown that cancels the very tasks that own the executor does not wait for itself.
#[test]
fn a_shutdown_may_cancel_the_tasks_that_own_the_executor() {
    stop_what_its_own_task_owns(|handle, _| {
        handle.set_executes_existing_delayed_tasks_after_shutdown(false);
        handle.shutdown();
    });
}

/// A policy that is switched off after a shutdown may cancel the last task that owns the executor.
#[test]
fn a_policy_may_cancel_the_tasks_that_own_the_executor() {
    stop_what_its_own_task_owns(|handle, _| {
        handle.shutdown();
        handle.set_executes_existing_delayed_tasks_after_shutdown(false);
    });
}

/// A handle outlives its executor: each method is refused as after a shutdown, and returns the
/// task.
#[test]
fn a_handle_that_outlives_its_executor_refuses_and_gives_the_closure_back() {
    type Try = fn(&Handle, Closure) -> Result<(), RejectedExecutionError>;
    type Closure = Box<dyn FnMut() + Send>;
    let tries: [Try; 6] = [
        |on, closure| on.task().execute(closure),
        |on, closure| on.task().submit(closure).map(drop),
        |on, closure| on.task().schedule(SECOND, closure).map(drop),
        |on, closure| on.task().schedule_at(Instant::now(), closure).map(drop),
        |on, closure| {
            let tried = on.task().schedule_at_fixed_rate(SECOND, SECOND, closure);
            tried.map(drop)
        },
        |on, closure| {
            let tried = on.task().schedule_with_fixed_delay(SECOND, SECOND, closure);
            tried.map(drop)
        },
    ];
    for (attempt, was_used) in tries.into_iter().flat_map(|t| [(t, false), (t, true)]) {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let handle = executor.handle();
        if was_used {
            executor.execute(|| ()).unwrap();
        }
        drop(executor);
        let runs = Counter::new();
        let counted = runs.clone();
        let refused = attempt(&handle, Box::new(move || counted.add()));
        let refused = refused.expect_err("the executor is gone");
        assert!(matches!(refused.reason(), RejectionReason::Shutdown));
        assert_eq!(runs.get(), 0);
        refused.into_task().run();
        assert_eq!(runs.get(), 1);
        assert_terminated(&handle);
    }
}

/// A refused closure is dropped with the error that owns it, and not before.
#[test]
fn a_refused_closure_that_is_not_given_back_is_dropped() {
    type Verb = fn(&Handle, Closure) -> Result<(), RejectedExecutionError>;
    type Closure = Box<dyn FnMut() + Send>;
    let verbs: [Verb; 6] = [
        |on, closure| on.execute(closure),
        |on, closure| on.submit(closure).map(drop),
        |on, closure| on.schedule(SECOND, closure).map(drop),
        |on, closure| on.schedule_at(Instant::now(), closure).map(drop),
        |on, closure| on.schedule_at_fixed_rate(SECOND, SECOND, closure).map(drop),
        |on, closure| on.schedule_with_fixed_delay(SECOND, SECOND, closure).map(drop),
    ];
    let handle = ScheduledThreadPoolExecutor::new(1).handle();
    for verb in verbs {
        let drops = Drops::new();
        let token = drops.token();
        let refused = verb(&handle, Box::new(move || _ = &token));
        assert!(
            matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
        );
        assert_eq!(drops.count(), 0);
        drop(refused);
        assert_eq!(drops.count(), 1);
    }
}

/// An executor that a thread-local owns is dropped with its thread, whatever was torn down before.
#[test]
fn an_executor_can_be_dropped_while_its_thread_is_torn_down() {
    thread_local! {
        static EARLY: RefCell<Option<ScheduledThreadPoolExecutor>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<ScheduledThreadPoolExecutor>> = const { RefCell::new(None) };
    }
    let (first, second) =
        (ScheduledThreadPoolExecutor::new(1), ScheduledThreadPoolExecutor::new(1));
    let handles = [first.handle(), second.handle()];
    handles.iter().for_each(|handle| handle.execute(|| ()).unwrap());
    let thread = thread::spawn(move || {
        EARLY.set(Some(first));
        // The crate's own thread-locals are dropped between the two.
        drop(ScheduledThreadPoolExecutor::new(1));
        LATE.set(Some(second));
    });
    thread.join().unwrap();
    handles.iter().for_each(assert_terminated);
}
