//! The schedule of a periodic task: it plans the next run, by arithmetic or by asking a trigger.
//!
//! A **fixed delay** plans the next run one delay after the end of the last.
//!
//! A **fixed rate** plans the runs on a grid, `initial + k * period`. It counts from the moment *planned* for the
//! previous run, not from that run's start, so the grid does not drift. A run is *late* if it starts a whole period or
//! more after its moment (all workers were busy, the process was stopped, or a body ran too long). Then grid points
//! have been missed, and the policy decides what becomes of them. With a period of 10 and a body that takes 35:
//!
//! ```text
//!   grid       0    10   20   30   40   50   60   70   80
//!   Burst      0──────────────────35─────────────────70────   each point has its run, late
//!   Coalesce   0──────────────────35─────────────────70────   one run for all missed points
//!   Skip       0──────────────────     40────────────────     80   the next point to come
//!   Delay      0──────────────────35─────────────────70────   the grid moves: its origin is 35
//! ```
//!
//! Burst and Coalesce differ after a single stall: if it lasts 1,000, Burst runs a hundred times in a row, Coalesce
//! once.
//!
//! `Skip` and `Within` also set a *starting deadline*: a run that is too late does not start
//! ([`MissedRuns::leaves_out`]). The worker checks it as the last step before the body, so no code that makes a run
//! late has to know of the deadline.

mod triggered;

use std::{any::Any, time::Duration};

pub(crate) use self::triggered::{Triggered, WallPlan, WallState, WallView};
use crate::{
    RejectionReason,
    time::{Clock, Timestamp, saturating_nanos},
    trigger::{Every, Trigger},
};

/// The policy of a periodic task for runs that it missed because it was late: at a fixed rate, by a period or more.
/// Quartz calls this the misfire instruction.
///
/// Set with [`TaskBuilder::missed_runs`](crate::TaskBuilder::missed_runs). Java always makes up for missed runs, as
/// [`Burst`](Self::Burst) does; so, by default, do Java's methods here. The default of
/// [`repeat`](crate::Handle::repeat) is [`Coalesce`](Self::Coalesce). With a fixed delay, a long run misses none. The
/// policies apply to every [trigger](crate::Trigger); only a fixed rate has a grid that [`Delay`](Self::Delay) can
/// move.
///
/// # Overdue runs
///
/// [`Skip`](Self::Skip) and [`Within`](Self::Within) are starting deadlines as well: a run that is overdue under them
/// does not start, whatever made it late (busy workers, a machine that slept, a [pause](crate::TaskHandle::pause), a
/// clock that was set, a [group](crate::Group) that makes it wait, a [gate](crate::gate) that puts it off). Lateness
/// counts from the run's planned moment, including [jitter](crate::Trigger::jitter), or from the last request for it.
/// The worker decides just before the body. It asks no gate about a run that is already overdue; if the run becomes
/// overdue meanwhile, its lease ends with [`NotRun`](crate::gate::RunEnd::NotRun). The next run is planned as if this
/// one had taken place.
///
/// A run that is left out counts as neither a run nor a failure. It counts as missed, at once in
/// [`Statistics::missed_runs`](crate::Statistics::missed_runs), and in
/// [`TaskContext::missed_runs`](crate::TaskContext::missed_runs) of the next run that takes place. A run [beside the
/// schedule](crate::TaskHandle::run_now) is never left out, nor is one [by hand](crate::DrainedTask::run).
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor, trigger::every};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let second = Duration::from_secs(1);
/// let poll = executor.task().missed_runs(MissedRuns::Coalesce);
/// poll.repeat(every(second).first_in(second), || { /* poll */ })?;
/// clock.advance(10 * second); // all workers were busy, say
/// clock.run_until_idle();
/// assert_eq!(executor.statistics().runs, 1, "one run for all ten");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("MissedTickBehavior", "misfire", "catch_up"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedRuns {
    /// Makes up for every missed run, back to back, until the task is on time again. Right for work that must be done a
    /// certain number of times.
    #[default]
    Burst,
    /// Runs once for all missed runs, late, and then returns to the grid. A run that takes longer than the period is
    /// followed by the next at once. Right for polling and flushing.
    Coalesce,
    /// Leaves the missed runs out: the next run is at the first moment of the grid that is still to come when the
    /// present run ends. Right for sampling. Quartz: do nothing.
    ///
    /// A run is overdue if the next one is already due when it could start, and in any case if it is more than ten
    /// seconds late: so a machine that wakes in the morning leaves out a nightly run. Less than a millisecond late is
    /// on time. A fixed rate knows when the next run is due, and so do triggers that [count](crate::Trigger::between)
    /// their moments, such as a calendar; for others only the ten seconds apply. A task that is always later than its
    /// period never runs: use [`Coalesce`](Self::Coalesce) for one that has to run even so.
    Skip,
    /// Moves the grid: the next run is a period after the start of the late one. Right where runs must be kept apart.
    Delay,
    /// Makes up for the runs that are no later than this, and leaves the others out: no run starts later. Right for
    /// work that is still useful a little late. Kubernetes: `startingDeadlineSeconds`.
    ///
    /// A worker wakes some microseconds after the moment of a run, and later on a busy machine, so a span of less than
    /// a few milliseconds may leave out nearly everything.
    Within(Duration),
}

