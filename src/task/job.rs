//! What a task runs: a closure once, or a closure again and again.
//!
//! The difference is who owns the captures during a call. A one-shot closure is called by value, so
//! the call itself drops its captures. A periodic closure is borrowed by each call and is still there
//! afterwards, whatever the call did; if a panic ends the task, the closure is dropped explicitly,
//! through [`unwind`](crate::unwind).

use std::time::Duration;

use super::{
    failure::PanicPolicy,
    hooks::Invocation,
    period::{MissedRuns, Period},
};
use crate::{Panic, time::Timestamp, unwind::discard_with};

/// What a task runs.
pub(crate) trait Job: Send + Sized + 'static {
    /// The result of the task.
    type Output: Send + 'static;

    const IS_PERIODIC: bool;

    /// Returns `true` if the runs would follow each other without end, so that the job is refused.
    #[inline]
    fn has_zero_period(&self) -> bool {
        false
    }

    /// Runs the closure once, by `invocation`. User code: the caller holds no lock.
    fn run(self, invocation: Invocation<'_>) -> RunOutcome<Self>;

    /// Returns the slot of the queue, if the task has been queued again.
    fn slot(&self) -> Option<u32>;

    /// Notes that the queue has accepted the task again, in this slot.
    fn set_slot(&mut self, slot: u32);

    /// Returns how many runs there have been.
    fn runs(&self) -> u64;

    /// Returns how many runs were missed just before the run that was planned and started at these
    /// moments.
    fn missed(&self, planned: Timestamp, started: Timestamp) -> u64;
}

/// What follows from one run.
#[must_use]
pub(crate) enum RunOutcome<J: Job> {
    /// It was the last run.
    Ended(Result<J::Output, Panic>),
    /// Another run is planned for this moment.
    Again(J, Timestamp),
    /// Another run is planned for this moment, although this one panicked.
    Failed(J, Timestamp, Panic),
}

/// A closure that runs once.
pub(crate) struct OneShot<F>(pub(crate) F);

impl<F, T> Job for OneShot<F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = T;

    const IS_PERIODIC: bool = false;

    fn run(self, invocation: Invocation<'_>) -> RunOutcome<Self> {
        RunOutcome::Ended(invocation.call(self.0))
    }

    fn slot(&self) -> Option<u32> {
        None
    }

    fn set_slot(&mut self, _: u32) {}

    fn runs(&self) -> u64 {
        0
    }

    fn missed(&self, _: Timestamp, _: Timestamp) -> u64 {
        0
    }
}

/// A closure that runs until it is cancelled, or until a panic ends it by its policy.
pub(crate) struct Periodic<F> {
    body: F,
    period: Period,
    on_panic: PanicPolicy,
    slot: Option<u32>,
    /// How many runs in a row have failed.
    failures: u32,
    runs: u64,
    /// How many runs were left out after the last one.
    skipped: u64,
}

impl<F> Periodic<F> {
    pub(crate) fn at_fixed_rate(body: F, period: Duration, missed: MissedRuns) -> Self {
        Self::new(body, Period::FixedRate { period, missed })
    }

    pub(crate) fn with_fixed_delay(body: F, delay: Duration) -> Self {
        Self::new(body, Period::FixedDelay { delay })
    }

    fn new(body: F, period: Period) -> Self {
        let on_panic = PanicPolicy::stop();
        Self { body, period, on_panic, slot: None, failures: 0, runs: 0, skipped: 0 }
    }

    pub(crate) fn on_panic(mut self, policy: PanicPolicy) -> Self {
        self.on_panic = policy;
        self
    }
}

impl<F: FnMut() + Send + 'static> Job for Periodic<F> {
    type Output = ();

    const IS_PERIODIC: bool = true;

    fn has_zero_period(&self) -> bool {
        self.period.is_zero()
    }

    fn run(mut self, invocation: Invocation<'_>) -> RunOutcome<Self> {
        let (run, drops) = (invocation.run, invocation.drops());
        let outcome = invocation.call(&mut self.body);
        let ended = run.clock().read();
        let plan = self.period.plan(run.planned(), run.started(), ended);
        self.runs += 1;
        self.skipped = plan.skipped;
        let Err(panic) = outcome else {
            self.failures = 0;
            return RunOutcome::Again(self, plan.next);
        };
        self.failures = self.failures.saturating_add(1);
        run.note_failure(self.failures);
        if self.on_panic.ends_after(self.failures) {
            discard_with(self.body, |panic| drops.report(run.task().name(), Panic::new(panic)));
            return RunOutcome::Ended(Err(panic));
        }
        // Without a delay the plan stands, even if it is in the past: missed runs are made up for.
        let next = match self.on_panic.delay_after(self.failures) {
            Duration::ZERO => plan.next,
            delay => plan.next.max(ended.after(delay)),
        };
        RunOutcome::Failed(self, next, panic)
    }

    fn slot(&self) -> Option<u32> {
        self.slot
    }

    fn set_slot(&mut self, slot: u32) {
        self.slot = Some(slot);
    }

    fn runs(&self) -> u64 {
        self.runs
    }

    fn missed(&self, planned: Timestamp, started: Timestamp) -> u64 {
        self.skipped.saturating_add(self.period.covered(planned, started))
    }
}
