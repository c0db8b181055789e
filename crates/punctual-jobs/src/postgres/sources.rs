//! The sources of jobs that a worker claims from, in turn.
//!
//! The kinds without a limit are a *group*, and so is each kind with one. A group has jobs with an ordering key and jobs
//! without, which are claimed by two statements. Which of all these sources is asked first changes from claim to claim, and
//! so does which name of a group comes first, and which ordering key: a backlog of one kind does not keep the others away.
//!
//! A claim that another machine has spoiled, by taking the same turn or slot, is asked again a few times. If that does not
//! help the others have taken what there was; the end of one of their runs is notified.

use std::sync::Arc;

use tokio_postgres::{Row, error::SqlState, types::Type};

use super::{
    claiming,
    connection::{AskError, Param},
    ending::Ended,
    engine::PostgresEngine,
    statements,
};

/// How often a claim is asked again that another machine has spoiled.
const AGAIN: u32 = 3;

pub(super) struct Sources {
    engine: Arc<PostgresEngine>,
    groups: Vec<Group>,
    /// Which group, and whether its jobs with an ordering key, in the order in which they are asked.
    order: Vec<(usize, bool)>,
    /// Jobs may have become due since the last claim.
    marks: bool,
}

struct Group {
    /// The kinds, the one first that is asked for first.
    names: Vec<&'static str>,
    /// How many slots the kind has, and with which one the search begins.
    slots: Option<(i32, i32)>,
    /// The ordering key that was served last.
    last_key: String,
}

impl Sources {
    pub(super) fn of(engine: &Arc<PostgresEngine>) -> Self {
        let mut unlimited = Group { names: Vec::new(), slots: None, last_key: String::new() };
        let mut groups = Vec::new();
        for name in engine.handled_names() {
            match engine.definitions.handled(name).and_then(|kind| kind.limit) {
                None => unlimited.names.push(name),
                Some(limit) => {
                    let places = i32::try_from(limit.places()).unwrap_or(i32::MAX);
                    let slots = Some((places, first_slot(&engine.worker, places)));
                    groups.push(Group { names: vec![name], slots, last_key: String::new() });
                }
            }
        }
        if !unlimited.names.is_empty() {
            groups.push(unlimited);
        }
        let order = (0..groups.len()).flat_map(|group| [(group, false), (group, true)]).collect();
        Self { engine: Arc::clone(engine), groups, order, marks: true }
    }

    pub(super) fn look_for_due(&mut self) {
        self.marks = true;
    }

    /// Whether one of these runs had a slot, which is free for the next job now.
    pub(super) fn are_freed_by(&self, ended: &[Ended]) -> bool {
        let limited = || self.groups.iter().filter(|group| group.slots.is_some());
        ended.iter().any(|ended| limited().any(|group| group.names[0] == ended.job.name))
    }

    /// Claims so many jobs, from one source after the other.
    pub(super) async fn claim(&mut self, free: usize) -> Result<Vec<Row>, AskError> {
        self.order.rotate_left(1);
        self.groups.iter_mut().for_each(|group| group.names.rotate_left(1));
        let mut claimed = Vec::new();
        for (group, has_keys) in self.order.clone() {
            let rest = free - claimed.len();
            if rest == 0 {
                break;
            }
            let rows = if has_keys {
                self.claim_first(group, rest).await
            } else {
                self.claim_others(group, rest).await
            };
            match rows {
                Ok(rows) => claimed.extend(rows),
                // The jobs that were claimed before have to run.
                Err(_) if !claimed.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(claimed)
    }

    /// Claims jobs without an ordering key.
    async fn claim_others(&self, group: usize, most: usize) -> Result<Vec<Row>, AskError> {
        let (group, most) = (&self.groups[group], most as i64);
        let params: [Param<'_>; 3] = [
            (&group.names, Type::TEXT_ARRAY),
            (&self.engine.worker, Type::TEXT),
            (&most, Type::INT8),
        ];
        let rows = self.ask(group, [claiming::CLAIM, claiming::CLAIM_LIMITED], &params).await;
        Ok(rows?.unwrap_or_default())
    }

    /// Claims the first jobs of ordering keys.
    async fn claim_first(&mut self, group: usize, most: usize) -> Result<Vec<Row>, AskError> {
        while std::mem::take(&mut self.marks) {
            let marked = self.engine.work.ask(statements::MARK_DUE, &[]).await?;
            self.marks = marked.len() == statements::MARKED_AT_MOST;
        }
        let mut claimed = Vec::new();
        loop {
            let (of, more) = (&self.groups[group], (most - claimed.len()) as i64);
            let params: [Param<'_>; 4] = [
                (&of.names, Type::TEXT_ARRAY),
                (&self.engine.worker, Type::TEXT),
                (&more, Type::INT8),
                (&of.last_key, Type::TEXT),
            ];
            let statements = [claiming::CLAIM_FIRST, claiming::CLAIM_FIRST_LIMITED];
            let rows = match self.ask(of, statements, &params).await {
                Ok(Some(rows)) => rows,
                Ok(None) => return Ok(claimed),
                // The jobs that were claimed before have to run.
                Err(_) if !claimed.is_empty() => return Ok(claimed),
                Err(error) => return Err(error),
            };
            let last_key = &mut self.groups[group].last_key;
            let began_at_first = last_key.is_empty();
            let served = rows.iter().filter_map(|row| row.get::<_, Option<String>>(7)).max();
            claimed.extend(rows);
            if claimed.len() == most {
                *last_key = served.unwrap_or_default();
                return Ok(claimed);
            }
            // After the last key the first one comes.
            last_key.clear();
            if began_at_first {
                return Ok(claimed);
            }
        }
    }

    /// Asks the first statement for kinds without a limit, and the second one for a kind that has one. `None` if others
    /// have spoiled it each time.
    async fn ask(
        &self,
        group: &Group,
        [unlimited, limited]: [&str; 2],
        params: &[Param<'_>],
    ) -> Result<Option<Vec<Row>>, AskError> {
        let mut params = params.to_vec();
        let statement = match &group.slots {
            None => unlimited,
            Some((slots, first)) => {
                params.extend([(first as _, Type::INT4), (slots as _, Type::INT4)]);
                limited
            }
        };
        for _ in 0..=AGAIN {
            match self.engine.work.ask(statement, &params).await {
                Err(error) if error.is(&SqlState::UNIQUE_VIOLATION) => {}
                answer => return answer.map(Some),
            }
        }
        Ok(None)
    }
}

/// Returns a slot that depends on the worker, so that several begin their search at different ones.
fn first_slot(worker: &str, slots: i32) -> i32 {
    let sum =
        worker.bytes().fold(0_i32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    sum.rem_euclid(slots)
}
