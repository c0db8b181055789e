//! A gate is asked while something ends its task.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use punctual::{
    CancellationToken, RunGate, TaskError,
    gate::{self, Entry, Lease, RunEnd, from_fn},
};
use shuttle::thread;

use crate::support::{Count, Door, check, executor};

const STEP: Duration = Duration::from_nanos(10);

/// The leases that have been given and left, and how many of them were for runs that took place.
#[derive(Clone, Default)]
struct Leases {
    given: Count,
    left: Count,
    used: Count,
}

struct Counted(Leases);

impl Lease for Counted {
    fn watch(&self, _: CancellationToken) {}

    fn leave(&self, end: RunEnd<'_>, _: Option<Instant>) {
        self.0.left.add();
        if matches!(end, RunEnd::Completed) {
            self.0.used.add();
        }
    }
}

impl Leases {
    fn gate(&self) -> impl RunGate + use<> {
        let leases = self.clone();
        from_fn(move |_| leases.give())
    }

    fn give(&self) -> Entry {
        self.given.add();
        Entry::Hold(Arc::new(Counted(self.clone())))
    }

    fn assert_left(&self, runs: &Count) {
        assert_eq!((self.left.get(), self.used.get()), (self.given.get(), runs.get()));
    }
}

/// G53, G54, M158, M159: a cancellation meets the question, the step after it, or the body: the task ends in one way,
/// and the lease is left.
#[test]
fn a_task_is_let_through_or_cancelled() {
    check(|| {
        let (_, executor) = executor(1);
        let (leases, runs, drops) = (Leases::default(), Count::default(), Count::default());
        let (counted, capture) = (runs.clone(), drops.drop_of_one());
        let task = executor.task().gate(leases.gate()).submit(move || {
            let _capture = &capture;
            counted.add();
        });
        let task = task.expect("it is open");
        let is_cancelled = task.cancel();
        let outcome = task.join();
        executor.close().expect("not on a worker");
        assert_eq!(is_cancelled, matches!(outcome, Err(TaskError::Cancelled(_))));
        assert!(runs.get() <= 1 && (is_cancelled || runs.get() == 1));
        assert_eq!(drops.get(), 1);
        leases.assert_left(&runs);
    });
}

/// M158: what ends a task while its gate is asked keeps the body from running.
#[test]
fn a_body_does_not_run_after_the_end() {
    for ends in [Ends::ByCancel, Ends::ByShutdown, Ends::ByLimit] {
        check(move || {
            let (clock, executor) = executor(1);
            let (leases, runs) = (Leases::default(), Count::default());
            let (asking, go_on) = (Door::default(), Door::default());
            let (given, opens, waits) = (leases.clone(), asking.clone(), go_on.clone());
            let gate = from_fn(move |_| {
                opens.open();
                waits.pass();
                given.give()
            });
            let counted = runs.clone();
            let task = executor.task().gate(gate).timeout(STEP).submit(move || counted.add());
            let task = task.expect("it is open");
            asking.pass();
            match ends {
                Ends::ByCancel => assert!(task.cancel()),
                Ends::ByShutdown => assert_eq!(executor.shutdown_now().len(), 0),
                Ends::ByLimit => clock.advance(STEP),
            }
            go_on.open();
            assert!(task.join().is_err_and(|error| error.is_cancelled()));
            executor.close().expect("not on a worker");
            assert_eq!(runs.get(), 0);
            leases.assert_left(&runs);
        });
    }
}

#[derive(Clone, Copy)]
enum Ends {
    ByCancel,
    ByShutdown,
    ByLimit,
}

/// A time limit expires while the gate is asked, before, or after: the task ends in one way, and a body that
/// ran did so under its lease.
#[test]
fn a_task_is_let_through_or_times_out() {
    check(|| {
        let (clock, executor) = executor(1);
        let (leases, runs) = (Leases::default(), Count::default());
        let counted = runs.clone();
        let task = executor.task().gate(leases.gate()).timeout(STEP).submit(move || counted.add());
        let task = task.expect("it is open");
        clock.advance(STEP);
        match task.join() {
            Ok(_) => assert_eq!(runs.get(), 1),
            Err(error) => assert!(error.is_timeout()),
        }
        executor.close().expect("not on a worker");
        leases.assert_left(&runs);
    });
}

/// The executor is stopped while the gate is asked, before, or after: no thread is left waiting, and each lease
/// is left.
#[test]
fn a_task_is_let_through_or_stopped() {
    check(|| {
        let (_, executor) = executor(1);
        let (leases, runs) = (Leases::default(), Count::default());
        let counted = runs.clone();
        let task = executor.task().gate(leases.gate()).submit(move || counted.add());
        let task = task.expect("it is open");
        drop(executor.shutdown_now());
        assert_eq!(task.join().is_ok(), runs.get() == 1);
        executor.close().expect("not on a worker");
        leases.assert_left(&runs);
    });
}

