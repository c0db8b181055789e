//! A task whose trigger may plan on the wall clock: that clock decides whether it is time for a run.
//!
//! Such a task is queued for the estimated moment of its next run ([`triggered`](crate::schedule)) or for the next
//! check, whichever comes first. Checks take place at multiples of 30 s on the executor's clock. A worker that has
//! taken the task checks the wall clock, in the same way on every system:
//!
//! * If it is *too early*, the worker queues the task again, for a better estimate or the next check. It does not take
//!   the closure out, count a run, or ask the trigger.
//! * If the clock was set back, the trigger may have moments between now and the plan. The worker *asks the trigger
//!   again*, with no lock held and the task marked as running, and then queues the task again. No run is counted.
//! * If the clock was set forward past the moment, the run is as late as that clock shows.
//!
//! So a task follows the clock within 30 s, and the checks of all tasks coincide. The moment of a check appears only in
//! the entry. Handles show the plan, which is the estimate (`Task::due_by`).

use super::waiting::Standing;
use crate::{
    schedule::{Triggered, WallState, WallView},
    task::{Call, Core, Parts, Question, RunOutcome, Verdict},
    time::Timestamp,
};

impl Call<'_> {
    /// Checks on the wall clock whether it is time for the run.
    ///
    /// # Errors
    ///
    /// The verdict on a task that was taken too early.
    pub(super) fn look_at_wall(&mut self, task: &mut Core<'_>) -> Result<(), Verdict> {
        let run = self.run;
        let plan = task.plan.as_deref_mut().filter(|_| !run.is_extra.get());
        let triggered = plan.and_then(|plan| plan.schedule.triggered_mut());
        run.plan_on_wall(triggered.as_ref().and_then(|triggered| triggered.wall_moment()));
        let starting = triggered.filter(|_| !run.is_by_hand());
        let Some(view) = starting.and_then(Triggered::start_on_wall) else { return Ok(()) };
        match view.state {
            WallState::Due => {
                // The task may have been taken at the moment of a check.
                run.planned.set(view.due);
            }
            WallState::Waits => return Err(Verdict::Again(view.due)),
            WallState::AsksAgain => self.extras().question = Some(Question::Trigger),
        }
        Ok(())
    }

    /// Asks the trigger again for the next run. Returns the outcome to publish, although no run took place.
    pub(crate) fn ask_trigger_again(&mut self) -> RunOutcome {
        let (run, hooks) = (self.run, self.hooks);
        match &mut self.plan {
            Some(plan) => plan.ask_again(run, hooks),
            None => RunOutcome::Again(run.planned()),
        }
    }
}

impl Parts<'_> {
    pub(super) fn view_wall(&mut self) -> Option<WallView> {
        self.plan()?.schedule.view_wall()
    }

    /// Returns `true` if the task may run more than once.
    pub(super) fn repeats(&mut self) -> bool {
        self.is_periodic() && !self.control().is_some_and(|control| control.runs_once)
    }

    /// Returns the task's standing, given when its entry is due and what the wall clock shows.
    pub(super) fn standing(&mut self, due: Timestamp, wall: Option<WallView>) -> Standing {
        let kept = self.control().map(|control| control.standing(due));
        let standing = kept.unwrap_or(Standing::planned(due));
        Standing { plan: wall.map_or(standing.plan, |view| view.due), ..standing }
    }
}
