//! Spans of time, in steps: how long a step is, each scenario says.

use std::{cell::Cell, time::Duration};

std::thread_local! {
    /// The length of a step in the scenario that runs, in nanoseconds. All threads of a scenario are on one of the
    /// system's.
    static STEP: Cell<u64> = const { Cell::new(10) };
}

/// A span of time, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps(pub(crate) u8);

impl Steps {
    pub(crate) fn span(self) -> Duration {
        Duration::from_nanos(STEP.get() * u64::from(self.0))
    }
}

/// When a task runs first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    After(Steps),
    Never,
}

impl When {
    pub(crate) fn delay(self) -> Duration {
        match self {
            Self::After(steps) => steps.span(),
            Self::Never => Duration::MAX,
        }
    }
}

/// Has a step be so long from now on.
pub(crate) fn begin(nanos: u64) {
    STEP.set(nanos);
}
