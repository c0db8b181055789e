//! The example program `jobs` as its user sees it: what it prints, how it exits, and that it
//! leaves no command behind.
//!
//! The program is a process of its own here.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "a test with processes and threads of its own"
)]
#![cfg_attr(not(unix), allow(dead_code, reason = "commands are run on unix alone"))]

#[allow(dead_code, reason = "other tests use the rest")]
mod program;

use program::{End, Program, TempFile};

/// The sample runs for as long as it is told, reports each run, and ends with a row for each job.
#[cfg(unix)]
#[test]
fn the_sample_runs_and_ends_with_a_table() {
    let end = Program::start("jobs", ["--for", "1s", "--grace", "30s"]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.has_line(&["greeting", "| hello, world"]), "{end:?}");
    assert!(end.has_line(&["greeting", "run 1", "late, took", "ok"]), "{end:?}");
    assert!(end.has_line(&["failing", "run 1", "FAILED (exit status: 1)"]), "{end:?}");
    for job in ["greeting", "clock", "too slow", "pause", "failing", "last words", "tomorrow"] {
        assert!(end.has_line(&[&format!("│ {job} ")]), "no row for {job}: {end:?}");
    }
}

/// A job file that is broken is refused with the line and the cause, and with exit code 2.
#[test]
fn a_broken_file_is_refused_with_line_and_cause() {
    let cases = [
        ("evry = '1s'", 4, "unknown field `evry`"),
        ("every = '1s'\nafter = '2s'", 5, "this has `every` and `after`"),
        ("", 1, "this has none"),
        ("every = '1.5parsec'", 4, "unknown time unit \"parsec\""),
        ("every = '15'", 4, "time unit needed"),
        ("every = '0s'", 4, "must be more than zero"),
        ("delay = '0s'", 4, "must be more than zero"),
        ("after = '1s'\ninitial = '1s'", 5, "`initial` says nothing"),
        ("delay = '1s'\nmissed = 'skip'", 5, "`missed` says nothing"),
        ("every = '1s'\nmissed = 'never'", 5, "unknown variant `never`"),
        ("after = '1s'\n[[job]]\nname = 'it'", 5, "missing field `command`"),
        (
            "after = '1s'\n[[job]]\nname = 'it'\ncommand = 'true'\nafter = '1s'",
            6,
            "there is a job \"it\" already, in line 2",
        ),
        ("this is not TOML", 4, "expected `=`"),
    ];
    for (rest, line, cause) in cases {
        let job = format!("[[job]]\nname = 'it'\ncommand = 'true'\n{rest}\n");
        let file = TempFile::new("toml", job);
        let end = Program::start("jobs", [file.path()]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{rest}: {end:?}");
        let place = format!("{}:{line}: ", file.path().display());
        assert!(end.stderr.contains(&place), "{rest}: no {place} in {end:?}");
        assert!(end.stderr.contains(cause), "{rest}: no {cause} in {end:?}");
    }
}

/// What breaks off at the end of a line is marked there, however lines end.
#[test]
fn a_mark_stands_where_a_line_breaks_off() {
    for newline in ["\n", "\r\n"] {
        let file = TempFile::new("toml", format!("[[job]]{newline}name = \"it{newline}"));
        let end = Program::start("jobs", [file.path()]).end();
        let shown: Vec<_> = end.stderr.lines().skip(1).collect();
        assert_eq!(shown, [" 2 | name = \"it", "   |           ^"], "{newline:?}");
    }
}

/// A call that cannot be understood, or names a file that is not there, ends with exit code 2.
#[test]
fn a_wrong_call_is_refused() {
    let cases: [(&[&str], &str); 6] = [
        (&["--nope"], "unknown option --nope"),
        (&["--for"], "--for wants a duration"),
        (&["--for", "soon"], "--for: bad duration \"soon\""),
        (&["--grace", "1"], "--grace: bad duration \"1\""),
        (&["one", "two"], "a second file, two"),
        (&["no/such/file.toml"], "no/such/file.toml: "),
    ];
    for (args, cause) in cases {
        let end = Program::start("jobs", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
}

/// Durations may have fractions, and a program whose jobs have all run ends without being told.
#[cfg(unix)]
#[test]
fn it_ends_by_itself_after_the_last_one_shot_job() {
    let file = TempFile::new("toml", "[[job]]\nname = 'it'\ncommand = 'exit 3'\nafter = '1.5ms'\n");
    let end = Program::start("jobs", [file.path()]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "FAILED (exit status: 3)"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "after 1.5ms", "1 ┆", "1 ┆", "0 ┆"]), "{end:?}");
}

/// Interrupted, it gives a command that does not end its grace, stops all its processes, and
/// still prints the table.
#[cfg(unix)]
#[test]
fn an_interrupt_stops_a_command_that_does_not_end() {
    let end = interrupted("echo begun; sleep 600; echo survived", "10ms");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 15"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "1 ┆", "0 ┆"]), "{end:?}");
    assert!(!end.has_line(&["| survived"]), "{end:?}");
}

/// A command that ignores the request to stop is killed, together with what it has started.
#[cfg(unix)]
#[test]
fn a_command_that_does_not_listen_is_killed() {
    let end = interrupted("trap '' TERM; echo begun; sleep 600; echo survived", "0s");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 9"]), "{end:?}");
    assert!(!end.has_line(&["| survived"]), "{end:?}");
}

/// A command that runs when the interrupt comes may finish within the grace period.
#[cfg(unix)]
#[test]
fn an_interrupt_lets_a_command_finish_in_its_grace() {
    let end = interrupted("echo begun; sleep 1; echo finished", "1h");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "| finished"]), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "ok"]), "{end:?}");
}

/// Runs one job every millisecond, and interrupts when its command says that it has begun.
#[cfg(unix)]
fn interrupted(command: &str, grace: &str) -> End {
    let job = format!("[[job]]\nname = 'it'\ncommand = \"{command}\"\nevery = '1ms'\n");
    let file = TempFile::new("toml", job);
    let args = ["--grace".as_ref(), grace.as_ref(), file.path().as_os_str()];
    let mut jobs = Program::start("jobs", args);
    jobs.read_until("| begun");
    jobs.interrupt();
    jobs.end()
}
