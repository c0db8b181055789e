//! The example program `jobs` as its user sees it: its output, its exit codes, and that it leaves
//! no command behind.
//!
//! The program runs as a process of its own here.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "a test with processes and threads of its own"
)]
#![cfg_attr(not(unix), allow(dead_code, reason = "commands are run on unix alone"))]

mod broken;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../src/config.rs"]
mod config;
#[path = "../../src/draft.rs"]
mod draft;
#[path = "../../src/fault.rs"]
mod fault;
#[path = "../../src/jitter.rs"]
mod jitter;
mod keys;
#[path = "../../src/lateness.rs"]
mod lateness;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../src/moment.rs"]
mod moment;
mod next;
mod output;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../src/overdue.rs"]
mod overdue;
#[path = "../../../../tests/behaviour/support/patience.rs"]
mod patience;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../../tests/behaviour/support/program.rs"]
mod program;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../src/retry.rs"]
mod retry;
#[path = "../../src/schedule.rs"]
mod schedule;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../src/timetable.rs"]
mod timetable;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../src/values.rs"]
mod values;

use std::time::{Duration, Instant, UNIX_EPOCH};

use allocation_counter::measure;
use config::Schedule;
use lateness::Lateness;
use moment::{Moment, Now};
use program::{End, Program, TempFile, some_end};
use punctual::{MissedRuns, trigger::cron};
use timetable::Planned;

/// The sample runs for the given time, reports each run, and ends with a row for each job.
#[cfg(unix)]
#[test]
fn the_sample_runs_and_ends_with_a_table() {
    let run = |seconds| {
        let time = format!("{seconds}s");
        let end = Program::start("jobs", ["--for", &time, "--grace", "30s"]).end();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
        for job in ["greeting", "clock", "too slow", "pause", "failing", "last words", "tomorrow"] {
            assert!(end.has_line(&[&format!("│ {job} ")]), "no row for {job}: {end:?}");
        }
        end
    };
    some_end(run, |end| {
        end.has_line(&["greeting", "| hello, world"])
            && end.has_line(&["greeting", "run 1", "late, took", "ok"])
            && end.has_line(&["failing", "run 1", "FAILED (exit status: 1)"])
    });
}

