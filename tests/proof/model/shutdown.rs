//! Shutdowns, and everything that may happen at the same time.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    time::Duration,
};

use punctual::{Grace, ScheduledThreadPoolExecutor, ShutdownPolicy};
use shuttle::{sync::Mutex, thread};

use crate::support::{Count, Door, check, executor};

const STEP: Duration = Duration::from_nanos(10);

/// F32, G21, G48, M14: a submission races with the shutdown: it is admitted and run, or it is
/// refused.
#[test]
fn a_submission_is_in_time_or_too_late() {
    check(|| {
        let (_, executor) = executor(1);
        let (handle, runs) = (executor.handle(), Count::default());
        let counted = runs.clone();
        let submitter = thread::spawn(move || {
            let submitted = handle.submit(move || counted.add());
            submitted.is_ok_and(|task| task.join().is_ok())
        });
        executor.shutdown();
        assert!(executor.await_termination(Duration::MAX).expect("not on a worker"));
        let was_in_time = submitter.join().expect("nobody panics");
        assert_eq!(runs.get(), usize::from(was_in_time));
    });
}

/// F32, G48: the shutdown cancels or refuses a delayed task: no thread waits for ever.
#[test]
fn a_delayed_task_ends_with_the_shutdown() {
    check(|| {
        let (_, executor) = executor(1);
        executor.set_executes_existing_delayed_tasks_after_shutdown(false);
        let handle = executor.handle();
        let submitter = thread::spawn(move || {
            if let Ok(task) = handle.schedule(STEP, || ()) {
                assert!(task.join().is_err_and(|error| error.is_cancelled()));
            }
        });
        executor.close().expect("not on a worker");
        submitter.join().expect("nobody panics");
    });
}

/// F33, G45, M65: a shutdown meets a periodic task between two runs: the task ends, and so does the
/// pool.
#[test]
fn a_periodic_task_ends_with_the_shutdown() {
    check(|| {
        let (clock, executor) = executor(1);
        let periodic = executor.schedule_at_fixed_rate(Duration::ZERO, STEP, || ());
        let periodic = periodic.expect("it is open");
        clock.advance(STEP);
        executor.close().expect("not on a worker");
        assert!(periodic.join().is_err_and(|error| error.is_cancelled()));
    });
}

/// F33, ST-011, G45: a periodic task returns to the queue while it is cancelled and the pool is
/// shut down. The task ends once, and so does the pool.
#[test]
fn a_periodic_task_goes_back_or_ends() {
    check(|| {
        let (clock, executor) = executor(1);
        executor.set_continues_existing_periodic_tasks_after_shutdown(true);
        let drops = Count::default();
        let capture = drops.drop_of_one();
        let periodic = executor.schedule_with_fixed_delay(Duration::ZERO, STEP, move || {
            let _capture = &capture;
        });
        let periodic = periodic.expect("it is open");
        let (canceller, stopper) = (periodic.task_handle(), executor.handle());
        let canceller = thread::spawn(move || canceller.cancel());
        let stopper = thread::spawn(move || stopper.shutdown());
        clock.advance(STEP);
        assert!(canceller.join().expect("nobody panics"));
        stopper.join().expect("nobody panics");
        executor.close().expect("not on a worker");
        assert!(periodic.join().is_err_and(|error| error.is_cancelled()));
        assert_eq!(drops.get(), 1);
    });
}

/// F34, G22, G49, M70: the tasks that `shutdown_now` returns were not run, and the rest were.
#[test]
fn a_task_that_is_returned_was_not_run() {
    check(|| {
        let (_, executor) = executor(2);
        let runs = Count::default();
        for _ in 0..3 {
            let counted = runs.clone();
            executor.execute(move || _ = counted.add()).expect("it is open");
        }
        let given_back = executor.shutdown_now().count();
        assert!(executor.await_termination(Duration::MAX).expect("not on a worker"));
        assert_eq!(runs.get() + given_back, 3);
    });
}

/// F16, G25, G50: one of the executor's own tasks drops the executor.
#[test]
fn the_last_drop_may_come_from_inside() {
    check(|| {
        let (_, executor) = executor(1);
        let slot = Arc::new(Mutex::new(None::<ScheduledThreadPoolExecutor>));
        let inside = Arc::clone(&slot);
        let task = executor.submit(move || {
            let own = inside.lock().expect("nobody panics").take();
            drop(own);
        });
        let (task, handle) = (task.expect("it is open"), executor.handle());
        *slot.lock().expect("nobody panics") = Some(executor);
        task.join().expect("it runs");
        drop(slot.lock().expect("nobody panics").take());
        assert!(handle.await_termination(Duration::MAX).expect("not on a worker"));
    });
}

