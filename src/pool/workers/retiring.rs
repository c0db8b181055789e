//! Retiring: when an idle worker leaves, and why it stays.
//!
//! Before it sleeps and after each wake-up, an idle worker asks [`Workers::idle_limit`] how long it may wait for a
//! task. [`Workers::try_retire`] decides under the lock of the workers whether the worker may retire. The [module
//! above](super) says why no retiring worker leaves a task behind.
//!
//! # Staying
//!
//! A worker that may retire wakes up after the keep-alive. One that has to stay sleeps without a limit, so an idle pool
//! has no wake-ups. If a thread changes the state on which a worker based its decision to stay, that thread makes the
//! worker ask again. There are two reasons to stay:
//!
//! * **Tasks are pending**, and too few other workers are idle. The reason is gone once the other idle workers suffice
//!   for the pending tasks. A thread that removes a task without running it checks for this (`Pool::entry_removed`). A
//!   worker that has run a task also checks, once the worker is idle: by then the task, if periodic, is pending again.
//! * **All other workers are in an unlimited wait.** The reason is gone once such a wait ends or another worker starts.
//!
//! # Why no worker stays for a reason that is gone
//!
//! A worker that stays notes the reason and *then* looks at the pool; another thread changes the pool and *then* reads
//! the note. Locks protect the state that the worker looks at, and so order the steps of both sides
//! ([`queue::waiters`](crate::queue)). A worker knows its reason only once it has looked, so it first notes both
//! reasons, and then corrects the note ([`note`](Staying::note)). The thread that finds a reason gone withdraws it and
//! wakes *all* workers; a worker that still has to stay notes its reason again.

use super::{Roster, Workers};
use crate::{
    queue::DelayedWorkQueue,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Clock, Timestamp},
    unwind::wake_all,
};

/// Returns `true` if a worker's wait is stuck: only a worker of the pool can do what is awaited, and none has done it.
/// The argument says whether the pool has a timer thread. Another thread could still end the wait with a cancellation,
/// but the pool cannot foresee that.
pub(crate) type Awaited = dyn Fn(bool) -> bool + Send + Sync;

/// The unlimited waits of a pool's workers, with one entry for each wait.
#[derive(Default)]
pub(in crate::pool) struct JoinRegistry(Mutex<Vec<Arc<Awaited>>>);

impl JoinRegistry {
    pub(in crate::pool) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Adds an entry, and returns how many there are now.
    pub(in crate::pool) fn add(&self, awaited: Arc<Awaited>) -> usize {
        let mut entries = self.0.lock();
        entries.push(awaited);
        entries.len()
    }

    /// Removes an entry. The caller holds another reference to `awaited`, so no closure is dropped under the lock.
    pub(in crate::pool) fn remove(&self, awaited: &Arc<Awaited>) {
        let mut entries = self.0.lock();
        if let Some(index) = entries.iter().position(|entry| Arc::ptr_eq(entry, awaited)) {
            entries.swap_remove(index);
        }
    }

    pub(in crate::pool) fn all(&self) -> Vec<Arc<Awaited>> {
        self.0.lock().clone()
    }
}

/// The answer to an idle worker that asks whether it may retire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pool) enum Retirement<L> {
    Stay,
    /// The worker may retire once it has been idle for long enough.
    NotYet,
    /// The worker has left the queue and is no longer counted. Contains what `leave_queue` returned.
    Retired(L),
}

/// What an idle worker sees of the pool when it asks whether it may retire.
#[derive(Clone, Copy, Debug)]
pub(in crate::pool) struct PoolView {
    /// The number of workers in an unlimited wait.
    pub(in crate::pool) joined: usize,
    /// The number of other workers that are waiting for a task to take.
    pub(in crate::pool) idle: usize,
    /// The number of pending tasks that are not parked.
    pub(in crate::pool) pending: usize,
}

/// The maximum number of workers that stay for pending tasks: the queue's leader and its deputy, which wake for the
/// first two tasks. If a third task falls due together with these, the second worker to take a task starts another
/// worker (`Pool::compensate`).
pub(super) const MAX_STAYING: usize = 2;

/// The reasons why workers stay, which they note under the lock of the workers.
#[derive(Default)]
pub(in crate::pool) struct Staying {
    /// Once fewer tasks than this are pending, the workers that stay for tasks ask again. Zero if none stays for tasks.
    tasks: AtomicUsize,
    /// True if a worker stays because all others are in an unlimited wait.
    joins: AtomicBool,
}

impl PoolView {
    /// Returns what a worker that waits in the queue sees. Called under the lock of the workers. Takes, one after the
    /// other, the locks of the join registry, of the queue's waiters and of the queue's ready list. While holding the
    /// last of these locks, takes each stripe's lock in turn.
    pub(in crate::pool) fn under_workers_lock<E: Clone>(
        joins: &JoinRegistry,
        queue: &DelayedWorkQueue<E>,
    ) -> Self {
        let (joined, others) = (joins.len(), queue.waiting().saturating_sub(1));
        Self { joined, idle: others, pending: queue.scheduled() }
    }
}

