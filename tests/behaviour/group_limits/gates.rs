//! A task with a group and a gate: the group comes first, and the question has the permit.

use punctual::gate::{Entry, from_fn};

use super::support::{Busy, Overlap, assert_sound};
use crate::support::{Counter, Log, eventually, manual, ms};

/// A gate is asked when it is the turn of its task, and no other task of the group runs meanwhile.
#[test]
fn a_gate_is_asked_in_turn() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let busy = Busy::start(&group);
    let (questions, overlap) = (Counter::new(), Overlap::default());
    let (asked, beside) = (questions.clone(), overlap.clone());
    let gate = from_fn(move |_| {
        beside.run(|| asked.add());
        Entry::Run
    });
    let first = group.task().gate(gate).submit(|| 1).unwrap();
    let beside = overlap.clone();
    let second = group.task().submit(move || beside.run(|| 2)).unwrap();
    eventually("both wait", || group.statistics().waiting == 2);
    assert_eq!(questions.get(), 0);
    busy.end();
    assert_eq!((first.join().unwrap(), second.join().unwrap()), (1, 2));
    assert_eq!((questions.get(), overlap.most()), (1, 1));
}

/// A gate that skips the run releases the permit, and the skip is no run.
#[test]
fn a_skip_releases_the_permit() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let skipped = group.task().gate(from_fn(|_| Entry::Skip)).submit(|| ()).unwrap();
    let series = group.task().gate(from_fn(|_| Entry::Skip));
    series.schedule_at_fixed_rate(ms(0), ms(10), || ()).unwrap();
    let after = group.task().submit(|| 7).unwrap();
    assert_eq!(after.join().unwrap(), 7);
    assert!(skipped.join().is_err());
    clock.run_for(ms(30));
    let now = group.statistics();
    assert_eq!((now.runs, now.cancelled, now.completed, now.active), (1, 1, 1, 0));
    assert_sound(now);
}

/// A gate that puts its run off releases the permit, and the others go on meanwhile.
#[test]
fn a_run_that_is_put_off_releases_the_permit() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let log = Log::new();
    let (noted, own) = (log.clone(), clock.clone());
    let gate = from_fn(move |tick| {
        noted.push(("asked", own.elapsed(), tick.attempt()));
        if tick.attempt() == 1 { Entry::Again(ms(20)) } else { Entry::Run }
    });
    let (noted, own) = (log.clone(), clock.clone());
    let patient = group.task().gate(gate);
    let patient = patient.schedule(ms(10), move || noted.push(("runs", own.elapsed(), 0))).unwrap();
    let (noted, own) = (log.clone(), clock.clone());
    let other =
        group.task().schedule(ms(10), move || noted.push(("other", own.elapsed(), 0))).unwrap();
    clock.run_for(ms(10));
    assert!(other.is_done() && !patient.is_done());
    // Another task has the permit when the gate is to be asked again.
    let busy = Busy::start(&group);
    clock.advance(ms(25));
    eventually("it waits", || group.statistics().waiting == 1);
    busy.end();
    patient.join().unwrap();
    let expected =
        [("asked", ms(10), 1), ("other", ms(10), 0), ("asked", ms(35), 2), ("runs", ms(35), 0)];
    assert_eq!(log.entries(), expected);
    assert_sound(group.statistics());
}

/// A run that is put off by its gate while the group is stopped does not come back.
#[test]
fn a_run_that_is_put_off_ends_with_its_group() {
    for is_series in [false, true] {
        let (_clock, executor) = manual(1);
        let group = executor.group("g").build().unwrap();
        let stops = group.clone();
        let gate = from_fn(move |_| {
            drop(stops.shutdown_now());
            Entry::Again(ms(1_000))
        });
        let task = group.task().gate(gate);
        let is_ended = if is_series {
            let series = task.schedule_at_fixed_rate(ms(0), ms(10), || ()).unwrap();
            series.join().is_err()
        } else {
            task.submit(|| ()).unwrap().join().is_err()
        };
        assert!(is_ended);
        eventually("the group ends", || group.is_terminated());
        assert_sound(group.statistics());
    }
}

/// A gate that panics, and one whose task is cancelled meanwhile, release the permit.
#[test]
fn an_end_inside_the_gate_releases_the_permit() {
    let (_clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let gate = from_fn(|_| -> Entry { panic!("no") });
    let panics = group.task().gate(gate).submit(|| ()).unwrap();
    assert!(panics.join().is_err());
    let (asking, go_on) = (Counter::new(), Counter::new());
    let (asks, goes) = (asking.clone(), go_on.clone());
    let gate = from_fn(move |_| {
        asks.add();
        goes.wait_for(1);
        Entry::Run
    });
    let cancelled = group.task().gate(gate).submit(|| ()).unwrap();
    asking.wait_for(1);
    assert!(cancelled.cancel());
    let after = group.task().submit(|| 7).unwrap();
    eventually("it waits", || group.statistics().waiting == 1);
    assert_eq!(group.statistics().active, 1);
    go_on.add();
    assert_eq!(after.join().unwrap(), 7);
    let now = group.statistics();
    assert_eq!((now.cancelled, now.completed, now.runs), (2, 1, 1));
}
