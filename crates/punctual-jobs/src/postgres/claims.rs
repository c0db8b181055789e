//! The claims of this process: which jobs it runs, and how each of these runs stands.
//!
//! A run is named by its claim and not by its job, because a job can be here twice: as a run whose claim was lost
//! and whose handler has not returned, and as the run of the next claim. It is entered before its task is submitted,
//! and removed when its handler has returned or its job was released.
//!
//! A claim is *known* from then until its end was written down, which is later. The heartbeat frees those of our
//! claims that are not known. The heartbeat may also ask about a run that has just ended; its answer then finds no
//! run, and is dropped.
//!
//! A token exists from when the task begins. What was to cancel it before that is remembered, and the task
//! finds it when it brings the token ([`Claims::attach`]), under the same lock.

use std::{
    collections::{BTreeMap, HashSet},
    time::SystemTime,
};

use parking_lot::Mutex;
use punctual::CancellationToken;
use tokio::sync::oneshot;

use crate::{
    JobId, JobSummary, ReleasedJob, ShutdownReport, StopReason, job::payload::Payload,
    run::stop::StopSignal,
};

/// A job that was claimed.
#[derive(Clone)]
pub(super) struct Claimed {
    pub(super) id: i64,
    pub(super) claim: i64,
    pub(super) name: String,
    pub(super) payload: Payload,
    /// How many attempts have begun, this one included.
    pub(super) begun: u32,
    pub(super) max_attempts: u32,
    pub(super) key: Option<String>,
    pub(super) tick: Option<SystemTime>,
    pub(super) traceparent: Option<String>,
}

#[derive(Default)]
pub(super) struct Claims {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By claim.
    /// In the order of their claims, which is the order in which a shutdown gives them back.
    runs: BTreeMap<i64, Run>,
    known: HashSet<i64>,
    /// The lease is over as far as is known here, and no heartbeat was answered since.
    is_lease_over: bool,
    closing: Option<Closing>,
}

struct Run {
    id: i64,
    name: &'static str,
    stop: Option<StopSignal>,
    /// Why its token is cancelled, or is to be as soon as there is one.
    reason: Option<StopReason>,
    is_lost: bool,
    /// Tells the worker's side of the run to wait no longer.
    release: Option<oneshot::Sender<()>>,
}

struct Closing {
    /// Cancelled when there is no run any more.
    idle: CancellationToken,
    has_asked: bool,
    report: ShutdownReport,
}

/// The entry in the report of a shutdown for a run that is waited for no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Ran,
    /// The handler has not returned.
    StillRuns,
    /// Nothing, unless the job is [released](Claims::note_released).
    Over,
}

impl Claims {
    /// Enters a run. `None` if the queue is closing or its lease is over: the job is to be released.
    pub(super) fn begin(&self, job: &Claimed, name: &'static str) -> Option<oneshot::Receiver<()>> {
        let (release, released) = oneshot::channel();
        let run = Run {
            id: job.id,
            name,
            stop: None,
            reason: None,
            is_lost: false,
            release: Some(release),
        };
        let mut state = self.state.lock();
        state.known.insert(job.claim);
        if state.closing.is_some() || state.is_lease_over {
            return None;
        }
        state.runs.insert(job.claim, run);
        Some(released)
    }

    /// The task of a run has begun, with this signal.
    pub(super) fn attach(&self, claim: i64, stop: &StopSignal) {
        let mut state = self.state.lock();
        let reason = match state.runs.get_mut(&claim) {
            Some(run) => {
                run.stop = Some(stop.clone());
                run.reason
            }
            // Released before it began.
            None => Some(StopReason::ShuttingDown),
        };
        drop(state);
        if let Some(reason) = reason {
            stop.cancel(reason);
        }
    }

