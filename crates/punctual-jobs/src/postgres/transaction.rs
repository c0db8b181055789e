//! The verbs in a transaction of the caller's: what they do is done if that commits, and only then.
//!
//! Each is the statement that the queue itself asks, on the caller's connection, and changed in one point: it waits for a row that
//! another transaction has locked, because an error would end the caller's transaction. What it has waited for may have
//! changed the answer, so each of them decides by the row as it is under its lock:
//!
//! * An id names one row for good. If that is gone the job is gone.
//! * A key may have gone to another job meanwhile, which the statement has not seen, since it sees the database as it was when
//!   it began. So a key that leads nowhere is looked up once more, and the verb is asked again if it leads to a job now.
//! * A retry of a discarded job may find that its key was enqueued again and committed while it waited for just that. The
//!   server refuses it then, and a savepoint keeps the transaction alive.
//!
//! Other machines are told by the server, when the transaction commits: a notification is a part of it. The token of a run
//! is cancelled by the next heartbeat that finds the job cancelled, on this machine as on others. Until then only the row
//! is locked, which no heartbeat and no claim waits for.

use tokio_postgres::{Row, Transaction, error::SqlState};

use super::{
    connection::{AskError, Param, ask_in},
    looking::{self, DISCARD, REMOVE, RETRY},
    moment::moment,
    postgres_queue::PostgresQueue,
    statements,
    storing::store_in,
    verbs,
};
use crate::{
    JobBuilder, JobChange, JobHandle, JobId, QueueError, When, job::names::Names,
    queue::change::BY_HAND, server::schema::Schema,
};

/// The verbs in a transaction of the program's own, in the same database. What they do is done if the transaction commits,
/// and otherwise it never was; other machines see nothing of it before. They need no more of the queue than its name, so they
/// also work after its shutdown.
///
/// **What is locked.** Each of these locks the row of its one job until the transaction ends, also if its answer is that
/// nothing was changed. Claims, heartbeats and other jobs wait for none of it. What waits is this:
///
/// * the job itself: it is not claimed, and if it runs its end is written down after the transaction; the run keeps its worker's
///   place until then, and its [ordering key](JobBuilder::ordering_key) and its [limit](crate::JobLimit) wait with it;
/// * each verb for the same job, and each enqueueing of its key, on all machines; and the ticks of a schedule that
///   [replaces](crate::Overlap::Replace) it.
///
/// So keep the transaction short. A verb waits for a job that another transaction has locked, for as long as this transaction's
/// `lock_timeout` says; two that lock the same jobs in different orders may end in a deadlock, which the server ends by an error for one of
/// them.
///
/// **When it takes effect.** At the commit the server tells all machines: a job that is due begins as if it was enqueued then. The token of a running job is cancelled within a heartbeat of the commit, on whichever machine it runs.
///
/// ```no_run
/// # use punctual_jobs::PostgresQueue;
/// # async fn cancel(queue: &PostgresQueue, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let transaction = client.transaction().await?;
/// transaction.execute("update orders set state = 'cancelled' where id = 42", &[]).await?;
/// queue.cancel_in(&transaction, "ship/42").await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
impl PostgresQueue {
    /// The same as [`enqueue`](JobBuilder::enqueue) in a transaction. No other machine can see the job before the commit. Others that
    /// enqueue its [key](JobBuilder::key), unique or not, wait for the end of the transaction.
    ///
    /// ```no_run
    /// # use punctual_jobs::{Job, PostgresQueue};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Ship { order: i64 }
    /// # impl Job for Ship { const NAME: &'static str = "ship"; }
    /// # async fn order(queue: &PostgresQueue, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// let row = transaction.query_one("insert into orders default values returning id", &[]).await?;
    /// queue.enqueue_in(&transaction, queue.now(Ship { order: row.get(0) })).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`]; after one of the database the transaction can only be rolled back.
    pub async fn enqueue_in(
        &self,
        transaction: &Transaction<'_>,
        job: JobBuilder<'_>,
    ) -> Result<JobHandle, QueueError> {
        Ok(store_in(transaction, &self.machine, job.checked()?).await?)
    }

