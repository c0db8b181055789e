//! The states of a task, and the only moves between them:
//!
//! ```text
//!                 start                    finish
//!   ──▶ Scheduled ─────▶ Running ──────────────────▶ Failed │ Completed ────┐ claim
//!         │    ▲           │   │                                            ▼
//!         │    └───────────│───┘ rest (periodic)                         Claimed
//!         │                │
//!         └──── cancel ────┴──▶ Cancelled
//! ```
//!
//! * **Scheduled**: the closure is in the node. The task is in the queue, or a thread is about to queue it or has just
//!   taken it out.
//! * **Running**: the closure is on a worker's stack.
//! * **Completed, Failed, Cancelled**: final. The call that takes the result of a completed task makes the task
//!   `Claimed`. A series whose trigger has no next run has completed, with a result or without ([`Stage::EXHAUSTED`]);
//!   a call with retries that has no attempt left has failed.
//!
//! Each move is made under the task's lock, and its return value tells the caller what to *do*: take the closure out,
//! or discard the result. In the same step, the [`payload`](super::payload) moves the closure or the result.
//!
//! # Cancelling races with running
//!
//! The task's lock orders `start` and `cancel`. The thread that takes the closure out owns it alone. If `cancel` comes
//! first, its caller takes the closure out, and `start` finds nothing to run. If `start` comes first, `cancel` marks
//! the task as cancelled: for its waiters, the task has ended. When the body returns, the worker finds the mark and
//! drops the closure and the result. Until then [`Stage::runs_on`] is true, and a later call can still cancel the
//! token that the body checks.

use std::fmt;

use super::Cancellation;
use crate::{CancelReason, TaskError};

/// The state of a task; from [`TaskHandle::state`](crate::TaskHandle::state). Java: `Future.State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum TaskState {
    /// The task waits until it is due and a worker takes it. A periodic task is also in this state between its runs.
    Scheduled,
    /// The task waits, and does not run until a caller [resumes](crate::TaskHandle::resume) it.
    Paused,
    /// The task is running.
    Running,
    /// The task has ended with a result, or its trigger has no next run. (A call whose last retry failed is `Failed`.)
    Completed,
    /// The task has failed: it panicked, or ended because runs returned an `Err` or exceeded their time limit. If the
    /// first run over its limit ends the task, the task is [`Cancelled`](Self::Cancelled).
    Failed,
    /// The task was cancelled, or its time limit expired. A body that had begun may still be running.
    Cancelled,
}

impl TaskState {
    /// Returns `true` if the task has ended, however it did.
    pub fn is_done(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Paused | Self::Running)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduled => "scheduled",
            Self::Paused => "paused",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// The state of a task, without its closure or result. It is one byte, because each step copies it out of the node and
/// back. A read of two bytes just after a write to one of them would stall: the processor cannot forward that store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage(u8);

impl Stage {
    pub(crate) const SCHEDULED: Self = Self(0);
    pub(crate) const RUNNING: Self = Self(1);
    pub(crate) const COMPLETED: Self = Self(2);
    pub(crate) const EXHAUSTED: Self = Self(3);
    pub(crate) const FAILED: Self = Self(4);
    const CLAIMED: Self = Self(5);
    /// The number of the first cancelled stage. Each reason has two stages; in the second, the body is still running.
    const CANCELLED: u8 = 8;

    /// Begins a run; the caller then takes the closure out. Returns `false` if the task has ended or is running.
    pub(super) fn start(&mut self) -> bool {
        let is_scheduled = self.is_scheduled();
        if is_scheduled {
            *self = Self::RUNNING;
        }
        is_scheduled
    }

    /// Ends the task after its last run. Returns `false` if the task was cancelled during the run; the worker then
    /// drops the result.
    pub(super) fn finish(&mut self, ending: Self) -> bool {
        let goes_on = self.body_returns();
        if goes_on {
            *self = ending;
        }
        goes_on
    }

    /// Ends a run that was not the last. Returns `false` if the task was cancelled during the run; the caller then
    /// drops the body, and calls [`body_returns`](Self::body_returns). Until that call, the body counts as running.
    pub(super) fn rest(&mut self) -> bool {
        let goes_on = *self == Self::RUNNING;
        if goes_on {
            *self = Self::SCHEDULED;
        }
        goes_on
    }

    /// Notes that the body has returned. Returns `false` if the task was cancelled during the run.
    pub(super) fn body_returns(&mut self) -> bool {
        self.0 -= u8::from(self.runs_on());
        *self == Self::RUNNING
    }

    /// Returns `true` if the task was cancelled and its body is still running.
    pub(crate) fn runs_on(self) -> bool {
        self.0 >= Self::CANCELLED && self.0 % 2 == 1
    }

    pub(crate) fn is_done(self) -> bool {
        self.0 > Self::RUNNING.0
    }

    /// Returns `true` if the task has ended and its body is not running.
    pub(super) fn has_left(self) -> bool {
        self.is_done() && !self.runs_on()
    }

    /// Returns `true` if the closure is in the node: no worker has it, and the task has not ended.
    pub(crate) fn is_scheduled(self) -> bool {
        self == Self::SCHEDULED
    }

    /// Ends the task as cancelled, unless it has ended. If the task was waiting, the caller takes the closure out; if
    /// it was running, its worker drops the closure and the result.
    #[inline]
    pub(super) fn cancel(&mut self, reason: CancelReason) -> Cancellation {
        let found = match *self {
            Self::SCHEDULED => Cancellation::Waiting(None),
            Self::RUNNING => Cancellation::Running,
            _ => return Cancellation::TooLate,
        };
        self.0 += Self::CANCELLED + 2 * reason as u8;
        found
    }

