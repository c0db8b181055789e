//! Pseudo-random numbers, the same for the same seed, which choose the next operation and the
//! repetitions.

use std::time::Duration;

pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of one thread in one round; no two threads roll alike.
    pub(crate) fn new(seed: u64, round: u64, thread: u64) -> Self {
        let mixed = seed ^ round.rotate_left(20) ^ thread.rotate_left(40);
        let mut dice = Self(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (0..4).for_each(|_| _ = dice.roll(2));
        dice
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % sides
    }

    /// A new set of dice with a different sequence.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.roll(u32::MAX.into()), 1, 1)
    }

    /// Returns `true` once in `times` rolls on average.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }

    /// A duration of at most `millis` milliseconds, to the microsecond.
    pub(crate) fn up_to_ms(&mut self, millis: u64) -> Duration {
        Duration::from_micros(self.roll(millis * 1_000 + 1))
    }

    pub(crate) fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize]
    }
}
