//! How a schedule stands, as the list of them says.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use tokio_postgres::Row;

use super::{Overlap, row::TickingRow};
use crate::{CatchUp, JobId, Priority, job::payload::Payload};

/// A schedule and how it stands; from [`Schedules::list`](crate::Schedules::list).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScheduleStatus {
    /// Its name.
    pub name: String,
    /// The name of the kind of its jobs.
    pub kind: String,
    /// The payload of its jobs.
    pub payload: String,
    /// Its cron expression, if it has no period.
    pub expression: Option<String>,
    /// The zone of the expression.
    pub zone: Option<String>,
    /// Its period, if it has no expression.
    pub period: Option<Duration>,
    /// The moment [from which on](crate::Schedule::from) it ticks.
    pub from: Option<SystemTime>,
    /// The moment [until which](crate::Schedule::until) it ticks.
    pub until: Option<SystemTime>,
    /// How long its jobs are [put off](crate::Schedule::jitter) at most.
    pub jitter: Duration,
    /// What becomes of missed ticks.
    pub catch_up: Option<CatchUp>,
    /// What a tick does while its jobs wait or run.
    pub overlap: Option<Overlap>,
    /// The priority of its jobs.
    pub priority: Priority,
    /// The [ordering key](crate::Schedule::ordering_key) that was given to its jobs.
    pub ordering_key: Option<String>,
    /// Their limit key.
    pub limit_key: Option<String>,
    /// It is paused.
    pub is_paused: bool,
    /// A program has declared it ([`Jobs::schedule`](crate::Jobs::schedule)): it ticks while such a program runs, and on every machine
    /// once [`is_edited`](Self::is_edited).
    pub is_declared: bool,
    /// It was put by [`Schedules::put`](crate::Schedules::put) since it was first put or declared.
    pub is_edited: bool,
    /// When the next job is enqueued; the present if a tick is due, and `None` if it is paused or over.
    pub next: Option<SystemTime>,
    /// The last tick that has a job.
    pub last_tick: Option<SystemTime>,
    /// The last job, whether a tick or [`run_now`](crate::Schedules::run_now) has enqueued it.
    pub last_job: Option<JobId>,
    /// When that was enqueued.
    pub last_enqueued: Option<SystemTime>,
    /// How many of its jobs wait or run.
    pub outstanding: u64,
    /// How many jobs it has enqueued.
    pub enqueued: u64,
    /// How many of those were for ticks that came too late.
    pub made_up: u64,
    /// How many ticks were missed and have no job. At most a thousand are counted each time a machine finds some.
    pub missed: u64,
    /// How many ticks were left out because of [`Overlap`].
    pub skipped: u64,
    /// Why this program cannot tick it: an unknown zone, or something that a newer version has written.
    pub unreadable: Option<String>,
}

impl ScheduleStatus {
    pub(super) fn read(row: &Row) -> Self {
        let count = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
        let is_paused: bool = row.get(18);
        let now: SystemTime = row.get(0);
        let ticking = TickingRow::read(row);
        let next = ticking.as_ref().ok().filter(|_| !is_paused).and_then(|row| {
            let next = row.timing.next_after(row.settled.min(now))?;
            Some(row.timing.due(next).max(now))
        });
        let period = row.get::<_, Option<i64>>(7).and_then(|period| u64::try_from(period).ok());
        Self {
            name: row.get(1),
            kind: row.get(16),
            payload: row.get::<_, Payload>(17).to_text(),
            expression: row.get(3),
            zone: row.get(4),
            period: period.map(Duration::from_micros),
            from: row.get(8),
            until: row.get(9),
            jitter: Duration::from_micros(u64::try_from(row.get::<_, i64>(10)).unwrap_or(0)),
            catch_up: ticking.as_ref().ok().map(|row| row.catch_up),
            overlap: ticking.as_ref().ok().map(|row| row.overlap),
            priority: Priority::of_number(row.get(29)),
            ordering_key: row.get(30),
            limit_key: row.get(31),
            is_paused,
            is_declared: row.get(19),
            is_edited: row.get(20),
            next,
            last_tick: row.get(21),
            last_job: row.get::<_, Option<i64>>(22).map(JobId),
            last_enqueued: row.get(23),
            enqueued: count(24),
            made_up: count(25),
            missed: count(26),
            skipped: count(27),
            outstanding: count(28),
            unreadable: ticking.err(),
        }
    }
}

/// One line for a log, without the payload.
impl fmt::Display for ScheduleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, enqueued, made_up, missed, skipped, outstanding, .. } = self;
        write!(f, "schedule {name:?} ")?;
        match (&self.expression, &self.zone, self.period) {
            (Some(expression), Some(zone), _) => write!(f, "at {expression} ({zone})")?,
            (_, _, Some(period)) => write!(f, "each {period:?}")?,
            _ => f.write_str("without ticks")?,
        }
        if self.is_paused {
            f.write_str(", paused")?;
        }
        write!(f, ": enqueued {enqueued}, of these made up for {made_up}, missed {missed}")?;
        write!(f, ", left out {skipped}, outstanding {outstanding}")
    }
}
