//! A schedule as its row has it: how it is written there, and read.

use std::time::{Duration, SystemTime};

use tokio_postgres::Row;

use super::{
    OnEdit, Overlap, Schedule,
    definition::{MISSING, REPEATED, unknown},
    timing::{Calendar, Timing, seed_of},
};
use crate::{
    CatchUp, QueueError,
    job::payload::Payload,
    postgres::{connection::Boxed, moment},
};

/// A definition as [`PUT`](super::texts::PUT) takes it.
pub(in crate::postgres) struct Definition {
    pub(super) name: String,
    expression: Option<String>,
    zone: Option<String>,
    missing: Option<&'static str>,
    repeated: Option<&'static str>,
    period: Option<i64>,
    begins: Option<SystemTime>,
    ends: Option<SystemTime>,
    jitter: i64,
    kind: &'static str,
    payload: Payload,
    max_attempts: i32,
    catch_up: &'static str,
    window: i64,
    overlap: &'static str,
    most: i32,
    priority: i16,
    ordering_key: Option<String>,
    limit_key: String,
    /// Of a definition that a program declares.
    code: String,
    wins: bool,
}

/// When a row ticks, and how far it is settled.
pub(super) struct TickingRow {
    pub(super) name: String,
    pub(super) revision: i64,
    pub(super) timing: Timing,
    pub(super) catch_up: CatchUp,
    pub(super) overlap: Overlap,
    pub(super) settled: SystemTime,
}

impl Definition {
    /// Makes the parameters of a schedule, whose jobs have so many attempts unless it says otherwise.
    pub(in crate::postgres) fn new(
        schedule: Schedule,
        max_attempts: impl FnOnce(&str, u32) -> u32,
    ) -> Result<Self, QueueError> {
        schedule.check().map_err(QueueError::InvalidName)?;
        let kind = schedule.kind;
        let payload = schedule.payload;
        let payload = payload.map_err(|source| QueueError::Payload { name: kind, source })?;
        let (catch_up, window) = words_of_catch_up(schedule.catch_up);
        let (overlap, most) = words_of_overlap(schedule.overlap);
        let cron = match &schedule.when {
            Calendar::Cron(cron) => Some((cron.expression().to_owned(), cron.zone().to_owned())),
            Calendar::Period(_) => None,
        };
        let (expression, zone) = cron.unzip();
        let max_attempts =
            schedule.max_attempts.unwrap_or_else(|| max_attempts(kind, schedule.of_kind));
        let mut definition = Self {
            expression,
            zone,
            missing: schedule.missing.and_then(|it| word_of(&MISSING, it)),
            repeated: schedule.repeated.and_then(|it| word_of(&REPEATED, it)),
            period: schedule.period.map(micros),
            begins: schedule.from.map(moment::in_micros),
            ends: schedule.until.map(moment::in_micros),
            jitter: micros(schedule.jitter),
            kind,
            payload,
            max_attempts: i32::try_from(max_attempts).unwrap_or(i32::MAX),
            catch_up,
            window: micros(window),
            overlap,
            most,
            priority: schedule.priority.number(),
            ordering_key: schedule.ordering_key,
            limit_key: schedule.limit_key.unwrap_or_default(),
            code: String::new(),
            wins: schedule.on_edit == OnEdit::CodeWins,
            name: schedule.name,
        };
        definition.code = definition.code();
        Ok(definition)
    }

