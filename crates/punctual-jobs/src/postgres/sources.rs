//! The sources of jobs that a worker claims from, in turn.
//!
//! The kinds without a limit are a *group*, and so is each kind with one. A group has jobs with an ordering key and jobs
//! without, which are claimed by two statements; and the kinds without a limit have jobs with a limit key, which are asked for
//! only if there are some. Of a kind with a limit each is asked until it claims no more: the limit
//! keys take turns ([`limiting`]), and one claim may leave room that another key can use. Which of all these sources is asked first changes from claim to claim, and
//! so does which name of a group comes first, and which ordering key: a backlog of one kind does not keep the others away.
//!
//! Priorities come before all that. Jobs with an ordering key have none; of the others those of one priority are asked for in
//! all sources before those of the next. Nearly always there is one priority, so the machine asks, when it looks for what has become
//! due, which there are.
//!
//! A claim that another machine has spoiled, by taking the same turn or slot, is asked again a few times. If that does not
//! help the others have taken what there was; the end of one of their runs is notified.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_postgres::{Row, error::SqlState, types::Type};

use super::{
    claiming,
    connection::{AskError, Param},
    ending::Ended,
    engine::PostgresEngine,
    frontier::{Frontier, LEVELS, Mark},
    limiting, statements,
};
use crate::job::job_limit::{JobWindow, Limits};

/// How often a claim is asked again that another machine has spoiled.
const AGAIN: u32 = 3;

pub(super) struct Sources {
    engine: Arc<PostgresEngine>,
    groups: Vec<Group>,
    /// Which jobs of which group, in the order in which they are asked.
    order: Vec<(usize, Which)>,
    /// Jobs may have become due since the last claim.
    marks: bool,
    /// The slot with which the search for free ones begins, whatever the limit.
    first_slot: i32,
    /// Jobs with a limit key may be due.
    has_keyed: bool,
    /// The priorities that there are, and the usual one.
    levels: Vec<i32>,
    /// How long it is until there is a token for a job that waits for one, or another look is to follow for another reason.
    again: Option<Duration>,
}

/// Which jobs of a group.
#[derive(Clone, Copy)]
enum Which {
    /// Those without a key, of kinds without a limit.
    Plain,
    /// Those with a limit key, of kinds without a limit.
    Keyed,
    /// Those without an ordering key, of a kind with a limit.
    Turns,
    /// Those with an ordering key.
    Ordered,
}

struct Group {
    /// The kinds, the one first that is asked for first.
    names: Vec<&'static str>,
    slots: Option<SlotCounts>,
    /// The ordering key that was served last.
    last_key: String,
    /// The limit key that was served last.
    last_turn: String,
    /// Where the claims of jobs without a limit key begin, and of those with one.
    plain: Frontier,
    keyed: Frontier,
}

/// How many slots a kind has and each of its limit keys, and their buckets.
struct SlotCounts {
    kind: Option<i32>,
    key: Option<i32>,
    kind_bucket: Bucket,
    key_bucket: Bucket,
}

/// How many tokens a bucket has, and after how many microseconds there is another.
#[derive(Clone, Copy, Default)]
struct Bucket {
    burst: Option<i64>,
    gap: Option<i64>,
}

impl SlotCounts {
    fn of(limits: Limits) -> Self {
        let count = |places: Option<usize>| places.map(|it| i32::try_from(it).unwrap_or(i32::MAX));
        let bucket = |window: Option<JobWindow>| Bucket {
            burst: window.map(|it| it.burst.into()),
            gap: window.map(|it| i64::try_from(it.gap).unwrap_or(i64::MAX)),
        };
        Self {
            kind: count(limits.of_kind()),
            key: count(limits.of_key()),
            kind_bucket: bucket(limits.window_of_kind()),
            key_bucket: bucket(limits.window_of_key()),
        }
    }
}

