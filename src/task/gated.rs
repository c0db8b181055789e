//! A task with a [gate](crate::gate): the gate is asked before each run, and may put the run off.
//!
//! The gate is user code and may block. So it is called as a body is: the closure has been taken out of the
//! task, which is [running](super::state) meanwhile, and no lock is held. Everything that races with a run
//! races with the question in the same way: a cancellation ends the task at once and leaves the closure to
//! the worker, and what is asked of a periodic task is noted in [`control`](super::control).
//!
//! # From the answer to the body
//!
//! ```text
//!   enter ──▶ Hold ──▶ watch ──▶ looked at once more ──▶ job.run ──▶ leave ──▶ outcome
//!     │  └──▶ Run ──────────────────▲     └──▶ leave(NotRun) ──▶ rest ──▶ Verdict
//!     ├──▶ Again ──▶ the tick is kept ──▶ rest ──▶ Verdict::Again
//!     └──▶ Skip ──▶ job.skip ──▶ rest ──▶ Verdict::Again, Verdict::Cancelled
//! ```
//!
//! *Looked at once more* is one step under the task's lock. It comes after the last call of the gate, so
//! whatever has ended the task before that step keeps the body from running, and whatever comes after it
//! finds a body that runs. A run that does not take place gives its closure back to the task first
//! ([`rest_after`](Task::rest_after)), and the task is then ended as one that waits.
//!
//! # A tick that waits
//!
//! To be asked again is another deadline for the entry in the queue, as everything in
//! [`control`](super::control) is. What the entry does not say is for which moment the run was planned and
//! how often the gate was asked; that is kept here, in [`Asked`], together with the deadline for which the
//! task was queued. A worker that takes the task for just that deadline has the same tick before it. If the
//! task has another deadline by then, somebody has given it another plan, and it is another tick; so no
//! change of a plan has to know about gates. An extra run is beside the plan, and its tick as well.
//!
//! # The token of a leased run
//!
//! A lease that is lost has to raise the token of its run and must not call the task off, which is what a
//! raised token of a task means. So it is given a token between that of the pool and that of the task. A run
//! under a lease therefore has a task's token of its own, as one with a time limit has.

use std::time::{Duration, SystemTime};

use super::{
    Hooks, Invocation, Job, Run, Task, Verdict, cell::TaskCell, hooks::FailureSource,
    job::RunOutcome,
};
use crate::{
    CancelReason, CancellationToken,
    gate::{Entry, Lease, RunEnd, RunGate, Tick},
    sync::{Arc, MutexGuard},
    time::Timestamp,
    unwind::discard,
};

/// The gate of a task, and the ticks about which it is to be asked again.
pub(super) struct Gated {
    gate: Arc<dyn RunGate>,
    planned: Option<Asked>,
    extra: Option<Asked>,
}

/// A tick about which the gate is to be asked again.
#[derive(Clone, Copy)]
struct Asked {
    /// The deadline with which the task is queued for that.
    entry: Timestamp,
    planned: Timestamp,
    attempt: u32,
}

impl Gated {
    pub(super) fn new(gate: Arc<dyn RunGate>) -> Self {
        Self { gate, planned: None, extra: None }
    }

    fn tick(&mut self, is_extra: bool) -> &mut Option<Asked> {
        if is_extra { &mut self.extra } else { &mut self.planned }
    }

    /// Returns when the gate is to be asked again about the planned run.
    pub(super) fn asks_again_at(&self) -> Option<Timestamp> {
        self.planned.map(|asked| asked.entry)
    }

    /// Returns the gate, with the tick about which it is asked: the task was queued for `entry`.
    fn ask(&mut self, entry: Timestamp, is_extra: bool) -> (Arc<dyn RunGate>, Asked) {
        let asked = self.tick(is_extra).take().filter(|asked| asked.entry == entry);
        let first = Asked { entry, planned: entry, attempt: 0 };
        let asked = asked.unwrap_or(first);
        let asked = Asked { attempt: asked.attempt.saturating_add(1), ..asked };
        (Arc::clone(&self.gate), asked)
    }

    /// Returns the gate, for the caller to drop, who holds no lock then.
    pub(super) fn into_gate(self) -> Arc<dyn RunGate> {
        self.gate
    }
}

/// What a run holds of its gate.
pub(super) struct Held {
    pub(super) lease: Arc<dyn Lease>,
    /// Raised when the lease is lost; the parent of the task's token.
    pub(super) token: CancellationToken,
}

