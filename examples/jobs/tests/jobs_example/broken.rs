//! Job files that are refused: each with the place, the cause, and a mark under what is wrong.

use crate::program::{Program, TempFile};

/// How the program refuses a file.
struct Refusal {
    /// Line and column, counted from 1.
    place: String,
    cause: String,
    /// The line of the file, and below it a mark.
    shown: [String; 2],
}

impl Refusal {
    fn of(text: &str) -> Self {
        let file = TempFile::new("toml", text);
        let end = Program::start("jobs", [file.path()]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{text}: {end:?}");
        let lines: Vec<_> = end.stderr.lines().collect();
        let [message, shown @ ..] = lines.as_slice() else { panic!("{text}: {end:?}") };
        let message = message
            .strip_prefix(&format!("error: {}:", file.path().display()))
            .unwrap_or_else(|| panic!("no file: {end:?}"));
        let (place, cause) = message.split_once(": ").expect("a place and a cause");
        let [line, mark] = shown else { panic!("{text}: {end:?}") };
        let shown = [(*line).to_owned(), (*mark).to_owned()];
        Self { place: place.to_owned(), cause: cause.to_owned(), shown }
    }

    /// Returns the text that is marked.
    fn marked(&self) -> String {
        let [line, mark] = &self.shown;
        let under = line.chars().zip(mark.chars());
        under.filter(|(_, mark)| *mark == '^').map(|(marked, _)| marked).collect()
    }
}

/// A broken job file is refused with line, column and cause, and with exit code 2. What is wrong is
/// marked.
#[test]
fn a_broken_file_is_refused_with_its_place_and_cause() {
    let cases = [
        ("evry = '1s'", "4:1", "unknown field `evry`", "evry"),
        ("every = '1s'\nafter = '2s'", "5:9", "this has `every` and `after`", "'2s'"),
        ("at = '@daily'\nevery = '2s'", "5:9", "this has `at` and `every`", "'2s'"),
        (
            "",
            "1:1",
            "a job has exactly one of `after`, `every`, `delay`, `at`; this has none",
            "[[job]]",
        ),
        ("every = '1.5parsec'", "4:9", "unknown time unit \"parsec\"", "'1.5parsec'"),
        ("every = '15'", "4:9", "time unit needed", "'15'"),
        ("every = '0s'", "4:9", "must be more than zero", "'0s'"),
        ("delay = '0s'", "4:9", "must be more than zero", "'0s'"),
        ("after = '1s'\ntimeout = '0s'", "5:11", "must be more than zero", "'0s'"),
        ("every = '1s'\njitter = '0s'", "5:10", "must be more than zero", "'0s'"),
        ("after = '1s'\ninitial = '1s'", "5:11", "`initial` says nothing beside `after`", "'1s'"),
        ("delay = '1s'\non_missed = 'skip'", "5:13", "`on_missed` says nothing without", "'skip'"),
        ("delay = '1s'\noverlap = 'skip'", "5:11", "`overlap` says nothing without", "'skip'"),
        ("after = '1s'\njitter = '1s'", "5:10", "`jitter` says nothing without", "'1s'"),
        ("every = '1s'\nzone = 'UTC'", "5:8", "`zone` says nothing without `at`", "'UTC'"),
        (
            "every = '1s'\non_missed = 'never'",
            "5:13",
            "\"never\" says nothing about missed",
            "'never'",
        ),
        ("every = '1s'\non_missed = 'within'", "5:13", "or \"within 10min\"", "'within'"),
        ("every = '1s'\non_missed = 'within 5'", "5:13", "time unit needed", "'within 5'"),
        ("every = '1s'\noverlap = 'yes'", "5:11", "use \"skip\", \"queue\" or \"allow\"", "'yes'"),
        (
            "every = '1s'\noverlap = 'skip'\non_missed = 'burst'",
            "6:13",
            "`overlap` says already what becomes of missed runs",
            "'burst'",
        ),
        ("every = '1s'\nretry = 0", "5:9", "a command is tried once at least", "0"),
        ("every = '1s'\nretry = -1", "5:9", "expected a number of attempts, or {", "-1"),
        ("every = '1s'\nretry = 'often'", "5:9", "expected a number of attempts, or {", "'often'"),
        (
            "every = '1s'\nretry = { first = '1s' }",
            "5:9",
            "missing field `attempts`",
            "{ first = '1s' }",
        ),
        ("every = '1s'\nretry = { times = 3 }", "5:11", "unknown field `times`", "times"),
        (
            "every = '1s'\nretry = { attempts = 2, first = 'x' }",
            "5:33",
            "bad duration \"x\"",
            "'x'",
        ),
        (
            "every = '1s'\nretry = { attempts = 2, first = '2s', longest = '1s' }",
            "5:9",
            "`longest` is shorter than `first`",
            "{ attempts = 2, first = '2s', longest = '1s' }",
        ),
        ("after = '1s'\n[[job]]\nname = 'it'", "5:1", "missing field `command`", "[[job]]"),
        (
            "after = '1s'\n[[job]]\nname = 'it'\ncommand = 'true'\nafter = '1s'",
            "6:8",
            "there is a job \"it\" already, in line 2",
            "'it'",
        ),
    ];
    for (rest, place, cause, marked) in cases {
        let refusal = Refusal::of(&format!("[[job]]\nname = 'it'\ncommand = 'true'\n{rest}\n"));
        assert_eq!((refusal.place.as_str(), refusal.marked().as_str()), (place, marked), "{rest}");
        assert!(refusal.cause.contains(cause), "{rest}: no {cause} in {}", refusal.cause);
    }
    let refusal = Refusal::of("[[job]]\nname = 'it'\nthis is not TOML\n");
    assert!(refusal.place.starts_with("3:"), "{}", refusal.place);
}

/// All mistakes against the rules are told at once, in the order of the file.
#[test]
fn every_mistake_of_a_file_is_told() {
    let job =
        |name: &str, rest: &str| format!("[[job]]\nname = '{name}'\ncommand = 'true'\n{rest}\n");
    let text =
        job("it", "every = '0s'\ntimeout = '0s'") + &job("it", "after = '1s'\njitter = '1s'");
    let file = TempFile::new("toml", &text);
    let end = Program::start("jobs", [file.path()]).end();
    assert_eq!(end.code, Some(2));
    let path = format!("{}:", file.path().display());
    let places = end.stderr.lines().filter_map(|line| line.split_once(&path)?.1.split_once(": "));
    let places: Vec<_> = places.map(|(place, _)| place).collect();
    assert_eq!(places, ["4:9", "5:11", "7:8", "10:10"], "{end:?}");
}

/// A calendar that is wrong, or has no time zone, is refused likewise.
#[test]
fn a_calendar_needs_a_time_zone_that_exists() {
    let cases = [
        ("at = '@daily'", "4:6", "`at` needs a time zone; write `zone = \"", "'@daily'"),
        (
            "at = '@daily'\nzone = 'Mars/Olympus'",
            "5:8",
            "not the name of a time zone",
            "'Mars/Olympus'",
        ),
        (
            "at = '@daily'\nzone = 'UTC'\ninitial = '1s'",
            "6:11",
            "`initial` says nothing beside `at`",
            "'1s'",
        ),
        ("at = '@daily'\nzone = 'UTC'\non_missed = 'delay'", "6:13", "use \"coalesce\"", "'delay'"),
    ];
    for (rest, place, cause, marked) in cases {
        let refusal = Refusal::of(&format!("[[job]]\nname = 'it'\ncommand = 'true'\n{rest}\n"));
        assert_eq!((refusal.place.as_str(), refusal.marked().as_str()), (place, marked), "{rest}");
        assert!(refusal.cause.contains(cause), "{rest}: no {cause} in {}", refusal.cause);
    }
    // The one at the top is looked at even if no job needs it.
    let file = "zone = 'Mars/Olympus'\n[[job]]\nname = 'it'\ncommand = 'true'\nafter = '1s'\n";
    let refusal = Refusal::of(file);
    assert_eq!((refusal.place.as_str(), refusal.marked().as_str()), ("1:8", "'Mars/Olympus'"));
}

/// In a cron expression the field is marked that is at fault; where something is missing, the place
/// where it should be.
#[test]
fn what_is_wrong_in_an_expression_is_marked() {
    let cases = [
        (
            "at = \"0 25 * * *\"",
            "3:9",
            "`25` is not an hour; use 0 to 23",
            [" 3 | at = \"0 25 * * *\"", "   |         ^^"],
        ),
        (
            "at = '0 0 30 2 *' # never",
            "3:11",
            "no day of any year is in all of the three day and month fields; choose a day that one \
             of the months has",
            [" 3 | at = '0 0 30 2 *' # never", "   |           ^^^^^^"],
        ),
        (
            "\tat = '''5-1 0 * * *'''",
            "3:10",
            "",
            [" 3 | \tat = '''5-1 0 * * *'''", "   | \t        ^^^"],
        ),
        // A text with an escape is not the one that is parsed, so all of it is marked.
        (
            "at = \"0 25 * * \\u002a\"",
            "3:6",
            "`25` is not an hour; use 0 to 23",
            [" 3 | at = \"0 25 * * \\u002a\"", "   |      ^^^^^^^^^^^^^^^^^"],
        ),
    ];
    for (line, place, cause, shown) in cases {
        let file = format!("zone = 'UTC'\n[[job]]\n{line}\nname = 'it'\ncommand = 'true'\n");
        let refusal = Refusal::of(&file);
        assert_eq!(refusal.shown, shown, "{line}: {}", refusal.cause);
        assert_eq!(refusal.place, place, "{line}");
        assert!(cause.is_empty() || refusal.cause == cause, "{line}: {}", refusal.cause);
    }
}

/// A file that is not text is refused likewise.
#[test]
fn a_file_that_is_not_text_is_refused_with_its_place() {
    let file = TempFile::new("toml", b"[[job]]\nname = '\xc3\xa9\xff'\n");
    let end = Program::start("jobs", [file.path()]).end();
    assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{end:?}");
    let place = format!("{}:2:10: it is not text in UTF-8", file.path().display());
    assert!(end.stderr.contains(&place), "no {place} in {end:?}");
}

/// A line that breaks off is marked at its end, whichever line ending is used.
#[test]
fn the_end_of_a_truncated_line_is_marked() {
    for newline in ["\n", "\r\n"] {
        let refusal = Refusal::of(&format!("[[job]]{newline}name = \"it{newline}"));
        assert_eq!(refusal.shown, [" 2 | name = \"it", "   |           ^"], "{newline:?}");
    }
}
