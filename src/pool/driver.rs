//! The driver: a caller that stands in for all threads of a pool.
//!
//! ```text
//!   worker                      run_due ── takes what was due at the call, in order, and runs it
//!   timer thread          ──▶           ── expires the limits whose time is up, each at its place in the order
//!   their sleep                 arm     ── says when to call next; the waker is called if that moment moves earlier
//! ```
//!
//! A pool with a driver needs no thread: the driver counts as the one worker from its creation until termination, and
//! the timer thread's queue exists as if that thread had been started (`Timeouts::do_without_thread`). So submitting,
//! ending and rescheduling a task run the same code as in a pool with threads, and cost the same. The driver takes from
//! the same queues under the same locks, and runs a task with the same [`Runner`] as a worker.
//!
//! # Rounds
//!
//! Each call to `run_due` is a *round*: it lists the tasks that are due when it begins, with their deadlines, and takes
//! each of them that is still in the queue with that deadline. A task that is queued or moved during a round waits for
//! the next one. So each task runs at most once in a round, and a round ends even on a clock that stands still.
//!
//! A series that has missed runs makes up for one of them in each round; all runs start in the order of their
//! deadlines, as on a worker. So if a series is queued again for a later run that was already due when the round began,
//! the round ends where that run comes in the order, and [`Driver::arm`] then says to call again at once.
//!
//! The list names entries and does not own them: a task that waits for its turn in a round is pending, and can be
//! cancelled, moved or drained. Limits have sequence numbers, so a round expires only limits queued before it began.
//!
//! # Termination
//!
//! A worker holds up termination for as long as it lives. The driver does so only while it runs something, since the
//! pool cannot know when the driver will be called next. So a shutdown terminates the pool if nothing is running or
//! left to run; otherwise the driver does, once it has run the last task. If the last task is cancelled after the
//! shutdown, while no party is registered, the next call to the driver terminates the pool
//! ([`is_abandoned`](super::lifecycle)).
//!
//! # Why no wake-up is lost
//!
//! [`Driver::arm`] returns the moment at which the driver has to be called next, and lists the waker, which is called
//! if that moment turns out to be too late. The driver is then on three lists of waiters: one for termination, and one
//! in each of the [queues](crate::queue) of tasks and limits. In each queue it is the only waiter, and so the leader.
//! It is not listed while it runs something. Once it is listed, it looks at both queues and the phase, and only then
//! says when to call again. Once its waker has been called, the driver counts as a searcher until the driver itself is
//! called again.
//!
//! # The driver's thread
//!
//! A driver cannot be sent to another thread. Therefore, as long as the driver lives, its thread is in a
//! [scope](super::lifecycle) of the pool, with the role of a worker. While this thread is blocked, nothing runs. So a
//! wait for termination is refused, as is a wait for a task unless the wait has a time limit
//! ([`deadlock`](super::deadlock)). Because there is no timer thread, a time limit of the awaited task does not help.

use std::{rc::Rc, task::Waker};

use super::{
    Pool,
    lifecycle::{PoolScope, Role},
    worker::Runner,
};
use crate::{
    feature::expire,
    queue::{AsyncWaiter, DelayedWorkQueue, QueueEntry, SnapshotEntry, Source},
    sync::{Arc, Parker},
    task::{Task, WorkerContext},
    time::{Clock, Timestamp},
    unwind::discard,
    wait::Place,
};

/// The number of the driver among the workers of its pool.
pub(super) const NUMBER: usize = 1;

pub(crate) struct Driver {
    runner: Runner,
    worker: Rc<WorkerContext>,
    limits: Arc<DelayedWorkQueue<Arc<Task>>>,
    /// The driver's place among the waiters for a task.
    for_task: AsyncWaiter<()>,
    for_limit: AsyncWaiter<()>,
    for_end: Place,
    _at_home: PoolScope,
}

/// What one call of [`Driver::run_due`] did.
#[derive(Default)]
pub(crate) struct Round {
    taken: usize,
    /// How many of the `taken` tasks have run. The others ended without a run, or their runs were put off, skipped, or
    /// left out as overdue.
    pub(crate) ran: usize,
}

impl Driver {
    /// Makes the driver, the only worker of its pool. The pool must not be shared with another thread yet.
    pub(crate) fn new(pool: &Arc<Pool>) -> Self {
        debug_assert!(pool.is_driven);
        let (number, stats) = pool.workers.add_driver();
        debug_assert_eq!(number, NUMBER);
        let runner = Runner::new(Arc::clone(pool), number, stats, false);
        Self {
            worker: runner.context(),
            runner,
            limits: pool.extensions.alarms(pool.clock()),
            for_task: AsyncWaiter::new(),
            for_limit: AsyncWaiter::new(),
            for_end: Place::default(),
            _at_home: pool.lifecycle.enter(Role::Worker),
        }
    }

    fn pool(&self) -> &Arc<Pool> {
        &self.runner.pool
    }

    /// Runs one round: runs each due task once, in order, and expires the limits whose time is up. If a series is
    /// queued again for a later run that was already due, the round ends where that run comes in the order.
    pub(crate) fn run_due(&mut self) -> Round {
        self.disarm();
        let pool = self.pool();
        let now = pool.clock().read();
        let published = pool.queue.head().min(self.limits.head());
        if published > now && !pool.queue.is_finished() || !pool.lifecycle.register() {
            return Round::default();
        }
        let round = self.run_round(now);
        if pool.follows_takes {
            let now = pool.clock().read();
            self.runner.takes.look(&pool.callbacks.hooks, &self.worker, now);
        }
        pool.deregister();
        round
    }

