//! W16: one thread schedules `N` far tasks into an empty queue. How slow is the slowest call?

use std::time::Instant;

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    peer::Peer,
    pool::{self, Pool},
    rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let tasks = args.number("N", 5_000_000)?;
    let out = Emitter::new(name, "W16", &[("N", tasks)]);
    let pool = Pool::<P>::started(2)?;
    let peer = &pool.peer;
    let mut keep = Vec::new();
    // This memory is touched beforehand, so that the caller's own list costs nothing below.
    keep.resize_with(tasks as usize, || None);
    let mut rng = Rng::new(100);
    let start = Instant::now();
    let nanos = each_timed(tasks, |index| {
        keep[index] = Some(peer.schedule(rng.far(), pool::tiny()));
    });
    peer.settle(tasks);
    out.emit("ns_per_op", start.elapsed().as_nanos() as f64 / tasks as f64, "ns");
    out.distribution("call", nanos);
    pool.finish()?;
    drop(keep);
    Ok(())
}

/// Times each call, with one reading of the clock in between.
pub(in crate::measure) fn each_timed(count: u64, mut call: impl FnMut(usize)) -> Vec<i64> {
    // Written beforehand: otherwise the kernel's time to find the memory would count as the call's.
    let mut nanos = vec![1; count as usize];
    let mut last = Instant::now();
    for (index, nanos) in nanos.iter_mut().enumerate() {
        call(index);
        let now = Instant::now();
        *nanos = now.duration_since(last).as_nanos() as i64;
        last = now;
    }
    nanos
}
