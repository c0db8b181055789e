//! W2: `T` threads schedule `N` tasks in all; the queue is empty at first.

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
    let tasks = args.number("N", 1_000_000)?;
    for threads in args.list("T", "1,2,4")? {
        let out = Emitter::new(name, "W2", &[("T", threads), ("N", tasks)]);
        measure::<P>(&out, threads, tasks)?;
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, threads: u64, tasks: u64) -> Result<()> {
    let pool = Pool::<P>::started(2)?;
    let peer = &pool.peer;
    let each = tasks / threads;

    let (resident, usage) = (gauges::resident()?, Usage::now()?);
    let (start, keep) = pool::together(threads, |number| {
        let mut rng = Rng::new(100 + number);
        let mut handles = Vec::with_capacity(each as usize);
        for _ in 0..each {
            handles.push(peer.schedule(rng.far(), pool::tiny()));
        }
        handles
    });
    let submitted = start.elapsed();
    peer.settle(each * threads);
    let settled = start.elapsed();
    let (resident_after, usage_after) = (gauges::resident()?, Usage::now()?);

    let count = (each * threads) as f64;
    out.emit("ns_per_op", settled.as_nanos() as f64 / count, "ns");
    out.emit("ns_per_op_submit", submitted.as_nanos() as f64 / count, "ns");
    out.emit("cpu_ns_per_op", usage_after.since(usage, count).cpu_ns, "ns");
    // Later pools reuse the memory that earlier ones have freed, so only the first is meaningful.
    if threads == 1 {
        let handle = size_of::<P::Handle>() as f64;
        out.emit("bytes_per_task", (resident_after - resident) / count - handle, "B");
    }
    pool.finish()?;
    drop(keep);
    Ok(())
}
