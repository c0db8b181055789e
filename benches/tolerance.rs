//! The wake-ups of many periodic tasks: `cargo bench --bench tolerance`. A thousand tasks with a period of 100 ms and
//! random phases run for ten seconds on two workers: exactly, with a tolerance of 5 ms, and as intervals of tokio, which has
//! a resolution of one millisecond. Then the benchmark prints what Linux counted for each run: how often a thread of the
//! process went to sleep, and how long one had a core. Other systems do not report these counts.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::print_stdout)]

mod common;

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use common::scattered;
use punctual::{ScheduledThreadPoolExecutor, Trigger, trigger::every};

const TASKS: u64 = 1_000;
const PERIOD: Duration = Duration::from_millis(100);
const TOLERANCE: Duration = Duration::from_millis(5);
const WORKERS: usize = 2;

static RUNS: AtomicU64 = AtomicU64::new(0);

fn run() {
    // Relaxed: it only counts.
    RUNS.fetch_add(1, Ordering::Relaxed);
}

fn phase(task: u64) -> Duration {
    Duration::from_nanos(scattered(task) % PERIOD.as_nanos() as u64)
}

/// The counts so far of all threads of this process that live: runs, voluntary context switches, nanoseconds on a core.
fn counts() -> Option<[u64; 3]> {
    let mut counts = [RUNS.load(Ordering::Relaxed), 0, 0];
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let switches =
            status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        counts[1] += switches?.trim().parse::<u64>().ok()?;
        let on_core = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        counts[2] += on_core.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(counts)
}

/// Measures while the tasks run, and prints a row.
fn measure(name: &str) {
    let (warm_up, time) = if common::is_trial() { (1, 50) } else { (300, 10_000) };
    thread::sleep(Duration::from_millis(warm_up));
    let begin = counts();
    thread::sleep(Duration::from_millis(time));
    let Some((begin, end)) = begin.zip(counts()) else {
        return println!("cannot tell: this system does not say what a thread has done");
    };
    let [runs, switches, nanos] = [0, 1, 2].map(|count| (end[count] - begin[count]) as f64);
    let (wake_ups, micros) = (switches / runs.max(1.0), nanos / 1e3 / runs.max(1.0));
    println!(
        "{name:16} {runs:7} runs, {wake_ups:.3} wake-ups and {micros:.2} µs of a core for each"
    );
}

fn punctual(name: &str, tolerance: Option<Duration>) {
    let executor = ScheduledThreadPoolExecutor::new(WORKERS);
    for task in 0..TASKS {
        let rate = every(PERIOD).first_in(phase(task));
        let task = match tolerance {
            None => executor.repeat(rate, run),
            Some(most) => executor.repeat(rate.tolerance(most), run),
        };
        drop(task.expect("it is open"));
    }
    measure(name);
    drop(executor.shutdown_now());
}

fn tokio() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(WORKERS).enable_time().build().expect("threads start");
    for task in 0..TASKS {
        drop(runtime.spawn(async move {
            let first = tokio::time::Instant::now() + phase(task);
            let mut interval = tokio::time::interval_at(first, PERIOD);
            loop {
                interval.tick().await;
                run();
            }
        }));
    }
    measure("tokio interval");
}

fn main() {
    punctual("exact", None);
    punctual("tolerance 5 ms", Some(TOLERANCE));
    tokio();
}
