//! One task, and the threads that act on it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use punctual::{
    TaskError, TaskState, Trigger,
    trigger::{Due, TriggerContext},
};
use shuttle::thread;

use crate::support::{Count, Door, check, executor};

const STEP: Duration = Duration::from_nanos(10);

/// G37: a submission meets a worker that is about to sleep.
#[test]
fn a_submitted_task_is_run() {
    check(|| {
        let (_, executor) = executor(1);
        let first = executor.submit(|| 1).expect("it is open");
        assert_eq!(first.join().expect("it runs"), 1);
        let second = executor.submit(|| 2).expect("it is open");
        assert_eq!(second.join().expect("it runs"), 2);
        executor.close().expect("not on a worker");
    });
}

/// F30, F31, ST-011, G10, G44: a cancellation races with the run: the task ends in one way, and its
/// captures are dropped once.
#[test]
fn a_task_runs_or_is_cancelled() {
    check(|| {
        let (_, executor) = executor(1);
        let (runs, drops) = (Count::default(), Count::default());
        let (counted, capture) = (runs.clone(), drops.drop_of_one());
        let task = executor.submit(move || {
            let _capture = &capture;
            counted.add();
        });
        let task = task.expect("it is open");
        let is_cancelled = task.cancel();
        let outcome = task.join();
        executor.close().expect("not on a worker");
        assert_eq!(is_cancelled, matches!(outcome, Err(TaskError::Cancelled(_))));
        // A task that was running when it was cancelled has run.
        assert!(runs.get() <= 1 && (is_cancelled || runs.get() == 1));
        assert_eq!(drops.get(), 1);
    });
}

/// F30, G12, G44: two threads cancel at once: exactly one of them succeeds.
#[test]
fn one_of_two_cancellers_succeeds() {
    check(|| {
        let (_, executor) = executor(1);
        let task = executor.schedule(STEP, || ()).expect("it is open");
        let handle = task.task_handle();
        let other = thread::spawn(move || handle.cancel());
        let one = task.cancel();
        assert!(one ^ other.join().expect("nobody panics"));
        executor.close().expect("not on a worker");
    });
}

/// G13, G45, M35, M36: a periodic task is cancelled between two runs, in one, or before the first:
/// it ends, and does not run again.
#[test]
fn a_periodic_task_ends_when_it_is_cancelled() {
    check(|| {
        let (clock, executor) = executor(1);
        let runs = Count::default();
        let counted = runs.clone();
        let periodic =
            executor.schedule_at_fixed_rate(Duration::ZERO, STEP, move || _ = counted.add());
        let periodic = periodic.expect("it is open");
        let handle = periodic.task_handle();
        let canceller = thread::spawn(move || handle.cancel());
        clock.advance(STEP);
        assert!(canceller.join().expect("nobody panics"));
        assert_eq!(periodic.state(), TaskState::Cancelled);
        assert!(periodic.join().is_err_and(|error| error.is_cancelled()));
        clock.advance(STEP);
        // A run in progress comes to its end.
        executor.close().expect("not on a worker");
        assert!(runs.get() <= 2);
    });
}

/// A run is put off while the worker takes the task: it takes place no earlier, or the extender is told that it
/// has begun.
#[test]
fn an_extension_is_kept_or_refused() {
    check(|| {
        let (clock, executor) = executor(1);
        let of_body = clock.clone();
        let (task, first) = executor.task().extender();
        let task = task.schedule(STEP, move || of_body.elapsed()).expect("it is open");
        let second = first.clone();
        let others = [
            thread::spawn(move || first.extend(3 * STEP)),
            thread::spawn(move || second.extend(2 * STEP)),
        ];
        clock.advance(STEP);
        let kept = others.map(|other| other.join().expect("nobody panics"));
        clock.advance(3 * STEP);
        let ran = task.join().expect("it runs");
        let least = [(kept[0], 3 * STEP), (kept[1], 2 * STEP), (true, STEP)];
        let least = least.into_iter().filter_map(|(is_kept, least)| is_kept.then_some(least));
        assert!(Some(ran) >= least.max(), "it ran after {ran:?}, and {kept:?} was promised");
        executor.close().expect("not on a worker");
    });
}

