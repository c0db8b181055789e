//! The parser, which turns the text of an expression into its [fields](super::fields).
//!
//! [`cron`](super::cron()) describes the syntax. The parser refuses what dialects read differently (a step after a
//! single value, a descending range, a step larger than the field's range), and says what to write instead. Sunday is
//! both 0 and 7, as in cronie, and a range may end with it, as in `FRI-SUN`. If a refused expression shows signs of
//! another program's syntax, the error says so.
//!
//! As in cronie, two things depend on how a field *begins*. If a day field begins with `*`, a day has to match both day
//! fields; otherwise one of them is enough. An expression whose second, minute or hour field begins with `*` is a
//! [wildcard](Expression::is_wildcard).
//!
//! Every error has a position, because every [`Piece`] of the text has one. A piece is a slice of the text, so its
//! ends are never inside a character.

use super::{
    CronError, CronErrorKind,
    fields::{DaysOfMonth, DaysOfWeek, Fields},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) fields: Fields,
    /// `true` if the second, minute or hour field begins with `*`: the expression means intervals, not times of day.
    pub(super) is_wildcard: bool,
}

#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    at: usize,
}

struct Unit {
    /// The name with its article, for messages.
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
/// The value 7 also means Sunday; `days_of_week` turns it into 0.
const WEEKDAY: Unit = Unit {
    name: "a day of the week",
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

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
        Self::read(whole).map_err(|error| {
            let is_of_others = |marks: &[&str]| marks.iter().any(|mark| whole.text.contains(mark));
            let other = OTHER_FORMS.iter().find(|(marks, _)| is_of_others(marks));
            other.map_or(error, |(_, message)| whole.fault((*message).to_owned()))
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
            either_day: !day.text.starts_with('*') && !weekday.text.starts_with('*'),
        };
        if fields.never_match() {
            let message = "no day of any year is in all of the three day and month fields; \
                           choose a day that one of the months has";
            let span = Some(day.at..weekday.end());
            return Err(CronError {
                kind: CronErrorKind::NeverMatches,
                span,
                message: message.into(),
            });
        }
        let mut timed = second.into_iter().chain([minute, hour]);
        Ok(Self { fields, is_wildcard: timed.any(|field| field.text.starts_with('*')) })
    }
}

/// Signs of other programs' syntax (Go's cron, Quartz, systemd), and what to write instead.
const OTHER_FORMS: [(&[&str], &str); 4] = [
    (
        &["@every"],
        "`@every` is a period, and no time that a clock shows; use `trigger::every` in place of \
         `trigger::cron`",
    ),
    (&["TZ="], "the zone is an argument of its own; leave it out of the expression"),
    (
        &["?"],
        "`?` is from Quartz, whose days of the week count from 1, and which has years; use `*` in its place, \
         the names of days, and `Trigger::until` for an end",
    ),
    (
        &[":", ".."],
        "this is in the form of systemd; use fields for the minute, hour, day, month and day of the week, \
         and no year",
    ),
];

fn days_of_month(field: Piece<'_>) -> Result<DaysOfMonth, CronError> {
    let mut days = DaysOfMonth::default();
    for item in field.items() {
        if item.text.eq_ignore_ascii_case("L") {
            days.last = true;
        } else if item.text.eq_ignore_ascii_case("LW") {
            days.last_nearest = true;
        } else if let Some(day) = item.without('W') {
            days.nearest |= 1 << day.value(&DAY)?;
        } else {
            days.numbers |= item.set(&DAY)?;
        }
    }
    Ok(days)
}

fn days_of_week(field: Piece<'_>) -> Result<DaysOfWeek, CronError> {
    let mut days = DaysOfWeek::default();
    for item in field.items() {
        if item.text.eq_ignore_ascii_case("L") {
            let message = "`L` does not say which day of the week; write `SATL` for the last Saturday of the month, or \
                           write `SAT` for each Saturday";
            return Err(item.fault(message.to_owned()));
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
            let set = item.set(&WEEKDAY)?;
            days.every |= (set | set >> 7) & EVERY_WEEKDAY;
        }
    }
    Ok(days)
}

impl Unit {
    fn set(&self, from: u8, to: u8, step: u8) -> u64 {
        (from..=to).step_by(step.into()).fold(0, |set, value| set | 1 << value)
    }

    fn is_weekday(&self) -> bool {
        self.max == 7
    }

    /// Returns the highest value that is not an alias. For weekdays this is 6: the value 7 means Sunday, as 0 does.
    fn last(&self) -> u8 {
        if self.is_weekday() { 6 } else { self.max }
    }

    /// Returns text that the parser accepts for the values from `from` to `to`, in steps of `step`. If `to` is lower
    /// than `from`, the values wrap around. Weekdays are written as names, which mean the same in every dialect.
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
}

impl<'a> Piece<'a> {
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

    /// Removes `letter`, in upper or lower case, from the end of the piece. Returns `None` if the piece does not end
    /// with this letter, or if nothing is left.
    fn without(self, letter: char) -> Option<Self> {
        let rest = self.text.strip_suffix([letter, letter.to_ascii_lowercase()])?;
        (!rest.is_empty()).then(|| self.part(rest))
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
        let most = unit.last() - unit.min + 1;
        let step = self.number().filter(|step| (1..=most).contains(step));
        step.ok_or_else(|| self.fault(format!("`{}` is not a step; use 1 to {most}", self.text)))
    }

    fn value(self, unit: &Unit) -> Result<u8, CronError> {
        let named = unit.names.iter().position(|name| name.eq_ignore_ascii_case(self.text));
        let named = named.map(|place| unit.min + place as u8);
        let number = || self.number().filter(|number| (unit.min..=unit.max).contains(number));
        named.or_else(number).ok_or_else(|| {
            let (name, min, max) = (unit.name, unit.min, unit.max);
            let choices = match unit.names {
                [first, .., last] => format!("{min} to {max}, or {first} to {last}"),
                _ => format!("{min} to {max}"),
            };
            self.fault(match self.text {
                "" => format!("{name} is missing; use {choices}"),
                found => format!("`{found}` is not {name}; use {choices}"),
            })
        })
    }

    fn number(self) -> Option<u8> {
        self.text.bytes().all(|byte| byte.is_ascii_digit()).then(|| self.text.parse().ok())?
    }
}
