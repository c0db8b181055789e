//! Stopping an executor: each way to do it, what each keeps and cancels, and waiting for the end.

mod awaiting;
mod policies;
mod shutdown_now;
mod shutdown_within;
mod termination;
mod ways_to_stop;
