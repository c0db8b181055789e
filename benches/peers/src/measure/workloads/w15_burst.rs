//! W15: `N` tasks, all due at exactly one instant, `W` workers. Counted from that instant, or from the
//! end of the submission if that was later. With one worker: do the tasks start in the order in which
//! they were submitted?

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use anyhow::Result;

use super::w3_run::{WARM_UP, zero};
use crate::{
    measure::{args::Args, done::Done, emit::Emitter, peer::Peer, pool::Pool},
    results::Spread,
};

/// Small bursts are repeated, until there were so many tasks.
const ENOUGH: u64 = 500_000;

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    for tasks in args.list("N", "100000,1000000")? {
        for workers in args.list("W", "1,2")? {
            if workers as usize > P::MAX_WORKERS {
                continue;
            }
            let out = Emitter::new(name, "W15", &[("W", workers), ("N", tasks)]);
            let pool = Pool::<P>::new(workers as usize)?;
            zero(&pool.peer, WARM_UP);
            measure(&out, &pool.peer, tasks, workers);
            pool.finish()?;
        }
    }
    Ok(())
}

fn measure<P: Peer>(out: &Emitter<'_>, peer: &P, tasks: u64, workers: u64) {
    let (mut rates, mut worst) = (Vec::new(), 0.0_f64);
    for _ in 0..(ENOUGH / tasks).max(1) {
        let took = if workers == 1 {
            let (took, inversions) = in_order(peer, tasks);
            worst = worst.max(inversions);
            took
        } else {
            burst(peer, tasks, |_, done| move || done.hit())
        };
        rates.push(tasks as f64 / took.as_secs_f64());
    }
    out.emit("tasks_per_s", Spread::of(rates).map_or(0.0, |spread| spread.median), "1/s");
    if workers == 1 {
        out.emit("inversions", worst, "1");
    }
}

/// The same for one worker, where the tasks write down in which order they start, and how many pairs
/// do so in the wrong one.
fn in_order<P: Peer>(peer: &P, tasks: u64) -> (Duration, f64) {
    let order: &[AtomicU32] = Box::leak((0..tasks).map(|_| AtomicU32::new(0)).collect());
    let started: &AtomicU32 = Box::leak(Box::default());
    let took = burst(peer, tasks, |index, done| {
        move || {
            let place = started.fetch_add(1, Ordering::Relaxed);
            order[place as usize].store(index, Ordering::Relaxed);
            done.hit();
        }
    });
    (took, inversions(order.iter().map(|index| index.load(Ordering::Relaxed))))
}

/// The instant is a microsecond ahead for each task: about as long as it takes to submit all.
fn burst<P: Peer, F: FnOnce() + Send + 'static>(
    peer: &P,
    tasks: u64,
    task: impl Fn(u32, &'static Done) -> F,
) -> Duration {
    let done = Done::new(tasks);
    let due = Instant::now() + Duration::from_micros(tasks);
    for index in 0..tasks {
        peer.schedule_at(due, task(index as u32, done));
    }
    let start = Instant::now().max(due);
    done.wait();
    start.elapsed()
}

/// How many pairs are in the wrong order. The numbers are those below the count of them.
fn inversions(order: impl ExactSizeIterator<Item = u32>) -> f64 {
    // A Fenwick tree: how many numbers of a range have come so far.
    let mut come = vec![0_u64; order.len() + 1];
    let mut inversions = 0;
    for (before, number) in (0..).zip(order) {
        let (mut smaller, mut index) = (0, number as usize);
        while index > 0 {
            smaller += come[index];
            index &= index - 1;
        }
        inversions += before - smaller;
        index = number as usize + 1;
        while index < come.len() {
            come[index] += 1;
            index += index & index.wrapping_neg();
        }
    }
    inversions as f64
}

#[cfg(test)]
mod tests {
    use super::inversions;

    #[test]
    fn inversions_are_pairs_in_the_wrong_order() {
        let count = |order: &[u32]| inversions(order.iter().copied());
        assert_eq!(count(&[]), 0.0);
        assert_eq!(count(&[0, 1, 2, 3]), 0.0);
        assert_eq!(count(&[3, 2, 1, 0]), 6.0);
        assert_eq!(count(&[1, 0, 3, 2]), 2.0);
        assert_eq!(count(&[3, 0, 1, 2]), 3.0);
    }
}
