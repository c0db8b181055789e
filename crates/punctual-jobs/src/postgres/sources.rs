//! The sources of jobs that a worker claims from, in turn.
//!
//! The kinds without a limit are one group, and each kind with a limit is another. A group has two sources: its jobs with an
//! ordering key and those without one, which different statements claim. The group without a limit has a third one, for its jobs with a
//! limit key, and the worker asks it only if there are such jobs. The worker asks for jobs of a kind with a limit until a claim finds none: the limit
//! keys take turns ([`limiting`]), and one claim may leave room that another key can use.
//!
//! Each claim begins with another source, another name of a group and another ordering key, so a backlog of one kind does not keep
//! the others away.
//!
//! # Priorities
//!
//! Jobs with an ordering key have none. Of the others the worker claims those of one priority in all sources before those of the next. If there is one
//! source, its statement does that alone. If there are several, the worker needs to know which priorities there are: nearly always there is one.
//! The statement that marks what has become due answers that too, so each claim from several sources begins with it.
//! A pause may end, or a job come, between two of these questions. So each also asks for the priorities before its own, and no source
//! gives a low job while it has a high one.
//!
//! # Other machines
//!
//! If another machine takes the same turn first, the claim fails, and the worker asks again a few times. If that does not help, the others
//! have taken what there was, and the server notifies this machine when one of their runs ends.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_postgres::{Row, error::SqlState};

use super::{
    claiming,
    connection::{AskError, Param},
    ending::Ended,
    frontier::{Frontier, LEVELS, Looks, Mark},
    known_keys::KnownKeys,
    limiting::{self, Standing},
    machine::Machine,
    refused::Picks,
    statements::{self, MARKED_AT_MOST},
};
use crate::job::job_limit::{JobWindow, Limits};

/// How often a claim is asked again that another machine has spoiled.
const AGAIN: u32 = 3;

/// After how long the worker looks again where it knows that there may be more. It is not so short that machines do nothing but look.
const SOON: Duration = Duration::from_millis(1);

const MARK: Picks = (statements::MARK_DUE, "a mark, of the job");

pub(super) struct Sources {
    machine: Arc<Machine>,
    /// In the order in which they are asked.
    all: Vec<Source>,
    /// Jobs may have become due since the last claim.
    pub(super) marks: bool,
    /// Since when all that was due is marked.
    marked: Frontier,
    looks: Looks,
    /// Jobs with a limit key may be due.
    has_keyed: bool,
    /// The priorities that jobs without an ordering key may have.
    levels: Vec<i32>,
    /// How long it is until there is a token for a job that waits for one, or another look is to follow for another reason.
    pub(super) again: Option<Duration>,
    /// When the last claim was asked for, after what had become due was marked, which may take long.
    pub(super) asked: Instant,
}

/// Which jobs of its kinds a source has.
#[derive(Clone, Copy, PartialEq, Eq)]
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

struct Source {
    which: Which,
    /// The kinds, the one first that is asked for first.
    names: Vec<&'static str>,
    limits: Limits,
    /// The limit key or the ordering key that was served last.
    last_key: String,
    /// Where the next claim begins, unless keys say that.
    frontier: Frontier,
    /// Which jobs of a kind with a limit ran at the last claim.
    standing: Standing,
    /// The limit keys of its jobs.
    keys: KnownKeys,
}

/// What a kind with a limit has given.
#[derive(Default)]
struct Given {
    rows: Vec<Row>,
    /// The limit keys of which no job is left that might have been claimed.
    emptied: Vec<String>,
    has_more: bool,
    /// The limit keys that were found; `None` if the server has refused the statement.
    keys: Option<Vec<String>>,
}

/// One claim: what all sources have given so far.
struct Claim {
    machine: Arc<Machine>,
    most: usize,
    rows: Vec<Row>,
    again: Option<Duration>,
    /// It begins at the beginning of each index.
    is_whole: bool,
}

impl Sources {
    pub(super) fn of(machine: &Arc<Machine>) -> Self {
        let mut all = Vec::new();
        let mut add = |names: &[&'static str], limits, which: &[Which]| {
            all.extend(which.iter().map(|which| Source::new(*which, names.to_vec(), limits)));
        };
        let limits_of = |name: &&str| machine.definitions.handled(name).map(|kind| kind.limits);
        let is_limited = |name: &&str| limits_of(name).is_some_and(Limits::is_some);
        let (limited, others): (Vec<_>, Vec<_>) =
            machine.definitions.handled_names().into_iter().partition(is_limited);
        for name in limited {
            let limits = limits_of(&name).unwrap_or_default();
            add(&[name], limits, &[Which::Turns, Which::Ordered]);
        }
        if !others.is_empty() {
            add(&others, Limits::default(), &[Which::Plain, Which::Keyed, Which::Ordered]);
        }
        Self {
            machine: Arc::clone(machine),
            all,
            marks: true,
            marked: Frontier::new(),
            looks: Looks::new(),
            has_keyed: false,
            levels: LEVELS.to_vec(),
            again: None,
            asked: Instant::now(),
        }
    }

