//! Control: requests to a live task, and when it runs after them.
//!
//! There is one operation: moving the next run to another moment. Everything that a handle can ask for is a [`Change`],
//! and comes down to another deadline for the entry of the task in the queue.
//!
//! # Plan and entry
//!
//! The *plan* is when the task runs next by its schedule. The *entry* is the task's place in the queue, with the moment
//! when it is due. The two moments are the same, with two exceptions:
//!
//! * The task is **paused**. Its entry is [parked](crate::entry::Timing) and never due, and its plan ages: a pause is
//!   lateness. Afterwards the entry follows the plan again, which may have passed meanwhile, and the policy for missed
//!   runs sees what it would see after a stall. A paused task is pending, so no count, snapshot or shutdown has to know
//!   of pauses.
//! * A caller asks for an **extra run**. The entry is due now, and the plan stands for afterwards.
//!
//! A change says when the entry is due. Whether the entry is parked all the same, because the task waits for its turn,
//! is up to its [group](crate::Group), which the thread asks before it moves the entry. A group parks a member only
//! under that member's lock, so this one is not parked meanwhile; a thread that has just let the member go waits for
//! this lock, and moves the entry then.
//!
//! # Where the task is
//!
//! All of this happens under the task's lock, under which a worker also queues the task again.
//!
//! * **In the queue**: the thread moves the entry to the moment that [`Standing`] derives from the one that it finds,
//!   in one step under the queue's lock.
//! * **With a worker**, if the entry is not there: the task runs, has been taken out to be run, or is about to be
//!   queued again. The thread notes the change in [`Control`], and [`on_requeue`](Control::on_requeue) applies it in
//!   the step that queues the task. The current run goes on. For a one-shot task the change comes too late.
//! * **Elsewhere**, as after the owner was dropped or after `shutdown_now`, or with the holder of a rejected task: the
//!   change comes too late, and the caller learns so (see `TaskHandle::change`).
//!
//! # Races
//!
//! * *A worker takes the entry*: before the change, which is then noted, or after it, from where the change has moved
//!   it. The queue's lock orders the two.
//! * *A cancellation*: the task's lock orders the two. A task that has ended changes no more.
//! * *The time limit of a one-shot task* moves with its plan, under the same lock. An expiry that was armed for another
//!   limit notices, and does nothing.
//! * *A shutdown* decides by the entries that it finds in the closed queue. A change never puts off an entry of a
//!   closed queue, so whatever a shutdown lets run is over in time.

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
    /// The next run is then, unless it is earlier.
    Within(Timestamp),
    /// One more run, at this moment, which is now.
    RunNow(Timestamp),
    Pause,
    Resume,
    /// Another schedule, whose first run is then.
    Schedule(Schedule, Timestamp),
}

impl Change {
    /// Returns the change that sets a trigger; `None` if the task cannot have it. Calls the trigger: user code.
    pub(crate) fn schedule(trigger: impl Trigger, of: &Task, clock: &Clock) -> Option<Self> {
        // The task keeps its policy for missed runs.
        let missed = MissedRuns::Coalesce;
        let name = of.name();
        let shared = of.has_gate().then_some(name.as_deref());
        let (schedule, first) = Schedule::of(trigger, missed, shared, clock, clock.read());
        schedule.refusal().is_none().then_some(Self::Schedule(schedule, first))
    }
}

/// The requests to a task that its entry does not show. A task without such a request has none of this.
#[derive(Default)]
pub(crate) struct Control {
    /// True for a series that stands for a one-shot task at a moment of the wall clock.
    pub(super) runs_once: bool,
    pub(crate) is_paused: bool,
    extra: Option<Timestamp>,
    /// True if the entry stands for the extra run, and not for the plan, which may be due at the same moment. This is
    /// for the worker that takes the entry: other requests may have changed the rest by then.
    pub(crate) is_extra_next: bool,
    /// When the planned run was asked for; see [`Standing`].
    asked: Option<Timestamp>,
    /// True if the run for which the task was taken still waits.
    keeps_tick: bool,
    /// The plan; `None` if it is when the entry is due, or, while a worker has the task, if the schedule decides.
    plan: Option<Timestamp>,
    /// The plan on the wall clock, which may be set meanwhile. Only while a worker has the task for an extra run.
    plan_on_wall: Option<Box<WallPlan>>,
    /// The moment at which the next run is due at the latest. Only while a worker has the task.
    within: Option<Timestamp>,
    /// True if `plan` does not come from the schedule.
    leaves_wall: bool,
    /// The schedule from the next run on. Only while a worker has the task.
    schedule: Option<Schedule>,
}

