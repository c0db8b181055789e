//! Missed runs (misfires): the policy for them, its starting deadline, and the policy in one word.

use std::time::Duration;

use crate::time::saturating_nanos;

/// The policy of a periodic task for the runs that it missed because it was late, by a period or more
/// if it has a fixed rate. Quartz calls this the misfire instruction.
///
/// Set with [`TaskBuilder::missed_runs`](crate::TaskBuilder::missed_runs). Java always makes up for
/// them, as [`Burst`](Self::Burst) does, and so do Java's verbs by default. The default of
/// [`repeat`](crate::Handle::repeat) is [`Coalesce`](Self::Coalesce). A task with a fixed delay misses no run
/// by taking long. The policies hold for every [trigger](crate::Trigger); only a fixed rate has a grid that
/// [`Delay`](Self::Delay) can move.
///
/// # Overdue runs
///
/// [`Skip`](Self::Skip) and [`Within`](Self::Within) are starting deadlines as well: a run that is overdue by
/// them does not start, whatever made it late (busy workers, a machine that slept, a
/// [pause](crate::TaskHandle::pause), a clock that was set, a [group](crate::Group) that holds the task,
/// a [gate](crate::gate) that puts it off). That holds for the first run and for the last one too. Lateness
/// counts from the moment for which the run was planned, [jitter](crate::Trigger::jitter) included, or from
/// the last request for it. The worker decides just before the body; a gate is not asked about a run that is
/// overdue already, and its lease ends with [`NotRun`](crate::gate::RunEnd::NotRun) if it has become so
/// meanwhile. The next run is planned as after one that took place.
///
/// A run that is left out is no run and no failure. It counts as missed at once, in
/// [`Statistics::missed_runs`](crate::Statistics::missed_runs), and in
/// [`TaskContext::missed_runs`](crate::TaskContext::missed_runs) of the next run that does take place.
/// A run [beside the schedule](crate::TaskHandle::run_now) is never left out, nor one
/// [by hand](crate::DrainedTask::run).
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let second = Duration::from_secs(1);
/// let poll = executor.task().missed_runs(MissedRuns::Coalesce);
/// poll.schedule_at_fixed_rate(second, second, || { /* poll */ })?;
/// clock.advance(10 * second); // all workers were busy, say
/// clock.run_until_idle();
/// assert_eq!(executor.statistics().runs, 1, "one run for all ten");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("MissedTickBehavior", "misfire", "catch_up"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedRuns {
    /// Makes up for every missed run, back to back, until the task is on time again. Right for work
    /// that must be done a certain number of times.
    #[default]
    Burst,
    /// Runs once for all missed runs, late, and then returns to the grid. A run that took too long is
    /// followed by the next at once. Right for polling and flushing.
    Coalesce,
    /// Leaves the missed runs out: the next run is at the first moment of the grid that is still to
    /// come when the present run ends. Right for sampling. Quartz: do nothing.
    ///
    /// A run is overdue if the next one is due already when it could start, and in any case if it is more
    /// than ten seconds late: so a nightly run is left out by a machine that wakes in the morning, and the last
    /// run of a series has a deadline too. Less than a millisecond late is on time, however short the period
    /// is. When the next run is due is known of a fixed rate, and of triggers that
    /// [count](crate::Trigger::between) their moments, as a calendar does; others have the ten seconds
    /// alone. A task that is always later than its period never runs, and its missed runs count up:
    /// [`Coalesce`](Self::Coalesce) is for tasks that have to run even so.
    Skip,
    /// Moves the grid: the next run is a period after the start of the late one. Right where runs
    /// must be kept apart.
    Delay,
    /// Makes up for the runs that are no later than this, and leaves the others out: no run starts later.
    /// Right for work that is still of use a little late. Kubernetes: `startingDeadlineSeconds`.
    ///
    /// A worker wakes some microseconds after the moment of a run, and later on a busy machine, so a span
    /// of less than some milliseconds leaves out nearly everything.
    Within(Duration),
}

impl MissedRuns {
    /// The lateness up to which a run is on time, which is how late a system wakes threads, if all is well.
    const ON_TIME: Duration = Duration::from_millis(1);
    /// The lateness up to which `Skip` lets a run start whose successor is not due, or has none: as long as
    /// pools that are busy for a moment need. Quartz's default is a minute, and Temporal accepts no less than ten seconds.
    const SKIP_AFTER: Duration = Duration::from_secs(10);

    /// Returns `true` if a run does not start any more that is this late. `is_next_due` says whether the
    /// run after it is due; it is asked only if that matters.
    #[inline]
    pub(crate) fn leaves_out(self, late: Duration, is_next_due: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Burst | Self::Coalesce | Self::Delay => false,
            Self::Within(limit) => late > limit,
            Self::Skip => late > Self::SKIP_AFTER || late >= Self::ON_TIME && is_next_due(),
        }
    }

    #[inline]
    pub(crate) fn stands_for_others(self) -> bool {
        matches!(self, Self::Coalesce | Self::Delay)
    }

    #[inline]
    pub(crate) fn has_deadline(self) -> bool {
        matches!(self, Self::Skip | Self::Within(_))
    }
}

/// A [`MissedRuns`] in one word. The span of a `Within` that has more nanoseconds than fit, some 584 years, is the
/// longest that does.
#[derive(Clone, Copy)]
pub(crate) struct Packed(u64);

impl Packed {
    const BURST: u64 = u64::MAX;
    const COALESCE: u64 = u64::MAX - 1;
    const SKIP: u64 = u64::MAX - 2;
    const DELAY: u64 = u64::MAX - 3;
    const LONGEST: u64 = u64::MAX - 4;

    #[inline]
    pub(crate) fn new(policy: MissedRuns) -> Self {
        Self(match policy {
            MissedRuns::Burst => Self::BURST,
            MissedRuns::Coalesce => Self::COALESCE,
            MissedRuns::Skip => Self::SKIP,
            MissedRuns::Delay => Self::DELAY,
            MissedRuns::Within(limit) => saturating_nanos(limit).min(Self::LONGEST),
        })
    }

    #[inline]
    pub(crate) fn get(self) -> MissedRuns {
        match self.0 {
            Self::BURST => MissedRuns::Burst,
            Self::COALESCE => MissedRuns::Coalesce,
            Self::SKIP => MissedRuns::Skip,
            Self::DELAY => MissedRuns::Delay,
            limit => MissedRuns::Within(Duration::from_nanos(limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy is the same in one word, and no span becomes another policy.
    #[test]
    fn a_policy_fits_into_a_word() {
        use MissedRuns::{Burst, Coalesce, Delay, Skip, Within};
        let spans = [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(600)].map(Within);
        for policy in [Burst, Coalesce, Skip, Delay].into_iter().chain(spans) {
            assert_eq!(Packed::new(policy).get(), policy);
        }
        let longest = Duration::from_nanos(Packed::LONGEST);
        assert_eq!(Packed::new(Within(Duration::MAX)).get(), Within(longest));
    }
}