    /// Returns `true` if one of these runs was of a kind with a limit, so that another job of it may begin.
    pub(super) fn are_freed_by(&self, ended: &[Ended]) -> bool {
        let limited = || self.all.iter().filter(|source| source.which == Which::Turns);
        ended.iter().any(|ended| limited().any(|source| source.names[0] == ended.job.name))
    }

    /// Claims so many jobs, from one source after the other.
    pub(super) async fn claim(&mut self, most: usize) -> Result<Vec<Row>, AskError> {
        begin_with_another(&mut self.all);
        let machine = Arc::clone(&self.machine);
        let (is_whole, begun) = (self.looks.may_be_whole(), Instant::now());
        let mut claim = Claim { machine, most, rows: Vec::new(), again: None, is_whole };
        self.marks |= is_whole;
        let answer = self.claim_from_all(&mut claim).await;
        let is_full = claim.is_full();
        let follows = self.looks.end(is_whole, begun.elapsed(), is_full);
        claim.look_again_after(follows);
        self.marks |= answer.is_err();
        self.again = claim.again;
        // Of jobs with a limit key there may be some before the frontier, until a whole look has found none.
        self.has_keyed &= answer.is_err() || is_full || !is_whole;
        match answer {
            Err(error) if claim.rows.is_empty() => Err(error),
            Err(error) => {
                // The jobs that were claimed before have to run.
                self.machine.report_failure(&error);
                Ok(claim.rows)
            }
            Ok(()) => Ok(claim.rows),
        }
    }

    async fn claim_from_all(&mut self, claim: &mut Claim) -> Result<(), AskError> {
        self.mark_due(claim.is_whole).await?;
        self.asked = Instant::now();
        for (place, priorities) in self.steps() {
            if claim.is_full() {
                break;
            }
            self.all[place].claim(&priorities, claim).await?;
        }
        Ok(())
    }

    /// Returns the places of the sources in the order in which they are asked, and for which priorities.
    fn steps(&self) -> Vec<(usize, Vec<i32>)> {
        let is_ordered = |place: &usize| self.all[*place].which == Which::Ordered;
        let (ordered, mut others): (Vec<_>, Vec<_>) = (0..self.all.len()).partition(is_ordered);
        others.retain(|place| self.has_keyed || self.all[*place].which != Which::Keyed);
        let ordered = ordered.into_iter().map(|place| (place, Vec::new()));
        let others: Vec<_> = match &others[..] {
            [alone] => vec![(*alone, LEVELS.to_vec())],
            _ => {
                let each = |last: &i32| {
                    // Those before as well: a pause may have ended since they were asked for, or a job may have come.
                    let priorities: Vec<_> = LEVELS.into_iter().filter(|it| it <= last).collect();
                    others.iter().map(|it| (*it, priorities.clone())).collect()
                };
                self.levels.iter().flat_map::<Vec<_>, _>(each).collect()
            }
        };
        if self.all.first().is_some_and(|source| source.which == Which::Ordered) {
            ordered.chain(others).collect()
        } else {
            others.into_iter().chain(ordered).collect()
        }
    }