/// A command line that cannot be understood, or that names a missing file, ends with exit code 2.
#[test]
fn a_wrong_command_line_is_refused() {
    let cases: [(&[&str], &str); 14] = [
        (&["--nope"], "unknown option --nope"),
        (&["--", "--nope"], "--nope: "),
        (&["--for=soon"], "--for: bad duration \"soon\""),
        (&["--for"], "--for wants a duration"),
        (&["--for", "soon"], "--for: bad duration \"soon\""),
        (&["--grace", "1"], "--grace: bad duration \"1\""),
        (&["one", "two"], "a second file, two"),
        (&["no/such/file.toml"], "no/such/file.toml: "),
        (&["--next"], "--next wants a number"),
        (&["--next", "0"], "--next: bad number \"0\": give one from 1 to 65535"),
        (&["--next", "all"], "--next: bad number \"all\""),
        (&["--next", "1", "--from", "now"], "--from: bad moment \"now\": write it as in 2026-"),
        (&["--from", "2026-03-08T06:30:00Z"], "--from says nothing without --next"),
        (&["--next", "1", "--for", "1s"], "--for and --grace say nothing beside it"),
    ];
    for (args, cause) in cases {
        let end = Program::start("jobs", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
}

/// A value may follow an equals sign, and the file may follow `--`.
#[cfg(unix)]
#[test]
fn the_command_line_follows_the_conventions() {
    let file = TempFile::new("toml", "[[job]]\nname = 'it'\ncommand = 'true'\nafter = '1h'\n");
    let args =
        ["--for=1ms".as_ref(), "--grace=0s".as_ref(), "--".as_ref(), file.path().as_os_str()];
    let end = Program::start("jobs", args).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.has_line(&["for 1ms"]) && end.has_line(&["│ it "]), "{end:?}");
}

/// The program checks the time before it starts the first job, counting from its own start.
#[cfg(unix)]
#[test]
fn no_job_starts_after_the_time_is_over() {
    let job = |number| format!("[[job]]\nname = '{number}'\ncommand = 'true'\nevery = '1ms'\n");
    let file = TempFile::new("toml", (0..100).map(job).collect::<String>());
    let args = ["--for".as_ref(), "1ns".as_ref(), file.path().as_os_str()];
    let end = Program::start("jobs", args).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(!end.has_line(&["run 1"]), "{end:?}");
    assert!(end.has_line(&["│ 99 ", "every 1ms", "0 ┆"]), "{end:?}");
}

/// Running commands take no threads: one thread watches all of them, and there is one per core to
/// start them.
#[cfg(target_os = "linux")]
#[test]
fn a_few_threads_run_many_commands() {
    let cores = std::thread::available_parallelism().expect("a number").get();
    let commands = cores + 100;
    let job = |number| {
        format!("[[job]]\nname = '{number}'\ncommand = 'echo begun; sleep 600'\nafter = '0s'\n")
    };
    let file = TempFile::new("toml", (0..commands).map(job).collect::<String>());
    let args = ["--grace".as_ref(), "0s".as_ref(), file.path().as_os_str()];
    let mut jobs = Program::start("jobs", args);
    for _ in 0..commands {
        jobs.read_until("| begun");
    }
    // Besides those there are the main thread and one that waits for signals.
    let threads = jobs.threads();
    assert!(threads <= cores + 3, "{threads} threads for {commands} commands");
    jobs.interrupt();
    let end = jobs.end();
    let stopped = end.stdout.iter().filter(|line| line.contains("stopped (signal: 15")).count();
    assert_eq!((end.code, stopped), (Some(0), commands), "{end:?}");
}

/// When its output has no reader any more, the program leaves no command behind, and ends as if it
/// had been stopped.
#[cfg(unix)]
#[test]
fn a_closed_pipe_stops_the_commands() {
    let talking = "[[job]]\nname = 'talking'\ncommand = 'true'\nevery = '10ms'\n";
    let long = "[[job]]\nname = 'long'\ncommand = 'echo begun; sleep 600'\nafter = '0s'\n";
    let file = TempFile::new("toml", format!("{talking}{long}"));
    let args = ["--grace".as_ref(), "1h".as_ref(), file.path().as_os_str()];
    let mut jobs = Program::start("jobs", args);
    jobs.read_until("| begun");
    jobs.stop_reading();
    let end = jobs.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
}

/// A line of output may be long, may lack an end, and may not be text; the rest is passed on as
/// well.
#[cfg(unix)]
#[test]
fn all_output_of_a_command_is_passed_on() {
    let command = "yes | head -n 100000; printf 'x%.0s' $(seq 70000); printf '\\n\\377no end'";
    let job = format!(
        "[[job]]\nname = 'it'\ncommand = \"{}\"\nafter = '0s'\n",
        command.replace('\\', "\\\\")
    );
    let file = TempFile::new("toml", job);
    let end = Program::start("jobs", [file.path()]).end();
    let said: Vec<_> =
        end.stdout.iter().filter_map(|line| Some(line.split_once("| ")?.1)).collect();
    assert_eq!(said.iter().filter(|line| **line == "y").count(), 100_000);
    let rest: Vec<_> = said.into_iter().skip(100_000).collect();
    assert_eq!(rest.concat(), format!("{}\u{fffd}no end", "x".repeat(70_000)));
    assert!(end.has_line(&["it", "run 1", "ok"]));
}

/// Durations may have fractions, and the program ends by itself when all its jobs have run.
#[cfg(unix)]
#[test]
fn it_ends_by_itself_after_the_last_one_shot_job() {
    let file = TempFile::new("toml", "[[job]]\nname = 'it'\ncommand = 'exit 3'\nafter = '1.5ms'\n");
    let end = Program::start("jobs", [file.path()]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "FAILED (exit status: 3)"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "after 1.5ms", "1 ┆", "1 ┆", "0 ┆"]), "{end:?}");
}

/// When it is interrupted, the program grants a running command its grace period, stops all the
/// command's processes, and still prints the table.
#[cfg(unix)]
#[test]
fn an_interrupt_stops_a_command_that_does_not_end() {
    let end = interrupted("echo begun; sleep 600; echo survived", "10ms");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 15"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "1 ┆", "0 ┆"]), "{end:?}");
    assert!(!end.has_line(&["| survived"]), "{end:?}");
}

/// A command that ignores the request to stop is killed, together with the processes it has
/// started.
#[cfg(unix)]
#[test]
fn a_command_that_ignores_the_request_to_stop_is_killed() {
    let end = interrupted("trap '' TERM; echo begun; sleep 600; echo survived", "0s");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 9"]), "{end:?}");
    assert!(!end.has_line(&["| survived"]), "{end:?}");
}

/// The same holds for what a command has started in the background, although its shell ends as it is asked to.
#[cfg(unix)]
#[test]
fn what_ignores_the_request_in_the_background_is_killed() {
    let end = interrupted("(trap '' TERM; echo begun; sleep 600) & wait", "0s");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 15"]), "{end:?}");
}

