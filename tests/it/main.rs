//! Behaviour through the public API, in one binary: one file for each family of properties.
//!
//! Timed behaviour is tested on the manual clock, exactly; tests on the system clock assert lower
//! bounds only. The ids in the comments (SO-001 …) are those of `docs/conformance.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have threads of their own, and fail by panicking"
)]
#![allow(missing_docs, unreachable_pub, reason = "there is nobody to reach them")]

mod awaiting;
mod cancellation;
mod construction;
mod drops;
mod factories;
mod fixed_delay;
mod fixed_rate;
mod futures;
mod handles;
mod idle;
mod inspection;
mod limits;
mod manual_clock;
mod one_shot;
mod order;
mod overflow;
mod panics;
mod punctuality;
mod reentrancy;
mod retiring;
mod shutdown_now;
mod shutdown_policies;
mod sizing;
mod statistics;
mod support;
mod termination;
mod tokens;
mod tracing_events;
mod ways_to_stop;
