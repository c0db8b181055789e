//! A calendar trigger: its task runs when the wall clock of a time zone shows certain times.
//!
//! An [expression] gives those times, as [fields] without a zone. The walk ([`first_from`]) finds the moments at which
//! a clock in the zone shows these times. All moments are whole seconds. A trigger looks its zone up each time it is
//! asked for a run, so it notices changed rules. If it cannot load the zone, it uses the rules that it stored last.
//!
//! # The walk
//!
//! Between two changes of a zone's offset, a moment is the time shown minus the offset. So the walk goes from one such
//! [`Stretch`] of time to the next, and searches each for a match with the [fields]. Only the changes are special:
//!
//! * **A stretch begins with a gap** if its offset is greater than the offset before: the clock skips some
//!   times. With [`Missing::Next`], the stretch begins with one run if a skipped time or the first time shown matches.
//! * **A stretch begins with a fold** if its offset is less: the clock shows some times again. With [`Repeated::First`]
//!   they are left out of this stretch, and with [`Repeated::Last`] out of the stretch before.
//!
//! It makes no difference whether a change is due to daylight saving time. Every expression matches within 40 years, so
//! the walk ends. Only if [`Missing::Skip`] leaves out all times of an expression does the walk go on to the year 9999.

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

use jiff::{Timestamp, tz::TimeZone};

use self::{expression::Expression, fields::Fields};
use crate::{
    Trigger,
    trigger::{Due, TriggerContext},
};

/// Runs at the times of a cron expression, on the wall clock of a time zone.
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
/// Five fields, or six with the seconds first, separated by spaces:
///
/// | field | values | also |
/// |---|---|---|
/// | second | 0–59 | |
/// | minute | 0–59 | |
/// | hour | 0–23 | |
/// | day of the month | 1–31 | `L` the last day, `15W` the weekday (Monday to Friday) nearest to the 15th in the same month, `LW` the last weekday |
/// | month | 1–12, `JAN`–`DEC` | |
/// | day of the week | 0–7, `SUN`–`SAT`; 0 and 7 are Sunday | `FRIL` the last Friday of the month, `FRI#2` the second |
///
/// A field is a list (`1,15`) of values, ranges (`9-17`) and `*`, which stands for all values. A range or `*` may have
/// a step: `*/15`, `9-17/2`. A month without the given day is left out.
///
/// A day has to match all fields. But if *neither* of the two day fields begins with `*`, matching one of them is
/// enough, as in every cron since Vixie's: `0 0 13 * FRI` is every 13th and every Friday. `@yearly`, `@annually`,
/// `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly` stand for the expressions that they name.
///
/// The forms of Quartz, systemd's `OnCalendar` and Go's cron are refused, with an error that says what to write. A `?`
/// comes from Quartz, where 1 is Sunday: `0 0 9 ? * 2-6` is `0 0 9 * * MON-FRI`.
///
/// # Daylight saving: missing and repeated hours
///
/// An expression whose second, minute or hour begins with `*` means an *interval*: missing times are left out, and
/// repeated times run twice. Any other expression means certain *times of day*: a missing time runs as soon as the gap
/// is over, and a repeated time runs when it is first shown. That is the rule of cronie, the cron of many Linux
/// systems. [`missing`](Cron::missing) and [`repeated`](Cron::repeated) override it.
///
/// # The zone
///
/// `zone` is a name from the IANA database, such as `America/New_York`, or `UTC`. There is no default. The rules are
/// those installed on the machine. Without time zone files, as in some container images, every name but `UTC` is
/// unknown, unless the program enables the feature `cron-bundled-zones`.
///
/// # Errors
///
/// [`CronError`] if the expression is not understood, if it never matches (30 February), or if the zone is unknown.
///
/// # Cost
///
/// Half a microsecond for this call, and a quarter for each [answer](Cron::next_after). The first read of a zone's file
/// takes some 25 µs more, and a millisecond for the first zone of a process. Zones are cached for five minutes.
#[doc(alias("crontab", "calendar", "timezone", "local_time"))]
pub fn cron(expression: &str, zone: &str) -> Result<Cron, CronError> {
    let parsed = Expression::parse(expression)?;
    let last_known = load(zone).ok_or_else(|| CronError {
        kind: CronErrorKind::UnknownZone,
        span: None,
        message: format!(
            "{zone:?} is not the name of a time zone that is known here; use a name such as `Europe/London`, `UTC` \
             or `Etc/GMT-2`, which is two hours ahead of UTC, and where there are no time zone files at all, \
             install them or enable the feature `cron-bundled-zones`"
        )
        .into(),
    })?;
    Ok(Cron {
        policy: Policy::of(&parsed),
        fields: parsed.fields,
        expression: expression.into(),
        zone: zone.into(),
        last_known,
    })
}

/// A calendar trigger; from [`cron()`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Cron {
    expression: Box<str>,
    zone: Box<str>,
    fields: Fields,
    policy: Policy,
    last_known: TimeZone,
}

/// The policy for times that the clock skips when it is set forward; for [`Cron::missing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// Missing times are left out.
    Skip,
    /// One run takes place as soon as the gap is over, however many times were missing.
    Next,
}

