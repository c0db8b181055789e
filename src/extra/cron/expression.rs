//! The parser: from the text of an expression to its [fields](super::fields).
//!
//! [`cron`](super::cron()) describes the form. What other dialects read in different ways is refused, with what to write
//! instead: a step after a single value, a range that goes down, a step that is longer than its field. The exceptions are
//! those in which all agree: Sunday is 0 and 7, and a range may end with it, as `FRI-SUN` does. An
//! expression that was refused is looked at once more, for the marks of other forms.
//!
//! Two things depend on how a field *begins*, as in cronie: a day field that begins with `*` restricts the
//! other one, and two that do not are alternatives; and an expression is one of a
//! [wildcard](Expression::is_wildcard) if its second, minute or hour begins with `*`.
//!
//! Every error knows its place, because every [`Piece`] of the text does. A piece ends before or after
//! an ASCII character or at the end of the text, and so never inside of a character.

use super::{
    CronError,
    fields::{DaysOfMonth, DaysOfWeek, Fields},
};

/// An expression that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) fields: Fields,
    /// It runs by the clock and not at named times: its second, minute or hour begins with `*`.
    pub(super) is_wildcard: bool,
}

/// A part of the expression, and where it begins.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    at: usize,
}

/// The name of a field, and the values that it has.
struct Unit {
    /// With its article.
    name: &'static str,
    min: u8,
    max: u8,
    names: &'static [&'static str],
}

const SECOND: Unit = Unit { name: "a second", min: 0, max: 59, names: &[] };
const MINUTE: Unit = Unit { name: "a minute", min: 0, max: 59, names: &[] };
const HOUR: Unit = Unit { name: "an hour", min: 0, max: 23, names: &[] };
const DAY: Unit = Unit { name: "a day of the month", min: 1, max: 31, names: &[] };
const MONTH: Unit = Unit {
    name: "a month",
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
/// The value 7, which is Sunday too, becomes 0 at the end.
const WEEKDAY: Unit = Unit {
    name: "a day of the week",
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

/// Their seven bits, without that of the second Sunday.
const EVERY_WEEKDAY: u64 = 0x7f;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, CronError> {
        let whole = Piece { text, at: 0 };
        let whole = whole.part(text.trim());
        Self::read(whole).map_err(|error| match of_others(whole.text) {
            Some(message) => whole.fault(message.to_owned()),
            None => error,
        })
    }

    fn read(whole: Piece<'_>) -> Result<Self, CronError> {
        if !whole.text.starts_with('@') {
            return Self::of_fields(whole);
        }
        let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(whole.text));
        let (_, meaning) = known.ok_or_else(|| {
            let names = NICKNAMES.map(|(name, _)| name).join(", ");
            whole.fault(format!("`{}` is not a nickname; use one of {names}", whole.text))
        })?;
        Self::of_fields(Piece { text: meaning, at: 0 })
    }

    fn of_fields(whole: Piece<'_>) -> Result<Self, CronError> {
        let words: Vec<_> = whole.text.split_whitespace().map(|word| whole.part(word)).collect();
        let (second, rest) = match words.as_slice() {
            [second, rest @ ..] if rest.len() == 5 => (Some(*second), rest),
            all => (None, all),
        };
        let &[minute, hour, day, month, weekday] = rest else {
            return Err(whole.fault(format!(
                "an expression has 5 fields: minute, hour, day of the month, month, day of the week; or \
                 6, with the second before them; this one has {}",
                words.len()
            )));
        };
        let fields = Fields {
            seconds: second.map_or(Ok(1), |second| second.list(&SECOND))?,
            minutes: minute.list(&MINUTE)?,
            hours: hour.list(&HOUR)?,
            days: days_of_month(day)?,
            months: month.list(&MONTH)?,
            weekdays: days_of_week(weekday)?,
            either_day: !day.admits_all() && !weekday.admits_all(),
        };
        if fields.never_match() {
            return Err(CronError::never_matches(day.at..weekday.end()));
        }
        let mut timed = second.into_iter().chain([minute, hour]);
        Ok(Self { fields, is_wildcard: timed.any(|field| field.text.starts_with('*')) })
    }
}