/// A run whose gate has been asked.
struct Gateway<'a> {
    run: &'a Run,
    hooks: &'a Hooks,
    is_extra: bool,
    limit: Option<Timestamp>,
}

impl Gateway<'_> {
    /// Calls a part of the gate. User code: the caller holds no lock. Returns `None` if it panics.
    fn call<R>(&self, part: FailureSource, call: impl FnOnce() -> R) -> Option<R> {
        let called = self.hooks.contain(part, self.run, Ok, || self.run.scoped(call));
        called.map_err(discard).ok()
    }

    fn ask(&self, gate: &dyn RunGate, tick: &Tick<'_>) -> Entry {
        self.call(FailureSource::Gate, || gate.enter(tick)).unwrap_or(Entry::Skip)
    }

    /// Has the lease watched over. Returns `None`, and has left the lease, if that panics.
    fn watch(&self, lease: Arc<dyn Lease>) -> Option<Held> {
        let held = Held { lease, token: self.run.stop().child() };
        let token = held.token.clone();
        match self.call(FailureSource::Lease, || held.lease.watch(token)) {
            Some(()) => Some(held),
            None => {
                self.leave(held, RunEnd::NotRun, None);
                None
            }
        }
    }

    fn leave(&self, held: Held, end: RunEnd<'_>, next: Option<Timestamp>) {
        let next = next.and_then(|next| self.run.clock().instant_of(next));
        self.call(FailureSource::Lease, || held.lease.leave(end, next));
        self.hooks.drops(self.run.id()).discard(held);
    }

    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| limit <= self.run.clock().read())
    }
}

impl<J: Job> Task<J> {
    /// Gives a task that is not queued yet a gate.
    pub(crate) fn gated(self, gate: Arc<dyn RunGate>) -> Self {
        self.0.lock().extras().gate = Some(Box::new(Gated::new(gate)));
        self
    }

    /// Asks the gate, and runs the task if it says so.
    #[inline(never)]
    pub(super) fn run_gated(
        &self,
        mut cell: MutexGuard<'_, TaskCell<J>>,
        is_extra: bool,
        limit: Option<Timestamp>,
        (run, hooks): (&Run, &Hooks),
    ) -> Verdict {
        let extras = cell.extras();
        let name = extras.name.clone();
        let asked = extras.gate.as_mut().map(|gated| gated.ask(run.planned(), is_extra));
        let Some(((gate, asked), job)) = asked.zip(cell.stage().start()) else {
            // The task has ended; what it leaves has been taken out.
            run.stats().count_cancelled();
            return Verdict::TooLate;
        };
        drop(cell);
        run.plan_for(asked.planned);
        run.begin(&job, name.clone());
        let gateway = Gateway { run, hooks, is_extra, limit };
        let wall = if is_extra { None } else { job.planned_wall() };
        let tick = tick(run, name.as_deref(), wall, asked.attempt, J::IS_PERIODIC);
        let entry = gateway.ask(&*gate, &tick);
        hooks.drops(run.id()).discard(gate);
        let held = match entry {
            Entry::Run => Ok(None),
            Entry::Hold(lease) => gateway.watch(lease).map(Some).ok_or(Entry::Skip),
            entry => Err(entry),
        };
        match held {
            Ok(held) => self.run_if_alive(job, held, &gateway),
            Err(Entry::Again(delay)) => self.ask_gate_again(job, asked, delay, &gateway),
            Err(_) => self.skip(job, &gateway),
        }
    }

    /// Runs the task unless something has ended it while its gate was asked.
    fn run_if_alive(&self, job: J, held: Option<Held>, gateway: &Gateway<'_>) -> Verdict {
        let &Gateway { run, hooks, is_extra, limit } = gateway;
        let mut cell = self.0.lock();
        let is_alive = !cell.stage().is_done() && !cell.is_called_off();
        if !is_alive || gateway.is_over() || run.is_stopped() {
            drop(cell);
            if let Some(held) = held {
                gateway.leave(held, RunEnd::NotRun, None);
            }
            return self.give_back(job, CancelReason::ShutdownNow, gateway);
        }
        let extras = cell.extras();
        let mut wrapper = extras.wrapper.take();
        let token = if held.is_some() { extras.token.take() } else { None };
        drop(cell);
        discard(token);
        run.begin_after_gate(&job);
        let is_leased = held.is_some();
        run.hold(held);
        let ran = job.run(Invocation { run, hooks, wrapper: wrapper.as_mut(), is_extra });
        if let Some(held) = run.release_hold() {
            let (end, next) = end_of(&ran);
            gateway.leave(held, end, next.filter(|_| !is_extra));
        }
        if is_leased && J::IS_PERIODIC {
            self.end_own_token();
        }
        self.end_run(ran, wrapper, limit, run, hooks)
    }