    /// Returns what tells this definition from others of the name. The payload is in it by its hash.
    fn code(&self) -> String {
        let payload = seed_of(self.payload.text());
        // A program that says nothing of these says what it said before there were any.
        let of_jobs = match (self.priority, &self.ordering_key, self.limit_key.as_str()) {
            (0, None, "") => String::new(),
            some => format!(" {some:?}"),
        };
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {payload:016x} {} {} {} {} {}{of_jobs}",
            self.expression,
            self.zone,
            self.missing,
            self.repeated,
            self.period,
            self.begins,
            self.ends,
            self.jitter,
            self.kind,
            self.max_attempts,
            self.catch_up,
            self.window,
            self.overlap,
            self.most,
        )
    }

    /// Returns the parameters of [`PUT`](super::texts::PUT).
    pub(super) fn boxed(self) -> Vec<Boxed> {
        vec![
            Box::new(self.name),
            Box::new(self.expression),
            Box::new(self.zone),
            Box::new(self.missing),
            Box::new(self.repeated),
            Box::new(self.period),
            Box::new(self.begins),
            Box::new(self.ends),
            Box::new(self.jitter),
            Box::new(self.kind),
            Box::new(self.payload),
            Box::new(self.max_attempts),
            Box::new(self.catch_up),
            Box::new(self.window),
            Box::new(self.overlap),
            Box::new(self.most),
            Box::new(self.priority),
            Box::new(self.ordering_key),
            Box::new(self.limit_key),
        ]
    }

    /// Returns those of [`DECLARE`](super::texts::DECLARE).
    pub(in crate::postgres) fn declared(mut self) -> Vec<Boxed> {
        let (code, wins) = (std::mem::take(&mut self.code), self.wins);
        let mut all = self.boxed();
        all.push(Box::new(code));
        all.push(Box::new(wins));
        all
    }
}

impl TickingRow {
    /// Returns what becomes of missed ticks. By [`Overlap::Replace`] one job takes the place of another, so of several that
    /// are due together the last one stands for all.
    pub(super) fn rule(&self) -> CatchUp {
        match (self.catch_up, self.overlap) {
            (CatchUp::Each(window), Overlap::Replace) => CatchUp::Last(window),
            (catch_up, _) => catch_up,
        }
    }

    /// Reads the columns that all statements about rows have, from `name` on. The error says what is not understood.
    pub(super) fn read(row: &Row) -> Result<Self, String> {
        let name: String = row.get(1);
        let text = |column| row.get::<_, Option<&str>>(column);
        let span = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let period = row.get::<_, Option<i64>>(7).map(span);
        let calendar = Calendar::of_row(text(3), text(4), (text(5), text(6)), period)?;
        let timing = Timing {
            calendar,
            from: row.get(8),
            until: row.get(9),
            jitter: span(row.get(10)),
            seed: seed_of(&name),
        };
        Ok(Self {
            revision: row.get(2),
            timing,
            catch_up: catch_up(row.get(11), span(row.get(12)))?,
            overlap: overlap(row.get(13), row.get(14))?,
            settled: row.get(15),
            name,
        })
    }
}

fn words_of_catch_up(catch_up: CatchUp) -> (&'static str, Duration) {
    match catch_up {
        CatchUp::None => ("none", Duration::ZERO),
        CatchUp::Last(window) => ("last", window),
        CatchUp::Each(window) => ("each", window),
    }
}

fn catch_up(word: &str, window: Duration) -> Result<CatchUp, String> {
    match word {
        "none" => Ok(CatchUp::None),
        "last" => Ok(CatchUp::Last(window)),
        "each" => Ok(CatchUp::Each(window)),
        _ => Err(unknown("catch_up", word)),
    }
}

fn words_of_overlap(overlap: Overlap) -> (&'static str, i32) {
    match overlap {
        Overlap::Skip => ("skip", 1),
        Overlap::QueueOne => ("queue", 1),
        Overlap::Allow(most) => ("allow", i32::try_from(most.max(1)).unwrap_or(i32::MAX)),
        Overlap::Replace => ("replace", 1),
    }
}

fn overlap(word: &str, most: i32) -> Result<Overlap, String> {
    match word {
        "skip" => Ok(Overlap::Skip),
        "queue" => Ok(Overlap::QueueOne),
        "allow" => Ok(Overlap::Allow(u32::try_from(most).unwrap_or(0))),
        "replace" => Ok(Overlap::Replace),
        _ => Err(unknown("overlap", word)),
    }
}

/// Returns the word of a policy. One that is newer than this crate has none, and is the expression's own then.
fn word_of<T: PartialEq>(words: &[(T, &'static str)], policy: T) -> Option<&'static str> {
    words.iter().find(|(known, _)| *known == policy).map(|(_, word)| *word)
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
