//! The pool's phase, what holds up termination, what a shutdown keeps, and which threads act for the pool.
//!
//! ```text
//!   Running ──▶ ShuttingDown ──▶ OwnerDropped ──▶ Stopping ──▶ Tidying ──▶ Terminated
//! ```
//!
//! A pool may skip phases, but never goes back. The queue decides what is admitted; this module counts parties.
//!
//! Whatever must be over before termination is a *party*, as in Java's `Phaser`. Most parties are workers or shutdowns.
//! A worker is a party from the attempt to start it to its last step. A shutdown is one from the change of phase until
//! the tasks that it took out of the queue have ended or been returned to the caller. Once a shutdown has begun and the
//! queue is finished, the last party to deregister *tidies*: it calls the hook for termination, moves the pool to
//! `Terminated`, and wakes the waiters. So a thread that finds the pool terminated knows that the pool no longer holds
//! any task's closure, and that the hook has returned.
//!
//! A shutdown advances the phase *first* and then closes the queue. So a refused submission finds the pool shut down.
//! The queue is not finished, and the pool does not tidy, until each admitted task has been taken or removed.
//! [`workers`](crate::pool::workers) ensures that each of these tasks gets a worker.
//!
//! A shutdown with a deadline is over by its deadline. If something still holds up termination, the pool is *given up*:
//! it terminates when it can, and the owner's drop no longer waits for that. Other waits go on.
//!
//! [`deregister`](Lifecycle::deregister) holds the lock of this module while it checks whether the queue is finished.
//! For that check, the queue takes the locks of its ready list and of each stripe.
//!
//! # Threads that would wait for themselves
//!
//! Three kinds of threads must not wait for termination: a worker, a thread that ends tasks for the pool (in a
//! shutdown, say), and a thread that starts another for it. The second may end a task that owns the executor, whose
//! drop would wait; the third calls the thread factory, which is user code. A thread can act for several pools at the
//! same time, as when a task of one shuts down another. So each thread has a stack of [scopes](PoolScope) in a
//! thread-local: a few addresses, each valid for as long as its scope lives.
//!
//! When a thread ends, its scopes may be gone before it drops an executor that a thread-local owns. A wait for
//! termination on this thread is then not refused. It hangs only if the executor's drop cancels a task whose own drop
//! waits for the same pool.

use std::{cell::RefCell, ptr, task::Waker};

use crate::{
    CancelReason,
    feature::Keeps,
    sync::{
        atomic::{AtomicBool, AtomicU8, Ordering},
        rank, thread_local,
    },
    task::{current_task, is_releasing},
    wait::{Place, Watched},
};

/// The phase of a pool, which only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Entered by `Pool::shutdown`.
    ShuttingDown,
    /// Entered by `Pool::stop`, which the owner's drop calls by default.
    OwnerDropped,
    /// Entered by `Pool::shutdown_now`.
    Stopping,
    /// Everything has ended, and the hook for termination is being called.
    Tidying,
    Terminated,
}

impl Phase {
    /// Returns the reason for ending a task that a pool in this phase does not keep.
    pub(super) fn reason(self) -> CancelReason {
        match self {
            Self::Running => CancelReason::Rejected,
            Self::ShuttingDown => CancelReason::Shutdown,
            Self::OwnerDropped => CancelReason::ExecutorDropped,
            Self::Stopping | Self::Tidying | Self::Terminated => CancelReason::ShutdownNow,
        }
    }
}

pub(crate) struct Lifecycle {
    progress: Watched<Progress, { rank::OUTERMOST }>,
    /// A copy of the phase, written under the lock and read without it.
    phase: AtomicU8,
}

struct Progress {
    phase: Phase,
    parties: usize,
    /// True once a shutdown with a deadline has given up waiting for termination.
    is_given_up: bool,
}

