//! Intervals: the grid, and what becomes of ticks that no task waited for.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use punctual::{Interval, ManualClock, MissedRuns, ScheduledThreadPoolExecutor, TimerStopped};

use crate::support::{awaiting::Wakes, eventually, in_time, manual, ms};

fn tick(interval: &mut Interval) -> Poll<Result<Instant, TimerStopped>> {
    interval.poll_tick(&mut Context::from_waker(Waker::noop()))
}

/// Polls at each of these milliseconds, and returns which ticks there were.
fn ticks(policy: MissedRuns, polls: &[u64]) -> Vec<(u64, u64)> {
    let (clock, timers) = manual(1);
    let origin = clock.now();
    let mut interval = timers.interval(ms(10)).missed_runs(policy);
    let mut seen = Vec::new();
    for at in polls {
        clock.run_for(origin + ms(*at) - clock.now());
        while let Poll::Ready(planned) = tick(&mut interval) {
            let planned = planned.expect("the executor runs") - origin;
            seen.push((*at, u64::try_from(planned.as_millis()).expect("it is near")));
        }
    }
    seen
}

#[test]
fn the_first_tick_is_due_at_once_and_the_others_are_on_the_grid() {
    for policy in [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Delay] {
        let seen = ticks(policy, &[0, 5, 9, 10, 14, 20, 30]);
        assert_eq!(seen, [(0, 0), (10, 10), (20, 20), (30, 30)], "{policy:?}");
    }
}

/// M211.
#[test]
fn a_tick_that_is_a_little_late_moves_nothing() {
    for policy in [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Delay] {
        let seen = ticks(policy, &[0, 17, 19, 20]);
        assert_eq!(seen, [(0, 0), (17, 10), (20, 20)], "{policy:?}");
    }
}

#[test]
fn ticks_that_were_missed_are_treated_by_the_policy() {
    let polls = [0, 10, 45, 50, 55, 60];
    let seen = |policy| ticks(policy, &polls);
    let on_time = [(0, 0), (10, 10)];
    assert_eq!(seen(MissedRuns::Burst)[..2], on_time);
    assert_eq!(seen(MissedRuns::Burst)[2..], [(45, 20), (45, 30), (45, 40), (50, 50), (60, 60)]);
    assert_eq!(seen(MissedRuns::Coalesce)[2..], [(45, 20), (50, 50), (60, 60)]);
    assert_eq!(seen(MissedRuns::Skip)[2..], [(50, 50), (60, 60)], "20 is overdue");
    assert_eq!(seen(MissedRuns::Delay)[2..], [(45, 20), (55, 55)]);
    assert_eq!(seen(MissedRuns::Within(ms(10)))[2..], [(45, 40), (50, 50), (60, 60)]);
}

/// A tick of each nanosecond is overdue by the time that it is looked at. The poll leaves it out, and the next, and gives up
/// its turn at some point.
#[test]
fn a_poll_ends_though_every_tick_is_overdue() {
    in_time("the polls return", || {
        let timers = ScheduledThreadPoolExecutor::new(1);
        let ticks = timers.interval(Duration::from_nanos(1));
        let mut ticks = ticks.missed_runs(MissedRuns::Within(Duration::ZERO));
        let wakes = Wakes::new();
        let waker = Waker::from(Arc::clone(&wakes));
        for polls in 1..=3 {
            if ticks.poll_tick(&mut Context::from_waker(&waker)).is_pending() {
                eventually("it goes on", || wakes.count() >= polls);
            }
        }
    });
}

#[test]
fn between_two_ticks_there_is_nothing_in_the_queue() {
    let (clock, timers) = manual(1);
    let mut interval = timers.interval(ms(10));
    assert!(tick(&mut interval).is_ready());
    assert_eq!(timers.pending_count(), 0);
    assert!(tick(&mut interval).is_pending());
    assert_eq!(timers.pending_count(), 1);
    clock.run_for(ms(10));
    assert!(tick(&mut interval).is_ready());
    assert_eq!(timers.pending_count(), 0);
    assert!(tick(&mut interval).is_pending());
    drop(interval);
    assert_eq!(timers.pending_count(), 0);
}

/// `select!` drops the future of a tick that did not come first.
#[test]
fn a_tick_is_not_lost_with_its_future() {
    let (clock, timers) = manual(1);
    let planned = clock.now() + ms(10);
    let mut interval = timers.interval_at(planned, ms(10));
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(interval.tick()).poll(&mut context).is_pending());
    clock.run_for(ms(10));
    assert_eq!(pin!(interval.tick()).poll(&mut context), Poll::Ready(Ok(planned)));
    assert!(pin!(interval.tick()).poll(&mut context).is_pending());
}

#[test]
fn a_reset_begins_the_grid_anew() {
    let (clock, timers) = manual(1);
    let origin = clock.now();
    let mut interval = timers.interval(ms(10));
    assert!(tick(&mut interval).is_ready());
    clock.run_for(ms(4));
    interval.reset();
    assert!(tick(&mut interval).is_pending());
    clock.run_for(ms(9));
    assert!(tick(&mut interval).is_pending());
    clock.run_for(ms(1));
    assert_eq!(tick(&mut interval), Poll::Ready(Ok(origin + ms(14))));
    interval.reset_at(origin + ms(15));
    clock.run_for(ms(1));
    assert_eq!(tick(&mut interval), Poll::Ready(Ok(origin + ms(15))));
}

#[test]
fn the_longest_period_has_one_tick() {
    let (clock, timers) = manual(1);
    let mut interval = timers.interval(Duration::MAX);
    assert!(tick(&mut interval).is_ready());
    assert!(tick(&mut interval).is_pending());
    clock.run_for(Duration::from_secs(1 << 33));
    assert!(tick(&mut interval).is_pending());
}

#[test]
#[should_panic(expected = "the period of an interval is zero")]
fn a_period_of_zero_is_refused() {
    let (_clock, timers): (ManualClock, _) = manual(1);
    drop(timers.interval(Duration::ZERO));
}

#[test]
fn it_ends_with_its_executor() {
    let (_clock, timers) = manual(1);
    let mut interval = timers.interval(ms(10));
    assert!(tick(&mut interval).is_ready());
    assert!(tick(&mut interval).is_pending());
    drop(timers.shutdown_now());
    assert!(matches!(tick(&mut interval), Poll::Ready(Err(_))));
    assert!(matches!(tick(&mut interval), Poll::Ready(Err(_))));
}

#[cfg(feature = "stream")]
#[test]
fn it_is_a_stream_that_ends_with_its_executor() {
    use futures_core::Stream;
    use std::pin::Pin;

    let (clock, timers) = manual(1);
    let mut interval = timers.interval(ms(10));
    let mut next = || Pin::new(&mut interval).poll_next(&mut Context::from_waker(Waker::noop()));
    assert_eq!(next(), Poll::Ready(Some(clock.now())));
    assert!(next().is_pending());
    drop(timers.shutdown_now());
    assert_eq!(next(), Poll::Ready(None));
}
