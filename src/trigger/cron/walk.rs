//! The walk from the time on the wall to the moments at which a clock there shows it.
//!
//! Between two changes of a zone's offset the clock on the wall and time itself run together: a moment
//! is the time shown, minus the offset. So the search goes from one such [`Stretch`] to the next, and
//! in each it is a search in the [fields](super::fields) alone. What is special is at the two ends.
//!
//! * **A stretch begins with a gap** if its offset is greater than the one before: the times in between
//!   are never shown. With [`Missing::Next`] its beginning is a run if any of them matches; one run, however
//!   many match, and one too if the time shown then matches by itself.
//! * **A stretch begins with a fold** if its offset is less: the times in between are shown again. With
//!   [`Repeated::First`] they are left out of this stretch, with [`Repeated::Last`] of the one before.
//!
//! Only offsets are compared: how long a gap or fold is, and whether a law calls it daylight saving, makes no difference.
//! The walk ends, because the search in the fields does; it goes on to the year 9999 only
//! for an expression whose times are always missing and skipped.

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneTransition},
};

use super::{Missing, Repeated, fields::Fields};

const DAY: i64 = 24 * 60 * 60;

/// The policy for times that a clock does not show, or shows twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) missing: Missing,
    pub(super) repeated: Repeated,
}

/// The time from one change of the offset to the next, in seconds since the epoch.
struct Stretch {
    begin: i64,
    end: i64,
    offset: i64,
    /// The offsets before and after; its own, if nothing changes.
    offset_before: i64,
    offset_after: i64,
}

/// Returns the first moment that is not before `from`, in seconds since the epoch. There is none in the
/// first two days that `jiff` knows, where not each zone can tell the date.
pub(super) fn first_from(
    fields: &Fields,
    policy: Policy,
    zone: &TimeZone,
    from: i64,
) -> Option<i64> {
    let mut from = from.max(Timestamp::MIN.as_second() + 2 * DAY);
    let mut stretch = Stretch::around(zone, from)?;
    loop {
        if let Some(found) = stretch.first(fields, policy, from) {
            return Some(found);
        }
        from = stretch.end;
        stretch = stretch.next(zone)?;
    }
}

impl Stretch {
    /// The stretch that a moment is in.
    fn around(zone: &TimeZone, moment: i64) -> Option<Self> {
        let now = Timestamp::from_second(moment).ok()?;
        let offset = i64::from(zone.to_offset(now).seconds());
        let behind = Timestamp::from_second(moment + 1).ok()?;
        let (begin, offset_before) = match zone.preceding(behind).next() {
            Some(change) => {
                let begin = change.timestamp().as_second();
                let before = Timestamp::from_second(begin - 1).ok()?;
                (begin, zone.to_offset(before).seconds().into())
            }
            None => (i64::MIN, offset),
        };
        let (end, offset_after) = end_of(offset, zone.following(now).next());
        Some(Self { begin, end, offset, offset_before, offset_after })
    }

    /// The one that follows; `None` after the last.
    fn next(&self, zone: &TimeZone) -> Option<Self> {
        let begin = Timestamp::from_second(self.end).ok()?;
        let (end, offset_after) = end_of(self.offset_after, zone.following(begin).next());
        let offset = self.offset_after;
        Some(Self { begin: self.end, end, offset, offset_before: self.offset, offset_after })
    }

    /// Returns the first moment of this stretch from `from` on.
    fn first(&self, fields: &Fields, policy: Policy, from: i64) -> Option<i64> {
        let (shown, shown_before) = (self.begin.saturating_add(self.offset), self.shown_before());
        if policy.missing == Missing::Next
            && from == self.begin
            && fields.first_within(shown_before, shown).is_some()
        {
            return Some(self.begin);
        }
        let mut first = from + self.offset;
        let mut end = self.end.saturating_add(self.offset);
        match policy.repeated {
            Repeated::First => first = first.max(shown_before),
            Repeated::Last => end = end.min(self.end.saturating_add(self.offset_after)),
            Repeated::Both => {}
        }
        Some(fields.first_within(first, end)? - self.offset)
    }

    /// The time up to which the stretch before this one has shown all.
    fn shown_before(&self) -> i64 {
        self.begin.saturating_add(self.offset_before)
    }
}

/// Returns when a stretch ends, and the offset then.
fn end_of(offset: i64, change: Option<TimeZoneTransition<'_>>) -> (i64, i64) {
    change.map_or((i64::MAX, offset), |change| {
        (change.timestamp().as_second(), change.offset().seconds().into())
    })
}
