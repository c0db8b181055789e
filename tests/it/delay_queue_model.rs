//! The delay queue against a model that is a sorted list: whatever is done to it, in whichever
//! order, both have the same in them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{
    DelayQueue, ManualClock,
    delay_queue::{Expired, Key},
};

use crate::{
    delay_queue_support::{Dice, queue_by_hand},
    support::ms,
};

/// By deadline, `u64::MAX` for never, and by insertion, of which the number is the element.
type Listed = BTreeMap<(u64, usize), ()>;

struct Both {
    clock: ManualClock,
    queue: Arc<DelayQueue<usize>>,
    model: Listed,
    /// For each element ever inserted its key, and its deadline as long as it is there.
    known: Vec<(Key, Option<u64>)>,
    dice: Dice,
}

impl Both {
    fn new(seed: u64) -> Self {
        let (clock, queue) = queue_by_hand();
        Self { clock, queue, model: Listed::new(), known: Vec::new(), dice: Dice(seed) }
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_millis() as u64
    }

    /// A delay, and the deadline it leads to.
    fn delay(&mut self) -> (Duration, u64) {
        let millis = self.dice.roll(40);
        if millis == 0 { (Duration::MAX, u64::MAX) } else { (ms(millis), self.now() + millis) }
    }

    fn note(&mut self, key: Key, deadline: u64) {
        self.model.insert((deadline, self.known.len()), ());
        self.known.push((key, Some(deadline)));
    }

    /// The model's element is no more.
    fn forget(&mut self, element: usize) -> bool {
        let Some(deadline) = self.known[element].1.take() else { return false };
        self.model.remove(&(deadline, element)).is_some()
    }

    fn first_due(&self) -> Option<usize> {
        let ((deadline, element), ()) = self.model.first_key_value()?;
        (*deadline <= self.now()).then_some(*element)
    }

    fn insert(&mut self, count: u64) {
        let delays: Vec<_> = (0..count).map(|_| self.delay()).collect();
        let first = self.known.len();
        let keys = if count == 1 {
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

    /// Any that was ever inserted; mostly a late one.
    fn any(&mut self) -> Option<usize> {
        let count = self.known.len() as u64;
        if count == 0 {
            return None;
        }
        let window = if self.dice.roll(3) == 0 { count } else { count.min(50) };
        Some((count - 1 - self.dice.roll(window)) as usize)
    }

    fn remove(&mut self) {
        let Some(element) = self.any() else { return };
        let removed = self.queue.remove(self.known[element].0);
        assert_eq!(removed, self.forget(element).then_some(element));
    }

    fn reset(&mut self) {
        let Some(element) = self.any() else { return };
        let (delay, deadline) = self.delay();
        let was_there = self.forget(element);
        assert_eq!(self.queue.reset(self.known[element].0, delay), was_there);
        if was_there {
            self.model.insert((deadline, element), ());
            self.known[element].1 = Some(deadline);
        }
    }

    fn poll(&mut self) {
        let expected = self.first_due();
        assert_eq!(self.queue.poll().map(Expired::into_element), expected);
        expected.into_iter().for_each(|element| assert!(self.forget(element)));
    }

    /// Drains into a sink that is full at some time, and meanwhile uses the queue.
    fn drain(&mut self) {
        let (limit, room) = (self.dice.roll(20) as usize, self.dice.roll(20) as usize);
        let (queue, mut count) = (Arc::clone(&self.queue), 0);
        let moved = queue.drain_to(limit, |expired| {
            assert_eq!(Some(expired.element), self.first_due());
            assert_eq!(expired.key, self.known[expired.element].0);
            let deadline = self.known[expired.element].1.expect("it is there");
            assert!(self.forget(expired.element));
            match self.dice.roll(4) {
                0 => self.insert(3),
                1 => self.remove(),
                2 => self.reset(),
                _ => {}
            }
            if count < room {
                count += 1;
                return Ok(());
            }
            self.model.insert((deadline, expired.element), ());
            self.known[expired.element].1 = Some(deadline);
            Err(expired.element)
        });
        assert_eq!(moved, count);
    }

    fn retain(&mut self) {
        let parity = self.dice.roll(7) as usize;
        let unwanted: Vec<_> =
            self.model.keys().map(|(_, element)| *element).filter(|n| n % 7 == parity).collect();
        assert_eq!(self.queue.retain(|n| n % 7 != parity), unwanted.len());
        unwanted.into_iter().for_each(|element| assert!(self.forget(element)));
    }

    fn empty(&mut self) {
        let expected: Vec<_> = self.model.keys().map(|(_, element)| *element).collect();
        if self.dice.roll(2) == 0 {
            self.queue.clear();
        } else {
            let removed = self.queue.remove_all().into_iter().map(|queued| queued.element);
            assert_eq!(removed.collect::<Vec<_>>(), expected);
        }
        expected.into_iter().for_each(|element| assert!(self.forget(element)));
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

    fn step(&mut self, growth: u64) {
        match self.dice.roll(20) {
            0..=5 => self.insert(1),
            6 => {
                let count = self.dice.roll(growth);
                self.insert(count);
            }
            7..=9 => self.remove(),
            10..=12 => self.reset(),
            13..=15 => self.poll(),
            16 | 17 => self.drain(),
            18 => self.clock.advance(ms(self.dice.roll(2))),
            _ if self.dice.roll(40) == 0 => self.empty(),
            _ if self.dice.roll(10) == 0 => self.retain(),
            _ => self.poll(),
        }
        assert_eq!(self.queue.len(), self.model.len());
    }
}

/// Small and large, with what is drained put back among all the rest.
#[test]
fn the_queue_is_a_sorted_list() {
    for (seed, growth, steps) in [(1, 2, 3_000), (2, 10, 3_000), (3, 100, 3_000), (4, 400, 1_000)] {
        let mut both = Both::new(seed);
        for step in 0..steps {
            both.step(growth);
            if step % 500 == 0 {
                both.compare();
            }
        }
        both.compare();
    }
}
