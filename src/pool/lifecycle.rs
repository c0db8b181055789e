//! How far the pool has come, how many workers live, and who waits for the end.
//!
//! ```text
//!   Running ──▶ ShuttingDown ──▶ OwnerDropped ──▶ Stopping ──▶ Terminated
//! ```
//!
//! Phases may be left out, but there is no way back.
//!
//! The queue decides what is still let in; this counts and announces. The pool terminates when it
//! is at least shutting down, no worker lives, and no shutdown is under way: each takes a *hold*
//! when it moves the phase ([`advance`](Lifecycle::advance)) and gives it back
//! ([`release`](Lifecycle::release)) when the tasks it took out of the queue have ended. So
//! whoever has seen termination knows that no closure of the pool is alive any more.
//!
//! # Why no task is stranded
//!
//! A shutdown moves the phase *first* and closes the queue then. So whoever is refused finds the
//! pool shut down. And whoever is accepted has a worker: the queue was open, so no worker had
//! ended yet, and the pool could not have terminated. Workers are therefore started until
//! termination; one that is started too late finds the queue closed, and ends.
//!
//! A worker is started under the lock. Of several submitters at once each waits until the start
//! before it has succeeded or failed, so none relies on a worker that never came to be.

use std::{io, task::Waker, thread::JoinHandle};

use crate::{
    CancelReason,
    sync::{
        Mutex,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    unwind::discard,
    wait::WaitList,
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
    Terminated,
}

impl Phase {
    /// Why a task ends that a pool in this phase does not keep.
    pub(super) fn reason(self) -> CancelReason {
        match self {
            Self::Running | Self::ShuttingDown => CancelReason::Shutdown,
            Self::OwnerDropped => CancelReason::ExecutorDropped,
            Self::Stopping | Self::Terminated => CancelReason::ShutdownNow,
        }
    }
}

/// See the [module](self).
pub(crate) struct Lifecycle {
    inner: Mutex<Inner>,
    /// Copies of the phase and of the number of workers started, written under the lock, to be
    /// read without it.
    phase: AtomicU8,
    started: AtomicUsize,
}

/// What became of [`Lifecycle::start_worker`].
#[must_use]
pub(super) enum Start {
    /// There is one more.
    Started,
    /// There are enough, or there are to be none any more.
    NotNeeded,
    /// It failed, but there are others.
    Failed(io::Error),
    /// It failed, and there is none.
    None(io::Error),
}

struct Inner {
    phase: Phase,
    /// Every worker that was started, also one that has ended.
    threads: Vec<JoinHandle<()>>,
    live: usize,
    holds: usize,
    waiters: WaitList,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        let inner = Inner {
            phase: Phase::Running,
            threads: Vec::new(),
            live: 0,
            holds: 0,
            waiters: WaitList::default(),
        };
        Self {
            inner: Mutex::new(inner),
            phase: AtomicU8::new(Phase::Running as u8),
            started: AtomicUsize::new(0),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        // Ordering: see `Pool::policy_changed`.
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Running,
            1 => Phase::ShuttingDown,
            2 => Phase::OwnerDropped,
            3 => Phase::Stopping,
            _ => Phase::Terminated,
        }
    }

    /// How many workers live.
    pub(crate) fn live(&self) -> usize {
        self.inner.lock().live
    }

    /// How many workers have been started; perhaps one too few.
    #[inline]
    pub(super) fn started(&self) -> usize {
        // Ordering: only a hint that there are enough.
        self.started.load(Ordering::Relaxed)
    }

    /// Starts the next worker, by its number, unless there are as many as `wanted` or the pool has
    /// terminated.
    pub(super) fn start_worker(
        &self,
        wanted: usize,
        start: impl FnOnce(usize) -> io::Result<JoinHandle<()>>,
    ) -> Start {
        let mut inner = self.inner.lock();
        let number = inner.threads.len() + 1;
        if number > wanted || inner.phase == Phase::Terminated {
            return Start::NotNeeded;
        }
        match start(number) {
            Ok(thread) => {
                inner.threads.push(thread);
                inner.live += 1;
                // Ordering: as `started`.
                self.started.store(number, Ordering::Relaxed);
                Start::Started
            }
            Err(error) if number == 1 => Start::None(error),
            Err(error) => Start::Failed(error),
        }
    }

    /// The workers, to be joined.
    pub(super) fn take_threads(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.inner.lock().threads)
    }

    /// A worker has ended. Gives who waits, if that was the end.
    #[must_use]
    pub(super) fn leave(&self) -> Option<Vec<Waker>> {
        let mut inner = self.inner.lock();
        inner.live -= 1;
        self.try_terminate(&mut inner)
    }

    /// Moves on to `phase`, unless the pool is further already, and holds up termination.
    pub(super) fn advance(&self, phase: Phase) {
        let mut inner = self.inner.lock();
        inner.holds += 1;
        self.set(&mut inner, phase);
    }

    /// No longer holds up termination. Gives who waits, if that was the end.
    #[must_use]
    pub(super) fn release(&self) -> Option<Vec<Waker>> {
        let mut inner = self.inner.lock();
        inner.holds -= 1;
        self.try_terminate(&mut inner)
    }

    /// The poll of [`wait`](crate::wait): an answer once the pool has terminated.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<()> {
        if self.phase() == Phase::Terminated {
            return Some(());
        }
        let waker = waker.clone();
        let mut inner = self.inner.lock();
        let is_over = inner.phase == Phase::Terminated;
        let unused = if is_over { Some(waker) } else { inner.waiters.register(waker) };
        drop(inner);
        discard(unused);
        is_over.then_some(())
    }

    /// Forgets the waker of who no longer waits.
    pub(super) fn forget(&self, waker: &Waker) -> Option<Waker> {
        self.inner.lock().waiters.deregister(waker)
    }

    fn try_terminate(&self, inner: &mut Inner) -> Option<Vec<Waker>> {
        let is_end = inner.live == 0 && inner.holds == 0;
        if !is_end || matches!(inner.phase, Phase::Running | Phase::Terminated) {
            return None;
        }
        self.set(inner, Phase::Terminated);
        Some(inner.waiters.take())
    }

    fn set(&self, inner: &mut Inner, phase: Phase) {
        inner.phase = inner.phase.max(phase);
        // Ordering: see `Pool::policy_changed`.
        self.phase.store(inner.phase as u8, Ordering::SeqCst);
    }
}
