//! The cost of an idle executor: `cargo bench --bench idle`. For ten seconds three workers wait for
//! tasks that are due in hours. Then the benchmark prints what Linux counted for each worker: how
//! often it was given a core or gave it up, and for how many nanoseconds it had one. A thread that
//! never ran made no system call either. Other systems do not report these counts.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::print_stdout)]

mod common;

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;

const WORKERS: usize = 3;

/// The name prefix of the workers; each adds a dash and its number.
const NAME: &str = "idler";

/// The activity of a thread since it was started.
#[derive(Clone, PartialEq)]
struct Activity {
    name: String,
    is_asleep: bool,
    /// Voluntary and involuntary context switches.
    switches: u64,
    /// Nanoseconds on a core.
    nanos: u64,
}

impl Activity {
    /// The activity of the thread with this folder; `None` if it is gone or the system does not
    /// report it.
    fn read(folder: &Path) -> Option<Self> {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key));
            value.map(|value| value.trim_start_matches(':').trim())
        };
        let voluntary: u64 = field("voluntary_ctxt_switches")?.parse().ok()?;
        let involuntary: u64 = field("nonvoluntary_ctxt_switches")?.parse().ok()?;
        let schedstat = fs::read_to_string(folder.join("schedstat")).ok()?;
        Some(Self {
            name: field("Name")?.to_owned(),
            is_asleep: field("State")?.starts_with('S'),
            switches: voluntary + involuntary,
            nanos: schedstat.split_whitespace().next()?.parse().ok()?,
        })
    }
}

/// The activity of each worker, by name; `None` if the system does not report all of them.
fn activities() -> Option<Vec<Activity>> {
    let folders = fs::read_dir("/proc/self/task").ok()?.flatten();
    let threads = folders.filter_map(|folder| Activity::read(&folder.path()));
    let mut workers: Vec<_> = threads.filter(|thread| thread.name.starts_with(NAME)).collect();
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    (workers.len() == WORKERS).then_some(workers)
}

/// Waits, but not forever, until all workers sleep, and returns their activity until then.
fn settled() -> Option<Vec<Activity>> {
    let mut before = None;
    for _ in 0..100 {
        let now = activities();
        let sleep = |workers: &Vec<Activity>| workers.iter().all(|worker| worker.is_asleep);
        // A thread appears asleep shortly before its switch is counted; two equal readings are
        // enough.
        if now == before && now.as_ref().is_some_and(sleep) {
            return now;
        }
        before = now;
        thread::sleep(Duration::from_millis(5));
    }
    before
}

fn main() {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(WORKERS).thread_name(NAME);
    let executor = builder.build().expect("the settings are good");
    for hours in 1..=WORKERS as u64 {
        let far = Duration::from_secs(hours * 3600);
        // Each submission starts a worker.
        drop(executor.schedule(far, || ()).expect("it is open"));
    }
    let begin = settled();
    let start = Instant::now();
    thread::sleep(Duration::from_millis(if common::is_trial() { 50 } else { 10_000 }));
    let (time, end) = (start.elapsed(), activities());
    match begin.zip(end) {
        Some((begin, end)) => report(time, &begin, &end),
        None => println!("cannot tell: this system does not say what a thread has done"),
    }
}

fn report(time: Duration, begin: &[Activity], end: &[Activity]) {
    println!("{WORKERS} idle workers, for {:.2} s:", time.as_secs_f64());
    let (mut switches, mut nanos) = (0, 0);
    for (begin, end) in begin.iter().zip(end) {
        let did = (end.switches - begin.switches, end.nanos - begin.nanos);
        println!("{}: {} context switches, {} ns on a core", end.name, did.0, did.1);
        (switches, nanos) = (switches + did.0, nanos + did.1);
    }
    println!("together: {switches} context switches, {nanos} ns on a core");
    if (switches, nanos) == (0, 0) {
        println!("none ever ran, so none made a system call");
    }
}
