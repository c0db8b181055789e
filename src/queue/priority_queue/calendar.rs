//! The calendar: far entries, in buckets by time, with no order inside a bucket.
//!
//! Far entries are mostly timeouts that are cancelled long before they are due: sorting them would be wasted work.
//! While the near part has more than a few entries, an entry that is due 17 ms or more after the first *near* one goes
//! into a *bucket*, as in a calendar queue, unless the sorted run takes it. Its key is stored beside its element in a
//! chunk of the [slot table](super::slots), so a removal touches no other entry.
//!
//! # Buckets
//!
//! An entry that is due `d` nanoseconds after the first near one, with `2^k ≤ d < 2^(k+1)`, goes to level `k`, into the
//! bucket in which its deadline lies. Each bucket of this level is `2^(k-4)` nanoseconds wide, which is at most a
//! sixteenth of `d`. So the level needs about 16 buckets at a time.
//!
//! ```text
//!   first entry
//!   │      level 24, 1 ms each     level 25, 2.1 ms each       level 26, 4.2 ms each
//!   ├──────┼┴┴┴┴┴┴┴┴┼──┴──┴──┴──┴──┴──┼────┴────┴────┴────┴────┴────┴────┼─ …
//!   0      17 ms    34 ms             67 ms                              134 ms
//! ```
//!
//! A level is a ring of [`RING`] places, in which the bucket that begins at `start` has the place `start / width`
//! modulo `RING`. If another bucket has that place, the entry goes to the near part.
//!
//! # Why the order holds
//!
//! No entry is due before its bucket begins. The *turn* of a bucket comes an eighth of its width before the bucket
//! begins, and `floor` is the earliest turn of any bucket. So while the first near entry is due before the floor, it is
//! first overall. The [priority queue](super) maintains this condition: once no near entry is due before the floor, it
//! moves the bucket whose turn is the floor to the near part.
//!
//! A call of `settle_until` moves no further chunk once it has moved 512 entries. A chunk has at most 512, so the call
//! moves fewer than 1,024. A bucket of several chunks stays until its turn comes. Then its chunks move one by one, and
//! the caller may release the lock in between.
//!
//! # Invariants
//!
//! 1. No entry of a bucket is due before the bucket's `start`.
//! 2. Each bucket in use has at least one chunk, and `floor` is the earliest turn of these buckets.
//! 3. Every far chunk has an entry, except perhaps `idle`.

use super::{
    QueueEntry, SMALL, UnderLock, deadline_of,
    slots::{NONE, Slots, chunk_of},
};

/// The lowest level, whose entries are due 2²⁴ ns (17 ms) or more after the first near one. So of a million tasks due
/// within a second, the heap has one in sixty at a time, and stays in cache.
pub(super) const NEAREST: u32 = if SMALL { 6 } else { 24 };
/// A new entry that is due less than this many nanoseconds after the first near one stays out of the calendar.
pub(super) const DISTANCE: u64 = 1 << NEAREST;
/// The number of places in a level: about twice the number of buckets that the level needs at a time.
const RING: usize = 32;
const RING_BITS: u32 = RING.trailing_zeros();
/// The width of a bucket of level `k` is 2^(k - FINENESS) ns.
const FINENESS: u32 = 4;
/// The start of an unused bucket, and the floor if no bucket is in use.
const UNUSED: u64 = u64::MAX;

pub(super) struct Calendar {
    pub(super) len: usize,
    /// The earliest turn of any bucket, in nanoseconds: no far entry is due earlier. `UNUSED` if no bucket is in use.
    pub(super) floor: u64,
    /// The number of the bucket whose turn comes first; `NONE` if no bucket is in use.
    nearest: u32,
    /// The chunk that became empty most recently; it may have entries again. Keeping it saves allocations while the
    /// only entry of a bucket comes and goes.
    idle: u32,
    levels: Vec<Option<Box<Level>>>,
}

