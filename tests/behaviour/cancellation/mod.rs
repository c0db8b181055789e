//! Cancelling pending and running tasks (a running task is asked through its token), and when
//! closures and results are dropped.

mod cancel;
mod drops;
mod tokens;
