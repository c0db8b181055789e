//! What can be observed of an executor: statistics, the pending tasks, `Debug` and `Display`, and
//! events for `tracing`.

mod pending_tasks;
mod printing;
mod statistics;
mod tracing_events;
