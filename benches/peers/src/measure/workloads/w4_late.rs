//! W4: `N` tasks, due at random instants of the next `ms`. How late do they start?

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::{
    args::Args, done::Done, emit::Emitter, gauges::Usage, late::LateLog, peer::Peer, pool::Pool,
    rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let tasks = args.number("N", 1000)?;
    let ms = args.number("ms", 10_000)?;
    let workers = (args.number("W", 2)? as usize).min(P::MAX_WORKERS);
    let pool = Pool::<P>::started(workers)?;
    let log = LateLog::new(tasks);
    let done = Done::new(tasks);
    let usage = Usage::now()?;
    for (index, due) in (0..).zip(instants(tasks, ms)) {
        let slot = log.slot(index);
        let delay = due.saturating_duration_since(Instant::now());
        pool.peer.schedule_detached(delay, move || {
            slot.note(due);
            done.hit();
        });
    }
    done.wait();
    let used = Usage::now()?.since(usage, tasks as f64);
    let params = [("N", tasks), ("ms", ms), ("W", workers as u64)];
    let out = Emitter::new(name, "W4", &params);
    out.distribution("late", log.nanos());
    out.emit("cpu_us_per_task", used.cpu_ns / 1e3, "us");
    out.emit("vcsw_per_task", used.sleeps, "1");
    pool.finish()?;
    Ok(())
}

/// The instants, in no order; the first is not before all of them can be scheduled.
pub(in crate::measure) fn instants(count: u64, ms: u64) -> impl Iterator<Item = Instant> {
    let mut rng = Rng::new(9);
    let base = Instant::now() + Duration::from_millis(200);
    (0..count).map(move |_| base + Duration::from_micros(rng.below(ms * 1000)))
}
