//! The example programs that are made of a `DelayQueue`, as their users see them; and those of
//! their parts that depend on clocks, on clocks that tests move.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "a test with processes and threads of its own"
)]

#[allow(dead_code, reason = "the programs use the rest")]
#[path = "../examples/expiring_cache/cache.rs"]
mod cache;
#[allow(dead_code, reason = "the programs use the rest")]
#[path = "../examples/meeting_reminders/clock.rs"]
mod clock;
#[allow(dead_code, reason = "other tests use the rest")]
mod program;

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::mpsc,
    time::{Duration, Instant},
};

use cache::Cache;
use chrono::{DateTime, TimeDelta, Utc};
use clock::WallClock;
use program::{End, LIMIT, Program, TempFile};
use punctual::ManualClock;

/// Each says how it is used, and refuses an argument that it does not know, with exit code 2.
#[test]
fn each_has_a_usage() {
    for example in ["expiring_cache", "heartbeats", "meeting_reminders", "unpaid_orders"] {
        let end = Program::start(example, ["--help"]).end();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
        assert!(end.has_line(&["Usage: ", example]), "{end:?}");
        let end = Program::start(example, ["--nope"]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{end:?}");
        assert!(end.stderr.contains("unknown") && end.stderr.contains("Usage: "), "{end:?}");
    }
}

/// Runs an example's demonstration, which ends by itself and well.
fn demonstration(example: &str) -> End {
    let end = Program::start(example, [""; 0]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    end
}

/// Types these lines, and no more.
fn typed(example: &str, lines: &str) -> End {
    let mut program = Program::start_to_type(example, [""; 0]);
    program.type_in(lines);
    let end = program.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    end
}

#[test]
fn the_cache_demonstrates_itself() {
    let end = demonstration("expiring_cache");
    assert!(end.has_lines(&["> list", "news is \"today's\", ", "tea is \"hot\", "]), "{end:?}");
    let news = ["> get news", "news is \"today's\"", "evicted news, which was \"today's\""];
    assert!(end.has_lines(&news), "{end:?}");
    assert!(end.has_lines(&["> del stamp", "removed stamp, which was \"rare\""]), "{end:?}");
    assert!(end.has_lines(&["> set tea 0.4", "evicted tea, which was \"hot again\""]), "{end:?}");
}

#[test]
fn the_cache_answers_each_command() {
    let lines = "# a comment, and an empty line\n\n\
                 set tea 3600 hot\nset tea 7200 hot and strong\nset news 3600 today's\n\
                 get tea\nget coffee\nlist\ndel tea\ndel tea\nget tea\nquit\nget news\n";
    let end = typed("expiring_cache", lines);
    let answers: Vec<_> = end.stdout.iter().filter_map(|line| line.get(10..)).collect();
    let expected = [
        "set",
        "set, in the place of \"hot\"",
        "set",
        "tea is \"hot and strong\"",
        "there is no coffee",
        "news is \"today's\", ",
        "tea is \"hot and strong\", ",
        "removed tea, which was \"hot and strong\"",
        "there is no tea",
        "there is no tea",
    ];
    assert_eq!(answers.len(), expected.len(), "{end:?}");
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.starts_with(expected), "no {expected} in {end:?}");
    }
}

#[test]
fn the_cache_says_what_is_wrong_with_a_line_and_goes_on() {
    let cases = [
        ("set", "set wants KEY SECONDS VALUE"),
        ("set tea 1", "set wants KEY SECONDS VALUE"),
        ("set tea soon hot", "SECONDS is a number, and not \"soon\""),
        ("set tea -1 hot", "-1 seconds: "),
        ("set tea 1e30 hot", "1e30 seconds: "),
        ("set tea NaN hot", "NaN seconds: "),
        ("get", "get wants a KEY"),
        ("del one two", "del wants one KEY; it was given \"one two\""),
        ("list all", "list stands alone; it was given \"all\""),
        ("forget tea", "there is no command \"forget\""),
    ];
    let mut cache = Program::start_to_type("expiring_cache", [""; 0]);
    for (line, cause) in cases {
        cache.type_in(format!("{line}\n"));
        let answer = cache.read_until("error: ");
        assert!(answer.contains(cause), "{line}: {answer}");
    }
    cache.type_in(b"set \xff 3600 no text\n");
    cache.read_until("set");
    cache.type_in("quit\n");
    assert_eq!(cache.end().code, Some(0));
}

/// What expires is announced while the program waits for the next command, and is gone.
#[test]
fn the_cache_evicts_while_it_listens() {
    let mut cache = Program::start_to_type("expiring_cache", ["-"]);
    cache.type_in("set tea 0.01 hot\n");
    cache.read_until("evicted tea, which was \"hot\"");
    cache.type_in("get tea\n");
    cache.read_until("there is no tea");
    // At the end of what is typed it waits for what is left.
    cache.type_in("set tea 0.01 hot again\n");
    let end = cache.end();
    assert_eq!(end.code, Some(0));
    assert!(end.has_line(&["evicted tea, which was \"hot again\""]), "{end:?}");
}

