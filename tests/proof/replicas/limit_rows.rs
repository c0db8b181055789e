//! The statements that claim jobs of a kind with a limit: slots, turns and buckets.
//!
//! They are those of `postgres/limiting.rs`, step by step: the room that there is, the jobs that are picked, the buckets that are
//! locked, the slots, and what is spent. Where a server waits this does not. A slot or a turn that another claim has and has
//! not committed is refused at once, as if that had been committed; and a bucket that another claim has written is one
//! that is skipped.
//!
//! The search for slots begins where the number of the next claim says, and not at a number of the worker's, whose name
//! is another one each time: a seed says everything.

use super::{
    database::{Answer, Database, Moment},
    fault::Fault,
    job_rows::{JobRow, JobStatement, MINUTE},
    wire::{Kind, Parameters, Value, text_or_null},
};

/// Which bucket: of a kind, of each key or not, the key, how many tokens it has, and how many microseconds apart.
pub(super) type BucketKey = (String, bool, String, i64, i64);

/// How many tokens, and how many microseconds apart.
type Bucket = Option<(i64, i64)>;

/// The parameters of a claim.
struct Asked {
    name: String,
    worker: String,
    most: usize,
    last: String,
    slots: Option<i32>,
    key_slots: Option<i32>,
    bucket: Bucket,
    key_bucket: Bucket,
    /// Only of jobs without an ordering key.
    priorities: Vec<i16>,
}

/// A job that may be claimed.
struct Picked {
    id: i64,
    limit_key: String,
    turn: i64,
    /// Which one of its limit key it is, from 1 on.
    nth: i64,
}

/// A bucket as a claim finds it.
#[derive(Clone, Copy)]
struct Found {
    ahead: Moment,
    /// `None` if there is no limit.
    tokens: Option<i64>,
}

impl Asked {
    fn read(parameters: &Parameters, priorities: Vec<i32>) -> Self {
        let bucket =
            |number| parameters.int8_or_null(number).zip(parameters.int8_or_null(number + 1));
        Self {
            name: parameters.text(1),
            worker: parameters.text(2),
            most: parameters.int8(3) as usize,
            last: parameters.text(4),
            slots: parameters.int4_or_null(5),
            key_slots: parameters.int4_or_null(7),
            bucket: bucket(8),
            key_bucket: bucket(10),
            priorities: priorities.into_iter().map(|it| it as i16).collect(),
        }
    }

    fn kind_bucket(&self) -> Option<BucketKey> {
        let (burst, gap) = self.bucket?;
        Some((self.name.clone(), false, String::new(), burst, gap))
    }

    fn bucket_of(&self, limit_key: &str) -> Option<BucketKey> {
        let (burst, gap) = self.key_bucket?;
        Some((self.name.clone(), true, limit_key.to_owned(), burst, gap))
    }
}

/// Returns by how much a bucket is ahead of the present.
fn ahead(tat: Option<Moment>, now: Moment, (burst, gap): (i64, i64)) -> Moment {
    let ahead = tat.map_or(0, |tat| tat - now);
    if ahead > burst * gap + MINUTE { (burst - 1) * gap } else { ahead.max(0) }
}

fn tokens(ahead: Moment, (burst, gap): (i64, i64)) -> i64 {
    ((burst * gap - ahead) / gap).max(0)
}

/// Returns the first of these slots that are free, the search beginning at `from`.
fn free(slots: i32, from: i64, is_taken: impl Fn(i32) -> bool) -> Vec<i32> {
    let from = (from % i64::from(slots)) as i32;
    (0..slots).map(|place| (from + place) % slots).filter(|slot| !is_taken(*slot)).collect()
}

impl JobRow {
    /// Returns the slot of the kind that its claim has.
    fn slot_held(&self) -> Option<i32> {
        self.slot.filter(|_| self.claim.is_some() && self.claim == self.slot_claim)
    }

    /// Returns the slot of its limit key that its claim has.
    fn key_slot_held(&self) -> Option<i32> {
        self.key_slot.filter(|_| self.claim.is_some() && self.claim == self.key_claim)
    }
}

