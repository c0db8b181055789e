//! The values of a job file that are more than a string: how each is written, and what is said of
//! one that is not understood.

use std::time::Duration;

use punctual::MissedRuns;
use serde::Deserialize;
use toml::Spanned;

use crate::fault::Fault;

/// A duration such as "250ms", "1.5s" or "1h 30min".
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Readable(pub(crate) Duration);

// This is not `humantime_serde`, which does not report what is wrong with a duration.
impl TryFrom<String> for Readable {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_duration(&text).map(Self)
    }
}

/// Parses a duration, also for the command line.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("bad duration {text:?}: {error}"))
}

/// Formats a duration: "1.5s" rather than "1s 500ms", and "1day" rather than "86400s".
pub(crate) fn readable(duration: Duration) -> String {
    if duration.is_zero() {
        "0s".to_owned()
    } else if duration < Duration::from_secs(60) {
        format!("{duration:?}")
    } else {
        humantime::format_duration(duration).to_string()
    }
}

/// Returns a name as it is shown, with its control characters escaped: one with an end of line would forge a
/// line of the report, and others speak to the terminal.
pub(crate) fn printable(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

pub(crate) fn duration(readable: &Spanned<Readable>) -> Duration {
    readable.get_ref().0
}

/// Returns an error, at the place of the value, if it is zero.
pub(crate) fn positive(readable: &Spanned<Readable>) -> Result<Duration, Fault> {
    match duration(readable) {
        Duration::ZERO => Err(Fault::at(readable.span(), "it must be more than zero")),
        duration => Ok(duration),
    }
}

/// The policy for missed runs: "burst", "coalesce", "skip", "delay" or "within 10min".
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct OnMissed(pub(crate) MissedRuns);

impl TryFrom<String> for OnMissed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(limit) = text.strip_prefix("within ") {
            return parse_duration(limit).map(|limit| Self(MissedRuns::Within(limit)));
        }
        match text.as_str() {
            "burst" => Ok(Self(MissedRuns::Burst)),
            "coalesce" => Ok(Self(MissedRuns::Coalesce)),
            "skip" => Ok(Self(MissedRuns::Skip)),
            "delay" => Ok(Self(MissedRuns::Delay)),
            _ => Err(format!(
                "{text:?} says nothing about missed runs; use \"burst\", \"coalesce\", \"skip\", \
                 \"delay\", or \"within 10min\""
            )),
        }
    }
}

/// The fate of a run that is due while the one before still runs.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Overlap {
    /// It is left out.
    Skip,
    /// It waits for the end of the one before, and so does each further one.
    Queue,
    /// It starts all the same.
    Allow,
}

impl TryFrom<String> for Overlap {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "skip" => Ok(Self::Skip),
            "queue" => Ok(Self::Queue),
            "allow" => Ok(Self::Allow),
            _ => Err(format!(
                "{text:?} says nothing about runs that overlap; use \"skip\", \"queue\" or \
                 \"allow\""
            )),
        }
    }
}
