//! The crew: how many workers there are, how many there are to be, and who may start one.
//!
//! ```text
//!             turn, hire          begins, or the factory says yes
//!   nobody ────────────▶ tentative ────────────────────────────▶ settled ──▶ dismissed
//!                            └───────────────────────────────────────────────▲
//!                             the factory says no, or drops the worker
//! ```
//!
//! # Starting
//!
//! The thread factory is user code, so no lock is held while it works. In its place there is a
//! *turn*: one thread at a time starts a worker, and others who want one wait for their turn. So
//! nobody relies on a worker that never comes to be: what others see is the number of **settled**
//! workers, those that have begun, or whose factory has said that they will. A worker that works
//! is settled, whatever its factory is doing meanwhile; so every worker that looks whether it is
//! surplus is counted itself. If there are too many now, those who looked before it came look again
//! ([`Crew::settle`]).
//!
//! # The rule
//!
//! > A task that is due never waits beside a worker that the pool may have.
//!
//! A pool may have as many workers as its core size says, but at least one: so many are *wanted*. A
//! settled worker that waits for a task to take is *idle*, as the queue knows. One that is *coming*
//! has not looked for one yet: it is new, or puts a periodic task back. The rule holds if this does
//! whenever nobody is in the middle of one of the steps below:
//!
//! > If a task waits, somebody is idle, is coming or is being started, or as many are settled as are
//! > wanted.
//!
//! For the queue sees to it that somebody who is idle wakes up in time. (A start that fails is the
//! one exception: whoever tried goes on, and the next step tries again.) It is kept by those who
//! could break it:
//!
//! * *A submitter* starts a worker first, unless there are as many as are wanted. When the task is
//!   in the queue it looks again: others may have gone, or the new one has found something else.
//! * *An idle worker that takes an entry* looks at what it leaves behind, before it runs it. If
//!   nobody else is idle or coming, it starts a worker (`Pool::relieve`). So does one that was coming.
//!   Another that finds the next entry at once need not: nobody has relied on it.
//! * *An idle worker that goes* leaves somebody idle behind if something waits. That is more than
//!   is needed: for two tasks two stay, so that with two beats no thread comes and goes.
//! * *A worker that puts a periodic task back* looks for a task itself, as the next thing it does. It
//!   says so before: else another might start a worker for that task.
//! * *Whoever enlarges the core* starts workers for the tasks that wait.
//! * *A wait for a task* is refused only if no worker can be started for that (`joins`).
//!
//! None of this asks whether the queue is closed: what a shutdown has left is due as well.
//!
//! # Going
//!
//! A worker is *surplus* if there are more than the core pool size, or if core threads may time
//! out. One that has been surplus and idle for the keep-alive asks whether it [may
//! go](Crew::may_go). If there are more than are wanted it may. Else it must not leave a task behind,
//! and a submission must not rely on one who is leaving. So each writes first what the other reads:
//!
//! | who submits | who goes |
//! |---|---|
//! | 1. puts the task into the queue | 1. says that there is one settled worker less |
//! | 2. reads the number of settled workers; if too few, looks | 2. counts tasks and idle workers; if it has to, stays |
//!
//! The lock of a stripe orders the two: if the worker looks after the task came in it sees it, and
//! if it looked before, the submitter, who got that lock later, sees that it has gone. The same
//! between one who takes and one who goes:
//!
//! | who takes | who goes |
//! |---|---|
//! | 1. is no longer idle | 1. says that there is one settled worker less |
//! | 2. reads the number of settled workers; if too few, looks | 2. counts idle workers; if too few, stays |
//!
//! These four are sequentially consistent: one of the two sees the other. A worker asks while the
//! queue knows it as one that waits, so nobody starts another only because this one asks. If it goes
//! it leaves the queue under the crew's lock, so nobody who counts takes it for idle any more.
//!
//! *To look* is to take the crew's lock and to count who is idle, coming or being started
//! ([`Crew::turn_to_relieve`]). Of two that take at once the one who leaves the queue later sees the
//! other gone, and of two that look the first has the turn, which the second sees. Nobody waits for
//! the turn with an entry in its hands: the thread that has it may be one that starts no worker, or
//! its worker may have found something already. So whoever has had a turn looks when that is over.
//!
//! A worker that is coming says under the crew's lock that it has looked. Then the queue knows that
//! it waits, or it is one that takes.
//!
//! Settings are changed under the crew's lock. Who goes reads them under it; who submits reads them
//! when its task is in the queue, where the one who makes the core larger looks after that.
//!
//! # Staying
//!
//! A worker that stays because something waits sleeps until that is due, and not a keep-alive at a
//! time; so an idle pool makes no wake-ups, whatever its core size. How it comes to go when nothing
//! waits any more: [`staying`].

