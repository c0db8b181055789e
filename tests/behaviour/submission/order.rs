//! The order in which tasks start that several threads submit; none starts early, and each starts
//! once.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{Handle, ScheduledFuture, ScheduledThreadPoolExecutor};

use crate::support::{Drops, LONG, Log, eventually, manual, ms};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Random numbers, different in each run.
struct Dice(RandomState, u64);

impl Dice {
    fn new() -> Self {
        Self(RandomState::new(), 0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.1 += 1;
        self.0.hash_one(self.1) % end
    }

    fn micros(&mut self, end: u64) -> Duration {
        Duration::from_micros(self.below(end))
    }
}

/// Four threads submit in turn, this many tasks in all, each when the submission before is over.
fn submit_in_turns(tasks: usize, submit: impl Fn(usize) + Sync) {
    let turn = AtomicUsize::new(0);
    thread::scope(|scope| {
        for first in 0..4 {
            let (turn, submit) = (&turn, &submit);
            scope.spawn(move || {
                for number in (first..tasks).step_by(4) {
                    eventually("it is its turn", || turn.load(Ordering::SeqCst) == number);
                    submit(number);
                    turn.store(number + 1, Ordering::SeqCst);
                }
            });
        }
    });
}

/// Waits for every task to have run.
fn terminate(executor: &Handle) {
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// G2: tasks start in the order of submission, whichever threads submit them, and however their
/// common deadline is given.
#[test]
fn equal_deadlines_of_several_threads_start_in_the_order_of_submission() {
    let (clock, executor) = manual(1);
    let started = Log::new();
    let due = clock.now() + ms(10);
    submit_in_turns(400, |number| {
        let started = started.clone();
        let task = move || started.push(number);
        if number % 3 == 0 {
            executor.schedule(ms(10), task).unwrap();
        } else {
            executor.schedule_at(due, task).unwrap();
        }
    });
    clock.run_for(ms(10));
    assert!(started.entries().into_iter().eq(0..400));
}

/// The same holds while tasks are taken, on both clocks: tasks that are due at once are due in the
/// order of submission, and so are tasks that were due long ago.
#[test]
fn tasks_submitted_by_several_threads_in_turn_start_in_turn() {
    let past = Instant::now();
    for executor in [ScheduledThreadPoolExecutor::new(1), manual(1).1] {
        for is_past in [false, true] {
            let started = Log::new();
            let (executor, log) = (executor.handle(), started.clone());
            submit_in_turns(400, |number| {
                let log = log.clone();
                let task = move || log.push(number);
                if is_past {
                    executor.schedule_at(past, task).unwrap();
                } else {
                    executor.execute(task).unwrap();
                }
            });
            eventually("all have run", || started.entries().len() == 400);
            assert!(started.entries().into_iter().eq(0..400));
        }
    }
}

/// The same holds with one worker, and several threads that submit concurrently.
#[test]
fn tasks_without_delay_start_in_their_threads_order() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let started = Log::new();
    thread::scope(|scope| {
        for thread in 0..3 {
            let (executor, started) = (&executor, &started);
            scope.spawn(move || {
                for number in 0..300 {
                    let started = started.clone();
                    let task = move || started.push((thread, number));
                    if number % 2 == 0 {
                        executor.execute(task).unwrap();
                    } else {
                        executor.schedule(Duration::ZERO, task).unwrap();
                    }
                }
            });
        }
    });
    terminate(&executor);
    let started = started.entries();
    for thread in 0..3 {
        let own = started.iter().filter(|(of, _)| *of == thread).map(|(_, number)| *number);
        assert!(own.eq(0..300), "of thread {thread}");
    }
}

/// F44, G1: several threads submit, two workers run, and the head changes all the time: no task
/// starts before its delay is over.
#[test]
fn no_task_starts_early() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let started = Log::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut dice = Dice::new();
                for _ in 0..100 {
                    let delay = dice.micros(20_000);
                    let started = started.clone();
                    let begin = Instant::now();
                    let task = move || started.push((begin.elapsed(), delay));
                    executor.schedule(delay, task).unwrap();
                }
            });
        }
    });
    terminate(&executor);
    let started = started.entries();
    assert_eq!(started.len(), 400);
    for (elapsed, delay) in started {
        assert!(elapsed >= delay, "after {elapsed:?} instead of {delay:?}");
    }
}

