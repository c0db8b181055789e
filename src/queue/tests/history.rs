//! Compares each kind of queue with a plain sorted list: whatever operations are performed, in
//! whatever order, both hold the same elements and return them in the same order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::entry::Timing;

/// Delays that are often equal, rarely equal, far, or endless.
fn moments() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..8_u64, 3 => 0..60_u64, 3 => 64..300_u64, 1 => Just(u64::MAX)]
}

#[derive(Clone, Debug)]
enum Step {
    /// The stripe, and how far ahead the deadline is.
    Offer(usize, u64),
    InsertAll(Vec<u64>),
    Advance(u64),
    Poll,
    Take,
    TakeOrGiveUp,
    RemoveFirst,
    /// Removes one of all the elements ever admitted. `Reset` chooses in the same way, and may park the element.
    Remove(usize),
    Reset(usize, u64, bool),
    /// Takes an element and queues it again for that much later, or parks it, as the pool does with a periodic task,
    /// one that is put off, or one that waits for its turn.
    TakeAndRequeue(u64, Requeue, bool),
    RemoveWhere(u64),
    Drain,
    Close(Option<Vec<Requeue>>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (any::<usize>(), moments()).prop_map(|(stripe, ahead)| Step::Offer(stripe, ahead)),
        2 => proptest::collection::vec(moments(), 0..40).prop_map(Step::InsertAll),
        6 => (0..12_u64).prop_map(Step::Advance),
        1 => (0..300_u64).prop_map(Step::Advance),
        5 => Just(Step::Poll),
        3 => Just(Step::Take),
        2 => Just(Step::TakeOrGiveUp),
        1 => Just(Step::RemoveFirst),
        4 => any::<usize>().prop_map(Step::Remove),
        4 => (any::<usize>(), moments(), any::<bool>())
            .prop_map(|(which, ahead, parks)| Step::Reset(which, ahead, parks)),
        3 => (moments(), reasons(), any::<bool>())
            .prop_map(|(later, why, parks)| Step::TakeAndRequeue(later, why, parks)),
        1 => (2..5_u64).prop_map(Step::RemoveWhere),
        1 => Just(Step::Drain),
        1 => admissions().prop_map(Step::Close),
    ];
    proptest::collection::vec(step, 0..200)
}

fn reasons() -> impl Strategy<Value = Requeue> {
    prop_oneof![
        Just(Requeue::NextRun),
        Just(Requeue::PutOff),
        Just(Requeue::Turn),
        Just(Requeue::SeriesTurn),
    ]
}

/// Which elements a queue is told to admit from then on: all, or those that are queued again for these reasons.
fn admissions() -> impl Strategy<Value = Option<Vec<Requeue>>> {
    proptest::option::weighted(0.9, proptest::collection::vec(reasons(), 0..5))
}

/// A queue, and a model of what it should hold.
struct Subject {
    clock: ManualClock,
    queue: AnyQueue<u64>,
    /// The elements by deadline and sequence.
    model: BTreeMap<(Timestamp, u64), u64>,
    /// The sequences of the parked elements.
    parked: BTreeSet<u64>,
    /// For every element ever admitted, by sequence: its ticket, and its deadline while it is
    /// pending.
    known: BTreeMap<u64, (Ticket, Option<Timestamp>)>,
    /// What each closing of the queue still admitted.
    closings: Vec<Vec<Requeue>>,
    counts: QueueCounts,
    next: u64,
}

impl Subject {
    /// Makes a queue with the given number of stripes, or a single queue for `None`.
    fn new(stripes: Option<usize>) -> Self {
        let clock = ManualClock::from_zero();
        let on = Clock::from(clock.clone());
        let queue = AnyQueue::new(on, stripes, Duration::ZERO);
        Self {
            clock,
            queue,
            model: BTreeMap::new(),
            parked: BTreeSet::new(),
            known: BTreeMap::new(),
            closings: Vec::new(),
            counts: QueueCounts::default(),
            next: 0,
        }
    }

    fn now(&self) -> Timestamp {
        self.queue.clock().read()
    }

    fn ahead(&self, nanos: u64) -> Timestamp {
        self.now().after(Duration::from_nanos(nanos))
    }

    /// Returns the queue if it is a striped one.
    fn striped(&self) -> Option<&DelayedWorkQueue<u64>> {
        match &self.queue {
            AnyQueue::Striped(queue) => Some(queue),
            AnyQueue::Single(_) => None,
        }
    }

