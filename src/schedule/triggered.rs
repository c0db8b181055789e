//! The schedule of a user's trigger: the plan for the next run, on the executor's clock or on the wall clock.
//!
//! # A plan on the wall clock
//!
//! A trigger may answer with a moment of the wall clock. [`WallPlan`] keeps that moment. The task's entry is due at an
//! estimate of the moment, or at the next check of the wall clock if that check is earlier ([`time`](crate::time)).
//!
//! The plan is the trigger's first moment later than [`after`](WallPlan::after). As long as the wall clock shows a time
//! later than `after`, the plan stands, even if the clock has been set: either the moment is still ahead, or it has
//! passed and the run is late. If the clock shows an *earlier* time, the trigger may have moments between that time and
//! the plan. The trigger is then [asked again](Triggered::ask_again), if it allows that. So no thread has to notice
//! that the clock has been set.
//!
//! A moment that a caller requests is on the executor's clock, and so is the end of a failure policy's delay. If a task
//! waits for one of these, and not for an extra run, it [abandons](Triggered::leave_plan) its plan on the wall clock.
//!
//! # Ticks and offsets
//!
//! A trigger answers with a *tick*, and may delay the run by an *offset* ([`Trigger::offset`]), such as jitter. The run
//! is due at the end of the offset, and lateness is measured from then. Gates and triggers see only ticks. A requested
//! moment has no offset.

use std::{
    mem,
    time::{Duration, SystemTime},
};

use super::{MissedRuns, too_late};
use crate::{
    Attempt,
    time::{Clock, Timestamp, estimate},
    trigger::{Due, LastRun, Trigger, TriggerContext},
    unwind::Contained,
};

pub(crate) struct Triggered {
    /// Without `Contained`, the process could abort if the drops of the trigger and the task's closure both panicked.
    trigger: Contained<Box<dyn Trigger>>,
    /// The plan for the next run; `None` if the plan is not on the wall clock.
    wall: Option<WallPlan>,
    /// How long after its tick the next run is due.
    pub(crate) offset: Duration,
    is_asked_again: bool,
    /// Which attempt the next run is, if the trigger retries.
    pub(crate) attempt: Option<Attempt>,
    /// The last run that the trigger was told of; `None` at first.
    last: Option<LastRun>,
}

#[derive(Clone, Debug)]
pub(crate) struct WallPlan {
    moment: SystemTime,
    after: SystemTime,
    /// When lateness begins: at the run's moment; for a first run, never before the run was planned.
    late_from: SystemTime,
    /// What the wall clock showed when the run started; `None` until then.
    started: Option<SystemTime>,
    /// The moment until which a gate has put the run off.
    put_off: Option<Timestamp>,
    clock: Clock,
}

impl WallPlan {
    fn new(due: Due, context: &TriggerContext<'_>) -> Option<Self> {
        let moment = due.wall()?;
        let after = context.after_wall();
        let clock = context.clock.clone();
        let late_from = match context.last {
            None => moment.max(clock.wall_time()),
            Some(_) => moment,
        };
        Some(Self { moment, after, late_from, started: None, put_off: None, clock })
    }

    /// Returns when the run is due on the executor's clock, given what both clocks show.
    fn due_by(&self, both: (Timestamp, SystemTime)) -> Timestamp {
        let put_off = self.put_off.filter(|_| both.1 >= self.moment);
        put_off.unwrap_or_else(|| estimate(both, self.moment))
    }

    pub(crate) fn due(&self) -> Timestamp {
        self.due_by(self.clock.read_both())
    }

    /// Returns the wall-clock moment after which the next run is planned, given that this run ended at `now`.
    fn next_after(&self, missed: MissedRuns, now: SystemTime) -> Option<SystemTime> {
        match missed {
            MissedRuns::Burst => Some(self.moment),
            MissedRuns::Coalesce | MissedRuns::Delay => self.started,
            MissedRuns::Skip => Some(now),
            MissedRuns::Within(limit) => {
                let too_late = now.checked_sub(limit)?.checked_sub(Duration::from_nanos(1))?;
                Some(too_late.max(self.moment))
            }
        }
    }
}

