//! The ledger holds the promises: everything that bodies do is compared here with what the database has granted.
//!
//! A body *acts* from time to time, as one that writes into a storage does. If it believes in its lease or claim at that
//! moment, the lease or claim must be the last one that the database has given out. A storage that compares fencing
//! tokens would refuse the write otherwise, so this holds it to what such a storage needs never to do.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    caught_ledger::CAUGHT,
    database::{Claim, Database, Moment},
    plan::{Millis, Plan, Trouble},
    random::Random,
    schedule_ledger::SeenSchedules,
    table::Transaction,
};

/// The instant at which simulations begin, by a clock that is right: in microseconds since the year 2000.
pub(super) const BEGIN: Moment = 800_000_000_000_000;

/// The database, and what was seen. Shared with the bodies.
pub(super) struct Ledger {
    pub(super) plan: Plan,
    pub(super) database: Database,
    pub(super) random: Random,
    pub(super) now: Millis,
    /// By how much the clock of the database was set, in microseconds.
    pub(super) server_clock: i64,
    /// Until then a lease may have ended too soon, because the clock of the database was set forward.
    pub(super) forgives_until: Millis,
    /// All trouble is over: bodies are short, and none fails.
    pub(super) is_well: bool,
    /// There is no trouble, and what earlier trouble has left behind is swept.
    pub(super) is_calm: bool,
    /// Since when each job with limits might have begun, and has not.
    pub(super) might_begin: BTreeMap<i64, Millis>,
    /// Transactions that were committed have been lost.
    pub(super) has_lost: bool,
    pub(super) log: Vec<String>,
    pub(super) failure: Option<String>,
    /// The transactions of bodies that are open, and of which process each is.
    pub(super) open: Vec<(Transaction, u64)>,
    pub(super) last_transaction: Transaction,
    /// For each name the ticks under which a body has begun, and under which token last.
    begun: BTreeMap<(&'static str, Moment), Vec<i64>>,
    last_begun: BTreeMap<&'static str, i64>,
    /// The fencing tokens whose bodies have returned.
    returned: BTreeSet<i64>,
    /// The ticks that replicas have reported as skipped.
    pub(super) skipped: BTreeSet<(String, Moment)>,
    /// Which process each worker is.
    pub(super) workers: BTreeMap<String, u64>,
    pub(super) jobs_begun: BTreeMap<i64, u32>,
    pub(super) schedule_begun: Vec<Moment>,
    pub(super) enqueued: BTreeMap<i64, Moment>,
    /// The jobs that were told as discarded, and by which process.
    pub(super) told: Vec<(i64, u64)>,
    pub(super) schedules: SeenSchedules,
    /// How many ticks of the gate that makes up for them were told as missed.
    pub(super) missed_of_gate: u64,
    /// How many bodies there were.
    pub(super) bodies: u64,
}

impl Ledger {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            random: Random::new(plan.seed ^ 0xb0d1e5),
            plan,
            database: Database::default(),
            now: 0,
            server_clock: 0,
            forgives_until: 0,
            is_well: false,
            is_calm: false,
            might_begin: BTreeMap::new(),
            has_lost: false,
            log: Vec::new(),
            failure: None,
            open: Vec::new(),
            last_transaction: 0,
            begun: BTreeMap::new(),
            last_begun: BTreeMap::new(),
            returned: BTreeSet::new(),
            skipped: BTreeSet::new(),
            workers: BTreeMap::new(),
            jobs_begun: BTreeMap::new(),
            schedule_begun: Vec::new(),
            enqueued: BTreeMap::new(),
            told: Vec::new(),
            schedules: SeenSchedules::default(),
            missed_of_gate: 0,
            bodies: 0,
        }
    }

    /// Moves the present, and the clock of the database.
    pub(super) fn set_now(&mut self, now: Millis) {
        self.now = now;
        self.database.now = BEGIN + now as i64 * 1000 + self.server_clock;
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.log.capacity() > 0 {
            let line = format!("{:>6} ms  {}", self.now, line());
            self.log.push(line);
        }
    }

    pub(super) fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.failure.is_none() {
            let what = what();
            self.note(|| format!("FAILURE: {what}"));
            self.failure = Some(what);
        }
    }

    pub(super) fn begin_transaction(&mut self) -> Transaction {
        self.last_transaction += 1;
        self.last_transaction
    }

    fn is_forgiven(&self) -> bool {
        self.has_lost || self.now < self.forgives_until
    }

    pub(super) fn was_set_back(&self) -> bool {
        self.plan.has(|it| matches!(it, Trouble::SetServerClock(by) if *by < 0))
    }

    /// A body of a gate begins.
    pub(super) fn begins(&mut self, name: &'static str, fence: i64, process: u64, is_lost: bool) {
        self.bodies += 1;
        self.note(|| format!("process {process} begins {name} under {fence}"));
        if is_lost {
            self.fail(|| format!("{name} begins under {fence} although its lease is lost"));
        }
        self.acts(name, fence, process, false);
        let grants = &self.database.grants;
        let Some(grant) = grants.iter().find(|grant| grant.fence == fence).cloned() else {
            return self.fail(|| format!("{name} begins under {fence}, which was never granted"));
        };
        let last = self.last_begun.insert(name, fence);
        if last.is_some_and(|last| last >= fence) && !self.is_forgiven() {
            self.fail(|| format!("{name} begins under {fence} after {last:?}"));
        }
        if name == "delay" {
            return self.is_delayed(fence, grant.at);
        }
        if name == CAUGHT {
            self.is_caught_up(&grant);
        }
        let clock = self.database.now + 50_000;
        if grant.tick > clock && !self.was_set_back() {
            self.fail(|| format!("{name} begins {} us too early", grant.tick - clock));
        }
        if self.was_set_back() || self.is_forgiven() {
            return;
        }
        let before = self.begun.entry((name, grant.tick)).or_default();
        // If nothing has gone wrong, a run that has returned has ended its tick.
        let is_calm = self.plan.troubles.is_empty();
        let has_ended = |it: &i64| {
            self.database.ended.contains_key(it) || is_calm && self.returned.contains(it)
        };
        let ended = before.iter().copied().find(has_ended);
        let is_second = !before.is_empty();
        before.push(fence);
        if let Some(ended) = ended.filter(|_| name != "failing") {
            self.fail(|| {
                format!("{name} begins under {fence} a tick that has ended under {ended}")
            });
        }
        if is_second && name == "skip" {
            self.fail(|| format!("{name} begins under {fence} a tick that is not to be run again"));
        }
        let later = self.begun.keys().any(|(of, tick)| *of == name && *tick > grant.tick);
        if later {
            self.fail(|| format!("{name} begins under {fence} a tick before one that has begun"));
        }
    }

    /// A body of a gate ends by itself.
    pub(super) fn ends(&mut self, fence: i64) {
        self.returned.insert(fence);
    }

    fn is_delayed(&mut self, fence: i64, at: Moment) {
        let of_name = self.database.grants.iter().filter(|it| it.name == "delay");
        let before = of_name.map(|it| it.fence).filter(|it| *it < fence).max();
        let ended = before.and_then(|before| self.database.ended.get(&before).copied());
        let short = ended.filter(|ended| *ended <= at && at < ended + DELAY as i64 * 1000);
        if let Some(ended) = short.filter(|_| !self.is_forgiven() && !self.was_set_back()) {
            self.fail(|| format!("delay begins under {fence} {} us after {before:?}", at - ended));
        }
    }

    /// A body of a gate does something to a storage that compares fencing tokens.
    pub(super) fn acts(&mut self, name: &str, fence: i64, process: u64, is_lost: bool) {
        let of_name = self.database.grants.iter().filter(|grant| grant.name == name);
        let newer = of_name.map(|grant| grant.fence).max().filter(|newest| *newest > fence);
        if let Some(newer) = newer.filter(|_| !is_lost && !self.is_forgiven()) {
            self.fail(|| {
                format!("process {process} acts for {name} under {fence} after a grant of {newer}")
            });
        }
    }

    /// A body of a gate has passed the guard, and its transaction commits.
    pub(super) fn commits(&mut self, name: &str, fence: i64, transaction: Transaction) {
        // A failover has rolled it back.
        if !self.open.iter().any(|(open, _)| *open == transaction) {
            return;
        }
        self.open.retain(|(open, _)| *open != transaction);
        self.database.commit(transaction);
        let of_name = self.database.grants.iter().filter(|grant| grant.name == name);
        let newest = of_name.map(|grant| grant.fence).max();
        if newest.is_some_and(|newest| newest > fence) && !self.has_lost {
            self.fail(|| format!("{name} commits under {fence}, guarded, after {newest:?}"));
        }
    }

    /// A process has died: its transactions are rolled back.
    pub(super) fn dies(&mut self, process: u64) {
        for (transaction, of) in std::mem::take(&mut self.open) {
            if of == process {
                self.database.roll_back(transaction);
            } else {
                self.open.push((transaction, of));
            }
        }
    }

    /// Returns the claim that a process has on a job.
    pub(super) fn claim_of(&self, id: i64, process: u64, attempt: u32) -> i64 {
        let is_its = |worker: &str| self.workers.get(worker) == Some(&process);
        let mut claims = self.database.claimed.iter().rev();
        let found =
            claims.find(|it| it.id == id && it.attempt as u32 == attempt && is_its(&it.worker));
        found.map_or(0, |it| it.claim)
    }

    /// A job does something to a storage, and believes in its claim unless that is lost. The lease of its machine must not be over either:
    /// another machine sweeps the claims only after it has seen the lease unchanged for the whole of it, which is later.
    pub(super) fn job_acts(&mut self, id: i64, claim: i64, process: u64, is_lost: bool) {
        if is_lost || self.is_forgiven() {
            return;
        }
        let row = self.database.jobs.rows().get(&id);
        let standing = row.and_then(|row| row.claim);
        if standing != Some(claim) {
            return self.fail(|| {
                format!("process {process} runs job {id} by claim {claim}, and {standing:?} stands")
            });
        }
        let now = self.database.now;
        let worker = row.and_then(|row| row.worker.as_ref());
        let until = worker.and_then(|worker| self.database.workers.rows().get(worker));
        let until = until.map_or(0, |row| row.until);
        if now >= until {
            return self.fail(|| {
                let late = (now - until) / 1000;
                format!("process {process} runs job {id} {late} ms after the end of its lease")
            });
        }
        let key = row.and_then(|row| row.ordering_key.clone());
        let others = self.database.jobs.rows().iter().filter(|(other, row)| {
            **other != id && key.is_some() && row.ordering_key == key && row.claim.is_some()
        });
        let other = others.map(|(other, _)| *other).next();
        if let Some(other) = other {
            self.fail(|| format!("jobs {id} and {other} of one ordering key run at once"));
        }
    }

    pub(super) fn job_begins(&mut self, id: i64, claim: i64, process: u64, is_lost: bool) {
        self.bodies += 1;
        self.note(|| format!("process {process} begins job {id} by claim {claim}"));
        *self.jobs_begun.entry(id).or_default() += 1;
        if let Some(&run_at) = self.enqueued.get(&id) {
            if self.database.now < run_at && !self.was_set_back() {
                self.fail(|| format!("job {id} begins before its moment"));
            }
        }
        let row = self.database.jobs.rows().get(&id);
        let is_of_row = row.is_some_and(|row| row.schedule.is_some());
        if !self.enqueued.contains_key(&id) && !is_of_row {
            self.schedule_begun.push(self.database.now);
        }
        self.job_acts(id, claim, process, is_lost);
    }

    pub(super) fn tells(&mut self, id: i64, process: u64) {
        self.note(|| format!("process {process} tells of job {id}"));
        let again = self.told.contains(&(id, process));
        self.told.push((id, process));
        let may = |it: &Trouble| {
            !matches!(
                it,
                Trouble::Cut(_) | Trouble::Mute(_) | Trouble::SetClock(..) | Trouble::Kill(..)
            )
        };
        if again && !self.plan.has(may) {
            self.fail(|| format!("process {process} tells of job {id} twice"));
        }
    }

    /// What has to be so when everything has been well for long enough.
    pub(super) fn is_settled(&mut self, ticking: &[(&'static str, Moment)]) {
        let now = self.database.now;
        for (name, period) in ticking {
            // A run that is always late is always left out, as its policy says.
            if *name == "jitter" && !self.agrees_on_the_time() {
                continue;
            }
            let of_name = self.database.grants.iter().filter(|grant| grant.name == *name);
            let last = of_name.map(|grant| grant.at).max().unwrap_or(0);
            if now - last > 2 * period + 1_000_000 + self.disagreement() {
                self.fail(|| {
                    format!("{name} was granted {} ms ago for the last time", (now - last) / 1000)
                });
            }
        }
        self.no_tick_is_missing();
        self.no_tick_is_taken_twice();
        self.jobs_are_done();
        self.schedules_go_on();
        self.missed_ticks_are_told();
        self.windows_are_kept();
        self.claims_are_in_time();
    }

    /// A machine whose heartbeats alone are lost has claimed nothing in the last tenth of its lease. A look that has begun before it
    /// asks a few statements.
    fn claims_are_in_time(&mut self) {
        const SLACK: Moment = 50_000;
        let tenth = self.plan.job_lease as Moment * 100;
        let is_late = |claim: &&Claim| claim.left < tenth - SLACK;
        let late = self.database.claimed.iter().find(is_late).cloned();
        if let Some(late) =
            late.filter(|_| self.plan.has(|it| matches!(it, Trouble::LoseBeats(..))))
        {
            self.fail(|| {
                format!(
                    "a claim came when the lease had only {} ms left: {late:?}",
                    late.left / 1000
                )
            });
        }
    }

    /// Returns by how much clocks may disagree. A task that makes up for all missed runs at once has the last tick by its own
    /// clock next, and waits until that has come by the server's.
    pub(super) fn disagreement(&self) -> Moment {
        let set = self.plan.troubles.iter().map(|(_, trouble)| match trouble {
            Trouble::SetClock(_, by) | Trouble::SetServerClock(by) => by.abs(),
            _ => 0,
        });
        let skew = self.plan.skews.iter().map(|skew| skew.abs()).max().unwrap_or(0);
        (set.sum::<i64>() + skew) * 1000
    }

    /// Whether the clock of a replica agrees with the server's.
    fn agrees_on_the_time(&self) -> bool {
        let is_set =
            |it: &Trouble| matches!(it, Trouble::SetClock(..) | Trouble::SetServerClock(_));
        !self.plan.has(is_set) && self.plan.skews.iter().any(|skew| skew.abs() <= 100)
    }

    /// A task that makes up for missed runs asks for each tick before the next one: none is left out, unless a process
    /// that has died had it, or says so.
    fn no_tick_is_missing(&mut self) {
        let hides = |it: &Trouble| {
            matches!(
                it,
                Trouble::Kill(..)
                    | Trouble::Stop(..)
                    | Trouble::SetClock(..)
                    | Trouble::SetServerClock(_)
            )
        };
        if self.plan.has(hides) || self.has_lost {
            return;
        }
        let period = self.plan.period as i64 * 1000;
        let begun = self.begun.keys().filter(|(name, _)| *name == "burst");
        let begun: BTreeSet<Moment> = begun.map(|(_, tick)| *tick).collect();
        let Some(last) = begun.last() else { return };
        // Those up to here may be before the first one that a replica whose clock is ahead has planned.
        let mut tick = BEGIN + 3_600_000;
        tick += (last - tick).rem_euclid(period);
        let mut missing = None;
        while tick < *last {
            let is_told = self.skipped.contains(&("burst".to_owned(), tick));
            if !begun.contains(&tick) && !is_told {
                missing = Some(tick);
            }
            tick += period;
        }
        if let Some(tick) = missing {
            self.fail(|| format!("the tick {} of burst has never begun", (tick - BEGIN) / 1000));
        }
    }

    fn no_tick_is_taken_twice(&mut self) {
        let mut all = BTreeSet::new();
        let twice = self.database.taken.iter().find(|tick| !all.insert(**tick)).copied();
        // What a server has not committed when it goes is rolled back.
        let is_gone = self.plan.has(|it| matches!(it, Trouble::Outage(_)));
        if let Some(tick) = twice.filter(|_| !is_gone && !self.was_set_back() && !self.has_lost) {
            self.fail(|| format!("the tick {} was taken twice", (tick - BEGIN) / 1000));
        }
    }

    fn jobs_are_done(&mut self) {
        let rows = self.database.jobs.rows().clone();
        let lost = self.has_lost;
        for (id, _) in self.enqueued.clone() {
            let row = rows.get(&id);
            let is_there = row.is_some_and(|row| row.waits() || row.claim.is_some());
            if is_there {
                self.fail(|| format!("job {id} has not ended: {row:?}"));
            } else if !self.jobs_begun.contains_key(&id) && !lost {
                let is_swept = row.is_some_and(|row| row.last_error.is_some());
                if !is_swept {
                    self.fail(|| format!("job {id} is gone and has not run"));
                }
            }
            if row.is_some() && !self.told.iter().any(|(told, _)| *told == id) {
                self.fail(|| format!("no process was told that job {id} is discarded"));
            }
            if row.is_some_and(|row| row.untold) {
                self.fail(|| format!("that job {id} was told is not written down"));
            }
        }
        let ticks = self.database.ticks.rows().get("sweep").copied();
        let last = self.schedule_begun.iter().max().copied();
        let slack = (2 * self.plan.period + 4 * self.plan.job_lease) as i64 * 1000;
        let late = ticks.filter(|tick| last.is_none_or(|last| last < *tick - slack));
        if let Some(tick) = late.filter(|_| !self.was_set_back()) {
            self.fail(|| {
                format!("no job of the schedule has begun after {}", (tick - BEGIN) / 1000)
            });
        }
    }
}

/// The delay of the name `delay`, in milliseconds.
pub(super) const DELAY: Millis = 700;
