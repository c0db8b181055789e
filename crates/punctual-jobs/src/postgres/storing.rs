//! Storing jobs: one, or many by one statement, of which all are stored or none.
//!
//! It may be asked again: no job is stored if one with its key was claimed or has ended just now. Of several jobs none is stored then:
//! the statement counts what it answers, and divides by zero if a job is missing.
//!
//! One job goes over the connection of the verbs, by a plan that the server keeps. Many go over the one of the lists, because the other
//! verbs must not wait for them.

use std::collections::HashMap;

use tokio_postgres::{Row, Transaction, error::SqlState};

use super::{
    connection::{AskError, Boxed, Typed, ask_in, borrowed},
    machine::Machine,
    moment::moment,
    postgres_queue::PostgresQueue,
    statements::STORE,
    transaction::ask_in_savepoint,
};
use crate::{
    JobBuilder, JobHandle, JobId, QueueError, When,
    queue::{batch::Batch, engine::NewJob},
};

/// How often a transaction asks, at most, for jobs of which one was not stored.
const TRIES: usize = 10;

/// Returns the parameters of [`STORE`].
fn columns(jobs: &[NewJob], clock: &punctual::Clock) -> Vec<Boxed> {
    fn each<T>(jobs: &[NewJob], value: impl Fn(&NewJob) -> T) -> Boxed
    where
        Vec<T>: Typed + Send + Sync + 'static,
    {
        Box::new(jobs.iter().map(value).collect::<Vec<_>>())
    }
    let keys = |is_meant: fn(&NewJob) -> bool| -> Boxed {
        let meant = jobs.iter().filter(|job| is_meant(job));
        Box::new(meant.filter_map(|job| job.key.clone()).collect::<Vec<_>>())
    };
    let (times, delays): (Vec<_>, Vec<_>) = jobs.iter().map(|job| moment(job.when, clock)).unzip();
    vec![
        each(jobs, |job| job.name),
        each(jobs, |job| job.payload.clone()),
        each(jobs, |job| job.ordering_key.clone()),
        Box::new(times),
        Box::new(delays),
        each(jobs, |job| i32::try_from(job.max_attempts).unwrap_or(i32::MAX)),
        each(jobs, |job| job.key.clone()),
        each(jobs, |job| job.priority.number()),
        each(jobs, |job| job.limit_key.clone().unwrap_or_default()),
        each(jobs, |job| job.key.is_some() && job.is_unique),
        keys(|job| job.is_unique),
        keys(|job| !job.is_unique),
        keys(|job| !job.is_unique && job.keeps_moment),
        each(jobs, |job| job.traceparent.clone()),
    ]
}

/// Returns the handles of jobs from the rows of [`STORE`]; `None` if a job is missing. A single one was not stored then, and the statement
/// is to be asked again. Several are stored, and a trigger of the program's own has changed the key of one: they must not be stored twice.
fn handles(jobs: &[NewJob], rows: &[Row]) -> Option<Vec<JobHandle>> {
    let handle =
        |job: &NewJob, id, was_skipped| JobHandle { id: JobId(id), name: job.name, was_skipped };
    if let ([job], [row]) = (jobs, rows) {
        return Some(vec![handle(job, row.get::<_, Option<i64>>(0)?, row.get(2))]);
    }
    let mut of_keys = HashMap::<&str, (i64, bool)>::new();
    let mut others = Vec::<i64>::new();
    for row in rows {
        match row.get(1) {
            Some(key) => drop(of_keys.insert(key, (row.get(0), row.get(2)))),
            None => others.push(row.get(0)),
        }
    }
    others.sort_unstable();
    let mut others = others.into_iter();
    let found = |job: &NewJob| {
        let (id, was_skipped) = match &job.key {
            Some(key) => of_keys.get(key.as_str()).copied(),
            None => others.next().map(|id| (id, false)),
        }?;
        Some(handle(job, id, was_skipped))
    };
    jobs.iter().map(found).collect()
}

