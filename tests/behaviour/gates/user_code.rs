//! Gates and leases are user code: they may panic, block, and call back into the crate.

use std::{sync::Arc, time::Instant};

use punctual::{
    CancelReason, CancellationToken, FailureReport, FailureSource, RunGate,
    gate::{Entry, Lease, RunEnd, Tick, from_fn},
};

use crate::support::{
    Bomb, Counter, Log, assert_cancelled, elsewhere, hold, in_time, manual, manual_with, ms,
};

/// A lease that panics where it is told to.
struct Faulty {
    watch: bool,
    left: Log<String>,
    leave: bool,
}

impl Lease for Faulty {
    fn watch(&self, _: CancellationToken) {
        assert!(!self.watch, "watch");
    }

    fn leave(&self, end: RunEnd<'_>, _: Option<Instant>) {
        self.left.push(format!("{end:?}"));
        assert!(!self.leave, "leave");
    }
}

/// Notes the reports: whose code it was, and its message.
fn reporting(
    reports: &Log<(FailureSource, String)>,
) -> impl Fn(&FailureReport<'_>) + Send + Sync + use<> {
    let reports = reports.clone();
    move |report| {
        assert!(report.task_id().is_some() && report.run_number() == Some(1));
        reports.push((report.source(), report.message().to_owned()));
    }
}

/// G56: a gate that panics is shut: the run is skipped, and the panic is reported.
#[test]
fn a_gate_that_panics_skips() {
    let reports = Log::new();
    let (clock, executor) = manual_with(|builder| builder.failure_handler(reporting(&reports)));
    let broken = || from_fn(|_| panic!("broken"));
    let once = executor.task().gate(broken()).schedule(ms(5), || ()).unwrap();
    let rate = executor.task().gate(broken()).schedule_at_fixed_rate(ms(10), ms(10), || ());
    let rate = rate.unwrap();
    clock.run_for(ms(20));
    assert_cancelled(&once, CancelReason::SkippedByGate);
    assert!(!rate.is_done() && rate.last_failure().is_none());
    assert_eq!(reports.entries(), vec![(FailureSource::Gate, "broken".to_owned()); 3]);
    let seen = executor.statistics();
    assert_eq!((seen.gate_skips, seen.runs, seen.failed_runs, seen.failed), (3, 0, 0, 0));
}

/// The report says whose code it was.
#[test]
fn a_report_is_a_line() {
    let lines = Log::new();
    let log = lines.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report: &FailureReport<'_>| log.push(report.to_string()))
    });
    let gate = from_fn(|_| std::panic::panic_any("broken"));
    let task = executor.task().name("sweep").gate(gate).submit(|| ()).unwrap();
    clock.run_until_idle();
    let begin = format!("the gate of task \"sweep\" ({}), run 1: panicked at ", task.id());
    let [line] = &lines.entries()[..] else { panic!("{lines:?}") };
    assert!(line.starts_with(&begin) && line.ends_with(": broken"), "{line}");
}

/// G54, G56: a lease that cannot be watched over is no lease: the run is skipped, and the lease is left. One that
/// panics when it is left changes nothing.
#[test]
fn a_lease_that_panics_is_reported() {
    for (watch, leave) in [(true, false), (false, true), (true, true)] {
        let (reports, left) = (Log::new(), Log::new());
        let (_, executor) = manual_with(|builder| builder.failure_handler(reporting(&reports)));
        let log = left.clone();
        let gate =
            from_fn(move |_| Entry::Hold(Arc::new(Faulty { watch, leave, left: log.clone() })));
        let task = executor.task().gate(gate).submit(|| 7).unwrap();
        let outcome = in_time("the task", move || task.join());
        if watch {
            assert!(outcome.is_err_and(|error| error.is_cancelled()));
            assert_eq!(left.entries(), ["NotRun"]);
        } else {
            assert_eq!(outcome.unwrap(), 7);
            assert_eq!(left.entries(), ["Completed"]);
        }
        let parts = [(watch, "watch"), (leave, "leave")];
        let expected = parts.into_iter().filter(|(panics, _)| *panics);
        let expected: Vec<_> =
            expected.map(|(_, part)| (FailureSource::Lease, part.into())).collect();
        assert_eq!(reports.entries(), expected);
    }
}

