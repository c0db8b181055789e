//! Compares the heap with a plain sorted model and checks every invariant after every step.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{super::Drained, sorted_run::TOLERANCE, *};

impl<E> PriorityQueue<E> {
    /// Asserts the invariants of the module.
    fn check(&self) {
        self.near.check(&self.table);
        self.calendar.check(&self.table);
    }
}

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Pop(u64),
    Remove(usize),
    Reset(usize, u64),
    PopAndReturn(u64),
    RemoveWhere(u64),
    RemoveAll,
    BringNear,
    FirstTwo,
}

/// A deadline. There are few different ones, so there are many ties. Some are so far apart that they are in different
/// levels of the calendar, and some so close that they share a bucket.
fn moment() -> impl Strategy<Value = u64> {
    let far = (5..64_u32, 0..3_u64, 0..3_u64);
    prop_oneof![
        6 => 0..20_u64,
        6 => far.prop_map(|(level, part, n)| (1 << level) + (part << (level - 2)) + n),
        1 => Just(u64::MAX),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // There are few different deadlines, so there are many ties.
    let step = prop_oneof![
        8 => moment().prop_map(Step::Insert),
        3 => moment().prop_map(Step::Pop),
        3 => any::<usize>().prop_map(Step::Remove),
        3 => (any::<usize>(), moment()).prop_map(|(n, at)| Step::Reset(n, at)),
        2 => moment().prop_map(Step::PopAndReturn),
        1 => Just(Step::BringNear),
        1 => Just(Step::FirstTwo),
        1 => (2..5_u64).prop_map(Step::RemoveWhere),
        1 => Just(Step::RemoveAll),
    ];
    proptest::collection::vec(step, 0..400)
}

/// A heap, and a model of what it should hold.
struct Subject {
    heap: PriorityQueue<u64>,
    /// By sequence: deadline, slot, element.
    model: BTreeMap<u64, (u64, u32, u64)>,
    /// Every ticket that was ever issued.
    tickets: Vec<Ticket>,
    next: u64,
}

impl Subject {
    fn new() -> Self {
        let (heap, model, tickets) = (PriorityQueue::new(), BTreeMap::new(), Vec::new());
        Self { heap, model, tickets, next: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(at) => {
                let element = self.next;
                self.next += 1;
                let ticket = self.heap.put(Timestamp::from_nanos(at), element, element);
                self.now_there(ticket, at, element);
            }
            Step::Pop(now) => _ = self.pop(now),
            Step::PopAndReturn(now) => {
                if let Some(entry) = self.pop(now) {
                    let later = entry.deadline.as_nanos().saturating_add(3);
                    let element = entry.element;
                    let deadline = Timestamp::from_nanos(later);
                    let ticket = self.heap.put(deadline, entry.sequence, element);
                    self.now_there(ticket, later, element);
                }
            }
            Step::Remove(n) => {
                let Some(ticket) = self.ticket(n) else { return };
                let expected = self.forget(ticket).map(|(_, _, element)| element);
                assert_eq!(self.heap.deadline(ticket).is_some(), expected.is_some());
                assert_eq!(self.heap.remove(ticket).map(|(e, _)| e.owned().element), expected);
                assert!(self.heap.remove(ticket).is_none(), "removed twice");
            }
            Step::Reset(n, to) => {
                let Some(ticket) = self.ticket(n) else { return };
                let expected = self.forget(ticket);
                let was_there = self.heap.reset(ticket, Timestamp::from_nanos(to));
                assert_eq!(was_there, expected.is_some());
                if let Some((_, slot, element)) = expected {
                    self.model.insert(ticket.sequence, (to, slot, element));
                }
            }
            Step::RemoveWhere(n) => {
                let mut removed = Vec::new();
                self.heap.remove_where(&mut |_, e| e % n == 0, &mut removed);
                let mut removed: Vec<_> = removed.into_iter().map(|e| e.element).collect();
                removed.sort_unstable();
                let gone = |(_, _, e): &(u64, u32, u64)| e % n == 0;
                let mut expected: Vec<_> =
                    self.model.values().filter(|e| gone(e)).map(|e| e.2).collect();
                expected.sort_unstable();
                assert_eq!(removed, expected);
                self.model.retain(|_, e| !gone(e));
            }
            Step::RemoveAll => {
                let removed = Drained::new(vec![self.heap.remove_all()]);
                assert_eq!(removed.len(), self.model.len());
                for entry in removed {
                    let (at, _, element) = self.model[&entry.sequence];
                    assert_eq!((entry.deadline.as_nanos(), entry.element), (at, element));
                }
                self.model.clear();
            }
            Step::BringNear => _ = self.heap.bring_near(),
            Step::FirstTwo => self.check_first_two(),
        }
    }

    fn keys(&self) -> Vec<(u64, u64)> {
        let mut keys: Vec<_> = self.model.iter().map(|(sequence, e)| (e.0, *sequence)).collect();
        keys.sort_unstable();
        keys
    }

    fn check(&self) {
        self.heap.check();
        assert_eq!(self.heap.len(), self.model.len());
        let first = self.keys().first().copied();
        let deadline = at(first.map_or(u64::MAX, |key| key.0));
        assert!(self.heap.head() <= deadline, "{:?} and {deadline:?}", self.heap.head());
        let mut listed = Vec::new();
        self.heap
            .for_each(&mut |entry| listed.push((*entry.element, entry.deadline, entry.ticket)));
        listed.sort_unstable_by_key(|listed| listed.0);
        let expected = self.model.iter().map(|(sequence, (nanos, slot, element))| {
            (*element, at(*nanos), Ticket { slot: *slot, sequence: *sequence })
        });
        assert_eq!(listed, expected.collect::<Vec<_>>());
        if !self.heap.is_settled(Timestamp::NEVER) {
            assert_eq!(self.heap.first_key(), None);
            return;
        }
        if self.heap.head() < self.heap.floor() {
            assert_eq!(self.heap.head(), deadline);
        }
        assert_eq!(self.heap.first_key(), first.map(|(nanos, sequence)| (at(nanos), sequence)));
        let peeked = self.heap.peek().map(|SnapshotEntry { deadline, ticket, element }| {
            assert_eq!(self.heap.deadline(ticket), Some(deadline), "its ticket");
            (deadline.as_nanos(), ticket.sequence, *element)
        });
        let expected = first.map(|(at, sequence)| (at, sequence, self.model[&sequence].2));
        assert_eq!(peeked, expected);
    }

    /// The first moment is exact, or the floor while the head is a bound. The second may be late in that case only, or
    /// behind holes, and it may be early only if the search has stopped early.
    fn check_first_two(&mut self) {
        let expected = [0, 1].map(|n| at(self.keys().get(n).map_or(u64::MAX, |key| key.0)));
        let before = self.heap.near.len();
        let [first, second] = self.heap.first_two();
        let Self { heap, .. } = self;
        let has_holes = heap.near.run().holes() > 60;
        if heap.is_settled(Timestamp::NEVER) {
            assert_eq!(first, expected[0]);
            let is_bound = second == heap.floor() && second < expected[1];
            assert!(second == expected[1] || is_bound || has_holes, "{second:?}");
        } else {
            assert_eq!(first, heap.floor());
            assert!(first <= expected[0], "{first:?}");
        }
        // A chunk of one entry counts as two entries' work.
        let is_at_limit = heap.near.len() - before >= CHUNK / 2;
        let has_stopped = is_at_limit || heap.calendar.is_nearest_large(&heap.table);
        assert!([first, second] == expected || has_stopped || has_holes, "{second:?}");
    }

    /// Ensures that the first entry is known if it is due.
    fn settle(&mut self, now: u64) {
        for _ in 0..10_000 {
            if self.heap.is_settled(at(now)) {
                return;
            }
            self.heap.bring_near();
        }
        panic!("it is never settled");
    }

    /// Pops from both; the model's first entry has the smallest deadline, then the smallest
    /// sequence.
    fn pop(&mut self, now: u64) -> Option<QueueEntry<u64>> {
        let first = self.model.iter().map(|(sequence, e)| (e.0, *sequence)).min();
        let expected = first.filter(|(at, _)| *at <= now);
        self.settle(now);
        let due = self.heap.first_key().filter(|first| first.0 <= at(now));
        assert_eq!(due.map(|(at, sequence)| (at.as_nanos(), sequence)), expected);
        let popped = due.and_then(|_| self.heap.pop()).map(QueueEntry::owned);
        assert_eq!(popped.as_ref().map(|e| (e.deadline.as_nanos(), e.sequence)), expected);
        if let Some(entry) = &popped {
            let known = self.model.remove(&entry.sequence);
            assert_eq!(known.map(|(_, _, element)| element), Some(entry.element));
        }
        popped
    }

    fn now_there(&mut self, ticket: Ticket, at: u64, element: u64) {
        let before = self.model.insert(ticket.sequence, (at, ticket.slot, element));
        assert!(before.is_none(), "a sequence is used once");
        self.tickets.push(ticket);
    }

    fn ticket(&self, n: usize) -> Option<Ticket> {
        self.tickets.get(n % self.tickets.len().max(1)).copied()
    }

    /// Removes the entry that the ticket names from the model, if it is still there.
    fn forget(&mut self, ticket: Ticket) -> Option<(u64, u32, u64)> {
        let (_, slot, _) = self.model.get(&ticket.sequence)?;
        if *slot == ticket.slot { self.model.remove(&ticket.sequence) } else { None }
    }
}

proptest! {
    /// F11, F30, DQ-059, DQ-060, QV-009, M76, M79, M82, M91, M96: the heap is a sorted list with a
    /// faster implementation.
    #[test]
    fn the_heap_behaves_like_a_sorted_list(steps in steps()) {
        let mut subject = Subject::new();
        for step in steps {
            subject.step(step);
            subject.check();
        }
        while subject.pop(u64::MAX).is_some() {
            subject.check();
        }
    }
}

impl<E> PriorityQueue<E> {
    fn put(&mut self, deadline: Timestamp, sequence: u64, element: E) -> Ticket {
        self.insert(deadline, sequence, UnderLock::new(element))
    }

    /// Takes out the first entry, however many steps that needs.
    fn take_first(&mut self) -> Option<QueueEntry<E>> {
        while !self.is_settled(Timestamp::NEVER) {
            assert!(self.bring_near() > 0, "no chunk is empty here");
        }
        self.pop().map(QueueEntry::owned)
    }
}

/// The nearest bucket has several chunks: no entry of it is found before its turn.
#[test]
fn a_large_bucket_hides_the_second_entry_until_its_turn() {
    let mut subject = Subject::new();
    [1, 2, 3].into_iter().chain([1_001; 20]).for_each(|nanos| subject.step(Step::Insert(nanos)));
    assert_eq!(subject.heap.first_two(), [at(1), at(2)]);
    [1, 2, 3].into_iter().for_each(|now| assert!(subject.pop(now).is_some()));
    subject.check_first_two();
    assert_eq!(subject.heap.first_two(), [at(988), Timestamp::NEVER], "nothing else is near");
    subject.step(Step::Insert(1_006));
    subject.check_first_two();
    assert_eq!(subject.heap.first_two(), [at(988), at(1_006)], "that one is near");
    subject.settle(u64::MAX);
    subject.check_first_two();
    assert_eq!(subject.heap.first_two(), [at(1_001); 2]);
}

/// The search for the first two stops after eight entries, and the next bucket, a small one, begins before them.
#[test]
fn a_work_limit_hides_the_first_entry() {
    let mut subject = Subject::new();
    // The wide buckets begin at 1,024 and 1,056, and the narrow one at 1,072.
    let steps = [([1; 3], 1_086, 8), ([500; 3], 1_087, 8), ([900; 3], 1_075, 1)];
    for (near, far, count) in steps {
        near.into_iter().for_each(|nanos| subject.step(Step::Insert(nanos)));
        while subject.heap.first_key().is_some_and(|first| first.0 < at(near[0])) {
            assert!(subject.pop(u64::MAX).is_some());
        }
        (0..count).for_each(|_| subject.step(Step::Insert(far)));
    }
    assert_eq!((subject.heap.near.len(), subject.heap.calendar.len), (3, 17));
    (0..3).for_each(|_| assert!(subject.pop(900).is_some()));
    assert_eq!(subject.heap.near.len(), 8);
    subject.check_first_two();
    assert_eq!(subject.heap.near.len(), 16);
    assert!(!subject.heap.is_settled(Timestamp::NEVER), "and the bucket is small");
    assert_eq!(subject.heap.first_two(), [at(1_075), at(1_086)], "the next search goes on");
    subject.check_first_two();
}

/// DQ-068, M77: growth past every chunk boundary keeps the order.
#[test]
fn growth_keeps_the_order() {
    let mut heap = PriorityQueue::new();
    let count = 10_000_u64;
    for n in 0..count {
        heap.put(Timestamp::from_nanos(n * 7_919 % count), n, n);
    }
    heap.check();
    for n in 0..count {
        let entry = heap.take_first().expect("an entry");
        assert_eq!(entry.deadline.as_nanos(), n);
    }
    assert!(heap.take_first().is_none());
    heap.check();
}

#[test]
fn equal_deadlines_are_first_come_first_served() {
    let mut heap = PriorityQueue::new();
    for n in 0..1_000 {
        heap.put(Timestamp::from_nanos(5), n, n);
    }
    for n in 0..1_000 {
        assert_eq!(heap.pop().map(|e| e.owned().element), Some(n));
    }
}

/// M75, M85: as in JDK-8370887, the entry that fills the hole may belong above it. Here it comes from the last of four
/// families and is nearer than the head of the first.
#[test]
fn removal_from_the_middle_sifts_both_ways() {
    let delays = [1, 100, 2, 3, 4, 101, 102, 103, 104, 5, 6, 7, 8];
    for remove in 0..delays.len() {
        let mut heap = PriorityQueue::new();
        // The sorted run ends with these, so all others are in the heap.
        let mut insert = |nanos| heap.put(at(nanos), nanos, nanos);
        let last = [1_000, 1_001, 1_002].map(&mut insert);
        let tickets = delays.map(insert);
        assert_eq!(heap.near.run().len(), last.len());
        heap.remove(tickets[remove]).expect("it is there");
        heap.check();
        let mut rest = delays.to_vec();
        rest.remove(remove);
        rest.sort_unstable();
        rest.extend([1_000, 1_001, 1_002]);
        let popped: Vec<_> =
            std::iter::from_fn(|| heap.pop()).map(|entry| entry.owned().element).collect();
        assert_eq!(popped, rest);
    }
}

/// M78.
#[test]
fn a_ticket_is_never_mistaken_for_another_of_the_same_slot() {
    let mut heap = PriorityQueue::new();
    let old = heap.put(Timestamp::from_nanos(1), 0, 'a');
    assert!(heap.remove(old).is_some());
    let new = heap.put(Timestamp::from_nanos(1), 1, 'b');
    assert_eq!(old.slot, new.slot);
    assert!(heap.remove(old).is_none());
    assert!(!heap.reset(old, Timestamp::from_nanos(9)));
    assert!(heap.deadline(old).is_none());
    assert_eq!(heap.deadline(new), Some(Timestamp::from_nanos(1)));
}

/// M81: otherwise one far timer would force all later ones into the heap.
#[test]
fn one_far_entry_does_not_close_the_sorted_run() {
    let mut heap = PriorityQueue::new();
    for nanos in [1_000, 1, 2, 3] {
        heap.put(at(nanos), nanos, nanos);
    }
    assert_eq!((heap.near.run().len(), heap.len()), (3, 4));
    heap.check();
}

/// An entry that was taken out and inserted again is found at its new slot.
#[test]
fn a_few_far_entries_do_not_close_the_sorted_run() {
    let mut heap = PriorityQueue::new();
    let mut insert = |at, sequence| {
        heap.put(Timestamp::from_nanos(at), sequence, ());
        (heap.near.run().len(), heap.near.heap().len())
    };
    // In ascending order, and too near to each other for the calendar.
    assert_eq!([insert(10_000, 0), insert(10_001, 1)], [(1, 0), (2, 0)]);
    assert_eq!(insert(9_900, 2), (1, 2), "that is far ahead of them");
    assert_eq!(insert(9_901, 3), (2, 2));
    assert_eq!(insert(9_899, 4), (2, 3), "and this is not: the run stays");
}

#[test]
fn a_ticket_can_follow_its_entry_to_another_slot() {
    let mut heap = PriorityQueue::new();
    let before = heap.put(at(1), 0, 'a');
    let entry = heap.pop().expect("it is there").owned();
    heap.put(at(1), 1, 'b');
    let again = heap.put(at(2), entry.sequence, entry.element);
    assert_ne!(again.slot, before.slot);
    assert_eq!(before.moved_to(Some(again.slot)), again);
    assert_eq!(before.moved_to(None), before);
}

/// M80, M85, M89: of many timeouts of equal length, nearly all are cancelled, and the few survivors do not keep the
/// memory of the others allocated.
#[test]
fn survivors_do_not_keep_the_sorted_run_long() {
    let count = 50_000_u64;
    for stride in [1, 7_919] {
        let mut heap = PriorityQueue::new();
        // Equal deadlines, so that none is far.
        let insert = |n| heap.put(at(0), n, n);
        let tickets: Vec<_> = (0..count).map(insert).collect();
        assert_eq!(heap.near.run().len(), count as usize);
        for n in (0..count).map(|n| n * stride % count).filter(|n| n % 500 != 3) {
            assert!(heap.remove(tickets[n as usize]).is_some());
            assert!(heap.near.run().holes() <= count as usize / 2 + TOLERANCE, "many holes");
        }
        heap.check();
        assert_eq!(heap.len(), 100);
        assert!(
            heap.near.run().holes() <= heap.near.run().len() + TOLERANCE,
            "{}",
            heap.near.run().holes()
        );
        let left: Vec<_> =
            std::iter::from_fn(|| heap.pop()).map(|entry| entry.owned().element).collect();
        assert_eq!(left, (0..count).filter(|n| n % 500 == 3).collect::<Vec<_>>());
    }
}

/// An entry that is far, but not very, stays in the run if it comes in order, and goes to the calendar if it does not.
#[test]
fn a_run_goes_on_into_the_first_second() {
    let mut heap = PriorityQueue::new();
    let mut insert = |nanos, sequence| {
        heap.put(Timestamp::from_nanos(nanos), sequence, ());
        (heap.near.run().len(), heap.calendar.len)
    };
    let few = FEW as u64 + 1;
    (0..few).for_each(|n| _ = insert(1, n));
    assert_eq!(insert(IN_ORDER.end, few), (few as usize + 1, 0));
    assert_eq!(insert(IN_ORDER.end - 1, few + 1), (few as usize + 1, 1));
    assert_eq!(insert(IN_ORDER.end, few + 2), (few as usize + 2, 1));
    assert_eq!(insert(IN_ORDER.end + 1, few + 3), (few as usize + 2, 2));
}
