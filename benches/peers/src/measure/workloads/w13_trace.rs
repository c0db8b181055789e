//! W13: the mix of calls that a service makes. `S` threads each make `N` operations, in bursts of
//! `burst` every `us`. One operation in ten schedules a task that runs after 1 to 20 ms; the others
//! schedule a timeout of 30 s. One timeout in a hundred operations stays; the others are cancelled at most
//! 100 operations later. 100 periodic tasks of 10 ms run beside.
//!
//! Between the bursts the processors are idle. At full speed three submitters would take them away
//! from the workers, and lateness would show how the system shares processors.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::measure::{
    args::Args,
    done::Done,
    emit::Emitter,
    late::LateLog,
    peer::Peer,
    periodic::{Periodic, Plan},
    pool::{self, Pool},
    rng::Rng,
    stopwatch::{self, Stopwatch},
};

/// A timeout waits for its cancellation in one of so many buckets: a power of two above 100.
const BUCKETS: usize = 128;

/// One operation of so many schedules a task that runs.
const ONE_SHOT: u64 = 10;

/// One operation of so many schedules a timeout that stays. It is not one with a task that runs.
const STAYS: u64 = 100;

pub(super) fn run<P: Peer>(name: &str, args: &Args) -> Result<()> {
    let (operations, submitters) = (args.number("N", 100_000)?, args.number("S", 3)?);
    let (burst, us) = (args.number("burst", 32)?, args.number("us", 1000)?);
    let workers = (args.number("W", 2)? as usize).min(P::MAX_WORKERS);
    let pool = Pool::<P>::started(workers)?;
    let peer = &pool.peer;
    let warm_up = Pace { operations: operations / 10, burst, period: Duration::ZERO };
    Submitter::new(warm_up, Done::new(u64::MAX)).submit(peer, 7);

    let pace = Pace { operations, burst, period: Duration::from_micros(us) };
    let done = Done::new(submitters * operations.div_ceil(ONE_SHOT));
    let ms = operations / burst * us / 1000;
    let periodic = Periodic::start(peer, Plan { tasks: 100, us: 10_000, ms, reports: false });
    thread::sleep(periodic.base.saturating_duration_since(Instant::now()));
    let (_, ended) =
        pool::together(submitters, |number| Submitter::new(pace, done).submit(peer, 50 + number));
    done.wait();

    let params = [("S", submitters), ("W", workers as u64), ("N", operations)];
    let out = Emitter::new(name, "W13", &params);
    let (mut schedules, mut cancels, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for submitter in ended {
        late.extend(submitter.late.nanos());
        schedules.push(submitter.schedules);
        cancels.push(submitter.cancels);
    }
    out.distribution("schedule", stopwatch::all(schedules));
    out.distribution("cancel", stopwatch::all(cancels));
    out.distribution("late", late);
    out.distribution("periodic_late", periodic.nanos());
    pool.finish()?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Pace {
    operations: u64,
    burst: u64,
    /// The time from one burst to the next.
    period: Duration,
}

/// One submitting thread's calls, and what they have left behind.
struct Submitter<H> {
    pace: Pace,
    done: &'static Done,
    late: LateLog,
    schedules: Stopwatch,
    cancels: Stopwatch,
    buckets: Vec<Vec<H>>,
    /// The timeouts that stay: to drop a handle cancels in some peers.
    staying: Vec<H>,
}

impl<H> Submitter<H> {
    fn new(pace: Pace, done: &'static Done) -> Self {
        let mut buckets = Vec::new();
        buckets.resize_with(BUCKETS, || Vec::with_capacity(8));
        let watch = || Stopwatch::new(1, pace.operations);
        let late = LateLog::new(pace.operations);
        let (schedules, cancels) = (watch(), watch());
        Self { pace, done, late, schedules, cancels, buckets, staying: Vec::new() }
    }

    fn submit<P: Peer<Handle = H>>(mut self, peer: &P, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut next = Instant::now();
        for now in 0..self.pace.operations {
            if now.is_multiple_of(ONE_SHOT) {
                self.one_shot(peer, now, Duration::from_micros(1000 + rng.below(19_000)));
            } else {
                self.timeout(peer, now, rng.below(101));
            }
            self.cancel_those_of(peer, now);
            if (now + 1).is_multiple_of(self.pace.burst) {
                next += self.pace.period;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        }
        for timeout in self.buckets.drain(..).flatten() {
            peer.cancel(timeout);
        }
        self
    }

    fn one_shot<P: Peer<Handle = H>>(&mut self, peer: &P, now: u64, delay: Duration) {
        let (slot, done) = (self.late.slot(now), self.done);
        let begin = self.schedules.begin();
        let due = begin.unwrap_or_else(Instant::now) + delay;
        peer.schedule_detached(delay, move || {
            slot.note(due);
            done.hit();
        });
        self.schedules.end(begin);
    }

    fn timeout<P: Peer<Handle = H>>(&mut self, peer: &P, now: u64, later: u64) {
        let begin = self.schedules.begin();
        let timeout = peer.schedule(Duration::from_secs(30), pool::tiny());
        self.schedules.end(begin);
        if now % STAYS == STAYS - 1 {
            self.staying.push(timeout);
        } else {
            self.buckets[(now + later) as usize % BUCKETS].push(timeout);
        }
    }

    fn cancel_those_of<P: Peer<Handle = H>>(&mut self, peer: &P, now: u64) {
        for timeout in self.buckets[now as usize % BUCKETS].drain(..) {
            let begin = self.cancels.begin();
            peer.cancel(timeout);
            self.cancels.end(begin);
        }
    }
}