impl Progress {
    fn is_abandoned(&self) -> bool {
        self.parties == 0 && Phase::Running < self.phase && self.phase < Phase::Tidying
    }
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        let progress = Progress { phase: Phase::Running, parties: 0, is_given_up: false };
        Self { progress: Watched::new(progress), phase: AtomicU8::new(Phase::Running as u8) }
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        // Ordering: see `Pool::set_policy`.
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Running,
            1 => Phase::ShuttingDown,
            2 => Phase::OwnerDropped,
            3 => Phase::Stopping,
            4 => Phase::Tidying,
            _ => Phase::Terminated,
        }
    }

    /// Registers a party, and advances to `phase` unless the pool is already past it.
    pub(super) fn advance(&self, phase: Phase) {
        let mut progress = self.progress.lock();
        progress.parties += 1;
        self.set(&mut progress, phase);
    }

    /// Registers a party, which has to call [`Pool::deregister`](super::Pool) when it is over. Returns `false`, and
    /// registers none, if the pool is tidying or has terminated.
    #[must_use]
    pub(crate) fn register(&self) -> bool {
        let mut progress = self.progress.lock();
        let is_in_time = progress.phase < Phase::Tidying;
        progress.parties += usize::from(is_in_time);
        is_in_time
    }

    /// Deregisters a party. Returns `true` if the caller has to call the hook for termination, and then
    /// [terminate](Self::terminate) the pool. `is_finished` is called **under the lock**.
    #[must_use]
    pub(super) fn deregister(&self, is_finished: impl FnOnce() -> bool) -> bool {
        let mut progress = self.progress.lock();
        progress.parties -= 1;
        let is_end = progress.is_abandoned() && is_finished();
        if is_end {
            self.set(&mut progress, Phase::Tidying);
        }
        is_end
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.progress.lock().is_abandoned()
    }

    /// Moves the pool to `Terminated`. Returns the wakers of all waiters, which the caller has to call.
    #[must_use]
    pub(super) fn terminate(&self) -> Vec<Waker> {
        let mut progress = self.progress.lock();
        self.set(&mut progress, Phase::Terminated);
        progress.take_wakers()
    }

    /// Marks the pool as given up, and wakes the waiters. Those that poll with `or_given_up` then stop waiting.
    pub(crate) fn give_up(&self) {
        let mut progress = self.progress.lock();
        progress.is_given_up = true;
        progress.wake_all();
    }

    /// Polls, as in [`wait`](crate::wait). Returns an answer once the pool has terminated or, with `or_given_up`, once
    /// it has been given up.
    pub(crate) fn poll_terminated(
        &self,
        place: &mut Place,
        waker: &Waker,
        or_given_up: bool,
    ) -> Option<()> {
        self.progress.poll(place, waker, |now| {
            let is_over = now.phase == Phase::Terminated || or_given_up && now.is_given_up;
            is_over.then_some(())
        })
    }

    pub(crate) fn forget(&self, place: &mut Place) {
        self.progress.forget(place);
    }

    fn set(&self, progress: &mut Progress, phase: Phase) {
        progress.phase = progress.phase.max(phase);
        // Ordering: see `Pool::set_policy`.
        self.phase.store(progress.phase as u8, Ordering::SeqCst);
    }
}

/// Which tasks a shutdown keeps.
// Ordering: see `Pool::set_policy`. `has_exceptions` is set before a task is offered, so the queue's locks order it.
pub(crate) struct Policies {
    pub(crate) keep_delayed: AtomicBool,
    pub(crate) keep_periodic: AtomicBool,
    /// True once the pool has had a task that a shutdown cannot judge by its kind alone.
    has_exceptions: AtomicBool,
}

impl Policies {
    pub(super) fn new(keep_delayed: bool, keep_periodic: bool) -> Self {
        let [keep_delayed, keep_periodic, has_exceptions] =
            [keep_delayed, keep_periodic, false].map(AtomicBool::new);
        Self { keep_delayed, keep_periodic, has_exceptions }
    }

