//! The statements of the gate.

use super::{
    caught_ledger::ON_TIME,
    database::{Answer, Database, Moment, Statement},
    fault::Fault,
    table::Transaction,
    wire::{Kind, Parameters, Value},
};
use crate::{gate_texts, postgres::Schema};

/// The row of a name.
#[derive(Clone, Debug)]
pub(super) struct GateRow {
    pub(super) tick: Moment,
    pub(super) done: bool,
    pub(super) fence: i64,
    overtaken: i64,
    holder: String,
    /// In microseconds.
    lease: i64,
    lease_until: Moment,
}

impl GateRow {
    /// Returns the row of a name whose run of this tick has ended.
    pub(super) fn of_ended(tick: Moment) -> Self {
        Self {
            tick,
            done: true,
            fence: 0,
            overtaken: -1,
            holder: "process 0".to_owned(),
            lease: 1_000_000,
            lease_until: tick,
        }
    }

    /// Returns the fencing token of the run and when it has ended, if it has.
    pub(super) fn ended(&self) -> Option<(i64, Moment)> {
        (self.done && self.lease_until != UNIX_EPOCH).then_some((self.fence, self.lease_until))
    }
}

/// A claim of a tick.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) name: String,
    /// The process.
    pub(super) holder: String,
    pub(super) tick: Moment,
    pub(super) fence: i64,
    pub(super) at: Moment,
    /// The tick of the row before, and whether its run had ended.
    pub(super) before: Option<(Moment, bool)>,
}

/// The statements, as they are sent.
pub(super) fn statements() -> Vec<Statement> {
    fn carry(
        carry: fn(&mut GateStatement<'_>) -> Answer,
    ) -> impl Fn(&mut Database, Transaction, &Parameters) -> Answer + Send + Sync {
        move |database, transaction, parameters| {
            carry(&mut GateStatement { database, transaction, parameters })
        }
    }
    let schema = Schema::default();
    vec![
        (schema.name_in(gate_texts::LOOK), Box::new(carry(|it| it.look()))),
        (schema.name_in(gate_texts::INSERT), Box::new(carry(|it| it.insert()))),
        (schema.name_in(gate_texts::TAKE), Box::new(carry(|it| it.take()))),
        (schema.name_in(gate_texts::RENEW), Box::new(carry(|it| it.renew()))),
        (schema.name_in(gate_texts::LEAVE), Box::new(carry(|it| it.leave()))),
        (schema.name_in(gate_texts::GIVE_BACK), Box::new(carry(|it| it.give_back()))),
        (schema.name_in(gate_texts::FATE), Box::new(carry(|it| it.fate()))),
        (schema.name_in(gate_texts::SET_RIGHT), Box::new(carry(|it| it.set_right()))),
    ]
}

struct GateStatement<'a> {
    database: &'a mut Database,
    transaction: Transaction,
    parameters: &'a Parameters,
}

