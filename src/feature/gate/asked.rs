//! A task with a [gate](crate::gate): the worker asks the gate before each run, and the gate may put the run off.
//!
//! The gate is user code and may block. So the worker calls it like a body: the task is
//! [running](crate::TaskState::Running), its closure has been taken out, and the worker holds no lock. Everything that
//! races with a run races with the question in the same way: a cancellation ends the task at once and leaves the
//! closure to the worker, and a request to a periodic task is noted in [`control`](crate::feature). [`Call::carry_out`]
//! asks the [question](Question::Gate).
//!
//! # From the answer to the body
//!
//! ```text
//!   enter ──▶ Hold ──▶ watch ──▶ checked once more ────▶ the closure is called ──▶ leave ──▶ publish
//!     │  └──▶ Run ──────────────────▲     └──▶ leave(NotRun) ──▶ publish ──▶ Verdict::Cancelled
//!     ├──▶ Again ──▶ the tick is kept ──▶ publish ──▶ Verdict::Again
//!     ├──▶ At ──▶ another tick is kept, in the same way
//!     ├──▶ Later ──▶ the tick is kept ──▶ publish ──▶ Verdict::Again ──▶ parked ──▶ the reply, in place of enter
//!     └──▶ Skip ──▶ Plan::skip ──▶ publish ──▶ Verdict::Again or Verdict::Cancelled
//! ```
//!
//! Before it calls `enter`, the worker leaves out a run that is past its [starting deadline](crate::schedule), so that
//! the gate claims no tick in vain. After the answer, it leaves out a run whose deadline has passed meanwhile.
//!
//! *Checked once more* (`Call::look_again`) is one step under the task's lock. No call to the gate or its lease comes
//! between that step and the body. A thread that ends the task before that step keeps the body from running; one that
//! comes later finds the body running. If the task has to end without the run, the worker publishes the outcome
//! [`Again`](RunOutcome::Again), as if another run were to follow, and then ends the task as if it were waiting in the
//! queue ([`give_back`](Call::give_back)).
//!
//! # A tick that waits
//!
//! To ask the gate again later, the worker queues the entry with another deadline. [`Asked`] keeps the moment the run
//! was planned for, how often the gate was asked, and the deadline the task was queued for. A worker that takes the
//! task for exactly that deadline goes on with the same tick. If the task was given another plan in between, that plan
//! begins another tick, even at the same moment. An extra run has its own tick, beside the plan's.
//!
//! # An answer that comes later
//!
//! Until the answer comes, the task is in the queue, due at the moment for which the worker took it, but
//! [parked](crate::entry::Timing). The answering thread puts the answer into the slot first, and then unparks the task
//! as a group does, under the task's lock. Then either that thread finds the entry in the queue, or a worker has the
//! task and will see the answer when it queues the task. So no answer is overlooked.
//!
//! The task waits for an answer ([`AwaitedReply`]) only while its entry is due at the moment for which the worker took
//! the task. A thread that gives the entry another moment ends the wait under the task's lock. After it has released
//! the lock, it unparks the entry if the entry was parked.
//!
//! # The token of a leased run
//!
//! A lost lease must cancel only its run. Cancelling the task's token would call the task off. So a leased run has a
//! token of its own, as a run with a time limit does; the lease gets the parent of that token.

use std::time::Duration;

use super::{Entry, Lease, PendingEntry, RunEnd, RunGate, Tick};
use crate::{
    CancelReason, CancellationToken,
    entry::{Requeue, Timing},
    feature::parked::let_go,
    pool::Pool,
    sync::{Arc, Weak},
    task::{
        Call, Core, Deferred, FailureSource, Leftovers, Question, Queuing, Replan, Run, RunOutcome,
        Task,
    },
    time::Timestamp,
    trace,
    unwind::discard,
};

pub(crate) struct Gated {
    /// `None` once the task has ended.
    gate: Option<Arc<dyn RunGate>>,
    pool: Weak<Pool>,
    /// The waiting ticks: the plan's tick at index 0, and an extra run's tick at index 1.
    ticks: [Option<Asked>; 2],
    /// The answer that the task is waiting for, about one of the two ticks.
    awaited: Option<AwaitedReply>,
}

/// A tick about which the gate is being asked, or will be asked again.
#[derive(Clone, Copy)]
struct Asked {
    /// The deadline with which the task is queued for the tick.
    entry: Timestamp,
    planned: Timestamp,
    attempt: u32,
}

