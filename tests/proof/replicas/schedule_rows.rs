//! The statements about schedules that are rows.

use super::{
    database::{Answer, Database, Moment, Statement},
    fault::Fault,
    job_rows::{JobRow, MINUTE},
    plan::Drawn,
    table::Transaction,
    wire::{Kind, Parameters, Value, text_or_null},
};
use crate::postgres::{Schema, schedule_texts as texts};

/// A schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScheduleRow {
    pub(super) period: i64,
    pub(super) jitter: i64,
    kind: String,
    payload: String,
    max_attempts: i32,
    pub(super) catch_up: String,
    pub(super) window: i64,
    pub(super) overlap: String,
    pub(super) most: i32,
    pub(super) paused: bool,
    pub(super) removed: bool,
    pub(super) declared: bool,
    pub(super) edited: bool,
    code: String,
    pub(super) revision: i64,
    pub(super) tick: Moment,
    pub(super) next_at: Option<Moment>,
    pub(super) made_up: i64,
    pub(super) missed: i64,
    pub(super) skipped: i64,
}

/// What a transaction has made of a schedule.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) old: Option<ScheduleRow>,
    pub(super) new: Option<ScheduleRow>,
    /// The jobs that it has enqueued for the schedule, by their ticks.
    pub(super) ticks: Vec<Option<Moment>>,
    /// The jobs of the schedule that have not ended: those that wait, and those that run and are not cancelled.
    pub(super) waiting: usize,
    pub(super) running: usize,
    pub(super) at: Moment,
}

type Carry = fn(&mut ScheduleStatement<'_>) -> Answer;

/// The statements, as they are sent.
pub(super) fn statements() -> Vec<Statement> {
    let schema = Schema::default();
    let all: [(&str, Carry); 7] = [
        (texts::DUE, |it| it.due()),
        (texts::SETTLE, |it| it.settle()),
        (texts::RUN_NOW, |it| it.run_now()),
        (texts::PUT, |it| it.put()),
        (texts::DECLARE, |it| it.declare()),
        (texts::PAUSE, |it| it.pause()),
        (texts::REMOVE, |it| it.remove()),
    ];
    let named = all.into_iter().map(|(text, carry)| -> Statement {
        let carry = move |database: &mut Database, transaction, parameters: &Parameters| {
            carry(&mut ScheduleStatement { database, transaction, parameters })
        };
        (schema.name_in(text), Box::new(carry))
    });
    named.collect()
}

struct ScheduleStatement<'a> {
    database: &'a mut Database,
    transaction: Transaction,
    parameters: &'a Parameters,
}

/// A row is locked, and the statement does not wait for it.
fn locked() -> Answer {
    Answer { error: Some("55P03"), ..Answer::default() }
}