impl GateStatement<'_> {
    fn name(&self) -> String {
        self.parameters.text(1)
    }

    fn look(&self) -> Answer {
        let now = Value::Time(self.database.now);
        let forgets = self.database.has(Fault::LookAtALaterTick);
        let earliest = if forgets { self.database.now - ON_TIME } else { Moment::MIN };
        Answer::row(match self.database.gates.rows().get(&self.name()) {
            Some(row) => vec![
                now,
                Value::Time(row.tick.max(earliest)),
                Value::Bool(row.done),
                Value::Int8(row.fence),
                Value::Time(row.lease_until),
                Value::Text(row.holder.clone()),
                Value::Float8(row.lease as f64 / 1e6),
            ],
            None => vec![
                now,
                Value::Null(Kind::Time),
                Value::Null(Kind::Bool),
                Value::Null(Kind::Int8),
                Value::Null(Kind::Time),
                Value::Null(Kind::Text),
                Value::Null(Kind::Float8),
            ],
        })
    }

    /// Writes the row, and answers with its fencing token.
    fn write(&mut self, row: GateRow) -> Answer {
        let (name, fence) = (self.name(), row.fence);
        self.database.gates.write(self.transaction, name, row);
        Answer { writes: true, ..Answer::row(vec![Value::Int8(fence)]) }
    }

    fn granted(&mut self, overtaken: Option<i64>) -> Answer {
        self.database.last_fence += 1;
        let (fence, at) = (self.database.last_fence, self.database.now);
        let (tick, lease) = (self.parameters.time(2), self.parameters.span(4));
        let before = self.database.gates.rows().get(&self.name()).map(|row| (row.tick, row.done));
        let (name, holder) = (self.name(), self.parameters.text(3));
        self.database.grants.push(Grant { name, holder, tick, fence, at, before });
        self.write(GateRow {
            tick,
            done: false,
            fence,
            overtaken: overtaken.unwrap_or(fence - 1),
            holder: self.parameters.text(3),
            lease,
            lease_until: at + lease,
        })
    }

    fn insert(&mut self) -> Answer {
        let name = self.name();
        // It would wait for another transaction that inserts the name, which commits.
        let is_there = self.database.gates.rows().contains_key(&name)
            || self.database.gates.uncommitted().any(|(written, _)| *written == name);
        if is_there { Answer::default() } else { self.granted(None) }
    }

    fn take(&mut self) -> Answer {
        let (fence, done) = (self.parameters.int8(5), self.parameters.bool(6));
        let until = self.parameters.time(7);
        let forgets = self.database.has(Fault::TakeWithoutComparing);
        let name = self.name();
        let found = if self.database.has(Fault::TakeBesideAGuard) {
            self.database.gates.unlocked(&name)
        } else {
            self.database.gates.free(&name)
        };
        let is_seen = |row: &&GateRow| {
            forgets || row.fence == fence && row.done == done && row.lease_until == until
        };
        match found.filter(is_seen) {
            Some(row) => {
                let overtaken = if row.done { row.overtaken } else { row.fence };
                self.granted(Some(overtaken))
            }
            None => Answer::default(),
        }
    }

    /// Returns the row of a run that has not ended, with this fencing token.
    fn held(&self) -> Option<GateRow> {
        let fence = self.parameters.int8(2);
        let row = self.database.gates.unlocked(&self.name())?;
        (row.fence == fence && !row.done).then(|| row.clone())
    }

    fn renew(&mut self) -> Answer {
        let any = self.database.gates.unlocked(&self.name()).cloned();
        let any = any.filter(|_| self.database.has(Fault::RenewAnothersLease));
        let Some(row) = self.held().or(any) else { return Answer::default() };
        let lease = self.parameters.span(3);
        self.write(GateRow { lease, lease_until: self.database.now + lease, ..row })
    }

    fn leave(&mut self) -> Answer {
        let Some(row) = self.held() else { return Answer::default() };
        if self.database.has(Fault::LoseALeave) {
            return Answer::row(vec![Value::Int8(row.fence)]);
        }
        self.write(GateRow { done: true, lease_until: self.database.now, ..row })
    }

    fn give_back(&mut self) -> Answer {
        let Some(row) = self.held() else { return Answer::default() };
        let tick = row.tick - i64::from(!self.database.has(Fault::GiveBackTheTickAsDone));
        self.write(GateRow { done: true, lease_until: UNIX_EPOCH, tick, ..row })
    }

    fn fate(&self) -> Answer {
        let fence = self.parameters.int8(2);
        match self.database.gates.rows().get(&self.name()) {
            Some(row) => Answer::row(vec![
                Value::Bool(row.fence == fence && !row.done),
                Value::Bool(row.fence >= fence && row.overtaken < fence),
            ]),
            None => Answer::default(),
        }
    }

    fn set_right(&mut self) -> Answer {
        let (fence, until) = (self.parameters.int8(2), self.parameters.time(3));
        let (tick, ahead) = (self.parameters.time(4), self.parameters.span(5));
        let now = self.database.now;
        let found = self.database.gates.unlocked(&self.name());
        let Some(row) = found.filter(|row| row.fence == fence && row.lease_until == until) else {
            return Answer::default();
        };
        let row = row.clone();
        let latest = now + if row.done { 0 } else { row.lease };
        self.write(GateRow {
            lease_until: row.lease_until.min(latest),
            tick: if row.tick > now + ahead { tick - 1 } else { row.tick },
            ..row
        })
    }
}

/// In microseconds since the year 2000.
const UNIX_EPOCH: Moment = -946_684_800_000_000;

impl Database {
    /// Locks the row of a name until the transaction ends, if this is its last fencing token. `None` if the row is
    /// locked by another.
    pub(super) fn guard(
        &mut self,
        transaction: Transaction,
        name: &str,
        fence: i64,
    ) -> Option<bool> {
        let name = name.to_owned();
        // A claim that is under way would be waited for.
        if self.gates.rows().contains_key(&name) && self.gates.unlocked(&name).is_none() {
            return None;
        }
        let is_last = self.gates.rows().get(&name).is_some_and(|row| row.fence == fence);
        if is_last {
            self.gates.share(transaction, name);
        }
        Some(is_last)
    }

    /// The same, and ends the run when the transaction commits.
    pub(super) fn finish(
        &mut self,
        transaction: Transaction,
        name: &str,
        fence: i64,
    ) -> Option<bool> {
        let is_last = self.guard(transaction, name, fence)?;
        let row = self.gates.rows().get(name).filter(|row| is_last && !row.done).cloned();
        if let Some(row) = &row {
            let row = GateRow { done: true, lease_until: self.now, ..row.clone() };
            self.gates.write(transaction, name.to_owned(), row);
        }
        Some(row.is_some())
    }
}
