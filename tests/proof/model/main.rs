//! The promises of the executor under a model checker: see `docs/testing.md`.
//!
//! Empty without `--cfg shuttle`. The clock is a manual one, so nothing is timed by chance.

#![cfg(shuttle)]
#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod driven;
mod gates;
mod groups;
mod observing;
mod services;
mod shutdown;
mod support;
mod tasks;
mod timers;
mod waiting;
