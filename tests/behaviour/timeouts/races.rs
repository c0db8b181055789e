//! Timeouts race, on the system clock, with the ends of their tasks, with cancellation, and with
//! the next run. Whichever comes first, there is one outcome, and nothing is lost.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use punctual::{
    CancelReason, FailurePolicy, Handle, ScheduledFuture, ScheduledThreadPoolExecutor as Executor,
    TaskError, current_task,
};

use crate::{
    rounds::rounds,
    support::{Counter, DropToken, Drops, LONG, Log, eventually, hold, in_time},
};

/// The state that the tasks of a race share.
#[derive(Clone, Default)]
struct Race {
    runs: Arc<AtomicUsize>,
    closures: Drops,
    results: Drops,
}

impl Race {
    /// Submits a task with so short a limit that it may or may not end in time. Its future reports
    /// which.
    fn enter(&self, executor: &Handle, number: u64) -> ScheduledFuture<DropToken> {
        let (runs, capture) = (Arc::clone(&self.runs), self.closures.token());
        let results = self.results.clone();
        let body = move || {
            hold(&capture);
            runs.fetch_add(1, Ordering::SeqCst);
            results.token()
        };
        let task = executor.task().timeout(Duration::from_nanos(number * 37 % 50_000));
        task.submit(body).unwrap()
    }
}

