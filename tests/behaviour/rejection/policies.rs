//! Tasks that are not admitted: what the stock handlers do with them, for every way to submit.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    AbortPolicy, CallerRunsPolicy, CancelReason, DiscardOldestPolicy, DiscardPolicy, Handle,
    ManualClock, RejectedExecutionError, RejectedExecutionHandler, RejectedTask, RejectionReason,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskId, TaskState,
};

use crate::support::{Counter, Drops, Log, assert_cancelled, hold, in_time, ms};
pub use crate::support::{HOUR, occupy};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    Shutdown,
    Saturated,
    Other,
}

pub fn why(error: &RejectedExecutionError) -> Why {
    why_of(error.reason())
}

pub fn why_of(reason: &RejectionReason) -> Why {
    match reason {
        RejectionReason::Shutdown => Why::Shutdown,
        RejectionReason::Saturated => Why::Saturated,
        _ => Why::Other,
    }
}

/// A closure that fits every method of submission.
pub type Closure = Box<dyn FnMut() + Send>;

/// Submits it, and returns a future, if there is one.
pub type Verb = fn(&Handle, Closure) -> Result<Option<ScheduledFuture<()>>, RejectedExecutionError>;

/// The ways to submit a task that is due at once.
pub const AT_ONCE: [(&str, Verb); 5] = [
    ("execute", |to, it| to.execute(it).map(|()| None)),
    ("submit", |to, it| to.submit(it).map(Some)),
    ("with a timeout: submit", |to, it| to.task().timeout(HOUR).submit(it).map(Some)),
    ("of a builder: execute", |to, it| to.task().execute(it).map(|()| None)),
    ("of a builder: submit", |to, it| to.task().submit(it).map(Some)),
];

/// The ways to submit a task that is due in an hour, or later.
const LATER: [(&str, Verb); 6] = [
    ("schedule", |to, it| to.schedule(HOUR, it).map(Some)),
    ("schedule_at", |to, it| to.schedule_at(Instant::now() + 2 * HOUR, it).map(Some)),
    ("with a timeout: schedule", |to, it| to.task().timeout(HOUR).schedule(HOUR, it).map(Some)),
    ("of a builder: schedule", |to, it| to.task().schedule(HOUR, it).map(Some)),
    ("of a builder: schedule_at", |to, it| {
        to.task().schedule_at(Instant::now() + 2 * HOUR, it).map(Some)
    }),
    ("never: schedule_at", |to, it| to.schedule_at(None, it).map(Some)),
];

const PERIODIC: [(&str, Verb); 4] = [
    ("schedule_at_fixed_rate", |to, it| to.schedule_at_fixed_rate(HOUR, HOUR, it).map(Some)),
    ("schedule_with_fixed_delay", |to, it| to.schedule_with_fixed_delay(HOUR, HOUR, it).map(Some)),
    ("of a builder: schedule_at_fixed_rate", |to, it| {
        to.task().schedule_at_fixed_rate(HOUR, HOUR, it).map(Some)
    }),
    ("with a timeout: schedule_with_fixed_delay", |to, it| {
        to.task().timeout(HOUR).schedule_with_fixed_delay(HOUR, HOUR, it).map(Some)
    }),
];

/// Every way to submit.
pub fn verbs() -> impl Iterator<Item = (&'static str, Verb)> {
    AT_ONCE.into_iter().chain(LATER).chain(PERIODIC)
}

/// An executor with one worker, on a clock that stands still, with this bound on pending tasks.
pub fn bounded(
    bound: usize,
    handler: impl RejectedExecutionHandler + 'static,
) -> (ManualClock, Executor) {
    let clock = ManualClock::new();
    let builder = Executor::builder().core_pool_size(1).clock(clock.clone());
    let executor = builder.max_pending(bound).rejected_execution_handler(handler).build().unwrap();
    (clock, executor)
}

