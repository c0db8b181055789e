//! W5: `N` tasks at a fixed rate, one run every `us` each, with random phases, for `ms`. How late
//! are the runs, against the grid that the first one starts?

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::measure::{
    args::Args, emit::Emitter, gauges::Usage, late::LateLog, peer::Peer, pool::Pool, rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let tasks = args.number("N", 100)?;
    let us = args.number("us", 10_000)?;
    let ms = args.number("ms", 10_000)?;
    let workers = (args.number("W", 2)? as usize).min(P::MAX_WORKERS);
    let period = Duration::from_micros(us);
    let reports = args.text("mode", "plain") == "report";
    let runs_each = ms * 1000 / us + 50;
    let pool = Pool::<P>::started(workers)?;
    let log = LateLog::new(tasks * runs_each);
    let total: &AtomicU64 = Box::leak(Box::default());
    let mut rng = Rng::new(3);
    let base = Instant::now() + Duration::from_millis(50);

    let usage = Usage::now()?;
    for index in 0..tasks {
        let first = base + Duration::from_nanos(rng.below(us * 1000));
        let initial = first.saturating_duration_since(Instant::now());
        let log = log.part(index * runs_each, runs_each);
        let (mut run, mut due) = (0, first);
        let body = move || {
            log.note(run, due);
            run += 1;
            due += period;
            total.fetch_add(1, Ordering::Relaxed);
        };
        if reports {
            pool.peer.repeat_with_report(initial, period, body);
        } else {
            pool.peer.schedule_at_fixed_rate(initial, period, body);
        }
    }
    let end = base + Duration::from_millis(ms);
    thread::sleep(end.saturating_duration_since(Instant::now()));
    let runs = total.load(Ordering::Relaxed) as f64;
    let used = Usage::now()?.since(usage, runs);

    let params = [("N", tasks), ("us", us), ("ms", ms), ("W", workers as u64)];
    let out = Emitter::new(name, if reports { "W5-report" } else { "W5" }, &params);
    out.distribution("late", log.nanos());
    out.emit("runs_vs_expected", runs / (tasks as f64 * ms as f64 * 1e3 / us as f64), "1");
    out.emit("cpu_us_per_run", used.cpu_ns / 1e3, "us");
    out.emit("vcsw_per_run", used.sleeps, "1");
    pool.finish()?;
    Ok(())
}