/// An entry that is asked for has its whole lifetime before it, and one that is set anew is not
/// evicted for its predecessor.
#[test]
fn the_cache_is_exact() {
    let clock = ManualClock::new();
    let (sender, evicted) = mpsc::channel();
    let evict = move |name, value| sender.send((name, value)).expect("it is received");
    let cache = Cache::start(clock.clone(), evict).expect("a thread");
    let second = Duration::from_secs(1);

    for (name, value) in [(1, "refreshed"), (2, "left alone"), (3, "first"), (4, "removed")] {
        assert_eq!(cache.set(name, 10 * second, value), Ok(None));
    }
    clock.advance(9 * second);
    assert_eq!(cache.get(&1), Some("refreshed"));
    assert_eq!(cache.set(3, 10 * second, "second"), Ok(Some("first")));
    assert_eq!(cache.remove(&4), Some("removed"));
    let names =
        |cache: &Cache<_, _>| cache.list().iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(names(&cache), [2, 1, 3]);

    clock.advance(second);
    assert_eq!(evicted.recv_timeout(LIMIT), Ok((2, "left alone")));
    assert_eq!(cache.get(&2), None);
    clock.advance(8 * second);
    assert_eq!(cache.get(&1), Some("refreshed"));
    clock.advance(second);
    assert_eq!(evicted.recv_timeout(LIMIT), Ok((3, "second")));
    clock.advance(9 * second);
    assert_eq!(evicted.recv_timeout(LIMIT), Ok((1, "refreshed")));
    assert!(names(&cache).is_empty());

    // What is left when the cache goes is not evicted, and nobody waits for it.
    assert_eq!(cache.set(5, Duration::MAX, "for ever"), Ok(None));
    drop(cache);
    assert!(evicted.recv().is_err());
}

#[test]
fn the_shop_demonstrates_itself() {
    let end = demonstration("unpaid_orders");
    for order in ["A3", "A4", "A5", "A7", "A8"] {
        assert!(end.has_line(&[order, "cancelled by worker"]), "{order}: {end:?}");
    }
    assert!(end.has_line(&["A6 paid"]), "{end:?}");
    assert!(end.has_line(&["A9 not paid: there is no such order"]), "{end:?}");
    assert!(end.has_line(&["8 orders: ", " paid, ", " cancelled, 0 left unpaid"]), "{end:?}");
}

/// An order is paid or cancelled, and not both; at the end of what is typed those that are not
/// paid are waited for.
#[test]
fn the_shop_cancels_what_is_not_paid() {
    let mut shop = Program::start_to_type("unpaid_orders", ["-"]);
    shop.type_in("order A 3600\norder A 1\npay A\npay A\npay B\n\n# and now one that is late\n");
    shop.read_until("A ordered, to be paid in 3600s");
    shop.read_until("A not ordered: there was an order with this number already");
    shop.read_until("A paid, ");
    shop.read_until("A not paid: it was paid already");
    shop.read_until("B not paid: there is no such order");
    shop.type_in("order C 0.01\n");
    shop.read_until("C cancelled by worker");
    shop.type_in("pay C\n");
    shop.read_until("C not paid: too late");
    shop.type_in("order D 0.01\norder E 0\n");
    let end = shop.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.has_line(&["D cancelled"]) && end.has_line(&["E cancelled"]), "{end:?}");
    let report = "4 orders: 1 paid, 3 cancelled, 0 left unpaid";
    assert_eq!(end.stdout.last().map(String::as_str), Some(report), "{end:?}");
}

#[test]
fn the_shop_that_is_quit_waits_for_nothing() {
    let end = typed("unpaid_orders", "order A 3600\norder B 1e19\npay A\nquit\npay B\n");
    let report = "2 orders: 1 paid, 0 cancelled, 1 left unpaid";
    assert_eq!(end.stdout.last().map(String::as_str), Some(report), "{end:?}");
}

#[test]
fn the_shop_says_what_is_wrong_with_a_line_and_goes_on() {
    let lines = "order A\npay\norder A soon\norder A 1e30\nsteal A\norder A 3600\npay A\n";
    let end = typed("unpaid_orders", lines);
    let expected = [
        "\"order A\" is none of: ",
        "\"pay\" is none of: ",
        "SECONDS is a number, and not \"soon\"",
        "1e30 seconds: ",
        "\"steal A\" is none of: ",
        "A paid",
        "1 orders: 1 paid",
    ];
    assert!(end.has_lines(&expected), "{end:?}");
}

