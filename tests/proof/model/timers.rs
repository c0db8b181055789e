//! Timers to await: whatever races with the worker that wakes, a sleeper that waits is woken.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use punctual::Sleep;
use shuttle::{
    sync::{Condvar, Mutex},
    thread,
};

use crate::support::{check, executor, executor_with};

const STEP: Duration = Duration::from_nanos(10);

/// The signal on which a thread that drives a future sleeps.
#[derive(Default)]
pub(crate) struct Signal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub(crate) fn wait(&self) {
        let mut is_set = self.is_set.lock().expect("nobody panics");
        while !*is_set {
            is_set = self.changed.wait(is_set).expect("nobody panics");
        }
        *is_set = false;
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.is_set.lock().expect("nobody panics") = true;
        self.changed.notify_one();
    }
}

fn poll(sleep: &mut Sleep, signal: &Arc<Signal>) -> Poll<bool> {
    let waker = Waker::from(Arc::clone(signal));
    Pin::new(sleep).poll(&mut Context::from_waker(&waker)).map(|ended| ended.is_ok())
}

/// Drives the sleep to its end, which must come. Returns `true` if it was due.
fn drive(sleep: &mut Sleep, signal: &Arc<Signal>) -> bool {
    loop {
        match poll(sleep, signal) {
            Poll::Ready(was_due) => return was_due,
            Poll::Pending => signal.wait(),
        }
    }
}

#[test]
fn a_sleeper_is_woken_by_its_deadline_or_by_the_shutdown() {
    check(|| {
        let (clock, executor) = executor(1);
        let mut sleep = executor.sleep(STEP);
        let sleeper = thread::spawn(move || drive(&mut sleep, &Arc::default()));
        let moved = clock.clone();
        let mover = thread::spawn(move || moved.advance(STEP));
        drop(executor.shutdown_now());
        let was_due = sleeper.join().expect("nobody panics");
        assert!(!was_due || clock.elapsed() >= STEP, "it was early");
        mover.join().expect("nobody panics");
        executor.close().expect("not on a worker");
    });
}

/// The worker takes the alarm while the sleeper brings another waker: the last one is woken.
#[test]
fn the_last_waker_is_woken() {
    check(|| {
        let (clock, executor) = executor(1);
        let mut sleep = executor.sleep(STEP);
        let mover = thread::spawn(move || clock.advance(STEP));
        let (first, last) = (Arc::default(), Arc::default());
        let is_over = poll(&mut sleep, &first).is_ready();
        assert!(is_over || drive(&mut sleep, &last));
        mover.join().expect("nobody panics");
        executor.close().expect("not on a worker");
    });
}

/// M170: the worker takes the alarm while it is put off: it is due at the new deadline.
#[test]
fn a_reset_meets_the_worker() {
    check(|| {
        let (clock, executor) = executor(1);
        let mut sleep = executor.sleep(STEP);
        let signal = Arc::default();
        assert!(poll(&mut sleep, &signal).is_pending());
        let moved = clock.clone();
        let mover = thread::spawn(move || moved.advance(STEP));
        sleep.reset(2 * STEP);
        mover.join().expect("nobody panics");
        let deadline = sleep.deadline().expect("it has one");
        let sleeper = thread::spawn(move || drive(&mut sleep, &signal));
        clock.advance(2 * STEP);
        assert!(sleeper.join().expect("nobody panics"));
        assert!(clock.now() >= deadline);
        executor.close().expect("not on a worker");
    });
}

/// A shutdown may come before the reset, so that the alarm may not be put off, or after it.
#[test]
fn a_reset_meets_the_shutdown() {
    check(|| {
        let (clock, executor) = executor(1);
        let mut sleep = executor.sleep(STEP);
        let signal = Arc::default();
        assert!(poll(&mut sleep, &signal).is_pending());
        let handle = executor.handle();
        let stopper = thread::spawn(move || handle.shutdown());
        sleep.reset(3 * STEP);
        let sleeper = thread::spawn(move || drive(&mut sleep, &signal));
        stopper.join().expect("nobody panics");
        clock.advance(STEP);
        clock.advance(2 * STEP);
        let was_due = sleeper.join().expect("nobody panics");
        assert!(!was_due || clock.elapsed() >= 3 * STEP, "it was early");
        executor.close().expect("not on a worker");
    });
}

/// A drop takes the alarm, or the worker does; the executor comes to its end, and no permit is lost.
#[test]
fn a_drop_meets_the_worker() {
    check(|| {
        let (clock, executor) = executor_with(|builder| builder.core_pool_size(1).max_pending(1));
        let mut sleep = executor.sleep(STEP);
        assert!(poll(&mut sleep, &Arc::default()).is_pending());
        let mover = thread::spawn(move || clock.advance(STEP));
        drop(sleep);
        mover.join().expect("nobody panics");
        // A worker that has taken the alarm has the permit for a moment longer.
        while executor.execute(|| ()).is_err() {
            thread::yield_now();
        }
        executor.close().expect("not on a worker");
    });
}
