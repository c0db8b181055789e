//! What a schedule is: when it ticks, the job of each tick, and its policies.

use std::time::{Duration, SystemTime};

use punctual::trigger::{Cron, CronError, Missing, Repeated, cron};

use super::timing::Calendar;
use crate::{
    CatchUp, InvalidName, Job, Priority, aligned,
    job::{attempts_of, clamped, names::Names, payload::Payload},
};

/// What a tick does while jobs of its schedule wait or run. A job that waits for its next attempt is one of them.
///
/// In each case but [`Allow`](Self::Allow) the runs of a schedule never overlap, on any machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overlap {
    /// The tick has no job. (Kubernetes: `Forbid`.)
    Skip,
    /// One waits at a time beside one that runs; a tick that finds one waiting has no job of its own, because that one
    /// begins after it. If it waits for its next attempt, it is made due at once; it has the kind and the payload that the schedule
    /// has by then. Two wait once the running one has failed. This is what
    /// [`Jobs::every`](crate::Jobs::every) does. (Temporal: buffer one.)
    QueueOne,
    /// So many may wait and run at once; a tick that finds as many has no job. Zero counts as one.
    Allow(u32),
    /// A job that waits is removed, and one that runs has its [token](crate::JobRun::token) cancelled, at once on
    /// the machine that takes the tick and within a heartbeat on others, and it is not tried again. The job of the
    /// tick begins when it has returned. Of several ticks that are due together the last one has a job, so
    /// [`CatchUp::Each`] is [`CatchUp::Last`] with it. (Kubernetes: `Replace`.)
    Replace,
}

/// The winner if a program declares a schedule ([`Jobs::schedule`](crate::Jobs::schedule)) whose row has been put or removed by
/// [`PostgresQueue::schedules`](crate::PostgresQueue::schedules), or by a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnEdit {
    /// The row stays as it is, and removed if it was; [`ScheduleKept`](crate::QueueEvent::ScheduleKept) says so.
    #[default]
    RowWins,
    /// The row becomes what the program says, each time that one is started. A pause stays.
    CodeWins,
}

/// A schedule, as it is put into the database: its name, when it ticks, the job that each tick enqueues, and policies.
///
/// Given to [`Schedules::put`](crate::Schedules::put), or to [`Jobs::schedule`](crate::Jobs::schedule).
///
/// ```
/// use std::time::Duration;
/// use punctual_jobs::{CatchUp, Job, Overlap, Schedule};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Report { region: String }
/// impl Job for Report { const NAME: &'static str = "report"; }
///
/// let job = Report { region: "eu".into() };
/// let hour = Duration::from_secs(3600);
/// let schedule = Schedule::cron("report/eu", "0 9 * * MON-FRI", "Europe/London", &job)?
///     .jitter(hour / 6)
///     .catch_up(CatchUp::Last(4 * hour))
///     .overlap(Overlap::Skip);
/// # Ok::<(), punctual::trigger::CronError>(())
/// ```
#[derive(Debug)]
#[must_use = "a schedule does nothing until it is put into a queue"]
pub struct Schedule {
    pub(super) name: String,
    pub(super) when: Calendar,
    pub(super) missing: Option<Missing>,
    pub(super) repeated: Option<Repeated>,
    pub(super) period: Option<Duration>,
    pub(super) from: Option<SystemTime>,
    pub(super) until: Option<SystemTime>,
    pub(super) jitter: Duration,
    pub(super) kind: &'static str,
    pub(super) payload: Result<Payload, serde_json::Error>,
    pub(super) max_attempts: Option<u32>,
    /// How many attempts the kind says.
    pub(super) of_kind: u32,
    pub(super) catch_up: CatchUp,
    pub(super) overlap: Overlap,
    pub(super) priority: Priority,
    pub(super) ordering_key: Option<String>,
    pub(super) limit_key: Option<String>,
    pub(super) on_edit: OnEdit,
}

/// A shorter one would do nothing but tick.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

impl Schedule {
    /// Ticks when a clock in a zone shows the times of a cron expression, as [`punctual::trigger::cron()`] reads them.
    /// `name` has 1 to 128 bytes, without a NUL.
    ///
    /// # Errors
    ///
    /// [`CronError`] if the expression is not understood or never matches, or if no such zone is known here.
    pub fn cron<J: Job>(
        name: impl Into<String>,
        expression: &str,
        zone: &str,
        job: &J,
    ) -> Result<Self, CronError> {
        Ok(Self::new(name.into(), Calendar::Cron(cron(expression, zone)?), None, job))
    }

    /// Ticks whenever the time since the beginning of 1970 is a multiple of the period, as [`aligned`](crate::aligned())
    /// says. The period is counted in whole microseconds, and one below ten milliseconds counts as that.
    pub fn every<J: Job>(name: impl Into<String>, period: Duration, job: &J) -> Self {
        let longest = u128::from(i64::MAX.unsigned_abs());
        let micros = u64::try_from(period.as_micros().min(longest)).unwrap_or(u64::MAX);
        let period = Duration::from_micros(micros).max(SHORTEST_PERIOD);
        Self::new(name.into(), Calendar::Period(aligned(period)), Some(period), job)
    }

