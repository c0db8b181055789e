//! W11: `P` tasks are pending; `T` threads each put a task off, `N` times in all. A peer that cannot
//! move a task cancels it and schedules it again.

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    peer::Peer,
    pool::{self, Pool},
    rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let operations = args.number("N", 400_000)?;
    for pending in args.list("P", "1000,100000")? {
        for threads in args.list("T", "1,2")? {
            let params = [("P", pending), ("T", threads), ("N", operations)];
            measure::<P>(&Emitter::new(name, "W11", &params), pending, threads, operations)?;
        }
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, pending: u64, threads: u64, operations: u64) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    let keep = pool::fill(peer, pending);
    peer.settle(pending);
    let put_off = |seed: u64, count: u64| {
        let mut rng = Rng::new(seed);
        let mut handle = peer.schedule(rng.far(), pool::tiny());
        for _ in 0..count {
            handle = peer.reschedule(handle, rng.far(), pool::tiny);
        }
        peer.cancel(handle);
    };
    put_off(7, operations / 10);
    peer.settle(pending);
    let each = operations / threads;
    let (start, _) = pool::together(threads, |number| put_off(100 + number, each));
    peer.settle(pending);
    let took = start.elapsed();
    out.emit("ns_per_op", took.as_nanos() as f64 / (each * threads) as f64, "ns");
    pool.finish()?;
    drop(keep);
    Ok(())
}
