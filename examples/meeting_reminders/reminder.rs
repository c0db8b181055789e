//! The reminders: a queue on one clock for meetings on another.
//!
//! The deadlines in the queue are those of the meetings as the two clocks stand to each other now. When they stand
//! otherwise, because the wall clock was set or the machine has slept, every deadline is wrong, and all are
//! computed anew. So before each reminder the clocks are compared.

use std::{
    error::Error,
    fmt,
    time::{Duration, Instant},
};

use chrono::{DateTime, Local, TimeDelta, Utc};
use punctual::{DelayQueue, delay_queue::Expired};

use crate::{
    calendar::{Meeting, Meetings},
    clock::WallClock,
    common,
    options::Options,
};

/// The longest time between two comparisons of the clocks.
const CHECK: Duration = Duration::from_secs(30);

pub(crate) struct Reminder {
    clock: WallClock,
    before: TimeDelta,
    queue: DelayQueue<Meeting>,
}

impl Reminder {
    pub(crate) fn new(options: &Options) -> Self {
        Self { clock: options.clock(), before: options.before, queue: DelayQueue::new() }
    }

    pub(crate) fn run(mut self, found: Meetings) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Meetings { meetings, remarks } = found;
        for remark in remarks {
            common::complain(format_args!("note: {remark}"));
        }
        let now = self.now();
        let (begun, coming): (Vec<_>, Vec<_>) =
            meetings.into_iter().partition(|meeting| meeting.start <= now);
        self.say(format_args!("meetings: {} to come, {} begun", coming.len(), begun.len()));

        self.fill(coming)?;
        while !self.queue.is_empty() {
            let expired = self.queue.take_within(CHECK).ok().flatten();
            if let Some(ahead) = self.clock.check() {
                self.start_anew(expired, ahead)?;
            } else if let Some(expired) = expired {
                self.remind(&expired.element);
            }
        }
        self.say(format_args!("no more meetings"));
        Ok(())
    }

    /// Queues meetings that are in order: the queue keeps the order of insertion among those whose
    /// reminders come together.
    fn fill(&self, meetings: Vec<Meeting>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let timed = meetings.into_iter().map(|meeting| {
            let remind = meeting.start.checked_sub_signed(self.before);
            let remind = remind.unwrap_or(DateTime::<Utc>::MIN_UTC);
            (self.clock.instant_of(remind), meeting)
        });
        self.queue.insert_all(timed)?;
        Ok(())
    }

    /// Replans all reminders after the wall clock was set or the machine slept: both those in the
    /// queue and those that have come out by the old deadlines have wrong deadlines.
    fn start_anew(
        &self,
        expired: Option<Expired<Meeting>>,
        ahead: TimeDelta,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let seconds = ahead.as_seconds_f64();
        self.say(format_args!("the clock was set, or the machine slept: {seconds:+.1} s"));
        let queued = self.queue.remove_all().into_iter().map(|queued| queued.element);
        let mut meetings: Vec<_> =
            expired.map(|expired| expired.element).into_iter().chain(queued).collect();
        meetings.sort();
        self.fill(meetings)
    }

    fn remind(&self, meeting: &Meeting) {
        let Meeting { start, summary, place } = meeting;
        let time = start.with_timezone(&Local).format("%H:%M");
        let left = in_minutes(*start - self.now());
        match place {
            Some(place) => self.say(format_args!("{left}, at {time}: {summary} ({place})")),
            None => self.say(format_args!("{left}, at {time}: {summary}")),
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.at(Instant::now())
    }

    /// Writes a line with the time of the wall clock.
    fn say(&self, line: fmt::Arguments<'_>) {
        let now = self.now().with_timezone(&Local).format("%a %H:%M:%S");
        common::say(format_args!("{now}  {line}"));
    }
}

fn in_minutes(left: TimeDelta) -> String {
    match (left.as_seconds_f64() / 60.0).round() {
        minutes if minutes > 0.0 => format!("in {minutes} min"),
        minutes if minutes < 0.0 => format!("begun {} min ago", -minutes),
        _ => "now".to_owned(),
    }
}
