//! The heap and the sorted run beside it, through the queue that is built on them, against a sorted
//! list: after the same operations, in any order, both return the same elements.
//!
//! The clock stands still unless it is moved, so that only the heap is tested.

#![no_main]

use std::{collections::BTreeSet, rc::Rc, time::Duration};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use punctual::{DelayQueue, ManualClock, delay_queue::Key};

/// One operation. Deadlines are given in nanoseconds from now; the largest value of a byte means
/// never. An element is named by the number of elements inserted after it, whether they are still
/// in the queue or not.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Action {
    Insert(u8),
    Remove(u8),
    Reset(u8, u8),
    Clear,
}

#[derive(Arbitrary, Debug)]
enum Step {
    One(Action),
    /// Inserts elements in the order of their deadlines, for which the sorted run exists.
    InsertRow(u8, u8),
    InsertAll(Vec<u8>),
    /// Removes elements that were inserted one after the other, which leaves holes in the sorted
    /// run.
    RemoveRow(u8, u8),
    Poll,
    /// Drains to a sink that has room for the given number of elements, and performs an action
    /// before it refuses one.
    Drain(u8, Option<Action>),
    Retain(u8),
    RemoveAll,
    Advance(u8),
}

fuzz_target!(|steps: Vec<Step>| {
    let mut both = Both::new();
    for step in steps {
        both.step(step);
        both.compare_first();
    }
    both.compare();
});

struct Both {
    clock: ManualClock,
    queue: Rc<DelayQueue<u32>>,
    /// The pending elements by deadline and by insertion, whose number is the element.
    list: BTreeSet<(u64, u32)>,
    /// The key of every element ever inserted, and its deadline while it is pending.
    known: Vec<(Key, Option<u64>)>,
}

