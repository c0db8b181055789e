//! The statements that claim jobs of a kind with a limit: its lock, turns and buckets.
//!
//! They are those of `postgres/limiting.rs`, step by step: the lock of the kind, which a claim has until it is committed, and the jobs that
//! it counts; the room that there is, the jobs that are picked, the buckets that are locked, and what is spent. Where a server waits this does not.
//! A turn that another claim has and has not committed is refused at once, as if that had been committed; and a bucket
//! that another claim has written is one that is skipped.

use std::collections::BTreeSet;

use super::{
    database::{Answer, Database, Moment},
    fault::Fault,
    job_rows::{JobRow, JobStatement, MINUTE},
    table::Transaction,
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
    /// How many of the kind may run at once, and how many of each limit key.
    at_once: Option<i32>,
    key_at_once: Option<i32>,
    /// Which claims stood at the last count of the worker's, up to which claim, and in which session.
    stood: Vec<i64>,
    up_to: i64,
    session: Option<String>,
    bucket: Bucket,
    key_bucket: Bucket,
    /// The jobs that are left out.
    left_out: Vec<i64>,
    /// The keys and places that a claim of jobs without an ordering key is sent with; `None` for a claim of ordering keys.
    turns: Option<AskedTurns>,
}

/// What a claim asks of jobs without an ordering key.
struct AskedTurns {
    /// The limit keys that the machine knows, the empty one among them.
    behind: Vec<Behind>,
    /// It goes from key to key through all jobs that are due.
    is_whole: bool,
    /// How many keys of all it says at most.
    told_at_most: usize,
    /// The keys of jobs that became due within this time, by priority.
    arrived: Vec<(String, i16)>,
}

/// Behind which job of a limit key and a priority a claim begins.
#[derive(Clone)]
struct Behind {
    key: String,
    priority: i16,
    last: (Moment, i64),
}

/// A limit key of which a job can begin.
struct Turn {
    priority: i16,
    key: String,
    /// How many jobs of it may begin.
    rest: Option<i64>,
    /// Its jobs that can begin.
    ids: Vec<i64>,
}

/// What a claim says of limit keys.
struct SaidKeys {
    emptied: Vec<String>,
    found: Vec<String>,
}

/// The lock of a kind.
pub(super) struct KindLock {
    pub(super) transaction: Transaction,
    kind: String,
    is_shared: bool,
}

/// What a claim has come to at the lock of its kind.
#[derive(Default)]
struct Gate {
    is_open: bool,
    is_shared: bool,
    /// The claims that stand, with their limit keys, if it has counted.
    standing: Vec<(i64, String)>,
    /// The last claim then.
    last: Option<i64>,
    /// How many jobs may be claimed.
    room: usize,
    may_claim: bool,
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
    fn read(parameters: &Parameters) -> Self {
        let bucket =
            |number| parameters.int8_or_null(number).zip(parameters.int8_or_null(number + 1));
        Self {
            name: parameters.text(1),
            worker: parameters.text(2),
            most: parameters.int8(3) as usize,
            last: parameters.text(4),
            at_once: parameters.int4_or_null(5),
            key_at_once: parameters.int4_or_null(7),
            stood: parameters.int8s(6),
            up_to: parameters.int8(12),
            session: parameters.text_or_null(13),
            bucket: bucket(8),
            key_bucket: bucket(10),
            left_out: Vec::new(),
            turns: None,
        }
    }

