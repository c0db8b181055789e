//! An error in a job file: what is wrong, and where, shown with the line and a mark under the
//! place.

use std::{ops::Range, path::Path};

use punctual::trigger::CronError;
use toml::Spanned;

/// An error in the text of a job file, and its position in bytes.
#[derive(Debug)]
pub(crate) struct Fault {
    span: Range<usize>,
    cause: String,
}

impl Fault {
    pub(crate) fn at(span: Range<usize>, cause: impl Into<String>) -> Self {
        Self { span, cause: cause.into() }
    }

    /// A fault in a cron expression that stands in the file as this string.
    pub(crate) fn in_expression(string: &Spanned<String>, error: &CronError, text: &str) -> Self {
        let place = error.span().and_then(|inner| within(string, inner, text));
        Self::at(place.unwrap_or(string.span()), error.to_string())
    }

    /// Where it begins in the file.
    pub(crate) fn start(&self) -> usize {
        self.span.start
    }

    /// The message: file, line, column, cause; and the line itself with a mark under the place.
    pub(crate) fn shown_in(&self, path: &Path, text: &str) -> String {
        let Place { line, before, marked, whole } = Place::of(&self.span, text);
        let margin = " ".repeat(line.to_string().len());
        // A tab below the line is as wide as in it.
        let indent: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let mark = "^".repeat(marked.chars().count().max(1));
        format!(
            "{path}:{line}:{column}: {cause}\n {line} | {whole}\n {margin} | {indent}{mark}",
            path = path.display(),
            column = before.chars().count() + 1,
            cause = self.cause,
        )
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self::at(error.span().unwrap_or(0..0), error.message())
    }
}

/// Where a part of a string stands in the file; `None` if the string is written with escapes, so
/// that its bytes are not those of the file.
fn within(string: &Spanned<String>, inner: Range<usize>, text: &str) -> Option<Range<usize>> {
    let written = text.get(string.span())?;
    let start = string.span().start + written.find(string.get_ref().as_str())?;
    Some(start + inner.start..start + inner.end)
}

/// The number of the line in which a span begins, counted from 1.
pub(crate) fn line_of(span: &Range<usize>, text: &str) -> usize {
    Place::of(span, text).line
}

/// The first line of a span, in parts.
struct Place<'a> {
    /// Counted from 1.
    line: usize,
    whole: &'a str,
    before: &'a str,
    marked: &'a str,
}

impl<'a> Place<'a> {
    fn of(span: &Range<usize>, text: &'a str) -> Self {
        let (above, below) = text.split_at_checked(span.start).unwrap_or((text, ""));
        let line = above.matches('\n').count() + 1;
        let start = above.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = below.lines().next().unwrap_or_default();
        Self {
            line,
            whole: text[start..].lines().next().unwrap_or_default(),
            // The line ending is not part of the place.
            before: text[start..above.len()].trim_end_matches('\r'),
            marked: rest.get(..span.len()).unwrap_or(rest),
        }
    }
}

/// Returns an error at the place of a value that must not be there.
pub(crate) fn refuse<T>(value: &Option<Spanned<T>>, cause: &str) -> Result<(), Fault> {
    match value {
        Some(value) => Err(Fault::at(value.span(), cause)),
        None => Ok(()),
    }
}
