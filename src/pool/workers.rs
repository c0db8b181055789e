//! The workers of a pool: how many there are, how many it may have, and which thread may start one.
//!
//! ```text
//!            permit, add_worker      begins, or the factory returns Ok
//!   absent ────────────────▶ starting ──────────────────────────────▶ started ──▶ removed
//!                                └───────────────────────────────────────────────▲
//!                                 the factory fails, or drops the worker
//! ```
//!
//! # Starting
//!
//! The thread factory is user code, so a thread that calls it holds no lock. In place of a lock there is a *permit*:
//! one thread at a time starts a worker, and a submission that needs a worker waits for the permit. Threads rely only
//! on **started** workers: those that have begun, or for which the factory has returned `Ok`. A running worker counts
//! as started even if the factory has yet to return, so every worker that checks whether it is surplus is itself
//! counted. If a newly counted worker is one too many, the idle workers check again ([`Workers::mark_started`]).
//!
//! # The rule
//!
//! > A task that is due never waits while the pool may have another worker.
//!
//! A pool may have as many workers as its core size, or one if that is 0: that many are *wanted*. A started worker that
//! waits for a task to take is *idle*, and the queue counts it. A worker is *about to search* if it has yet to search
//! the queue: it is new, or it is queuing a task again. The queue ensures that an idle worker wakes up on time. The
//! rule follows from this invariant, which holds except while a thread is in one of the steps below:
//!
//! > While a task is pending, all wanted workers have started, or a worker is idle, about to search or being started.
//!
//! Each step that can break the invariant restores it (*to look* is defined below):
//!
//! * *A submission* starts a worker first, unless as many have started as are wanted. Once it has queued the task, it
//!   looks: by then other workers may have retired, or the new one may have taken another task.
//! * *A worker that takes an entry*, if it was idle or about to search, looks before it runs the task. If tasks are
//!   left and no other worker is idle or about to search, the worker starts another (`Pool::compensate`). A worker that
//!   was neither, because it found the entry at once, need not look: no thread has relied on it.
//! * *An idle worker that retires* leaves as many started workers as are wanted, or else enough idle ones: at least one
//!   if one task is pending, and two if several are. The rule needs only one idle worker; but without a second, a pool
//!   with two periodic tasks would start and end a thread at every run.
//! * *A worker that queues a task again* then searches for another. It announces this first, so that no other thread
//!   starts a worker for that task.
//! * *A thread that enlarges the core* starts workers for the pending tasks.
//! * *A thread that drops a worker* (perhaps one that a thread factory had kept) looks in two cases: the queue is
//!   closed by then, or all other workers are in an *unlimited wait*, such as one for a task to end.
//! * *A thread that shuts the pool down* closes the queue and then looks, if a worker was lost and none has started
//!   since.
//! * *A worker that begins an unlimited wait* first starts another if no worker would be left to run tasks. If none can
//!   be started, the wait is refused (`deadlock`).
//!
//! A failed start is the one exception: the thread that tried goes on, and the next step tries again. Once the queue is
//! closed there may be no next step. So if a start then fails and no worker is alive, the thread that tried ends the
//! remaining tasks, except those that are parked or never due. Workers take the same steps with a closed queue, because
//! tasks that a shutdown has kept still fall due.
//!
//! # Retiring
//!
//! A worker is *surplus* if more workers have started than the core size allows, or if core threads may time out. A
//! surplus worker that is idle asks whether it may retire ([`Workers::try_retire`]), and if so retires after the
//! keep-alive. It may retire if more workers have started than are wanted, unless all others are in an unlimited wait.
//! If no more workers have started than are wanted, the surplus worker must not leave a task behind, and no thread may
//! rely on that worker while it leaves. Each side writes before it reads ([`queue::waiters`](crate::queue)):
//!
//! | the submitter, or the worker that took a task | the retiring worker |
//! |---|---|
//! | 1. puts the task into the queue, or stops being idle | 1. lowers the number of started workers by one |
//! | 2. reads the number of started workers; if it is too small, looks | 2. counts tasks and idle workers; stays if it has to |
//!
//! A stripe's lock orders the submitter's steps; a worker that took a task has sequentially consistent steps. A worker
//! that asks whether it may retire still counts as waiting in the queue, so no other thread starts a worker in its
//! place. If it retires, it leaves the queue under the lock of this module, so no thread that counts under that lock
//! still counts it as idle.
//!
//! *To look* is to count, under the lock of this module, the workers that are idle, about to search or being started
//! ([`Workers::try_spawn_permit`]). If there are none while a task is pending, and the pool may have another worker,
//! the thread that looks starts one. Of two workers that take entries at the same time, the one that leaves the queue
//! later sees that the other has left; of two threads that look, the second sees the permit of the first. A thread that
//! has taken an entry does not wait for the permit: it leaves the other entries to the permit's holder. The holder may
//! have started no worker, so it looks once it has given the permit back. A worker reports under the lock of this
//! module that it is no longer about to search; by then the queue counts the worker as waiting, or the worker goes on
//! to look. [`retiring`] explains when a worker that had to stay may retire after all.
//!
//! # Settings
//!
//! Settings can change while workers run. A thread changes a setting under the lock of this module, and a retiring
//! worker reads the settings under that lock. A submission reads the core size once its task is queued, and a thread
//! that enlarges the core reads the queue's length after the change. The queue's locks ensure that at least one of them
//! sees what the other did. A thread that shrinks the core wakes the sleeping workers; those that are surplus then ask
//! whether they may retire.
//!
//! The lock protects everything in [`Roster`]. Under it, [`Workers::try_retire`], [`Workers::try_spawn_permit`] and
//! [`Workers::count`] call closures that use the queue while the number of workers is fixed (`docs/locks.md`).