impl MissedRuns {
    /// The least lateness at which `Skip` may leave a run out. A healthy system wakes its threads with less delay.
    const ON_TIME: Duration = Duration::from_millis(1);
    /// The lateness up to which `Skip` lets a run start if the next one is not due. Quartz's default misfire threshold
    /// is a minute, and Temporal's catch-up window is at least ten seconds.
    const SKIP_AFTER: Duration = Duration::from_secs(10);

    /// Returns `true` if a run that is this late must not start. `is_next_due` returns whether the next run is due, and
    /// is called only if that matters.
    pub(crate) fn leaves_out(self, late: Duration, is_next_due: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Burst | Self::Coalesce | Self::Delay => false,
            Self::Within(limit) => late > limit,
            Self::Skip => late > Self::SKIP_AFTER || late >= Self::ON_TIME && is_next_due(),
        }
    }

    pub(crate) fn stands_for_others(self) -> bool {
        matches!(self, Self::Coalesce | Self::Delay)
    }

    pub(crate) fn has_deadline(self) -> bool {
        matches!(self, Self::Skip | Self::Within(_))
    }
}

pub(crate) struct Schedule {
    kind: Kind,
    pub(crate) missed: MissedRuns,
}

/// The kinds of schedules. For the two that Java has, the runs are planned here, without an allocation or a dynamic
/// call. Spans are in nanoseconds, so that a `Kind` takes two words.
enum Kind {
    FixedRate(u64),
    FixedDelay(u64),
    Trigger(Box<Triggered>),
    /// A trigger without a first run. The submission is refused.
    Never,
    /// A gated task's trigger that cannot plan the same moments on every replica. The submission is refused.
    Unshared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextRun {
    pub(crate) next: Timestamp,
    /// How many runs are left out between the run that has ended and the next.
    pub(crate) skipped: u64,
}

impl Schedule {
    pub(crate) fn fixed_rate(period: Duration, missed: MissedRuns) -> Self {
        Self { kind: Kind::FixedRate(saturating_nanos(period)), missed }
    }

    pub(crate) fn fixed_delay(delay: Duration, missed: MissedRuns) -> Self {
        Self { kind: Kind::FixedDelay(saturating_nanos(delay)), missed }
    }

    /// Returns the schedule of a trigger, and the moment of its first run. `shared` is `Some` if the task has a gate,
    /// and then holds the name of the task, if any. Calls the trigger, which is user code.
    pub(crate) fn of<G: Trigger>(
        mut trigger: G,
        missed: MissedRuns,
        shared: Option<Option<&str>>,
        clock: &Clock,
        now: Timestamp,
    ) -> (Self, Timestamp) {
        if shared.is_some_and(|name| !trigger.share(name)) {
            return (Self { kind: Kind::Unshared, missed }, Timestamp::NEVER);
        }
        let any: &dyn Any = &trigger;
        if let Some(&Every { span, first, is_delay }) = any.downcast_ref() {
            let of_kind = if is_delay { Self::fixed_delay } else { Self::fixed_rate };
            return (of_kind(span, missed), now.after(first));
        }
        let (kind, first) = match Triggered::new(trigger, clock, now) {
            Some((triggered, first)) => (Kind::Trigger(Box::new(triggered)), first),
            None => (Kind::Never, Timestamp::NEVER),
        };
        (Self { kind, missed }, first)
    }

    pub(crate) fn refusal(&self) -> Option<RejectionReason> {
        match self.kind {
            Kind::Never => Some(RejectionReason::NeverRuns),
            Kind::Unshared => Some(RejectionReason::UnsharedTrigger),
            _ => (self.regular() == Some(Duration::ZERO)).then_some(RejectionReason::ZeroPeriod),
        }
    }

    /// Returns `true` if a run planned for `planned` must no longer start at `now`. Lateness counts from `planned` or,
    /// if later, from `asked`, the moment for which the run was last requested. May call a trigger (user code).
    pub(crate) fn is_overdue(
        &mut self,
        planned: Timestamp,
        asked: Timestamp,
        now: Timestamp,
        clock: &Clock,
    ) -> bool {
        let (late, missed) = (now.since(planned.max(asked)), self.missed);
        match &mut self.kind {
            Kind::FixedRate(period) => {
                missed.leaves_out(late, || saturating_nanos(late) >= *period)
            }
            Kind::FixedDelay(_) => missed.leaves_out(late, || false),
            Kind::Trigger(triggered) => triggered.is_overdue(missed, planned, asked, now, clock),
            Kind::Never | Kind::Unshared => false,
        }
    }

