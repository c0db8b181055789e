//! Behaviour through the public API, in one binary: a folder for each topic, and in it a file for
//! each family of properties.
//!
//! Timed behaviour is tested on the manual clock, exactly; tests on the system clock assert lower
//! bounds only. The ids in the comments (SO-001, F1, G1, M1) are those of `docs/evidence`, whose
//! tables are generated from them: `docs/testing.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have threads of their own, and fail by panicking"
)]
#![allow(missing_docs, unreachable_pub, reason = "there is nobody to reach them")]

mod cancellation;
mod clock;
mod control;
mod delay_queue;
mod driven;
mod futures;
mod gates;
mod group_limits;
mod groups;
mod hooks;
mod load;
mod observation;
mod panics;
mod periodic;
mod reentrancy;
mod rejection;
mod rounds;
mod shutdown;
mod submission;
mod support;
mod timeouts;
mod timers;
mod workers;
