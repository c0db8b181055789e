//! The features that only some tasks have, and that decide about their runs: one file and one type each.
//!
//! [`task::extensions`](crate::task::Extensions) says when a task asks a feature, in which order, and what it may
//! answer. A feature knows the task, and as a rule no other feature: the wall clock asks the control whether an entry
//! stands for an extra run, and the control asks whether the task has a gate. What a handle does with such a task (move
//! it, pause it, enter its group) is in the feature's file, too. `feature/tests/rate.rs` is one for the tests: at most
//! so many runs in a minute. The seam is not public, since no user code may run under a lock. A [`gate`] is the feature
//! that asks the user.

mod at_shutdown;
mod control;
pub mod gate;
mod group;
mod limit;
mod parked;
#[cfg(all(test, not(any(shuttle, loom))))]
#[path = "feature/tests/rate.rs"]
mod rate;

#[cfg(all(test, not(any(shuttle, loom))))]
pub(crate) use self::rate::RateLimit;
pub(crate) use self::{
    at_shutdown::AtShutdown,
    control::{Change, Control},
    gate::{GateQuestion, Gated, HeldLease},
    group::{GroupState, Groups, Keeps, Membership, Roll},
    limit::{ExpiryQueue, TimeLimit, Timeouts, expire},
};
pub use self::{
    at_shutdown::ShutdownPolicy,
    group::{Group, GroupBuilder, GroupStatistics, GroupTermination},
};
