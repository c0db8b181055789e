//! How far the pool has come, what still holds it up, and who waits for the end.
//!
//! ```text
//!   Running ──▶ ShuttingDown ──▶ OwnerDropped ──▶ Stopping ──▶ Tidying ──▶ Terminated
//! ```
//!
//! Phases may be left out, but there is no way back.
//!
//! The queue decides what is still let in; this counts and announces. Whatever must be over before
//! the end takes a *hold* and gives it back: each worker, from the attempt to start it to its last
//! step, and each shutdown, from moving the phase until the tasks it took out of the queue have
//! ended. The last one to give its hold back, when the pool is at least shutting down and the
//! queue is finished, *tidies*: it calls the hook for the end, says that the pool has terminated,
//! and wakes who waits. So whoever has seen termination knows that no closure of the pool is alive
//! any more, and that the hook has returned.
//!
//! # Why no task is stranded
//!
//! A shutdown moves the phase *first* and closes the queue then. So whoever is refused finds the
//! pool shut down. And whoever is accepted is seen: the queue is finished only when his task has
//! been taken or removed, and the pool does not tidy before. That somebody comes for the task is
//! the affair of the [`crew`](super::crew).

use std::task::Waker;

use crate::{
    CancelReason,
    sync::{
        Mutex,
        atomic::{AtomicU8, Ordering},
        rank,
    },
    unwind::discard,
    wait::{Place, WaitList},
};

/// How far the pool has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// By `shutdown` or `close`.
    ShuttingDown,
    /// By the owner's drop.
    OwnerDropped,
    /// By `shutdown_now`.
    Stopping,
    /// Everything has ended; the hook for it is called.
    Tidying,
    Terminated,
}

impl Phase {
    /// Why a task ends that a pool in this phase does not keep. One that runs keeps all it has
    /// room for.
    pub(super) fn reason(self) -> CancelReason {
        match self {
            Self::Running => CancelReason::Rejected,
            Self::ShuttingDown => CancelReason::Shutdown,
            Self::OwnerDropped => CancelReason::ExecutorDropped,
            Self::Stopping | Self::Tidying | Self::Terminated => CancelReason::ShutdownNow,
        }
    }
}

/// See the [module](self).
pub(crate) struct Lifecycle {
    inner: Mutex<Inner, { rank::OUTERMOST }>,
    /// A copy of the phase, written under the lock, to be read without it.
    phase: AtomicU8,
}

