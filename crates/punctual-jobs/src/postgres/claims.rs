//! The claims of this process: which jobs it runs, and how each of these runs stands.
//!
//! A run has a number of its own, because a job can be here twice: as a run whose claim was lost and whose
//! handler has not returned, and as the run of the next claim. It is entered before its task is submitted,
//! and removed when its handler has returned or its job was handed back, before the engine is told. So the
//! watch may ask about a run that has just ended; its answer then finds no run, and is dropped.
//!
//! A token exists from when the task begins. What was to raise it before that is remembered, and the task
//! finds it when it brings the token ([`Claims::attach`]), under the same lock.

use std::{collections::HashMap, time::SystemTime};

use parking_lot::Mutex;
use punctual::CancellationToken;
use serde_json::Value;
use tokio::sync::oneshot;

use super::engine::Claimed;
use crate::{HandedBack, JobId, JobSummary, ShutdownReport};

#[derive(Default)]
pub(super) struct Claims {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_number: u64,
    runs: HashMap<u64, Run>,
    closing: Option<Closing>,
}

struct Run {
    id: i64,
    name: &'static str,
    worker: String,
    locked_at: SystemTime,
    payload: Value,
    key: Option<String>,
    begun: u32,
    token: Option<CancellationToken>,
    /// The token is raised, or is to be as soon as there is one.
    is_raised: bool,
    is_lost: bool,
    /// Tells the engine's side of the run to wait no longer.
    hand_back: Option<oneshot::Sender<()>>,
}

struct Closing {
    /// Raised when there is no run any more.
    idle: CancellationToken,
    has_asked: bool,
    report: ShutdownReport,
}

/// A claim, as the database knows it.
pub(super) struct Standing {
    pub(super) number: u64,
    pub(super) id: i64,
    pub(super) worker: String,
    pub(super) locked_at: SystemTime,
}

/// How a run has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Ran,
    Failed,
    HandedBack { still_runs: bool },
}

impl Claims {
    /// Enters a run. `None` if the desk is closing: the job is to be handed back, and has been reported so.
    pub(super) fn begin(
        &self,
        job: &Claimed,
        name: &'static str,
    ) -> Option<(u64, oneshot::Receiver<()>)> {
        let (hand_back, handed_back) = oneshot::channel();
        let run = Run {
            id: job.id,
            name,
            worker: job.worker.clone(),
            locked_at: job.locked_at,
            payload: job.payload.clone(),
            key: job.key.clone(),
            begun: job.begun,
            token: None,
            is_raised: false,
            is_lost: false,
            hand_back: Some(hand_back),
        };
        let mut state = self.state.lock();
        if let Some(closing) = &mut state.closing {
            closing.report.handed_back.push(run.handed_back());
            return None;
        }
        state.last_number += 1;
        let number = state.last_number;
        state.runs.insert(number, run);
        Some((number, handed_back))
    }

    /// The task of a run has begun, with this token.
    pub(super) fn attach(&self, number: u64, token: &CancellationToken) {
        let mut state = self.state.lock();
        let is_raised = match state.runs.get_mut(&number) {
            Some(run) => {
                run.token = Some(token.clone());
                run.is_raised
            }
            // Handed back before it began.
            None => true,
        };
        drop(state);
        if is_raised {
            token.cancel();
        }
    }

