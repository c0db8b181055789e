//! Control by the word beside the entry: what a task, its worker and the views of it do about a run that was
//! [put off](crate::layers::PutOff) without the task's lock.

use super::Control;
use crate::{
    entry::EntryMover,
    layers::{
        Change, PutOff,
        put_off::{Extension, Opens},
    },
    sync::Arc,
    task::{Parts, Task},
    time::{Clock, Timestamp},
};

impl Control {
    /// A worker has taken the task. Returns the moment for which it is queued again, if its planned run was put off. An
    /// extra run takes place in any case, and it is the plan behind it that was put off.
    pub(super) fn look(&mut self, planned: Timestamp, runs_anyway: bool) -> Option<Timestamp> {
        let extension = self.extension.as_mut()?;
        if runs_anyway {
            let later = extension.close();
            if let Some((plan, later)) = self.plan.as_mut().zip(later).filter(|it| it.1 > *it.0) {
                (*plan, self.leaves_wall) = (later, true);
            }
            return None;
        }
        let was_refused = extension.is_refused();
        let later = extension.look(planned)?;
        self.leaves_wall = true;
        // Noted after the refusal, or, where the word was later than the entry, before it was written: a change that finds
        // it later refuses the run. What was asked for first does not overrule the extension.
        self.plan = self.plan.map(|plan| plan.max(later));
        if !was_refused {
            self.within = None;
        }
        Some(later)
    }

    /// Closes the word by which the run is put off. Returns the moment to which it was.
    pub(super) fn close(&self) -> Option<Timestamp> {
        self.extension.as_ref().and_then(Extension::close)
    }

    /// Opens that word, which was `closed` for a change that has come to nothing.
    pub(super) fn restore(&self, closed: Option<Timestamp>) {
        if let Some(extension) = &self.extension {
            extension.restore(closed);
        }
    }

    /// Opens the word for a task that waits for this moment now. What of it still counts beside that is `kept`.
    pub(super) fn reopen(&mut self, due: Timestamp, kept: Option<Timestamp>) {
        if let Some(extension) = &mut self.extension {
            match kept {
                Some(later) => extension.settle_behind(due, later),
                // A call opens it when it is noted.
                None => extension.settle(due, None),
            }
        }
    }

    /// Has a change noted that has found no entry, and the word `closed`: if the run for which a worker has taken the task
    /// is not to take place, the change is one of its plan.
    pub(super) fn await_refusal(&mut self, closed: Option<Timestamp>, is_periodic: bool) {
        let extension = self.extension.as_mut();
        if let Some(moment) = extension.and_then(|it| it.await_refusal(closed, is_periodic)) {
            // With a plan the run is an extra one, and the plan is what was put off.
            let plan = self.plan.map(|plan| closed.map_or(plan, |later| later.max(plan)));
            self.leaves_wall |= plan > self.plan;
            self.plan = plan.or(Some(moment));
        }
    }

    /// Returns `true` if the run for which a worker has taken the task does not take place.
    pub(super) fn refuses_run(&self) -> bool {
        self.extension.as_ref().is_some_and(Extension::is_refused)
    }

    /// Returns when the task is due whose entry is due then.
    fn due_by(&self, entry: Timestamp) -> Timestamp {
        let later = self.extension.as_ref().map_or(Timestamp::PAST, Extension::later);
        self.standing(entry).put_off_to(later).due()
    }
}

impl Task {
    /// Returns the word by which the run is put off, which is never open if a layer must be told of each move. `mover` is
    /// called under the task's lock, and moves nothing.
    pub(crate) fn extension(&self, mover: &mut dyn EntryMover) -> Arc<PutOff> {
        self.with(|parts| parts.extension(mover, Opens::Always))
    }

    /// Like `extension`, for a debounced task: its calls put the run off.
    pub(crate) fn extension_by_calls(&self, mover: &mut dyn EntryMover) -> Arc<PutOff> {
        self.with(|parts| parts.extension(mover, Opens::ByCalls))
    }

    /// Returns when the task is due whose entry is due then.
    pub(crate) fn due_by(&self, entry: Timestamp) -> Timestamp {
        self.with(|parts| parts.control().map_or(entry, |control| control.due_by(entry)))
    }

    /// Moves the entry of a task whose run was put off to where it is due by now. Returns `true` if it was moved.
    /// `mover` is called under the task's lock.
    pub(crate) fn follow_extension(&self, clock: &Clock, mover: &mut dyn EntryMover) -> bool {
        let is_put_off = |parts: &mut Parts<'_>| {
            let extension = parts.control().and_then(|control| control.extension.as_ref());
            extension.is_some_and(Extension::is_behind)
        };
        let follow = Change::NotBefore(Timestamp::PAST);
        self.with(is_put_off) && self.control(follow, clock, mover).had_effect
    }
}

impl Parts<'_> {
    fn extension(&mut self, mover: &mut dyn EntryMover, opens: Opens) -> Arc<PutOff> {
        let follows = self.layers().is_some_and(|layers| layers.all().any(|it| it.has_to_follow()));
        let opens = if follows || self.is_given_away() { Opens::Never } else { opens };
        let (slot, mut entry) = (self.slot(), None);
        if self.stage.is_scheduled() {
            let _ = mover.move_entry(slot, &mut |due, _| {
                entry = Some(due);
                None
            });
            // A worker has taken it, and looks at the word before the only run that there is.
            entry = entry.or((!self.is_periodic()).then_some(Timestamp::PAST));
        }
        let control = self.control_or_default();
        control.extension.get_or_insert_with(|| Extension::new(opens, entry)).word()
    }
}
