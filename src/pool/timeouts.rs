//! Timeouts: what happens when a task, or one run of it, takes too long.
//!
//! A worker cannot watch its own task, and all workers may be busy with what takes too long. So
//! timeouts have a queue of their own and one thread that takes from it, the *timer thread*. It is
//! started with the first timeout and ends with the pool; until then there is neither.
//!
//! * A **one-shot task** has one entry, for its *limit*: its deadline plus the timeout. When the
//!   limit expires, the task ends as timed out, wherever it is: in the queue, from which it is then
//!   removed, or running, in which case its token is raised.
//! * A **periodic task** has one entry for each run, made when the run begins, by the code
//!   [around](Around) the closure. If the task's policy would end it at the first failure, the expiry ends
//!   the task. Otherwise the expiry only raises the token, which is the run's own, and when the
//!   body has returned the run counts as one that failed, whatever it has returned: that code leaves a
//!   note of it ([`OverLimit`]) for what judges the run.
//!
//! # Which thread wins
//!
//! The expiry and the end of the task meet at the lock of the task, as `cancel` and the end do:
//! the second of the two finds the task done and does nothing. A task that ends drops its
//! [`TimeoutGuard`], which takes the entry out of the queue. The guard is handed to the task when
//! the task is already queued, and perhaps done; in that case the guard is dropped at once.
//!
//! A one-shot task that is put off or brought forward has another limit, which moves in the same step
//! ([`control`](crate::layers::Change)). Then it is handed another guard in place of the first. An expiry
//! that was on its way finds that its limit is not the task's any more.
//!
//! **The limit comes first.** A task that has not ended before its limit is timed out, however
//! late the timer thread is: the worker that takes the task, or that has run it, compares the limit
//! with the clock, and if the limit has come it does itself what the expiry would do. The two do
//! the same under the same lock, so the outcome does not depend on which thread is faster. A body
//! that ends at the very instant of its limit is timed out, and a task with no time at all never
//! runs. On a manual clock every such tie is therefore exact, and the task's token counts as raised
//! from that very instant on as well (`CancellationToken::set_limit`).
//!
//! # The end
//!
//! An expiry runs user code: it drops closures and wakes waiters. So each is a party of the
//! pool's termination, and the pool does not end in the middle of one. When the pool ends the
//! queue is emptied, and nothing expires any more. A task that is run by hand, because
//! `shutdown_now` gave it back or because it was not admitted, is watched by the timer thread
//! alone: once that has ended, nobody looks at the task's limit.
//!
//! What a task keeps for its timeout refers to this queue and not to the pool. Otherwise a task
//! that the pool's own rejection handler has kept would keep the pool alive.

use std::{io, time::Duration};

use super::{IfRunning, Pool, PoolRef};
use crate::{
    CancelReason, Failure,
    entry::{Ticket, Timing},
    lazy_thread::LazyThread,
    queue::{Admission, DelayedWorkQueue},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{
        Around, Cancellation, CurrentRun, FailedRun, FailurePolicy, FailureSource, Hooks,
        OverLimit, Run, Task,
    },
    time::{Clock, Timestamp, set_timer_slack},
    trace,
    unwind::{contain, discard},
};

/// The action of the timer thread when a limit has come.
pub(super) type Expiry = Box<dyn FnOnce(&Pool) + Send>;
pub(super) type ExpiryQueue = DelayedWorkQueue<Expiry>;

/// See the [module](self).
pub(super) struct Timeouts {
    thread: LazyThread<ExpiryQueue>,
    /// The number of heaps that the queue is to have, and how early its thread is to wake.
    stripes: usize,
    lead: Duration,
    /// The number of limits that have been exceeded, of tasks and of single runs.
    exceeded: Arc<AtomicU64>,
}

impl Timeouts {
    pub(super) fn new(stripes: usize, lead: Duration) -> Self {
        Self { thread: LazyThread::new(), stripes, lead, exceeded: Arc::default() }
    }

