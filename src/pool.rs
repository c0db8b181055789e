//! The pool: tasks, a queue, and the workers between them.
//!
//! ```text
//!   admit ──▶ queue ──▶ worker: run ──▶ Ended
//!               ▲                  └──▶ Again(when) ──┐
//!               └─────────── requeue ─────────────────┘
//! ```
//!
//! The queue and the tasks do not refer to each other: the pool connects them. Each part of the pool owns its state,
//! keeps its invariants, and is passed what it needs from other parts; only the features refer to the pool.
//!
//! | part | what it owns | under which lock |
//! |---|---|---|
//! | [`queue`](crate::queue) | the pending tasks | the stripes', the ready list's and the waiters' |
//! | [`Capacity`] | the bound on pending tasks, and the submitters that wait for room | its own |
//! | [`Rejections`] | the handler for tasks that are not admitted, and the counts of such tasks | one around the handler |
//! | [`Workers`] | the list of workers, the reasons why idle ones stay, and what workers wait for | the roster's, and the join registry's |
//! | [`Spawner`] | the thread factory, and the settings of new threads | one around the factory |
//! | [`Lifecycle`] | the pool's phase, what holds up termination, and which threads act for the pool | its own; the threads' roles are in thread-locals |
//! | [`Policies`] | which tasks a shutdown keeps | none |
//! | [`Groups`](crate::feature) | weak references to the live groups | their list's |
//! | [`PoolExtensions`] | the state of the features: the list of groups, and the timer threads with their queue | the list's, and the queue's |
//! | [`Callbacks`] | the hooks and decorators of the builder; they never change | none |
//!
//! [`Pool`] implements the protocols, each of which involves several parts:
//!
//! | protocol | its steps |
//! |---|---|
//! | [`submitting`] | offer a task, and rescue or reject it |
//! | [`worker`] | take a task, run it, and queue it again |
//! | [`driver`] | the same, on the caller's thread |
//! | [`staffing`] | start a worker, or go on without one |
//! | [`deadlock`] | enter a wait, or refuse it |
//! | [`shutdown`] | stop, tidy, and wait for the end |
//! | this file | cancel a task, and take out or move its entry |
//!
//! Lock order: the locks of the roster, of the lifecycle and of a task come before the queue's (`docs/locks.md`).
//!
//! # Cancelling
//!
//! [`Pool::cancel`] decides under the task's lock whether it ends the task (`TaskHandle::cancel` takes the same two
//! steps). If a waiting task ends, `cancel` then removes the task's queue entry, using the entry's slot. Once a call
//! that ended the task has returned, the entry is gone, and the closure has been dropped unless the task is running.
//! Three steps of other threads can interfere:
//!
//! * *A worker takes the entry*: the worker finds nothing to run, and drops its reference to the task.
//! * *A worker queues the task again*: it does so under the task's lock. If the worker gets the lock first, the
//!   cancelling thread takes the entry out; otherwise the worker queues nothing.
//! * *The slot goes to another entry*: the queue sees that the sequence numbers differ, and removes nothing.
//!
//! # Moving an entry
//!
//! The entry of a live task moves on request ([`feature::control`](crate::feature) says what that means for the task),
//! when the task's wait for its group or its gate ends, and when a timer is reset. Unless the entry is a timer's, the
//! moving thread takes the task's lock before the queue's, as does a worker that queues a task again. After
//! `stop` or `shutdown_now`, a request has no effect. In a closed queue an entry can only move earlier, because the
//! shutdown decides by the deadlines in the queue which tasks to cancel.
//!
//! The entry may have been parked, because its task was paused, was waiting for its group or its gate, or runs on
//! demand. No worker is kept alive for a parked entry. So a thread that has moved an entry wakes the waiter, if any,
//! that must learn of the move. Then, as a submission does, the thread checks whether any worker will take the entry
//! ([`Pool::compensate`]). The rule in [`workers`] treats the task as newly queued.
//!
//! `docs/decisions/cost.md` lists what scheduling and cancelling cost; [`queue`](crate::queue) says which thread is
//! woken, and when none is.

mod admission;
mod deadlock;
mod driver;
mod lifecycle;
mod shutdown;
mod staffing;
mod submitting;
mod takes;
mod worker;
mod workers;

use std::{mem, task::Waker, time::Duration};

