//! The statements of the queue that its worker, its heartbeat and its schedules ask.

use super::{
    database::{Answer, Claim, Database, Moment, Statement},
    fault::Fault,
    table::Transaction,
    wire::{Kind, Parameters, Value, text_or_null},
};
use crate::postgres::{Schema, claiming, limiting, statements};

/// A job.
#[derive(Clone, Debug, Default)]
pub(super) struct JobRow {
    pub(super) name: String,
    pub(super) payload: String,
    pub(super) ordering_key: Option<String>,
    pub(super) run_at: Moment,
    pub(super) due: bool,
    pub(super) attempts: i32,
    pub(super) max_attempts: i32,
    pub(super) claim: Option<i64>,
    pub(super) worker: Option<String>,
    pub(super) claimed_at: Moment,
    pub(super) last_error: Option<String>,
    pub(super) retired: bool,
    pub(super) cancelled: bool,
    pub(super) untold: bool,
    /// The schedule whose tick has enqueued it, and that tick, if it is a row.
    pub(super) schedule: Option<String>,
    pub(super) tick: Option<Moment>,
    pub(super) priority: i16,
    /// Empty if it has none.
    pub(super) limit_key: String,
    /// Its last claim by a kind that may run so many at once.
    pub(super) limit_claim: Option<i64>,
}

/// A worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkerRow {
    /// The end of its lease, and how long that is.
    pub(super) until: Moment,
    pub(super) lease: i64,
    /// How many jobs it runs at once.
    pub(super) slots: i64,
}

impl JobRow {
    /// Whether it waits: it has no claim, and attempts are left.
    pub(super) fn waits(&self) -> bool {
        self.claim.is_none() && self.attempts < self.max_attempts
    }

    /// Whether another job may wait for what its claim has.
    fn is_waited_for(&self) -> bool {
        self.ordering_key.is_some() || self.limit_claim.is_some()
    }
}

type Carry = fn(&mut JobStatement<'_>) -> Answer;

/// The statements, as they are sent.
pub(super) fn statements() -> Vec<Statement> {
    let schema = Schema::default();
    let all: [(&str, Carry); 19] = [
        (claiming::CLAIM, |it| it.claim(false)),
        (claiming::CLAIM_KEYED, |it| it.claim(true)),
        (claiming::CLAIM_FIRST, |it| it.claim_first()),
        (statements::END, |it| it.end()),
        (statements::BEAT, |it| it.beat()),
        (statements::OWN, |it| it.own()),
        (statements::STANDING, |it| it.standing()),
        (statements::SWEEP, |it| it.sweep()),
        (statements::TELL, |it| it.tell()),
        (statements::TOLD, |it| it.told()),
        (statements::TICK, |it| it.tick()),
        (statements::MARK_DUE, |it| it.mark_due()),
        (statements::NEXT, |it| it.next()),
        (statements::WORKERS, |it| it.workers()),
        (statements::LEAVE, |it| it.leave()),
        (statements::FORGET, |it| it.forget()),
        (limiting::CLAIM_TURNS, |it| it.claim_turns()),
        (limiting::CLAIM_FIRST_LIMITED, |it| it.claim_first_limited()),
        (limiting::FORGET_BUCKETS, |it| it.forget_buckets()),
    ];
    let named = all.into_iter().map(|(text, carry)| -> Statement {
        let carry = move |database: &mut Database, transaction, parameters: &Parameters| {
            carry(&mut JobStatement { database, transaction, parameters })
        };
        (schema.name_in(text), Box::new(carry))
    });
    named.collect()
}

pub(super) struct JobStatement<'a> {
    pub(super) database: &'a mut Database,
    pub(super) transaction: Transaction,
    pub(super) parameters: &'a Parameters,
}

