//! Throttle: a run for the first call, and once in a period at most.
//!
//! ```text
//!   calls      │ │ │       │             │
//!   throttle   ▼ ── ▼ ──── ▼ ─────────── ▼         at once, and then once in each period
//! ```
//!
//! The first call decides when the run is, and each further one joins it by the word ([`Calls`]). The gate keeps the period.

use std::time::Duration;

use super::calls::{Caller, Calls};
use crate::{Outcome, RejectedExecutionError, TaskBuilder, TaskHandle};

/// A task that runs once in a period at most, however often it is called; from [`Handle::throttle`](crate::Handle::throttle).
///
/// Dropping it detaches the task, as dropping a [future](crate::ScheduledFuture) does: a run that is due takes place. The
/// task then stays pending until it is cancelled, by a [handle](Self::task_handle) or with its executor.
/// [`cancel_on_drop`](Self::cancel_on_drop) has it cancelled by the drop.
#[derive(Debug)]
pub struct Throttled {
    caller: Caller,
}

impl Throttled {
    #[track_caller]
    pub(crate) fn submit<O: Outcome>(
        task: TaskBuilder<'_>,
        period: Duration,
        body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Self, RejectedExecutionError> {
        Ok(Self { caller: Calls::submit(task, period, body)? })
    }

    /// Asks for a run: at once if the last one was a period ago or more, and otherwise when it will have
    /// been. All calls until then have that run in common. Returns `false` if the task has ended. Does
    /// not block. O(log n).
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn call(&self) -> bool {
        self.caller.call(|_, _| 0)
    }

    /// Has the task cancelled when this is dropped, and with it a run that is waited for.
    #[must_use]
    pub fn cancel_on_drop(mut self) -> Self {
        self.caller.cancels_on_drop = true;
        self
    }

    /// Returns the handle of the task.
    #[must_use]
    pub fn task_handle(&self) -> &TaskHandle {
        &self.caller.task
    }
}
