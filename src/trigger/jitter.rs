//! Jitter: each run is due a random span after the moment of the trigger inside.
//!
//! A span is an [offset](Trigger::offset). So nothing is kept from one run to the next, and nothing has to be taken back
//! when a run was brought forward inside its span. On the wall clock a span is a function of the seed and of the moment:
//! replicas that have one seed and plan the same moments have the same spans.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{Due, Trigger, TriggerContext};
use crate::time::saturating_nanos;

/// Another trigger whose runs are delayed by random spans; from [`Trigger::jitter`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Jitter<G> {
    inner: G,
    most: Duration,
    seed: u64,
    is_seeded: bool,
}

impl<G> Jitter<G> {
    pub(super) fn new(inner: G, most: Duration) -> Self {
        let seed = RandomState::new().hash_one(most);
        Self { inner, most, seed, is_seeded: false }
    }

    /// Makes the spans the same for each trigger with this seed.
    pub fn seed(mut self, seed: u64) -> Self {
        (self.seed, self.is_seeded) = (seed, true);
        self
    }

    /// Makes the spans the same for each trigger with this name, in every process and on every machine.
    pub fn name(self, name: &str) -> Self {
        self.seed(hash(name))
    }

    /// Returns the span of a run: a function of the seed and of what the run is known by.
    fn span_of(&self, run: u64) -> Duration {
        let mixed = mix(self.seed ^ mix(run));
        let most = saturating_nanos(self.most);
        Duration::from_nanos(((u128::from(mixed) * u128::from(most)) >> 64) as u64)
    }
}

/// FNV-1a, which is the same everywhere and for ever.
fn hash(name: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Returns a moment as a number that is the same on every machine. Two moments may have the same.
fn number_of(moment: SystemTime) -> u64 {
    let nanos = |span: Duration| span.as_nanos() as u64;
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => !nanos(before.duration()),
    }
}

impl<G: Trigger> Trigger for Jitter<G> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.inner.next(last)
    }

    fn offset(&mut self, moment: Due, last: &TriggerContext<'_>) -> Duration {
        let span = match moment {
            Due::At(_) => self.span_of(last.runs),
            Due::Wall(moment) => self.span_of(number_of(moment)),
            Due::OnDemand => Duration::ZERO,
        };
        self.inner.offset(moment, last).saturating_add(span)
    }

    fn share(&mut self, name: Option<&str>) -> bool {
        if let Some(name) = name.filter(|_| !self.is_seeded) {
            (self.seed, self.is_seeded) = (hash(name), true);
        }
        self.is_seeded && self.inner.share(name)
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut self.inner)
    }
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the argument.
pub(super) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
