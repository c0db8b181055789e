//! The parts of tests with a real server: the server, a pooler before it, and replicas that are
//! processes of their own.
//!
//! A missing program is a failure and no reason to skip: `ci/beyond.sh` installs what is needed.

#![allow(dead_code, reason = "not each test binary uses all of it")]

pub(crate) mod pgbouncer;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod replica;
pub(crate) mod server;

use std::time::{Duration, Instant};

/// How long anything may take that has to happen; only a failing test waits that long.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Returns how many times as long a test is to run: once, or with `PUNCTUAL_GATE=long` as often as `long` says.
pub(crate) fn times(long: u32) -> u32 {
    if std::env::var_os("PUNCTUAL_GATE").is_some_and(|it| it == "long") { long } else { 1 }
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Returns the machine's wall clock in microseconds since 1970, also in a process with another clock.
pub(crate) fn real_micros() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}
