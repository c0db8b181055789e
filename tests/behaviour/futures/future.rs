//! The future: what it shows of its task, when it returns the result, which threads it releases,
//! and how a wait is given up.

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{
    CancellationToken, Limit, ScheduledFuture, ScheduledThreadPoolExecutor, TaskError, TaskState,
};

use crate::{
    rounds::rounds,
    support::{Counter, LONG, Log, Outcome, eventually, manual, ms, throw},
};

/// The result of a join that can be given up.
type Answer = Option<Result<i32, TaskError>>;

/// An executor whose tasks can be brought to a state and held there.
struct Stage {
    executor: ScheduledThreadPoolExecutor,
    gate: Counter,
}

const STATES: [TaskState; 5] = [
    TaskState::Scheduled,
    TaskState::Running,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Cancelled,
];

impl Stage {
    fn new() -> Self {
        Self { executor: ScheduledThreadPoolExecutor::new(1), gate: Counter::new() }
    }

    /// The future of a task named "report" in this state; the body of a cancelled one still runs.
    fn task_in(&self, state: TaskState) -> ScheduledFuture<i32> {
        let builder = self.executor.task().name("report");
        let task = match state {
            TaskState::Scheduled => builder.schedule(Duration::MAX, || 7),
            TaskState::Completed => builder.submit(|| 7),
            TaskState::Failed => builder.submit(|| throw(13)),
            _ => return self.running(state == TaskState::Cancelled),
        };
        let task = task.expect("the executor is open");
        if state.is_done() {
            task.wait().expect("this is no worker");
        }
        task
    }

    fn running(&self, cancelled: bool) -> ScheduledFuture<i32> {
        let (begun, opened) = (Counter::new(), self.gate.clone());
        let begins = begun.clone();
        let task = self.executor.task().name("report").submit(move || {
            begins.add();
            opened.wait_for(1);
            7
        });
        let task = task.expect("the executor is open");
        begun.wait_for(1);
        assert!(!cancelled || task.cancel());
        task
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.gate.add();
    }
}

/// FG-001: a task is done once it has run; its value can be taken once, and its state stays.
#[test]
fn a_value_is_there_once_and_the_state_for_ever() {
    let (clock, executor) = manual(1);
    let runs = Counter::new();
    let ran = runs.clone();
    let task = executor.schedule(ms(10), move || {
        ran.add();
        7
    });
    let task = task.expect("the executor is open");
    assert!(!task.is_done() && task.try_join().is_none());
    clock.run_for(ms(10));
    assert!(task.is_done());
    let joins: [fn(&ScheduledFuture<i32>) -> Answer; 3] = [
        ScheduledFuture::try_join,
        |task| task.join_within(Duration::ZERO),
        |task| task.join_within(CancellationToken::new()),
    ];
    let outcomes = joins.map(|join| join(&task).map(Outcome::from));
    assert_eq!(outcomes, [Outcome::Value(7), Outcome::Taken, Outcome::Taken].map(Some));
    assert_eq!(task.state(), TaskState::Completed);
    assert_eq!(Outcome::from(task.join()), Outcome::Taken);
    assert_eq!(runs.get(), 1);
}

/// FG-004: the run releases every joining thread; exactly one of them gets the value.
#[test]
fn every_joining_thread_is_released_and_one_gets_the_value() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for _ in 0..200 {
        let gate = Counter::new();
        let opened = gate.clone();
        let task = executor.submit(move || {
            opened.wait_for(1);
            7
        });
        let task = task.expect("the executor is open");
        let (untimed, mut timed) = thread::scope(|scope| {
            let untimed = scope.spawn(|| task.wait());
            let timed = [(); 2].map(|()| scope.spawn(|| task.join_within(2 * LONG)));
            gate.add();
            (
                untimed.join().expect("no panic"),
                timed.map(|waiter| waiter.join().expect("no panic").map(Outcome::from)),
            )
        });
        assert!(untimed.is_ok());
        timed.sort_by_key(|outcome| *outcome == Some(Outcome::Taken));
        assert_eq!(timed, [Some(Outcome::Value(7)), Some(Outcome::Taken)]);
    }
}

