//! Times and states as they are shown.

use std::time::Duration;

use punctual::TaskState;

/// A duration in six characters or fewer: two digits or three, and the unit.
pub(crate) fn short(time: Duration) -> String {
    const STEPS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (100, "min"), (1, "s")];

    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    match micros {
        0 => "0".to_owned(),
        1..1000 => format!("{micros} µs"),
        1000..10_000 => tenths(micros / 100, "ms"),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..10_000_000 => tenths(micros / 100_000, "s"),
        _ => {
            let seconds = time.as_secs();
            let fits = |(least, _): &&(u64, &str)| seconds >= *least;
            let (least, unit) = STEPS.iter().find(fits).copied().unwrap_or((1, "s"));
            let size = if least == 100 { 60 } else { least };
            format!("{} {unit}", seconds / size)
        }
    }
}

fn tenths(tenths: u64, unit: &str) -> String {
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// The same, or a dash.
pub(crate) fn short_or_dash(time: Option<Duration>) -> String {
    time.map_or_else(|| "–".to_owned(), short)
}

pub(crate) fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Scheduled => "waits",
        TaskState::Paused => "paused",
        TaskState::Running => "runs",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Cancelled => "cancelled",
        _ => "unknown",
    }
}
