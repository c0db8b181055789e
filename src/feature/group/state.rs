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

use std::task::Waker;

use super::roll::Roll;
#[cfg(feature = "histograms")]
use crate::histogram::Recorder;
use crate::{
    feature::ShutdownPolicy,
    sync::{Arc, Weak},
    task::{Deferred, Dispatcher, Task},
    unwind::wake_all,
    wait::{Place, Watched, WatchedGuard},
};

pub(crate) struct GroupState {
    pub(crate) name: Arc<str>,
    dispatcher: Weak<dyn Dispatcher>,
    pub(crate) at_shutdown: Option<ShutdownPolicy>,
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
        self.0.change(|roll| roll.end.joining -= 1);
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

    pub(crate) fn belongs_to<D: Dispatcher>(&self, dispatcher: &Arc<D>) -> bool {
        std::ptr::addr_eq(self.dispatcher.as_ptr(), Arc::as_ptr(dispatcher))
    }

    /// Locks the group, to read it, or to change what gives no other member its turn.
    pub(crate) fn roll(&self) -> WatchedGuard<'_, Roll> {
        self.roll.lock()
    }

    /// Changes the group, under the lock of a member. Returns what remains to be done about it.
    pub(crate) fn step<R>(&self, change: impl FnOnce(&mut Roll) -> R) -> (R, Effects) {
        let mut roll = self.roll.lock();
        let answer = change(&mut roll);
        (answer, self.effects_of(roll))
    }

    fn effects_of(&self, mut roll: WatchedGuard<'_, Roll>) -> Effects {
        let (released, has_ended) = (roll.release(), roll.terminate());
        let wakers = if has_ended { roll.take_wakers() } else { Vec::new() };
        let dispatcher = (!released.is_empty()).then(|| Weak::clone(&self.dispatcher));
        Effects { dispatcher, released, wakers }
    }

    /// Changes the group, with no lock held, and lets the members go whose turn has come.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Roll) -> R) -> R {
        let (answer, effects) = self.step(change);
        effects.carry_out();
        answer
    }

    /// Begins a submission; `None` if the group was shut down.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Joining> {
        let mut roll = self.roll.lock();
        if roll.refuses_more() {
            return None;
        }
        roll.end.joining += 1;
        Some(Joining(Arc::clone(self)))
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