    /// Returns the queue if it is a single one.
    fn single(&self) -> Option<&SingleQueue<u64>> {
        match &self.queue {
            AnyQueue::Striped(_) => None,
            AnyQueue::Single(queue) => Some(queue),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Offer(stripe, ahead) => self.offer(stripe, ahead),
            Step::InsertAll(ahead) if self.single().is_some() => self.insert_all(&ahead),
            Step::InsertAll(ahead) => ahead.into_iter().for_each(|ahead| self.offer(0, ahead)),
            Step::Advance(nanos) => self.clock.advance(Duration::from_nanos(nanos)),
            Step::Poll => _ = self.taken(|queue| queue.try_take()),
            Step::Take => self.take(),
            Step::TakeOrGiveUp => {
                _ = self.taken(|queue| queue.take_until(Timestamp::PAST).map(|(taken, _)| taken));
            }
            Step::RemoveFirst => self.remove_first(),
            Step::Remove(which) => self.remove(which),
            Step::Reset(which, ahead, parks) => self.reset(which, ahead, parks),
            Step::TakeAndRequeue(later, why, parks) => self.take_and_requeue(later, why, parks),
            Step::RemoveWhere(n) => self.remove_where(n),
            Step::Drain => self.are_out(self.queue.drain().collect(), |_| true),
            Step::Close(None) => self.queue.close(Admission(0)),
            Step::Close(Some(admitted)) => {
                self.queue.close(Admission::only(admitted.clone()));
                // A single queue is open or closed; no element returns to it.
                self.closings.push(admitted);
            }
        }
    }

    fn offer(&mut self, stripe: usize, ahead: u64) {
        let (deadline, stripe) = (self.ahead(ahead), stripe % self.queue.stripes());
        match self.queue.offer(stripe, self.now(), deadline, self.next) {
            Ok(ticket) => self.is_in(ticket, deadline),
            Err(refused) => {
                assert_eq!((refused.why, refused.element), (InsertError::Closed, self.next))
            }
        }
        assert_eq!(self.known.len() as u64, self.next + u64::from(self.is_open()));
        self.next = self.known.len() as u64;
    }

    fn insert_all(&mut self, ahead: &[u64]) {
        let elements: Vec<_> =
            ahead.iter().map(|ahead| self.ahead(*ahead)).zip(self.next..).collect();
        let Some(queue) = self.single() else { return };
        match queue.insert_all(elements.clone()) {
            Ok(tickets) => {
                for (ticket, (deadline, element)) in tickets.into_iter().zip(elements) {
                    assert_eq!(element, self.next);
                    self.is_in(ticket, deadline);
                    self.next += 1;
                }
            }
            Err(refused) => assert_eq!(refused, (InsertError::Closed, elements)),
        }
    }

    /// Records that the next element has been admitted.
    fn is_in(&mut self, ticket: Ticket, deadline: Timestamp) {
        assert!(self.is_open());
        self.model.insert((deadline, ticket.sequence), self.next);
        let before = self.known.insert(ticket.sequence, (ticket, Some(deadline)));
        assert_eq!(before, None, "a sequence is used once");
        self.counts.offered += 1;
    }

    /// Records that the element taken out of the model is no longer pending.
    fn is_out(&mut self, out: Option<((Timestamp, u64), u64)>) {
        if let Some(((_, sequence), _)) = out {
            self.known.get_mut(&sequence).expect("it was admitted").1 = None;
            self.parked.remove(&sequence);
        }
    }

    fn are_out(&mut self, removed: Vec<QueueEntry<u64>>, is_unwanted: impl Fn(u64) -> bool) {
        let gone = |(_, element): &(_, &u64)| is_unwanted(**element);
        let expected: Vec<_> = self.model.iter().filter(gone).map(|(k, e)| (*k, *e)).collect();
        let mut removed: Vec<_> =
            removed.into_iter().map(|e| ((e.deadline, e.sequence), e.element)).collect();
        removed.sort_unstable();
        assert_eq!(removed, expected);
        for one in expected {
            self.model.remove(&one.0);
            self.is_out(Some(one));
        }
    }

    fn same(&self, entry: Option<QueueEntry<u64>>, expected: Option<((Timestamp, u64), u64)>) {
        let entry = entry.map(|entry| ((entry.deadline, entry.sequence), entry.element));
        assert_eq!(entry, expected);
    }

    /// Returns the first element that is not parked.
    fn first_scheduled(&self) -> Option<((Timestamp, u64), u64)> {
        let mut all = self.model.iter().map(|(key, element)| (*key, *element));
        all.find(|(key, _)| !self.parked.contains(&key.1))
    }

    /// Returns how an entry that is due at `due` is queued.
    fn timing(&mut self, sequence: u64, due: Timestamp, parks: bool) -> Timing {
        let is_parked = parks && self.striped().is_some();
        if is_parked || due == Timestamp::NEVER {
            self.parked.insert(sequence);
            return Timing::Parked { due };
        }
        self.parked.remove(&sequence);
        Timing::At(due)
    }

    /// Takes the first element from the queue and from the model, if it is due.
    fn taken(
        &mut self,
        take: impl FnOnce(&AnyQueue<u64>) -> Option<QueueEntry<u64>>,
    ) -> Option<((Timestamp, u64), u64)> {
        let first = self.first_scheduled().filter(|(key, _)| key.0 <= self.now());
        let (is_due, expected) = (first.is_some(), first);
        first.map(|(key, _)| self.model.remove(&key));
        self.is_out(expected);
        self.counts.taken += u64::from(is_due);
        self.same(take(&self.queue), expected);
        expected
    }

