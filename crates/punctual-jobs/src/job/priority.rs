//! Priorities: which of several jobs that are due begins first.
//!
//! There are three levels and no numbers, so that a claim can go from one to the next: it asks an index for the first due
//! job of each level, and never looks past jobs of a high priority that are not due yet.
//!
//! A level is strictly before the next. Nothing makes a job that waits for long more urgent: the order of two jobs can be
//! read off their rows, and does not change while they wait. So low ones wait for as long as there are others.

/// Which of several jobs that are due begins first: strictly [`High`](Self::High) before [`Normal`](Self::Normal) before
/// [`Low`](Self::Low), and of one level the one whose moment is earlier. Java: a `PriorityBlockingQueue`; River, Oban,
/// Sidekiq and Solid Queue have priorities as numbers.
///
/// This holds across all kinds that a machine handles, with limit keys and without. A job that a [limit](crate::JobLimit) keeps from
/// beginning holds up no other: jobs of a lower priority pass it. On PostgreSQL they also pass a job that was stored for a moment long
/// past, or given back by a machine, until it is found: mostly for less than a tenth of a second, and for a minute at most.
///
/// **Jobs of a low priority starve** while jobs of a higher one keep all workers busy. A job that runs is not interrupted.
///
/// A job with an [ordering key](crate::JobBuilder::ordering_key) has no use for one: of the jobs with one key the moment
/// decides, and the keys take turns.
///
/// A job that is enqueued by plain SQL has the priority `Normal` unless the column `priority` says -1 (high) or 1 (low).
///
/// ```
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::{InMemory, Job, JobRun, Jobs, Priority};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Mail { to: String }
/// impl Job for Mail { const NAME: &'static str = "mail"; }
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let queue = Jobs::new().on(|_: &JobRun, _: Mail| Ok(())).open(InMemory::on(&executor))?;
/// queue.now(Mail { to: "subscriber".into() }).priority(Priority::Low).enqueue()?;
/// queue.now(Mail { to: "user with a new password".into() }).priority(Priority::High).enqueue()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Before all others.
    High = -1,
    /// The priority of a job that says nothing.
    #[default]
    Normal = 0,
    /// After all others.
    Low = 1,
}

impl Priority {
    /// Returns the number in the tables, where the default of the column is 0.
    #[cfg(feature = "postgres")]
    pub(crate) fn number(self) -> i16 {
        self as i16
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn of_number(number: i16) -> Self {
        match number {
            ..0 => Self::High,
            0 => Self::Normal,
            1.. => Self::Low,
        }
    }
}
