//! The service that stops cleanly.

#![cfg(unix)]

use crate::support::program::{Program, some_end};

#[test]
fn the_service_says_what_became_of_its_tasks() {
    let run = |_| {
        let mut service = Program::start("ctrl_c", [""; 0]);
        service.read_until("Serving; Ctrl-C stops.");
        service.read_until("poll");
        service.interrupt();
        service.ended()
    };
    let stopping = ["Stopping: what runs may go on for 300ms.", "the copy stops after "];
    let report = ["ran to its end: ", "copy", "\ncancelled: poll, report"];
    some_end(run, |end| {
        (end.code, end.stderr.as_str()) == (Some(0), "")
            && end.has_lines(&stopping)
            && end.has_lines(&report)
    });
}

/// A user who does not want to wait after the first one sends a second one.
#[test]
fn a_second_signal_ends_the_service_at_once() {
    let run = |_| {
        let mut service = Program::start("ctrl_c", [""; 0]);
        service.read_until("poll");
        service.interrupt();
        service.read_until("Stopping");
        service.interrupt();
        service.ended()
    };
    some_end(run, |end| {
        (end.code, end.stderr.as_str()) == (Some(130), "") && !end.has_line(&["ran to its end"])
    });
}
