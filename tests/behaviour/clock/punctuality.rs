//! How an executor keeps to its deadlines: the timer slack of its workers, and the precise mode.

use std::time::{Duration, Instant};

use punctual::{Builder, ManualClock, ScheduledThreadPoolExecutor};

use crate::support::{Counter, in_time, ms};

fn executor(configure: impl FnOnce(Builder) -> Builder) -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    configure(builder).build().expect("the settings are good")
}

/// The timer slack of the calling thread in nanoseconds, as Linux reports it.
#[cfg(target_os = "linux")]
fn timer_slack() -> u64 {
    let link = std::fs::read_link("/proc/thread-self").expect("Linux names the thread");
    let thread = link.file_name().expect("the path ends with its number").to_owned();
    let path = std::path::Path::new("/proc").join(thread).join("timerslack_ns");
    let slack = std::fs::read_to_string(path).expect("Linux says the slack");
    slack.trim().parse().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn workers_ask_for_the_slack_they_are_told() {
    let own = timer_slack();
    let in_worker = |executor: ScheduledThreadPoolExecutor| {
        let slack = executor.submit(timer_slack).expect("it is open");
        slack.join().expect("it ends")
    };
    let on_time = if cfg!(feature = "timer-slack") { 1 } else { own };
    assert_eq!(in_worker(executor(|builder| builder)), on_time);
    let lazy = if cfg!(feature = "timer-slack") { 3_000_000 } else { own };
    assert_eq!(in_worker(executor(|builder| builder.timer_slack(ms(3)))), lazy);
    assert_eq!(in_worker(executor(|builder| builder.timer_slack(Duration::ZERO))), own);
    let most = if cfg!(feature = "timer-slack") { 1_000_000_000 } else { own };
    for more in [Duration::from_secs(1), Duration::from_secs(3_600), Duration::MAX] {
        assert_eq!(in_worker(executor(|builder| builder.timer_slack(more))), most);
    }
    assert_eq!(timer_slack(), own, "the caller's own is not touched");
}

/// However much slack there may be, a task starts, and a close that waits for it returns.
#[test]
fn the_most_slack_is_not_for_ever() {
    let executor = executor(|builder| builder.timer_slack(Duration::MAX));
    let begin = Instant::now();
    let task = executor.schedule(ms(20), move || begin.elapsed()).expect("it is open");
    in_time("the close", move || executor.close()).expect("this is no task");
    assert!(task.join().expect("it has run") >= ms(20));
}

/// A worker that wakes early does not start a task early.
#[test]
fn a_precise_executor_starts_nothing_early() {
    for workers in [1, 2] {
        let executor = executor(|builder| builder.core_pool_size(workers).precise(ms(2)));
        let tasks: Vec<_> = (0..100)
            .map(|n: u64| {
                let due = Instant::now() + Duration::from_micros(n * 37 % 5_000);
                let early = move || due.saturating_duration_since(Instant::now());
                executor.schedule_at(due, early).expect("it is open")
            })
            .collect();
        for task in tasks {
            assert_eq!(task.join().expect("it ends"), Duration::ZERO);
        }
    }
}

/// M8: a lead longer than the delay works like any other, and so does one of infinite length.
#[test]
fn a_long_lead_is_no_harm() {
    let executor = executor(|builder| builder.precise(Duration::MAX));
    let start = Instant::now();
    let late = executor.schedule(ms(5), move || start.elapsed()).expect("it is open");
    let never = executor.schedule(Duration::MAX, || ()).expect("it is open");
    assert!(late.join().expect("it ends") >= ms(5));
    assert!(never.cancel());
}

#[test]
fn the_manual_clock_knows_no_lead() {
    let clock = ManualClock::new();
    let executor = executor(|builder| builder.clock(clock.clone()).precise(ms(2)));
    let task = executor.schedule(ms(10), || ()).expect("it is open");
    assert_eq!(clock.advance_to_next_deadline(), Some(ms(10)));
    assert!(task.is_done());
}

/// ST-009, G1: a task with a period of a millisecond never runs early, in a second of real time.
/// (`cargo bench --bench lateness` measures how late it is on an idle machine.)
#[test]
fn a_fast_rate_is_never_early() {
    let executor = executor(|builder| builder);
    let (runs, start) = (Counter::new(), Instant::now());
    let (counter, mut planned) = (runs.clone(), Duration::ZERO);
    let beat = executor.schedule_at_fixed_rate(ms(1), ms(1), move || {
        planned += ms(1);
        assert!(start.elapsed() >= planned, "early");
        counter.add();
    });
    let beat = beat.expect("it is open");
    runs.wait_for(1_000);
    assert!(beat.cancel(), "no run was early");
}
