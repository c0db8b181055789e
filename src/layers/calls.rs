//! Calls: what a debounced or a throttled task keeps of the calls that wait for its run.
//!
//! A call is a request for a moment, as every [change](super::control) is. The moment depends on the calls
//! before it, or on when the body last began, so that is kept with the plan, under the task's lock: a call,
//! the begin of a body, and a run that does not take place see each other in one order. Whatever becomes of the
//! run, the calls go with it:
//!
//! ```text
//!   call ──▶ first ──▶ a worker takes the task ──▶ the body begins, or the run is skipped, left out: none
//!                           later ◀── call               └──▶ queued again: first = later
//! ```
//!
//! A run that its gate puts off goes on waiting, and its calls with it.
//!
//! **Debounce** asks for a moment later than all before, up to the longest wait after the first call.
//! **Throttle** asks for one that is no later: now, or a period after the body last began. A call that comes
//! when a worker has the task, and before the body begins, has its run in that one; so the request that it has
//! left is withdrawn when the body begins, and no run is ever planned sooner than a period after that.

use std::time::Duration;

use super::Change;
use crate::time::Timestamp;

/// How a task follows its calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// It runs when no call has come for the quiet time, and `max_wait` after the first at the latest.
    Quiet { quiet: Duration, max_wait: Duration },
    /// It runs at once, and once in a period at most.
    Period(Duration),
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Calls {
    /// The first call whose run is planned.
    first: Option<Timestamp>,
    /// The first call that has come since a worker has the task.
    later: Option<Timestamp>,
    /// When the body last began, by a call or not.
    begun: Option<Timestamp>,
    /// The least time between two bodies.
    period: Duration,
}

impl Calls {
    /// Returns the request of a call that comes now.
    pub(super) fn ask(&mut self, now: Timestamp, pace: Pace) -> Change {
        match pace {
            Pace::Quiet { quiet, max_wait } => {
                let first = self.first.or(self.later).unwrap_or(now);
                let latest = first.after(max_wait).max(now);
                Change::At(now.after(quiet).min(latest))
            }
            Pace::Period(period) => {
                self.period = period;
                let not_before = self.begun.map(|begun| begun.after(period));
                Change::Within(not_before.map_or(now, |moment| moment.max(now)))
            }
        }
    }

    /// Notes a call that has asked, when the task was in the queue or a worker had it.
    pub(super) fn note(&mut self, now: Timestamp, is_taken: bool) {
        let call = if is_taken { &mut self.later } else { &mut self.first };
        call.get_or_insert(now);
    }

    /// Returns when the first call came whose run is planned.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.first
    }

    /// Returns `true` if a call waits for its run.
    pub(super) fn is_any(&self) -> bool {
        self.first.or(self.later).is_some()
    }

    /// Notes that the body begins, for all calls up to now. Returns the moment before which the next run must
    /// not be planned.
    pub(super) fn begin(&mut self, now: Timestamp) -> Timestamp {
        (self.first, self.later) = (None, None);
        self.begun = Some(now);
        now.after(self.period)
    }

    /// Notes that the run is over for which calls have waited, whether or not it took place.
    pub(super) fn tick_is_over(&mut self) {
        self.first = None;
    }

    /// Called in the step that queues the task again.
    pub(super) fn requeued(&mut self) {
        self.first = self.first.or(self.later.take());
    }
}
