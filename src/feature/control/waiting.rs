//! A change of a task that waits in the queue: its entry is moved, in one step under the lock of the task and that of
//! the queue.

use super::{Carried, Change, standing::Standing};
use crate::{
    entry::{MoveEntry, Moved, Timing},
    schedule::Schedule,
    task::{Parts, Plan, Replan},
};

/// How a task stood, and how it stands after a change.
struct Stood {
    before: Standing,
    after: Standing,
    leaves_wall: bool,
}

/// Carries out a change of a task that waits.
///
/// # Errors
///
/// Returns the change if a worker has taken the task meanwhile.
pub(in crate::feature) fn change_waiting(
    parts: &mut Parts<'_>,
    change: Change,
    mover: &mut MoveEntry<'_>,
) -> Result<Carried, Change> {
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
        // A closed queue has its entries come nearer only.
        if !is_open && after.due() > before.due() {
            return None;
        }
        let leaves_wall = match change {
            Change::At(_) => true,
            Change::Within(_) => after.plan != before.plan,
            // The plan of a task that is paused may be this moment.
            Change::RunNow(_) => (after.plan, after.is_paused) != (before.plan, before.is_paused),
            _ => false,
        };
        found = Some(Stood { before, after, leaves_wall });
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
            Ok(carry_out(parts, change, found))
        }
        (Moved::Absent, _) => Err(change),
        _ => Ok(Carried::nothing(change)),
    }
}

fn carry_out(
    parts: &mut Parts<'_>,
    change: Change,
    Stood { before, after, leaves_wall }: Stood,
) -> Carried {
    if parts.control().is_some() || after != Standing::planned(after.due()) {
        parts.control_or_default().keep(after);
    }
    let is_toggle = matches!(change, Change::Pause | Change::Resume);
    let replaces_plan = matches!(change, Change::At(_) | Change::Schedule(..));
    let unused = change_plan(parts.plan(), change, leaves_wall);
    let plan = Some(after.plan).filter(|plan| replaces_plan || *plan != before.plan);
    let mut replan = Replan { plan, due: Some(after.due()), ..Replan::default() };
    if let Some(extensions) = parts.extensions() {
        extensions.on_replan(&mut replan);
    }
    let Replan { expiry: limit, deferred, .. } = replan;
    Carried { had_effect: !is_toggle || before != after, limit, deferred, unused }
}

/// Gives the plan another schedule, or has it leave the wall clock. Returns the schedule that is not used any more.
fn change_plan(plan: Option<&mut Plan>, change: Change, leaves_wall: bool) -> Option<Schedule> {
    match (change, plan) {
        (Change::Schedule(schedule, _), Some(plan)) => Some(plan.set_schedule(schedule)),
        (Change::Schedule(schedule, _), None) => Some(schedule),
        (_, Some(plan)) if leaves_wall => {
            plan.leave_wall();
            None
        }
        _ => None,
    }
}
