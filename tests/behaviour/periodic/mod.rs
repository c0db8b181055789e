//! Periodic tasks: the grid of a fixed rate, the pause of a fixed delay, and how a periodic task
//! continues or ends after a panic.

#[cfg(feature = "cron")]
mod calendar;
mod failure_policy;
mod fixed_delay;
pub mod fixed_rate;
mod jitter;
mod missed;
mod overdue;
mod planned_wall;
mod repeat;
mod retry;
mod told_of_the_end;
mod tolerance;
mod triggers;
mod wall_clock;
