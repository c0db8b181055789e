//! The behaviour of every example when its output cannot be written.

#![cfg(unix)]

use std::process::Stdio;

use crate::program::{End, LIMIT, Program, closed_pipe};

/// Each example, with a command line that makes it write.
const CALLS: [(&str, &[&str]); 18] = [
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
    ("jobs", &[]),
    ("jobs", &["--help"]),
    ("meeting_reminders", &[]),
    ("meeting_reminders", &["--help"]),
    ("retry", &[]),
    ("tenants", &[]),
    ("unpaid_orders", &[]),
    ("unpaid_orders", &["--help"]),
];

/// The end of an example, without the remark that it writes to standard error.
fn written_to(stdout: Stdio, example: &str, args: &[&str]) -> End {
    let mut end = Program::start_into(stdout, example, args).end();
    let errors = end.stderr.lines().filter(|line| !line.starts_with("note: "));
    end.stderr = errors.collect::<Vec<_>>().join("\n");
    end
}

/// The examples end quietly, and with success.
#[test]
fn each_ends_quietly_when_nobody_reads() {
    for (example, args) in CALLS {
        let end = written_to(closed_pipe(), example, args);
        let ended = (end.code, end.stderr.as_str());
        assert_eq!(ended, (Some(0), ""), "{example} {args:?}: {end:?}");
    }
}

/// The examples report it in one line, and end without success.
#[cfg(target_os = "linux")]
#[test]
fn each_reports_that_its_output_cannot_be_written() {
    use crate::program::full_disk;

    for (example, args) in CALLS {
        let end = written_to(full_disk(), example, args);
        let expected = "error: cannot write the output: No space left on device (os error 28)";
        let ended = (end.code, end.stderr.as_str());
        assert_eq!(ended, (Some(1), expected), "{example} {args:?}: {end:?}");
    }
}

/// This holds even while the main thread waits for the next line and another thread cannot write.
#[test]
fn an_interactive_example_ends_when_nobody_reads() {
    let mut cache = Program::start_with_input("expiring_cache", ["-"]);
    // An entry expires every tenth of a second, for longer than the program may run.
    for tenths in 1..=LIMIT.as_secs() * 10 {
        cache.type_in(format!("set it{tenths} {}.{} x\n", tenths / 10, tenths % 10));
    }
    cache.type_in("get nothing\n");
    cache.read_until("there is no nothing");
    cache.stop_reading();
    let end = cache.ended();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
}