mod retiring;

use std::{io, mem, time::Duration};

pub(super) use self::retiring::Awaited;
use self::retiring::{JoinRegistry, Staying};
#[cfg(all(test, loom))]
pub(super) use self::retiring::{PoolView, Retirement};
use super::keep;
use crate::{
    queue::DelayedWorkQueue,
    statistics::{Totals, WorkerStats},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        is_finished, rank,
        thread::{self, JoinHandle},
    },
    time::{Clock, saturating_nanos},
    trace,
    unwind::discard,
    wait::{self, Place, Watched},
};

#[derive(Default)]
pub(crate) struct Workers {
    /// The list of workers. Its waiters are the threads that wait for the permit.
    roster: Watched<Roster, { rank::OUTERMOST }>,
    /// A copy of `Roster::started`, written under the lock. May leave out a worker that is deciding whether to retire.
    started: AtomicUsize,
    core_size: AtomicUsize,
    core_timeout: AtomicBool,
    /// In nanoseconds.
    keep_alive: AtomicU64,
    staying: Staying,
    pub(super) joins: JoinRegistry,
}

#[derive(Default)]
struct Roster {
    /// The slots of all workers that are starting or have started, sorted by the workers' numbers.
    slots: Vec<WorkerSlot>,
    /// How many of the workers in `slots` have started.
    started: usize,
    /// The largest value that `started` has had.
    largest: usize,
    /// True while a thread has the [`SpawnPermit`].
    is_spawning: bool,
    /// True from the loss of a started worker, or of the only worker, until another starts. Meanwhile a due task may
    /// have no worker.
    is_short: bool,
    last_number: usize,
    /// The handles of the started threads that have not been joined or found to have ended.
    threads: Vec<JoinHandle<()>>,
    /// The totals of the workers that have been removed.
    retired: Totals,
}

struct WorkerSlot {
    number: usize,
    stats: Arc<WorkerStats>,
    has_started: bool,
    /// True for a new worker, and after each announcement of a search, until [`Workers::search_done`] is called.
    will_search: bool,
}

/// The right to start a thread. Only one thread at a time has this permit, and gives it back by dropping it.
pub(super) struct SpawnPermit<'a> {
    workers: &'a Workers,
}

impl Roster {
    fn index_of(&self, number: usize) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.number).ok()
    }

    /// Counts a worker as started. Returns `true` if it is on the roster and was not counted before.
    fn mark_started(&mut self, number: usize) -> bool {
        let Some(index) = self.index_of(number) else { return false };
        if mem::replace(&mut self.slots[index].has_started, true) {
            return false;
        }
        self.started += 1;
        self.largest = self.largest.max(self.started);
        self.is_short = false;
        true
    }

    fn set_will_search(&mut self, number: usize, will_search: bool) {
        if let Some(index) = self.index_of(number) {
            self.slots[index].will_search = will_search;
        }
    }

    fn remove(&mut self, number: usize) {
        if let Some(slot) = self.index_of(number).map(|index| self.slots.remove(index)) {
            self.started -= usize::from(slot.has_started);
            self.retired = self.retired.plus(slot.stats.totals());
        }
    }

    fn worker_stats(&self) -> impl Iterator<Item = &Arc<WorkerStats>> {
        self.slots.iter().map(|slot| &slot.stats)
    }
}

