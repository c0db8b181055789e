//! W1: `P` tasks are pending; `T` threads each schedule a task and cancel it, `N` times in all.

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    gauges::{self, Usage},
    peer::Peer,
    pool::{self, Pool},
    rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let operations = args.number("N", 400_000)?;
    for pending in args.list("P", "1000,100000,1000000")? {
        for threads in args.list("T", "1,2,4")? {
            let params = [("P", pending), ("T", threads), ("N", operations)];
            measure::<P>(&Emitter::new(name, "W1", &params), pending, threads, operations)?;
        }
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, pending: u64, threads: u64, operations: u64) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    let keep = pool::fill(peer, pending);
    peer.settle(pending);
    let schedule_and_cancel = |seed: u64, count: u64| {
        let mut rng = Rng::new(seed);
        for _ in 0..count {
            peer.cancel(peer.schedule(rng.far(), pool::tiny()));
        }
    };
    schedule_and_cancel(7, operations / 10);
    peer.settle(pending);

    let (resident, usage) = (gauges::resident()?, Usage::now()?);
    let each = operations / threads;
    let (start, _) = pool::together(threads, |number| schedule_and_cancel(100 + number, each));
    let submitted = start.elapsed();
    peer.settle(pending);
    let settled = start.elapsed();
    let (resident_after, usage_after) = (gauges::resident()?, Usage::now()?);

    let count = (each * threads) as f64;
    out.emit("ns_per_op", settled.as_nanos() as f64 / count, "ns");
    out.emit("ns_per_op_submit", submitted.as_nanos() as f64 / count, "ns");
    out.emit("cpu_ns_per_op", usage_after.since(usage, count).cpu_ns, "ns");
    out.emit("retained_per_cancel", (resident_after - resident) / count, "B");
    out.emit("rss_after", resident_after, "B");
    pool.finish()?;
    drop(keep);
    Ok(())
}
