//! The workloads, each written once for all peers.
//!
//! | | what is done |
//! |---|---|
//! | W1 | schedule a task and cancel it, while many others are pending |
//! | W2 | schedule many tasks |
//! | W3 | run many tasks: without delay, all at one instant, spread |
//! | W4 | run tasks at random instants, and see how late they are |
//! | W5 | run periodic tasks, and see how late they are |
//! | W6 | submit a task and wait for its result |
//! | W7 | timeouts that nearly never fire |
//! | W8 | shut down while many tasks are pending |
//! | W9 | fill a delay queue and empty it; insert and remove |
//! | W10 | ask a calendar for one moment after the other |
//! | W11 | put a task off, while many others are pending |
//! | W12 | cancel one of many pending tasks at random, and schedule another |
//! | W13 | the mix of calls that a service makes |
//! | W14 | as W1, with many more threads than cores |
//! | W15 | run many tasks that are due at exactly one instant |
//! | W16 | schedule many tasks, and see how slow the slowest call is |
//! | W17 | make timers to await and drop them; see how late those are that are awaited |

mod w10_calendars;
mod w11_reschedule;
mod w12_random_cancel;
mod w13_trace;
mod w14_many_threads;
mod w15_burst;
mod w16_growth;
mod w17_timers;
mod w1_cancel;
mod w2_schedule;
mod w3_run;
mod w4_late;
mod w5_periodic;
mod w6_ping;
mod w7_timeouts;
mod w8_shutdown;
mod w9_delay_queues;

pub(super) use self::{
    w4_late::instants, w9_delay_queues::run as run_delay_queue, w10_calendars::run as run_calendar,
    w16_growth::each_timed, w17_timers::run as run_timers,
};

use anyhow::{Result, bail};

use super::{args::Args, peer::Peer};

/// The workload that is not for executors, but for delay queues.
pub(super) const DELAY_QUEUES: &str = "w9";

/// The workload that is for calendars.
pub(super) const CALENDARS: &str = "w10";

/// The workload that is for timers to await.
pub(super) const TIMERS: &str = "w17";

/// Runs the workload on `P`, whose figures go under the name `peer`.
pub(super) fn run<P: Peer>(peer: &str, workload: &str, args: &Args) -> Result<()> {
    P::prepare();
    match workload {
        "w1" => w1_cancel::run::<P>(peer, args),
        "w2" => w2_schedule::run::<P>(peer, args),
        "w3" => w3_run::run::<P>(peer, args),
        "w4" => w4_late::run::<P>(peer, args),
        "w5" => w5_periodic::run::<P>(peer, args),
        "w6" => w6_ping::run::<P>(peer, args),
        "w7" => w7_timeouts::run::<P>(peer, args),
        "w8" => w8_shutdown::run::<P>(peer, args),
        "w11" => w11_reschedule::run::<P>(peer, args),
        "w12" => w12_random_cancel::run::<P>(peer, args),
        "w13" => w13_trace::run::<P>(peer, args),
        "w14" => w14_many_threads::run::<P>(peer, args),
        "w15" => w15_burst::run::<P>(peer, args),
        "w16" => w16_growth::run::<P>(peer, args),
        _ => bail!("no workload is called {workload}"),
    }
}
