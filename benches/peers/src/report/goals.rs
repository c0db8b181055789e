//! The goals of this project, as data.
//!
//! Most goals are a ratio to the best of those peers that do the same work; some are a ratio to one
//! named figure, some a fixed value. Both sides of a comparison come from the same run.

use crate::{
    results::Figure,
    roster::{MACHINE, OURS},
};

/// One of our figures, and the goal for it.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    pub(super) figure: Figure,
    pub(super) measured_by: Yardstick,
    pub(super) bound: Bound,
}

/// The figure that ours is divided by.
#[derive(Clone, Debug)]
pub(super) enum Yardstick {
    /// The best of the peers that keep the contract.
    BestPeer,
    /// The best of these peers.
    BestOf(&'static [&'static str]),
    /// A figure of one peer, or another of ours.
    One(&'static str, Figure),
    /// There is none: the bound is in the figure's own unit.
    Unit,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// The figure is a cost: smaller is better.
    AtMost(f64),
    /// The figure is a rate: larger is better.
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};
use Yardstick::{BestOf, BestPeer, One, Unit};

/// Java's class of the same name as ours, in either version.
const STPE: &[&str] = &["jdk17-stpe-roc", "jdk25-stpe-roc"];

/// The peers that count nanoseconds, and whose calling threads work on the queue themselves.
/// `ForkJoinPool` stands beside them in the tables, and counts only where a goal names it: its calls
/// leave a note to a thread that does the work later.
const EXACT: &[&str] = &["jdk17-stpe-roc", "jdk25-stpe-roc", "go", "scheduled-thread-pool"];

const FORK_JOIN: &str = "jdk25-fjp";