/// A gate is dropped when its task has ended, and a panic in its drop is contained and reported.
#[test]
fn a_gate_ends_with_its_task() {
    let reports = Log::new();
    let log = reports.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report: &FailureReport<'_>| log.push(report.source()))
    });
    for is_cancelled in [false, true] {
        let bomb = Bomb("a gate");
        let gate = from_fn(move |_| {
            hold(&bomb);
            Entry::Run
        });
        let task = executor.task().gate(gate).schedule(ms(10), || ()).unwrap();
        if is_cancelled {
            assert!(task.cancel());
        } else {
            clock.run_for(ms(10));
            task.join().unwrap();
        }
    }
    assert_eq!(reports.entries(), [FailureSource::Drop, FailureSource::Drop]);
}

/// A lease is dropped after it has been left, whatever its drop does.
#[test]
fn the_drop_of_a_lease_is_contained() {
    struct Explosive(#[allow(dead_code, reason = "it is dropped")] Bomb);
    impl Lease for Explosive {
        fn watch(&self, _: CancellationToken) {}

        fn leave(&self, _: RunEnd<'_>, _: Option<Instant>) {}
    }
    let (clock, executor) = manual(1);
    let gate = from_fn(|_| Entry::Hold(Arc::new(Explosive(Bomb("a lease")))));
    let rate = executor.task().gate(gate).schedule_at_fixed_rate(ms(10), ms(10), || ()).unwrap();
    clock.run_for(ms(20));
    assert_eq!((executor.statistics().runs, rate.is_done()), (2, false));
}

/// M164: a gate may call everything, about its own task, too: no lock is held.
#[test]
fn a_gate_may_call_back() {
    let (clock, executor) = manual(2);
    let (handle, own) = (executor.handle(), Log::new());
    let (asks, told) = (own.clone(), Counter::new());
    let tells = told.clone();
    let gate = from_fn(move |_: &Tick<'_>| {
        tells.add();
        let own: punctual::TaskHandle = asks.entries().pop().expect("it was put there");
        // On another thread, so that a lock of this one would be in the way.
        elsewhere(move || (own.state(), own.name(), own.reschedule(ms(1)))).get();
        handle.submit(|| 7).unwrap().join().unwrap();
        assert_eq!(handle.statistics().active, 1);
        Entry::Run
    });
    let task = executor.task().gate(gate).schedule(ms(10), || 8).unwrap();
    own.push(task.task_handle());
    clock.advance(ms(10));
    assert_eq!(in_time("the task", move || task.join()).unwrap(), 8);
    assert_eq!(told.get(), 1);
}

/// A gate that waits for its own task is refused, as the body of that task would be.
#[test]
fn a_gate_does_not_wait_for_its_own_task() {
    let (clock, executor) = manual(2);
    let (own, refused) = (Log::new(), Log::new());
    let (asks, log) = (own.clone(), refused.clone());
    let gate = from_fn(move |_| {
        let own: punctual::TaskHandle = asks.entries().pop().expect("it was put there");
        log.push(own.cancel_and_wait().is_err());
        Entry::Run
    });
    let task = executor.task().gate(gate).schedule(ms(10), || 8).unwrap();
    own.push(task.task_handle());
    clock.run_for(ms(10));
    assert_eq!(refused.entries(), [true]);
    assert_cancelled(&task, CancelReason::Requested);
}

/// One gate serves several tasks, in an `Arc` or behind its own type.
#[test]
fn a_gate_serves_several_tasks() {
    let (clock, executor) = manual(2);
    let asked = Log::new();
    let log = asked.clone();
    let shared = Arc::new(from_fn(move |tick| {
        log.push(tick.name().map(str::to_owned));
        Entry::Run
    }));
    let erased: Arc<dyn RunGate> = shared.clone();
    let builder = executor.task().gate(erased);
    builder.clone().name("a").schedule(ms(1), || ()).unwrap();
    builder.name("b").schedule(ms(2), || ()).unwrap();
    executor.task().gate(shared).name("c").schedule(ms(3), || ()).unwrap();
    clock.run_for(ms(3));
    let names = asked.entries().into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(names, ["a", "b", "c"]);
}