/// A task goes back into the queue, to be asked again, while it is cancelled: it is not left there.
#[test]
fn a_task_that_is_put_off_is_cancelled() {
    check(|| {
        let (clock, executor) = executor(1);
        let drops = Count::default();
        let capture = drops.drop_of_one();
        let gate = from_fn(|_| Entry::Again(STEP));
        let task = executor.task().gate(gate).submit(move || {
            let _capture = &capture;
        });
        let task = task.expect("it is open");
        let handle = task.task_handle();
        let canceller = thread::spawn(move || handle.cancel());
        clock.advance(STEP);
        assert!(canceller.join().expect("nobody panics"));
        assert!(task.join().is_err_and(|error| error.is_cancelled()));
        executor.close().expect("not on a worker");
        assert_eq!(drops.get(), 1);
    });
}

/// M165: a task goes back into the queue while the executor is shut down, which keeps it: it runs, and the
/// executor ends.
#[test]
fn a_task_that_is_put_off_outlives_a_shutdown() {
    check(|| {
        let (clock, executor) = executor(2);
        clock.set_auto_advance(true);
        let runs = Count::default();
        let counted = runs.clone();
        let gate = from_fn(|tick| match tick.attempt() {
            1 => Entry::Again(STEP),
            _ => Entry::Run,
        });
        let task = executor.task().gate(gate).submit(move || counted.add()).expect("it is open");
        executor.shutdown();
        assert_eq!(executor.await_termination(Duration::MAX), Ok(true));
        assert_eq!((task.join().expect("it was kept"), runs.get()), (0, 1));
    });
}

/// The threads from which answers come.
#[derive(Clone, Default)]
struct Answering(Arc<Mutex<Vec<thread::JoinHandle<()>>>>);

impl Answering {
    /// Returns a gate whose answers come later, each from a thread of its own.
    fn gate(&self, leases: &Leases) -> impl RunGate + use<> {
        let (answering, leases) = (self.clone(), leases.clone());
        from_fn(move |_| {
            let (reply, entry) = gate::later();
            let leases = leases.clone();
            let thread = thread::spawn(move || reply.send(leases.give()));
            answering.0.lock().expect("nobody panics").push(thread);
            entry
        })
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *self.0.lock().expect("nobody panics"));
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
    }
}

/// G68, M214: the answer meets the worker that queues the task, parked, and a shutdown: it is not overlooked.
#[test]
fn an_answer_that_comes_later_is_not_overlooked() {
    check(|| {
        let (_, executor) = executor(1);
        let (leases, runs, answering) = (Leases::default(), Count::default(), Answering::default());
        let counted = runs.clone();
        let task = executor.task().gate(answering.gate(&leases)).submit(move || counted.add());
        executor.shutdown();
        assert_eq!(executor.await_termination(Duration::MAX), Ok(true));
        assert_eq!((task.expect("it is open").join().expect("it was kept"), runs.get()), (0, 1));
        answering.join();
        leases.assert_left(&runs);
    });
}

/// G54: the answer meets a cancellation, or a pause: the lease is left once, and a body runs under none other.
#[test]
fn an_answer_that_comes_later_meets_the_end_of_the_wait() {
    for is_paused in [true, false] {
        check(move || {
            let (_, executor) = executor(1);
            let (leases, runs, answering) =
                (Leases::default(), Count::default(), Answering::default());
            let counted = runs.clone();
            let task = executor.task().gate(answering.gate(&leases)).submit(move || counted.add());
            let task = task.expect("it is open");
            if is_paused {
                let is_late = !task.pause();
                assert!(task.resume() || is_late);
                assert_eq!((task.join().expect("it goes on"), runs.get()), (0, 1));
            } else {
                let is_cancelled = task.cancel();
                assert_eq!(task.join().is_err(), is_cancelled);
            }
            executor.close().expect("not on a worker");
            answering.join();
            leases.assert_left(&runs);
        });
    }
}

/// A periodic task is moved while its gate puts it off: it goes on from one of the two moments.
#[test]
fn a_series_that_is_put_off_is_moved() {
    check(|| {
        let (clock, executor) = executor(1);
        let runs = Count::default();
        let counted = runs.clone();
        let gate = from_fn(|tick| match tick.attempt() {
            1 => Entry::Again(STEP),
            _ => Entry::Run,
        });
        let series = executor.task().gate(gate).schedule_at_fixed_rate(
            Duration::ZERO,
            100 * STEP,
            move || _ = counted.add(),
        );
        let series = series.expect("it is open");
        let handle = series.task_handle();
        let mover = thread::spawn(move || handle.reschedule(2 * STEP));
        assert!(mover.join().expect("nobody panics"));
        // A series that were lost here would never run.
        while runs.get() == 0 {
            clock.run_for(STEP);
        }
        assert_eq!(runs.get(), 1);
        assert!(series.cancel());
        executor.close().expect("not on a worker");
    });
}
