//! W3: one thread schedules `N` tasks, `W` workers run them.
//!
//! `mode=zero`: without delay, counted from the first call. `mode=atonce`: all due at one instant
//! `ms` ahead, counted from there, or from the end of the submission if that was later.
//! `mode=spread`: delays uniform below `ms`, counted from the first call.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::measure::{
    args::Args, done::Done, emit::Emitter, gauges::Usage, late::LateLog, peer::Peer, pool::Pool,
    rng::Rng,
};

pub(super) const WARM_UP: u64 = 20_000;

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let tasks = args.number("N", 1_000_000)?;
    let span = Duration::from_millis(args.number("ms", 1000)?);
    let mode = args.text("mode", "zero");
    for workers in args.list("W", "1,2")? {
        if workers as usize > P::MAX_WORKERS {
            continue;
        }
        let out = Emitter::new(name, format!("W3-{mode}"), &[("W", workers), ("N", tasks)]);
        let pool = Pool::<P>::new(workers as usize)?;
        zero(&pool.peer, WARM_UP);
        let usage = Usage::now()?;
        let took = match mode {
            "zero" => zero(&pool.peer, tasks).report(&out),
            "atonce" => at_once(&pool.peer, tasks, span),
            "spread" => spread(&pool.peer, tasks, span, &out),
            _ => bail!("no mode of W3 is called {mode}"),
        };
        let used = Usage::now()?.since(usage, tasks as f64);
        out.emit("tasks_per_s", tasks as f64 / took.as_secs_f64(), "1/s");
        out.emit("cpu_ns_per_task", used.cpu_ns, "ns");
        out.emit("vcsw_per_task", used.sleeps, "1");
        pool.finish()?;
    }
    Ok(())
}

/// How long it took to submit all tasks, and to run all.
pub(super) struct Zero {
    submit_ns: f64,
    took: Duration,
}

impl Zero {
    fn report(self, out: &Emitter<'_>) -> Duration {
        out.emit("submit_ns", self.submit_ns, "ns");
        self.took
    }
}

pub(super) fn zero<P: Peer>(peer: &P, tasks: u64) -> Zero {
    let done = Done::new(tasks);
    let start = Instant::now();
    for _ in 0..tasks {
        peer.schedule_detached(Duration::ZERO, move || done.hit());
    }
    let submit_ns = start.elapsed().as_nanos() as f64 / tasks as f64;
    done.wait();
    Zero { submit_ns, took: start.elapsed() }
}

fn at_once<P: Peer>(peer: &P, tasks: u64, ahead: Duration) -> Duration {
    let done = Done::new(tasks);
    let due = Instant::now() + ahead;
    for _ in 0..tasks {
        let delay = due.saturating_duration_since(Instant::now());
        peer.schedule_detached(delay, move || done.hit());
    }
    let start = Instant::now().max(due);
    done.wait();
    start.elapsed()
}

fn spread<P: Peer>(peer: &P, tasks: u64, span: Duration, out: &Emitter<'_>) -> Duration {
    let done = Done::new(tasks);
    let log = LateLog::new(tasks);
    let span = span.as_nanos().min(u32::MAX.into()) as u64;
    let mut rng = Rng::new(5);
    let start = Instant::now();
    for index in 0..tasks {
        let delay = Duration::from_nanos(rng.below(span));
        let slot = log.slot(index);
        let due = Instant::now() + delay;
        peer.schedule_detached(delay, move || {
            slot.note(due);
            done.hit();
        });
    }
    done.wait();
    let took = start.elapsed();
    out.distribution("late", log.nanos());
    took
}