impl Database {
    fn found(&self, bucket: Option<&BucketKey>) -> Found {
        let Some(key) = bucket else { return Found { ahead: 0, tokens: None } };
        let rate = (key.3, key.4);
        let ahead = ahead(self.buckets.rows().get(key).copied(), self.now, rate);
        Found { ahead, tokens: Some(tokens(ahead, rate)) }
    }

    /// As [`found`](Self::found) once the row is locked: another transaction that has it leaves no tokens.
    fn locked(&self, bucket: Option<&BucketKey>) -> Found {
        let found = self.found(bucket);
        let is_held = bucket.is_some_and(|key| self.buckets.uncommitted().any(|(it, _)| it == key));
        if is_held { Found { tokens: Some(0), ..found } } else { found }
    }

    fn of_kind<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (i64, &'a JobRow)> {
        self.jobs.rows().iter().filter(move |(_, row)| row.name == name).map(|(id, row)| (*id, row))
    }

    /// Notes the claims of the kind with limits that a transaction commits.
    pub(super) fn note_claims(&mut self, transaction: u64) {
        for (id, row) in self.jobs.changed_by(transaction) {
            let Some(row) = row.filter(|row| row.name == super::limit_ledger::METERED) else {
                continue;
            };
            let before = self.jobs.rows().get(&id).and_then(|row| row.claim);
            if row.claim.is_some() && row.claim != before {
                self.metered.push((row.limit_key, row.claimed_at));
            }
        }
    }
}

