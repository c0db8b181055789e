//! The worker: it claims jobs for the slots that are free, has them run, and has their ends written down.
//!
//! It claims when it is woken: by a notification of the server's that a job is due or an ordering key is free, by a
//! timer for a job that this machine has enqueued, by the poll, and by the end of a run if the last claim has filled all
//! slots, or the run's kind has a limit, and when there is a token for a job that has found none. One statement writes down all runs that have ended, and the next one, sent without waiting for the first
//! one's answer, claims for all slots that are free.
//!
//! Both go through one connection, so the server carries them out in that order: a slot is used again when the end
//! of its job is written down. So a process that is killed has no more jobs to be run again than it has slots. An
//! end that could not be written down keeps its slot.
//!
//! Which jobs are claimed is decided by the [sources](super::sources).
//!
//! An executor that has no room refuses what was claimed. It is freed, for other machines too, and then nothing is
//! claimed for a while, which doubles each time. Nothing is claimed for an executor that was shut down.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at},
};
use tokio_postgres::Row;

use super::{
    claims::Claimed,
    ending::{Ended, How},
    machine::Machine,
    running,
    settings::QueueEvent,
    sources::Sources,
};

/// How long the worker waits for more runs to end, while there is a backlog: one claim for many slots costs less
/// than many for one.
const GATHERING: Duration = Duration::from_millis(1);

/// How long an end waits that could not be written down, at first and at most. It has its slot meanwhile, so this grows to no more: when
/// the server is back, or the transaction that holds the job has ended, the slot is free within that time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long nothing is claimed after the executor has refused what was, at first and at most.
const FIRST_RESTRAINT: Duration = Duration::from_millis(100);
const LONGEST_RESTRAINT: Duration = Duration::from_secs(5);

struct Worker {
    machine: Arc<Machine>,
    sources: Sources,
    /// There may be jobs to claim.
    looks: bool,
    /// The last claim has filled all slots.
    is_full: bool,
    running: JoinSet<Ended>,
    /// The runs whose ends the worker writes down next.
    ended: Vec<Ended>,
    /// Those that could not be written.
    left: Later,
    /// Those that the server has refused, which hold no slots.
    refused_ends: Later,
    /// When there is a token for a job that waits for one.
    token: Option<Instant>,
    /// Nothing is claimed until then: the executor had no room.
    restrained: Option<Instant>,
    /// How long that is the next time.
    restraint: Duration,
    /// How many runs it has refused that the user was not told of, and why the last one.
    refused: u64,
    refusal: String,
}

/// Ends that the worker writes down later.
struct Later {
    ends: Vec<Ended>,
    at: Instant,
    /// How long the next ones wait: twice as long each time, until none is left.
    pause: Duration,
}

impl Later {
    fn new(pause: Duration) -> Self {
        Self { ends: Vec::new(), at: Instant::now(), pause }
    }

    /// Adds ends. If there was none, they wait, for a time between these two.
    fn put(&mut self, mut ends: Vec<Ended>, first: Duration, longest: Duration) {
        if self.ends.is_empty() {
            self.at = Instant::now() + self.pause;
            self.pause = if ends.is_empty() { first } else { longest.min(2 * self.pause) };
        }
        self.ends.append(&mut ends);
    }

    fn take_due(&mut self) -> Vec<Ended> {
        if Instant::now() >= self.at { std::mem::take(&mut self.ends) } else { Vec::new() }
    }
}

/// Claims and runs until the queue is closed, nothing runs, and all ends are written down. For these it does not try
/// for longer than the limit: what is left is found when the lease is over.
pub(super) async fn work(machine: &Arc<Machine>) {
    let mut worker = Worker {
        machine: Arc::clone(machine),
        sources: Sources::of(machine),
        looks: false,
        is_full: false,
        running: JoinSet::new(),
        ended: Vec::new(),
        left: Later::new(FIRST_PAUSE),
        refused_ends: Later::new(machine.settings.heartbeat),
        token: None,
        restrained: None,
        restraint: FIRST_RESTRAINT,
        refused: 0,
        refusal: String::new(),
    };
    worker.work().await;
}

impl Worker {
    async fn work(&mut self) {
        let machine = Arc::clone(&self.machine);
        let mut poll = interval(machine.settings.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_stopping, mut until) = (false, None);
        loop {
            let restrained = self.restrained.unwrap_or_else(Instant::now);
            let token = self.token.unwrap_or_else(Instant::now);
            tokio::select! {
                Some(ended) = self.running.join_next() => {
                    // A run cannot panic: the handler is on another thread.
                    self.ended.extend(ended.ok());
                    self.gather().await;
                }
                () = machine.stop.cancelled(), if !is_stopping => is_stopping = true,
                () = machine.wake.notified(), if !is_stopping => self.look_again(),
                _ = poll.tick(), if !is_stopping => self.look_again(),
                () = sleep_until(restrained), if self.restrained.is_some() => {
                    self.restrained = None;
                    self.look_again();
                }
                () = sleep_until(token), if self.token.is_some() && !is_stopping => {
                    self.token = None;
                    self.looks = true;
                }
                () = sleep_until(self.left.at), if !self.left.ends.is_empty() => {}
                () = sleep_until(self.refused_ends.at), if !self.refused_ends.ends.is_empty() => {}
            }
            self.looks |= self.sources.are_freed_by(&self.ended);
            self.looks &= !is_stopping;
            // The last time that they are asked for.
            if is_stopping && self.running.is_empty() {
                self.refused_ends.at = Instant::now();
            }
            self.write_and_claim().await;
            if is_stopping && self.running.is_empty() {
                let until =
                    *until.get_or_insert_with(|| Instant::now() + machine.settings.request_timeout);
                if self.left.ends.is_empty() || Instant::now() > until {
                    return;
                }
            }
        }
    }

