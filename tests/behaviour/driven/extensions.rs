//! Runs that an extender puts off, as a driver sees them.

use std::time::Duration;

use punctual::trigger::{self, Due, TriggerContext};
use punctual::{ManualClock, ScheduledThreadPoolExecutor};

use crate::support::{Log, ms};

/// A driver is called for each look, which is no run, and runs what was put off at its moment, in order.
#[test]
fn a_driver_looks_at_what_was_put_off() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.build_driven().expect("the settings are good");
    let (order, handle) = (Log::new(), executor.handle());
    let submit = |number: u64, delay| {
        let order = order.clone();
        let (task, extender) = handle.task().extender();
        task.schedule(ms(delay), move || order.push(number)).expect("accepted");
        extender
    };
    let (first, _second) = (submit(1, 10), submit(2, 40));
    assert!(first.extend(ms(30)));
    assert_eq!(executor.time_until_next(), Some(ms(10)), "the look");
    clock.advance(ms(20));
    assert_eq!(executor.run_due(), 0);
    assert!(first.extend(ms(15)));
    assert_eq!(executor.time_until_next(), Some(ms(10)), "what the look has found");
    // At the next call both are due, the first one again by a look.
    clock.advance(ms(20));
    assert_eq!((executor.run_due(), order.entries()), (2, vec![1, 2]));
    let (third, _fourth) = (submit(3, 1), submit(4, 8));
    assert!(third.extend(ms(5)));
    clock.advance(ms(10));
    while executor.time_until_next() == Some(Duration::ZERO) {
        executor.run_due();
    }
    assert_eq!((order.entries(), executor.time_until_next()), (vec![1, 2, 3, 4], None));
}

/// A plan on the wall clock that was put off during an extra run has left that clock.
#[test]
fn a_plan_is_put_off_while_an_extra_run_is_to_come() {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.build_driven().expect("the settings are good");
    let log = Log::new();
    let (note, time) = (log.clone(), clock.clone());
    let hourly = trigger::from_fn(|now: &TriggerContext<'_>| {
        Some(Due::Wall(now.after_wall() + Duration::from_secs(3600)))
    });
    let (task, extender) = executor.task().extender();
    let series =
        task.repeat(hourly, move || note.push(time.elapsed().as_secs())).expect("accepted");
    assert!(series.run_now());
    assert!(extender.extend(Duration::from_secs(5000)));
    assert_eq!(executor.run_due(), 1);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(executor.run_due(), 0, "it was put off");
    clock.advance(Duration::from_secs(1400));
    assert_eq!(executor.run_due(), 1);
    assert_eq!(log.entries(), [0, 5000]);
}
