//! The cache as a program with input, and its core on a manual clock.

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../../examples/expiring_cache/cache.rs"]
mod cache;

use std::{sync::mpsc, time::Duration};

use punctual::ManualClock;

use self::cache::Cache;
use super::{demonstrates, typed};
use crate::support::{program::Program, receive};

#[test]
fn the_cache_demonstrates_itself() {
    let news = ["> get news", "news is \"today's\"", "evicted news, which was \"today's\""];
    demonstrates("expiring_cache", |end| {
        end.has_lines(&["> list", "news is \"today's\", ", "tea is \"hot\", "])
            && end.has_lines(&news)
            && end.has_lines(&["> del stamp", "removed stamp, which was \"rare\""])
            && end.has_lines(&["> set tea 0.4", "evicted tea, which was \"hot again\""])
    });
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
fn the_cache_reports_a_broken_line_and_continues() {
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
    let mut cache = Program::start_with_input("expiring_cache", [""; 0]);
    for (line, cause) in cases {
        cache.type_in(format!("{line}\n"));
        let answer = cache.read_until("error: ");
        assert!(answer.contains(cause), "{line}: {answer}");
    }
    cache.type_in(b"set \xff 3600 no text\n");
    let answer = cache.read_until("error: ");
    let cause =
        "line 11, column 5: it is not text in UTF-8, because of the byte 0xff: \"set \u{fffd} ";
    assert!(answer.contains(cause), "{answer}");
    cache.type_in("quit\n");
    assert_eq!(cache.end().code, Some(0));
}

/// An expired entry is announced while the program waits for the next command, and is gone.
#[test]
fn the_cache_evicts_while_it_listens() {
    let mut cache = Program::start_with_input("expiring_cache", ["-"]);
    cache.type_in("set tea 0.01 hot\n");
    cache.read_until("evicted tea, which was \"hot\"");
    cache.type_in("get tea\n");
    cache.read_until("there is no tea");
    // At the end of its input the program waits for the remaining entries.
    cache.type_in("set tea 0.01 hot again\n");
    let end = cache.end();
    assert_eq!(end.code, Some(0));
    assert!(end.has_line(&["evicted tea, which was \"hot again\""]), "{end:?}");
}

/// An entry that is read gets its whole lifetime again, and one that is set anew is not evicted on
/// behalf of its predecessor.
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
        |cache: &Cache<_, _>| cache.list().iter().map(|(name, ..)| *name).collect::<Vec<_>>();
    assert_eq!(names(&cache), [2, 1, 3]);

    clock.advance(second);
    assert_eq!(receive(&evicted, "it is evicted"), (2, "left alone"));
    assert_eq!(cache.get(&2), None);
    clock.advance(8 * second);
    assert_eq!(cache.get(&1), Some("refreshed"));
    clock.advance(second);
    assert_eq!(receive(&evicted, "it is evicted"), (3, "second"));
    clock.advance(9 * second);
    assert_eq!(receive(&evicted, "it is evicted"), (1, "refreshed"));
    assert!(names(&cache).is_empty());

    // Entries that remain when the cache is dropped are not evicted, and the drop does not wait for
    // them.
    assert_eq!(cache.set(5, Duration::MAX, "for ever"), Ok(None));
    drop(cache);
    assert!(evicted.recv().is_err());
}