impl Workers {
    /// Returns the moment until which a worker that has been idle since `since` waits for a task. If the worker may
    /// retire and its keep-alive is over, retires it and returns `None`.
    #[inline]
    pub(in crate::pool) fn idle_limit<E: Clone>(
        &self,
        number: usize,
        queue: &DelayedWorkQueue<E>,
        clock: &Clock,
        since: Timestamp,
    ) -> Option<Timestamp> {
        if !self.may_have_surplus() {
            return Some(Timestamp::NEVER);
        }
        // Other workers may have stayed for the task that this one has run.
        self.pending_decreased(queue);
        let limit = since.after(self.keep_alive());
        let is_over = limit <= clock.read();
        // Both closures run under the lock of the workers, and take further locks (`docs/locks.md`).
        let view = || PoolView::under_workers_lock(&self.joins, queue);
        let leave_queue = || queue.end_search();
        match self.try_retire(number, is_over, view, leave_queue) {
            Retirement::Stay => Some(Timestamp::NEVER),
            Retirement::NotYet => Some(limit),
            Retirement::Retired(waker) => {
                wake_all(waker);
                None
            }
        }
    }

    #[inline]
    pub(in crate::pool) fn pending_decreased<E: Clone>(&self, queue: &DelayedWorkQueue<E>) {
        if self.staying.ends_for_tasks(|count| queue.has_at_least(count)) {
            queue.reconsider();
        }
    }

    /// If unlimited waits had kept a worker from retiring, makes the idle workers ask again whether they may retire.
    /// Called after such a wait.
    pub(in crate::pool) fn joins_decreased<E: Clone>(&self, queue: &DelayedWorkQueue<E>) {
        if self.staying.ends_beside_joins() {
            queue.reconsider();
        }
    }

    /// Decides whether an idle worker may retire. If a surplus worker has to stay, notes the reason. If it may retire
    /// and has been idle for long enough (`is_over`), removes it from the roster and the queue in one step. `view` and
    /// `leave_queue` are called **under the lock**, and take locks of the queue and of the join registry
    /// (`docs/locks.md`).
    pub(in crate::pool) fn try_retire<L>(
        &self,
        number: usize,
        is_over: bool,
        view: impl FnOnce() -> PoolView,
        leave_queue: impl FnOnce() -> L,
    ) -> Retirement<L> {
        let mut roster = self.roster.lock();
        if !self.core_timeout() && roster.started <= self.core_size() {
            return Retirement::Stay;
        }
        let others = roster.started.saturating_sub(1);
        if is_over && others < self.wanted() {
            // Ordering: see the head of the module.
            self.started.store(others, Ordering::SeqCst);
        }
        let answer = if self.staying.note(|| self.reason_to_stay(&roster, view())) {
            Retirement::Stay
        } else if is_over {
            roster.remove(number);
            Retirement::Retired(leave_queue())
        } else {
            Retirement::NotYet
        };
        if is_over {
            self.publish(&roster);
        }
        answer
    }

    /// Returns why an idle worker has to stay: `(n, false)` if it stays until fewer than `n` tasks are pending,
    /// `(0, true)` if it stays because all others are in an unlimited wait, and `(0, false)` if it need not stay.
    fn reason_to_stay(&self, roster: &Roster, view: PoolView) -> (usize, bool) {
        let PoolView { joined, idle, pending } = view;
        let others = roster.started.saturating_sub(1);
        if joined > 0 && others <= joined {
            (0, true)
        } else if others >= self.wanted() || idle >= pending.min(MAX_STAYING) {
            (0, false)
        } else {
            (idle + 1, false)
        }
    }
}

impl Staying {
    /// Adds the reason that `look` finds, if any, to the earlier reasons. Returns `true` if `look` found a reason.
    fn note(&self, look: impl FnOnce() -> (usize, bool)) -> bool {
        // Relaxed, like all accesses to these two: the locks behind which the workers look order them.
        let (tasks, joins) =
            (self.tasks.load(Ordering::Relaxed), self.joins.load(Ordering::Relaxed));
        self.tasks.store(MAX_STAYING, Ordering::Relaxed);
        self.joins.store(true, Ordering::Relaxed);
        let (own_tasks, own_joins) = look();
        self.tasks.store(tasks.max(own_tasks), Ordering::Relaxed);
        self.joins.store(joins || own_joins, Ordering::Relaxed);
        own_joins || own_tasks > 0
    }

    /// If the reason to stay "tasks are pending" is gone, withdraws the reason and returns `true`: the workers that
    /// stayed must then ask again. `has_at_least(n)` says whether at least `n` tasks are pending.
    #[inline]
    pub(super) fn ends_for_tasks(&self, has_at_least: impl FnOnce(usize) -> bool) -> bool {
        let tasks = self.tasks.load(Ordering::Relaxed);
        let is_over = tasks > 0 && !has_at_least(tasks);
        if is_over {
            self.tasks.store(0, Ordering::Relaxed);
        }
        is_over
    }

    /// If the reason to stay "all other workers are in an unlimited wait" is noted, withdraws the reason and returns
    /// `true`: the workers that stayed must then ask again.
    pub(super) fn ends_beside_joins(&self) -> bool {
        self.joins.load(Ordering::Relaxed) && self.joins.swap(false, Ordering::Relaxed)
    }
}
