//! Groups of tasks: how many of them run at once, in which order, and what is done with all of them.

mod concurrency;
mod control;
mod counting;
mod endings;
mod executor_end;
mod gates;
mod limits;
mod pauses;
mod room;
mod shutdown_steps;
mod support;
