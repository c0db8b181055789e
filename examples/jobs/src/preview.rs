//! `--next`: what would run when, in the order of time, without running anything.
//!
//! Each job is planned as when it runs, except that no run takes any time. A moment is shown by the
//! clock in the job's time zone, with that clock's distance from UTC, and in UTC. Where clocks are
//! set forward or back, a line says so: that is what explains a run that seems to be too early, too
//! late, or one too many.

use std::time::{Instant, SystemTime};

use jiff::Timestamp;

use crate::{
    config::{Job, Plan, Schedule},
    moment::{Moment, Now},
    timetable::Planned,
    values::readable,
    wall::{Line, walls},
};

/// The runs to show.
pub(crate) struct Preview {
    /// How many runs of each job.
    pub(crate) count: u16,
    /// They are later than this.
    pub(crate) from: Timestamp,
}

impl Preview {
    /// Returns the lines to print.
    pub(crate) fn lines(&self, plan: &Plan) -> Result<Vec<String>, String> {
        let (count, from) = (self.count, self.from);
        let end = plan.run_for.and_then(|span| SystemTime::from(from).checked_add(span));
        let mut lines = Vec::new();
        let mut remarks = Vec::new();
        for wall in walls(plan)? {
            let mut runs: Vec<(Timestamp, &Job)> = Vec::new();
            for job in &wall.jobs {
                runs.extend(self.runs(job, end).into_iter().map(|at| (at, *job)));
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
        if let Some(run_for) = plan.run_for {
            remarks.push(format!("The program stops after {}.", readable(run_for)));
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

    /// When the next runs of a job are, if the program does not stop before. Of a job whose runs depend on how long they
    /// take there is only the first.
    fn runs(&self, job: &Job, end: Option<SystemTime>) -> Vec<Timestamp> {
        let begun = Now { steady: Instant::now(), wall: SystemTime::from(self.from) };
        let mut moments = Vec::new();
        let mut planned = Planned::first(&job.schedule, job.put_off, begun);
        while let Some(run) = planned.filter(|_| moments.len() < usize::from(self.count)) {
            let at = at_once(run.at, begun);
            if end.is_some_and(|end| at.wall + job.put_off > end) {
                break;
            }
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

/// Returns the times of both clocks at a moment of one of them, if the other is not set meanwhile.
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

/// The moment without what is shorter than a millisecond.
pub(crate) fn in_millis(moment: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(moment)
}
