//! A call comes back, whatever its tasks do: each of them runs once at most, in the order in which they were due when
//! the call began, and none keeps another from its turn.

use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use punctual::{
    Clock, DrivenExecutor, Handle, ManualClock, ScheduledThreadPoolExecutor, TaskHandle,
    gate::{self, Entry},
    trigger::{Due, every, from_fn, on_demand},
};

use super::{NANO, SECOND, driven};
use crate::support::{Counter, Log, in_time};

const HOUR: Duration = Duration::from_secs(3_600);

/// A way in which a task asks for another turn, each time that it has one. It counts its turns.
type Way = fn(&Handle, Counter);

/// Submits a task that runs at once, and in each run has `again` done with its own handle, which has no effect once the
/// executor is dropped.
fn calling_itself(handle: &Handle, turns: Counter, again: fn(&TaskHandle) -> bool) {
    let own = Arc::new(OnceLock::<TaskHandle>::new());
    let called = Arc::clone(&own);
    let body = move || {
        turns.add();
        let _ = called.get().is_some_and(again);
    };
    let task = handle.repeat(every(HOUR), body).expect("it is open").task_handle();
    assert!(task.run_now() && own.set(task).is_ok());
}

const WAYS: &[(&str, Way)] = &[
    ("continues after no time", |handle, turns| {
        let body = move || {
            turns.add();
            ControlFlow::<(), Duration>::Continue(Duration::ZERO)
        };
        handle.repeat(every(HOUR), body).map(drop).expect("it is open");
    }),
    ("continues in the past", |handle, turns| {
        let begin = handle.clock().now();
        let body = move || {
            turns.add();
            ControlFlow::<(), std::time::Instant>::Continue(begin)
        };
        handle.repeat(every(HOUR), body).map(drop).expect("it is open");
    }),
    ("is asked again after no time", |handle, turns| {
        let again = gate::from_fn(move |_| {
            turns.add();
            Entry::Again(Duration::ZERO)
        });
        handle.task().gate(again).execute(|| ()).expect("it is open");
    }),
    ("is asked again after no time, a series", |handle, turns| {
        let again = gate::from_fn(move |_| {
            turns.add();
            Entry::Again(Duration::ZERO)
        });
        handle.task().gate(again).repeat(every(HOUR), || ()).map(drop).expect("it is open");
    }),
    ("runs itself now", |handle, turns| calling_itself(handle, turns, TaskHandle::run_now)),
    ("is rescheduled without delay", |handle, turns| {
        calling_itself(handle, turns, |own| own.reschedule(Duration::ZERO));
    }),
    ("runs itself within no time", |handle, turns| {
        calling_itself(handle, turns, |own| own.run_within(Duration::ZERO));
    }),
    ("gives itself another trigger", |handle, turns| {
        calling_itself(handle, turns, |own| own.set_trigger(every(HOUR)));
    }),
    ("a throttle that calls itself", |handle, turns| {
        let own = Arc::new(OnceLock::<punctual::Throttled>::new());
        let called = Arc::clone(&own);
        let body = move || {
            turns.add();
            let _ = called.get().is_some_and(punctual::Throttled::call);
        };
        let throttled = handle.task().throttle(Duration::ZERO, body).expect("it is open");
        assert!(throttled.call() && own.set(throttled).is_ok());
    }),
    ("a debounce that calls itself", |handle, turns| {
        let own = Arc::new(OnceLock::<punctual::Debounced>::new());
        let called = Arc::clone(&own);
        let body = move || {
            turns.add();
            let _ = called.get().is_some_and(punctual::Debounced::call);
        };
        let debounced = handle.task().debounce(Duration::ZERO, body).expect("it is open");
        assert!(debounced.call() && own.set(debounced).is_ok());
    }),
    ("a trigger of one moment that has passed", |handle, turns| {
        let begin = handle.clock().now();
        let trigger = from_fn(move |_| Some(Due::At(begin)));
        handle.repeat(trigger, move || turns.add()).map(drop).expect("it is open");
    }),
    ("a trigger of moments that have passed long ago", |handle, turns| {
        let mut next = handle.clock().now().checked_sub(SECOND).expect("it is not that early");
        let trigger = from_fn(move |_| {
            next += NANO;
            Some(Due::At(next))
        });
        handle.repeat(trigger, move || turns.add()).map(drop).expect("it is open");
    }),
    ("a trigger of a moment on the wall clock that has passed", |handle, turns| {
        let trigger = from_fn(|_| Some(Due::Wall(SystemTime::UNIX_EPOCH)));
        handle.repeat(trigger, move || turns.add()).map(drop).expect("it is open");
    }),
    ("submits a task that does the same", |handle, turns| {
        fn again(handle: &Handle, turns: Counter) {
            let next = handle.clone();
            let body = move || {
                turns.add();
                again(&next, turns.clone());
            };
            handle.execute(body).unwrap_or_default();
        }
        again(handle, turns);
    }),
];

