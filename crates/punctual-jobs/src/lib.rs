//! Beyond one process: jobs that may run on any machine, and a gate that lets one of several replicas run a
//! periodic task.
//!
//! A job is a name and a payload. Its handler is a closure, given once. The queue where jobs are sent is opened
//! in this process, or on PostgreSQL; the line that opens it is the only one that differs.
//!
//! ```
//! use std::time::Duration;
//! use punctual::ScheduledThreadPoolExecutor;
//! use punctual_jobs::{InMemory, Job, JobRun, Jobs};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Remind {
//!     user: u64,
//!     text: String,
//! }
//! impl Job for Remind {
//!     const NAME: &'static str = "remind";
//!     const MAX_ATTEMPTS: u32 = 5;
//! }
//!
//! let executor = ScheduledThreadPoolExecutor::new(4);
//! let jobs = Jobs::new()
//!     .on(|run: &JobRun, job: Remind| {
//!         println!("{} for {}, {}", job.text, job.user, run.id);
//!         Ok(())
//!     });
//!
//! let queue = jobs.open(InMemory::on(&executor))?; // or Postgres::on(&executor, url)
//! queue.after(Duration::from_secs(86_400), Remind { user: 42, text: "tea".into() })
//!     .key("remind/42")
//!     .enqueue()?;
//! queue.reschedule("remind/42", Duration::from_secs(3600))?;
//! queue.cancel("remind/42")?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! [`JobQueue::list`] shows the jobs; [`retry`](JobQueue::retry), [`discard`](JobQueue::discard) and [`remove`](JobQueue::remove)
//! change one by its id. [`JobQueue::history`] shows the last runs, if a queue is opened with a history.
//!
//! # The gate, the queue, or a workflow engine
//!
//! | the program has | take |
//! |---|---|
//! | a periodic closure that one of several replicas is to run, and the next tick makes up for a lost one | the gate: feature `gate`, the module `gate` |
//! | work that must not be lost, is enqueued by an event, is tried again, is moved or cancelled by a key | the queue: a [`JobQueue`], with the feature `postgres` |
//! | the same in one process, or in tests | the queue: a [`JobQueue`] on [`InMemory`] |
//! | steps that depend on each other, wait for people for weeks, and have to be undone | a workflow engine, such as Temporal; not this crate |
//!
//! `docs/guide.md` of the repository has every verb with an example, and other stores.
//!
//! # Guarantees
//!
//! * **A job that was enqueued to PostgreSQL runs at least once**, until it succeeds or its attempts are used up,
//!   whichever process or machine dies. It does not start before its moment by the database's clock. Jobs of
//!   an in-memory queue end with the process.
//! * **An attempt counts when its process dies**, so a job that kills its process is discarded like any other.
//! * **One claim at a time.** A process that is not heard of for the length of the lease loses its claims. It
//!   learns that: the [token](JobRun::token) of the run is cancelled, and it gets no [fencing token](JobRun::fencing_token).
//! * **Jobs with one ordering key** run one at a time, in the order of their moments.
//! * **A [limit](JobLimit) of a kind, or of each of its limit keys, holds over all machines.** Never more of its jobs have a claim at once. In memory it holds
//!   in the process. Limit keys take turns. In a window of time 2n - 1 begin at most, and n in the long run.
//! * **[Priorities](Priority) are strict**: of the jobs without an ordering key that one claim finds due, those of a higher priority begin first.
//! * **Each tick of a schedule is taken once** over all machines, whatever their clocks say. A job begins after
//!   it, or an event says that none may.
//! * **A schedule that is a row** has one job for each tick, or says what became of it: missed ticks and those that are left out
//!   beside a job are counted.
//! * **A job that has succeeded has its [result](JobQueue::await_result)**, if its handler returns one, until the time of that is over.
//! * **Both queues behave alike.** One suite of cases is run on both. Schedules as rows need the tables.
//!
//! # Limits of the promise
//!
//! * **Exactly once.** A process can stop between its effect and the note that it is done, and then the job
//!   runs again. [`JobRun::id`] is the same each time. A storage that compares [fencing tokens](JobRun::fencing_token) refuses
//!   a run that was believed dead.
//! * **Precision below the poll** for jobs that plain SQL has stored without a notification: they are found within a
//!   second, unless [set](#features) otherwise.
//! * **Order** between jobs that have one priority and not the same ordering key, and fairness between kinds.
//! * **That a handler stops.** A token is a request; nothing ends a closure that does not look at it.
//!
//! # Features
//!
//! * None: definitions and the in-memory queue. It adds serde and serde_json to what punctual has.
//! * `gate`: the gate, on PostgreSQL.
//! * `postgres`: the queue on PostgreSQL, and the gate. It adds three crates to what the gate has, two of them for the calendar of `Schedule`,
//!   and 59 in all; `docs/queue.md` says why.
//! * `metrics`: the counts of a queue, for the recorder of the crate `metrics` that the program has.
//! * `tls`: encrypted connections for the queue, by rustls.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "gate")]
pub mod gate;
mod in_memory;
mod job;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
mod run;
#[cfg(feature = "gate")]
mod server;

#[cfg(feature = "gate")]
pub use crate::job::catch_up::CatchUp;
#[cfg(feature = "postgres")]
pub use crate::postgres::{
    OnEdit, Overlap, Postgres, PostgresQueue, QueueEvent, Schedule, ScheduleCall, ScheduleStatus,
    Schedules,
};
#[cfg(feature = "gate")]
#[doc(hidden)]
pub use crate::server::dial::{Boxed, Dial, Driver, Seam};
#[cfg(feature = "gate")]
pub use crate::server::pooler;
pub use crate::{
    in_memory::InMemory,
    job::{
        DiscardedJob, Job, JobId, JobState, When,
        aligned::{Aligned, aligned},
        job_error::JobError,
        job_limit::JobLimit,
        jobs::{Jobs, OpenQueue},
        names::InvalidName,
        priority::Priority,
    },
    queue::{
        JobQueue,
        change::JobChange,
        counts::KindCounts,
        engine::JobHandle,
        error::{OpenError, QueueError},
        history::{HistoryFilter, JobOutcome, PastRun},
        job_builder::JobBuilder,
        listing::{JobFilter, JobStage, JobStatus, JobWait},
        queue_future::QueueFuture,
        report::{JobSummary, ReleasedJob, ShutdownReport},
        results::JobValue,
    },
    run::{JobRun, outcomes::KindOutcomes, stop::StopReason},
};

/// The README's example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