/// Returns what to say of an expression in the form of Go's cron, Quartz or systemd.
fn of_others(text: &str) -> Option<&'static str> {
    if text.starts_with("@every") {
        Some(
            "`@every` is a period, and no time that a clock shows; use `trigger::every` in place of \
             `trigger::cron`",
        )
    } else if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        Some("the zone is an argument of its own; leave it out of the expression")
    } else if text.contains('?') {
        Some(
            "`?` is from Quartz, whose days of the week count from 1, and which has years; use `*` in its place, \
             the names of days, and `Trigger::until` for an end",
        )
    } else if text.contains(':') || text.contains("..") {
        Some(
            "this is in the form of systemd; use fields for the minute, hour, day, month and day of the week, \
             and no year",
        )
    } else {
        None
    }
}

fn days_of_month(field: Piece<'_>) -> Result<DaysOfMonth, CronError> {
    let mut days = DaysOfMonth::default();
    for item in field.items() {
        if !special_day(item, &mut days)? {
            days.numbers |= item.set(&DAY)?;
        }
    }
    Ok(days)
}

/// `L`, `LW` and `15W`. Returns `false` if the item is none of them.
fn special_day(item: Piece<'_>, days: &mut DaysOfMonth) -> Result<bool, CronError> {
    if item.text.eq_ignore_ascii_case("L") {
        days.last = true;
    } else if item.text.eq_ignore_ascii_case("LW") {
        days.last_nearest = true;
    } else if let Some(day) = item.without('W') {
        days.nearest |= 1 << day.value(&DAY)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn days_of_week(field: Piece<'_>) -> Result<DaysOfWeek, CronError> {
    let mut days = DaysOfWeek::default();
    for item in field.items() {
        if !special_weekday(item, &mut days)? {
            let set = item.set(&WEEKDAY)?;
            days.every |= (set | set >> 7) & EVERY_WEEKDAY;
        }
    }
    Ok(days)
}

/// `FRIL` and `FRI#2`. Returns `false` if the item is none of them.
fn special_weekday(item: Piece<'_>, days: &mut DaysOfWeek) -> Result<bool, CronError> {
    if item.text.eq_ignore_ascii_case("L") {
        return Err(item.fault(
            "`L` does not say which day of the week; write `SATL` for the last Saturday of the month, or \
             write `SAT` for each Saturday"
                .to_owned(),
        ));
    }
    if let Some((weekday, nth)) = item.cut('#') {
        let number = nth.number().filter(|number| (1..=5).contains(number));
        let nth = number.map(usize::from).ok_or_else(|| {
            nth.fault(format!("`{}` does not count weekdays of a month; use 1 to 5", nth.text))
        })?;
        days.nth[nth - 1] |= 1 << (weekday.value(&WEEKDAY)? % 7);
    } else if let Some(weekday) = item.without('L') {
        days.last |= 1 << (weekday.value(&WEEKDAY)? % 7);
    } else {
        return Ok(false);
    }
    Ok(true)
}

impl Unit {
    fn set(&self, from: u8, to: u8, step: u8) -> u64 {
        (from..=to).step_by(step.into()).fold(0, |set, value| set | 1 << value)
    }

    fn is_weekday(&self) -> bool {
        self.max == 7
    }

    /// The highest value that is not another word for the lowest.
    fn last(&self) -> u8 {
        if self.is_weekday() { 6 } else { self.max }
    }

    /// Returns the number of values, which is the longest step.
    fn len(&self) -> u8 {
        self.last() - self.min + 1
    }

    /// Returns the value with a name that begins with that of three letters.
    fn by_long_name(&self, text: &str) -> Option<u8> {
        let begin =
            text.get(..3).filter(|_| text.bytes().all(|byte| byte.is_ascii_alphabetic()))?;
        let place = self.names.iter().position(|name| name.eq_ignore_ascii_case(begin))?;
        Some(self.min + place as u8)
    }

    /// Writes the values from one to another by steps, so that the parser accepts it. If the second is lower, they
    /// go on behind the last value with the first one. Weekdays have their names, whose meaning no dialect
    /// doubts.
    fn written(&self, from: u8, to: u8, step: u8) -> String {
        if from > to {
            let left = self.last() - from;
            let next = self.min + (step - 1 - left % step);
            let rest = (next <= to).then(|| format!(",{}", self.written(next, to, step)));
            return self.written(from, self.last(), step) + &rest.unwrap_or_default();
        }
        let value = |value: u8| match self.names.get(usize::from(value)) {
            Some(name) if self.is_weekday() => (*name).to_owned(),
            _ => value.to_string(),
        };
        let range = match (from, to) {
            _ if to - from < step => return value(from),
            all if all == (self.min, self.last()) => "*".to_owned(),
            _ => format!("{}-{}", value(from), value(to)),
        };
        if step == 1 { range } else { format!("{range}/{step}") }
    }

    /// Returns the forms in which a value can be written.
    fn choices(&self) -> String {
        let names = match self.names {
            [first, .., last] => format!(", or {first} to {last}"),
            _ => String::new(),
        };
        format!("{} to {}{names}", self.min, self.max)
    }
}

impl<'a> Piece<'a> {
    /// A part of this piece, which is a slice of its text.
    fn part(self, text: &'a str) -> Self {
        Self { text, at: self.at + (text.as_ptr().addr() - self.text.as_ptr().addr()) }
    }

    fn end(self) -> usize {
        self.at + self.text.len()
    }

    fn fault(self, message: String) -> CronError {
        CronError::syntax(self.at..self.end(), message)
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.text.split(',').map(move |item| self.part(item))
    }

    fn cut(self, at: char) -> Option<(Self, Self)> {
        let (before, after) = self.text.split_once(at)?;
        Some((self.part(before), self.part(after)))
    }

    /// The piece without a letter at its end, if something is left of it then.
    fn without(self, letter: char) -> Option<Self> {
        let rest = self.text.strip_suffix([letter, letter.to_ascii_lowercase()])?;
        (!rest.is_empty()).then(|| self.part(rest))
    }

    /// Whether a day field leaves the other one alone.
    fn admits_all(self) -> bool {
        self.text.starts_with('*')
    }

    fn list(self, unit: &Unit) -> Result<u64, CronError> {
        self.items().try_fold(0, |set, item| Ok(set | item.set(unit)?))
    }

    fn set(self, unit: &Unit) -> Result<u64, CronError> {
        let (range, step) = match self.cut('/') {
            Some((range, step)) => (range, Some(step.step(unit)?)),
            None => (self, None),
        };
        let (text, by) = (self.text, step.unwrap_or(1));
        let (from, to) = if range.text == "*" {
            (unit.min, unit.last())
        } else if let Some((from, to)) = range.cut('-') {
            (from.value(unit)?, to.value(unit)?)
        } else {
            let value = range.value(unit)?;
            (value, value)
        };
        let better = |to| unit.written(if from > unit.last() { unit.min } else { from }, to, by);
        match (from, to) {
            _ if step.is_some() && !range.text.contains(['*', '-']) => {
                let better = better(unit.last());
                Err(self.fault(format!("`{text}` has a step but no range; write `{better}`")))
            }
            (1.., 0) if unit.is_weekday() => Ok(unit.set(from, 7, by)),
            _ if from <= to => Ok(unit.set(from, to, by)),
            _ => Err(self.fault(format!("the range `{text}` goes down; write `{}`", better(to)))),
        }
    }

    fn step(self, unit: &Unit) -> Result<u8, CronError> {
        let most = unit.len();
        let step = self.number().filter(|step| (1..=most).contains(step));
        step.ok_or_else(|| self.fault(format!("`{}` is not a step; use 1 to {most}", self.text)))
    }

    /// One value, as a number or by name.
    fn value(self, unit: &Unit) -> Result<u8, CronError> {
        let named = unit.names.iter().position(|name| name.eq_ignore_ascii_case(self.text));
        let named = named.map(|place| unit.min + place as u8);
        let number = || self.number().filter(|number| (unit.min..=unit.max).contains(number));
        named.or_else(number).ok_or_else(|| {
            let (name, choices) = (unit.name, unit.choices());
            self.fault(match (self.text, unit.by_long_name(self.text)) {
                ("", _) => format!("{name} is missing; use {choices}"),
                (found, None) => format!("`{found}` is not {name}; use {choices}"),
                (found, Some(value)) => {
                    let short = unit.names[usize::from(value - unit.min)];
                    format!("`{found}` is not {name}; write `{short}`")
                }
            })
        })
    }

    /// The number that the digits mean; a sign is no digit.
    fn number(self) -> Option<u8> {
        self.text.bytes().all(|byte| byte.is_ascii_digit()).then(|| self.text.parse().ok())?
    }
}
