//! W1: `P` tasks are pending; `T` threads each schedule a task and cancel it, `N` times in all.

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    gauges,
    peer::Peer,
    pending::{Load, Turn},
    pool::{self, Pool},
    rng::Rng,
};

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    for load in Load::all(args, "1000,100000,1000000", "1,2,4", 400_000)? {
        measure::<P>(&load.emitter(name, "W1"), load)?;
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, load: Load) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    let schedule_and_cancel = |turn: Turn| {
        let mut rng = Rng::new(turn.seed);
        for _ in 0..turn.count {
            peer.cancel(peer.schedule(rng.far(), pool::tiny()));
        }
    };
    let cost = load.measure(peer, &schedule_and_cancel)?;
    let resident_after = gauges::resident()?;
    cost.emit(out);
    out.emit("retained_per_cancel", (resident_after - cost.resident) / cost.count, "B");
    out.emit("rss_after", resident_after, "B");
    pool.finish()?;
    drop(cost);
    Ok(())
}
