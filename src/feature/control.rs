//! Control: requests that change when a live task runs next.
//!
//! There is one operation: moving the next run to another moment. Every request is a [`Change`], and comes down to
//! another deadline for the task's entry in the queue.
//!
//! # Plan and entry
//!
//! The *plan* is when the task runs next by its schedule. The *entry* is the task's place in the queue, with the moment
//! when it is due. Apart from checks of the [wall clock](wall), the two moments differ in only two cases:
//!
//! * The task is **paused**. Its entry is [parked](crate::entry::Timing) and never due, while its plan stays: a pause
//!   makes the task late. After the pause the entry follows the plan again. If the plan's moment has passed, the policy
//!   for missed runs applies, as after a stall. A paused task is pending, so no count, snapshot or shutdown has to know
//!   of pauses.
//! * A caller asks for an **extra run**. The entry is due now, and the plan stays, for the run after the extra one.
//!
//! A change says when the entry is due. While the task waits for its turn in a [group](crate::Group) or for its gate's
//! answer, the entry stays parked all the same. So a thread that makes a change checks for such a wait before it moves
//! the entry. The group and the gate park a task only under the task's lock, so neither can park the task between the
//! check and the move. If the wait ends meanwhile, the thread that [unparks the task](super::parked) takes the task's
//! lock, then moves the entry.
//!
//! # Where the task is
//!
//! A thread makes a change under the task's lock, which a worker also holds when it queues the task again.
//!
//! * **In the queue**: the thread moves the entry from its present moment to the one that [`Standing`] yields, in one
//!   step under the queue's lock.
//! * **With a worker**, if the entry is not in the queue: the task is running, was taken to be run, or is about to be
//!   queued again. The thread notes the change in [`Control`], and [`on_requeue`](Control::on_requeue) applies it in
//!   the step that queues the task. The current run goes on. For a one-shot task the change comes too late, unless the
//!   worker may only be checking the wall clock.
//! * **Elsewhere**: the task was handed back to a caller, the executor was dropped, or `shutdown_now` was called. The
//!   change comes too late, and the caller gets `false` (see `TaskHandle::change`).
//!
//! # Races
//!
//! * *A worker takes the entry*: if the worker comes first, the thread notes the change; otherwise the entry already
//!   has its new moment. The queue's lock orders the two.
//! * *A cancellation*: the task's lock orders the two. A change to a task that has ended comes too late.
//! * *The time limit of a one-shot task* moves with its plan, under the task's lock. An expiry that was armed for the
//!   old limit notices this, and does nothing.
//! * *A shutdown* goes by the deadline that each entry has in the closed queue. From then on, a change may bring an
//!   entry forward, but not put it off.

mod requests;
mod waiting;
mod wall;

use std::mem;

use self::waiting::{Standing, change_waiting};
use crate::{
    entry::MoveEntry,
    schedule::{MissedRuns, Schedule, WallPlan},
    task::{Call, Core, Deferred, Parts, Queuing, Task, Verdict},
    time::{Clock, Timestamp},
    trigger::Trigger,
    unwind::discard,
};

/// A request to a live task. Its moments are timestamps of the executor's clock.
pub(crate) enum Change {
    At(Timestamp),
    /// The next run is due at this moment at the latest.
    Within(Timestamp),
    /// An immediate run. The timestamp says when the run was requested.
    RunNow(Timestamp),
    Pause,
    Resume,
    /// Another schedule, and the moment of its first run.
    Schedule(Schedule, Timestamp),
}

impl Change {
    /// Returns the change that gives the task this trigger; `None` if the trigger has no run, has a period of zero, or
    /// cannot be shared behind the task's gate. Calls the trigger, which is user code, so the caller holds no lock.
    pub(crate) fn schedule(trigger: impl Trigger, of: &Task, clock: &Clock) -> Option<Self> {
        // This policy has no effect, since the task keeps its own.
        let missed = MissedRuns::Coalesce;
        let name = of.name();
        let shared = of.has_gate().then_some(name.as_deref());
        let (schedule, first) = Schedule::of(trigger, missed, shared, clock, clock.read());
        schedule.refusal().is_none().then_some(Self::Schedule(schedule, first))
    }
}

