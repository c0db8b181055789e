//! Gates: code that decides, just before a run of a task, whether the run takes place.
//!
//! A program that runs on several machines has the same periodic task on each, but often only one machine should carry
//! out each run. A [`RunGate`] arranges that. It is set with [`TaskBuilder::gate`](crate::TaskBuilder::gate), and the
//! worker asks it before each run, with no lock held. The gate lets the run pass, skips it, or says when to ask again.
//! It may also hand out a [`Lease`]: a permission that can be lost while the run goes on. A task without a gate pays
//! nothing for gates.
//!
//! This crate defines the interface, but contains no gate that talks to other machines. [`from_fn`] and [`RunGate`]
//! have examples.
//!
//! # The order of events
//!
//! A worker takes the task. It does not ask the gate in any of these cases: the time limit of a one-shot task is up;
//! the wall clock was set back to a time before the run's moment; the task has to wait for its group; the run is past
//! its [starting deadline](crate::MissedRuns); the task's own token is cancelled. Otherwise, these follow in order:
//! [`RunGate::enter`], [`Lease::watch`], the hook before the run, the code around the body, the body, the hook after
//! the run, and [`Lease::leave`]. Only then does the outcome of the run become visible.
//!
//! # Ticks
//!
//! A [`Tick`] is one moment of the task's schedule, for which one run is planned. The moment does not include the delay
//! that [jitter](crate::Trigger::jitter) adds. However often the gate says [`Entry::Again`], the tick keeps its planned
//! moment and its run number, and the worker still measures lateness and counts missed runs from that moment. A request
//! for another moment, such as [`reschedule`](crate::TaskHandle::reschedule), begins another tick, even if it names the
//! very moment at which the gate would have been asked again. [`Entry::At`] also begins another tick. A run beside the
//! schedule ([`run_now`](crate::TaskHandle::run_now)) is a tick of its own, planned for the moment of the call.
//!
//! # While a gate is asked
//!
//! A gate may block, on a database for instance, but must itself limit how long it blocks. While it blocks, it occupies
//! the worker, and the task is [`Running`](crate::TaskState::Running), so a graceful shutdown waits for the task.
//! Inside the gate, [`current_task`](crate::current_task) returns the task. Cancelling the task completes its future at
//! once. After the answer the worker checks the task again. The body does not run if the task or its token was
//! cancelled, if its time limit or its starting deadline has passed, or after
//! [`shutdown_now`](crate::Handle::shutdown_now). The time limit of a one-shot task includes the time in its gate and
//! in [`Lease::leave`]. The time limit of a periodic task's run starts to count once the gate has let the run pass.
//!
//! # An answer that comes later
//!
//! A gate that has to wait for another machine should not do so on a worker. Instead, it hands the [`Reply`] from
//! [`later`] to another thread, and returns the entry that came with the reply. The task then waits in the queue, due
//! but parked: it is [`Scheduled`](crate::TaskState::Scheduled), and occupies no worker. Its group counts the task as
//! pending, although the task keeps its permit. When the reply is sent, the next free worker takes the task and acts as
//! if the gate had just given the answer. [`Tick::attempt`] counts the question and its late answer as one attempt.
//!
//! Apart from the time limit of a one-shot task, only the gate can limit the wait for the reply. A graceful shutdown
//! waits for a one-shot task that awaits a reply. The shutdown ends a series that awaits a reply, unless the executor
//! [keeps](crate::Builder::continues_existing_periodic_tasks_after_shutdown) series. A task's own
//! [policy](crate::TaskBuilder::on_shutdown) takes precedence. If the task is cancelled, paused, drained or given
//! another moment before the reply is sent, the reply has no effect: the sending thread only calls [`Lease::leave`] for
//! a lease in the reply. After a pause, the gate is asked again. A run beside the schedule goes on waiting through a
//! pause. [`ManualClock::run_until_idle`](crate::ManualClock::run_until_idle) does not wait for a reply.
//!
//! The reply and the entry share a slot. The thread that answers and the thread that ends the wait both lock the slot,
//! and the second to lock it sees what the first has done. So an answer reaches only the run for which it was given. If
//! that run no longer waits, the second to lock the slot calls [`Lease::leave`] for a lease in the answer.
//!
//! # A lease that is lost before the body
//!
//! The worker checks [`Lease::is_lost`] right before the run. If the lease is lost, the run does not take place: the
//! worker calls [`Lease::leave`], and asks the gate about the tick again at once.
//!
//! # A gate is user code
//!
//! A panic in [`RunGate::enter`] or [`Lease::watch`] goes to the [failure handler](crate::Builder::failure_handler),
//! and the tick is skipped: a gate that panics lets no run pass. A panic in [`Lease::leave`] is reported, and changes
//! nothing.