    fn remove_first(&mut self) {
        let expected = self.model.first_key_value().map(|(key, element)| (*key, *element));
        let Some(removed) = self.striped().map(|queue| queue.remove_first()) else { return };
        self.same(removed, expected);
        self.model.pop_first();
        self.is_out(expected);
    }

    fn remove_where(&mut self, n: u64) {
        let Some(queue) = self.striped() else { return };
        let removed = queue.remove_where(&mut |_, element| element % n == 0);
        self.are_out(removed, |element| element % n == 0);
    }

    /// Takes like a worker, if that would not block.
    fn take(&mut self) {
        let head = self.first_scheduled().map(|(key, _)| key.0);
        let is_finished = self.model.is_empty() && !self.is_open();
        if head.map_or(is_finished, |head| head <= self.now()) {
            self.taken(|queue| queue.take().map(|(taken, _)| taken));
        }
    }

    /// Returns the newest ticket of any element ever admitted, and its deadline while it is
    /// pending.
    fn any(&self, which: usize) -> Option<(Ticket, Option<Timestamp>)> {
        self.known.values().nth(which % self.known.len().max(1)).copied()
    }

    fn remove(&mut self, which: usize) {
        let Some((ticket, deadline)) = self.any(which) else { return };
        let key = deadline.map(|deadline| (deadline, ticket.sequence));
        let expected = key.and_then(|key| self.model.remove(&key).map(|element| (key, element)));
        self.is_out(expected);
        assert_eq!(self.queue.remove(ticket), expected.map(|(_, element)| element));
        assert_eq!(self.queue.remove(ticket), None, "removed twice");
    }

    fn reset(&mut self, which: usize, ahead: u64, parks: bool) {
        let (Some((ticket, deadline)), to) = (self.any(which), self.ahead(ahead)) else { return };
        let timing = deadline.map(|_| self.timing(ticket.sequence, to, parks));
        let reset = self.queue.reset(ticket, timing.unwrap_or(to.into()));
        assert_eq!(reset.map(|ticket| ticket.sequence), deadline.map(|_| ticket.sequence));
        if let Some((before, ticket)) = deadline.zip(reset) {
            let element = self.model.remove(&(before, ticket.sequence)).expect("it waits");
            self.model.insert((to, ticket.sequence), element);
            self.known.insert(ticket.sequence, (ticket, Some(to)));
        }
    }

    fn is_open(&self) -> bool {
        self.closings.is_empty()
    }

    fn admits(&self, why: Requeue) -> bool {
        self.closings.iter().all(|admitted| admitted.contains(&why))
    }

    fn take_and_requeue(&mut self, later: u64, why: Requeue, parks: bool) {
        let Some(((_, sequence), element)) = self.taken(|queue| queue.try_take()) else { return };
        let deadline = self.ahead(later);
        if self.single().is_some() {
            return;
        }
        let timing = self.timing(sequence, deadline, parks);
        let Some(queue) = self.striped() else { return };
        let back = queue.requeue(timing, sequence, why, element);
        assert_eq!(back.is_ok(), self.admits(why));
        if back.is_err() {
            self.parked.remove(&sequence);
            return;
        }
        if let Ok((ticket, waker)) = back {
            assert!(waker.is_none(), "no thread sleeps");
            self.model.insert((deadline, sequence), element);
            self.known.insert(sequence, (ticket, Some(deadline)));
            self.counts.requeued += 1;
        }
    }

    fn check(&mut self) {
        self.counts.len = self.model.len() as u64;
        let queue = &self.queue;
        let listed = queue.snapshot();
        let listed = listed.iter().map(|one| ((one.deadline, one.ticket.sequence), one.element));
        assert!(listed.eq(self.model.iter().map(|(key, element)| (*key, *element))));
        let first = self.first_scheduled().map_or(Timestamp::NEVER, |(key, _)| key.0);
        // A head may be a mere bound once a bucket of the calendar has had more than one chunk.
        assert!(
            queue.head() == first || queue.head() < first && self.next > 8,
            "{:?}",
            queue.head()
        );
        let is_over = self.model.is_empty() && !self.is_open();
        assert_eq!((queue.len(), queue.is_finished()), (self.model.len(), is_over));
        assert_eq!(queue.is_closed(), !self.is_open());
        if let Some(queue) = self.striped() {
            assert_eq!(queue.counts(|| ()).0, self.counts);
            assert_eq!(queue.scheduled(), self.model.len() - self.parked.len());
        }
        for (ticket, deadline) in self.known.values() {
            assert_eq!(queue.deadline(*ticket), *deadline);
        }
    }
}

proptest! {
    /// DQ-059, DQ-060, M17, M18: a queue is a sorted list, whatever its stripes and its ready list
    /// do.
    #[test]
    fn every_queue_behaves_like_a_sorted_list(
        stripes in prop_oneof![Just(None), (1..5_usize).prop_map(Some)],
        steps in steps(),
    ) {
        let mut subject = Subject::new(stripes);
        for step in steps {
            subject.step(step);
            subject.check();
        }
    }
}
