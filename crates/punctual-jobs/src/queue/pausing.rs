//! Pausing a kind: its jobs wait, on all machines, until it is resumed or a moment has come.
//!
//! A pause is known by the name of the kind. Where jobs are claimed the engine asks whether the kind is paused, so a pause holds from
//! when the verb has returned. It takes nothing from the jobs: they fall due, count, and are moved and cancelled as always.

use std::time::SystemTime;

use crate::{JobQueue, QueueError, QueueFuture, When, job::names::Names};

/// The pause of a kind; from [`JobQueue::counts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindPause {
    /// When it ends by itself; `None` if it lasts until the kind is [resumed](JobQueue::resume_kind).
    pub until: Option<SystemTime>,
}

/// Pause and resume.
impl JobQueue {
    /// Pauses a kind until it is [resumed](Self::resume_kind): none of its jobs begins, on any machine. Those that run go on.
    /// Those that fall due meanwhile wait, and none is lost. A pause of a kind that is paused takes the place of the old one.
    /// (Oban: `pause_queue`, River: `QueuePause`, BullMQ: `pause`.)
    ///
    /// A job that is being claimed while this is called may still begin. On PostgreSQL a pause outlives the programs. A
    /// due job with an [ordering key](crate::JobBuilder::ordering_key) keeps its place: those behind it wait as well, of whatever kind.
    /// The [counts](Self::counts) say that a kind is paused, and so does the [list](Self::list).
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// queue.pause_kind("mail")?;
    /// queue.now(Mail {}).enqueue()?;
    /// let counts = queue.counts()?;
    /// assert!(counts[0].paused.is_some());
    /// assert!(queue.resume_kind("mail")?);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidName`](QueueError::InvalidName), if no kind can have this name; else [`QueueError`], if the engine cannot be
    /// asked.
    pub fn pause_kind(&self, kind: &str) -> Result<(), QueueError> {
        self.pause_kind_async(kind).wait(self.request_timeout())
    }

    /// The same as [`pause_kind`](Self::pause_kind), without blocking.
    pub fn pause_kind_async(&self, kind: &str) -> QueueFuture<()> {
        self.pause(kind, None)
    }

    /// The same as [`pause_kind`](Self::pause_kind), until a moment: by the server's clock on PostgreSQL, where the machines find it with
    /// their next poll, and by the executor's in memory. A moment that has passed ends a pause.
    ///
    /// # Errors
    ///
    /// As of [`pause_kind`](Self::pause_kind). In memory also [`Refused`](QueueError::Refused), if the executor does not take the task
    /// that ends the pause; the kind is not paused then.
    pub fn pause_kind_until(&self, kind: &str, when: impl Into<When>) -> Result<(), QueueError> {
        self.pause_kind_until_async(kind, when).wait(self.request_timeout())
    }

    /// The same as [`pause_kind_until`](Self::pause_kind_until), without blocking.
    pub fn pause_kind_until_async(&self, kind: &str, when: impl Into<When>) -> QueueFuture<()> {
        self.pause(kind, Some(when.into()))
    }

    fn pause(&self, kind: &str, until: Option<When>) -> QueueFuture<()> {
        match Names::Kind.check(kind) {
            Ok(()) => self.engine.pause_kind(kind, until),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Ends the pause of a kind. Its due jobs begin as if they had fallen due now. Answers whether it was paused.
    ///
    /// # Errors
    ///
    /// As of [`pause_kind`](Self::pause_kind).
    pub fn resume_kind(&self, kind: &str) -> Result<bool, QueueError> {
        self.resume_kind_async(kind).wait(self.request_timeout())
    }

    /// The same as [`resume_kind`](Self::resume_kind), without blocking.
    pub fn resume_kind_async(&self, kind: &str) -> QueueFuture<bool> {
        match Names::Kind.check(kind) {
            Ok(()) => self.engine.resume_kind(kind),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }
}