/// An executor that this thread drives, on either clock. The system's has gone on a little.
fn on(clock: Option<&ManualClock>) -> DrivenExecutor {
    let builder = ScheduledThreadPoolExecutor::builder();
    let clock = clock.map_or(Clock::system(), |clock| clock.clone().into());
    builder.clock(clock).build_driven().expect("the settings are good")
}

/// G59, M196: in each call such a task has one turn, and a task behind it has its own; and the call says how many have run.
#[test]
fn each_task_has_one_turn_in_a_call() {
    for is_manual in [true, false] {
        for (what, way) in WAYS {
            in_time(what, move || {
                let clock = is_manual.then(ManualClock::new);
                let mut executor = on(clock.as_ref());
                let (turns, others) = (Counter::new(), Counter::new());
                way(&executor, turns.clone());
                let (mut expected, mut has_moved) = (0, false);
                for call in 1..20 {
                    let other = others.clone();
                    executor.execute(move || other.add()).unwrap();
                    let before = executor.statistics().runs;
                    let mut ran = executor.run_due();
                    expected += 1;
                    if what.ends_with("long ago") && call > 1 {
                        // Its next moment comes before that of the other, whose turn is when it has caught up.
                        assert_eq!((turns.get(), ran, others.get()), (expected, 1, 1), "{what}");
                        continue;
                    }
                    if others.get() < call {
                        // The clock has moved, so the present is a moment that the task has missed, and was submitted for
                        // before the other: the caller is told to come back for both.
                        assert!(has_moved, "{what}");
                        assert_eq!(executor.time_until_next(), Some(Duration::ZERO), "{what}");
                        ran += executor.run_due();
                        expected += 1;
                    }
                    assert_eq!(turns.get(), expected, "{what}");
                    assert_eq!(others.get(), call, "{what}: the one behind it");
                    assert_eq!(ran as u64, executor.statistics().runs - before, "{what}");
                    has_moved = call % 3 == 0;
                    if let Some(clock) = clock.as_ref().filter(|_| has_moved) {
                        clock.advance(NANO);
                    }
                }
                drop(executor);
            });
        }
    }
}

/// Nor do such tasks keep a caller that waits for a future, or drops the executor.
#[test]
fn the_caller_gets_what_it_waits_for() {
    for is_manual in [true, false] {
        for (what, way) in WAYS {
            in_time(what, move || {
                let clock = is_manual.then(ManualClock::new);
                let mut executor = on(clock.as_ref());
                let turns = Counter::new();
                way(&executor, turns.clone());
                let task = executor.submit(|| 7).unwrap();
                assert_eq!(executor.run_until(task).unwrap(), 7, "{what}");
            });
        }
    }
}

/// Tasks that are due at the same moment run in the order of their submission, also when they come back.
#[test]
fn ties_are_broken_by_the_order_of_submission() {
    let (clock, mut executor) = driven();
    let log = Log::new();
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let log = log.clone();
            let body = move || {
                log.push(number);
                ControlFlow::<(), Duration>::Continue(Duration::ZERO)
            };
            executor.repeat(every(HOUR), body).unwrap()
        })
        .collect();
    for call in 1..4 {
        assert_eq!(executor.run_due(), 40);
        assert_eq!(log.entries(), (0..call).flat_map(|_| 0..40).collect::<Vec<_>>());
    }
    // The order of those that are moved to one moment is the same, whichever was moved last.
    tasks.iter().rev().for_each(|task| assert!(task.reschedule(SECOND)));
    clock.advance(2 * SECOND);
    assert_eq!(executor.run_due(), 40);
    assert_eq!(log.entries()[120..], (0..40).collect::<Vec<_>>());
}

/// A task's changes to those behind it in the same call take effect: one that is cancelled, put off or paused does not
/// run, one that is moved to another moment waits for the next call, and they are all pending until their turn.
#[test]
fn a_turn_is_lost_by_what_happens_before_it() {
    let (clock, mut executor) = driven();
    let log = Log::new();
    let (seen, others) = (Log::new(), Arc::new(OnceLock::<Vec<TaskHandle>>::new()));
    let (handle, acts, sees) = (executor.handle(), Arc::clone(&others), seen.clone());
    executor
        .execute(move || {
            sees.push(handle.pending_count());
            let others = acts.get().expect("they are there");
            assert!(others[0].cancel() && others[1].reschedule(SECOND) && others[2].pause());
            assert!(others[3].reschedule(Duration::ZERO) && others[5].run_now());
        })
        .unwrap();
    clock.advance(SECOND);
    let tasks = (0..6).map(|number| {
        let (log, delay) = (log.clone(), if number == 5 { HOUR } else { Duration::ZERO });
        executor.schedule(delay, move || log.push(number)).unwrap().task_handle()
    });
    others.set(tasks.collect()).expect("once");
    clock.advance(SECOND);
    assert_eq!(executor.run_due(), 2);
    assert_eq!((seen.entries(), log.entries()), (vec![6], vec![4]));
    assert_eq!(executor.run_due(), 2, "those that were moved to the present");
    assert_eq!(log.entries(), [4, 3, 5]);
    clock.advance(SECOND);
    assert_eq!((executor.run_due(), log.entries()), (1, vec![4, 3, 5, 1]));
    assert!(others.get().is_some_and(|others| others[2].resume()));
    assert_eq!((executor.run_due(), log.entries()), (1, vec![4, 3, 5, 1, 2]));
}