    pub(crate) fn run_all(&mut self) {
        while self.run_due().taken > 0 {}
    }

    fn run_round(&self, now: Timestamp) -> Round {
        let end_of_limits = self.limits.next_sequence(0, now);
        let mut round = Round::default();
        // The place in the order of the first missed run that has been queued again.
        let mut end = (Timestamp::NEVER, u64::MAX);
        for SnapshotEntry { deadline, ticket, .. } in self.pool().queue.list_due(now) {
            if end < (deadline, ticket.sequence) {
                return round;
            }
            self.expire_until(deadline, end_of_limits);
            // Otherwise the entry is gone, or has been moved since and belongs to another round.
            if let Some(entry) = self.pool().queue.take_at(deadline, ticket) {
                let series = entry.element.is_periodic().then(|| Arc::clone(&entry.element));
                self.run(entry, &mut round);
                // The series' next deadline, if it is in the queue again.
                let queued = |series: &Arc<Task>| ticket.moved_to(series.slot());
                let next =
                    series.as_ref().map(queued).and_then(|it| self.pool().queue.deadline(it));
                if let Some(next) = next.filter(|next| deadline < *next && *next <= now) {
                    end = end.min((next, ticket.sequence));
                }
                discard(series);
            }
        }
        self.expire_until(now, end_of_limits);
        round
    }

    /// Expires each limit whose time is up at `moment` and whose sequence number is below `end`. A limit comes before a
    /// task of the same moment.
    fn expire_until(&self, moment: Timestamp, end: u64) {
        while let Some(entry) = self.limits.take_due_before(moment, end) {
            expire(&*entry.element, self.pool());
        }
    }

    fn run(&self, entry: QueueEntry<Arc<Task>>, round: &mut Round) {
        let (pool, runs) = (self.pool(), self.runner.runs());
        let started = pool.clock().read();
        self.runner.process(&self.worker, entry, started);
        round.taken += 1;
        round.ran += usize::from(self.runner.runs() > runs);
    }

    /// Returns when the driver has to be called next: `PAST` to terminate the pool, `NEVER` if no call is needed.
    pub(crate) fn next(&self) -> Timestamp {
        self.unless_finished(self.pool().queue.first_two()[0].min(self.limits.first_two()[0]))
    }

    /// Returns `first` until the queue is finished, then `PAST` if the driver has to terminate the pool, else `NEVER`.
    fn unless_finished(&self, first: Timestamp) -> Timestamp {
        match &**self.pool() {
            pool if !pool.queue.is_finished() => first,
            pool if pool.lifecycle.is_abandoned() => Timestamp::PAST,
            _ => Timestamp::NEVER,
        }
    }

    /// Lists `waker`, and returns the same moment as [`next`](Self::next). Until the driver is called again, `waker` is
    /// called if that moment turns out to be too late, or if the pool terminates.
    pub(crate) fn arm(&mut self, waker: &Waker) -> Timestamp {
        let Self { runner, limits, for_task, for_limit, for_end, .. } = self;
        let pool = &runner.pool;
        let first = limits.watch(for_limit, waker).min(pool.queue.watch(for_task, waker));
        if pool.lifecycle.poll_terminated(for_end, waker, false).is_some() {
            return Timestamp::NEVER;
        }
        self.unless_finished(first)
    }

    pub(crate) fn disarm(&mut self) {
        let Self { runner, limits, for_task, for_limit, for_end, .. } = self;
        limits.cancel_wait(for_limit);
        runner.pool.queue.cancel_wait(for_task);
        runner.pool.lifecycle.forget(for_end);
    }

    /// Runs rounds until `poll` returns an answer, and sleeps while nothing is due.
    pub(crate) fn drive_until<R>(&mut self, mut poll: impl FnMut(&Waker) -> Option<R>) -> R {
        // The caller may be waiting for termination.
        self.pool().remove_released();
        let (clock, parker) = (self.pool().clock().clone(), Parker::current());
        let attending = Attending::begin(&clock, &parker);
        let wait = clock.wait(&parker);
        loop {
            if let Some(answer) = poll(parker.waker()) {
                self.disarm();
                drop((wait, attending));
                return answer;
            }
            if self.run_due().taken == 0 {
                let next = self.arm(parker.waker());
                wait.park_until(next);
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// Until this is dropped, a manual clock counts the driving thread as a waiting worker.
struct Attending<'a> {
    clock: &'a Clock,
    parker: &'a Parker,
    /// The former value of [`Parker::works_for`]; `None` if the thread already worked for `clock`.
    before: Option<usize>,
}

impl<'a> Attending<'a> {
    fn begin(clock: &'a Clock, parker: &'a Parker) -> Self {
        let before = clock.worker_begins(parker);
        let before = (before == 0 || before != clock.address()).then_some(before);
        if before.is_some() {
            clock.worker_starts();
            clock.driver_waits();
        }
        Self { clock, parker, before }
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.parker.works_for.set(before);
            self.clock.driver_goes_on();
            self.clock.worker_ended();
        }
    }
}
