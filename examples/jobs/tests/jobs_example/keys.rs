//! The effects of the keys of a job, with real commands. No test depends on how fast the machine is: each
//! waits for what it wants to see.
#![cfg(unix)]

use std::path::Path;

use punctual::MissedRuns;

use crate::{
    config::{self, Schedule},
    program::{End, Program, TempFile, some_end},
};

/// A job file with one job.
fn file(command: &str, keys: &str) -> TempFile {
    TempFile::new("toml", format!("[[job]]\nname = 'it'\ncommand = \"{command}\"\n{keys}\n"))
}

/// Runs a file until it ends by itself.
fn run(command: &str, keys: &str) -> End {
    let file = file(command, keys);
    let end = Program::start("jobs", [file.path()]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    end
}

/// A program that runs a file, and is to be interrupted.
fn begin(command: &str, keys: &str) -> (Program, TempFile) {
    let file = file(command, keys);
    let args = ["--grace".as_ref(), "0s".as_ref(), file.path().as_os_str()];
    (Program::start("jobs", args), file)
}

/// A job on the calendar runs at each of its moments, and not before the clock shows it.
#[test]
fn a_calendar_runs_every_second() {
    let (mut jobs, _file) = begin("date +%s", "at = '* * * * * *'\nzone = 'Europe/Berlin'");
    let seconds: Vec<u64> = (0..3)
        .map(|_| {
            let line = jobs.read_until("it  | ");
            line.rsplit(' ').next().and_then(|second| second.parse().ok()).expect("a second")
        })
        .collect();
    jobs.read_until("run 3");
    jobs.interrupt();
    let end = jobs.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(seconds.is_sorted(), "{seconds:?}");
    assert!(end.has_line(&["│ it ", "at * * * * * * (Europe/Berlin)"]), "{end:?}");
}

/// A command that fails is tried again within its run, after twice as long each time, and the run
/// counts once.
#[test]
fn a_command_that_fails_is_tried_again() {
    let end = run(
        "echo tried; exit 3",
        "after = '0s'\nretry = { attempts = 4, first = '1ms', longest = '3ms' }",
    );
    let tried = end.stdout.iter().filter(|line| line.ends_with("| tried")).count();
    assert_eq!(tried, 4, "{end:?}");
    for (attempt, pause) in [(1, "1ms"), (2, "2ms"), (3, "3ms")] {
        let again = format!("attempt {attempt}: FAILED (exit status: 3); tried again in {pause}");
        assert!(end.has_line(&["it  run 1 ", &again]), "{end:?}");
    }
    assert!(end.has_line(&["run 1 ", "took", "FAILED (exit status: 3), at attempt 4"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "after 0s", "1 ┆", "1 ┆", "0 ┆", "3 ┆", "0 ┆"]), "{end:?}");
}

/// A run that succeeds in the end is no failure.
#[test]
fn a_later_attempt_may_succeed() {
    let marker = TempFile::new("marker", "");
    let command = format!("rm {} 2>&1 && exit 1; exit 0", marker.path().display());
    let end = run(&command, "after = '0s'\nretry = { attempts = 3, first = '1ms' }");
    assert!(end.has_line(&["run 1 ", "ok, at attempt 2"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "1 ┆", "0 ┆", "0 ┆", "1 ┆", "0 ┆"]), "{end:?}");
}

/// When all attempts of a run have failed, the next planned run begins with its first.
#[test]
fn the_next_run_has_all_its_attempts() {
    let retry = "every = '1ms'\nretry = { attempts = 2, first = '1ms' }";
    let (mut jobs, _file) = begin("exit 1", retry);
    jobs.read_until("run 1   attempt 1: FAILED");
    assert!(jobs.read_until("run 1").contains("at attempt 2"));
    jobs.read_until("run 2   attempt 1: FAILED");
    jobs.interrupt();
    assert_eq!(jobs.end().code, Some(0));
}

/// A run that waits for its next attempt does not keep the program from ending, and has failed then.
#[test]
fn an_attempt_to_come_is_not_waited_for() {
    let retry = "after = '0s'\nretry = { attempts = 2, first = '1h' }";
    let (mut jobs, _file) = begin("exit 1", retry);
    jobs.read_until("attempt 1: FAILED (exit status: 1); tried again in 1h");
    jobs.interrupt();
    let end = jobs.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.has_line(&["it  run 1 ", "took", "FAILED (exit status: 1)"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "1 ┆", "1 ┆", "0 ┆", "1 ┆", "0 ┆"]), "{end:?}");
}

