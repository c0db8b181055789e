//! What the verbs that change one job answer, by its key or by its id, on either engine.

/// The outcome of a verb that changes one job: [`cancel`](crate::JobQueue::cancel), [`reschedule`](crate::JobQueue::reschedule),
/// [`retry`](crate::JobQueue::retry), [`discard`](crate::JobQueue::discard) or [`remove`](crate::JobQueue::remove). Each of them says
/// what it does with a job that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobChange {
    /// It is done: the job is removed, moved, due or discarded, as was asked.
    Done,
    /// It is running, and its [token](crate::JobRun::token) is cancelled: at once on this machine, within a heartbeat on
    /// another one. It has no further attempt. (`cancel`, `discard`)
    Signalled,
    /// It is running, and nothing was changed. (`reschedule`, `retry`, `remove`)
    Running,
    /// It was discarded, and another job that waits or runs has its key. Nothing was changed. (`retry`)
    KeyTaken,
    /// There is no such job any more; or none that waits or runs, if it was named by its key.
    Unknown,
}

/// The error of a job that has none, and was discarded by its id.
pub(crate) const BY_HAND: &str = "it was discarded by JobQueue::discard";
