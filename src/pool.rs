//! The pool: tasks, a queue, and the workers between them.
//!
//! ```text
//!   admit ──▶ queue ──▶ worker: run ──▶ Ended
//!               ▲                  └──▶ Again(when) ──┐
//!               └─────────── requeue ─────────────────┘
//! ```
//!
//! The pool is the only place that knows both sides of the layer below it: the queue knows nothing of
//! tasks, and a task knows nothing of the queue. It consists of parts. A part owns its state, answers for it, and is
//! handed what it needs of others as an argument. [`Pool`] alone knows them all: it has the steps that need several.
//! These functions stand beside the part that they are about.
//!
//! | part | what it owns | under which lock | steps with other parts |
//! |---|---|---|---|
//! | [`queue`](crate::queue) | the pending tasks | that of a stripe, of the ready list, of the waiters | `cancel`, `remove`, `with_entry` |
//! | [`Capacity`](admission) | the bound on pending tasks, and the submitters that wait for room | its own | `ensure_worker`, `offer` |
//! | [`Rejections`](rejecting) | the handler for tasks that are not admitted, and its counts | one around the handler | `reject` |
//! | [`Workers`](workers) | which workers there are, and why idle ones stay | the roster's | `start_worker`, `compensate` |
//! | [`JoinRegistry`](deadlock) | what workers wait for | its own | `enter_join`, `enter_wait` |
//! | [`Spawner`](workers) | what threads are started with | one around the factory | `start_service` |
//! | [`Lifecycle`](lifecycle) | how far the pool has come, and what holds up termination | its own | `shutdown`, `stop`, `shutdown_now`, `deregister`, `join` |
//! | [`Policies`](shutdown) | what a shutdown keeps | none | `policy_changed` |
//! | [`Groups`](groups) | the groups that are alive | that of their list | `new_group`, `end_called_off`, `drain_member` |
//! | [`Timeouts`](timeouts) | the timer thread and its queue | those of that queue | `ensure_timer_thread` |
//! | [`Observing`](observing) | what is watched of workers and runs | those of the recorders | – |
//! | [`Callbacks`] | what the builder was given; it never changes | none | – |
//!
//! A [`worker`] has its pool, and a [`driver`] is in place of all threads. Where a thread holds two of these locks at
//! once, the roster's and the lifecycle's come before those of the queue, as a task's does (`docs/locks.md`).
//!
//! This file has what ends a task and takes its entry out of the queue, and what moves an entry.
//!
//! # Cancelling
//!
//! [`Pool::cancel`] decides under the task's lock, and then takes the entry out of the queue by
//! its slot. When it returns the closure has been dropped, unless the task is running, and the
//! entry is gone. Three other steps can fall between those two:
//!
//! * *A worker takes the entry in between*: it finds nothing to run, and drops the node.
//! * *A worker queues the task again*: it does so under the task's lock, so either before the decision (and
//!   the entry is taken out again) or after it (and nothing is queued).
//! * *The slot has been given to another entry*: the queue compares the sequence, and removes nothing.
//!
//! # Moving an entry
//!
//! The entry of a task that is alive moves on request ([`PoolRef::control`]; [`feature::control`](crate::feature) says
//! what that means for the task), when a group lets its task go, and when a timer is reset. The two locks are those of
//! queuing a task again, in the same order. Once the owner has been dropped, or the pool was shut down at once, no
//! request changes anything any more: what is pending is due, or its holder decides. In a queue that is closed an entry
//! may only come nearer: a shutdown decides by the deadlines that it finds once the queue is closed.
//!
//! An entry may have been parked: that of a task which was paused, waited for its group, or is on demand. No worker
//! stays for it. So a thread that has moved an entry does what a submission does for one that it has queued: it wakes a
//! waiter, and then looks whether a worker is left that would come ([`Pool::compensate`]). To the rule in [`workers`] a
//! task that gets a moment has just been queued, and the same argument holds.
//!
//! # The cost of a task
//!
//! One allocation, for its node. To schedule and cancel it takes one reading of the clock and
//! twelve read-modify-writes: six for locks (the stripe twice, the task), four for the counts of
//! the node (the queue's and the future's, and the one that std keeps for weak references), two for
//! that of the pool reference. To schedule it, drop the future and run it takes a second reading, and
//! fourteen: the stripe's lock, the ready list's and twice the task's, four for the node, two for the
//! pool reference. [`execute`](crate::Handle::execute) makes no future, and takes four less.
//! `ci/instructions.sh` counts them. Which thread is woken, and when none is:
//! [`queue`](crate::queue).

mod admission;
mod deadlock;
mod driver;
mod groups;
mod lifecycle;
mod observing;
mod pool_ref;
mod rejecting;
mod shutdown;
mod takes;
mod timeouts;
mod worker;
mod workers;

