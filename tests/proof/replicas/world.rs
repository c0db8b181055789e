//! The simulation: one clock, three replicas, a network and the database, in an order that follows from the seed.
//!
//! Events wait in one queue: a statement arrives at the database, its transaction commits, an answer arrives, a trouble
//! begins or ends. Before the next event each replica runs up to its moment; what a replica writes on the way
//! is an event too, and later than the write. So nothing reaches a replica or the database from its future.

mod recovery;
mod session;
mod trouble;

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use self::session::Session;
use super::{
    caught_ledger::CAUGHT,
    database::{Answer, Moment, Snapshot},
    fault::Fault,
    gate_rows::GateRow,
    job_rows::JobRow,
    ledger::{BEGIN, Ledger},
    limit_ledger::METERED,
    plan::{Act, Millis, Plan, REPLICAS, SELDOM, Trouble},
    process::{Process, Shared},
    random::Random,
    table::Transaction,
};

enum Event {
    /// The server reads what a client has said.
    Heard(usize),
    Commit(usize, Transaction, Box<Answer>),
    /// An answer arrives at a client.
    Arrive(usize),
    Trouble(Trouble),
    /// A replica is started again.
    Start(usize),
    Thaw(usize),
    /// A process has ended by itself.
    End(usize, u64),
    /// The server is there again.
    Back,
    Speak,
    Enqueue,
    /// A job of the kind with limits.
    EnqueueMetered,
    /// A person does something by the queue of a replica.
    Act(usize, usize, Act),
    /// A transaction that holds a row ends.
    LetGo(Transaction),
    /// All is well from now on.
    Heal,
}

enum Replica {
    Up(Box<Process>),
    /// It does nothing until it is thawed.
    Frozen(Box<Process>),
    Down,
}

pub(super) struct World {
    plan: Plan,
    shared: Shared,
    random: Random,
    events: BTreeMap<(Millis, u64, u64), Event>,
    count: u64,
    now: Millis,
    replicas: Vec<Replica>,
    processes: u64,
    sessions: Vec<Session>,
    /// What a standby has of what was committed.
    standby: Option<Snapshot>,
    is_gone: bool,
    is_silent: bool,
    slow_until: Millis,
    /// Until when nothing arrives from each replica, or at it.
    cut_off_until: [Millis; REPLICAS],
    /// Until when no heartbeat of each replica arrives.
    no_beats_until: [Millis; REPLICAS],
    /// What the clock of each replica is ahead by, in milliseconds.
    skews: [i64; REPLICAS],
    is_over: bool,
}

impl World {
    /// Does what the plan says, and returns the ledger.
    pub(super) fn run(plan: &Plan, fault: Option<Fault>, is_logged: bool) -> Ledger {
        let mut ledger = Ledger::new(plan.clone());
        ledger.database.fault = fault;
        if is_logged {
            ledger.log.reserve(1);
        }
        let mut world = Self {
            plan: plan.clone(),
            shared: Arc::new(Mutex::new(ledger)),
            random: Random::new(plan.seed ^ 0x5eed),
            events: BTreeMap::new(),
            count: 0,
            now: 0,
            replicas: (0..REPLICAS).map(|_| Replica::Down).collect(),
            processes: 0,
            sessions: Vec::new(),
            standby: None,
            is_gone: false,
            is_silent: false,
            slow_until: 0,
            cut_off_until: [0; REPLICAS],
            no_beats_until: [0; REPLICAS],
            skews: plan.skews,
            is_over: false,
        };
        world.begin();
        while !world.is_over && world.shared.lock().failure.is_none() {
            world.step();
        }
        let (shared, over) = (Arc::clone(&world.shared), world);
        drop(over);
        let mut ledger = shared.lock();
        std::mem::replace(&mut *ledger, Ledger::new(plan.clone()))
    }

