//! The reminders for valid and broken calendars, and the two clocks.

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../../examples/meeting_reminders/clock.rs"]
mod clock;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use self::clock::WallClock;
use super::demonstrates;
use crate::support::program::{Program, TempFile};

/// The reminders are in order, also those that come together; meetings that have begun, were
/// cancelled, or take the whole day have none.
#[test]
fn the_reminders_demonstrate_themselves() {
    let reminders = [
        "Call with a supplier whose name is so long that the line had to be folded",
        "Dentist",
        "Stand-up (Room 1)",
        "Planning, with Berlin (Room 2)",
        "Early lunch (Canteen)",
        "no more meetings",
    ];
    demonstrates("meeting_reminders", |end| {
        end.has_line(&["meetings: 5 to come, 1 begun"])
            && end.has_lines(&reminders)
            && end.stdout.len() == reminders.len() + 1
            && end.stderr.contains("\"Stand-up\" repeats")
    });
}

/// On the system's clock: for one of two meetings within an hour the reminder comes at once. The
/// program reports the parts of the file that it cannot understand, and uses the rest.
#[test]
fn reminders_follow_the_clock_of_the_system() {
    let start = (Utc::now() + TimeDelta::hours(1)).format("%Y%m%dT%H%M%SZ");
    let event = |lines: &str| format!("BEGIN:VEVENT\r\n{lines}\r\nEND:VEVENT\r\n");
    let events = [
        event(&format!("DTSTART:{start}\r\nSUMMARY:second")),
        event(&format!("DTSTART:{start}\r\nSUMMARY:first")),
        event("DTSTART:20200101T000000Z\r\nSUMMARY:past"),
        event("DTSTART;TZID=Mars/Olympus:20260302T102000\r\nSUMMARY:far away"),
        event("DTSTART;TZID=Europe/Berlin:20260329T023000\r\nSUMMARY:in no hour"),
        event("SUMMARY:some day"),
    ];
    let text = format!("\u{feff}BEGIN:VCALENDAR\r\n{}END:VCALENDAR\r\n", events.concat());
    let file = TempFile::new("ics", text);
    let args = ["--before".as_ref(), "2h".as_ref(), file.path().as_os_str()];
    let end = Program::start("meeting_reminders", args).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    let lines = ["meetings: 2 to come, 1 begun", "min, at ", "first", "second", "no more meetings"];
    assert!(end.has_lines(&lines), "{end:?}");
    for remark in [
        "\"far away\" is passed over: the time zone \"Mars/Olympus\" is unknown",
        "\"in no hour\" is passed over: clocks are set forward",
        "\"some day\" is passed over: it has no start",
    ] {
        assert!(end.stderr.contains(remark), "no {remark} in {end:?}");
    }
}

#[test]
fn a_broken_calendar_is_refused() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "it does not begin with BEGIN:VCALENDAR"),
        (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:cut o", "ics:2: what begins here"),
        (b"BEGIN:VCALENDAR", "ics:1: what begins here"),
        (b"BEGIN:VCALENDAR\xff", "ics:1:16: it is not text in UTF-8, because of the byte 0xff"),
        (b"BEGIN:VCALENDAR\r\nSUMMARY:\xc3\xa9t\xe9", "ics:2:11: it is not text in UTF-8"),
    ];
    for (text, cause) in cases {
        let file = TempFile::new("ics", text);
        let end = Program::start("meeting_reminders", [file.path()]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{cause}: {end:?}");
        assert!(end.stderr.contains(cause), "no {cause} in {end:?}");
    }
}

#[test]
fn impossible_reminder_options_are_refused() {
    let cases: [(&[&str], &str); 8] = [
        (&["--before"], "--before wants a duration"),
        (&["--before", "10"], "--before: bad duration \"10\""),
        (&["--now", "noon"], "--now: bad time \"noon\""),
        (&["--speed", "0"], "--speed: \"0\" is no number above 0"),
        (&["--speed", "NaN"], "--speed: \"NaN\" is no number above 0"),
        (&["--speed", "1e300"], "--speed: \"1e300\" is no number above 0"),
        (&["one", "two"], "a second file, two"),
        (&["no/such/file.ics"], "no/such/file.ics: "),
    ];
    for (args, cause) in cases {
        let end = Program::start("meeting_reminders", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
}

#[test]
fn a_simulated_clock_runs_at_its_speed() {
    let wall = DateTime::from_timestamp(1_772_440_800, 0).expect("a time");
    let clock = WallClock::made_up(wall, 600.0);
    let begun = clock.instant_of(wall).expect("a moment");
    let later = clock.instant_of(wall + TimeDelta::minutes(10)).expect("a moment");
    assert_eq!(later - begun, Duration::from_secs(1));
    assert_eq!(clock.at(later), wall + TimeDelta::minutes(10));
    assert_eq!(clock.instant_of(wall - TimeDelta::days(1)), Some(begun), "the past is now");
    let slow = WallClock::made_up(wall, f64::MIN_POSITIVE);
    assert_eq!(slow.instant_of(wall + TimeDelta::days(1)), None);
}

/// A change of the wall clock is noticed, and times computed afterwards are right.
#[test]
fn a_change_of_the_wall_clock_is_followed() {
    let mut clock = WallClock::system();
    let begun = clock.instant_of(DateTime::<Utc>::MIN_UTC).expect("the beginning");
    let wall = clock.at(begun);
    let meeting = wall + TimeDelta::hours(2);
    let now = begun + Duration::from_secs(60);

    assert_eq!(clock.correct(wall + TimeDelta::milliseconds(60_400), now), None, "slewed");
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    assert_eq!(clock.instant_of(meeting), Some(begun + hours(2)));

    let set = wall + TimeDelta::seconds(60) + TimeDelta::hours(1);
    assert_eq!(clock.correct(set, now), Some(TimeDelta::hours(1)), "set forward");
    assert_eq!(clock.instant_of(meeting), Some(begun + hours(1)));
    assert_eq!(clock.at(now), set);

    let set = wall - TimeDelta::hours(1) + TimeDelta::seconds(60);
    assert_eq!(clock.correct(set, now), Some(TimeDelta::hours(-2)), "set back");
    assert_eq!(clock.instant_of(meeting), Some(begun + hours(3)));
}
