//! The job file of the example `jobs`: the parser's verdict on any text, against a second parser
//! that does not use the first one's types. Both find the same jobs, or both reject the file. The
//! second one does not know all keys; of a file that has others nothing is compared. In any case an
//! error message names a line that exists, and shows it.

#![no_main]

#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/config.rs"]
mod config;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/draft.rs"]
mod draft;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/fault.rs"]
mod fault;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/jitter.rs"]
mod jitter;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/moment.rs"]
mod moment;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/retry.rs"]
mod retry;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/schedule.rs"]
mod schedule;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/timetable.rs"]
mod timetable;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../../../../examples/jobs/src/values.rs"]
mod values;

use std::{collections::HashSet, path::Path, time::Duration};

use libfuzzer_sys::fuzz_target;
use toml::{Table, Value};

use config::{Job, Plan, Schedule};

/// The keys that the second parser does not know.
const OTHER_KEYS: [&str; 7] = ["zone", "at", "jitter", "timeout", "retry", "on_missed", "overlap"];

fuzz_target!(|text: &str| {
    if has_other_keys(text) {
        if let Err(complaint) = config::check(Path::new("FILE"), text) {
            look_at_each(&complaint, text);
        }
        return;
    }
    match (config::check(Path::new("FILE"), text), read(text)) {
        (Ok(plan), Some(expected)) => compare(&plan, &expected),
        (Err(complaint), None) => look_at_each(&complaint, text),
        (Ok(plan), None) => panic!("it takes what is broken for {plan:?}"),
        (Err(complaint), Some(_)) => panic!("it complains of what is in order: {complaint}"),
    }
});

/// The contents of a file.
struct File {
    run_for: Option<Duration>,
    /// The jobs, each with its name, its command, and a text for its schedule.
    jobs: Vec<(String, String, String)>,
}

/// Returns `true` if the second parser would not understand the file.
fn has_other_keys(text: &str) -> bool {
    let Ok(table) = text.parse::<Table>() else { return false };
    let others = |table: &Table| table.keys().any(|key| OTHER_KEYS.contains(&key.as_str()));
    let jobs = table.get("job").and_then(Value::as_array);
    let in_jobs = jobs.is_some_and(|jobs| jobs.iter().filter_map(Value::as_table).any(others));
    others(&table) || in_jobs
}

/// Parses the file without types; returns `None` if it is broken.
fn read(text: &str) -> Option<File> {
    let table: Table = text.parse().ok()?;
    only(&table, &["run_for", "job"])?;
    let jobs = table.get("job")?.as_array()?;
    let jobs: Vec<_> = jobs.iter().map(job).collect::<Option<_>>()?;
    let names: HashSet<_> = jobs.iter().map(|(name, ..)| name).collect();
    let is_whole = !jobs.is_empty() && names.len() == jobs.len();
    is_whole.then_some(File { run_for: duration(&table, "run_for")?, jobs })
}

fn job(job: &Value) -> Option<(String, String, String)> {
    let job = job.as_table()?;
    only(job, &["name", "command", "after", "every", "delay", "initial", "missed"])?;
    let text = |key| job.get(key)?.as_str().map(str::to_owned);
    let zero = Duration::ZERO;
    let initial = duration(job, "initial")?;
    let times = (duration(job, "after")?, duration(job, "every")?, duration(job, "delay")?);
    let timing = match (times, initial, job.get("missed")) {
        ((Some(after), None, None), None, None) => format!("after {after:?}"),
        ((None, Some(every), None), initial, missed) if every > zero => {
            let missed = missed.map_or(Some("coalesce"), Value::as_str)?;
            ["burst", "coalesce", "skip", "delay"].iter().find(|known| **known == missed)?;
            format!("every {every:?} from {:?}, {missed}", initial.unwrap_or(zero))
        }
        ((None, None, Some(delay)), initial, None) if delay > zero => {
            format!("delay {delay:?} from {:?}", initial.unwrap_or(zero))
        }
        _ => return None,
    };
    Some((text("name")?, text("command")?, timing))
}