    pub(crate) fn note_exception(&self) {
        self.has_exceptions.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_exceptions(&self) -> bool {
        self.has_exceptions.load(Ordering::Relaxed)
    }

    /// Returns which tasks a pool in `phase` keeps; `None` for `Running`.
    pub(crate) fn kept_in(&self, phase: Phase) -> Option<Keeps> {
        match phase {
            Phase::Running => None,
            Phase::ShuttingDown => Some(self.keeps(phase.reason())),
            _ => Some(Keeps::none(phase.reason())),
        }
    }

    /// Returns which tasks the policies keep; all other tasks end with `reason`.
    pub(crate) fn keeps(&self, reason: CancelReason) -> Keeps {
        let [delayed, periodic] =
            [&self.keep_delayed, &self.keep_periodic].map(|keep| keep.load(Ordering::SeqCst));
        Keeps { any: true, delayed, periodic, reason }
    }
}

thread_local! {
    /// The pools that the thread acts for, by the addresses of their lifecycles, and its role in each.
    static SCOPES: RefCell<Vec<(usize, Role)>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Worker,
    /// The thread shuts the pool down, ends tasks that no worker would take, terminates the pool, or expires limits.
    Stopper,
    /// The thread calls the pool's thread factory.
    Starter,
}

/// Until this is dropped, the thread that made it acts for a pool in one role. The same thread has to drop it.
pub(crate) struct PoolScope((usize, Role));

impl Drop for PoolScope {
    fn drop(&mut self) {
        // Usually the last one, but a [driver](super::driver) may leave when other scopes have been entered since.
        let _ = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            if let Some(index) = scopes.iter().rposition(|scope| *scope == self.0) {
                scopes.remove(index);
            }
        });
    }
}

impl Lifecycle {
    #[inline(never)]
    pub(crate) fn enter(&self, role: Role) -> PoolScope {
        let scope = (ptr::from_ref(self) as usize, role);
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().push(scope));
        PoolScope(scope)
    }

    #[inline(never)]
    pub(crate) fn has_caller_as(&self, role: Role) -> bool {
        self.has_caller(|own| own == role)
    }

    /// Returns `true` if the calling thread acts for the pool in any role: while it waits, the pool cannot terminate.
    pub(crate) fn would_wait_for_itself(&self) -> bool {
        self.has_caller(|_| true)
    }

    fn has_caller(&self, is_meant: impl Fn(Role) -> bool) -> bool {
        let own = ptr::from_ref(self) as usize;
        let is_own = |&(address, role): &(usize, Role)| address == own && is_meant(role);
        SCOPES.try_with(|scopes| scopes.borrow().iter().any(is_own)).unwrap_or(false)
    }
}

/// Returns `true` if the calling thread acts for any pool, runs a task, is dropping values of a task that it has ended,
/// or is itself ending. Such a thread must not share its work: a wait that is refused on it might hang on another.
pub(super) fn acts_for_a_pool() -> bool {
    let is_in_scope = SCOPES.try_with(|scopes| !scopes.borrow().is_empty());
    is_in_scope.unwrap_or(true) || is_releasing() || current_task().is_some()
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
    fn the_last_party_tidies() {
        let lifecycle = Lifecycle::new();
        assert!(lifecycle.register());
        assert!(!lifecycle.deregister(|| true), "it runs");
        assert!(lifecycle.register());
        lifecycle.advance(Phase::ShuttingDown);
        assert!(!lifecycle.deregister(|| true), "the shutdown is a party");
        assert!(!lifecycle.deregister(|| false), "something is left in the queue");
        assert!(lifecycle.register());
        assert!(lifecycle.deregister(|| true));
        assert_eq!(lifecycle.phase(), Phase::Tidying);
        assert!(!lifecycle.register(), "it is too late");
        lifecycle.advance(Phase::Stopping);
        assert!(!lifecycle.deregister(|| true), "one tidies already");
    }

    #[test]
    fn who_waits_is_told_of_the_end_and_not_before() {
        let (lifecycle, parker, mut place) =
            (Lifecycle::new(), Parker::current(), Place::default());
        let mut poll = || lifecycle.poll_terminated(&mut place, parker.waker(), false);
        lifecycle.advance(Phase::Tidying);
        assert_eq!(poll(), None, "the hook is still to be called");
        assert_eq!(lifecycle.terminate().len(), 1);
        assert_eq!(poll(), Some(()));
        assert!(lifecycle.terminate().is_empty());
    }
}
