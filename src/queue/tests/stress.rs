//! Order and wake-ups in real races: one run of a test shows little, so these tests are meant to be run thousands of
//! times (`ci/repeat.sh`).
//!
//! A lost wake-up leaves every thread waiting. So the submitters wait for their elements to be taken, with a limit on
//! the whole ([`in_time`]), and meanwhile no thread does anything else that might wake another.

use std::{
    hash::{BuildHasher, RandomState},
    hint, panic,
    sync::mpsc,
    thread,
};

use super::*;
use crate::{
    ManualClock,
    patience::next_of,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const STRIPES: usize = 4;

/// Random numbers that differ in each run.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(RandomState::new().hash_one(()))
    }

    /// Returns a number below `end`. This is splitmix64.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    fn stripe(&mut self) -> usize {
        self.below(STRIPES as u64) as usize
    }

    fn micros(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(from + self.below(to - from))
    }

    /// Spins: usually for a moment, sometimes for about as long as threads spin before they sleep.
    fn dawdle(&mut self) {
        let clock = Clock::system();
        let nanos = if self.below(3) > 0 { self.below(2_000) } else { self.below(30_000) };
        let end = clock.read().after(Duration::from_nanos(nanos));
        while clock.read() < end {
            hint::spin_loop();
        }
    }
}

/// Waits without sleeping, so as to react at once.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        for _ in 0..20 {
            hint::spin_loop();
        }
        thread::yield_now();
    }
}

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Runs `act` on a thread of its own. If it does not return, some thread sleeps although it should not.
fn in_time(act: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    #[allow(clippy::disallowed_methods, reason = "a test")]
    let thread = thread::spawn(move || {
        act();
        let _ = tell.send(());
    });
    let _ = next_of(&told, "the end: a wake-up was lost");
    if let Err(payload) = thread.join() {
        panic::resume_unwind(payload);
    }
}

/// Makes a queue whose takers wake on time or a little early. With one stripe, it may be a single queue.
fn queue_on<E>(clock: &Clock, stripes: usize) -> AnyQueue<E> {
    let is_single = stripes == 1 && Dice::new().below(2) == 0;
    AnyQueue::new(clock.clone(), (!is_single).then_some(stripes), lead())
}

/// Like [`queue_on`], with several stripes.
fn striped_on<E>(clock: &Clock) -> DelayedWorkQueue<E> {
    DelayedWorkQueue::new(clock.clone(), STRIPES, lead())
}

fn lead() -> Duration {
    Duration::from_micros(80 * Dice::new().below(2))
}

/// Closes and empties a queue when dropped, even by a panic, and so ends every taker.
struct End<'a, E>(&'a AnyQueue<E>);

impl<E> Drop for End<'_, E> {
    fn drop(&mut self) {
        self.0.close(Admission::CLOSED);
        drop(self.0.drain());
    }
}

mod deputy;
mod order;
mod wake_ups;
