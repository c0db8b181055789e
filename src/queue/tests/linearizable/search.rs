//! The search: is there an order in which a plain sorted list would have answered as the queue has?
//!
//! An operation takes effect at one moment between its call and its return. So an operation that had returned before
//! another was called comes first, and operations that overlap may come in either order. The search tries the orders
//! that this leaves, as Wing and Gong describe it: it tries each operation that may come next, if the sorted list gives
//! the same answer. It never visits a state twice in which the same operations are over and the list is the same
//! (Lowe's improvement).
//!
//! # A look that finds nothing
//!
//! A thread that looks for an element reads one published head after the other without a lock. If a second thread
//! offers an element into a heap already read, and a third one takes the only other element from a heap still to be
//! read, the look finds nothing, although at each moment an element was due. If the looking thread waits, the offer
//! wakes it, and it looks again. So a look at several heaps is two operations, its beginning and its end, and it may
//! find nothing if no *one* element was there and due throughout. A look at a single heap happens at one moment.
//!
//! # A reset
//!
//! Such a thread may also miss an element that is on its way from the ready list back to its stripe (`striped::ready`),
//! since the notification follows the move. So a reset is two operations, of which the first takes the element out and
//! the second puts it back. Between the two, looks may begin and end, but nothing else may happen.
//!
//! The search gives up after a given number of steps. It then reports that it is undecided, which is never a pass.

use std::collections::{BTreeMap, HashSet};

/// The order of an element: its deadline, and then its submission.
pub(in crate::queue) type Key = (u64, u64);

/// An operation, with its answer.
#[derive(Clone, Debug)]
pub(in crate::queue) enum Operation {
    /// Answered with the sequence, or refused.
    Offer {
        deadline: u64,
        sequence: Option<u64>,
    },
    /// The clock showed `until` after the return.
    Take {
        taken: Key,
        until: u64,
    },
    /// A look at a single heap that has found nothing. The clock showed `since` before the call.
    FindNothing {
        since: u64,
    },
    /// The first half of a look at several heaps that has found nothing.
    BeginLook {
        look: u64,
        since: u64,
    },
    /// The second half.
    EndLook {
        look: u64,
    },
    Remove {
        sequence: u64,
        is_found: bool,
    },
    /// The first half of a reset.
    Lift {
        sequence: u64,
        is_found: bool,
    },
    /// The second half of a reset that has found the element.
    Put {
        deadline: u64,
        sequence: u64,
    },
    Drain {
        drained: Vec<Key>,
    },
    Close,
}

/// An operation of a history, and when it was called and returned: numbers that no two events share.
#[derive(Clone, Debug)]
pub(in crate::queue) struct Event {
    pub(in crate::queue) operation: Operation,
    pub(in crate::queue) called: u64,
    pub(in crate::queue) returned: u64,
}

/// The search has taken too many steps.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::queue) struct Undecided;

/// The list that the queue must behave like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct SortedList {
    keys: Vec<Key>,
    /// The sequences of elements that are being reset.
    lifted: Vec<u64>,
    /// The looks that have begun, and the elements that each may not miss.
    looks: BTreeMap<u64, Vec<Key>>,
    is_closed: bool,
}

impl SortedList {
    /// Performs an operation, if the list gives the same answer.
    fn perform(&self, operation: &Operation) -> Option<Self> {
        let mut next = self.clone();
        let may_be_between = matches!(
            operation,
            Operation::Lift { .. }
                | Operation::Put { .. }
                | Operation::FindNothing { .. }
                | Operation::BeginLook { .. }
                | Operation::EndLook { .. }
        );
        if !self.lifted.is_empty() && !may_be_between {
            return None;
        }
        let fits = match operation {
            Operation::Offer { sequence: None, .. } => self.is_closed,
            Operation::Offer { deadline, sequence: Some(sequence) } => {
                next.insert((*deadline, *sequence));
                !self.is_closed
            }
            Operation::Take { taken, until } => {
                next.remove(taken.1);
                self.keys.first() == Some(taken) && taken.0 <= *until
            }
            Operation::FindNothing { since } => self.due(*since).is_empty(),
            Operation::BeginLook { look, since } => {
                next.looks.insert(*look, self.due(*since).to_vec());
                true
            }
            Operation::EndLook { look } => {
                next.looks.remove(look).is_some_and(|missed| missed.is_empty())
            }
            Operation::Remove { sequence, is_found } => next.remove(*sequence) == *is_found,
            Operation::Lift { sequence, is_found } => {
                let was_there = next.remove(*sequence);
                next.lifted.extend(was_there.then_some(*sequence));
                was_there == *is_found
            }
            Operation::Put { deadline, sequence } => {
                next.lifted.retain(|other| other != sequence);
                next.insert((*deadline, *sequence));
                self.lifted.contains(sequence)
            }
            Operation::Drain { drained } => {
                drained.iter().for_each(|(_, sequence)| _ = next.remove(*sequence));
                self.keys == *drained
            }
            Operation::Close => {
                next.is_closed = true;
                true
            }
        };
        fits.then_some(next)
    }

    fn insert(&mut self, key: Key) {
        let place = self.keys.partition_point(|other| *other < key);
        self.keys.insert(place, key);
    }

    fn due(&self, now: u64) -> &[Key] {
        &self.keys[..self.keys.partition_point(|(deadline, _)| *deadline <= now)]
    }

    fn remove(&mut self, sequence: u64) -> bool {
        let before = self.keys.len();
        let is_other = |key: &Key| key.1 != sequence;
        self.keys.retain(is_other);
        self.looks.values_mut().for_each(|missed| missed.retain(is_other));
        self.keys.len() < before
    }
}

