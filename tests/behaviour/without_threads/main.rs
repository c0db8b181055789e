//! The rooms of `tests/behaviour` once more, on executors that a caller drives: `ci/driven.sh`.
//!
//! The very same files are compiled into this binary, and `punctual` means this crate here: everything of the real
//! one, with a stand-in for the executor and its builder ([`stand_in`]). An executor that is built with one
//! worker, or without saying how many, is a `DrivenExecutor` in a thread that belongs to the test. All others have
//! threads of their own as always: those with more workers, those whose settings are about threads, and those
//! of the tests in [`with_threads`], which lists why.
//!
//! Left out are the rooms `delay_queue`, which has no executor, and `driven`, which needs no stand-in.

#![allow(warnings, clippy::all, reason = "they are linted where they belong")]

extern crate punctual as real;
extern crate self as punctual;

pub use real::*;
pub use stand_in::{Builder, ScheduledThreadPoolExecutor};

mod stand_in;
mod with_threads;

#[path = "../cancellation/mod.rs"]
mod cancellation;
#[path = "../clock/mod.rs"]
mod clock;
#[path = "../control/mod.rs"]
mod control;
#[path = "../futures/mod.rs"]
mod futures;
#[path = "../gates/mod.rs"]
mod gates;
#[path = "../groups/mod.rs"]
mod groups;
#[path = "../hooks/mod.rs"]
mod hooks;
#[path = "../load/mod.rs"]
mod load;
#[path = "../observation/mod.rs"]
mod observation;
#[path = "../panics/mod.rs"]
mod panics;
#[path = "../periodic/mod.rs"]
mod periodic;
#[path = "../reentrancy/mod.rs"]
mod reentrancy;
#[path = "../rejection/mod.rs"]
mod rejection;
#[path = "../rounds.rs"]
mod rounds;
#[path = "../shutdown/mod.rs"]
mod shutdown;
#[path = "../submission/mod.rs"]
mod submission;
#[path = "../support/mod.rs"]
mod support;
#[path = "../timeouts/mod.rs"]
mod timeouts;
#[path = "../timers/mod.rs"]
mod timers;
#[path = "../workers/mod.rs"]
mod workers;
