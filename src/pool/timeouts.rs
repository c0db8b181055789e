//! Timeouts: the expiry of the time limit of a task, or of one run of it.
//!
//! A worker cannot watch its own task, and all workers may be busy with what takes too long. So timeouts have
//! a queue of their own and a thread that takes from it, the *timer thread*. It is started with the first
//! timeout and ends with the pool; until then there is neither.
//!
//! * A **one-shot task** has one entry, for its *limit*: its deadline plus the timeout. When the limit
//!   expires, the task ends as timed out, wherever it is: in the queue, from which it is then removed, or
//!   running, in which case its token is raised.
//! * A **periodic task** has one entry for each run, made when the run begins, by the code
//!   [around](crate::task::Around) the closure ([`task_builder`](crate::task_builder)). So has each run that
//!   is [watched](crate::Builder::warn_after) for taking long.
//!
//! # More than one thread
//!
//! An expiry calls user code, such as the drop of a capture, which may block or wait for another limit. So a
//! thread that is about to act on one, and is the last that is in no user code, starts another first. The
//! first limit that expires therefore makes the second thread, and these two take turns as leader and
//! follower. A thread that comes back and finds two others ends. If no thread can be started, the limits wait
//! for the user code of this one, or for the next task that has a limit, whose submission tries again.
//!
//! A thread is counted from before its start, so that no two threads start one for the same reason. The
//! thread factory may lose it although the start has not failed: the drop of a [`TimerThread`] that has not
//! run takes it off the count and starts another. It does not ask whether a limit is pending: a submission
//! that has seen the thread counted may be about to arm one.
//!
//! # Which thread wins
//!
//! The expiry and the end of the task meet at the lock of the task, as `cancel` and the end do: the second of
//! the two finds the task done and does nothing. A task that ends drops its [`TimeoutGuard`], which takes the
//! entry out of the queue. The guard is handed to the task when the task is already queued, and perhaps done;
//! in that case the guard is dropped at once.
//!
//! A one-shot task that is put off or brought forward has another limit, which moves in the same step
//! ([`control`](crate::feature::Change)). Then it is handed another guard in place of the first. An expiry
//! that was on its way finds that its limit is not the task's any more.
//!
//! **The limit comes first.** A task that has not ended before its limit is timed out, however late the timer
//! thread is: the worker that takes the task, or that has run it, compares the limit with the clock, and if
//! the limit has come it does itself what the expiry would do, under the same lock. A body that ends at the
//! very instant of its limit is timed out, and a task with no time at all never runs. On a manual clock every
//! such tie is therefore exact, and the task's token counts as raised from that very instant on as well
//! (`CancellationToken::set_limit`).
//!
//! # The end
//!
//! An expiry runs user code. So each is a party of the pool's termination, and the pool does not end in the
//! middle of one. When the pool ends the queue is emptied, and nothing expires any more: no thread looks at
//! the limit of a task that is run by hand then.
//!
//! The entry of a task for its timeout refers to this queue and not to the pool. Otherwise a task that the
//! pool's own rejection handler has kept would keep the pool alive.

use std::{io, time::Duration};

use super::{
    IfRunning, Pool, PoolRef,
    deadlock::{PoolScope, Role},
    workers::factory_error,
};
use crate::{
    CancelReason,
    entry::{Ticket, Timing},
    lazy_thread::{LazyThread, Starting},
    queue::{Admission, DelayedWorkQueue, Source},
    shutdown_report::EndLog,
    sync::{
        Arc, Parker,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        scoped_thread_local,
    },
    task::{Cancellation, Drops, Node, Task},
    time::{Clock, Timestamp, set_timer_slack},
    trace,
    unwind::discard,
};

pub(super) type ExpiryQueue = DelayedWorkQueue<Arc<Task>>;

// The pool whose limit the thread has found to have come.
scoped_thread_local!(static POOL: Arc<Pool>);

/// Returns what the timer thread does when a limit has come.
pub(crate) fn expiry(act: impl FnOnce(&Pool) + Send + 'static) -> Arc<Task> {
    Node::alarm(move || POOL.with(|pool| act(pool)))
}

/// Acts for a limit that has come. The caller is a party of the termination.
pub(super) fn expire(expiry: &Task, pool: &Arc<Pool>) {
    POOL.set(pool, || expiry.cancel(CancelReason::TimedOut, Drops::UNREPORTED));
}

