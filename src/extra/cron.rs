//! A calendar: when the clock on a wall in a time zone shows certain times.
//!
//! An [expression] says which times, in [fields] that know no zone. The walk ([`first_from`]) finds out when a clock in
//! the zone shows them, with the times that it never shows and those that it shows twice.
//!
//! A trigger looks up its zone for each answer, so a process that runs for a year goes by the laws that were
//! made meanwhile. A zone that has vanished from the machine leaves the trigger with the last one that it had.
//! Runs are on whole seconds, so a moment is a number of seconds in all that follows.
//!
//! # The walk from the time on the wall to the moments at which a clock there shows it
//!
//! Between two changes of a zone's offset the clock on the wall and time itself run together: a moment
//! is the time shown, minus the offset. So the search goes from one such [`Stretch`] to the next, and
//! in each it is a search in the [fields] alone. What is special is at the two ends.
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

mod expression;
mod fields;
#[cfg(test)]
mod tests;

use std::{
    error::Error,
    fmt,
    ops::Range,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneTransition},
};

use self::{expression::Expression, fields::Fields};
use crate::{
    Trigger,
    trigger::{Due, TriggerContext},
};

/// Runs when a clock in a time zone shows the times of a cron expression.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use punctual::trigger::cron;
///
/// // On working days at nine, in London.
/// let nine = cron("0 9 * * MON-FRI", "Europe/London")?;
///
/// // From Friday, 27 March 2026, at noon: Monday, in summer time.
/// let friday = UNIX_EPOCH + Duration::from_secs(1_774_612_800);
/// let monday = UNIX_EPOCH + Duration::from_secs(1_774_857_600);
/// assert_eq!(nine.next_after(friday), Some(monday));
/// # Ok::<(), punctual::trigger::CronError>(())
/// ```
///
/// # The expression
///
/// Five fields, or six with the second first, between spaces:
///
/// | field | values | also |
/// |---|---|---|
/// | second | 0–59 | |
/// | minute | 0–59 | |
/// | hour | 0–23 | |
/// | day of the month | 1–31 | `L` the last day, `15W` the day from Monday to Friday nearest to the 15th in the same month, `LW` the last one of them |
/// | month | 1–12, `JAN`–`DEC` | |
/// | day of the week | 0–7, `SUN`–`SAT`; 0 and 7 are Sunday | `FRIL` the last Friday of the month, `FRI#2` the second |
///
/// A field is a list, as `1,15`, of values, of ranges `9-17`, and of `*`, which is all values. A range and
/// `*` may have a step: `*/15`, `9-17/2`. A month without the day that is asked for is left out.
///
/// A day has to be in all fields. But if *neither* of the two day fields begins with `*`, it
/// has to be in one of the two, as in every cron since Vixie's: `0 0 13 * FRI` is each 13th and each
/// Friday. `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly` stand for the
/// expressions that they name.
///
/// The forms of Quartz, of systemd's `OnCalendar` and of Go's cron are refused, with an error that names them. A `?`
/// comes from Quartz, where 1 is Sunday: `0 0 9 ? * 2-6` is `0 0 9 * * MON-FRI`.
///
/// # The hour that is missing, and the one that comes twice
///
/// An expression whose second, minute or hour begins with `*` means an *interval*: it goes on by the
/// clock, so times that are missing are left out, and times that come twice are two runs. Any other
/// means certain *times of the day*: one that is missing runs as soon as the gap is over, and one that
/// comes twice runs the first time. That is the rule of cronie, the cron of many Linux systems.
/// [`missing`](Cron::missing) and [`repeated`](Cron::repeated) choose otherwise.
///
/// # The zone
///
/// `zone` is a name from the IANA database, such as `America/New_York`, or `UTC`. There is no default:
/// UTC would surprise some, and the zone of whichever machine it is others. The rules are those that are
/// installed on the machine. Where no time zone files are, as in some container images, every name but
/// `UTC` is unknown, unless the program enables the feature `cron-bundled-zones`.
///
/// # Errors
///
/// [`CronError`] if the expression is not understood, if it never matches, as 30 February, or if no such
/// zone is known.
///
/// # Cost
///
/// Half a microsecond here, and a quarter of one for each [answer](Cron::next_after). The first look at a
/// zone's file takes some 25 more, and a millisecond for the first zone of a process. Zones are then
/// kept for five minutes.
#[doc(alias("crontab", "calendar", "timezone", "local_time"))]
pub fn cron(expression: &str, zone: &str) -> Result<Cron, CronError> {
    let parsed = Expression::parse(expression)?;
    let last_known = load(zone).ok_or_else(|| CronError::unknown_zone(zone))?;
    Ok(Cron {
        policy: Policy::of(&parsed),
        fields: parsed.fields,
        expression: expression.into(),
        zone: zone.into(),
        last_known,
    })
}

