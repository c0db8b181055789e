//! What the verbs that name a job by its id answer.

use std::fmt;

/// The outcome of a retry; from [`JobQueue::retry`](crate::JobQueue::retry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobRetry {
    /// It waits, is due, and has an attempt.
    Due,
    /// It is running, and nothing was changed.
    Running,
    /// It was discarded, and another job that waits or runs has its key. Nothing was changed.
    KeyTaken,
    /// There is no such job any more.
    Unknown,
}

impl fmt::Display for JobRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Due => "due",
            Self::Running => "running already",
            Self::KeyTaken => "left as it is: another job has its key",
            Self::Unknown => "unknown",
        })
    }
}

/// The outcome of discarding; from [`JobQueue::discard`](crate::JobQueue::discard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobDiscard {
    /// It is discarded now, or was before.
    Discarded,
    /// It is running, and its [token](crate::JobRun::token) is raised: at once on this machine, within a heartbeat on
    /// another one. It has no further attempt.
    Signalled,
    /// There is no such job any more.
    Unknown,
}

impl fmt::Display for JobDiscard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discarded => "discarded",
            Self::Signalled => "asked to stop",
            Self::Unknown => "unknown",
        })
    }
}

/// The outcome of a removal; from [`JobQueue::remove`](crate::JobQueue::remove).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobRemoval {
    /// It was waiting or discarded, and is gone.
    Removed,
    /// It is running, and nothing was changed.
    Running,
    /// There is no such job any more.
    Unknown,
}

impl fmt::Display for JobRemoval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "removed",
            Self::Running => "running, and not removed",
            Self::Unknown => "unknown",
        })
    }
}

/// The error of a job that has none, and was discarded by its id.
pub(crate) const BY_HAND: &str = "it was discarded by JobQueue::discard";
