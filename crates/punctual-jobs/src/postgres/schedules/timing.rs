//! The moments of a schedule: its ticks, and when each of them is due.
//!
//! A *tick* is a moment of the calendar, a cron expression or a period, within the bounds of the schedule. It is *due* a
//! while later if the schedule has jitter. That while is a function of the name of the schedule and of the tick, so it is
//! the same on each machine and in each process. It is shorter than the time to the next tick: ticks are due in their
//! order, and no tick is due after the next one.
//!
//! All moments are whole microseconds, which is what the database keeps. Otherwise a tick that comes back from there would
//! be earlier than itself, and would follow itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual::{
    Trigger,
    trigger::{Cron, Due},
};

use crate::{Aligned, job::catch_up::last_between};

#[derive(Clone, Debug)]
pub(super) enum Calendar {
    Cron(Cron),
    /// Of whole microseconds.
    Period(Aligned),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Timing {
    pub(super) calendar: Calendar,
    pub(super) from: Option<SystemTime>,
    pub(super) until: Option<SystemTime>,
    pub(super) jitter: Duration,
    /// Of the name.
    pub(super) seed: u64,
}

/// The least difference of two moments.
pub(super) const MICROSECOND: Duration = Duration::from_micros(1);

impl Calendar {
    fn next_after(&self, moment: SystemTime) -> Option<SystemTime> {
        match self {
            Self::Cron(cron) => cron.next_after(moment),
            Self::Period(period) => period.next_after(moment),
        }
    }
}

impl Timing {
    /// Returns the first tick that is later than a moment.
    pub(super) fn next_after(&self, moment: SystemTime) -> Option<SystemTime> {
        let before = self.from.and_then(|from| from.checked_sub(MICROSECOND));
        let next = self.calendar.next_after(before.map_or(moment, |before| before.max(moment)))?;
        self.until.is_none_or(|until| next <= until).then_some(next)
    }

    /// Returns when a tick is due.
    pub(super) fn due(&self, tick: SystemTime) -> SystemTime {
        if self.jitter.is_zero() {
            return tick;
        }
        let next = self.calendar.next_after(tick);
        let gap = next.and_then(|next| next.duration_since(tick).ok()).unwrap_or(self.jitter);
        let most = self.jitter.min(gap).as_micros();
        let number = tick.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let mixed = mix(self.seed ^ mix(number));
        // Below `most`, and each as probable as another.
        let offset = (u128::from(mixed) * most) >> 64;
        tick + Duration::from_micros(u64::try_from(offset).unwrap_or(0))
    }

    /// Returns the last tick that is later than `after` and not later than `until`.
    fn last_between(&self, after: SystemTime, until: SystemTime) -> Option<SystemTime> {
        last_between(|moment| self.next_after(moment), after, until)
    }

    /// Returns the last tick later than `after` that is due at `now`.
    pub(super) fn last_due(&self, after: SystemTime, now: SystemTime) -> Option<SystemTime> {
        let last = self.last_between(after, now)?;
        if self.due(last) <= now {
            return Some(last);
        }
        // The one before it is due before the moment of this one.
        self.last_between(after, last - MICROSECOND)
    }

    /// Returns the first tick later than `after` that is due at `moment` or later.
    pub(super) fn first_due_from(
        &self,
        after: SystemTime,
        moment: SystemTime,
    ) -> Option<SystemTime> {
        match self.last_between(after, moment) {
            Some(last) if self.due(last) >= moment => Some(last),
            Some(last) => self.next_after(last),
            None => self.next_after(after),
        }
    }

    /// Returns how many ticks are later than `from` and not later than `to`. Those of a cron expression are counted up to a
    /// thousand.
    pub(super) fn count(&self, from: SystemTime, to: SystemTime) -> u64 {
        let before = self.from.and_then(|begin| begin.checked_sub(MICROSECOND));
        let from = Due::Wall(before.map_or(from, |before| before.max(from)));
        let to = Due::Wall(self.until.map_or(to, |until| until.min(to)));
        match self.calendar.clone() {
            Calendar::Cron(mut cron) => cron.between(from, to),
            Calendar::Period(mut period) => period.between(from, to),
        }
    }
}

/// FNV-1a, which is the same everywhere and for ever.
pub(super) fn seed_of(name: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the argument.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
