//! Ticks: the moments at which periodic jobs are enqueued, and how a task learns which tick it runs for.
//!
//! Several machines can agree that a tick has been taken only if they mean the same moment by it. So a
//! tick is a time of the wall clock, exactly as the trigger has named it, to the nanosecond: a calendar's
//! minute, or a point of a grid that is aligned to the epoch. When a machine gets to it is another matter,
//! and differs.
//!
//! punctual tells a trigger what happened, and a task when it was planned on the monotonic clock. So the
//! trigger is wrapped, and writes its answer into a cell that the body reads. Both are called by the same
//! task, one after the other, and the lock of the cell is there because two threads may do that.

use std::{sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use punctual::{
    Trigger,
    trigger::{Due, TriggerContext},
};

/// The moment for which the next run of a task is planned.
#[derive(Clone, Default)]
pub(crate) struct Tick(Arc<Mutex<Option<Due>>>);

#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "one process needs not agree"))]
impl Tick {
    pub(crate) fn get(&self) -> Option<Due> {
        *self.0.lock()
    }

    /// Returns the moment, if it is one of the wall clock.
    pub(crate) fn wall(&self) -> Option<SystemTime> {
        match self.get() {
            Some(Due::Wall(time)) => Some(time),
            _ => None,
        }
    }
}

/// A trigger of any type, whose answers can be read.
pub(crate) struct Ticking {
    inner: Box<dyn Trigger>,
    /// The cell from which the body learns the tick.
    pub(crate) tick: Tick,
}

impl Ticking {
    pub(crate) fn new(trigger: impl Trigger) -> Self {
        Self { inner: Box::new(trigger), tick: Tick::default() }
    }

    /// Makes the trigger plan the same moments, with the same offsets, on each machine. Returns `false` if it cannot.
    #[cfg(feature = "postgres")]
    pub(crate) fn share_as(&mut self, name: &str) -> bool {
        self.inner.share(Some(name))
    }
}

impl Trigger for Ticking {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let due = self.inner.next(last);
        *self.tick.0.lock() = due;
        due
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut *self.inner)
    }
}
