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
    entry::Entry,
    tokens::{Buckets, TokenTimer},
};
use crate::{
    JobWait, Priority,
    job::job_limit::{Bounds, Limits},
};

pub(super) type LimitedLine = (Priority, String);

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

impl Slots {
    /// Returns which limit a job waits for, if it is in a line here; none, if it waits for the end of a pause alone.
    pub(super) fn wait_of(&self, id: i64, entry: &Entry, now: Instant) -> Option<Option<JobWait>> {
        let kind = entry.definition.limits.kind;
        let key = entry.job.limit_key.as_deref().unwrap_or_default();
        let place = (entry.moment, id);
        let mut lines = self.lines.iter().filter(|(line, _)| line.1 == key);
        let (line, _) = lines.find(|(_, jobs)| jobs.contains(&place))?;
        if !self.open.contains(line) {
            return Some(Some(JobWait::LimitOfKey));
        }
        let waits = self.is_full(kind) || self.buckets.kind_waits(kind.window, now).is_some();
        Some(waits.then_some(JobWait::Limit))
    }

    fn is_full(&self, kind: Bounds) -> bool {
        kind.at_once.is_some_and(|most| self.taken.len() >= most)
    }

    pub(super) fn has(&self, id: i64) -> bool {
        self.taken.contains(&id)
    }

    pub(super) fn wait(&mut self, id: i64, place: &PlaceInLine, now: Instant) {
        self.lines.entry(place.line.clone()).or_default().insert((place.moment, id));
        self.note_open(&place.line.1, place.limits, now);
    }

    pub(super) fn leave(&mut self, id: i64, place: &PlaceInLine, now: Instant) {
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
    pub(super) fn take_next(&mut self, limits: Limits, now: Instant) -> Option<i64> {
        while let Some((_, key)) = self.dry.first().filter(|(at, _)| *at <= now) {
            let key = key.clone();
            self.note_open(&key, limits, now);
        }
        self.timer.wanted = self.dry.first().map(|(at, _)| *at);
        if self.is_full(limits.kind) {
            return None;
        }
        let line = self.next_line()?.clone();
        if let Some(at) = self.buckets.kind_waits(limits.kind.window, now) {
            self.timer.wanted = Some(at);
            return None;
        }
        let (_, id) = self.lines.get_mut(&line)?.pop_first()?;
        let (_, key) = line;
        self.taken.insert(id);
        *self.taken_of_key.entry(key.clone()).or_default() += 1;
        self.buckets.spend(limits.kind.window, limits.key.window, &key, now);
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
        let is_free = limits.key.at_once.is_none_or(|most| taken < most);
        let next = self.buckets.next_of_key(limits.key.window, key);
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

pub(super) struct PlaceInLine {
    pub(super) kind: &'static str,
    pub(super) limits: Limits,
    pub(super) line: LimitedLine,
    pub(super) moment: Option<Instant>,
}
