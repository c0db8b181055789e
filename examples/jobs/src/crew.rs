//! Runs jobs. A few threads serve any number of jobs: none waits for a command.
//!
//! Two executors take part, and neither waits for the other:
//!
//! 1. When a run is due, a task of the **starters** starts its command.
//! 2. A task of the **watcher** polls the command ([`watch`](crate::watch)): it passes the
//!    command's output on, and asks whether the command has ended. If not, it schedules the next
//!    poll: soon after there was activity, and later the longer there was none, between a
//!    millisecond and a tenth of a second. So an end is seen, and reported, late by a thirtieth of
//!    the command's time, but by no more than a tenth of a second.
//! 3. When the command has ended, that task reports the run, and schedules the next one with the
//!    starters ([`timetable`](crate::timetable)). If the command has failed and may be tried again,
//!    it schedules that instead: all attempts are one run.
//!
//! So a run is a chain of tasks, in which each schedules its successor and hands its state on to
//! it: nothing is shared, nothing is locked. One thread is enough to watch, because polling is
//! quick; starting takes as many as there are cores, because it is work for the system. A thread
//! that waits for each command would see its end at once; that would be ten thousand threads for
//! ten thousand commands.
//!
//! Because the end of a run schedules the next one, runs of a job do not overlap. A job whose runs
//! may do so schedules the next one as each starts.
//!
//! A chain breaks off where an executor has been shut down, and drops its state: that is how jobs
//! are stopped. A run that was waiting for another attempt then has failed. When the last chain has
//! ended, the [`Crew`] is dropped, which cancels the token for that.

use std::sync::Arc;

use punctual::{CancellationToken, Handle};

use crate::report::Report;

/// The state that all jobs share.
pub(crate) struct Crew {
    pub(crate) starters: Handle,
    pub(crate) watcher: Handle,
    pub(crate) report: Arc<Report>,
    /// Cancelled when running commands are to be stopped.
    pub(crate) hurry: CancellationToken,
    /// Cancelled when no job has a run to come, and no command runs.
    pub(crate) over: Vec<CancellationToken>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        for token in &self.over {
            token.cancel();
        }
    }
}
