//! Sets of futures, joined and cancelled together.

use std::{sync::mpsc, time::Duration};

use punctual::{
    CancelReason, CancellationToken, Handle, ScheduledFuture, ScheduledThreadPoolExecutor,
    TaskError, TaskSet, current_task,
};

use crate::{
    support::{Counter, LONG, assert_cancelled, elsewhere, eventually, manual, ms, receive},
    support::{Outcome, throw},
};

/// A set of tasks that return 0, 1, 2 …, each when its delay has passed.
fn due_in(executor: &Handle, delays: &[u64]) -> TaskSet<i32> {
    let task =
        |(delay, number): (&u64, i32)| executor.schedule(ms(*delay), move || number).unwrap();
    delays.iter().zip(0..).map(task).collect()
}

fn outcomes(results: Vec<Result<i32, TaskError>>) -> Vec<Outcome> {
    results.into_iter().map(Outcome::from).collect()
}

fn values(results: Vec<Result<i32, TaskError>>) -> Vec<i32> {
    results.into_iter().map(Result::unwrap).collect()
}

/// The results come in the order of pushing, in whichever order the tasks end, and from whichever
/// executors; each is the result of its task.
#[test]
fn a_set_is_joined_in_order() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let other = ScheduledThreadPoolExecutor::new(1);
    let mut set = due_in(&executor, &[8, 4, 0]);
    set.push(other.submit(|| throw(13)).unwrap());
    let cancelled = other.schedule(LONG, || 7).unwrap();
    assert!(cancelled.cancel());
    set.extend([cancelled, other.submit(|| 7).unwrap()]);
    assert_eq!(set.len(), 6);
    assert!(set.iter().zip(&set).all(|(one, same)| one.id() == same.id()));
    use Outcome::{Cancelled, Panicked, Value};
    let expected = [Value(0), Value(1), Value(2), Panicked(13), Cancelled, Value(7)];
    assert_eq!(outcomes(set.join_all()), expected);
}

/// An empty set is done at once, whichever way it is waited for.
#[test]
fn an_empty_set_is_done() {
    let mut set = TaskSet::<i32>::default();
    assert!(set.is_empty() && set.is_done());
    assert_eq!((set.cancel_all(), set.cancel_and_signal_all()), (0, 0));
    assert!(set.join_all_within(Duration::MAX).unwrap().is_empty());
    assert!(set.join_all_within(CancellationToken::new()).unwrap().is_empty());
    assert!(set.join_all().is_empty());
}

/// A wait that reaches its limit, and not before, takes nothing; one that sees all tasks end takes
/// all results.
#[test]
fn a_timed_wait_takes_all_or_nothing() {
    let (clock, executor) = manual(1);
    let mut set = due_in(&executor, &[30, 10]);
    clock.run_for(ms(15));
    assert!(set.join_all_within(Duration::ZERO).is_none());
    let call = elsewhere(move || (set.join_all_within(ms(10)).is_none(), set));
    eventually("the call waits", || clock.next_deadline() == Some(ms(10)));
    clock.run_for(ms(9));
    eventually("the call still waits", || clock.next_deadline() == Some(ms(1)));
    clock.run_for(ms(1));
    let (gave_up, mut set) = call.get();
    assert!(gave_up && !set.is_done());
    assert_eq!(set.len(), 2);
    let call = elsewhere(move || (set.join_all_within(ms(6)), set.len()));
    clock.run_for(ms(5));
    let (results, left) = call.get();
    assert_eq!((values(results.unwrap()), left), (vec![0, 1], 0));
}

/// The limit counts from the call, on the clock of each future's own executor.
#[test]
fn each_future_is_timed_by_its_own_clock() {
    let ((early, one), (late, other)) = (manual(1), manual(1));
    late.advance(LONG);
    let mut set = due_in(&one, &[10]);
    set.extend(due_in(&other, &[30]));
    let call = elsewhere(move || (set.join_all_within(ms(20)).is_none(), set));
    early.run_for(ms(10));
    eventually("the call waits", || late.next_deadline() == Some(ms(20)));
    late.run_for(ms(20));
    let (gave_up, mut set) = call.get();
    assert!(gave_up);
    late.run_for(ms(10));
    assert_eq!(values(set.join_all_within(Duration::ZERO).unwrap()), [0, 0]);
}

/// A raised token ends a wait and takes nothing, unless all have ended.
#[test]
fn a_token_ends_a_wait() {
    let (clock, executor) = manual(1);
    let mut set = due_in(&executor, &[20, 10]);
    clock.run_for(ms(10));
    let token = CancellationToken::new();
    let raised = token.clone();
    let call = elsewhere(move || (set.join_all_within(&token).is_none(), set));
    raised.cancel();
    let (gave_up, mut set) = call.get();
    assert!(gave_up && set.len() == 2);
    assert!(set.join_all_within(&raised).is_none());
    clock.run_for(ms(10));
    assert_eq!(values(set.join_all_within(&raised).unwrap()), [0, 1]);
    assert!(set.is_empty());
}

/// All tasks that have not ended are cancelled together, and running ones are asked to stop if that
/// is wanted.
#[test]
fn a_set_is_cancelled_as_one() {
    for signal in [false, true] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let (begun, gate) = (Counter::new(), Counter::new());
        let (begins, opened) = (begun.clone(), gate.clone());
        let (tell, told) = mpsc::channel();
        let running = move || {
            begins.add();
            opened.wait_for(1);
            tell.send(current_task().unwrap().token().is_cancelled()).unwrap();
            1
        };
        let mut set = TaskSet::from_iter([executor.submit(|| 0).unwrap()]);
        set.push(executor.submit(running).unwrap());
        set.push(executor.schedule(LONG, || 2).unwrap());
        begun.wait_for(1);
        assert_eq!(executor.pending_count(), 1);
        let cancelled = if signal { set.cancel_and_signal_all() } else { set.cancel_all() };
        assert_eq!((cancelled, executor.pending_count()), (2, 0));
        assert!(set.is_done());
        assert_eq!(set.cancel_all(), 0);
        gate.add();
        assert_eq!(receive(&told, "it goes on"), signal);
        let [first, second, third] = set.into_iter().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(first.join().unwrap(), 0);
        assert_cancelled(&second, CancelReason::Requested);
        assert_cancelled(&third, CancelReason::Requested);
    }
}

/// Dropping a set detaches its tasks, and dropping guards in its place cancels them.
#[test]
fn only_a_guard_cancels_when_dropped() {
    let (clock, executor) = manual(1);
    let ran = Counter::new();
    let set = || {
        let ran = ran.clone();
        let body = move || ran.add();
        TaskSet::from_iter([executor.schedule(ms(10), body).unwrap()])
    };
    drop(set());
    assert_eq!(executor.pending_count(), 1);
    let guards: Vec<_> = set().into_iter().map(ScheduledFuture::cancel_on_drop).collect();
    assert_eq!((guards.len(), executor.pending_count()), (1, 2));
    drop(guards);
    assert_eq!(executor.pending_count(), 1);
    clock.run_for(ms(10));
    assert_eq!(ran.get(), 1);
}

/// On the last worker each future is refused individually, as it would be alone.
#[test]
fn the_last_worker_does_not_join() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    let task = executor.submit(move || {
        let results = due_in(&handle, &[0, 0]).join_all();
        results.iter().all(|result| matches!(result, Err(TaskError::WouldDeadlock)))
    });
    assert!(task.unwrap().join_within(LONG).unwrap().unwrap());
}
