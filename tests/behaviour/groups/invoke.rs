//! Runs several closures together: all of them, or until one succeeds.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use punctual::{
    CancelReason, CancellationToken, Handle, InvokeError, Limit, ScheduledFuture,
    ScheduledThreadPoolExecutor, TaskError, current_task,
};

use crate::{
    support::{Counter, LONG, assert_cancelled, elsewhere, eventually, in_time, manual, ms},
    support::{Outcome, throw},
};

pub type Body<R> = Box<dyn FnOnce() -> R + Send>;
pub type Tried = Result<i32, i32>;
type All = fn(&Handle, Vec<Body<i32>>) -> Result<Vec<ScheduledFuture<i32>>, InvokeError>;
type Any = fn(&Handle, Vec<Body<Tried>>) -> Result<i32, InvokeError<i32>>;

pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The three forms of each call, none of which ends here by its limit or token.
const ALL: [All; 3] = [
    |handle, bodies| handle.invoke_all(bodies),
    |handle, bodies| handle.invoke_all_within(bodies, LONG),
    |handle, bodies| handle.invoke_all_within(bodies, CancellationToken::new()),
];
const ANY: [Any; 3] = [
    |handle, bodies| handle.invoke_any(bodies),
    |handle, bodies| handle.invoke_any_within(bodies, LONG),
    |handle, bodies| handle.invoke_any_within(bodies, CancellationToken::new()),
];

/// Counts the events of long tasks.
#[derive(Clone, Default)]
pub struct Naps {
    pub begun: Counter,
    pub signalled: Counter,
}

impl Naps {
    /// A body that sleeps this long, unless it is asked to stop, and then returns its result.
    pub fn body<R: Send + 'static>(&self, length: Duration, give: fn() -> R) -> Body<R> {
        let naps = self.clone();
        Box::new(move || {
            let token = current_task().expect("inside a task").token();
            naps.begun.add();
            if token.sleep(length).is_err() {
                naps.signalled.add();
            }
            give()
        })
    }
}

pub fn quick<R: Send + 'static>(give: fn() -> R) -> Body<R> {
    Box::new(give)
}

fn outcomes(futures: Vec<ScheduledFuture<i32>>) -> Vec<Outcome> {
    let outcome = |future: ScheduledFuture<i32>| {
        assert!(future.is_done());
        future.try_join().expect("it is done").into()
    };
    futures.into_iter().map(outcome).collect()
}

/// IV-004: with no tasks, `invoke_any` fails.
#[test]
fn invoke_any_of_nothing_is_an_error() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for invoke_any in ANY {
        assert!(matches!(invoke_any(&executor, Vec::new()), Err(InvokeError::NoTasks)));
    }
}

/// IV-005: if all tasks fail, the failure of the task that ends last is returned, however long it
/// takes; a panic is a failure as well.
#[test]
fn the_last_failure_is_returned() {
    for invoke_any in ANY {
        let (clock, executor) = manual(2);
        let (naps, handle) = (Naps::default(), executor.handle());
        let bodies = vec![quick(|| Err(2)), quick(|| throw(3)), naps.body(ms(50), || Err(1))];
        let call = elsewhere(move || invoke_any(&handle, bodies));
        naps.begun.wait_for(1);
        clock.run_for(ms(50));
        assert!(matches!(call.get(), Err(InvokeError::Failed(1))));

        let last_panics = vec![quick(|| Err(2)), quick(|| throw(3))];
        let (_, single) = manual(1);
        match invoke_any(&single, last_panics) {
            Err(InvokeError::Task(TaskError::Failed(panic))) => {
                assert_eq!(panic.into_payload().downcast_ref(), Some(&3));
            }
            other => panic!("not the panic: {other:?}"),
        }
    }
}

/// IV-006: if several succeed, the value of one of them is returned.
#[test]
fn one_of_several_values_is_given() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    for invoke_any in ANY {
        let value = invoke_any(&executor, vec![quick(|| Ok(1)), quick(|| Ok(2))]).unwrap();
        assert!(value == 1 || value == 2);
    }
}