    /// Takes out the token of a run, unless the task has called itself off by it.
    fn end_own_token(&self) {
        let mut cell = self.0.lock();
        let is_kept = cell.is_called_off();
        let token = cell.extras().token.take_if(|_| !is_kept);
        drop(cell);
        discard(token);
    }

    /// Keeps the tick, and has the task queued again for when the gate is to be asked about it.
    fn ask_gate_again(
        &self,
        job: J,
        asked: Asked,
        delay: Duration,
        gateway: &Gateway<'_>,
    ) -> Verdict {
        let entry = gateway.run.clock().read().after(delay);
        let mut cell = self.0.lock();
        if let Some(gated) = &mut cell.extras().gate {
            *gated.tick(gateway.is_extra) = Some(Asked { entry, ..asked });
        }
        if gateway.is_extra {
            cell.extras().control.get_or_insert_default().put_extra_off(entry);
        }
        drop(cell);
        self.rest_unrun(job, entry, gateway)
    }

    /// Leaves the run out.
    fn skip(&self, job: J, gateway: &Gateway<'_>) -> Verdict {
        let &Gateway { run, hooks, is_extra, .. } = gateway;
        if !J::IS_PERIODIC {
            run.stats().count_skip(0);
            return self.give_back(job, CancelReason::SkippedByGate, gateway);
        }
        let skipped = job.skip(is_extra, run, hooks);
        run.stats().leave();
        // The panic of a trigger ends the task as it does after a run.
        if let RunOutcome::Ended(Err(failure)) = skipped {
            return self.finish(Err(failure), false, (run, hooks), run.counts());
        }
        run.stats().count_skip(run.missed());
        let count = |_, ended| run.stats().count_ended(ended);
        match skipped {
            RunOutcome::Again(job, next) => self.rest_unrun(job, next, gateway),
            RunOutcome::Ended(ending) => self.finish(ending, false, (run, hooks), count),
            RunOutcome::Exhausted | RunOutcome::Failed(..) => {
                self.exhaust(None, (run, hooks), count)
            }
        }
    }

    /// Gives the job of a run that did not take place back to the task, which is then ended: because its
    /// time is up, by its own token, or for `reason`.
    fn give_back(&self, job: J, reason: CancelReason, gateway: &Gateway<'_>) -> Verdict {
        let run = gateway.run;
        match self.rest_unrun(job, run.started(), gateway) {
            Verdict::Again(_) | Verdict::AgainOnWall(_) => {}
            verdict => return verdict,
        }
        if gateway.is_over() {
            return self.time_out_unrun(self.0.lock(), run, gateway.hooks);
        }
        Verdict::Cancelled(reason)
    }

    /// Puts the task to rest after a question, in place of a run.
    fn rest_unrun(&self, job: J, next: Timestamp, gateway: &Gateway<'_>) -> Verdict {
        let &Gateway { run, hooks, .. } = gateway;
        run.stats().leave();
        self.rest_after(job, next, None, None, (run, hooks), |ended| {
            if let Some(ended) = ended {
                run.stats().count_ended(ended);
            }
        })
    }
}

fn tick<'a>(
    run: &'a Run,
    name: Option<&'a str>,
    wall: Option<SystemTime>,
    attempt: u32,
    is_periodic: bool,
) -> Tick<'a> {
    Tick {
        id: run.id(),
        name,
        number: run.number(),
        planned: run.planned(),
        wall,
        attempt,
        is_periodic,
        clock: run.clock(),
    }
}

/// Returns how a run has ended, and when the next is planned.
fn end_of<J: Job>(ran: &RunOutcome<J>) -> (RunEnd<'_>, Option<Timestamp>) {
    match ran {
        RunOutcome::Ended(Ok(_)) | RunOutcome::Exhausted => (RunEnd::Completed, None),
        RunOutcome::Ended(Err(failure)) => (RunEnd::Failed(failure), None),
        RunOutcome::Again(_, next) => (RunEnd::Completed, Some(*next)),
        RunOutcome::Failed(_, next, failure) => (RunEnd::Failed(failure), Some(*next)),
    }
}