/// Returns `true` if the history is one that a sorted list could have had.
pub(in crate::queue) fn is_linearizable(
    history: &[Event],
    steps: usize,
) -> Result<bool, Undecided> {
    assert!(history.len() <= 64, "a short history");
    if !are_submissions_in_order(history) {
        return Ok(false);
    }
    let mut search = Search { history, steps, seen: HashSet::new() };
    search.goes_on(0, &SortedList::default())
}

/// An offer that had returned before another was called has the smaller sequence: first come, first served.
fn are_submissions_in_order(history: &[Event]) -> bool {
    let sequence = |event: &Event| match event.operation {
        Operation::Offer { sequence, .. } => sequence,
        _ => None,
    };
    let offers: Vec<_> = history.iter().filter_map(|it| Some((it, sequence(it)?))).collect();
    offers.iter().all(|(one, first)| {
        offers.iter().all(|(other, second)| one.returned > other.called || first < second)
    })
}

struct Search<'a> {
    history: &'a [Event],
    /// How many steps are left.
    steps: usize,
    /// The states visited: which operations were over, one bit for each, and what was in the list.
    seen: HashSet<(u64, SortedList)>,
}

impl Search<'_> {
    /// Returns `true` if the operations that are not over fit after those that are.
    fn goes_on(&mut self, over: u64, list: &SortedList) -> Result<bool, Undecided> {
        let is_left = |index: &usize| over & (1 << index) == 0;
        let left = || (0..self.history.len()).filter(is_left);
        let Some(first_return) = left().map(|index| self.history[index].returned).min() else {
            return Ok(true);
        };
        let may_be_next: Vec<usize> =
            left().filter(|index| self.history[*index].called < first_return).collect();
        for index in may_be_next {
            self.steps = self.steps.checked_sub(1).ok_or(Undecided)?;
            let Some(next) = list.perform(&self.history[index].operation) else { continue };
            let over = over | (1 << index);
            if self.seen.insert((over, next.clone())) && self.goes_on(over, &next)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::*;

    /// Operations one after the other.
    fn one_by_one(operations: impl IntoIterator<Item = Operation>) -> Vec<Event> {
        let times = (0..).step_by(2);
        let events = times.zip(operations);
        events.map(|(at, operation)| Event { operation, called: at, returned: at + 1 }).collect()
    }

    fn offer(deadline: u64, sequence: u64) -> Operation {
        Operation::Offer { deadline, sequence: Some(sequence) }
    }

    fn take(deadline: u64, sequence: u64) -> Operation {
        Operation::Take { taken: (deadline, sequence), until: 9 }
    }

    const NOTHING: Operation = Operation::FindNothing { since: 9 };

    /// A look at several heaps that has found nothing, with the moments of its call and its return.
    fn look(called: u64, returned: u64) -> [Event; 2] {
        let look = called;
        [Operation::BeginLook { look, since: 9 }, Operation::EndLook { look }]
            .map(|operation| Event { operation, called, returned })
    }

    fn verdict(history: &[Event]) -> bool {
        is_linearizable(history, 1000).expect("it is short")
    }

    #[test]
    fn an_order_that_fits_is_found() {
        let mut history = one_by_one([offer(5, 2), offer(5, 3), take(5, 2)]);
        assert!(verdict(&history));
        // Called before the others, and over after them.
        history.push(Event {
            operation: Operation::Remove { sequence: 3, is_found: true },
            called: 0,
            returned: 9,
        });
        assert!(verdict(&history));
    }

    #[test]
    fn answers_that_no_order_explains_are_found_out() {
        let wrong = [
            vec![offer(5, 2), offer(5, 3), take(5, 3)],
            vec![offer(5, 2), offer(4, 3), take(5, 2)],
            vec![offer(5, 2), NOTHING],
            vec![offer(10, 2), take(10, 2)],
            vec![offer(5, 2), take(5, 2), Operation::Remove { sequence: 2, is_found: true }],
            vec![offer(5, 2), Operation::Remove { sequence: 2, is_found: true }, take(5, 2)],
            vec![offer(5, 2), Operation::Drain { drained: vec![] }],
            vec![Operation::Close, offer(5, 2)],
            vec![
                offer(5, 2),
                Operation::Lift { sequence: 2, is_found: true },
                Operation::Put { deadline: 10, sequence: 2 },
                take(5, 2),
            ],
            vec![
                offer(5, 2),
                offer(5, 3),
                Operation::Lift { sequence: 2, is_found: true },
                take(5, 3),
                Operation::Put { deadline: 10, sequence: 2 },
            ],
            vec![offer(5, 3), offer(5, 2)],
        ];
        for operations in wrong {
            assert!(!verdict(&one_by_one(operations.clone())), "{operations:?}");
        }
    }

    /// The look reads one heap's head before the second element is offered into it, and the other heap's after the
    /// first element was taken from it.
    #[test]
    fn a_look_may_find_nothing_if_no_one_element_was_there_all_along() {
        let mut history = one_by_one([offer(5, 2), offer(5, 3), take(5, 2)]);
        history.extend(look(2, 9));
        assert!(verdict(&history));
        let mut history = one_by_one([offer(5, 2), offer(5, 3)]);
        history.extend(look(2, 9));
        assert!(!verdict(&history), "the first was there all along");
    }

    #[test]
    fn a_search_that_gives_up_has_decided_nothing() {
        let history = one_by_one([offer(5, 2), take(5, 2)]);
        assert_eq!(is_linearizable(&history, 1), Err(Undecided));
    }
}
