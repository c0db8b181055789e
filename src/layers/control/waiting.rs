//! A change of a task that waits in the queue: its entry is moved, in one step under the lock of the task and that of
//! the queue.
//!
//! The word by which the run may be [put off](crate::layers::PutOff) is closed first, and what it was counts as part of the
//! plan that is found. So an extension comes before the change or after it. Where the change comes to nothing the word is
//! opened again as it was.

use super::{Carried, Change};
use crate::{
    entry::{EntryMover, Moved, Timing},
    layers::standing::Standing,
    schedule::Schedule,
    task::{Parts, Plan, Replan},
    time::Timestamp,
};

/// How a task stood, and how it stands after a change.
struct Stood {
    before: Standing,
    after: Standing,
    /// True if its run had been put off beside the entry.
    was_put_off: bool,
}

/// Carries out a change of a task that waits.
///
/// # Errors
///
/// Returns the change if a worker has taken the task meanwhile.
pub(in crate::layers) fn change_waiting(
    parts: &mut Parts<'_>,
    change: Change,
    mover: &mut dyn EntryMover,
) -> Result<Carried, Change> {
    let (slot, is_periodic) = (parts.slot(), parts.is_periodic());
    let keeps_parked = parts.keeps_parked();
    let control = parts.control();
    let closed = control.as_ref().and_then(|control| control.close());
    // An estimate is one of the plan on the wall clock, in place of which the run was put off.
    let later = closed.filter(|_| !change.is_estimate()).unwrap_or(Timestamp::PAST);
    let mut found = None;
    let moved = mover.move_entry(slot, &mut |due, is_open| {
        let standing = control.as_ref().map(|control| control.standing(due));
        let standing = standing.unwrap_or(Standing::planned(due));
        let before = standing.put_off_to(later);
        let mut after = before.after(&change, is_periodic);
        // A closed queue has its entries come nearer only. One that is to come nearer than its run was put off stays.
        if !is_open && after.due() > standing.due() {
            if !change.hastens() || after.due() > before.due() {
                return None;
            }
            after.plan = standing.due();
        }
        found = Some(Stood { before, after, was_put_off: before != standing });
        let due = after.due();
        Some(if keeps_parked { Timing::Parked { due } } else { due.into() })
    });
    match (moved, found) {
        (Moved::To(slot), Some(found)) => {
            if let Some(slot) = slot {
                parts.set_slot(slot);
            }
            Ok(carry_out(parts, change, found, closed))
        }
        (moved, _) => {
            let is_absent = moved == Moved::Absent;
            // A closed queue may not admit the task again, so its run is not refused for the change.
            let may_refuse = is_absent && mover.is_open();
            match parts.control() {
                Some(control) if may_refuse => control.await_refusal(closed, is_periodic),
                Some(control) => control.restore(closed),
                None => {}
            }
            if is_absent { Err(change) } else { Ok(Carried::nothing(change)) }
        }
    }
}

/// Does what follows once the entry was moved. The word by which the run is put off was `closed` for that.
fn carry_out(
    parts: &mut Parts<'_>,
    change: Change,
    Stood { before, after, was_put_off }: Stood,
    closed: Option<Timestamp>,
) -> Carried {
    if parts.control().is_some() || after != Standing::planned(after.due()) {
        let control = parts.control_or_default();
        control.keep(after);
        control.reopen(after.due(), closed.filter(|_| change.is_estimate()));
    }
    let is_toggle = matches!(change, Change::Pause | Change::Resume);
    let leaves_wall = match change {
        Change::At(_) => true,
        Change::Within(_) | Change::NotBefore(_) => was_put_off || after.plan != before.plan,
        _ => was_put_off,
    };
    let unused = change_plan(parts.plan(), change, leaves_wall);
    let plan = Some(after.plan).filter(|plan| *plan != before.plan);
    let mut replan = Replan { plan, due: Some(after.due()), ..Replan::default() };
    if let Some(layers) = parts.layers() {
        layers.all().for_each(|layer| layer.on_replan(&mut replan));
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
