//! The priority queue: which entry is due next. It knows nothing of locks, clocks or tasks. Both delay queues are built
//! from it, and other modules call it *the heap*.
//!
//! ```text
//!   near part   array heap │ sorted run │ lanes    in order
//!   calendar    bucket, bucket, …          unordered, until a bucket's time comes near
//!   slots       slot ─▶ element, and the position of its key, or the key itself
//! ```
//!
//! * The [sorted run](sorted_run) has entries that arrive in deadline order.
//! * The [`Calendar`] has most of the entries that are due 17 ms or more after the first one. The cost of each entry
//!   is independent of the number of entries. Most are timeouts and are cancelled before they come near; the others
//!   move to the [near part](near_part), bucket by bucket.
//! * The [lanes] take bursts that arrive while the [array heap](array_heap) is large. The array heap takes all other
//!   entries.
//! * [`Slots`] has the elements, each at a place that does not change.
//!
//! # Keys
//!
//! A *key* is one 128-bit number that orders entries by deadline and then by submission, and never wraps around:
//!
//! ```text
//!   key = deadline (64 bits, nanoseconds) │ sequence (64 bits, different for each element)
//! ```
//!
//! # The head
//!
//! The head is the deadline of the first entry, as far as this deadline is known. The head is *exact* while the first
//! near entry is due before the calendar's [floor](calendar), the moment before which no entry of the calendar is due.
//! A call that takes out the first near entry also brings the nearest buckets near as needed
//! ([`settle_until`](PriorityQueue::settle_until)), but stops at a work limit or a bucket of several chunks. Then the
//! head is only a *bound*: the floor. No entry is then due before the floor, so a thread that sleeps until the floor
//! is not late. A thread that finds the bound due brings one chunk near, publishes the new head, and looks again.
//!
//! # Invariants
//!
//! 1. Each entry is in exactly one part. Its slot tells which, and holds a far entry's key or a near one's position.
//! 2. If the first near entry is due before the floor, it is first overall. Otherwise the calendar is unused, or the
//!    last attempt to move entries near stopped early: `settle_until` at one of its limits, `bring_near` after one
//!    chunk, or `list_due` once the floor was later than `now`.

mod array_heap;
mod calendar;
mod lanes;
mod near_part;
mod slots;
mod sorted_run;

use std::{
    mem::{self, ManuallyDrop},
    ops::Range,
};

use self::{
    array_heap::VACANT,
    calendar::Calendar,
    near_part::NearPart,
    slots::{CHUNK, KeyPlace, Slots, chunk_of, slot_of},
};
use super::{SnapshotEntry, Unwanted};
use crate::{entry::Ticket, time::Timestamp};

/// The number of entries at which the owner refuses submissions. The owner may still queue entries again: positions
/// and slots have room for twice as many. The crate's own tests use a smaller limit, which they can reach.
pub(super) const CAPACITY: usize = if cfg!(test) { 1 << 17 } else { 1 << 30 };
/// Until the near part has more entries than this, all new ones go there: a heap this small needs no calendar.
const FEW: usize = if SMALL { 2 } else { 16 };
/// Distances from the first near entry, in nanoseconds. If the sorted run admits a new entry at such a distance, the
/// entry goes to the run, which costs less than the calendar. The range ends at about a second.
const IN_ORDER: Range<u64> =
    calendar::DISTANCE..if SMALL { calendar::DISTANCE + 5 } else { 1 << 30 };
/// `true` in the crate's own tests and the models: there the calendar begins 64 nanoseconds ahead, and chunks are
/// small, so that a few entries spread over all parts of the queue.
const SMALL: bool = cfg!(any(test, shuttle, loom));
/// Skipping this many free places of a chunk takes as long as moving one entry.
const PLACES_PER_ENTRY: usize = 8;

#[derive(Debug)]
pub(crate) struct QueueEntry<E> {
    pub(crate) deadline: Timestamp,
    pub(crate) sequence: u64,
    pub(crate) element: E,
}

/// An element while a thread handles it under the lock. It is never dropped there, not even by a panic, so the compiler
/// need not keep it in memory at every step for the sake of unwinding.
pub(crate) type UnderLock<E> = ManuallyDrop<E>;

