//! The end of a simulation: all trouble is over, everything that is due runs, and the ledger says whether it has.

use super::{Event, Replica, World};
use crate::{
    caught_ledger::CAUGHT,
    database::Moment,
    job_rows::JobRow,
    ledger::DELAY,
    limits::DrawnLimits,
    plan::{Millis, REPLICAS, SELDOM},
};

impl World {
    /// Ends all trouble, and has everything run that is due.
    pub(super) fn heal(&mut self) {
        self.note(|| "all is well".to_owned());
        self.shared.lock().is_well = true;
        let lease = self.plan.gate_lease.max(self.plan.job_lease);
        // A session that is mute is found out after half a lease.
        let tokens = self.plan.limits.as_ref().map_or(0, DrawnLimits::span);
        let (swept, settled) = (self.now + 2 * lease, self.now + 4 * lease + 2_000 + tokens);
        self.events.retain(|_, event| {
            !matches!(
                event,
                Event::Trouble(_)
                    | Event::Enqueue
                    | Event::EnqueueMetered
                    | Event::Act(..)
                    | Event::Start(_)
                    | Event::Thaw(_)
                    | Event::End(..)
            )
        });
        (self.is_gone, self.slow_until) = (false, 0);
        (self.cut_off_until, self.no_beats_until) = ([0; REPLICAS], [0; REPLICAS]);
        self.carry_out(Event::Speak);
        for replica in 0..REPLICAS {
            self.thaw(replica);
            // A queue that was closed does not open again.
            if self.has_stopped(replica) {
                self.kill(replica);
            }
            self.start(replica);
        }
        if self.shared.lock().server_clock < 0 {
            self.set_server_clock_right();
        }
        self.run_until(swept);
        self.shared.lock().is_calm = true;
        self.bring_forward();
        for _ in 0..self.plan.limits.as_ref().map_or(0, |limits| limits.jobs) {
            self.enqueue_metered(0);
        }
        self.run_until(swept + tokens + 1_500);
        self.shared.lock().metered_jobs_are_done();
        self.run_until(settled);
        let period = self.plan.period as Moment * 1000;
        let delay = DELAY as Moment * 1000;
        let ticking = [
            ("burst", period),
            ("skip", period),
            ("jitter", period),
            ("failing", period),
            (CAUGHT, period),
            ("delay", delay + 2 * lease as Moment * 1000),
        ];
        let mut ledger = self.shared.lock();
        ledger.set_now(self.now);
        if ledger.failure.is_none() {
            ledger.is_settled(&ticking);
        }
        drop(ledger);
        self.is_over = true;
    }

    fn has_stopped(&self, replica: usize) -> bool {
        match &self.replicas[replica] {
            Replica::Up(process) | Replica::Frozen(process) => process.has_stopped(),
            Replica::Down => false,
        }
    }

    fn set_server_clock_right(&mut self) {
        let mut ledger = self.shared.lock();
        let lease = self.plan.gate_lease.max(self.plan.job_lease);
        ledger.forgives_until = self.now + 2 * lease;
        ledger.server_clock = 0;
        ledger.set_now(self.now);
    }

    /// Makes all jobs due that wait for another attempt.
    fn bring_forward(&mut self) {
        let mut ledger = self.shared.lock();
        let now = ledger.database.now;
        let transaction = ledger.begin_transaction();
        for (id, row) in ledger.database.jobs.rows().clone() {
            if row.waits() && row.run_at > now && ledger.database.jobs.unlocked(&id).is_some() {
                ledger.enqueued.entry(id).and_modify(|run_at| *run_at = now);
                let row = JobRow { run_at: now, ..row };
                ledger.database.jobs.write(transaction, id, row);
            }
        }
        ledger.database.commit(transaction);
        drop(ledger);
        if self.plan.poll == SELDOM {
            self.notify();
        }
    }

    fn run_until(&mut self, moment: Millis) {
        self.at(moment, Event::Back);
        while self.now < moment && self.shared.lock().failure.is_none() {
            self.step();
        }
    }
}