impl JobStatement<'_> {
    /// `CLAIM_TURNS`
    pub(super) fn claim_turns(&mut self) -> Answer {
        let asked = Asked::read(self.parameters, self.parameters.int4s(12));
        if !self.may_claim(&asked.worker) {
            return Answer::default();
        }
        if self.is_being_claimed(&asked.name) {
            return Answer { rows: vec![waiting_for(2_000)], ..Answer::default() };
        }
        let room = self.room(&asked);
        let picked = self.in_turn(&asked, room);
        self.claim_picked(&asked, room, &picked, false)
    }

    /// `CLAIM_FIRST_LIMITED`
    pub(super) fn claim_first_limited(&mut self) -> Answer {
        let asked = Asked::read(self.parameters, Vec::new());
        if !self.may_claim(&asked.worker) {
            return Answer::default();
        }
        if self.is_being_claimed(&asked.name) {
            return Answer { rows: vec![waiting_for(2_000)], ..Answer::default() };
        }
        let room = self.room(&asked);
        let picked = self.first_of_keys(&asked, room);
        self.claim_picked(&asked, room, &picked, true)
    }

    /// Whether a claim of this kind is not committed, and so has the lock of the kind.
    fn is_being_claimed(&self, name: &str) -> bool {
        if self.database.has(Fault::ClaimATakenSlot) {
            return false;
        }
        let jobs = &self.database.jobs;
        let mut written = jobs.uncommitted().filter_map(|(id, row)| Some((id, row?)));
        written.any(|(id, row)| {
            let before = jobs.rows().get(id).and_then(|row| row.claim);
            row.name == name && row.claim.is_some() && row.claim != before
        })
    }

    fn room(&self, asked: &Asked) -> usize {
        let slots = asked.slots.map(|slots| self.free_slots(asked, slots).len());
        let tokens = self.database.found(asked.kind_bucket().as_ref()).tokens;
        let all = [Some(asked.most), slots, tokens.map(|it| it as usize)];
        all.into_iter().flatten().min().unwrap_or(0)
    }

    fn free_slots(&self, asked: &Asked, slots: i32) -> Vec<i32> {
        let held = |slot| self.database.of_kind(&asked.name).any(|(_, row)| self.holds(row, slot));
        free(slots, self.database.last_claim, held)
    }

    fn holds(&self, row: &JobRow, slot: i32) -> bool {
        if self.database.has(Fault::ClaimATakenSlot) {
            return false;
        }
        let keeps = self.database.has(Fault::KeepTheSlotOfAClaimThatEnded);
        row.slot_held() == Some(slot) || keeps && row.slot == Some(slot)
    }

    /// Returns how many jobs of a limit key may begin, if there is a limit.
    fn rest(&self, asked: &Asked, limit_key: &str) -> Option<i64> {
        let taken = |slots: i32| {
            let held = self.database.of_kind(&asked.name).filter(|(_, row)| {
                row.limit_key == limit_key && row.key_slot_held().is_some_and(|it| it < slots)
            });
            held.count() as i64
        };
        let blind = self.database.has(Fault::ClaimATakenSlot);
        let slots =
            asked.key_slots.map(|slots| i64::from(slots) - if blind { 0 } else { taken(slots) });
        let tokens = self.database.found(asked.bucket_of(limit_key).as_ref()).tokens;
        slots.into_iter().chain(tokens).min()
    }

    /// Returns the jobs of a limit key that wait without an ordering key and are due, and that no transaction has locked.
    fn waiting(&self, asked: &Asked, priority: i16, limit_key: &str) -> Vec<i64> {
        let now = self.database.now;
        let mut ids = self.unlocked(|_, row| {
            row.name == asked.name
                && row.waits()
                && row.ordering_key.is_none()
                && (row.priority, row.limit_key.as_str()) == (priority, limit_key)
                && row.run_at <= now
        });
        ids.sort_by_key(|id| (self.database.jobs.rows()[id].run_at, *id));
        ids
    }

    /// Returns the limit keys of a priority in the order of their turns.
    fn turns(&self, asked: &Asked, priority: i16) -> Vec<String> {
        let rows = self.database.of_kind(&asked.name).map(|(_, row)| row);
        let mut keys: Vec<_> = rows
            .filter(|row| row.priority == priority && row.ordering_key.is_none())
            .filter(|row| row.waits() && row.due && !row.limit_key.is_empty())
            .map(|row| row.limit_key.clone())
            .chain([String::new()])
            .collect();
        keys.sort();
        keys.dedup();
        let after = keys.iter().position(|key| !key.is_empty() && *key > asked.last);
        keys.rotate_left(after.unwrap_or(0));
        keys
    }

    fn in_turn(&self, asked: &Asked, room: usize) -> Vec<Picked> {
        for priority in asked.priorities.iter().copied() {
            let turns = self.turns(asked, priority).into_iter().filter_map(|key| {
                let rest = self.rest(asked, &key);
                let ids = self.waiting(asked, priority, &key);
                (rest.is_none_or(|rest| rest > 0) && !ids.is_empty()).then_some((key, rest, ids))
            });
            let turns: Vec<_> = turns.take(room).collect();
            if turns.is_empty() {
                continue;
            }
            let share = room.div_ceil(turns.len());
            let mut picked = Vec::new();
            for (turn, (key, rest, ids)) in turns.into_iter().enumerate() {
                let most = share.min(rest.map_or(share, |rest| rest as usize));
                picked.extend(ids.into_iter().take(most).enumerate().map(|(nth, id)| Picked {
                    id,
                    limit_key: key.clone(),
                    turn: turn as i64 + 1,
                    nth: nth as i64 + 1,
                }));
            }
            picked.sort_by_key(|it| (it.nth, it.turn));
            return picked;
        }
        Vec::new()
    }

    fn first_of_keys(&self, asked: &Asked, room: usize) -> Vec<Picked> {
        let now = self.database.now;
        let keys = self.keys(std::slice::from_ref(&asked.name), &asked.last);
        let mut picked: Vec<Picked> = Vec::new();
        let firsts = keys.into_iter().filter_map(|(key, name)| {
            let rows = self.database.jobs.rows().iter();
            let of_key = || rows.clone().filter(|(_, row)| row.ordering_key.as_ref() == Some(&key));
            let first = of_key().filter(|(_, row)| row.waits());
            let (id, row) = first.min_by_key(|(id, row)| (row.run_at, **id))?;
            let runs = of_key().any(|(_, row)| row.claim.is_some());
            let has_room = self.rest(asked, &row.limit_key).is_none_or(|rest| rest > 0);
            let may = row.name == name && row.run_at <= now && !runs && has_room;
            may.then(|| (*id, row.limit_key.clone()))
        });
        for (id, limit_key) in firsts.take(room).collect::<Vec<_>>() {
            if self.database.jobs.unlocked(&id).is_some() {
                let before = picked.iter().filter(|it| it.limit_key == limit_key).count();
                picked.push(Picked { id, limit_key, turn: 1, nth: before as i64 + 1 });
            }
        }
        picked.sort_by_key(|it| it.nth);
        picked
    }

    /// Gives the jobs that were picked a claim, a slot and a token each, as far as there are some.
    fn claim_picked(
        &mut self,
        asked: &Asked,
        room: usize,
        picked: &[Picked],
        is_ordered: bool,
    ) -> Answer {
        let kind = self.database.locked(asked.kind_bucket().as_ref());
        let most = room.min(kind.tokens.map_or(room, |tokens| tokens as usize));
        let mut slots = asked.slots.map(|slots| self.free_slots(asked, slots).into_iter());
        let mut rows = Vec::new();
        let has_token = |it: &&Picked| {
            let tokens = self.database.locked(asked.bucket_of(&it.limit_key).as_ref()).tokens;
            tokens.is_none_or(|tokens| it.nth <= tokens)
        };
        let numbered: Vec<_> = picked.iter().filter(has_token).take(most).collect();
        let mut placed = Vec::new();
        for it in numbered {
            let slot = slots.as_mut().map(|slots| slots.next());
            let key_slot = asked.key_slots.map(|slots| self.free_key_slot(asked, slots, it));
            if slot != Some(None) && key_slot != Some(None) {
                placed.push((it, slot.flatten(), key_slot.flatten()));
            }
        }
        if placed.iter().any(|(it, slot, key_slot)| self.is_taken(asked, it, *slot, *key_slot)) {
            return Answer { error: Some("23505"), ..Answer::default() };
        }
        self.spend(
            asked,
            kind,
            &placed.iter().map(|(it, ..)| it.limit_key.as_str()).collect::<Vec<_>>(),
        );
        for (it, slot, key_slot) in placed {
            let row = self.claim_one(it.id, &asked.worker, slot, key_slot);
            rows.push(answered(it, row));
        }
        if rows.is_empty() {
            rows.extend(self.wait(asked, !picked.is_empty(), is_ordered));
            return Answer { rows, ..Answer::default() };
        }
        Answer { writes: true, rows, ..Answer::default() }
    }

    fn free_key_slot(&self, asked: &Asked, slots: i32, it: &Picked) -> Option<i32> {
        let blind = self.database.has(Fault::ClaimATakenSlot);
        let held = |slot| {
            self.database.of_kind(&asked.name).any(|(_, row)| {
                row.limit_key == it.limit_key && row.key_slot_held() == Some(slot) && !blind
            })
        };
        free(slots, self.database.last_claim, held).get(it.nth as usize - 1).copied()
    }

    /// Whether a claim that is not committed has the slot, the one of the limit key, or the turn.
    fn is_taken(
        &self,
        asked: &Asked,
        it: &Picked,
        slot: Option<i32>,
        key_slot: Option<i32>,
    ) -> bool {
        if self.database.has(Fault::ClaimATakenSlot) {
            return false;
        }
        let ordering_key = &self.database.jobs.rows()[&it.id].ordering_key;
        let mut written = self.database.jobs.uncommitted().filter_map(|(_, row)| row);
        written.any(|row| {
            let is_of_kind = row.name == asked.name;
            let has_slot = is_of_kind && slot.is_some() && row.slot_held() == slot;
            let has_key_slot = is_of_kind
                && key_slot.is_some()
                && row.limit_key == it.limit_key
                && row.key_slot_held() == key_slot;
            let has_turn =
                ordering_key.is_some() && row.ordering_key == *ordering_key && row.claim.is_some();
            has_slot || has_key_slot || has_turn
        })
    }

    fn spend(&mut self, asked: &Asked, kind: Found, keys: &[&str]) {
        if keys.is_empty() || self.database.has(Fault::ClaimWithoutSpending) {
            return;
        }
        let now = self.database.now;
        let mut of_keys: Vec<&str> = keys.to_vec();
        of_keys.sort_unstable();
        of_keys.dedup();
        for key in of_keys {
            let Some(bucket) = asked.bucket_of(key) else { continue };
            let spent = keys.iter().filter(|it| **it == key).count() as i64;
            let tat = now + self.database.found(Some(&bucket)).ahead + spent * bucket.4;
            self.database.buckets.write(self.transaction, bucket, tat);
        }
        if let Some(bucket) = asked.kind_bucket() {
            let tat = now + kind.ahead + keys.len() as i64 * bucket.4;
            self.database.buckets.write(self.transaction, bucket, tat);
        }
    }

    /// Returns the row that says when to look again, if there is one.
    fn wait(&self, asked: &Asked, is_picked: bool, is_ordered: bool) -> Option<Vec<Value>> {
        if asked.bucket.is_none() && asked.key_bucket.is_none()
            || self.database.has(Fault::SayNothingOfTheNextToken)
        {
            return None;
        }
        if is_picked {
            return Some(waiting_for(5_000));
        }
        let now = self.database.now;
        let waits = |is_such: &dyn Fn(&JobRow) -> bool| {
            self.database.of_kind(&asked.name).any(|(_, row)| {
                let is_due = if is_ordered {
                    row.ordering_key.is_some() && row.due
                } else {
                    let is_due = if row.limit_key.is_empty() { row.run_at <= now } else { row.due };
                    row.ordering_key.is_none() && is_due && is_such(row)
                };
                row.waits() && is_due
            })
        };
        let mut spans = Vec::new();
        for (bucket, tat) in self.database.buckets.rows() {
            let is_its = asked.kind_bucket().as_ref() == Some(bucket)
                || asked.bucket_of(&bucket.2).as_ref() == Some(bucket);
            let span =
                if bucket.1 { tat - now } else { ahead(Some(*tat), now, (bucket.3, bucket.4)) };
            let span = span - (bucket.3 - 1) * bucket.4;
            let is_such = |row: &JobRow| !bucket.1 || row.limit_key == bucket.2;
            if is_its && span > 0 && waits(&is_such) {
                spans.push(span);
            }
        }
        spans.into_iter().min().map(waiting_for)
    }
}