impl Sources {
    pub(super) fn of(engine: &Arc<PostgresEngine>) -> Self {
        let group = |names, slots| {
            let (last_key, last_turn) = (String::new(), String::new());
            let (plain, keyed) = (Frontier::new(), Frontier::new());
            Group { names, slots, last_key, last_turn, plain, keyed }
        };
        let (mut unlimited, mut groups) = (Vec::new(), Vec::new());
        for name in engine.handled_names() {
            match engine.definitions.handled(name).map(|kind| kind.limits) {
                Some(limits) if limits.is_some() => {
                    groups.push(group(vec![name], Some(SlotCounts::of(limits))));
                }
                _ => unlimited.push(name),
            }
        }
        if !unlimited.is_empty() {
            groups.push(group(unlimited, None));
        }
        let which = |group: &Group| match group.slots {
            None => &[Which::Plain, Which::Keyed, Which::Ordered][..],
            Some(_) => &[Which::Turns, Which::Ordered],
        };
        let all = groups.iter().enumerate();
        let all = all.flat_map(|(place, group)| which(group).iter().map(move |it| (place, *it)));
        let order = all.collect();
        let first_slot = first_slot(&engine.worker);
        Self {
            engine: Arc::clone(engine),
            groups,
            order,
            marks: true,
            first_slot,
            has_keyed: false,
            levels: LEVELS.to_vec(),
            again: None,
        }
    }

    pub(super) fn look_for_due(&mut self) {
        self.marks = true;
    }

    /// Whether one of these runs had a slot, which is free for the next job now.
    pub(super) fn are_freed_by(&self, ended: &[Ended]) -> bool {
        let limited = || self.groups.iter().filter(|group| group.slots.is_some());
        ended.iter().any(|ended| limited().any(|group| group.names[0] == ended.job.name))
    }

    /// Returns after how long to look again, as the last claim has found.
    pub(super) fn again(&self) -> Option<Duration> {
        self.again
    }

    /// Claims so many jobs, from one source after the other.
    pub(super) async fn claim(&mut self, free: usize) -> Result<Vec<Row>, AskError> {
        self.order.rotate_left(1);
        self.again = None;
        for group in &mut self.groups {
            group.names.rotate_left(1);
            group.plain.begin();
            group.keyed.begin();
        }
        let mut claimed = Vec::new();
        let answer = self.claim_from_all(free, &mut claimed).await;
        let is_full = claimed.len() >= free;
        let mut keyed_follows = false;
        for group in &mut self.groups {
            let (plain, keyed) = (group.plain.end(is_full), group.keyed.end(is_full));
            keyed_follows |= keyed.is_some();
            self.again = self.again.into_iter().chain(plain).chain(keyed).min();
        }
        // Of jobs with a limit key there may be some before the frontier, until a whole look has found none.
        self.has_keyed &= answer.is_err() || is_full || keyed_follows;
        match answer {
            Err(error) if claimed.is_empty() => Err(error),
            // The jobs that were claimed before have to run.
            _ => Ok(claimed),
        }
    }

    async fn claim_from_all(
        &mut self,
        free: usize,
        claimed: &mut Vec<Row>,
    ) -> Result<(), AskError> {
        self.mark_due().await?;
        self.look_at_levels().await?;
        for (group, which, priorities) in self.steps() {
            if claimed.len() == free {
                return Ok(());
            }
            match which {
                Which::Plain | Which::Keyed => {
                    self.claim_of_unlimited(group, which, &priorities, free, claimed).await?;
                }
                Which::Turns => self.claim_turns(group, &priorities, free, claimed).await?,
                Which::Ordered => self.claim_first(group, free, claimed).await?,
            }
        }
        Ok(())
    }