/// A calendar; from [`cron()`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Cron {
    expression: Box<str>,
    zone: Box<str>,
    fields: Fields,
    policy: Policy,
    last_known: TimeZone,
}

/// The policy for times that the clock does not show, because it is set forward; for
/// [`Cron::missing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// They are left out.
    Skip,
    /// They run as soon as the gap is over: once, however many they are.
    Next,
}

/// The policy for times that the clock shows twice, because it is set back; for
/// [`Cron::repeated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Repeated {
    /// They run the first time.
    First,
    /// They run the second time.
    Last,
    /// They run both times.
    Both,
}

/// How many moments are counted; more are not told from as many.
const MOST_COUNTED: usize = 1_000;

/// A clock that is set back by more than that was wrong before: what has run by it counts no more. This is
/// cronie's limit.
const CORRECTION: Duration = Duration::from_secs(3 * 60 * 60);

impl Cron {
    /// Sets the policy for times that the clock does not show.
    ///
    /// An expression all of whose times are missing may then never run: 02:30 on the second Sunday of
    /// March, in New York.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use punctual::trigger::{Missing, cron};
    ///
    /// // On Sunday, 29 March 2026, Berlin's clocks go from 02:00 to 03:00, at 01:00 UTC.
    /// let saturday = UNIX_EPOCH + Duration::from_secs(1_774_699_200); // 12:00 UTC
    /// let or_not = cron("30 2 * * *", "Europe/Berlin")?.missing(Missing::Skip);
    /// let monday = saturday + Duration::from_secs(36 * 3600 + 1800);
    /// assert_eq!(or_not.next_after(saturday), Some(monday));
    /// # Ok::<(), punctual::trigger::CronError>(())
    /// ```
    pub fn missing(mut self, missing: Missing) -> Self {
        self.policy.missing = missing;
        self
    }

    /// Sets the policy for times that the clock shows twice.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use punctual::trigger::{Repeated, cron};
    ///
    /// // On 25 October 2026 London's clocks show 01:30 at 00:30 UTC and once more at 01:30 UTC.
    /// let midnight = UNIX_EPOCH + Duration::from_secs(1_792_886_400);
    /// let later = cron("30 1 * * *", "Europe/London")?.repeated(Repeated::Last);
    /// assert_eq!(later.next_after(midnight), Some(midnight + Duration::from_secs(90 * 60)));
    /// # Ok::<(), punctual::trigger::CronError>(())
    /// ```
    pub fn repeated(mut self, repeated: Repeated) -> Self {
        self.policy.repeated = repeated;
        self
    }

    /// Returns the first moment that is later than `after`, always a whole second; `None` if there is
    /// none up to the year 9999.
    ///
    /// The cost is about a quarter of a microsecond, and as much for each change of the zone's offset in
    /// between. Where there is no further moment, that is 3 milliseconds.
    pub fn next_after(&self, after: SystemTime) -> Option<SystemTime> {
        self.next_in(&self.current_zone(), after)
    }

    /// Returns all moments that are later than `after`, in their order: what a user is shown before they choose.
    /// They are those of the rules that the zone has now. Each costs as much as [`next_after`](Self::next_after).
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use punctual::trigger::cron;
    ///
    /// let hour = Duration::from_secs(3600);
    /// let thrice = cron("0 6,12,18 * * *", "UTC")?;
    /// let next: Vec<_> = thrice.next_runs(UNIX_EPOCH).take(4).collect();
    /// assert_eq!(next, [6, 12, 18, 30].map(|hours| UNIX_EPOCH + hours * hour));
    /// # Ok::<(), punctual::trigger::CronError>(())
    /// ```
    pub fn next_runs(&self, after: SystemTime) -> impl Iterator<Item = SystemTime> + '_ {
        let zone = self.current_zone();
        let next = move |after| self.next_in(&zone, after);
        std::iter::successors(next(after), move |last| next(*last))
    }

    /// Returns the expression, as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the zone, as it was given.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    fn next_in(&self, zone: &TimeZone, after: SystemTime) -> Option<SystemTime> {
        let from = second_of(after).checked_add(1)?;
        moment_of(first_from(&self.fields, self.policy, zone, from)?)
    }

    fn current_zone(&self) -> TimeZone {
        load(&self.zone).unwrap_or_else(|| self.last_known.clone())
    }
}

