//! The heartbeat: it says that this machine lives, and then asks which of its claims stand, and finds those of the dead.
//!
//! It has a connection of its own, on which nothing waits for a row. Each worker has a row with the end of its own
//! lease by the server's clock, up to which it may claim, and with the length of it, after which other machines take it for
//! [dead](super::dead) if the row has not changed. So machines with different leases do not take each other's jobs.
//!
//! # When a claim is believed to be lost
//!
//! The lease is counted here from before the last heartbeat that was answered, and for nine tenths of its length, so
//! it ends here before it ends at the server. If no answer comes until then, the tokens of all runs are cancelled: by
//! then another machine may have begun. The heartbeat writes the worker's own row and touches no other table, so a lock on another table
//! ends no lease. After each heartbeat that was answered, the machine asks which claims stand, and the others are lost.
//!
//! # An outage is not held against the machines
//!
//! While the server is away no machine can prolong its lease, and the machine that comes back first would take all others for dead.
//! So after a question without an answer it forgets what it has seen of them, and a machine that was started has seen nothing: each
//! worker has the length of its lease again to be heard.
//!
//! # A claim whose answer was lost
//!
//! It has no run, and this machine does not know of it. A claim that was just made may have its answer under way, so the heartbeat frees
//! one that it has found unknown for the length of the lease, by the monotonic clock: an answer that takes longer than half of that is dropped.
//!
//! # The last tenth of a lease
//!
//! In its last tenth the server still lets this machine claim jobs. They would be swept a moment later, beside their runs. So
//! nothing is claimed, and a claim that arrives is freed, until a heartbeat is answered.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_postgres::Row;

use super::{
    connection::AskError, dead::Dead, limiting, machine::Machine, refused::Picks,
    settings::QueueEvent, statements, unanswered::Unanswered,
};
use crate::JobId;

/// The error of an attempt whose process has died.
const DIED: &str = "the process that ran the attempt has died, or was not heard of for too long";

const FORGET: Picks = (statements::FORGET, "a worker that is forgotten,");
const FORGET_BUCKETS: Picks = (limiting::FORGET_BUCKETS, "a bucket that is forgotten,");

/// How many rows a statement changes at most. What is left has its turn at the next heartbeat.
const MOST: usize = 10_000;

/// Beats until it is aborted.
pub(super) async fn beat_on(machine: Arc<Machine>) {
    let (heartbeat, lease) = (machine.settings.heartbeat, machine.settings.lease);
    let trusted = lease * 9 / 10;
    let (mut stood, mut rounds) = (Instant::now(), 0_u64);
    let mut unanswered = Unanswered::default();
    let mut next = stood + heartbeat;
    loop {
        let (now, over) = (Instant::now(), stood + trusted);
        // The end of the lease is not slept through, however soon the last question has failed.
        sleep_until(if now < over { over.min(next) } else { next }).await;
        machine.lose_all_after(over);
        let asked = Instant::now();
        next = asked + heartbeat;
        rounds += 1;
        let mut beat = pin!(machine.beat());
        let answer = match timeout_at(over, &mut beat).await {
            Ok(answer) => answer,
            Err(_) => {
                machine.lose_all_after(over);
                // The connection gives a question up after its own limit, and itself with it. Given up here, a mute one would stay.
                beat.await
            }
        };
        match answer {
            Ok(()) => {
                stood = asked;
                if machine.claims.prolong() {
                    machine.wake.notify_one();
                }
                let tidying = machine.tidy(rounds, asked.elapsed(), &mut unanswered);
                if timeout_at(next, tidying).await.is_err() {
                    machine.report_failure(&AskError::Silent(heartbeat));
                }
            }
            Err(error) => {
                // A statement that was refused is an answer.
                if !error.is_of_the_statement() {
                    machine.watch.lock().forget();
                }
                next = Instant::now() + heartbeat;
                machine.report_failure(&error);
            }
        }
        machine.lose_all_after(stood + trusted);
    }
}