/// F16, G50, M39: a capture owns the executor, and its task is cancelled from outside: the drop
/// waits for a task that joins the cancelled one, and that task is woken.
#[test]
fn a_cancelled_capture_may_own_the_executor() {
    check(|| {
        let (_, executor) = executor(2);
        let handle = executor.handle();
        let task = handle.schedule(Duration::MAX, move || drop(executor)).expect("it is open");
        let canceller = task.task_handle();
        let waits = handle.submit(move || task.wait()).expect("it is open");
        assert!(canceller.cancel());
        waits.join().expect("it runs").expect("it is woken");
        assert!(handle.await_termination(Duration::MAX).expect("not on a worker"));
    });
}

/// F38, ST-011, G24, G51, M69: two threads shut down at once, and a third waits for the last worker
/// to leave.
#[test]
fn all_threads_that_await_termination_are_woken() {
    check(|| {
        let (_, executor) = executor(1);
        executor.execute(|| ()).expect("it is open");
        let (one, other) = (executor.handle(), executor.handle());
        let stopper = thread::spawn(move || drop(one.shutdown_now()));
        let waiter = thread::spawn(move || {
            assert!(other.await_termination(Duration::MAX).expect("not on a worker"));
        });
        executor.close().expect("not on a worker");
        stopper.join().expect("nobody panics");
        waiter.join().expect("nobody panics");
    });
}

/// G24: a future that awaits termination is woken, whenever termination comes.
#[test]
fn a_future_that_awaits_termination_is_woken() {
    check(|| {
        let (_, executor) = executor(1);
        executor.execute(|| ()).expect("it is open");
        let mut termination = executor.termination();
        let awaits = thread::spawn(move || {
            let door = Arc::new(Opens(Door::default()));
            let waker = Waker::from(Arc::clone(&door));
            let polled = Pin::new(&mut termination).poll(&mut Context::from_waker(&waker));
            if polled.is_pending() {
                door.0.pass();
                let polled = Pin::new(&mut termination).poll(&mut Context::from_waker(&waker));
                assert!(polled.is_ready());
            }
        });
        executor.shutdown();
        awaits.join().expect("nobody panics");
        assert!(executor.is_terminated());
    });
}

/// Opens a door when it is woken.
struct Opens(Door);

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.0.open();
    }
}

/// A shutdown with a deadline gives up while the owner's drop waits already: the drop goes on, whatever still runs.
#[test]
fn a_drop_waits_no_longer_than_a_shutdown_with_a_deadline() {
    check(|| {
        let (_, executor) = executor(1);
        let (begun, door) = (Door::default(), Door::default());
        let (begins, passes) = (begun.clone(), door.clone());
        let body = move || {
            begins.open();
            passes.pass();
        };
        executor.execute(body).expect("it is open");
        begun.pass();
        let handle = executor.handle();
        let ends = executor.handle();
        let stopper = thread::spawn(move || {
            let report = handle.shutdown_within(Grace::patience(Duration::ZERO));
            assert!(!report.expect("not on a worker").is_terminated);
        });
        drop(executor);
        stopper.join().expect("nobody panics");
        door.open();
        assert!(ends.await_termination(Duration::MAX).expect("not on a worker"));
    });
}

/// A caller moves the entry of a task that no shutdown keeps: wherever the shutdown finds it, it ends.
#[test]
fn a_task_that_is_called_meanwhile_ends_with_the_shutdown() {
    check(|| {
        let (_, executor) = executor(1);
        let task = executor.task().on_shutdown(ShutdownPolicy::Cancel).debounce(STEP, || ());
        let debounced = task.expect("it is open");
        let caller = thread::spawn(move || debounced.call());
        executor.shutdown();
        assert!(executor.pending_tasks().is_empty(), "the shutdown has missed it");
        caller.join().expect("nobody panics");
    });
}

/// A caller brings a task forward that only a policy could keep if it were delayed: it was in time and the task runs, or it is
/// told that the task has ended.
#[test]
fn a_task_that_is_brought_forward_meanwhile_runs_or_has_ended() {
    check(|| {
        let (_, executor) = executor(1);
        executor.set_executes_existing_delayed_tasks_after_shutdown(false);
        // With one such task each is asked under its own lock.
        let other = executor.task().on_shutdown(ShutdownPolicy::Cancel).schedule(STEP, || ());
        let task = executor.schedule(STEP, || ()).expect("it is open");
        let handle = task.task_handle();
        let caller = thread::spawn(move || handle.run_now());
        executor.shutdown();
        let was_in_time = caller.join().expect("nobody panics");
        assert_eq!(task.join().is_ok(), was_in_time);
        assert!(other.expect("it is open").is_cancelled());
    });
}