/// A run ends with its shell, while what that has left in the background writes on. It does so until nobody reads.
#[cfg(unix)]
#[test]
fn a_process_in_the_background_holds_up_no_run() {
    let command = "while echo more; do sleep 0.1; done & printf 'no end'";
    let job = format!("[[job]]\nname = 'it'\ncommand = \"{command}\"\nafter = '0s'\n");
    let file = TempFile::new("toml", job);
    let end = Program::start("jobs", [file.path()]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "| ", "no end"]), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "ok"]), "{end:?}");
}

/// A command that is running when the interrupt arrives may finish within the grace period.
#[cfg(unix)]
#[test]
fn an_interrupt_lets_a_command_finish_in_its_grace() {
    let end = interrupted("echo begun; sleep 1; echo finished", "1h");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "| finished"]), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "ok"]), "{end:?}");
}

/// Runs one job every millisecond, and interrupts the program when the job's command reports that
/// it has begun.
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

/// The statistics take no memory until there is a run, and next to none for a few.
#[test]
fn a_few_delays_take_little_memory() {
    let millis = Duration::from_millis;
    let empty = measure(|| assert_eq!(Lateness::default().at_quantile(0.5), None));
    assert_eq!(empty.count_total, 0, "{empty:?}");
    let mut lateness = Lateness::default();
    let few = measure(|| lateness.record(millis(7)));
    assert!(few.bytes_current < 1000, "{few:?}");
    assert_eq!(lateness.at_quantile(0.01), Some(millis(7)));
}

/// A quantile is exact to three digits, whether there are few delays or many.
#[test]
fn quantiles_are_exact_to_three_digits() {
    for count in [1, 2, 99, 100, 101, 10_000] {
        let mut lateness = Lateness::default();
        for millis in (1..=count).rev() {
            lateness.record(Duration::from_millis(millis));
        }
        for (quantile, expected) in
            [(0.5, count.div_ceil(2)), (0.99, (count * 99).div_ceil(100)), (1.0, count)]
        {
            let found = lateness.at_quantile(quantile).expect("there are delays").as_secs_f64();
            let expected = expected as f64 / 1000.0;
            assert!((found / expected - 1.0).abs() <= 0.001, "{count}, {quantile}: {found}");
        }
    }
}

/// The starts of a job's runs, in milliseconds; how many runs were missed before each; and when
/// each was planned for. No starter is free before `free`, and each run takes as long as `took`
/// says. The wall clock shows the beginning of 1970 at first.
fn runs(schedule: &Schedule, free: u64, took: &[u64]) -> Vec<(u64, u64, u64)> {
    let begun = Instant::now();
    let at = |millis| {
        let since = Duration::from_millis(millis);
        Now { steady: begun + since, wall: UNIX_EPOCH + since }
    };
    let millis = |at: Moment| {
        let since = match at {
            Moment::Steady(at) => at - begun,
            Moment::Wall(at) => at.duration_since(UNIX_EPOCH).expect("it is later"),
        };
        u64::try_from(since.as_millis()).expect("it is small")
    };
    let mut planned = Planned::first(schedule, Duration::ZERO, at(0)).expect("there is a run");
    let (mut now, mut runs) = (free, Vec::new());
    for (number, took) in (1..).zip(took) {
        let mut started = now.max(millis(planned.at));
        while planned.is_overdue(schedule, at(started)) {
            let Some(next) = planned.left_out(schedule, at(started)) else { return runs };
            (planned, started) = (next, started.max(millis(next.at)));
        }
        assert_eq!(planned.number, number);
        runs.push((started, planned.missed(schedule, at(started)), millis(planned.at)));
        now = started + took;
        match planned.next(schedule, at(started), at(now)) {
            Some(next) => planned = next,
            None => break,
        }
    }
    runs
}

