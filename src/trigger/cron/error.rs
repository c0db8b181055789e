//! Why there is no calendar trigger for an expression and a zone.

use std::{error::Error, fmt, ops::Range};

/// Why [`cron`](super::cron) refused an expression or a zone. Its `Display` says what was found, what
/// is allowed in its place and, where something can be done, what to do.
///
/// [`span`](Self::span) is the place of the fault, so that a program can point at it:
///
/// ```
/// use punctual::trigger::cron;
///
/// let expression = "0 25 * * MON-FRI";
/// let error = cron(expression, "Europe/London").expect_err("a day has 24 hours");
/// let span = error.span().expect("the fault is in the expression");
/// let caret = format!("{:1$}{2}", "", span.start, "^".repeat(span.len()));
///
/// assert_eq!(&expression[span], "25");
/// assert_eq!(format!("{expression}\n{caret}"), "0 25 * * MON-FRI\n  ^^");
/// assert_eq!(error.to_string(), "`25` is not an hour; use 0 to 23");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    kind: CronErrorKind,
    span: Option<Range<usize>>,
    message: Box<str>,
}

/// What is wrong; from [`CronError::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CronErrorKind {
    /// A part of the expression means nothing in its place.
    Syntax,
    /// Each part has a meaning, but no day is in all of them, as with 30 February.
    NeverMatches,
    /// No time zone with this name is known to this process.
    UnknownZone,
}

impl CronError {
    pub(super) fn syntax(span: Range<usize>, message: String) -> Self {
        Self { kind: CronErrorKind::Syntax, span: Some(span), message: message.into() }
    }

    pub(super) fn never_matches(span: Range<usize>) -> Self {
        let message = "no day of any year is in all of the three day and month fields; \
                       choose a day that one of the months has";
        Self { kind: CronErrorKind::NeverMatches, span: Some(span), message: message.into() }
    }

    pub(super) fn unknown_zone(zone: &str) -> Self {
        let message = format!(
            "{zone:?} is not the name of a time zone that is known here; use a name such as \
             `Europe/London` or `UTC`, and where there are no time zone files at all, install them or \
             enable the feature `tzdb-bundle-always` of the crate `jiff`"
        );
        Self { kind: CronErrorKind::UnknownZone, span: None, message: message.into() }
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn kind(&self) -> CronErrorKind {
        self.kind
    }

    /// Returns the bytes of the expression that are at fault; `None` if it is the zone that is. Both
    /// ends are between two characters. Where something is missing, the span is empty.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CronError {}
