//! W14: W1 with many more threads than cores. One of so many calls is timed by itself.

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    peer::Peer,
    pending::{Load, Turn},
    pool::{self, Pool},
    rng::Rng,
    stopwatch::{self, Stopwatch},
};

/// One of so many calls is timed: an odd number, so that it is a `schedule` as often as a `cancel`.
const TIMED: u64 = 15;

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    for load in Load::all(args, "100000", "16", 1_600_000)? {
        measure::<P>(&load.emitter(name, "W14"), load)?;
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, load: Load) -> Result<()> {
    let pool = Pool::<P>::new(2)?;
    let peer = &pool.peer;
    let schedule_and_cancel = |turn: Turn| {
        let mut rng = Rng::new(turn.seed);
        let mut calls = Stopwatch::new(TIMED, 2 * turn.count);
        for _ in 0..turn.count {
            let delay = rng.far();
            let begin = calls.begin();
            let task = peer.schedule(delay, pool::tiny());
            calls.end(begin);
            let begin = calls.begin();
            peer.cancel(task);
            calls.end(begin);
        }
        calls
    };
    let cost = load.measure(peer, &schedule_and_cancel)?;
    cost.emit(out);
    let (keep, calls): (Vec<_>, Vec<_>) = cost.results.into_iter().unzip();
    out.distribution("call", stopwatch::all(calls));
    pool.finish()?;
    drop(keep);
    Ok(())
}
