//! Hands: what a worker takes along for after the task that it runs now.
//!
//! When tasks are due faster than they are run, a worker that goes to the heap for each of them
//! meets the submitter and the other workers there every time. So it takes several due entries
//! in one go and keeps them in its *hand*. They still wait: they can be removed, drained and
//! counted, and anybody may take them. Three rules keep it from being noticed.
//!
//! * **Nobody idles beside a full hand.** Whoever finds nothing due in the stripes takes half of
//!   another's hand; and a hand that was filled is a head like any other to those who sleep
//!   ([`takers`](super::takers)).
//! * **Nobody waits behind a long task.** If the owner has been at one task for longer than
//!   [`LONG`], whoever next has nothing in its own hand helps itself there first.
//! * **Order.** An owner whose hand begins later than a stripe goes to the stripe first. So a
//!   single worker takes everything in exact order, whatever it has in hand.
//!
//! # Who may do what, under which lock
//!
//! Only its owner fills a hand: from a stripe, with that stripe's lock and then its own held, or
//! from another hand, with both locks held, in the order of their numbers. So an entry is always
//! somewhere, and whoever looks at the stripes first and then at all hands together sees it. An
//! owner never locks a stripe while it holds a hand.
//!
//! `head` and `stocked` repeat what is behind the lock, to be read without it, and are written
//! before it is released, with sequential consistency: they are what `takers` calls a head.

use std::{collections::VecDeque, time::Duration};

use crossbeam_utils::CachePadded;

use super::heap::Entry;
use crate::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Deadline,
};

/// So many entries are taken in one go.
pub(super) const BATCH: usize = 16;

/// So long may a task keep those that are in hand behind it.
const LONG: Duration = Duration::from_micros(100);

/// See the [module](self).
pub(super) struct Hands<E> {
    hands: Box<[CachePadded<Hand<E>>]>,
    /// How many are not empty.
    stocked: CachePadded<AtomicUsize>,
}

struct Hand<E> {
    /// The deadline of the first entry; never if there is none.
    head: AtomicU64,
    /// When its owner last came for something.
    since: AtomicU64,
    entries: Mutex<VecDeque<Entry<E>>>,
}

/// A hand whose lock is held. Publishes what has changed when it is dropped.
pub(super) struct Held<'a, E> {
    head: &'a AtomicU64,
    stocked: &'a AtomicUsize,
    entries: MutexGuard<'a, VecDeque<Entry<E>>>,
}

impl<E> Hands<E> {
    pub(super) fn new(count: usize) -> Self {
        let hand = |_| CachePadded::new(Hand::new());
        let stocked = CachePadded::new(AtomicUsize::new(0));
        Self { hands: (0..count).map(hand).collect(), stocked }
    }

