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
//!   enter ──▶ Hold ──▶ watch ──▶ looked at once more ──▶ Stage::start ──▶ job.run ──▶ leave ──▶ outcome
//!     │  └──▶ Run ──────────────────▲     └──▶ leave(NotRun) ──▶ rest ──▶ Verdict::Cancelled
//!     ├──▶ Again ──▶ the tick is kept ──▶ rest ──▶ Verdict::Again
//!     └──▶ Skip ──▶ job.skip ──▶ rest ──▶ Verdict::Again, Verdict::Cancelled
//! ```
//!
//! A run that is [overdue](super::period) is left out before `enter`, so that no tick is claimed in vain, or
//! after the answer, which may have taken long.
//!
//! *Looked at once more* is one step under the task's lock. It comes after the last call of the gate, so
//! whatever has ended the task before that step keeps the body from running, and whatever comes after it
//! finds a body that runs. In that step the closure is put back as if the task had just been found, so from
//! there on the run goes the way of all runs (`Task::run`). A run that does not take place
//! puts it back as well, and the task is then ended as one that waits.
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

use super::{FailureSource, Hooks, Job, Run, Task, Verdict, cell::TaskCell, job::RunOutcome};
use crate::{
    CancelReason, CancellationToken,
    gate::{Entry, Lease, RunEnd, RunGate, Tick},
    sync::{Arc, MutexGuard},
    time::Timestamp,
    trace,
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
    /// The token that the task had before, to be dropped when no lock is held.
    pub(super) replaced: Option<CancellationToken>,
}

/// What comes of a question.
enum Answer {
    Run,
    Skip,
    /// To be asked again at this moment.
    Again(Timestamp),
}