    /// Returns which jobs of which group are asked for, one after the other, and of which priorities. Jobs without an ordering key
    /// are asked for by priority, across all sources: within one statement if there is one source, and else each
    /// priority of all sources before the next.
    fn steps(&self) -> Vec<(usize, Which, Vec<i32>)> {
        let is_ordered = |it: &&(usize, Which)| matches!(it.1, Which::Ordered);
        let is_asked = |it: &&(usize, Which)| match it.1 {
            Which::Ordered => false,
            Which::Keyed => self.has_keyed,
            Which::Plain | Which::Turns => true,
        };
        let others: Vec<_> = self.order.iter().filter(is_asked).copied().collect();
        let ordered = self.order.iter().filter(is_ordered).map(|it| (it.0, it.1, Vec::new()));
        let others: Vec<_> = match &others[..] {
            [(group, which)] => vec![(*group, *which, LEVELS.to_vec())],
            _ => {
                let levels = self.levels.iter().copied();
                let each = |level: i32| others.iter().map(move |it| (it.0, it.1, vec![level]));
                levels.flat_map(each).collect()
            }
        };
        if self.order.first().as_ref().is_some_and(is_ordered) {
            ordered.chain(others).collect()
        } else {
            others.into_iter().chain(ordered).collect()
        }
    }

    async fn claim_of_unlimited(
        &mut self,
        group: usize,
        which: Which,
        priorities: &[i32],
        most: usize,
        claimed: &mut Vec<Row>,
    ) -> Result<(), AskError> {
        let of = &self.groups[group];
        let (statement, frontier) = match which {
            Which::Keyed => (claiming::CLAIM_KEYED, &of.keyed),
            _ => (claiming::CLAIM, &of.plain),
        };
        let (more, begins) = (most - claimed.len(), frontier.begins(&of.names, priorities));
        let limit = more as i64;
        let params: [Param<'_>; 7] = [
            (&begins.names, Type::TEXT_ARRAY),
            (&self.engine.worker, Type::TEXT),
            (&limit, Type::INT8),
            (&begins.priorities, Type::INT4_ARRAY),
            (&begins.micros, Type::INT8_ARRAY),
            (&begins.ids, Type::INT8_ARRAY),
            (&begins.ages, Type::FLOAT8_ARRAY),
        ];
        let asked = Instant::now();
        let rows = self.ask(statement, &params).await?.unwrap_or_default();
        let mark = |row: &Row| (row.get(10), Mark { micros: row.get(11), id: row.get(0) });
        let marks: Vec<_> = rows.iter().map(mark).collect();
        let of = &mut self.groups[group];
        let frontier = if matches!(which, Which::Keyed) { &mut of.keyed } else { &mut of.plain };
        frontier.note(&begins, asked, &marks, rows.len() < more);
        claimed.extend(rows);
        Ok(())
    }

    /// Claims jobs without an ordering key, of a kind with a limit, until there are none.
    async fn claim_turns(
        &mut self,
        group: usize,
        priorities: &[i32],
        most: usize,
        claimed: &mut Vec<Row>,
    ) -> Result<(), AskError> {
        let priorities = priorities.to_vec();
        while claimed.len() < most {
            let last_turn = self.groups[group].last_turn.clone();
            let more = (most - claimed.len()) as i64;
            let of_these = Some((&priorities as _, Type::INT4_ARRAY));
            let rows =
                self.ask_limited(limiting::CLAIM_TURNS, group, more, &last_turn, of_these).await?;
            let rows = rows.unwrap_or_default();
            let Some(last) = rows.iter().max_by_key(|row| row.get::<_, i64>(11)) else { break };
            self.groups[group].last_turn = last.get(10);
            claimed.extend(rows);
        }
        Ok(())
    }

    /// Claims the first jobs of ordering keys.
    async fn claim_first(
        &mut self,
        group: usize,
        most: usize,
        claimed: &mut Vec<Row>,
    ) -> Result<(), AskError> {
        loop {
            let more = (most - claimed.len()) as i64;
            let Some(rows) = self.ask_for_first(group, more).await? else { return Ok(()) };
            let it = &mut self.groups[group];
            let began_at_first = it.last_key.is_empty();
            let served = rows.iter().filter_map(|row| row.get::<_, Option<String>>(7)).max();
            // Of some limit keys more jobs were found than there were slots for: there may be others.
            let is_limited = it.slots.is_some();
            let may_go_on = is_limited && !rows.is_empty();
            claimed.extend(rows);
            if claimed.len() == most {
                it.last_key = served.unwrap_or_default();
                return Ok(());
            }
            // After the last key the first one comes.
            it.last_key.clear();
            if began_at_first && !may_go_on {
                return Ok(());
            }
        }
    }

