//! Timeouts: what strikes when a task, or one run of it, takes too long.
//!
//! A worker cannot watch over itself, and all of them may be busy with what takes too long. So
//! timeouts have a queue of their own and one thread for it, the *timekeeper*, which is started
//! with the first timeout and ends with the pool. Until then there is neither.
//!
//! * A **one-shot task** has one entry, for its *limit*: the moment it was due plus the timeout.
//!   When it strikes, the task ends as timed out, or with the value given for that, wherever it is:
//!   in the queue, from which it is then removed, or running, and then its token is raised.
//! * A **periodic task** has one entry for each run, made when it begins, by a [`Wrapper`] around
//!   the closure. A task that its policy would stop at the first failure is ended by the strike.
//!   For another the strike only raises the token, which is the run's own, and when the body has
//!   returned the run counts as one that panicked.
//!
//! # Who wins
//!
//! A strike and the end of the task meet at the lock of the task, like `cancel` and the end: the
//! second finds it done and does nothing. A task that ends drops its [`Watch`], which takes the
//! entry out of the queue. The watch is given to the task when that is in the queue already, and
//! perhaps done; then it is dropped at once.
//!
//! **The limit comes first.** A task that has not ended before its limit is timed out, however
//! late the timekeeper is: the worker that takes the task, or has run it, compares the limit with
//! the clock, and at the limit or after it does itself what the strike would do. The two do the
//! same under the same lock, so the outcome does not depend on which thread is faster. A body that
//! ends at the very moment of its limit is timed out, and a task with no time at all never runs. On
//! a manual clock that makes every tie exact, and the task's token is raised from that very moment
//! on as well (`CancellationToken::set_limit`).
//!
//! # The end
//!
//! A strike is user code: it drops closures and wakes who waits. So the pool does not end in
//! the middle of one. When it ends the queue is emptied, and nothing strikes any more. A task that
//! is run by hand, because `shutdown_now` gave it back or it was not admitted, is only watched by the
//! timekeeper: its limit is not looked at when that is gone.
//!
//! What tasks keep for their timeouts leads to this queue and not to the pool, which would keep
//! itself alive by a task that its own rejection handler has kept.

use std::{io, panic, time::Duration};

use super::{
    Pool, PoolRef,
    shutdown::scope::{self, PoolScope, Role},
    worker::factory_error,
};
use crate::{
    CancelReason, TaskState,
    queue::{Admission, DelayedWorkQueue, Ticket},
    sync::{
        Arc, OnceLock, Parker,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Cancellation, CurrentRun, FailedRun, PanicPolicy, PanicSource, Run, Runnable, Wrapper},
    time::{Clock, Timestamp, slack},
    trace,
    unwind::{AlreadyTold, contain, discard},
};

type Expiry = Box<dyn FnOnce(&Pool) + Send>;
type ExpiryQueue = DelayedWorkQueue<Expiry>;

/// See the [module](self).
pub(super) struct Timeouts {
    queue: OnceLock<Arc<ExpiryQueue>>,
    has_thread: AtomicBool,
    /// How many limits have been exceeded: of tasks, and of single runs.
    exceeded: Arc<AtomicU64>,
}

impl Timeouts {
    pub(super) fn new() -> Self {
        let (has_thread, exceeded) = (AtomicBool::new(false), Arc::default());
        Self { queue: OnceLock::new(), has_thread, exceeded }
    }

