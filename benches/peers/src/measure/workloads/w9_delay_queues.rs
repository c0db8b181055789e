//! W9: delay queues.
//!
//! `mode=fill`: `T` threads insert `N` elements in all, with delays that grow by a nanosecond.
//! When all have expired, the threads take them. The time in between is not counted.
//! `mode=mixed`: `P` elements are pending; `T` threads each insert one and remove what they have
//! inserted 100 insertions ago, `N` times in all.

use std::{
    hint::black_box,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};

use crate::{
    measure::{
        args::Args,
        emit::Emitter,
        pool,
        queue::{DelayPeer, Queue},
        rng::Rng,
    },
    results::Spread,
};

/// The fills of one process: those that only warm it up, and those whose median is the figure.
const WARM_UPS: usize = 2;
const MEASURED: usize = 5;

/// How many insertions an element of `mixed` outlives.
const LIFE: usize = 100;

pub(in crate::measure) fn run<P: DelayPeer>(name: &str, args: &Args) -> Result<()> {
    let threads = args.list("T", "1,2")?;
    match args.text("mode", "fill") {
        "fill" => fills::<P>(name, args.number("N", 1_000_000)?, &threads),
        "mixed" => {
            mixed::<P>(name, args.number("P", 100_000)?, args.number("N", 400_000)?, &threads);
            Ok(())
        }
        mode => bail!("no mode of W9 is called {mode}"),
    }
}

fn fills<P: DelayPeer>(name: &str, elements: u64, threads: &[u64]) -> Result<()> {
    for &threads in threads {
        let out = Emitter::new(name, "W9", &[("T", threads), ("N", elements)]);
        let times = (0..WARM_UPS + MEASURED).map(|_| match threads {
            1 => fill_alone::<P>(elements),
            _ => fill_shared::<P>(elements, threads),
        });
        let times = times.collect::<Result<Vec<_>>>()?;
        let emit = |metric, time: fn(&Times) -> Duration| {
            let nanos = times[WARM_UPS..].iter().map(|times| time(times).as_nanos() as f64);
            let median = Spread::of(nanos.collect()).map_or(0.0, |spread| spread.median);
            out.emit(metric, median / elements as f64, "ns");
        };
        emit("ns_per_op", |times| times.push + times.take);
        emit("push_ns", |times| times.push);
        emit("take_ns", |times| times.take);
        if threads == 1 {
            memory::<P>(&out, elements);
        }
    }
    Ok(())
}

/// How long it took to insert all elements, and to take all.
struct Times {
    push: Duration,
    take: Duration,
}

fn fill_alone<P: DelayPeer>(elements: u64) -> Result<Times> {
    let mut queue = P::own();
    let start = Instant::now();
    push(&mut queue, elements, 0, 1);
    let push = start.elapsed();
    let_expire(elements);
    let start = Instant::now();
    let taken = take_all(&mut queue);
    let take = start.elapsed();
    ensure!(taken == elements, "{taken} of {elements} elements came out");
    Ok(Times { push, take })
}

fn fill_shared<P: DelayPeer>(elements: u64, threads: u64) -> Result<Times> {
    let queue = P::shared();
    let (start, _) = pool::together(threads, |number| {
        push(&mut P::handle(&queue), elements, number, threads);
    });
    let push = start.elapsed();
    let_expire(elements);
    let (start, taken) = pool::together(threads, |_| take_all(&mut P::handle(&queue)));
    let take = start.elapsed();
    let taken: u64 = taken.into_iter().sum();
    ensure!(taken == elements, "{taken} of {elements} elements came out");
    Ok(Times { push, take })
}

/// Inserts this thread's elements: with two threads every second one, so that the delays of both
/// grow alike.
#[inline]
fn push(queue: &mut impl Queue, elements: u64, number: u64, threads: u64) {
    for element in (number..elements).step_by(threads as usize) {
        queue.insert(Duration::from_nanos(element), element);
    }
}

