//! Behaviour through the public API: what a task does, from its submission to its end. Each topic has a folder, and each family of
//! properties a file. The other topics are in `executors.rs`: one binary of all would take rustc 2.7 GB.
//!
//! Timed behaviour is tested on the manual clock, exactly; tests on the system clock assert lower bounds and order only.
//! The ids in the comments (SO-001, F1, G1, M1) are those of `docs/evidence`: `docs/testing.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have threads of their own, and fail by panicking"
)]
#![allow(missing_docs, unreachable_pub, reason = "no other crate uses a test")]

mod cancellation;
mod clock;
mod control;
mod futures;
mod gates;
mod hooks;
mod panics;
mod periodic;
mod rejection;
#[allow(dead_code, reason = "each binary uses a part of it")]
mod rounds;
mod submission;
#[allow(dead_code, reason = "each binary uses a part of it")]
mod support;
mod timeouts;
mod timers;