    /// The same as [`reschedule`](crate::JobQueue::reschedule) in a transaction. A delay counts from this call, and not from the commit.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn reschedule_in(
        &self,
        transaction: &Transaction<'_>,
        key: &str,
        when: impl Into<When>,
    ) -> Result<JobChange, QueueError> {
        let (time, delay) = moment(when.into(), self.machine.executor.clock());
        let rows =
            by_key(transaction, self.schema(), statements::RESCHEDULE, key, &[&time, &delay])
                .await?;
        Ok(verbs::moved(&rows))
    }

    /// The same as [`cancel`](crate::JobQueue::cancel) in a transaction. A token is cancelled within a heartbeat of the commit.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn cancel_in(
        &self,
        transaction: &Transaction<'_>,
        key: &str,
    ) -> Result<JobChange, QueueError> {
        let rows = by_key(transaction, self.schema(), statements::CANCEL, key, &[]).await?;
        Ok(verbs::cancelled(&rows))
    }

    /// The same as [`retry`](crate::JobQueue::retry) in a transaction. It takes a savepoint, so that the transaction goes on if another job has
    /// the key by now.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn retry_in(
        &self,
        transaction: &Transaction<'_>,
        id: JobId,
    ) -> Result<JobChange, QueueError> {
        let statement = self.schema().name_in_transaction(RETRY);
        // Another transaction may have enqueued the key, and have committed while this one waited for it.
        let is_taken = SqlState::UNIQUE_VIOLATION;
        let rows = ask_in_savepoint(transaction, &statement, &[&id.0], is_taken).await?;
        Ok(rows.map_or(JobChange::KeyTaken, |rows| looking::retried(&rows)))
    }

    /// The same as [`discard`](crate::JobQueue::discard) in a transaction. A token is cancelled within a heartbeat of the commit.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn discard_in(
        &self,
        transaction: &Transaction<'_>,
        id: JobId,
    ) -> Result<JobChange, QueueError> {
        Ok(looking::discarded(
            &asked(transaction, self.schema(), DISCARD, &[&id.0, &BY_HAND]).await?,
        ))
    }

    /// The same as [`remove`](crate::JobQueue::remove) in a transaction.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn remove_in(
        &self,
        transaction: &Transaction<'_>,
        id: JobId,
    ) -> Result<JobChange, QueueError> {
        Ok(looking::removed(&asked(transaction, self.schema(), REMOVE, &[&id.0]).await?))
    }

    fn schema(&self) -> &Schema {
        &self.machine.address.schema
    }
}

/// Asks in a savepoint, and goes back to it if the server refuses the statement with this state: the answer is `None` then.
pub(super) async fn ask_in_savepoint(
    transaction: &Transaction<'_>,
    statement: &str,
    params: &[Param<'_>],
    refused: SqlState,
) -> Result<Option<Vec<Row>>, AskError> {
    let run = |text| async move { transaction.batch_execute(text).await.map_err(AskError::Server) };
    run("savepoint punctual").await?;
    match ask_in(transaction, statement, params).await {
        Err(error) if error.is(&refused) => {
            run("rollback to savepoint punctual; release savepoint punctual").await?;
            Ok(None)
        }
        answer => {
            let rows = answer?;
            run("release savepoint punctual").await?;
            Ok(Some(rows))
        }
    }
}

async fn asked(
    transaction: &Transaction<'_>,
    schema: &Schema,
    statement: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, QueueError> {
    let statement = schema.name_in_transaction(statement);
    Ok(ask_in(transaction, &statement, params).await?)
}

/// Asks for the job with this key, until there is one or none has it.
async fn by_key(
    transaction: &Transaction<'_>,
    schema: &Schema,
    statement: &str,
    key: &str,
    more: &[Param<'_>],
) -> Result<Vec<Row>, QueueError> {
    Names::JOB.check(key).map_err(QueueError::InvalidName)?;
    let only: [Param<'_>; 1] = [&key];
    let params = [&only[..], more].concat();
    loop {
        let rows = asked(transaction, schema, statement, &params).await?;
        if !rows.is_empty()
            || asked(transaction, schema, statements::HAS_KEY, &only).await?.is_empty()
        {
            return Ok(rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::schedules::texts;

    #[test]
    fn a_verb_in_a_transaction_waits_for_locks_and_tells_of_every_moment() {
        let schema = Schema::default();
        let verbs = [
            statements::STORE,
            statements::RESCHEDULE,
            statements::CANCEL,
            statements::HAS_KEY,
            RETRY,
            DISCARD,
            REMOVE,
            texts::PUT,
            texts::PAUSE,
            texts::REMOVE,
            texts::RUN_NOW,
            texts::LIST,
            texts::GET,
        ];
        for verb in verbs {
            let text = schema.name_in_transaction(verb);
            for left in ["@", "nowait", "skip locked", "lock_timeout", "1 minute"] {
                assert!(!text.contains(left), "{left} in {text}");
            }
        }
    }
}
