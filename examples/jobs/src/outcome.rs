//! How a run went.

use std::{error::Error, fmt, process::ExitStatus};

/// The outcome of an attempt, and of the run whose last one it was.
pub(crate) enum Outcome {
    Exited(ExitStatus),
    /// The command was told to stop, and ended because of that.
    Stopped(ExitStatus),
    /// The command took longer than it may, was told to stop, and has ended.
    TimedOut(ExitStatus),
    /// The command could not be started, or not be followed to its end.
    Lost(Box<dyn Error + Send + Sync>),
}

impl Outcome {
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Exited(status) => !status.success(),
            Self::Stopped(_) => false,
            Self::TimedOut(_) | Self::Lost(_) => true,
        }
    }

    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut(_))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) if status.success() => f.write_str("ok"),
            Self::Exited(status) => write!(f, "FAILED ({status})"),
            Self::Stopped(status) => write!(f, "stopped ({status})"),
            Self::TimedOut(status) => write!(f, "TIMED OUT ({status})"),
            Self::Lost(error) => write!(f, "FAILED ({error})"),
        }
    }
}
