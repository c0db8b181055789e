//! W8: `P` tasks are pending when the pool is shut down. How long until the threads are gone and
//! the tasks are dropped?

use std::{thread, time::Duration};

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    peer::Peer,
    pool::{self, Pool},
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let pending = args.number("P", 1_000_000)?;
    let pool = Pool::<P>::new(2)?;
    let keep = pool::fill(&pool.peer, pending);
    pool.peer.settle(pending);
    thread::sleep(Duration::from_millis(50));
    let took = pool.finish()?;
    let out = Emitter::new(name, "W8", &[("P", pending)]);
    out.emit("shutdown_ms", took.as_secs_f64() * 1e3, "ms");
    drop(keep);
    Ok(())
}
