//! W17: timers that are awaited.
//!
//! *Calls*: `P` timers are pending, one to two hours ahead; `T` threads make a timer, poll it once and
//! drop it, `N` times in all, as code does that puts a limit on a request that is nearly always in time.
//! *Late*: `N` timers at random instants of the next `ms`. How late are the wakers called?

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Instant,
};

use anyhow::{Result, ensure};

use super::instants;
use crate::measure::{
    args::Args,
    done::Done,
    emit::Emitter,
    gauges::{self, Usage},
    late::{LateLog, Slot},
    pool,
    rng::Rng,
    timers::Timers,
};

pub(in crate::measure) fn run<S: Timers>(name: &str, args: &Args) -> Result<()> {
    match args.text("mode", "calls") {
        "late" => late::<S>(name, args),
        _ => calls::<S>(name, args),
    }
}

fn calls<S: Timers>(name: &str, args: &Args) -> Result<()> {
    let operations = args.number("N", 1_000_000)?;
    // The largest comes first: later ones reuse its memory, so only the first tells what a timer takes.
    for (round, pending) in args.list("P", "1000000,100000,1000")?.into_iter().enumerate() {
        for threads in args.list("T", "1,2")? {
            let timers = S::new(2);
            let resident = gauges::resident()?;
            let params = [("P", pending), ("T", threads), ("N", operations)];
            let out = Emitter::new(name, "W17", &params);
            let each = operations / threads;
            let work = |seed, count| make_and_drop(&timers, seed, count);
            // As in `pending`: each thread makes its share of the timers itself, and warms up.
            let prepare = |number| {
                let share = pool::share(pending, threads, number);
                let keep = fill(&timers, share, 1 + 1000 * number);
                let filled = gauges::resident();
                work(7 + 1000 * number, each / 10);
                (keep, filled)
            };
            let begin = || (Usage::now(), Instant::now());
            let ((usage, start), kept) = pool::prepared(threads, prepare, begin, |number, keep| {
                work(100 + number, each);
                keep
            });
            let took = start.elapsed();
            let (keep, filled): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
            let count = (each * threads) as f64;
            out.emit("ns_per_op", took.as_nanos() as f64 / count, "ns");
            out.emit("cpu_ns_per_op", Usage::now()?.since(usage?, count).cpu_ns, "ns");
            if round == 0 && threads == 1 {
                let filled = filled.into_iter().sum::<Result<f64>>()?;
                out.emit("bytes_per_timer", (filled - resident) / pending as f64, "B");
            }
            drop(keep);
        }
    }
    Ok(())
}

/// Timers that wait, each in an allocation of its own, as in a task that awaits it.
fn fill<S: Timers>(timers: &S, count: u64, seed: u64) -> Vec<Pin<Box<S::Timer>>> {
    let _entered = timers.enter();
    let mut rng = Rng::new(seed);
    let mut keep = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let mut timer = Box::pin(timers.sleep(rng.far()));
        assert!(is_pending(timer.as_mut()), "it is far");
        keep.push(timer);
    }
    keep
}

fn make_and_drop<S: Timers>(timers: &S, seed: u64, count: u64) {
    let _entered = timers.enter();
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let timer = pin!(timers.sleep(rng.far()));
        assert!(is_pending(timer), "it is far");
    }
}

#[inline]
fn is_pending<F: Future>(future: Pin<&mut F>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// A waker that notes when it is called.
struct Noting {
    slot: Slot,
    due: Instant,
    done: &'static Done,
}

impl Wake for Noting {
    fn wake(self: Arc<Self>) {
        self.slot.note(self.due);
        self.done.hit();
    }
}

fn late<S: Timers>(name: &str, args: &Args) -> Result<()> {
    let (count, ms) = (args.number("N", 400)?, args.number("ms", 4000)?);
    let timers = S::new(2);
    let _entered = timers.enter();
    // The threads of some begin with the first timer.
    let _first = fill(&timers, 1, 1);
    let (log, done) = (LateLog::new(count), Done::new(count));
    let usage = Usage::now()?;
    let mut keep = Vec::with_capacity(count as usize);
    for (index, due) in (0..).zip(instants(count, ms)) {
        let mut timer = Box::pin(timers.sleep_until(due));
        let waker = Waker::from(Arc::new(Noting { slot: log.slot(index), due, done }));
        let polled = timer.as_mut().poll(&mut Context::from_waker(&waker));
        ensure!(matches!(polled, Poll::Pending), "it was due before all had been made");
        keep.push(timer);
    }
    done.wait();
    let used = Usage::now()?.since(usage, count as f64);
    let out = Emitter::new(name, "W17", &[("N", count), ("ms", ms)]);
    out.distribution("late", log.nanos());
    out.emit("cpu_us_per_timer", used.cpu_ns / 1e3, "us");
    out.emit("vcsw_per_timer", used.sleeps, "1");
    drop(keep);
    Ok(())
}
