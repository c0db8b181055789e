//! Stopping an executor: each way to do so, which tasks each keeps and cancels, and waiting for
//! termination.

mod awaiting;
pub(crate) mod many_drained;
mod own_policies;
mod policies;
mod processes;
mod shutdown_now;
mod shutdown_within;
mod termination;
mod ways_to_stop;
