//! The layers: what only some tasks have, one file and one type each, and the order in which they are asked.
//!
//! At which points a layer is asked, and what it may answer, is in [`task::layer`](crate::task::Layer). A task and the
//! queue name none of them; a layer knows the task, and no other layer. What a handle asks of a task that has a layer
//! (to move it, to pause it, to enter its group) is in the layer's file, too.
//!
//! # Another layer
//!
//! It is a file with a type that implements [`Layer`](crate::task::Layer), and a line in the [order](Order). Where it
//! stands decides what it comes before: a layer that may refuse a run stands before those that have something to give
//! back. `layers/tests/rate.rs` is one more, for the tests: at most so many runs in a minute. The seam is not public:
//! what is called under a lock must not be the user's. A [gate](crate::gate) is the layer that asks the user.

mod calls;
mod control;
mod gate;
mod group;
mod limit;
mod membership;
#[cfg(all(test, not(any(shuttle, loom))))]
#[path = "layers/tests/rate.rs"]
mod rate;
#[cfg(feature = "histograms")]
mod recorded;
mod wall;

#[cfg(feature = "histograms")]
pub(crate) use self::recorded::Recorded;
pub(crate) use self::{
    calls::Pace,
    control::{Change, Changed, body_begins},
    gate::Gated,
    group::{Counted, Dispatcher, Entrant, GroupLimits, GroupState, Joining, Keeps, ListedMember},
    membership::Membership,
    wall::OnWall,
};

/// The order, written once. A run that is beside the schedule is known as such before it is asked about. Who asks for
/// a permit holds it during a question, so the group comes before the gate.
enum Order {
    Limit,
    Control,
    Wall,
    Membership,
    Gate,
    #[cfg(all(test, not(any(shuttle, loom))))]
    Rate,
    #[cfg(feature = "histograms")]
    Recorded,
}
