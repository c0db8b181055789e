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

use std::{fmt, sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use punctual::{
    Trigger,
    trigger::{Due, TriggerContext},
};

/// A trigger of any type.
pub(crate) struct BoxedTrigger(Box<dyn Trigger>);

impl BoxedTrigger {
    pub(crate) fn new(trigger: impl Trigger) -> Self {
        Self(Box::new(trigger))
    }

    /// Makes the trigger plan the same moments, with the same offsets, on each machine. Returns `false` if it cannot.
    #[cfg(feature = "postgres")]
    pub(crate) fn share(&mut self, name: &str) -> bool {
        self.0.share(Some(name))
    }

    /// Returns the trigger for a task, and the cell from which its body learns the tick.
    pub(crate) fn ticking(self) -> (Ticking, Tick) {
        let tick = Tick(Arc::default());
        (Ticking { inner: self.0, tick: tick.clone() }, tick)
    }
}

/// The moment for which the next run of a task is planned.
#[derive(Clone)]
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

/// A trigger whose answers can be read.
pub(crate) struct Ticking {
    inner: Box<dyn Trigger>,
    tick: Tick,
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

impl fmt::Debug for Ticking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticking").finish_non_exhaustive()
    }
}