    fn has_window(&self) -> bool {
        self.bucket.is_some() || self.key_bucket.is_some()
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

impl AskedTurns {
    /// Returns the priorities, in their order.
    fn levels(&self) -> BTreeSet<i16> {
        self.behind.iter().map(|behind| behind.priority).collect()
    }

    fn behind(&self, key: &str, priority: i16) -> Option<&Behind> {
        self.behind.iter().find(|it| it.key == key && it.priority == priority)
    }

    /// Returns the keys that the claim knows without going through all jobs that are due.
    fn known(&self) -> Vec<Behind> {
        let asked = self.behind.iter().filter(|it| it.key.is_empty() || !self.is_whole).cloned();
        let new = self.arrived.iter().filter(|(key, level)| self.behind(key, *level).is_none());
        let new = new.map(|(key, priority)| Behind {
            key: key.clone(),
            priority: *priority,
            last: (Moment::MIN, 0),
        });
        asked.chain(new).collect()
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
        let asked = Asked {
            turns: Some(self.asked_turns()),
            left_out: self.parameters.int8s(22),
            ..Asked::read(self.parameters)
        };
        let gate = self.gate(&asked);
        let turns = self.turns(&asked, &gate);
        let said = self.said_keys(&asked, &gate, &turns);
        let picked = in_turn(&gate, turns);
        self.claim_picked(&asked, &gate, &picked, said)
    }

    /// `CLAIM_FIRST_LIMITED`
    pub(super) fn claim_first_limited(&mut self) -> Answer {
        let left_out = self.parameters.int8s(14);
        let asked = Asked { left_out, ..Asked::read(self.parameters) };
        let gate = self.gate(&asked);
        let picked = self.first_of_keys(&asked, &gate);
        self.claim_picked(&asked, &gate, &picked, None)
    }

    fn asked_turns(&self) -> AskedTurns {
        let keys = self.parameters.texts(14).into_iter().flatten();
        let places = keys.zip(self.parameters.int4s(15)).zip(self.frontiers(16));
        let behind = places
            .map(|((key, priority), last)| Behind { key, priority: priority as i16, last })
            .collect();
        let is_whole = self.parameters.bool(19);
        let told_at_most = self.parameters.int8(20) as usize;
        let mut turns = AskedTurns { behind, is_whole, told_at_most, arrived: Vec::new() };
        if !is_whole {
            let levels = turns.levels().into_iter();
            turns.arrived = levels.flat_map(|level| self.arrived(level)).collect();
        }
        turns
    }

    /// Returns the limit keys of a priority whose jobs have become due a short while ago.
    fn arrived(&self, priority: i16) -> BTreeSet<(String, i16)> {
        let (name, now) = (self.parameters.text(1), self.database.now);
        let since = now - self.parameters.span(21);
        let jobs = self.database.of_kind(&name).map(|(_, row)| row);
        let mut new: Vec<_> = jobs
            .filter(|row| row.priority == priority && !row.limit_key.is_empty())
            .filter(|row| row.waits() && row.ordering_key.is_none())
            .filter(|row| row.run_at > since && row.run_at <= now)
            .collect();
        new.sort_by_key(|row| row.run_at);
        new.into_iter().take(1000).map(|row| (row.limit_key.clone(), priority)).collect()
    }

    /// Returns what the claim comes to at the lock of its kind: it shares the lock if the limit cannot bind, and counts otherwise.
    fn gate(&self, asked: &Asked) -> Gate {
        let locks = || self.database.kind_locks.iter().filter(|lock| lock.kind == asked.name);
        let is_shared = self.may_share(asked);
        let blind = self.database.has(Fault::CountWithoutTheLock);
        let is_open = locks().all(|lock| is_shared && lock.is_shared) || blind;
        let mut gate = Gate { is_open, is_shared, ..Gate::default() };
        if is_open && !is_shared {
            gate.last = Some(self.database.last_claim);
            gate.standing = self.standing_claims(asked);
        }
        gate.may_claim = is_open && self.may_claim(&asked.worker);
        if gate.may_claim {
            let left = |most: i32| (most as usize).saturating_sub(gate.standing.len());
            let tokens = self.database.found(asked.kind_bucket().as_ref()).tokens;
            let all = [Some(asked.most), asked.at_once.map(left), tokens.map(|it| it as usize)];
            gate.room = all.into_iter().flatten().min().unwrap_or(0);
        }
        gate
    }

    /// Whether the machines have no more slots than the limits allow.
    fn may_share(&self, asked: &Asked) -> bool {
        let least = asked.at_once.into_iter().chain(asked.key_at_once).min();
        let slots: i64 = self.database.workers.rows().values().map(|row| row.slots).sum();
        let is_known = !self.database.workers.rows().is_empty();
        let fits = |least: i32| is_known && slots <= i64::from(least);
        let blind = self.database.has(Fault::ShareWithoutLookingAtTheSlots);
        !asked.has_window() && least.is_some_and(|least| fits(least) || blind)
    }

    /// Returns the claims of the kind that stand, with their limit keys: those that stood at the last count, and those after it.
    fn standing_claims(&self, asked: &Asked) -> Vec<(i64, String)> {
        let trusts = self.database.has(Fault::TrustTheCountOfAnotherServer);
        let is_of_this = asked.session == Some(self.database.session()) || trusts;
        let (known, up_to) =
            if is_of_this { (&asked.stood[..], asked.up_to) } else { (&[][..], 0) };
        let forgets = self.database.has(Fault::ForgetWhatStood);
        let ended_too = self.database.has(Fault::CountAClaimThatHasEnded);
        let claims = self.database.of_kind(&asked.name).filter_map(|(_, row)| {
            let claim = row.limit_claim.filter(|_| row.claim == row.limit_claim || ended_too)?;
            let was_there = known.contains(&claim) && !forgets;
            (claim > up_to || was_there).then(|| (claim, row.limit_key.clone()))
        });
        claims.collect()
    }

    /// Returns how many jobs of a limit key may begin, if there is a limit.
    fn rest(&self, asked: &Asked, gate: &Gate, limit_key: &str) -> Option<i64> {
        let running = gate.standing.iter().filter(|(_, key)| key == limit_key).count() as i64;
        let left = asked.key_at_once.map(|most| i64::from(most) - running);
        let tokens = self.database.found(asked.bucket_of(limit_key).as_ref()).tokens;
        left.into_iter().chain(tokens).min()
    }

    /// Returns whether a job waits for a claim without an ordering key, is due and lies behind this one.
    fn is_behind(&self, asked: &Asked, behind: &Behind, id: i64, row: &JobRow) -> bool {
        row.name == asked.name
            && row.waits()
            && row.ordering_key.is_none()
            && (row.priority, &row.limit_key) == (behind.priority, &behind.key)
            && row.run_at <= self.database.now
            && (row.run_at, id) > behind.last
    }

    /// Returns the limit keys of jobs without an ordering key that are marked as due.
    fn due_keys(&self, asked: &Asked, priority: i16) -> BTreeSet<String> {
        let rows = self.database.of_kind(&asked.name).map(|(_, row)| row);
        rows.filter(|row| row.priority == priority && row.ordering_key.is_none())
            .filter(|row| row.waits() && row.due && !row.limit_key.is_empty())
            .map(|row| row.limit_key.clone())
            .collect()
    }

    /// Returns the limit keys of a priority in the order of their turns, from the last one that was served on and round.
    fn in_order(&self, asked: &Asked, turns: &AskedTurns, priority: i16) -> Vec<String> {
        let mut keys = if turns.is_whole {
            let mut keys = self.due_keys(asked, priority);
            keys.insert(String::new());
            keys
        } else {
            let known = turns.known().into_iter().filter(|it| it.priority == priority);
            known.map(|it| it.key).collect()
        };
        let first = keys.iter().find(|key| **key > asked.last).cloned();
        let behind = first.map_or_else(BTreeSet::new, |first| keys.split_off(&first));
        behind.into_iter().chain(keys).collect()
    }

    /// Returns the limit keys of which a job can begin, in the order of their turns.
    fn turns(&self, asked: &Asked, gate: &Gate) -> Vec<Turn> {
        let Some(turns) = &asked.turns else { return Vec::new() };
        let levels = turns.levels().into_iter();
        let keys = levels.flat_map(|priority| {
            let keys = self.in_order(asked, turns, priority).into_iter();
            keys.map(move |key| (priority, key))
        });
        let can_begin = keys.filter_map(|(priority, key)| {
            let rest = self.rest(asked, gate, &key);
            let behind = turns.behind(&key, priority).cloned().unwrap_or(Behind {
                key: key.clone(),
                priority,
                last: (Moment::MIN, 0),
            });
            let mut ids = self.unlocked(|id, row| {
                self.is_behind(asked, &behind, id, row) && !asked.left_out.contains(&id)
            });
            ids.sort_by_key(|id| (self.database.jobs.rows()[id].run_at, *id));
            let is_such = rest.is_none_or(|rest| rest > 0) && !ids.is_empty();
            is_such.then_some(Turn { priority, key, rest, ids })
        });
        can_begin.take(gate.room).collect()
    }

    /// Returns the limit keys of which no job is left that might have been claimed, and those that the claim has found.
    fn said_keys(&self, asked: &Asked, gate: &Gate, can_begin: &[Turn]) -> Option<SaidKeys> {
        let turns = asked.turns.as_ref()?;
        let known: BTreeSet<_> = turns.known().into_iter().map(|it| it.key).collect();
        let has_rest = |key: &str| self.rest(asked, gate, key).is_none_or(|rest| rest > 0);
        let knows_emptied = asked.key_bucket.is_none() && can_begin.len() < gate.room;
        let emptied = known.into_iter().filter(|key| {
            knows_emptied && can_begin.iter().all(|turn| turn.key != *key) && has_rest(key)
        });
        let levels = [-1, 0, 1].into_iter();
        let all = levels.flat_map(|level| self.due_keys(asked, level)).take(3 * turns.told_at_most);
        let arrived = turns.arrived.iter().map(|(key, _)| key.clone());
        let found: BTreeSet<_> = all.chain(arrived).collect();
        Some(SaidKeys { emptied: emptied.collect(), found: found.into_iter().collect() })
    }

    fn first_of_keys(&self, asked: &Asked, gate: &Gate) -> Vec<Picked> {
        let now = self.database.now;
        let keys = self.keys(std::slice::from_ref(&asked.name), &asked.last);
        let mut picked: Vec<Picked> = Vec::new();
        let firsts = keys.into_iter().filter_map(|(key, name)| {
            let rows = self.database.jobs.rows().iter();
            let of_key = || rows.clone().filter(|(_, row)| row.ordering_key.as_ref() == Some(&key));
            let first = of_key().filter(|(_, row)| row.waits());
            let (id, row) = first.min_by_key(|(id, row)| (row.run_at, **id))?;
            let runs = of_key().any(|(_, row)| row.claim.is_some());
            let has_room = self.rest(asked, gate, &row.limit_key).is_none_or(|rest| rest > 0);
            let may = row.name == name && row.run_at <= now && !runs && has_room;
            let is_locked = self.database.jobs.unlocked(id).is_none();
            let may = may && !is_locked && !asked.left_out.contains(id);
            may.then(|| (*id, row.limit_key.clone()))
        });
        for (id, limit_key) in firsts.take(gate.room).collect::<Vec<_>>() {
            let before = picked.iter().filter(|it| it.limit_key == limit_key).count();
            picked.push(Picked { id, limit_key, turn: 1, nth: before as i64 + 1 });
        }
        picked.sort_by_key(|it| it.nth);
        picked
    }

    /// Gives the jobs that were picked a claim and a token each, as far as there is room.
    fn claim_picked(
        &mut self,
        asked: &Asked,
        gate: &Gate,
        picked: &[Picked],
        said_keys: Option<SaidKeys>,
    ) -> Answer {
        let kind = self.database.locked(asked.kind_bucket().as_ref());
        let most = gate.room.min(kind.tokens.map_or(gate.room, |tokens| tokens as usize));
        let has_room = |it: &&Picked| {
            let rest = self.rest(asked, gate, &it.limit_key);
            let tokens = self.database.locked(asked.bucket_of(&it.limit_key).as_ref()).tokens;
            rest.into_iter().chain(tokens).all(|most| it.nth <= most)
        };
        let placed: Vec<_> = picked.iter().filter(has_room).take(most).collect();
        if placed.iter().any(|it| self.is_turn_taken(it)) {
            return Answer { error: Some("23505"), ..Answer::default() };
        }
        let keys: Vec<_> = placed.iter().map(|it| it.limit_key.as_str()).collect();
        self.spend(asked, kind, &keys);
        let is_counted = asked.at_once.or(asked.key_at_once).is_some();
        let mut rows = Vec::new();
        for it in placed {
            let row = self.claim_one(it.id, &asked.worker);
            let limit_claim = row.claim.filter(|_| is_counted);
            let row = JobRow { limit_claim, ..row };
            self.database.jobs.write(self.transaction, it.id, row.clone());
            rows.push(answered(it, row));
        }
        let writes = !rows.is_empty();
        let has_more = writes && (rows.len() < gate.room || asked.has_window());
        let wait = self.wait(asked, gate, !picked.is_empty(), writes);
        rows.push(said(gate, self.database.session(), wait, has_more, said_keys));
        if writes {
            let (transaction, kind, is_shared) =
                (self.transaction, asked.name.clone(), gate.is_shared);
            self.database.kind_locks.push(KindLock { transaction, kind, is_shared });
        }
        Answer { writes, rows, ..Answer::default() }
    }

    /// Whether a claim that is not committed has the turn of the job's ordering key.
    fn is_turn_taken(&self, it: &Picked) -> bool {
        let ordering_key = &self.database.jobs.rows()[&it.id].ordering_key;
        let mut written = self.database.jobs.uncommitted().filter_map(|(_, row)| row);
        written.any(|row| {
            ordering_key.is_some() && row.ordering_key == *ordering_key && row.claim.is_some()
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

    /// Returns after how many microseconds to look again.
    fn wait(&self, asked: &Asked, gate: &Gate, is_picked: bool, is_claimed: bool) -> Option<i64> {
        if !gate.is_open {
            return Some(2_000);
        }
        let is_silent = self.database.has(Fault::SayNothingOfTheNextToken);
        if !asked.has_window() || is_claimed || !gate.may_claim || is_silent {
            return None;
        }
        if is_picked { Some(5_000) } else { self.next_token(asked) }
    }

    /// Whether a job waits for a token of the kind's bucket, or of the bucket of a key.
    fn is_waited_for(&self, asked: &Asked, of_key: Option<&str>) -> bool {
        let jobs = || self.database.of_kind(&asked.name).filter(|(_, row)| row.waits());
        let Some(turns) = &asked.turns else {
            return jobs().any(|(_, row)| row.ordering_key.is_some() && row.due);
        };
        let is_such = |key: &str| of_key.is_none_or(|it| it == key);
        let is_waiting = turns.known().iter().any(|behind| {
            is_such(&behind.key) && jobs().any(|(id, row)| self.is_behind(asked, behind, id, row))
        });
        let is_due = |(_, row): (i64, &JobRow)| {
            let is_keyed = !row.limit_key.is_empty() && row.ordering_key.is_none();
            is_keyed && row.due && is_such(&row.limit_key)
        };
        is_waiting || turns.is_whole && jobs().any(is_due)
    }

    /// Returns after how many microseconds there is a token for a job that waits.
    fn next_token(&self, asked: &Asked) -> Option<i64> {
        let now = self.database.now;
        let mut spans = Vec::new();
        for (bucket, tat) in self.database.buckets.rows() {
            let is_its = asked.kind_bucket().as_ref() == Some(bucket)
                || asked.bucket_of(&bucket.2).as_ref() == Some(bucket);
            let span =
                if bucket.1 { tat - now } else { ahead(Some(*tat), now, (bucket.3, bucket.4)) };
            let span = span - (bucket.3 - 1) * bucket.4;
            let of_key = bucket.1.then_some(bucket.2.as_str());
            if is_its && span > 0 && self.is_waited_for(asked, of_key) {
                spans.push(span);
            }
        }
        spans.into_iter().min()
    }
}

/// Shares the room among the limit keys of the first priority, and returns their jobs.
fn in_turn(gate: &Gate, mut turns: Vec<Turn>) -> Vec<Picked> {
    let first = turns.iter().map(|turn| turn.priority).min();
    turns.retain(|turn| Some(turn.priority) == first);
    let served = turns.len();
    let mut picked = Vec::new();
    for (turn, Turn { key, rest, ids, .. }) in (1..).zip(turns) {
        let share = (gate.room - turn) / served + 1;
        let most = share.min(rest.map_or(share, |rest| rest as usize));
        picked.extend((1..).zip(ids.into_iter().take(most)).map(|(nth, id)| Picked {
            id,
            limit_key: key.clone(),
            turn: turn as i64,
            nth,
        }));
    }
    picked.sort_by_key(|it| (it.nth, it.turn));
    picked
}

/// Returns the row that is no job.
fn said(
    gate: &Gate,
    session: String,
    wait: Option<i64>,
    has_more: bool,
    keys: Option<SaidKeys>,
) -> Vec<Value> {
    const NO_JOB: [Kind; 14] = [
        Kind::Int8,
        Kind::Int8,
        Kind::Text,
        Kind::Text,
        Kind::Int4,
        Kind::Int4,
        Kind::Text,
        Kind::Text,
        Kind::Time,
        Kind::Text,
        Kind::Text,
        Kind::Int8,
        Kind::Int4,
        Kind::Int8,
    ];
    let number = |value: Option<i64>| value.map_or(Value::Null(Kind::Int8), Value::Int8);
    let (emptied, found) = keys.map(|keys| (keys.emptied, keys.found)).unzip();
    let mut row: Vec<_> = NO_JOB.into_iter().map(Value::Null).collect();
    row.extend([
        number(wait),
        Value::Int8s(gate.standing.iter().map(|(claim, _)| *claim).collect()),
        number(gate.last),
        Value::Text(session),
        emptied.map_or(Value::Null(Kind::Texts), Value::Texts),
        Value::Bool(has_more),
        found.map_or(Value::Null(Kind::Texts), Value::Texts),
    ]);
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
        Value::Int4(row.priority.into()),
        Value::Int8(row.run_at),
        Value::Null(Kind::Int8),
        Value::Null(Kind::Int8s),
        Value::Null(Kind::Int8),
        Value::Null(Kind::Text),
        Value::Null(Kind::Texts),
        Value::Bool(false),
        Value::Null(Kind::Texts),
    ]
}