impl Both {
    fn new() -> Self {
        let clock = ManualClock::new();
        let queue = Rc::new(DelayQueue::with_clock(clock.clone()));
        Self { clock, queue, list: BTreeSet::new(), known: Vec::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::One(action) => self.act(action),
            Step::InsertRow(at, count) => {
                (0..count).for_each(|n| self.insert(at.saturating_add(n)));
            }
            Step::InsertAll(at) => self.insert_all(&at),
            Step::RemoveRow(back, count) => {
                (0..usize::from(count)).for_each(|n| self.remove(usize::from(back) + n));
            }
            Step::Poll => self.poll(),
            Step::Drain(room, action) => self.drain(room.into(), action),
            Step::Retain(of) => self.retain(u32::from(of % 5) + 2),
            Step::RemoveAll => self.remove_all(),
            Step::Advance(nanos) => self.clock.advance(Duration::from_nanos(nanos.into())),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Insert(at) => self.insert(at),
            Action::Remove(back) => self.remove(back.into()),
            Action::Reset(back, at) => self.reset(back.into(), at),
            Action::Clear => {
                self.queue.clear();
                self.forget_all();
            }
        }
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// The delay that a byte means, and the resulting deadline.
    fn when(&self, byte: u8) -> (Duration, u64) {
        match byte {
            u8::MAX => (Duration::MAX, u64::MAX),
            nanos => (Duration::from_nanos(nanos.into()), self.now() + u64::from(nanos)),
        }
    }

    fn note(&mut self, key: Key, deadline: u64) {
        self.list.insert((deadline, self.known.len() as u32));
        self.known.push((key, Some(deadline)));
    }

    fn put_back(&mut self, element: u32, deadline: u64) {
        self.list.insert((deadline, element));
        self.known[element as usize].1 = Some(deadline);
    }

    /// Removes an element from the list, and returns where it was.
    fn forget(&mut self, element: u32) -> Option<u64> {
        let deadline = self.known[element as usize].1.take()?;
        assert!(self.list.remove(&(deadline, element)));
        Some(deadline)
    }

    fn forget_all(&mut self) {
        let all: Vec<_> = self.list.iter().map(|(_, element)| *element).collect();
        all.into_iter().for_each(|element| _ = self.forget(element));
    }

    fn first_due(&self) -> Option<u32> {
        self.list.first().filter(|(deadline, _)| *deadline <= self.now()).map(|first| first.1)
    }

    fn named(&self, back: usize) -> Option<(u32, Key)> {
        let element = self.known.len().checked_sub(back + 1)?;
        Some((element as u32, self.known[element].0))
    }

    fn insert(&mut self, at: u8) {
        let (delay, deadline) = self.when(at);
        let element = self.known.len() as u32;
        let key = self.queue.insert(delay, element).expect("the queue is open");
        self.note(key, deadline);
    }

    fn insert_all(&mut self, at: &[u8]) {
        let when: Vec<_> = at.iter().map(|at| self.when(*at)).collect();
        let numbers = self.known.len() as u32..;
        let elements = when.iter().zip(numbers).map(|((delay, _), number)| (*delay, number));
        let keys = self.queue.insert_all(elements).expect("the queue is open");
        keys.into_iter().zip(when).for_each(|(key, (_, deadline))| self.note(key, deadline));
    }

    fn remove(&mut self, back: usize) {
        let Some((element, key)) = self.named(back) else { return };
        let was_there = self.forget(element).is_some();
        assert_eq!(self.queue.remove(key), was_there.then_some(element));
    }

    fn reset(&mut self, back: usize, at: u8) {
        let Some((element, key)) = self.named(back) else { return };
        let (delay, deadline) = self.when(at);
        let was_there = self.forget(element).is_some();
        assert_eq!(self.queue.reset(key, delay), was_there);
        if was_there {
            self.put_back(element, deadline);
        }
    }

    fn poll(&mut self) {
        let expected = self.first_due();
        assert_eq!(self.queue.poll().map(|expired| expired.element), expected);
        expected.into_iter().for_each(|element| _ = self.forget(element));
    }

    fn drain(&mut self, room: usize, action: Option<Action>) {
        let (queue, mut moved, mut refused) = (Rc::clone(&self.queue), 0, None);
        let counted = queue.drain_to(usize::MAX, |expired| {
            let element = expired.element;
            assert_eq!(self.first_due(), Some(element));
            assert_eq!(expired.key, self.known[element as usize].0);
            assert!(self.forget(element).is_some());
            if moved < room {
                moved += 1;
                return Ok(());
            }
            action.into_iter().for_each(|action| self.act(action));
            refused = Some(element);
            Err(element)
        });
        assert_eq!(counted, refused.map_or(Ok(moved), Err));
    }

    fn retain(&mut self, of: u32) {
        let unwanted: Vec<_> =
            self.list.iter().map(|(_, element)| *element).filter(|e| e % of == 0).collect();
        assert_eq!(self.queue.retain(|element| element % of != 0), unwanted.len());
        unwanted.into_iter().for_each(|element| _ = self.forget(element));
    }

    fn remove_all(&mut self) {
        let removed = self.queue.remove_all().into_iter().map(|queued| queued.element);
        assert!(removed.eq(self.list.iter().map(|(_, element)| *element)));
        self.forget_all();
    }

    fn compare_first(&self) {
        assert_eq!(self.queue.len(), self.list.len());
        let first = self.list.first().map(|(_, element)| *element);
        assert_eq!(self.queue.peek().map(|queued| queued.element), first);
    }

    /// Compares the contents of both, and every key that was ever returned.
    fn compare(&mut self) {
        let origin = self.clock.now() - self.clock.elapsed();
        let seen = self.queue.to_vec().into_iter().map(|queued| {
            let nanos = |deadline| std::time::Instant::duration_since(&deadline, origin).as_nanos();
            (queued.deadline.map_or(u64::MAX, |deadline| nanos(deadline) as u64), queued.element)
        });
        assert!(seen.eq(self.list.iter().copied()));
        for (key, deadline) in &self.known {
            assert_eq!(self.queue.contains(*key), deadline.is_some());
        }
        self.clock.advance(Duration::from_nanos(u64::from(u8::MAX)));
        while !self.list.is_empty() && self.first_due().is_some() {
            self.poll();
        }
        self.poll();
    }
}