    async fn ask_for_first(
        &mut self,
        group: usize,
        more: i64,
    ) -> Result<Option<Vec<Row>>, AskError> {
        let of = &self.groups[group];
        if of.slots.is_some() {
            let (statement, last_key) = (limiting::CLAIM_FIRST_LIMITED, of.last_key.clone());
            return self.ask_limited(statement, group, more, &last_key, None).await;
        }
        let params: [Param<'_>; 4] = [
            (&of.names, Type::TEXT_ARRAY),
            (&self.engine.worker, Type::TEXT),
            (&more, Type::INT8),
            (&of.last_key, Type::TEXT),
        ];
        self.ask(claiming::CLAIM_FIRST, &params).await
    }

    /// Asks a claim of a kind with a limit, and notes when to look again if there was no token.
    async fn ask_limited(
        &mut self,
        statement: &'static str,
        group: usize,
        more: i64,
        after: &String,
        priorities: Option<Param<'_>>,
    ) -> Result<Option<Vec<Row>>, AskError> {
        let of = &self.groups[group];
        let Some(slots) = &of.slots else { return Ok(None) };
        let params: [Param<'_>; 11] = [
            (&of.names[0], Type::TEXT),
            (&self.engine.worker, Type::TEXT),
            (&more, Type::INT8),
            (after, Type::TEXT),
            (&slots.kind, Type::INT4),
            (&self.first_slot, Type::INT4),
            (&slots.key, Type::INT4),
            (&slots.kind_bucket.burst, Type::INT8),
            (&slots.kind_bucket.gap, Type::INT8),
            (&slots.key_bucket.burst, Type::INT8),
            (&slots.key_bucket.gap, Type::INT8),
        ];
        let params: Vec<_> = params.into_iter().chain(priorities).collect();
        let Some(mut rows) = self.ask(statement, &params).await? else { return Ok(None) };
        rows.retain(|row| {
            let again = row.get::<_, Option<i64>>(12).map(micros);
            self.again = self.again.into_iter().chain(again).min();
            again.is_none()
        });
        Ok(Some(rows))
    }

    async fn mark_due(&mut self) -> Result<(), AskError> {
        if !self.marks {
            return Ok(());
        }
        while std::mem::take(&mut self.marks) {
            let rows = self.engine.work.ask_prepared(statements::MARK_DUE, &[]).await?;
            let Some(row) = rows.first() else { break };
            self.marks = row.get::<_, i64>(0) == statements::MARKED_AT_MOST;
            self.has_keyed |= row.get::<_, bool>(1);
        }
        Ok(())
    }

    /// Looks which priorities there are, if they are asked for one after the other.
    async fn look_at_levels(&mut self) -> Result<(), AskError> {
        let has_keyed = self.has_keyed && self.groups.iter().any(|it| it.slots.is_none());
        if !has_keyed && self.groups.len() == 1 {
            return Ok(());
        }
        let names: Vec<_> = self.groups.iter().flat_map(|it| &it.names).copied().collect();
        let params = [(&names as _, Type::TEXT_ARRAY)];
        let rows = self.engine.work.ask_prepared(claiming::LEVELS, &params).await?;
        self.levels = rows.iter().map(|row| row.get(0)).chain([0]).collect();
        self.levels.sort_unstable();
        Ok(())
    }

    /// Asks a claim. `None` if others have spoiled it each time.
    async fn ask(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Option<Vec<Row>>, AskError> {
        for _ in 0..=AGAIN {
            match self.engine.work.ask_prepared(statement, params).await {
                Err(error) if error.is(&SqlState::UNIQUE_VIOLATION) => {}
                answer => return answer.map(Some),
            }
        }
        Ok(None)
    }
}

/// Returns a span that is not so short that machines do nothing but look.
fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0)).max(Duration::from_millis(1))
}

/// Returns a number that depends on the worker, so that several begin their search at different slots.
fn first_slot(worker: &str) -> i32 {
    let sum =
        worker.bytes().fold(0_i32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    sum.rem_euclid(1 << 30)
}
