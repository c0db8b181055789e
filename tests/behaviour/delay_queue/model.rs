//! Compares the delay queue with a model, a sorted list: after the same operations, in any order,
//! both contain the same elements.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use punctual::{DelayQueue, ManualClock, delay_queue::Key};

use crate::{delay_queue::support::queue_by_hand, support::ms};

#[derive(Clone, Debug)]
enum Step {
    /// Inserts elements with these delays, [`NEVER`] among them.
    Insert(Vec<u64>),
    /// Removes the element that was inserted this many insertions before the last; the other
    /// operations name elements likewise.
    Remove(usize),
    Reset(usize, u64),
    Poll,
    /// At most this many elements, into a sink with this much room, performing one of these actions
    /// after each element.
    Drain(usize, usize, Vec<Step>),
    Advance(u64),
    /// Removes elements whose number leaves this remainder when divided by seven.
    Retain(usize),
    Clear,
    RemoveAll,
}

const NEVER: u64 = u64::MAX;

fn delays() -> impl Strategy<Value = u64> {
    prop_oneof![39 => 1..40_u64, 1 => Just(NEVER)]
}

/// An action performed while the queue is drained.
fn small_steps() -> impl Strategy<Value = Step> {
    let which = || prop_oneof![2 => 0..50_usize, 1 => any::<usize>()];
    prop_oneof![
        6 => proptest::collection::vec(delays(), 1..4).prop_map(Step::Insert),
        3 => which().prop_map(Step::Remove),
        3 => (which(), delays()).prop_map(|(which, delay)| Step::Reset(which, delay)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let meanwhile = proptest::collection::vec(small_steps(), 0..8);
    let step = prop_oneof![
        36 => small_steps(),
        3 => proptest::collection::vec(delays(), 0..100).prop_map(Step::Insert),
        12 => Just(Step::Poll),
        6 => (0..20_usize, 0..20_usize, meanwhile).prop_map(|(n, room, m)| Step::Drain(n, room, m)),
        4 => (0..3_u64).prop_map(Step::Advance),
        1 => (0..40_u64).prop_map(Step::Advance),
        1 => (0..7_usize).prop_map(Step::Retain),
    ];
    let emptying = prop_oneof![Just(Step::Clear), Just(Step::RemoveAll)];
    proptest::collection::vec(prop_oneof![100 => step, 1 => emptying], 0..250)
}

/// The pending elements by deadline, [`NEVER`] among them, and by insertion, whose number is the
/// element.
type Listed = BTreeMap<(u64, usize), ()>;

struct Both {
    clock: ManualClock,
    queue: Arc<DelayQueue<usize>>,
    model: Listed,
    /// The key of each element ever inserted, and its deadline while it is pending.
    known: Vec<(Key, Option<u64>)>,
}

impl Both {
    fn new() -> Self {
        let (clock, queue) = queue_by_hand();
        Self { clock, queue, model: Listed::new(), known: Vec::new() }
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_millis() as u64
    }

    /// A delay, and the resulting deadline.
    fn delay(&self, millis: u64) -> (Duration, u64) {
        if millis == NEVER { (Duration::MAX, NEVER) } else { (ms(millis), self.now() + millis) }
    }

    fn note(&mut self, key: Key, deadline: u64) {
        self.model.insert((deadline, self.known.len()), ());
        self.known.push((key, Some(deadline)));
    }

    /// Removes an element from the model.
    fn forget(&mut self, element: usize) -> bool {
        let Some(deadline) = self.known[element].1.take() else { return false };
        self.model.remove(&(deadline, element)).is_some()
    }

    fn first_due(&self) -> Option<usize> {
        let ((deadline, element), ()) = self.model.first_key_value()?;
        (*deadline <= self.now()).then_some(*element)
    }

    fn insert(&mut self, delays: &[u64]) {
        let delays: Vec<_> = delays.iter().map(|millis| self.delay(*millis)).collect();
        let first = self.known.len();
        let keys = if delays.len() == 1 {
            vec![self.queue.insert(delays[0].0, first).expect("the queue is open")]
        } else {
            let elements =
                delays.iter().zip(first..).map(|((delay, _), element)| (*delay, element));
            self.queue.insert_all(elements).expect("the queue is open")
        };
        for (key, (_, deadline)) in keys.into_iter().zip(delays) {
            self.note(key, deadline);
        }
    }

    /// The element that was inserted this many insertions before the last.
    fn any(&self, which: usize) -> Option<usize> {
        let count = self.known.len();
        (count > 0).then(|| count - 1 - which % count)
    }

    fn remove(&mut self, which: usize) {
        let Some(element) = self.any(which) else { return };
        let removed = self.queue.remove(self.known[element].0);
        assert_eq!(removed, self.forget(element).then_some(element));
    }

    fn reset(&mut self, which: usize, millis: u64) {
        let Some(element) = self.any(which) else { return };
        let (delay, deadline) = self.delay(millis);
        let was_there = self.forget(element);
        assert_eq!(self.queue.reset(self.known[element].0, delay), was_there);
        if was_there {
            self.model.insert((deadline, element), ());
            self.known[element].1 = Some(deadline);
        }
    }

    fn poll(&mut self) {
        let expected = self.first_due();
        assert_eq!(self.queue.poll().map(|expired| expired.element), expected);
        expected.into_iter().for_each(|element| assert!(self.forget(element)));
    }

    /// Drains into a sink that refuses at some point, and uses the queue meanwhile.
    fn drain(&mut self, limit: usize, room: usize, meanwhile: Vec<Step>) {
        let (queue, mut count, mut refused) = (Arc::clone(&self.queue), 0, None);
        let mut meanwhile = meanwhile.into_iter();
        let moved = queue.drain_to(limit, |expired| {
            assert_eq!(Some(expired.element), self.first_due());
            assert_eq!(expired.key, self.known[expired.element].0);
            assert!(self.forget(expired.element));
            meanwhile.next().into_iter().for_each(|step| self.step(step));
            if count < room {
                count += 1;
                return Ok(());
            }
            refused = Some(expired.element);
            Err(expired.element)
        });
        assert_eq!(moved, refused.map_or(Ok(count), Err));
    }

    fn retain(&mut self, rest: usize) {
        let unwanted: Vec<_> =
            self.model.keys().map(|(_, element)| *element).filter(|n| n % 7 == rest).collect();
        assert_eq!(self.queue.retain(|n| n % 7 != rest), unwanted.len());
        unwanted.into_iter().for_each(|element| assert!(self.forget(element)));
    }

    fn all_are_out(&mut self) -> Vec<usize> {
        let all: Vec<_> = self.model.keys().map(|(_, element)| *element).collect();
        all.iter().for_each(|element| assert!(self.forget(*element)));
        all
    }

    fn compare(&mut self) {
        let list = self.queue.to_vec();
        let origin = self.clock.now() - self.clock.elapsed();
        let seen = list.iter().map(|queued| {
            let after = |deadline: Instant| (deadline - origin).as_millis() as u64;
            (queued.deadline.map_or(u64::MAX, after), queued.element)
        });
        assert!(seen.eq(self.model.keys().copied()));
        assert_eq!(self.queue.peek(), list.first().cloned());
        for (element, (key, deadline)) in self.known.iter().enumerate() {
            assert_eq!(self.queue.contains(*key), deadline.is_some(), "{element}");
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(delays) => self.insert(&delays),
            Step::Remove(which) => self.remove(which),
            Step::Reset(which, delay) => self.reset(which, delay),
            Step::Poll => self.poll(),
            Step::Drain(limit, room, meanwhile) => self.drain(limit, room, meanwhile),
            Step::Advance(millis) => self.clock.advance(ms(millis)),
            Step::Retain(rest) => self.retain(rest),
            Step::Clear => {
                self.queue.clear();
                self.all_are_out();
            }
            Step::RemoveAll => {
                let removed = self.queue.remove_all().into_iter().map(|queued| queued.element);
                assert_eq!(removed.collect::<Vec<_>>(), self.all_are_out());
            }
        }
        assert_eq!(self.queue.len(), self.model.len());
    }
}

proptest! {
    /// F11: small and large queues, with drained elements put back among all the others.
    #[test]
    fn every_history_of_a_delay_queue_is_explained_by_a_sorted_list(steps in steps()) {
        let mut both = Both::new();
        for (number, step) in steps.into_iter().enumerate() {
            both.step(step);
            if number % 50 == 0 {
                both.compare();
            }
        }
        both.compare();
    }
}