/// IV-007: the first value ends the call, and every other task that has begun is asked to stop.
#[test]
fn the_first_value_stops_the_others() {
    for invoke_any in ANY {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let naps = Naps::default();
        let (begun, unbegun) = (naps.begun.clone(), Naps::default());
        let first = Box::new(move || {
            begun.wait_for(1);
            Ok(1)
        });
        let bodies = vec![naps.body(DAY, || Ok(2)), first, unbegun.body(DAY, || Ok(3))];
        assert_eq!(invoke_any(&executor, bodies).unwrap(), 1);
        naps.signalled.wait_for(1);
        in_time("close", || executor.close()).unwrap();
        assert_eq!(unbegun.begun.get(), unbegun.signalled.get());
    }
}

/// Once there is a value, further closures are not submitted, because they would run in vain.
#[test]
fn a_value_ends_the_submission() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let more = Counter::new();
    let further = iter::repeat_with(|| {
        more.add();
        // The only worker reaches this when it is done with the first.
        executor.submit(|| ()).unwrap().wait().unwrap();
        quick(|| Err(2))
    });
    let bodies = iter::once(quick(|| Tried::Ok(1))).chain(further.take(100));
    assert_eq!(executor.invoke_any(bodies).unwrap(), 1);
    assert!(more.get() <= 1, "by then the first has ended");
}

/// IV-008: a success is returned even if it comes after a failure, and late.
#[test]
fn a_late_success_outweighs_a_failure() {
    for invoke_any in ANY {
        let (clock, executor) = manual(2);
        let (naps, handle) = (Naps::default(), executor.handle());
        let bodies = vec![quick(|| throw(3)), quick(|| Err(2)), naps.body(ms(50), || Ok(1))];
        let call = elsewhere(move || invoke_any(&handle, bodies));
        naps.begun.wait_for(1);
        clock.run_for(ms(50));
        assert_eq!(call.get().unwrap(), 1);
        assert_eq!(naps.signalled.get(), 0);
    }
}

/// IV-009: when the time is up, and not before, tasks that have begun are asked to stop.
#[test]
fn a_race_is_called_off_in_time() {
    let (clock, executor) = manual(2);
    let (naps, handle) = (Naps::default(), executor.handle());
    let bodies = [1, 2].map(|_| naps.body(DAY, || Tried::Ok(1)));
    let call = elsewhere(move || handle.invoke_any_within(bodies, ms(100)));
    naps.begun.wait_for(2);
    let last = Duration::from_nanos(1);
    clock.run_for(ms(100) - last);
    eventually("the call waits", || clock.next_deadline() == Some(last));
    assert_eq!(naps.signalled.get(), 0);
    clock.run_for(last);
    assert!(matches!(call.get(), Err(InvokeError::TimedOut)));
    naps.signalled.wait_for(2);
}

/// IV-011: with no tasks, `invoke_all` returns no futures.
#[test]
fn all_of_nothing_is_nothing() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for invoke_all in ALL {
        assert!(invoke_all(&executor, Vec::new()).unwrap().is_empty());
    }
}

/// IV-012: a task that fails has a future too, which holds the failure.
#[test]
fn each_failure_is_in_its_own_future() {
    for invoke_all in ALL {
        let (clock, executor) = manual(2);
        let (naps, handle) = (Naps::default(), executor.handle());
        let bodies = vec![naps.body(ms(50), || throw(1)), quick(|| throw(2)), quick(|| throw(3))];
        let call = elsewhere(move || invoke_all(&handle, bodies));
        naps.begun.wait_for(1);
        clock.run_for(ms(50));
        assert_eq!(outcomes(call.get().unwrap()), [1, 2, 3].map(Outcome::Panicked));
    }
}

/// IV-013: the futures are in the order of the closures, in whichever order the tasks end; all are
/// done and have their values.
#[test]
fn all_values_come_in_order() {
    for invoke_all in ALL {
        let (clock, executor) = manual(3);
        let (naps, handle) = (Naps::default(), executor.handle());
        let bodies = vec![naps.body(ms(20), || 1), naps.body(ms(10), || 2), quick(|| 3)];
        let call = elsewhere(move || invoke_all(&handle, bodies));
        naps.begun.wait_for(2);
        clock.run_for(ms(20));
        assert_eq!(outcomes(call.get().unwrap()), [1, 2, 3].map(Outcome::Value));
    }
}

