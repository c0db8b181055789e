//! The timeout of a one-shot task: when it expires, its effect on pending and running tasks, and
//! that a task which ends in time leaves nothing behind.

use std::time::Duration;

use punctual::{
    CancelReason, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor as Executor,
    TaskBuilder, TaskError, TaskState, current_task,
};

use crate::{
    support::{Counter, DropToken, Drops, LONG, assert_cancelled, eventually, hold, manual, ms},
    support::{HOUR, occupy},
};

const NANO: Duration = Duration::from_nanos(1);

/// A task that runs until its token is raised, and then until the gate is opened.
struct Endless {
    begun: Counter,
    raised: Counter,
    gate: Counter,
    /// Counts the drops of the closure and of the result.
    drops: Drops,
}

impl Endless {
    fn new() -> Self {
        let (begun, raised, gate) = (Counter::new(), Counter::new(), Counter::new());
        Self { begun, raised, gate, drops: Drops::new() }
    }

    fn body(&self) -> impl FnOnce() -> DropToken + Send + 'static {
        let (begun, raised, gate) = (self.begun.clone(), self.raised.clone(), self.gate.clone());
        let (capture, result) = (self.drops.token(), self.drops.token());
        move || {
            hold(&capture);
            let token = current_task().unwrap().token();
            begun.add();
            token.wait();
            raised.add();
            gate.wait_for(1);
            result
        }
    }
}

fn timed_out<T: std::fmt::Debug + 'static>(future: &ScheduledFuture<T>) {
    assert_cancelled(future, CancelReason::TimedOut);
    let error = future.try_join().unwrap().unwrap_err();
    assert!(error.is_timeout() && error.is_cancelled());
}

/// TO-001, G15: a running task times out exactly at its limit and not a nanosecond before: its
/// token is raised and its future has completed, while the body continues; the result is dropped.
#[test]
fn a_running_task_times_out_at_its_limit() {
    let (clock, executor) = manual(1);
    let endless = Endless::new();
    let future = executor.task().timeout(ms(5)).submit(endless.body()).unwrap();
    endless.begun.wait_for(1);
    clock.advance(ms(5) - NANO);
    clock.run_until_idle();
    assert_eq!((future.state(), endless.raised.get()), (TaskState::Running, 0));
    clock.advance(NANO);
    endless.raised.wait_for(1);
    timed_out(&future);
    assert!(!future.cancel());
    assert_eq!((executor.active_count(), endless.drops.count()), (1, 0));
    endless.gate.add();
    clock.run_until_idle();
    assert_eq!(endless.drops.count(), 2);
    let now = executor.statistics();
    assert_eq!((now.active, now.cancelled, now.completed, now.runs), (0, 1, 0, 1));
}

/// TO-001: the same holds on the system clock, with the shortest of all timeouts.
#[test]
fn the_shortest_timeout_strikes() {
    let executor = Executor::new(1);
    let endless = Endless::new();
    let future = executor.task().timeout(NANO).submit(endless.body()).unwrap();
    let outcome = future.join_within(LONG).expect("it ends");
    assert!(matches!(outcome, Err(TaskError::Cancelled(CancelReason::TimedOut))));
    endless.gate.add();
    executor.close().unwrap();
    assert_eq!(endless.drops.count(), 2);
}

