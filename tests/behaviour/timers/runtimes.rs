//! The same program on tokio, on smol and without a runtime.

use std::time::{Duration, Instant};

use punctual::{Handle, ScheduledThreadPoolExecutor, TimeoutError};

use crate::{support::awaiting::block_on, support::ms};

/// Sleeps, ticks and limits, one after the other.
async fn program(timers: Handle) -> Duration {
    let begun = Instant::now();
    timers.sleep(ms(2)).await.expect("the executor runs");
    let mut ticks = timers.interval(ms(1));
    for _ in 0..3 {
        ticks.tick().await.expect("the executor runs");
    }
    let late = timers.timeout(ms(1), timers.sleep(ms(3_600_000))).await;
    assert_eq!(late, Err(TimeoutError::Elapsed));
    let in_time = timers.timeout(ms(3_600_000), timers.sleep(ms(1))).await;
    assert_eq!(in_time, Ok(Ok(())));
    begun.elapsed()
}

const LEAST: Duration = ms(2 + 2 + 1 + 1);

#[test]
fn without_a_runtime() {
    let timers = ScheduledThreadPoolExecutor::new(1);
    assert!(block_on(program(timers.handle())) >= LEAST);
    assert_eq!(timers.pending_count(), 0);
}

#[test]
fn on_tokio() {
    let timers = ScheduledThreadPoolExecutor::new(1);
    for runtime in [
        tokio::runtime::Builder::new_current_thread().build().expect("it starts"),
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("it starts"),
    ] {
        let tasks = (0..8).map(|_| runtime.spawn(program(timers.handle())));
        for task in tasks.collect::<Vec<_>>() {
            assert!(runtime.block_on(task).expect("it does not panic") >= LEAST);
        }
    }
    assert_eq!(timers.pending_count(), 0);
}

#[test]
fn on_smol() {
    let timers = ScheduledThreadPoolExecutor::new(1);
    let tasks = (0..8).map(|_| smol::spawn(program(timers.handle())));
    for task in tasks.collect::<Vec<_>>() {
        assert!(smol::block_on(task) >= LEAST);
    }
    assert_eq!(timers.pending_count(), 0);
}