    /// How many limits have been exceeded: of tasks, and of single runs.
    pub(super) fn exceeded(&self) -> u64 {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Nothing strikes any more.
    pub(super) fn close(&self) {
        let Some(queue) = self.queue.get() else { return };
        queue.close(Admission::Closed);
        let mut left = queue.drain();
        while let Some(expire) = left.next_element() {
            discard(expire);
        }
    }
}

/// The thread that lets timeouts strike.
struct TimerThread(Arc<Pool>);

impl TimerThread {
    fn work(self) {
        let pool = &*self.0;
        // Who joins the pool's threads waits for this one as well.
        let _scope = PoolScope::enter(pool, Role::Stopper);
        pool.clock().worker_begins(&Parker::current());
        slack::set(pool.config.timer_slack);
        let Some(queue) = pool.timeouts.queue.get() else { return };
        while let Some((entry, _)) = queue.take() {
            if !pool.lifecycle.hold() {
                discard(entry.element);
                continue;
            }
            if let Err(payload) = contain(|| (entry.element)(pool)) {
                discard(payload);
            }
            pool.release();
        }
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        self.0.clock().worker_ended();
    }
}

/// Where the timeouts of a task go.
struct Timer {
    queue: Arc<ExpiryQueue>,
    stripe: usize,
    clock: Clock,
    exceeded: Arc<AtomicU64>,
}

impl Timer {
    /// Nothing if there has never been a timekeeper: then the pool is at its end.
    fn of(pool_ref: &PoolRef) -> Option<Self> {
        let queue = Arc::clone(pool_ref.timeouts.queue.get()?);
        let (stripe, clock) = (pool_ref.stripe(), pool_ref.clock().clone());
        Some(Self { queue, stripe, clock, exceeded: Arc::clone(&pool_ref.timeouts.exceeded) })
    }

    /// Lets `strike` happen at a moment, unless the pool ends before.
    fn watch(&self, deadline: Timestamp, expire: Expiry) -> Option<TimeoutGuard> {
        match self.queue.offer(self.stripe, self.clock.read(), deadline, expire) {
            Ok(ticket) => Some(TimeoutGuard { queue: Arc::clone(&self.queue), ticket }),
            Err(refused) => {
                discard(refused.element);
                None
            }
        }
    }
}

/// A timeout that may strike; until this is dropped.
struct TimeoutGuard {
    queue: Arc<ExpiryQueue>,
    ticket: Ticket,
}

impl Drop for TimeoutGuard {
    fn drop(&mut self) {
        discard(self.queue.remove(self.ticket));
    }
}

impl Pool {
    /// Sees to it that there is a timekeeper, unless the pool is at its end.
    pub(crate) fn ensure_timer_thread(self: &Arc<Self>) -> io::Result<()> {
        // Ordering: whoever sees it sees the queue, and does without the turn.
        let has_thread = || self.timeouts.has_thread.load(Ordering::Acquire);
        if has_thread() || self.queue.is_closed() {
            return Ok(());
        }
        if scope::is_starting_thread_of(self) {
            // The thread factory submits something, and has the turn.
            return Err(factory_error("uses its executor"));
        }
        let Some(permit) = self.workers.spawn_permit(|_| !has_thread()) else { return Ok(()) };
        // Held, so that who tidies finds the queue and closes it.
        if !self.lifecycle.hold() {
            return Ok(());
        }
        let config = &self.config;
        self.timeouts.queue.get_or_init(|| {
            Arc::new(ExpiryQueue::new(config.clock.clone(), config.stripes, config.lead))
        });
        self.clock().worker_starts();
        let (thread, name) =
            (TimerThread(Arc::clone(self)), format!("{}-timeouts", self.thread_name()));
        let started = self.start_thread(permit, name, None, || thread.work());
        self.timeouts.has_thread.store(started.is_ok(), Ordering::Release);
        // Others who wanted a thread meanwhile have left that to whoever had the turn.
        self.compensate().unwrap_or_else(|error| trace::spawn_failed(&error));
        self.release();
        started
    }

    /// Ends a one-shot task at its limit if it has not ended.
    pub(crate) fn set_timeout(
        pool_ref: &PoolRef,
        task: Arc<dyn Runnable>,
        ticket: Ticket,
        limit: Timestamp,
    ) {
        let watched = Arc::clone(&task);
        let expire = move |pool: &Pool| {
            let found = watched.time_out(None, pool.callbacks().hooks.drops(ticket.sequence));
            if found != Cancellation::TooLate {
                pool.note_timed_out(&*watched, ticket.sequence, found);
            }
            pool.take_out(&*watched, ticket, found, true);
            discard(watched);
        };
        let timer = Timer::of(pool_ref).filter(|_| limit < Timestamp::NEVER);
        if let Some(watch) = timer.and_then(|timer| timer.watch(limit, Box::new(expire))) {
            task.attach(Box::new(watch));
        }
    }

