//! The simulation: one clock, three replicas, a network and the database, in an order that follows from the seed.
//!
//! Events wait in one queue: a statement arrives at the database, its transaction commits, an answer arrives, a trouble
//! begins or ends. Before the next event each replica runs up to its moment; what a replica writes on the way
//! is an event too, and later than the write. So nothing reaches a replica or the database from its future.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    database::{Answer, Moment, Snapshot},
    fault::Fault,
    job_rows::JobRow,
    ledger::{DELAY, Ledger},
    plan::{Act, Millis, Plan, REPLICAS, Trouble},
    process::{Process, Shared},
    random::Random,
    table::Transaction,
    wire::{Reply, Said, ServerEnd},
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
    /// A person does something by the queue of a replica.
    Act(usize, usize, Act),
    /// A transaction that holds a row ends.
    LetGo(Transaction),
    /// All is well from now on.
    Heal,
}

/// A connection, as the server sees it.
struct Session {
    end: ServerEnd,
    replica: usize,
    process: u64,
    /// Bytes under way to the server, and to the client.
    up: VecDeque<Said>,
    down: VecDeque<Reply>,
    /// What was heard and not carried out.
    heard: VecDeque<Said>,
    /// A statement of it is not committed.
    is_busy: bool,
    listens: bool,
    is_mute: bool,
    /// No message arrives before the one before it.
    last_up: Millis,
    last_down: Millis,
    is_over: bool,
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
            self.at(at, Event::Start(replica));
        }
        for (at, trouble) in self.plan.troubles.clone() {
            self.at(at, Event::Trouble(trouble));
        }
        for _ in 0..self.plan.jobs {
            let at = self.random.between(0, self.plan.length);
            self.at(at, Event::Enqueue);
        }
        for (at, replica, schedule, act) in self.plan.acts.clone() {
            self.at(at, Event::Act(replica, schedule, act));
        }
        self.at(self.plan.length, Event::Heal);
        self.put_schedules();
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

    /// Takes what a replica has written.
    fn listen(&mut self, place: usize) {
        let (Replica::Up(process) | Replica::Frozen(process)) = &self.replicas[place] else {
            return;
        };
        let (local, number) = (process.local, process.number);
        let is_cut_off = local < self.cut_off_until[place];
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
                if is_cut_off {
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
            Event::LetGo(transaction) => self.shared.lock().database.roll_back(transaction),
            Event::Heal => self.heal(),
        }
    }

    /// Carries out what a session has heard.
    fn serve(&mut self, session: usize) {
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
                Said::Ask(text, parameters) => {
                    let process = self.sessions[session].process;
                    let mut ledger = self.shared.lock();
                    let transaction = ledger.begin_transaction();
                    if text.contains("insert into \"punctual\".job_worker") {
                        ledger.workers.insert(parameters.text(1), process);
                    }
                    let answer = ledger.database.carry_out(transaction, &text, &parameters);
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

    fn commit(&mut self, session: usize, transaction: Transaction, answer: &Answer) {
        self.sessions[session].is_busy = false;
        let mut ledger = self.shared.lock();
        ledger.note(|| format!("transaction {transaction} commits"));
        ledger.database.commit(transaction);
        ledger.look_at_schedules();
        drop(ledger);
        self.keep_history();
        self.answer(session, answer.reply());
        if answer.notifies {
            self.notify();
        }
        self.serve(session);
    }

    fn notify(&mut self) {
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
    fn cut(&mut self, session: usize) {
        let session = &mut self.sessions[session];
        session.end.cut();
        session.is_over = true;
        session.heard.clear();
        session.up.clear();
        session.down.clear();
        let replica = session.replica;
        self.stir(replica);
    }

    fn stir(&mut self, replica: usize) {
        if let Replica::Up(process) | Replica::Frozen(process) = &mut self.replicas[replica] {
            process.stir();
        }
    }

    fn of_replica(&self, replica: usize) -> Vec<usize> {
        let all = self.sessions.iter().enumerate();
        all.filter(|(_, it)| it.replica == replica && !it.is_over).map(|(place, _)| place).collect()
    }

    fn trouble(&mut self, trouble: Trouble) {
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
        ledger.database.roll_back_all();
        ledger.open.clear();
    }

    fn set_server_clock(&mut self, by: i64) {
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

    fn start(&mut self, replica: usize) {
        if matches!(self.replicas[replica], Replica::Down) {
            self.processes += 1;
            let number = self.processes;
            self.note(|| format!("replica {replica} starts as process {number}"));
            let process = Process::start(number, self.skews[replica], self.now, &self.shared);
            self.replicas[replica] = Replica::Up(Box::new(process));
        }
    }

    fn kill(&mut self, replica: usize) {
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

    fn end(&mut self, replica: usize, number: u64) {
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

    fn thaw(&mut self, replica: usize) {
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

    fn act(&mut self, replica: usize, schedule: usize, act: Act) {
        self.note(|| format!("a person at replica {replica}: {act:?} of schedule {schedule}"));
        if let Replica::Up(process) = &mut self.replicas[replica] {
            process.act_on(&self.plan.schedules[schedule], act);
        }
    }

    fn enqueue(&mut self) {
        let is_keyed = self.random.once_in(2);
        let delay = if self.random.once_in(2) { 0 } else { self.random.between(0, 1_500) };
        let mut ledger = self.shared.lock();
        let now = ledger.database.now;
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
        let run_at = row.run_at;
        let transaction = ledger.begin_transaction();
        let id = ledger.database.enqueue(transaction, row);
        ledger.database.commit(transaction);
        ledger.enqueued.insert(id, run_at);
        ledger.note(|| format!("job {id} is enqueued"));
        drop(ledger);
        if delay == 0 && self.random.once_in(2) {
            self.notify();
        }
    }

    /// Ends all trouble, and has everything run that is due.
    fn heal(&mut self) {
        self.note(|| "all is well".to_owned());
        self.shared.lock().is_well = true;
        let lease = self.plan.gate_lease.max(self.plan.job_lease);
        // A session that is mute is found out after half a lease.
        let (swept, settled) = (self.now + 2 * lease, self.now + 4 * lease + 2_000);
        self.events.retain(|_, event| {
            !matches!(
                event,
                Event::Trouble(_)
                    | Event::Enqueue
                    | Event::Act(..)
                    | Event::Start(_)
                    | Event::Thaw(_)
                    | Event::End(..)
            )
        });
        (self.is_gone, self.slow_until, self.cut_off_until) = (false, 0, [0; REPLICAS]);
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
        self.bring_forward();
        self.run_until(settled);
        let period = self.plan.period as Moment * 1000;
        let delay = DELAY as Moment * 1000;
        let ticking = [
            ("burst", period),
            ("skip", period),
            ("jitter", period),
            ("failing", period),
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
    }

    fn run_until(&mut self, moment: Millis) {
        self.at(moment, Event::Back);
        while self.now < moment && self.shared.lock().failure.is_none() {
            self.step();
        }
    }
}

/// How far a replica may go on by itself.
const AHEAD: Millis = 25;

/// The answer to a script of nothing.
fn empty() -> Reply {
    Reply([&b"I\0\0\0\x04"[..], &Reply::ready().0].concat())
}

/// Returns the name of a statement.
fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(58).collect()
}

impl Drop for World {
    fn drop(&mut self) {
        // The threads of the actors are given back while the ledger is there.
        self.replicas.clear();
    }
}