struct Inner {
    phase: Phase,
    holds: usize,
    waiters: WaitList,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        let inner = Inner { phase: Phase::Running, holds: 0, waiters: WaitList::default() };
        Self { inner: Mutex::new(inner), phase: AtomicU8::new(Phase::Running as u8) }
    }

    pub(crate) fn phase(&self) -> Phase {
        // Ordering: see `Pool::policy_changed`.
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Running,
            1 => Phase::ShuttingDown,
            2 => Phase::OwnerDropped,
            3 => Phase::Stopping,
            4 => Phase::Tidying,
            _ => Phase::Terminated,
        }
    }

    /// Moves on to `phase`, unless the pool is further already, and holds up termination.
    pub(super) fn advance(&self, phase: Phase) {
        let mut inner = self.inner.lock();
        inner.holds += 1;
        self.set(&mut inner, phase);
    }

    /// Holds up termination, unless it has come.
    #[must_use]
    pub(super) fn hold(&self) -> bool {
        let mut inner = self.inner.lock();
        let is_in_time = inner.phase < Phase::Tidying;
        inner.holds += usize::from(is_in_time);
        is_in_time
    }

    /// Gives a hold back. Whether the caller is to tidy and then to [terminate](Self::terminate).
    #[must_use]
    pub(super) fn release(&self, is_finished: impl FnOnce() -> bool) -> bool {
        let mut inner = self.inner.lock();
        inner.holds -= 1;
        let is_stopping = Phase::Running < inner.phase && inner.phase < Phase::Tidying;
        let is_end = inner.holds == 0 && is_stopping && is_finished();
        if is_end {
            self.set(&mut inner, Phase::Tidying);
        }
        is_end
    }

    /// The end. Gives who waits for it.
    #[must_use]
    pub(super) fn terminate(&self) -> Vec<Waker> {
        let mut inner = self.inner.lock();
        self.set(&mut inner, Phase::Terminated);
        inner.waiters.take()
    }

    /// The poll of [`wait`](crate::wait): an answer once the pool has terminated.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<()> {
        self.poll_with(waker, WaitList::register)
    }

    /// The same for a future, which has a place of its own on the list.
    pub(crate) fn poll_at(&self, place: &mut Option<Place>, waker: &Waker) -> Option<()> {
        self.poll_with(waker, |waiters, waker| waiters.register_at(place, waker))
    }

    fn poll_with(
        &self,
        waker: &Waker,
        register: impl FnOnce(&mut WaitList, Waker) -> Option<Waker>,
    ) -> Option<()> {
        if self.phase() == Phase::Terminated {
            return Some(());
        }
        let waker = waker.clone();
        let mut inner = self.inner.lock();
        let is_over = inner.phase == Phase::Terminated;
        let unused = if is_over { Some(waker) } else { register(&mut inner.waiters, waker) };
        drop(inner);
        discard(unused);
        is_over.then_some(())
    }

    /// Forgets the waker of who no longer waits.
    pub(super) fn forget(&self, waker: &Waker) -> Option<Waker> {
        self.inner.lock().waiters.deregister(waker)
    }

    /// A future no longer waits.
    pub(crate) fn leave(&self, place: &mut Option<Place>) {
        if place.is_some() {
            let left = self.inner.lock().waiters.leave(place);
            discard(left);
        }
    }

    fn set(&self, inner: &mut Inner, phase: Phase) {
        inner.phase = inner.phase.max(phase);
        // Ordering: see `Pool::policy_changed`.
        self.phase.store(inner.phase as u8, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Parker;

    const PHASES: [Phase; 6] = [
        Phase::Running,
        Phase::ShuttingDown,
        Phase::OwnerDropped,
        Phase::Stopping,
        Phase::Tidying,
        Phase::Terminated,
    ];

    #[test]
    fn there_is_no_way_back() {
        for (from, to) in PHASES.into_iter().flat_map(|from| PHASES.map(|to| (from, to))) {
            let lifecycle = Lifecycle::new();
            lifecycle.advance(from);
            assert_eq!(lifecycle.phase(), from);
            lifecycle.advance(to);
            assert_eq!(lifecycle.phase(), from.max(to));
        }
    }

    #[test]
    fn the_reason_is_the_hardest_way_to_stop_so_far() {
        use CancelReason::{ExecutorDropped, Rejected, Shutdown, ShutdownNow};
        let expected = [Rejected, Shutdown, ExecutorDropped, ShutdownNow, ShutdownNow, ShutdownNow];
        assert_eq!(PHASES.map(Phase::reason), expected);
    }

    #[test]
    fn the_last_who_holds_it_up_tidies() {
        let lifecycle = Lifecycle::new();
        assert!(lifecycle.hold());
        assert!(!lifecycle.release(|| true), "it runs");
        assert!(lifecycle.hold());
        lifecycle.advance(Phase::ShuttingDown);
        assert!(!lifecycle.release(|| true), "the shutdown holds it up");
        assert!(!lifecycle.release(|| false), "something is left in the queue");
        assert!(lifecycle.hold());
        assert!(lifecycle.release(|| true));
        assert_eq!(lifecycle.phase(), Phase::Tidying);
        assert!(!lifecycle.hold(), "it is too late");
        lifecycle.advance(Phase::Stopping);
        assert!(!lifecycle.release(|| true), "one tidies already");
    }

    #[test]
    fn who_waits_is_told_of_the_end_and_not_before() {
        let (lifecycle, parker) = (Lifecycle::new(), Parker::current());
        let waker = parker.waker();
        assert_eq!(lifecycle.poll(waker), None);
        assert!(lifecycle.forget(waker).is_some());
        assert!(lifecycle.forget(waker).is_none());
        lifecycle.advance(Phase::Tidying);
        assert_eq!(lifecycle.poll(waker), None, "the hook is still to be called");
        assert_eq!(lifecycle.terminate().len(), 1);
        assert_eq!(lifecycle.poll(waker), Some(()));
        assert!(lifecycle.terminate().is_empty());
    }
}
