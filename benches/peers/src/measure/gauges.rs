//! The system's figures on this process: processor time, context switches, memory, threads.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

/// The resources that all threads of the process have used so far.
#[derive(Clone, Copy)]
pub(super) struct Usage {
    cpu: Duration,
    /// Voluntary context switches: how often a thread went to sleep.
    sleeps: i64,
}

impl Usage {
    pub(super) fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        let cpu = Duration::from_micros(micros.unsigned_abs());
        Ok(Self { cpu, sleeps: usage.voluntary_context_switches() })
    }

    /// The usage since `before`, per item, for `count` items.
    pub(super) fn since(self, before: Self, count: f64) -> PerThing {
        let cpu_ns = (self.cpu - before.cpu).as_nanos() as f64 / count;
        PerThing { cpu_ns, sleeps: (self.sleeps - before.sleeps) as f64 / count }
    }
}

pub(super) struct PerThing {
    pub(super) cpu_ns: f64,
    pub(super) sleeps: f64,
}

/// The bytes of memory that the process occupies.
pub(super) fn resident() -> Result<f64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_whitespace().nth(1).context("statm has a second field")?;
    Ok(pages.parse::<f64>()? * rustix::param::page_size() as f64)
}

/// How many threads the process has.
pub(super) fn threads() -> Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses; it may contain anything.
    let (_, fields) = stat.rsplit_once(')').context("stat has a name")?;
    let threads = fields.split_whitespace().nth(17).context("stat has 20 fields")?;
    Ok(threads.parse()?)
}