struct Level {
    first_start: u64,
    starts: [u64; RING],
    firsts: [u32; RING],
}

#[derive(Clone, Copy)]
struct BucketPlace {
    level: usize,
    index: usize,
    start: u64,
}

impl BucketPlace {
    #[inline(always)]
    const fn of(distance: u64, key: u128) -> Self {
        let level = (distance.ilog2() - NEAREST) as usize;
        let number = deadline_of(key).as_nanos() >> width_bits(level);
        let index = number as usize & (RING - 1);
        Self { level, index, start: number << width_bits(level) }
    }

    /// Returns the bucket's number: the `owner` of each of its chunks.
    const fn owner(self) -> u32 {
        (self.level as u32) << RING_BITS | self.index as u32
    }
}

#[inline(always)]
const fn width_bits(level: usize) -> u32 {
    level as u32 + NEAREST - FINENESS
}

impl Calendar {
    pub(super) const fn new() -> Self {
        Self { len: 0, floor: UNUSED, nearest: NONE, idle: NONE, levels: Vec::new() }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.floor == UNUSED
    }

    pub(super) fn is_nearest_large<E>(&self, slots: &Slots<E>) -> bool {
        self.first_chunk(self.nearest).is_some_and(|first| slots.chunk(first).next != first)
    }

    /// Stores an element that is due `distance` nanoseconds after the first near one, and returns the slot. Returns the
    /// element instead if it has to go to the near part.
    #[inline(always)]
    pub(super) fn insert<E>(
        &mut self,
        slots: &mut Slots<E>,
        distance: u64,
        key: u128,
        element: UnderLock<E>,
    ) -> Result<u32, UnderLock<E>> {
        if distance < DISTANCE {
            return Err(element);
        }
        let place = BucketPlace::of(distance, key);
        match self.insert_at(slots, place, key, element) {
            Err(element) if self.open(slots, place) => self.insert_at(slots, place, key, element),
            inserted => inserted,
        }
    }

    #[inline(always)]
    fn insert_at<E>(
        &mut self,
        slots: &mut Slots<E>,
        place: BucketPlace,
        key: u128,
        element: UnderLock<E>,
    ) -> Result<u32, UnderLock<E>> {
        let Some(Some(level)) = self.levels.get_mut(place.level) else { return Err(element) };
        if level.starts[place.index] != place.start {
            return Err(element);
        }
        let slot = slots.insert_far(&mut level.firsts[place.index], key, element)?;
        self.len += 1;
        Ok(slot)
    }

    /// Removes the far entry with this slot and this sequence number. Also returns `true` if the nearest bucket may
    /// have changed.
    #[inline(always)]
    pub(super) fn remove<E>(
        &mut self,
        slots: &mut Slots<E>,
        slot: u32,
        sequence: u64,
    ) -> Option<(QueueEntry<UnderLock<E>>, bool)> {
        let (key, element, is_news) = slots.remove_far(slot, sequence)?;
        self.len -= 1;
        if is_news {
            self.note_removal(slots, chunk_of(slot));
        }
        Some((QueueEntry::of(key, element), is_news))
    }

    pub(super) fn start_of<E>(&self, slots: &Slots<E>, chunk: u32) -> u64 {
        let owner = slots.chunk(chunk).owner as usize;
        let level = self.levels.get(owner / RING).and_then(Option::as_ref);
        level.map_or(UNUSED, |level| level.starts[owner % RING])
    }

    /// Returns the chunk that follows the first one in the nearest bucket's ring. If no entry was removed and the first
    /// chunk has room, this is the oldest chunk. In this case entries with equal deadlines come near in the order of
    /// submission, the only order in which a lane admits them.
    pub(super) fn next_chunk<E>(&self, slots: &Slots<E>) -> Option<u32> {
        self.first_chunk(self.nearest).map(|first| slots.chunk(first).next)
    }

