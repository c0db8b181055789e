//! The near part and the calendar together: which entry is the first of all, and what is done so that it is
//! in the near part.
//!
//! The head is *exact* while the first near entry is due before every bucket begins
//! ([`calendar`](super::calendar)). When the near part loses its first entry, the nearest bucket is brought
//! near in the same call ([`settle`](DelayHeap::settle)), unless it has several chunks. Only then is there
//! a head that is a mere bound. It is never later than the first deadline, so whoever waits for it is not
//! late; a thread that finds it due brings one chunk near, publishes the new head, and looks again.

use super::{
    ARITY, DelayHeap, ROOT, Ticket, VACANT, deadline_of, key, sequence_of,
    sifting::{children, smallest},
    slots::{CHUNK, slot_of},
};
use crate::time::Timestamp;

/// To pass so many free places takes as long as to move one entry.
const PLACES_PER_ENTRY: usize = 8;

impl<E> DelayHeap<E> {
    /// Returns the deadline of the first entry, or a moment before it, and
    /// [`NEVER`](Timestamp::NEVER) if there is no entry.
    #[inline]
    pub(in super::super) fn head(&self) -> Timestamp {
        let first = deadline_of(self.first);
        if first.as_nanos() < self.calendar.early() { first } else { first.min(self.bound()) }
    }

    /// Returns a moment before which [`head`](Self::head) is the deadline of the first entry.
    #[inline]
    pub(in super::super) fn exact_before(&self) -> Timestamp {
        Timestamp::from_nanos(self.calendar.early())
    }

    /// Returns `true` if the first entry is known and due at `wanted`, or if nothing in the calendar can
    /// be due at `now`. If it returns `false`, the head is a bound that has come.
    #[inline]
    pub(in super::super) fn is_settled(&self, wanted: Timestamp, now: Timestamp) -> bool {
        let first = deadline_of(self.first);
        let is_wanted = first <= wanted && first.as_nanos() < self.calendar.floor();
        is_wanted || now.as_nanos() < self.calendar.early() || self.is_later(now)
    }

    /// Returns `true` if no entry in the calendar can be the first.
    #[inline]
    pub(in super::super) fn is_exact(&self) -> bool {
        let first = deadline_of(self.first);
        first.as_nanos() < self.calendar.floor() || self.calendar.is_unused()
    }

    /// Moves one chunk of the calendar's nearest bucket to the near part. Returns how much work that was, in
    /// entries moved.
    pub(in super::super) fn bring_near(&mut self) -> usize {
        self.calendar.next_chunk().map_or(0, |chunk| self.move_near(chunk))
    }

    /// Returns the deadlines of the first two entries, or moments before them, and
    /// [`NEVER`](Timestamp::NEVER) for each that does not exist. The second one may be missed if it is
    /// behind many holes of the run.
    pub(in super::super) fn first_two(&mut self) -> [Timestamp; 2] {
        let mut near = self.near_two();
        if near[1].as_nanos() >= self.calendar.floor() {
            self.settle_until(|heap| heap.near_two()[1].as_nanos() < heap.calendar.floor());
            near = self.near_two();
        }
        let mut moments = [near[0], near[1], self.bound()];
        moments.sort_unstable();
        [moments[0], moments[1]]
    }

    /// Lists the entries that are due at `now`, in no particular order. It costs what it lists, and what
    /// comes near from the calendar.
    pub(in super::super) fn list_due(
        &mut self,
        now: Timestamp,
        list: &mut Vec<(Timestamp, Ticket)>,
    ) {
        while !self.calendar.is_unused() && self.calendar.floor() <= now.as_nanos() {
            self.bring_near();
        }
        let latest = key(now, u64::MAX);
        let mut note = |(key, slot)| {
            list.push((deadline_of(key), Ticket { slot, sequence: sequence_of(key) }));
        };
        self.run.up_to(latest).for_each(&mut note);
        self.visit(ROOT, latest, &mut note);
    }

    /// Visits the entries at and below a position of the heap whose keys are no larger than `latest`.
    fn visit(&self, position: usize, latest: u128, note: &mut impl FnMut((u128, u32))) {
        if position < self.end() && self.key(position) <= latest {
            note((self.key(position), self.slots[position]));
            let group = children(position) * ARITY;
            (group..group + ARITY).for_each(|child| self.visit(child, latest, note));
        }
    }

    /// Returns the first two deadlines of the near part.
    fn near_two(&self) -> [Timestamp; 2] {
        let group = children(ROOT);
        let child =
            if group < self.groups.len() { smallest(&self.groups[group].0).1 } else { VACANT };
        let mut keys = [self.root(), child, self.run.first(), self.run.second()];
        keys.sort_unstable();
        [deadline_of(keys[0]), deadline_of(keys[1])]
    }

    /// Returns a moment before which nothing in the calendar is due.
    #[cold]
    fn bound(&self) -> Timestamp {
        let is_large = self.calendar.is_nearest_large(&self.table);
        let nanos = if is_large { self.calendar.early() } else { self.calendar.floor() };
        Timestamp::from_nanos(nanos)
    }

    /// Returns `true` if nothing in the calendar can be due at `now`.
    #[cold]
    fn is_later(&self, now: Timestamp) -> bool {
        self.calendar.is_unused() || now < self.bound()
    }

    /// After the first near entry has left: sees to it that the first entry of all is in the near part,
    /// as far as that is possible in one step.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.first = self.root().min(self.run.first());
        self.settle_if_inexact();
    }

    #[inline]
    pub(super) fn settle_if_inexact(&mut self) {
        if !self.is_exact() {
            self.settle_until(Self::is_exact);
        }
    }

    /// Moves the nearest buckets to the near part, unless one has several chunks, until `is_enough`.
    #[cold]
    fn settle_until(&mut self, is_enough: impl Fn(&Self) -> bool) {
        let mut work = 0;
        while !is_enough(self)
            && work < CHUNK
            && !self.calendar.is_unused()
            && !self.calendar.is_nearest_large(&self.table)
        {
            work += self.bring_near();
        }
    }

    /// Moves the entries of a far chunk to the heap; they keep their slots. Returns how much work that was:
    /// the number of entries, and a little for each free place, since most places may be free.
    pub(super) fn move_near(&mut self, chunk: u32) -> usize {
        let before = self.len;
        let keys = self.calendar.give_up(&mut self.table, chunk);
        for (offset, key) in keys.iter().enumerate() {
            let slot = slot_of(chunk, offset);
            if self.table.get(slot).is_some() {
                self.insert_into_heap(*key, slot);
            }
        }
        let work = self.len - before + keys.len() / PLACES_PER_ENTRY;
        self.table.keep_keys(keys);
        work
    }
}