struct AwaitedReply {
    answer: PendingEntry,
    is_extra: bool,
    parked: (u64, Weak<Task>),
}

pub(crate) struct GateQuestion {
    gate: Arc<dyn RunGate>,
    asked: Asked,
    /// The answer that the task has waited for; `None` if the gate has to be asked.
    answer: Option<Entry>,
}

#[derive(Clone)]
pub(crate) struct HeldLease {
    pub(super) lease: Arc<dyn Lease>,
    /// Cancelled when the lease is lost; the parent of the run's token.
    pub(crate) token: CancellationToken,
}

impl Gated {
    pub(crate) fn new(gate: Arc<dyn RunGate>, pool: Weak<Pool>) -> Self {
        Self { gate: Some(gate), pool, ticks: [None; 2], awaited: None }
    }

    /// Drops the plan's tick if `is_replanned`. Takes out the awaited answer unless its tick is queued for `due`.
    fn take_outdated(&mut self, due: Timestamp, is_replanned: bool) -> Option<AwaitedReply> {
        let Self { ticks, awaited, .. } = self;
        ticks[0].take_if(|_| is_replanned);
        awaited.take_if(|awaited| {
            ticks[usize::from(awaited.is_extra)].is_none_or(|asked| asked.entry != due)
        })
    }

    pub(crate) fn is_awaiting(&self) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| !awaited.answer.is_given())
    }

    pub(crate) fn before_run(&mut self, call: &mut Call<'_>) {
        let Some(gate) = self.gate.clone().filter(|_| !call.run.is_by_hand()) else { return };
        let entry = call.run.planned();
        let asked = self.ticks[usize::from(call.run.is_extra.get())].take();
        let asked = asked.filter(|asked| asked.entry == entry);
        let mut asked = asked.unwrap_or(Asked { entry, planned: entry, attempt: 0 });
        let answer = self.awaited.take().map(|awaited| Entry::Later(awaited.answer));
        if answer.is_none() {
            asked.attempt = asked.attempt.saturating_add(1);
        }
        let question = GateQuestion { gate, asked, answer };
        call.extras().question = Some(Question::Gate(Box::new(question)));
    }

    pub(crate) fn on_requeue(&mut self, task: &Core<'_>, queuing: &mut Queuing) {
        if let Some(outdated) = self.take_outdated(queuing.due, queuing.is_replanned) {
            queuing.deferred.push(|| discard(outdated));
        }
        queuing.awaits_answer = self.awaited.is_some();
        if !queuing.awaits_answer {
            return;
        }
        // The task is due, so a shutdown that runs due tasks has to wait for the answer.
        queuing.why = if task.is_periodic { Requeue::SeriesTurn } else { Requeue::Turn };
        if self.is_awaiting() {
            queuing.elsewhere = Some(Timing::Parked { due: queuing.due });
        }
    }

    pub(crate) fn on_replan(&mut self, replan: &mut Replan<'_>) {
        let Some(due) = replan.due else { return };
        let outdated = self.take_outdated(due, replan.plan.is_some());
        replan.awaits_answer = self.awaited.is_some();
        if let Some(AwaitedReply { answer, parked, .. }) = outdated {
            let pool = Weak::clone(&self.pool);
            replan.deferred.push(move || {
                discard(answer);
                let_go(&pool, vec![parked]);
            });
        }
    }

    pub(crate) fn on_end(&mut self, left: &mut Leftovers) {
        left.keep(self.awaited.take());
        left.keep(self.gate.take());
    }
}

impl Task {
    /// Drops the answer that the task is waiting for. Called when the task has left the schedule.
    pub(crate) fn leave_gate(&self) {
        let awaited = self.with(|parts| parts.extensions()?.gate.as_mut()?.awaited.take());
        discard(awaited);
    }

    pub(crate) fn has_gate(&self) -> bool {
        self.with(|parts| Some(parts.extensions()?.gate.as_ref()?.gate.is_some())) == Some(true)
    }
}

impl Run {
    fn lease(&self) -> Option<Arc<dyn Lease>> {
        self.worker.extensions.borrow().lease.as_ref().map(|held| Arc::clone(&held.lease))
    }

    pub(crate) fn is_leased(&self) -> bool {
        self.worker.extensions.borrow().lease.is_some()
    }
}