/// Returns the handle of the only job.
fn handle(jobs: &[NewJob; 1], rows: &[Row]) -> Option<JobHandle> {
    handles(jobs, rows)?.pop()
}

fn is_left_out(error: &AskError) -> bool {
    error.is(&SqlState::DIVISION_BY_ZERO)
}

impl Machine {
    pub(super) async fn enqueue(&self, new_job: NewJob) -> Result<JobHandle, AskError> {
        let jobs = [new_job];
        let params = columns(&jobs, self.executor.clock());
        let ask = || async {
            let rows = self.verbs.ask_prepared(STORE, &borrowed(&params)).await?;
            handle(&jobs, &rows).ok_or_else(|| self.left_out())
        };
        let handle = self.again(ask).await?;
        self.wake_when_due(jobs[0].when);
        Ok(handle)
    }

    pub(super) async fn enqueue_batch(&self, batch: Batch) -> Result<Vec<JobHandle>, AskError> {
        let params = columns(&batch.jobs, self.executor.clock());
        let ask = || async {
            let rows = self.looks.ask(STORE, &borrowed(&params)).await;
            let rows =
                rows.map_err(|error| if is_left_out(&error) { self.left_out() } else { error })?;
            match handles(&batch.jobs, &rows) {
                None if batch.jobs.len() == 1 => Err(self.left_out()),
                stored => Ok(stored),
            }
        };
        let stored = self.again(ask).await?;
        self.wake_for(&batch);
        Ok(batch.handles(&stored.ok_or_else(|| self.left_out())?))
    }

    fn left_out(&self) -> AskError {
        AskError::LeftOut(self.settings.request_timeout)
    }

    /// Wakes the worker when jobs of the batch are due: once for all that are due at once.
    fn wake_for(&self, batch: &Batch) {
        let mut delays: Vec<_> = batch.jobs.iter().map(|job| self.delay_of(job.when)).collect();
        delays.sort_unstable();
        delays.dedup();
        delays.into_iter().for_each(|delay| self.wake_when_due(When::After(delay)));
    }
}

/// Stores one job in a transaction.
pub(super) async fn store_in(
    transaction: &Transaction<'_>,
    machine: &Machine,
    new_job: NewJob,
) -> Result<JobHandle, AskError> {
    let jobs = [new_job];
    let params = columns(&jobs, machine.executor.clock());
    let statement = machine.address.schema.name_in_transaction(STORE);
    for _ in 0..TRIES {
        let rows = ask_in(transaction, &statement, &borrowed(&params)).await?;
        if let Some(handle) = handle(&jobs, &rows) {
            return Ok(handle);
        }
    }
    Err(machine.left_out())
}

impl PostgresQueue {
    /// The same as [`enqueue_all`](crate::JobQueue::enqueue_all) in a transaction of the program's own, as
    /// [`enqueue_in`](Self::enqueue_in) is for one job. It takes a savepoint, so that the transaction goes on if a job with one of the
    /// keys has been claimed meanwhile and the statement is asked again.
    ///
    /// # Errors
    ///
    /// As of [`enqueue_in`](Self::enqueue_in).
    pub async fn enqueue_all_in<'a>(
        &'a self,
        transaction: &Transaction<'_>,
        jobs: impl IntoIterator<Item = JobBuilder<'a>>,
    ) -> Result<Vec<JobHandle>, QueueError> {
        let machine = &self.machine;
        let batch = Batch::of(jobs.into_iter().map(JobBuilder::checked))?;
        if batch.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let params = columns(&batch.jobs, machine.executor.clock());
        let statement = machine.address.schema.name_in_transaction(STORE);
        for _ in 0..TRIES {
            let left_some = SqlState::DIVISION_BY_ZERO;
            let params = borrowed(&params);
            let rows = ask_in_savepoint(transaction, &statement, &params, left_some).await?;
            match rows.map(|rows| handles(&batch.jobs, &rows)) {
                Some(Some(stored)) => return Ok(batch.handles(&stored)),
                Some(None) if batch.jobs.len() > 1 => break,
                _ => {}
            }
        }
        Err(machine.left_out().into())
    }
}