    #[inline]
    pub(super) fn lock(&self, number: usize) -> Held<'_, E> {
        let hand = &self.hands[number];
        Held { head: &hand.head, stocked: &self.stocked, entries: hand.entries.lock() }
    }

    /// All hands, so that nothing moves between them.
    pub(super) fn lock_all(&self) -> Vec<Held<'_, E>> {
        (0..self.hands.len()).map(|number| self.lock(number)).collect()
    }

    /// The owner comes for something.
    #[inline]
    pub(super) fn come(&self, number: usize, now: Deadline) {
        // Ordering: a hint, on which nothing depends but when help comes.
        self.hands[number].since.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// The deadline of a hand's first entry.
    #[inline]
    pub(super) fn head_of(&self, number: usize) -> Deadline {
        // Ordering: see the head of the module.
        Deadline::from_nanos(self.hands[number].head.load(Ordering::SeqCst))
    }

    /// The nearest of all heads.
    #[inline]
    pub(super) fn head(&self) -> Deadline {
        // Ordering: see the head of the module.
        if self.stocked.load(Ordering::SeqCst) == 0 {
            return Deadline::NEVER;
        }
        let heads = (0..self.hands.len()).map(|number| self.head_of(number));
        heads.min().unwrap_or(Deadline::NEVER)
    }

    /// Takes an entry from a hand whose owner is at a long task.
    pub(super) fn help(&self, own: usize, now: Deadline) -> Option<Entry<E>> {
        let is_long = |hand: &Hand<E>| {
            // Ordering: see `come`.
            let since = Deadline::from_nanos(hand.since.load(Ordering::Relaxed));
            now.since(since) > LONG
        };
        self.take_from_another(Some(own), is_long)
    }

    /// Takes the first entry of another hand, and half of the others into the own.
    pub(super) fn share(&self, own: Option<usize>) -> Option<Entry<E>> {
        self.take_from_another(own, |_| true)
    }

    #[inline]
    fn take_from_another(
        &self,
        own: Option<usize>,
        may: impl Fn(&Hand<E>) -> bool,
    ) -> Option<Entry<E>> {
        // Ordering: see the head of the module.
        if self.stocked.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let others = (0..self.hands.len()).filter(|number| Some(*number) != own);
        let stocked = others.filter(|number| self.head_of(*number) < Deadline::NEVER);
        let from = stocked
            .filter(|number| may(&self.hands[*number]))
            .min_by_key(|number| self.head_of(*number))?;
        let Some(own) = own else { return self.lock(from).pop() };
        let lower = self.lock(own.min(from));
        let upper = self.lock(own.max(from));
        let (mut own, mut from) = if own < from { (lower, upper) } else { (upper, lower) };
        let first = from.pop();
        let half = from.entries.len() / 2;
        own.entries.extend(from.entries.drain(..half));
        first
    }
}

impl<E> Hand<E> {
    fn new() -> Self {
        let entries = Mutex::new(VecDeque::new());
        Self { head: AtomicU64::new(Deadline::NEVER.as_nanos()), since: AtomicU64::new(0), entries }
    }
}

impl<E> Held<'_, E> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Deadline and sequence of the first entry.
    pub(super) fn first(&self) -> Option<(Deadline, u64)> {
        self.entries.front().map(|entry| (entry.deadline, entry.sequence))
    }

    pub(super) fn pop(&mut self) -> Option<Entry<E>> {
        self.entries.pop_front()
    }

    pub(super) fn push(&mut self, entry: Entry<E>) {
        self.entries.push_back(entry);
    }

    pub(super) fn deadline(&self, sequence: u64) -> Option<Deadline> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.sequence == sequence).map(|entry| entry.deadline)
    }

    pub(super) fn remove(&mut self, sequence: u64) -> Option<Entry<E>> {
        let index = self.entries.iter().position(|entry| entry.sequence == sequence)?;
        self.entries.remove(index)
    }

    /// Takes out what is `unwanted`.
    pub(super) fn remove_where(
        &mut self,
        mut unwanted: impl FnMut(Deadline, &E) -> bool,
        removed: &mut Vec<Entry<E>>,
    ) {
        for entry in std::mem::take(&mut *self.entries) {
            if unwanted(entry.deadline, &entry.element) {
                removed.push(entry);
            } else {
                self.entries.push_back(entry);
            }
        }
    }

    pub(super) fn take_all(&mut self) -> VecDeque<Entry<E>> {
        std::mem::take(&mut *self.entries)
    }
}

impl<E> Drop for Held<'_, E> {
    #[inline]
    fn drop(&mut self) {
        let never = Deadline::NEVER;
        let now = self.entries.front().map_or(never, |entry| entry.deadline).as_nanos();
        // Ordering: only written under this lock.
        let before = self.head.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        // Ordering: see the head of the module. One that goes away wakes nobody.
        if now < before {
            self.head.store(now, Ordering::SeqCst);
        } else {
            self.head.store(now, Ordering::Release);
        }
        if before == never.as_nanos() {
            self.stocked.fetch_add(1, Ordering::SeqCst);
        } else if now == never.as_nanos() {
            self.stocked.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
