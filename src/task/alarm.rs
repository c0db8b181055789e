//! The alarm: a job that does nothing but wake an asynchronous task when it is due.
//!
//! It is what a [`Sleep`](crate::Sleep) has in the queue. It is a task like any other, so everything that
//! holds for the order, the precision, the shutdown and the prompt removal of tasks holds for timers. But it
//! has no closure of the user's: no hook, no decorator and no span is around it.
//!
//! The waker goes one of three ways:
//!
//! * **It is due.** The worker that has taken the alarm wakes it.
//! * **The pool ends it**, by a shutdown or because it was discarded: it is woken as well, and the
//!   sleeper finds out why.
//! * **The sleeper takes it out of the queue**, because it waits no longer or has another waker: it is
//!   dropped, and nobody is woken.
//!
//! The queue's lock decides between them: the alarm belongs to the one that has taken it out. So a
//! sleeper that finds its alarm gone has been woken, or is about to be.
//!
//! Wakers are user code. They are cloned, dropped and woken with no lock held.

use std::task::Waker;

use super::{
    hooks::Invocation,
    job::{Job, RunOutcome},
    period::Period,
};
use crate::{time::Timestamp, unwind::wake_by_ref};

/// See the [module](self).
pub(crate) struct Alarm {
    waker: Waker,
    /// Its drop wakes.
    goes_off: bool,
}

impl Alarm {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, goes_off: false }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.goes_off {
            wake_by_ref(&self.waker);
        }
    }
}

impl Job for Alarm {
    type Output = ();

    const IS_PERIODIC: bool = false;

    fn run(mut self, _: Invocation<'_>) -> RunOutcome<Self> {
        self.goes_off = true;
        drop(self);
        RunOutcome::Ended(Ok(()))
    }

    fn will_not_run(&mut self) {
        self.goes_off = true;
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
