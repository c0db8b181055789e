//! A task with a [gate](crate::gate): the gate is asked before each run, and may put the run off.
//!
//! The gate is user code and may block. So it is called as a body is: the closure has been taken out of the
//! task, which is [running](crate::TaskState::Running) meanwhile, and no lock is held. Everything that races with a run
//! races with the question in the same way: a cancellation ends the task at once and leaves the closure to
//! the worker, and what is asked of a periodic task is noted in [`control`](crate::feature).
//! The [question](Question::Gate) is a part of [`Call::carry_out`].
//!
//! # From the answer to the body
//!
//! ```text
//!   enter ──▶ Hold ──▶ watch ──▶ looked at once more ──▶ the closure is called ──▶ leave ──▶ publish
//!     │  └──▶ Run ──────────────────▲     └──▶ leave(NotRun) ──▶ publish ──▶ Verdict::Cancelled
//!     ├──▶ Again ──▶ the tick is kept ──▶ publish ──▶ Verdict::Again
//!     ├──▶ At ──▶ another tick is kept, in the same way
//!     ├──▶ Later ──▶ the tick is kept ──▶ publish ──▶ Verdict::Again ──▶ parked ──▶ the reply, in place of enter
//!     └──▶ Skip ──▶ Plan::skip ──▶ publish ──▶ Verdict::Again, Verdict::Cancelled
//! ```
//!
//! A run that is [overdue](crate::schedule) is left out before `enter`, so that no tick is claimed in vain, or
//! after the answer, which may have taken long.
//!
//! *Looked at once more* (`Call::look_again`) is one step under the task's lock. It comes after the last call of the gate, so
//! whatever has ended the task before that step keeps the body from running, and whatever comes after it
//! finds a body that runs. From there on the run goes the way of all runs. A run that does not take place
//! is published as one that another is to follow, and the task is then ended as one that waits
//! ([`give_back`](Call::give_back)).
//!
//! # A tick that waits
//!
//! To be asked again is another deadline for the entry in the queue, as everything in
//! [`control`](crate::feature) is. What the entry does not say is for which moment the run was planned and
//! how often the gate was asked; that is kept here, in [`Asked`], together with the deadline for which the
//! task was queued. A worker that takes the task for just that deadline has the same tick before it, unless
//! the gate was told of another plan meanwhile: that is another tick, also if it comes back to the same moment. No
//! change of a plan has to know about gates. An extra run is beside the plan, and its tick as well.
//!
//! # An answer that comes later
//!
//! While a gate has not answered yet its task is in the queue, due at the moment for which it was taken, but
//! [parked](crate::entry::Timing). The thread that gives the answer first puts it into the slot, and then lets the task go as a
//! group does: it waits for the task's lock, and finds the entry in the queue, or a worker that has it and sees the
//! answer when it queues the task. So no answer is overlooked.
//!
//! The task waits for an answer ([`AwaitedReply`]) only as long as its entry is due at that moment. Each step that gives it another
//! one, under the task's lock, drops the wait, and with it an answer that has come; if the entry was parked it is let go.
//!
//! # The token of a leased run
//!
//! A lease that is lost has to raise the token of its run and must not call the task off, which is what a
//! raised token of a task means. So it is given a token between that of the pool and that of the task. A run
//! under a lease therefore has a task's token of its own, as one with a time limit has.

use std::time::{Duration, SystemTime};

use super::{Entry, Lease, PendingEntry, RunEnd, RunGate, Tick};
use crate::{
    CancelReason, CancellationToken,
    entry::{Requeue, Timing},
    sync::{Arc, Weak},
    task::{
        Call, Core, Dispatcher, FailureSource, Leftovers, Question, Queuing, Replan, Run,
        RunOutcome, Task,
    },
    time::Timestamp,
    trace,
    unwind::discard,
};

pub(crate) struct Gated {
    /// Until the task has ended.
    gate: Option<Arc<dyn RunGate>>,
    dispatcher: Weak<dyn Dispatcher>,
    planned: Option<Asked>,
    extra: Option<Asked>,
    /// The answer that the one of the two is for whose entry is queued.
    awaited: Option<AwaitedReply>,
}

/// A tick about which the gate is to be asked again.
#[derive(Clone, Copy)]
struct Asked {
    /// The deadline with which the task is queued for that.
    entry: Timestamp,
    planned: Timestamp,
    attempt: u32,
}

