//! The callbacks in no order, and the one that is registered late. The programs check their order themselves, and panic
//! if it is wrong.

use super::demonstration;

#[test]
fn ten_callbacks_run() {
    let end = demonstration("deferred_callbacks");
    let lines = |start: &str| end.stdout.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((lines("registered: in "), lines("ran: planned ")), (10, 10), "{end:?}");
}

#[test]
fn a_later_registration_may_be_due_sooner() {
    let end = demonstration("late_then_early");
    for callback in ["the first", "the second"] {
        let steps = format!("{callback} is registered, for");
        assert!(end.has_lines(&[&steps, callback, " runs"]), "{end:?}");
    }
}