/// A command that takes too long is told to stop, and killed if it does not. That is a failure.
#[test]
fn a_command_that_takes_too_long_is_stopped() {
    for (command, signal) in [("", "15"), ("trap '' TERM; ", "9")] {
        let command = format!("{command}echo begun; sleep 600; echo survived");
        let run = |factor: u64| {
            let end = run(&command, &format!("after = '0s'\ntimeout = '{}ms'", 200 * factor));
            assert!(!end.has_line(&["| survived"]), "{end:?}");
            assert!(end.has_line(&["│ it ", "1 ┆", "1 ┆", "0 ┆", "0 ┆", "1 ┆"]), "{end:?}");
            end
        };
        // In its time, the shell has to get as far as its trap.
        some_end(run, |end| end.has_line(&["run 1 ", &format!("TIMED OUT (signal: {signal}")]));
    }
    let end =
        run("sleep 600", "after = '0s'\ntimeout = '1ms'\nretry = { attempts = 2, first = '0s' }");
    assert!(end.has_line(&["run 1 ", "TIMED OUT", "at attempt 2"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "1 ┆", "1 ┆", "0 ┆", "1 ┆", "2 ┆"]), "{end:?}");
    let end = run("true", "after = '0s'\ntimeout = '1h'");
    assert!(end.has_line(&["run 1 ", "ok"]), "{end:?}");
}

/// With `overlap = "allow"` runs start while others still run; otherwise they do not.
#[test]
fn runs_overlap_if_that_is_allowed() {
    let (mut jobs, _file) = begin("echo begun; sleep 600", "every = '50ms'\noverlap = 'allow'");
    for _ in 0..3 {
        jobs.read_until("| begun");
    }
    jobs.interrupt();
    let end = jobs.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let stopped = end.stdout.iter().filter(|line| line.contains("stopped (signal: 15")).count();
    assert!(stopped >= 3, "{end:?}");

    // Each run would see the one before.
    let folder = TempFile::new("folder", "");
    let folder = folder.path().with_extension("running");
    let folder = folder.display();
    let alone = format!("mkdir {folder} || echo overlap; sleep 0.02; rmdir {folder}");
    for keys in ["", "overlap = 'queue'", "overlap = 'skip'"] {
        let (mut jobs, _file) = begin(&alone, &format!("every = '1ms'\n{keys}"));
        let runs: Vec<_> = (1..=4).map(|run| jobs.read_until(&format!("run {run} "))).collect();
        jobs.interrupt();
        let end = jobs.end();
        assert!(!end.has_line(&["| overlap"]), "{keys}: {end:?}");
        let missed = runs.iter().any(|run| run.contains("missed"));
        assert_eq!(missed, keys != "overlap = 'queue'", "{keys}: {runs:?}");
        // The run that was stopped may have left it behind.
        let _ = std::fs::remove_dir(folder.to_string());
    }
}

/// A jitter puts off what runs, too.
#[test]
fn a_run_is_put_off_by_its_jitter() {
    let other = "[[job]]\nname = 'end'\ncommand = 'kill -INT $PPID'\nafter = '10ms'";
    let end = run("true", &format!("every = '10000h'\njitter = '10000h'\n{other}"));
    assert!(end.has_line(&["end", "run 1"]) && !end.has_line(&["it ", "run 1"]), "{end:?}");
}

/// `overlap` and `on_missed` are the library's policies, by the names of the file.
#[test]
fn the_policies_for_missed_runs_have_names() {
    use MissedRuns::{Burst, Coalesce, Delay, Skip, Within};

    let ten = std::time::Duration::from_secs(600);
    let cases = [
        ("", Coalesce),
        ("on_missed = 'burst'", Burst),
        ("on_missed = 'coalesce'", Coalesce),
        ("on_missed = 'skip'", Skip),
        ("missed = 'skip'", Skip),
        ("on_missed = 'within 10min'", Within(ten)),
        ("overlap = 'queue'", Burst),
        ("overlap = 'skip'", Skip),
        ("overlap = 'allow'", Coalesce),
        ("overlap = 'allow'\non_missed = 'skip'", Skip),
        ("on_missed = 'delay'", Delay),
    ];
    for (keys, expected) in cases {
        for when in ["every = '1s'", "at = '@daily'\nzone = 'UTC'"] {
            if expected == Delay && when.starts_with("at") {
                continue;
            }
            let text = format!("[[job]]\nname = 'it'\ncommand = 'true'\n{when}\n{keys}\n");
            let plan = config::check(Path::new("it"), &text).expect("a job");
            let (Schedule::Every { missed, .. } | Schedule::At { missed, .. }) =
                plan.jobs[0].schedule
            else {
                panic!("{when}")
            };
            assert_eq!(missed, expected, "{when}, {keys}");
            assert_eq!(plan.jobs[0].may_overlap, keys.contains("allow"), "{keys}");
        }
    }
}