/// Calls of a debounced task race with its run: each call has a run after it that begins a quiet time later.
#[test]
fn a_call_that_puts_a_run_off_has_a_run_after_it() {
    check(|| {
        let (clock, executor) = executor(1);
        let calls = Count::default();
        let (counted, of_body) = (calls.clone(), clock.clone());
        let (tell, told) = std::sync::mpsc::channel();
        let save = executor.task().debounce(STEP, move || {
            tell.send((counted.get(), of_body.elapsed())).expect("it is listened to");
        });
        let save = Arc::new(save.expect("it is open"));
        let (caller, of_caller) = (Arc::clone(&save), calls.clone());
        let other = thread::spawn(move || {
            for _ in 0..2 {
                of_caller.add();
                assert!(caller.call());
            }
        });
        assert!(save.call());
        clock.advance(STEP);
        other.join().expect("nobody panics");
        clock.advance(STEP);
        clock.advance(STEP);
        clock.run_until_idle();
        assert!(!save.is_waiting(), "all calls have had their runs");
        executor.close().expect("not on a worker");
        let last = told.try_iter().last().map(|(seen, _)| seen);
        assert_eq!(last, Some(2), "the last run has seen both calls");
    });
}

/// A task is brought forward while the worker goes to sleep until the moment that it had: the worker is
/// woken.
#[test]
fn a_task_that_is_brought_forward_is_run() {
    check(|| {
        let (clock, executor) = executor(1);
        let task = executor.schedule(10 * STEP, || 7).expect("it is open");
        let handle = task.task_handle();
        let mover = thread::spawn(move || handle.reschedule(STEP));
        assert!(task.run_within(2 * STEP));
        assert!(mover.join().expect("nobody panics"));
        clock.advance(2 * STEP);
        assert_eq!(task.join().expect("it runs"), 7);
        executor.close().expect("not on a worker");
    });
}

/// A task is put off while a worker takes it: it has run, or it is not run before its new moment.
#[test]
fn a_task_that_is_put_off_is_not_early() {
    check(|| {
        let (clock, executor) = executor(1);
        let runs = Count::default();
        let counted = runs.clone();
        let task = executor.schedule(STEP, move || _ = counted.add()).expect("it is open");
        let handle = task.task_handle();
        let mover = thread::spawn(move || handle.reschedule(10 * STEP));
        clock.advance(STEP);
        let is_put_off = mover.join().expect("nobody panics");
        if is_put_off {
            assert_eq!((runs.get(), task.is_done()), (0, false));
            clock.advance(10 * STEP);
        }
        task.join().expect("it runs");
        assert_eq!(runs.get(), 1);
        executor.close().expect("not on a worker");
    });
}

/// A trigger that counts how often it is asked. Its first run is far.
struct Asked(Count);

impl Trigger for Asked {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.0.add();
        Some(Due::At(last.after() + 100 * STEP))
    }
}

/// A series is given another schedule while a worker takes it: the run that was due then is the old
/// schedule's, and the new one is not asked what comes after it.
#[test]
fn a_new_schedule_is_asked_once_for_its_first_run() {
    check(|| {
        let (clock, executor) = executor(1);
        let asked = Count::default();
        let trigger = Asked(asked.clone());
        let series = executor.schedule_at_fixed_rate(STEP, STEP, || ()).expect("it is open");
        let handle = series.task_handle();
        let changer = thread::spawn(move || handle.set_trigger(trigger));
        clock.advance(STEP);
        assert!(changer.join().expect("nobody panics"));
        assert_eq!(series.cancel_and_wait(), Ok(true));
        assert_eq!(asked.get(), 1);
        executor.close().expect("not on a worker");
    });
}