/// The first moment after [`after_wall`](TriggerContext::after_wall), by the rules that the zone has now. If
/// the wall clock was set back by no more than three hours, an expression that runs once what
/// comes twice does not run again what it has run.
impl Trigger for Cron {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.last_known = self.current_zone();
        let after = last.after_wall();
        let ran = last.planned_wall().filter(|_| self.policy.repeated != Repeated::Both);
        let is_near =
            |ran: &SystemTime| ran.duration_since(after).unwrap_or_default() <= CORRECTION;
        let after = ran.filter(is_near).map_or(after, |ran| ran.max(after));
        self.next_in(&self.last_known, after).map(Due::Wall)
    }

    /// Counts up to a thousand.
    fn between(&mut self, from: Due, to: Due) -> u64 {
        let (Due::Wall(from), Due::Wall(to)) = (from, to) else { return 0 };
        self.next_runs(from).take_while(|next| *next <= to).take(MOST_COUNTED).count() as u64
    }

    fn is_asked_again(&mut self) -> bool {
        true
    }
}

impl Policy {
    /// The policy of an expression without further words.
    fn of(expression: &Expression) -> Self {
        if expression.is_wildcard {
            Self { missing: Missing::Skip, repeated: Repeated::Both }
        } else {
            Self { missing: Missing::Next, repeated: Repeated::First }
        }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.expression, self.zone)
    }
}

/// Looks up a zone by its name. A name for the unknown zone is not one.
fn load(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok().filter(|zone| !zone.is_unknown())
}

/// Returns the second that a moment is in, or the first or last one that can be counted.
fn second_of(moment: SystemTime) -> i64 {
    let whole = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(error) => {
            let before = error.duration();
            -whole(before) - i64::from(before.subsec_nanos() > 0)
        }
    }
}

fn moment_of(second: i64) -> Option<SystemTime> {
    let distance = Duration::from_secs(second.unsigned_abs());
    if second < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

const DAY: i64 = 24 * 60 * 60;

/// The policy for times that a clock does not show, or shows twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    missing: Missing,
    repeated: Repeated,
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
fn first_from(fields: &Fields, policy: Policy, zone: &TimeZone, from: i64) -> Option<i64> {
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

/// The error if [`cron`](cron()) refused an expression or a zone. Its `Display` says what was found, what
/// is allowed in its place and, where something can be done, what to do.
///
/// [`span`](Self::span) is the place of the fault, so that a program can point at it:
///
/// ```
/// use punctual::trigger::cron;
///
/// let expression = "0 25 * * MON-FRI";
/// let error = cron(expression, "Europe/London").expect_err("a day has 24 hours");
/// assert_eq!(error.to_string(), "`25` is not an hour; use 0 to 23");
/// assert_eq!(error.span().map(|span| &expression[span]), Some("25"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    kind: CronErrorKind,
    span: Option<Range<usize>>,
    message: Box<str>,
}

/// The kind of an error; from [`CronError::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CronErrorKind {
    /// A part of the expression means nothing in its place.
    Syntax,
    /// Each part has a meaning, but no day is in all of them, as with 30 February.
    NeverMatches,
    /// No time zone with this name is known to this process.
    UnknownZone,
}

impl CronError {
    fn syntax(span: Range<usize>, message: String) -> Self {
        Self { kind: CronErrorKind::Syntax, span: Some(span), message: message.into() }
    }

    fn never_matches(span: Range<usize>) -> Self {
        let message = "no day of any year is in all of the three day and month fields; \
                       choose a day that one of the months has";
        Self { kind: CronErrorKind::NeverMatches, span: Some(span), message: message.into() }
    }

    fn unknown_zone(zone: &str) -> Self {
        let message = format!(
            "{zone:?} is not the name of a time zone that is known here; use a name such as `Europe/London`, `UTC` \
             or `Etc/GMT-2`, which is two hours ahead of UTC, and where there are no time zone files at all, \
             install them or enable the feature `cron-bundled-zones`"
        );
        Self { kind: CronErrorKind::UnknownZone, span: None, message: message.into() }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> CronErrorKind {
        self.kind
    }

    /// Returns the bytes of the expression that are at fault; `None` if it is the zone that is. Both
    /// ends are between two characters. Where something is missing, the span is empty.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CronError {}
