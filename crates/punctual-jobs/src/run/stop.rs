//! The stop of a run: its token, and the reason for which that was cancelled.
//!
//! A token says that a handler is to stop, and not why. What the handler does then depends on it: it cleans up after
//! a job that was cancelled, saves how far it has come for the next attempt, or leaves everything alone because
//! another machine has the job. The queue notes its reason before it cancels the token, so a handler that sees the token
//! sees the reason. The first reason stays. Two reasons are not the queue's: the executor cancels the token at the time
//! limit and when it is shut down itself, and these are seen by the clock and by the state of the executor.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use punctual::{CancellationToken, Handle};

/// The reason for which the [token](crate::JobRun::token) of a run was cancelled; from
/// [`JobRun::stop_reason`](crate::JobRun::stop_reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The job was [cancelled](crate::JobQueue::cancel) by its key. It is not tried again.
    Cancelled,
    /// The queue is shutting down and its patience is over, or the executor is shutting down. If the handler returns
    /// an error, the attempt is not counted.
    ShuttingDown,
    /// The claim is lost: the server was not reached for most of the lease, or the claim was ended there. Another
    /// machine may run the job, so the handler has to stop without an effect. Only on PostgreSQL.
    ClaimLost,
    /// The [time limit](crate::Jobs::timeout) of the kind is exceeded. The attempt has failed.
    TimedOut,
}

/// The token of a run with the reason. Clones are one signal.
#[derive(Clone)]
pub(crate) struct StopSignal {
    token: CancellationToken,
    given: Arc<OnceLock<StopReason>>,
    /// When the time limit is exceeded, if there is one.
    deadline: Option<Instant>,
    executor: Handle,
}

impl StopSignal {
    pub(crate) fn new(
        token: CancellationToken,
        deadline: Option<Instant>,
        executor: &Handle,
    ) -> Self {
        Self { token, given: Arc::default(), deadline, executor: executor.clone() }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Cancels the token. It wakes what waits for it, so no lock may be held.
    pub(crate) fn cancel(&self, reason: StopReason) {
        if !self.token.is_cancelled() {
            let _ = self.given.set(reason);
        }
        self.token.cancel();
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        if !self.token.is_cancelled() {
            return None;
        }
        let given = self.given.get().copied();
        given.or_else(|| {
            let is_late = self.deadline.is_some_and(|end| self.executor.clock().now() >= end);
            if is_late {
                return Some(StopReason::TimedOut);
            }
            self.executor.is_shutdown().then_some(StopReason::ShuttingDown)
        })
    }
}
