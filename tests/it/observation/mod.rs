//! What can be observed of an executor: statistics, the pending tasks, `Debug` and `Display`, and
//! events for `tracing`; the same as metrics and as data.

#[cfg(feature = "metrics")]
mod metrics;
mod pending_tasks;
mod printing;
#[cfg(feature = "serde")]
mod serialized;
mod statistics;
mod tracing_events;