mod asked;

use std::{
    fmt, mem,
    time::{Duration, Instant, SystemTime},
};

pub(crate) use self::asked::{GateQuestion, Gated, HeldLease};
use crate::{
    CancellationToken, Failure, TaskBuilder, TaskContext, TaskId,
    sync::{Arc, Mutex},
    time::{Clock, Timestamp},
    unwind::{discard, shield},
};

/// Decides just before a run of a task whether it takes place. Set with
/// [`TaskBuilder::gate`](crate::TaskBuilder::gate); the [module](self) says when it is asked. One gate may serve
/// several tasks; then several workers may ask it at once.
///
/// ```
/// use std::{sync::atomic::{AtomicBool, Ordering}, time::Duration};
/// use punctual::{RunGate, gate::{Entry, Tick}};
///
/// /// Waits until the printer is there, and checks every five seconds.
/// struct Printer(AtomicBool);
///
/// impl RunGate for Printer {
///     fn enter(&self, _: &Tick<'_>) -> Entry {
///         let is_there = self.0.load(Ordering::Relaxed);
///         if is_there { Entry::Run } else { Entry::Again(Duration::from_secs(5)) }
///     }
/// }
/// ```
#[doc(alias("leader_election", "distributed_lock"))]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a gate",
    label = "this does not say whether a run takes place",
    note = "for a closure write `gate::from_fn(|tick| ..)`; one that answers later returns the entry of `gate::later()`"
)]
pub trait RunGate: Send + Sync + 'static {
    /// Decides whether the run takes place. Called on the worker, just before the run, with no lock held. May block,
    /// and then occupies the worker. A panic counts as [`Entry::Skip`], and is reported.
    fn enter(&self, tick: &Tick<'_>) -> Entry;
}

impl<G: RunGate + ?Sized> RunGate for Arc<G> {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        (**self).enter(tick)
    }
}

/// # Gate, group and time limit
impl TaskBuilder<'_> {
    /// Sets a gate. Before each run of the task, the worker asks it whether the run takes place: see
    /// [`gate`](crate::gate). One gate, in an `Arc`, may serve several tasks. A run by hand, such as a
    /// [`DrainedTask`](crate::DrainedTask)'s, does not ask it.
    ///
    /// A closure becomes a gate by [`gate::from_fn`](crate::gate::from_fn), as the compiler says:
    ///
    /// ```compile_fail,E0277
    /// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    /// # use punctual::gate::{Entry, Tick};
    /// executor.task().gate(|_: &Tick<'_>| Entry::Skip); // an error: a closure is no gate
    /// ```
    #[doc(alias("leader_election", "distributed_lock"))]
    pub fn gate(mut self, gate: impl RunGate) -> Self {
        self.requested.gate = Some(Arc::new(gate));
        self
    }

    /// Sets a gate around the one already set, which `around` receives. The outer gate asks the inner one about the
    /// runs that it would itself let pass. If it does not return the inner gate's [lease](crate::gate::Lease), it
    /// leaves that lease with [`NotRun`](crate::gate::RunEnd::NotRun).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use punctual::{RunGate, ScheduledThreadPoolExecutor, gate::{Entry, Tick}};
    ///
    /// /// Asks the gate inside about every second run.
    /// struct EverySecond(Option<Arc<dyn RunGate>>);
    ///
    /// impl RunGate for EverySecond {
    ///     fn enter(&self, tick: &Tick<'_>) -> Entry {
    ///         let inner = self.0.as_ref().filter(|_| tick.run_number() % 2 == 0);
    ///         inner.map_or(Entry::Run, |inner| inner.enter(tick))
    ///     }
    /// }
    ///
    /// ScheduledThreadPoolExecutor::new(1).task().gate_around(EverySecond).submit(|| ())?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn gate_around<G: RunGate>(
        mut self,
        around: impl FnOnce(Option<Arc<dyn RunGate>>) -> G,
    ) -> Self {
        self.requested.gate = Some(Arc::new(around(self.requested.gate.take())));
        self
    }
}