    fn new<J: Job>(name: String, when: Calendar, period: Option<Duration>, job: &J) -> Self {
        Self {
            name,
            when,
            missing: None,
            repeated: None,
            period,
            from: None,
            until: None,
            jitter: Duration::ZERO,
            kind: J::NAME,
            payload: Payload::of(job),
            max_attempts: None,
            of_kind: attempts_of::<J>(),
            catch_up: CatchUp::Last(Duration::from_secs(3600)),
            overlap: Overlap::QueueOne,
            priority: Priority::Normal,
            ordering_key: None,
            limit_key: None,
            on_edit: OnEdit::default(),
        }
    }

    /// Chooses what becomes of times that the clock of the zone does not show, as [`Cron::missing`]. A period has none.
    pub fn missing(mut self, missing: Missing) -> Self {
        if let Calendar::Cron(cron) = self.when {
            (self.when, self.missing) = (Calendar::Cron(cron.missing(missing)), Some(missing));
        }
        self
    }

    /// Chooses what becomes of times that the clock of the zone shows twice, as [`Cron::repeated`]. A period has none.
    pub fn repeated(mut self, repeated: Repeated) -> Self {
        if let Calendar::Cron(cron) = self.when {
            (self.when, self.repeated) = (Calendar::Cron(cron.repeated(repeated)), Some(repeated));
        }
        self
    }

    /// Leaves out the ticks before this moment. A program that declares the schedule should name the same moment at each start:
    /// `SystemTime::now()` is another definition each time, and its ticks count anew.
    pub fn from(mut self, begin: SystemTime) -> Self {
        self.from = Some(begin);
        self
    }

    /// Leaves out the ticks after this moment. The row stays when the last one is over. With [jitter](Self::jitter) the job of the
    /// last tick may be enqueued up to that much later.
    pub fn until(mut self, end: SystemTime) -> Self {
        self.until = Some(end);
        self
    }

    /// Has each tick due a while later, below `most` and shorter than the time to the next tick. The while follows from the
    /// name of the schedule and the tick, so it is the same on each machine.
    #[doc(alias = "thundering_herd")]
    pub fn jitter(mut self, most: Duration) -> Self {
        self.jitter = most;
        self
    }

    /// Sets what becomes of missed ticks (misfires); without this call it is the last one within an hour. A schedule that is put, or
    /// resumed, has missed nothing before.
    #[doc(alias = "misfire")]
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.catch_up = catch_up;
        self
    }

    /// Sets what a tick does while a job of the schedule waits or runs; without this call one waits beside one that runs.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Sets how many attempts the job of a tick has; without this call as many as those of its kind.
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = Some(clamped(max_attempts));
        self
    }

    /// Sets the [priority](crate::JobBuilder::priority) of its jobs. It counts for jobs without an ordering key, and so with
    /// [`Overlap::Allow`], of one or more: in each other case the jobs of a schedule have one.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Gives its jobs an [ordering key](crate::JobBuilder::ordering_key), of 1 to 128 bytes, without a NUL, so that they run one at a time with
    /// those of other schedules and with other jobs; without this call they have one of their own, unless several may run at
    /// once. A job that was enqueued under another key may run beside the first one with a new key.
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// Gives its jobs a [limit key](crate::JobBuilder::limit_key), of 1 to 128 bytes, without a NUL.
    pub fn limit_key(mut self, key: impl Into<String>) -> Self {
        self.limit_key = Some(key.into());
        self
    }

    /// Sets who wins if a program declares this schedule and its row has been changed; without this call the row does.
    pub fn on_edit(mut self, on_edit: OnEdit) -> Self {
        self.on_edit = on_edit;
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the kind of its jobs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn check(&self) -> Result<(), InvalidName> {
        Names::SCHEDULE.check(&self.name)?;
        Names::KIND.check(self.kind)?;
        Names::ORDERING.check_if_any(&self.ordering_key)?;
        Names::LIMIT.check_if_any(&self.limit_key)
    }
}

impl Calendar {
    /// Makes the calendar of a row.
    pub(super) fn of_row(
        expression: Option<&str>,
        zone: Option<&str>,
        policies: (Option<&str>, Option<&str>),
        period: Option<Duration>,
    ) -> Result<Self, String> {
        let (Some(expression), Some(zone)) = (expression, zone) else {
            let period = period.filter(|period| !period.is_zero());
            let period = period.ok_or("it has neither an expression with a zone nor a period")?;
            return Ok(Self::Period(aligned(period)));
        };
        let mut calendar = cron(expression, zone).map_err(|error| error.to_string())?;
        calendar = with_policies(calendar, policies)?;
        Ok(Self::Cron(calendar))
    }
}

fn with_policies(
    mut calendar: Cron,
    (missing, repeated): (Option<&str>, Option<&str>),
) -> Result<Cron, String> {
    if let Some(word) = missing {
        let found = MISSING.iter().find(|(_, known)| *known == word);
        calendar = calendar.missing(found.ok_or_else(|| unknown("missing", word))?.0);
    }
    if let Some(word) = repeated {
        let found = REPEATED.iter().find(|(_, known)| *known == word);
        calendar = calendar.repeated(found.ok_or_else(|| unknown("repeated", word))?.0);
    }
    Ok(calendar)
}

/// Says that a word of a row means nothing to this program.
pub(super) fn unknown(column: &str, word: &str) -> String {
    format!("{word:?} is nothing that this program knows for {column}")
}

pub(super) const MISSING: [(Missing, &str); 2] = [(Missing::Skip, "skip"), (Missing::Next, "next")];
pub(super) const REPEATED: [(Repeated, &str); 3] =
    [(Repeated::First, "first"), (Repeated::Last, "last"), (Repeated::Both, "both")];
