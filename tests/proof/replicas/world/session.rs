//! A connection as the server sees it: what is under way on it, and how what was heard is carried out and answered.
//!
//! Messages of one connection arrive in their order, and statements of one session are carried out one after the other:
//! the next one when the transaction of the last one has committed.

use std::{collections::VecDeque, sync::LazyLock};

use super::{Event, Replica, World};
use crate::{
    database::Answer,
    plan::{Millis, Trouble},
    postgres::{Schema, statements},
    prepared,
    table::Transaction,
    wire::{Reply, Said, ServerEnd},
};

/// The heartbeat, as it is sent.
static BEAT: LazyLock<String> = LazyLock::new(|| Schema::default().name_in(statements::BEAT));

/// A connection, as the server sees it.
pub(super) struct Session {
    pub(super) end: ServerEnd,
    pub(super) replica: usize,
    pub(super) process: u64,
    /// Bytes under way to the server, and to the client.
    pub(super) up: VecDeque<Said>,
    pub(super) down: VecDeque<Reply>,
    /// What was heard and not carried out.
    pub(super) heard: VecDeque<Said>,
    /// A statement of it is not committed.
    pub(super) is_busy: bool,
    pub(super) listens: bool,
    pub(super) is_mute: bool,
    /// No message arrives before the one before it.
    pub(super) last_up: Millis,
    pub(super) last_down: Millis,
    pub(super) is_over: bool,
}

impl World {
    /// Takes what a replica has written.
    pub(super) fn listen(&mut self, place: usize) {
        let (Replica::Up(process) | Replica::Frozen(process)) = &self.replicas[place] else {
            return;
        };
        let (local, number) = (process.local, process.number);
        let is_cut_off = local < self.cut_off_until[place];
        let loses_beats = local < self.no_beats_until[place];
        for end in process.network.take_begun() {
            self.sessions.push(Session {
                end,
                replica: place,
                process: number,
                up: VecDeque::new(),
                down: VecDeque::new(),
                heard: VecDeque::new(),
                is_busy: false,
                listens: false,
                is_mute: false,
                last_up: local,
                last_down: local,
                is_over: false,
            });
        }
        for session in 0..self.sessions.len() {
            let its = &self.sessions[session];
            if its.replica != place || its.process != number || its.is_over {
                continue;
            }
            for said in its.end.hear() {
                if is_cut_off || loses_beats && said.is_a_beat() {
                    self.sessions[session].is_mute = true;
                    continue;
                }
                let at = self.latency(local).max(self.sessions[session].last_up);
                self.sessions[session].last_up = at;
                self.sessions[session].up.push_back(said);
                self.at(at, Event::Heard(session));
            }
        }
    }

    /// Returns when a message arrives that is sent at that moment.
    fn latency(&mut self, sent: Millis) -> Millis {
        let longest = if sent < self.slow_until { 700 } else { 4 };
        sent + self.random.between(1, longest)
    }

    /// Carries out what a session has heard.
    pub(super) fn serve(&mut self, session: usize) {
        while !self.is_silent {
            let its = &mut self.sessions[session];
            if its.is_busy {
                return;
            }
            let Some(said) = its.heard.pop_front() else { return };
            if self.is_gone {
                return self.cut(session);
            }
            match said {
                Said::Hello => self.answer(session, Reply::hello()),
                Said::Script(script) => {
                    self.sessions[session].listens |= script.contains("listen ");
                    let reply = if script.is_empty() { empty() } else { Reply::script() };
                    self.answer(session, reply);
                }
                Said::Goodbye => {
                    self.sessions[session].is_over = true;
                    self.sessions[session].down.clear();
                }
                Said::Prepare(text, types) => {
                    self.answer(session, Reply::prepared(&types, prepared::columns(&text)));
                }
                Said::Close => self.answer(session, Reply::closed()),
                Said::Ask(text, parameters, is_prepared) => {
                    let process = self.sessions[session].process;
                    let mut ledger = self.shared.lock();
                    let transaction = ledger.begin_transaction();
                    ledger.database.connection = session;
                    let mut answer = ledger.database.carry_out(transaction, &text, &parameters);
                    answer.is_prepared = is_prepared;
                    if is_prepared {
                        prepared::check(&text, &answer.rows);
                    }
                    let leases = ledger.database.workers.changed_by(transaction);
                    let begun = leases.into_iter().filter(|(_, until)| until.is_some());
                    ledger.workers.extend(begun.map(|(worker, _)| (worker, process)));
                    let rows = answer.rows.len();
                    ledger.note(|| {
                        let (what, about) = (short(&text), parameters.first());
                        format!("process {process}: {what} ({about}) -> {rows} rows")
                    });
                    drop(ledger);
                    if answer.writes {
                        self.sessions[session].is_busy = true;
                        let at = self.now + self.random.between(0, 3);
                        self.at(at, Event::Commit(session, transaction, Box::new(answer)));
                    } else {
                        self.answer(session, answer.reply());
                    }
                }
            }
        }
    }

    fn answer(&mut self, session: usize, reply: Reply) {
        let at = self.latency(self.now).max(self.sessions[session].last_down);
        self.sessions[session].last_down = at;
        self.sessions[session].down.push_back(reply);
        self.at(at, Event::Arrive(session));
    }

    pub(super) fn commit(&mut self, session: usize, transaction: Transaction, answer: &Answer) {
        self.sessions[session].is_busy = false;
        let mut ledger = self.shared.lock();
        ledger.note(|| format!("transaction {transaction} commits"));
        ledger.database.commit(transaction);
        ledger.look_at_schedules();
        ledger.look_at_limits();
        drop(ledger);
        self.keep_history();
        self.answer(session, answer.reply());
        if answer.notifies {
            self.notify();
        }
        self.serve(session);
    }

    pub(super) fn notify(&mut self) {
        for session in 0..self.sessions.len() {
            let its = &self.sessions[session];
            if its.listens && !its.is_over && !its.end.is_cut() {
                self.answer(session, Reply::notification("punctual"));
            }
        }
    }

    /// Keeps what is committed now, if a standby will go back to it.
    fn keep_history(&mut self) {
        let next = self.plan.troubles.iter().find_map(|(at, trouble)| match trouble {
            Trouble::LossyFailover(span) if *at >= self.now => Some(at.saturating_sub(*span)),
            _ => None,
        });
        if next.is_some_and(|next| self.now <= next) {
            self.standby = Some(self.shared.lock().database.snapshot());
        }
    }

    /// Ends a connection. What it has read is carried out or not.
    pub(super) fn cut(&mut self, session: usize) {
        let session = &mut self.sessions[session];
        session.end.cut();
        session.is_over = true;
        session.heard.clear();
        session.up.clear();
        session.down.clear();
        let replica = session.replica;
        self.stir(replica);
    }

    pub(super) fn of_replica(&self, replica: usize) -> Vec<usize> {
        let all = self.sessions.iter().enumerate();
        all.filter(|(_, it)| it.replica == replica && !it.is_over).map(|(place, _)| place).collect()
    }
}

impl Said {
    fn is_a_beat(&self) -> bool {
        matches!(self, Self::Ask(text, ..) if *text == *BEAT)
    }
}

/// The answer to a script of nothing.
fn empty() -> Reply {
    Reply([&b"I\0\0\0\x04"[..], &Reply::ready().0].concat())
}

/// Returns the name of a statement.
fn short(text: &str) -> String {
    let line = text.split_whitespace().take(30).collect::<Vec<_>>().join(" ");
    line.chars().take(58).collect()
}
