//! Enqueueing a job in a transaction of the caller: it is stored if that commits, and only then.

use super::verbs::Enqueue;
use crate::{JobBuilder, JobHandle, QueueError};

impl JobBuilder<'_> {
    /// Stores the job in a transaction of the program's own, in the same database: the job exists if the
    /// transaction commits, and otherwise it never has. No other machine can see it before. Others that enqueue its
    /// [key](Self::key), unique or not, wait for the end of the transaction.
    ///
    /// ```no_run
    /// # use punctual_jobs::{JobQueue, QueueError, Job};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Ship { order: i64 }
    /// # impl Job for Ship { const NAME: &'static str = "ship"; }
    /// # async fn order(queue: &JobQueue, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// let row = transaction.query_one("insert into orders default values returning id", &[]).await?;
    /// queue.now(Ship { order: row.get(0) }).enqueue_in(&transaction).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`]; after one of the database the transaction can only be rolled back. An in-memory queue
    /// has no transactions, and answers [`Unsupported`](QueueError::Unsupported).
    pub async fn enqueue_in(
        self,
        transaction: &tokio_postgres::Transaction<'_>,
    ) -> Result<JobHandle, QueueError> {
        let Some((clock, schema)) = self.tables() else {
            return Err(QueueError::Unsupported("an in-memory queue has no transactions"));
        };
        let new_job = self.checked()?;
        let enqueue = Enqueue::new(new_job, &clock);
        let statement = schema.name_in(enqueue.statement());
        loop {
            let rows = transaction.query_typed(&statement, &enqueue.params()).await;
            let rows = rows.map_err(|error| QueueError::Server(error.into()))?;
            if let Some(job) = enqueue.handle(&rows) {
                return Ok(job);
            }
        }
    }
}