impl<E> QueueEntry<UnderLock<E>> {
    #[inline(always)]
    pub(crate) fn owned(self) -> QueueEntry<E> {
        let Self { deadline, sequence, element } = self;
        QueueEntry { deadline, sequence, element: UnderLock::into_inner(element) }
    }
}

impl<E> QueueEntry<E> {
    #[inline(always)]
    const fn of(key: u128, element: E) -> Self {
        Self { deadline: deadline_of(key), sequence: sequence_of(key), element }
    }
}

const fn key(deadline: Timestamp, sequence: u64) -> u128 {
    (deadline.as_nanos() as u128) << 64 | sequence as u128
}

const fn deadline_of(key: u128) -> Timestamp {
    Timestamp::from_nanos((key >> 64) as u64)
}

const fn sequence_of(key: u128) -> u64 {
    key as u64
}

const fn ticket_of(key: u128, slot: u32) -> Ticket {
    Ticket { slot, sequence: sequence_of(key) }
}

/// Returns the two smallest of four values, which are given as two ordered pairs.
pub(super) fn two_smallest<T: Copy + Ord>([a, b]: [T; 2], [c, d]: [T; 2]) -> [T; 2] {
    if a <= c { [a, b.min(c)] } else { [c, a.min(d)] }
}

pub(crate) struct PriorityQueue<E> {
    table: Slots<E>,
    near: NearPart,
    calendar: Calendar,
}

impl<E> PriorityQueue<E> {
    pub(crate) fn new() -> Self {
        Self { table: Slots::new(), near: NearPart::new(), calendar: Calendar::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.near.len() + self.calendar.len
    }

    /// Inserts an element. No two entries may have the same sequence number.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        deadline: Timestamp,
        sequence: u64,
        mut element: UnderLock<E>,
    ) -> Ticket {
        let key = key(deadline, sequence);
        if self.near.len() > FEW {
            let distance = deadline.as_nanos().saturating_sub(self.first_near().as_nanos());
            let is_of_run = IN_ORDER.contains(&distance) && self.near.admits_in_order(key);
            if !is_of_run {
                match self.calendar.insert(&mut self.table, distance, key, element) {
                    Ok(slot) => return Ticket { slot, sequence },
                    Err(back) => element = back,
                }
            }
        }
        let slot = self.near.insert(&mut self.table, key, element);
        Ticket { slot, sequence }
    }

    /// Takes out the first entry, which must be [known](Self::first_key).
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<QueueEntry<UnderLock<E>>> {
        let (key, slot) = self.near.pop(&mut self.table)?;
        self.settle();
        self.entry(key, slot)
    }

    /// Returns the first entry without taking it; `None` if there is none, or if it is not [known](Self::first_key).
    pub(super) fn peek(&self) -> Option<SnapshotEntry<&E>> {
        self.first_key()?;
        let (key, mut first) = (self.near.first(), None);
        self.near.up_to(key, &mut |entry| first = Some(entry.1));
        let (slot, element) = (first?, self.table.get(first?)?);
        Some(SnapshotEntry { deadline: deadline_of(key), ticket: ticket_of(key, slot), element })
    }

    /// Removes the entry that has this ticket, if any. Also returns `true` if the head may have changed.
    #[inline(always)]
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<(QueueEntry<UnderLock<E>>, bool)> {
        let (entry, is_news) = match self.table.key_place(ticket.slot)? {
            KeyPlace::Near(position) => {
                let key = self.near.key(position);
                if sequence_of(key) != ticket.sequence {
                    return None;
                }
                let entry = self.entry(key, ticket.slot)?;
                (entry, self.near.remove_at(&mut self.table, position, key))
            }
            KeyPlace::Far(_) => {
                self.calendar.remove(&mut self.table, ticket.slot, ticket.sequence)?
            }
        };
        if is_news {
            self.settle();
        }
        Some((entry, is_news))
    }