    fn begin(&mut self) {
        for replica in 0..REPLICAS {
            let at = self.random.between(0, 300);
            if replica < self.plan.replicas {
                self.at(at, Event::Start(replica));
            }
        }
        for (at, trouble) in self.plan.troubles.clone() {
            self.at(at, Event::Trouble(trouble));
        }
        for _ in 0..self.plan.jobs {
            let at = self.random.between(0, self.plan.length);
            self.at(at, Event::Enqueue);
        }
        if let Some(limits) = self.plan.limits.clone() {
            let within = limits.within.unwrap_or(self.plan.length);
            for _ in 0..limits.jobs {
                let at = self.random.between(0, within);
                self.at(at, Event::EnqueueMetered);
            }
        }
        for (at, replica, schedule, act) in self.plan.acts.clone() {
            self.at(at, Event::Act(replica, schedule, act));
        }
        self.at(self.plan.length, Event::Heal);
        self.shared.lock().is_calm = self.plan.troubles.is_empty();
        self.put_schedules();
        self.put_gate();
    }

    /// Has the gate that makes up for missed ticks run before.
    fn put_gate(&mut self) {
        let Some(ago) = self.plan.caught.ago else { return };
        let mut ledger = self.shared.lock();
        let tick = ledger.tick_of_gate(BEGIN - ago as Moment * 1000);
        let transaction = ledger.begin_transaction();
        let row = GateRow::of_ended(tick);
        ledger.database.gates.write(transaction, CAUGHT.to_owned(), row);
        ledger.database.commit(transaction);
    }

    /// Puts the schedules that no program declares, as a person has done who has a client of the database.
    fn put_schedules(&mut self) {
        let mut ledger = self.shared.lock();
        ledger.set_now(0);
        let transaction = ledger.begin_transaction();
        for drawn in self.plan.schedules.iter().filter(|it| !it.is_declared) {
            ledger.database.insert_schedule(transaction, drawn);
        }
        ledger.database.commit(transaction);
        ledger.database.changes.clear();
    }

    fn at(&mut self, moment: Millis, event: Event) {
        self.count += 1;
        // What comes at the same moment comes in any order.
        let any = self.random.number();
        self.events.insert((moment, any, self.count), event);
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.shared.lock().note(line);
    }

    /// Carries out the next event, once all replicas have come as far.
    fn step(&mut self) {
        loop {
            let Some((&(next, ..), _)) = self.events.first_key_value() else {
                self.is_over = true;
                return;
            };
            let behind = self.replicas.iter_mut().enumerate().filter_map(|(place, it)| match it {
                Replica::Up(process) if process.local < next => Some((process.local, place)),
                _ => None,
            });
            let Some((_, place)) = behind.min() else { break };
            self.go_on(place, next);
        }
        let Some(((moment, ..), event)) = self.events.pop_first() else { return };
        self.now = self.now.max(moment);
        self.shared.lock().set_now(self.now);
        self.carry_out(event);
        self.shared.lock().look_for_room();
    }

    fn go_on(&mut self, place: usize, next: Millis) {
        let Replica::Up(process) = &mut self.replicas[place] else { return };
        // Answers may arrive, or they may not.
        let number = process.number;
        let waits = |it: &Session| {
            it.process == number
                && (it.is_busy || !(it.up.is_empty() && it.heard.is_empty() && it.down.is_empty()))
        };
        let ahead = if self.sessions.iter().any(waits) { next } else { next + AHEAD };
        process.run_to(next, ahead, &self.shared);
        self.listen(place);
    }

