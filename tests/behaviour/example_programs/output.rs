//! The behaviour of every example of this package when its output cannot be written.

#![cfg(unix)]

#[cfg(target_os = "linux")]
use crate::support::program::report_a_full_disk;
use crate::support::{
    LONG,
    program::{Call, Program, end_quietly_when_unread},
};

/// Each example, with a command line that makes it write.
const CALLS: [Call; 16] = [
    ("ctrl_c", &[]),
    ("debounce", &["--help"]),
    ("deferred_callbacks", &[]),
    ("event_loop", &[]),
    ("late_then_early", &[]),
    ("expiring_cache", &[]),
    ("expiring_cache", &["--help"]),
    ("heartbeats", &[]),
    ("heartbeats", &["--listen", "127.0.0.1:0"]),
    ("heartbeats", &["--help"]),
    ("meeting_reminders", &[]),
    ("meeting_reminders", &["--help"]),
    ("retry", &[]),
    ("tenants", &[]),
    ("unpaid_orders", &[]),
    ("unpaid_orders", &["--help"]),
];

/// The examples end quietly, and with success.
#[test]
fn each_ends_quietly_when_nobody_reads() {
    end_quietly_when_unread(&CALLS);
}

/// The examples report it in one line, and end without success.
#[cfg(target_os = "linux")]
#[test]
fn each_reports_that_its_output_cannot_be_written() {
    report_a_full_disk(&CALLS);
}

/// This holds even while the main thread waits for the next line and another thread cannot write.
#[test]
fn an_interactive_example_ends_when_nobody_reads() {
    let mut cache = Program::start_with_input("expiring_cache", ["-"]);
    // An entry expires every tenth of a second, for longer than the program may run.
    for tenths in 1..=LONG.as_secs() * 10 {
        cache.type_in(format!("set it{tenths} {}.{} x\n", tenths / 10, tenths % 10));
    }
    cache.type_in("get nothing\n");
    cache.read_until("there is no nothing");
    cache.stop_reading();
    let end = cache.ended();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
}
