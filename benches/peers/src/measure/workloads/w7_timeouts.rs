//! W7: what a server does with timeouts. `P` are outstanding; `T` threads schedule `N` more of
//! 30 s, and cancel each of them after at most 100 others.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    gauges::Usage,
    peer::Peer,
    pool::{self, Pool},
    rng::Rng,
};

/// A timeout waits for its cancellation in one of so many buckets: a power of two above 100.
const BUCKETS: usize = 128;

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let operations = args.number("N", 200_000)?;
    let outstanding = args.number("P", 10_000)?;
    for threads in args.list("T", "1,2")? {
        let params = [("P", outstanding), ("T", threads), ("N", operations)];
        measure::<P>(&Emitter::new(name, "W7", &params), outstanding, threads, operations)?;
    }
    Ok(())
}

fn measure<P: Peer>(
    out: &Emitter<'_>,
    outstanding: u64,
    threads: u64,
    operations: u64,
) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    // As in `pending`: each thread has its share of the timeouts, and warms up.
    let prepare = |number| {
        let mut rng = Rng::new(1 + 1000 * number);
        let delays = (0..pool::share(outstanding, threads, number))
            .map(|_| 25_000_000 + rng.below(5_000_000));
        let keep: Vec<_> =
            delays.map(|us| peer.schedule(Duration::from_micros(us), pool::tiny())).collect();
        churn(peer, 2 + 1000 * number, operations / 4 / threads);
        keep
    };
    let begin = || {
        peer.settle(outstanding);
        (Usage::now(), Instant::now())
    };
    let ((usage, start), keep) = pool::prepared(threads, prepare, begin, |number, keep| {
        churn(peer, 50 + number, operations / threads);
        keep
    });
    peer.settle(outstanding);
    let took = start.elapsed();
    let used = Usage::now()?.since(usage?, operations as f64);

    out.emit("ns_per_op", took.as_nanos() as f64 / operations as f64, "ns");
    out.emit("cpu_ns_per_op", used.cpu_ns, "ns");
    pool.finish()?;
    drop(keep);
    Ok(())
}

fn churn<P: Peer>(peer: &P, seed: u64, operations: u64) {
    let mut rng = Rng::new(seed);
    let mut buckets: Vec<Vec<P::Handle>> = Vec::new();
    buckets.resize_with(BUCKETS, || Vec::with_capacity(8));
    for now in 0..operations {
        let timeout = peer.schedule(Duration::from_secs(30), pool::tiny());
        buckets[(now + rng.below(101)) as usize % BUCKETS].push(timeout);
        for timeout in buckets[now as usize % BUCKETS].drain(..) {
            peer.cancel(timeout);
        }
    }
    buckets.into_iter().flatten().for_each(|timeout| peer.cancel(timeout));
}