/// The answer of a gate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Entry {
    /// The run takes place.
    Run,
    /// The run takes place under this lease. The worker [leaves](Lease::leave) the lease after the run.
    Hold(Arc<dyn Lease>),
    /// The run does not take place. A periodic task goes on to its next planned run as after one that succeeded. A skip
    /// is neither a run nor a failure, but is [counted](crate::Statistics::gate_skips), with the runs that were missed
    /// just before it; the next run is not told of these. A one-shot task ends with
    /// [`CancelReason::SkippedByGate`](crate::CancelReason::SkippedByGate).
    Skip,
    /// The worker asks the gate again after this time. Until then the task waits in the queue, like a delayed task.
    /// Zero means at once, but after all tasks that are already due. `Duration::MAX` means never: the task waits until
    /// a caller [asks for a run](crate::TaskHandle::run_now), gives it another moment, or cancels it.
    Again(Duration),
    /// The run is planned for this moment of the executor's [clock](Tick::clock) instead, as by
    /// [`reschedule`](crate::TaskHandle::reschedule), and the gate is asked then. So it is another tick: lateness,
    /// missed runs, [attempts](Tick::attempt), a [time limit](crate::TaskBuilder::timeout) and the grid of a fixed rate
    /// count from there. A moment that has passed means at once.
    At(Instant),
    /// The answer comes with the [`Reply`] that [`later`] returned together with this entry. Until then the task waits
    /// in the queue, and occupies no worker; the [module](self#an-answer-that-comes-later) says more.
    Later(PendingEntry),
}

impl fmt::Debug for dyn Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}

/// A permission to run that may be lost. A gate hands out one per run ([`Entry::Hold`]). The worker calls it with no
/// lock held.
///
/// ```
/// use std::{sync::Arc, time::Instant};
/// use punctual::{CancellationToken, gate::{self, Entry, Lease, RunEnd}};
///
/// struct Permission;
///
/// impl Lease for Permission {
///     fn watch(&self, _lost: CancellationToken) {
///         // Keep the token, and cancel it when the permission is lost.
///     }
///
///     fn leave(&self, _: RunEnd<'_>, _: Option<Instant>) {
///         // Give the permission back.
///     }
/// }
///
/// let gate = gate::from_fn(|_| Entry::Hold(Arc::new(Permission)));
/// ```
pub trait Lease: Send + Sync + 'static {
    /// Returns a number larger than every earlier lease's, for stores that refuse a writer with a smaller number;
    /// `None` by default. The task reads it with [`TaskContext::fencing_token`](crate::TaskContext::fencing_token).
    fn fencing_token(&self) -> Option<u64> {
        None
    }

    /// Returns `true` if the lease is known to be lost. The worker asks right before the run, and does not start a run
    /// whose lease is lost; the task can ask with [`TaskContext::is_lease_lost`](crate::TaskContext::is_lease_lost).
    fn is_lost(&self) -> bool {
        false
    }

    /// Hands over the token that the lease [cancels](CancellationToken::cancel) when it is lost. Called once, on the
    /// worker, before the body and before the last check of the task; must not block for long.
    ///
    /// Cancelling it cancels the [token](crate::TaskContext::token) of this run only: a periodic task goes on with its
    /// next tick. A panic counts as [`Entry::Skip`], and is reported; the lease is left.
    fn watch(&self, token: CancellationToken);

    /// Called exactly once for each lease that a gate has returned: on the worker, after the run and before its outcome
    /// is visible, or with [`RunEnd::NotRun`] if the run did not take place after all. `next` is the moment of the
    /// executor's [clock](Tick::clock) for which the next run is planned, including any request made meanwhile; `None`
    /// if there is none, if the task is paused, and after a run beside the schedule. A panic is reported, and changes
    /// nothing.
    fn leave(&self, end: RunEnd<'_>, next: Option<Instant>);
}

