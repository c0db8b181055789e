//! The command line.

use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use lexopt::Arg;

use crate::{clock::WallClock, common};

pub(crate) const USAGE: &str = "\
Usage: meeting_reminders [--before DURATION] [--now TIME] [--speed FACTOR] [FILE]

Reminds of each meeting in an iCalendar file, so long before it.

  --before DURATION  how long before [default: 10m]
  --now TIME         begin at this time, as 2026-03-02T08:40:00Z [default: the system's time]
  --speed FACTOR     let time run so many times faster [default: 1]
  FILE               the calendar [default: a sample, with --now and --speed for a demonstration]

A duration is written as \"90s\", \"10m\" or \"1h 30min\".";

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/meeting_reminders/sample.ics");
/// The beginning of the demonstration: a while before the meetings of the sample.
const DEMO_NOW: &str = "2026-03-02T08:40:00Z";
const DEMO_SPEED: f64 = 1200.0;
/// The speed at which a year passes in half a minute.
const MAX_SPEED: f64 = 1_000_000.0;
const BEFORE: TimeDelta = TimeDelta::minutes(10);

pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) before: TimeDelta,
    now: Option<DateTime<Utc>>,
    speed: Option<f64>,
}

impl Options {
    /// Returns `None` if only the usage is asked for.
    pub(crate) fn parse(args: &mut lexopt::Parser) -> Result<Option<Self>, String> {
        let (mut file, mut before, mut now, mut speed) = (None, BEFORE, None, None);
        while let Some(arg) = common::next(args)? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("before") => {
                    before = parse_before(&common::value(args, "--before", "a duration")?)?;
                }
                Arg::Long("now") => {
                    now = Some(parse_now(&common::value(args, "--now", "a time")?)?);
                }
                Arg::Long("speed") => {
                    speed = Some(parse_speed(&common::value(args, "--speed", "a number")?)?);
                }
                Arg::Value(second) if file.is_some() => {
                    return Err(format!("a second file, {}", second.to_string_lossy()));
                }
                Arg::Value(value) => file = Some(PathBuf::from(value)),
                arg => return Err(common::unknown(arg)),
            }
        }
        let Some(file) = file else {
            let now = now.map_or_else(|| parse_now(DEMO_NOW), Ok)?;
            let speed = speed.unwrap_or(DEMO_SPEED);
            return Ok(Some(Self {
                file: SAMPLE.into(),
                before,
                now: Some(now),
                speed: Some(speed),
            }));
        };
        Ok(Some(Self { file, before, now, speed }))
    }

    /// Returns the system's clock, unless another beginning or another speed was asked for.
    pub(crate) fn clock(&self) -> WallClock {
        match (self.now, self.speed) {
            (None, None) => WallClock::system(),
            (now, speed) => WallClock::made_up(now.unwrap_or_else(Utc::now), speed.unwrap_or(1.0)),
        }
    }
}

fn parse_before(text: &str) -> Result<TimeDelta, String> {
    let before = humantime::parse_duration(text)
        .map_err(|error| format!("--before: bad duration {text:?}: {error}"))?;
    TimeDelta::from_std(before).map_err(|_| format!("--before: {text} is too long"))
}

fn parse_now(text: &str) -> Result<DateTime<Utc>, String> {
    let now = DateTime::parse_from_rfc3339(text);
    now.map(|now| now.to_utc())
        .map_err(|error| format!("--now: bad time {text:?}, not as {DEMO_NOW}: {error}"))
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if speed > 0.0 && speed <= MAX_SPEED => Ok(speed),
        _ => Err(format!("--speed: {text:?} is no number above 0, and up to {MAX_SPEED}")),
    }
}
