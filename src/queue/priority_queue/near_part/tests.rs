//! What the tests of the whole see of the near part, and how much the sorted run spares.

use super::*;

impl NearPart {
    /// Asserts the invariants of the module.
    pub(in super::super) fn check<E>(&self, table: &Slots<E>) {
        self.heap.check(|slot| table.position(slot));
        for slot in self.heap.slots() {
            assert!(table.get(slot).is_some(), "slot {slot} is empty");
        }
        assert!(self.run.holes() <= 2 * (self.run.len() + TOLERANCE), "holes");
        assert_eq!(self.first, self.heap.first().min(self.run.first()));
    }

    pub(in super::super) fn run(&self) -> &SortedRun {
        &self.run
    }

    pub(in super::super) fn heap(&self) -> &ArrayHeap {
        &self.heap
    }
}

/// What arrives in order never enters the heap, and what does not never enters the run.
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
