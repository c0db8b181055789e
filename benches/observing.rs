//! The cost of recording a run: `cargo bench --features histograms --bench observing`.
//!
//! One thread runs a periodic task again and again, whose body does nothing, with histograms and
//! without, in turns. The rounds are interleaved, so that whatever else the machine does meets both alike, and the
//! medians of the rounds are shown, with the median of the differences within each round.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::print_stdout)]

use std::{
    mem,
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::{Builder, ScheduledThreadPoolExecutor, Worker};

/// The number of runs in a round.
const RUNS: u32 = 200_000;

/// Returns how many nanoseconds one run takes, with everything around it.
fn measure(
    runs: u32,
    name: Option<&'static str>,
    settings: impl FnOnce(Builder) -> Builder,
) -> f64 {
    let (keep, kept) = mpsc::channel();
    let factory = move |worker: Worker| {
        keep.send(worker).expect("the other end is here");
        Ok(None)
    };
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).thread_factory(factory);
    let executor = settings(builder).build().expect("the settings are good");
    let (handle, mut left) = (executor.handle(), runs);
    let body = move || {
        left -= 1;
        if left == 0 {
            mem::forget(handle.shutdown_now());
        }
    };
    let task = match name {
        Some(name) => executor.task().name(name),
        None => executor.task(),
    };
    let beat = task.schedule_at_fixed_rate(Duration::ZERO, Duration::from_nanos(1), body);
    drop(beat.expect("it is open"));
    let worker = kept.try_recv().expect("a worker was started");
    let begin = Instant::now();
    worker.run();
    begin.elapsed().as_nanos() as f64 / f64::from(runs)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // With `cargo test` it only has to work.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let (rounds, runs) = if is_test { (1, 1_000) } else { (101, RUNS) };
    for name in [None, Some("named")] {
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            let without = measure(runs, name, |builder| builder);
            let with = measure(runs, name, |builder| builder.histograms(1));
            for (all, one) in found.iter_mut().zip([without, with, with - without]) {
                all.push(one);
            }
        }
        let [without, with, more] = found.map(|mut all| median(&mut all));
        let what = name.unwrap_or("unnamed");
        println!("{what}: {without:.1} ns a run without histograms, {with:.1} with, {more:+.1}");
    }
}
