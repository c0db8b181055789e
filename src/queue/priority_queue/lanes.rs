//! The lanes: sorted runs beside a large heap, for a burst of entries that are due at nearly the same moment.
//!
//! A program that wants many tasks to run at one instant computes each delay from a new reading of the clock. So the
//! deadlines take a handful of different values, in no particular order. A [sorted run](super::sorted_run) admits few
//! such entries, and in a large heap each costs some ten cache misses.
//!
//! An entry belongs to a burst if its deadline is within a microsecond of the previous entry's. The low six bits of its
//! deadline name its lane. All entries of a lane have the same deadline, so they are in the order of submission:
//!
//! ```text
//!   deadline … 1000   a d e h l …
//!            … 1001   c f g i …
//! ```
//!
//! An entry whose lane has another deadline goes to the heap. If the lane has only one entry, that entry goes there
//! instead, since it may be the outlier. No two lanes have the same deadline, so all lanes are compared only when the
//! lane of the first entry becomes empty.

use super::{
    SMALL,
    array_heap::{Keyed, VACANT},
    deadline_of,
    sorted_run::{self, SortedRun},
};

const LANES: u32 = 64;
/// Successive entries of a burst are due at most this many nanoseconds apart.
const BURST: u64 = if SMALL { 4 } else { 1_000 };

pub(super) struct Lanes {
    /// The lanes. The vector is empty while no lane has an entry.
    pub(super) runs: Vec<SortedRun>,
    pub(super) len: usize,
    pub(super) first: u128,
    /// The deadline, in nanoseconds, of the last entry that asked for a lane, whether or not it got one.
    latest: u64,
}

const fn nanos(key: u128) -> u64 {
    deadline_of(key).as_nanos()
}

const fn lane_of(key: u128) -> usize {
    nanos(key) as usize % LANES as usize
}

impl Lanes {
    pub(super) const fn new() -> Self {
        Self { runs: Vec::new(), len: 0, first: VACANT, latest: 0 }
    }

    /// Returns the position that [`push`](Self::push) gives to an entry with this key, or `None` if there is no lane
    /// for it. If another entry has to make way, takes it out and passes it to `displaced`.
    #[inline(never)]
    pub(super) fn position_for(&mut self, key: u128, displaced: impl FnOnce(Keyed)) -> Option<u32> {
        let before = std::mem::replace(&mut self.latest, nanos(key));
        if before.abs_diff(nanos(key)) > BURST {
            return None;
        }
        if self.runs.is_empty() {
            self.runs.extend((1..=LANES).map(SortedRun::numbered));
        }
        let run = &mut self.runs[lane_of(key)];
        if run.len() > 0 && nanos(run.last()) != nanos(key) {
            if run.len() > 1 {
                return None;
            }
            let alone = run.pop()?;
            displaced(alone);
            self.len -= 1;
            if alone.0 == self.first {
                self.renew_first();
            }
        }
        let run = &self.runs[lane_of(key)];
        run.admits(key).then(|| run.next())
    }

    #[inline(never)]
    pub(super) fn push(&mut self, key: u128, slot: u32) {
        self.runs[lane_of(key)].push(key, slot);
        self.len += 1;
        self.first = self.first.min(key);
    }

    // Never inlined, nor is the rest of this file: most queues have no lanes.
    #[inline(never)]
    pub(super) fn pop(&mut self) -> Option<Keyed> {
        let run = self.runs.get_mut(lane_of(self.first))?;
        let popped = run.pop()?;
        self.len -= 1;
        let next = run.first();
        self.pass_first_to(next);
        Some(popped)
    }

    #[inline(never)]
    pub(super) fn key(&self, position: u32) -> u128 {
        self.run_of(position).map_or(VACANT, |run| self.runs[run].key(position))
    }

    /// Removes an entry. If its lane then has too many holes, passes one or two entries of the lane to `displaced`.
    #[cold]
    #[inline(never)]
    pub(super) fn remove(&mut self, position: u32, mut displaced: impl FnMut(Keyed)) {
        let Some(run) = self.run_of(position) else { return };
        let run = &mut self.runs[run];
        let (before, had_first) = (run.len(), run.first() == self.first);
        if run.remove(position) {
            run.limit_holes(&mut displaced);
        }
        self.len -= before - run.len();
        let next = run.first();
        // Only entries of this run have left.
        if had_first && next != self.first {
            self.pass_first_to(next);
        }
    }

    fn run_of(&self, position: u32) -> Option<usize> {
        let index = sorted_run::number(position)?.checked_sub(1)? as usize;
        (index < self.runs.len()).then_some(index)
    }

    /// Updates `first` after the first entry, and perhaps other entries of its lane, have left. `next` is the lane's
    /// new first key; `VACANT` if the lane is empty.
    fn pass_first_to(&mut self, next: u128) {
        if next != VACANT && nanos(next) == nanos(self.first) {
            self.first = next;
        } else {
            self.renew_first();
            // The last entry to leave is the first of all, so this is the only place to check.
            if self.len == 0 {
                self.runs = Vec::new();
            }
        }
    }

    fn renew_first(&mut self) {
        self.first = self.runs.iter().map(SortedRun::first).min().unwrap_or(VACANT);
    }
}

#[cfg(test)]
mod tests;
