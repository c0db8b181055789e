//! The callbacks in no order, and the one that is registered late. The programs check their order themselves, and panic
//! if it is wrong.

use super::demonstrates;

#[test]
fn ten_callbacks_run() {
    demonstrates("deferred_callbacks", |end| {
        let lines = |start: &str| end.stdout.iter().filter(|line| line.starts_with(start)).count();
        (lines("registered: in "), lines("ran: planned ")) == (10, 10)
    });
}

#[test]
fn a_later_registration_may_be_due_sooner() {
    demonstrates("late_then_early", |end| {
        ["the first", "the second"].iter().all(|callback| {
            let steps = format!("{callback} is registered, for");
            end.has_lines(&[&steps, callback, " runs"])
        })
    });
}