/// An answer that a task waits for in the queue.
struct AwaitedReply {
    answer: PendingEntry,
    tick: OpenTick,
    parked: ParkedTask,
}

/// A tick about which the gate was asked, and has not answered yet.
#[derive(Clone, Copy)]
pub(crate) struct OpenTick {
    is_extra: bool,
    /// The deadline with which the task is queued for that.
    entry: Timestamp,
}

impl OpenTick {
    pub(crate) fn new(call: &Call<'_>, entry: Timestamp) -> Self {
        Self { is_extra: call.run.is_extra(), entry }
    }

    /// Returns `true` if the task is due for another tick: another plan may be one for the same moment.
    pub(crate) fn is_outdated(self, due: Timestamp, is_replanned: bool) -> bool {
        self.entry != due || is_replanned && !self.is_extra
    }
}

/// A task that is parked until its gate has answered.
#[derive(Clone)]
struct ParkedTask {
    dispatcher: Weak<dyn Dispatcher>,
    sequence: u64,
    task: Weak<Task>,
}

impl ParkedTask {
    fn let_go(self) {
        if let Some(dispatcher) = self.dispatcher.upgrade() {
            dispatcher.let_go(vec![(self.sequence, self.task)]);
        }
    }
}

pub(crate) struct GateQuestion {
    gate: Arc<dyn RunGate>,
    asked: Asked,
    awaited: Option<AwaitedReply>,
}

/// The lease that a run holds.
pub(crate) struct HeldLease {
    pub(crate) lease: Arc<dyn Lease>,
    /// Raised when the lease is lost; the parent of the task's token.
    pub(crate) token: CancellationToken,
    /// The token that the task had before, to be dropped when no lock is held.
    pub(crate) replaced: Option<CancellationToken>,
}

impl Gated {
    pub(crate) fn new(gate: Arc<dyn RunGate>, dispatcher: Weak<dyn Dispatcher>) -> Self {
        Self { gate: Some(gate), dispatcher, planned: None, extra: None, awaited: None }
    }

    fn tick(&mut self, is_extra: bool) -> &mut Option<Asked> {
        if is_extra { &mut self.extra } else { &mut self.planned }
    }

    /// Returns the question that the gate is to be asked: the task was queued for `entry`.
    fn ask(&mut self, entry: Timestamp, is_extra: bool) -> Option<GateQuestion> {
        let asked = self.tick(is_extra).take().filter(|asked| asked.entry == entry);
        let first = Asked { entry, planned: entry, attempt: 0 };
        let mut asked = asked.unwrap_or(first);
        let awaited = self.awaited.take();
        if awaited.is_none() {
            asked.attempt = asked.attempt.saturating_add(1);
        }
        Some(GateQuestion { gate: Arc::clone(self.gate.as_ref()?), asked, awaited })
    }

    /// Returns the answer that is awaited, if it is for another tick than the one for which the task is due.
    fn take_outdated(&mut self, due: Timestamp, is_replanned: bool) -> Option<AwaitedReply> {
        self.planned.take_if(|_| is_replanned);
        self.awaited.take_if(|it| it.tick.is_outdated(due, is_replanned))
    }

    pub(crate) fn is_awaiting(&self) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| !awaited.answer.is_given())
    }
}

impl Gated {
    pub(crate) fn before_run(&mut self, call: &mut Call<'_>) {
        if !call.run.is_by_hand() {
            let question = self.ask(call.run.planned(), call.run.is_extra());
            call.extras().question = question.map(|question| Question::Gate(Box::new(question)));
        }
    }

    pub(crate) fn on_requeue(&mut self, task: &Core<'_>, queuing: &mut Queuing) {
        if let Some(outdated) = self.take_outdated(queuing.due, queuing.is_replanned) {
            queuing.deferred.push(|| discard(outdated));
        }
        if self.awaited.is_none() {
            return;
        }
        // It is due, and what runs the tasks that are due has to wait for the answer.
        queuing.why = if task.is_periodic { Requeue::SeriesTurn } else { Requeue::Turn };
        // Unless its group has it end at once.
        if self.is_awaiting() && queuing.elsewhere.is_none() {
            queuing.elsewhere = Some(Timing::Parked { due: queuing.due });
        }
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan) {
        let Some(due) = replan.due else { return };
        let Some(outdated) = self.take_outdated(due, replan.plan.is_some()) else { return };
        replan.deferred.push(|| {
            let parked = outdated.parked.clone();
            discard(outdated);
            parked.let_go();
        });
    }

