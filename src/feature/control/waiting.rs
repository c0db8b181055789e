//! A task that waits in the queue: its plan, the requests to it, and how a change moves its entry.
//!
//! A [`Standing`] is plain data: when the planned run is, and what else callers have asked for. Together they determine
//! when the entry is due. [`change_waiting`] derives one from the entry and the fields of `Control`, applies a
//! [change](Change) to it, and moves the entry, in one step under the locks of the task and of the queue.

use super::Change;
use crate::{
    entry::{MoveEntry, Moved, Timing},
    task::{Deferred, Parts, Replan},
    time::Timestamp,
    unwind::discard,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) plan: Timestamp,
    pub(super) is_paused: bool,
    /// The moment for which an extra run was requested, or to which the task's gate has put that run off.
    pub(super) extra: Option<Timestamp>,
    /// The moment for which a run was requested, if the planned run, which is no later, serves as that run. The policy
    /// for missed runs counts lateness from this moment.
    pub(super) asked: Option<Timestamp>,
}

impl Standing {
    pub(super) fn planned(plan: Timestamp) -> Self {
        Self { plan, is_paused: false, extra: None, asked: None }
    }

    /// Returns when the extra run is due; `None` if there is none, or if the planned run comes first, for example
    /// because the gate has put the extra run off.
    pub(super) fn next_extra(self) -> Option<Timestamp> {
        self.extra.filter(|moment| self.is_paused || *moment <= self.plan)
    }

    pub(super) fn due(self) -> Timestamp {
        let planned = if self.is_paused { Timestamp::NEVER } else { self.plan };
        self.next_extra().unwrap_or(planned)
    }

    pub(super) fn after(mut self, change: &Change, repeats: bool) -> Self {
        match *change {
            Change::At(moment) | Change::Schedule(_, moment) => {
                (self.plan, self.asked) = (moment, None);
            }
            Change::Within(moment) if self.plan < moment => self.asked = Some(moment),
            Change::Within(moment) => self.plan = moment,
            // An extra run that is already due serves as the requested run.
            Change::RunNow(now) if self.next_extra().is_some_and(|moment| moment <= now) => {}
            Change::RunNow(now) if self.due() <= now => self.asked = Some(now),
            Change::RunNow(now) if repeats => self.extra = Some(now),
            Change::RunNow(now) => (self.plan, self.is_paused) = (now, false),
            Change::Pause => self.is_paused = true,
            Change::Resume => self.is_paused = false,
        }
        self.simplified()
    }

    /// Turns the extra run into the planned run if the task has no plan and is not paused.
    pub(super) fn simplified(self) -> Self {
        match self.extra {
            Some(moment) if self.plan == Timestamp::NEVER && !self.is_paused => {
                Self { plan: moment, extra: None, ..self }
            }
            _ => self,
        }
    }
}

/// Carries out a change to a scheduled task. Returns `true` if the change had an effect.
///
/// # Errors
///
/// Returns the change if a worker has taken the task.
pub(super) fn change_waiting(
    parts: &mut Parts<'_>,
    change: Change,
    mover: &mut MoveEntry<'_>,
    deferred: &mut Deferred,
) -> Result<bool, Change> {
    let (slot, repeats) = (parts.slot(), parts.repeats());
    let (keeps_parked, wall) = (parts.keeps_parked(), parts.view_wall());
    let next_on_wall = match &change {
        Change::Schedule(schedule, _) => schedule.view_wall(),
        _ => wall,
    };
    let mut found = None;
    let moved = mover(slot, &mut |due, is_open| {
        let before = parts.standing(due, wall);
        let after = before.after(&change, repeats);
        // In a closed queue, an entry may only be brought forward.
        if !is_open && after.due() > before.due() {
            return None;
        }
        let leaves_wall = match change {
            Change::At(_) => true,
            Change::Within(_) => after.plan != before.plan,
            Change::RunNow(_) => (after.plan, after.is_paused) != (before.plan, before.is_paused),
            _ => false,
        };
        found = Some((before, after, leaves_wall));
        let due = after.due();
        let is_planned = !leaves_wall && after.next_extra().is_none();
        let look = next_on_wall.filter(|_| is_planned).map(|view| view.look);
        Some(if keeps_parked {
            Timing::Parked { due }
        } else {
            Timing::from(due).no_later_than(look)
        })
    });
    match (moved, found) {
        (Moved::To(slot), Some(found)) => {
            if let Some(slot) = slot {
                parts.set_slot(slot);
            }
            Ok(carry_out(parts, change, found, deferred))
        }
        (Moved::Absent, _) => Err(change),
        _ => {
            deferred.push(|| discard(change));
            Ok(false)
        }
    }
}

/// Completes a change once the entry has moved: keeps what the entry does not show, and tells the features. Returns
/// `true` if the change had an effect. The tuple holds the old [`Standing`], the new one, and whether the plan leaves
/// the wall clock.
fn carry_out(
    parts: &mut Parts<'_>,
    change: Change,
    (before, after, leaves_wall): (Standing, Standing, bool),
    deferred: &mut Deferred,
) -> bool {
    if parts.control().is_some() || after != Standing::planned(after.due()) {
        parts.control_or_default().keep(after);
    }
    let is_toggle = matches!(change, Change::Pause | Change::Resume);
    let replaces_plan = matches!(change, Change::At(_) | Change::Schedule(..));
    let unused = match (change, parts.plan()) {
        (Change::Schedule(schedule, _), Some(plan)) => Some(plan.set_schedule(schedule)),
        (Change::Schedule(schedule, _), None) => Some(schedule),
        (_, Some(plan)) if leaves_wall => {
            plan.leave_wall();
            None
        }
        _ => None,
    };
    let plan = Some(after.plan).filter(|plan| replaces_plan || *plan != before.plan);
    if let Some(extensions) = parts.extensions() {
        let due = Some(after.due());
        extensions.on_replan(&mut Replan { plan, due, awaits_answer: false, deferred });
    }
    // Last, because dropping a trigger is user code, which must not delay other tasks.
    if unused.is_some() {
        deferred.push(|| discard(unused));
    }
    !is_toggle || before != after
}