mod staying;
mod threads;

use std::{collections::BTreeMap, task::Waker, time::Duration};

use self::{
    staying::{Reason, Staying},
    threads::Threads,
};
use crate::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        is_finished, rank,
        thread::JoinHandle,
    },
    task::{Totals, WorkerStats},
    time::{Clock, saturating_nanos},
    unwind::{discard, wake_all},
    wait::{self, WaitList},
};

/// See the [module](self).
pub(crate) struct Crew {
    inner: Mutex<Inner, { rank::OUTERMOST }>,
    /// How many workers can be relied on; written under the lock.
    settled: AtomicUsize,
    /// Written under the lock.
    core: AtomicUsize,
    core_timeout: AtomicBool,
    /// In nanoseconds.
    keep_alive: AtomicU64,
    staying: Staying,
}

#[derive(Default)]
struct Inner {
    /// One for each worker that lives, or is being started, by its number.
    seats: BTreeMap<usize, Seat>,
    /// How many of these are settled.
    settled: usize,
    /// How many of the settled ones are coming, and have not looked for a task yet.
    coming: usize,
    /// The most that have ever been settled.
    largest: usize,
    /// Somebody starts a thread.
    starting: bool,
    /// How many have ever been hired.
    hired: usize,
    threads: Threads<JoinHandle<()>>,
    /// What those did who have gone.
    retired: Totals,
    /// Who wants to start a thread as well.
    queue: WaitList,
}

struct Seat {
    stats: Arc<WorkerStats>,
    is_settled: bool,
    /// Whether it is about to look for a task: new, or back from one that it has put back.
    is_coming: bool,
}

/// The right to start a thread; ends with its drop.
pub(super) struct Turn<'a> {
    crew: &'a Crew,
}

/// What [`Crew::count`] counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headcount {
    pub(super) settled: usize,
    pub(super) largest: usize,
}

/// What an idle worker is told that asks whether it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer<L> {
    Stay,
    /// When it has been idle for long enough.
    Later,
    /// It has left.
    Gone(L),
}

/// What a worker that has nothing to do sees of the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// How many workers wait for a task to end.
    pub(super) joined: usize,
    /// How many other workers wait for a task to take.
    pub(super) idle: usize,
    /// How many tasks wait.
    pub(super) pending: usize,
}

impl Inner {
    /// Whether the worker was not settled before, and is there.
    fn settle(&mut self, number: usize) -> bool {
        let Some(seat) = self.seats.get_mut(&number) else { return false };
        if std::mem::replace(&mut seat.is_settled, true) {
            return false;
        }
        self.settled += 1;
        self.coming += 1;
        self.largest = self.largest.max(self.settled);
        true
    }

    fn set_coming(&mut self, number: usize, is_coming: bool) {
        if let Some(seat) = self.seats.get_mut(&number).filter(|seat| seat.is_settled) {
            let was_coming = std::mem::replace(&mut seat.is_coming, is_coming);
            self.coming = self.coming + usize::from(is_coming) - usize::from(was_coming);
        }
    }