    /// Marks what has become due. With several sources this also learns which priorities there are, so each claim begins with it.
    async fn mark_due(&mut self, is_whole: bool) -> Result<(), AskError> {
        self.marks |= self.ranked().count() > 1;
        while std::mem::take(&mut self.marks) {
            let has_several = self.ranked().count() > 1;
            let ranked = self.ranked().filter(|_| has_several);
            let names: Vec<_> = ranked.flat_map(|source| &source.names).copied().collect();
            let keyed = self.all.iter().find(|source| source.which == Which::Keyed);
            let unlimited = keyed.map_or_else(Vec::new, |source| source.names.clone());
            let (begins, asked) = (self.marked.begins(&[""], &[0], is_whole), Instant::now());
            let behind: [Param<'_>; 2] = [&begins.ages[0], &unlimited];
            let (rows, is_all) = self
                .machine
                .ask_in_parts(&self.machine.work, MARK, (&[&names], &behind), MARKED_AT_MOST)
                .await?;
            self.marks = !is_all;
            let Some(row) = rows.first() else { continue };
            self.marks |= row.get::<_, i64>(0) == MARKED_AT_MOST as i64;
            self.marked.note((&begins, is_whole), asked, std::iter::empty(), |_| !self.marks);
            self.has_keyed |= row.get::<_, bool>(1);
            let found: Vec<i64> = row.get(2);
            let is_there =
                |level: &i32| *level == 0 || !has_several || found.contains(&i64::from(*level));
            self.levels = LEVELS.into_iter().filter(is_there).collect();
        }
        Ok(())
    }

    /// Returns the sources whose jobs have priorities, as far as they are asked.
    fn ranked(&self) -> impl Iterator<Item = &Source> {
        self.all.iter().filter(|source| match source.which {
            Which::Ordered => false,
            Which::Keyed => self.has_keyed,
            Which::Plain | Which::Turns => true,
        })
    }
}

/// Puts another source first, with another of its names first. The others keep their names' order: if all were to rotate in
/// step, a name might never be first while its source is.
fn begin_with_another(all: &mut [Source]) {
    all.rotate_left(1);
    if let Some(first) = all.first_mut() {
        first.names.rotate_left(1);
    }
}

impl Source {
    fn new(which: Which, names: Vec<&'static str>, limits: Limits) -> Self {
        Self {
            which,
            names,
            limits,
            last_key: String::new(),
            frontier: Frontier::new(),
            standing: Standing::default(),
            keys: KnownKeys::default(),
        }
    }

    async fn claim(&mut self, priorities: &[i32], claim: &mut Claim) -> Result<(), AskError> {
        match self.which {
            Which::Plain => self.claim_behind(claiming::CLAIM, priorities, claim).await,
            Which::Keyed => self.claim_behind(claiming::CLAIM_KEYED, priorities, claim).await,
            Which::Turns => self.claim_turns(priorities, claim).await,
            Which::Ordered => self.claim_first(claim).await,
        }
    }

