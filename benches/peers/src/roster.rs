//! The peers: in which language's program they are, and whether their work is comparable.

/// A peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The name of it on the command line, in the stored figures and in the tables.
    pub(crate) name: &'static str,
    /// The name of it in the pictures, for readers who do not know the short names.
    pub(crate) label: &'static str,
    pub(crate) program: Program,
    /// The crate whose version the report prints.
    pub(crate) package: Option<&'static str>,
    /// Whether it runs tasks.
    pub(crate) is_executor: bool,
    /// Whether it has a queue that returns expired elements.
    pub(crate) has_delay_queue: bool,
    /// Whether it says when a cron expression runs next.
    pub(crate) has_calendar: bool,
    /// Whether it has timers to await.
    pub(crate) has_timers: bool,
    /// Why it does not count in comparisons, if it does not. It then leaves out work that a
    /// scheduled executor has to do: for example, it starts tasks early, or keeps cancelled ones.
    pub(crate) disqualified: Option<&'static str>,
}

/// The program that measures a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// This one, with `measure`.
    Rust,
    Java17,
    Java25,
    Go,
    Cpp,
}

/// This project.
pub(crate) const OURS: &str = "punctual";

/// The pseudo-peer whose figures are those of the machine itself.
pub(crate) const MACHINE: &str = "machine";

/// All, in the order of the tables.
pub(crate) const ROSTER: [Peer; 20] = [
    Peer { has_calendar: true, has_timers: true, ..and_delay_queue(rust(OURS, OURS)) },
    labelled("JDK 17, removing cancelled tasks", other("jdk17-stpe-roc", Program::Java17)),
    disqualified(
        "it keeps cancelled tasks",
        labelled("JDK 17, default settings", other("jdk17-stpe", Program::Java17)),
    ),
    labelled("JDK 25, removing cancelled tasks", other("jdk25-stpe-roc", Program::Java25)),
    labelled("JDK 25, ForkJoinPool", other("jdk25-fjp", Program::Java25)),
    delay_queue_only(other("jdk17-delayqueue", Program::Java17)),
    delay_queue_only(other("jdk25-delayqueue", Program::Java25)),
    labelled("Go, time.AfterFunc", and_delay_queue(other("go", Program::Go))),
    labelled("Boost.Asio", other("asio", Program::Cpp)),
    rust("scheduled-thread-pool", "scheduled-thread-pool"),
    and_timers(rust("tokio", "tokio")),
    labelled("a heap under one lock", other("naive", Program::Rust)),
    labelled("crate timer", rust("timer", "timer")),
    labelled("tokio-util, DelayQueue", and_delay_queue(rust("delayqueue", "tokio-util"))),
    and_timers(rust("async-io", "async-io")),
    Peer { is_executor: false, ..and_timers(rust("futures-timer", "futures-timer")) },
    disqualified(
        "it starts tasks early",
        labelled("hierarchical_hash_wheel_timer", rust("hhwt", "hierarchical_hash_wheel_timer")),
    ),
    calendar_only(rust("croner", "croner")),
    calendar_only(rust("cron", "cron")),
    Peer { is_executor: false, ..disqualified("it is no executor", other(MACHINE, Program::Rust)) },
];

const fn other(name: &'static str, program: Program) -> Peer {
    Peer {
        name,
        label: name,
        program,
        package: None,
        is_executor: true,
        has_delay_queue: false,
        has_calendar: false,
        has_timers: false,
        disqualified: None,
    }
}

const fn rust(name: &'static str, package: &'static str) -> Peer {
    Peer { package: Some(package), ..other(name, Program::Rust) }
}

const fn labelled(label: &'static str, peer: Peer) -> Peer {
    Peer { label, ..peer }
}

const fn and_delay_queue(peer: Peer) -> Peer {
    Peer { has_delay_queue: true, ..peer }
}

const fn delay_queue_only(peer: Peer) -> Peer {
    Peer { is_executor: false, ..and_delay_queue(peer) }
}

const fn and_timers(peer: Peer) -> Peer {
    Peer { has_timers: true, ..peer }
}

const fn calendar_only(peer: Peer) -> Peer {
    Peer { is_executor: false, has_calendar: true, ..peer }
}

const fn disqualified(why: &'static str, peer: Peer) -> Peer {
    Peer { disqualified: Some(why), ..peer }
}

/// Returns `true` if we are compared with it.
pub(crate) fn is_yardstick(name: &str) -> bool {
    name != OURS && ROSTER.iter().any(|peer| peer.name == name && peer.disqualified.is_none())
}