/// The example treats missed runs as the library does.
#[test]
fn jobs_are_timed_as_the_library_times_its_tasks() {
    use MissedRuns::{Burst, Coalesce, Delay, Skip, Within};

    let ten = Duration::from_millis(10);
    let every = |missed| Schedule::Every { initial: Duration::ZERO, period: ten, missed };
    let cases = [
        (Burst, [(0, 0, 0), (35, 0, 10), (36, 0, 20), (37, 0, 30), (40, 0, 40)]),
        (Coalesce, [(0, 0, 0), (35, 2, 10), (40, 0, 40), (50, 0, 50), (60, 0, 60)]),
        (Skip, [(0, 0, 0), (40, 3, 40), (50, 0, 50), (60, 0, 60), (70, 0, 70)]),
        (Delay, [(0, 0, 0), (35, 2, 10), (45, 0, 45), (55, 0, 55), (65, 0, 65)]),
        (Within(ten * 3 / 2), [(0, 0, 0), (35, 1, 20), (36, 0, 30), (40, 0, 40), (50, 0, 50)]),
        // Exactly so late is not too late.
        (Within(ten / 2), [(0, 0, 0), (35, 2, 30), (40, 0, 40), (50, 0, 50), (60, 0, 60)]),
    ];
    for (missed, expected) in cases {
        assert_eq!(runs(&every(missed), 0, &[35, 1, 1, 1, 1]), expected, "{missed:?}");
    }
    // The first run is late already: no starter was free.
    assert_eq!(runs(&every(Coalesce), 25, &[1, 1]), [(25, 2, 0), (30, 0, 30)]);
    // By some policies it is left out then, and counted.
    assert_eq!(runs(&every(Skip), 25, &[1, 1]), [(30, 3, 30), (40, 0, 40)]);
    assert_eq!(runs(&every(Within(ten / 2)), 25, &[1, 1]), [(25, 2, 20), (30, 0, 30)]);
    assert_eq!(runs(&every(Within(ten / 5)), 25, &[1, 1]), [(30, 3, 30), (40, 0, 40)]);

    let delay = Schedule::Delay { initial: ten, delay: ten };
    assert_eq!(runs(&delay, 0, &[5, 50, 1]), [(10, 0, 10), (25, 0, 25), (85, 0, 85)]);
    assert_eq!(runs(&Schedule::After(ten), 25, &[5, 5]), [(25, 0, 10)]);
    // This does not overflow.
    let for_ever = Schedule::Every { initial: Duration::ZERO, period: Duration::MAX, missed: Skip };
    assert_eq!(runs(&for_ever, 3, &[1]), [(3, 0, 0)]);
}

/// A calendar's missed runs are treated likewise. Its moments are not all as far from each other.
#[test]
fn a_calendar_is_timed_likewise() {
    use MissedRuns::{Burst, Coalesce, Skip, Within};

    let calendar = cron("1,2,3,5,8,13 0 0 1 1 *", "UTC").expect("a calendar");
    let second = Duration::from_secs(1);
    let cases = [
        (Burst, [(1000, 0, 1000), (5500, 0, 2000), (5600, 0, 3000), (5700, 0, 5000)]),
        (Coalesce, [(1000, 0, 1000), (5500, 2, 2000), (8000, 0, 8000), (13_000, 0, 13_000)]),
        (Within(second), [(1000, 0, 1000), (5500, 2, 5000), (8000, 0, 8000), (13_000, 0, 13_000)]),
        (
            Within(second * 5 / 2),
            [(1000, 0, 1000), (5500, 1, 3000), (5600, 0, 5000), (8000, 0, 8000)],
        ),
    ];
    for (missed, expected) in cases {
        let at = Schedule::At { calendar: calendar.clone(), missed };
        assert_eq!(runs(&at, 0, &[4500, 100, 100, 100]), expected, "{missed:?}");
    }
    let at = Schedule::At { calendar, missed: Skip };
    let expected = [(1000, 0, 1000), (8000, 3, 8000), (13_000, 0, 13_000)];
    assert_eq!(runs(&at, 0, &[4500, 100, 100]), expected);
    // No starter was free: the run is overdue, and the next is the first that is still to come.
    assert_eq!(runs(&at, 6000, &[100, 100]), [(8000, 4, 8000), (13_000, 0, 13_000)]);
    assert_eq!(runs(&at, 1900, &[50, 100]), [(1900, 0, 1000), (2000, 0, 2000)]);
}

/// A clock that is set back does not make a calendar's run come twice.
#[test]
fn a_run_does_not_come_twice_because_the_clock_is_set_back() {
    let calendar = cron("0 * * * *", "UTC").expect("a calendar");
    let hour = Duration::from_secs(3600);
    let at = |steady, wall| Now { steady, wall: UNIX_EPOCH + wall };
    let begun = Instant::now();
    for missed in [MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Within(hour)] {
        let schedule = Schedule::At { calendar: calendar.clone(), missed };
        let run = Planned::first(&schedule, Duration::ZERO, at(begun, hour / 2)).expect("a run");
        assert_eq!(run.at, Moment::Wall(UNIX_EPOCH + hour));
        let next = run.next(&schedule, at(begun + hour, hour / 3), at(begun + hour, hour / 3));
        let next = next.expect("another run");
        assert_eq!((next.at, next.skipped), (Moment::Wall(UNIX_EPOCH + 2 * hour), 0), "{missed:?}");
    }
}