    /// A run has ended.
    pub(super) fn end(&self, number: u64, end: End) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(run) = state.runs.remove(&number) else { return };
        let Some(closing) = &mut state.closing else { return };
        let summary = JobSummary { id: JobId(run.id), name: run.name };
        match end {
            End::Ran => closing.report.ran.push(summary),
            End::Failed => {}
            End::HandedBack { still_runs } => {
                closing.report.handed_back.push(run.handed_back());
                if still_runs {
                    closing.report.still_running.push(summary);
                }
            }
        }
        if state.runs.is_empty() {
            closing.idle.cancel();
        }
    }

    /// Raises the token of a job that was cancelled.
    pub(super) fn cancel(&self, id: i64) {
        self.raise(|_, run| run.id == id, false);
    }

    /// Raises the tokens of runs that were cancelled elsewhere, by number.
    pub(super) fn cancel_runs(&self, numbers: &[u64]) {
        self.raise(|number, _| numbers.contains(&number), false);
    }

    /// Raises the tokens of runs whose claims are lost. Returns the jobs of which that is news.
    pub(super) fn lose(&self, numbers: &[u64]) -> Vec<JobId> {
        self.raise(|number, _| numbers.contains(&number), true)
    }

    /// Raises the tokens of all runs: their claims may be lost.
    pub(super) fn lose_all(&self) -> Vec<JobId> {
        self.raise(|_, _| true, true)
    }

    fn raise(&self, is_meant: impl Fn(u64, &Run) -> bool, is_lost: bool) -> Vec<JobId> {
        let (mut tokens, mut news) = (Vec::new(), Vec::new());
        let mut state = self.state.lock();
        for (number, run) in &mut state.runs {
            if is_meant(*number, run) {
                if is_lost && !run.is_lost {
                    run.is_lost = true;
                    news.push(JobId(run.id));
                }
                run.is_raised = true;
                tokens.extend(run.token.clone());
            }
        }
        drop(state);
        tokens.iter().for_each(CancellationToken::cancel);
        news
    }

    /// Returns the claim of a run, unless it has ended or is lost.
    pub(super) fn standing(&self, number: u64) -> Option<Standing> {
        let state = self.state.lock();
        let run = state.runs.get(&number).filter(|run| !run.is_lost)?;
        Some(run.standing(number))
    }

    /// Returns the claims that are believed to stand.
    pub(super) fn all_standing(&self) -> Vec<Standing> {
        let state = self.state.lock();
        let standing = state.runs.iter().filter(|(_, run)| !run.is_lost);
        standing.map(|(number, run)| run.standing(*number)).collect()
    }

    /// Returns how many runs have begun so far, and how many there are.
    pub(super) fn counts(&self) -> (u64, usize) {
        let state = self.state.lock();
        (state.last_number, state.runs.len())
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().closing.is_some()
    }

    /// Returns `true` if the running jobs were asked to stop.
    pub(super) fn has_asked(&self) -> bool {
        self.state.lock().closing.as_ref().is_some_and(|closing| closing.has_asked)
    }

    /// From now on nothing is begun. Returns the token that is raised when nothing runs; `None` if somebody
    /// has called this before.
    pub(super) fn begin_closing(&self) -> Option<CancellationToken> {
        let idle = CancellationToken::new();
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return None;
        }
        let report = ShutdownReport::default();
        state.closing = Some(Closing { idle: idle.clone(), has_asked: false, report });
        let is_idle = state.runs.is_empty();
        drop(state);
        if is_idle {
            idle.cancel();
        }
        Some(idle)
    }

    pub(super) fn ask_to_stop(&self) {
        if let Some(closing) = &mut self.state.lock().closing {
            closing.has_asked = true;
        }
        self.raise(|_, _| true, false);
    }

    /// Has all jobs handed back that still run.
    pub(super) fn hand_back_all(&self) {
        let mut state = self.state.lock();
        let told: Vec<_> = state.runs.values_mut().filter_map(|run| run.hand_back.take()).collect();
        drop(state);
        for hand_back in told {
            let _ = hand_back.send(());
        }
    }

    /// Returns what the shutdown has found. What has not ended by now still runs.
    pub(super) fn report(&self) -> ShutdownReport {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut report = match &mut state.closing {
            Some(closing) => std::mem::take(&mut closing.report),
            None => ShutdownReport::default(),
        };
        let runs = state.runs.values();
        report
            .still_running
            .extend(runs.map(|run| JobSummary { id: JobId(run.id), name: run.name }));
        report.still_running.sort_unstable_by_key(|job| job.id);
        report
    }
}

impl Run {
    fn standing(&self, number: u64) -> Standing {
        let (worker, locked_at) = (self.worker.clone(), self.locked_at);
        Standing { number, id: self.id, worker, locked_at }
    }

    fn handed_back(&self) -> HandedBack {
        HandedBack {
            id: JobId(self.id),
            name: self.name,
            payload: self.payload.clone(),
            key: self.key.clone(),
            attempts: self.begun.saturating_sub(1),
        }
    }
}