impl Workers {
    pub(super) fn new(core_size: usize, core_timeout: bool, keep_alive: Duration) -> Self {
        Self {
            core_size: AtomicUsize::new(core_size),
            core_timeout: AtomicBool::new(core_timeout),
            keep_alive: AtomicU64::new(saturating_nanos(keep_alive)),
            ..Self::default()
        }
    }

    // Counts.

    /// Reads the number of started workers without a lock. A worker that is deciding whether to retire may be left out.
    #[inline]
    pub(super) fn started(&self) -> usize {
        // Ordering: see the head of the module.
        self.started.load(Ordering::SeqCst)
    }

    /// Reads the exact number of started workers, under the lock.
    pub(crate) fn size(&self) -> usize {
        self.roster.lock().started
    }

    /// Returns the number of workers, including those that are starting.
    pub(super) fn live(&self) -> usize {
        self.roster.lock().slots.len()
    }

    /// Returns `true` if as many workers have started as are wanted.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.started() >= self.wanted()
    }

    /// Returns the error of a failed start if the pool has no started worker; otherwise only logs it.
    #[cold]
    pub(super) fn tolerate(&self, error: io::Error) -> io::Result<()> {
        if self.size() == 0 {
            return Err(error);
        }
        trace::spawn_failed(&error);
        Ok(())
    }

    #[inline]
    pub(super) fn may_have_surplus(&self) -> bool {
        self.core_timeout() || self.started() > self.core_size()
    }

    /// Returns the number of started workers, the largest number so far, and what `read` returns. `read` is called
    /// **under the lock**, with a function that adds up the totals of all workers.
    pub(crate) fn count<R>(
        &self,
        read: impl FnOnce(&dyn Fn() -> Totals) -> R,
    ) -> (usize, usize, R) {
        let roster = self.roster.lock();
        let totals =
            || roster.worker_stats().map(|stats| stats.totals()).fold(roster.retired, Totals::plus);
        let result = read(&totals);
        (roster.started, roster.largest, result)
    }

    pub(crate) fn worker_stats(&self) -> Vec<Arc<WorkerStats>> {
        self.roster.lock().worker_stats().map(Arc::clone).collect()
    }

    // Settings. Relaxed throughout: see the head of the module.

    #[inline]
    pub(crate) fn core_size(&self) -> usize {
        self.core_size.load(Ordering::Relaxed)
    }

    /// Returns how many workers the pool may have: the core size, or one if that is 0.
    #[inline]
    pub(crate) fn wanted(&self) -> usize {
        self.core_size().max(1)
    }

    /// Changes the core size, and returns the previous one.
    pub(super) fn set_core_size(&self, size: usize) -> usize {
        let _roster = self.roster.lock();
        self.core_size.swap(size, Ordering::Relaxed)
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_nanos(self.keep_alive.load(Ordering::Relaxed))
    }

    pub(crate) fn core_timeout(&self) -> bool {
        self.core_timeout.load(Ordering::Relaxed)
    }

    /// Changes the given settings. Returns `false`, and changes nothing, if core workers would then retire at once.
    pub(crate) fn set_times(&self, keep_alive: Option<Duration>, timeout: Option<bool>) -> bool {
        let _roster = self.roster.lock();
        let keep_alive = keep_alive.unwrap_or_else(|| self.keep_alive());
        let timeout = timeout.unwrap_or_else(|| self.core_timeout());
        if timeout && keep_alive.is_zero() {
            return false;
        }
        self.keep_alive.store(saturating_nanos(keep_alive), Ordering::Relaxed);
        self.core_timeout.store(timeout, Ordering::Relaxed);
        true
    }

    // Starting.

    /// Waits for the permit to start a thread, or returns `None` as soon as `is_needed` returns `false`. `is_needed` is
    /// called **under the lock**, with the number of started workers, and may read only atomics.
    pub(super) fn spawn_permit(
        &self,
        is_needed: &dyn Fn(usize) -> bool,
    ) -> Option<SpawnPermit<'_>> {
        // The system's clock: on a manual one a worker that waits here would count as idle.
        let clock = Clock::system();
        let mut place = Place::default();
        wait::block_on(&clock, |waker| {
            self.roster.poll(&mut place, waker, |roster| {
                if !is_needed(roster.started) {
                    return Some(None);
                }
                let is_free = !mem::replace(&mut roster.is_spawning, true);
                is_free.then(|| Some(SpawnPermit { workers: self }))
            })
        })
    }

    /// Returns the permit to start a worker if the permit is free, the pool may have another worker, no worker is about
    /// to search, and `is_uncovered` says that a task is pending while no worker is idle. `is_uncovered` is called
    /// **under the lock**, and takes the lock of the queue's waiters.
    pub(super) fn try_spawn_permit(
        &self,
        is_uncovered: impl FnOnce() -> bool,
    ) -> Option<SpawnPermit<'_>> {
        let mut roster = self.roster.lock();
        let is_full = roster.started >= self.wanted();
        let will_search = roster.slots.iter().any(|slot| slot.will_search);
        if is_full || roster.is_spawning || will_search || !is_uncovered() {
            return None;
        }
        roster.is_spawning = true;
        Some(SpawnPermit { workers: self })
    }

    pub(super) fn is_short(&self) -> bool {
        self.roster.lock().is_short
    }

    /// Adds the driver, the only worker of a pool without threads. Returns its number and its statistics.
    pub(super) fn add_driver(&self) -> (usize, Arc<WorkerStats>) {
        let (number, stats) = SpawnPermit { workers: self }.add_worker();
        self.mark_started(number);
        self.search_done(number);
        (number, stats)
    }

    /// Counts a worker as started: the worker has begun, or the factory has returned `Ok`. Returns `true` if the idle
    /// workers must ask again: there are too many workers, or unlimited waits had kept a worker from retiring.
    pub(super) fn mark_started(&self, number: usize) -> bool {
        let mut roster = self.roster.lock();
        if !roster.mark_started(number) {
            return false;
        }
        self.publish(&roster);
        let is_surplus = roster.started > self.core_size();
        // There may be enough workers now for the threads that wait for the permit.
        roster.wake_all();
        is_surplus | self.staying.ends_beside_joins()
    }

    pub(super) fn begin<E>(&self, number: usize, queue: &DelayedWorkQueue<E>) {
        if self.mark_started(number) {
            queue.reconsider();
        }
    }

    /// Notes that a worker is about to queue a task again, and will then search for another.
    pub(super) fn announce_search(&self, number: usize) {
        self.roster.lock().set_will_search(number, true);
    }

    /// Notes that a worker is no longer about to search. If the worker is idle, the queue counts it by now.
    pub(super) fn search_done(&self, number: usize) {
        self.roster.lock().set_will_search(number, false);
    }

    /// Removes a worker that has ended or never began. Does nothing if the worker has retired.
    #[inline(never)]
    pub(super) fn remove(&self, number: usize) {
        let mut roster = self.roster.lock();
        let (there, started) = (roster.slots.len(), roster.started);
        roster.remove(number);
        let is_lost = roster.slots.len() < there;
        roster.is_short |= is_lost && (roster.started < started || roster.slots.is_empty());
        self.publish(&roster);
    }

    /// Joins the started threads, except the calling one.
    pub(super) fn join_threads(&self) {
        let threads = mem::take(&mut self.roster.lock().threads);
        let own = thread::current().id();
        // A worker that ends runs this itself if one of the user's thread-locals owned the executor.
        let others = |worker: &JoinHandle<()>| worker.thread().id() != own;
        for worker in threads.into_iter().filter(others) {
            // A worker does not panic, and a panic of one of the user's thread-locals is ignored.
            discard(worker.join());
        }
    }

    fn publish(&self, roster: &Roster) {
        // Ordering: see the head of the module.
        self.started.store(roster.started, Ordering::SeqCst);
    }
}

impl SpawnPermit<'_> {
    /// Adds a worker that is starting. Returns its number and its statistics.
    pub(super) fn add_worker(&self) -> (usize, Arc<WorkerStats>) {
        let stats = Arc::new(WorkerStats::default());
        let mut roster = self.workers.roster.lock();
        roster.last_number += 1;
        let number = roster.last_number;
        let own = stats.clone();
        roster.slots.push(WorkerSlot { number, stats: own, has_started: false, will_search: true });
        (number, stats)
    }

    /// Keeps the started thread's handle, if any, and gives the permit back.
    pub(super) fn succeed(self, thread: Option<JoinHandle<()>>) {
        let mut roster = self.workers.roster.lock();
        let gone = thread.map(|thread| keep(&mut roster.threads, thread, is_finished));
        drop(roster);
        // Before `gone`, because a thread's handle drops its panic payload, and that drop may need to start a thread.
        drop(self);
        discard(gone);
    }
}

impl Drop for SpawnPermit<'_> {
    fn drop(&mut self) {
        let mut roster = self.workers.roster.lock();
        roster.is_spawning = false;
        roster.wake_all();
    }
}

#[cfg(test)]
mod tests;