    /// Claims jobs without an ordering key, of kinds without a limit, from the frontier on.
    async fn claim_behind(
        &mut self,
        statement: &'static str,
        priorities: &[i32],
        claim: &mut Claim,
    ) -> Result<(), AskError> {
        let begins = self.frontier.begins(&self.names, priorities, claim.is_whole);
        let (more, asked) = (claim.more(), Instant::now());
        let behind: [Param<'_>; 4] =
            [&begins.priorities, &begins.micros, &begins.ids, &begins.ages];
        let answer = claim.ask(statement, &begins.names, &behind).await?;
        let (rows, is_all) = answer.unwrap_or_default();
        let marks = rows.iter().filter_map(|row| {
            let place = usize::try_from(row.get::<_, i64>(10) - 1).ok()?;
            let name = (begins.names.get(place)?.clone(), *begins.priorities.get(place)?);
            Some((name, Mark { micros: row.get(11), id: row.get(0) }))
        });
        self.frontier
            .note((&begins, claim.is_whole), asked, marks, |_| is_all && rows.len() < more);
        claim.rows.extend(rows);
        Ok(())
    }

    /// Claims jobs without an ordering key, of a kind with a limit, until there are none.
    async fn claim_turns(&mut self, priorities: &[i32], claim: &mut Claim) -> Result<(), AskError> {
        while !claim.is_full() {
            let is_whole = claim.is_whole;
            let begins = self.frontier.begins(&self.keys.names(), priorities, is_whole);
            let asked = Instant::now();
            let behind: [Param<'_>; 8] = [
                &begins.names,
                &begins.priorities,
                &begins.micros,
                &begins.ids,
                &begins.ages,
                &(is_whole || self.keys.are_too_many()),
                &KnownKeys::asked_for(is_whole),
                &self.keys.age(),
            ];
            let given = self.ask_limited(limiting::CLAIM_TURNS, &behind, claim).await?;
            let Some(Given { rows, emptied, has_more, keys }) = given else { break };
            if let Some(keys) = keys {
                self.keys.learn(keys, is_whole, asked);
            }
            self.frontier.keep(|key| self.keys.contains(key));
            let marks = rows.iter().filter(|row| self.keys.contains(row.get(10))).map(|row| {
                let mark = Mark { micros: row.get(13), id: row.get(0) };
                ((row.get(10), row.get(12)), mark)
            });
            self.frontier.note((&begins, is_whole), asked, marks, |key| {
                emptied.iter().any(|emptied| emptied == key)
            });
            if let Some(last) = rows.iter().max_by_key(|row| row.get::<_, i64>(11)) {
                self.last_key = last.get(10);
            }
            claim.rows.extend(rows);
            if !has_more {
                break;
            }
        }
        Ok(())
    }

    /// Claims the first jobs of ordering keys.
    async fn claim_first(&mut self, claim: &mut Claim) -> Result<(), AskError> {
        let is_limited = self.limits.is_some();
        loop {
            let rows = if is_limited {
                let given = self.ask_limited(limiting::CLAIM_FIRST_LIMITED, &[], claim).await?;
                given.map(|given| given.rows)
            } else {
                let behind: [Param<'_>; 1] = [&self.last_key];
                let answer = claim.ask(claiming::CLAIM_FIRST, &self.names, &behind).await?;
                answer.map(|(rows, _)| rows)
            };
            let Some(rows) = rows else { return Ok(()) };
            let served = rows.iter().filter_map(|row| row.get::<_, Option<String>>(7)).max();
            // Of some limit keys more jobs were found than may begin: there may be others.
            let may_go_on = is_limited && !rows.is_empty();
            claim.rows.extend(rows);
            if claim.is_full() {
                self.last_key = served.unwrap_or_default();
                return Ok(());
            }
            // After the last key the first one comes.
            let began_at_first = std::mem::take(&mut self.last_key).is_empty();
            if began_at_first && !may_go_on {
                return Ok(());
            }
        }
    }

    /// Asks for jobs of a kind with a limit. The row that is no job says the rest.
    async fn ask_limited(
        &mut self,
        statement: &'static str,
        behind: &[Param<'_>],
        claim: &mut Claim,
    ) -> Result<Option<Given>, AskError> {
        let count = |places: Option<usize>| places.map(|it| i32::try_from(it).unwrap_or(i32::MAX));
        let burst = |window: Option<JobWindow>| window.map(|it| i64::from(it.burst));
        let gap = |it: JobWindow| i64::try_from(it.gap).unwrap_or(i64::MAX);
        let (of_kind, of_key) = (self.limits.kind.window, self.limits.key.window);
        let Standing { claims, up_to, session } = &self.standing;
        let params: [Param<'_>; 10] = [
            &self.last_key,
            &count(self.limits.kind.at_once),
            claims,
            &count(self.limits.key.at_once),
            &burst(of_kind),
            &of_kind.map(gap),
            &burst(of_key),
            &of_key.map(gap),
            up_to,
            session,
        ];
        let params = [&params, behind].concat();
        let answer = claim.ask(statement, &self.names[0], &params).await?;
        let Some((mut rows, is_all)) = answer else { return Ok(None) };
        let mut given = Given::default();
        rows.retain(|row| {
            let is_job = row.get::<_, Option<i64>>(0).is_some();
            if !is_job {
                let again = row.get::<_, Option<i64>>(14);
                let again = again.map(|us| Duration::from_micros(us.try_into().unwrap_or(0)));
                claim.look_again_after(again.map(|again| again.max(SOON)));
                self.standing.note(row);
                given.emptied = row.get::<_, Option<_>>(18).filter(|_| is_all).unwrap_or_default();
                given.has_more = row.get(19);
                given.keys = row.get(20);
            }
            is_job
        });
        given.rows = rows;
        Ok(Some(given))
    }
}

impl Claim {
    fn more(&self) -> usize {
        self.most - self.rows.len()
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.most
    }

    fn look_again_after(&mut self, pause: Option<Duration>) {
        self.again = self.again.into_iter().chain(pause).min();
    }

    /// Asks a claim, with what is behind the names, the worker and the limit. Returns its rows, and `false` if there may be more, for which the
    /// worker then looks soon. `None` if others have spoiled it each time.
    async fn ask(
        &mut self,
        statement: &'static str,
        names: Param<'_>,
        behind: &[Param<'_>],
    ) -> Result<Option<(Vec<Row>, bool)>, AskError> {
        let picks = (statement, "a claim, of the job");
        for _ in 0..=AGAIN {
            let params: (&[Param<'_>], _) = (&[names, &self.machine.worker], behind);
            let asked = self.machine.ask_in_parts(&self.machine.work, picks, params, self.more());
            match asked.await {
                Err(error) if error.is(&SqlState::UNIQUE_VIOLATION) => {}
                answer => {
                    let (rows, is_all) = answer?;
                    self.look_again_after((!is_all).then_some(SOON));
                    return Ok(Some((rows, is_all)));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Source, Which, begin_with_another};

    #[test]
    fn each_name_is_first_while_its_source_is() {
        let names = ["a", "b", "c"];
        let source = |which| Source::new(which, names.to_vec(), Limits::default());
        let mut all = [Which::Plain, Which::Keyed, Which::Ordered].map(source);
        let mut plain = Vec::new();
        for _ in 0..9 {
            begin_with_another(&mut all);
            if all[0].which == Which::Plain {
                plain.push(all[0].names[0]);
            }
        }
        plain.sort_unstable();
        assert_eq!(plain, names);
    }
}
