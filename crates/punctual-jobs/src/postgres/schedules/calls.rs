//! What a program asks about schedules: a question that is asked at once, later, or in a transaction of its own.

use std::{fmt, sync::Arc};

use tokio_postgres::Row;

use super::{Schedule, ScheduleStatus, row::Definition, texts};
use crate::{
    JobId, PostgresQueue, QueueError, QueueFuture,
    job::names::Names,
    postgres::{
        connection::{AskError, Boxed, ask_in, borrowed},
        machine::Machine,
    },
};

/// The schedules of a queue on PostgreSQL, which are rows of its database; from
/// [`PostgresQueue::schedules`](crate::PostgresQueue::schedules).
///
/// Each verb returns a [`ScheduleCall`], which does nothing until it is [made](ScheduleCall::call). What one machine changes
/// the others follow within a second.
///
/// ```no_run
/// # use punctual_jobs::{Job, PostgresQueue};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Report {}
/// # impl Job for Report { const NAME: &'static str = "report"; }
/// use punctual_jobs::Schedule;
///
/// # fn change(queue: &PostgresQueue) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let nine = Schedule::cron("report", "0 9 * * *", "Europe/Paris", &Report {})?;
/// queue.schedules().put(nine).call()?;
/// queue.schedules().pause("report").call()?;
/// queue.schedules().run_now("report").call()?;
/// queue.schedules().resume("report").call()?;
/// for schedule in queue.schedules().list().call()? {
///     println!("{schedule}");
/// }
/// queue.schedules().remove("report").call()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Schedules<'a> {
    queue: &'a PostgresQueue,
}

/// A question about schedules that is not asked yet.
#[must_use = "nothing is done until it is called"]
pub struct ScheduleCall<'a, T> {
    queue: &'a PostgresQueue,
    question: Result<Asked, QueueError>,
    answer: fn(&[Row]) -> T,
}

struct Asked {
    statement: &'static str,
    params: Vec<Boxed>,
}

impl PostgresQueue {
    /// Returns the schedules of the queue's database, to put, change and list.
    #[must_use]
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { queue: self }
    }
}

impl<'a> Schedules<'a> {
    /// Puts a schedule into the database, in place of the one that has its name. Ticks up to now are left out, also
    /// those of the one that is replaced, unless both tick at the same moments; and those that had come before the server's clock was set
    /// back. Jobs that it has enqueued
    /// go on, and a pause stays. Answers whether there was one before. What it says about
    /// [`on_edit`](Schedule::on_edit) is for programs that declare it, and not kept.
    #[doc(alias = "upsert")]
    pub fn put(self, schedule: Schedule) -> ScheduleCall<'a, bool> {
        let definition = Definition::new(schedule, &self.queue.definitions);
        let params = definition.map(|definition| definition.params);
        self.ask(texts::PUT, params, |rows| rows.first().is_some_and(|row| row.get(0)))
    }

    /// Pauses a schedule: its ticks have no jobs until it is [resumed](Self::resume). Answers whether there is one
    /// of this name.
    #[doc(alias = "disable")]
    pub fn pause(self, name: &str) -> ScheduleCall<'a, bool> {
        self.ask(texts::PAUSE, with(name, Some(true)), |rows| !rows.is_empty())
    }

    /// Lets a schedule go on. What has ticked meanwhile is left out. Answers whether there is one of this name.
    #[doc(alias = "unpause")]
    #[doc(alias = "enable")]
    pub fn resume(self, name: &str) -> ScheduleCall<'a, bool> {
        self.ask(texts::PAUSE, with(name, Some(false)), |rows| !rows.is_empty())
    }

    /// Enqueues a job of a schedule beside its ticks, also of one that is paused, if its rule for
    /// [overlaps](super::Overlap) has room. Answers with the job, or `None` if there is no such schedule or no room. With
    /// [`QueueOne`](super::Overlap::QueueOne) a job that waits for its next attempt is made due at once, and is the answer.
    ///
    /// It enqueues again when it is called again: after [`TimedOut`](QueueError::TimedOut) the job may have been enqueued.
    #[doc(alias = "trigger")]
    pub fn run_now(self, name: &str) -> ScheduleCall<'a, Option<JobId>> {
        self.ask(texts::RUN_NOW, with(name, None), |rows| {
            rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(JobId)
        })
    }

    /// Removes a schedule. Its jobs that wait or run go on. Answers whether there was one of this name.
    ///
    /// Of one that a program has [declared](crate::Jobs::schedule) the row stays, and is not listed: with
    /// [`OnEdit::RowWins`](super::OnEdit::RowWins) the program does not bring it back. A pause
    /// ends with it.
    #[doc(alias = "delete")]
    pub fn remove(self, name: &str) -> ScheduleCall<'a, bool> {
        self.ask(texts::REMOVE, with(name, None), |rows| !rows.is_empty())
    }

    /// Lists all schedules, in the order of their names.
    pub fn list(self) -> ScheduleCall<'a, Vec<ScheduleStatus>> {
        self.ask(texts::LIST, Ok(Vec::new()), |rows| {
            rows.iter().map(ScheduleStatus::read).collect()
        })
    }

    /// Returns how the schedule with this name stands, if there is one.
    pub fn get(self, name: &str) -> ScheduleCall<'a, Option<ScheduleStatus>> {
        self.ask(texts::GET, with(name, None), |rows| rows.first().map(ScheduleStatus::read))
    }

    fn ask<T>(
        self,
        statement: &'static str,
        params: Result<Vec<Boxed>, QueueError>,
        answer: fn(&[Row]) -> T,
    ) -> ScheduleCall<'a, T> {
        let question = params.map(|params| Asked { statement, params });
        ScheduleCall { queue: self.queue, question, answer }
    }
}

