//! What can be observed of an executor: statistics, the pending tasks, `Debug` and `Display`,
//! events for `tracing`, and the statistics as metrics.

#[cfg(feature = "metrics")]
mod metrics;
mod pending_tasks;
mod printing;
mod statistics;
mod tracing_events;