/// Returns two moments of the executor's clock as a trigger sees them; `None` if one of them has no `Instant`.
fn span_of(from: Timestamp, to: Timestamp, clock: &Clock) -> Option<(Due, Due)> {
    Some((Due::At(clock.instant_of(from)?), Due::At(clock.instant_of(to)?)))
}

/// How a plan on the wall clock compares with that clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallView {
    pub(crate) state: WallState,
    /// When the run is due on the executor's clock, by the present estimate.
    pub(crate) due: Timestamp,
    /// When a worker next has to take the task, if only to check the wall clock.
    pub(crate) look: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WallState {
    /// The moment has come, and the run is not put off.
    Due,
    /// The moment is ahead, or a gate has put the run off.
    Waits,
    /// The clock was set back, so the trigger has to be asked again.
    AsksAgain,
}

impl Triggered {
    /// Returns a trigger's schedule, and when the first run is due; `None` if the trigger has no run. Calls user code,
    /// so the caller holds no lock.
    pub(crate) fn new(
        mut trigger: impl Trigger,
        clock: &Clock,
        now: Timestamp,
    ) -> Option<(Self, Timestamp)> {
        let context = TriggerContext::new(clock, now, None, 0, 0);
        let tick = trigger.next(&context)?;
        let offset = trigger.offset(tick, &context);
        let (is_asked_again, attempt) = (trigger.is_asked_again(), trigger.attempt());
        let due = tick.later_by(offset)?;
        let (wall, trigger) =
            (WallPlan::new(due, &context), Contained::new(Box::new(trigger) as _));
        let first = due.timestamp(clock).max(now);
        Some((Self { trigger, wall, offset, is_asked_again, attempt, last: None }, first))
    }

    /// Asks the trigger for the run after `run`. Returns when that run is due; `None` if there is none. Calls user
    /// code, so the caller holds no lock.
    pub(crate) fn ask(
        &mut self,
        missed: MissedRuns,
        run: LastRun,
        clock: &Clock,
        runs: u64,
        failures_in_a_row: u32,
    ) -> Option<Timestamp> {
        let (plan, offset) = (self.wall.take(), mem::take(&mut self.offset));
        let after_wall = plan.as_ref().and_then(|plan| plan.next_after(missed, clock.wall_time()));
        let after = match missed {
            MissedRuns::Burst => run.planned,
            MissedRuns::Coalesce | MissedRuns::Delay => run.started,
            MissedRuns::Skip => run.ended,
            MissedRuns::Within(limit) => run.planned.max(too_late(run.ended, limit)),
        };
        let (after, after_wall) =
            (after.before(offset), after_wall.and_then(|after| after.checked_sub(offset)));
        let planned_wall = plan.and_then(|plan| plan.moment.checked_sub(offset));
        let run = LastRun { planned: run.planned.before(offset), planned_wall, ..run };
        self.last = Some(run);
        let context = TriggerContext::new(clock, after, self.last, runs, failures_in_a_row);
        self.next(&TriggerContext { after_wall, ..context })
    }

    /// Returns how many planned moments this run stands for besides its own. Calls user code, so the caller holds no
    /// lock.
    pub(crate) fn covered(&mut self, planned: Timestamp, started: Timestamp, clock: &Clock) -> u64 {
        if started <= planned {
            return 0;
        }
        let span = match &self.wall {
            Some(plan) => plan.started.map(|started| (Due::Wall(plan.moment), started.into())),
            None => span_of(planned, started, clock),
        };
        span.map_or(0, |(planned, started)| self.ticks_between(planned, started))
    }

    /// Returns how many runs are due later than `from` and not later than `to`, assuming the present offset for each.
    fn ticks_between(&mut self, from: Due, to: Due) -> u64 {
        self.trigger.between(from.before(self.offset), to.before(self.offset))
    }

    /// Returns `true` if a run must no longer start at `now`. Calls user code, so the caller holds no lock. See
    /// [`Schedule::is_overdue`](super::Schedule::is_overdue).
    pub(crate) fn is_overdue(
        &mut self,
        missed: MissedRuns,
        planned: Timestamp,
        asked: Timestamp,
        now: Timestamp,
        clock: &Clock,
    ) -> bool {
        let (late, shown) = match &self.wall {
            // Only the wall clock shows that the machine has slept.
            Some(plan) => {
                let wall = clock.wall_time();
                let late = wall.duration_since(plan.late_from).unwrap_or_default();
                (late, Some(Due::Wall(wall)))
            }
            None => (now.since(planned), clock.instant_of(now).map(Due::At)),
        };
        let late = late.min(now.since(asked));
        let is_next_due = || shown.is_some_and(|now| self.ticks_between(now.before(late), now) > 0);
        missed.leaves_out(late, is_next_due)
    }