/// FG-006, FG-007: a panic is reported with its payload, both by a timed wait and by others.
#[test]
fn a_panic_is_reported_with_its_payload() {
    let joins: [fn(ScheduledFuture<i32>) -> Answer; 2] =
        [|task| Some(task.join()), |task| task.join_within(LONG)];
    for join in joins {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let runs = Counter::new();
        let ran = runs.clone();
        let task = executor.submit(move || {
            ran.add();
            throw(13)
        });
        let outcome = join(task.expect("the executor is open"));
        assert_eq!(outcome.map(Outcome::from), Some(Outcome::Panicked(13)));
        assert_eq!(runs.get(), 1);
    }
}

/// FG-008: a thread that is about to join, or already joins, gives up when its token is raised, and
/// the task is unaffected.
#[test]
fn a_join_is_given_up_when_its_token_is_raised() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || 7).expect("the executor is open");
    let raised = CancellationToken::new();
    raised.cancel();
    assert!(task.join_within(&raised).is_none());
    for _ in 0..100 {
        let (token, joins) = (CancellationToken::new(), Counter::new());
        thread::scope(|scope| {
            let joiner = scope.spawn(|| {
                joins.add();
                task.join_within(&token).is_none()
            });
            joins.wait_for(1);
            token.cancel();
            assert!(joiner.join().expect("no panic"));
        });
    }
    assert_eq!(task.state(), TaskState::Scheduled);
    clock.run_for(ms(10));
    assert_eq!(Outcome::from(task.join()), Outcome::Value(7));
}

/// A join with a time limit and a token ends at whichever comes first, exactly, and does not affect
/// the task.
#[test]
fn a_join_ends_at_the_first_of_its_limits() {
    for by_token in [false, true] {
        let (clock, executor) = manual(1);
        let task = executor.schedule(LONG, || 7).expect("the executor is open");
        let token = CancellationToken::new();
        let limit = Limit::from(ms(10)).unless(&token);
        thread::scope(|scope| {
            let joiner = scope.spawn(|| task.join_within(limit).is_none());
            eventually("it sleeps", || clock.next_deadline() == Some(ms(10)));
            clock.advance(ms(10) - Duration::from_nanos(1));
            assert!(!joiner.is_finished());
            if by_token {
                token.cancel();
            } else {
                clock.advance(Duration::from_nanos(1));
            }
            assert!(joiner.join().expect("no panic"));
        });
        let expected = if by_token { ms(10) - Duration::from_nanos(1) } else { ms(10) };
        assert_eq!((clock.elapsed(), task.state()), (expected, TaskState::Scheduled));
    }
}

/// FG-009: whatever its limit, a timed join that gives up does not affect the task, and one that
/// finds a value takes it.
#[test]
fn a_timed_join_accepts_every_limit() {
    let (clock, executor) = manual(1);
    for limit in [Duration::ZERO, Duration::from_nanos(1), 2 * LONG, Duration::MAX] {
        let task = executor.schedule(ms(10), || 7).expect("the executor is open");
        assert!(task.join_within(Duration::ZERO).is_none());
        assert_eq!(task.state(), TaskState::Scheduled);
        clock.run_for(ms(10));
        let outcome = task.join_within(limit).map(Outcome::from);
        assert_eq!(outcome, Some(Outcome::Value(7)));
    }
}

