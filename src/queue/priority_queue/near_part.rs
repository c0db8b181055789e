//! The near part: all entries that are kept in order. Each is in the [array heap](super::array_heap), the
//! [sorted run](super::sorted_run) or one of the [lanes](super::lanes).
//!
//! Some bits of a position tell which of the three has the entry. If the deadline of an entry in the run or a lane
//! changes, the entry moves to the heap. If the run has a single entry that is due after a new one, or a few that are
//! all due long after the new one, these entries move to the heap. If removals leave the run or a lane with many more
//! holes than entries, its first entries move to the heap, one or two at each removal.
//!
//! # Invariants
//!
//! 1. `first` is the smallest key in the heap, the run and the lanes.
//! 2. Let `n` be the largest number of entries that the run has had at one time. Apart from the tolerated holes, the
//!    run has at most about 2.5 `n` places. The same holds for each lane.

use std::iter;

use super::{
    FEW, SMALL, UnderLock,
    array_heap::{ArrayHeap, Keyed, Positions, VACANT},
    calendar,
    lanes::Lanes,
    slots::Slots,
    sorted_run::{self, SortedRun},
    two_smallest,
};

/// A heap with at least this many entries is large: it soon outgrows the first-level cache.
const LARGE: usize = if SMALL { 4 } else { 1 << 10 };
const RUN: u32 = 0;
/// A key that is at least this much larger than another is far behind it.
const DISTANT: u128 = (calendar::DISTANCE as u128) << 64;

pub(super) struct NearPart {
    heap: ArrayHeap,
    run: SortedRun,
    lanes: Lanes,
    first: u128,
}

impl NearPart {
    pub(super) const fn new() -> Self {
        let run = SortedRun::numbered(RUN);
        Self { heap: ArrayHeap::new(), run, lanes: Lanes::new(), first: VACANT }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len() + self.run.len() + self.lanes.len
    }

    pub(super) fn first(&self) -> u128 {
        self.first
    }

    /// Returns the two smallest keys; `VACANT` for each that is missing. May overlook the second one behind many holes.
    pub(super) fn first_two(&self) -> [u128; 2] {
        let of_heap = [self.heap.first(), self.heap.second()];
        self.runs().fold(of_heap, |two, run| two_smallest(two, [run.first(), run.second()]))
    }

    fn runs(&self) -> impl Iterator<Item = &SortedRun> {
        iter::once(&self.run).chain(&self.lanes.runs)
    }

    #[inline]
    pub(super) fn key(&self, position: u32) -> u128 {
        match sorted_run::number(position) {
            Some(RUN) => self.run.key(position),
            Some(_) => self.lanes.key(position),
            None => self.heap.key(position as usize),
        }
    }

    #[inline]
    pub(super) fn admits_in_order(&self, key: u128) -> bool {
        self.run.admits(key)
    }

    #[inline(always)]
    pub(super) fn insert<E>(
        &mut self,
        table: &mut Slots<E>,
        key: u128,
        element: UnderLock<E>,
    ) -> u32 {
        if key < self.first {
            self.first = key;
        }
        if self.run.admits(key) || self.opens_run_to(key, table) {
            let slot = table.insert(element, self.run.next());
            self.run.push(key, slot);
            return slot;
        }
        let position = self.position_out_of_order(table, key);
        let slot = table.insert(element, position);
        self.insert_out_of_order(table, position, (key, slot));
        slot
    }

    pub(super) fn insert_slot(&mut self, table: &mut impl Positions, entry: Keyed) {
        self.first = self.first.min(entry.0);
        let position = self.position_out_of_order(table, entry.0);
        table.set_position(entry.1, position);
        self.insert_out_of_order(table, position, entry);
    }

