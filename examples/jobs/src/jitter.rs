//! Jitter: by how much the runs of a job are put off, so that jobs with the same schedule do not
//! all start at once.
//!
//! The span is the one that the library's own jitter has for the first run of a trigger with the
//! job's name, and all runs of the job have the same. So they are as far from each other as
//! without, and `--next` knows them, whether or not the program has run before.

use std::time::Duration;

use punctual::{ManualClock, ScheduledThreadPoolExecutor, Trigger, trigger::every};

use crate::moment::NEVER;

/// Returns the span of the job with this name, in whole milliseconds.
pub(crate) fn span(name: &str, most: Duration) -> Duration {
    let whole = ask(name, most).map_or(0, |span| span.as_millis());
    Duration::from_millis(u64::try_from(whole).unwrap_or(u64::MAX)).min(NEVER)
}

/// Asks the library, on a clock that stands still.
fn ask(name: &str, most: Duration) -> Option<Duration> {
    let still =
        ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(ManualClock::new()).build();
    let trigger = every(Duration::MAX).jitter(most).name(name);
    still.ok()?.repeat(trigger, || ()).ok()?.delay()
}
