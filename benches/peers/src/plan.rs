//! The measurements: the steps of a round, and their sizes.

use crate::roster::{MACHINE, OURS, Peer};

/// The size of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Takes some minutes, and shows whether everything works and the rough results.
    Quick,
    /// The figures to be quoted.
    Full,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    pub(crate) fn rounds(self) -> u32 {
        match self {
            Self::Quick => 2,
            Self::Full => 5,
        }
    }
}

/// One workload with its parameters. In a round each peer runs it once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// The name of the workload in the measuring programs.
    pub(crate) workload: &'static str,
    /// Its parameters; parameters that are not named have the programs' defaults.
    full: &'static str,
    /// `None`: left out.
    quick: Option<&'static str>,
    who: Who,
    /// `None`: that of the C library, or of the language.
    allocator: Option<Allocator>,
}

/// A memory allocator that takes the place of the one of the C library, by `LD_PRELOAD`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Allocator {
    Jemalloc,
    Mimalloc,
}

impl Allocator {
    /// The name by which the dynamic linker finds it (Debian: `libjemalloc2`, `libmimalloc2.0`).
    pub(crate) fn library(self) -> &'static str {
        match self {
            Self::Jemalloc => "libjemalloc.so.2",
            Self::Mimalloc => "libmimalloc.so.2",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Who {
    /// All peers that run tasks.
    Executors,
    /// Without peers that differ from another one in cancelling only.
    NothingCancelled,
    DelayQueues,
    Calendars,
    Timers,
    Named(&'static [&'static str]),
    Only(&'static str),
}

/// The steps of a round, in order.
pub(crate) const STEPS: [Step; 38] = [
    step("w1", "w1", "", "P=1000,100000 T=1,2 N=100000"),
    // Another thread schedules the pending tasks, and then ends. Where they are matters to a peer with several heaps.
    Step {
        who: Who::Only(OURS),
        ..step("w1-elsewhere", "w1", "filled=elsewhere", "filled=elsewhere P=1000 N=100000")
    },
    Step { quick: None, who: Who::Only(OURS), ..step("w1-deep", "w1", "P=10000000 T=1", "") },
    nothing_cancelled(step("w2", "w2", "", "N=200000 T=1,2")),
    nothing_cancelled(step("w2-again", "w2", "mode=again", "mode=again N=200000 T=1,2")),
    with(
        Allocator::Jemalloc,
        step("w2-jemalloc", "w2", "mode=again T=1", "mode=again N=200000 T=1"),
    ),
    with(
        Allocator::Mimalloc,
        step("w2-mimalloc", "w2", "mode=again T=1", "mode=again N=200000 T=1"),
    ),
    nothing_cancelled(step("w3-zero", "w3", "mode=zero", "mode=zero N=200000")),
    with(Allocator::Jemalloc, step("w3-jemalloc", "w3", "mode=zero", "mode=zero N=200000")),
    with(Allocator::Mimalloc, step("w3-mimalloc", "w3", "mode=zero", "mode=zero N=200000")),
    nothing_cancelled(step(
        "w3-atonce",
        "w3",
        "mode=atonce N=500000 ms=1000",
        "mode=atonce N=100000 ms=300",
    )),
    nothing_cancelled(step("w3-spread", "w3", "mode=spread", "mode=spread N=200000 ms=200")),
    nothing_cancelled(step("w4-idle", "w4", "N=400 ms=4000", "N=100 ms=1000")),
    // This stands beside the step that is compared with it.
    Step { who: Who::Only(MACHINE), ..step("limits", "limits", "N=400 ms=4000", "N=100 ms=1000") },
    nothing_cancelled(step("w4-loaded", "w4", "N=20000 ms=2000", "N=10000 ms=1000")),
    nothing_cancelled(step("w5", "w5", "ms=4000", "ms=1000")),
    // The same with runs that report how they went. It stands beside the step that it is compared with.
    Step {
        who: Who::Only(OURS),
        ..step("w5-report", "w5", "mode=report ms=4000", "mode=report ms=1000")
    },
    nothing_cancelled(step("w6", "w6", "", "N=4000 gaps=200 pipe=100000")),
    with(Allocator::Jemalloc, step("w6-jemalloc", "w6", "gaps=200", "N=4000 gaps=200 pipe=100000")),
    with(Allocator::Mimalloc, step("w6-mimalloc", "w6", "gaps=200", "N=4000 gaps=200 pipe=100000")),
    step("w7", "w7", "", "N=100000"),
    nothing_cancelled(step("w8", "w8", "", "P=200000")),
    Step { quick: None, who: Who::Named(&CLOSE), ..step("w8-deep", "w8", "P=5000000", "") },
    delay_queues(step("w9", "w9", "", "N=100000")),
    delay_queues(step("w9-mixed", "w9", "mode=mixed", "mode=mixed N=100000")),
    Step { who: Who::Calendars, ..step("w10", "w10", "", "N=20000") },
    Step { who: Who::Named(&MOVING), ..step("w11", "w11", "", "P=1000 N=100000") },
    Step {
        who: Who::Named(&EXTENDING),
        ..step("w11-extend", "w11", "mode=extend", "mode=extend P=1000 N=100000")
    },
    // The same by `reschedule`.
    Step {
        who: Who::Only(OURS),
        ..step("w11-moved", "w11", "mode=moved", "mode=moved P=1000 N=100000")
    },
    close(step("w12", "w12", "", "P=1000,10000 N=50000")),
    Step {
        quick: None,
        who: Who::Named(&DEEP),
        ..step("w12-deep", "w12", "P=10000000 memory=0", "")
    },
    close(step("w13", "w13", "", "N=20000")),
    close(step("w14", "w14", "", "N=320000")),
    close(step("w15", "w15", "", "N=100000")),
    close(step("w16", "w16", "", "N=500000")),
    timers(step("w17", "w17", "", "P=100000,1000 N=100000")),
    timers(step("w17-idle", "w17", "mode=late N=400 ms=4000", "mode=late N=100 ms=1000")),
    timers(step("w17-loaded", "w17", "mode=late N=20000 ms=2000", "mode=late N=10000 ms=1000")),
];

/// Peers that can move a task, and the two that are known best and that cannot.
const MOVING: [&str; 4] = [OURS, "jdk17-stpe-roc", "jdk25-stpe-roc", "delayqueue"];

/// Peers that can move a task or a timer, or whose executors are the ones that everybody knows.
const EXTENDING: [&str; 5] = [OURS, "jdk17-stpe-roc", "jdk25-stpe-roc", "tokio", "delayqueue"];

/// Peers that are close to us in what they do, and not far in how fast they do it.
const CLOSE: [&str; 9] = [
    OURS,
    "jdk17-stpe-roc",
    "jdk25-stpe-roc",
    "jdk25-fjp",
    "go",
    "scheduled-thread-pool",
    "tokio",
    "naive",
    "delayqueue",
];

/// Those of them that take no more than some seconds with ten million tasks.
const DEEP: [&str; 6] =
    [OURS, "jdk17-stpe-roc", "jdk25-stpe-roc", "jdk25-fjp", "go", "scheduled-thread-pool"];

const fn step(
    name: &'static str,
    workload: &'static str,
    full: &'static str,
    quick: &'static str,
) -> Step {
    Step { name, workload, full, quick: Some(quick), who: Who::Executors, allocator: None }
}

/// The same of this crate with another allocator.
const fn with(allocator: Allocator, step: Step) -> Step {
    Step { who: Who::Only(OURS), allocator: Some(allocator), ..step }
}

const fn nothing_cancelled(step: Step) -> Step {
    Step { who: Who::NothingCancelled, ..step }
}

const fn close(step: Step) -> Step {
    Step { who: Who::Named(&CLOSE), ..step }
}

const fn delay_queues(step: Step) -> Step {
    Step { who: Who::DelayQueues, ..step }
}

const fn timers(step: Step) -> Step {
    Step { who: Who::Timers, ..step }
}

impl Step {
    /// `key=value…`; `None` if the mode leaves the step out.
    pub(crate) fn params(&self, mode: Mode) -> Option<impl Iterator<Item = &'static str>> {
        let params = match mode {
            Mode::Quick => self.quick?,
            Mode::Full => self.full,
        };
        Some(params.split_whitespace())
    }

    /// Whether memory that was freed is to stay with the process, as it does in Java and Go anyway:
    /// otherwise, where large structures are filled repeatedly, the figure would include the
    /// kernel's time.
    pub(crate) fn keeps_memory(&self) -> bool {
        self.workload == "w9" || self.name == "w2-again"
    }

    pub(crate) fn allocator(&self) -> Option<Allocator> {
        self.allocator
    }

    pub(crate) fn includes(&self, peer: &Peer) -> bool {
        match self.who {
            Who::Executors => peer.is_executor,
            Who::NothingCancelled => peer.is_executor && peer.name != "jdk17-stpe",
            Who::DelayQueues => peer.has_delay_queue,
            Who::Calendars => peer.has_calendar,
            Who::Timers => peer.has_timers,
            Who::Named(names) => names.contains(&peer.name),
            Who::Only(name) => peer.name == name,
        }
    }

    /// Returns `true` if `wanted` names the step, or its workload.
    pub(crate) fn is_called(&self, wanted: &str) -> bool {
        self.name == wanted || self.workload == wanted
    }
}

#[cfg(test)]
mod tests {
    use super::{STEPS, Who};
    use crate::roster::ROSTER;

