//! Hooks: the user's code around a run. Also here: failure reports, and the one place where a user's closure is called.
//!
//! ```text
//!   before ──▶ code around ──▶ closure ──▶ code around ──▶ after ──▶ the plan is asked ──▶ the outcome is published
//!      │ panics                   panics, or returns an `Err` ──▶ after ──▶ the plan is asked ──▶ failure handler
//!      └──▶ the plan is asked ──▶ failure handler
//! ```
//!
//! The hooks are the [observers](super::observer) that want the points around a run, and the failure handler is an
//! observer that wants failures. A failed run is reported after the plan has been asked, since the report says when the
//! next run is due. All of this happens before the outcome is published, so a thread that sees a run's outcome knows
//! that the run's hooks have returned. A hook that panics affects its own run only:
//!
//! * *before* panics: the closure does not run, *after* is not called, and the run has failed with that panic.
//! * *after* panics: the outcome stands, and the panic is reported.
//! * the failure handler panics: that panic is not reported.
//!
//! For a task that was cancelled before it ran, no hook is called.
//!
//! # Other reports
//!
//! A capture or a result may panic when the crate drops it, and no caller could receive that panic: [`Drops`] reports
//! it. A periodic task may end unexpectedly: a run exceeds its time limit, another task displaces the periodic task, or
//! no thread can be started to run the task. Such an end is reported to the failure handler and to `tracing`
//! ([`Hooks::tell_ended`]).
//!
//! # No silent end
//!
//! A program may have neither a handler nor a subscriber. Even then, the panic hook of `std` writes panics to standard
//! error. If a periodic task ends unexpectedly without a panic, one line there says so ([`Hooks::tell_unheard`]). If an
//! `Err` ends a series, that line is written before the end becomes visible, because a thread that sees the end may
//! exit the process. An `Err` that no call can take any more gets a line, too ([`Drops::tell_untaken`]).

use std::time::Duration;

use super::{
    Task,
    around::Around,
    observer::{Hooks, Observer, Points},
    outcome::{Next, RunReport},
    report::{FailureReport, FailureSource},
    run::Run,
};
use crate::{
    Failure, FailureKind, TaskState,
    id::Subject,
    sync::Arc,
    trace,
    unwind::{contain, contain_located, discard, discard_with},
};

/// The end of a line on standard error about a series that has ended unexpectedly.
const NO_MORE_RUNS: &str = "the task will not run again";
const UNTAKEN: &str = "nobody has taken this result";

/// A closure on the stack of a worker, and the place for the closure's result, as seen by code that is not generic.
pub(crate) trait Lent {
    /// Calls the closure, which is user code, so the caller holds no lock.
    fn run(&mut self) -> RunReport;

    /// Sets the result of a series whose trigger has no next run. Returns `false` if only a run can set a result.
    fn exhaust(&mut self) -> bool;

    /// Drops the closure, if it is there. May call user code, so the caller holds no lock.
    fn drop_body(&mut self);

    /// Drops the result, if it is there. Returns the failure if it was an `Err`. May call user code, so the caller
    /// holds no lock.
    fn drop_value(&mut self) -> Option<Failure>;
}

impl Hooks {
    /// Calls the closure, with the hooks and the code around it. If the run fails, has `fail` report the failure, and
    /// returns what `fail` returns. Calls user code, so the caller holds no lock.
    #[inline(always)]
    pub(super) fn invoke<E>(
        &self,
        run: &Run,
        around: Option<&mut Around>,
        lent: &mut dyn Lent,
        fail: impl FnOnce(&Self, &Run, FailureSource, Failure) -> E,
    ) -> Result<Next, E> {
        run.enter(|| {
            if self.has(Points::BEFORE) {
                if let Err(panic) = self.call_before(run) {
                    return Err(fail(self, run, FailureSource::BeforeExecute, panic));
                }
            }
            let report = match around {
                None => {
                    let mut report = Ok(Next::Nothing);
                    let called = contained(|| report = lent.run());
                    called.and(report)
                }
                Some(around) => Self::invoke_around(run, around, lent),
            };
            if self.has(Points::AFTER) {
                self.call_after(run, report.as_ref().map(|_| ()));
            }
            report.map_err(|failure| fail(self, run, FailureSource::of_run(&failure), failure))
        })
    }

    /// Reports the failure of a one-shot task's run, and returns the failure.
    #[cold]
    pub(super) fn tell_last(&self, run: &Run, source: FailureSource, failure: Failure) -> Failure {
        self.report(source, &run.subject(), &failure, None);
        failure
    }

    #[inline(never)]
    fn call_before(&self, run: &Run) -> Result<(), Failure> {
        let (context, mut told) = (run.context(), self.at(Points::BEFORE));
        told.try_for_each(|observer| contained(|| observer.before_run(&context)))
    }

    #[inline(never)]
    fn call_after(&self, run: &Run, outcome: Result<(), &Failure>) {
        let context = run.context();
        for observer in self.at(Points::AFTER) {
            let call = &mut || observer.after_run(&context, outcome);
            discard(self.contain(FailureSource::AfterExecute, run, call));
        }
    }

    /// Calls `say` with each observer that wants the point. A panic goes no further, and its report names no task.
    #[inline(never)]
    pub(crate) fn tell(&self, point: Points, source: FailureSource, say: &dyn Fn(&dyn Observer)) {
        if self.has(point) {
            let told = self.at(point);
            told.for_each(|observer| self.call_aside(source, &mut || say(observer)));
        }
    }

    pub(crate) fn contain(
        &self,
        part: FailureSource,
        run: &Run,
        call: &mut dyn FnMut(),
    ) -> Result<(), Failure> {
        contained(call).inspect_err(|panic| _ = self.report(part, &run.subject(), panic, None))
    }

