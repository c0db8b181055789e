//! The origin of the figures: the machine, the versions, and its other load.

use std::{env, fs, process::Command, time::Duration};

use super::programs::{Programs, first_line};
use crate::{
    plan::Mode,
    results::Host,
    roster::{OURS, Peer},
};

/// The lock file of this package, as it was built.
const LOCK: &str = include_str!("../../Cargo.lock");

pub(super) fn describe(mode: Mode, programs: &Programs, peers: &[Peer]) -> Host {
    let mut facts = vec![
        ("Processor".to_owned(), processor()),
        ("Memory".to_owned(), memory().unwrap_or_default()),
        ("System".to_owned(), format!("Linux {}", read("/proc/sys/kernel/osrelease").trim())),
        (OURS.to_owned(), format!("{} {}", version(OURS), revision())),
        ("Cargo profile".to_owned(), profile().unwrap_or_default()),
        ("rustc".to_owned(), first_line(Command::new("rustc").arg("--version"))),
    ];
    facts.extend(programs.versions());
    let packages = peers.iter().filter_map(|peer| peer.package).filter(|name| *name != OURS);
    facts.extend(packages.map(|name| (name.to_owned(), version(name))));
    facts.retain(|(_, value)| !value.trim().is_empty());
    Host { mode: mode.name().to_owned(), facts }
}

fn processor() -> String {
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    format!("{model}, {} logical cores", cores())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn memory() -> Option<String> {
    let info = read("/proc/meminfo");
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some(format!("{:.1} GiB", kib as f64 / f64::from(1 << 20)))
}

/// The version of a crate that this program was built with.
fn version(package: &str) -> String {
    let name = format!("name = \"{package}\"\nversion = \"");
    let after = LOCK.split_once(&name).map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default().to_owned()
}

/// The profile that this program was built with. Cargo names the directory after it.
fn profile() -> Option<String> {
    let own = env::current_exe().ok()?;
    Some(own.parent()?.file_name()?.to_string_lossy().into_owned())
}

/// The revision of the source, if it comes from a repository.
fn revision() -> String {
    let here = env!("CARGO_MANIFEST_DIR");
    let describe = ["-C", here, "describe", "--always", "--dirty"];
    first_line(Command::new("git").args(describe))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The machine's other load.
pub(super) struct Strain {
    /// The load average of the last minute.
    pub(super) load: f64,
    /// Ticks of all cores that the host of a virtual machine gave to others.
    stolen: u64,
}

/// The kernel counts in this unit, on every architecture that matters.
const TICKS_PER_SECOND: f64 = 100.0;

impl Strain {
    pub(super) fn now() -> Self {
        let load = read("/proc/loadavg");
        let load = load.split_whitespace().next().and_then(|load| load.parse().ok());
        let stat = read("/proc/stat");
        let stolen = stat.lines().next().and_then(|all| all.split_whitespace().nth(8));
        let stolen = stolen.and_then(|ticks| ticks.parse().ok());
        Self { load: load.unwrap_or(0.0), stolen: stolen.unwrap_or(0) }
    }

    /// The share of the cores' time that was stolen since.
    pub(super) fn stolen_until_now(&self, took: Duration) -> f64 {
        let ticks = Self::now().stolen.saturating_sub(self.stolen) as f64;
        ticks / TICKS_PER_SECOND / (took.as_secs_f64() * cores() as f64).max(0.001)
    }
}