    pub(crate) fn reset(&mut self, ticket: Ticket, deadline: Timestamp) -> bool {
        let Ticket { slot, sequence } = ticket;
        let key = key(deadline, sequence);
        let position = match self.table.key_place(slot) {
            Some(KeyPlace::Near(position)) if sequence_of(self.near.key(position)) == sequence => {
                position
            }
            Some(KeyPlace::Far(far)) if sequence_of(far) == sequence => {
                let chunk = chunk_of(slot);
                if deadline.as_nanos() >= self.calendar.start_of(&self.table, chunk) {
                    self.table.set_far_key(slot, key);
                    return true;
                }
                // The entry's slot must not change, and a chunk belongs as a whole to a bucket or to the near part.
                self.move_near(chunk);
                self.table.position(slot)
            }
            _ => return false,
        };
        self.near.reset_at(&mut self.table, position, (key, slot));
        self.settle();
        true
    }

    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        let key = self.key_of(ticket.slot)?;
        (sequence_of(key) == ticket.sequence).then(|| deadline_of(key))
    }

    /// Moves every `unwanted` entry to `removed`, in no particular order.
    pub(crate) fn remove_where(
        &mut self,
        unwanted: Unwanted<'_, E>,
        removed: &mut Vec<QueueEntry<E>>,
    ) {
        let mut tickets = Vec::new();
        self.for_each(&mut |SnapshotEntry { deadline, ticket, element }| {
            if unwanted(deadline, element) {
                tickets.push(ticket);
            }
        });
        // Far entries first: otherwise they would come near, one bucket after another, as the near part loses its own.
        let is_far = |it: &Ticket| matches!(self.table.key_place(it.slot), Some(KeyPlace::Far(_)));
        let (far, near): (Vec<_>, Vec<_>) = tickets.into_iter().partition(is_far);
        let entries = far.into_iter().chain(near).filter_map(|ticket| self.remove(ticket));
        removed.extend(entries.map(|(entry, _)| entry.owned()));
    }

    /// Passes all entries to `note`, in no particular order.
    pub(super) fn for_each<'a>(&'a self, note: &mut dyn FnMut(SnapshotEntry<&'a E>)) {
        let mut next = 0;
        while let Some(slot) = self.table.next_used(next) {
            next = slot + 1;
            if let (Some(key), Some(element)) = (self.key_of(slot), self.table.get(slot)) {
                let (deadline, ticket) = (deadline_of(key), ticket_of(key, slot));
                note(SnapshotEntry { deadline, ticket, element });
            }
        }
    }

    pub(crate) fn remove_all(&mut self) -> Self {
        mem::replace(self, Self::new())
    }

    /// Takes the element of a near entry out of its slot. The caller takes the key out of the near part.
    // Always inlined: returned through memory, the entry would be written in halves and read as a whole, and that
    // store-forwarding stall takes ten nanoseconds under the lock.
    #[inline(always)]
    fn entry(&mut self, key: u128, slot: u32) -> Option<QueueEntry<UnderLock<E>>> {
        Some(QueueEntry::of(key, self.table.remove(slot)?))
    }

    fn key_of(&self, slot: u32) -> Option<u128> {
        Some(match self.table.key_place(slot)? {
            KeyPlace::Near(position) => self.near.key(position),
            KeyPlace::Far(key) => key,
        })
    }
}

/// Finding the first entry of the whole queue, and keeping it in the near part.
impl<E> PriorityQueue<E> {
    /// Returns the deadline and the sequence number of the first entry; `None` if the queue is empty, or if its first
    /// entry is not known until more chunks have [come near](Self::bring_near).
    #[inline]
    pub(crate) fn first_key(&self) -> Option<(Timestamp, u64)> {
        let key = self.near.first();
        let is_known = key != VACANT && self.is_settled(Timestamp::NEVER);
        is_known.then(|| (deadline_of(key), sequence_of(key)))
    }

    /// Returns the deadline of the first entry, or a bound before it; `NEVER` if there is no entry.
    #[inline]
    pub(super) fn head(&self) -> Timestamp {
        self.first_near().min(self.floor())
    }

    fn first_near(&self) -> Timestamp {
        deadline_of(self.near.first())
    }

    fn floor(&self) -> Timestamp {
        Timestamp::from_nanos(self.calendar.floor)
    }

    /// Returns `true` if the first entry is known, or if the calendar's floor is later than `now`. Otherwise the head
    /// is a bound, and is due at `now`.
    #[inline]
    pub(super) fn is_settled(&self, now: Timestamp) -> bool {
        self.first_near().min(now) < self.floor() || self.calendar.is_unused()
    }