impl ScheduleStatement<'_> {
    fn name(&self) -> String {
        self.parameters.text(1)
    }

    fn revision(&mut self, old: i64) -> i64 {
        if self.database.has(Fault::KeepTheRevision) && old != 0 {
            return old;
        }
        self.database.last_claim += 1;
        self.database.last_claim
    }

    fn write(&mut self, row: ScheduleRow) {
        let name = self.name();
        self.database.schedules.write(self.transaction, name, row);
    }

    /// Returns the row of the name if it is not removed, or the error of one that is locked; `None` if there is none.
    fn found(&self) -> Result<Option<ScheduleRow>, Answer> {
        let name = self.name();
        let there = self.database.schedules.rows().get(&name).filter(|row| !row.removed);
        match (there, self.database.schedules.unlocked(&name)) {
            (Some(_), None) => Err(locked()),
            (there, _) => Ok(there.cloned()),
        }
    }

    fn due(&mut self) -> Answer {
        let now = self.database.now;
        let (declared, unknown) = (self.parameters.texts(1), self.parameters.int8s(2));
        let paused = self.database.has(Fault::TickWhatIsPaused);
        let is_due = |name: &String, row: &ScheduleRow| {
            let next = row.next_at.or(Some(row.tick).filter(|_| paused));
            (next.is_some_and(|next| next <= now + 1_500_000) || row.tick > now + MINUTE)
                && (!row.paused || paused)
                && !row.removed
                && (!row.declared || row.edited || declared.contains(&Some(name.clone())))
                && !unknown.contains(&row.revision)
        };
        let rows = self.database.schedules.rows();
        let mut found: Vec<_> = rows.iter().filter(|(name, row)| is_due(name, row)).collect();
        found.sort_by_key(|(name, row)| (row.next_at, *name));
        found.truncate(100);
        let null = Value::Null;
        let time = |time: Option<Moment>| time.map_or(null(Kind::Time), Value::Time);
        let rows = found.into_iter().map(|(name, row)| {
            vec![
                Value::Time(now),
                Value::Text(name.clone()),
                Value::Int8(row.revision),
                null(Kind::Text),
                null(Kind::Text),
                null(Kind::Text),
                null(Kind::Text),
                Value::Int8(row.period),
                null(Kind::Time),
                null(Kind::Time),
                Value::Int8(row.jitter),
                Value::Text(row.catch_up.clone()),
                Value::Int8(row.window),
                Value::Text(row.overlap.clone()),
                Value::Int4(row.most),
                Value::Time(row.tick),
                time(row.next_at),
            ]
        });
        Answer { rows: rows.collect(), ..Answer::default() }
    }

    /// Returns the ids of the jobs of a schedule that have not ended.
    fn outstanding(&self, name: &str) -> Vec<i64> {
        let jobs = self.database.jobs.rows().iter();
        let its = jobs.filter(|(_, row)| {
            row.schedule.as_deref() == Some(name) && (row.claim.is_some() || row.waits())
        });
        its.map(|(id, _)| *id).collect()
    }

    /// Enqueues jobs for as many of the ticks as there is room for, or brings one forward. Returns how many are enqueued, the id
    /// of the last one, and which running jobs are cancelled; `None` if nothing can be done because a job is locked.
    fn enqueue(
        &mut self,
        row: &ScheduleRow,
        ticks: &[Option<Moment>],
        waits: bool,
    ) -> Option<(usize, Option<i64>, Vec<i64>)> {
        let (name, now) = (self.name(), self.database.now);
        let outstanding = self.outstanding(&name);
        let jobs = &self.database.jobs;
        let free: Vec<i64> =
            outstanding.iter().copied().filter(|id| jobs.unlocked(id).is_some()).collect();
        if row.overlap == "replace" && free.len() < outstanding.len() {
            return None;
        }
        let chosen = &ticks[..self.room(row, &outstanding, waits).min(ticks.len())];
        let (mut cancelled, mut last) = (Vec::new(), None);
        match row.overlap.as_str() {
            _ if waits || ticks.is_empty() => {}
            "replace" if !self.database.has(Fault::ReplaceWithoutCancelling) => {
                cancelled = self.retire(free);
            }
            "queue" => last = self.renew(row, free),
            _ => {}
        }
        if !self.database.has(Fault::SettleWithoutAJob) {
            for tick in chosen {
                let job = JobRow {
                    name: row.kind.clone(),
                    payload: row.payload.clone(),
                    ordering_key: (row.overlap != "allow").then(|| format!("every {name}")),
                    run_at: now,
                    due: true,
                    max_attempts: row.max_attempts,
                    schedule: Some(name.clone()),
                    tick: *tick,
                    ..JobRow::default()
                };
                last = Some(self.database.enqueue(self.transaction, job));
            }
        }
        Some((chosen.len(), last, cancelled))
    }

    /// Returns how many jobs a schedule may have beside those that wait or run.
    fn room(&self, row: &ScheduleRow, outstanding: &[i64], waits: bool) -> usize {
        let rows = self.database.jobs.rows();
        let waiting = outstanding.iter().filter(|id| rows[id].claim.is_none()).count();
        match row.overlap.as_str() {
            _ if self.database.has(Fault::SettleWithoutCounting) => usize::MAX,
            "allow" => (row.most as usize).saturating_sub(outstanding.len()),
            "replace" if !waits => 1,
            "queue" => 1 - waiting.min(1),
            _ => 1 - outstanding.len().min(1),
        }
    }

    /// Removes the jobs that wait, and cancels those that run, which are returned.
    fn retire(&mut self, jobs: Vec<i64>) -> Vec<i64> {
        let mut cancelled = Vec::new();
        for id in jobs {
            let job = self.database.jobs.rows()[&id].clone();
            if job.claim.is_none() {
                self.database.jobs.delete(self.transaction, id);
            } else {
                cancelled.push(id);
                let job = JobRow { retired: true, cancelled: true, ..job };
                self.database.jobs.write(self.transaction, id, job);
            }
        }
        cancelled
    }

    /// Has the job that waits stand for the ticks that have come, as the row is now. Returns it if that changes it.
    fn renew(&mut self, row: &ScheduleRow, jobs: Vec<i64>) -> Option<i64> {
        let now = self.database.now;
        let mut renewed = None;
        for id in jobs {
            let job = self.database.jobs.rows()[&id].clone();
            let is_old = (&job.name, &job.payload) != (&row.kind, &row.payload);
            if job.waits() && (job.run_at > now || is_old) {
                let (name, payload) = (row.kind.clone(), row.payload.clone());
                let max_attempts = row.max_attempts.max(job.attempts + 1);
                let job = JobRow { name, payload, max_attempts, ..job };
                let job = JobRow { run_at: job.run_at.min(now), due: true, ..job };
                self.database.jobs.write(self.transaction, id, job);
                renewed = Some(id);
            }
        }
        renewed
    }

    fn settle(&mut self) -> Answer {
        let (ticks, waits) = (self.parameters.int8s(3), self.parameters.bool(4));
        let (is_late, settled) = (self.parameters.bool(5), self.parameters.int8_or_null(6));
        let (missed, next) = (self.parameters.int8(7), self.parameters.int8_or_null(8));
        let (due, now) = (self.parameters.int8_or_null(9), self.database.now);
        let any = self.database.has(Fault::SettleWithoutComparing);
        let revision = self.parameters.int8(2);
        let found = self.database.schedules.unlocked(&self.name());
        let paused = self.database.has(Fault::TickWhatIsPaused);
        let is_it = |row: &&ScheduleRow| {
            (any || row.revision == revision)
                && (!row.paused || paused)
                && !row.removed
                && due.is_none_or(|due| due <= now + 50_000)
        };
        let Some(row) = found.filter(is_it).cloned() else { return Answer::default() };
        let asked: Vec<_> = ticks.iter().copied().map(Some).collect();
        let Some((enqueued, _, cancelled)) = self.enqueue(&row, &asked, waits) else {
            return Answer::default();
        };
        let is_whole =
            !waits || enqueued == ticks.len() || self.database.has(Fault::SettleWhatWaits);
        let last = if is_whole { ticks.last() } else { ticks[..enqueued].last() };
        let revision = self.revision(row.revision);
        let skipped = if waits { 0 } else { (ticks.len() - enqueued) as i64 };
        let row = ScheduleRow {
            tick: last.copied().or(settled).unwrap_or(row.tick),
            next_at: if is_whole { next } else { Some(now + 200_000) },
            revision,
            made_up: row.made_up + if is_late { enqueued as i64 } else { 0 },
            missed: row.missed + missed,
            skipped: row.skipped + skipped,
            ..row
        };
        self.write(row);
        let answer = vec![Value::Int8(enqueued as i64), Value::Int8s(cancelled), Value::Int8(0)];
        Answer { writes: true, notifies: enqueued > 0, ..Answer::row(answer) }
    }

    fn run_now(&mut self) -> Answer {
        let row = match self.found() {
            Ok(Some(row)) => row,
            Ok(None) => return Answer::default(),
            Err(locked) => return locked,
        };
        let Some((_, id, cancelled)) = self.enqueue(&row, &[None], false) else {
            let again = Value::Int8(texts::ASK_AGAIN);
            return Answer::row(vec![Value::Null(Kind::Int8), Value::Int8s(Vec::new()), again]);
        };
        let revision = self.revision(row.revision);
        self.write(ScheduleRow { revision, ..row });
        let notifies = id.is_some();
        let id = id.map_or(Value::Null(Kind::Int8), Value::Int8);
        let answer = vec![id, Value::Int8s(cancelled), Value::Int8(0)];
        Answer { writes: true, notifies, ..Answer::row(answer) }
    }

    /// Returns the row that the parameters of a definition say, in the place of an old one.
    fn defined(&mut self, old: Option<&ScheduleRow>) -> ScheduleRow {
        let now = self.database.now;
        let revision = self.revision(old.map_or(0, |old| old.revision));
        let old = old.cloned();
        let is_new = old.is_none();
        let old = old.unwrap_or_else(|| ScheduleRow { tick: now, ..ScheduleRow::default() });
        let period = self.parameters.int8_or_null(6).expect("a period");
        let keeps = self.database.has(Fault::PutWithoutANewBeginning) && !is_new;
        let is_other = (old.removed || old.period != period) && !keeps;
        ScheduleRow {
            period,
            jitter: self.parameters.int8(9),
            kind: self.parameters.text(10),
            payload: self.parameters.text(11),
            max_attempts: self.parameters.int4(12),
            catch_up: self.parameters.text(13),
            window: self.parameters.int8(14),
            overlap: self.parameters.text(15),
            most: self.parameters.int4(16),
            removed: false,
            revision,
            tick: if is_other { now.max(old.tick) } else { old.tick },
            next_at: Some(now).filter(|_| !old.paused),
            ..old
        }
    }

    /// Returns the row of the name, or the error of one that is locked.
    fn any(&self) -> Result<Option<ScheduleRow>, Answer> {
        let name = self.name();
        // An insert of the same name that is not committed is waited for, as long as the lock time-out says.
        let mut written = self.database.schedules.uncommitted();
        if written.any(|(written, _)| *written == name) {
            return Err(locked());
        }
        Ok(self.database.schedules.rows().get(&name).cloned())
    }

    fn put(&mut self) -> Answer {
        let old = match self.any() {
            Ok(old) => old,
            Err(locked) => return locked,
        };
        let was = old.as_ref().is_some_and(|old| !old.removed);
        let row = ScheduleRow { edited: old.is_some(), ..self.defined(old.as_ref()) };
        self.write(row);
        Answer { writes: true, ..Answer::row(vec![Value::Bool(was), Value::Null(Kind::Text)]) }
    }

    fn declare(&mut self) -> Answer {
        let (code, wins) = (self.parameters.text(20), self.parameters.bool(21));
        let answer = |word: &str| Answer::row(vec![Value::Text(word.to_owned()), Value::Int8(0)]);
        // A row that stays as it is is not locked.
        if let Some(old) = self.database.schedules.rows().get(&self.name()) {
            let is_its = wins || old.declared && !old.edited;
            let is_other = old.code != code || old.edited || !old.declared;
            if !(is_its && is_other) {
                let is_kept = old.edited || !old.declared;
                return answer(if is_kept { "kept" } else { "unchanged" });
            }
        }
        let old = match self.any() {
            Ok(old) => old,
            Err(locked) => return locked,
        };
        let row = self.defined(old.as_ref());
        self.write(ScheduleRow { code, declared: true, edited: false, ..row });
        Answer { writes: true, ..answer("declared") }
    }

    fn pause(&mut self) -> Answer {
        let pauses = self.parameters.bool(2);
        let row = match self.found() {
            Ok(Some(row)) => row,
            Ok(None) => return Answer::default(),
            Err(locked) => return locked,
        };
        let now = self.database.now;
        let resumes = row.paused && !pauses;
        let keeps = self.database.has(Fault::ResumeFromWhereItWas);
        let revision = self.revision(row.revision);
        let next_at = if resumes { Some(now) } else { row.next_at };
        let row = ScheduleRow {
            paused: pauses,
            tick: if resumes && !keeps { now.max(row.tick) } else { row.tick },
            next_at: next_at.filter(|_| !pauses),
            revision,
            ..row
        };
        self.write(row);
        Answer { writes: true, ..Answer::row(vec![text_or_null(None)]) }
    }

    fn remove(&mut self) -> Answer {
        let row = match self.found() {
            Ok(Some(row)) => row,
            Ok(None) => return Answer::default(),
            Err(locked) => return locked,
        };
        if row.declared {
            let revision = self.revision(row.revision);
            let hidden = ScheduleRow { removed: true, edited: true, paused: false, ..row };
            self.write(ScheduleRow { next_at: None, revision, ..hidden });
        } else {
            let name = self.name();
            self.database.schedules.delete(self.transaction, name);
        }
        Answer { writes: true, ..Answer::row(vec![text_or_null(None)]) }
    }
}