use std::{mem, task::Waker, time::Duration};

#[cfg(feature = "histograms")]
pub use self::observing::Histograms;
pub use self::observing::{RunningTask, Starvation};
use self::{
    admission::Capacity,
    groups::Groups,
    lifecycle::Lifecycle,
    observing::Observing,
    rejecting::Rejections,
    shutdown::Policies,
    timeouts::Timeouts,
    workers::{Spawner, Workers},
};
pub(crate) use self::{
    admission::{NotQueued, Staffing},
    deadlock::{JoinGuard, Role},
    driver::Driver,
    lifecycle::Phase,
    observing::ObservingConfig,
    pool_ref::{PoolRef, PoolRefs},
    timeouts::{Exceeded, TimeoutGuard, Timer, expiry},
};
use crate::{
    CancelReason, CancellationToken, SlowRun,
    drained::DetachedContext,
    entry::{MoveEntry, Moved, Ticket, Timing},
    queue::DelayedWorkQueue,
    rejection::{AbortPolicy, RejectedExecutionHandler},
    shutdown_report::EndLog,
    sync::Arc,
    task::{Around, Cancellation, Hooks, Point, Submission, Task},
    thread_factory::{self, ThreadFactory},
    time::{Clock, Timestamp},
    unwind::{Callback, Contained, discard, wake_all},
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
    /// How long before a deadline a worker wakes; see `Builder::precise`.
    pub(crate) lead: Duration,
    /// The system's if there is none: not every machine has that one.
    pub(crate) clock: Option<Clock>,
    /// There is no thread: see [`driver`].
    pub(crate) is_driven: bool,
    /// The number of heaps of the queue.
    pub(crate) stripes: usize,
    pub(crate) keep_delayed: bool,
    pub(crate) keep_periodic: bool,
    pub(crate) thread_factory: Callback<dyn ThreadFactory>,
    pub(crate) rejection: Callback<dyn RejectedExecutionHandler>,
    pub(crate) callbacks: Callbacks,
    pub(crate) observing: ObservingConfig,
}

impl Config {
    /// The default factory, which starts threads of the standard library, and the default handler,
    /// which has the submission fail.
    pub(crate) fn defaults() -> (Callback<dyn ThreadFactory>, Callback<dyn RejectedExecutionHandler>)
    {
        (
            Contained::new(Arc::new(thread_factory::std_thread)),
            Contained::new(Arc::new(AbortPolicy)),
        )
    }
}

type Decorator = dyn Fn(&Submission<'_>) -> Around + Send + Sync;
pub(crate) type OnSlowRun = dyn Fn(&SlowRun) + Send + Sync;
type OnStarvation = dyn Fn(&Starvation) + Send + Sync;

/// The callbacks that the builder was given. They never change; what of the user's code can be replaced is
/// [`Replaceable`](crate::shared).
#[derive(Clone, Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) hooks: Hooks,
    pub(crate) decorate: Option<Callback<Decorator>>,
    pub(crate) slow_run: Option<Callback<OnSlowRun>>,
    pub(crate) starvation: Option<Callback<OnStarvation>>,
}

/// The effect of a cancellation on a body that runs. Java: `mayInterruptIfRunning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRunning {
    /// It asks the body to stop.
    Signal,
    LetReturn,
}

