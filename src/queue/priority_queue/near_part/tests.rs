//! The invariants of the near part, for the tests of the whole heap, and how much the sorted run saves.

use super::{sorted_run::TOLERANCE, *};

impl NearPart {
    /// Asserts the invariants of the module.
    pub(in super::super) fn check<E>(&self, table: &Slots<E>) {
        self.heap.check(|slot| table.position(slot));
        for slot in self.heap.slots() {
            assert!(table.get(slot).is_some(), "slot {slot} is empty");
        }
        assert!(self.run.holes() <= 2 * (self.run.len() + TOLERANCE), "holes");
        self.lanes.check();
        assert_eq!(self.first, self.heap.first().min(self.run.first()).min(self.lanes.first));
    }

    pub(in super::super) fn run(&self) -> &SortedRun {
        &self.run
    }

    pub(in super::super) fn heap(&self) -> &ArrayHeap {
        &self.heap
    }
}

/// Entries that arrive in order never enter the heap, and the others never enter the run.
#[test]
fn only_entries_out_of_order_enter_the_heap() {
    let (mut near, mut table) = (NearPart::new(), Slots::new());
    for key in [2, 3, 5, 7, 4, 6, 8] {
        near.insert(&mut table, key, UnderLock::new(key));
        near.check(&table);
    }
    assert_eq!((near.heap.len(), near.run.len()), (2, 5));
    let popped: Vec<_> = std::iter::from_fn(|| near.pop(&mut table)).map(|(key, _)| key).collect();
    assert_eq!(popped, [2, 3, 4, 5, 6, 7, 8]);
}

/// Entries of a burst are in lanes while the heap is large, and all leave in order.
#[test]
fn a_burst_passes_by_a_large_heap() {
    let (mut near, mut table) = (NearPart::new(), Slots::new());
    let mut keys: Vec<u128> =
        (0..500_u64).map(|n| u128::from(1_000 + n * n % 7) << 64 | u128::from(n)).collect();
    for key in &keys {
        near.insert(&mut table, *key, UnderLock::new(*key));
        near.check(&table);
    }
    assert!(near.heap.len() < 20 && near.lanes.len > 300);
    let popped: Vec<_> = std::iter::from_fn(|| near.pop(&mut table)).map(|(key, _)| key).collect();
    keys.sort_unstable();
    assert_eq!(popped, keys);
}

/// A run has only so many places, and entries that come later go to the heap.
#[test]
fn what_a_full_run_does_not_admit_goes_to_the_heap() {
    let (mut near, mut table) = (NearPart::new(), Slots::new());
    let keys = 1..70_000_u128;
    keys.clone().for_each(|key| _ = near.insert(&mut table, key << 64, UnderLock::new(key)));
    assert!(near.heap.len() > 0);
    near.check(&table);
    assert!(keys.eq(std::iter::from_fn(|| near.pop(&mut table)).map(|(key, _)| key >> 64)));
}

/// An entry that is moved out of the run leaves a hole, as a removed one does, and holes stay just as few.
#[test]
fn what_is_reset_leaves_few_holes() {
    let (mut near, mut table) = (NearPart::new(), Slots::new());
    let keys = 1..1_000_u128;
    let slots = keys.map(|key| near.insert(&mut table, key << 64, UnderLock::new(key)));
    let slots: Vec<_> = slots.collect();
    for (slot, key) in slots[1..998].iter().zip(2_000..) {
        let position = table.position(*slot);
        near.reset_at(&mut table, position, (key << 64, *slot));
        near.check(&table);
    }
    assert_eq!(near.len(), 999);
}
