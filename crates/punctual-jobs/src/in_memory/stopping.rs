//! The end of an in-memory queue: what runs may end, and what waits is released.
//!
//! From the moment at which the state has a [`Closing`], nothing is accepted and no attempt begins: all
//! entries that wait are taken off the board in the step that puts it there. So what is left are runs, and
//! `running` only falls. The one that makes it zero cancels the token on which the shutdown sleeps. That
//! token is on the executor's clock, so a shutdown can be tested on a manual one.

use punctual::{CancellationToken, Grace};

use super::{
    board::Board,
    entry::{Entry, Stage},
    ready::Ready,
    state::Closing,
};
use crate::{JobId, JobStage, JobSummary, ShutdownReport, StopReason};

impl Board {
    pub(super) fn shut_down(&self, grace: Grace) -> ShutdownReport {
        let Some(idle) = self.begin_closing() else { return ShutdownReport::default() };
        if idle.sleep(grace.patience).is_ok() {
            self.ask_to_stop();
            let _ = idle.sleep(grace.then);
        }
        self.report()
    }

    /// Stops admitting and starting jobs, and takes off the board what waits. Returns the token that is
    /// cancelled when nothing runs; `None` if another call has done this before.
    pub(super) fn begin_closing(&self) -> Option<CancellationToken> {
        let idle = CancellationToken::with_clock(self.executor.clock().clone());
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return None;
        }
        let report = ShutdownReport::default();
        let mut closing = Closing { idle: idle.clone(), has_asked: false, is_over: false, report };
        let waits = |entry: &Entry| entry.job_stage() == JobStage::Waiting;
        let mut waiting: Vec<_> =
            (state.jobs.iter()).filter(|(_, it)| waits(it)).map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        let mut tasks = Vec::new();
        for id in waiting {
            let mut entry = state.remove(id);
            if let Some(Entry { stage: Stage::Waiting(task), .. }) = &mut entry {
                tasks.extend(task.take());
            }
            closing.release(id, entry);
        }
        state.turns.clear();
        state.ready = Ready::default();
        tasks.extend(state.slots.values_mut().filter_map(|slots| slots.timer.take_task()));
        state.slots.clear();
        tasks.append(&mut state.pauses.take_tasks());
        let is_idle = state.running == 0;
        state.closing = Some(closing);
        let unanswered = state.results.take_ended();
        drop(state);
        drop(unanswered);
        if is_idle {
            idle.cancel();
        }
        tasks.append(&mut self.periodic.lock());
        for task in tasks {
            task.cancel();
        }
        Some(idle)
    }

    fn ask_to_stop(&self) {
        let mut state = self.state.lock();
        if let Some(closing) = &mut state.closing {
            closing.has_asked = true;
        }
        let signals: Vec<_> = (state.jobs.values())
            .filter_map(|entry| match &entry.stage {
                Stage::Running { stop, .. } => Some(stop.clone()),
                _ => None,
            })
            .collect();
        drop(state);
        for signal in signals {
            signal.cancel(StopReason::ShuttingDown);
        }
    }

    fn report(&self) -> ShutdownReport {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(closing) = &mut state.closing else { return ShutdownReport::default() };
        closing.is_over = true;
        let mut report = std::mem::take(&mut closing.report);
        let still = state.jobs.iter().filter(|(_, entry)| entry.runs());
        report.still_running.extend(
            still.map(|(id, entry)| JobSummary { id: JobId(*id), name: entry.definition.name }),
        );
        report.still_running.sort_unstable_by_key(|job| job.id);
        report
    }
}