fn with(name: &str, pauses: Option<bool>) -> Result<Vec<Boxed>, QueueError> {
    Names::SCHEDULE.check(name).map_err(QueueError::InvalidName)?;
    let mut params: Vec<Boxed> = vec![Box::new(name.to_owned())];
    params.extend(pauses.map(|pauses| Box::new(pauses) as Boxed));
    Ok(params)
}

impl<T: Send + 'static> ScheduleCall<'_, T> {
    /// Asks, and waits for the answer: for at most the [request time-out](crate::JobQueue::request_timeout).
    ///
    /// # Errors
    ///
    /// [`QueueError`]: a name or a payload is not accepted, the queue was shut down, or the database cannot be asked.
    pub fn call(self) -> Result<T, QueueError> {
        let timeout = self.queue.request_timeout();
        self.call_async().wait(timeout)
    }

    /// The same as [`call`](Self::call), without blocking.
    pub fn call_async(self) -> QueueFuture<T> {
        let Asked { statement, params } = match self.question {
            Ok(asked) => asked,
            Err(error) => return QueueFuture::ready(Err(error)),
        };
        let machine = Arc::clone(&self.queue.machine);
        let enqueues = statement == texts::RUN_NOW;
        if machine.ended.is_cancelled() || enqueues && machine.claims.is_closing() {
            return QueueFuture::ready(Err(QueueError::ShutDown));
        }
        let answer = self.answer;
        let asks = Arc::clone(&machine);
        machine.answer(async move { Ok(answer(&asks.ask_of_schedules(statement, &params).await?)) })
    }

    /// The same in a transaction of the program's own, in the same database: the other machines see the change if that
    /// commits, and otherwise it never was. Until then the ticks of the schedule wait; with
    /// [`CatchUp::None`](crate::CatchUp::None) those that have waited for more than ten seconds are missed.
    ///
    /// It waits for a row that another transaction has locked, as long as the `lock_timeout` of this transaction says.
    /// [`run_now`](Schedules::run_now) with [`Overlap::QueueOne`](super::Overlap::QueueOne) or
    /// [`Replace`](super::Overlap::Replace) also locks the schedule's jobs until the transaction ends: keep it short. Running jobs
    /// that `Replace` cancels learn of it with the next heartbeat after the commit.
    ///
    /// # Errors
    ///
    /// [`QueueError`], as of [`call`](Self::call); after one of the database the transaction can only be rolled back.
    pub async fn call_in(
        self,
        transaction: &tokio_postgres::Transaction<'_>,
    ) -> Result<T, QueueError> {
        let Asked { statement, params } = self.question?;
        let text = self.queue.machine.address.schema.name_in_transaction(statement);
        loop {
            let rows = ask_in(transaction, &text, &borrowed(&params)).await?;
            // Each time around another transaction has changed what this one was about to.
            if !is_asked_again(statement, &rows) {
                return Ok((self.answer)(&rows));
            }
        }
    }
}

fn is_asked_again(statement: &str, rows: &[Row]) -> bool {
    statement == texts::RUN_NOW
        && rows.first().is_some_and(|row| row.get::<_, i64>(2) == texts::ASK_AGAIN)
}

impl Machine {
    /// Asks about schedules until there is an answer, and cancels the runs of this machine that it names.
    pub(in crate::postgres) async fn ask_of_schedules(
        &self,
        statement: &'static str,
        params: &[Boxed],
    ) -> Result<Vec<Row>, AskError> {
        let ask = || async {
            let rows = self.verbs.ask(statement, &borrowed(params)).await?;
            let limit = self.settings.request_timeout;
            if is_asked_again(statement, &rows) { Err(AskError::Locked(limit)) } else { Ok(rows) }
        };
        let rows = self.again(ask).await?;
        if let Some(row) = rows.first().filter(|_| statement == texts::RUN_NOW) {
            row.get::<_, Vec<i64>>(1).into_iter().for_each(|id| self.claims.cancel(id));
        }
        Ok(rows)
    }
}

impl<T> fmt::Debug for ScheduleCall<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleCall").finish_non_exhaustive()
    }
}
