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
//! The interesting part is how two clocks are reconciled (`reminder.rs`). Meetings are on the wall clock, and a
//! [`DelayQueue`](punctual::DelayQueue) waits on the monotonic one, which is never set (`clock.rs`). Every half minute,
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
mod reminder;

use std::process::ExitCode;

use crate::{
    options::{Options, USAGE},
    reminder::Reminder,
};

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