/// See the [module](self).
pub(crate) struct Timeouts {
    thread: LazyThread<ExpiryQueue>,
    /// The number of heaps that the queue is to have, and how early its thread is to wake.
    stripes: usize,
    lead: Duration,
    exceeded: Exceeded,
    /// The number of timer threads that are in no user code; a thread that is being started is one of them.
    // Ordering: relaxed. Whoever makes it zero starts another, unless one has become free meanwhile.
    free: AtomicUsize,
}

/// The number of limits that have been exceeded, of tasks and of single runs.
#[derive(Clone, Default)]
pub(crate) struct Exceeded(Arc<AtomicU64>);

impl Exceeded {
    pub(crate) fn count(&self) {
        // Relaxed: orders no other access.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that a task has been ended by a limit, and traces it.
    pub(crate) fn note(&self, task: &Task, id: u64) {
        self.count();
        if trace::is_listening() {
            trace::cancelled(id, task.name().as_deref(), &CancelReason::TimedOut);
        }
    }
}

impl Timeouts {
    pub(super) fn new(stripes: usize, lead: Duration) -> Self {
        let (exceeded, free) = (Exceeded::default(), AtomicUsize::new(0));
        Self { thread: LazyThread::new(), stripes, lead, exceeded, free }
    }

    /// Returns how many limits have been exceeded, of tasks and of single runs.
    pub(crate) fn exceeded(&self) -> u64 {
        self.exceeded.0.load(Ordering::Relaxed)
    }

    /// Returns the queue of a pool without a timer thread.
    pub(super) fn do_without_thread(&self, clock: &Clock) -> Arc<ExpiryQueue> {
        self.thread.do_without(|| self.make_queue(clock))
    }

    fn make_queue(&self, clock: &Clock) -> ExpiryQueue {
        ExpiryQueue::new(clock.clone(), self.stripes, self.lead)
    }

    /// Counts and records that a one-shot task has been ended by its limit.
    #[cold]
    pub(super) fn note_timed_out(&self, task: &Task, id: u64, log: &EndLog) {
        self.exceeded.note(task, id);
        log.cancelled(id, || task.name());
    }

    /// Ends the timer thread. No timeout expires after this.
    pub(super) fn close(&self) {
        let Some(queue) = self.thread.queue() else { return };
        queue.close(Admission::CLOSED);
        let mut left = queue.drain();
        left.for_each_element(|expiry| {
            discard(expiry);
        });
    }
}

/// A timer thread, which is counted as free from before its start. If this is dropped before it runs, the thread has
/// been lost.
struct TimerThread {
    pool: Arc<Pool>,
    queue: Arc<ExpiryQueue>,
    has_begun: bool,
}

impl TimerThread {
    fn new(pool: &Arc<Pool>, queue: &Arc<ExpiryQueue>) -> Self {
        pool.clock().worker_starts();
        pool.timeouts.free.fetch_add(1, Ordering::Relaxed);
        Self { pool: Arc::clone(pool), queue: Arc::clone(queue), has_begun: false }
    }

    /// Runs what expires. See the head of the module for how many threads do so.
    fn work(mut self) {
        self.has_begun = true;
        let Self { pool, queue, .. } = &self;
        // A caller that joins the pool's threads waits for this thread, too.
        let _scope = PoolScope::enter(pool, Role::Stopper);
        pool.clock().worker_begins(&Parker::current());
        set_timer_slack(pool.spawner.timer_slack);
        let free = &pool.timeouts.free;
        while let Some((entry, _)) = queue.take() {
            if !pool.lifecycle.register() {
                discard(entry.element);
                continue;
            }
            if free.fetch_sub(1, Ordering::Relaxed) == 1 {
                pool.ensure_free_timer_thread();
            }
            expire(&*entry.element, pool);
            pool.deregister();
            if free.fetch_add(1, Ordering::Relaxed) >= 2 {
                free.fetch_sub(1, Ordering::Relaxed);
                break;
            }
        }
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        let Self { pool, has_begun, .. } = self;
        let timers = &pool.timeouts;
        pool.clock().worker_ended();
        let is_last = !*has_begun && timers.free.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && timers.thread.running().is_some() {
            pool.ensure_free_timer_thread();
        }
    }
}

/// The queue that the timeouts of a task go to.
pub(crate) struct Timer {
    queue: Arc<ExpiryQueue>,
    stripe: usize,
    pub(crate) clock: Clock,
    pub(crate) exceeded: Exceeded,
}

impl Timer {
    /// Returns `None` if there has never been a timer thread: then the pool is at its end.
    pub(crate) fn of(pool_ref: &PoolRef) -> Option<Self> {
        Self::on_stripe(pool_ref.stripe(), pool_ref.pool())
    }

