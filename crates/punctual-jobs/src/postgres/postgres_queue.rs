//! What opening a queue on PostgreSQL returns: a queue, and what it has because there is a database.

use std::{fmt, ops::Deref, sync::Arc};

use super::machine::Machine;
use crate::JobQueue;

/// A queue on PostgreSQL, from [`Jobs::open`](crate::Jobs::open) with [`Postgres`](crate::Postgres): a [`JobQueue`] whose database
/// has schedules that are rows.
///
/// A function that takes any queue takes a [`JobQueue`], which this one is by reference, and becomes by [`Into`]. Clones are one queue.
///
/// ```no_run
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::{JobQueue, Jobs, Postgres};
///
/// let executor = ScheduledThreadPoolExecutor::new(8);
/// let queue = Jobs::new().open(Postgres::on(&executor, "postgres://app@localhost/app"))?;
/// for schedule in queue.schedules().list().call()? {
///     println!("{schedule}");
/// }
/// let any: JobQueue = queue.into();
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
pub struct PostgresQueue {
    pub(super) queue: JobQueue,
    pub(super) machine: Arc<Machine>,
}

impl PostgresQueue {
    /// Returns a queue as the one on PostgreSQL that it is, in a [handler](crate::JobRun::queue) for instance; `None` for one in
    /// memory. It owns the queue if that one does. Does not block.
    #[must_use]
    pub fn of(queue: &JobQueue) -> Option<Self> {
        let machine = Arc::clone(&queue.engine).into_any().downcast().ok()?;
        Some(Self { queue: queue.clone(), machine })
    }
}

impl Deref for PostgresQueue {
    type Target = JobQueue;

    fn deref(&self) -> &JobQueue {
        &self.queue
    }
}

impl From<PostgresQueue> for JobQueue {
    fn from(queue: PostgresQueue) -> Self {
        queue.queue
    }
}

impl fmt::Debug for PostgresQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresQueue").field(&self.queue).finish()
    }
}