    pub(super) fn give_up<E>(&mut self, slots: &mut Slots<E>, chunk: u32) -> Vec<u128> {
        let used = slots.chunk(chunk).used;
        if chunk == self.idle {
            self.idle = NONE;
        }
        self.len -= used as usize;
        let mut keys = Vec::new();
        self.change_ring(slots, chunk, &mut |slots, first| {
            if used > 0 {
                keys = slots.make_near(chunk, first);
            } else {
                slots.discard_far(chunk, first);
            }
        });
        keys
    }

    /// Adds a chunk to the bucket that belongs at `place`. If another bucket is there, or there are too many chunks,
    /// adds none and returns `false`.
    #[cold]
    #[inline(never)]
    fn open<E>(&mut self, slots: &mut Slots<E>, place: BucketPlace) -> bool {
        if self.levels.len() <= place.level {
            self.levels.resize_with(place.level + 1, || None);
        }
        let level = self.levels[place.level].get_or_insert_with(Level::new);
        let start = &mut level.starts[place.index];
        let is_other = *start != UNUSED && *start != place.start;
        if is_other || !slots.add_far_chunk(&mut level.firsts[place.index], place.owner()) {
            return false;
        }
        *start = place.start;
        level.first_start = level.first_start.min(place.start);
        self.compare(place.level, place.start);
        true
    }

    #[cold]
    fn note_removal<E>(&mut self, slots: &mut Slots<E>, chunk: u32) {
        if slots.chunk(chunk).used > 0 {
            self.change_ring(slots, chunk, &mut |slots, first| slots.put_first(chunk, first));
            return;
        }
        let idle = std::mem::replace(&mut self.idle, chunk);
        if idle != NONE && idle != chunk && slots.chunk(idle).used == 0 {
            self.change_ring(slots, idle, &mut |slots, first| slots.discard_far(idle, first));
        }
    }

    /// Applies `change` to the ring of a chunk's bucket. Marks the bucket as unused if its ring is then empty.
    fn change_ring<E>(
        &mut self,
        slots: &mut Slots<E>,
        chunk: u32,
        change: &mut dyn FnMut(&mut Slots<E>, &mut u32),
    ) {
        let owner = slots.chunk(chunk).owner;
        let (number, index) = (owner as usize / RING, owner as usize % RING);
        let Some(Some(level)) = self.levels.get_mut(number) else { return };
        change(slots, &mut level.firsts[index]);
        if level.firsts[index] == NONE {
            let start = std::mem::replace(&mut level.starts[index], UNUSED);
            if start == level.first_start {
                level.first_start = level.starts.iter().copied().fold(UNUSED, u64::min);
            }
            if owner == self.nearest {
                self.find_nearest();
            }
        }
    }

    fn find_nearest(&mut self) {
        (self.floor, self.nearest) = (UNUSED, NONE);
        for number in 0..self.levels.len() {
            let start = self.levels[number].as_ref().map_or(UNUSED, |level| level.first_start);
            if start != UNUSED {
                self.compare(number, start);
            }
        }
    }

    /// Makes the bucket that begins at `start` the nearest one, if its turn comes before the floor.
    fn compare(&mut self, level: usize, start: u64) {
        let turn = start - (1 << width_bits(level) >> 3);
        if turn < self.floor {
            let index = (start >> width_bits(level)) as usize & (RING - 1);
            (self.floor, self.nearest) = (turn, BucketPlace { level, index, start }.owner());
        }
    }

    fn first_chunk(&self, owner: u32) -> Option<u32> {
        let level = self.levels.get(owner as usize / RING)?.as_ref()?;
        Some(level.firsts[owner as usize % RING])
    }
}

impl Level {
    fn new() -> Box<Self> {
        Box::new(Self { first_start: UNUSED, starts: [UNUSED; RING], firsts: [NONE; RING] })
    }
}

#[cfg(test)]
mod tests;