impl Call<'_> {
    /// Asks the gate about a run, unless its answer has come. Returns `Ok` if the run may take place.
    ///
    /// # Errors
    ///
    /// The outcome of a run that does not take place.
    #[inline(never)]
    pub(crate) fn pass_gate(&mut self, question: GateQuestion) -> Result<(), RunOutcome> {
        let GateQuestion { gate, asked, answer } = question;
        self.run.planned.set(asked.planned);
        self.begin();
        let drops = self.hooks.drops(self.run.id);
        if let Err(left_out) = self.be_in_time() {
            drops.discard(gate);
            drops.discard(answer);
            return Err(left_out);
        }
        let mut entry = answer.or_else(|| self.ask_gate(&*gate, asked.attempt));
        drops.discard(gate);
        while let Some(Entry::Later(answer)) = entry {
            entry = answer.take();
            if entry.is_none() {
                return Err(self.keep_tick(asked, Some(answer)));
            }
            drops.discard(answer);
        }
        self.follow(entry, asked)
    }

    fn follow(&mut self, entry: Option<Entry>, asked: Asked) -> Result<(), RunOutcome> {
        let clock = self.run.clock();
        match entry {
            Some(Entry::Run) => self.begin_leased(asked),
            Some(Entry::Hold(lease)) => match self.hold(lease) {
                true => self.begin_leased(asked),
                false => Err(self.skip()),
            },
            Some(Entry::Again(delay)) => {
                let entry = clock.read().after(delay);
                Err(self.put_off(Asked { entry, ..asked }))
            }
            Some(Entry::At(instant)) => Err(self.plan_anew(clock.deadline_of(instant))),
            _ => Err(self.skip()),
        }
    }

    /// Begins the run that the gate has let pass, if the run may still take place.
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

    fn look_again(&mut self) -> Result<(), RunOutcome> {
        let run = self.run;
        let (is_alive, replaced) = run.task.with(|parts| {
            let is_alive = !parts.stage.is_done() && !parts.is_called_off();
            let is_alive = is_alive && !parts.is_over(run.clock()) && !run.is_stopped();
            // A run under a lease has a token of its own.
            let is_replaced = is_alive && run.is_leased();
            (is_alive, is_replaced.then(|| parts.extras().token.take()))
        });
        discard(replaced);
        // If neither its time limit nor its own token ends the task, the pool was told to stop.
        if is_alive { Ok(()) } else { Err(self.give_back(CancelReason::ShutdownNow)) }
    }

    /// Returns `true` if the run has a lease that is lost, or that panics when asked.
    fn has_lost_lease(&self) -> bool {
        let Some(lease) = self.run.lease() else { return false };
        let mut is_lost = true;
        self.call_gate(FailureSource::Lease, &mut || is_lost = lease.is_lost());
        self.hooks.drops(self.run.id).discard(lease);
        is_lost
    }

    fn ask_gate(&mut self, gate: &dyn RunGate, attempt: u32) -> Option<Entry> {
        let run = self.run;
        let plan = self.plan.as_ref();
        let planned = plan.filter(|_| !run.is_extra.get());
        let (wall, offset) = match planned.and_then(|plan| plan.schedule.triggered()) {
            Some(plan) => (plan.wall_moment(), plan.offset),
            None => (None, Duration::ZERO),
        };
        let name = run.task.name();
        let tick = Tick {
            id: run.id,
            name: name.as_deref(),
            number: run.number(),
            planned: run.planned().before(offset),
            wall: wall.and_then(|moment| moment.checked_sub(offset)),
            attempt,
            is_periodic: plan.is_some(),
            is_extra: run.is_extra.get(),
            clock: run.clock(),
        };
        let mut entry = None;
        self.call_gate(FailureSource::Gate, &mut || entry = Some(gate.enter(&tick)));
        entry
    }

    /// Calls the gate or its lease, with no lock held. If the call panics, reports the panic and returns `false`.
    fn call_gate(&self, part: FailureSource, call: &mut dyn FnMut()) -> bool {
        let called = self.hooks.contain(part, self.run, &mut || self.run.scoped(&mut *call));
        called.map_err(discard).is_ok()
    }

    /// Puts the run under a lease, and hands the lease the token that it cancels when it is lost. If the lease panics,
    /// leaves the lease and returns `false`.
    fn hold(&mut self, lease: Arc<dyn Lease>) -> bool {
        let token = self.run.stop().child();
        let (watched, raised) = (Arc::clone(&lease), token.clone());
        let held = HeldLease { lease, token };
        let before = self.run.worker.extensions.borrow_mut().lease.replace(held);
        debug_assert!(before.is_none(), "a worker has one run at a time");
        let is_watched =
            self.call_gate(FailureSource::Lease, &mut || watched.watch(raised.clone()));
        if !is_watched {
            self.leave_lease(RunEnd::NotRun, None);
        }
        is_watched
    }

    fn leave_lease(&self, end: RunEnd<'_>, next: Option<Timestamp>) {
        let Some(held) = self.run.worker.extensions.borrow_mut().lease.take() else { return };
        let next = next.and_then(|next| self.run.clock().instant_of(next));
        self.call_gate(FailureSource::Lease, &mut || held.lease.leave(end, next));
        self.hooks.drops(self.run.id).discard(held);
    }

    /// Leaves the run's lease after the body, and drops the run's token unless the task keeps it.
    #[cold]
    pub(crate) fn leave_leased(&self) {
        let (end, next) = match &self.outcome {
            RunOutcome::Ended(Ok(())) | RunOutcome::Exhausted => (RunEnd::Completed, None),
            RunOutcome::Ended(Err(failure)) => (RunEnd::Failed(failure), None),
            RunOutcome::Again(next) => (RunEnd::Completed, Some(*next)),
            RunOutcome::Failed(next, failure) => (RunEnd::Failed(failure), Some(*next)),
        };
        let next =
            next.filter(|_| !self.run.is_extra.get()).and_then(|next| self.run.next_due(next));
        self.leave_lease(end, next);
        let token = self.run.task.with(|parts| {
            // A one-shot task keeps its token, and so does a series that the token calls off.
            let is_kept = !parts.is_periodic() || parts.is_called_off();
            parts.extras().token.take_if(|_| !is_kept)
        });
        discard(token);
    }

    /// Moves the run to `planned`, as another tick.
    fn plan_anew(&mut self, planned: Timestamp) -> RunOutcome {
        let run = self.run;
        if !run.is_extra.get() {
            if let Some(plan) = &mut self.plan {
                plan.leave_wall();
            }
            let mut deferred = Deferred::default();
            run.task.with(|parts| {
                let (plan, deferred) = (Some(planned), &mut deferred);
                let mut replan = Replan { plan, due: None, awaits_answer: false, deferred };
                parts.extensions()?.on_replan(&mut replan);
                Some(())
            });
            deferred.run();
        }
        self.put_off(Asked { entry: planned, planned, attempt: 0 })
    }

    /// Has the task queued for `asked.entry`; the gate is then asked about the tick again.
    fn put_off(&mut self, asked: Asked) -> RunOutcome {
        let run = self.run;
        if trace::is_listening() {
            let wait = asked.entry.since(run.clock().read());
            trace::put_off_by_gate(run.id, run.task.name().as_deref(), run.number(), wait);
        }
        self.keep_tick(asked, None)
    }

    /// Keeps the tick, and the pending `answer` if there is one, until a worker takes the task again.
    fn keep_tick(&mut self, asked: Asked, answer: Option<PendingEntry>) -> RunOutcome {
        let (run, is_extra) = (self.run, self.run.is_extra.get());
        let plan = self.plan.as_mut().filter(|_| !is_extra);
        if let Some(triggered) = plan.and_then(|plan| plan.schedule.triggered_mut()) {
            triggered.put_off(asked.entry);
        }
        let parked = (run.id, Arc::downgrade(&run.task));
        run.task.with(|parts| {
            let Some(extensions) = parts.extensions() else { return };
            if let Some(gated) = &mut extensions.gate {
                gated.ticks[usize::from(is_extra)] = Some(asked);
                if let Some(answer) = answer {
                    let (pool, waits) = (Weak::clone(&gated.pool), parked.clone());
                    answer.when_given(move || let_go(&pool, vec![waits]));
                    gated.awaited = Some(AwaitedReply { answer, is_extra, parked });
                }
            }
            extensions.on_put_off(self, asked.entry);
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
            trace::skipped_by_gate(run.id, run.task.name().as_deref(), run.number());
        }
        // A trigger's panic counts as a failed run.
        if !matches!(skipped, RunOutcome::Ended(Err(_))) {
            run.stats().count_skip(run.uncounted());
        }
        skipped
    }
}
