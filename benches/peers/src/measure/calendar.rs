//! The interface of a calendar, and its implementations. Moments are seconds since the epoch where they
//! are compared; in a row each calendar keeps its own.

use std::{
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;
use jiff::{Timestamp, Zoned};

/// A calendar for an expression of six fields in a time zone.
pub(super) trait Calendar: Sized {
    type Moment;

    fn new(expression: &str, zone: &str) -> Self;

    fn moment(&self, second: u32) -> Self::Moment;

    fn next_after(&self, moment: &Self::Moment) -> Self::Moment;

    /// The moment, to be compared.
    fn second(moment: &Self::Moment) -> i64;
}

/// `punctual`: this project.
pub(super) struct Punctual(punctual::trigger::Cron);

impl Calendar for Punctual {
    type Moment = SystemTime;

    fn new(expression: &str, zone: &str) -> Self {
        Self(punctual::trigger::cron(expression, zone).expect("a good expression"))
    }

    fn moment(&self, second: u32) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(second.into())
    }

    #[inline]
    fn next_after(&self, moment: &SystemTime) -> SystemTime {
        self.0.next_after(*moment).expect("there is one")
    }

    fn second(moment: &SystemTime) -> i64 {
        moment.duration_since(UNIX_EPOCH).expect("it is later").as_secs() as i64
    }
}

/// `croner`, with the zones of `jiff`.
pub(super) struct Croner {
    expression: croner::Cron,
    zone: jiff::tz::TimeZone,
}

impl Calendar for Croner {
    type Moment = Zoned;

    fn new(expression: &str, zone: &str) -> Self {
        let zone = jiff::tz::TimeZone::get(zone).expect("a zone");
        Self { expression: croner::Cron::from_str(expression).expect("a good expression"), zone }
    }

    fn moment(&self, second: u32) -> Zoned {
        Timestamp::from_second(second.into()).expect("near").to_zoned(self.zone.clone())
    }

    #[inline]
    fn next_after(&self, moment: &Zoned) -> Zoned {
        self.expression.find_next_occurrence(moment, false).expect("there is one")
    }

    fn second(moment: &Zoned) -> i64 {
        moment.timestamp().as_second()
    }
}

/// `cron`, with the zones of `chrono-tz`.
pub(super) struct Cron {
    schedule: cron::Schedule,
    zone: Tz,
}

impl Calendar for Cron {
    type Moment = DateTime<Tz>;

    fn new(expression: &str, zone: &str) -> Self {
        let schedule = cron::Schedule::from_str(expression).expect("a good expression");
        Self { schedule, zone: zone.parse().expect("a zone") }
    }

    fn moment(&self, second: u32) -> DateTime<Tz> {
        self.zone.timestamp_opt(second.into(), 0).single().expect("a moment")
    }

    #[inline]
    fn next_after(&self, moment: &DateTime<Tz>) -> DateTime<Tz> {
        self.schedule.after(moment).next().expect("there is one")
    }

    fn second(moment: &DateTime<Tz>) -> i64 {
        moment.timestamp()
    }
}