impl TaskContext {
    /// Returns the [fencing token](crate::gate::Lease::fencing_token) of the lease that the task's
    /// [gate](crate::TaskBuilder::gate) has handed out for this run; `None` without a lease, and if the lease has none.
    pub fn fencing_token(&self) -> Option<u64> {
        self.extensions.lease.as_ref().and_then(|held| held.lease.fencing_token())
    }

    /// Returns `true` if the lease of this run is [lost](crate::gate::Lease::is_lost), as far as is known; `false`
    /// without a lease. A lost lease also cancels the [token](Self::token).
    pub fn is_lease_lost(&self) -> bool {
        self.extensions.lease.as_ref().is_some_and(|held| held.lease.is_lost())
    }
}

/// How a run under a lease has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEnd<'a> {
    /// The run has succeeded.
    Completed,
    /// The run has failed: the hook before the run, the code around the body, the body or the trigger panicked; the
    /// body returned an `Err`; or, in a series, the run exceeded its time limit.
    Failed(&'a Failure),
    /// The run did not take place: before the body began, the task ended or stopped waiting for the answer, the
    /// starting deadline passed, an [outer gate](TaskBuilder::gate_around) refused, or the lease was lost or panicked.
    NotRun,
}

/// One moment of a task's schedule, about which a gate is asked.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    pub(crate) id: u64,
    pub(crate) name: Option<&'a str>,
    pub(crate) number: u64,
    pub(crate) planned: Timestamp,
    /// `planned` as a wall-clock time; `None` unless the run was planned on the wall clock.
    pub(crate) wall: Option<SystemTime>,
    pub(crate) attempt: u32,
    pub(crate) is_periodic: bool,
    pub(crate) is_extra: bool,
    pub(crate) clock: &'a Clock,
}

impl Tick<'_> {
    /// Returns the id of the task.
    pub fn task_id(&self) -> TaskId {
        TaskId(self.id)
    }

    /// Returns the name that [`TaskBuilder::name`](crate::TaskBuilder::name) gave the task.
    pub fn name(&self) -> Option<&str> {
        self.name
    }

    /// Returns which run this would be: 1 for the first, and always 1 for a one-shot task. The tick after a skip has
    /// the same number.
    pub fn run_number(&self) -> u64 {
        self.number
    }

    /// Returns the moment of the schedule for which the run was planned, without [jitter](crate::Trigger::jitter);
    /// `None` if no [`Instant`] can represent it.
    pub fn planned(&self) -> Option<Instant> {
        self.clock.instant_of(self.planned)
    }

    /// Returns the same moment on the wall clock. It is exact, and so the same in every process, if the run was planned
    /// [on that clock](Self::is_on_wall). Otherwise it is computed from what both clocks show now, and differs between
    /// two calls.
    pub fn planned_wall(&self) -> SystemTime {
        self.wall.unwrap_or_else(|| self.clock.wall_at(self.planned))
    }

    /// Returns `true` if the run was planned on the wall clock ([`Due::Wall`](crate::trigger::Due::Wall)), as by a
    /// calendar.
    pub fn is_on_wall(&self) -> bool {
        self.wall.is_some()
    }

    /// Returns how often the gate has been asked about this tick: 1 at first, and one more after each [`Entry::Again`].
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns `true` if the task is periodic.
    pub fn is_periodic(&self) -> bool {
        self.is_periodic
    }

    /// Returns `true` if the run is beside the schedule of a periodic task, by [`run_now`](crate::TaskHandle::run_now).
    /// A task that waits for no moment, such as one [on demand](crate::trigger::on_demand), has no such run: a request
    /// is for its next one.
    pub fn is_extra(&self) -> bool {
        self.is_extra
    }

    /// Returns the clock of the executor. A gate that reads it can be tested on a [`ManualClock`](crate::ManualClock).
    pub fn clock(&self) -> &Clock {
        self.clock
    }
}

/// Makes a gate from a function.
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, gate::{self, Entry}};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let closed = gate::from_fn(|_| Entry::Skip);
/// let skipped = executor.task().gate(closed).submit(|| ())?;
/// assert!(skipped.join().is_err_and(|error| error.is_cancelled()));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn from_fn(enter: impl Fn(&Tick<'_>) -> Entry + Send + Sync + 'static) -> impl RunGate {
    GateFn(enter)
}