/// Executors that admit nothing: one is full, one was shut down when it was empty, and two when
/// they were full.
fn closed(handler: &(impl RejectedExecutionHandler + Clone + 'static)) -> [(Why, Executor); 4] {
    type Close = fn(&Executor);
    let ways: [(Why, Close); 4] = [
        (Why::Saturated, |_| ()),
        (Why::Shutdown, |full| drop(full.shutdown_now())),
        (Why::Shutdown, |full| full.shutdown()),
        (Why::Shutdown, |empty| {
            empty.pending_tasks()[0].cancel();
            empty.shutdown();
        }),
    ];
    ways.map(|(why, close)| {
        let (_, executor) = bounded(1, AbortPolicy);
        executor.schedule(2 * HOUR, || ()).unwrap();
        executor.set_rejected_execution_handler(handler.clone());
        close(&executor);
        (why, executor)
    })
}

/// Calls every method on every executor that admits nothing; each refusal is counted once, and
/// nothing else is.
fn refuse_all(
    handler: &(impl RejectedExecutionHandler + Clone + 'static),
    check: impl Fn(Why, &str, &Executor, Verb),
) {
    let counts = |executor: &Executor| {
        let now = executor.statistics();
        (now.submitted, now.pending, now.completed, now.cancelled, now.runs)
    };
    for (why, executor) in closed(handler) {
        let before = counts(&executor);
        for (number, (name, verb)) in (1..).zip(verbs()) {
            check(why, name, &executor, verb);
            assert_eq!(executor.statistics().rejected, number, "{name}");
        }
        assert_eq!(counts(&executor), before);
    }
}

/// RJ-008, RJ-009, RJ-014: by default each method fails with the reason, which is the shutdown if
/// there was one, full or not, and returns the same task; nothing else changes.
#[test]
fn a_refusal_gives_the_reason_and_the_closure() {
    refuse_all(&AbortPolicy, |expected, name, executor, verb| {
        let (ran, drops) = (Counter::new(), Drops::new());
        let (count, token) = (ran.clone(), drops.token());
        let closure = Box::new(move || {
            hold(&token);
            count.add();
        });
        let refused = verb(executor, closure).expect_err(name);
        assert_eq!(why(&refused), expected, "{name}");
        let is_periodic = PERIODIC.iter().any(|(periodic, _)| *periodic == name);
        assert_eq!(refused.task().is_periodic(), is_periodic, "{name}");
        assert_eq!((ran.get(), drops.count()), (0, 0), "{name}");
        refused.into_task().run();
        assert_eq!((ran.get(), drops.count()), (1, 1), "{name}");
    });
}

/// RJ-003, RJ-004: the handler is called once for each submission, with that task, which has not
/// ended; and the future that the submitter gets has completed with the reason.
#[test]
fn each_refusal_asks_the_handler_once() {
    let asked: Log<(TaskId, bool, bool)> = Log::new();
    let log = asked.clone();
    let recording = move |task: RejectedTask<'_>| {
        log.push((task.id(), task.is_periodic(), task.is_shutdown()));
        task.discard()
    };
    refuse_all(&recording, |expected, name, executor, verb| {
        let before = asked.entries().len();
        let future = verb(executor, Box::new(|| panic!("it ran"))).expect(name);
        let now = asked.entries();
        assert_eq!(now.len(), before + 1, "{name}");
        let (id, is_periodic, is_shutdown) = now[before];
        assert_eq!(is_periodic, PERIODIC.iter().any(|(periodic, _)| *periodic == name), "{name}");
        assert_eq!(is_shutdown, expected == Why::Shutdown, "{name}");
        if let Some(future) = future {
            assert_eq!(future.id(), id, "{name}");
            assert_cancelled(&future, CancelReason::Rejected);
        }
    });
}

/// RJ-006, RJ-009: a discarded task does not run, and is dropped before the submission returns.
#[test]
fn a_discarded_task_is_dropped_at_once() {
    refuse_all(&DiscardPolicy, |_, name, executor, verb| {
        let drops = Drops::new();
        let token = drops.token();
        let closure = move || {
            hold(&token);
            panic!("it ran");
        };
        let future = verb(executor, Box::new(closure)).expect(name);
        assert_eq!(drops.count(), 1, "{name}");
        if let Some(future) = future {
            assert_cancelled(&future, CancelReason::Rejected);
            assert!(!future.cancel(), "{name}");
        }
    });
}

/// RJ-007, RJ-009: in a full executor the submitter runs a due task, and has the result when the
/// submission returns; a task that is not yet due or is periodic is refused. After a shutdown all
/// are discarded.
#[test]
fn the_submitter_runs_due_tasks() {
    refuse_all(&CallerRunsPolicy, |expected, name, executor, verb| {
        let (tell, told) = mpsc::channel();
        let closure = move || tell.send(thread::current().id()).unwrap();
        let outcome = verb(executor, Box::new(closure));
        let is_due = AT_ONCE.iter().any(|(at_once, _)| *at_once == name);
        if expected == Why::Shutdown {
            if let Some(future) = outcome.expect(name) {
                assert_cancelled(&future, CancelReason::Rejected);
            }
            assert!(told.try_recv().is_err(), "{name}");
        } else if is_due {
            if let Some(future) = outcome.expect(name) {
                assert!(future.try_join().expect(name).is_ok(), "{name}");
            }
            assert_eq!(told.try_recv(), Ok(thread::current().id()), "{name}");
        } else {
            assert_eq!(why(&outcome.expect_err(name)), Why::Saturated, "{name}");
        }
    });
}

/// A task may ask to be refused: whatever the handler would do, it is not asked.
#[test]
fn a_task_that_aborts_if_rejected_asks_no_handler() {
    for (expected, executor) in closed(&|_: RejectedTask<'_>| panic!("it was asked")) {
        let (ran, drops) = (Counter::new(), Drops::new());
        for number in 1..=2 {
            let (count, token) = (ran.clone(), drops.token());
            let task = executor.task().abort_if_rejected();
            let closure = move || {
                hold(&token);
                count.add();
            };
            let refused = match number {
                1 => task.execute(closure).expect_err("a task at once"),
                _ => task.schedule_at_fixed_rate(HOUR, HOUR, closure).expect_err("a periodic one"),
            };
            assert_eq!(why(&refused), expected);
            assert_eq!(executor.statistics().rejected, number);
            assert_eq!((ran.get(), drops.count()), (0, number as usize - 1));
            drop(refused);
        }
        assert_eq!((ran.get(), drops.count()), (0, 2));
    }
    let (clock, executor) = bounded(1, AbortPolicy);
    let admitted = executor.task().abort_if_rejected().submit(|| 7).unwrap();
    clock.run_until_idle();
    assert_eq!(admitted.try_join().unwrap().unwrap(), 7);
}

/// RJ-007: a periodic task is refused even if its first run is due.
#[test]
fn the_submitter_runs_no_periodic_task() {
    let (_clock, executor) = bounded(1, CallerRunsPolicy);
    executor.schedule(HOUR, || ()).unwrap();
    let error = executor.schedule_at_fixed_rate(ms(0), ms(1), || ()).expect_err("it is full");
    assert_eq!(why(&error), Why::Saturated);
}

/// The panic of a task that the submitter runs is contained as on a worker: it is in the future.
#[test]
fn a_panic_does_not_reach_the_submitter_that_runs_the_task() {
    let (_clock, executor) = bounded(1, CallerRunsPolicy);
    executor.schedule(HOUR, || ()).unwrap();
    let failed = executor.submit(|| panic!("no")).unwrap();
    assert_eq!(failed.state(), TaskState::Failed);
    let value = executor.submit(|| 7).unwrap();
    assert_eq!(value.try_join().unwrap().unwrap(), 7);
}

/// RJ-011: with one task running and one pending, the third takes the place of the second, which
/// ends as cancelled.
#[test]
fn the_oldest_makes_room() {
    let (clock, executor) = bounded(1, DiscardOldestPolicy);
    let gate = occupy(&executor);
    let second = executor.submit(|| 2).unwrap();
    let third = executor.submit(|| 3).unwrap();
    assert_cancelled(&second, CancelReason::Rejected);
    assert_eq!((third.state(), executor.pending_count()), (TaskState::Scheduled, 1));
    gate.add();
    clock.run_until_idle();
    assert_eq!(third.try_join().unwrap().unwrap(), 3);
    let now = executor.statistics();
    assert_eq!((now.submitted, now.completed, now.cancelled, now.rejected), (3, 2, 1, 0));
}

/// The oldest is the one that is due first, also if its group holds it: whether for a permit or because of a pause, and
/// not if another task is due before it.
#[test]
fn the_oldest_may_wait_for_its_group() {
    let (clock, executor) = bounded(3, DiscardOldestPolicy);
    let (narrow, paused) = (executor.group("narrow").build(), executor.group("paused").build());
    let (narrow, paused) = (narrow.unwrap(), paused.unwrap());
    narrow.set_limit(1).unwrap();
    executor.set_core_pool_size(3);
    assert!(paused.pause());
    let (begun, go_on) = (Counter::new(), Counter::new());
    let (begins, waits) = (begun.clone(), go_on.clone());
    let running = narrow.task().submit(move || {
        begins.add();
        waits.wait_for(1);
    });
    begun.wait_for(1);
    clock.advance(ms(1));
    let early = executor.schedule(ms(1), || ()).unwrap();
    let first = narrow.task().submit(|| ()).unwrap();
    clock.advance(ms(1));
    early.join().unwrap();
    let second = paused.task().submit(|| ()).unwrap();
    in_time("both are held", {
        let (narrow, paused) = (narrow.clone(), paused.clone());
        move || {
            while (narrow.statistics().waiting, paused.statistics().waiting) != (1, 1) {
                thread::yield_now();
            }
        }
    });
    let far = executor.schedule(HOUR, || ()).unwrap();
    let newer = [1, 2].map(|n| executor.schedule(HOUR * n, || ()).unwrap());
    assert_cancelled(&first, CancelReason::Rejected);
    assert_cancelled(&second, CancelReason::Rejected);
    assert!(!far.is_done() && newer.iter().all(|task| !task.is_done()));
    let third = executor.schedule(HOUR / 2, || ()).unwrap();
    assert_cancelled(&far, CancelReason::Rejected);
    let held = narrow.task().submit(|| ()).unwrap();
    assert_cancelled(&third, CancelReason::Rejected);
    go_on.add();
    running.unwrap().join().unwrap();
    held.join().unwrap();
    assert_eq!(executor.pending_count(), 2);
    assert_eq!((narrow.statistics().cancelled, paused.statistics().cancelled), (1, 1));
}

/// RJ-011: the "oldest" task is the one that is due first, whenever it was submitted, even a
/// periodic one.
#[test]
fn the_oldest_task_is_the_one_due_first() {
    let (_clock, executor) = bounded(3, DiscardOldestPolicy);
    let drops = Drops::new();
    let token = drops.token();
    let second = executor.schedule(2 * HOUR, || ()).unwrap();
    let never = executor.schedule(Duration::MAX, || ()).unwrap();
    let first = executor.schedule_at_fixed_rate(HOUR, HOUR, move || hold(&token)).unwrap();

    let third = executor.schedule(3 * HOUR, || ()).unwrap();
    assert_cancelled(&first, CancelReason::Rejected);
    assert_eq!(drops.count(), 1);
    let soon = executor.schedule(ms(1), || ()).unwrap();
    assert_cancelled(&second, CancelReason::Rejected);
    let later = executor.schedule(4 * HOUR, || ()).unwrap();
    assert_cancelled(&soon, CancelReason::Rejected);
    let states = [&never, &third, &later].map(|task| task.state());
    assert_eq!(states, [TaskState::Scheduled; 3]);
    assert_eq!(executor.pending_count(), 3);
}

/// RJ-012: after a shutdown the new task is discarded, and not one that the policies keep: also in
/// an executor that was full, and in one whose tasks were drained.
#[test]
fn after_a_shutdown_the_oldest_stays() {
    for (why, executor) in closed(&DiscardOldestPolicy) {
        if why != Why::Shutdown {
            continue;
        }
        let waiting = executor.pending_count();
        let handle = executor.handle();
        let refused = in_time("the submission", move || handle.submit(|| 7).unwrap());
        assert_cancelled(&refused, CancelReason::Rejected);
        assert_eq!(executor.pending_count(), waiting);
    }
}

/// RJ-008: the handler can be read, replaced while tasks are submitted, also by a handler, and
/// restored; each submission calls the current one.
#[test]
fn a_handler_can_be_replaced() {
    let (_clock, executor) = bounded(1, DiscardPolicy);
    executor.schedule(HOUR, || ()).unwrap();
    let stock = executor.rejected_execution_handler();
    assert!(executor.submit(|| 7).unwrap().is_cancelled());

    let (handle, next) = (executor.handle(), stock.clone());
    executor.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        handle.set_rejected_execution_handler(next.clone());
        if task.name().is_some() { task.retry() } else { task.abort() }
    });
    let own = executor.rejected_execution_handler();
    assert!(!Arc::ptr_eq(&own, &stock));
    assert!(executor.submit(|| 7).is_err());
    assert!(Arc::ptr_eq(&executor.rejected_execution_handler(), &stock));

    executor.set_rejected_execution_handler(own);
    let retried = executor.task().name("again").submit(|| 7).unwrap();
    assert_cancelled(&retried, CancelReason::Rejected);
    assert_eq!(executor.statistics().rejected, 3);
}
