//! A callback that is registered later, but due sooner, runs first.
//!
//! The first callback is registered for eight units from now; three units later a second one is
//! registered for one unit. The second is due four units before the first, although the executor
//! already sleeps until the first is due. A unit is a tenth of a second.
//!
//! ```text
//! cargo run --example late_then_early
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
    thread,
    time::{Duration, Instant},
};

use punctual::{ScheduledThreadPoolExecutor, with_context};

use crate::common::say;

const UNIT: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (report, reports) = mpsc::channel();
    let start = Instant::now();
    let units = move |moment: Instant| (moment - start).as_secs_f64() / UNIT.as_secs_f64();
    let register = |name, delay: u32| {
        let report = report.clone();
        say(format_args!(
            "{:5.2}  {name} is registered, for {delay} from now",
            units(Instant::now())
        ));
        let body = with_context(move |run| {
            say(format_args!("{:5.2}  {name} runs", units(Instant::now())));
            // The receiver outlives the executor.
            let _ = report.send((name, run.planned()));
        });
        executor.schedule(delay * UNIT, body)
    };

    say(format_args!("units"));
    register("the first", 8)?;
    thread::sleep(3 * UNIT);
    register("the second", 1)?;
    let registered_after = start.elapsed();
    drop(report);
    executor.close()?;

    let runs: Vec<_> = reports.iter().collect();
    assert!(runs.is_sorted_by_key(|(_, planned)| *planned));
    // If the machine is delayed for long enough, the second is not due sooner.
    if registered_after < 7 * UNIT {
        assert_eq!(
            runs.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["the second", "the first"]
        );
        say(format_args!("the second, registered later, was first"));
    }
    Ok(())
}