/// Submissions in the past, each before all that is due, do not keep the others from their turn.
#[test]
fn the_past_does_not_go_before_this_call() {
    let (clock, mut executor) = driven();
    clock.advance(HOUR);
    let (log, begin) = (Log::new(), clock.now());
    for number in 0..5 {
        let (handle, log) = (executor.handle(), log.clone());
        let body = move || {
            log.push(number);
            let past = log.clone();
            let mut moment = begin.checked_sub(SECOND);
            let once = from_fn(move |_| moment.take().map(Due::At));
            handle.repeat(once, move || past.push(10 + number)).map(drop).unwrap();
        };
        executor.execute(body).unwrap();
    }
    assert_eq!((executor.run_due(), log.entries()), (5, vec![0, 1, 2, 3, 4]));
    assert_eq!((executor.run_due(), &log.entries()[5..]), (5, &[10, 11, 12, 13, 14][..]));
    assert_eq!(executor.run_due(), 0);
}

/// A clock that leaps: everything is run, in order, near and far, and what is not due stays.
#[test]
fn a_leap_runs_everything_in_order() {
    let (clock, mut executor) = driven();
    let log = Log::new();
    let mut seconds: Vec<u64> = (0..500).map(|n| (n * 7_919) % 100_000).collect();
    for second in &seconds {
        let (log, second) = (log.clone(), *second);
        executor.schedule(Duration::from_secs(second), move || log.push(second)).map(drop).unwrap();
    }
    seconds.sort_unstable();
    let due = seconds.partition_point(|second| *second <= 50_000);
    clock.advance(Duration::from_secs(50_000));
    assert_eq!((executor.run_due(), log.entries()), (due, seconds[..due].to_vec()));
    assert_eq!(executor.pending_count(), seconds.len() - due);
    clock.advance(Duration::from_secs(50_000));
    assert_eq!((executor.run_due(), log.entries()), (seconds.len() - due, seconds));
}

/// A call counts runs: not a task that its gate skips or puts off, that has been cancelled, or whose time is up.
#[test]
fn what_has_not_run_is_not_counted() {
    let (clock, mut executor) = driven();
    let answers = [|| Entry::Skip, || Entry::Again(SECOND), || Entry::Run];
    for answer in answers {
        let gate = gate::from_fn(move |_| answer());
        executor.task().gate(gate).repeat(every(HOUR), || ()).map(drop).unwrap();
    }
    executor.task().timeout(SECOND).schedule(SECOND, || ()).map(drop).unwrap();
    let group = executor.group("paused").build().unwrap();
    assert!(group.pause());
    let held = group.task().submit(|| ()).unwrap();
    let demanded = executor.repeat(on_demand(), || ()).unwrap();
    assert_eq!(executor.run_due(), 1, "the gate that lets it pass");
    assert_eq!(executor.run_due(), 0, "none is due");
    clock.advance(3 * SECOND);
    assert_eq!(executor.run_due(), 0, "it is past its limit, and the other is put off again");
    assert!(group.resume() && demanded.run_now());
    assert_eq!(executor.run_due(), 2);
    assert!(held.is_done());
    assert_eq!(executor.statistics().runs, 3);
}

/// A request that changes nothing leaves a task its turn, also if the one before in the same round asks.
#[test]
fn a_request_without_effect_leaves_a_task_its_turn() {
    let (clock, mut executor) = driven();
    let log = Log::new();
    let note = |number| {
        let log = log.clone();
        move || log.push(number)
    };
    let third = executor.schedule(3 * SECOND, note(3)).unwrap().task_handle();
    executor.schedule(4 * SECOND, note(4)).unwrap();
    let second = note(2);
    let asks = move || {
        second();
        assert!(!third.resume() && third.run_now());
    };
    executor.schedule(2 * SECOND, asks).unwrap();
    executor.schedule(SECOND, note(1)).unwrap();
    clock.advance(5 * SECOND);
    assert_eq!((executor.run_due(), log.entries()), (4, vec![1, 2, 3, 4]));
}
