//! The frame of the workloads whose threads call while many tasks are pending: W1, W11, W12 and W14
//! differ in the calls only.

use std::time::Duration;

use anyhow::Result;

use super::{args::Args, emit::Emitter, gauges::Usage, peer::Peer, pool};

/// How many tasks are pending, how many threads call, and how often they do in all.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) pending: u64,
    pub(super) threads: u64,
    operations: u64,
}

/// What one thread has to do: its own random numbers keep the threads apart.
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
        let mut loads = Vec::new();
        for pending in args.list("P", pendings)? {
            for threads in args.list("T", threads)? {
                loads.push(Self { pending, threads, operations });
            }
        }
        Ok(loads)
    }

    pub(super) fn emitter<'a>(&self, peer: &'a str, workload: &str) -> Emitter<'a> {
        let params = [("P", self.pending), ("T", self.threads), ("N", self.operations)];
        Emitter::new(peer, workload, &params)
    }

    /// One thread does a tenth of the operations, after whatever has filled the queue.
    pub(super) fn warm_up<P: Peer, R>(&self, peer: &P, work: &impl Fn(Turn) -> R) {
        peer.settle(self.pending);
        work(Turn { number: 0, seed: 7, count: self.operations / 10 });
        peer.settle(self.pending);
    }

    /// All threads do all operations, and begin together.
    pub(super) fn measure<P: Peer, R: Send>(
        &self,
        peer: &P,
        work: &(impl Fn(Turn) -> R + Sync),
    ) -> Result<Cost<R>> {
        let each = self.operations / self.threads;
        let usage = Usage::now()?;
        let (start, results) = pool::together(self.threads, |number| {
            work(Turn { number, seed: 100 + number, count: each })
        });
        let submitted = start.elapsed();
        peer.settle(self.pending);
        let settled = start.elapsed();
        let count = (each * self.threads) as f64;
        let cpu_ns = Usage::now()?.since(usage, count).cpu_ns;
        Ok(Cost { count, submitted, settled, cpu_ns, results })
    }
}

/// What all operations took.
pub(super) struct Cost<R> {
    /// The operations of all threads together.
    pub(super) count: f64,
    submitted: Duration,
    settled: Duration,
    cpu_ns: f64,
    /// What each thread has returned.
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
