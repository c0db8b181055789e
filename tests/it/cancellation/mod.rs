//! Cancelling: a task that waits, one that runs (which is asked through its token), and when
//! closures and results are dropped.

mod cancel;
mod drops;
mod tokens;
