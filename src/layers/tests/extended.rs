//! A worker has taken a task whose run is put off: what was asked before and after, and what is queued then.

use super::{Change, Control, Extension};
use crate::{layers::put_off::Opens, time::Timestamp};

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(1_000 + nanos)
}

/// A task that a worker has taken at ten.
fn taken() -> Control {
    let extension = Some(Extension::new(Opens::Always, Some(at(10))));
    Control { extension, ..Control::default() }
}

fn extend(control: &Control, moment: Timestamp) -> bool {
    control.extension.as_ref().is_some_and(|extension| extension.word().put_off_to(moment))
}

/// A change that finds no entry.
fn ask(control: &mut Control, change: Change, is_periodic: bool) {
    let closed = control.close();
    control.await_refusal(closed, is_periodic);
    let _ = control.note(change, is_periodic);
}

#[test]
fn an_extension_overrules_what_was_asked_before() {
    for change in [Change::At(at(20)), Change::Within(at(20))] {
        let mut control = taken();
        ask(&mut control, change, true);
        assert!(extend(&control, at(30)));
        assert_eq!(control.look(at(10), false), Some(at(30)));
        assert_eq!(control.resume_at(at(30)), (at(30), true));
    }
}

#[test]
fn what_is_asked_afterwards_overrules_an_extension() {
    for change in [Change::At(at(20)), Change::Within(at(20))] {
        let mut control = taken();
        assert!(extend(&control, at(30)));
        ask(&mut control, change, true);
        assert_eq!(control.look(at(10), false), Some(at(10)));
        assert_eq!(control.resume_at(at(10)), (at(20), true));
    }
}

/// An extra run takes place, and the plan behind it was put off.
#[test]
fn an_extra_run_leaves_the_extension_of_the_plan() {
    for change in [None, Some(Change::Resume), Some(Change::Within(at(90)))] {
        let mut control = Control { plan: Some(at(20)), extra: Some(at(10)), ..taken() };
        assert!(extend(&control, at(30)));
        if let Some(change) = change {
            ask(&mut control, change, true);
        }
        assert_eq!(control.look(at(10), true), None);
        control.extra = None;
        assert_eq!(control.resume_at(at(40)), (at(30), true), "and leaves the wall clock");
    }
}

/// An extender that is made while a worker has the task does not know when it was due.
#[test]
fn a_refused_run_is_queued_for_when_it_was_planned() {
    let extension = Some(Extension::new(Opens::Always, Some(Timestamp::PAST)));
    let mut control = Control { extension, ..Control::default() };
    ask(&mut control, Change::Pause, false);
    ask(&mut control, Change::Resume, false);
    assert_eq!(control.look(at(10), false), Some(at(10)));
    assert_eq!(control.resume_at(at(10)), (at(10), true));
}
