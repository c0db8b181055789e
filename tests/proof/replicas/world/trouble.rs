//! What each trouble does to the replicas, the network and the database.

use super::{Event, Replica, World};
use crate::{
    plan::{Millis, Trouble},
    process::Process,
};

impl World {
    pub(super) fn trouble(&mut self, trouble: Trouble) {
        self.note(|| format!("{trouble:?}"));
        match trouble {
            Trouble::Kill(replica, span) => {
                self.kill(replica);
                self.at(self.now + span, Event::Start(replica));
            }
            Trouble::Stop(replica, span) => {
                if let Replica::Up(process) = &mut self.replicas[replica] {
                    process.stop();
                    let number = process.number;
                    self.at(self.now + 100, Event::End(replica, number));
                }
                self.at(self.now + 100 + span, Event::Start(replica));
            }
            Trouble::Freeze(replica, span) => self.freeze(replica, span),
            Trouble::Cut(replica) => {
                for session in self.of_replica(replica) {
                    if self.random.once_in(2) {
                        self.serve(session);
                    }
                    self.cut(session);
                }
            }
            Trouble::Mute(replica) => {
                for session in self.of_replica(replica) {
                    self.sessions[session].is_mute |= self.random.once_in(2);
                }
            }
            Trouble::Outage(span) => {
                self.go_away();
                self.at(self.now + span, Event::Back);
            }
            Trouble::Silence(span) => {
                self.is_silent = true;
                self.at(self.now + span, Event::Speak);
            }
            Trouble::Partition(replica, span) => {
                self.cut_off_until[replica] = self.now + span;
                for session in self.of_replica(replica) {
                    self.sessions[session].is_mute = true;
                    self.sessions[session].up.clear();
                }
            }
            Trouble::LoseBeats(replica, span) => self.no_beats_until[replica] = self.now + span,
            Trouble::Slow(span) => self.slow_until = self.now + span,
            Trouble::SetClock(replica, by) => {
                self.skews[replica] += by;
                if let Replica::Up(process) | Replica::Frozen(process) = &mut self.replicas[replica]
                {
                    process.set_wall(by);
                }
            }
            Trouble::SetServerClock(by) => self.set_server_clock(by),
            Trouble::Hold(span) => self.hold(span),
            Trouble::LossyFailover(_) => self.fail_over(),
        }
    }

    fn fail_over(&mut self) {
        self.go_away();
        if let Some(snapshot) = self.standby.take() {
            let mut ledger = self.shared.lock();
            ledger.has_lost = true;
            ledger.database.go_back(snapshot);
            let jobs = ledger.database.jobs.rows().clone();
            ledger.enqueued.retain(|id, _| jobs.contains_key(id));
        }
        self.at(self.now + 200, Event::Back);
    }

    fn go_away(&mut self) {
        self.is_gone = true;
        for session in 0..self.sessions.len() {
            self.cut(session);
        }
        let under_way =
            |_: &(Millis, u64, u64), event: &mut Event| !matches!(event, Event::Commit(..));
        self.events.retain(under_way);
        let mut ledger = self.shared.lock();
        ledger.database.start_again();
        ledger.open.clear();
    }

    pub(super) fn set_server_clock(&mut self, by: i64) {
        let mut ledger = self.shared.lock();
        ledger.server_clock += by * 1000;
        if by > 0 {
            let lease = self.plan.gate_lease.max(self.plan.job_lease);
            ledger.forgives_until = self.now + 2 * lease;
        }
        ledger.set_now(self.now);
    }

    fn hold(&mut self, span: Millis) {
        let mut ledger = self.shared.lock();
        let rows = ledger.database.jobs.rows();
        let ids: Vec<i64> = rows.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = self.random.pick(&ids);
        let Some(row) = ledger.database.jobs.unlocked(&id).cloned() else { return };
        let transaction = ledger.begin_transaction();
        ledger.database.jobs.write(transaction, id, row);
        drop(ledger);
        self.at(self.now + span, Event::LetGo(transaction));
    }

    pub(super) fn start(&mut self, replica: usize) {
        if matches!(self.replicas[replica], Replica::Down) {
            self.processes += 1;
            let number = self.processes;
            self.note(|| format!("replica {replica} starts as process {number}"));
            let process =
                Process::start((number, replica), self.skews[replica], self.now, &self.shared);
            self.replicas[replica] = Replica::Up(Box::new(process));
        }
    }

    pub(super) fn kill(&mut self, replica: usize) {
        self.listen(replica);
        let old = std::mem::replace(&mut self.replicas[replica], Replica::Down);
        let (Replica::Up(process) | Replica::Frozen(process)) = old else { return };
        for session in self.of_replica(replica) {
            if self.random.once_in(2) {
                self.serve(session);
            }
            self.cut(session);
        }
        self.shared.lock().dies(process.number);
        drop(process);
    }

    pub(super) fn end(&mut self, replica: usize, number: u64) {
        let is_it = match &self.replicas[replica] {
            Replica::Up(process) | Replica::Frozen(process) => process.number == number,
            Replica::Down => false,
        };
        if is_it {
            self.kill(replica);
        }
    }

    fn freeze(&mut self, replica: usize, span: Millis) {
        let old = std::mem::replace(&mut self.replicas[replica], Replica::Down);
        self.replicas[replica] = match old {
            Replica::Up(process) => {
                self.at(self.now + span, Event::Thaw(replica));
                Replica::Frozen(process)
            }
            other => other,
        };
    }

    pub(super) fn thaw(&mut self, replica: usize) {
        let old = std::mem::replace(&mut self.replicas[replica], Replica::Down);
        self.replicas[replica] = match old {
            Replica::Frozen(mut process) => {
                self.note(|| format!("replica {replica} is thawed"));
                process.thaw(self.now);
                Replica::Up(process)
            }
            other => other,
        };
        self.listen(replica);
    }
}
