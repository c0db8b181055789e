//! A task whose trigger may plan on the wall clock: that clock decides whether it is time for a run.
//!
//! Such a task is in the queue for an estimate of its moment ([`triggered`](crate::schedule)). A worker that has
//! taken it looks at the wall clock. If it is *too early*, the task is queued again, for a better estimate. If the
//! clock was set back, the trigger may have moments between now and the plan: it is *asked again*, with no lock held
//! and the task in the state of one that runs, only that no run is counted. After that it is queued again, due or
//! not; if it is due another taking runs it.
//!
//! When the clock is set the pool moves the tasks that are in the queue (`Task::follow_wall`), and so it does with one that a worker
//! has just queued again: while the worker has it, the pool cannot.

use super::{Change, Order, control::change_waiting};
use crate::{
    entry::EntryMover,
    schedule::WallView,
    task::{Call, Core, Deferred, Layer, NotYet, Parts, Question, RunOutcome, Task, Verdict},
    time::Clock,
};

/// See the [module](self).
pub(crate) struct OnWall;

impl Layer for OnWall {
    fn place(&self) -> u8 {
        Order::Wall as u8
    }

    fn before_run(&mut self, task: &mut Core<'_>, call: &mut Call<'_>) -> Result<(), NotYet> {
        let run = call.run;
        let plan = task.plan.as_deref_mut().filter(|_| !call.is_extra());
        let Some(plan) = plan else {
            run.plan_on_wall(None);
            return Ok(());
        };
        run.plan_on_wall(plan.tick_on_wall().and_then(|tick| tick.checked_add(plan.offset())));
        if call.is_by_hand() {
            return Ok(());
        }
        match plan.start_on_wall(run.clock()) {
            None | Some(WallView::Due(_)) => Ok(()),
            Some(WallView::Waits(estimate)) => Err(NotYet::Refused(Verdict::Again(estimate))),
            Some(WallView::AsksAgain(_)) => Err(NotYet::Asks(Box::new(TriggerAgain))),
        }
    }

    fn is_estimated(&self, task: &Core<'_>) -> bool {
        task.plan.as_ref().is_some_and(|plan| plan.is_estimated())
    }
}

/// The trigger is asked for the next run again, in place of the run for which the task was taken.
struct TriggerAgain;

impl Question for TriggerAgain {
    fn ask(self: Box<Self>, call: &mut Call<'_>) -> Result<(), RunOutcome> {
        call.keep_tick();
        let (run, hooks) = (call.run, call.hooks);
        Err(match &mut call.plan {
            Some(plan) => plan.ask_again(run, hooks),
            None => RunOutcome::Again(run.planned()),
        })
    }
}

impl Task {
    /// Moves the task to where it belongs by what the wall clock shows, if it waits for a moment of that
    /// clock. `mover` is called under the task's lock.
    pub(crate) fn follow_wall(&self, clock: &Clock, mover: &mut dyn EntryMover) {
        self.with(|parts| parts.follow_wall(clock, mover)).run();
    }
}

impl Parts<'_> {
    /// Moves a task that waits for a moment of the wall clock to the present estimate of it. A worker that has
    /// the task does so when it has queued the task.
    fn follow_wall(&mut self, clock: &Clock, mover: &mut dyn EntryMover) -> Deferred {
        let Some(view) = self.plan().and_then(|plan| plan.view_wall(clock)) else {
            return Deferred::default();
        };
        let unless =
            self.layers().and_then(|layers| layers.all().find_map(|layer| layer.put_off_until()));
        let change = Change::Estimate { moment: view.deadline(), unless };
        // If a worker has the task, it estimates the moment again.
        change_waiting(self, change, mover)
            .map_or_else(|_| Deferred::default(), |carried| carried.deferred)
    }
}
