//! The same programs on this crate and on the original, which have to do the same: the same events in the
//! same order, the same number of runs, the same panics and names, nothing early. Each test says what is
//! expected of both; `differences` has what is not the same.

#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and these crates are not the core"
)]
#![cfg(target_os = "linux")]

mod differences;
mod dropped;
mod order;
mod panics;
#[path = "../../../../tests/behaviour/support/patience.rs"]
mod patience;
mod repeated;
mod subject;
mod threads;