    fn carry_out(&mut self, event: Event) {
        match event {
            Event::Heard(session) => {
                let its = &mut self.sessions[session];
                its.heard.extend(its.up.pop_front());
                self.serve(session);
            }
            Event::Commit(session, transaction, answer) => {
                self.commit(session, transaction, &answer)
            }
            Event::Arrive(session) => {
                let its = &mut self.sessions[session];
                let reply = its.down.pop_front();
                let replica = its.replica;
                if let Some(reply) = reply.filter(|_| !its.is_mute) {
                    its.end.deliver(&reply.0);
                    self.stir(replica);
                }
            }
            Event::Trouble(trouble) => self.trouble(trouble),
            Event::Act(replica, schedule, act) => self.act(replica, schedule, act),
            Event::Start(replica) => self.start(replica),
            Event::Thaw(replica) => self.thaw(replica),
            Event::End(replica, number) => self.end(replica, number),
            Event::Back => self.is_gone = false,
            Event::Speak => {
                self.is_silent = false;
                for session in 0..self.sessions.len() {
                    self.serve(session);
                }
            }
            Event::Enqueue => self.enqueue(),
            Event::EnqueueMetered => {
                let delay = self.random.pick(&[0, 0, 0, 100, 1_000]);
                self.enqueue_metered(delay);
            }
            Event::LetGo(transaction) => self.shared.lock().database.roll_back(transaction),
            Event::Heal => self.heal(),
        }
    }

    fn stir(&mut self, replica: usize) {
        if let Replica::Up(process) | Replica::Frozen(process) = &mut self.replicas[replica] {
            process.stir();
        }
    }

    fn act(&mut self, replica: usize, schedule: usize, act: Act) {
        self.note(|| format!("a person at replica {replica}: {act:?} of schedule {schedule}"));
        if let Replica::Up(process) = &mut self.replicas[replica] {
            process.act_on(&self.plan.schedules[schedule], act);
        }
    }

    fn enqueue(&mut self) {
        let is_keyed = self.random.once_in(2);
        let delay = if self.random.once_in(2) { 0 } else { self.random.between(0, 1_500) };
        let now = self.shared.lock().database.now;
        let row = JobRow {
            name: if is_keyed { "keyed" } else { "plain" }.to_owned(),
            payload: "{}".to_owned(),
            ordering_key: is_keyed.then(|| self.random.pick(&["a", "b"]).to_owned()),
            run_at: now + delay as i64 * 1000,
            due: delay == 0,
            max_attempts: self.random.between(1, 3) as i32,
            // No draw, so that the seeds stay what they are.
            priority: (delay % 3) as i16 - 1,
            ..JobRow::default()
        };
        self.insert(row);
    }

    /// Enqueues a job of the kind with limits.
    fn enqueue_metered(&mut self, delay: i64) {
        let now = self.shared.lock().database.now;
        let key = self.random.pick(&["", "x", "x", "y"]);
        let ordering_key = self.random.pick(&[None, None, Some("a"), Some("c")]);
        let within = self.plan.limits.as_ref().and_then(|limits| limits.within);
        let ordering_key = ordering_key.filter(|_| within.is_none());
        let row = JobRow {
            name: METERED.to_owned(),
            payload: "{}".to_owned(),
            limit_key: key.to_owned(),
            ordering_key: ordering_key.map(str::to_owned),
            run_at: now + delay * 1000,
            due: delay == 0,
            max_attempts: self.random.between(1, 3) as i32,
            priority: self.random.between(0, 2) as i16 - 1,
            ..JobRow::default()
        };
        self.insert(row);
    }

    fn insert(&mut self, row: JobRow) {
        let (run_at, is_due) = (row.run_at, row.due);
        let mut ledger = self.shared.lock();
        let transaction = ledger.begin_transaction();
        let id = ledger.database.enqueue(transaction, row);
        ledger.database.commit(transaction);
        ledger.enqueued.insert(id, run_at);
        ledger.note(|| format!("job {id} is enqueued"));
        drop(ledger);
        if is_due && (self.random.once_in(2) || self.plan.poll == SELDOM) {
            self.notify();
        }
    }
}

/// How far a replica may go on by itself.
const AHEAD: Millis = 25;

impl Drop for World {
    fn drop(&mut self) {
        // The threads of the actors are given back while the ledger is there.
        self.replicas.clear();
    }
}