/// F41: after a leap of the clock the runs that a periodic task makes up for and all other due
/// tasks start in the order of their deadlines; equal deadlines start in the order of submission,
/// and each run of a periodic task counts as submitted when the periodic task was.
#[test]
fn missed_runs_and_other_tasks_start_in_the_order_of_their_deadlines() {
    const SUBMISSIONS: usize = 40;
    let (clock, executor) = manual(1);
    let (mut dice, started) = (Dice::new(), Log::new());
    let mut expected = Vec::new();
    // The first deadline and the period, in steps of 5 ms; without a period the task runs once.
    let mut of_five = |from| ms(5 * (from + dice.below(20)));
    let plans: Vec<_> = (0..SUBMISSIONS)
        .map(|number| (of_five(0), (number % 5 == 0).then(|| of_five(1))))
        .collect();
    submit_in_turns(SUBMISSIONS, |number| {
        let started = started.clone();
        let body = move || started.push(number);
        // The tasks are not due at the origin, because then some would run before the others are
        // submitted.
        let (first, period) = (ms(1) + plans[number].0, plans[number].1);
        match period {
            Some(period) => drop(executor.schedule_at_fixed_rate(first, period, body).unwrap()),
            None => drop(executor.schedule(first, body).unwrap()),
        }
    });
    for (number, (first, period)) in plans.into_iter().enumerate() {
        let runs = (0..).map(|run| first + period.unwrap_or(HOUR) * run);
        let missed = runs.take_while(|deadline| *deadline < ms(100));
        expected.extend(missed.map(|deadline| (deadline, number)));
    }
    expected.sort_unstable();
    clock.advance(ms(100));
    clock.run_until_idle();
    assert!(started.entries().into_iter().eq(expected.into_iter().map(|(_, number)| number)));
}

/// A submitted task, and its outcome.
struct Submitted {
    future: ScheduledFuture<()>,
    runs: Arc<AtomicUsize>,
    /// It is due no earlier than this.
    due: Instant,
    /// When the cancellation had succeeded, if it did.
    cancelled: Option<Instant>,
}

impl Submitted {
    fn cancel(&mut self) {
        if self.future.cancel() {
            assert!(self.cancelled.is_none(), "twice");
            self.cancelled = Some(Instant::now());
        }
    }
}

/// Submits tasks without delay, with a short one and with a long one, and cancels some of them at
/// once, some later, and each one with a long delay.
fn submit_and_cancel(executor: &Handle, drops: &Drops) -> Vec<Submitted> {
    let mut dice = Dice::new();
    let mut tasks: Vec<Submitted> = Vec::new();
    for _ in 0..250 {
        let delay = match dice.below(4) {
            0 => Duration::ZERO,
            1 => HOUR,
            _ => dice.micros(300),
        };
        let runs = Arc::new(AtomicUsize::new(0));
        let (run, capture) = (Arc::clone(&runs), drops.token());
        let due = Instant::now() + delay;
        let body = move || {
            run.fetch_add(1, Ordering::SeqCst);
            drop(capture);
        };
        let future = executor.schedule(delay, body).unwrap();
        tasks.push(Submitted { future, runs, due, cancelled: None });
        for _ in 0..dice.below(2) {
            // Mostly one of the last.
            let end = tasks.len() as u64;
            let one = end - 1 - dice.below(end.min(8));
            tasks[one as usize].cancel();
        }
    }
    let soon = Instant::now() + HOUR / 2;
    tasks.iter_mut().filter(|task| task.due > soon).for_each(Submitted::cancel);
    tasks
}

/// F30, G10: each task runs once, or was cancelled in time and never runs.
#[test]
fn each_task_runs_once_or_was_cancelled() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let drops = Drops::new();
    let tasks: Vec<_> = thread::scope(|scope| {
        let submitter = || scope.spawn(|| submit_and_cancel(&executor, &drops));
        let submitters = [(); 4].map(|()| submitter());
        submitters.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    terminate(&executor);
    assert_eq!((tasks.len(), drops.count(), executor.pending_count()), (1_000, 1_000, 0));
    for Submitted { future, runs, due, cancelled } in tasks {
        let runs = runs.load(Ordering::SeqCst);
        assert_eq!(future.is_cancelled(), cancelled.is_some());
        match cancelled {
            None => assert_eq!(runs, 1),
            Some(moment) if moment < due => assert_eq!(runs, 0),
            // It may have been running when it was cancelled.
            Some(_) => assert!(runs <= 1),
        }
    }
}