    pub(crate) fn on_end(&mut self, left: &mut Leftovers) {
        left.keep(self.awaited.take());
        left.keep(self.gate.take());
    }
}

impl Task {
    /// Drops an answer for which the task waits: it is run by hand.
    pub(crate) fn leave_gate(&self) {
        let awaited = self.with(|parts| parts.extensions()?.gate.as_mut()?.awaited.take());
        discard(awaited);
    }

    pub(crate) fn has_gate(&self) -> bool {
        self.with(|parts| {
            let gated = parts.extensions().and_then(|extensions| extensions.gate.as_ref());
            gated.is_some_and(|gated| gated.gate.is_some())
        })
    }
}

impl Run {
    pub(crate) fn hold_lease(&self, held: HeldLease) {
        debug_assert!(!self.is_leased(), "a worker has one run at a time");
        *self.worker.held.borrow_mut() = Some(held);
    }

    pub(crate) fn lease(&self) -> Option<Arc<dyn Lease>> {
        self.worker.held.borrow().as_ref().map(|held| Arc::clone(&held.lease))
    }

    pub(crate) fn is_leased(&self) -> bool {
        self.worker.held.borrow().is_some()
    }

    /// Takes the task's token, if the run holds a lease: it then has one of its own.
    pub(crate) fn replace_token(&self, token: &mut Option<CancellationToken>) {
        if let Some(held) = &mut *self.worker.held.borrow_mut() {
            held.replaced = token.take();
        }
    }

    pub(crate) fn release_lease(&self) -> Option<HeldLease> {
        self.worker.held.borrow_mut().take()
    }
}

enum GateAnswer {
    Run,
    Skip,
    /// To be asked again at this moment.
    Again(Timestamp),
    /// The run is at this moment instead.
    At(Timestamp),
    Later(PendingEntry),
}