/// TO-005: in a hundred thousand races between a task and its timeout exactly one wins: there is
/// one outcome, the result or the reason, and the loser's values are dropped.
///
/// CI runs all hundred batches of a thousand; `cargo test` as many as fit into a few seconds.
#[test]
fn either_the_task_wins_or_its_timeout() {
    const BATCH: u64 = 1_000;
    let executor = Executor::new(1);
    let (race, mut completed, mut struck) = (Race::default(), 0, 0);
    let mut batches = rounds("a task and its timeout, a thousand races each", 100);
    for _ in batches.by_ref() {
        let futures: Vec<_> = (0..BATCH).map(|number| race.enter(&executor, number)).collect();
        for future in futures {
            match future.join_within(LONG).expect("it ends") {
                Ok(_) => completed += 1,
                Err(TaskError::Cancelled(CancelReason::TimedOut)) => struck += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    let batches = batches.begun() as u64;
    assert_eq!(completed + struck, batches * BATCH);
    executor.shutdown();
    assert!(executor.await_termination(LONG).unwrap());
    let now = executor.statistics();
    assert_eq!((now.completed, now.cancelled, now.pending), (completed, struck, 0));
    assert_eq!(now.runs, race.runs.load(Ordering::SeqCst) as u64);
    executor.close().unwrap();
    assert_eq!(race.closures.count() as u64, batches * BATCH);
    assert_eq!(race.results.count() as u64, now.runs);
}

/// A task that returned its own result was never asked to stop.
#[test]
fn the_winner_is_not_signalled() {
    let executor = Executor::new(2);
    for number in 0..3_000_u64 {
        let task = executor.task().timeout(Duration::from_nanos(number * 37 % 30_000));
        let token = task.submit(|| current_task().unwrap().token()).unwrap();
        if let Ok(token) = token.join() {
            assert!(!token.is_cancelled());
        }
    }
}

/// The timeout, a run, and `cancel` or `remove` race: one of them ends the task, each reports
/// correctly whether it did, and the closure is dropped once.
#[test]
fn cancelling_races_with_timeouts() {
    let executor = Executor::new(1);
    let race = Race::default();
    let mut races = rounds("cancelling and a timeout", 3_000);
    for number in races.by_ref() {
        let future = race.enter(&executor, number as u64);
        let was_ended = match number % 3 {
            0 => future.cancel(),
            1 => future.cancel_and_signal(),
            _ => executor.remove(&future),
        };
        let outcome = future.join_within(LONG).expect("it ends");
        let reason = match &outcome {
            Ok(_) => None,
            Err(TaskError::Cancelled(reason)) => Some(*reason),
            Err(error) => panic!("{error}"),
        };
        let by_hand = if number % 3 == 2 { CancelReason::Removed } else { CancelReason::Requested };
        match number % 3 {
            // A task that is removed may have timed out at that moment; then it reports the
            // timeout.
            2 if was_ended => assert_ne!(reason, Some(CancelReason::Requested)),
            _ => assert_eq!(was_ended, reason == Some(by_hand), "{reason:?}"),
        }
    }
    executor.close().unwrap();
    let races = races.begun();
    assert_eq!(race.closures.count(), races);
    assert_eq!(race.results.count(), race.runs.load(Ordering::SeqCst));
}

/// The body of each run of a periodic task: it does nothing, so that it may end in time, except
/// that every eighth run waits for its limit. It records whether it saw its token raised.
fn race_in_runs(capture: DropToken) -> impl FnMut() + Send + 'static {
    let mut runs = 0;
    move || {
        hold(&capture);
        runs += 1;
        let token = current_task().unwrap().token();
        if runs % 8 == 0 {
            token.wait();
        }
        WAS_RAISED.set(token.is_cancelled());
    }
}

thread_local!(static WAS_RAISED: Cell<bool> = const { Cell::new(false) });

/// Runs of periodic tasks race with their limits: a run that saw its token raised has failed, for
/// that reason, and the task continues.
#[test]
fn periodic_runs_race_with_their_budgets() {
    let (failed, wrong) = (Counter::new(), Log::new());
    let (count, log) = (failed.clone(), wrong.clone());
    let builder = Executor::builder().core_pool_size(2).after_execute(move |task, outcome| {
        let was_raised = WAS_RAISED.take();
        match outcome {
            Err(panic) if panic.message().starts_with("exceeded its time limit") => count.add(),
            Ok(()) if !was_raised => {}
            outcome => log.push(format!("run {}: {outcome:?}", task.run_number())),
        }
    });
    let (executor, drops) = (builder.build().unwrap(), Drops::new());
    let futures = [0, 5, 10, 50].map(|micros| {
        let task = executor.task().timeout(Duration::from_micros(micros));
        let task = task.on_failure(FailurePolicy::resume());
        let body = race_in_runs(drops.token());
        task.schedule_with_fixed_delay(Duration::ZERO, Duration::from_nanos(1), body).unwrap()
    });
    failed.wait_for(500);
    assert!(futures.iter().all(|task| task.cancel()));
    executor.close().unwrap();
    assert_eq!((wrong.entries(), drops.count()), (Vec::<String>::new(), 4));
}

/// A limit that ends its task races with the run, the return to the queue and the next run: the
/// task ends as timed out, once, and has left the queue.
#[test]
fn the_last_run_races_with_the_next() {
    // With a handler, which is told of each end in place of a line on standard error.
    let builder = Executor::builder().core_pool_size(2).failure_handler(|_| ());
    let (executor, drops) = (builder.build().unwrap(), Drops::new());
    for number in 0..300_u64 {
        let task = executor.task().timeout(Duration::from_micros(number % 30));
        let body = race_in_runs(drops.token());
        let delay = Duration::from_nanos(1);
        let future = task.schedule_with_fixed_delay(Duration::ZERO, delay, body).unwrap();
        let ended = future.join_within(LONG).expect("some run takes too long");
        assert!(matches!(ended, Err(TaskError::Cancelled(CancelReason::TimedOut))), "{ended:?}");
        let failed = future.last_failure().expect("it is kept");
        assert!(failed.message().contains("time limit"), "{failed:?}");
    }
    eventually("nothing waits or runs", || {
        let now = executor.statistics();
        now.pending + now.active == 0
    });
    executor.close().unwrap();
    assert_eq!(drops.count(), 300);
}

/// Executors terminate while tasks time out: all terminate, and every task has an outcome.
#[test]
fn the_end_races_with_timeouts() {
    for round in 0..150 {
        let executor = Executor::new(1);
        let race = Race::default();
        let futures: Vec<_> = (0..50).map(|number| race.enter(&executor, number)).collect();
        in_time("the end", move || match round % 4 {
            0 => drop(executor),
            1 => executor.close().unwrap(),
            2 => drop(executor.shutdown_now()),
            _ => executor.shutdown_background(),
        });
        for future in futures {
            assert!(future.join_within(LONG).is_some(), "round {round}");
        }
        eventually("every closure is dropped", || race.closures.count() == 50);
    }
}
