//! The calendar by itself, and the invariants that the tests of the heap check as well.

use super::*;
use crate::queue::priority_queue::KeyPlace;

impl Calendar {
    /// Asserts the invariants of the module.
    pub(in super::super) fn check<E>(&self, slots: &Slots<E>) {
        let (mut len, mut floor, mut empty) = (0, UNUSED, Vec::new());
        for (number, level) in self.levels.iter().enumerate() {
            let Some(level) = level else { continue };
            assert_eq!(level.first_start, level.starts.into_iter().fold(UNUSED, u64::min));
            for (index, (start, first)) in level.starts.into_iter().zip(level.firsts).enumerate() {
                let owner = BucketPlace { level: number, index, start }.owner();
                let chunks = slots.ring(first);
                assert_eq!(chunks.is_empty(), start == UNUSED);
                if start != UNUSED {
                    floor = floor.min(start - (1 << width_bits(number)) / 8);
                }
                for chunk in &chunks {
                    assert_eq!(slots.chunk(*chunk).owner, owner);
                    let keys = slots.far_keys(*chunk);
                    assert_eq!(keys.len(), slots.chunk(*chunk).used as usize);
                    assert!(
                        keys.iter().all(|key| (key >> 64) as u64 >= start),
                        "before its bucket"
                    );
                    len += keys.len();
                    empty.extend(keys.is_empty().then_some(*chunk));
                }
            }
        }
        assert_eq!((self.len, self.floor), (len, floor));
        assert!(empty.iter().all(|chunk| *chunk == self.idle), "only the idle one is empty");
        slots.check();
    }
}

const fn key(deadline: u64, sequence: u64) -> u128 {
    (deadline as u128) << 64 | sequence as u128
}

/// A calendar, its slot table, and a first entry that is due at the beginning of time.
struct Subject {
    calendar: Calendar,
    slots: Slots<u64>,
    last: u64,
}

impl Subject {
    const fn new() -> Self {
        Self { calendar: Calendar::new(), slots: Slots::new(), last: 0 }
    }

    /// Inserts the last sequence as an element, and returns it with its slot.
    fn insert(&mut self, distance: u64, deadline: u64) -> Option<(u32, u64)> {
        self.last += 1;
        let key = key(deadline, self.last);
        let element = UnderLock::new(self.last);
        let inserted = self.calendar.insert(&mut self.slots, distance, key, element);
        self.calendar.check(&self.slots);
        Some((inserted.ok()?, self.last))
    }

    fn remove(&mut self, (slot, sequence): (u32, u64)) -> Option<u64> {
        let removed = self.calendar.remove(&mut self.slots, slot, sequence);
        self.calendar.check(&self.slots);
        removed.map(|(entry, _)| {
            assert_eq!((entry.sequence, *entry.element), (sequence, sequence));
            entry.deadline.as_nanos()
        })
    }
}

#[test]
fn a_bucket_begins_before_its_entries_and_is_narrow() {
    for level in NEAREST..64 {
        for distance in [1 << level, (1 << level) + 12_345 % (1 << level), u64::MAX >> (63 - level)]
        {
            for first in [0_u64, 1, 98_765_432_123] {
                let deadline = first.saturating_add(distance);
                let place = BucketPlace::of(distance, key(deadline, 0));
                let width = 1 << width_bits(place.level);
                assert!(place.start <= deadline && deadline - place.start < width);
                assert!(width <= distance / 16);
                assert!(place.start - width / 8 > first, "its turn has not come");
            }
        }
    }
}

#[test]
fn an_entry_that_is_not_far_is_not_for_the_calendar() {
    let mut subject = Subject::new();
    assert_eq!(subject.insert((1 << NEAREST) - 1, 1_000), None);
    assert!(subject.calendar.is_unused() && subject.calendar.levels.is_empty());
    assert!(subject.insert(1 << NEAREST, 1_000).is_some());
}

/// M148: the first entry may have changed a lot since a bucket was opened.
#[test]
fn two_buckets_never_share_a_place() {
    let mut subject = Subject::new();
    let width = 1 << width_bits(2);
    let (distance, deadline) = (4 << NEAREST, 1_000 * width);
    let there = subject.insert(distance, deadline).expect("it is far");
    assert_eq!(subject.insert(distance, deadline + RING as u64 * width), None);
    assert!(subject.insert(distance, deadline + width - 1).is_some(), "the same bucket");
    assert!(subject.insert(distance, deadline + width).is_some(), "its neighbour");
    assert_eq!(subject.calendar.floor, deadline - width / 8);
    assert_eq!(subject.remove(there), Some(deadline));
}

