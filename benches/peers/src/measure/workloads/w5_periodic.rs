//! W5: `N` tasks at a fixed rate, one run every `us` each, with random phases, for `ms`. How late
//! are the runs, against the grid that the first one starts?

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    gauges::Usage,
    peer::Peer,
    periodic::{Periodic, Plan},
    pool::Pool,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let tasks = args.number("N", 100)?;
    let us = args.number("us", 10_000)?;
    let ms = args.number("ms", 10_000)?;
    let workers = (args.number("W", 2)? as usize).min(P::MAX_WORKERS);
    let reports = args.text("mode", "plain") == "report";
    let pool = Pool::<P>::started(workers)?;

    let usage = Usage::now()?;
    let periodic = Periodic::start(&pool.peer, Plan { tasks, us, ms, reports });
    let end = periodic.base + Duration::from_millis(ms);
    thread::sleep(end.saturating_duration_since(Instant::now()));
    let runs = periodic.runs();
    let used = Usage::now()?.since(usage, runs);

    let params = [("N", tasks), ("us", us), ("ms", ms), ("W", workers as u64)];
    let out = Emitter::new(name, if reports { "W5-report" } else { "W5" }, &params);
    out.distribution("late", periodic.nanos());
    out.emit("runs_vs_expected", runs / (tasks as f64 * ms as f64 * 1e3 / us as f64), "1");
    out.emit("cpu_us_per_run", used.cpu_ns / 1e3, "us");
    out.emit("vcsw_per_run", used.sleeps, "1");
    pool.finish()?;
    Ok(())
}
