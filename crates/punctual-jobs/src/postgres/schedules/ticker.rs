//! The ticker: it settles the rows that are due.
//!
//! Each queue with a handler, and each that has declared a schedule, has one. It reads the rows that are due within a second
//! ([`DUE`](super::texts::DUE)), waits for the first of them, and settles those that are due ([`settle`]), each in one
//! statement ([`SETTLE`](super::texts::SETTLE)). It reads again each second at the latest, and when it is told that a schedule
//! has changed: nothing of a row is kept in between. So a change that another machine makes is followed within a second.
//!
//! All machines do so, and of those that settle one row at the same time one changes it. The time is the server's, which
//! comes with the rows; between two answers it is counted on the clock of the runtime. So a wrong clock of a machine is of no
//! consequence, and a machine that stood still learns from the next answer what time it is.
//!
//! What a tick costs: the statement that reads, on each machine, and the one that settles, both prepared once for each
//! connection. A second without a tick costs each machine one statement that finds nothing.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use super::{
    row::TickingRow,
    settling::{Settlement, settle},
    texts,
};
use crate::postgres::{
    connection::{AskError, borrowed},
    machine::Machine,
    settings::QueueEvent,
};

/// How long the rows are not looked at, at most: shorter than a second, so that a change is followed within one.
const PAUSE: Duration = Duration::from_millis(900);

/// When a row is looked at again that has not been settled: it is locked, or another machine has settled it.
const AGAIN: Duration = Duration::from_millis(100);

/// The rows that are not asked for.
#[derive(Default)]
struct Avoided {
    /// Those that this program cannot read, by their names: the revision, and what was told of it.
    unreadable: HashMap<String, (i64, String)>,
    /// The revisions of those that could not be settled, until all behind them have been looked at.
    unsettled: Vec<i64>,
    /// Why the server has refused to settle the first of them that it did.
    refused: Option<AskError>,
}

/// Settles rows until the queue is closed.
pub(in crate::postgres) async fn tick_on(machine: Arc<Machine>) {
    let mut avoided = Avoided::default();
    let mut is_away = false;
    loop {
        let (pause, error) = match machine.settle_rows(&mut avoided).await {
            // Behind these there are others.
            Ok(Duration::ZERO) if !machine.stop.is_cancelled() => continue,
            Ok(pause) => (pause, avoided.refused.take()),
            Err(error) => (PAUSE, Some(error)),
        };
        let was_away = std::mem::replace(&mut is_away, error.is_some());
        if let Some(error) = error.filter(|_| !was_away) {
            machine.report_failure(&error);
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = machine.schedules_changed.notified() => {}
            () = machine.stop.cancelled() => return,
        }
    }
}

impl Machine {
    pub(in crate::postgres) async fn declare(&self) -> Result<(), AskError> {
        for declared in &self.declared {
            let params = borrowed(&declared.params);
            let rows = self.ask(texts::DECLARE, &params).await?;
            if rows.first().is_some_and(|row| row.get::<_, &str>(0) == "kept") {
                self.report(QueueEvent::ScheduleKept { schedule: declared.name.clone() });
            }
        }
        Ok(())
    }