/// M147.
#[test]
fn the_floor_is_the_turn_of_the_nearest_bucket_in_use() {
    let mut subject = Subject::new();
    let mut begins = Vec::new();
    for level in [9, 5, 0, 7, 2] {
        let deadline = (1 << (NEAREST + level)) + 99;
        begins.push((deadline, subject.insert(deadline, deadline).expect("it is far")));
    }
    begins.sort_unstable();
    for (deadline, entry) in begins {
        let place = BucketPlace::of(deadline, key(deadline, 0));
        assert_eq!(subject.calendar.floor, place.start - (1 << width_bits(place.level)) / 8);
        assert_eq!(subject.remove(entry), Some(deadline));
        // The bucket is still in use, as the idle one, until its chunk is brought near.
        let chunk = subject.calendar.next_chunk(&subject.slots).expect("there is one");
        assert!(subject.calendar.give_up(&mut subject.slots, chunk).is_empty());
        subject.calendar.check(&subject.slots);
    }
    assert!(subject.calendar.is_unused());
}

/// M149.
#[test]
fn a_ticket_finds_its_entry_and_no_other() {
    let mut subject = Subject::new();
    let old = subject.insert(1_000, 1_000).expect("it is far");
    let other = subject.insert(1_000, 1_000).expect("it is far");
    assert_eq!(subject.remove((other.0, old.1)), None);
    assert_eq!(subject.remove(old), Some(1_000));
    assert_eq!(subject.remove(old), None);
    let new = subject.insert(1_000, 1_001).expect("it is far");
    assert_eq!((new.0, subject.remove(old)), (old.0, None), "the slot was used again");
    assert_eq!([subject.remove(new), subject.remove(other)], [Some(1_001), Some(1_000)]);
    // A free place holds the next free one's number.
    let found = subject.calendar.remove(&mut subject.slots, old.0, u64::from(other.0));
    assert!(found.is_none());
}

/// A timeout that is alone in its bucket is set and cancelled again and again.
#[test]
fn an_entry_that_comes_and_goes_allocates_once() {
    let mut subject = Subject::new();
    let slots: Vec<_> = (0..9)
        .map(|_| {
            let entry = subject.insert(1_000, 1_000).expect("it is far");
            assert_eq!(subject.remove(entry), Some(1_000));
            assert_eq!(subject.calendar.idle, chunk_of(entry.0));
            entry.0
        })
        .collect();
    assert!(slots.iter().all(|slot| *slot == slots[0]));
}

/// M150.
#[test]
fn memory_of_far_entries_comes_back_but_for_one_chunk() {
    for round in 0..3 {
        let mut subject = Subject::new();
        let distances = (0..2_000).map(|n| (1 << (NEAREST + n % 5)) + n as u64 % 3);
        let mut entries: Vec<_> = distances
            .map(|distance| subject.insert(distance, distance).expect("it is far"))
            .collect();
        match round {
            0 => {}
            1 => entries.reverse(),
            _ => entries.sort_by_key(|(_, n)| n.wrapping_mul(7_919) % 10_007),
        }
        assert!(
            subject.slots.backed_chunks() >= 2_000 / crate::queue::priority_queue::slots::CHUNK
        );
        for entry in entries {
            assert!(subject.remove(entry).is_some());
        }
        assert_eq!((subject.calendar.len, subject.slots.backed_chunks()), (0, 1));
    }
}

/// M151: a chunk is given up with its free places, which the near part fills.
#[test]
fn a_chunk_that_comes_near_keeps_its_slots_and_its_free_places() {
    let mut subject = Subject::new();
    let entries: Vec<_> =
        (0..6).map(|_| subject.insert(1_000, 1_000).expect("it is far")).collect();
    let (gone, kept) = entries.split_at(3);
    assert!(gone.iter().all(|entry| subject.remove(*entry).is_some()));
    let chunk = subject.calendar.next_chunk(&subject.slots).expect("it is the nearest");
    let keys = subject.calendar.give_up(&mut subject.slots, chunk);
    subject.calendar.check(&subject.slots);
    assert!(subject.calendar.is_unused() && subject.calendar.len == 0);
    for (slot, sequence) in kept {
        assert_eq!(keys[*slot as usize], key(1_000, *sequence));
        assert_eq!(subject.slots.get(*slot), Some(sequence));
        assert!(matches!(subject.slots.key_place(*slot), Some(KeyPlace::Near(_))));
    }
    let mut filled: Vec<_> = gone.iter().map(|_| subject.slots.store(0, 0)).collect();
    filled.sort_unstable();
    assert_eq!(filled, gone.iter().map(|(slot, _)| *slot).collect::<Vec<_>>());
}
