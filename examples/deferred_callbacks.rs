//! Registers ten callbacks with delays in no order; they run in the order of their delays.
//!
//! Each prints when it was due and when it ran, counted from the start. None is ever early.
//!
//! ```text
//! cargo run --example deferred_callbacks
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it does not use the crate's inner parts"
)]

#[allow(dead_code, reason = "other examples use the rest")]
mod common;

use std::{
    error::Error,
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::{ScheduledThreadPoolExecutor, with_context};

use crate::common::say;

/// The delays, in steps, in the order in which the callbacks are registered.
const DELAYS: [u32; 10] = [7, 2, 10, 5, 1, 8, 3, 9, 6, 4];
const STEP: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (report, reports) = mpsc::channel();
    let start = Instant::now();
    for delay in DELAYS.map(|steps| steps * STEP) {
        let report = report.clone();
        say(format_args!("registered: in {delay:?}"));
        let body = with_context(move |run| {
            let (planned, actual) = (run.planned(), Instant::now());
            // The receiver outlives the executor.
            let _ = report.send((delay, planned, actual));
            if let Some(planned) = planned {
                let [planned, actual] = [planned, actual].map(|moment| moment - start);
                say(format_args!("ran: planned {planned:>9.2?}, actual {actual:>9.2?}"));
            }
        });
        executor.schedule(delay, body)?;
    }
    let registered_after = start.elapsed();
    drop(report);
    executor.close()?;

    let runs: Vec<_> = reports.iter().collect();
    assert_eq!(runs.len(), DELAYS.len());
    assert!(runs.is_sorted_by_key(|(_, planned, _)| *planned));
    for (_, planned, actual) in &runs {
        assert!(planned.is_some_and(|planned| planned <= *actual));
    }
    // A delay counts from its registration; the delays can be compared if all were registered at
    // about the same time.
    if registered_after < STEP {
        assert!(runs.is_sorted_by_key(|(delay, ..)| *delay));
        say(format_args!("all ten in the order of their delays"));
    }
    Ok(())
}