/// See the [module](self).
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
    /// Raised by `shutdown_now`; the parent of every task's token.
    token: CancellationToken,
    /// The tasks that have ended, where a report is asked for.
    pub(crate) log: EndLog,
    pub(crate) timeouts: Timeouts,
    pub(crate) groups: Groups,
    pub(crate) is_driven: bool,
    pub(crate) observing: Observing,
    /// Something is added to each task that is submitted.
    pub(crate) extends_submissions: bool,
    /// Something is done about each entry that a worker takes: there is a bound, or workers are observed.
    follows_takes: bool,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let clock = &config.clock.clone().unwrap_or_default();
        let observing = Observing::new(config.observing, config.is_driven);
        let observers = &config.callbacks.hooks.observers;
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
            spawner: Spawner::new(&config),
            lifecycle: Lifecycle::new(),
            policies: Policies::new(&config),
            token: make_token(clock.clone()),
            log: EndLog::default(),
            timeouts: Timeouts::new(config.stripes, config.lead),
            groups: Groups::default(),
            follows_takes: config.max_pending.is_some()
                || observing.observes_takes()
                || [Point::Taken, Point::Ended].iter().any(|point| observers.has(*point)),
            extends_submissions: is_decorated || observing.extends_submissions(),
            observing,
            rejections: Rejections::new(config.rejection),
            callbacks: config.callbacks,
            is_driven: config.is_driven,
            clock: clock.clone(),
        })
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the context of a task that leaves the pool without having run.
    fn detached_context(&self) -> DetachedContext {
        DetachedContext { clock: self.clock.clone(), hooks: self.callbacks.hooks.clone() }
    }

    // Cancelling.

    /// Ends a task as cancelled and takes it out of the queue. Returns `true` if this call ended it.
    /// `ticket` is the one with which the task was submitted. A body that runs is asked to stop, if that is
    /// wanted, even if the task was cancelled before without that.
    #[inline(always)]
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

    /// Takes a task that has just been ended out of the queue, or asks its body to stop. `found` is
    /// what the attempt to end it found; returns `true` unless that was too late.
    #[inline(always)]
    fn take_out(
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

    /// Takes an entry out of the queue. Returns `true` if it was there.
    #[inline(always)]
    pub(crate) fn remove(&self, ticket: Ticket) -> bool {
        let Some(task) = self.queue.remove(ticket) else { return false };
        discard(task);
        self.entry_removed();
        true
    }

    /// Called when a task has been taken out of the queue, and not by a worker. The caller holds no lock.
    #[inline(always)]
    fn entry_removed(&self) {
        self.capacity.release();
        self.workers.pending_decreased(&self.queue);
        if self.queue.is_closed() {
            self.terminate_if_finished();
        }
    }

    /// Takes a pending task out of the queue, and ends it. Returns `true` if it was pending.
    pub(crate) fn remove_pending(&self, task: &Task, ticket: Ticket) -> bool {
        // First out of the queue, so that it cannot begin to run in between.
        let is_removed = task.find_entry(ticket, |ticket| self.remove(ticket).then_some(()));
        if is_removed.is_some() {
            self.end_as_cancelled(task, ticket.sequence, CancelReason::Removed);
        }
        is_removed.is_some()
    }

    /// Ends a task as cancelled, unless it has ended.
    #[inline(always)]
    fn end_as_cancelled(&self, task: &Task, id: u64, reason: CancelReason) -> Cancellation {
        let found = task.end_as_cancelled(id, reason, &self.callbacks.hooks);
        if found != Cancellation::TooLate {
            self.log.cancelled(id, || task.name());
        }
        found
    }

    /// Ends a task that has been taken out of the queue for lack of something, and reports it if it is a series.
    fn displace(&self, task: Arc<Task>, id: u64, reason: CancelReason, why: &'static str) {
        let found = self.end_as_cancelled(&*task, id, reason);
        if found != Cancellation::TooLate && task.is_periodic() {
            self.callbacks.hooks.tell_displaced(&*task, id, why);
        }
        discard(task);
    }

    // Moving an entry.

    /// Returns the entry of a task, for the task to move it. The caller [calls a worker](Self::call_worker) then, once it
    /// holds no lock.
    fn entry(&self, ticket: Ticket) -> QueuedEntry<'_> {
        QueuedEntry { queue: &self.queue, ticket, is_moved: false, wake: None }
    }

    /// Passes the mover of a task's entry to `act`, and calls a worker if the entry was moved.
    #[inline]
    pub(crate) fn with_entry<A>(
        self: &Arc<Self>,
        ticket: Ticket,
        act: impl FnOnce(&mut MoveEntry<'_>) -> A,
    ) -> A {
        let mut entry = self.entry(ticket);
        let done = act(&mut |slot, choose| entry.move_to(slot, choose));
        self.call_worker(entry.is_moved, entry.wake);
        done
    }

    /// Calls a worker for an entry that may have been moved: wakes the waiter that has to know, and starts a worker if
    /// none would come.
    fn call_worker(self: &Arc<Self>, is_moved: bool, wake: Option<Waker>) {
        wake_all(wake);
        if is_moved {
            self.compensate().unwrap_or_else(|error| self.go_without_worker(&error));
        }
    }
}

/// The entry of one task, as the task moves it, and the wake-up that the thread owes then.
#[must_use = "a task that is due would wait"]
struct QueuedEntry<'a> {
    queue: &'a DelayedWorkQueue<Arc<Task>>,
    /// The one with which the task was submitted.
    ticket: Ticket,
    is_moved: bool,
    wake: Option<Waker>,
}

impl QueuedEntry<'_> {
    fn move_to(
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

/// Adds one to a list of what ends by itself: the handle of a thread that has ended keeps its stack, and the entry of a
/// group that is gone its memory. When the list is full, what is over leaves it, for the caller to drop, and it gets
/// twice the room that is needed then. So each is looked at twice on average.
fn keep<T>(kept: &mut Vec<T>, one: T, is_over: impl FnMut(&T) -> bool) -> Vec<T> {
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

    /// Of many that are added each is checked only a few times.
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

    /// Of those that end one after the other only a few are kept, and each is returned once.
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
