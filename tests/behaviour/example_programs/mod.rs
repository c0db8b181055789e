//! The example programs but for the largest, as their users see them; their parts that depend on
//! clocks, on clocks that the tests move; and what all examples do when their output cannot be
//! written.

mod callbacks;
mod ctrl_c;
mod debounce;
mod event_loop;
mod expiring_cache;
mod heartbeats;
mod meeting_reminders;
mod output;
#[cfg(all(feature = "histograms", feature = "metrics"))]
mod prometheus;
mod retry;
mod tenants;
mod unpaid_orders;

use crate::support::program::{End, Program, some_end};

/// Each example prints its usage, and refuses an unknown argument with exit code 2.
#[test]
fn each_has_a_usage() {
    for example in
        ["debounce", "expiring_cache", "heartbeats", "meeting_reminders", "unpaid_orders"]
    {
        let end = Program::start(example, ["--help"]).end();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
        assert!(end.has_line(&["Usage: ", example]), "{end:?}");
        let end = Program::start(example, ["--nope"]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{end:?}");
        assert!(end.stderr.contains("unknown") && end.stderr.contains("Usage: "), "{end:?}");
    }
}

/// A value may follow an equals sign, and after `--` no argument is an option.
#[test]
fn each_command_line_follows_the_conventions() {
    let cases: [(&str, &[&str], i32, &str); 6] = [
        ("expiring_cache", &["--", "--help"], 2, "unknown argument --help"),
        ("unpaid_orders", &["--", "-h"], 2, "unknown argument -h"),
        ("unpaid_orders", &["-x"], 2, "unknown option -x"),
        ("heartbeats", &["--timeout=0s"], 2, "--timeout: it must be more than zero"),
        ("meeting_reminders", &["--before=10"], 2, "--before: bad duration \"10\""),
        ("meeting_reminders", &["--", "--speed"], 2, "--speed: No such file"),
    ];
    for (example, args, code, cause) in cases {
        let end = Program::start(example, args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(code), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
    for example in ["expiring_cache", "unpaid_orders"] {
        let end = Program::start(example, ["--", "-"]).end();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
        assert!(!end.has_line(&["A demonstration"]), "{end:?}");
    }
}

/// Runs an example's demonstration, which ends by itself and successfully, and shows all this.
pub(crate) fn demonstrates(example: &str, shows: impl Fn(&End) -> bool) {
    let run = |_| Program::start(example, [""; 0]).end();
    some_end(run, |end| end.code == Some(0) && shows(end));
}

/// Sends these lines of input, and no more.
pub(crate) fn typed(example: &str, lines: impl AsRef<[u8]>) -> End {
    let mut program = Program::start_with_input(example, [""; 0]);
    program.type_in(lines);
    let end = program.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    end
}
