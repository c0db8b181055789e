//! The calendar file: the meetings in it, and the remarks on what had to be skipped.

use std::path::Path;

use chrono::{DateTime, Local, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use icalendar::{
    Calendar, CalendarDateTime, Component, DatePerhapsTime, Event, EventLike, EventStatus,
};

use crate::common;

/// Ordered by start, then by summary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Meeting {
    pub(crate) start: DateTime<Utc>,
    pub(crate) summary: String,
    pub(crate) place: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Meetings {
    /// The meetings, in order.
    pub(crate) meetings: Vec<Meeting>,
    /// Remarks on the skipped events, ready to be shown.
    pub(crate) remarks: Vec<String>,
}

/// Reads a file; an error is ready to be shown.
pub(crate) fn load(path: &Path) -> Result<Meetings, String> {
    let shown = path.display();
    let text = common::read_text(path)?;
    // Some programs begin a file with a mark of its encoding.
    let text = text.trim_start_matches('\u{feff}');
    if !text.trim_start().starts_with("BEGIN:VCALENDAR") {
        return Err(format!("{shown}: no iCalendar file, it does not begin with BEGIN:VCALENDAR"));
    }
    let calendar: Calendar = text.parse().map_err(|error: String| {
        let line = line_of(&error).unwrap_or("1");
        format!("{shown}:{line}: what begins here cannot be read, or does not end")
    })?;
    Ok(Meetings::of(&calendar))
}

/// The parser reports at length what it has tried; the line is what helps the author of the file.
fn line_of(error: &str) -> Option<&str> {
    let (_, place) = error.split_once("at line ")?;
    place.split_once(',').map(|(line, _)| line)
}

impl Meetings {
    fn of(calendar: &Calendar) -> Self {
        let mut found = Self::default();
        for event in calendar.events() {
            let summary = event.get_summary().unwrap_or("(without a name)").to_owned();
            match start(event) {
                Ok(Some(start)) => {
                    if event.property_value("RRULE").is_some() {
                        let remark =
                            format!("{summary:?} repeats; only its first time counts here");
                        found.remarks.push(remark);
                    }
                    let place = event.get_location().map(str::to_owned);
                    found.meetings.push(Meeting { start, summary, place });
                }
                Ok(None) => {}
                Err(cause) => found.remarks.push(format!("{summary:?} is passed over: {cause}")),
            }
        }
        found.meetings.sort();
        found
    }
}

/// `None` if the event needs no reminder: it is cancelled, or takes the whole day.
fn start(event: &Event) -> Result<Option<DateTime<Utc>>, String> {
    if event.get_status() == Some(EventStatus::Cancelled) {
        return Ok(None);
    }
    match event.get_start() {
        Some(DatePerhapsTime::Date(_)) => Ok(None),
        Some(DatePerhapsTime::DateTime(start)) => match start {
            CalendarDateTime::Utc(start) => Ok(Some(start)),
            CalendarDateTime::Floating(start) => moment(&Local, start).map(Some),
            CalendarDateTime::WithTimezone { date_time, tzid } => {
                let zone: Tz =
                    tzid.parse().map_err(|_| format!("the time zone {tzid:?} is unknown"))?;
                moment(&zone, date_time).map(Some)
            }
        },
        None => Err("it has no start that can be read".to_owned()),
    }
}

/// Converts a local time in a zone; the first of two, if the time occurs twice because clocks are
/// set back.
fn moment<Z: TimeZone>(zone: &Z, local: NaiveDateTime) -> Result<DateTime<Utc>, String> {
    let moment = zone.from_local_datetime(&local).earliest();
    let moment = moment.ok_or_else(|| format!("clocks are set forward over {local}"))?;
    Ok(moment.with_timezone(&Utc))
}