/// A timeout counts from the time at which the task is due, however it was scheduled; a time in the
/// past counts as now.
#[test]
fn a_timeout_counts_from_the_due_time() {
    type Schedule = fn(TaskBuilder<'_>, &ManualClock) -> ScheduledFuture<()>;
    let schedules: [(Schedule, Duration); 3] = [
        (|task, _| task.schedule(ms(10), wait_for_token).unwrap(), ms(15)),
        (|task, clock| task.schedule_at(clock.now() + ms(20), wait_for_token).unwrap(), ms(25)),
        (|task, clock| task.schedule_at(clock.now() - ms(20), wait_for_token).unwrap(), ms(5)),
    ];
    for (schedule, moment) in schedules {
        let clock = ManualClock::starting_at(HOUR);
        let builder = Executor::builder().core_pool_size(1).clock(clock.clone());
        let executor = builder.build().unwrap();
        let future = schedule(executor.task().timeout(ms(5)), &clock);
        clock.run_for(moment - NANO);
        assert_eq!(future.state(), TaskState::Running);
        clock.run_for(NANO);
        timed_out(&future);
    }
}

fn wait_for_token() {
    current_task().unwrap().token().wait();
}

/// The time that a task waits for a worker counts. If the limit expires meanwhile, the task never
/// runs, its closure is dropped and it leaves the queue, although the only worker is busy all the
/// time.
#[test]
fn a_waiting_task_is_struck() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let drops = Drops::new();
    let token = drops.token();
    let body = move || {
        hold(&token);
        panic!("it ran");
    };
    let future = executor.task().timeout(ms(5)).schedule(ms(10), body).unwrap();
    clock.advance(ms(15) - NANO);
    assert_eq!((executor.pending_count(), future.state()), (1, TaskState::Scheduled));
    clock.advance(NANO);
    future.wait().unwrap();
    timed_out::<()>(&future);
    eventually("it leaves the queue", || executor.pending_count() == 0);
    assert_eq!(drops.count(), 1);
    gate.add();
    clock.run_until_idle();
    let now = executor.statistics();
    assert_eq!((now.submitted, now.completed, now.cancelled, now.runs), (2, 1, 1, 1));
}

/// The result, or the value that the caller substitutes for it if the task was timed out.
fn join_or<T: 'static>(future: &ScheduledFuture<T>, value: T) -> T {
    match future.try_join().expect("it has ended") {
        Ok(result) => result,
        Err(error) if error.is_timeout() => value,
        Err(error) => panic!("{error}"),
    }
}

/// TO-002: a caller can substitute a value for the result of a task that was timed out, whether the
/// task was pending or running, because its future reports the timeout; a task that ends in time
/// has its own result. The unused one of the two is dropped.
#[test]
fn a_value_stands_in_for_the_result() {
    let (clock, executor) = manual(1);
    let (given, own) = (Drops::new(), Drops::new());
    let result = own.token();
    let in_time = executor.task().timeout(ms(5)).submit(move || result).unwrap();
    clock.run_until_idle();
    assert_eq!((in_time.state(), own.count()), (TaskState::Completed, 0));
    drop(join_or(&in_time, given.token()));
    assert_eq!((given.count(), own.count()), (1, 1));

    let endless = Endless::new();
    let task = executor.task().timeout(ms(5));
    let runs = task.schedule(ms(5), endless.body()).unwrap();
    let result = own.token();
    let waits = executor.task().timeout(ms(6)).schedule(ms(5), move || result).unwrap();
    clock.advance(ms(5));
    endless.begun.wait_for(1);
    clock.advance(ms(5));
    endless.raised.wait_for(1);
    clock.advance(ms(1));
    waits.wait().unwrap();
    for future in [&runs, &waits] {
        assert_eq!(future.state(), TaskState::Cancelled);
        drop(join_or(future, given.token()));
    }
    // Another thread completed the future before it dropped the closure.
    eventually("the closure is dropped", || own.count() == 2);
    assert_eq!(given.count(), 3);
    endless.gate.add();
    clock.run_until_idle();
    assert_eq!(endless.drops.count(), 2);
}

/// A task whose result no call can take, because its future has been dropped, is timed out like any
/// other, and its captures are dropped, although a handle of the task is kept.
#[test]
fn a_task_that_cannot_be_claimed_is_timed_out() {
    for is_running in [false, true] {
        let (clock, executor) = manual(1);
        let gate = occupy(&executor);
        let task = executor.task().timeout(ms(5));
        let endless = Endless::new();
        let future = task.submit(endless.body()).unwrap();
        if is_running {
            gate.add();
            endless.begun.wait_for(1);
        }
        let handle = future.task_handle();
        drop(future);
        clock.advance(ms(5));
        eventually("it ends", || handle.is_done());
        gate.add();
        endless.gate.add();
        eventually("what it had is dropped", || endless.drops.count() == 2);
        assert_eq!(handle.state(), TaskState::Cancelled);
    }
}