    /// Returns how many limits have been exceeded, of tasks and of single runs.
    pub(super) fn exceeded(&self) -> u64 {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Returns the queue of a pool without a timer thread.
    pub(super) fn do_without_thread(&self, clock: &Clock) -> Arc<ExpiryQueue> {
        self.thread.do_without(|| self.make_queue(clock))
    }

    fn make_queue(&self, clock: &Clock) -> ExpiryQueue {
        ExpiryQueue::new(clock.clone(), self.stripes, self.lead)
    }

    /// Has the timer thread call `look` at `moment`, unless the pool ends before; `now` is the present.
    /// Returns `false` if there is no such thread.
    pub(super) fn call_at(&self, now: Timestamp, moment: Timestamp, look: Expiry) -> bool {
        let Some(queue) = self.thread.running() else {
            discard(look);
            return false;
        };
        let offered = queue.offer(0, now, Timing::At(moment), look);
        offered.map_err(|refused| discard(refused.element)).is_ok()
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

/// The loop of the timer thread, which runs what expires.
fn run_what_expires(pool: &Arc<Pool>, queue: &ExpiryQueue) {
    set_timer_slack(pool.spawner.timer_slack());
    while let Some((entry, _)) = queue.take() {
        if !pool.shutdown.register() {
            discard(entry.element);
            continue;
        }
        pool.expire(entry.element);
        pool.deregister();
    }
}

/// The queue that the timeouts of a task go to.
pub(super) struct Timer {
    queue: Arc<ExpiryQueue>,
    stripe: usize,
    clock: Clock,
    exceeded: Arc<AtomicU64>,
}

impl Timer {
    /// Returns `None` if there has never been a timer thread: then the pool is at its end.
    pub(super) fn of(pool_ref: &PoolRef) -> Option<Self> {
        let pool = pool_ref.pool();
        let queue = Arc::clone(pool.timeouts.thread.queue()?);
        let (stripe, clock) = (pool_ref.stripe(), pool.clock().clone());
        Some(Self { queue, stripe, clock, exceeded: Arc::clone(&pool.timeouts.exceeded) })
    }

    /// Has the timer thread call `expiry` at `deadline`, unless the pool ends before.
    pub(super) fn arm(&self, deadline: Timestamp, expiry: Expiry) -> Option<TimeoutGuard> {
        let offered =
            self.queue.offer(self.stripe, self.clock.read(), Timing::At(deadline), expiry);
        let ticket = offered.map_err(|refused| discard(refused.element)).ok()?;
        Some(TimeoutGuard { queue: Arc::clone(&self.queue), ticket })
    }
}

/// A timeout that is armed. Dropping it disarms the timeout.
pub(super) struct TimeoutGuard {
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
        let make_queue = || self.timeouts.make_queue(self.clock());
        self.start_service(&self.timeouts.thread, "timeouts", make_queue, run_what_expires)
    }

    /// Runs what expires. The caller is a party of the termination.
    pub(super) fn expire(&self, expiry: Expiry) {
        if let Err(payload) = contain(|| expiry(self)) {
            discard(payload);
        }
    }

    /// Counts and records that a one-shot task has been ended by its limit.
    #[cold]
    pub(super) fn note_timed_out(&self, task: &Task, id: u64) {
        count(&self.timeouts.exceeded);
        trace_timed_out(task, id);
        self.shutdown.log().cancelled(id, || task.name());
    }
}

impl PoolRef {
    /// Has a one-shot task end at its limit if it has not ended by then, and in place of any limit that
    /// it had before. The task compares the limits, so of two threads that move the limit the one that
    /// did so last has its timeout armed.
    pub(crate) fn set_timeout(&self, task: Arc<Task>, ticket: Ticket, limit: Timestamp) {
        let watched = Arc::clone(&task);
        let expiry = move |pool: &Pool| {
            let drops = pool.callbacks().hooks.drops(ticket.sequence);
            let found = watched.time_out(limit, None, drops);
            if found != Cancellation::TooLate {
                pool.note_timed_out(&*watched, ticket.sequence);
            }
            pool.take_out(&*watched, ticket, found, IfRunning::Signal);
            discard(watched);
        };
        let timer = Timer::of(self).filter(|_| limit < Timestamp::NEVER);
        if let Some(guard) = timer.and_then(|timer| timer.arm(limit, Box::new(expiry))) {
            task.attach(Box::new(guard), limit);
        }
    }

    /// Returns the code around each run that gives each run of a periodic task `budget` of time.
    pub(crate) fn limit_runs(&self, budget: Duration, policy: FailurePolicy) -> Option<Around> {
        let (timer, hooks) = (Timer::of(self)?, self.pool().callbacks().hooks.clone());
        let ends_task = policy.ends_after(1);
        Some(Around::new(move |body| {
            let Some(run) = Run::current() else { return body() };
            let limited = LimitedRun::begin(run, &timer, &hooks, budget, ends_task);
            body();
            limited.end();
        }))
    }
}

/// A run of a periodic task that has a time limit. Until this is dropped the task's token belongs
/// to this run alone.
struct LimitedRun<'a> {
    run: CurrentRun,
    timer: &'a Timer,
    hooks: &'a Hooks,
    budget: Duration,
    limit: Timestamp,
    /// A run that takes too long ends the task if this is set, and otherwise fails.
    ends_task: bool,
    guard: Option<TimeoutGuard>,
    /// Set once the body has returned, to `true` if it took too long.
    is_over: Option<bool>,
}

impl<'a> LimitedRun<'a> {
    fn begin(
        run: CurrentRun,
        timer: &'a Timer,
        hooks: &'a Hooks,
        budget: Duration,
        ends_task: bool,
    ) -> Self {
        let limit = run.started.after(budget);
        run.task.begin_limited_run(limit);
        let (watched, watched_hooks) = (run.clone(), hooks.clone());
        let token = run.task.token(&run.stop);
        let exceeded = Arc::clone(&timer.exceeded);
        let expiry = move |_: &Pool| {
            if ends_task {
                end_over_limit(&watched, &watched_hooks, budget, limit, &exceeded);
            }
            token.cancel();
            discard(watched);
        };
        let guard = timer.arm(limit, Box::new(expiry));
        Self { run, timer, hooks, budget, limit, ends_task, guard, is_over: None }
    }

