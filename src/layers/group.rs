//! A group of tasks: how many of them may run at once, in which order, and whether they may at all.
//!
//! A group is a limit on a part of a pool. It has a lock of its own and knows its members, but neither the
//! queue nor what a member runs. A task knows its group by a [`Membership`](super::Membership), which only a
//! task in a group has, so no other task is asked anything.
//!
//! # A task that waits for its group
//!
//! A worker that has taken a member asks the group whether it may start. If it may not, the worker queues it
//! again, [parked](crate::entry::Timing). So a member that waits occupies no worker, other tasks that are due pass it,
//! and every call that counts, lists, moves, cancels or drains finds it pending: its entry says when it is due.
//!
//! # The order
//!
//! Pending members stand in an ordered set, by the moment when they are due and then by their sequence, as they
//! would in the queue. A member may start if fewer than *free* members stand before it, where *free* is the
//! number of permits that are left. That is strict: of two workers that have taken two members, the one with
//! the later member is refused even if it asks first and a permit is free.
//!
//! # Why each member starts eventually
//!
//! While the group is not paused, none of its first *free* pending members is parked, except for those that a
//! thread is about to let go ([`Effects`]). Every step that gives a member another rank, or the group another
//! number of permits, ends by looking for parked members among the first *free*: a run that ends, a member that
//! leaves, is queued again or gets another plan, another limit, another size of the pool, and the end of a pause. It
//! marks these as no longer parked under the group's lock. With that lock released the thread moves their
//! entries to when they are due. Nothing can keep it from doing so, because no user code runs in between.
//!
//! A group parks a member in one place, in the step that queues it again. That step holds the task's lock, and
//! asks the group a second time: a permit that was released since the refusal is seen there. What
//! comes after that step finds a parked member, and a thread that lets it go waits for the task's lock, and
//! finds the entry in the queue. The start of a member takes one permit and one place before all others, so it
//! changes the turn of no other member.
//!
//! # Locks
//!
//! The lock of a group comes after that of a task, and no lock is taken under it. What a call has to do
//! about other tasks it returns as [`Effects`], which are carried out by a thread that holds no lock.
//!
//! # Members that are not known yet
//!
//! A task enters its group when its submission has put it into the queue, or when a worker asks for it, if that
//! is first. It is not in the order before that: a submitter that waits for room may wait for a task that would
//! have to wait for it. A submission that is under way keeps a group that was shut down from its end
//! ([`Joining`]); so one that waits for room is told of the shutdown, and is refused.

mod end;
mod roll;

use std::task::Waker;

use self::{end::EndStage, roll::Roll};
pub(crate) use self::{
    end::{Keeps, MemberEnd},
    roll::{Counted, Entrant, ListedMember, Turn},
};
#[cfg(feature = "histograms")]
use crate::histogram::Recorder;
use crate::{
    CancelReason,
    entry::Timing,
    layers::{AtShutdown, Dispatcher, ShutdownPolicy},
    shutdown_report::EndedTasks,
    sync::{Arc, Weak},
    task::{Deferred, Task},
    time::Timestamp,
    unwind::wake_all,
    wait::{Place, Watched, WatchedGuard},
};

pub(crate) struct GroupState {
    name: Arc<str>,
    dispatcher: Weak<dyn Dispatcher>,
    at_shutdown: Option<ShutdownPolicy>,
    /// Where the runs of members are recorded, if they are.
    #[cfg(feature = "histograms")]
    pub(crate) recorder: Option<Arc<Recorder>>,
    roll: Watched<Roll>,
}

/// The settings with which a group begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    pub(crate) limit: usize,
    pub(crate) reserved: usize,
    pub(crate) workers: usize,
}

/// The work that remains when a group has changed, for a thread that holds no lock.
#[must_use = "members would stay parked"]
#[derive(Default)]
pub(crate) struct Effects {
    dispatcher: Option<Weak<dyn Dispatcher>>,
    released: Vec<(u64, Weak<Task>)>,
    wakers: Vec<Waker>,
}

impl Effects {
    /// Leaves it to be done when the lock of the member is released.
    pub(super) fn defer(self, deferred: &mut Deferred) {
        if self.dispatcher.is_some() || !self.wakers.is_empty() {
            deferred.push(|| self.carry_out());
        }
    }

    /// Lets the members go whose turn has come, and wakes the threads that wait for the end of the group.
    pub(crate) fn carry_out(self) {
        let Self { dispatcher, released, wakers } = self;
        if let Some(dispatcher) = dispatcher.as_ref().and_then(Weak::upgrade) {
            dispatcher.let_go(released);
        }
        wake_all(wakers);
    }
}

/// A submission to a group that is under way: the group does not end before this is dropped.
pub(crate) struct Joining(Arc<GroupState>);

