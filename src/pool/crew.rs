//! The crew: how many workers there are, how many there are to be, and who may start one.
//!
//! ```text
//!             turn, hire             the factory says yes
//!   nobody ────────────▶ tentative ───────────────────────▶ settled ──▶ dismissed
//!                            └──────────────────────────────────────────────▲
//!                             the factory says no, or drops the worker
//! ```
//!
//! # Starting
//!
//! The thread factory is foreign code, so no lock is held while it works. In its place there is a
//! *turn*: one thread at a time starts a worker, and others who want one wait for their turn. So
//! nobody relies on a worker that never comes to be: what others see from outside the lock is
//! the number of **settled** workers, those whose start has succeeded.
//!
//! # Going
//!
//! A worker is *surplus* if there are more than the core pool size, or if core threads may time
//! out. One that has been surplus and idle for the keep-alive asks to [retire](Crew::retire). The
//! last one must not leave a task behind, and a submission must not rely on one who is leaving.
//! So each writes first what the other reads:
//!
//! | who submits | the last worker |
//! |---|---|
//! | 1. puts the task into the queue | 1. says that there is no settled worker |
//! | 2. reads the number of settled workers; if zero, starts one | 2. looks into the queue; if there is a task, stays |
//!
//! The lock of a stripe orders the two: if the worker looks after the task came in it sees it, and
//! if it looked before, the submitter, who got that lock later, sees its zero. A last worker that
//! stays, because something waits, sleeps until that is due and not a keep-alive at a time; so an
//! idle pool makes no wake-ups, whatever its core size.

use std::{task::Waker, thread::JoinHandle, time::Duration};

use crate::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Desk, Tally},
    time::{Clock, saturating_nanos},
    unwind::{discard, wake_all},
    wait::{self, WaitList},
};

/// See the [module](self).
pub(crate) struct Crew {
    inner: Mutex<Inner>,
    /// How many workers can be relied on; written under the lock.
    settled: AtomicUsize,
    core: AtomicUsize,
    core_timeout: AtomicBool,
    /// In nanoseconds.
    keep_alive: AtomicU64,
}

#[derive(Default)]
struct Inner {
    live: usize,
    largest: usize,
    /// Somebody starts a thread.
    starting: bool,
    /// One of the live ones is not settled: it is being started.
    tentative: bool,
    /// How many have ever been hired.
    hired: usize,
    threads: Vec<JoinHandle<()>>,
    desks: Vec<Arc<Desk>>,
    /// What those did who have gone.
    retired: Tally,
    /// Who wants to start a thread as well.
    queue: WaitList,
}

/// The right to start a thread; ends with its drop.
pub(super) struct Turn<'a> {
    crew: &'a Crew,
    /// The largest size before this turn.
    largest: usize,
}

/// What [`Crew::count`] counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headcount {
    pub(super) live: usize,
    pub(super) largest: usize,
}

impl Inner {
    fn settled(&self) -> usize {
        self.live.saturating_sub(usize::from(self.tentative))
    }

    fn dismiss(&mut self, desk: &Arc<Desk>) {
        if let Some(index) = self.desks.iter().position(|other| Arc::ptr_eq(other, desk)) {
            self.desks.swap_remove(index);
            self.live -= 1;
            self.retired = self.retired.plus(desk.tally());
        }
    }
}

impl Crew {
    pub(super) fn new(core: usize, core_timeout: bool, keep_alive: Duration) -> Self {
        Self {
            inner: Mutex::default(),
            settled: AtomicUsize::new(0),
            core: AtomicUsize::new(core),
            core_timeout: AtomicBool::new(core_timeout),
            keep_alive: AtomicU64::new(saturating_nanos(keep_alive)),
        }
    }

    // Ordering: these four are settings, and nothing else hangs on them.

    pub(crate) fn core(&self) -> usize {
        self.core.load(Ordering::Relaxed)
    }

    pub(super) fn set_core(&self, size: usize) -> usize {
        self.core.swap(size, Ordering::Relaxed)
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_nanos(self.keep_alive.load(Ordering::Relaxed))
    }

    pub(crate) fn core_timeout(&self) -> bool {
        self.core_timeout.load(Ordering::Relaxed)
    }

    /// Sets when idle workers go. Whether it can be so: not if core threads would time out at
    /// once.
    pub(super) fn set_times(&self, keep_alive: Option<Duration>, timeout: Option<bool>) -> bool {
        let _inner = self.inner.lock();
        let keep_alive = keep_alive.unwrap_or_else(|| self.keep_alive());
        let timeout = timeout.unwrap_or_else(|| self.core_timeout());
        if timeout && keep_alive.is_zero() {
            return false;
        }
        self.keep_alive.store(saturating_nanos(keep_alive), Ordering::Relaxed);
        self.core_timeout.store(timeout, Ordering::Relaxed);
        true
    }

