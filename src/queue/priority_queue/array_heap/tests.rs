//! The heap alone, against a sorted list. Its only partner is a table of positions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl ArrayHeap {
    /// Asserts the invariants of the module. `position_of` returns the position last reported for a slot.
    pub(in super::super) fn check(&self, position_of: impl Fn(u32) -> u32) {
        let in_use = self.end().div_ceil(ARITY);
        assert!(self.len == 0 || (in_use..=in_use + 1).contains(&self.groups.len()));
        for position in ROOT..self.end() {
            if position > ROOT {
                assert!(self.key(parent(position)) < self.key(position), "order at {position}");
            }
            let (_, slot) = self.entry(position);
            assert_eq!(position_of(slot) as usize, position, "index of slot {slot}");
        }
        for group in 0..self.groups.len() {
            for index in 0..ARITY {
                let position = group * ARITY + index;
                if position < ROOT || position >= self.end() {
                    assert_eq!(self.groups[group].0[index], VACANT, "unused {position}");
                }
            }
        }
    }

    /// Returns the slot of every entry.
    pub(in super::super) fn slots(&self) -> impl Iterator<Item = u32> {
        (ROOT..self.end()).map(|position| self.entry(position).1)
    }
}

/// For each slot, the position last reported.
#[derive(Default)]
struct Table(BTreeMap<u32, u32>);

impl Positions for Table {
    fn set_position(&mut self, slot: u32, position: u32) {
        self.0.insert(slot, position);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    Pop,
    Remove(usize),
    Replace(usize, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..1_000_u32).prop_map(Step::Insert),
        3 => Just(Step::Pop),
        4 => any::<usize>().prop_map(Step::Remove),
        3 => (any::<usize>(), 0..1_000_u32).prop_map(|(n, to)| Step::Replace(n, to)),
    ];
    proptest::collection::vec(step, 0..300)
}

/// A heap, the positions of its entries, and a model of what it should hold: by key, the slot.
struct Subject {
    heap: ArrayHeap,
    table: Table,
    model: BTreeMap<u128, u32>,
    next: u32,
}

impl Subject {
    /// No two keys are equal.
    fn key(&mut self, major: u32) -> u128 {
        self.next += 1;
        u128::from(major) << 64 | u128::from(self.next)
    }

    fn nth(&self, n: usize) -> Option<(u128, u32)> {
        let entry = self.model.iter().nth(n % self.model.len().max(1))?;
        Some((*entry.0, *entry.1))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(major) => {
                let (key, slot) = (self.key(major), self.next);
                self.heap.insert(&mut self.table, (key, slot));
                self.model.insert(key, slot);
            }
            Step::Pop => assert_eq!(self.heap.pop(&mut self.table), self.model.pop_first()),
            Step::Remove(n) => {
                let Some((key, slot)) = self.nth(n) else { return };
                let position = self.table.0[&slot] as usize;
                assert_eq!(self.heap.key(position), key);
                self.heap.remove_at(&mut self.table, position);
                self.model.remove(&key);
            }
            Step::Replace(n, to) => {
                let Some((key, slot)) = self.nth(n) else { return };
                let (position, to) = (self.table.0[&slot] as usize, self.key(to));
                self.heap.sift(&mut self.table, position, (to, slot));
                self.model.remove(&key);
                self.model.insert(to, slot);
            }
        }
    }

    fn check(&self) {
        self.heap.check(|slot| self.table.0[&slot]);
        assert_eq!(self.heap.len(), self.model.len());
        let nth = |n| self.model.keys().nth(n).copied().unwrap_or(VACANT);
        assert_eq!([self.heap.first(), self.heap.second()], [nth(0), nth(1)]);
        let latest = 500 << 64;
        let mut listed = Vec::new();
        self.heap.up_to(latest, &mut |entry| listed.push(entry));
        listed.sort_unstable();
        let expected = self.model.range(..=latest).map(|(key, slot)| (*key, *slot));
        assert_eq!(listed, expected.collect::<Vec<_>>());
    }
}

proptest! {
    /// M75, M76, M77, M82: the heap needs no calendar, no run and no element.
    #[test]
    fn the_array_heap_behaves_like_a_sorted_list(steps in steps()) {
        let (heap, table, model) = (ArrayHeap::new(), Table::default(), BTreeMap::new());
        let mut subject = Subject { heap, table, model, next: 0 };
        for step in steps {
            subject.step(step);
            subject.check();
        }
    }
}