pub use self::deadlock::WaitGuard;
use self::{
    admission::{Capacity, Rejections},
    lifecycle::{Lifecycle, Policies},
    workers::Workers,
};
pub(crate) use self::{
    driver::Driver,
    lifecycle::{Phase, Role},
    submitting::{PoolRef, PoolRefs, Staffing},
};
use crate::{
    CancelReason, CancellationToken,
    drained::DetachedContext,
    entry::{MoveEntry, Moved, Ticket, Timing},
    feature::PoolExtensions,
    queue::DelayedWorkQueue,
    rejection::{AbortPolicy, RejectedExecutionHandler},
    shutdown_report::EndLog,
    sync::Arc,
    task::{Around, Cancellation, Hooks, Points, Submission, Task},
    thread_factory::{self, Spawner, ThreadFactory},
    time::{Clock, Timestamp},
    trace,
    unwind::{Callback, Contained, Replaceable, discard, wake_all},
};

/// The settings that a pool is made with; the builder fills them in.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) core_pool_size: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) core_timeout: bool,
    pub(crate) max_pending: Option<usize>,
    pub(crate) thread_name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) timer_slack: Duration,
    /// How long before a deadline a worker wakes up; see `Builder::precise`.
    pub(crate) lead: Duration,
    /// `None` for the system clock, which some targets lack.
    pub(crate) clock: Option<Clock>,
    /// True if the pool has a [`driver`] in place of threads.
    pub(crate) is_driven: bool,
    pub(crate) stripes: usize,
    pub(crate) keep_delayed: bool,
    pub(crate) keep_periodic: bool,
    pub(crate) thread_factory: Callback<dyn ThreadFactory>,
    pub(crate) rejection: Callback<dyn RejectedExecutionHandler>,
    pub(crate) callbacks: Callbacks,
    /// How long a run may take before it is reported as slow, unless its task has a setting of its own.
    pub(crate) warn_after: Option<Duration>,
    pub(crate) submitter_span: bool,
}

impl Config {
    /// Returns the default thread factory (`std` threads) and the default rejection handler ([`AbortPolicy`]).
    pub(crate) fn defaults() -> (Callback<dyn ThreadFactory>, Callback<dyn RejectedExecutionHandler>)
    {
        (
            Contained::new(Arc::new(thread_factory::std_thread)),
            Contained::new(Arc::new(AbortPolicy)),
        )
    }
}

type Decorator = dyn Fn(&Submission<'_>) -> Around + Send + Sync;
type RunWatch = dyn Fn(&Submission<'_>, Duration, &Pool) -> Around + Send + Sync;

/// The callbacks that the builder was given and that cannot be replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) hooks: Hooks,
    pub(crate) decorate: Option<Callback<Decorator>>,
    /// The function that returns code to put around a task's runs: that code reports each run of the given length or
    /// longer.
    pub(crate) watch: Option<Callback<RunWatch>>,
}

/// What a cancellation does to a running body. Java: `mayInterruptIfRunning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRunning {
    Signal,
    LetReturn,
}

