//! The fields of an expression as sets of bits, and the search for the next time that matches them.
//!
//! Times are civil times without a zone, in seconds since the beginning of 1970. Every day has 86,400 seconds, and no
//! second is missing or repeated. For each month, the day fields become one word with a bit for each matching day,
//! so the search goes from month to month, and not from day to day.
//!
//! From 2000 to 2027, at least one common year and one leap year begin on each day of the week, so every kind of year
//! occurs. An expression that matches no day in these years is refused ([`never_match`](Fields::never_match)). All
//! others match within 40 years, so every search ends. The next fifth Monday in February can be 40 years away, if a
//! century year in between is not a leap year.

use jiff::{Timestamp, civil::Date, tz::Offset};

const SUNDAY: u32 = 0;
const SATURDAY: u32 = 6;

/// The values that an expression allows. Bit `n` of a set stands for the value `n`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) months: u64,
    pub(super) days: DaysOfMonth,
    pub(super) weekdays: DaysOfWeek,
    pub(super) either_day: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DaysOfMonth {
    pub(super) numbers: u64,
    // In order, for `15W`, `L` and `LW`.
    pub(super) nearest: u64,
    pub(super) last: bool,
    pub(super) last_nearest: bool,
}

/// The day-of-week field; Sunday is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DaysOfWeek {
    // In order, for `FRI`, `FRIL`, and `FRI#1` to `FRI#5`.
    pub(super) every: u64,
    pub(super) last: u64,
    pub(super) nth: [u64; 5],
}

#[derive(Clone, Copy)]
struct Month {
    /// The weekday of the 1st.
    first: u32,
    length: u32,
}

impl Fields {
    /// Returns the first time in `from..end` that matches the fields.
    pub(super) fn first_within(&self, from: i64, end: i64) -> Option<i64> {
        let today = Offset::UTC.to_datetime(Timestamp::from_second(from).ok()?).date();
        let mut date = self.day_from(today, end)?;
        let since = if date == today { from - midnight(today)? } else { 0 };
        let time = match self.time_from(since) {
            Some(time) => time,
            None => {
                date = self.day_from(date.tomorrow().ok()?, end)?;
                self.time_from(0)?
            }
        };
        Some(midnight(date)? + time).filter(|found| *found < end)
    }

    pub(super) fn never_match(&self) -> bool {
        let mut months = (2000..2028).flat_map(|year| (1..=12).map(move |month| (year, month)));
        !months.any(|(year, month)| self.days_in(jiff::civil::date(year, month, 1)) != 0)
    }

    /// Returns the first matching day from `date` on, in the same month or in a later month that begins before `end`.
    fn day_from(&self, date: Date, end: i64) -> Option<Date> {
        let mut first = date.first_of_month();
        let mut days = self.days_in(first) >> date.day() << date.day();
        while days == 0 {
            first = first.last_of_month().tomorrow().ok()?;
            if midnight(first)? >= end {
                return None;
            }
            days = self.days_in(first);
        }
        Date::new(first.year(), first.month(), days.trailing_zeros() as i8).ok()
    }

    /// Returns, as bits, the matching days of the month that begins with `first`.
    fn days_in(&self, first: Date) -> u64 {
        if self.months & (1 << first.month()) == 0 {
            return 0;
        }
        let length = first.days_in_month() as u32;
        let month = Month { first: first.weekday().to_sunday_zero_offset() as u32, length };
        let (days, weekdays) = (self.days.within(month), self.weekdays.within(month));
        let both = if self.either_day { days | weekdays } else { days & weekdays };
        both & ((2 << length) - 2)
    }

    /// Returns the first time of day at or after `second` that matches the time fields, in seconds since midnight.
    fn time_from(&self, second: i64) -> Option<i64> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if self.hours & (1 << hour) != 0 {
            if self.minutes & (1 << minute) != 0 {
                if let Some(found) = next_bit(self.seconds, second) {
                    return Some(hour * 3600 + minute * 60 + found);
                }
            }
            if let Some(found) = next_bit(self.minutes, minute + 1) {
                return Some(hour * 3600 + found * 60 + next_bit(self.seconds, 0)?);
            }
        }
        let hour = next_bit(self.hours, hour + 1)?;
        Some(hour * 3600 + next_bit(self.minutes, 0)? * 60 + next_bit(self.seconds, 0)?)
    }
}

impl DaysOfMonth {
    fn within(&self, month: Month) -> u64 {
        let mut days = self.numbers;
        if self.last {
            days |= 1 << month.length;
        }
        if self.last_nearest {
            days |= month.weekday_nearest(month.length);
        }
        let nearest = (1..=31).filter(|day| self.nearest & (1 << day) != 0);
        nearest.fold(days, |days, day| days | month.weekday_nearest(day))
    }
}

impl DaysOfWeek {
    fn within(&self, month: Month) -> u64 {
        let matches = |day: u32| {
            let is_last = day + 7 > month.length;
            let weekdays =
                self.every | self.nth[(day as usize - 1) / 7] | if is_last { self.last } else { 0 };
            weekdays & (1 << month.weekday(day)) != 0
        };
        (1..=month.length).filter(|day| matches(*day)).fold(0, |days, day| days | 1 << day)
    }
}

impl Month {
    fn weekday(self, day: u32) -> u32 {
        (self.first + day - 1) % 7
    }

    /// Returns the bit of the weekday (Monday to Friday) nearest to `day` within this month; 0 if this month does not
    /// have that day.
    fn weekday_nearest(self, day: u32) -> u64 {
        let nearest = match self.weekday(day) {
            _ if day > self.length => return 0,
            SATURDAY if day == 1 => 3,
            SATURDAY => day - 1,
            SUNDAY if day == self.length => day - 2,
            SUNDAY => day + 1,
            _ => day,
        };
        1 << nearest
    }
}

fn next_bit(set: u64, from: i64) -> Option<i64> {
    let rest = set.checked_shr(u32::try_from(from).ok()?)?;
    (rest != 0).then(|| from + i64::from(rest.trailing_zeros()))
}

/// Returns the first second of a day; `None` if a [`Timestamp`] cannot represent it.
fn midnight(date: Date) -> Option<i64> {
    Some(Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_second())
}