    /// Claims the task's value. Returns `false` if there is none, or a call has claimed it already.
    #[inline]
    pub(super) fn claim_value(&mut self) -> bool {
        let is_there = *self == Self::COMPLETED;
        if is_there {
            *self = Self::CLAIMED;
        }
        is_there
    }

    /// Claims the result; `None` if the task has not ended. After `Ok`, the caller takes the value out. An `Err` says
    /// why there is no value, but if the node still has the task's failure, the caller returns that failure instead.
    pub(super) fn claim(&mut self) -> Option<Result<(), TaskError>> {
        if self.claim_value() {
            return Some(Ok(()));
        }
        Some(Err(match *self {
            Self::SCHEDULED | Self::RUNNING => return None,
            Self::EXHAUSTED => TaskError::Exhausted,
            Self::FAILED | Self::CLAIMED => TaskError::ResultTaken,
            Self(cancelled) => TaskError::Cancelled(
                CancelReason::ALL[usize::from(cancelled - Self::CANCELLED) / 2].0,
            ),
        }))
    }

    pub(crate) fn state(self) -> TaskState {
        match self {
            Self::SCHEDULED => TaskState::Scheduled,
            Self::RUNNING => TaskState::Running,
            Self::COMPLETED | Self::CLAIMED | Self::EXHAUSTED => TaskState::Completed,
            Self::FAILED => TaskState::Failed,
            _ => TaskState::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Stage {
        let mut stage = Stage::SCHEDULED;
        assert!(stage.start());
        stage
    }

    #[test]
    fn a_task_starts_once() {
        let mut stage = running();
        assert!(!stage.start());
        assert_eq!(stage.state(), TaskState::Running);
    }

    /// M46.
    #[test]
    fn a_result_is_claimed_once() {
        let mut stage = running();
        assert!(stage.claim().is_none());
        assert!(stage.finish(Stage::COMPLETED));
        assert!(matches!(stage.claim(), Some(Ok(()))));
        assert!(matches!(stage.claim(), Some(Err(TaskError::ResultTaken))));
        assert_eq!(stage.state(), TaskState::Completed);
    }

    /// M47.
    #[test]
    fn a_claimed_panic_is_still_a_panic() {
        let mut stage = running();
        assert!(stage.finish(Stage::FAILED));
        assert!(matches!(stage.claim(), Some(Err(TaskError::ResultTaken))));
        assert!(matches!(stage.claim(), Some(Err(TaskError::ResultTaken))));
        assert_eq!(stage.state(), TaskState::Failed);
    }

    /// M42, M48.
    #[test]
    fn cancelling_a_waiting_task_hands_out_its_job() {
        let mut stage = Stage::SCHEDULED;
        assert_eq!(stage.cancel(CancelReason::Requested), Cancellation::Waiting(None));
        assert!(!stage.start());
        assert_eq!(stage.cancel(CancelReason::Shutdown), Cancellation::TooLate);
        for _ in 0..2 {
            let claim = stage.claim();
            let Some(Err(error)) = claim else { unreachable!("it was cancelled") };
            assert!(matches!(error, TaskError::Cancelled(CancelReason::Requested)));
        }
    }

    /// F31, M43, M44: a task that is cancelled while it runs ends at once, and the result of the run is not kept.
    #[test]
    fn cancelling_a_running_task_leaves_the_rest_to_the_worker() {
        let mut stage = running();
        assert_eq!(stage.cancel(CancelReason::Requested), Cancellation::Running);
        assert_eq!(stage.state(), TaskState::Cancelled);
        assert!(stage.runs_on());
        assert!(!stage.finish(Stage::COMPLETED));
        assert!(!stage.runs_on());
        assert_eq!(stage.state(), TaskState::Cancelled);
    }

    /// M44.
    #[test]
    fn a_cancelled_series_is_over_when_its_closure_has_been_dropped() {
        let mut stage = running();
        assert_eq!(stage.cancel(CancelReason::Requested), Cancellation::Running);
        assert!(!stage.rest());
        assert!(stage.runs_on());
        assert!(!stage.body_returns());
        assert!(!stage.runs_on());
        assert_eq!(stage.state(), TaskState::Cancelled);
    }

    /// M50.
    #[test]
    fn a_value_that_comes_too_late_is_given_back() {
        let mut stage = Stage::SCHEDULED;
        assert_eq!(stage.cancel(CancelReason::TimedOut), Cancellation::Waiting(None));
        assert_eq!(stage.cancel(CancelReason::Requested), Cancellation::TooLate);
        assert!(!stage.start());
        let mut stage = running();
        assert_eq!(stage.cancel(CancelReason::TimedOut), Cancellation::Running);
        assert!(!stage.finish(Stage::COMPLETED));
        assert_eq!(stage.state(), TaskState::Cancelled);
    }

    /// M45.
    #[test]
    fn a_periodic_task_goes_round() {
        let mut stage = running();
        assert!(!stage.is_scheduled(), "the worker has it");
        assert!(stage.rest());
        assert_eq!((stage.state(), stage.is_scheduled()), (TaskState::Scheduled, true));
        assert!(stage.start());
        assert!(stage.rest());
        assert_eq!(stage.cancel(CancelReason::Requested), Cancellation::Waiting(None));
    }

    /// A cancelled stage says why the task was cancelled.
    #[test]
    fn each_reason_comes_back() {
        for (reason, _) in CancelReason::ALL {
            let mut stage = running();
            assert_eq!(stage.cancel(reason), Cancellation::Running);
            assert!(
                matches!(stage.claim(), Some(Err(TaskError::Cancelled(kept))) if kept == reason)
            );
            assert!(stage.runs_on() && !stage.body_returns() && stage.has_left());
        }
    }
}