/// The requests that a task's entry does not show. A task without a trigger has no `Control` before such a request.
#[derive(Default)]
pub(crate) struct Control {
    /// `true` if the task runs once, at a wall-clock moment, and was submitted as a series.
    pub(super) runs_once: bool,
    pub(crate) is_paused: bool,
    extra: Option<Timestamp>,
    /// `true` if the entry stands for the extra run, and not for the plan, which may be due at the same moment. The
    /// worker that takes the entry reads this field, since requests may have changed the other fields by then.
    pub(crate) is_extra_next: bool,
    /// The moment for which a run was requested, if the planned run serves as that run; see [`Standing`].
    asked: Option<Timestamp>,
    /// `true` if the current run is put off: by the gate, or because the worker asks the trigger again.
    keeps_tick: bool,
    /// The plan. `None` if the entry stands for the plan, or if a worker has the task and the schedule decides.
    plan: Option<Timestamp>,
    /// The plan on the wall clock, in case the clock is set. `Some` only while a worker has the task for an extra run.
    plan_on_wall: Option<Box<WallPlan>>,
    /// The moment by which a request wants the next run to start. `Some` only while a worker has the task.
    within: Option<Timestamp>,
    /// `true` if `plan` comes from a request, and not from the schedule. Set only while a worker has the task.
    leaves_wall: bool,
    /// A new schedule, which applies from the next run on. `Some` only while a worker has the task.
    schedule: Option<Schedule>,
}

impl Control {
    pub(crate) fn of_trigger(runs_once: bool) -> Self {
        Self { runs_once, ..Self::default() }
    }

    pub(crate) fn before_run(
        &mut self,
        task: &mut Core<'_>,
        call: &mut Call<'_>,
    ) -> Result<(), Verdict> {
        call.extras().late_from = self.asked;
        call.run.is_extra.set(self.is_extra_next);
        if self.is_extra_next {
            let triggered = task.plan.as_ref().and_then(|plan| plan.schedule.triggered());
            self.plan_on_wall = triggered.and_then(|triggered| triggered.on_wall());
        }
        call.look_at_wall(task)?;
        self.keeps_tick = call.has_question();
        Ok(())
    }

    pub(crate) fn begins(&mut self, call: &Call<'_>) {
        if call.run.is_extra.get() {
            self.extra = None;
        }
    }

    pub(crate) fn after_run(&mut self, call: &Call<'_>) {
        // After an extra run, the plan stands, and so does the request for it. If a request has made a plan during this
        // run, `asked` is about that plan.
        if !self.keeps_tick && !call.run.is_extra.get() && self.plan.is_none() {
            self.asked = None;
        }
    }

    pub(crate) fn on_requeue(&mut self, task: &mut Core<'_>, queuing: &mut Queuing) {
        // A schedule that was set while the worker had the task applies from here on.
        if let Some(schedule) = self.schedule.take() {
            let replaced = match &mut task.plan {
                Some(plan) => plan.set_schedule(schedule),
                None => schedule,
            };
            queuing.deferred.push(|| discard(replaced));
            queuing.is_replanned = true;
        }
        self.plan_on_wall = None;
        let on_wall = task.plan.as_ref().and_then(|plan| plan.schedule.view_wall());
        self.follow_wall(on_wall.map(|view| view.due));
        let (planned, standing) =
            (self.plan.unwrap_or(queuing.due), self.standing_after(queuing.due));
        let is_hastened = self.within.take().is_some_and(|within| within < planned);
        let leaves_wall = mem::take(&mut self.leaves_wall) || is_hastened;
        self.keep(standing);
        queuing.due = standing.due();
        queuing.is_replanned |= leaves_wall;
        if let Some(plan) = task.plan.as_mut().filter(|_| leaves_wall) {
            plan.leave_wall();
        }
    }

    pub(crate) fn on_put_off(&mut self, call: &Call<'_>, until: Timestamp) {
        self.keeps_tick = true;
        if call.run.is_extra.get() {
            // Unless another extra run has been requested since.
            self.extra.get_or_insert(until);
        }
    }

    pub(crate) fn next_due(&self, next: Timestamp) -> Timestamp {
        self.standing_after(next).due()
    }

    /// Returns when the task is due, given its `plan`. The `entry` may be due earlier, for a check of the wall clock.
    pub(crate) fn due_by(&self, entry: Timestamp, plan: Timestamp) -> Timestamp {
        Standing { plan, ..self.standing(entry) }.due()
    }

    fn standing(&self, due: Timestamp) -> Standing {
        let plan = self.plan.unwrap_or(due);
        let Self { is_paused, extra, asked, .. } = *self;
        Standing { plan, is_paused, extra, asked }
    }

    /// Returns the [`Standing`] that the task gets in the queue if its schedule's next moment is `next`.
    fn standing_after(&self, next: Timestamp) -> Standing {
        let standing = self.standing(next);
        match self.within {
            Some(within) => standing.after(&Change::Within(within), true),
            None => standing.simplified(),
        }
    }