    /// Says that a one-shot task has been ended by its limit.
    #[cold]
    pub(super) fn note_timed_out(&self, task: &dyn Runnable, id: u64, found: Cancellation) {
        count(&self.timeouts.exceeded);
        trace_timed_out(task, id);
        if matches!(found, Cancellation::Waiting(_)) {
            self.record.cancelled(id, || task.name());
        } else {
            self.record.timed_out(id, task);
        }
    }

    /// The wrapper that gives each run of a periodic task so much time.
    pub(crate) fn budget(
        pool_ref: &PoolRef,
        budget: Duration,
        policy: PanicPolicy,
    ) -> Option<Wrapper> {
        let timer = Timer::of(pool_ref)?;
        let ends_task = policy.ends_after(1);
        Some(Wrapper::new(move |next| {
            let Some(run) = Run::current() else { return next.run() };
            let limited = LimitedRun::begin(run, &timer, budget, ends_task);
            let done = next.run();
            limited.end();
            done
        }))
    }
}

/// A run of a periodic task that has so much time; until this is dropped the task's token is this
/// run's alone.
struct LimitedRun<'a> {
    run: CurrentRun,
    timer: &'a Timer,
    budget: Duration,
    limit: Timestamp,
    /// Whether a run that takes too long ends the task; else it fails.
    ends_task: bool,
    watch: Option<TimeoutGuard>,
    /// Whether it took too long; known once the body has returned.
    is_over: Option<bool>,
}

impl<'a> LimitedRun<'a> {
    fn begin(run: CurrentRun, timer: &'a Timer, budget: Duration, ends_task: bool) -> Self {
        let limit = run.started.after(budget);
        run.task.begin_limited_run(limit);
        let watched = run.clone();
        let token = run.task.token(&run.stop);
        let exceeded = Arc::clone(&timer.exceeded);
        let expire = move |_: &Pool| {
            if ends_task {
                end_over_limit(&watched, budget, &exceeded);
            }
            token.cancel();
            discard(watched);
        };
        let watch = timer.watch(limit, Box::new(expire));
        Self { run, timer, budget, limit, ends_task, watch, is_over: None }
    }

    /// The body is over; whether it took too long.
    fn stop_watching(&mut self) -> bool {
        // First: a strike that is under way now has found the limit exceeded, and so will this.
        drop(self.watch.take());
        *self.is_over.get_or_insert_with(|| self.limit <= self.timer.clock.read())
    }

    /// The body has returned. Fails the run if it took too long.
    fn end(mut self) {
        if !self.stop_watching() {
            return;
        }
        let (ends_task, over) = (self.ends_task, over(self.budget));
        if ends_task {
            end_over_limit(&self.run, self.budget, &self.timer.exceeded);
        } else {
            count(&self.timer.exceeded);
        }
        drop(self);
        // No panic of anybody's code, so neither goes through the process's panic hook.
        if ends_task {
            panic::resume_unwind(Box::new(AlreadyTold(over)));
        }
        panic::resume_unwind(Box::new(over));
    }
}

impl Drop for LimitedRun<'_> {
    fn drop(&mut self) {
        let is_over = self.stop_watching();
        self.run.task.end_limited_run(is_over);
    }
}

fn over(budget: Duration) -> String {
    format!("the run was over its budget of {budget:?}")
}

/// Ends a periodic task, unless it has ended, because a run took too long, and says so.
fn end_over_limit(run: &CurrentRun, budget: Duration, exceeded: &AtomicU64) {
    let why = over(budget);
    let failure = FailedRun::over_limit(run.number, &why);
    let found = run.task.time_out(Some(failure), run.hooks.drops(run.id));
    if found != Cancellation::TooLate {
        count(exceeded);
        trace_timed_out(&*run.task, run.id);
        run.hooks.tell_ended(PanicSource::TimeLimit, &run.subject(), &why);
    }
}

fn trace_timed_out(task: &dyn Runnable, id: u64) {
    // With a value for that case the task has completed.
    if trace::is_listening() && task.state() == TaskState::Cancelled {
        trace::cancelled(id, task.name().as_deref(), &CancelReason::TimedOut);
    }
}

fn count(exceeded: &AtomicU64) {
    // Relaxed: a count, which orders no other access.
    exceeded.fetch_add(1, Ordering::Relaxed);
}
