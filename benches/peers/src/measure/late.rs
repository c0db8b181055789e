//! How late each task started.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Instant,
};

/// One place for each run, written by the run. Leaked, as [`Done`](super::done::Done) is.
#[derive(Clone, Copy)]
pub(super) struct LateLog(&'static [AtomicI64]);

const UNSET: i64 = i64::MIN;

impl LateLog {
    pub(super) fn new(len: u64) -> Self {
        Self(Box::leak((0..len).map(|_| AtomicI64::new(UNSET)).collect()))
    }

    /// The place of the run `index`.
    pub(super) fn slot(self, index: u64) -> Slot {
        Slot(&self.0[index as usize])
    }

    /// The places from `start` on, `len` of them, as a log of its own.
    pub(super) fn part(self, start: u64, len: u64) -> Self {
        Self(&self.0[start as usize..][..len as usize])
    }

    /// Writes the place `index`, if there is one.
    pub(super) fn note(self, index: u64, due: Instant) {
        if let Some(slot) = self.0.get(index as usize) {
            Slot(slot).note(due);
        }
    }

    /// The recorded values.
    pub(super) fn nanos(self) -> Vec<i64> {
        let written = self.0.iter().map(|slot| slot.load(Ordering::Relaxed));
        written.filter(|&nanos| nanos != UNSET).collect()
    }
}

#[derive(Clone, Copy)]
pub(super) struct Slot(&'static AtomicI64);

impl Slot {
    /// The task that was due calls this first of all.
    #[inline]
    pub(super) fn note(self, due: Instant) {
        self.0.store(nanos_after(due, Instant::now()), Ordering::Relaxed);
    }
}

/// Negative if `now` is before `due`.
#[inline]
pub(super) fn nanos_after(due: Instant, now: Instant) -> i64 {
    match now.checked_duration_since(due) {
        Some(late) => late.as_nanos() as i64,
        None => -((due - now).as_nanos() as i64),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::nanos_after;

    #[test]
    fn early_is_negative() {
        let due = Instant::now();
        assert_eq!(nanos_after(due, due + Duration::from_nanos(5)), 5);
        assert_eq!(nanos_after(due + Duration::from_nanos(5), due), -5);
    }
}
