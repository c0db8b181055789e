//! Behaviour through the public API: executors and what they are made of, groups, delay queues, the example programs, and
//! the types. The head of `tasks.rs`, which has the other topics, holds here as well.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have threads of their own, and fail by panicking"
)]
#![allow(missing_docs, unreachable_pub, reason = "no other crate uses a test")]

mod auto_traits;
mod delay_queue;
mod driven;
mod example_programs;
mod group_limits;
mod groups;
mod load;
mod observation;
mod pictures;
mod reentrancy;
#[allow(dead_code, reason = "each binary uses a part of it")]
mod rounds;
mod shutdown;
#[allow(dead_code, reason = "each binary uses a part of it")]
mod support;
mod workers;