impl JobStatement<'_> {
    /// Returns the ids of the rows that are such, and that no transaction has locked.
    pub(super) fn unlocked(&self, is_such: impl Fn(i64, &JobRow) -> bool) -> Vec<i64> {
        let jobs = &self.database.jobs;
        let all = jobs.rows().iter().filter(|(id, row)| is_such(**id, row));
        all.map(|(id, _)| *id).filter(|id| jobs.unlocked(id).is_some()).collect()
    }

    fn change(&mut self, id: i64, change: impl FnOnce(&mut JobRow)) -> JobRow {
        let mut row = self.database.jobs.rows()[&id].clone();
        change(&mut row);
        self.database.jobs.write(self.transaction, id, row.clone());
        row
    }

    /// Whether a worker has a row, and is none of the dead ones that these parameters name.
    fn is_alive(&self, worker: &str, workers: usize, untils: usize) -> bool {
        let dead = self.parameters.texts(workers).into_iter().zip(self.parameters.int8s(untils));
        let dead: Vec<_> = dead.collect();
        let row = self.database.workers.rows().get(worker);
        row.is_some_and(|row| !dead.contains(&(Some(worker.to_owned()), row.until)))
    }

    fn workers(&mut self) -> Answer {
        let row = |(id, row): (&String, &WorkerRow)| {
            vec![Value::Text(id.clone()), Value::Time(row.until), Value::Int8(row.lease)]
        };
        let rows = self.database.workers.rows().iter().map(row).collect();
        Answer { rows, ..Answer::default() }
    }

    pub(super) fn may_claim(&self, worker: &str) -> bool {
        let row = self.database.workers.rows().get(worker);
        self.database.has(Fault::ClaimWithoutALease)
            || row.is_some_and(|row| row.until > self.database.now)
    }

    /// Claims a job.
    pub(super) fn claim_one(&mut self, id: i64, worker: &str) -> JobRow {
        let now = self.database.now;
        self.database.last_claim += 1;
        let claim = self.database.last_claim;
        let row = self.change(id, |row| {
            row.claim = Some(claim);
            row.worker = Some(worker.to_owned());
            row.claimed_at = now;
            row.attempts += 1;
        });
        let until = self.database.workers.rows().get(worker).map_or(now, |row| row.until);
        let (worker, attempt, left) = (worker.to_owned(), row.attempts, until - now);
        self.database.claimed.push(Claim { id, claim, worker, attempt, left });
        row
    }

    /// Claims these jobs.
    fn claimed(&mut self, ids: &[i64], worker: &str) -> Vec<Vec<Value>> {
        let mut rows = Vec::new();
        for &id in ids {
            let row = self.claim_one(id, worker);
            let claim = row.claim.unwrap_or_default();
            rows.push(vec![
                Value::Int8(id),
                Value::Int8(claim),
                Value::Text(row.name),
                Value::Text(row.payload),
                Value::Int4(row.attempts),
                Value::Int4(row.max_attempts),
                Value::Null(Kind::Text),
                text_or_null(row.ordering_key.as_ref()),
                row.tick.map_or(Value::Null(Kind::Time), Value::Time),
                Value::Null(Kind::Text),
            ]);
        }
        rows
    }

    /// Returns the priorities of these kinds' jobs other than the usual one.
    fn levels(&self) -> Vec<i64> {
        let names: Vec<String> = self.parameters.texts(1).into_iter().flatten().collect();
        let rows = self.database.jobs.rows().values();
        let is_meant =
            |row: &&JobRow| row.ordering_key.is_none() && row.waits() && names.contains(&row.name);
        let mut levels: Vec<_> = rows.filter(is_meant).map(|row| i64::from(row.priority)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.retain(|level| *level != 0);
        levels
    }

    /// Returns behind which place among the jobs of a kind and a priority the claim begins, by this parameter and the next two.
    pub(super) fn frontiers(&self, number: usize) -> Vec<(Moment, i64)> {
        let now = self.database.now;
        let of_last = self.parameters.int8s_or_null(number);
        let ids = self.parameters.int8s(number + 1);
        let ages = self.parameters.spans(number + 2);
        let all = of_last.into_iter().zip(ages).zip(ids);
        let frontier = |((last, age), id): ((Option<i64>, Option<i64>), i64)| {
            let last = last.unwrap_or(Moment::MIN).max(age.map_or(Moment::MIN, |age| now - age));
            (last.min(now - 1_000_000), id)
        };
        all.map(frontier).collect()
    }

    fn claim(&mut self, is_keyed: bool) -> Answer {
        let names: Vec<String> = self.parameters.texts(1).into_iter().flatten().collect();
        let (worker, most) = (self.parameters.text(2), self.parameters.int8(3) as usize);
        let now = self.database.now;
        let early = self.database.has(Fault::ClaimWithoutLookingAtTheClock);
        let again = self.database.has(Fault::ClaimWhatIsClaimed);
        let mut picked = Vec::new();
        let levels = names.iter().zip(self.parameters.int4s(4)).zip(self.frontiers(5));
        for (place, ((name, priority), frontier)) in (1..).zip(levels) {
            let mut of_name = self.unlocked(|id, row| {
                row.ordering_key.is_none()
                    && row.limit_key.is_empty() != is_keyed
                    && (row.waits() || again && row.attempts < row.max_attempts)
                    && row.name == *name
                    && i32::from(row.priority) == priority
                    && (row.run_at <= now || early)
                    && (row.run_at, id) > frontier
            });
            of_name.sort_by_key(|id| (self.database.jobs.rows()[id].run_at, *id));
            of_name.truncate(most);
            picked.extend(of_name.into_iter().map(|id| (place, id)));
        }
        picked.truncate(most);
        if !self.may_claim(&worker) {
            picked.clear();
        }
        let moments: Vec<_> =
            picked.iter().map(|(_, id)| self.database.jobs.rows()[id].run_at).collect();
        let ids: Vec<_> = picked.iter().map(|(_, id)| *id).collect();
        let mut rows = self.claimed(&ids, &worker);
        for ((row, (place, _)), moment) in rows.iter_mut().zip(picked).zip(moments) {
            row.extend([Value::Int8(place), Value::Int8(moment)]);
        }
        Answer { writes: !rows.is_empty(), rows, ..Answer::default() }
    }

    /// Returns the keys that follow the last one, each with the name of a kind that has a job that is due there.
    pub(super) fn keys(&self, names: &[String], last_key: &str) -> Vec<(String, String)> {
        let mut keys: Vec<(String, String)> = Vec::new();
        for row in self.database.jobs.rows().values().filter(|row| row.due && row.waits()) {
            let Some(key) = row.ordering_key.as_ref().filter(|key| key.as_str() > last_key) else {
                continue;
            };
            let pair = (key.clone(), row.name.clone());
            if names.contains(&row.name) && !keys.contains(&pair) {
                keys.push(pair);
            }
        }
        keys.sort();
        keys
    }

    fn claim_first(&mut self) -> Answer {
        let names: Vec<String> = self.parameters.texts(1).into_iter().flatten().collect();
        let (worker, most) = (self.parameters.text(2), self.parameters.int8(3) as usize);
        let last_key = self.parameters.text(4);
        if !self.may_claim(&worker) {
            return Answer::default();
        }
        let now = self.database.now;
        let second = self.database.has(Fault::ClaimASecondOfAKey);
        let mut picked = Vec::new();
        for (key, name) in self.keys(&names, &last_key) {
            let rows = self.database.jobs.rows();
            let of_key = || rows.iter().filter(|(_, row)| row.ordering_key.as_ref() == Some(&key));
            let first = of_key().filter(|(_, row)| row.waits());
            let Some((id, row)) = first.min_by_key(|(id, row)| (row.run_at, **id)) else {
                continue;
            };
            let runs = of_key().any(|(_, row)| row.claim.is_some()) && !second;
            let may = row.name == name && row.run_at <= now && !runs;
            if may && self.database.jobs.unlocked(id).is_some() && picked.len() < most {
                picked.push(*id);
            }
        }
        // The index of ordering keys has the claims that are not committed as well.
        let is_taken = |id: &i64| {
            let key = &self.database.jobs.rows()[id].ordering_key;
            let mut written = self.database.jobs.uncommitted();
            written.any(|(_, row)| {
                row.is_some_and(|row| row.ordering_key == *key && row.claim.is_some())
            })
        };
        if !second && picked.iter().any(is_taken) {
            return Answer { error: Some("23505"), ..Answer::default() };
        }
        let rows = self.claimed(&picked, &worker);
        Answer { writes: !rows.is_empty(), rows, ..Answer::default() }
    }

    fn end(&mut self) -> Answer {
        let (ids, claims) = (self.parameters.int8s(1), self.parameters.int8s(2));
        let (words, delays) = (self.parameters.texts(3), self.parameters.spans(4));
        let errors = self.parameters.texts(5);
        let mut answer = Answer::default();
        for (place, (&id, &claim)) in ids.iter().zip(&claims).enumerate() {
            let how = words[place].as_deref().unwrap_or_default();
            let (delay, error) = (delays[place], errors[place].clone());
            let became = self.end_one(id, claim, how, delay, error, &mut answer);
            answer.rows.push(vec![
                Value::Int8(claim),
                Value::Text(became.to_owned()),
                Value::Int8(0),
            ]);
        }
        answer
    }

    fn end_one(
        &mut self,
        id: i64,
        claim: i64,
        how: &str,
        delay: Option<i64>,
        error: Option<String>,
        answer: &mut Answer,
    ) -> &'static str {
        let jobs = &self.database.jobs;
        let any = self.database.has(Fault::EndAnothersClaim);
        let is_its = |row: &&JobRow| row.claim == Some(claim) || any && row.claim.is_some();
        if jobs.rows().get(&id).filter(is_its).is_none() {
            return "lost";
        }
        let Some(row) = jobs.unlocked(&id).cloned() else { return "held" };
        let is_unknown = error.as_deref() == Some(statements::UNANSWERED);
        if how == "freed" && self.database.has(Fault::LoseARelease)
            || is_unknown && self.database.has(Fault::KeepUnknownClaims)
        {
            return "waiting";
        }
        answer.writes = true;
        answer.notifies |= row.is_waited_for() || how == "freed";
        if how == "ran" || row.retired {
            self.database.jobs.delete(self.transaction, id);
            return "gone";
        }
        let now = self.database.now;
        let discards = how == "discarded" || how == "failed" && row.attempts >= row.max_attempts;
        let silent = self.database.has(Fault::DiscardWithoutAWord);
        self.change(id, |row| {
            row.claim = None;
            row.worker = row.worker.take().filter(|_| discards);
            row.untold = discards && !silent;
            if how == "discarded" {
                row.max_attempts = row.attempts;
            }
            if matches!(how, "snoozed" | "freed") {
                row.attempts -= 1;
            }
            row.last_error = error.filter(|_| how != "freed").or(row.last_error.take());
            row.run_at = delay.map_or(row.run_at, |delay| now + delay);
            row.due &= how == "freed";
        });
        if discards { "discarded" } else { "waiting" }
    }

    fn beat(&mut self) -> Answer {
        let (worker, lease) = (self.parameters.text(1), self.parameters.span(2));
        let until = self.database.now + lease;
        let row = WorkerRow { until, lease, slots: self.parameters.int8(3) };
        self.database.workers.write(self.transaction, worker, row);
        Answer { writes: true, ..Answer::default() }
    }

    fn own(&mut self) -> Answer {
        let worker = self.parameters.text(1);
        let rows = self.database.jobs.rows().iter();
        let own = rows.filter_map(|(id, row)| {
            let claim = row.claim.filter(|_| row.worker.as_ref() == Some(&worker))?;
            Some(vec![Value::Int8(*id), Value::Int8(claim), Value::Bool(row.cancelled)])
        });
        Answer { rows: own.collect(), ..Answer::default() }
    }

    fn standing(&mut self) -> Answer {
        let (id, claim) = (self.parameters.int8(1), self.parameters.int8(2));
        let row = self.database.jobs.rows().get(&id);
        let stands = row.is_some_and(|row| row.claim == Some(claim));
        Answer { rows: stands.then(Vec::new).into_iter().collect(), ..Answer::default() }
    }

    fn sweep(&mut self) -> Answer {
        let error = self.parameters.text(1);
        let now = self.database.now;
        let living = self.database.has(Fault::SweepTheLiving);
        let is_dead =
            |row: &JobRow| living || !row.worker.as_ref().is_some_and(|it| self.is_alive(it, 2, 3));
        let mut dead = self.unlocked(|_, row| row.claim.is_some() && is_dead(row));
        if self.database.has(Fault::SweepNothing) {
            dead.clear();
        }
        let silent = self.database.has(Fault::DiscardWithoutAWord);
        let mut attempts = std::collections::BTreeMap::<String, i64>::new();
        let mut notifies = false;
        for &id in &dead {
            let row = &self.database.jobs.rows()[&id];
            *attempts.entry(row.name.clone()).or_default() += 1;
            notifies |= row.is_waited_for();
            if row.retired {
                self.database.jobs.delete(self.transaction, id);
                continue;
            }
            let error = error.clone();
            self.change(id, |row| {
                (row.claim, row.worker, row.due) = (None, None, false);
                row.last_error = Some(error);
                row.untold = row.attempts >= row.max_attempts && !silent;
                row.run_at = now + (f64::from(row.attempts.min(10)).exp() * 1e6) as i64;
            });
        }
        let rows = attempts.into_iter();
        let told = Value::Int8(notifies.into());
        let rows =
            rows.map(|(name, count)| vec![Value::Text(name), Value::Int8(count), told.clone()]);
        Answer { rows: rows.collect(), writes: !dead.is_empty(), notifies, ..Answer::default() }
    }

    fn tell(&mut self) -> Answer {
        let (worker, known) = (self.parameters.text(1), self.parameters.int8s(4));
        let mut picked = self.unlocked(|id, row| {
            let is_its = row.worker.as_ref() == Some(&worker);
            let is_dead = !row.worker.as_ref().is_some_and(|it| self.is_alive(it, 2, 3));
            row.untold
                && !row.waits()
                && row.claim.is_none()
                && !known.contains(&id)
                && (is_its || is_dead)
        });
        picked.truncate(100);
        let mut answer = Answer { writes: !picked.is_empty(), ..Answer::default() };
        for id in picked {
            let row = self.change(id, |row| row.worker = Some(worker.clone()));
            answer.rows.push(vec![
                Value::Int8(id),
                Value::Text(row.name),
                Value::Text(row.payload),
                Value::Int4(row.attempts),
                Value::Text(row.last_error.unwrap_or_default()),
            ]);
        }
        answer
    }

    fn told(&mut self) -> Answer {
        let (worker, told) = (self.parameters.text(1), self.parameters.int8s(2));
        let attempts = self.parameters.int4s(3);
        let mut answer = Answer::default();
        for (id, attempts) in told.into_iter().zip(attempts) {
            let row = self.database.jobs.rows().get(&id);
            let is_its = row.is_some_and(|row| {
                row.untold && row.attempts == attempts && row.worker.as_ref() == Some(&worker)
            });
            let is_free = self.database.jobs.unlocked(&id).is_some();
            if is_its && is_free && !self.database.has(Fault::ForgetWhatWasTold) {
                self.change(id, |row| (row.untold, row.worker) = (false, None));
                answer.writes = true;
            }
            if !is_its || is_free {
                answer.rows.push(vec![Value::Int8(id)]);
            }
        }
        answer
    }

    fn tick(&mut self) -> Answer {
        let (schedule, ticks) = (self.parameters.text(1), self.parameters.int8s(2));
        let time = self.database.now + 50_000;
        let newest = ticks.iter().copied().filter(|tick| *tick <= time).max();
        let early = ticks.iter().copied().filter(|tick| *tick > time).min();
        let early = early.map(|tick| (tick - time) as f64 / 1e6);
        let last = self.database.ticks.rows().get(&schedule).copied();
        let ahead = last.filter(|last| newest.is_some() && *last > time + MINUTE);
        let ahead = ahead.map(|last| (last - time) as f64 / 1e6);
        // It would wait for another transaction that has the row, which commits.
        let written = self.database.ticks.uncommitted().find(|(name, _)| **name == schedule);
        let last = written.map_or(last, |(_, row)| row.copied());
        let twice = self.database.has(Fault::TakeATickTwice);
        let is_next =
            |newest| last.is_none_or(|last| last < newest || last > time + MINUTE || twice);
        let taken = newest.filter(|newest| is_next(*newest));
        let (mut is_enqueued, mut notifies) = (false, false);
        if let Some(tick) = taken {
            self.database.taken.push(tick);
            self.database.ticks.write(self.transaction, schedule, tick);
            (is_enqueued, notifies) = self.send_tick(tick);
        }
        let float = |value: Option<f64>| value.map_or(Value::Null(Kind::Float8), Value::Float8);
        let row = vec![
            newest.map_or(Value::Null(Kind::Time), Value::Time),
            Value::Bool(taken.is_some()),
            Value::Bool(is_enqueued),
            float(early),
            float(ahead),
            Value::Int8(0),
        ];
        Answer { writes: taken.is_some(), notifies, ..Answer::row(row) }
    }

    /// Enqueues the job of a tick, or has the one that waits become due. Returns whether it enqueued one, and whether
    /// a worker is to look for it.
    fn send_tick(&mut self, tick: Moment) -> (bool, bool) {
        let (name, payload) = (self.parameters.text(3), self.parameters.text(4));
        let (key, max_attempts) = (self.parameters.text(5), self.parameters.int4(6));
        let now = self.database.now;
        let waiting = |row: &JobRow| {
            row.ordering_key.as_ref() == Some(&key) && row.name == name && row.waits()
        };
        let is_waiting = self.database.jobs.rows().values().any(waiting);
        let later = self.unlocked(|_, row| waiting(row) && row.run_at > now);
        for &id in &later {
            self.change(id, |row| (row.run_at, row.due) = (now, true));
        }
        if !is_waiting && !self.database.has(Fault::LoseTheJobOfATick) {
            let row = JobRow {
                name,
                payload,
                ordering_key: Some(key),
                run_at: now,
                due: true,
                max_attempts,
                tick: Some(tick),
                ..JobRow::default()
            };
            self.database.enqueue(self.transaction, row);
        }
        (!is_waiting, !is_waiting || !later.is_empty())
    }

    fn mark_due(&mut self) -> Answer {
        let now = self.database.now;
        let most = self.parameters.int8(2) as usize;
        let unlimited: Vec<_> = self.parameters.texts(4).into_iter().flatten().collect();
        let left_out = self.parameters.int8s(5);
        let age = self.parameters.span_or_null(3);
        let age = age.or_else(|| self.database.has(Fault::MarkNothingOld).then_some(0));
        let since = age.map_or(Moment::MIN, |age| now - age.max(1_000_000));
        let is_in_time = |row: &JobRow| row.waits() && (since..=now).contains(&row.run_at);
        let mut marked = self.unlocked(|id, row| {
            (row.ordering_key.is_some() || !row.limit_key.is_empty())
                && is_in_time(row)
                && !row.due
                && !left_out.contains(&id)
        });
        marked.sort_by_key(|id| (self.database.jobs.rows()[id].run_at, *id));
        marked.truncate(most);
        let mut has_keyed = false;
        for &id in &marked {
            has_keyed |= !self.change(id, |row| row.due = true).limit_key.is_empty();
        }
        let is_keyed = |row: &JobRow| {
            unlimited.contains(&row.name)
                && is_in_time(row)
                && row.ordering_key.is_none()
                && !row.limit_key.is_empty()
        };
        has_keyed |= self.database.jobs.rows().values().any(is_keyed);
        let marked_now = Value::Int8(marked.len() as i64);
        let row = vec![marked_now, Value::Bool(has_keyed), Value::Int8s(self.levels())];
        Answer { writes: !marked.is_empty(), ..Answer::row(row) }
    }

    /// A moment of a kind that is not asked for costs a look.
    fn next(&mut self) -> Answer {
        let now = self.database.now;
        let since = self.parameters.int8_or_null(2).unwrap_or(now);
        let all = self.database.jobs.rows().values();
        let coming = all.filter(|row| row.waits() && row.run_at > since).map(|row| row.run_at);
        Answer::row(vec![
            coming.min().map_or(Value::Null(Kind::Int8), Value::Int8),
            Value::Int8(now),
        ])
    }

    fn leave(&mut self) -> Answer {
        let worker = self.parameters.text(1);
        self.database.workers.delete(self.transaction, worker);
        Answer { writes: true, ..Answer::default() }
    }

    fn forget(&mut self) -> Answer {
        let hour_ago = self.database.now - 60 * MINUTE;
        let workers = self.database.workers.rows().iter();
        let old: Vec<_> = workers
            .filter(|(name, row)| row.until < hour_ago && !self.is_alive(name, 1, 2))
            .map(|(name, _)| name.clone())
            .collect();
        for worker in &old {
            self.database.workers.delete(self.transaction, worker.clone());
        }
        Answer { writes: !old.is_empty(), ..Answer::default() }
    }

    fn forget_buckets(&mut self) -> Answer {
        let old = self.database.now - MINUTE;
        let buckets = self.database.buckets.rows().iter().filter(|(_, tat)| **tat < old);
        let mut full: Vec<_> = buckets.map(|(key, _)| key.clone()).collect();
        full.retain(|key| self.database.buckets.unlocked(key).is_some());
        for key in &full {
            self.database.buckets.delete(self.transaction, key.clone());
        }
        Answer { writes: !full.is_empty(), ..Answer::default() }
    }
}

pub(super) const MINUTE: Moment = 60_000_000;

impl Database {
    /// Adds a job, as a row that a program inserts; returns its id.
    pub(super) fn enqueue(&mut self, transaction: Transaction, row: JobRow) -> i64 {
        self.last_id += 1;
        self.jobs.write(transaction, self.last_id, row);
        self.last_id
    }
}