/// Sleeps until the last has expired, even in a queue that counts whole milliseconds.
fn let_expire(elements: u64) {
    thread::sleep(Duration::from_nanos(elements) + Duration::from_millis(2));
}

/// Returns how many there were.
#[inline]
fn take_all(queue: &mut impl Queue) -> u64 {
    let mut taken = 0;
    while let Some(element) = queue.take_expired() {
        black_box(element);
        taken += 1;
    }
    taken
}

/// The memory of an element, and the number of its allocations. This uses a separate fill, because
/// counting takes time.
fn memory<P: DelayPeer>(out: &Emitter<'_>, elements: u64) {
    counting::start();
    let mut queue = P::own();
    push(&mut queue, elements, 0, 1);
    let bytes = counting::so_far().bytes;
    let_expire(elements);
    take_all(&mut queue);
    let allocations = counting::so_far().allocations;
    counting::stop();
    out.emit("bytes_per_element", bytes as f64 / elements as f64, "B");
    out.emit("allocs_per_element", allocations as f64 / elements as f64, "1");
}

fn mixed<P: DelayPeer>(name: &str, pending: u64, operations: u64, threads: &[u64]) {
    for &threads in threads {
        let params = [("P", pending), ("T", threads), ("N", operations)];
        let took = match threads {
            1 => mixed_alone::<P>(pending, operations),
            _ => mixed_shared::<P>(pending, operations, threads),
        };
        let ns_per_op = took.as_nanos() as f64 / operations as f64;
        Emitter::new(name, "W9-mixed", &params).emit("ns_per_op", ns_per_op, "ns");
    }
}

fn mixed_alone<P: DelayPeer>(pending: u64, operations: u64) -> Duration {
    let mut queue = P::own();
    fill_far(&mut queue, pending, 1);
    churn(&mut queue, 2, operations / 4);
    let start = Instant::now();
    churn(&mut queue, 50, operations);
    start.elapsed()
}

fn mixed_shared<P: DelayPeer>(pending: u64, operations: u64, threads: u64) -> Duration {
    let queue = P::shared();
    let prepare = |number| {
        let share = pool::share(pending, threads, number);
        fill_far(&mut P::handle(&queue), share, 1 + 1000 * number);
        churn(&mut P::handle(&queue), 2 + 1000 * number, operations / 4 / threads);
    };
    let (start, _) = pool::prepared(threads, prepare, Instant::now, |number, ()| {
        churn(&mut P::handle(&queue), 50 + number, operations / threads);
    });
    start.elapsed()
}

fn fill_far(queue: &mut impl Queue, pending: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    for element in 0..pending {
        queue.insert(rng.far(), element);
    }
}

#[inline]
fn churn<Q: Queue>(queue: &mut Q, seed: u64, operations: u64) {
    let mut rng = Rng::new(seed);
    let mut keys: [Option<Q::Key>; LIFE] = [const { None }; LIFE];
    for operation in 0..operations {
        let key = queue.insert(rng.far(), operation);
        if let Some(key) = keys[operation as usize % LIFE].replace(key) {
            black_box(queue.remove(key));
        }
    }
    for key in keys.into_iter().flatten() {
        black_box(queue.remove(key));
    }
}

#[cfg(test)]
mod tests {
    use super::{DelayPeer, fill_alone, fill_shared, mixed_alone, mixed_shared};
    use crate::measure::queues::{Punctual, TokioUtil};

    /// A fill fails if not every element comes out, a removal if there is no element.
    fn runs<P: DelayPeer>() {
        fill_alone::<P>(1000).unwrap();
        fill_shared::<P>(1001, 2).unwrap();
        mixed_alone::<P>(10, 1000);
        mixed_shared::<P>(10, 1000, 2);
    }

    #[test]
    fn what_goes_in_comes_out() {
        runs::<Punctual>();
        runs::<TokioUtil>();
    }
}