fn waiting_for(micros: i64) -> Vec<Value> {
    let mut row = vec![
        Value::Null(Kind::Int8),
        Value::Null(Kind::Int8),
        Value::Null(Kind::Text),
        Value::Null(Kind::Text),
        Value::Null(Kind::Int4),
        Value::Null(Kind::Int4),
        Value::Null(Kind::Text),
        Value::Null(Kind::Text),
        Value::Null(Kind::Time),
        Value::Null(Kind::Text),
        Value::Null(Kind::Text),
        Value::Null(Kind::Int8),
    ];
    row.push(Value::Int8(micros));
    row
}

fn answered(it: &Picked, row: JobRow) -> Vec<Value> {
    vec![
        Value::Int8(it.id),
        row.claim.map_or(Value::Null(Kind::Int8), Value::Int8),
        Value::Text(row.name),
        Value::Text(row.payload),
        Value::Int4(row.attempts),
        Value::Int4(row.max_attempts),
        Value::Null(Kind::Text),
        text_or_null(row.ordering_key.as_ref()),
        row.tick.map_or(Value::Null(Kind::Time), Value::Time),
        Value::Null(Kind::Text),
        Value::Text(it.limit_key.clone()),
        Value::Int8(it.turn),
        Value::Null(Kind::Int8),
    ]
}
