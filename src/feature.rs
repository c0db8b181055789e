//! The features that only some tasks have and that decide about their runs, a file and a type each.
//!
//! At which points of a task's life a feature is asked, in which order, and what it may answer, is in
//! [`task::extensions`](crate::task::Extensions). A feature knows the task, and as a rule no other feature: the wall clock
//! asks the control whether an entry stands for an extra run, and the control asks whether the task has a gate. What a
//! handle asks of a task that has a feature (to move it, to pause it, to enter its group) is in the feature's file, too.
//!
//! `feature/tests/rate.rs` is a fifth, for the tests: at most so many runs in a minute. The seam is not public, since what
//! is called under a lock must not be the user's. A [`gate`] is the feature that asks the user.

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
