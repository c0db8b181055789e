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
    let mut rng = Rng::new(1);
    let mut handles = Vec::with_capacity(count as usize);
    handles.extend((0..count).map(|_| peer.schedule(rng.far(), tiny())));
    handles
}

/// Runs `body` on this many threads, which get their number and begin together. Returns when they
/// began, and their results, after they have ended.
pub(super) fn together<R: Send>(threads: u64, body: impl Fn(u64) -> R + Sync) -> (Instant, Vec<R>) {
    let barrier = Barrier::new(threads as usize + 1);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|number| {
                let (barrier, body) = (&barrier, &body);
                scope.spawn(move || {
                    barrier.wait();
                    body(number)
                })
            })
            .collect();
        let start = Instant::now();
        barrier.wait();
        let made = handles.into_iter().map(|handle| handle.join().expect("it does not panic"));
        (start, made.collect())
    })
}
