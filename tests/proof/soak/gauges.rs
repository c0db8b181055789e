//! The memory and the number of threads of the process, where the system reports them.

use std::{fmt, fs};

#[derive(Clone, Copy)]
pub(crate) struct Gauges {
    /// In KiB.
    pub(crate) resident: u64,
    pub(crate) threads: u64,
}

impl Gauges {
    pub(crate) fn read() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self { resident: field("VmRSS:")?, threads: field("Threads:")? })
    }

    /// Returns `true` if the memory has grown by more than the allocator may keep for itself.
    pub(crate) fn has_outgrown(&self, earlier: &Self) -> bool {
        self.resident > earlier.resident + earlier.resident / 2 + 32 * 1024
    }
}

impl fmt::Display for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB, {} threads", self.resident as f64 / 1024.0, self.threads)
    }
}