/// FG-009: a join with a time and a token ends by whichever comes first, whatever the time is: by a token that is raised
/// before the join or during it. The task is not affected, and its value is there for a join that finds it.
#[test]
fn a_timed_join_with_a_token_accepts_every_limit() {
    let (clock, executor) = manual(1);
    for span in [Duration::ZERO, Duration::from_nanos(1), 2 * LONG, Duration::MAX] {
        let task = executor.schedule(ms(10), || 7).expect("the executor is open");
        let raised = CancellationToken::new();
        raised.cancel();
        let limit = || Limit::from(span).unless(&raised);
        assert!(task.join_within(limit()).is_none());
        let token = CancellationToken::new();
        let within = Limit::from(span.max(ms(1))).unless(&token);
        thread::scope(|scope| {
            let joiner = scope.spawn(|| task.join_within(within).is_none());
            clock.run_until_idle();
            token.cancel();
            clock.advance(Duration::from_nanos(1));
            assert!(joiner.join().expect("no panic"), "{span:?}");
        });
        assert_eq!(task.state(), TaskState::Scheduled);
        clock.run_for(ms(10));
        assert_eq!(task.join_within(limit()).map(Outcome::from), Some(Outcome::Value(7)));
    }
}

/// FG-010: a timed join of a pending or running task gives up, never early, and the task continues.
#[test]
fn a_timed_join_gives_up_and_the_task_goes_on() {
    for state in [TaskState::Scheduled, TaskState::Running] {
        let stage = Stage::new();
        let task = stage.task_in(state);
        let start = Instant::now();
        assert!(task.join_within(ms(12)).is_none());
        assert!(start.elapsed() >= ms(12));
        assert_eq!(task.state(), state);
        if state == TaskState::Running {
            stage.gate.add();
            let outcome = task.join_within(LONG).map(Outcome::from);
            assert_eq!(outcome, Some(Outcome::Value(7)));
        }
    }
}

/// FG-010: on a manual clock a timed join gives up exactly at its limit.
#[test]
fn a_timed_join_counts_the_time_of_the_clock() {
    let (clock, executor) = manual(1);
    let task = executor.schedule(Duration::MAX, || 7).expect("the executor is open");
    let joiner = thread::spawn(move || task.join_within(ms(12)).map(Outcome::from));
    eventually("it joins", || clock.next_deadline() == Some(ms(12)));
    clock.advance(ms(12) - Duration::from_nanos(1));
    assert_eq!(clock.next_deadline(), Some(Duration::from_nanos(1)));
    assert!(!joiner.is_finished());
    clock.advance(Duration::from_nanos(1));
    eventually("it gives up", || joiner.is_finished());
    assert_eq!(joiner.join().expect("no panic"), None);
}

/// FG-014: a future prints its number, its name and its state.
#[test]
fn a_future_prints_its_state() {
    for state in STATES {
        let stage = Stage::new();
        let task = stage.task_in(state);
        let told = format!("{{ id: {}, name: \"report\", state: {state:?}, .. }}", task.id());
        assert_eq!(format!("{task:?}"), format!("ScheduledFuture {told}"));
        assert_eq!(format!("{:?}", task.task_handle()), format!("TaskHandle {told}"));
    }
    let (_clock, executor) = manual(1);
    let task = executor.schedule(ms(10), || ()).expect("the executor is open");
    let told = format!("ScheduledFuture {{ id: {}, state: Scheduled, .. }}", task.id());
    assert_eq!(format!("{task:?}"), told);
}

/// FG-014: an error prints why there is no value, with the message of the panic.
#[test]
fn an_error_prints_its_cause() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let panicked = executor.submit(|| panic::resume_unwind(Box::new("no paper")));
    let cancelled = executor.schedule(Duration::MAX, || ());
    let [panicked, cancelled] = [panicked, cancelled].map(|task| task.expect("it is open"));
    assert!(cancelled.cancel());
    let texts = [panicked, cancelled].map(|task: ScheduledFuture<()>| {
        let error = task.join().expect_err("no value");
        error.to_string()
    });
    assert_eq!(
        texts,
        ["the task panicked: no paper", "the task was cancelled: cancellation was requested"]
    );
}