pub(crate) struct Pool {
    clock: Clock,
    pub(crate) callbacks: Callbacks,
    pub(crate) queue: DelayedWorkQueue<Arc<Task>>,
    pub(crate) capacity: Capacity,
    pub(crate) rejections: Rejections,
    pub(crate) workers: Workers,
    pub(crate) spawner: Spawner,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) policies: Policies,
    /// The token that `shutdown_now` cancels, and an ancestor of every task's token.
    pub(crate) token: CancellationToken,
    /// The tasks that have ended since a shutdown report was first asked for.
    pub(crate) log: EndLog,
    pub(crate) extensions: PoolExtensions,
    pub(crate) is_driven: bool,
    pub(crate) warn_after: Option<Duration>,
    submitter_span: bool,
    /// True if each submitted task gets a decorator, a watch for slow runs, or its submitter's span.
    pub(crate) extends_submissions: bool,
    /// True if taking a task involves extra steps, for a bound or for an observer.
    follows_takes: bool,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let clock = &config.clock.clone().unwrap_or_default();
        let observers = &config.callbacks.hooks;
        let is_decorated = config.callbacks.decorate.is_some();
        let make_token = if config.is_driven {
            CancellationToken::without_timer_thread
        } else {
            CancellationToken::with_clock
        };
        Arc::new(Self {
            queue: DelayedWorkQueue::new(clock.clone(), config.stripes, config.lead),
            capacity: Capacity::new(config.max_pending),
            workers: Workers::new(config.core_pool_size, config.core_timeout, config.keep_alive),
            spawner: Spawner {
                factory: Replaceable::new(config.thread_factory),
                thread_name: config.thread_name,
                stack_size: config.stack_size,
                timer_slack: config.timer_slack,
            },
            lifecycle: Lifecycle::new(),
            policies: Policies::new(config.keep_delayed, config.keep_periodic),
            token: make_token(clock.clone()),
            log: EndLog::default(),
            extensions: PoolExtensions::new(config.stripes, config.lead),
            follows_takes: config.max_pending.is_some()
                || observers.has(Points::TAKEN | Points::ENDED),
            extends_submissions: is_decorated
                || config.warn_after.is_some()
                || config.submitter_span,
            warn_after: config.warn_after,
            submitter_span: config.submitter_span,
            rejections: Rejections::new(config.rejection),
            callbacks: config.callbacks,
            is_driven: config.is_driven,
            clock: clock.clone(),
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the calling thread's span if tasks keep the span of their submitter; otherwise `None`.
    pub(crate) fn submitter_span(&self) -> Option<trace::SubmitterSpan> {
        if self.submitter_span { trace::SubmitterSpan::current() } else { None }
    }

    /// Returns the clock and the hooks, which a task still needs after it has been rejected or drained.
    pub(crate) fn detached_context(&self) -> DetachedContext {
        DetachedContext { clock: self.clock.clone(), hooks: self.callbacks.hooks.clone() }
    }

    // Cancelling.

    /// Ends a task as cancelled and takes it out of the queue. Returns `true` if this call ended it. `ticket` is the
    /// one that the task's submission returned. With [`IfRunning::Signal`], also cancels the token of a running body,
    /// even if the task was cancelled before.
    pub(crate) fn cancel(
        &self,
        task: &Task,
        ticket: Ticket,
        why: CancelReason,
        if_running: IfRunning,
    ) -> bool {
        let found = self.end_as_cancelled(task, ticket.sequence, why);
        self.take_out(task, ticket, found, if_running)
    }

    /// Removes the entry of an ended task or, with [`IfRunning::Signal`], cancels the token of its running body.
    /// `found` is the result of the attempt to end the task. Returns `false` if that attempt came too late.
    #[inline(always)]
    pub(crate) fn take_out(
        &self,
        task: &Task,
        ticket: Ticket,
        found: Cancellation,
        if_running: IfRunning,
    ) -> bool {
        match found {
            Cancellation::Waiting(slot) => {
                self.remove(ticket.moved_to(slot));
                return true;
            }
            _ if if_running == IfRunning::LetReturn => {}
            Cancellation::TooLate => task.signal(&self.token),
            Cancellation::Running => task.token(&self.token).cancel(),
        }
        found == Cancellation::Running
    }

    /// Like [`remove`](Self::remove), for callers that need not be fast: compiled once.
    #[inline(never)]
    pub(crate) fn evict(&self, ticket: Ticket) -> bool {
        self.remove(ticket)
    }

    /// Takes a task out of the queue, if its entry is there, and drops the queue's reference to the task.
    #[inline(always)]
    pub(crate) fn remove(&self, ticket: Ticket) -> bool {
        let Some(task) = self.queue.remove(ticket) else { return false };
        discard(task);
        self.entry_removed();
        true
    }

    /// Releases a removed task's permit, and wakes the idle workers if some may retire now. Terminates the pool if
    /// nothing is left in its closed queue. The caller must hold no lock.
    #[inline(always)]
    pub(crate) fn entry_removed(&self) {
        self.capacity.release();
        self.workers.pending_decreased(&self.queue);
        if self.queue.is_closed() {
            self.terminate_if_finished();
        }
    }

    /// Takes a task out of the queue, and ends it as removed. Returns `false` if it was not in the queue.
    pub(crate) fn remove_pending(&self, task: &Task, ticket: Ticket) -> bool {
        // Out of the queue first, so that no worker can take the task in between.
        let is_removed = task.find_entry(ticket, |ticket| self.evict(ticket).then_some(()));
        if is_removed.is_some() {
            self.end_as_cancelled(task, ticket.sequence, CancelReason::Removed);
        }
        is_removed.is_some()
    }

    /// Ends a task as cancelled and enters it into the log, unless it has ended already.
    pub(crate) fn end_as_cancelled(
        &self,
        task: &Task,
        id: u64,
        reason: CancelReason,
    ) -> Cancellation {
        let found = task.end_as_cancelled(id, reason, &self.callbacks.hooks);
        if found != Cancellation::TooLate {
            self.log.cancelled(id, || task.name());
        }
        found
    }

    /// Ends a task that was forced out of the queue. If this call ended a periodic task, also reports `why`.
    fn displace(&self, task: Arc<Task>, id: u64, reason: CancelReason, why: &'static str) {
        let found = self.end_as_cancelled(&*task, id, reason);
        if found != Cancellation::TooLate && task.is_periodic() {
            self.callbacks.hooks.tell_displaced(&*task, id, why);
        }
        discard(task);
    }

    // Moving an entry.

    /// Returns a value that can move a task's entry. After moving the entry, the caller must pass this value to
    /// [`call_worker`](Self::call_worker) while holding no lock.
    pub(crate) fn entry(&self, ticket: Ticket) -> QueuedEntry<'_> {
        QueuedEntry { queue: &self.queue, ticket, is_moved: false, wake: None }
    }

    /// Calls `act` with a function that moves a task's entry, and then calls [`call_worker`](Self::call_worker).
    #[inline]
    pub(crate) fn with_entry<A>(
        self: &Arc<Self>,
        ticket: Ticket,
        act: impl FnOnce(&mut MoveEntry<'_>) -> A,
    ) -> A {
        let mut entry = self.entry(ticket);
        let done = act(&mut |slot, choose| entry.move_to(slot, choose));
        self.call_worker(entry);
        done
    }

    /// Wakes the waiter that must learn of a moved entry, and starts a worker if none would take the entry.
    pub(crate) fn call_worker(self: &Arc<Self>, entry: QueuedEntry<'_>) {
        wake_all(entry.wake);
        if entry.is_moved {
            self.compensate_or_report();
        }
    }
}

/// Moves the queue entry of one task, and keeps the waker that the moving thread has to call afterwards.
#[must_use = "a task that is due would wait"]
pub(crate) struct QueuedEntry<'a> {
    queue: &'a DelayedWorkQueue<Arc<Task>>,
    /// The task's ticket. The slot in the ticket may be out of date or missing.
    ticket: Ticket,
    is_moved: bool,
    wake: Option<Waker>,
}

