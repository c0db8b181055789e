//! Tasks that are not admitted: the bound, the policies, a handler's choices, and refusals around a
//! shutdown.

mod around_a_shutdown;
mod blocking;
mod bound;
pub mod policies;
pub mod rejected_tasks;