/// IV-014, IV-016: tasks that have not ended when the time is up, and not before, are cancelled and
/// asked to stop; the others have their values.
#[test]
fn tasks_not_done_in_time_are_cancelled() {
    let (clock, executor) = manual(2);
    let (naps, handle) = (Naps::default(), executor.handle());
    let bodies = vec![quick(|| 1), naps.body(DAY, || 2), naps.body(ms(11), || 3)];
    let call = elsewhere(move || handle.invoke_all_within(bodies, ms(12)));
    naps.begun.wait_for(2);
    let last = Duration::from_nanos(1);
    clock.run_for(ms(12) - last);
    eventually("the call waits", || clock.next_deadline() == Some(last));
    assert_eq!(naps.signalled.get(), 0);
    clock.run_for(last);
    let [first, second, third] = call.get().unwrap().try_into().unwrap();
    assert_eq!(first.try_join().unwrap().unwrap(), 1);
    assert_cancelled(&second, CancelReason::Requested);
    assert_eq!(third.try_join().unwrap().unwrap(), 3);
    naps.signalled.wait_for(1);
}

/// IV-015: a task whose turn does not come in time never begins, not even when an earlier one is
/// asked to stop.
#[test]
fn tasks_not_begun_in_time_never_begin() {
    let (clock, executor) = manual(1);
    let (naps, late, handle) = (Naps::default(), Naps::default(), executor.handle());
    let bodies = vec![quick(|| 1), naps.body(ms(13), || 2), late.body(Duration::ZERO, || 3)];
    let call = elsewhere(move || handle.invoke_all_within(bodies, ms(12)));
    naps.begun.wait_for(1);
    clock.run_for(ms(12));
    let expected = [Outcome::Value(1), Outcome::Cancelled, Outcome::Cancelled];
    assert_eq!(outcomes(call.get().unwrap()), expected);
    naps.signalled.wait_for(1);
    clock.run_until_idle();
    assert_eq!(late.begun.get(), 0);
}

/// The limit counts from the call, so nothing is left of it after a slow iterator; tasks that have
/// ended by then keep their values.
#[test]
fn a_slow_iterator_uses_up_the_time() {
    let (clock, executor) = manual(2);
    let naps = Naps::default();
    let mut bodies = vec![quick(|| 1), naps.body(DAY, || 2)].into_iter();
    let slow = iter::from_fn(|| {
        clock.run_for(ms(10));
        bodies.next()
    });
    let futures = executor.invoke_all_within(slow, ms(15)).unwrap();
    assert_eq!(outcomes(futures), [Outcome::Value(1), Outcome::Cancelled]);
    let slow = iter::once_with(|| clock.advance(DAY)).map(|()| naps.body(DAY, || Ok(2)));
    let late = executor.invoke_any_within::<i32, i32>(slow, ms(15));
    assert!(matches!(late, Err(InvokeError::TimedOut)));
}

/// IV-017: a token that is already raised ends the call before anything is submitted.
#[test]
fn a_raised_token_submits_nothing() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (token, ran) = (CancellationToken::new(), Naps::default());
    token.cancel();
    let all = executor.invoke_all_within([ran.body(DAY, || 1)], &token);
    assert!(matches!(all, Err(InvokeError::Interrupted)));
    let any = executor.invoke_any_within([ran.body(DAY, || Tried::Ok(1))], &token);
    assert!(matches!(any, Err(InvokeError::Interrupted)));
    executor.close().unwrap();
    assert_eq!(ran.begun.get(), 0);
}

/// IV-017: the same with a time beside the token, however long: what was raised is what ended the call.
#[test]
fn a_raised_token_submits_nothing_within_any_time() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (token, ran) = (CancellationToken::new(), Naps::default());
    token.cancel();
    for span in [LONG, DAY, Duration::MAX] {
        let limit = || Limit::from(span).unless(&token);
        let all = executor.invoke_all_within([ran.body(DAY, || 1)], limit());
        assert!(matches!(all, Err(InvokeError::Interrupted)), "{span:?}");
        let any = executor.invoke_any_within([ran.body(DAY, || Tried::Ok(1))], limit());
        assert!(matches!(any, Err(InvokeError::Interrupted)), "{span:?}");
    }
    executor.close().unwrap();
    assert_eq!(ran.begun.get(), 0);
}

