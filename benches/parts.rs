//! How many instructions an element of a delay queue costs from its insertion to its end, by how 100,000 of
//! them come and go: `ci/instructions.sh --parts`, under callgrind. It shows what the sorted run and the
//! calendar give, if one of them is left out of the queue.
//!
//! The clock is moved by hand, so the counts are exact.
//!
//! This is not in `benches/instructions.rs`, because more callers of one method may keep the compiler
//! from inlining it there.

#![allow(clippy::expect_used, reason = "it measures")]
#![allow(clippy::print_stdout, reason = "it says what it counts")]

use std::{env, hint::black_box, time::Duration};

use punctual::{DelayQueue, ManualClock, delay_queue::Key};

/// A queue, and its clock, which is moved by hand.
struct Subject {
    clock: ManualClock,
    queue: DelayQueue<u64>,
    /// How many elements come and go.
    count: u64,
}

impl Subject {
    fn new(count: u64) -> Self {
        let clock = ManualClock::new();
        Self { queue: DelayQueue::with_clock(clock.clone()), clock, count }
    }

    /// A queue with a few elements that are due soon.
    fn busy(count: u64) -> Self {
        let subject = Self::new(count);
        for number in 0..100 {
            subject.insert(Duration::from_millis(1), number);
        }
        subject
    }

    fn insert(&self, delay: Duration, number: u64) -> Key {
        self.queue.insert(delay, number).expect("it is open")
    }

    /// The numbers of all elements, never in order. The count is a power of ten.
    fn scattered(&self, number: u64) -> u64 {
        number * 61_803 % self.count
    }

    fn insert_and_take(&self, delay: impl Fn(u64) -> Duration) {
        (0..self.count).for_each(|number| _ = self.insert(delay(number), number));
        self.clock.advance(Duration::from_secs(1));
        for _ in 0..self.count {
            black_box(self.queue.poll().expect("all are due"));
        }
    }

    /// Removes them in no order, before they are due.
    fn insert_and_remove(&self, delay: impl Fn(u64) -> Duration) {
        let keys = (0..self.count).map(|number| self.insert(delay(number), number));
        let keys: Vec<_> = keys.collect();
        for number in 0..self.count {
            black_box(self.queue.remove(keys[self.scattered(number) as usize]));
        }
    }
}

/// They arrive in the order in which they become due, and are taken.
#[inline(never)]
fn counted_in_order(subject: &Subject) {
    subject.insert_and_take(Duration::from_micros);
}

/// They arrive in no order, and are taken.
#[inline(never)]
fn counted_at_random(subject: &Subject) {
    subject.insert_and_take(|number| Duration::from_micros(subject.scattered(number)));
}

/// Timeouts of one length and nothing else.
#[inline(never)]
fn counted_timeouts_alone(subject: &Subject) {
    subject.insert_and_remove(|number| Duration::from_micros(30_000_000 + number));
}

/// The same beside elements that are due soon.
#[inline(never)]
fn counted_timeouts_of_one_length(subject: &Subject) {
    subject.insert_and_remove(|number| Duration::from_micros(30_000_000 + number));
    // Otherwise it would be identical to the function above, and merged with it.
    black_box(subject.count);
}

/// Timeouts of two seconds to a minute, beside elements that are due soon.
#[inline(never)]
fn counted_timeouts_of_many_lengths(subject: &Subject) {
    let delay = |number| 2_000_000 + 580 * subject.scattered(number);
    subject.insert_and_remove(|number| Duration::from_micros(delay(number)));
}

fn main() {
    // All other arguments (`--bench`, `--test`) are cargo's: then one small round shows that the
    // program works.
    let count = env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(100);
    counted_in_order(&Subject::new(count));
    counted_at_random(&Subject::new(count));
    counted_timeouts_alone(&Subject::new(count));
    counted_timeouts_of_one_length(&Subject::busy(count));
    counted_timeouts_of_many_lengths(&Subject::busy(count));
    println!("{count} elements of each kind");
}
