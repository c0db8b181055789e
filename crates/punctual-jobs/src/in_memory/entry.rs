//! A job on the board, and where it stands.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use punctual::{
    TaskHandle, Trigger,
    trigger::{self, Due},
};

use crate::{
    JobOutcome, JobStage,
    job::jobs::Definition,
    queue::engine::NewJob,
    run::{Outcome, stop::StopSignal},
};

pub(super) struct Entry {
    pub(super) definition: Arc<Definition>,
    /// As it was sent. It has lost its key if it is cancelled or replaced while it runs.
    pub(super) job: NewJob,
    /// The moment by which the jobs with one ordering key are ordered, and those of one priority.
    pub(super) moment: Option<Instant>,
    /// The moment, if the wall clock decides.
    pub(super) wall: Option<SystemTime>,
    /// How many attempts have begun.
    pub(super) begun: u32,
    pub(super) last_error: Option<String>,
    pub(super) generation: u64,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// Its task will begin an attempt.
    Waiting(Option<TaskHandle>),
    /// It is due, and waits for its turn: another job with its ordering key runs or is about to, or as many of its kind as
    /// may, or its kind is [paused](super::pauses).
    InLine,
    /// An attempt is running.
    Running {
        stop: StopSignal,
        /// The job is gone when this attempt ends, however it ends: it was cancelled, or its key was enqueued again.
        is_retired: bool,
        /// There is no further attempt: it was discarded while it runs.
        gives_up: bool,
        since: Instant,
    },
    /// It has no attempt left, and is remembered for a while.
    Discarded,
}

/// A task that has to be submitted: the next attempt of a job.
#[must_use = "the job does not run unless its task is submitted"]
pub(super) struct Next {
    pub(super) id: i64,
    pub(super) generation: u64,
    pub(super) due: Due,
}

impl Entry {
    pub(super) fn runs(&self) -> bool {
        self.job_stage() == JobStage::Running
    }

    pub(super) fn job_stage(&self) -> JobStage {
        match self.stage {
            Stage::Waiting(_) | Stage::InLine => JobStage::Waiting,
            Stage::Running { .. } => JobStage::Running,
            Stage::Discarded => JobStage::Discarded,
        }
    }

    /// Returns when the running attempt has begun.
    pub(super) fn since(&self) -> Option<Instant> {
        if let Stage::Running { since, .. } = &self.stage { Some(*since) } else { None }
    }

    /// Returns how the run of the job has ended, with its error, and for how long the job waits if it goes on.
    pub(super) fn ending(
        &self,
        outcome: &Outcome,
        is_released: bool,
    ) -> (JobOutcome, Option<String>, Duration) {
        let (is_retired, gives_up) = match self.stage {
            Stage::Running { is_retired, gives_up, .. } => (is_retired, gives_up),
            _ => (false, false),
        };
        let is_last = self.begun >= self.job.max_attempts;
        let (ended, error, delay) = match outcome {
            Outcome::Succeeded(_) => return (JobOutcome::Succeeded, None, Duration::ZERO),
            Outcome::Discarded(error) => (JobOutcome::Discarded, Some(error), Duration::ZERO),
            Outcome::Failed(error, delay) if is_released && !gives_up => {
                (JobOutcome::Released, Some(error), *delay)
            }
            Outcome::Failed(error, delay) if gives_up || is_last => {
                (JobOutcome::Discarded, Some(error), *delay)
            }
            Outcome::Failed(error, delay) => (JobOutcome::Failed, Some(error), *delay),
            Outcome::Snoozed(delay) if gives_up => (JobOutcome::Discarded, None, *delay),
            Outcome::Snoozed(delay) => (JobOutcome::Snoozed, None, *delay),
        };
        (if is_retired { JobOutcome::Cancelled } else { ended }, error.cloned(), delay)
    }

    /// Has the job wait for a worker. The caller submits its task.
    pub(super) fn wake(&mut self, id: i64) -> Next {
        // A job that is due already is so at its own moment, or at the latest now.
        let due = self.moment.map_or(Due::Wall(UNIX_EPOCH), Due::At);
        self.wait_until(id, due)
    }

    /// Has the job wait for this moment. The caller submits its task.
    pub(super) fn wait_until(&mut self, id: i64, due: Due) -> Next {
        self.stage = Stage::Waiting(None);
        self.generation += 1;
        Next { id, generation: self.generation, due }
    }
}

/// Returns what a trigger answers for the moment of an entry.
pub(super) fn due_at(moment: Option<Instant>, wall: Option<SystemTime>) -> Due {
    wall.map_or_else(|| moment.map_or(Due::OnDemand, Due::At), Due::Wall)
}

pub(super) fn once(due: Due) -> impl Trigger {
    trigger::from_fn(move |last| (last.runs() == 0).then_some(due))
}
