//! The clocks on the walls of several time zones: what they show at a moment, and when they are set.

use std::{fmt, mem, time::Duration};

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};

use crate::{
    config::{Job, Plan, Schedule},
    values::readable,
};

/// Between two runs, more changes of a clock than this are only counted.
const MOST_SHOWN: usize = 2;

/// A line, and its place in the order of time: changes of the clocks come before runs.
pub(crate) struct Line {
    pub(crate) at: Timestamp,
    pub(crate) is_run: bool,
    pub(crate) columns: Vec<String>,
}

/// A time zone, and the jobs whose runs are shown in it.
pub(crate) struct Wall<'a> {
    name: &'a str,
    zone: TimeZone,
    pub(crate) jobs: Vec<&'a Job>,
}

/// One change of a clock.
struct Change {
    at: Timestamp,
    before: (Offset, String),
    after: (Offset, String),
}

/// The time zones of all jobs. A job without one is shown in that of the file, or in UTC.
pub(crate) fn walls(plan: &Plan) -> Result<Vec<Wall<'_>>, String> {
    let mut walls: Vec<Wall<'_>> = Vec::new();
    for job in &plan.jobs {
        let name = match &job.schedule {
            Schedule::At { calendar, .. } => calendar.zone(),
            _ => plan.zone.as_deref().unwrap_or("UTC"),
        };
        if let Some(wall) = walls.iter_mut().find(|wall| wall.name == name) {
            wall.jobs.push(job);
        } else {
            let zone = TimeZone::get(name).map_err(|error| error.to_string())?;
            walls.push(Wall { name, zone, jobs: vec![job] });
        }
    }
    Ok(walls)
}

impl Wall<'_> {
    pub(crate) fn run(&self, at: Timestamp, job: &str) -> Vec<String> {
        let info = self.zone.to_offset_info(at);
        let local = info.offset().to_datetime(at).strftime("%a %Y-%m-%d %H:%M:%S%.f");
        let (zone, offset) = (info.abbreviation(), signed(info.offset()));
        vec![format!("{local} {zone} ({offset})"), at.to_string(), job.to_owned()]
    }

    /// The changes of the clock after one moment and up to another.
    fn changes(&self, after: Timestamp, to: Timestamp) -> impl Iterator<Item = Change> + '_ {
        let info = self.zone.to_offset_info(after);
        let mut before = (info.offset(), info.abbreviation().to_owned());
        let transitions = self.zone.following(after).take_while(move |next| next.timestamp() <= to);
        transitions.filter_map(move |next| {
            let after = (next.offset(), next.abbreviation().to_owned());
            let change = Change {
                at: next.timestamp(),
                before: mem::replace(&mut before, after.clone()),
                after,
            };
            // A zone may also give its time another name alone.
            (change.before.0 != change.after.0).then_some(change)
        })
    }

    pub(crate) fn changes_shown(&self, after: Timestamp, to: Timestamp) -> Vec<Line> {
        let changes: Vec<_> = self.changes(after, to).collect();
        let line = |at, text| Line { at, is_run: false, columns: vec![text] };
        if changes.len() > MOST_SHOWN {
            let text = format!("-- {}: clocks are set {} times", self.name, changes.len());
            return vec![line(to, text)];
        }
        let shown =
            |change: &Change| line(change.at, format!("-- {}: clocks are {change}", self.name));
        changes.iter().map(shown).collect()
    }

    /// Says when the clock is set the next time after what has been shown, and how to see that.
    pub(crate) fn outlook(&self, seen: Timestamp, count: u16) -> Option<String> {
        if !self.jobs.iter().any(|job| matches!(job.schedule, Schedule::At { .. })) {
            return None;
        }
        let change = self.changes(seen, Timestamp::MAX).next()?;
        // The clock repeats the span just before it is set back.
        let from = change.at.checked_sub(change.span() + Duration::from_secs(1)).ok()?;
        let name = self.name;
        Some(format!("{name}: clocks are next {change}; see --next {count} --from {from}"))
    }
}

impl Change {
    fn span(&self) -> Duration {
        let seconds = self.after.0.seconds().abs_diff(self.before.0.seconds());
        Duration::from_secs(seconds.into())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.after.0 > self.before.0 { "forward" } else { "back" };
        let (old, new) = (self.before.0.to_datetime(self.at), self.after.0.to_datetime(self.at));
        let format = if old.date() == new.date() { "%H:%M" } else { "%a %Y-%m-%d %H:%M" };
        let (span, from, to) = (readable(self.span()), &self.before.1, &self.after.1);
        let (old, new) = (old.strftime("%a %Y-%m-%d %H:%M"), new.strftime(format));
        write!(f, "set {way} by {span}, from {old} {from} to {new} {to}")
    }
}

/// The offset as in "-04:00".
fn signed(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}