type Params = [(&'static str, u64)];

/// All goals, in the order of the report.
pub(super) fn goals() -> Vec<Goal> {
    [
        calls(),
        running(),
        lateness(),
        hand_off(),
        delay_queue(),
        under_load(),
        timers(),
        against_named(),
    ]
    .concat()
}

fn goal(
    step: &'static str,
    metric: &'static str,
    params: &Params,
    measured_by: Yardstick,
    bound: Bound,
) -> Goal {
    Goal { figure: Figure::new(step, metric, params), measured_by, bound }
}

fn best(step: &'static str, metric: &'static str, params: &Params, bound: Bound) -> Goal {
    goal(step, metric, params, BestPeer, bound)
}

/// Scheduling, cancelling, shutting down.
fn calls() -> Vec<Goal> {
    let ns = "ns_per_op";
    let w1 = |pending, threads| Figure::new("w1", ns, &[("P", pending), ("T", threads)]);
    let mut goals = Vec::new();
    for pending in [1_000, 100_000, 1_000_000] {
        for (threads, bound) in [(1, 0.85), (2, 0.65), (4, 0.65)] {
            let figure = w1(pending, threads);
            goals.push(Goal { figure, measured_by: BestPeer, bound: AtMost(bound) });
        }
    }
    for pending in [1_000, 100_000, 1_000_000] {
        let one_thread = One(OURS, w1(pending, 1));
        goals.push(Goal { figure: w1(pending, 2), measured_by: one_thread, bound: AtMost(0.6) });
    }
    let few = One(OURS, w1(1_000, 1));
    let deep = [("P", 10_000_000), ("T", 1)];
    goals.push(goal("w1-deep", ns, &deep, few, AtMost(1.5)));
    for (threads, bound) in [(2, 0.6), (4, 0.6)] {
        goals.push(best("w2-again", ns, &[("T", threads)], AtMost(bound)));
    }
    let again = |metric| Figure::new("w2-again", metric, &[("T", 1)]);
    let (java, fork_join) =
        (One("jdk25-stpe-roc", again(ns)), One(FORK_JOIN, again("cpu_ns_per_op")));
    goals.push(goal("w2-again", ns, &[("T", 1)], java, AtMost(1.2)));
    goals.push(goal("w2-again", "cpu_ns_per_op", &[("T", 1)], fork_join, AtMost(1.0)));
    goals.push(goal("w2", "bytes_per_task", &[], Unit, AtMost(80.0)));
    goals.push(best("w7", ns, &[("T", 1)], AtMost(0.95)));
    goals.push(best("w7", ns, &[("T", 2)], AtMost(0.5)));
    goals.push(best("w8", "shutdown_ms", &[], AtMost(1.0)));
    goals
}

fn running() -> Vec<Goal> {
    let (one, two) = ([("W", 1)], [("W", 2)]);
    vec![
        best("w3-zero", "tasks_per_s", &one, AtLeast(1.1)),
        best("w3-zero", "tasks_per_s", &two, AtLeast(1.6)),
        best("w3-atonce", "tasks_per_s", &one, AtLeast(1.5)),
        best("w3-atonce", "tasks_per_s", &two, AtLeast(1.8)),
        goal("w3-spread", "tasks_per_s", &two, Unit, AtLeast(0.95e6)),
        goal("w3-spread", "late_p99", &two, Unit, AtMost(5_000.0)),
    ]
}

fn lateness() -> Vec<Goal> {
    let bare_wait = One(MACHINE, Figure::new("limits", "wait_1ns_p50", &[]));
    let cpu = "cpu_us_per_task";
    let java = One("jdk17-stpe-roc", Figure::new("w4-idle", cpu, &[]));
    let timer = One("timer", Figure::new("w5", "cpu_us_per_run", &[]));
    vec![
        best("w4-idle", "late_p50", &[], AtMost(0.8)),
        best("w4-idle", "late_p99", &[], AtMost(0.8)),
        best("w4-loaded", "late_p50", &[], AtMost(1.0)),
        best("w4-loaded", "late_p99", &[], AtMost(1.0)),
        goal("w4-idle", "late_p50", &[], bare_wait, AtMost(1.2)),
        goal("w4-idle", "vcsw_per_task", &[], Unit, AtMost(1.1)),
        goal("w4-idle", cpu, &[], java, AtMost(0.56)),
        best("w5", "late_p50", &[], AtMost(1.0)),
        best("w5", "late_p99", &[], AtMost(1.0)),
        goal("w5", "vcsw_per_run", &[], Unit, AtMost(0.6)),
        goal("w5", "cpu_us_per_run", &[], timer, AtMost(1.1)),
    ]
}

fn hand_off() -> Vec<Goal> {
    vec![
        best("w6", "ping_p50", &[], AtMost(1.0)),
        best("w6", "ping_p99", &[], AtMost(1.0)),
        best("w6", "gap_ping_p50", &[], AtMost(1.0)),
        best("w6", "gap_ping_p99", &[], AtMost(1.0)),
        best("w6", "pipelined_per_s", &[], AtLeast(1.1)),
    ]
}

fn delay_queue() -> Vec<Goal> {
    let alone = [("T", 1)];
    vec![
        goal("w9", "ns_per_op", &alone, Unit, AtMost(60.0)),
        // The growth of an array, or of a list of chunks, may allocate once per hundred elements.
        goal("w9", "allocs_per_element", &alone, Unit, AtMost(0.01)),
        goal("w9", "bytes_per_element", &alone, Unit, AtMost(40.0)),
    ]
}

/// The goals for an executor that is full, under the load of a service.
fn under_load() -> Vec<Goal> {
    let ns = "ns_per_op";
    let fork_join =
        |step, metric, params: &Params| One(FORK_JOIN, Figure::new(step, metric, params));
    let mut goals = Vec::new();
    for pending in [1_000, 100_000, 1_000_000] {
        for (threads, bound) in [(1, 0.9), (2, 0.45)] {
            let params = [("P", pending), ("T", threads)];
            goals.push(goal("w1", ns, &params, BestOf(STPE), AtMost(bound)));
        }
    }
    for threads in [1, 2] {
        let params = [("P", 1_000_000), ("T", threads)];
        goals.push(goal("w12", ns, &params, BestOf(EXACT), AtMost(0.7)));
    }
    for pending in [100_000, 1_000_000] {
        let params = [("P", pending)];
        goals.push(goal("w12", "retained_per_cancel", &params, Unit, AtMost(4.0)));
    }
    goals.push(goal("w13", "cancel_p50", &[], BestOf(EXACT), AtMost(1.0)));
    for tasks in [100_000, 1_000_000] {
        let (rate, params) = ("tasks_per_s", [("W", 1), ("N", tasks)]);
        goals.push(goal("w15", rate, &params, fork_join("w15", rate, &params), AtLeast(1.1)));
    }
    goals.push(goal("w16", "call_max", &[], Unit, AtMost(1000.0)));
    let (took, params) = ("shutdown_ms", [("P", 1_000_000)]);
    goals.push(goal("w8", took, &params, fork_join("w8", took, &params), AtMost(1.2)));
    goals
}

/// The timers to await that keep nanoseconds: `tokio`'s are those of a wheel of milliseconds.
const EXACT_TIMERS: &[&str] = &["async-io", "futures-timer"];

/// Timers to await, beside others and beside our own tasks.
fn timers() -> Vec<Goal> {
    let mut goals = Vec::new();
    for pending in [1_000, 100_000, 1_000_000] {
        for threads in [1, 2] {
            let params = [("P", pending), ("T", threads)];
            goals.push(goal("w17", "ns_per_op", &params, BestOf(EXACT_TIMERS), AtMost(0.5)));
        }
    }
    for (timers, tasks) in [("w17-idle", "w4-idle"), ("w17-loaded", "w4-loaded")] {
        for late in ["late_p50", "late_p99"] {
            goals.push(goal(
                timers,
                late,
                &[],
                One(OURS, Figure::new(tasks, late, &[])),
                AtMost(1.0),
            ));
        }
    }
    goals
}

/// The goals that name the peer which was ahead when they were set.
fn against_named() -> Vec<Goal> {
    let named = |peer, step, metric, params: &Params, bound| {
        goal(step, metric, params, One(peer, Figure::new(step, metric, params)), bound)
    };
    let (ns, windows) = ("ns_per_op", "pipelined_per_s");
    let mut goals = Vec::new();
    for pending in [1_000, 100_000, 1_000_000] {
        let params = [("P", pending), ("T", 1)];
        goals.push(named("jdk17-stpe-roc", "w1", ns, &params, AtMost(1.0)));
    }
    goals.extend([
        named("jdk25-stpe-roc", "w7", ns, &[("T", 1)], AtMost(1.2)),
        named("asio", "w3-zero", "tasks_per_s", &[("W", 1)], AtLeast(1.05)),
        named("naive", "w6", "gap_ping_p50", &[], AtMost(1.0)),
        named("async-io", "w6", windows, &[], AtLeast(1.1)),
        named("hhwt", "w6", windows, &[], AtLeast(1.1)),
        named(FORK_JOIN, "w6", windows, &[], AtLeast(0.8)),
        goal("w13", "cancel_p50", &[], BestOf(STPE), AtMost(1.3)),
    ]);
    goals
}

#[cfg(test)]
mod tests {
    use super::{Yardstick, goals};
    use crate::roster::{ROSTER, is_yardstick};

    #[test]
    fn all_peers_that_a_goal_names_exist() {
        for goal in goals() {
            match goal.measured_by {
                Yardstick::BestOf(names) => {
                    assert!(names.iter().all(|name| is_yardstick(name)), "{names:?}");
                }
                Yardstick::One(name, _) => {
                    assert!(ROSTER.iter().any(|peer| peer.name == name), "{name}");
                }
                Yardstick::BestPeer | Yardstick::Unit => {}
            }
        }
    }
}