    fn who(step: &str) -> Vec<&'static str> {
        let step = STEPS.iter().find(|candidate| candidate.name == step).unwrap();
        ROSTER.iter().filter(|peer| step.includes(peer)).map(|peer| peer.name).collect()
    }

    #[test]
    fn delay_queues_are_measured_among_themselves() {
        let queues = ["punctual", "jdk17-delayqueue", "jdk25-delayqueue", "go", "delayqueue"];
        assert_eq!(who("w9"), queues);
        assert_eq!(who("w9-mixed"), queues);
    }

    #[test]
    fn all_peers_that_a_step_names_exist() {
        for step in STEPS {
            if let Who::Named(names) = step.who {
                assert_eq!(who(step.name).len(), names.len(), "{}", step.name);
            }
        }
    }

    #[test]
    fn calendars_are_measured_among_themselves() {
        assert_eq!(who("w10"), ["punctual", "croner", "cron"]);
    }

    #[test]
    fn timers_are_measured_among_themselves() {
        let timers = ["punctual", "tokio", "async-io", "futures-timer"];
        assert_eq!(who("w17"), timers);
        assert_eq!(who("w17-idle"), timers);
    }

    #[test]
    fn what_only_has_a_delay_queue_runs_no_tasks() {
        let executors = who("w7");
        assert!(executors.contains(&"jdk17-stpe"));
        assert!(!executors.contains(&"jdk17-delayqueue") && !executors.contains(&"machine"));
        assert!(!who("w8").contains(&"jdk17-stpe"));
        assert_eq!(who("limits"), ["machine"]);
    }
}
