//! The limits of the machine: no executor can be better than these.
//!
//! The most telling figure is the lateness of a thread that only waits for an instant. It waits for
//! the same instants as [W4](super::workloads), one after the other. Linux groups timers to save
//! power: it lets a thread sleep up to its "timer slack" longer, 50 µs unless the thread asks for
//! less.

use std::{
    hint::black_box,
    num::NonZeroU64,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use parking_lot::Mutex;
use rustix::thread::set_current_timer_slack;

use crate::roster::MACHINE;

use super::{
    args::Args,
    done::Done,
    emit::Emitter,
    late::nanos_after,
    pool,
    workloads::{each_timed, instants},
};

pub(super) fn run(workload: &str, args: &Args) -> Result<()> {
    if workload != "limits" {
        bail!("the machine has one workload, limits");
    }
    waits(args.number("N", 400)?, args.number("ms", 4000)?)?;
    wakes(args.number("wakes", 2000)?)?;
    allocations(args.number("allocations", 5_000_000)?);
    calls(args.number("calls", 3_000_000)?);
    Ok(())
}

/// How late a bare wait with a time limit ends, with the least slack and with the default.
fn waits(count: u64, ms: u64) -> Result<()> {
    let out = Emitter::new(MACHINE, "limits", &[("N", count), ("ms", ms)]);
    for (name, slack) in [("wait_1ns", NonZeroU64::new(1)), ("wait_default", None)] {
        let waiter = thread::spawn(move || -> Result<Vec<i64>> {
            set_current_timer_slack(slack)?;
            let mut instants: Vec<_> = instants(count, ms).collect();
            instants.sort_unstable();
            Ok(instants.into_iter().map(wait_until).collect())
        });
        out.distribution(name, waiter.join().expect("it does not panic")?);
    }
    Ok(())
}

/// Waits with a futex and a time limit. Returns how late the wait ended.
fn wait_until(due: Instant) -> i64 {
    loop {
        let now = Instant::now();
        if now >= due {
            return nanos_after(due, now);
        }
        thread::park_timeout(due - now);
    }
}

/// The cost of waking a sleeping thread: for the waking thread, and until the other one runs.
fn wakes(count: u64) -> Result<()> {
    let base = Instant::now();
    let nanos = move || base.elapsed().as_nanos() as i64;
    let called: &AtomicI64 = Box::leak(Box::default());
    let (send, receive) = std::sync::mpsc::channel();
    let sleeper = thread::spawn(move || {
        for _ in 0..count {
            while called.load(Ordering::Acquire) == 0 {
                thread::park();
            }
            let now = nanos();
            let sent = send.send(now - called.swap(0, Ordering::AcqRel));
            sent.expect("it is read to the end");
        }
    });
    let mut cost = Vec::new();
    let mut latency = Vec::new();
    for _ in 0..count {
        thread::sleep(Duration::from_micros(200));
        let now = nanos();
        called.store(now, Ordering::Release);
        sleeper.thread().unpark();
        cost.push(nanos() - now);
        latency.push(receive.recv()?);
    }
    sleeper.join().expect("it does not panic");
    let out = Emitter::new(MACHINE, "limits", &[]);
    out.distribution("wake", latency);
    out.distribution("wake_call", cost);
    Ok(())
}

/// How slow the slowest of many allocations is, of about the size of a pending task: beside W16.
fn allocations(count: u64) {
    let mut boxes: Vec<Option<Box<[u64; 12]>>> = Vec::new();
    boxes.resize_with(count as usize, || None);
    let nanos = each_timed(count, |index| boxes[index] = Some(Box::new([index as u64; 12])));
    Emitter::new(MACHINE, "limits", &[]).distribution("allocation", nanos);
}

/// The operations that executors consist of.
fn calls(count: u64) {
    let out = Emitter::new(MACHINE, "limits", &[]);
    let emit = |name, took: Duration| {
        out.emit(name, took.as_nanos() as f64 / count as f64, "ns");
    };
    emit("instant_now", each(count, || _ = black_box(Instant::now())));

    let done = Done::new(u64::MAX);
    emit(
        "boxed_closure",
        each(count, || {
            let task: Box<dyn FnOnce() + Send> = Box::new(move || done.hit());
            black_box(task)();
        }),
    );

    let lock = Mutex::new(0_u64);
    emit("lock", each(count, || *lock.lock() += 1));
    emit("lock_2_threads", contended(count, || *lock.lock() += 1));
    let counter = AtomicU64::new(0);
    let add = || _ = counter.fetch_add(1, Ordering::AcqRel);
    emit("fetch_add", each(count, add));
    emit("fetch_add_2_threads", contended(count, add));
}

fn each(count: u64, mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..count).for_each(|_| call());
    start.elapsed()
}

/// Two threads share the calls.
fn contended(count: u64, call: impl Fn() + Sync) -> Duration {
    let (start, _) = pool::together(2, |_| _ = each(count / 2, &call));
    start.elapsed()
}