/// IV-017: a token that is raised during the wait ends it; everything is cancelled, and running
/// tasks are asked to stop.
#[test]
fn a_raised_token_ends_the_wait() {
    let long = Some(LONG);
    for (is_all, span) in [(true, None), (false, None), (true, long), (false, long)] {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let (naps, unbegun) = (Naps::default(), Naps::default());
        let (token, handle) = (CancellationToken::new(), executor.handle());
        let raised = token.clone();
        let bodies = [&naps, &naps, &unbegun].map(|naps| naps.body(DAY, || Tried::Ok(1)));
        let limit = match span {
            None => Limit::from(&token),
            Some(span) => Limit::from(span).unless(&token),
        };
        let call = elsewhere(move || match is_all {
            true => {
                matches!(handle.invoke_all_within(bodies, limit), Err(InvokeError::Interrupted))
            }
            false => {
                matches!(handle.invoke_any_within(bodies, limit), Err(InvokeError::Interrupted))
            }
        });
        naps.begun.wait_for(2);
        raised.cancel();
        assert!(call.get());
        naps.signalled.wait_for(2);
        in_time("close", || executor.close()).unwrap();
        assert_eq!(unbegun.begun.get(), 0);
    }
}

/// A token that is raised while the closures are submitted ends the call, even if the submitted
/// tasks have failed by then.
#[test]
fn a_token_can_be_raised_half_way() {
    for is_all in [true, false] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let token = CancellationToken::new();
        let two = [1, 2].map(|_| quick(|| Tried::Err(1)));
        let bodies = two.into_iter().chain(iter::once_with(|| {
            token.cancel();
            quick(|| Tried::Ok(2))
        }));
        if is_all {
            let all = executor.invoke_all_within(bodies, &token);
            assert!(matches!(all, Err(InvokeError::Interrupted)));
        } else {
            let any = executor.invoke_any_within(bodies, &token);
            assert!(matches!(any, Err(InvokeError::Interrupted)));
        }
    }
}

/// IV-019: with as many workers as tasks, all run and all are counted, timed or not.
#[test]
fn as_many_tasks_as_workers_all_run() {
    for count in 1..=6 {
        for timed in [false, true] {
            let executor = ScheduledThreadPoolExecutor::new(count);
            let bodies = (1..=count).map(|number| move || number);
            let futures = match timed {
                false => executor.invoke_all(bodies),
                true => executor.invoke_all_within(bodies, LONG),
            };
            let futures = futures.unwrap();
            assert_eq!(futures.len(), count);
            let sum: usize = futures.into_iter().map(|future| future.join().unwrap()).sum();
            assert_eq!(sum, count * (count + 1) / 2);
        }
    }
}

/// Bodies that begin together, this many of them: the first returns 1, and every other waits until
/// it is asked to stop.
fn first_wins(naps: &Naps, count: usize, together: usize) -> Vec<Body<Tried>> {
    let has_winner = Arc::new(AtomicBool::new(false));
    let body = |_| -> Body<Tried> {
        let (begun, signalled, has_winner) =
            (naps.begun.clone(), naps.signalled.clone(), Arc::clone(&has_winner));
        Box::new(move || {
            begun.add();
            begun.wait_for(together);
            if !has_winner.swap(true, Ordering::SeqCst) {
                return Ok(1);
            }
            current_task().expect("inside a task").token().wait();
            signalled.add();
            Err(2)
        })
    };
    (0..count).map(body).collect()
}

/// IV-020: the task that runs first wins; at least one has begun, and none twice.
#[test]
fn whichever_is_first_wins() {
    for count in 1..=6 {
        for invoke_any in ANY {
            let executor = ScheduledThreadPoolExecutor::new(count);
            let naps = Naps::default();
            assert_eq!(invoke_any(&executor, first_wins(&naps, count, 1)).unwrap(), 1);
            in_time("close", || executor.close()).unwrap();
            let begun = naps.begun.get();
            assert!((1..=count).contains(&begun), "{begun} of {count}");
            assert_eq!(naps.signalled.get(), begun - 1);
        }
    }
}

/// IV-021: if all have begun, all but the winner are asked to stop.
#[test]
fn every_loser_is_signalled() {
    for count in 1..=6 {
        for invoke_any in ANY {
            let executor = ScheduledThreadPoolExecutor::new(count);
            let naps = Naps::default();
            assert_eq!(invoke_any(&executor, first_wins(&naps, count, count)).unwrap(), 1);
            naps.signalled.wait_for(count - 1);
        }
    }
}
