//! Calls into an executor from its own tasks, hooks, wakers and drops, and the waits among them
//! that are refused.

mod calls_from_inside;
mod places;
mod waits_that_end;
