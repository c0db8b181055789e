//! Code around the runs: hooks, decorators, the termination hook, and panics in each of them.

mod around_runs;
pub mod decoration;
mod decorator_panics;
mod hook_panics;
mod terminated;