impl Database {
    /// Adds a schedule that was settled some time ago, as if no machine had run since.
    pub(super) fn insert_schedule(&mut self, transaction: Transaction, drawn: &Drawn) {
        self.last_claim += 1;
        let row = ScheduleRow {
            period: drawn.period as i64 * 1000,
            jitter: drawn.jitter as i64 * 1000,
            kind: "rowed".to_owned(),
            payload: "{}".to_owned(),
            max_attempts: 3,
            catch_up: drawn.catch_up.to_owned(),
            window: drawn.window as i64 * 1000,
            overlap: drawn.overlap.to_owned(),
            most: drawn.most as i32,
            revision: self.last_claim,
            tick: self.now - drawn.ago as i64 * 1000,
            next_at: Some(self.now),
            ..ScheduleRow::default()
        };
        self.schedules.write(transaction, drawn.name.to_owned(), row);
    }

    /// Notes what a transaction makes of schedules when it commits.
    pub(super) fn note_changes(&mut self, transaction: Transaction) {
        for (name, new) in self.schedules.changed_by(transaction) {
            let its = |row: &JobRow| row.schedule.as_ref() == Some(&name);
            let known = self.jobs.rows();
            let enqueued = self.jobs.changed_by(transaction);
            let is_new = |(id, row): &(i64, Option<JobRow>)| {
                !known.contains_key(id) && row.as_ref().is_some_and(its)
            };
            let ticks: Vec<_> = enqueued.iter().filter(|it| is_new(it)).collect();
            let ticks =
                ticks.iter().map(|(_, row)| row.as_ref().and_then(|row| row.tick)).collect();
            let of = |id: &i64| enqueued.iter().find(|(changed, _)| changed == id);
            let after = known
                .iter()
                .map(|(id, row)| of(id).map_or(Some(row.clone()), |(_, row)| row.clone()));
            let new_ones = enqueued.iter().filter(|it| is_new(it)).map(|(_, row)| row.clone());
            let after: Vec<_> = after.chain(new_ones).flatten().filter(its).collect();
            let change = Change {
                old: self.schedules.rows().get(&name).cloned(),
                new,
                ticks,
                waiting: after.iter().filter(|row| row.waits()).count(),
                running: after.iter().filter(|row| row.claim.is_some() && !row.cancelled).count(),
                at: self.now,
                name: name.clone(),
            };
            self.changes.push(change);
        }
    }
}
