//! The frame of the workloads whose threads call while many tasks are pending: W1, W11, W12 and W14
//! differ in the calls only.
//!
//! Each thread schedules its share of the pending tasks itself, and so finds them where it calls
//! afterwards: a peer may keep what a thread has scheduled in a part of the queue for that thread. With
//! `filled=elsewhere` one other thread schedules them all.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{
    args::Args,
    emit::Emitter,
    gauges::{self, Usage},
    peer::Peer,
    pool,
    rng::Rng,
};

/// How many tasks are pending, how many threads call, and how often they do in all.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) pending: u64,
    pub(super) threads: u64,
    pub(super) operations: u64,
    /// True if another thread schedules what is pending.
    is_filled_elsewhere: bool,
}

/// The work of one thread: its own random numbers keep the threads apart.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// The number of the thread, from 0.
    pub(super) number: u64,
    pub(super) seed: u64,
    pub(super) count: u64,
}

impl Load {
    /// Every combination of the lists `P` and `T`, with `N` operations each.
    pub(super) fn all(
        args: &Args,
        pendings: &str,
        threads: &str,
        operations: u64,
    ) -> Result<Vec<Self>> {
        let operations = args.number("N", operations)?;
        let is_filled_elsewhere = match args.text("filled", "here") {
            "here" => false,
            "elsewhere" => true,
            place => bail!("nothing is filled {place}"),
        };
        let mut loads = Vec::new();
        for pending in args.list("P", pendings)? {
            for threads in args.list("T", threads)? {
                loads.push(Self { pending, threads, operations, is_filled_elsewhere });
            }
        }
        Ok(loads)
    }

    pub(super) fn emitter<'a>(&self, peer: &'a str, workload: &str) -> Emitter<'a> {
        let params = [("P", self.pending), ("T", self.threads), ("N", self.operations)];
        Emitter::new(peer, workload, &params)
    }

    /// Each thread schedules its share of the pending tasks, and keeps the handles until all is over.
    /// Then all do the operations.
    pub(super) fn measure<P: Peer, R: Send>(
        &self,
        peer: &P,
        work: &(impl Fn(Turn) -> R + Sync),
    ) -> Result<Cost<(Vec<P::Handle>, R)>> {
        let fill = |turn: Turn| pool::fill_with(peer, &mut Rng::new(turn.seed), turn.count);
        if !self.is_filled_elsewhere {
            return self.measure_filled(peer, &fill, work);
        }
        let all = Turn { number: 0, seed: 1, count: self.pending };
        let filled = thread::scope(|scope| scope.spawn(|| fill(all)).join());
        let cost = self.measure_filled(peer, &|_| Vec::new(), work);
        drop(filled.expect("no thread panics"));
        cost
    }

    /// Each thread does `fill` for its share of the pending tasks, and a tenth of its operations to
    /// warm up. Then all threads do all operations, and begin together. The results of `fill` come back
    /// beside those of the operations.
    pub(super) fn measure_filled<P: Peer, S: Send, R: Send>(
        &self,
        peer: &P,
        fill: &(impl Fn(Turn) -> S + Sync),
        work: &(impl Fn(Turn) -> R + Sync),
    ) -> Result<Cost<(S, R)>> {
        let each = self.operations / self.threads;
        let prepare = |number| {
            let share = pool::share(self.pending, self.threads, number);
            let filled = fill(Turn { number, seed: 1 + 1000 * number, count: share });
            work(Turn { number, seed: 7 + 1000 * number, count: each / 10 });
            filled
        };
        let begin = || {
            peer.settle(self.pending);
            (gauges::resident(), Usage::now(), Instant::now())
        };
        let (begun, results) = pool::prepared(self.threads, prepare, begin, |number, filled| {
            (filled, work(Turn { number, seed: 100 + number, count: each }))
        });
        let (resident, usage, start) = begun;
        let submitted = start.elapsed();
        peer.settle(self.pending);
        let settled = start.elapsed();
        let count = (each * self.threads) as f64;
        let cpu_ns = Usage::now()?.since(usage?, count).cpu_ns;
        Ok(Cost { count, submitted, settled, cpu_ns, resident: resident?, results })
    }
}

/// The cost of all operations.
pub(super) struct Cost<R> {
    /// The operations of all threads together.
    pub(super) count: f64,
    submitted: Duration,
    settled: Duration,
    cpu_ns: f64,
    /// The memory of the process when the threads began.
    pub(super) resident: f64,
    /// The result of each thread.
    pub(super) results: Vec<R>,
}

impl<R> Cost<R> {
    pub(super) fn emit(&self, out: &Emitter<'_>) {
        let per_op = |took: Duration| took.as_nanos() as f64 / self.count;
        out.emit("ns_per_op", per_op(self.settled), "ns");
        out.emit("ns_per_op_submit", per_op(self.submitted), "ns");
        out.emit("cpu_ns_per_op", self.cpu_ns, "ns");
    }
}
