//! The alarm: a job that does nothing but wake an asynchronous task when it is due.
//!
//! It is what a [`Sleep`](crate::Sleep) has in the queue. It is a task like any other, so everything that
//! holds for the order, the precision, the shutdown and the prompt removal of tasks holds for timers. But it
//! has no closure of the user's: no hook, no decorator and no span is around it.
//!
//! # Who has the waker
//!
//! The job has it, under the task's lock, for as long as the task waits. From there it goes one of three
//! ways, each of which takes it out of the job under that lock or owns the job alone:
//!
//! * **It is due.** The worker that has taken the job wakes it. This comes before the end of the task is
//!   published; so a poll that finds the alarm running takes it for one that has gone off, which it
//!   has: it was due when the worker took it.
//! * **The sleeper does not want it any more**: the cancellation that it [requests](CancelReason::Requested)
//!   disarms it, and nobody is woken.
//! * **The executor ends it**, by a shutdown or because it was discarded: the job is dropped, and the drop
//!   wakes the sleeper, which finds out why.
//!
//! So a sleeper that has been told to wait is woken, unless it has given up waiting itself.
//!
//! Wakers are user code. They are cloned, dropped and woken with no lock held.

use std::{mem, task::Poll, task::Waker};

use super::{
    Task,
    hooks::Invocation,
    job::{Job, RunOutcome},
    period::Period,
    state::Stage,
};
use crate::{
    CancelReason,
    time::Timestamp,
    unwind::{discard, wake_by_ref},
};

/// See the [module](self).
pub(crate) struct Alarm {
    waker: Waker,
    is_disarmed: bool,
}

impl Alarm {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, is_disarmed: false }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if !self.is_disarmed {
            wake_by_ref(&self.waker);
        }
    }
}

impl Job for Alarm {
    type Output = ();

    const IS_PERIODIC: bool = false;

    fn run(self, _: Invocation<'_>) -> RunOutcome<Self> {
        drop(self);
        RunOutcome::Ended(Ok(()))
    }

    fn called_off(&mut self, reason: CancelReason) {
        self.is_disarmed = reason == CancelReason::Requested;
    }

    fn slot(&self) -> Option<u32> {
        None
    }

    fn set_slot(&mut self, _: u32) {}

    fn set_schedule(&mut self, schedule: Period) -> Option<Period> {
        Some(schedule)
    }

    fn runs(&self) -> u64 {
        0
    }

    fn missed(&self, _: Timestamp, _: Timestamp) -> u64 {
        0
    }
}

impl Task<Alarm> {
    /// Returns `Ready` once the alarm has gone off, or why it never will. Until then `waker` is the one
    /// that is woken, in the place of the one before.
    pub(crate) fn poll_alarm(&self, waker: &Waker) -> Poll<Result<(), CancelReason>> {
        // Most polls bring the same waker again, and so need no clone.
        if let Some(answer) = self.look_for(waker) {
            return answer;
        }
        let mut unused = waker.clone();
        let mut cell = self.0.lock();
        if let Stage::Scheduled(alarm) = cell.stage() {
            mem::swap(&mut alarm.waker, &mut unused);
        }
        let answer = answer(cell.stage());
        drop(cell);
        discard(unused);
        answer
    }

    /// Returns the answer to a poll that need not keep this waker.
    fn look_for(&self, waker: &Waker) -> Option<Poll<Result<(), CancelReason>>> {
        let mut cell = self.0.lock();
        match cell.stage() {
            Stage::Scheduled(alarm) if !alarm.waker.will_wake(waker) => None,
            stage => Some(answer(stage)),
        }
    }
}

fn answer(stage: &Stage<Alarm, ()>) -> Poll<Result<(), CancelReason>> {
    match stage {
        Stage::Scheduled(_) => Poll::Pending,
        Stage::Cancelled { reason, .. } => Poll::Ready(Err(*reason)),
        _ => Poll::Ready(Ok(())),
    }
}