impl Machine {
    /// The heartbeat before this took so long. The lease stands even if a part of this fails, and each part has its turn whatever became
    /// of the others: the cause may be many rows that are refused, or a lock on a table. The claims come first, because no other machine frees those
    /// without an answer.
    async fn tidy(&self, rounds: u64, took: Duration, unanswered: &mut Unanswered) {
        self.expect(self.look_at_claims(unanswered).await);
        self.expect(self.look_at_workers(took).await);
        if rounds % 16 == 0 {
            let Dead { workers, untils } = self.watch.lock().dead();
            self.expect(self.ask_all(FORGET, &[&workers, &untils], MOST, drop).await);
            if self.definitions.kinds.values().any(|kind| kind.limits.has_window()) {
                self.expect(self.ask_all(FORGET_BUCKETS, &[], MOST, drop).await);
            }
        }
        self.expect(self.sweep().await);
        self.expect(self.tell_of_discarded().await);
    }

    /// Reports a part that has failed.
    fn expect<T>(&self, part: Result<T, AskError>) {
        if let Err(error) = part {
            self.report_failure(&error);
        }
    }

    /// Frees the claims whose answers were lost. If the server refuses, this frees each alone.
    async fn free_lost(&self, lost: &[(i64, i64)]) -> Result<(), AskError> {
        match (self.free(lost).await, lost) {
            (Err(error), [(id, _)]) if error.is_refusal() => {
                self.report_refused("a claim without an answer, of the job", *id, &error);
            }
            (Err(error), _) if error.is_refusal() => {
                for claim in lost {
                    Box::pin(self.free_lost(std::slice::from_ref(claim))).await?;
                }
            }
            (freed, _) => return freed,
        }
        Ok(())
    }

    pub(super) async fn beat(&self) -> Result<(), AskError> {
        let lease = self.settings.lease.as_secs_f64();
        let slots = i64::try_from(self.settings.slots).unwrap_or(i64::MAX);
        self.pulse.ask(statements::BEAT, &[&self.worker, &lease, &slots]).await.map(drop)
    }

    /// Says that nothing of this machine is left, so that no machine waits for the end of its lease.
    pub(super) async fn leave(&self) {
        // Without an answer the lease ends by itself.
        let _ = self.pulse.ask(statements::LEAVE, &[&self.worker]).await;
    }

    /// Asks which claims stand, and frees those whose answers were lost.
    async fn look_at_claims(&self, unanswered: &mut Unanswered) -> Result<(), AskError> {
        let (mut lost, asked) = (self.claims.standing(), Instant::now());
        let rows = self.pulse.ask(statements::OWN, &[&self.worker]).await?;
        let cancelled = rows.iter().filter(|row| row.get(2)).map(|row| row.get(1)).collect();
        self.claims.cancel_runs(&cancelled);
        let claims = rows.iter().map(|row| (row.get(0), row.get(1)));
        unanswered.look(self.claims.unknown(claims), asked);
        for row in rows {
            lost.remove(&row.get(1));
        }
        self.lost(self.claims.lose(&lost));
        self.free_lost(&unanswered.lost(self.settings.lease)).await
    }

    /// Cancels the tokens of all runs if this moment has come.
    fn lose_all_after(&self, over: Instant) {
        if Instant::now() >= over {
            self.lost(self.claims.lose_all());
        }
    }

    fn lost(&self, jobs: Vec<JobId>) {
        for id in jobs {
            self.report(QueueEvent::ClaimLost { id });
        }
    }

    async fn look_at_workers(&self, took: Duration) -> Result<(), AskError> {
        let asked = self.watch.lock().ask();
        let answer = self.pulse.ask(statements::WORKERS, &[]).await;
        let mut watch = self.watch.lock();
        answer.map(|rows| watch.look(&rows, asked, took)).inspect_err(|_| watch.forget())
    }

    /// Frees the jobs of dead workers.
    async fn sweep(&self) -> Result<(), AskError> {
        let keeps = self.settings.history.is_some();
        let statement = if keeps { statements::SWEEP_WITH_HISTORY } else { statements::SWEEP };
        let picks = (statement, "a job of a dead process,");
        let Dead { workers, untils } = self.watch.lock().dead();
        let note = |rows: Vec<Row>| {
            for row in rows {
                let attempts = u64::try_from(row.get::<_, i64>(1)).unwrap_or(0);
                self.definitions.outcomes.note_lost(row.get(0), attempts);
            }
        };
        self.ask_all(picks, &[&DIED, &workers, &untils], MOST, note).await
    }
}