/// The policy for times that the clock shows twice because it is set back; for [`Cron::repeated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Repeated {
    /// The task runs when the clock first shows the time.
    First,
    /// The task runs when the clock shows the time again.
    Last,
    /// The task runs both times.
    Both,
}

const MOST_COUNTED: usize = 1_000;

/// How far the clock can be set back without repeating runs. If it is set back further, the time that it showed before
/// counts as wrong, as in cronie.
const CORRECTION: Duration = Duration::from_secs(3 * 60 * 60);

impl Cron {
    /// Sets the policy for times that the clock skips. With [`Missing::Skip`], an expression all of whose times are
    /// missing never runs: 02:30 on the second Sunday of March in New York.
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

    /// Returns the first moment later than `after`, always a whole second; `None` if there is none up to the year 9999.
    ///
    /// Costs about a quarter of a microsecond, and as much again for each change of the zone's offset in between. If
    /// there is no further moment, that adds up to milliseconds.
    pub fn next_after(&self, after: SystemTime) -> Option<SystemTime> {
        self.next_in(&self.current_zone(), after)
    }

    /// Returns all moments later than `after`, in order, by the zone's present rules. Each costs as much as
    /// [`next_after`](Self::next_after).
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

    /// Returns the expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the zone as it was given.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    fn next_in(&self, zone: &TimeZone, after: SystemTime) -> Option<SystemTime> {
        let from = second_of(after).checked_add(1)?;
        let found = first_from(&self.fields, self.policy, zone, from)?;
        Timestamp::from_second(found).ok().map(SystemTime::from)
    }

    fn current_zone(&self) -> TimeZone {
        load(&self.zone).unwrap_or_else(|| self.last_known.clone())
    }
}

/// Answers with the first matching moment later than [`after_wall`](TriggerContext::after_wall). If the wall clock was
/// set back by at most three hours, no run is repeated, unless the policy is [`Repeated::Both`].
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

    fn between(&mut self, from: Due, to: Due) -> u64 {
        let (Due::Wall(from), Due::Wall(to)) = (from, to) else { return 0 };
        self.next_runs(from).take_while(|next| *next <= to).take(MOST_COUNTED).count() as u64
    }

    fn is_asked_again(&mut self) -> bool {
        true
    }
}

impl Policy {
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

fn load(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok().filter(|zone| !zone.is_unknown())
}

/// Returns the second that contains a moment, or the nearest extreme of `i64` if the moment is out of range.
fn second_of(moment: SystemTime) -> i64 {
    let beyond = if moment < UNIX_EPOCH { i64::MIN } else { i64::MAX };
    let second = |at: Timestamp| at.as_second() - i64::from(at.subsec_nanosecond() < 0);
    Timestamp::try_from(moment).map_or(beyond, second)
}

const DAY: i64 = 24 * 60 * 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    missing: Missing,
    repeated: Repeated,
}

/// The stretch of time between two successive changes of the offset. Its ends are in seconds since the epoch.
struct Stretch {
    begin: i64,
    end: i64,
    offset: i64,
    /// Equal to `offset` if no change precedes the stretch.
    offset_before: i64,
    /// Equal to `offset` if no change follows the stretch.
    offset_after: i64,
}

/// Returns the first matching moment at or after `from`, in seconds since the epoch. Skips the first two days that
/// `jiff` knows: the time that a clock shows on them may be too early for a [`Timestamp`].
fn first_from(fields: &Fields, policy: Policy, zone: &TimeZone, from: i64) -> Option<i64> {
    let mut from = from.max(Timestamp::MIN.as_second() + 2 * DAY);
    loop {
        let stretch = Stretch::around(zone, from)?;
        if let Some(found) = stretch.first(fields, policy, from) {
            return Some(found);
        }
        from = stretch.end;
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
        let (end, offset_after) = match zone.following(now).next() {
            Some(change) => (change.timestamp().as_second(), change.offset().seconds().into()),
            None => (i64::MAX, offset),
        };
        Some(Self { begin, end, offset, offset_before, offset_after })
    }

    fn first(&self, fields: &Fields, policy: Policy, from: i64) -> Option<i64> {
        let [shown, shown_before] =
            [self.offset, self.offset_before].map(|offset| self.begin.saturating_add(offset));
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
}

/// The error of [`cron`](cron()) for a refused expression or zone. Its `Display` says what was found, what is allowed
/// there and what to do. [`span`](Self::span) locates the fault, so that a program can point at it:
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
    /// The expression has the wrong number of fields, or a part that is not valid in its place.
    Syntax,
    /// Each part is valid, but no day matches them all: 30 February, for instance.
    NeverMatches,
    /// No time zone with this name is known to this process.
    UnknownZone,
}

impl CronError {
    fn syntax(span: Range<usize>, message: String) -> Self {
        Self { kind: CronErrorKind::Syntax, span: Some(span), message: message.into() }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> CronErrorKind {
        self.kind
    }

    /// Returns the byte range of the expression that is at fault; `None` if the zone is. Both ends are on character
    /// boundaries. Where something is missing, the range is empty.
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
