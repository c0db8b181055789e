//! All peers side by side: the main figures, and ours divided by theirs.

use super::{
    markdown::table,
    number::{number, quantity},
    verdict::ratio,
};
use crate::{
    results::{Figure, Results, Spread},
    roster::{OURS, Peer, ROSTER},
};

/// A column of the overview.
struct Column {
    heading: &'static str,
    figure: Figure,
}

fn column(
    heading: &'static str,
    step: &'static str,
    metric: &'static str,
    params: &[(&'static str, u64)],
) -> Column {
    Column { heading, figure: Figure::new(step, metric, params) }
}

/// The main figures, in tables that fit a page.
fn columns() -> [(&'static str, Vec<Column>); 9] {
    let w1 = |heading, p, t| column(heading, "w1", "ns_per_op", &[("P", p), ("T", t)]);
    let (t1, t2, w1_only, w2_only) = ([("T", 1)], [("T", 2)], [("W", 1)], [("W", 2)]);
    let calls = vec![
        w1("W1 P=10³", 1_000, 1),
        w1("W1 P=10³ T=2", 1_000, 2),
        w1("W1 P=10⁵", 100_000, 1),
        w1("W1 P=10⁵ T=2", 100_000, 2),
        w1("W1 P=10⁶", 1_000_000, 1),
        w1("W1 P=10⁶ T=2", 1_000_000, 2),
        column("W2 first", "w2", "ns_per_op", &t1),
        column("W2 first T=2", "w2", "ns_per_op", &t2),
        column("W2 again", "w2-again", "ns_per_op", &t1),
        column("CPU", "w2-again", "cpu_ns_per_op", &t1),
        column("W2 again T=2", "w2-again", "ns_per_op", &t2),
        column("W2 memory", "w2", "bytes_per_task", &t1),
        column("W7", "w7", "ns_per_op", &t1),
        column("W7 T=2", "w7", "ns_per_op", &t2),
        column("W8", "w8", "shutdown_ms", &[]),
        column("W11 P=10³", "w11", "ns_per_op", &[("P", 1_000), ("T", 1)]),
        column("W11 P=10⁵", "w11", "ns_per_op", &[("P", 100_000), ("T", 1)]),
    ];
    let running = vec![
        column("W3 zero W=1", "w3-zero", "tasks_per_s", &w1_only),
        column("W3 zero W=2", "w3-zero", "tasks_per_s", &w2_only),
        column("W3 at once W=1", "w3-atonce", "tasks_per_s", &w1_only),
        column("W3 at once W=2", "w3-atonce", "tasks_per_s", &w2_only),
        column("W3 spread W=2", "w3-spread", "tasks_per_s", &w2_only),
        column("W6 ping p50", "w6", "ping_p50", &[]),
        column("W6 ping p99", "w6", "ping_p99", &[]),
        column("W6 gap p50", "w6", "gap_ping_p50", &[]),
        column("W6 gap p99", "w6", "gap_ping_p99", &[]),
        column("W6 pipelined", "w6", "pipelined_per_s", &[]),
    ];
    [
        ("Calls", calls),
        ("Running and hand-off", running),
        ("Another allocator", allocators()),
        ("Lateness", lateness()),
        ("Full of tasks", full()),
        ("A service's mix", service()),
        ("Delay queues", delay_queues()),
        ("Calendars", calendars()),
        ("Timers to await", timers()),
    ]
}

fn lateness() -> Vec<Column> {
    vec![
        column("W4 idle p50", "w4-idle", "late_p50", &[]),
        column("W4 idle p99", "w4-idle", "late_p99", &[]),
        column("W4 idle CPU", "w4-idle", "cpu_us_per_task", &[]),
        column("W4 idle sleeps", "w4-idle", "vcsw_per_task", &[]),
        column("W4 loaded p50", "w4-loaded", "late_p50", &[]),
        column("W4 loaded p99", "w4-loaded", "late_p99", &[]),
        column("W5 p50", "w5", "late_p50", &[]),
        column("W5 p99", "w5", "late_p99", &[]),
        column("W5 CPU", "w5", "cpu_us_per_run", &[]),
        column("W5 sleeps", "w5", "vcsw_per_run", &[]),
    ]
}

/// W2 again, W3 zero and W6 with the C library's allocator and with two others.
fn allocators() -> Vec<Column> {
    let (one, two) = ([("W", 1)], [("W", 2)]);
    let (scheduling, running, windows) = ("ns_per_op", "tasks_per_s", "pipelined_per_s");
    vec![
        column("W2 glibc", "w2-again", scheduling, &[("T", 1)]),
        column("W2 jemalloc", "w2-jemalloc", scheduling, &[("T", 1)]),
        column("W2 mimalloc", "w2-mimalloc", scheduling, &[("T", 1)]),
        column("W3 zero W=1 glibc", "w3-zero", running, &one),
        column("W3 W=1 jemalloc", "w3-jemalloc", running, &one),
        column("W3 W=1 mimalloc", "w3-mimalloc", running, &one),
        column("W3 zero W=2 glibc", "w3-zero", running, &two),
        column("W3 W=2 jemalloc", "w3-jemalloc", running, &two),
        column("W3 W=2 mimalloc", "w3-mimalloc", running, &two),
        column("W6 pipelined glibc", "w6", windows, &[]),
        column("W6 jemalloc", "w6-jemalloc", windows, &[]),
        column("W6 mimalloc", "w6-mimalloc", windows, &[]),
    ]
}

/// Many tasks are pending, many threads call, or many tasks are due at once.
fn full() -> Vec<Column> {
    let w12 = |heading, p, t| column(heading, "w12", "ns_per_op", &[("P", p), ("T", t)]);
    let w15 = |heading, w, n| column(heading, "w15", "tasks_per_s", &[("W", w), ("N", n)]);
    vec![
        w12("W12 P=10³", 1_000, 1),
        w12("W12 P=10⁵", 100_000, 1),
        w12("W12 P=10⁶", 1_000_000, 1),
        w12("W12 P=10⁶ T=2", 1_000_000, 2),
        column("W12 P=10⁷", "w12-deep", "ns_per_op", &[("T", 1)]),
        column("W12 retained P=10⁶", "w12", "retained_per_cancel", &[("P", 1_000_000)]),
        column("W14", "w14", "ns_per_op", &[]),
        column("W14 p99.9", "w14", "call_p999", &[]),
        w15("W15 N=10⁵ W=1", 1, 100_000),
        w15("W15 N=10⁵ W=2", 2, 100_000),
        w15("W15 N=10⁶ W=1", 1, 1_000_000),
        column("W15 inversions N=10⁵", "w15", "inversions", &[("N", 100_000)]),
        column("W16", "w16", "ns_per_op", &[]),
        column("W16 p99.99", "w16", "call_p9999", &[]),
        column("W16 slowest", "w16", "call_max", &[]),
        column("W8 P=5·10⁶", "w8-deep", "shutdown_ms", &[]),
    ]
}

/// W13.
fn service() -> Vec<Column> {
    let w13 = |heading, metric| column(heading, "w13", metric, &[]);
    vec![
        w13("W13 schedule p50", "schedule_p50"),
        w13("p99", "schedule_p99"),
        w13("p99.9", "schedule_p999"),
        w13("cancel p50", "cancel_p50"),
        w13("p99", "cancel_p99"),
        w13("p99.9", "cancel_p999"),
        w13("late p50", "late_p50"),
        w13("p99", "late_p99"),
        w13("p99.9", "late_p999"),
        w13("periodic late p50", "periodic_late_p50"),
        w13("p99", "periodic_late_p99"),
        w13("p99.9", "periodic_late_p999"),
    ]
}

fn delay_queues() -> Vec<Column> {
    let (t1, t2) = ([("T", 1)], [("T", 2)]);
    vec![
        column("W9", "w9", "ns_per_op", &t1),
        column("W9 push", "w9", "push_ns", &t1),
        column("W9 take", "w9", "take_ns", &t1),
        column("W9 T=2", "w9", "ns_per_op", &t2),
        column("W9 push T=2", "w9", "push_ns", &t2),
        column("W9 take T=2", "w9", "take_ns", &t2),
        column("W9 memory", "w9", "bytes_per_element", &t1),
        column("W9 allocations", "w9", "allocs_per_element", &t1),
        column("W9 mixed", "w9-mixed", "ns_per_op", &t1),
        column("W9 mixed T=2", "w9-mixed", "ns_per_op", &t2),
    ]
}

fn calendars() -> Vec<Column> {
    let next = |heading, number| column(heading, "w10", "next_ns", &[("E", number)]);
    vec![
        next("W10 every 15 minutes", 0),
        next("W10 daily", 1),
        next("W10 working days", 2),
        next("W10 leap days", 3),
        column("W10 parse", "w10", "parse_ns", &[("E", 2)]),
    ]
}

/// W17.
fn timers() -> Vec<Column> {
    let calls = |heading, p, t| column(heading, "w17", "ns_per_op", &[("P", p), ("T", t)]);
    vec![
        calls("W17 P=10³", 1_000, 1),
        calls("W17 P=10³ T=2", 1_000, 2),
        calls("W17 P=10⁵", 100_000, 1),
        calls("W17 P=10⁶", 1_000_000, 1),
        calls("W17 P=10⁶ T=2", 1_000_000, 2),
        column("W17 memory", "w17", "bytes_per_timer", &[]),
        column("W17 idle p50", "w17-idle", "late_p50", &[]),
        column("W17 idle p99", "w17-idle", "late_p99", &[]),
        column("W17 loaded p50", "w17-loaded", "late_p50", &[]),
        column("W17 loaded p99", "w17-loaded", "late_p99", &[]),
    ]
}

pub(super) fn figures(results: &Results) -> String {
    let cell = |peer: &Peer, figure: &Figure| {
        let (spread, mark) = one_worker_if_need_be(results, peer, figure)?;
        Some(quantity(spread.median, results.unit(figure)) + mark)
    };
    per_peer(results, cell)
        + "`*`: it runs callbacks on one thread only; this is its figure for W=1. CPU and sleeps\n\
           (voluntary context switches) are for each task.\n"
}

pub(super) fn ratios(results: &Results) -> String {
    let cell = |peer: &Peer, figure: &Figure| {
        let (theirs, mark) = one_worker_if_need_be(results, peer, figure)?;
        Some(number(ratio(results.get(OURS, figure)?, theirs)?) + mark)
    };
    let how = "Below 1, punctual is better; where the figure is a number per second, above 1.\n\n";
    how.to_owned() + &per_peer(results, cell)
}

/// The peer's figure, and a mark if it is the one for a single worker.
fn one_worker_if_need_be(
    results: &Results,
    peer: &Peer,
    figure: &Figure,
) -> Option<(Spread, &'static str)> {
    if let Some(spread) = results.get(peer.name, figure) {
        return Some((spread, ""));
    }
    if figure.params != [("W", 2)] {
        return None;
    }
    let one = Figure::new(figure.step, figure.metric, &[("W", 1)]);
    Some((results.get(peer.name, &one)?, "*"))
}

/// Tables with a row for each peer that has a figure in it.
fn per_peer(results: &Results, cell: impl Fn(&Peer, &Figure) -> Option<String>) -> String {
    let mut out = String::new();
    for (title, columns) in columns() {
        let measured =
            |column: &&Column| ROSTER.iter().any(|p| results.get(p.name, &column.figure).is_some());
        let columns: Vec<_> = columns.iter().filter(measured).collect();
        let mut head = vec![title];
        head.extend(columns.iter().map(|column| column.heading));
        let rows = ROSTER.iter().filter_map(|peer| {
            let cells: Vec<_> = columns.iter().map(|column| cell(peer, &column.figure)).collect();
            cells.iter().any(Option::is_some).then(|| {
                let cells = cells.into_iter().map(Option::unwrap_or_default);
                [peer.name.to_owned()].into_iter().chain(cells).collect()
            })
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if !rows.is_empty() {
            out += &table(&head, rows);
            out += "\n";
        }
    }
    out
}
