//! Reminds the user of the meetings in a calendar file, a given time before each of them.
//!
//! The file is an iCalendar one (`.ics`), as every calendar program writes it. Meetings that have
//! begun are skipped, as are those that were cancelled or take the whole day; for a meeting that
//! begins sooner than its reminder is due, the reminder comes at once. Reminders that come together
//! are in the order in which the meetings begin. The program ends with the last.
//!
//! ```text
//! cargo run --example meeting_reminders
//! cargo run --example meeting_reminders -- --before 5m my-calendar.ics
//! cargo run --example meeting_reminders -- --now 2026-03-02T08:00:00Z --speed 600 my-calendar.ics
//! ```
//!
//! Without a file it is a demonstration of two seconds, with the sample beside it, `sample.ics`: a
//! morning on a simulated clock, which runs 1200 times faster. Times are shown in the local time
//! zone.
//!
//! The interesting part is how two clocks are reconciled. Meetings are on the wall clock, and a
//! [`DelayQueue`] waits on the monotonic one, which is never set (`clock.rs`). Every half minute,
//! and before each reminder, the program compares the two; when the wall clock was set, or the
//! machine has slept, it computes all deadlines anew. So no reminder comes early by the wall clock,
//! and one is late by half a minute at most when that clock is set forward.
//!
//! Its limits: of a repeating meeting it knows only the first time, and says so. It reads the file
//! once. It knows time zones by their names, such as `Europe/Berlin`, and not by definitions in the
//! file.

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

mod calendar;
mod clock;
#[allow(dead_code, reason = "other examples use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod options;

use std::{
    error::Error,
    fmt,
    process::ExitCode,
    time::{Duration, Instant},
};

use chrono::{DateTime, Local, TimeDelta, Utc};
use punctual::{
    DelayQueue,
    delay_queue::{Expired, Queued},
};

use crate::{
    calendar::{Meeting, Meetings},
    clock::WallClock,
    options::{Options, USAGE},
};

/// The longest time between two comparisons of the clocks.
const CHECK: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let options = match common::options(USAGE, Options::parse) {
        Ok(options) => options,
        Err(code) => return code,
    };
    match calendar::load(&options.file) {
        Ok(meetings) => common::end(Reminder::new(&options).run(meetings)),
        Err(error) => common::refuse(&error),
    }
}

struct Reminder {
    clock: WallClock,
    before: TimeDelta,
    queue: DelayQueue<Meeting>,
}

impl Reminder {
    fn new(options: &Options) -> Self {
        Self { clock: options.clock(), before: options.before, queue: DelayQueue::new() }
    }

    fn run(mut self, found: Meetings) -> Result<(), Box<dyn Error + Send + Sync>> {
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
            let expired = self.queue.poll_timeout(CHECK);
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
        let queued = self.queue.remove_all().into_iter().map(Queued::into_element);
        let mut meetings: Vec<_> =
            expired.map(Expired::into_element).into_iter().chain(queued).collect();
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