    // Who there is.

    /// How many workers can be relied on.
    #[inline]
    pub(super) fn settled(&self) -> usize {
        // Ordering: see the head of the module; the lock of a stripe orders it.
        self.settled.load(Ordering::Relaxed)
    }

    /// How many there are, with the one that is being started.
    pub(crate) fn live(&self) -> usize {
        self.inner.lock().live
    }

    pub(crate) fn largest(&self) -> usize {
        self.inner.lock().largest
    }

    /// Whether a worker may be surplus now.
    #[inline]
    pub(super) fn is_elastic(&self) -> bool {
        self.core_timeout() || self.settled() > self.core()
    }

    /// Whether only one can be relied on, or none.
    pub(super) fn has_one_at_most(&self) -> bool {
        self.settled() <= 1
    }

    /// Counts heads, and while nobody comes or goes lets `count` work, which can ask for the sum
    /// of what has been done.
    pub(super) fn count<R>(&self, count: impl FnOnce(&dyn Fn() -> Tally) -> R) -> (Headcount, R) {
        let inner = self.inner.lock();
        let tally = || inner.desks.iter().fold(inner.retired, |sum, desk| sum.plus(desk.tally()));
        let counted = count(&tally);
        (Headcount { live: inner.live, largest: inner.largest }, counted)
    }

    pub(super) fn desks(&self) -> Vec<Arc<Desk>> {
        self.inner.lock().desks.clone()
    }

    // Starting.

    /// The right to start a thread, as soon as nobody else has it. Nothing if that is not needed
    /// any more then: `is_needed` is asked with the number of live workers.
    pub(super) fn turn(&self, is_needed: impl Fn(usize) -> bool) -> Option<Turn<'_>> {
        // The system's clock: on a manual one a worker that waits here would count as idle.
        let clock = Clock::system();
        wait::block_on(&clock, |waker| self.poll_turn(waker, &is_needed))
    }

    fn poll_turn(
        &self,
        waker: &Waker,
        is_needed: impl Fn(usize) -> bool,
    ) -> Option<Option<Turn<'_>>> {
        let waker = waker.clone();
        let mut inner = self.inner.lock();
        let (turn, unused) = if !is_needed(inner.settled()) {
            (Some(None), Some(waker))
        } else if inner.starting {
            (None, inner.queue.register(waker))
        } else {
            inner.starting = true;
            (Some(Some(Turn { crew: self, largest: inner.largest })), Some(waker))
        };
        drop(inner);
        discard(unused);
        turn
    }

    // Going.

    /// Lets an idle worker go, if it is surplus. `has_work` is asked if it is the last.
    pub(super) fn retire(&self, desk: &Arc<Desk>, has_work: impl FnOnce() -> bool) -> bool {
        let mut inner = self.inner.lock();
        if !self.is_elastic() {
            return false;
        }
        if inner.settled() <= 1 {
            self.settled.store(0, Ordering::Relaxed);
            if has_work() {
                self.publish(&inner);
                return false;
            }
        }
        inner.dismiss(desk);
        self.publish(&inner);
        true
    }

    /// A worker has ended, or never began.
    pub(super) fn dismiss(&self, desk: &Arc<Desk>) {
        let mut inner = self.inner.lock();
        inner.dismiss(desk);
        self.publish(&inner);
    }

    /// The threads, to be joined.
    pub(super) fn take_threads(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.inner.lock().threads)
    }

    fn publish(&self, inner: &Inner) {
        self.settled.store(inner.settled(), Ordering::Relaxed);
    }
}

impl Turn<'_> {
    /// One worker more, tentatively. Gives its number and its desk.
    pub(super) fn hire(&self) -> (usize, Arc<Desk>) {
        let desk = Arc::new(Desk::default());
        let mut inner = self.crew.inner.lock();
        inner.hired += 1;
        inner.live += 1;
        inner.largest = inner.largest.max(inner.live);
        inner.tentative = true;
        inner.desks.push(Arc::clone(&desk));
        (inner.hired, desk)
    }

    /// The thread has been started.
    pub(super) fn succeed(self, thread: Option<JoinHandle<()>>) {
        let mut inner = self.crew.inner.lock();
        // Those that have gone need no join.
        let (gone, threads) = std::mem::take(&mut inner.threads)
            .into_iter()
            .partition::<Vec<_>, _>(JoinHandle::is_finished);
        inner.threads = threads;
        inner.threads.extend(thread);
        drop(inner);
        discard(gone);
    }

    /// The thread could not be started.
    pub(super) fn fail(self) {
        self.crew.inner.lock().largest = self.largest;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inner = self.crew.inner.lock();
        (inner.starting, inner.tentative) = (false, false);
        self.crew.publish(&inner);
        let waiting = inner.queue.take();
        drop(inner);
        wake_all(waiting);
    }
}