/// Returns `None` if there are other keys.
fn only(table: &Table, keys: &[&str]) -> Option<()> {
    table.keys().all(|key| keys.contains(&key.as_str())).then_some(())
}

/// Returns `None` if it is not a duration, and `Some(None)` if it is missing.
fn duration(table: &Table, key: &str) -> Option<Option<Duration>> {
    let Some(value) = table.get(key) else { return Some(None) };
    humantime::parse_duration(value.as_str()?).ok().map(Some)
}

fn compare(plan: &Plan, expected: &File) {
    assert_eq!(plan.run_for, expected.run_for);
    let told = |job: &Job| (job.name.clone(), job.command.clone(), timing(&job.schedule));
    let expected = expected.jobs.iter().map(|(name, command, timing)| {
        // The example keeps each name as it shows it.
        (on_one_line(name), command.clone(), timing.clone())
    });
    assert_eq!(plan.jobs.iter().map(told).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for job in &plan.jobs {
        let shown = job.schedule.to_string();
        let (_, duration) = shown.split_once(' ').expect("a kind and a duration");
        let read_again = values::parse_duration(duration).expect("it is shown as one writes it");
        assert_eq!(Some(read_again), length(&job.schedule), "{shown}");
    }
}

/// Escapes the control characters of a name.
fn on_one_line(name: &str) -> String {
    let mut shown = name.to_owned();
    for letter in name.chars().filter(|letter| letter.is_control()) {
        shown = shown.replace(letter, &letter.escape_default().to_string());
    }
    shown
}

fn timing(schedule: &Schedule) -> String {
    match schedule {
        Schedule::After(after) => format!("after {after:?}"),
        Schedule::Every { initial, period, missed } => {
            format!("every {period:?} from {initial:?}, {}", format!("{missed:?}").to_lowercase())
        }
        Schedule::Delay { initial, delay } => format!("delay {delay:?} from {initial:?}"),
        Schedule::At { calendar, .. } => format!("at {calendar}"),
    }
}

fn length(schedule: &Schedule) -> Option<Duration> {
    match schedule {
        Schedule::After(length)
        | Schedule::Every { period: length, .. }
        | Schedule::Delay { delay: length, .. } => Some(*length),
        Schedule::At { .. } => None,
    }
}

/// There may be several: each begins with the name of the file.
fn look_at_each(complaints: &str, text: &str) {
    let first = complaints.strip_prefix("FILE:").expect("the name of the file");
    first.split("\nFILE:").for_each(|complaint| look_at(complaint, text));
}

/// Checks that the message names a line, states the cause, shows the line, and marks a place in it.
fn look_at(complaint: &str, text: &str) {
    let (place, _) = complaint.split_once(": ").expect("a line");
    let (line, column) = place.split_once(':').expect("a line and a column");
    let (line, column): (usize, usize) =
        (line.parse().expect("a number"), column.parse().expect("a number"));
    assert!((1..=text.split('\n').count()).contains(&line), "{complaint}");
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let whole = text[start..].lines().next().unwrap_or_default();
    let (shown, mark) = complaint.rsplit_once('\n').expect("a line and a mark");
    assert!(shown.ends_with(&format!("\n {line} | {whole}")), "{complaint}");
    let (margin, marked) = mark.split_once(" | ").expect("a margin");
    assert_eq!(margin.len(), line.to_string().len() + 1, "{complaint}");
    let marks = marked.trim_start_matches([' ', '\t']);
    assert_eq!(marked.chars().count() - marks.chars().count() + 1, column, "{complaint}");
    assert!(!marks.is_empty() && marks.chars().all(|mark| mark == '^'), "{complaint}");
    assert!(marked.chars().count() <= whole.chars().count() + 1, "{complaint}");
}