impl Call<'_> {
    /// Asks the gate about a run that is about to begin, which may take place if this returns `Ok`.
    ///
    /// # Errors
    ///
    /// The outcome of a run that may not take place.
    #[inline(never)]
    pub(crate) fn pass_gate(&mut self, question: GateQuestion) -> Result<(), RunOutcome> {
        let GateQuestion { gate, asked, awaited } = question;
        self.run.planned.set(asked.planned);
        self.begin();
        if let Err(left_out) = self.be_in_time() {
            let drops = self.hooks.drops(self.run.id());
            drops.discard(gate);
            drops.discard(awaited);
            return Err(left_out);
        }
        let entry = match awaited {
            Some(AwaitedReply { answer, .. }) => {
                self.hooks.drops(self.run.id()).discard(gate);
                Some(Entry::Later(answer))
            }
            None => self.ask_gate(gate, asked.attempt),
        };
        match self.follow(entry) {
            GateAnswer::Run => self.begin_leased(asked),
            GateAnswer::Again(entry) => Err(self.put_off(Asked { entry, ..asked })),
            GateAnswer::At(planned) => Err(self.plan_anew(planned)),
            GateAnswer::Later(answer) => Err(self.wait_for(answer, asked)),
            GateAnswer::Skip => Err(self.skip()),
        }
    }

    /// Looks once more whether the run may begin that the gate has let through.
    fn begin_leased(&mut self, asked: Asked) -> Result<(), RunOutcome> {
        self.run.started.set(self.run.clock().read());
        if self.has_lost_lease() {
            self.leave_lease(RunEnd::NotRun, None);
            return Err(self.put_off(Asked { entry: self.run.started(), ..asked }));
        }
        self.be_in_time().and_then(|()| self.look_again()).inspect_err(|_| {
            self.leave_lease(RunEnd::NotRun, None);
        })
    }

    /// Looks at the task once more when its gate has let the run through: whatever has ended the task before this step
    /// keeps the body from running.
    ///
    /// # Errors
    ///
    /// The outcome of a run that does not take place.
    fn look_again(&mut self) -> Result<(), RunOutcome> {
        let run = self.run;
        let is_alive = run.task().with(|parts| {
            let is_alive = !parts.stage.is_done() && !parts.is_called_off();
            let is_alive = is_alive && !parts.is_over(run.clock()) && !run.is_stopped();
            if is_alive {
                // A run under a lease has a token of its own.
                run.replace_token(&mut parts.extras().token);
            }
            is_alive
        });
        // If it is neither its time nor its own token that ends the task, the pool was told to stop.
        if is_alive { Ok(()) } else { Err(self.give_back(CancelReason::ShutdownNow)) }
    }

    /// Returns `true` if the run holds a lease that is lost before it begins. A lease that panics is none.
    fn has_lost_lease(&self) -> bool {
        let Some(lease) = self.run.lease() else { return false };
        let is_lost = self.call_gate(FailureSource::Lease, || lease.is_lost()).unwrap_or(true);
        self.hooks.drops(self.run.id()).discard(lease);
        is_lost
    }

    fn ask_gate(&mut self, gate: Arc<dyn RunGate>, attempt: u32) -> Option<Entry> {
        let plan = self.plan.as_ref();
        let planned = plan.filter(|_| !self.run.is_extra());
        let (wall, offset) = match planned.and_then(|plan| plan.schedule.triggered()) {
            Some(plan) => (plan.wall_moment(), plan.offset),
            None => (None, Duration::ZERO),
        };
        let wall = wall.and_then(|moment| moment.checked_sub(offset));
        let moment = (self.run.planned().before(offset), wall);
        let name = self.run.task().name();
        let kind = (plan.is_some(), self.run.is_extra());
        let tick = tick(self.run, name.as_deref(), moment, attempt, kind);
        let entry = self.call_gate(FailureSource::Gate, || gate.enter(&tick));
        self.hooks.drops(self.run.id()).discard(gate);
        entry
    }

    /// Returns the consequence of an entry. If it gives a lease, the run holds that, and it is watched over.
    fn follow(&mut self, mut entry: Option<Entry>) -> GateAnswer {
        while let Some(Entry::Later(answer)) = entry {
            entry = answer.take();
            if entry.is_none() {
                return GateAnswer::Later(answer);
            }
            self.hooks.drops(self.run.id()).discard(answer);
        }
        match entry {
            Some(Entry::Run) => GateAnswer::Run,
            Some(Entry::Hold(lease)) => self.hold(lease),
            Some(Entry::Again(delay)) => GateAnswer::Again(self.run.clock().read().after(delay)),
            Some(Entry::At(instant)) => GateAnswer::At(self.run.clock().deadline_of(instant)),
            Some(Entry::Skip | Entry::Later(_)) | None => GateAnswer::Skip,
        }
    }

    /// Calls a part of the gate. User code: the caller holds no lock. Returns `None` if it panics.
    fn call_gate<R>(&self, part: FailureSource, call: impl FnOnce() -> R) -> Option<R> {
        let called = self.hooks.contain(part, self.run, || self.run.scoped(call));
        called.map_err(discard).ok()
    }

    fn hold(&mut self, lease: Arc<dyn Lease>) -> GateAnswer {
        let token = self.run.stop().child();
        let (watched, raised) = (Arc::clone(&lease), token.clone());
        self.run.hold_lease(HeldLease { lease, token, replaced: None });
        if self.call_gate(FailureSource::Lease, || watched.watch(raised)).is_some() {
            return GateAnswer::Run;
        }
        self.leave_lease(RunEnd::NotRun, None);
        GateAnswer::Skip
    }

    fn leave_lease(&self, end: RunEnd<'_>, next: Option<Timestamp>) {
        let Some(held) = self.run.release_lease() else { return };
        let next = next.and_then(|next| self.run.clock().instant_of(next));
        self.call_gate(FailureSource::Lease, || held.lease.leave(end, next));
        self.hooks.drops(self.run.id()).discard(held);
    }

    /// Leaves the lease of the run, with the token of its own.
    #[cold]
    pub(crate) fn leave_leased(&self) {
        let (end, next) = match &self.outcome {
            RunOutcome::Ended(Ok(())) | RunOutcome::Exhausted => (RunEnd::Completed, None),
            RunOutcome::Ended(Err(failure)) => (RunEnd::Failed(failure), None),
            RunOutcome::Again(next) => (RunEnd::Completed, Some(*next)),
            RunOutcome::Failed(next, failure) => (RunEnd::Failed(failure), Some(*next)),
        };
        let next = next.filter(|_| !self.run.is_extra()).and_then(|next| self.run.next_due(next));
        self.leave_lease(end, next);
        let token = self.run.task().with(|parts| {
            // Unless the task has called itself off by it.
            let is_kept = !parts.is_periodic() || parts.is_called_off();
            parts.extras().token.take_if(|_| !is_kept)
        });
        discard(token);
    }

    /// Makes another tick of the run, which is at `planned`.
    fn plan_anew(&mut self, planned: Timestamp) -> RunOutcome {
        let run = self.run;
        if !self.run.is_extra() {
            if let Some(plan) = &mut self.plan {
                plan.leave_wall();
            }
            let mut replan = Replan { plan: Some(planned), ..Replan::default() };
            let dispatcher = run.task().with(|parts| {
                let extensions = parts.extensions()?;
                extensions.on_replan(&mut replan);
                Some(Weak::clone(&extensions.gate.as_ref()?.dispatcher))
            });
            if let Some((limit, pool)) = replan.expiry.zip(dispatcher.and_then(|it| it.upgrade())) {
                pool.set_limit(Arc::clone(run.task()), run.id(), limit);
            }
        }
        self.put_off(Asked { entry: planned, planned, attempt: 0 })
    }

    /// Tells a plan on the wall clock until when its run was put off.
    fn note_put_off(&mut self, until: Timestamp) {
        let is_extra = self.run.is_extra();
        let plan = self.plan.as_mut().filter(|_| !is_extra);
        if let Some(triggered) = plan.and_then(|plan| plan.schedule.triggered_mut()) {
            triggered.put_off(until);
        }
    }

    /// Keeps the tick, and has the task queued again for when the gate is to be asked about it.
    fn put_off(&mut self, asked: Asked) -> RunOutcome {
        let run = self.run;
        self.note_put_off(asked.entry);
        run.task().with(|parts| {
            let Some(extensions) = parts.extensions() else { return };
            if let Some(gated) = &mut extensions.gate {
                *gated.tick(self.run.is_extra()) = Some(asked);
            }
            extensions.on_put_off(self, asked.entry, false);
        });
        if trace::is_listening() {
            let wait = asked.entry.since(run.clock().read());
            trace::put_off_by_gate(run.id(), run.task().name().as_deref(), run.number(), wait);
        }
        RunOutcome::Again(asked.entry)
    }

    /// Keeps the tick, and has the task parked until the answer is there.
    fn wait_for(&mut self, answer: PendingEntry, asked: Asked) -> RunOutcome {
        let run = self.run;
        self.note_put_off(asked.entry);
        let (sequence, task) = (run.id(), Arc::downgrade(run.task()));
        run.task().with(|parts| {
            let Some(extensions) = parts.extensions() else { return };
            if let Some(gated) = &mut extensions.gate {
                let dispatcher = Weak::clone(&gated.dispatcher);
                let parked = ParkedTask { dispatcher, sequence, task };
                let waits = parked.clone();
                answer.when_given(|| waits.let_go());
                let tick = OpenTick::new(self, asked.entry);
                *gated.tick(tick.is_extra) = Some(asked);
                gated.awaited = Some(AwaitedReply { answer, tick, parked });
            }
            extensions.on_put_off(self, asked.entry, true);
        });
        RunOutcome::Again(asked.entry)
    }

    fn skip(&mut self) -> RunOutcome {
        let run = self.run;
        let skipped = match &mut self.plan {
            Some(plan) => plan.skip(run, self.hooks),
            None => self.give_back(CancelReason::SkippedByGate),
        };
        if trace::is_listening() {
            trace::skipped_by_gate(run.id(), run.task().name().as_deref(), run.number());
        }
        // The panic of a trigger counts as a failed run.
        if !matches!(skipped, RunOutcome::Ended(Err(_))) {
            run.stats().count_skip(run.uncounted());
        }
        skipped
    }
}

fn tick<'a>(
    run: &'a Run,
    name: Option<&'a str>,
    (planned, wall): (Timestamp, Option<SystemTime>),
    attempt: u32,
    (is_periodic, is_extra): (bool, bool),
) -> Tick<'a> {
    Tick {
        id: run.id(),
        name,
        number: run.number(),
        planned,
        wall,
        attempt,
        is_periodic,
        is_extra,
        clock: run.clock(),
    }
}
