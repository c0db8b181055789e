//! W11: `P` tasks are pending; `T` threads each put a task off, `N` times in all. A peer that cannot
//! move a task cancels it and schedules it again.

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    peer::Peer,
    pending::{Load, Turn},
    pool::{self, Pool},
    rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    for load in Load::all(args, "1000,100000", "1,2", 400_000)? {
        measure::<P>(&load.emitter(name, "W11"), load)?;
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, load: Load) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    let put_off = |turn: Turn| {
        let mut rng = Rng::new(turn.seed);
        let mut handle = peer.schedule(rng.far(), pool::tiny());
        for _ in 0..turn.count {
            handle = peer.reschedule(handle, rng.far(), pool::tiny);
        }
        peer.cancel(handle);
    };
    let cost = load.measure(peer, &put_off)?;
    cost.emit(out);
    pool.finish()?;
    drop(cost);
    Ok(())
}
