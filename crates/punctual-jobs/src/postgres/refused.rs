//! The rows that the server refuses, and how a statement goes on without them.
//!
//! A trigger, a constraint or a policy of the program's own may refuse a row, with whatever error it likes, and then the server refuses the
//! whole statement. Where this machine says which rows a statement is about, it says fewer ([`ending`](super::ending)). The other
//! statements pick their rows themselves: what they claim, mark, sweep, tell of, forget and prune. Each of them takes two more parameters, how
//! many rows it may pick and which ones it leaves out, and picks them in a part named `picked`.
//!
//! [`ask_in_parts`](Machine::ask_in_parts) asks once, and that is all unless the server refuses. Then it asks that part alone which rows
//! there are, and has the statement pick half of them, and so on. The server refuses a statement that lacks a right even for no row: then no
//! row is to blame. If it refuses the first row alone, the statement leaves this row out for a while: for a second at first, and for
//! twice as long each time that the server refuses it again, up to a minute. The first refusal is reported.
//!
//! The caller asks again for the other rows. Before, this waits a millisecond for each row that the statement leaves out by then, so that many
//! refused rows are no storm of questions. It waits ten at most, so that hundreds are left out before the first of them comes back, and the rows
//! behind them have their turn. On the connection of the worker it does not wait, because the ends of runs would wait as well.
//!
//! Another machine may take the first row between two of these questions. Then this blames the wrong row, which waits for a second.

use std::{collections::HashMap, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use super::{
    connection::{AskError, Connection, Param},
    machine::Machine,
    settings::QueueEvent,
};
use crate::job::with_sources;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How many rows a statement leaves out at most.
const LEFT_OUT_AT_MOST: usize = 1000;

/// How many milliseconds a statement waits at most for the rows that it leaves out.
const LONGEST_WAIT: usize = 10;

/// By statement and row: until when the statement leaves the row out, and how long that is.
#[derive(Default)]
pub(super) struct Refused(HashMap<(&'static str, i64), (Instant, Duration)>);

/// A statement that picks its rows itself, and what an event says before the number of a row.
pub(super) type Picks = (&'static str, &'static str);

impl Refused {
    fn left_out(&self, statement: &str) -> Vec<i64> {
        let now = Instant::now();
        let all = self.0.iter().filter(|((of, _), (until, _))| *of == statement && *until > now);
        all.map(|((_, row), _)| *row).collect()
    }

    /// Leaves a row out from now on. Returns `true` if the statement was not refused for it before, or long ago.
    fn leave_out(&mut self, statement: &'static str, row: i64) -> bool {
        let now = Instant::now();
        self.0.retain(|_, (until, _)| now < *until + LONGEST_PAUSE);
        let before = self.0.get(&(statement, row));
        let pause = before.map_or(FIRST_PAUSE, |(_, pause)| (2 * *pause).min(LONGEST_PAUSE));
        self.0.insert((statement, row), (now + pause, pause)).is_none()
    }
}

/// Returns the statement that says which rows this one picks.
fn picked_by(statement: &str) -> String {
    let begin = statement.find("picked as").unwrap_or(0);
    let end = statement[begin..].find("\n)").map_or(statement.len(), |end| begin + end);
    format!("{}\n) select id from picked", &statement[..end])
}

impl Machine {
    /// Asks a statement that picks at most so many rows, which is its parameter behind the first ones. Returns its answer, and `false` if
    /// there may be more, because the server has refused a row: the caller asks again.
    pub(super) async fn ask_in_parts(
        &self,
        on: &Connection,
        (statement, what): Picks,
        (first, last): (&[Param<'_>], &[Param<'_>]),
        most: usize,
    ) -> Result<(Vec<Row>, bool), AskError> {
        let left_out = self.refused.lock().left_out(statement);
        let (mut part, mut refusal) = (i64::try_from(most).unwrap_or(i64::MAX), None);
        let (whole, is_worker) = (part, std::ptr::eq(on, &self.work));
        let (error, rows) = loop {
            let params = [first, &[&part], last, &[&left_out]].concat();
            // On the connection of the worker the server plans once.
            let answer = if is_worker {
                on.ask_prepared(statement, &params).await
            } else {
                on.ask(statement, &params).await
            };
            match (answer, refusal.take()) {
                (Ok(_), Some(refusal)) if part == 0 => break refusal,
                (Err(error), before) if part > 0 && error.is_refusal() => {
                    let rows = match before {
                        Some((_, rows)) => rows,
                        None => on.ask(&picked_by(statement), &params).await?,
                    };
                    part = part.min(rows.len() as i64) / 2;
                    refusal = Some((error, rows));
                }
                (answer, _) => return Ok((answer?, part == whole)),
            }
        };
        let Some(row) = rows.first().filter(|_| left_out.len() < LEFT_OUT_AT_MOST) else {
            self.report_failure(&error);
            return Ok((Vec::new(), true));
        };
        if self.refused.lock().leave_out(statement, row.get(0)) {
            self.report_refused(what, row.get(0), &error);
        }
        if !is_worker {
            let millis = LONGEST_WAIT.min(1 + left_out.len()) as u64;
            sleep(Duration::from_millis(millis)).await;
        }
        Ok((Vec::new(), false))
    }

    /// The same on the connection of the heartbeat until there are no more, with nothing behind the limit. After a quarter of the time
    /// between two heartbeats it asks no more: the others of its parts have their turns, and what is left has its own at the next one.
    pub(super) async fn ask_all(
        &self,
        picks: Picks,
        first: &[Param<'_>],
        most: usize,
        mut take: impl FnMut(Vec<Row>),
    ) -> Result<(), AskError> {
        let begun = Instant::now();
        loop {
            let (rows, is_all) = self.ask_in_parts(&self.pulse, picks, (first, &[]), most).await?;
            take(rows);
            if is_all || begun.elapsed() > self.settings.heartbeat / 4 {
                return Ok(());
            }
        }
    }

    /// Reports a row that the server has refused.
    pub(super) fn report_refused(&self, what: &str, row: i64, error: &AskError) {
        let error = format!("{what} {row}: {}", with_sources(error));
        self.report(QueueEvent::ServerRefused { error });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::{claiming, limiting, statements};

    #[tokio::test(start_paused = true)]
    async fn a_row_that_is_refused_again_is_left_out_for_longer() {
        let mut refused = Refused::default();
        let mut is_news = Vec::new();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            is_news.push(refused.leave_out("claim", 3));
            assert!(refused.left_out("mark").is_empty());
            tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
            assert_eq!(refused.left_out("claim"), [3]);
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(refused.left_out("claim").is_empty());
        }
        assert_eq!(is_news, [true, false, false, false, false, false, false, false]);
        tokio::time::advance(LONGEST_PAUSE).await;
        assert!(refused.leave_out("claim", 3), "it was accepted meanwhile, or is gone");
    }

    #[test]
    fn each_statement_says_what_it_picks() {
        for statement in [
            claiming::CLAIM,
            claiming::CLAIM_KEYED,
            claiming::CLAIM_FIRST,
            limiting::CLAIM_TURNS,
            limiting::CLAIM_FIRST_LIMITED,
            limiting::FORGET_BUCKETS,
            statements::MARK_DUE,
            statements::SWEEP,
            statements::SWEEP_WITH_HISTORY,
            statements::TELL,
            statements::TOLD,
            statements::FORGET,
        ] {
            let picked = picked_by(statement);
            let count = |bracket| picked.matches(bracket).count();
            assert_eq!(count('('), count(')'), "{picked}");
            assert!(!picked.contains("update @schema") && !picked.contains("delete"), "{picked}");
        }
    }
}