struct GateFn<F>(F);

impl<F: Fn(&Tick<'_>) -> Entry + Send + Sync + 'static> RunGate for GateFn<F> {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        (self.0)(tick)
    }
}

/// Returns the two ends of an answer that comes later: the gate keeps the [`Reply`], and returns the [`Entry`]. Does
/// not block. Costs one allocation.
///
/// ```
/// use std::thread;
/// use punctual::{ScheduledThreadPoolExecutor, gate::{self, Entry}};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let gate = gate::from_fn(|_| {
///     let (reply, entry) = gate::later();
///     thread::spawn(|| reply.send(Entry::Run)); // it asks another machine
///     entry
/// });
/// assert_eq!(executor.task().gate(gate).submit(|| "it may")?.join()?, "it may");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[must_use = "the entry is what the gate returns"]
pub fn later() -> (Reply, Entry) {
    let slot = Arc::new(ReplySlot(Mutex::new(ReplyState::Awaited(None))));
    (Reply(Arc::clone(&slot)), Entry::Later(PendingEntry(slot)))
}

/// Answers a question that a gate was asked earlier. Made by [`later`]. Dropping it without an answer skips the run.
#[derive(Debug)]
#[must_use = "dropping it skips the run"]
pub struct Reply(Arc<ReplySlot>);

/// An entry that is still to come. Made by [`later`]. The gate returns it as part of [`Entry::Later`].
#[derive(Debug)]
pub struct PendingEntry(Arc<ReplySlot>);

struct ReplySlot(Mutex<ReplyState>);

enum ReplyState {
    /// The answer has not come yet. The answering thread calls the function, if one was set.
    Awaited(Option<Box<dyn FnOnce() + Send>>),
    Given(Entry),
    /// The task has taken the answer, or no longer waits for it.
    Closed,
}

impl Reply {
    /// Gives the answer, on any thread. The next free worker then acts on it. Does not block; may start a worker. If
    /// the task no longer waits, because it was cancelled, paused or given another moment, or because its executor is
    /// gone, this call leaves a [lease](Entry::Hold) with [`RunEnd::NotRun`], and does nothing else.
    pub fn send(self, entry: Entry) {
        self.answer(entry);
    }

    fn answer(&self, entry: Entry) {
        let mut answer = self.0.0.lock();
        let ReplyState::Awaited(call) = &mut *answer else {
            drop(answer);
            return give_back(entry);
        };
        let call = call.take();
        *answer = ReplyState::Given(entry);
        drop(answer);
        if let Some(call) = call {
            call();
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // Does nothing if the reply was sent.
        self.answer(Entry::Skip);
    }
}

impl PendingEntry {
    pub(crate) fn is_given(&self) -> bool {
        !matches!(*self.0.0.lock(), ReplyState::Awaited(_))
    }

    /// Takes the answer; `None` if it has not come yet, or was already taken.
    pub(crate) fn take(&self) -> Option<Entry> {
        let mut answer = self.0.0.lock();
        match mem::replace(&mut *answer, ReplyState::Closed) {
            ReplyState::Given(entry) => Some(entry),
            other => {
                *answer = other;
                None
            }
        }
    }

    /// Sets the function that the answering thread calls. Does nothing if the answer has already come.
    pub(crate) fn when_given(&self, call: impl FnOnce() + Send + 'static) {
        if let ReplyState::Awaited(place) = &mut *self.0.0.lock() {
            *place = Some(Box::new(call));
        }
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        let answer = mem::replace(&mut *self.0.0.lock(), ReplyState::Closed);
        if let ReplyState::Given(entry) = answer {
            give_back(entry);
        }
    }
}

/// Leaves the lease of an answer whose run does not take place, and drops the answer. Calls user code, so the caller
/// must hold no lock.
fn give_back(entry: Entry) {
    if let Entry::Hold(lease) = &entry {
        shield(|| lease.leave(RunEnd::NotRun, None));
    }
    discard(entry);
}

impl fmt::Debug for ReplySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySlot").finish_non_exhaustive()
    }
}
