//! Behaviour through the public API, in one binary: one file for each family of properties.
//!
//! Timed behaviour is tested on the manual clock, exactly; tests on the system clock assert lower
//! bounds only. The ids in the comments are those of `docs/conformance.md` (SO-001 …) and of
//! `docs/faults.md` (F1 …).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have threads of their own, and fail by panicking"
)]
#![allow(missing_docs, unreachable_pub, reason = "there is nobody to reach them")]

mod auto_advance;
mod awaiting;
mod awaiting_the_end;
mod blocking;
mod bounded;
mod budgets;
mod cancellation;
mod combinations;
mod conservation;
mod construction;
mod decoration;
mod decorator_panics;
mod delay_queue_awaiting;
mod delay_queue_basics;
mod delay_queue_draining;
mod delay_queue_end;
mod delay_queue_foreign;
mod delay_queue_keys;
mod delay_queue_loops;
mod delay_queue_model;
#[cfg(feature = "stream")]
mod delay_queue_streams;
mod delay_queue_support;
mod delay_queue_types;
mod delay_queue_views;
mod delay_queue_waiting;
mod drops;
mod executor_model;
mod extremes;
mod factories;
mod fixed_delay;
mod fixed_rate;
mod futures;
mod handles;
mod hook_panics;
mod hooks;
mod idle;
mod inspection;
mod invoke;
mod invoke_refused;
mod limits;
mod limits_first;
mod load;
mod manual_clock;
mod one_shot;
mod order;
mod overflow;
mod panic_policy;
mod panic_reports;
mod panics;
mod places;
mod printing;
mod processes;
mod punctuality;
mod reentrancy;
mod refused_at_the_end;
mod rejected_tasks;
mod rejection;
mod relief;
mod retiring;
mod rounds;
mod shutdown_now;
mod shutdown_policies;
mod shutdown_within;
mod sizing;
mod statistics;
mod support;
mod task_set;
mod terminated_hook;
mod termination;
mod timekeeper;
mod timeout_races;
mod timeouts;
mod together;
mod together_in_tasks;
mod tokens;
mod told_of_the_end;
mod tracing_events;
mod waits_that_end;
mod ways_to_stop;
