//! The rules: what becomes of the ticks of a schedule that are due, given its row and the server's clock.
//!
//! [`settle`] is a function of its arguments and of nothing else. The row says up to which moment ticks are *settled*: each
//! one before it has had its fate. Those after it that are due have theirs now.
//!
//! * The last of them is *on time* if it has been due for no longer than [`ON_TIME`]. It has its job, unless the schedule's
//!   rule for overlaps leaves it out.
//! * Those before it are *missed*, and so is the last one if it is later: no machine was there, or none could reach the
//!   database. What becomes of them is the schedule's [`CatchUp`].
//!
//! A tick that is made up for by [`CatchUp::Each`] is not left out by the rule for overlaps: it *waits* for room, and the
//! ticks behind it wait as well. So a long outage is made up for in order, with never more jobs at once than the rule
//! allows, and what has waited beyond the window is missed for good.
//!
//! # A clock that was set back
//!
//! A row cannot be settled up to a moment that has not come, unless the server's clock was set back since. Up to a minute
//! that is a correction, and moments that come twice are ticks once. A row that is further ahead is not believed: its ticks
//! count from now.

use std::time::{Duration, SystemTime};

use super::timing::{MICROSECOND, Timing};
use crate::job::catch_up::{CatchUp, ON_TIME};

/// By how much the server's clock may be set back without a tick coming twice.
const CORRECTION: Duration = Duration::from_secs(60);

/// How many ticks one statement makes up for.
const AT_ONCE: usize = 100;

/// After which time a row is looked at again although no tick is due: the laws of its zone may have changed.
const LOOK_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// The values to be written into the row, and the ticks to be enqueued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settlement {
    /// The ticks that have a job each, in their order.
    pub(super) ticks: Vec<SystemTime>,
    /// They wait for room, and are not left out.
    pub(super) waits: bool,
    /// They come later than on time.
    pub(super) is_late: bool,
    /// The ticks up to this one are settled, whatever becomes of `ticks`.
    pub(super) settled: Option<SystemTime>,
    /// How many of those have no job.
    pub(super) missed: u64,
    /// When the row is to be looked at next, once all of `ticks` are settled.
    pub(super) next: Option<SystemTime>,
    /// By how much the row was ahead of the clock, if it is not believed.
    pub(super) ahead: Option<Duration>,
}

/// Returns what becomes of the ticks after `settled` that are due at `now`.
pub(super) fn settle(
    timing: &Timing,
    catch_up: CatchUp,
    settled: SystemTime,
    now: SystemTime,
) -> Settlement {
    let ahead = settled.duration_since(now).ok().filter(|ahead| *ahead > CORRECTION);
    let since = if ahead.is_some() { now } else { settled };
    let settlement = Settlement { settled: ahead.map(|_| now), ahead, ..Settlement::default() };
    let Some(last) = timing.last_due(since, now) else {
        return Settlement { next: next_after(timing, since, now), ..settlement };
    };
    let late = now.duration_since(timing.due(last)).unwrap_or_default();
    let is_late = late > ON_TIME;
    let settlement = Settlement { next: next_after(timing, last, now), is_late, ..settlement };
    match catch_up {
        CatchUp::Each(window) => make_up(timing, since, last, window.max(ON_TIME), now, settlement),
        CatchUp::Last(window) if late <= window => one(timing, since, last, settlement),
        CatchUp::None | CatchUp::Last(_) if !is_late => one(timing, since, last, settlement),
        CatchUp::None | CatchUp::Last(_) => all_missed(timing, since, last, settlement),
    }
}

/// One job for all.
fn one(timing: &Timing, since: SystemTime, last: SystemTime, all: Settlement) -> Settlement {
    let missed = timing.count(since, last).saturating_sub(1);
    Settlement { ticks: vec![last], missed, ..all }
}

fn all_missed(timing: &Timing, since: SystemTime, last: SystemTime, all: Settlement) -> Settlement {
    Settlement { settled: Some(last), missed: timing.count(since, last), ..all }
}

fn make_up(
    timing: &Timing,
    since: SystemTime,
    last: SystemTime,
    window: Duration,
    now: SystemTime,
    all: Settlement,
) -> Settlement {
    let begin = now.checked_sub(window).unwrap_or(SystemTime::UNIX_EPOCH);
    let Some(first) = timing.first_due_from(since, begin).filter(|first| *first <= last) else {
        return all_missed(timing, since, last, all);
    };
    let missed = timing.count(since, first).saturating_sub(1);
    let settled = if missed > 0 { first.checked_sub(MICROSECOND) } else { all.settled };
    let mut ticks = vec![first];
    let mut next = timing.next_after(first);
    while let Some(tick) = next.filter(|tick| *tick <= last && ticks.len() < AT_ONCE) {
        ticks.push(tick);
        next = timing.next_after(tick);
    }
    let is_whole = ticks.last() == Some(&last);
    let next = if is_whole { all.next } else { Some(now) };
    let is_late = all.is_late || ticks.len() > 1;
    Settlement { ticks, waits: is_late, is_late, settled, missed, next, ..all }
}

/// Returns when a row that is settled up to a tick is to be looked at.
fn next_after(timing: &Timing, tick: SystemTime, now: SystemTime) -> Option<SystemTime> {
    let due = timing.due(timing.next_after(tick)?);
    Some(now.checked_add(LOOK_AGAIN).map_or(due, |again| due.min(again)))
}

#[cfg(test)]
mod tests;