    /// Returns the period, or the delay between runs; `None` for a trigger.
    pub(crate) fn regular(&self) -> Option<Duration> {
        match self.kind {
            Kind::FixedRate(span) | Kind::FixedDelay(span) => Some(Duration::from_nanos(span)),
            Kind::Trigger(_) | Kind::Never | Kind::Unshared => None,
        }
    }

    /// Returns how many points of a fixed rate's grid this run stands for besides its own; zero without such a grid.
    #[inline]
    pub(crate) fn covered(&self, planned: Timestamp, started: Timestamp) -> u64 {
        match self.kind {
            Kind::FixedRate(period) if self.missed.stands_for_others() => {
                whole_periods(planned, started, period)
            }
            _ => 0,
        }
    }

    /// Plans the next run. The previous run was planned for `planned` and started at `started`. `ended` returns when
    /// that run ended, and may read the clock. Returns `None` if a trigger has to be [asked](Triggered::ask).
    #[inline(always)]
    pub(crate) fn plan(
        &self,
        planned: Timestamp,
        started: Timestamp,
        ended: impl FnOnce() -> Timestamp,
    ) -> Option<NextRun> {
        let period = match self.kind {
            Kind::FixedDelay(delay) => {
                return Some(NextRun { next: ended().after_times(delay, 1), skipped: 0 });
            }
            Kind::FixedRate(period) => period,
            Kind::Trigger(_) | Kind::Never | Kind::Unshared => return None,
        };
        let on_grid = |points: u64| planned.after_times(period, points.saturating_add(1));
        let late = || whole_periods(planned, started, period);
        let skip_until = |last: Timestamp| {
            let skipped = whole_periods(planned, last, period);
            NextRun { next: on_grid(skipped), skipped }
        };
        Some(match self.missed {
            MissedRuns::Burst => NextRun { next: on_grid(0), skipped: 0 },
            MissedRuns::Coalesce => NextRun { next: on_grid(late()), skipped: 0 },
            MissedRuns::Skip => skip_until(ended()),
            MissedRuns::Within(limit) => skip_until(too_late(ended(), limit)),
            MissedRuns::Delay if late() == 0 => NextRun { next: on_grid(0), skipped: 0 },
            MissedRuns::Delay => NextRun { next: started.after_times(period, 1), skipped: 0 },
        })
    }

    /// Returns `true` if the next run is planned on the wall clock, so that its `Timestamp` is an estimate.
    pub(crate) fn is_estimated(&self) -> bool {
        self.triggered().is_some_and(|triggered| triggered.wall_moment().is_some())
    }

    /// Returns how the plan for the next run compares with the wall clock; `None` if the plan is not on that clock.
    pub(crate) fn view_wall(&self) -> Option<WallView> {
        self.triggered()?.view_wall()
    }

    pub(crate) fn triggered(&self) -> Option<&Triggered> {
        if let Kind::Trigger(triggered) = &self.kind { Some(triggered) } else { None }
    }

    pub(crate) fn triggered_mut(&mut self) -> Option<&mut Triggered> {
        if let Kind::Trigger(triggered) = &mut self.kind { Some(triggered) } else { None }
    }
}

/// Returns the latest moment that is more than `limit` before `now`. Missed runs planned for that moment or an earlier
/// one are not made up for.
pub(crate) fn too_late(now: Timestamp, limit: Duration) -> Timestamp {
    now.before(limit.saturating_add(Duration::from_nanos(1)))
}

fn whole_periods(from: Timestamp, to: Timestamp, period: u64) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos()) / period.max(1)
}

impl Timestamp {
    /// Returns the first grid point that is later than both `self` and `after`. The grid begins at `self`.
    pub(crate) fn on_grid_after(self, period: Duration, after: Self) -> Self {
        let period = saturating_nanos(period);
        self.after_times(period, whole_periods(self, after, period).saturating_add(1))
    }

