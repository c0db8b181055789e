//! Jobs on several machines: processes of their own, on one server, that are killed, stopped and cut off.
//!
//! Each test is short by default. `PUNCTUAL_JOBS=long` makes each as long as `docs/tested.md`
//! says.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests have threads of their own, fail by panicking, and say what they measured"
)]

mod backlog;
mod batches;
mod claims;
mod clocks;
mod coming;
mod encodings;
#[cfg(feature = "tls")]
mod encrypted;
mod faults;
mod keys;
mod kinds;
mod limits;
mod logs;
mod looking;
mod machine;
mod opening;
mod outages;
mod past;
mod pausing;
mod periodic;
mod pinned;
mod priorities;
mod refusals;
mod refused;
mod results;
mod rights;
mod runs;
mod schedules;
#[path = "../support/mod.rs"]
mod support;
mod telling;
mod transactions;
mod versions;
mod windows;

/// Returns `long` for a long run and `short` otherwise.
fn size<T>(short: T, long: T) -> T {
    if std::env::var_os("PUNCTUAL_JOBS").is_some_and(|it| it == "long") { long } else { short }
}