impl Control {
    /// Returns the control of a task with a trigger, whose runs check the wall clock.
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
        // After an extra run, the plan stands, with any request to it; a request to a plan that was made meanwhile is
        // about the next run.
        if !self.keeps_tick && !call.run.is_extra.get() && self.plan.is_none() {
            self.asked = None;
        }
    }

    pub(crate) fn on_requeue(&mut self, task: &mut Core<'_>, queuing: &mut Queuing) {
        // The run is over, so a schedule that was set meanwhile plans the next one.
        if let Some(schedule) = self.schedule.take() {
            queuing.replaced = Some(match &mut task.plan {
                Some(plan) => plan.set_schedule(schedule),
                None => schedule,
            });
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
        queuing.is_replanned = leaves_wall || queuing.replaced.is_some();
        if let Some(plan) = task.plan.as_mut().filter(|_| leaves_wall) {
            plan.leave_wall();
        }
    }

    pub(crate) fn on_put_off(&mut self, call: &Call<'_>, until: Timestamp) {
        self.keeps_tick = true;
        if call.run.is_extra.get() {
            // Unless another has been asked for meanwhile.
            self.extra.get_or_insert(until);
        }
    }

    pub(crate) fn next_due(&self, next: Timestamp) -> Timestamp {
        self.standing_after(next).due()
    }

    /// Returns when the task is due, given its `plan` and when its `entry` is due, which may be only for a look.
    pub(crate) fn due_by(&self, entry: Timestamp, plan: Timestamp) -> Timestamp {
        Standing { plan, ..self.standing(entry) }.due()
    }

    fn standing(&self, due: Timestamp) -> Standing {
        let plan = self.plan.unwrap_or(due);
        let Self { is_paused, extra, asked, .. } = *self;
        Standing { plan, is_paused, extra, asked }
    }

    /// Returns how the task stands when it is queued again, if its schedule says `next`.
    fn standing_after(&self, next: Timestamp) -> Standing {
        let standing = self.standing(next);
        match self.within {
            Some(within) => standing.after(&Change::Within(within), true),
            None => standing.simplified(),
        }
    }

    /// Keeps the part of the standing that the entry does not show.
    fn keep(&mut self, standing: Standing) {
        (self.is_paused, self.extra) = (standing.is_paused, standing.extra);
        (self.asked, self.is_extra_next) = (standing.asked, standing.next_extra().is_some());
        let is_plan_due = !self.is_extra_next && standing.plan == standing.due();
        self.plan = (!is_plan_due).then_some(standing.plan);
    }

    /// Notes a change for when the worker that has the task queues it again. Returns `true` if it has an effect.
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
            // A run that is due already is the one that was asked for.
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

    /// Updates a kept plan on the wall clock, which may have been set: the plan is now for `due`.
    fn follow_wall(&mut self, due: Option<Timestamp>) {
        if let (Some(kept), Some(due), false) = (&mut self.plan, due, self.leaves_wall) {
            *kept = due;
        }
    }
}

impl Task {
    /// Changes the moment at which a live task runs next. `mover` is called under the task's lock. Returns `true` if
    /// the change had an effect.
    pub(crate) fn control(&self, change: Change, clock: &Clock, mover: &mut MoveEntry<'_>) -> bool {
        let mut deferred = Deferred::default();
        let changed = self.with(|parts| parts.change(change, clock, mover, &mut deferred));
        deferred.run();
        // A change may own a user's trigger.
        changed.map_err(discard).unwrap_or(false)
    }
}

impl Parts<'_> {
    fn control(&mut self) -> Option<&mut Control> {
        self.extensions()?.control.as_deref_mut()
    }

    fn control_or_default(&mut self) -> &mut Control {
        self.extras().extensions.control.get_or_insert_default()
    }

    /// Carries out a change. Returns `true` if it had an effect.
    ///
    /// # Errors
    ///
    /// Returns a change that comes too late, as it also does once the task's time is up.
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
            // A worker has the task, and is about to run it, runs it, or has run it. Another schedule is for the runs
            // after that: the run for which the task was taken belongs to the old one. A worker may have taken a task
            // with one run only to check it against the wall clock.
            Err(change) if self.repeats() || self.is_periodic() && self.stage.is_scheduled() => {
                Ok(self.control_or_default().note(change, deferred))
            }
            changed => changed,
        }
    }
}