/// FG-020, FG-021, FG-022, FG-023: in each state the result matches the state, and taking it does
/// not change the state.
#[test]
fn the_result_agrees_with_the_state() {
    for state in STATES {
        let stage = Stage::new();
        let task = stage.task_in(state);
        let expected = match state {
            TaskState::Completed => Some(Outcome::Value(7)),
            TaskState::Failed => Some(Outcome::Panicked(13)),
            TaskState::Cancelled => Some(Outcome::Cancelled),
            _ => None,
        };
        assert_eq!(task.try_join().map(Outcome::from), expected);
        assert_eq!(task.state(), state);
        assert_eq!(task.is_done(), expected.is_some());
        assert_eq!(task.is_cancelled(), state == TaskState::Cancelled);
    }
}

/// FG-021: a task without a value completes like any other.
#[test]
fn a_unit_is_a_value() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let task = executor.submit(|| ()).expect("the executor is open");
    task.wait().expect("this is no worker");
    assert_eq!(task.state(), TaskState::Completed);
    assert!(matches!(task.try_join(), Some(Ok(()))));
}

/// FG-023: a signalled task is cancelled while its body still runs.
#[test]
fn a_signalled_task_is_cancelled_while_it_runs() {
    let stage = Stage::new();
    let task = stage.task_in(TaskState::Running);
    assert!(task.cancel_and_signal());
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(task.try_join().map(Outcome::from), Some(Outcome::Cancelled));
}

/// Lets two threads see a task end, while it ends, and then join it with `join`; returns whether
/// both got a result.
fn both_are_answered(
    executor: &ScheduledThreadPoolExecutor,
    body: fn() -> i32,
    join: fn(&ScheduledFuture<i32>) -> Answer,
) -> bool {
    let gate = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&gate);
    let task = executor.submit(move || {
        eventually("it is seen", || opened.load(Ordering::SeqCst));
        body()
    });
    let task = task.expect("the executor is open");
    thread::scope(|scope| {
        let observe = || {
            gate.store(true, Ordering::SeqCst);
            eventually("it ends", || task.is_done());
            join(&task).is_some()
        };
        let observers = [scope.spawn(observe), scope.spawn(observe)];
        observers.map(|observer| observer.join().expect("no panic")) == [true; 2]
    })
}

/// FG-015, FG-016: a thread that has seen a task done never times out, whether the task has a value
/// or has panicked.
#[test]
fn a_finished_task_does_not_time_out() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for round in 0..1000 {
        let body = [|| 7, || throw(13)][round % 2];
        let join = |task: &ScheduledFuture<_>| task.join_within(Duration::ZERO);
        assert!(both_are_answered(&executor, body, join));
    }
}

/// FG-015: a token that is raised after the task was seen done does not hide its result.
#[test]
fn a_finished_task_is_joined_although_the_token_is_raised() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for _ in 0..1000 {
        let raised_too_late = |task: &ScheduledFuture<_>| {
            let token = CancellationToken::new();
            token.cancel();
            task.join_within(&token)
        };
        assert!(both_are_answered(&executor, || 7, raised_too_late));
    }
}

/// FG-017, G19: a join that races the end of its task always gets the value.
#[test]
fn a_join_that_races_the_end_gets_the_value() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for (round, _) in (0..).zip(rounds("a join that races the end", 10_000)) {
        let task = executor.submit(move || round).expect("the executor is open");
        let outcome = task.join_within(LONG).map(Outcome::from);
        assert_eq!(outcome, Some(Outcome::Value(round)));
    }
}

/// F48, FG-026: a task runs without its future; the task of a guard that is dropped does not.
#[test]
fn a_dropped_future_detaches_and_a_dropped_guard_cancels() {
    let (clock, executor) = manual(1);
    let ran = Log::new();
    let [detached, guarded, freed] = ["detached", "guarded", "freed"].map(|name| {
        let ran = ran.clone();
        let task = executor.schedule(ms(10), move || ran.push(name));
        task.expect("the executor is open")
    });
    drop(detached);
    drop(guarded.cancel_on_drop());
    drop(freed.cancel_on_drop().detach());
    assert_eq!(executor.pending_count(), 2);
    clock.run_for(ms(10));
    assert_eq!(ran.entries(), ["detached", "freed"]);
}