impl QueuedEntry<'_> {
    pub(crate) fn move_to(
        &mut self,
        slot: Option<u32>,
        choose: &mut dyn FnMut(Timestamp, bool) -> Option<Timing>,
    ) -> Moved {
        let (moved, wake) = self.queue.reset(self.ticket.moved_to(slot), choose);
        if let Moved::To(_) = moved {
            (self.is_moved, self.wake) = (true, wake);
        }
        moved
    }
}

/// Adds `one` to a list of things that end by themselves, such as threads. If the list is full, first removes the
/// elements that have ended, returns them for the caller to drop, and reserves room for more elements than are left. So
/// an addition costs at most two checks on average.
pub(crate) fn keep<T>(kept: &mut Vec<T>, one: T, is_over: impl FnMut(&T) -> bool) -> Vec<T> {
    let mut gone = Vec::new();
    if kept.len() == kept.capacity() {
        (gone, *kept) = mem::take(kept).into_iter().partition(is_over);
        kept.reserve(kept.len() + 1);
    }
    kept.push(one);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many elements are added, an addition costs at most two checks on average.
    #[test]
    fn who_lives_is_not_asked_at_each_addition() {
        const MANY: usize = 10_000;
        let (mut kept, mut asked) = (Vec::new(), 0);
        for number in 0..MANY {
            let gone = keep(&mut kept, number, |_| {
                asked += 1;
                false
            });
            assert!(gone.is_empty());
        }
        assert!(asked <= 2 * MANY, "asked {asked} times");
        assert_eq!(kept.len(), MANY);
    }

    /// Of elements that end one after another, only a few are kept; the others are returned, each once.
    #[test]
    fn who_has_gone_is_not_kept() {
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for number in 0..1_000 {
            gone.append(&mut keep(&mut kept, number, |other| *other < number));
            assert!(kept.len() < 10);
        }
        gone.append(&mut kept);
        assert_eq!(gone, Vec::from_iter(0..1_000));
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "pool/tests/exhaustive.rs"]
mod exhaustive;
