//! The gate against a real server. The numbers G1 to G8 are those of the table in `docs/tested.md`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, and what they are made of"
)]

mod delays;
mod failures;
mod frozen;
mod guards;
mod missed;
mod opening;
mod outages;
mod poolers;
mod rows;
mod runner;
mod server_clock;
mod set_back;
#[path = "../support/mod.rs"]
mod support;
mod ticks;
mod waiting;
