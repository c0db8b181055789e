//! Moments, spans and names as the text of a page.

use std::time::{Duration, SystemTime};

/// Returns how long ago a moment was, or how far ahead it is.
pub(crate) fn ago(moment: Option<SystemTime>, now: SystemTime) -> String {
    let Some(moment) = moment else { return "never".to_owned() };
    match moment.duration_since(now) {
        Ok(ahead) if ahead > Duration::from_secs(1) => format!("in {}", short(ahead)),
        Ok(_) => "now".to_owned(),
        Err(passed) => format!("{} ago", short(passed.duration())),
    }
}

pub(crate) fn short(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Returns a text that stands for itself in HTML, in an attribute as well.
pub(crate) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, letter| {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
        escaped
    })
}
