//! Statistics: how many workers and tasks there are, at one moment.
//!
//! Java's counts are read one by one and can contradict each other. Here the whole picture is
//! taken while the crew's lock and then all of the queue's are held: nobody comes or goes, and no
//! task is admitted, taken, put back or removed. A task that has been taken, and is neither counted
//! as ended nor back in the queue, is at work; so this is not counted but follows:
//!
//! ```text
//!   active = taken − returned − ended        (how tasks ended: see `task/stats`)
//! ```
//!
//! With that, whatever the moment,
//!
//! ```text
//!   submitted = pending + active + completed + panicked + cancelled
//!   active ≤ pool size ≤ largest pool size
//!   panicked ≤ failed runs ≤ runs
//! ```
//!
//! The second holds because a worker has at most one task that is taken and not counted: it
//! counts before it takes again, and a worker is counted when it begins. One that is only being
//! started is not: perhaps it never comes to be.

use std::fmt;

use super::{Phase, Pool};
use crate::sync::atomic::Ordering;

/// How many workers and tasks an executor has and had: one consistent snapshot, from
/// [`Handle::statistics`](crate::Handle::statistics).
///
/// Always `submitted == pending + active + completed + panicked + cancelled`,
/// `active <= pool_size <= largest_pool_size` and `panicked <= failed_runs <= runs`.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// executor.submit(|| "ran")?.join()?;
/// executor.schedule(Duration::from_secs(60), || "cancelled")?.cancel();
/// executor.schedule(Duration::from_secs(60), || "waits")?;
/// let now = executor.statistics();
/// assert_eq!((now.submitted, now.completed, now.cancelled, now.pending), (3, 1, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// How far the executor has come.
    pub state: ExecutorState,
    /// How many workers there are to be. Java: `getCorePoolSize`.
    pub core_pool_size: usize,
    /// How many workers there are. Java: `getPoolSize`.
    pub pool_size: usize,
    /// The most workers there have ever been at once. Java: `getLargestPoolSize`.
    pub largest_pool_size: usize,
    /// How many tasks are at work. Java: `getActiveCount`.
    pub active: usize,
    /// How many tasks wait. Java: `getQueue().size()`.
    pub pending: usize,
    /// How many tasks have been admitted.
    pub submitted: u64,
    /// How many tasks ended with a result.
    pub completed: u64,
    /// How many tasks ended with a panic.
    pub panicked: u64,
    /// How many tasks were cancelled, for whatever reason: a timeout, a removal and a shutdown
    /// among them, also if `shutdown_now` gave them back and the caller ran them. One that is
    /// cancelled while it runs is active until its body has returned.
    pub cancelled: u64,
    /// How many submissions were not admitted, whatever the handler did with them.
    pub rejected: u64,
    /// How many of the rejected submissions the handler had run in the thread that submitted them
    /// ([`CallerRunsPolicy`](crate::CallerRunsPolicy)), and that did run.
    pub caller_runs: u64,
    /// How many of the caller's runs panicked.
    pub caller_panics: u64,
    /// How many runs there have been: those of a periodic task count each. The caller's runs are
    /// not among them.
    pub runs: u64,
    /// How many of these runs panicked, or took longer than the
    /// [time limit](crate::TaskBuilder::timeout) of a run; also those after which the task went on.
    pub failed_runs: u64,
    /// How many runs of fixed-rate tasks did not take place because the one before was late, by
    /// their [`MissedRuns`](crate::MissedRuns) policy. Counted with the next run.
    pub missed_runs: u64,
    /// How many [time limits](crate::TaskBuilder::timeout) have been exceeded: by one-shot tasks,
    /// whether they waited or ran, and by single runs of periodic tasks.
    pub timed_out: u64,
}

/// How far an executor has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutorState {
    /// It takes tasks.
    Running,
    /// It was shut down, and runs what its policies keep; or it was dropped, and runs what is due.
    ShuttingDown,
    /// It was shut down now, and waits for the tasks that run; or, in whichever way it was shut
    /// down, everything has ended but the hook for that.
    Stopping,
    /// Everything has ended.
    Terminated,
}

impl fmt::Display for ExecutorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::ShuttingDown => "shutting down",
            Self::Stopping => "stopping",
            Self::Terminated => "terminated",
        })
    }
}

impl From<Phase> for ExecutorState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Running => Self::Running,
            Phase::ShuttingDown | Phase::OwnerDropped => Self::ShuttingDown,
            Phase::Stopping | Phase::Tidying => Self::Stopping,
            Phase::Terminated => Self::Terminated,
        }
    }
}

impl Pool {
    pub(crate) fn statistics(&self) -> Statistics {
        let (heads, (census, done)) = self.workers.count(|totals| self.queue.census(totals));
        let at_work = census.taken - census.returned - done.ended();
        Statistics {
            state: self.lifecycle.phase().into(),
            core_pool_size: self.workers.core(),
            pool_size: heads.started,
            largest_pool_size: heads.largest,
            active: at_work as usize,
            pending: census.len as usize,
            submitted: census.offered,
            completed: done.completed,
            panicked: done.panicked,
            cancelled: done.cancelled + census.removed(),
            rejected: self.rejected.load(Ordering::Relaxed),
            caller_runs: self.caller_runs.load(Ordering::Relaxed),
            caller_panics: self.caller_panics.load(Ordering::Relaxed),
            runs: done.runs,
            failed_runs: done.failed_runs,
            missed_runs: done.missed_runs,
            timed_out: self.timeouts.exceeded(),
        }
    }
}
