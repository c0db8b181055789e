//! Beyond one process: a gate that lets one of several replicas run a periodic task, and jobs that may run
//! on any machine.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod desk;
mod embedded;
mod error;
#[cfg(feature = "gate")]
pub mod gate;
mod job;
mod jobs;
#[cfg(feature = "gate")]
pub mod pooler;
#[cfg(feature = "postgres")]
mod postgres;
mod reply;
mod report;
mod run;
mod schedule;

#[cfg(feature = "postgres")]
pub use crate::postgres::{Postgres, Trouble};
pub use crate::{
    desk::{Desk, Sending, Ticket},
    embedded::Embedded,
    error::{DeskError, OpenError},
    job::{Cancellation, GivenUp, Job, JobError, JobId, JobState, Rescheduling, When},
    jobs::{Jobs, OpenDesk},
    reply::Reply,
    report::{HandedBack, JobSummary, ShutdownReport},
    run::JobRun,
    schedule::{Aligned, aligned},
};