    /// Keeps the part of `standing` that the queue's entry does not show.
    fn keep(&mut self, standing: Standing) {
        (self.is_paused, self.extra) = (standing.is_paused, standing.extra);
        (self.asked, self.is_extra_next) = (standing.asked, standing.next_extra().is_some());
        let is_plan_due = !self.is_extra_next && standing.plan == standing.due();
        self.plan = (!is_plan_due).then_some(standing.plan);
    }

    /// Notes a change, which applies once the worker that has the task queues the task again. Returns `true` if the
    /// change has an effect.
    fn note(&mut self, change: Change, deferred: &mut Deferred) -> bool {
        let was_paused = self.is_paused;
        self.follow_wall(match &self.schedule {
            Some(schedule) => schedule.view_wall().map(|view| view.due),
            None => self.plan_on_wall.as_ref().map(|plan| plan.due()),
        });
        match change {
            Change::At(moment) => {
                (self.plan, self.within, self.leaves_wall) = (Some(moment), None, true);
                self.asked = None;
            }
            Change::Within(moment) => match &mut self.plan {
                Some(plan) if moment < *plan => (*plan, self.leaves_wall) = (moment, true),
                Some(plan) if moment == *plan => {}
                Some(_) => self.asked = Some(moment),
                None => self.within = Some(self.within.map_or(moment, |within| within.min(moment))),
            },
            // A planned run that is already due serves as the requested run.
            Change::RunNow(now) if !was_paused && self.plan.is_some_and(|plan| plan <= now) => {
                self.asked = Some(now);
            }
            Change::RunNow(now) => self.extra = Some(now),
            Change::Pause | Change::Resume => {
                self.is_paused = matches!(change, Change::Pause);
                return was_paused != self.is_paused;
            }
            Change::Schedule(schedule, first) => {
                (self.plan, self.within, self.leaves_wall) = (Some(first), None, false);
                self.asked = None;
                if let Some(unused) = self.schedule.replace(schedule) {
                    deferred.push(|| discard(unused));
                }
            }
        }
        true
    }

    /// If the kept plan is on the wall clock, moves it to `due`, since that clock may have been set.
    fn follow_wall(&mut self, due: Option<Timestamp>) {
        if let (Some(kept), Some(due), false) = (&mut self.plan, due, self.leaves_wall) {
            *kept = due;
        }
    }
}

impl Task {
    /// Carries out a change to a live task. Calls `mover` under the task's lock. Returns `true` if the change had an
    /// effect. The caller does the deferred work.
    pub(crate) fn control(
        &self,
        change: Change,
        clock: &Clock,
        mover: &mut MoveEntry<'_>,
    ) -> (bool, Deferred) {
        let mut deferred = Deferred::default();
        let changed = self.with(|parts| parts.change(change, clock, mover, &mut deferred));
        // A change may own a user's trigger.
        (changed.map_err(|change| deferred.push(|| discard(change))).unwrap_or(false), deferred)
    }
}

impl Parts<'_> {
    fn control(&mut self) -> Option<&mut Control> {
        self.extensions()?.control.as_deref_mut()
    }

    fn control_or_default(&mut self) -> &mut Control {
        self.extras().extensions.control.get_or_insert_default()
    }

    /// Carries out a change, or notes it for the worker that has the task. Returns `true` if the change had an effect.
    ///
    /// # Errors
    ///
    /// Returns a change that the task cannot have, or that comes too late: the task's time limit may be up.
    fn change(
        &mut self,
        change: Change,
        clock: &Clock,
        mover: &mut MoveEntry<'_>,
        deferred: &mut Deferred,
    ) -> Result<bool, Change> {
        let is_impossible = matches!(change, Change::Schedule(..)) && !self.repeats();
        let is_too_late = self.stage.is_done() || self.is_given_away() || self.is_called_off();
        if is_impossible || is_too_late || self.is_over(clock) {
            return Err(change);
        }
        if matches!(&change, Change::Schedule(schedule, _) if schedule.triggered().is_some()) {
            self.control_or_default();
        }
        let changed = match self.stage.is_scheduled() {
            true => change_waiting(self, change, mover, deferred),
            false => Err(change),
        };
        match changed {
            // A worker has the task, and is about to run it, is running it, or has run it. A new schedule is for later
            // runs: this run belongs to the old schedule. A worker may have taken a task that runs once only to check
            // the wall clock.
            Err(change) if self.repeats() || self.is_periodic() && self.stage.is_scheduled() => {
                Ok(self.control_or_default().note(change, deferred))
            }
            changed => changed,
        }
    }
}