    /// Moves one chunk of the calendar's nearest bucket to the near part. Returns the work done, in entries.
    pub(super) fn bring_near(&mut self) -> usize {
        self.calendar.next_chunk(&self.table).map_or(0, |chunk| self.move_near(chunk))
    }

    /// Returns the deadlines of the first two entries, or bounds before them; `NEVER` for an entry not found. May
    /// overlook the second entry: behind many holes in a run, or in the calendar while the head is a bound.
    pub(super) fn first_two(&mut self) -> [Timestamp; 2] {
        if self.near_two()[1] >= self.floor() {
            self.settle_until(|queue| queue.near_two()[1] < queue.floor());
        }
        two_smallest(self.near_two(), [self.floor(), Timestamp::NEVER])
    }

    /// Moves each bucket whose turn comes by `now` to the near part. Lists the entries due at `now`, in any order.
    pub(super) fn list_due(&mut self, now: Timestamp, list: &mut Vec<SnapshotEntry<()>>) {
        while !self.calendar.is_unused() && self.floor() <= now {
            self.bring_near();
        }
        let latest = key(now, u64::MAX);
        self.near.up_to(latest, &mut |(key, slot)| {
            let (deadline, ticket) = (deadline_of(key), ticket_of(key, slot));
            list.push(SnapshotEntry { deadline, ticket, element: () });
        });
    }

    fn near_two(&self) -> [Timestamp; 2] {
        let [first, second] = self.near.first_two();
        [deadline_of(first), deadline_of(second)]
    }

    /// Moves the first entry of all to the near part, within the limits of [`settle_until`](Self::settle_until). Called
    /// by `pop`, `remove` and `reset`, which may leave that entry in the calendar.
    #[inline]
    fn settle(&mut self) {
        if !self.is_settled(Timestamp::NEVER) {
            self.settle_until(|queue| queue.is_settled(Timestamp::NEVER));
        }
    }

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

    /// Moves the entries of a far chunk to the near part; they keep their slots. Returns the work done, in entries:
    /// each place of the chunk also counts as a fraction of an entry, since most places may be free.
    fn move_near(&mut self, chunk: u32) -> usize {
        let before = self.near.len();
        let keys = self.calendar.give_up(&mut self.table, chunk);
        for (offset, key) in keys.iter().enumerate() {
            let slot = slot_of(chunk, offset);
            if self.table.get(slot).is_some() {
                self.near.insert_slot(&mut self.table, (*key, slot));
            }
        }
        let work = self.near.len() - before + keys.len() / PLACES_PER_ENTRY;
        self.table.keep_keys(keys);
        work
    }
}

/// The heaps of a drained queue, taken out whole. A thread then takes the elements out without a lock, in the order of
/// their slots. This is roughly the order of allocation, so memory is read from one end to the other.
pub(crate) struct Drained<E> {
    heaps: Vec<PriorityQueue<E>>,
    /// The slot, in the last of `heaps`, at which `next` begins to search.
    slot: u32,
    len: usize,
}

impl<E> Drained<E> {
    pub(super) fn new(heaps: Vec<PriorityQueue<E>>) -> Self {
        let len = heaps.iter().map(PriorityQueue::len).sum();
        Self { heaps, slot: 0, len }
    }

    /// Takes out the remaining elements, chunk by chunk, with `None` for each free place. Does not look up the
    /// elements' keys: if there are many elements, most lookups would miss the cache.
    pub(crate) fn take_chunks(&mut self) -> Vec<Vec<Option<E>>> {
        self.len = 0;
        mem::take(&mut self.heaps).into_iter().flat_map(|heap| heap.table.into_chunks()).collect()
    }
}

impl<E> Iterator for Drained<E> {
    type Item = QueueEntry<E>;

    fn next(&mut self) -> Option<QueueEntry<E>> {
        loop {
            let heap = self.heaps.last_mut()?;
            if let Some(slot) = heap.table.next_used(self.slot) {
                self.slot = slot + 1;
                self.len -= 1;
                let key = heap.key_of(slot)?;
                return Some(QueueEntry::of(key, heap.table.take(slot)?));
            }
            self.heaps.pop();
            self.slot = 0;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<E> ExactSizeIterator for Drained<E> {}

#[cfg(test)]
mod tests;
