//! Limits of kinds: so many jobs of one run at once, or of one limit key of it, and the others wait in lines.
//!
//! It is the line of an ordering key ([`ordering`](super::ordering)) with more than one turn: a job comes to a line when
//! it is due and has its turn, if it has an ordering key. It has a slot from when it is the next and one is
//! free until its attempt ends, or until it is moved or cancelled before that has begun. The next job gets the slot
//! then, and a task that is due at once.
//!
//! There is a line for each priority and limit key of a kind; jobs without a limit key have the empty one. The next job is the
//! first, by moment, of an *open* line: one that is not empty, and whose key has a slot left and a [token](super::tokens). Of these it is the line with the
//! highest priority, and then the one whose key follows the key that was served last, so the keys take turns.
//!
//! # Invariants, under the lock
//!
//! * A job is in a line or has a slot, and not both.
//! * While a line is open all slots of the kind are taken, or it has no token, or the kind is [paused](super::pauses).
//!
//! So a job that comes can begin itself or none can, and of the jobs that wait one can begin for each that leaves.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Bound::{Excluded, Unbounded},
    time::Instant,
};

use super::{
    board::{Entry, Next, Stage, State},
    ordering::{Arrival, at_once},
    tokens::{Buckets, TokenTimer},
};
use crate::{JobWait, Priority, job::job_limit::Limits};

type LimitedLine = (Priority, String);

#[derive(Default)]
pub(super) struct Slots {
    /// The jobs that run, or are about to.
    taken: HashSet<i64>,
    /// How many of them there are of each limit key that has any.
    taken_of_key: HashMap<String, usize>,
    lines: BTreeMap<LimitedLine, BTreeSet<(Option<Instant>, i64)>>,
    open: BTreeSet<LimitedLine>,
    /// The limit key that was served last.
    last_key: String,
    buckets: Buckets,
    /// The keys that have jobs in lines and no token, by when they have the next one.
    dry: BTreeSet<(Instant, String)>,
    pub(super) timer: TokenTimer,
}

/// Where a job of a limited kind waits.
struct PlaceInLine {
    kind: &'static str,
    limits: Limits,
    line: LimitedLine,
    moment: Option<Instant>,
}

impl State {
    /// A job is due, and has its turn.
    pub(super) fn enter(&mut self, id: i64) -> Arrival {
        let Some(place) = self.place_in_line(id) else { return Arrival::Go };
        let now = self.clock.now();
        let slots = self.slots.entry(place.kind).or_default();
        if slots.taken.contains(&id) {
            return Arrival::Go;
        }
        slots.wait(id, &place, now);
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.stage = Stage::InLine;
        }
        match self.give_slot(place.kind, place.limits) {
            Some(next) if next.id == id => Arrival::Go,
            next => Arrival::Wait(next),
        }
    }

    /// A job does not wait for a slot any more, and does not run. Returns the job that is next.
    pub(super) fn leave_slot(&mut self, id: i64) -> Option<Next> {
        let place = self.place_in_line(id)?;
        let now = self.clock.now();
        self.slots.get_mut(place.kind)?.leave(id, &place, now);
        self.give_slot(place.kind, place.limits)
    }

    /// Whether a job has a slot, and so goes on without letting another one go first.
    pub(super) fn has_slot(&self, id: i64) -> bool {
        let definition = self.jobs.get(&id).map(|entry| &entry.definition);
        let limited = definition.filter(|definition| definition.limits.is_some());
        let slots = limited.and_then(|definition| self.slots.get(definition.name));
        slots.is_some_and(|slots| slots.taken.contains(&id))
    }

    /// Returns where a job waits for a slot; `None` if its kind has no limit.
    fn place_in_line(&self, id: i64) -> Option<PlaceInLine> {
        let entry = self.jobs.get(&id)?;
        let (kind, limits) = (entry.definition.name, entry.definition.limits);
        let is_ordered = entry.ordering_key.is_some();
        let priority = if is_ordered { Priority::Normal } else { entry.priority };
        let line = (priority, entry.limit_key.clone().unwrap_or_default());
        limits.is_some().then_some(PlaceInLine { kind, limits, line, moment: entry.moment })
    }

    /// Gives a slot to the next job of the kind, if one is free, there is a token, and the kind is not paused.
    pub(super) fn give_slot(&mut self, kind: &'static str, limits: Limits) -> Option<Next> {
        if self.pauses.get(kind).is_some() {
            return None;
        }
        let now = self.clock.now();
        let id = self.slots.get_mut(kind)?.take_next(limits, now)?;
        let entry = self.jobs.get_mut(&id)?;
        entry.stage = Stage::Waiting(None);
        entry.generation += 1;
        let due = at_once(entry.moment);
        Some(Next { id, generation: entry.generation, due })
    }
}

