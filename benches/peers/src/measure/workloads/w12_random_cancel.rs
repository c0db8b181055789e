//! W12: `P` tasks are pending; `T` threads, each of which has its own part of the tasks, cancel one of
//! them at random and schedule another in its place, `N` times in all. In the end all are cancelled,
//! unless `memory=0`: how much memory is kept for each cancellation?

use std::sync::Mutex;

use anyhow::Result;

use crate::measure::{
    args::Args,
    emit::Emitter,
    gauges,
    peer::Peer,
    pending::{Cost, Load, Turn},
    pool::{self, Pool},
    rng::Rng,
    stopwatch::{self, Stopwatch},
};

/// One of so many cancellations is timed by itself.
const TIMED: u64 = 16;

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let looks_at_memory = args.number("memory", 1)? == 1;
    for load in Load::all(args, "1000,10000,100000,1000000", "1,2", 400_000)? {
        let out = load.emitter(name, "W12");
        let pool = Pool::<P>::new(2)?;
        let mut tasks = Vec::new();
        // This memory is touched beforehand, so that it counts for no peer.
        tasks.resize_with(load.pending as usize, || None);
        let cost = replace_all(&pool.peer, load, &mut tasks)?;
        cost.emit(&out);
        out.distribution(
            "cancel",
            stopwatch::all(cost.results.into_iter().map(|((), watch)| watch)),
        );
        // Two threads would get the allocator's areas in another order each time.
        if looks_at_memory && load.threads == 1 {
            memory(&out, &pool.peer, load, &mut tasks)?;
        }
        pool.finish()?;
    }
    Ok(())
}

/// The memory that is kept for each cancellation. This thread makes the same calls twice: the first
/// time, the allocator and the queue get what they keep for later (`kept_first_per_cancel`), and the
/// second time they are to need no more (`retained_per_cancel`).
fn memory<P: Peer>(
    out: &Emitter<'_>,
    peer: &P,
    load: Load,
    tasks: &mut [Option<P::Handle>],
) -> Result<()> {
    cancel_all(peer, tasks);
    let replaced = load.operations;
    let mut replace_and_cancel = || {
        fill(peer, tasks, &mut Rng::new(1));
        replace_at_random(peer, tasks, Turn { number: 0, seed: 100, count: replaced });
        cancel_all(peer, tasks);
    };
    let cancels = (load.pending + replaced) as f64;
    for metric in ["kept_first_per_cancel", "retained_per_cancel"] {
        let resident = gauges::resident()?;
        replace_and_cancel();
        out.emit(metric, (gauges::resident()? - resident) / cancels, "B");
    }
    Ok(())
}

/// Each thread fills its places, and then replaces tasks.
fn replace_all<P: Peer>(
    peer: &P,
    load: Load,
    tasks: &mut [Option<P::Handle>],
) -> Result<Cost<((), Stopwatch)>> {
    let each = tasks.len().div_ceil(load.threads as usize);
    let parts: Vec<_> = tasks.chunks_mut(each).map(Mutex::new).collect();
    let fill_part = |turn: Turn| {
        let mut part = parts[turn.number as usize].lock().expect("no thread panics");
        fill(peer, &mut part, &mut Rng::new(turn.seed));
    };
    let replace = |turn: Turn| {
        let mut part = parts[turn.number as usize].lock().expect("no thread panics");
        replace_at_random(peer, &mut part, turn)
    };
    load.measure_filled(peer, &fill_part, &replace)
}

fn fill<P: Peer>(peer: &P, tasks: &mut [Option<P::Handle>], rng: &mut Rng) {
    tasks.fill_with(|| Some(peer.schedule(rng.far(), pool::tiny())));
}

fn cancel_all<P: Peer>(peer: &P, tasks: &mut [Option<P::Handle>]) {
    tasks.iter_mut().filter_map(Option::take).for_each(|task| peer.cancel(task));
    peer.settle(0);
}

fn replace_at_random<P: Peer>(peer: &P, tasks: &mut [Option<P::Handle>], turn: Turn) -> Stopwatch {
    let mut rng = Rng::new(turn.seed);
    let mut cancels = Stopwatch::new(TIMED, turn.count);
    for _ in 0..turn.count {
        let place = &mut tasks[rng.below(tasks.len() as u64) as usize];
        let delay = rng.far();
        let old = place.take().expect("every place has a task");
        let begin = cancels.begin();
        peer.cancel(old);
        cancels.end(begin);
        *place = Some(peer.schedule(delay, pool::tiny()));
    }
    cancels
}
