//! The questions before a run: may it take place?
//!
//! 1. Under the task's lock, the worker asks the token, and then the [extensions](super::extensions), before it takes
//!    the closure out. Each extension lets the run begin, refuses it, or notes a question for user code.
//! 2. If a question was noted, the worker puts it to user code, with no lock held. The task is *running* by then, so a
//!    cancellation, for instance, has the same effect during the question as during a run.
//! 3. Right before the run, the worker applies the policy for missed runs. If user code is asked about the run, the
//!    worker also applies the policy before that question. A run that is *overdue*, past its starting deadline, is
//!    [left out](Call::be_in_time). The plan goes on as after a run: if there is a next run, the task waits again.
//!
//! [`CallExtras`](super::call::CallExtras) keeps what these steps note; most calls of plain tasks have no extras.

use super::{Verdict, call::Call, cell::Parts, plan::RunOutcome};
use crate::{CancelReason, time::Timestamp, trace};

impl Call<'_> {
    /// Asks the task's token, and then the task's extensions, whether the run may begin. If not, fails with the
    /// verdict. If so, gives the call the task's name, and the code around the closure.
    #[inline(never)]
    pub(super) fn ask(&mut self, parts: &mut Parts<'_>) -> Result<(), Verdict> {
        if parts.is_called_off() {
            return Err(Verdict::Cancelled(CancelReason::Requested));
        }
        let (extensions, mut core) = parts.split();
        extensions.before_run(&mut core, self)?;
        let (extras, of_task) = (self.extras(), parts.extras());
        extras.name = of_task.name.clone();
        extras.around = of_task.around.take();
        Ok(())
    }

    /// Asks user code or the missed-runs policy whether the run may start. If not, fails with the outcome to publish.
    #[inline]
    pub(super) fn ask_user(&mut self) -> Result<(), RunOutcome> {
        match self.extras.as_mut().and_then(|extras| extras.question.take()) {
            None => {
                self.begin();
                return self.be_in_time();
            }
            Some(question) => question.ask(self)?,
        }
        self.begin();
        Ok(())
    }

    pub(crate) fn has_question(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.question.is_some())
    }

    /// Has the worker end the task without a run: as cancelled if the task's token is cancelled, as timed out if the
    /// task's time is up, and otherwise for `reason`.
    pub(crate) fn give_back(&mut self, reason: CancelReason) -> RunOutcome {
        self.extras().gives_up = Some(reason);
        RunOutcome::Again(self.run.started())
    }

    /// Asks the missed-runs policy whether the run may still start. If not, leaves the run out, and fails with the
    /// outcome.
    pub(crate) fn be_in_time(&mut self) -> Result<(), RunOutcome> {
        let (run, hooks) = (self.run, self.hooks);
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.schedule.missed.has_deadline())
        else {
            return Ok(());
        };
        if run.is_extra.get() || run.is_by_hand() {
            return Ok(());
        }
        let late_from = self.extras.as_ref().and_then(|extras| extras.late_from);
        let late_from = late_from.unwrap_or(Timestamp::PAST);
        // An estimate of when the run is due may be out of date.
        if run.started() <= run.planned() && !plan.schedule.is_estimated() {
            return Ok(());
        }
        let left_out = match plan.is_overdue(late_from, run, hooks) {
            Ok(false) => return Ok(()),
            Ok(true) => plan.leave_out(run, hooks),
            Err(panic) => RunOutcome::Ended(Err(panic)),
        };
        if trace::is_listening() {
            let late = run.started().since(run.planned());
            trace::left_out(run.id, run.task.name().as_deref(), run.number(), late);
        }
        Err(left_out)
    }
}