    fn on_stripe(stripe: usize, pool: &Pool) -> Option<Self> {
        let queue = Arc::clone(pool.timeouts.thread.queue()?);
        let clock = pool.clock().clone();
        Some(Self { queue, stripe, clock, exceeded: pool.timeouts.exceeded.clone() })
    }

    /// Arms a call of `expiry` by the timer thread at `deadline`, unless the pool ends before.
    pub(crate) fn arm(&self, deadline: Timestamp, expiry: Arc<Task>) -> Option<TimeoutGuard> {
        let offered =
            self.queue.offer(self.stripe, self.clock.read(), Timing::At(deadline), expiry);
        let ticket = offered.map_err(|refused| discard(refused.element)).ok()?;
        Some(TimeoutGuard { queue: Arc::clone(&self.queue), ticket })
    }
}

/// A timeout that is armed. Dropping it disarms the timeout.
pub(crate) struct TimeoutGuard {
    queue: Arc<ExpiryQueue>,
    ticket: Ticket,
}

impl Drop for TimeoutGuard {
    fn drop(&mut self) {
        discard(self.queue.remove(self.ticket));
    }
}

impl Pool {
    /// Ensures that there is a timer thread, unless the pool is at its end.
    pub(crate) fn ensure_timer_thread(self: &Arc<Self>) -> io::Result<()> {
        if self.queue.is_closed() {
            return Ok(());
        }
        if self.timeouts.thread.running().is_none() {
            return self.start_timer_thread(&|| self.timeouts.thread.running().is_none());
        }
        self.ensure_free_timer_thread();
        Ok(())
    }

    /// Starts another timer thread if each that there is is in user code, or has been lost. If none can be started there
    /// is no other.
    fn ensure_free_timer_thread(self: &Arc<Self>) {
        let is_needed = || self.timeouts.free.load(Ordering::Relaxed) == 0;
        if !self.is_driven && is_needed() && !self.has_caller_as(Role::Starter) {
            let started = self.start_timer_thread(&is_needed);
            started.unwrap_or_else(|error| trace::spawn_failed(&error));
        }
    }

    /// Starts a timer thread if it `is_needed`. Blocks while another caller starts a thread.
    fn start_timer_thread(self: &Arc<Self>, is_needed: &dyn Fn() -> bool) -> io::Result<()> {
        if self.has_caller_as(Role::Starter) {
            // The thread factory submits something, and this thread has the permit.
            return Err(factory_error("uses its executor"));
        }
        let Some(permit) = self.workers.spawn_permit(&|_| is_needed()) else { return Ok(()) };
        // As a party it lets the thread that ends the pool find the queue and close it.
        if !self.lifecycle.register() {
            return Ok(());
        }
        let timers = &self.timeouts;
        let first = timers.thread.starting(|| timers.make_queue(self.clock()));
        let started = timers.thread.queue().map_or(Ok(()), |queue| {
            let (thread, starting) =
                (TimerThread::new(self, queue), PoolScope::enter(self, Role::Starter));
            let name = format!("{}-timeouts", self.spawner.thread_name);
            let started = || _ = first.map(Starting::succeed);
            self.spawner.start_thread(starting, permit, (name, None), started, || thread.work())
        });
        // Threads that wanted a worker meanwhile have left it to the holder of the permit.
        self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
        self.deregister();
        started
    }

    /// Sets the limit at which a one-shot task ends if it has not ended by then, in place of any limit that
    /// it had before. The task compares the limits, so of two threads that move the limit the one that
    /// did so last has its timeout armed.
    pub(crate) fn set_timeout(
        &self,
        stripe: usize,
        task: Arc<Task>,
        ticket: Ticket,
        limit: Timestamp,
    ) {
        let watched = Arc::clone(&task);
        let act = move |pool: &Pool| {
            let drops = pool.callbacks.hooks.drops(ticket.sequence);
            let found = watched.time_out(limit, None, drops);
            if found != Cancellation::TooLate {
                let log = &pool.log;
                pool.timeouts.note_timed_out(&*watched, ticket.sequence, log);
            }
            pool.take_out(&*watched, ticket, found, IfRunning::Signal);
            discard(watched);
        };
        let timer = Timer::on_stripe(stripe, self).filter(|_| limit < Timestamp::NEVER);
        if let Some(guard) = timer.and_then(|timer| timer.arm(limit, expiry(act))) {
            task.attach(Box::new(guard), limit);
        }
    }
}
