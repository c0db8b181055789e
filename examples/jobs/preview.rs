//! `--next`: what would run when, in the order of time, without running anything.
//!
//! Each job is planned as when it runs, except that no run takes any time. A moment is shown by the
//! clock in the job's time zone, with that clock's distance from UTC, and in UTC. Where clocks are
//! set forward or back, a line says so: that is what explains a run that seems to be too early, too
//! late, or one too many.

use std::time::{Duration, Instant, SystemTime};

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};

use crate::{
    config::{Job, Plan, Schedule},
    timetable::{Moment, Now, Planned},
    values::readable,
};

/// Between two runs, more changes of a clock than this are only counted.
const MOST_SHOWN: usize = 2;

/// What to show.
pub(crate) struct Preview {
    /// How many runs of each job.
    pub(crate) count: u16,
    /// They are later than this.
    pub(crate) from: Timestamp,
}

/// A line, and its place in the order of time: changes of the clocks come before runs.
struct Line {
    at: Timestamp,
    is_run: bool,
    columns: Vec<String>,
}

/// A time zone, and the jobs whose runs are shown in it.
struct Wall<'a> {
    name: &'a str,
    zone: TimeZone,
    jobs: Vec<&'a Job>,
}

/// One change of a clock.
struct Change {
    at: Timestamp,
    before: (Offset, String),
    after: (Offset, String),
}

impl Preview {
    /// Returns the lines to print.
    pub(crate) fn lines(&self, plan: &Plan) -> Result<Vec<String>, String> {
        let (count, from) = (self.count, self.from);
        let mut lines = Vec::new();
        let mut remarks = Vec::new();
        for wall in walls(plan)? {
            let mut runs: Vec<(Timestamp, &Job)> = Vec::new();
            for job in &wall.jobs {
                runs.extend(self.runs(job).into_iter().map(|at| (at, *job)));
                if let Schedule::Delay { delay, .. } = job.schedule {
                    let (name, delay) = (&job.name, readable(delay));
                    remarks.push(format!("{name}: then {delay} after the end of each run."));
                }
            }
            runs.sort_by_key(|(at, _)| *at);
            let mut seen = from;
            for (at, job) in runs {
                lines.extend(wall.changes_shown(seen, at));
                lines.push(Line { at, is_run: true, columns: wall.run(at, &job.name) });
                seen = at;
            }
            remarks.extend(wall.outlook(seen, count));
        }
        lines.sort_by_key(|line| (line.at, line.is_run));
        let runs = if count == 1 { "run".to_owned() } else { format!("{count} runs") };
        let mut all = vec![format!("The next {runs} of each job, from {from}:\n")];
        all.extend(aligned(&lines));
        if !remarks.is_empty() {
            all.push(String::new());
        }
        all.extend(remarks);
        Ok(all)
    }

    /// When the next runs of a job are. Of a job whose runs depend on how long they take there is
    /// only the first.
    fn runs(&self, job: &Job) -> Vec<Timestamp> {
        let begun = Now { steady: Instant::now(), wall: SystemTime::from(self.from) };
        let mut moments = Vec::new();
        let mut planned = Planned::first(&job.schedule, job.put_off, begun);
        while let Some(run) = planned.filter(|_| moments.len() < usize::from(self.count)) {
            let at = at_once(run.at, begun);
            // A moment that no calendar has is beyond the year 9999.
            let Ok(shown) = Timestamp::try_from(at.wall + job.put_off) else { break };
            moments.push(in_millis(shown));
            planned = match job.schedule {
                Schedule::Delay { .. } => None,
                _ => run.next(&job.schedule, at, at),
            };
        }
        moments
    }
}

/// The lines, with the columns of all runs below each other.
fn aligned(lines: &[Line]) -> impl Iterator<Item = String> + '_ {
    let width = |column: usize| {
        let runs = lines.iter().filter(|line| line.is_run);
        runs.map(|line| line.columns[column].len()).max().unwrap_or(0)
    };
    let (local, utc) = (width(0), width(1));
    lines.iter().map(move |line| match line.columns.as_slice() {
        [shown, at, job] => format!("{shown:local$}  {at:utc$}  {job}"),
        columns => columns.concat(),
    })
}

/// What both clocks show at a moment of one of them, if nobody sets the other.
fn at_once(moment: Moment, begun: Now) -> Now {
    match moment {
        Moment::Steady(steady) => {
            let since = steady.saturating_duration_since(begun.steady);
            Now { steady, wall: begun.wall + since }
        }
        Moment::Wall(wall) => {
            let since = wall.duration_since(begun.wall).unwrap_or_default();
            Now { steady: begun.steady + since, wall }
        }
    }
}

/// The time zones of all jobs. A job without one is shown in that of the file, or in UTC.
fn walls(plan: &Plan) -> Result<Vec<Wall<'_>>, String> {
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
    fn run(&self, at: Timestamp, job: &str) -> Vec<String> {
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
                before: std::mem::replace(&mut before, after.clone()),
                after,
            };
            // A zone may also give its time another name alone.
            (change.before.0 != change.after.0).then_some(change)
        })
    }

    fn changes_shown(&self, after: Timestamp, to: Timestamp) -> Vec<Line> {
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
    fn outlook(&self, seen: Timestamp, count: u16) -> Option<String> {
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

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = if self.after.0 > self.before.0 { "forward" } else { "back" };
        let (old, new) = (self.before.0.to_datetime(self.at), self.after.0.to_datetime(self.at));
        let format = if old.date() == new.date() { "%H:%M" } else { "%a %Y-%m-%d %H:%M" };
        let (span, from, to) = (readable(self.span()), &self.before.1, &self.after.1);
        let (old, new) = (old.strftime("%a %Y-%m-%d %H:%M"), new.strftime(format));
        write!(f, "set {way} by {span}, from {old} {from} to {new} {to}")
    }
}

/// The moment without what is shorter than a millisecond.
pub(crate) fn in_millis(moment: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(moment)
}

/// The offset as in "-04:00".
fn signed(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}
