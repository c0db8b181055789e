//! Behaviour through the public API: the control of tasks, and refused tasks. Each topic has a folder, and each family of
//! properties a file.
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
#![allow(missing_docs, unreachable_pub, reason = "no other crate uses a test")]

mod control;
mod rejection;
#[allow(dead_code, reason = "each binary uses a part of it")]
mod rounds;
#[allow(dead_code, reason = "each binary uses a part of it")]
mod support;
