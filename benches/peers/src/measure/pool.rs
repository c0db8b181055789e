//! Operations on a pool that the workloads share.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{gauges, peer::Peer, rng::Rng};

/// A peer's pool, and how many threads the process had before.
pub(super) struct Pool<P> {
    pub(super) peer: P,
    threads_before: u64,
}

impl<P: Peer> Pool<P> {
    pub(super) fn new(workers: usize) -> Result<Self> {
        let threads_before = gauges::threads()?;
        Ok(Self { peer: P::new(workers), threads_before })
    }

    /// A pool that has run a task, so that its threads have begun.
    pub(super) fn started(workers: usize) -> Result<Self> {
        let pool = Self::new(workers)?;
        pool.peer.wait(pool.peer.submit(|| 1));
        Ok(pool)
    }

    /// Shuts down, and waits until the threads are gone. Returns how long it took.
    pub(super) fn finish(self) -> Result<Duration> {
        let start = Instant::now();
        self.peer.shutdown_now();
        while gauges::threads()? > self.threads_before {
            ensure!(start.elapsed() < Duration::from_secs(20), "its threads do not end");
            thread::sleep(Duration::from_micros(100));
        }
        Ok(start.elapsed())
    }
}

/// The task of all workloads that measure calls. It captures a word, so that a boxed closure is
/// an allocation.
pub(super) fn tiny() -> impl FnOnce() + Send + 'static {
    static SINK: AtomicU64 = AtomicU64::new(0);
    let sink = &SINK;
    move || {
        sink.fetch_add(1, Ordering::Relaxed);
    }
}

/// Schedules this many tasks for far ahead.
pub(super) fn fill<P: Peer>(peer: &P, count: u64) -> Vec<P::Handle> {
    fill_with(peer, &mut Rng::new(1), count)
}

/// The same with these random numbers, for a thread that has a share of the tasks.
pub(super) fn fill_with<P: Peer>(peer: &P, rng: &mut Rng, count: u64) -> Vec<P::Handle> {
    let mut handles = Vec::with_capacity(count as usize);
    handles.extend((0..count).map(|_| peer.schedule(rng.far(), tiny())));
    handles
}

/// Runs `body` on this many threads, which get their number and begin together. Returns when they
/// began, and their results, after they have ended.
pub(super) fn together<R: Send>(threads: u64, body: impl Fn(u64) -> R + Sync) -> (Instant, Vec<R>) {
    let (start, results) = prepared(threads, |_| (), Instant::now, |number, ()| body(number));
    (start, results)
}

/// The same, and each thread does `prepare` first, whose result its `body` gets. This thread does
/// `begin` when all are ready, and its result comes back. A peer whose queue has a part for each
/// thread finds there, when it is measured, what the thread itself has scheduled.
pub(super) fn prepared<S, B, R: Send>(
    threads: u64,
    prepare: impl Fn(u64) -> S + Sync,
    begin: impl FnOnce() -> B,
    body: impl Fn(u64, S) -> R + Sync,
) -> (B, Vec<R>) {
    let ready = Barrier::new(threads as usize + 1);
    let go = Barrier::new(threads as usize + 1);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|number| {
                let (ready, go, prepare, body) = (&ready, &go, &prepare, &body);
                scope.spawn(move || {
                    let state = prepare(number);
                    ready.wait();
                    go.wait();
                    body(number, state)
                })
            })
            .collect();
        ready.wait();
        let begun = begin();
        go.wait();
        let made = handles.into_iter().map(|handle| handle.join().expect("it does not panic"));
        (begun, made.collect())
    })
}

/// How many of `count` the thread of this number has, of so many threads.
pub(super) fn share(count: u64, threads: u64, number: u64) -> u64 {
    count / threads + u64::from(number < count % threads)
}