/// All clients have left or were cut when it ends; those that fall silent were cut.
#[test]
fn the_server_demonstrates_itself() {
    let end = demonstration("heartbeats");
    for client in ["ben", "carla"] {
        assert!(end.has_line(&[client, "is hung up on"]), "{client}: {end:?}");
    }
    assert!(end.has_line(&["4 connections: ", " left, ", " cut, 0 there at the end"]), "{end:?}");
}

/// A server, and a way to connect to it.
fn server(timeout: &str) -> (Program, impl Fn() -> TcpStream) {
    let args = ["--listen", "127.0.0.1:0", "--timeout", timeout];
    let mut server = Program::start("heartbeats", args);
    let line = server.read_until("Listening on ");
    let address = line.split([' ', ',']).nth(2).expect("an address").to_owned();
    let connect = move || {
        let stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        stream
    };
    (server, connect)
}

#[test]
fn the_server_cuts_who_is_silent() {
    let (mut server, connect) = server("1s");
    let begun = Instant::now();
    let (mut silent, mut endless) = (connect(), connect());
    endless.write_all(b"no end of line").expect("it is connected");
    for client in [&mut silent, &mut endless] {
        assert_eq!(client.read(&mut [0]).expect("it is hung up on"), 0);
        assert!(begun.elapsed() >= Duration::from_secs(1));
        server.read_until("cut after 0 heartbeats: silent for 1s");
    }
    // Each line puts it off.
    let mut client = connect();
    server.read_until("connected");
    client.write_all(b"a line, and a part of ").expect("it is connected");
    let sent = Instant::now();
    client.write_all(b"another\n").expect("it is connected");
    assert_eq!(client.read(&mut [0]).expect("it is hung up on"), 0);
    assert!(sent.elapsed() >= Duration::from_secs(1));
    server.read_until("cut after 1 heartbeat:");
}

#[cfg(unix)]
#[test]
fn the_server_that_is_interrupted_hangs_up_on_all() {
    let (mut server, connect) = server("1h");
    let mut leaving = connect();
    leaving.write_all(b"one\ntwo\n").expect("it is connected");
    drop(leaving);
    server.read_until("left after 2 heartbeats");
    let mut staying = connect();
    server.read_until("connected");
    server.interrupt();
    assert_eq!(staying.read(&mut [0]).expect("it is hung up on"), 0);
    let end = server.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let report = "2 connections: 1 left, 0 cut, 1 there at the end";
    assert_eq!(end.stdout.last().map(String::as_str), Some(report), "{end:?}");
}

#[test]
fn a_server_that_cannot_be_is_refused() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--timeout"], 2, "--timeout wants a duration"),
        (&["--timeout", "5"], 2, "--timeout: bad duration \"5\""),
        (&["--timeout", "0s"], 2, "--timeout: it must be more than zero"),
        (&["--listen"], 2, "--listen wants an address"),
        (&["--listen", "nowhere"], 1, "cannot listen on nowhere: "),
    ];
    for (args, code, cause) in cases {
        let end = Program::start("heartbeats", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(code), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
}

/// In order, those that come together too; without those that have begun, were cancelled, or take
/// the whole day.
#[test]
fn the_reminders_demonstrate_themselves() {
    let end = demonstration("meeting_reminders");
    assert!(end.has_line(&["meetings: 5 to come, 1 begun"]), "{end:?}");
    let reminders = [
        "Call with a supplier whose name is so long that the line had to be folded",
        "Dentist",
        "Stand-up (Room 1)",
        "Planning, with Berlin (Room 2)",
        "Early lunch (Canteen)",
        "no more meetings",
    ];
    assert!(end.has_lines(&reminders), "{end:?}");
    assert_eq!(end.stdout.len(), reminders.len() + 1, "{end:?}");
    assert!(end.stderr.contains("\"Stand-up\" repeats"), "{end:?}");
}

/// On the system's clock: of two meetings in an hour one is reminded of at once. What cannot be
/// understood of a file is said, and the rest is used.
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
    let cases: [(&[u8], &str); 4] = [
        (b"", "it does not begin with BEGIN:VCALENDAR"),
        (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:cut o", "ics:2: what begins here"),
        (b"BEGIN:VCALENDAR", "ics:1: what begins here"),
        (b"BEGIN:VCALENDAR\xff", "it is not text in UTF-8"),
    ];
    for (text, cause) in cases {
        let file = TempFile::new("ics", text);
        let end = Program::start("meeting_reminders", [file.path()]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{cause}: {end:?}");
        assert!(end.stderr.contains(cause), "no {cause} in {end:?}");
    }
}

#[test]
fn reminders_that_cannot_be_are_refused() {
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
fn a_made_up_clock_goes_at_its_speed() {
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

/// A wall clock that is set is noticed, and what is computed after that is right.
#[test]
fn a_clock_that_was_set_is_followed() {
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
