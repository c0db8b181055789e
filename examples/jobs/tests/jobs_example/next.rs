//! `jobs --next`: what would run when, also where clocks are set forward or back.

use crate::program::{Program, TempFile};

/// Returns what the program prints, without the heading.
fn next(count: usize, from: &str, file: &str) -> Vec<String> {
    let file = TempFile::new("toml", file);
    let (count, from) = (count.to_string(), from.to_owned());
    let path = file.path().display().to_string();
    let end = Program::start("jobs", ["--next", &count, "--from", &from, &path]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let runs = if count == "1" { "run".to_owned() } else { format!("{count} runs") };
    assert_eq!(end.stdout[0], format!("The next {runs} of each job, from {from}:"));
    assert_eq!(end.stdout[1], "");
    end.stdout[2..].to_vec()
}

fn job(name: &str, at: &str, zone: &str) -> String {
    format!("[[job]]\nname = '{name}'\ncommand = 'true'\nat = '{at}'\nzone = '{zone}'\n")
}

/// In New York 02:30 does not come on 8 March 2026: the run is at 03:00, and an interval goes on.
#[test]
fn the_missing_hour_is_shown() {
    let zone = "America/New_York";
    let file = job("daily", "30 2 * * *", zone) + &job("even hours", "0 */2 * * *", zone);
    assert_eq!(
        next(3, "2026-03-08T05:00:00Z", &file),
        [
            "-- America/New_York: clocks are set forward by 1h, from Sun 2026-03-08 02:00 EST to 03:00 EDT",
            "Sun 2026-03-08 03:00:00 EDT (-04:00)  2026-03-08T07:00:00Z  daily",
            "Sun 2026-03-08 04:00:00 EDT (-04:00)  2026-03-08T08:00:00Z  even hours",
            "Sun 2026-03-08 06:00:00 EDT (-04:00)  2026-03-08T10:00:00Z  even hours",
            "Sun 2026-03-08 08:00:00 EDT (-04:00)  2026-03-08T12:00:00Z  even hours",
            "Mon 2026-03-09 02:30:00 EDT (-04:00)  2026-03-09T06:30:00Z  daily",
            "Tue 2026-03-10 02:30:00 EDT (-04:00)  2026-03-10T06:30:00Z  daily",
            "",
            "America/New_York: clocks are next set back by 1h, from Sun 2026-11-01 02:00 EDT to 01:00 EST; \
             see --next 3 --from 2026-11-01T04:59:59Z",
        ]
    );
}

/// On 1 November it is half past one twice: once for a time of day, both times for an interval.
#[test]
fn the_repeated_hour_is_shown() {
    let zone = "America/New_York";
    let file = job("daily", "30 1 * * *", zone) + &job("half hours", "*/30 * * * *", zone);
    assert_eq!(
        next(4, "2026-11-01T04:59:59Z", &file),
        [
            "Sun 2026-11-01 01:00:00 EDT (-04:00)  2026-11-01T05:00:00Z  half hours",
            "Sun 2026-11-01 01:30:00 EDT (-04:00)  2026-11-01T05:30:00Z  daily",
            "Sun 2026-11-01 01:30:00 EDT (-04:00)  2026-11-01T05:30:00Z  half hours",
            "-- America/New_York: clocks are set back by 1h, from Sun 2026-11-01 02:00 EDT to 01:00 EST",
            "Sun 2026-11-01 01:00:00 EST (-05:00)  2026-11-01T06:00:00Z  half hours",
            "Sun 2026-11-01 01:30:00 EST (-05:00)  2026-11-01T06:30:00Z  half hours",
            "Mon 2026-11-02 01:30:00 EST (-05:00)  2026-11-02T06:30:00Z  daily",
            "Tue 2026-11-03 01:30:00 EST (-05:00)  2026-11-03T06:30:00Z  daily",
            "Wed 2026-11-04 01:30:00 EST (-05:00)  2026-11-04T06:30:00Z  daily",
            "",
            "America/New_York: clocks are next set forward by 1h, from Sun 2027-03-14 02:00 EST to 03:00 EDT; \
             see --next 4 --from 2027-03-14T05:59:59Z",
        ]
    );
}

/// On Lord Howe Island clocks are set by half an hour.
#[test]
fn a_change_of_half_an_hour_is_shown() {
    let file = job("early", "15 2 * * *", "Australia/Lord_Howe");
    assert_eq!(
        next(2, "2026-10-02T16:00:00Z", &file)[..3],
        [
            "-- Australia/Lord_Howe: clocks are set forward by 30m, from Sun 2026-10-04 02:00 +1030 \
             to 02:30 +11",
            "Sun 2026-10-04 02:30:00 +11 (+11:00)  2026-10-03T15:30:00Z  early",
            "Mon 2026-10-05 02:15:00 +11 (+11:00)  2026-10-04T15:15:00Z  early",
        ]
    );
}

/// A change that leaves out a day has both dates, and of many changes between two runs the number
/// is shown.
#[test]
fn changes_of_other_sizes_are_shown() {
    let file = job("it", "0 */12 * * *", "Pacific/Apia");
    assert_eq!(
        next(2, "2011-12-29T23:00:00Z", &file)[..3],
        [
            "-- Pacific/Apia: clocks are set forward by 1day, from Fri 2011-12-30 00:00 -10 to \
             Sat 2011-12-31 00:00 +14",
            "Sat 2011-12-31 00:00:00 +14 (+14:00)  2011-12-30T10:00:00Z  it",
            "Sat 2011-12-31 12:00:00 +14 (+14:00)  2011-12-30T22:00:00Z  it",
        ]
    );
    let file = job("leap day", "0 12 29 2 *", "Europe/London");
    assert_eq!(
        next(2, "2028-01-01T00:00:00Z", &file)[..3],
        [
            "Tue 2028-02-29 12:00:00 GMT (+00:00)  2028-02-29T12:00:00Z  leap day",
            "-- Europe/London: clocks are set 8 times",
            "Sun 2032-02-29 12:00:00 GMT (+00:00)  2032-02-29T12:00:00Z  leap day",
        ]
    );
}

/// Jobs that are not planned by the calendar are shown from the given moment on, in the zone of the
/// file; jobs with a zone of their own in that one; and all of them in the order of time.
#[test]
fn jobs_of_all_kinds_are_shown_in_order() {
    let job = |name, rest| format!("[[job]]\nname = '{name}'\ncommand = 'true'\n{rest}\n");
    let file = "zone = 'Asia/Kathmandu'\n".to_owned()
        + &job("once", "after = '2s'")
        + &job("steady", "every = '1.5s'\ninitial = '1s'")
        + &job("pause", "delay = '3s'\ninitial = '1.25s'")
        + &job("calendar", "at = '1,3,59 * * * * *'")
        + &job("elsewhere", "at = '2 0 0 * * *'\nzone = 'UTC'");
    assert_eq!(
        next(2, "2026-06-01T00:00:00Z", &file),
        [
            "Mon 2026-06-01 05:45:01 +0545 (+05:45)     2026-06-01T00:00:01Z     steady",
            "Mon 2026-06-01 05:45:01 +0545 (+05:45)     2026-06-01T00:00:01Z     calendar",
            "Mon 2026-06-01 05:45:01.25 +0545 (+05:45)  2026-06-01T00:00:01.25Z  pause",
            "Mon 2026-06-01 05:45:02 +0545 (+05:45)     2026-06-01T00:00:02Z     once",
            "Mon 2026-06-01 00:00:02 UTC (+00:00)       2026-06-01T00:00:02Z     elsewhere",
            "Mon 2026-06-01 05:45:02.5 +0545 (+05:45)   2026-06-01T00:00:02.5Z   steady",
            "Mon 2026-06-01 05:45:03 +0545 (+05:45)     2026-06-01T00:00:03Z     calendar",
            "Tue 2026-06-02 00:00:02 UTC (+00:00)       2026-06-02T00:00:02Z     elsewhere",
            "",
            "pause: then 3s after the end of each run.",
        ]
    );
}

/// A jitter puts all runs of a job off by the same span, which is always the same for its name. So
/// a run is still to come when its moment has passed, but not that span.
#[test]
fn a_jitter_is_shown() {
    let file = "zone = 'UTC'\n[[job]]\nname = 'backup'\ncommand = 'true'\nat = '0 3 * * *'\n\
                jitter = '1min'\n";
    let monday = "Mon 2026-06-01 03:00:31.176 UTC (+00:00)  2026-06-01T03:00:31.176Z  backup";
    let tuesday = "Tue 2026-06-02 03:00:31.176 UTC (+00:00)  2026-06-02T03:00:31.176Z  backup";
    assert_eq!(next(2, "2026-06-01T00:00:00Z", file), [monday, tuesday]);
    assert_eq!(next(2, "2026-06-01T03:00:31Z", file), [monday, tuesday]);
    assert_eq!(next(1, "2026-06-01T03:00:31.176Z", file), [tuesday]);
}

/// A line of a crontab runs when cronie runs it. Times of day that are missing run right after
/// the gap, and those that come twice run the first time; if the minute or the hour begins with
/// `*`, the line goes on by the clock. And if both day fields are set, a day is in either.
///
/// The moments were worked out by cronie's rule, without this crate.
#[test]
fn a_line_of_a_crontab_means_the_same() {
    #[rustfmt::skip]
    let lines: [(&str, &str, &str, &[&str]); 27] = [
        ("America/New_York", "30 2 * * *", "03-07", &["2026-03-07 07:30", "2026-03-08 07:00", "2026-03-09 06:30"]),
        ("America/New_York", "0 2 * * *", "03-08", &["2026-03-08 07:00", "2026-03-09 06:00"]),
        ("America/New_York", "0 3 * * *", "03-08", &["2026-03-08 07:00", "2026-03-09 07:00"]),
        ("America/New_York", "0,30 1-3 * * *", "03-08", &["2026-03-08 06:00", "2026-03-08 06:30", "2026-03-08 07:00", "2026-03-08 07:30", "2026-03-09 05:00"]),
        ("America/New_York", "*/15 * * * *", "03-08T06:20", &["2026-03-08 06:30", "2026-03-08 06:45", "2026-03-08 07:00", "2026-03-08 07:15", "2026-03-08 07:30"]),
        ("America/New_York", "0 */2 * * *", "03-08T04:00", &["2026-03-08 05:00", "2026-03-08 08:00", "2026-03-08 10:00"]),
        ("America/New_York", "30 1 * * *", "10-31", &["2026-10-31 05:30", "2026-11-01 05:30", "2026-11-02 06:30"]),
        ("America/New_York", "0 2 * * *", "11-01", &["2026-11-01 07:00", "2026-11-02 07:00"]),
        ("America/New_York", "*/30 * * * *", "11-01T04:20", &["2026-11-01 04:30", "2026-11-01 05:00", "2026-11-01 05:30", "2026-11-01 06:00", "2026-11-01 06:30", "2026-11-01 07:00", "2026-11-01 07:30"]),
        ("America/New_York", "0 0 * * *", "10-31", &["2026-10-31 04:00", "2026-11-01 04:00", "2026-11-02 05:00"]),
        ("Europe/London", "30 1 * * *", "03-28", &["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]),
        ("Europe/London", "30 1 * * *", "10-24", &["2026-10-24 00:30", "2026-10-25 00:30", "2026-10-26 01:30"]),
        ("Europe/London", "*/15 * * * *", "10-25T00:20", &["2026-10-25 00:30", "2026-10-25 00:45", "2026-10-25 01:00", "2026-10-25 01:15", "2026-10-25 01:30", "2026-10-25 01:45"]),
        ("Europe/Dublin", "30 1 * * *", "03-28", &["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]),
        ("Australia/Lord_Howe", "15 2 * * *", "10-03", &["2026-10-03 15:30", "2026-10-04 15:15"]),
        ("Australia/Lord_Howe", "*/15 * * * *", "10-03T14:50", &["2026-10-03 15:00", "2026-10-03 15:15", "2026-10-03 15:30", "2026-10-03 15:45", "2026-10-03 16:00"]),
        ("Australia/Lord_Howe", "45 1 * * *", "04-04", &["2026-04-04 14:45", "2026-04-05 15:15"]),
        ("Pacific/Chatham", "0 3 * * *", "09-26", &["2026-09-26 14:00", "2026-09-27 13:15"]),
        ("America/Santiago", "0 0 * * *", "09-05", &["2026-09-05 04:00", "2026-09-06 04:00", "2026-09-07 03:00"]),
        ("Antarctica/Troll", "30 1 * * *", "03-28", &["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-29 23:30", "2026-03-30 23:30"]),
        ("Antarctica/Troll", "0 * * * *", "10-24T21:30", &["2026-10-24 22:00", "2026-10-24 23:00", "2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 03:00"]),
        ("Asia/Kathmandu", "0 0 * * *", "03-07", &["2026-03-07 18:15", "2026-03-08 18:15"]),
        // Both day fields: either. One that begins with `*` is no restriction of its own: both.
        ("Etc/UTC", "0 0 13 * FRI", "02-01", &["2026-02-06 00:00", "2026-02-13 00:00", "2026-02-20 00:00", "2026-02-27 00:00", "2026-03-06 00:00"]),
        ("Etc/UTC", "0 0 1,15 * 3", "07-01", &["2026-07-08 00:00", "2026-07-15 00:00", "2026-07-22 00:00"]),
        ("Etc/UTC", "0 0 */2 * MON", "06-01", &["2026-06-15 00:00", "2026-06-29 00:00", "2026-07-13 00:00"]),
        ("Etc/UTC", "@weekly", "06-01", &["2026-06-07 00:00", "2026-06-14 00:00"]),
        ("Etc/UTC", "5 4 * jan-mar,DEC sun", "11-22", &["2026-12-06 04:05", "2026-12-13 04:05"]),
    ];
    for (zone, line, from, expected) in lines {
        let from = match from.split_once('T') {
            Some((day, time)) => format!("2026-{day}T{time}:00Z"),
            None => format!("2026-{from}T00:00:00Z"),
        };
        let shown = next(expected.len(), &from, &job("it", line, zone));
        let runs = shown.iter().filter(|line| line.ends_with("  it"));
        let moments = runs.map(|run| run.split_whitespace().nth(5).expect("a moment").to_owned());
        let expected = expected.iter().map(|at| format!("{}:00Z", at.replace(' ', "T")));
        assert_eq!(moments.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{line} in {zone}");
    }
}

/// What comes after the program's end is not listed.
#[test]
fn no_run_is_shown_after_the_end_of_the_program() {
    let file = "run_for = '1h'\n".to_owned() + &job("half hours", "*/30 * * * *", "UTC");
    assert_eq!(
        next(9, "2026-11-01T04:59:59Z", &file),
        [
            "Sun 2026-11-01 05:00:00 UTC (+00:00)  2026-11-01T05:00:00Z  half hours",
            "Sun 2026-11-01 05:30:00 UTC (+00:00)  2026-11-01T05:30:00Z  half hours",
            "",
            "The program stops after 1h.",
        ]
    );
}

/// Without `--from` the list begins now, and without a file it is that of the sample.
#[test]
fn the_sample_is_shown_from_now_on() {
    let end = Program::start("jobs", ["--next=5"]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let runs = |name: &str| end.stdout.iter().filter(|line| line.ends_with(name)).count();
    assert_eq!((runs("  clock"), runs("  backup"), runs("  tomorrow")), (5, 0, 0), "{end:?}");
    assert!(end.has_line(&["The program stops after 4s."]), "{end:?}");
    assert!(end.has_line(&["Europe/Berlin: clocks are next set "]), "{end:?}");
}

/// A name is shown with its control characters escaped: it begins no line of its own, and does not speak to the terminal.
#[test]
fn a_name_is_shown_in_one_line() {
    let file = "[[job]]\nname = \"tea\\nforged \\u001B[2J\\u007F\\u009B é\"\ncommand = 'true'\n\
                at = '0 3 * * *'\nzone = 'UTC'\n";
    let lines = next(1, "2026-06-01T00:00:00Z", file);
    let name = "tea\\nforged \\u{1b}[2J\\u{7f}\\u{9b} é";
    assert!(lines[0].ends_with(&format!("  {name}")), "{lines:?}");
    #[cfg(unix)]
    {
        let file = TempFile::new(
            "toml",
            file.replace("at = '0 3 * * *'", "after = '1ms'").replace("zone = 'UTC'\n", ""),
        );
        let path = file.path().display().to_string();
        let end = Program::start("jobs", ["--for", "1h", &path]).end();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
        assert!(end.has_line(&[name, "run 1", "ok"]) && end.has_line(&["│ ", name]), "{end:?}");
        let is_plain = |line: &String| !line.contains(|letter: char| letter.is_control());
        assert!(end.stdout.iter().all(is_plain), "{end:?}");
    }
}