/// A run whose gate is asked.
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

    /// Asks the gate. If it gives a lease, the run holds that, and it is watched over.
    fn ask(&self, gate: Arc<dyn RunGate>, tick: &Tick<'_>) -> Answer {
        let entry = self.call(FailureSource::Gate, || gate.enter(tick));
        self.hooks.drops(self.run.id()).discard(gate);
        match entry {
            Some(Entry::Run) => Answer::Run,
            Some(Entry::Hold(lease)) => self.hold(lease),
            Some(Entry::Again(delay)) => Answer::Again(self.run.clock().read().after(delay)),
            Some(Entry::Skip) | None => Answer::Skip,
        }
    }

    fn hold(&self, lease: Arc<dyn Lease>) -> Answer {
        let token = self.run.stop().child();
        let (watched, raised) = (Arc::clone(&lease), token.clone());
        self.run.hold(Held { lease, token, replaced: None });
        if self.call(FailureSource::Lease, || watched.watch(raised)).is_some() {
            return Answer::Run;
        }
        self.leave(RunEnd::NotRun, None);
        Answer::Skip
    }

    /// Leaves the lease, if the run holds one.
    fn leave(&self, end: RunEnd<'_>, next: Option<Timestamp>) {
        let Some(held) = self.run.release_hold() else { return };
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

    /// Asks the gate about a run that is about to begin. If the run is to take place, returns the task under
    /// its lock, as it was found.
    ///
    /// # Errors
    ///
    /// What becomes of the task instead.
    #[inline(never)]
    pub(super) fn pass_gate<'a>(
        &'a self,
        mut cell: MutexGuard<'a, TaskCell<J>>,
        is_extra: bool,
        limit: Option<Timestamp>,
        (run, hooks): (&Run, &Hooks),
    ) -> Result<MutexGuard<'a, TaskCell<J>>, Verdict> {
        let extras = cell.extras();
        let name = extras.name.clone();
        let asked = extras.gate.as_mut().map(|gated| gated.ask(run.planned(), is_extra));
        let job = cell.stage().start();
        drop(cell);
        let (Some((gate, asked)), Some(job)) = (asked, job) else {
            // The task has ended. It has left its gate then as well as its job.
            run.stats().count_cancelled();
            return Err(Verdict::TooLate);
        };
        run.plan_for(asked.planned);
        run.begin(&job, name.clone());
        let job = match self.in_time(job, &mut None, is_extra, (run, hooks)) {
            Ok(job) => job,
            Err(verdict) => {
                hooks.drops(run.id()).discard(gate);
                return Err(verdict);
            }
        };
        let gateway = Gateway { run, hooks, is_extra, limit };
        let (wall, offset) =
            if is_extra { (None, Duration::ZERO) } else { (job.tick_on_wall(), job.offset()) };
        let moment = (run.planned().before(offset), wall);
        let tick = tick(run, name.as_deref(), moment, asked.attempt, J::IS_PERIODIC);
        match gateway.ask(gate, &tick) {
            Answer::Run => {
                run.starts_now();
                let job = self.in_time(job, &mut None, is_extra, (run, hooks))?;
                self.look_again(job, &gateway)
            }
            Answer::Again(entry) => Err(self.put_off(job, Asked { entry, ..asked }, &gateway)),
            Answer::Skip => Err(self.skip(job, &gateway)),
        }
    }

    /// Looks at the task once more after its gate has let it through.
    fn look_again(
        &self,
        job: J,
        gateway: &Gateway<'_>,
    ) -> Result<MutexGuard<'_, TaskCell<J>>, Verdict> {
        let run = gateway.run;
        let mut cell = self.0.lock();
        let is_alive = !cell.stage().is_done() && !cell.is_called_off();
        if !is_alive || gateway.is_over() || run.is_stopped() {
            drop(cell);
            gateway.leave(RunEnd::NotRun, None);
            run.stats().leave();
            return Err(self.give_back(job, CancelReason::ShutdownNow, gateway));
        }
        run.replace_token(&mut cell.extras().token);
        run.has_passed();
        let ended = cell.stage().rest(job);
        debug_assert!(ended.is_none(), "the task has just been found alive");
        Ok(cell)
    }

    /// Tells the group of a run, if there is one. Leaves the lease of the run, if it has one, with the token
    /// of its own.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_gate(&self, ran: &RunOutcome<J>, is_extra: bool, run: &Run, hooks: &Hooks) {
        self.count_in_group(ran);
        if !run.is_leased() {
            return;
        }
        let (end, next) = match ran {
            RunOutcome::Ended(Ok(_)) | RunOutcome::Exhausted => (RunEnd::Completed, None),
            RunOutcome::Ended(Err(failure)) => (RunEnd::Failed(failure), None),
            RunOutcome::Again(_, next) => (RunEnd::Completed, Some(*next)),
            RunOutcome::Failed(_, next, failure) => (RunEnd::Failed(failure), Some(*next)),
        };
        let gateway = Gateway { run, hooks, is_extra, limit: None };
        gateway.leave(end, next.filter(|_| !is_extra));
        if J::IS_PERIODIC {
            let mut cell = self.0.lock();
            // Unless the task has called itself off by it.
            let is_kept = cell.is_called_off();
            let token = cell.extras().token.take_if(|_| !is_kept);
            drop(cell);
            discard(token);
        }
    }

    /// Keeps the tick, and has the task queued again for when the gate is to be asked about it.
    fn put_off(&self, job: J, asked: Asked, gateway: &Gateway<'_>) -> Verdict {
        let mut cell = self.0.lock();
        if let Some(gated) = &mut cell.extras().gate {
            *gated.tick(gateway.is_extra) = Some(asked);
        }
        if gateway.is_extra {
            cell.extras().control.get_or_insert_default().put_extra_off(asked.entry);
        }
        drop(cell);
        let run = gateway.run;
        run.stats().leave();
        if trace::is_listening() {
            let wait = asked.entry.since(run.clock().read());
            trace::put_off_by_gate(run.id(), run.task().name().as_deref(), run.number(), wait);
        }
        self.rest_unrun((job, None), asked.entry, false, run, gateway.hooks)
    }

    /// Leaves the run out.
    fn skip(&self, job: J, gateway: &Gateway<'_>) -> Verdict {
        let &Gateway { run, hooks, is_extra, .. } = gateway;
        let skipped = job.skip(is_extra, run, hooks);
        run.stats().leave();
        if trace::is_listening() {
            trace::skipped_by_gate(run.id(), run.task().name().as_deref(), run.number());
        }
        // The panic of a trigger ends the task as it does after a run, and so counts as one.
        let is_run = matches!(skipped, RunOutcome::Ended(Err(_)));
        if !is_run {
            run.stats().count_skip(run.uncounted());
        }
        match skipped {
            RunOutcome::Again(job, _) if !J::IS_PERIODIC => {
                self.give_back(job, CancelReason::SkippedByGate, gateway)
            }
            RunOutcome::Again(job, next) | RunOutcome::Failed(job, next, _) => {
                self.rest_unrun((job, None), next, !is_extra, run, hooks)
            }
            RunOutcome::Ended(ending) => self.finish_unrun(ending, is_run, run, hooks),
            RunOutcome::Exhausted => self.exhaust(None, is_run, run, hooks),
        }
    }

    /// Leaves the lease of a run that does not take place after all, if it has one.
    pub(super) fn leave_unrun(run: &Run, hooks: &Hooks) {
        Gateway { run, hooks, is_extra: false, limit: None }.leave(RunEnd::NotRun, None);
    }

    /// Gives the job of a run that did not take place back to the task, which is then ended: because its
    /// time is up, by its own token, or for `reason`.
    fn give_back(&self, job: J, reason: CancelReason, gateway: &Gateway<'_>) -> Verdict {
        let run = gateway.run;
        match self.rest_unrun((job, None), run.started(), false, run, gateway.hooks) {
            Verdict::Again(_) | Verdict::AgainOnWall(_) => {}
            verdict => return verdict,
        }
        if gateway.is_over() {
            return self.time_out_unrun(self.0.lock(), run, gateway.hooks);
        }
        Verdict::Cancelled(reason)
    }
}

fn tick<'a>(
    run: &'a Run,
    name: Option<&'a str>,
    (planned, wall): (Timestamp, Option<SystemTime>),
    attempt: u32,
    is_periodic: bool,
) -> Tick<'a> {
    Tick {
        id: run.id(),
        name,
        number: run.number(),
        planned,
        wall,
        attempt,
        is_periodic,
        clock: run.clock(),
    }
}