/// Two threads pause and resume a series while a worker runs it: when all have resumed it, it goes on.
#[test]
fn a_series_that_is_resumed_goes_on() {
    check(|| {
        let (clock, executor) = executor(1);
        let runs = Count::default();
        let counted = runs.clone();
        let series = executor.schedule_at_fixed_rate(STEP, STEP, move || _ = counted.add());
        let series = series.expect("it is open");
        let handle = series.task_handle();
        let other = thread::spawn(move || {
            handle.pause();
            handle.resume();
        });
        clock.advance(STEP);
        series.pause();
        series.resume();
        other.join().expect("nobody panics");
        series.resume();
        assert_eq!(series.cancel_and_wait(), Ok(true));
        assert!(runs.get() <= 1);
        executor.close().expect("not on a worker");
    });
}

/// G15, G46: a time limit expires while the task runs, before it, or after it: the task ends in one
/// way.
#[test]
fn a_task_ends_or_times_out() {
    check(|| {
        let (clock, executor) = executor(1);
        let drops = Count::default();
        let capture = drops.drop_of_one();
        let task = executor.task().timeout(STEP).submit(move || {
            let _capture = &capture;
            7
        });
        let task = task.expect("it is open");
        clock.advance(STEP);
        match task.join() {
            Ok(value) => assert_eq!(value, 7),
            Err(error) => assert!(error.is_timeout()),
        }
        executor.close().expect("not on a worker");
        assert_eq!(drops.get(), 1);
    });
}

/// Wakes a model's thread.
struct Unpark(Door);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.open();
    }
}

/// F49, G47: a future registers its waker while the task ends: it is woken, or it sees the result.
#[test]
fn an_async_waiter_is_woken() {
    check(|| {
        let (_, executor) = executor(1);
        let mut task = executor.submit(|| 7).expect("it is open");
        loop {
            let door = Door::default();
            let waker = Waker::from(Arc::new(Unpark(door.clone())));
            match Pin::new(&mut task).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcome) => break assert_eq!(outcome.expect("it runs"), 7),
                Poll::Pending => door.pass(),
            }
        }
        executor.close().expect("not on a worker");
    });
}

/// Panics when it is woken.
struct Alarmed;

impl Wake for Alarmed {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker"));
    }
}

/// F8, G47: two threads wait while a future whose waker panics awaits the same task: both are
/// woken, whenever they registered.
#[test]
fn a_waker_that_panics_does_not_strand_other_waiters() {
    check(|| {
        let (_, executor) = executor(1);
        let mut task = executor.submit(|| 7).expect("it is open");
        let waker = Waker::from(Arc::new(Alarmed));
        if Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending() {
            let task = Arc::new(task);
            let waiters = [(); 2].map(|()| {
                let task = Arc::clone(&task);
                thread::spawn(move || task.wait().expect("not a worker"))
            });
            waiters.into_iter().for_each(|waiter| waiter.join().expect("nobody panics"));
            assert_eq!(task.state(), TaskState::Completed);
        }
        executor.close().expect("not on a worker");
    });
}

/// G14, G47, M37: one thread joins a task while another drops the future of a second task.
#[test]
fn a_join_ends_and_a_result_is_dropped_once() {
    check(|| {
        let (_, executor) = executor(2);
        let drops = Count::default();
        let result = drops.drop_of_one();
        let dropped = executor.submit(move || result).expect("it is open");
        let dropper = thread::spawn(move || drop(dropped));
        let joined = executor.submit(|| 7).expect("it is open");
        assert_eq!(joined.join().expect("it runs"), 7);
        dropper.join().expect("nobody panics");
        executor.close().expect("not on a worker");
        assert_eq!(drops.get(), 1);
    });
}

/// F17, G19, G50: two workers that join each other's tasks get an error instead of waiting for
/// ever.
#[test]
fn workers_that_join_each_other_end() {
    check(|| {
        let (_, executor) = executor(1);
        let handle = executor.handle();
        let outer = executor.submit(move || {
            let inner = handle.submit(|| 7).map_err(|_| ())?;
            inner.join().map_err(|_| ())
        });
        // There is no other worker, so the inner join is refused.
        assert_eq!(outer.expect("it is open").join().expect("it does not panic"), Err(()));
        executor.close().expect("not on a worker");
    });
}