impl Slots {
    /// Returns which limit a job waits for, if it is in a line here.
    pub(super) fn wait_of(&self, id: i64, entry: &Entry) -> Option<JobWait> {
        let key = entry.limit_key.as_deref().unwrap_or_default();
        let place = (entry.moment, id);
        let mut lines = self.lines.iter().filter(|(line, _)| line.1 == key);
        let (line, _) = lines.find(|(_, jobs)| jobs.contains(&place))?;
        Some(if self.open.contains(line) { JobWait::Limit } else { JobWait::LimitOfKey })
    }

    fn wait(&mut self, id: i64, place: &PlaceInLine, now: Instant) {
        self.lines.entry(place.line.clone()).or_default().insert((place.moment, id));
        self.note_open(&place.line.1, place.limits, now);
    }

    fn leave(&mut self, id: i64, place: &PlaceInLine, now: Instant) {
        if let Some(line) = self.lines.get_mut(&place.line) {
            line.remove(&(place.moment, id));
        }
        if self.taken.remove(&id) {
            if let Some(taken) = self.taken_of_key.get_mut(&place.line.1) {
                *taken -= 1;
            }
        }
        self.note_open(&place.line.1, place.limits, now);
    }

    /// Takes a slot and a token for the next job. If there is no token, the timer is wanted for the next one.
    fn take_next(&mut self, limits: Limits, now: Instant) -> Option<i64> {
        while let Some((_, key)) = self.dry.first().filter(|(at, _)| *at <= now) {
            let key = key.clone();
            self.note_open(&key, limits, now);
        }
        self.timer.wanted = self.dry.first().map(|(at, _)| *at);
        if limits.of_kind().is_some_and(|most| self.taken.len() >= most) {
            return None;
        }
        let line = self.next_line()?.clone();
        if let Some(at) = self.buckets.kind_waits(limits.window_of_kind(), now) {
            self.timer.wanted = Some(at);
            return None;
        }
        let (_, id) = self.lines.get_mut(&line)?.pop_first()?;
        let (_, key) = line;
        self.taken.insert(id);
        *self.taken_of_key.entry(key.clone()).or_default() += 1;
        self.buckets.spend(limits.window_of_kind(), limits.window_of_key(), &key, now);
        self.note_open(&key, limits, now);
        self.timer.wanted = self.dry.first().map(|(at, _)| *at);
        self.last_key = key;
        Some(id)
    }

    fn next_line(&self) -> Option<&LimitedLine> {
        let first = self.open.first()?;
        let after = (first.0, self.last_key.clone());
        let next = self.open.range((Excluded(after), Unbounded)).next();
        Some(next.filter(|(priority, _)| *priority == first.0).unwrap_or(first))
    }

    /// Notes which lines of a key are open, after one of them or the slots of the key have changed.
    fn note_open(&mut self, key: &str, limits: Limits, now: Instant) {
        let taken = self.taken_of_key.get(key).copied().unwrap_or(0);
        if taken == 0 {
            self.taken_of_key.remove(key);
        }
        let is_free = limits.of_key().is_none_or(|most| taken < most);
        let next = self.buckets.next_of_key(limits.window_of_key(), key);
        let is_dry = next.is_some_and(|next| next > now);
        let mut has_jobs = false;
        for priority in [Priority::High, Priority::Normal, Priority::Low] {
            let line = (priority, key.to_owned());
            let is_empty = self.lines.get(&line).is_none_or(BTreeSet::is_empty);
            if is_empty {
                self.lines.remove(&line);
            }
            has_jobs |= !is_empty;
            if is_free && !is_dry && !is_empty {
                self.open.insert(line);
            } else {
                self.open.remove(&line);
            }
        }
        if let Some(next) = next {
            let place = (next, key.to_owned());
            if is_dry && has_jobs {
                self.dry.insert(place);
            } else {
                self.dry.remove(&place);
            }
        }
    }
}