impl Drop for Joining {
    fn drop(&mut self) {
        let mut roll = self.0.roll.lock();
        roll.end.joining -= 1;
        self.0.effects_of(roll).carry_out();
    }
}

impl GroupState {
    pub(crate) fn new(
        name: Arc<str>,
        dispatcher: Weak<dyn Dispatcher>,
        limits: GroupLimits,
        at_shutdown: Option<ShutdownPolicy>,
    ) -> Self {
        Self {
            name,
            dispatcher,
            at_shutdown,
            #[cfg(feature = "histograms")]
            recorder: None,
            roll: Watched::new(Roll::new(limits)),
        }
    }

    #[cfg(feature = "histograms")]
    pub(crate) fn recorded(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    pub(crate) fn at_shutdown(&self) -> Option<ShutdownPolicy> {
        self.at_shutdown
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn belongs_to<D: Dispatcher>(&self, dispatcher: &Arc<D>) -> bool {
        std::ptr::addr_eq(self.dispatcher.as_ptr(), Arc::as_ptr(dispatcher))
    }

    /// Releases the lock after a change. Returns what remains to be done about it.
    fn effects_of(&self, mut roll: WatchedGuard<'_, Roll>) -> Effects {
        let (released, has_ended) = (roll.release(), roll.terminate());
        let wakers = if has_ended { roll.take_wakers() } else { Vec::new() };
        let dispatcher = (!released.is_empty()).then(|| Weak::clone(&self.dispatcher));
        Effects { dispatcher, released, wakers }
    }

    /// Changes the group, with no lock held, and lets the members go whose turn has come.
    fn change<R>(&self, change: impl FnOnce(&mut Roll) -> R) -> R {
        let mut roll = self.roll.lock();
        let answer = change(&mut roll);
        self.effects_of(roll).carry_out();
        answer
    }

    // Members. What follows is called under the task's lock, except for `join`.

    /// Begins a submission; `None` if the group was shut down.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Joining> {
        let mut roll = self.roll.lock();
        if roll.refuses_more() {
            return None;
        }
        roll.end.joining += 1;
        Some(Joining(Arc::clone(self)))
    }

    /// Returns `true` if the group was shut down, and counts a submission that it refuses then.
    pub(super) fn refuses_more(&self) -> bool {
        self.roll.lock().refuses_more()
    }

    /// Enters a member that is pending. Returns why it has to end, if it came too late.
    pub(super) fn enter(
        &self,
        sequence: u64,
        due: Timestamp,
        entrant: Entrant,
    ) -> Option<CancelReason> {
        let mut roll = self.roll.lock();
        let refusal = roll.end.refuses(entrant.at_shutdown, entrant.is_delayed);
        roll.enter(sequence, due, entrant, refusal);
        refusal
    }

    /// Notes the slot of the queue in which a member has been from the beginning.
    pub(super) fn set_slot(&self, sequence: u64, slot: u32) {
        self.roll.lock().set_slot(sequence, slot);
    }

    /// Counts a task that has been in the queue and has ended before it entered.
    pub(super) fn count_short_lived(&self) {
        let mut roll = self.roll.lock();
        roll.counts.submitted += 1;
        roll.counts.cancelled += 1;
    }

    /// Asks for a member that a worker has taken whether it may start, and has it start then.
    pub(super) fn ask(&self, sequence: u64) -> Turn {
        self.roll.lock().ask(sequence)
    }

    /// Makes a member pending again that a worker has; `Err` if it is to end instead.
    pub(super) fn requeue(
        &self,
        sequence: u64,
        due: Timestamp,
        was_refused: bool,
    ) -> (Result<Timing, CancelReason>, Effects) {
        let mut roll = self.roll.lock();
        let timing = roll.requeue(sequence, due, was_refused);
        (timing, self.effects_of(roll))
    }

    /// Has a member that a worker has wait for the answer of its gate; it keeps its permit. `Err` if it is to end instead.
    pub(super) fn await_answer(
        &self,
        sequence: u64,
        until: Timestamp,
    ) -> (Result<(), CancelReason>, Effects) {
        let mut roll = self.roll.lock();
        let awaits = roll.await_answer(sequence, until);
        (awaits, self.effects_of(roll))
    }

    /// Notes that a pending member is due at another moment.
    pub(super) fn replan(&self, sequence: u64, due: Timestamp) -> Effects {
        let mut roll = self.roll.lock();
        let let_go = roll.replan(sequence, due);
        let mut effects = self.effects_of(roll);
        if let Some(member) = let_go {
            effects.released.push(member);
            effects.dispatcher.get_or_insert_with(|| Weak::clone(&self.dispatcher));
        }
        effects
    }

    /// Returns `true` if a member is in the queue and waits for its turn there.
    pub(super) fn parks(&self, sequence: u64) -> bool {
        self.roll.lock().parks(sequence)
    }

    pub(super) fn count_run(&self, has_failed: bool) {
        let mut roll = self.roll.lock();
        roll.counts.runs += 1;
        roll.counts.failed_runs += u64::from(has_failed);
    }

    /// Removes a member that has ended, or that is no longer part of the schedule.
    pub(super) fn leave(
        &self,
        sequence: u64,
        ended: MemberEnd,
        name: impl FnOnce() -> Option<Arc<str>>,
    ) -> Effects {
        let mut roll = self.roll.lock();
        if roll.leave(sequence, ended) {
            roll.end.note(sequence, ended, name);
        }
        self.effects_of(roll)
    }

    // Settings.

    pub(crate) fn limit(&self) -> usize {
        self.roll.lock().limits.limit
    }

    pub(crate) fn reserved(&self) -> usize {
        self.roll.lock().limits.reserved
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.change(|roll| roll.limits.limit = limit);
    }

    pub(crate) fn set_reserved(&self, reserved: usize) {
        self.change(|roll| roll.limits.reserved = reserved);
    }

    /// Notes how many workers the pool may have. `workers` reads an atomic: of two that resize at once the
    /// one that gets the lock later reads the newer number.
    pub(crate) fn resize(&self, workers: impl FnOnce() -> usize) {
        self.change(|roll| roll.limits.workers = workers());
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.roll.lock().is_paused
    }

    /// Pauses the group. Returns `false` if it is paused already, or was shut down, or its executor was.
    pub(crate) fn pause(&self) -> bool {
        let mut roll = self.roll.lock();
        let is_possible = !roll.is_paused && roll.end.admits_pauses();
        roll.is_paused |= is_possible;
        is_possible
    }

    /// Ends a pause. Returns `false` if there was none.
    pub(crate) fn resume(&self) -> bool {
        self.change(|roll| std::mem::take(&mut roll.is_paused))
    }

    pub(crate) fn counts(&self) -> Counted {
        self.roll.lock().counted()
    }

    // The end.

    /// Calls off the pending members that are there now: none of them starts from here on. Returns all
    /// members, for the caller to end them.
    pub(crate) fn call_off(&self, reason: CancelReason) -> Vec<ListedMember> {
        self.roll.lock().call_off(reason, |_| true)
    }

    /// Admits no more members, and ends a pause. Returns the members that are not kept, called off.
    pub(crate) fn shut_down(&self, keeps: Keeps, now: Timestamp) -> Vec<ListedMember> {
        self.change(|roll| {
            roll.end.advance(EndStage::ShuttingDown, keeps);
            roll.is_paused = false;
            roll.call_off(keeps.reason, |member| !keeps.keeps(member.at_shutdown, member.due > now))
        })
    }

    /// Admits no more members. Returns all that there are, the pending ones called off.
    pub(crate) fn stop(&self, keeps: Keeps) -> Vec<ListedMember> {
        self.change(|roll| {
            roll.end.advance(EndStage::Stopping, keeps);
            roll.is_paused = false;
            roll.call_off(keeps.reason, |_| true)
        })
    }

    /// Called when the executor is shut down. Returns the members, called off, that a paused group would
    /// keep from running although the executor does not keep them.
    pub(crate) fn executor_closes(&self, keeps: Keeps) -> Vec<ListedMember> {
        self.change(|roll| {
            roll.end.executor_closes(keeps);
            let is_paused = roll.is_paused;
            roll.call_off(keeps.reason, |member| {
                is_paused && member.is_pending && !keeps.keeps(member.at_shutdown, true)
            })
        })
    }

    /// Called when the executor has given its pending tasks back: they are no members any more.
    pub(crate) fn dissolve(&self) {
        self.change(Roll::dissolve);
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.roll.lock().end.stage > EndStage::Open
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.roll.lock().end.is_terminated
    }

    /// Returns `true` if a member runs, or may run by `deadline`.
    pub(crate) fn can_run_until(&self, deadline: Timestamp) -> bool {
        self.roll.lock().can_run_until(deadline)
    }

    /// Opens the log: every member that ends from now on is noted.
    pub(crate) fn open_log(&self) {
        self.roll.lock().end.open_log();
    }

    /// Returns the members that have been noted, and those that run now.
    pub(crate) fn read_log(&self) -> (EndedTasks, Vec<ListedMember>) {
        let roll = self.roll.lock();
        (roll.end.log(), roll.list_running())
    }

    /// The poll of [`wait`](crate::wait): an answer once the group was shut down and its last member has
    /// left.
    pub(crate) fn poll_terminated(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.roll.poll(place, waker, |roll| roll.end.is_terminated.then_some(()))
    }

    /// Takes a waiter that gives up off the list.
    pub(crate) fn forget(&self, place: &mut Place) {
        self.roll.forget(place);
    }
}