/// TO-004: a task that ends in time, in whichever way, leaves nothing behind: neither a timeout for
/// which a thread would wake, nor a reference to closure or result.
#[test]
fn a_task_that_ends_in_time_leaves_nothing() {
    type End = fn(&ManualClock, &Executor, &ScheduledFuture<DropToken>);
    let ends: [(&str, End); 4] = [
        ("run", |clock, _, _| clock.run_for(ms(10))),
        ("cancelled", |_, _, future| assert!(future.cancel())),
        ("removed", |_, executor, future| assert!(executor.remove(future))),
        ("run late", |clock, executor, _| {
            let gate = occupy(executor);
            clock.advance(ms(15) - NANO);
            gate.add();
            clock.run_until_idle();
        }),
    ];
    for (how, end) in ends {
        let (clock, executor) = manual(1);
        let drops = Drops::new();
        let (capture, result) = (drops.token(), drops.token());
        let body = move || {
            hold(&capture);
            result
        };
        let task = executor.task().timeout(ms(5));
        let future = task.schedule(ms(10), body).unwrap();
        end(&clock, &executor, &future);
        assert!(future.is_done(), "{how}");
        assert_eq!(clock.advance_to_next_deadline(), None, "{how}");
        assert_eq!(clock.next_deadline(), None, "{how}");
        drop(future);
        assert_eq!(drops.count(), 2, "{how}");
    }
}

/// A panic in time leaves nothing behind either, and is in the future.
#[test]
fn a_panic_in_time_leaves_nothing() {
    let (clock, executor) = manual(1);
    let future = executor.task().timeout(ms(5)).submit(|| panic!("no")).unwrap();
    clock.run_until_idle();
    assert_eq!(future.state(), TaskState::Failed);
    assert_eq!(clock.advance_to_next_deadline(), None);
    clock.advance(ms(5));
    clock.run_until_idle();
    assert_eq!(future.state(), TaskState::Failed);
    let _: Result<(), TaskError> = future.try_join().unwrap();
}

/// TO-003: the value that stands in for the result of a fallible task may be an `Err`.
#[test]
fn a_failure_can_stand_in_for_the_result() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let task = executor.task().timeout(ms(5));
    let future = task.submit(|| Ok::<_, &str>(7)).unwrap();
    clock.advance(ms(5));
    future.wait().unwrap();
    assert_eq!(join_or(&future, Err("too late")), Err("too late"));
    gate.add();
}

/// A body that panics after its timeout changes nothing.
#[test]
fn the_result_of_a_timed_out_body_is_ignored() {
    let (clock, executor) = manual(1);
    let begun = Counter::new();
    let count = begun.clone();
    let future = executor
        .task()
        .timeout(ms(5))
        .submit(move || {
            let token = current_task().unwrap().token();
            count.add();
            token.wait();
            panic!("too late");
        })
        .unwrap();
    begun.wait_for(1);
    clock.advance(ms(5));
    clock.run_until_idle();
    timed_out::<()>(&future);
    assert_eq!(executor.statistics().failed, 0);
}

/// With a limit of zero a task times out as soon as it is due, unless it has ended before; with
/// `Duration::MAX`, or if it is never due, it never times out.
#[test]
fn the_extremes_of_time() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let none = executor.task().timeout(Duration::ZERO).schedule(ms(1), || ()).unwrap();
    let all = executor.task().timeout(Duration::MAX).schedule(ms(1), || 7).unwrap();
    let never = executor.task().timeout(ms(1)).schedule(Duration::MAX, || ()).unwrap();
    let both = executor.task().timeout(Duration::MAX).schedule(Duration::MAX, || ()).unwrap();
    clock.advance(ms(1));
    none.wait().unwrap();
    timed_out(&none);
    clock.advance(Duration::from_secs(1 << 33));
    gate.add();
    clock.run_until_idle();
    assert_eq!(all.try_join().unwrap().unwrap(), 7);
    assert_eq!([never.state(), both.state()], [TaskState::Scheduled; 2]);
    assert_eq!(clock.next_deadline(), None);
}