    /// Calls the closure with the code around it. If that code has overruled the run or panicked, the closure's report
    /// does not count. The report is dropped after the unwinding, during which a second panic would abort the process.
    #[inline(never)]
    fn invoke_around(run: &Run, around: &mut Around, lent: &mut dyn Lent) -> RunReport {
        let mut report = Ok(Next::Nothing);
        let called = contained(|| (around.0)(&mut || report = lent.run()));
        // Taken in any case: code further out may have panicked since.
        let failure = match (called, run.worker.overruled.take()) {
            (Ok(()), None) => return report,
            (Ok(()), Some(failure)) | (Err(failure), _) => failure,
        };
        discard(report);
        Err(failure)
    }

    /// Reports a failure to the observers and to `tracing`. Returns `true` if an observer hears of it. `again` is as in
    /// [`FailureReport`].
    #[cold]
    pub(super) fn report(
        &self,
        source: FailureSource,
        task: &Subject,
        failure: &Failure,
        again: Option<Duration>,
    ) -> bool {
        trace::failed(source.describe(), task, failure, again);
        let report = FailureReport { source, task, failure, again };
        let mut is_heard = false;
        for observer in self.at(Points::FAILED) {
            // An observer that panicked was told.
            is_heard |= contain(|| observer.failed(&report)).map_err(discard).unwrap_or(true);
        }
        is_heard
    }

    /// Reports that a periodic task has ended, although its user did not end it and no code failed.
    #[cold]
    pub(crate) fn tell_ended(&self, source: FailureSource, task: &Subject, failure: &Failure) {
        if !self.report(source, task, failure, None) {
            Self::tell_unheard(source, task, failure, NO_MORE_RUNS);
        }
    }

    #[cold]
    pub(crate) fn tell_displaced(&self, task: &Task, id: u64, why: &str) {
        let subject = Subject { id: Some(id), name: task.name(), ..Subject::default() };
        self.tell_ended(
            FailureSource::Displaced,
            &subject,
            &Failure::of_nothing(FailureKind::Displaced, why),
        );
    }

    /// Reports on standard error a failure that ends a series and that no observer has heard of. Writes nothing if the
    /// task had already ended, the executor has been stopped, or the panic hook has already reported the failure.
    #[cold]
    pub(super) fn tell_failed_end(run: &Run, task: &Subject, failure: &Failure) {
        if failure.is_panic() || run.is_stopped() || run.task.state().is_done() {
            return;
        }
        Self::tell_unheard(FailureSource::of_run(failure), task, failure, NO_MORE_RUNS);
    }

    /// Writes a failure and its consequence, `what`, to standard error, unless a subscriber hears of the failure.
    fn tell_unheard(source: FailureSource, task: &Subject, failure: &Failure, what: &str) {
        if !trace::hears_errors() {
            FailureReport { source, task, failure, again: None }.print(what);
        }
    }

    pub(crate) fn drops(&self, id: u64) -> Drops<'_> {
        Drops { hooks: Some(self), id: Some(id) }
    }

    /// Calls user code that belongs to no task. A panic goes no further, and its report names no task.
    pub(crate) fn call_aside(&self, source: FailureSource, call: &mut dyn FnMut()) {
        if let Err(panic) = contained(call) {
            self.report(source, &Subject::default(), &panic, None);
            discard(panic);
        }
    }
}

/// Calls user code. Returns a panic in it as a failure.
#[inline]
fn contained<R>(call: impl FnOnce() -> R) -> Result<R, Failure> {
    contain_located(call).map_err(Failure::of_panic)
}

/// Where to report panics from dropping a task's values.
#[derive(Clone, Copy)]
pub(crate) struct Drops<'a> {
    hooks: Option<&'a Hooks>,
    id: Option<u64>,
}

impl<'a> Drops<'a> {
    /// Reports nothing: for values dropped because of a failure that is itself reported or passed on, and for alarms.
    pub(crate) const UNREPORTED: Self = Self { hooks: None, id: None };

    /// Makes a `Drops` that reports panics without an id, for tasks whose ids are not at hand.
    pub(crate) fn of_any(hooks: &'a Hooks) -> Self {
        Self { hooks: Some(hooks), id: None }
    }

    #[inline(always)]
    pub(crate) fn discard<T>(self, value: T) {
        discard_with(value, |panic| self.report(None, Failure::of_panic(panic)));
    }

    /// Drops values of a task by calling `drop_them`. A panic is reported, and goes no further.
    pub(super) fn contain(self, drop_them: &mut dyn FnMut(), task: &Task) {
        if let Err(panic) = contained(drop_them) {
            self.report(task.name(), panic);
        }
    }

    /// Reports an `Err` that no call can take any more. Standard error gets no line if the task was cancelled: that end
    /// was requested, or is reported elsewhere.
    #[cold]
    pub(super) fn tell_untaken(self, task: &Task, failure: Failure) {
        if let Some(hooks) = self.hooks {
            let subject = Subject { id: self.id, name: task.name(), ..Subject::default() };
            let is_heard = hooks.report(FailureSource::Task, &subject, &failure, None);
            if !is_heard && task.state() != TaskState::Cancelled {
                Hooks::tell_unheard(FailureSource::Task, &subject, &failure, UNTAKEN);
            }
        }
        discard(failure);
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn report(self, name: Option<Arc<str>>, panic: Failure) {
        if let Some(hooks) = self.hooks {
            let task = Subject { id: self.id, name, ..Subject::default() };
            hooks.report(FailureSource::Drop, &task, &panic, None);
        }
        discard(panic);
    }
}
