//! Observation of an executor: statistics, the pending tasks, `Debug` and `Display`, events
//! for `tracing`, observers, histograms, starvation and slow runs; the statistics as metrics.

#[cfg(feature = "tracing")]
mod collector;
#[cfg(feature = "histograms")]
mod histograms;
#[cfg(feature = "metrics")]
mod metrics;
mod observers;
mod pending_tasks;
mod printing;
mod slow_runs;
mod starvation;
mod statistics;
#[cfg(feature = "tracing")]
mod submitter_spans;
#[cfg(feature = "tracing")]
mod tracing_events;
