//! What a group has counted.

use std::fmt;

use crate::task::Counted;

/// How many tasks a group has and had, in one consistent snapshot; from
/// [`Group::statistics`](crate::Group::statistics).
///
/// Always `submitted == pending + active + completed + failed + cancelled`, `waiting <= pending` and
/// `failed <= failed_runs <= runs`. The group counts a task before its future shows how the task has ended.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let mail = executor.group("mail").build()?;
/// mail.submit(|| "ran")?.join()?;
/// mail.schedule(Duration::from_secs(60), || "cancelled")?.cancel();
/// mail.schedule(Duration::from_secs(60), || "waits")?;
/// let now = mail.statistics();
/// assert_eq!((now.submitted, now.completed, now.cancelled, now.pending), (3, 1, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GroupStatistics {
    /// The number of pending tasks, due or not.
    pub pending: usize,
    /// The number of these that are due and wait for the group, because of its limit, its order or a pause. A task that
    /// is due is one of them as soon as a worker has looked at it.
    pub waiting: usize,
    /// The number of tasks that run, which is at most the limit, unless that was lowered.
    pub active: usize,
    /// The number of tasks that have been admitted.
    pub submitted: u64,
    /// The number of submissions that were refused because the group was shut down.
    pub rejected: u64,
    /// The number of tasks that ended with a result, or because their trigger ended.
    pub completed: u64,
    /// The number of tasks that ended because a run failed.
    pub failed: u64,
    /// The number of tasks that were cancelled, for whatever reason, including a timeout and those that were given
    /// back. A task that is cancelled while it runs is active until its body has returned.
    pub cancelled: u64,
    /// The number of runs; each run of a periodic task counts, and one that its gate has skipped does not.
    pub runs: u64,
    /// The number of these that failed, including those after which the task went on.
    pub failed_runs: u64,
}

impl GroupStatistics {
    pub(super) fn new(counted: Counted) -> Self {
        let Counted { pending, parked, active, totals } = counted;
        Self {
            pending,
            waiting: parked,
            active,
            submitted: totals.submitted,
            rejected: totals.rejected,
            completed: totals.completed,
            failed: totals.failed,
            cancelled: totals.cancelled,
            runs: totals.runs,
            failed_runs: totals.failed_runs,
        }
    }
}

/// One line for a log, with all counts.
impl fmt::Display for GroupStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { active, pending, waiting, submitted, .. } = self;
        write!(
            f,
            "tasks: {active} active, {pending} pending ({waiting} due), {submitted} submitted"
        )?;
        let Self { completed, failed, cancelled, rejected, .. } = self;
        write!(f, ", {completed} completed, {failed} failed, {cancelled} cancelled")?;
        let Self { runs, failed_runs, .. } = self;
        write!(f, ", {rejected} rejected; runs: {runs}, {failed_runs} failed")
    }
}
