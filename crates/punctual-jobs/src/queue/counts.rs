//! Counts: how many jobs of each kind wait, are due, run and are discarded.
//!
//! They are counted when a caller asks, by one look at all jobs, and nothing is counted while jobs run. A look from time to
//! time is what a monitor needs: a queue that falls behind has a job that has been due for long ([`KindCounts::latency`]).

use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// How many jobs of one kind there are; from [`JobQueue::counts`](crate::JobQueue::counts).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindCounts {
    /// The name of the kind.
    pub kind: String,
    /// Those that wait, for their moments, their turns or their next attempts.
    pub waiting: u64,
    /// Those among them whose moments have come.
    pub due: u64,
    /// Those that run.
    pub running: u64,
    /// Those that are discarded, and not yet removed.
    pub discarded: u64,
    /// How long ago the moment of the first one came that is due and waits; zero if there is none.
    pub latency: Duration,
    /// It is [paused](crate::JobQueue::pause_kind).
    pub paused: bool,
    /// When its pause ends by itself; `None` if it lasts until the kind is [resumed](crate::JobQueue::resume_kind).
    pub paused_until: Option<SystemTime>,
}

/// One line for a log: `"mail": 3 waiting, 1 due for 2s, 2 running, 0 discarded`. One that is paused ends
/// with `, paused`.
impl fmt::Display for KindCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, waiting, due, running, discarded, latency, paused, .. } = self;
        write!(f, "{kind:?}: {waiting} waiting, {due} due")?;
        if *due > 0 {
            write!(f, " for {latency:?}")?;
        }
        write!(f, ", {running} running, {discarded} discarded")?;
        if *paused { f.write_str(", paused") } else { Ok(()) }
    }
}
