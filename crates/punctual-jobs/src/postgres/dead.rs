//! Which workers are dead, by a clock that the server's cannot move.
//!
//! A worker lives as long as it changes its row. So each machine that sweeps looks at the rows of all workers, and remembers when it
//! first saw each as it is: one that it has seen unchanged for the length of that worker's lease is dead. How long that was is
//! measured by this machine's monotonic clock. A server's clock that is set ahead ends no lease, and one that is set back prolongs none.
//!
//! A statement that frees the claims of the dead names each with the moment that its row had, so a worker that has come back
//! meanwhile keeps its claims. A worker without a row has left, and is dead at once.
//!
//! **An outage is not held against the machines.** While the server is away no machine can change its row. So what was seen is forgotten
//! after a question without an answer, or with one that came late, and each worker has the length of its lease again to be heard.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use tokio_postgres::Row;

/// A row of [`WORKERS`](super::statements::WORKERS).
struct Worker {
    id: String,
    until: SystemTime,
    lease: Duration,
}

/// What was seen of the workers.
#[derive(Default)]
pub(super) struct Watch {
    /// The row of each worker, and since when it is seen.
    seen: HashMap<String, (SystemTime, Instant)>,
    /// There is a question without an answer.
    is_asked: bool,
    dead: Dead,
}

/// The dead workers, with the moments that their rows have, as the statements take them.
#[derive(Clone, Default)]
pub(super) struct Dead {
    pub(super) workers: Vec<String>,
    pub(super) untils: Vec<SystemTime>,
}

impl Watch {
    /// The rows of all workers are asked for now.
    pub(super) fn ask(&mut self) -> Instant {
        if self.is_asked {
            self.forget();
        }
        self.is_asked = true;
        Instant::now()
    }

    /// Takes in the rows of all workers, which were asked for at a moment and are there now. The question before took so long.
    pub(super) fn look(&mut self, rows: &[Row], asked: Instant, took: Duration) {
        let micros = |us: i64| Duration::from_micros(u64::try_from(us).unwrap_or(0));
        let workers = rows.iter().map(|row| Worker {
            id: row.get(0),
            until: row.get(1),
            lease: micros(row.get(2)),
        });
        self.is_asked = false;
        let answered = Instant::now();
        self.take_in(workers, (asked, answered), took.max(answered - asked));
    }

    fn take_in(
        &mut self,
        workers: impl Iterator<Item = Worker>,
        (asked, answered): (Instant, Instant),
        took: Duration,
    ) {
        let before = std::mem::take(&mut self.seen);
        self.dead = Dead::default();
        for worker in workers {
            let same = before.get(&worker.id).filter(|(until, _)| *until == worker.until);
            // The server, or this machine, has stood still for a good part of the lease: no row could be changed, or seen.
            let is_late = took > worker.lease / 2;
            let since = same.filter(|_| !is_late).map_or(answered, |(_, since)| *since);
            let silent = asked.saturating_duration_since(since);
            if same.is_some() && silent >= worker.lease {
                self.dead.workers.push(worker.id.clone());
                self.dead.untils.push(worker.until);
            }
            self.seen.insert(worker.id, (worker.until, since));
        }
    }

    pub(super) fn dead(&self) -> Dead {
        self.dead.clone()
    }

    /// Forgets all: there was a question without an answer.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of one worker, whose lease is two seconds.
    fn worker(until: u64) -> Worker {
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(until);
        Worker { id: "w".to_owned(), until, lease: Duration::from_secs(2) }
    }

    /// Looks at these rows of the worker, each a second after the one before, and returns whether it is dead then.
    fn looks(untils: &[u64]) -> Vec<bool> {
        let (mut watch, begun) = (Watch::default(), Instant::now());
        let look = |(until, second): (&u64, u64)| {
            let at = begun + Duration::from_secs(second);
            watch.take_in(std::iter::once(worker(*until)), (at, at), Duration::ZERO);
            !watch.dead().workers.is_empty()
        };
        untils.iter().zip(0..).map(look).collect()
    }

    #[test]
    fn a_worker_is_dead_when_its_row_is_seen_unchanged_for_its_lease() {
        assert_eq!(looks(&[9, 9, 9, 9]), [false, false, true, true]);
        assert_eq!(looks(&[9, 9, 5, 5, 5]), [false, false, false, false, true]);
    }

    #[test]
    fn a_question_without_an_answer_has_each_worker_be_heard_again() {
        let (mut watch, begun) = (Watch::default(), Instant::now());
        let look = |watch: &mut Watch, second, took| {
            let (at, took) = (begun + Duration::from_secs(second), Duration::from_secs(took));
            watch.take_in(std::iter::once(worker(9)), (at, at), took);
            !watch.dead().workers.is_empty()
        };
        assert!(!look(&mut watch, 0, 0));
        watch.forget();
        assert!(!look(&mut watch, 3, 0));
        assert!(look(&mut watch, 5, 0));
        // An answer that comes late is none.
        assert!(!look(&mut watch, 9, 2));
        assert!(!look(&mut watch, 10, 0));
        assert!(look(&mut watch, 11, 0));
        // A question that was given up is none either.
        watch.ask();
        watch.ask();
        assert!(!look(&mut watch, 20, 0));
    }
}
