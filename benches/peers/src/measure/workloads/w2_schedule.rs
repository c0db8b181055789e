//! W2: `T` threads schedule `N` tasks in all; the queue is empty at first.
//!
//! With `mode=first` the memory of the tasks is touched for the first time, and the kernel's time to find it
//! counts. With `mode=again` each thread has scheduled and cancelled as many tasks before. The lists of handles
//! are made and touched beforehand in both.

use anyhow::{Result, bail};

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
    let is_again = match args.text("mode", "first") {
        "first" => false,
        "again" => true,
        mode => bail!("nothing is scheduled {mode}"),
    };
    for threads in args.list("T", "1,2,4")? {
        let out = Emitter::new(name, "W2", &[("T", threads), ("N", tasks)]);
        measure::<P>(&out, threads, tasks / threads, is_again)?;
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, threads: u64, each: u64, is_again: bool) -> Result<()> {
    let pool = Pool::<P>::started(2)?;
    let peer = &pool.peer;
    let prepare = |number| {
        let mut handles = Vec::new();
        handles.resize_with(each as usize, || None);
        if is_again {
            fill(peer, number, &mut handles);
            handles.iter_mut().filter_map(Option::take).for_each(|task| peer.cancel(task));
        }
        handles
    };
    let begin = || {
        peer.settle(0);
        (gauges::resident(), Usage::now(), std::time::Instant::now())
    };
    let (begun, keep) = pool::prepared(threads, prepare, begin, |number, mut handles| {
        fill(peer, number, &mut handles);
        handles
    });
    let (resident, usage, start) = begun;
    let submitted = start.elapsed();
    peer.settle(each * threads);
    let settled = start.elapsed();
    let (resident_after, usage_after) = (gauges::resident()?, Usage::now()?);

    let count = (each * threads) as f64;
    out.emit("ns_per_op", settled.as_nanos() as f64 / count, "ns");
    out.emit("ns_per_op_submit", submitted.as_nanos() as f64 / count, "ns");
    out.emit("cpu_ns_per_op", usage_after.since(usage?, count).cpu_ns, "ns");
    // Later pools reuse the memory that earlier ones have freed, so only the first is meaningful.
    if threads == 1 && !is_again {
        out.emit("bytes_per_task", (resident_after - resident?) / count, "B");
    }
    pool.finish()?;
    drop(keep);
    Ok(())
}

fn fill<P: Peer>(peer: &P, number: u64, handles: &mut [Option<P::Handle>]) {
    let mut rng = Rng::new(100 + number);
    handles.fill_with(|| Some(peer.schedule(rng.far(), pool::tiny())));
}