    /// Settles what is due, and returns when to look again. A row for which the server refuses a statement holds up no other.
    async fn settle_rows(&self, avoided: &mut Avoided) -> Result<Duration, AskError> {
        let rows = self.due_rows(avoided).await?;
        let answered = Instant::now();
        let is_full = rows.len() == texts::DUE_AT_MOST;
        let (mut pause, mut is_last_due) = (PAUSE, false);
        for row in rows {
            // At least so late is it by the server's clock.
            let now = row.get::<_, SystemTime>(0) + answered.elapsed();
            let next_at: Option<SystemTime> = row.get(16);
            if let Some(left) = next_at.and_then(|next| next.duration_since(now).ok()) {
                let is_ahead = row.get::<_, SystemTime>(15) > now;
                if !left.is_zero() && !is_ahead {
                    (pause, is_last_due) = (pause.min(left), false);
                    continue;
                }
            }
            is_last_due = true;
            match TickingRow::read(&row) {
                Ok(row) => {
                    avoided.unreadable.remove(&row.name);
                    let settled = self.settle_row(&row, now).await;
                    if !matches!(settled, Ok((_, true))) {
                        avoided.unsettled.push(row.revision);
                    }
                    match settled {
                        Ok((until, _)) => pause = pause.min(until),
                        Err(error) if error.is_of_the_statement() => {
                            avoided.refused.get_or_insert(error);
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => self.tell_unreadable(&row, error, avoided),
            }
        }
        // Behind the last one more may be due. Those that were not settled do not stand before them then.
        if is_full && is_last_due {
            return Ok(Duration::ZERO);
        }
        avoided.unsettled.clear();
        Ok(pause)
    }

    async fn due_rows(&self, avoided: &Avoided) -> Result<Vec<Row>, AskError> {
        let names: Vec<&str> = self.declared.iter().map(|it| it.name.as_str()).collect();
        let unreadable = avoided.unreadable.values().map(|(revision, _)| revision);
        let passed: Vec<i64> = unreadable.chain(&avoided.unsettled).copied().collect();
        self.ticking.ask_prepared(texts::DUE, &[&names, &passed]).await
    }

    /// Settles a row, and returns when to look again, and whether it was settled.
    async fn settle_row(
        &self,
        row: &TickingRow,
        now: SystemTime,
    ) -> Result<(Duration, bool), AskError> {
        let settlement = settle(&row.timing, row.rule(), row.settled, now);
        let until_next = settlement.next.and_then(|next| next.duration_since(now).ok());
        let Some(answer) = self.write_settlement(row, &settlement).await? else {
            return Ok((until_next.unwrap_or(AGAIN).min(AGAIN), false));
        };
        for id in answer.get::<_, Vec<i64>>(1) {
            self.claims.cancel(id);
        }
        let schedule = || row.name.clone();
        if let Some(ahead) = settlement.ahead {
            self.report(QueueEvent::TickInFuture { schedule: schedule(), ahead });
        }
        if settlement.missed > 0 {
            let ticks = settlement.missed;
            self.report(QueueEvent::TicksMissed { schedule: schedule(), ticks });
        }
        let is_waiting = settlement.waits && answer.get::<_, i64>(0) < len(&settlement.ticks);
        Ok((if is_waiting { 2 * AGAIN } else { until_next.unwrap_or(PAUSE) }, true))
    }

    async fn write_settlement(
        &self,
        row: &TickingRow,
        settlement: &Settlement,
    ) -> Result<Option<Row>, AskError> {
        let missed = i64::try_from(settlement.missed).unwrap_or(i64::MAX);
        let due = settlement.ticks.last().map(|tick| row.timing.due(*tick));
        Ok(self
            .ticking
            .ask_prepared(
                texts::SETTLE,
                &[
                    &row.name,
                    &row.revision,
                    &settlement.ticks,
                    &settlement.waits,
                    &settlement.is_late,
                    &settlement.settled,
                    &missed,
                    &settlement.next,
                    &due,
                ],
            )
            .await?
            .into_iter()
            .next())
    }

    /// Tells why a row cannot be read, once: each machine that can read it draws a new revision with each tick.
    fn tell_unreadable(&self, row: &Row, error: String, avoided: &mut Avoided) {
        let (schedule, revision): (String, i64) = (row.get(1), row.get(2));
        let is_told = avoided.unreadable.get(&schedule).is_some_and(|(_, told)| *told == error);
        let event =
            || QueueEvent::ScheduleUnreadable { schedule: schedule.clone(), error: error.clone() };
        if is_told || self.tell(event()) {
            avoided.unreadable.insert(schedule, (revision, error));
        } else {
            avoided.unsettled.push(revision);
        }
    }
}

fn len(ticks: &[SystemTime]) -> i64 {
    i64::try_from(ticks.len()).unwrap_or(i64::MAX)
}
