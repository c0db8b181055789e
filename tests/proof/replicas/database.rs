//! The simulated database: what each statement of the gate and the queue does to rows.
//!
//! A statement is carried out at one moment: it reads what is committed, and writes rows that are locked from then until
//! its transaction commits. In between, other statements skip these rows, or see what was there before, as
//! PostgreSQL's do. The clock is the database's own, and may be set.
//!
//! This module translates the texts in `gate/sql.rs`, `postgres/statements.rs` and `postgres/schedules/texts.rs`. The tests on real servers
//! hold the texts; what is held here is everything around them.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    fault::Fault,
    gate_rows::{self, GateRow, Grant},
    job_rows::{self, JobRow, WorkerRow},
    limit_rows::{BucketKey, KindLock},
    schedule_rows::{self, Change, ScheduleRow},
    table::{Table, Transaction},
    wire::{Parameters, Reply, Value},
};

/// In microseconds since the year 2000, by the clock of the database.
pub(super) type Moment = i64;

/// The text of a statement, as it is sent, and what carries it out.
pub(super) type Statement = (String, Box<Carry>);

pub(super) type Carry =
    dyn Fn(&mut Database, Transaction, &Parameters) -> Answer + Send + Sync + 'static;

static STATEMENTS: LazyLock<BTreeMap<String, Box<Carry>>> = LazyLock::new(|| {
    let all = [gate_rows::statements(), job_rows::statements(), schedule_rows::statements()];
    let nothing: Statement = ("select".to_owned(), Box::new(|_, _, _| Answer::row(Vec::new())));
    all.into_iter().flatten().chain([nothing]).collect()
});

/// What a statement has come to.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) rows: Vec<Vec<Value>>,
    pub(super) error: Option<&'static str>,
    /// It has written, so its answer comes after a commit.
    pub(super) writes: bool,
    /// The worker is told at the commit that it may look for jobs.
    pub(super) notifies: bool,
    /// The statement was prepared, and its columns were said then.
    pub(super) is_prepared: bool,
}

impl Answer {
    pub(super) fn reply(&self) -> Reply {
        match self.error {
            Some(code) => Reply::error(code, self.is_prepared),
            None => Reply::rows(&self.rows, self.is_prepared),
        }
    }

    pub(super) fn row(row: Vec<Value>) -> Self {
        Self { rows: vec![row], ..Self::default() }
    }
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Database {
    pub(super) now: Moment,
    pub(super) fault: Option<Fault>,
    pub(super) gates: Table<String, GateRow>,
    pub(super) jobs: Table<i64, JobRow>,
    pub(super) workers: Table<String, WorkerRow>,
    /// The last tick of each schedule of the code.
    pub(super) ticks: Table<String, Moment>,
    /// The schedules that are rows.
    pub(super) schedules: Table<String, ScheduleRow>,
    /// When each bucket of tokens is full again.
    pub(super) buckets: Table<BucketKey, Moment>,
    /// Which transactions have the lock of a kind with a limit.
    pub(super) kind_locks: Vec<KindLock>,
    /// When the server was started: another moment after each outage, and in a standby.
    pub(super) started: Moment,
    /// The connection whose statement is carried out.
    pub(super) connection: usize,
    /// What has become of them and was not looked at.
    pub(super) changes: Vec<Change>,
    /// The numbers that are drawn: fencing tokens of gates, claims, and ids of jobs.
    pub(super) last_fence: i64,
    pub(super) last_claim: i64,
    pub(super) last_id: i64,
    /// All grants that there have been.
    pub(super) grants: Vec<Grant>,
    /// The ticks of the schedule that were taken.
    pub(super) taken: Vec<Moment>,
    /// When the run under a fencing token was ended in the database.
    pub(super) ended: BTreeMap<i64, Moment>,
    /// Each claim of a job that there has been: id, claim, worker, and when.
    pub(super) claimed: Vec<Claim>,
    /// Each claim of the kind with limits that was committed: of which limit key, and when.
    pub(super) metered: Vec<(String, Moment)>,
}

/// A claim of a job, as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) id: i64,
    pub(super) claim: i64,
    pub(super) worker: String,
    pub(super) attempt: i32,
    /// How much was left of the lease.
    pub(super) left: Moment,
}

/// What was committed at some moment.
pub(super) struct Snapshot {
    gates: BTreeMap<String, GateRow>,
    jobs: BTreeMap<i64, JobRow>,
    workers: BTreeMap<String, WorkerRow>,
    ticks: BTreeMap<String, Moment>,
    schedules: BTreeMap<String, ScheduleRow>,
    buckets: BTreeMap<BucketKey, Moment>,
}

impl Database {
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            gates: self.gates.rows().clone(),
            jobs: self.jobs.rows().clone(),
            workers: self.workers.rows().clone(),
            ticks: self.ticks.rows().clone(),
            schedules: self.schedules.rows().clone(),
            buckets: self.buckets.rows().clone(),
        }
    }

    /// Goes back to a snapshot. Numbers are not drawn twice: a sequence is ahead in what is sent to a standby.
    pub(super) fn go_back(&mut self, snapshot: Snapshot) {
        self.gates.go_back(snapshot.gates);
        self.jobs.go_back(snapshot.jobs);
        self.workers.go_back(snapshot.workers);
        self.ticks.go_back(snapshot.ticks);
        self.schedules.go_back(snapshot.schedules);
        self.buckets.go_back(snapshot.buckets);
    }

    /// Carries a statement out, and leaves what it writes uncommitted.
    pub(super) fn carry_out(
        &mut self,
        transaction: Transaction,
        text: &str,
        parameters: &Parameters,
    ) -> Answer {
        let Some(carry) = STATEMENTS.get(text) else {
            panic!("the simulated database does not know the statement {text}")
        };
        carry(self, transaction, parameters)
    }

    pub(super) fn commit(&mut self, transaction: Transaction) {
        let ended = self.gates.written_by(transaction).filter_map(GateRow::ended);
        self.ended.extend(ended.collect::<Vec<_>>());
        self.note_changes(transaction);
        self.note_claims(transaction);
        self.gates.commit(transaction);
        self.jobs.commit(transaction);
        self.schedules.commit(transaction);
        self.buckets.commit(transaction);
        self.workers.commit(transaction);
        self.ticks.commit(transaction);
        self.kind_locks.retain(|lock| lock.transaction != transaction);
    }

    pub(super) fn roll_back(&mut self, transaction: Transaction) {
        self.gates.roll_back(transaction);
        self.jobs.roll_back(transaction);
        self.schedules.roll_back(transaction);
        self.buckets.roll_back(transaction);
        self.kind_locks.retain(|lock| lock.transaction != transaction);
    }

    /// Forgets what is not committed, as a server does that is started again.
    pub(super) fn start_again(&mut self) {
        self.started += 1;
        self.kind_locks.clear();
        self.gates.roll_back_all();
        self.jobs.roll_back_all();
        self.workers.roll_back_all();
        self.ticks.roll_back_all();
        self.schedules.roll_back_all();
        self.buckets.roll_back_all();
    }

    /// Returns the name of the session whose statement is carried out.
    pub(super) fn session(&self) -> String {
        format!("{} {}", self.connection, self.started)
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}