    fn dismiss(&mut self, number: usize) {
        if let Some(seat) = self.seats.remove(&number) {
            self.settled -= usize::from(seat.is_settled);
            self.coming -= usize::from(seat.is_settled && seat.is_coming);
            self.retired = self.retired.plus(seat.stats.totals());
        }
    }

    /// Whether somebody is coming to look for a task, or is being started for that.
    fn is_somebody_coming(&self) -> bool {
        self.starting || self.seats.len() > self.settled || self.coming > 0
    }

    fn worker_stats(&self) -> impl Iterator<Item = &Arc<WorkerStats>> {
        self.seats.values().map(|seat| &seat.stats)
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
            staying: Staying::default(),
        }
    }

    // Ordering: settings, which are changed under the lock; who decides by them has it, or asks
    // again when the queue's locks have ordered it after the change.

    #[inline]
    pub(crate) fn core(&self) -> usize {
        self.core.load(Ordering::Relaxed)
    }

    /// How many workers there may be, as long as there is work for them.
    #[inline]
    pub(super) fn wanted(&self) -> usize {
        self.core().max(1)
    }

    pub(super) fn set_core(&self, size: usize) -> usize {
        let _inner = self.inner.lock();
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
        // Ordering: see the head of the module.
        self.settled.load(Ordering::SeqCst)
    }

    /// The same, not in the middle of a worker's making up its mind to go.
    pub(crate) fn size(&self) -> usize {
        self.inner.lock().settled
    }

    /// How many there are, with those that are being started.
    pub(super) fn live(&self) -> usize {
        self.inner.lock().seats.len()
    }

    pub(crate) fn largest(&self) -> usize {
        self.inner.lock().largest
    }

    /// Whether a worker may be surplus now.
    #[inline]
    pub(super) fn is_elastic(&self) -> bool {
        self.core_timeout() || self.settled() > self.core()
    }

    /// Counts heads, and while nobody comes or goes lets `count` work, which can ask for the sum
    /// of what has been done.
    pub(super) fn count<R>(&self, count: impl FnOnce(&dyn Fn() -> Totals) -> R) -> (Headcount, R) {
        let inner = self.inner.lock();
        let totals =
            || inner.worker_stats().map(|stats| stats.totals()).fold(inner.retired, Totals::plus);
        let counted = count(&totals);
        (Headcount { settled: inner.settled, largest: inner.largest }, counted)
    }

    pub(super) fn worker_stats(&self) -> Vec<Arc<WorkerStats>> {
        self.inner.lock().worker_stats().map(Arc::clone).collect()
    }

    // Starting.

    /// The right to start a thread, as soon as nobody else has it. Nothing if that is not needed
    /// any more then: `is_needed` is asked with the number of settled workers.
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
        let (turn, unused) = if !is_needed(inner.settled) {
            (Some(None), Some(waker))
        } else if inner.starting {
            (None, inner.queue.register(waker))
        } else {
            inner.starting = true;
            (Some(Some(Turn { crew: self })), Some(waker))
        };
        drop(inner);
        discard(unused);
        turn
    }

    /// The right to start a worker for a task for which nobody will come: if the pool may have one
    /// more, and nobody is coming who will look. `is_left` says whether there is such a task, and
    /// nobody idle.
    pub(super) fn turn_to_relieve(&self, is_left: impl FnOnce() -> bool) -> Option<Turn<'_>> {
        let mut inner = self.inner.lock();
        let is_full = inner.settled >= self.wanted();
        if is_full || inner.is_somebody_coming() || !is_left() {
            return None;
        }
        inner.starting = true;
        Some(Turn { crew: self })
    }

    /// A worker can be relied on from now on: it has begun, or its factory has said that it will.
    /// Whether that makes a difference to others who are idle: there are too many now, or one that
    /// stayed because all others waited for tasks need not.
    pub(super) fn settle(&self, number: usize) -> bool {
        let mut inner = self.inner.lock();
        if !inner.settle(number) {
            return false;
        }
        self.publish(&inner);
        let is_surplus = inner.settled > self.core();
        // Perhaps there are enough now.
        let waiting = inner.queue.take();
        drop(inner);
        wake_all(waiting);
        is_surplus | self.staying.ends_beside_joins()
    }

    /// A worker has looked for a task: from now on the queue knows whether it is idle.
    pub(super) fn has_looked(&self, number: usize) {
        self.inner.lock().set_coming(number, false);
    }

    /// A worker that has run a task will look for the next at once.
    pub(super) fn turn_back(&self, number: usize) {
        self.inner.lock().set_coming(number, true);
    }

    // Going.

    /// Whether an idle worker may go when it has been idle for long enough; if that `is_over` it
    /// goes, and leaves the queue in the same step. If it may not that is noted, for who changes
    /// what it has seen.
    pub(super) fn may_go<L>(
        &self,
        number: usize,
        is_over: bool,
        look: impl FnOnce() -> Outlook,
        leave: impl FnOnce() -> L,
    ) -> Answer<L> {
        let mut inner = self.inner.lock();
        if !self.core_timeout() && inner.settled <= self.core() {
            return Answer::Stay;
        }
        let others = inner.settled.saturating_sub(1);
        if is_over && others < self.wanted() {
            // Ordering: see the head of the module.
            self.settled.store(others, Ordering::SeqCst);
        }
        let noted = self.staying.suspect();
        let reason = self.reason_to_stay(&inner, look());
        self.staying.note(noted, reason);
        let answer = match reason {
            Some(_) => Answer::Stay,
            None if is_over => {
                inner.dismiss(number);
                Answer::Gone(leave())
            }
            None => Answer::Later,
        };
        if is_over {
            self.publish(&inner);
        }
        answer
    }

    /// Why an idle worker has to stay, if it has.
    fn reason_to_stay(&self, inner: &Inner, outlook: Outlook) -> Option<Reason> {
        let Outlook { joined, idle, pending } = outlook;
        let others = inner.settled.saturating_sub(1);
        if joined > 0 && others <= joined {
            Some(Reason::Joins)
        } else if others >= self.wanted() || idle >= pending.min(staying::MOST) {
            None
        } else {
            Some(Reason::Tasks { more_than: idle })
        }
    }

    /// Who stays until there are fewer tasks, or until not all others wait for some.
    pub(super) fn staying(&self) -> &Staying {
        &self.staying
    }

    /// A worker has ended, or never began.
    pub(super) fn dismiss(&self, number: usize) {
        let mut inner = self.inner.lock();
        inner.dismiss(number);
        self.publish(&inner);
    }

    /// The threads, to be joined.
    pub(super) fn take_threads(&self) -> Vec<JoinHandle<()>> {
        self.inner.lock().threads.take()
    }

    fn publish(&self, inner: &Inner) {
        // Ordering: see the head of the module.
        self.settled.store(inner.settled, Ordering::SeqCst);
    }
}

impl Turn<'_> {
    /// One worker more, tentatively. Gives its number and its statistics.
    pub(super) fn hire(&self) -> (usize, Arc<WorkerStats>) {
        let stats = Arc::new(WorkerStats::default());
        let seat = Seat { stats: Arc::clone(&stats), is_settled: false, is_coming: true };
        let mut inner = self.crew.inner.lock();
        inner.hired += 1;
        let number = inner.hired;
        inner.seats.insert(number, seat);
        (number, stats)
    }

    /// The thread has been started.
    pub(super) fn succeed(self, thread: Option<JoinHandle<()>>) {
        let mut inner = self.crew.inner.lock();
        let gone = inner.threads.add(thread, is_finished);
        drop(inner);
        discard(gone);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inner = self.crew.inner.lock();
        inner.starting = false;
        let waiting = inner.queue.take();
        drop(inner);
        wake_all(waiting);
    }
}

#[cfg(test)]
mod tests;
