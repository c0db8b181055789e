//! Lists of wakers, for waiters and for alarms.
//!
//! A list is sorted by moment; wakers with equal moments are in order of arrival. Waiters that have no moment of their
//! own, such as waiters for a result, all get the same moment.
//!
//! ```text
//!   moment  10  20  20   ∞   ∞   ∞   ∞
//!   waker    a   b   ○   c   ○   ○   d     a waker removed from the middle leaves a gap
//! ```
//!
//! Appending a waker, or removing one, costs amortized O(log n), which matters when thousands of futures lose a
//! `select` at once. Inserting a waker in the middle moves all wakers on the shorter side.

use std::{collections::VecDeque, iter, task::Waker};

use super::Timestamp;

/// The place of a waker on its list: its moment, and a number that is never zero.
pub(crate) type PlaceId = (Timestamp, u64);

/// A list that has room for at most this many wakers keeps its memory.
const FEW: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// The first and the last place have wakers, and at most half of all places are gaps.
    list: VecDeque<(PlaceId, Option<Waker>)>,
    gaps: usize,
    last_number: u64,
}

impl Wakers {
    pub(crate) fn add(&mut self, moment: Timestamp, waker: Waker) -> PlaceId {
        self.last_number += 1;
        let id = (moment, self.last_number);
        self.put(id, waker);
        id
    }

    /// Puts a waker in a place, which may be new, occupied, or a gap. Returns the waker that was there, if any.
    pub(crate) fn put(&mut self, id: PlaceId, waker: Waker) -> Option<Waker> {
        match self.find(id) {
            Ok(index) => {
                let before = self.list[index].1.replace(waker);
                self.gaps -= usize::from(before.is_none());
                before
            }
            Err(index) => {
                self.list.insert(index, (id, Some(waker)));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, id: PlaceId) -> Option<Waker> {
        let index = self.find(id).ok()?;
        let removed = self.list[index].1.take()?;
        self.gaps += 1;
        self.limit_gaps();
        Some(removed)
    }

    pub(crate) fn take_first(&mut self) -> Option<Waker> {
        self.remove(self.list.front()?.0)
    }

    pub(crate) fn take_last(&mut self) -> Option<Waker> {
        self.remove(self.list.back()?.0)
    }

    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<Waker> {
        iter::from_fn(|| if self.first() <= now { self.take_first() } else { None }).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        self.take_due(Timestamp::NEVER)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len() - self.gaps
    }

    pub(crate) fn was_never_used(&self) -> bool {
        self.last_number == 0
    }

    /// Returns the moment of the first waker; `NEVER` if there is none.
    pub(crate) fn first(&self) -> Timestamp {
        self.list.front().map_or(Timestamp::NEVER, |((first, _), _)| *first)
    }

    /// Returns the moment of the second waker; `NEVER` if there is none.
    pub(crate) fn second(&self) -> Timestamp {
        let mut others = self.list.iter().skip(1);
        let second =
            others.find(|((moment, _), waker)| waker.is_some() || *moment == Timestamp::NEVER);
        second.map_or(Timestamp::NEVER, |((second, _), _)| *second)
    }

    fn find(&self, id: PlaceId) -> Result<usize, usize> {
        match self.list.back() {
            Some((last, _)) if *last >= id => self.list.binary_search_by_key(&id, |(id, _)| *id),
            _ => Err(self.list.len()),
        }
    }

    fn limit_gaps(&mut self) {
        while let Some((_, None)) = self.list.back() {
            self.list.pop_back();
            self.gaps -= 1;
        }
        while let Some((_, None)) = self.list.front() {
            self.list.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > self.list.len() / 2 {
            self.list.retain(|(_, waker)| waker.is_some());
            self.gaps = 0;
        }
        // Amortized over the removals since the list was that long.
        if self.list.capacity() > FEW.max(4 * self.list.len()) {
            self.list.shrink_to(2 * self.list.len());
        }
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use std::{collections::BTreeMap, sync::Arc, task::Wake};

    use proptest::prelude::*;

    use super::*;

    struct Silent(#[allow(dead_code, reason = "so that each has its own address")] u8);

    impl Wake for Silent {
        fn wake(self: Arc<Self>) {}
    }

    fn waker() -> Waker {
        Waker::from(Arc::new(Silent(0)))
    }

    fn is_same(one: Option<Waker>, other: Option<Waker>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => one.will_wake(&other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    proptest! {
        /// The tree, which keeps its elements in order and has no gaps, is the model for the list.
        #[test]
        fn a_list_does_what_a_tree_does(
            steps in prop::collection::vec((0..10, any::<prop::sample::Index>(), 0..4_u64), 0..200)
        ) {
            let (mut list, mut tree, mut left) = (Wakers::default(), BTreeMap::new(), Vec::new());
            for (step, index, n) in steps {
                let moment = if n == 3 { Timestamp::NEVER } else { Timestamp(n) };
                let ids: Vec<_> = tree.keys().copied().chain(left.clone()).collect();
                match step {
                    0..5 => {
                        let waker = waker();
                        assert!(tree.insert(list.add(moment, waker.clone()), waker).is_none());
                    }
                    5 if !ids.is_empty() => {
                        let (id, waker) = (*index.get(&ids), waker());
                        assert!(is_same(list.put(id, waker.clone()), tree.insert(id, waker)));
                        left.retain(|other| *other != id);
                    }
                    6 | 7 if !ids.is_empty() => {
                        let id = *index.get(&ids);
                        let removed = tree.remove(&id);
                        left.extend(removed.is_some().then_some(id));
                        assert!(is_same(list.remove(id), removed));
                    }
                    8 => assert!(is_same(list.take_first(), tree.pop_first().map(|it| it.1))),
                    9 if n == 0 => assert_eq!(list.take_all().len(), std::mem::take(&mut tree).len()),
                    9 if n == 1 => {
                        let later = tree.split_off(&(Timestamp(1), u64::MAX));
                        assert_eq!(list.take_due(Timestamp(1)).len(), tree.len());
                        tree = later;
                    }
                    9 => assert!(is_same(list.take_last(), tree.pop_last().map(|it| it.1))),
                    _ => {}
                }
                assert_eq!(list.len(), tree.len());
                let mut moments = tree.keys().map(|id| id.0).chain([Timestamp::NEVER; 2]);
                assert_eq!([list.first(), list.second()], [(); 2].map(|()| moments.next().unwrap()));
                assert!(list.gaps <= list.list.len() / 2);
            }
        }
    }
}
