//! Runs that were put off beside their entries, as a driver sees them.

use std::time::Duration;

use punctual::{ManualClock, ScheduledThreadPoolExecutor};

use crate::support::{Log, ms};

/// A driver runs what was put off at its moment, in order, and is called for no moment at which nothing runs.
#[test]
fn a_driver_is_called_for_runs_that_take_place() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.build_driven().expect("the settings are good");
    let (order, handle) = (Log::new(), executor.handle());
    let submit = |number: u64, delay| {
        let order = order.clone();
        handle.schedule(ms(delay), move || order.push(number)).expect("accepted").extender()
    };
    let (first, _second) = (submit(1, 10), submit(2, 40));
    assert!(first.extend(ms(30)));
    assert_eq!(executor.time_until_next(), Some(ms(30)));
    clock.advance(ms(20));
    assert_eq!(executor.run_due(), 0);
    assert!(first.extend(ms(15)));
    assert_eq!(executor.time_until_next(), Some(ms(15)));
    // Both are due when the driver comes: the first one, which was put off, is the first still.
    clock.advance(ms(20));
    assert!(executor.run_one());
    assert_eq!(order.entries(), [1]);
    assert_eq!(executor.run_due(), 1);
    let (third, _fourth) = (submit(3, 1), submit(4, 8));
    assert!(third.extend(ms(5)));
    clock.advance(ms(10));
    while executor.time_until_next() == Some(Duration::ZERO) {
        executor.run_due();
    }
    assert_eq!((order.entries(), executor.time_until_next()), (vec![1, 2, 3, 4], None));
}
