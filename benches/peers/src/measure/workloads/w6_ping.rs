//! W6: submit a task without delay and wait for its result. Back to back (`ping`), after a sleep
//! of `gap_us` each (`gap_ping`), and in windows of `win` (`pipelined_per_s`).

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::measure::{args::Args, emit::Emitter, gauges::Usage, peer::Peer, pool::Pool};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let pings = args.number("N", 20_000)?;
    let gaps = args.number("gaps", 1000)?;
    let gap = Duration::from_micros(args.number("gap_us", 300)?);
    let piped = args.number("pipe", 300_000)?;
    let window = args.number("win", 256)?;
    let workers = (args.number("W", 2)? as usize).min(P::MAX_WORKERS);
    let out = Emitter::new(name, "W6", &[("W", workers as u64)]);
    let pool = Pool::<P>::new(workers)?;
    let peer = &pool.peer;
    for _ in 0..pings / 10 {
        ping(peer);
    }

    let usage = Usage::now()?;
    let trips = (0..pings).map(|_| ping(peer)).collect();
    let used = Usage::now()?.since(usage, pings as f64);
    out.distribution("ping", trips);
    out.emit("ping_cpu_us", used.cpu_ns / 1e3, "us");

    let trips = (0..gaps).map(|_| {
        thread::sleep(gap);
        ping(peer)
    });
    out.distribution("gap_ping", trips.collect());

    pipeline(peer, piped / 10, window);
    out.emit("pipelined_per_s", pipeline(peer, piped, window), "1/s");
    pool.finish()?;
    Ok(())
}

/// One round trip, in nanoseconds.
fn ping<P: Peer>(peer: &P) -> i64 {
    let start = Instant::now();
    let future = peer.submit(|| 1);
    peer.wait(future);
    start.elapsed().as_nanos() as i64
}

/// Results for each second. At least `count` are waited for.
fn pipeline<P: Peer>(peer: &P, count: u64, window: u64) -> f64 {
    let mut futures = Vec::with_capacity(window as usize);
    let mut done = 0;
    let start = Instant::now();
    while done < count {
        futures.extend((0..window).map(|_| peer.submit(|| 1)));
        futures.drain(..).for_each(|future| _ = peer.wait(future));
        done += window;
    }
    done as f64 / start.elapsed().as_secs_f64()
}