    fn after_times(self, period: u64, times: u64) -> Self {
        let span = period.saturating_mul(times);
        Self::from_nanos(self.as_nanos().saturating_add(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn rate(missed: MissedRuns) -> Schedule {
        Schedule::fixed_rate(Duration::from_millis(10), missed)
    }

    impl Schedule {
        fn planned(&self, planned: Timestamp, started: Timestamp, ended: Timestamp) -> NextRun {
            self.plan(planned, started, || ended).expect("it is not a trigger")
        }
    }

    /// Returns when the runs start, up to `until`. The first run is planned for 10, but before that run can start, the
    /// clock leaps to `leap`. Each body takes `body`.
    fn starts(missed: MissedRuns, leap: u64, body: u64, until: u64) -> Vec<u64> {
        let (mut planned, mut now, mut starts) = (at(10), at(leap), Vec::new());
        loop {
            let started = now.max(planned);
            if started > at(until) {
                return starts;
            }
            starts.push(started.as_nanos() / 1_000_000);
            now = started.after(Duration::from_millis(body));
            planned = rate(missed).planned(planned, started, now).next;
        }
    }

    #[test]
    fn on_time_all_policies_agree() {
        use MissedRuns::{Burst, Coalesce, Delay, Skip};
        for missed in [Burst, Coalesce, Skip, Delay] {
            assert_eq!(starts(missed, 10, 3, 40), [10, 20, 30, 40], "{missed:?}");
        }
    }

    /// M54.
    #[test]
    fn after_a_stall_burst_makes_up_for_every_run() {
        let starts = starts(MissedRuns::Burst, 1_010, 0, 1_030);
        assert_eq!(starts.iter().filter(|start| **start == 1_010).count(), 101);
        assert_eq!(starts[101..], [1_020, 1_030]);
    }

    /// M55, M59.
    #[test]
    fn after_a_stall_the_others_run_once() {
        assert_eq!(starts(MissedRuns::Coalesce, 1_014, 0, 1_040), [1_014, 1_020, 1_030, 1_040]);
        assert_eq!(starts(MissedRuns::Skip, 1_014, 0, 1_040), [1_014, 1_020, 1_030, 1_040]);
        assert_eq!(starts(MissedRuns::Delay, 1_014, 0, 1_040), [1_014, 1_024, 1_034]);
    }

    /// M57.
    #[test]
    fn a_body_that_is_too_long() {
        assert_eq!(starts(MissedRuns::Burst, 10, 35, 130), [10, 45, 80, 115]);
        assert_eq!(starts(MissedRuns::Coalesce, 10, 35, 130), [10, 45, 80, 115]);
        assert_eq!(starts(MissedRuns::Skip, 10, 35, 130), [10, 50, 90, 130]);
        assert_eq!(starts(MissedRuns::Delay, 10, 35, 130), [10, 45, 80, 115]);
    }

    /// M53, M58.
    #[test]
    fn a_little_late_is_not_missed() {
        for missed in [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Delay]
        {
            let plan = rate(missed).planned(at(10), at(19), at(19));
            assert_eq!(plan, NextRun { next: at(20), skipped: 0 }, "{missed:?}");
            assert_eq!(rate(missed).covered(at(10), at(19)), 0);
        }
    }

    /// M60.
    #[test]
    fn what_was_missed_is_counted() {
        assert_eq!(rate(MissedRuns::Skip).planned(at(10), at(10), at(45)).skipped, 3);
        assert_eq!(rate(MissedRuns::Coalesce).covered(at(10), at(45)), 3);
        assert_eq!(rate(MissedRuns::Delay).covered(at(10), at(45)), 3);
        assert_eq!(rate(MissedRuns::Burst).covered(at(10), at(45)), 0);
    }

    #[test]
    fn a_period_is_two_words_and_its_policy_is_two() {
        assert_eq!(size_of::<Schedule>(), 32);
    }

    /// M51.
    #[test]
    fn fixed_delay_counts_from_the_end() {
        let period = Schedule::fixed_delay(Duration::from_millis(10), MissedRuns::Burst);
        assert_eq!(period.planned(at(10), at(12), at(45)).next, at(55));
    }

    /// F26, M61: whatever moments and spans are added, the next run is later, or never.
    #[test]
    fn nothing_overflows() {
        let moments = [at(0), Timestamp::from_nanos(1), Timestamp::from_nanos(u64::MAX - 1)];
        let spans = [Duration::from_nanos(1), Duration::from_secs(1), Duration::MAX];
        for missed in [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Delay]
        {
            for (period, start) in spans.into_iter().flat_map(|s| moments.map(|m| (s, m))) {
                let plan = Schedule::fixed_rate(period, missed).planned(at(1), start, start);
                assert!(plan.next > at(1), "{missed:?}");
                assert!(plan.next > start || missed == MissedRuns::Burst, "{missed:?}");
                let plan = Schedule::fixed_delay(period, missed).planned(at(0), start, start);
                assert!(plan.next > start);
            }
        }
        let never =
            Schedule::fixed_delay(Duration::MAX, MissedRuns::Burst).planned(at(0), at(0), at(1));
        assert_eq!(never.next, Timestamp::NEVER);
    }
}
