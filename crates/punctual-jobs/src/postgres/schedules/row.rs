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
    job::jobs::Definitions,
    postgres::{connection::Boxed, moment},
};

/// A definition as the statements take it.
pub(in crate::postgres) struct Definition {
    pub(super) name: String,
    /// Those of [`PUT`](super::texts::PUT).
    pub(super) params: Vec<Boxed>,
    /// What tells this definition from others of the name. The payload is in it by its hash.
    code: String,
    /// The code wins over what a person has changed.
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
    /// Makes the parameters of a schedule, whose jobs have as many attempts as the program defines unless it says otherwise.
    pub(in crate::postgres) fn new(
        schedule: Schedule,
        definitions: &Definitions,
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
        let of_kind = definitions.max_attempts(kind, schedule.of_kind);
        let max_attempts = schedule.max_attempts.unwrap_or(of_kind);
        let hash = seed_of(payload.text());
        let params: Vec<Boxed> = vec![
            Box::new(schedule.name.clone()),
            Box::new(expression),
            Box::new(zone),
            Box::new(schedule.missing.and_then(|it| word_of(&MISSING, it))),
            Box::new(schedule.repeated.and_then(|it| word_of(&REPEATED, it))),
            Box::new(schedule.period.map(micros)),
            Box::new(schedule.from.map(moment::in_micros)),
            Box::new(schedule.until.map(moment::in_micros)),
            Box::new(micros(schedule.jitter)),
            Box::new(kind),
            Box::new(payload),
            Box::new(i32::try_from(max_attempts).unwrap_or(i32::MAX)),
            Box::new(catch_up),
            Box::new(micros(window)),
            Box::new(overlap),
            Box::new(most),
            Box::new(schedule.priority.number()),
            Box::new(schedule.ordering_key),
            Box::new(schedule.limit_key.unwrap_or_default()),
        ];
        let code = format!("{params:?} {hash:016x}");
        let wins = schedule.on_edit == OnEdit::CodeWins;
        Ok(Self { name: schedule.name, params, code, wins })
    }

    /// Adds the parameters that [`DECLARE`](super::texts::DECLARE) has besides.
    pub(in crate::postgres) fn declared(mut self) -> Self {
        self.params.push(Box::new(std::mem::take(&mut self.code)));
        self.params.push(Box::new(self.wins));
        self
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