    fn look_again(&mut self) {
        self.looks = true;
        self.sources.marks = true;
    }

    /// Takes what has ended as well, and with a backlog waits a moment for half of the slots to be free.
    async fn gather(&mut self) {
        self.looks |= self.is_full;
        let until = Instant::now() + GATHERING;
        loop {
            while let Some(ended) = self.running.try_join_next() {
                self.ended.extend(ended.ok());
            }
            if !self.is_full || 2 * self.running.len() <= self.machine.settings.slots {
                return;
            }
            match timeout_at(until, self.running.join_next()).await {
                Ok(ended) => self.ended.extend(ended.and_then(Result::ok)),
                Err(_) => return,
            }
        }
    }

    async fn write_and_claim(&mut self) {
        let (machine, mut ended) = (Arc::clone(&self.machine), std::mem::take(&mut self.ended));
        self.note_refusals(&ended);
        let slots = machine.settings.slots;
        // Many refused ends are no accident of some rows, and each of their jobs would run again once this process has ended.
        let refused = self.refused_ends.ends.len().saturating_sub(slots);
        let free = slots.saturating_sub(self.running.len() + self.left.ends.len() + refused);
        ended.append(&mut self.left.take_due());
        ended.append(&mut self.refused_ends.take_due());
        // The first one is sent first.
        let (unwritten, claimed) = tokio::join!(machine.write(ended), self.look(free));
        self.left.put(unwritten.soon, FIRST_PAUSE, LONGEST_PAUSE);
        let heartbeat = machine.settings.heartbeat;
        self.refused_ends.put(unwritten.refused, heartbeat, heartbeat);
        // If the answer came this late, or waited this long for the ends, the heartbeat may free its claims while their
        // runs go on. So the worker begins none of them; the heartbeat frees each that stays unknown for a lease.
        let is_late = self.sources.asked.elapsed() > machine.settings.lease / 2;
        for row in claimed.iter().filter(|_| !is_late) {
            let (machine, job) = (Arc::clone(&self.machine), claimed_by(row));
            self.running.spawn(async move {
                let how = running::run(machine, job.clone()).await;
                Ended::new(job, how)
            });
        }
    }

    fn note_refusals(&mut self, ended: &[Ended]) {
        let mut refusals = ended.iter().filter_map(|ended| match &ended.how {
            How::Refused(error) => Some(error),
            _ => None,
        });
        if let Some(error) = refusals.next() {
            error.clone_into(&mut self.refusal);
            self.refused += 1 + refusals.count() as u64;
            if self.restrained.is_none() {
                self.restrained = Some(Instant::now() + self.restraint);
                self.restraint = (2 * self.restraint).min(LONGEST_RESTRAINT);
            }
        } else if !ended.is_empty() {
            self.restraint = FIRST_RESTRAINT;
        }
        let event = || QueueEvent::RunsRefused { runs: self.refused, error: self.refusal.clone() };
        // The callback runs on the same executor, which may refuse it as well; the worker then tries again.
        if self.refused > 0 && self.machine.tell(event()) {
            self.refused = 0;
        }
    }

    /// Claims jobs for so many slots, if there may be any.
    async fn look(&mut self, free: usize) -> Vec<Row> {
        let machine = &self.machine;
        let is_restrained = self.restrained.is_some()
            || machine.executor.is_shutdown()
            || machine.claims.is_lease_over();
        if free == 0 || is_restrained || !std::mem::take(&mut self.looks) {
            return Vec::new();
        }
        let claimed = self.sources.claim(free).await.unwrap_or_else(|error| {
            self.machine.report_failure(&error);
            Vec::new()
        });
        self.token = self.sources.again.map(|again| Instant::now() + again);
        self.is_full = claimed.len() == free;
        claimed
    }
}

fn claimed_by(row: &Row) -> Claimed {
    let count = |column| u32::try_from(row.get::<_, i32>(column)).unwrap_or(0);
    Claimed {
        id: row.get(0),
        claim: row.get(1),
        name: row.get(2),
        payload: row.get(3),
        begun: count(4),
        max_attempts: count(5),
        key: row.get(6),
        tick: row.get(8),
        traceparent: row.get(9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{postgres::ending::tests::ended, run::Outcome};

    fn unwritten() -> Ended {
        ended(How::Ended(Outcome::Succeeded(None)), 1, false)
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_waits_longer_each_time_that_it_cannot_be_written() {
        let mut left = Later::new(FIRST_PAUSE);
        for millis in [200, 400, 800, 1000, 1000] {
            left.put(vec![unwritten()], FIRST_PAUSE, LONGEST_PAUSE);
            assert_eq!(left.at - Instant::now(), Duration::from_millis(millis));
            // The worker looks again for another reason, with another end and without.
            left.put(vec![unwritten()], FIRST_PAUSE, LONGEST_PAUSE);
            left.put(Vec::new(), FIRST_PAUSE, LONGEST_PAUSE);
            tokio::time::advance(Duration::from_millis(millis) - Duration::from_millis(1)).await;
            assert!(left.take_due().is_empty());
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(left.take_due().len(), 2);
        }
        left.put(Vec::new(), FIRST_PAUSE, LONGEST_PAUSE);
        left.put(vec![unwritten()], FIRST_PAUSE, LONGEST_PAUSE);
        assert_eq!(left.at - Instant::now(), FIRST_PAUSE, "all were written meanwhile");
    }
}
