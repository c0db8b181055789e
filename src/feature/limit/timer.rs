//! The timer thread, which enforces time limits even if every worker is busy.
//!
//! A worker cannot watch its own task, and all workers may be busy with overlong tasks. So time limits have a queue of
//! their own, and a thread that takes expired limits from it. The thread starts when the first task with a limit is
//! submitted, and ends with the pool. An *expiry* is the call that this thread makes when a limit is reached.
//!
//! # More than one thread
//!
//! An expiry runs user code, such as the drop of a capture, and that code may block or wait for another limit to be
//! reached. A timer thread outside user code is *free*. The last free thread starts another before it acts on an
//! expired limit. So the first expiry starts a second thread, and the two take turns as leader and follower. A thread
//! ends if it finds two others free when it returns from user code. If no thread can be started, expired limits wait
//! until a timer thread returns from user code. Each submission of a task with a limit tries again to start a thread.
//!
//! A new thread counts as free even before it starts. Otherwise another submission might start a second thread. The
//! thread factory may report success and yet lose the thread. In that case the [`TimerThread`] is dropped before it
//! runs. That drop takes the lost thread off the count of free threads. If no other thread is free, the drop starts
//! one, even if no limit is pending: a submission that relied on the lost thread may be about to arm a limit.
//!
//! # Termination
//!
//! Each expiry is a party to the pool's termination, since it runs user code. When the pool terminates, it empties the
//! queue, and no limit expires after that. A [`TimeoutGuard`] refers to this queue and not to the pool. Otherwise a
//! task kept by the pool's own rejection handler would in turn keep the pool in memory.

use std::{io, time::Duration};

use super::Exceeded;
use crate::{
    CancelReason,
    entry::{Ticket, Timing},
    pool::{Pool, PoolRef, Role},
    queue::{Admission, DelayedWorkQueue, Source},
    sync::{
        Arc, OnceLock, Parker,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        scoped_thread_local,
    },
    task::{Alarm, Drops, Node, Task},
    time::{Clock, Timestamp, set_timer_slack},
    trace,
    unwind::discard,
};

type ExpiryQueue = DelayedWorkQueue<Arc<Task>>;

// The pool on whose expired limit the thread is acting.
scoped_thread_local!(static POOL: Arc<Pool>);

pub(super) fn expiry(act: impl FnOnce(&Pool) + Send + 'static) -> Arc<Task> {
    Node::alarm(Alarm::Act(Box::new(|| POOL.with(|pool| act(pool)))))
}

/// Acts on an expired limit. The caller is a party to the pool's termination.
pub(crate) fn expire(expiry: &Task, pool: &Arc<Pool>) {
    POOL.set(pool, || expiry.cancel(CancelReason::TimedOut, Drops::UNREPORTED));
}

pub(crate) struct Timeouts {
    /// Made before the first attempt to start a timer thread, or when the pool's driver asks for the queue.
    queue: OnceLock<Arc<ExpiryQueue>>,
    /// `true` once a timer thread has been started, or once the pool's driver takes from the queue.
    is_running: AtomicBool,
    /// How many heaps the queue gets.
    stripes: usize,
    /// How long before a deadline the timer thread wakes.
    lead: Duration,
    /// The number of timer threads outside user code, including those that are being started.
    // Ordering: relaxed. The thread that makes the number zero starts another thread, unless one has become free.
    free: AtomicUsize,
    pub(crate) exceeded: Exceeded,
}

impl Timeouts {
    pub(crate) fn new(stripes: usize, lead: Duration) -> Self {
        Self {
            queue: OnceLock::new(),
            is_running: AtomicBool::new(false),
            stripes,
            lead,
            free: AtomicUsize::new(0),
            exceeded: Exceeded::default(),
        }
    }

    /// Returns the queue. The first call makes it.
    fn queue(&self, clock: &Clock) -> &Arc<ExpiryQueue> {
        let make = || ExpiryQueue::new(clock.clone(), self.stripes, self.lead);
        self.queue.get_or_init(|| Arc::new(make()))
    }

    /// Returns the queue if a timer thread or a driver takes from it.
    fn running(&self) -> Option<&Arc<ExpiryQueue>> {
        // Ordering: pairs with the store in `runs`, so a thread that sees `true` sees the queue.
        if self.is_running.load(Ordering::Acquire) { self.queue.get() } else { None }
    }

    fn runs(&self) {
        // Ordering: see `running`.
        self.is_running.store(true, Ordering::Release);
    }

    /// Returns the queue, and notes that the caller takes from it in place of a timer thread.
    pub(crate) fn do_without_thread(&self, clock: &Clock) -> Arc<ExpiryQueue> {
        let queue = Arc::clone(self.queue(clock));
        self.runs();
        queue
    }