    /// Disarms the timeout. Returns `true` if the body, which has returned, took too long.
    fn disarm(&mut self) -> bool {
        // First: an expiry that is under way has found the limit exceeded, and so will this.
        drop(self.guard.take());
        *self.is_over.get_or_insert_with(|| self.limit <= self.timer.clock.read())
    }

    /// Ends the limit of a run whose body has returned. Notes if it took too long, which fails the run.
    fn end(mut self) {
        if !self.disarm() {
            return;
        }
        if self.ends_task {
            let exceeded = &self.timer.exceeded;
            end_over_limit(&self.run, self.hooks, self.budget, self.limit, exceeded);
        } else {
            count(&self.timer.exceeded);
        }
        Run::note_over_limit(OverLimit { limit: self.budget, is_told: self.ends_task });
    }
}

impl Drop for LimitedRun<'_> {
    fn drop(&mut self) {
        let is_over = self.disarm();
        self.run.task.end_limited_run(is_over);
    }
}

/// Ends a periodic task because one of its runs took too long, and reports it, unless the task has
/// ended.
fn end_over_limit(
    run: &CurrentRun,
    hooks: &Hooks,
    budget: Duration,
    limit: Timestamp,
    exceeded: &AtomicU64,
) {
    let failure = Failure::of_time_limit(budget);
    let failed = FailedRun::over_limit(run.number, &failure);
    let found = run.task.time_out(limit, Some(failed), hooks.drops(run.id));
    if found != Cancellation::TooLate {
        count(exceeded);
        trace_timed_out(&*run.task, run.id);
        hooks.tell_ended(FailureSource::TimeLimit, &run.subject(), &failure);
    }
}

fn trace_timed_out(task: &Task, id: u64) {
    if trace::is_listening() {
        trace::cancelled(id, task.name().as_deref(), &CancelReason::TimedOut);
    }
}

fn count(exceeded: &AtomicU64) {
    // Relaxed: orders no other access.
    exceeded.fetch_add(1, Ordering::Relaxed);
}
