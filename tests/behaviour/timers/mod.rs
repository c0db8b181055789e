//! Timers to await: sleep, interval and timeout.

mod intervals;
mod runtimes;
mod sleeping;
mod stopping;
mod time_limits;
