//! The tables of a queue as texts: its kinds, its jobs, its schedules. The screen and the plain output show the same.

use std::time::{Duration, SystemTime};

use punctual_jobs::{JobStage, JobStatus, KindCounts, KindOutcomes};

use crate::{
    feed::Feed,
    grid::{Column, Grid},
    look::ScheduleLook,
    values::short,
};

const KINDS: [Column; 7] = [
    Column("kind", 12, false),
    Column("waiting", 7, true),
    Column("due", 5, true),
    Column("running", 7, true),
    Column("discarded", 9, true),
    Column("latency", 7, true),
    Column("runs have ended", 15, false),
];
const JOBS: [Column; 6] = [
    Column("job", 6, true),
    Column("kind", 12, false),
    Column("stage", 9, false),
    Column("moment", 11, false),
    Column("attempts", 8, true),
    Column("machine, last error", 19, false),
];
const SCHEDULES: [Column; 5] = [
    Column("schedule", 14, false),
    Column("kind", 12, false),
    Column("next run", 11, false),
    Column("last run", 11, false),
    Column("ticks", 12, false),
];

/// Returns the table of kinds: those that have jobs, and those whose runs have ended in this program.
pub(crate) fn kinds(feed: &Feed) -> Grid {
    let outcomes = feed.outcomes();
    let counted = |kind: &str| feed.answer.counts.iter().find(|counts| counts.kind == kind);
    let mut names: Vec<_> = feed.answer.counts.iter().map(|counts| &*counts.kind).collect();
    names.extend(outcomes.iter().map(|ends| &*ends.kind));
    names.sort_unstable();
    names.dedup();
    let none = KindCounts::default();
    let row = |name: &str| {
        let counts = counted(name).unwrap_or(&none);
        let ends = outcomes.iter().find(|ends| ends.kind == name);
        vec![
            clean(name),
            counts.waiting.to_string(),
            counts.due.to_string(),
            counts.running.to_string(),
            counts.discarded.to_string(),
            short(counts.latency),
            ends.map(ended).unwrap_or_default(),
        ]
    };
    Grid { title: "Kinds", columns: &KINDS, rows: names.into_iter().map(row).collect() }
}

/// The line of the outcomes has the name before them.
fn ended(ends: &KindOutcomes) -> String {
    let line = ends.to_string();
    line.strip_prefix(&format!("{:?}", ends.kind)).unwrap_or(&line).trim_start().to_owned()
}

pub(crate) fn jobs(feed: &Feed) -> Grid {
    let now = feed.wall_time();
    let row = |job: &JobStatus| {
        let machine = job.machine.iter().filter(|_| feed.has_machines).cloned();
        let wait = job.waits_for.map(|wait| format!("waits for {wait}"));
        let notes: Vec<_> = machine.chain(wait).chain(job.last_error.clone()).collect();
        vec![
            job.id.to_string(),
            clean(&job.kind),
            job.stage.to_string(),
            moment(job, now),
            format!("{} of {}", job.attempts, job.max_attempts),
            clean(&notes.join(", ")),
        ]
    };
    Grid { title: "Jobs", columns: &JOBS, rows: feed.answer.jobs.iter().map(row).collect() }
}

/// When a job that waits is due, or since when one runs.
fn moment(job: &JobStatus, now: SystemTime) -> String {
    match (job.stage, job.since, job.due) {
        (JobStage::Running, Some(since), _) => {
            format!("for {}", short(now.duration_since(since).unwrap_or_default()))
        }
        (JobStage::Waiting, _, Some(due)) => ahead(due, now),
        _ => "–".to_owned(),
    }
}

pub(crate) fn schedules(feed: &Feed) -> Grid {
    let now = feed.wall_time();
    let row = |schedule: &ScheduleLook| {
        let next = match schedule.next {
            _ if schedule.is_paused => "paused".to_owned(),
            Some(next) => ahead(next, now),
            None => "none".to_owned(),
        };
        let ago = |last| now.duration_since(last).unwrap_or(Duration::ZERO);
        let last = schedule
            .last
            .map_or_else(|| "none".to_owned(), |last| format!("{} ago", short(ago(last))));
        vec![clean(&schedule.name), clean(&schedule.kind), next, last, clean(&schedule.ticks)]
    };
    let rows = feed.answer.schedules.iter().map(row).collect();
    Grid { title: "Schedules", columns: &SCHEDULES, rows }
}

fn ahead(moment: SystemTime, now: SystemTime) -> String {
    match moment.duration_since(now) {
        Ok(Duration::ZERO) => "now".to_owned(),
        Ok(ahead) => format!("in {}", short(ahead)),
        Err(late) => format!("{} late", short(late.duration())),
    }
}

/// Returns a text that speaks to no terminal: an error of a job may say anything.
fn clean(text: &str) -> String {
    let escaped = |letter: char| -> Box<dyn Iterator<Item = char>> {
        if letter.is_control() {
            Box::new(letter.escape_default())
        } else {
            Box::new(std::iter::once(letter))
        }
    };
    text.chars().flat_map(escaped).collect()
}
