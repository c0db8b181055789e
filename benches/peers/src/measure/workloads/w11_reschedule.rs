//! W11: `P` tasks are pending; `T` threads each put a task off, `N` times in all. A peer that cannot
//! move a task cancels it and schedules it again.
//!
//! With `mode=extend` each thread has a timeout of 30 s, which it puts off to 30 s from now as it is done for each request
//! of a connection: by whatever is meant for that. With `mode=moved` it does so by what W11 uses.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::measure::{
    args::Args,
    emit::Emitter,
    peer::Peer,
    pending::{Load, Turn},
    pool::{self, Pool},
    rng::Rng,
};

const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let put_off: fn(&P, Turn) = match args.text("mode", "random") {
        "random" => anywhere::<P>,
        "extend" => extend::<P>,
        "moved" => later::<P>,
        mode => bail!("there is no mode {mode}"),
    };
    for load in Load::all(args, "1000,100000", "1,2", 400_000)? {
        measure::<P>(&load.emitter(name, "W11"), load, put_off)?;
    }
    Ok(())
}

fn anywhere<P: Peer>(peer: &P, turn: Turn) {
    let mut rng = Rng::new(turn.seed);
    let mut handle = peer.schedule(rng.far(), pool::tiny());
    for _ in 0..turn.count {
        handle = peer.reschedule(handle, rng.far(), pool::tiny);
    }
    peer.cancel(handle);
}

fn extend<P: Peer>(peer: &P, turn: Turn) {
    peer.extend_often(TIMEOUT, turn.count, || pool::tiny()());
}

fn later<P: Peer>(peer: &P, turn: Turn) {
    let mut handle = peer.schedule(TIMEOUT, pool::tiny());
    for _ in 0..turn.count {
        handle = peer.reschedule(handle, TIMEOUT, pool::tiny);
    }
    peer.cancel(handle);
}

fn measure<P: Peer>(out: &Emitter<'_>, load: Load, put_off: fn(&P, Turn)) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    let cost = load.measure(peer, &|turn| put_off(peer, turn))?;
    cost.emit(out);
    pool.finish()?;
    drop(cost);
    Ok(())
}