    /// Closes and empties the queue, which ends the timer threads. Called when the pool terminates. No limit expires
    /// after this.
    pub(crate) fn close(&self) {
        let Some(queue) = self.queue.get() else { return };
        queue.close(Admission::CLOSED);
        let mut left = queue.drain();
        left.take_chunks().into_iter().flatten().flatten().for_each(|expiry| {
            discard(expiry);
        });
    }
}

/// A timer thread, which counts as free even before it starts. If this is dropped before `work` is called, the thread
/// was lost.
struct TimerThread {
    pool: Arc<Pool>,
    queue: Arc<ExpiryQueue>,
    has_begun: bool,
}

impl TimerThread {
    fn new(pool: &Arc<Pool>, queue: &Arc<ExpiryQueue>) -> Self {
        pool.clock().worker_starts();
        pool.extensions.timeouts.free.fetch_add(1, Ordering::Relaxed);
        Self { pool: Arc::clone(pool), queue: Arc::clone(queue), has_begun: false }
    }

    /// Acts on expired limits, until the queue is closed or two other timer threads are free.
    fn work(mut self) {
        self.has_begun = true;
        let Self { pool, queue, .. } = &self;
        // A caller that joins the pool's threads waits for this thread, too.
        let _scope = pool.lifecycle.enter(Role::Stopper);
        pool.clock().worker_begins(&Parker::current());
        set_timer_slack(pool.spawner.timer_slack);
        let free = &pool.extensions.timeouts.free;
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
        let timers = &pool.extensions.timeouts;
        pool.clock().worker_ended();
        let is_last = !*has_begun && timers.free.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && timers.running().is_some() {
            pool.ensure_free_timer_thread();
        }
    }
}

/// What a task needs to arm its limits: the expiry queue, a stripe of that queue, and the pool's clock.
pub(super) struct Timer {
    queue: Arc<ExpiryQueue>,
    stripe: usize,
    pub(super) clock: Clock,
}

impl Timer {
    /// Returns the pool's timer. `None` if there is no queue: no task has had a limit, or the pool was closed before
    /// the first such task was submitted.
    pub(super) fn of(pool_ref: &PoolRef) -> Option<Self> {
        let pool = pool_ref.pool();
        let queue = Arc::clone(pool.extensions.timeouts.queue.get()?);
        Some(Self { queue, stripe: pool_ref.stripe(), clock: pool.clock().clone() })
    }

    /// Arms `expiry` for `deadline`. Returns a guard whose drop disarms the expiry; `None` if the queue is closed.
    pub(super) fn arm(&self, deadline: Timestamp, expiry: Arc<Task>) -> Option<TimeoutGuard> {
        let offered =
            self.queue.offer(self.stripe, self.clock.read(), Timing::At(deadline), expiry);
        let ticket = offered.map_err(|refused| discard(refused.element)).ok()?;
        Some(TimeoutGuard { queue: Arc::clone(&self.queue), ticket })
    }
}

/// An armed expiry. Dropping this disarms the expiry.
pub(super) struct TimeoutGuard {
    queue: Arc<ExpiryQueue>,
    ticket: Ticket,
}

impl Drop for TimeoutGuard {
    fn drop(&mut self) {
        discard(self.queue.withdraw(self.ticket));
    }
}

impl Pool {
    /// Starts a timer thread if none is free, unless the pool is closed or driven. Fails only if the pool's first
    /// timer thread cannot be started.
    pub(crate) fn ensure_timer_thread(self: &Arc<Self>) -> io::Result<()> {
        if self.queue.is_closed() {
            return Ok(());
        }
        if self.extensions.timeouts.running().is_none() {
            return self.start_timer_thread(&|| self.extensions.timeouts.running().is_none());
        }
        self.ensure_free_timer_thread();
        Ok(())
    }

    /// Starts a timer thread if none is free, unless the pool is driven or the thread factory calls this. Emits an
    /// event if the start fails.
    fn ensure_free_timer_thread(self: &Arc<Self>) {
        let is_needed = || self.extensions.timeouts.free.load(Ordering::Relaxed) == 0;
        if !self.is_driven && is_needed() && !self.lifecycle.has_caller_as(Role::Starter) {
            let started = self.start_timer_thread(&is_needed);
            started.unwrap_or_else(|error| trace::spawn_failed(&error));
        }
    }

    /// Starts a timer thread if `is_needed` returns `true`. Blocks while another thread starts any thread of the pool.
    fn start_timer_thread(self: &Arc<Self>, is_needed: &dyn Fn() -> bool) -> io::Result<()> {
        let timers = &self.extensions.timeouts;
        self.start_helper("timeouts", is_needed, &|| timers.runs(), &|| {
            let thread = TimerThread::new(self, timers.queue(self.clock()));
            Box::new(|| thread.work())
        })
    }
}