    /// Returns the position at which [`insert_out_of_order`](Self::insert_out_of_order) puts an entry with this key. If
    /// an entry in a lane has to make way, moves it to the heap.
    #[inline(always)]
    fn position_out_of_order(&mut self, table: &mut impl Positions, key: u128) -> u32 {
        let Self { heap, lanes, .. } = self;
        if heap.len() >= LARGE {
            let displaced = |entry| heap.insert(table, entry);
            if let Some(position) = lanes.position_for(key, displaced) {
                return position;
            }
        }
        heap.next()
    }

    #[inline(always)]
    fn insert_out_of_order(&mut self, table: &mut impl Positions, position: u32, entry: Keyed) {
        match sorted_run::number(position) {
            Some(_) => self.lanes.push(entry.0, entry.1),
            None => self.heap.insert(table, entry),
        }
    }

    /// Takes out the key of the first entry. The entry's element stays in its slot.
    #[inline(always)]
    pub(super) fn pop(&mut self, table: &mut impl Positions) -> Option<Keyed> {
        let first = if self.run.first() == self.first {
            self.run.pop()?
        } else if self.lanes.len == 0 || self.heap.first() == self.first {
            self.heap.pop(table)?
        } else {
            self.lanes.pop()?
        };
        self.renew_first();
        Some(first)
    }

    /// Removes the entry with this key from its position. Returns `true` if that was the first entry.
    // Always inlined: the caller already knows that the entry is in the run, as most are.
    #[inline(always)]
    pub(super) fn remove_at(
        &mut self,
        table: &mut impl Positions,
        position: u32,
        key: u128,
    ) -> bool {
        match sorted_run::number(position) {
            Some(number) => self.remove_from_run(table, position, number),
            None => self.heap.remove_at(table, position as usize),
        }
        let was_first = key == self.first;
        if was_first {
            self.renew_first();
        }
        was_first
    }

    #[inline(always)]
    pub(super) fn reset_at(&mut self, table: &mut impl Positions, position: u32, entry: Keyed) {
        match sorted_run::number(position) {
            None => self.heap.sift(table, position as usize, entry),
            Some(number) => {
                self.remove_from_run(table, position, number);
                self.heap.insert(table, entry);
            }
        }
        self.renew_first();
    }

    /// Passes to `note` the entries that are no later than `latest`, in no particular order. Takes time linear in the
    /// number of these entries and of the holes among them.
    pub(super) fn up_to(&self, latest: u128, note: &mut dyn FnMut(Keyed)) {
        self.runs().for_each(|run| run.up_to(latest, note));
        self.heap.up_to(latest, note);
    }

    #[inline]
    fn renew_first(&mut self) {
        self.first = self.heap.first().min(self.run.first());
        if self.lanes.len > 0 {
            self.first = self.first.min(self.lanes.first);
        }
    }

    /// Removes an entry from the run or a lane. The caller renews `first`.
    #[inline(always)]
    fn remove_from_run(&mut self, table: &mut impl Positions, position: u32, number: u32) {
        let Self { heap, run, lanes, .. } = self;
        if number != RUN {
            lanes.remove(position, |entry| heap.insert(table, entry));
        } else if run.remove(position) {
            run.limit_holes(|entry| heap.insert(table, entry));
        }
    }

    /// If the run has only one entry, or a few that are all far behind `key`, moves its entries to the heap: they would
    /// keep all nearer entries out of the run. Returns `true` if the run now admits `key`.
    #[inline]
    fn opens_run_to(&mut self, key: u128, table: &mut impl Positions) -> bool {
        let len = self.run.len();
        let is_distant = || self.run.first().saturating_sub(key) >= DISTANT;
        let makes_way = len <= FEW && (len == 1 || is_distant());
        if makes_way {
            self.move_run_to_heap(table);
        }
        makes_way
    }

    #[cold]
    fn move_run_to_heap(&mut self, table: &mut impl Positions) {
        while let Some(entry) = self.run.pop() {
            self.heap.insert(table, entry);
        }
    }
}

#[cfg(test)]
mod tests;