    /// A run has ended. Its claim stays known.
    pub(super) fn end(&self, claim: i64, end: End) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(run) = state.runs.remove(&claim) else { return };
        let Some(closing) = &mut state.closing else { return };
        let summary = JobSummary { id: JobId(run.id), name: run.name };
        match end {
            End::Ran => closing.report.ran.push(summary),
            End::StillRuns => closing.report.still_running.push(summary),
            End::Over => {}
        }
        if state.runs.is_empty() {
            closing.idle.cancel();
        }
    }

    /// A job is free for other machines, and its attempt is not counted.
    pub(super) fn note_released(&self, job: Claimed, name: &'static str) {
        if let Some(closing) = &mut self.state.lock().closing {
            closing.report.released.push(ReleasedJob {
                id: JobId(job.id),
                name,
                payload: job.payload.to_text(),
                key: job.key,
                attempts: job.begun.saturating_sub(1),
            });
        }
    }

    /// The end of a claim was written down.
    pub(super) fn forget(&self, claim: i64) {
        self.state.lock().known.remove(&claim);
    }

    /// Returns those of these jobs and claims of which this process does not know.
    pub(super) fn unknown(&self, all: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
        let state = self.state.lock();
        all.filter(|(_, claim)| !state.known.contains(claim)).collect()
    }

    /// Cancels the token of a job that was cancelled.
    pub(super) fn cancel(&self, id: i64) {
        self.stop(|_, run| run.id == id, StopReason::Cancelled);
    }

    /// Cancels the tokens of runs that were cancelled elsewhere.
    pub(super) fn cancel_runs(&self, claims: &HashSet<i64>) {
        self.stop(|claim, _| claims.contains(&claim), StopReason::Cancelled);
    }

    /// Cancels the tokens of runs whose claims are lost. Returns the jobs of which that is news.
    pub(super) fn lose(&self, claims: &HashSet<i64>) -> Vec<JobId> {
        self.stop(|claim, _| claims.contains(&claim), StopReason::ClaimLost)
    }

    /// Cancels the tokens of all runs: their claims may be lost. No other begins until the lease is
    /// [prolonged](Self::prolong).
    pub(super) fn lose_all(&self) -> Vec<JobId> {
        self.state.lock().is_lease_over = true;
        self.stop(|_, _| true, StopReason::ClaimLost)
    }

    /// A heartbeat was answered. Returns `true` if the lease was over before.
    pub(super) fn prolong(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_lease_over)
    }

    pub(super) fn is_lease_over(&self) -> bool {
        self.state.lock().is_lease_over
    }

    fn stop(&self, is_meant: impl Fn(i64, &Run) -> bool, reason: StopReason) -> Vec<JobId> {
        let (mut signals, mut news) = (Vec::new(), Vec::new());
        let mut state = self.state.lock();
        for (claim, run) in &mut state.runs {
            if is_meant(*claim, run) {
                if reason == StopReason::ClaimLost && !run.is_lost {
                    run.is_lost = true;
                    news.push(JobId(run.id));
                }
                run.reason.get_or_insert(reason);
                signals.extend(run.stop.clone());
            }
        }
        drop(state);
        signals.iter().for_each(|signal| signal.cancel(reason));
        news
    }

    /// Returns `true` if a claim is believed to stand.
    pub(super) fn stands(&self, claim: i64) -> bool {
        self.state.lock().runs.get(&claim).is_some_and(|run| !run.is_lost)
    }

    /// Returns the claims that are believed to stand.
    pub(super) fn standing(&self) -> HashSet<i64> {
        let state = self.state.lock();
        let standing = state.runs.iter().filter(|(_, run)| !run.is_lost);
        standing.map(|(claim, _)| *claim).collect()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().closing.is_some()
    }

    /// Returns `true` if the running jobs were asked to stop.
    pub(super) fn has_asked(&self) -> bool {
        self.state.lock().closing.as_ref().is_some_and(|closing| closing.has_asked)
    }

    /// From now on nothing is begun. Returns the token that is cancelled when nothing runs; `None` if this was
    /// called before.
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
        self.stop(|_, _| true, StopReason::ShuttingDown);
    }

    /// Releases all jobs that still run.
    pub(super) fn release_all(&self) {
        let mut state = self.state.lock();
        let told: Vec<_> = state.runs.values_mut().filter_map(|run| run.release.take()).collect();
        drop(state);
        for release in told {
            let _ = release.send(());
        }
    }

    /// Returns the report of the shutdown. What has not ended by now still runs.
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