    /// Returns how many moments were left out between the last run and `next`. Calls user code, so the caller holds no
    /// lock.
    pub(crate) fn skipped(&mut self, next: Timestamp, clock: &Clock) -> u64 {
        let Some(last) = self.last else { return 0 };
        let next = next.before(self.offset);
        let span = match (&self.wall, last.planned_wall) {
            (Some(plan), Some(planned)) => {
                Some((Due::Wall(planned), Due::Wall(plan.moment).before(self.offset)))
            }
            (None, None) => span_of(last.planned, next, clock),
            _ => None,
        };
        // The next run is not left out.
        span.map_or(0, |(planned, next)| self.trigger.between(planned, next).saturating_sub(1))
    }

    /// Asks the trigger again for the next run, because the wall clock was set back. Returns when that run is due. If
    /// the trigger answers `None`, the plan on the wall clock stands. Calls user code, so the caller holds no lock.
    pub(crate) fn ask_again(
        &mut self,
        clock: &Clock,
        runs: u64,
        failures_in_a_row: u32,
    ) -> Option<Timestamp> {
        let now = clock.read();
        let context = TriggerContext::new(clock, now, self.last, runs, failures_in_a_row);
        self.next(&TriggerContext { is_asked_again: true, ..context })
    }

    fn next(&mut self, context: &TriggerContext<'_>) -> Option<Timestamp> {
        let due = match (self.trigger.next(context), &self.wall) {
            (Some(tick), _) => {
                self.offset = self.trigger.offset(tick, context);
                self.attempt = self.attempt.and_then(|_| self.trigger.attempt());
                tick.later_by(self.offset)?
            }
            (None, stands) => Due::Wall(stands.as_ref()?.moment),
        };
        self.wall = WallPlan::new(due, context);
        Some(due.timestamp(context.clock))
    }

    pub(crate) fn wall_moment(&self) -> Option<SystemTime> {
        self.wall.as_ref().map(|plan| plan.moment)
    }

    pub(crate) fn on_wall(&self) -> Option<Box<WallPlan>> {
        self.wall.clone().map(Box::new)
    }

    /// Compares the plan with the wall clock; `None` if the plan is not on that clock.
    pub(crate) fn view_wall(&self) -> Option<WallView> {
        let plan = self.wall.as_ref()?;
        let (now, wall) = plan.clock.read_both();
        let due = plan.due_by((now, wall));
        if wall >= plan.moment {
            let is_put_off = plan.put_off.is_some_and(|until| until > now);
            let state = if is_put_off { WallState::Waits } else { WallState::Due };
            return Some(WallView { state, due, look: due });
        }
        let asks_again = wall < plan.after && self.is_asked_again;
        let state = if asks_again { WallState::AsksAgain } else { WallState::Waits };
        Some(WallView { state, due, look: due.min(now.next_look()) })
    }

    /// Like [`view_wall`](Self::view_wall), but also updates the plan: notes the wall time as the run's start if the
    /// run is due, and otherwise drops a gate's delay that no longer applies.
    pub(crate) fn start_on_wall(&mut self) -> Option<WallView> {
        let (view, plan) = (self.view_wall()?, self.wall.as_mut()?);
        match view.state {
            WallState::Due => plan.started = Some(plan.clock.wall_time()),
            // If the clock was set back before the moment, the run is no longer put off.
            _ => plan.put_off = plan.put_off.filter(|until| *until == view.due),
        }
        Some(view)
    }

    pub(crate) fn put_off(&mut self, until: Timestamp) {
        if let Some(plan) = &mut self.wall {
            plan.put_off = Some(until);
        }
    }

    /// Drops the trigger's plan: the next run is planned without the trigger, on the executor's clock.
    pub(crate) fn leave_plan(&mut self) {
        (self.wall, self.offset) = (None, Duration::ZERO);
    }
}
