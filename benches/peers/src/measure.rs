//! The measuring program: one workload on one peer, in a process of its own.
//!
//! `measure <peer> <workload> key=value…` prints one [`Measurement`](crate::measurement) for each
//! figure and ends. The programs in the other languages have the same command line.
//!
//! [`peer`] is the interface of all peers, [`peers`] implements it, [`workloads`] drives it.
//! [`queue`] and [`queues`] are the same for peers that have a delay queue, and [`calendar`] is for those
//! that have a calendar, and [`timers`] for those whose timers are awaited. The workloads share the other modules.

mod args;
mod calendar;
mod done;
mod emit;
mod gauges;
mod late;
mod machine;
mod oneshot;
mod peer;
mod peers;
mod pending;
mod periodic;
mod pool;
mod queue;
mod queues;
mod rng;
mod stopwatch;
mod timers;
mod workloads;

use anyhow::{Result, bail};

use self::args::Args;
use crate::roster::{MACHINE, OURS};

/// This is off except while a workload counts, which it never does while it measures time.
#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Runs one workload on one peer.
pub(crate) fn run(peer: &str, workload: &str, args: &[String]) -> Result<()> {
    let args = Args::parse(args)?;
    if workload == workloads::DELAY_QUEUES {
        return match peer {
            OURS => workloads::run_delay_queue::<queues::Punctual>(peer, &args),
            "delayqueue" => workloads::run_delay_queue::<queues::TokioUtil>(peer, &args),
            _ => bail!("no delay queue of this program is called {peer}"),
        };
    }
    if workload == workloads::CALENDARS {
        return match peer {
            OURS => workloads::run_calendar::<calendar::Punctual>(peer, &args),
            "croner" => workloads::run_calendar::<calendar::Croner>(peer, &args),
            "cron" => workloads::run_calendar::<calendar::Cron>(peer, &args),
            _ => bail!("no calendar of this program is called {peer}"),
        };
    }
    if workload == workloads::TIMERS {
        return match peer {
            OURS => workloads::run_timers::<timers::Punctual>(peer, &args),
            "tokio" => workloads::run_timers::<timers::Tokio>(peer, &args),
            "async-io" => workloads::run_timers::<timers::AsyncIo>(peer, &args),
            "futures-timer" => workloads::run_timers::<timers::FuturesTimer>(peer, &args),
            _ => bail!("no timers of this program are called {peer}"),
        };
    }
    match peer {
        OURS => workloads::run::<peers::Punctual>(peer, workload, &args),
        "scheduled-thread-pool" => {
            workloads::run::<peers::ScheduledThreadPool>(peer, workload, &args)
        }
        "tokio" => workloads::run::<peers::Tokio>(peer, workload, &args),
        "naive" => workloads::run::<peers::Naive>(peer, workload, &args),
        "timer" => workloads::run::<peers::Timer>(peer, workload, &args),
        "delayqueue" => workloads::run::<peers::DelayQueue>(peer, workload, &args),
        "async-io" => workloads::run::<peers::AsyncIo>(peer, workload, &args),
        "hhwt" => workloads::run::<peers::Hhwt>(peer, workload, &args),
        MACHINE => machine::run(workload, &args),
        _ => bail!("no peer of this program is called {peer}"),
    }
}
