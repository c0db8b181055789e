//! G1 and G2: each tick once, whatever the clocks say, and again if its replica is killed.

use std::{collections::HashSet, thread, time::Duration};

use crate::{
    runner::{Plan, Run, runs},
    support::{
        real_micros,
        replica::{Replica, Said},
        server::Server,
        times,
    },
};

pub(crate) const SECOND: i64 = 1_000_000;
/// The time that a busy machine may take beyond the promised one.
pub(crate) const SLACK: i64 = 2 * SECOND;

/// Three replicas, two of them with clocks that are seven seconds off. Returns what they said, and the
/// runs of the ticks since all of them were there.
pub(crate) fn three_with_wrong_clocks(
    url: String,
    name: &str,
    span: Duration,
) -> (Vec<Said>, Vec<Run>) {
    // A replica that falls behind on a busy machine makes up for it.
    let (name, more) = (name.to_owned(), "burst=1\n".to_owned());
    let plan = Plan { url, name, period: 500, lease: 2000, run: 20, more };
    let replicas = plan.start_three([0, 7, -7]);
    let begun = real_micros();
    thread::sleep(span);
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    let mut runs = runs(&said);
    runs.retain(|run| run.tick > begun);
    (said, runs)
}

/// Checks that each tick of the period ran once, in order, and not early by the machine's clock.
pub(crate) fn each_tick_ran_once(runs: &[Run], period: i64, at_least: usize) {
    assert!(runs.len() >= at_least, "{} runs, and not {at_least}: {runs:?}", runs.len());
    let mut fences = HashSet::new();
    for run in runs {
        assert!(fences.insert(run.fence), "one fence twice: {run:?}");
        assert!(run.begin >= run.tick - 50_000, "early by the database's clock: {run:?}");
    }
    for pair in runs.windows(2) {
        assert_eq!(pair[1].tick - pair[0].tick, period, "missing or twice: {pair:?}");
    }
}

/// G1
#[test]
fn each_tick_runs_once_whatever_the_clocks_say() {
    let span = Duration::from_secs(6) * times(10);
    let (said, runs) = three_with_wrong_clocks(Server::shared().url(), "clocks", span);
    let at_least = span.as_millis() as usize / 500 - 2;
    each_tick_ran_once(&runs, SECOND / 2, at_least);
    assert!(said.iter().all(|it| it.word != "lost" && it.word != "skipped"), "{said:?}");
}

/// Waits until one of the replicas has begun a run; returns it, and the others.
pub(crate) fn find_holder(replicas: Vec<Replica>) -> (Replica, Vec<Replica>) {
    find_holder_of_later(i64::MIN, replicas)
}

/// The same for a tick after this moment.
pub(crate) fn find_holder_of_later(
    moment: i64,
    mut replicas: Vec<Replica>,
) -> (Replica, Vec<Replica>) {
    let patience = Duration::from_millis(20);
    for turn in (0..replicas.len()).cycle() {
        let began = replicas[turn].wait_for_within("begin", patience);
        if began.is_some_and(|numbers| numbers[0] > moment) {
            return (replicas.swap_remove(turn), replicas);
        }
    }
    unreachable!("the turns do not end")
}

/// G2: kills the holder in its run, and returns the run and the next one.
fn kill_the_holder(name: &str, more: &str) -> (Run, Run) {
    let (url, name, more) = (Server::shared().url(), name.to_owned(), more.to_owned());
    let plan = Plan { url, name, period: 1000, lease: 2000, run: 60_000, more };
    let (holder, mut others) = find_holder(plan.start_three([0; 3]));
    // So that the lease has been renewed at least once.
    thread::sleep(Duration::from_millis(1000));
    let killed_at = real_micros();
    let first = runs(&holder.kill())[0];
    let (mut next, other) = {
        let (next, mut others) = find_holder(std::mem::take(&mut others));
        (next, others.pop().unwrap())
    };
    assert!(next.wait_for_within("begin", Duration::from_millis(500)).is_none(), "one at a time");
    let said = [next.kill(), other.kill()].concat();
    let runs = runs(&said);
    let next = runs[0];
    assert_eq!(runs.len(), 1, "one takes over: {runs:?}");
    assert!(next.fence > first.fence, "a larger fence: {first:?} {next:?}");
    let took = next.begin - killed_at;
    println!("taken over after {took} us");
    assert!((0..2_500_000 + SLACK).contains(&took), "taken over after {took} us");
    (first, next)
}

/// G2
#[test]
fn a_killed_holders_tick_runs_again_elsewhere() {
    for round in 0..times(20) {
        let (first, next) = kill_the_holder(&format!("killed {round}"), "");
        assert_eq!(next.tick, first.tick, "the same tick");
    }
}

/// G2
#[test]
fn a_killed_holders_tick_is_skipped_and_the_next_one_is_not_held_up() {
    for round in 0..times(20) {
        let (first, next) = kill_the_holder(&format!("skipped {round}"), "skip=1\n");
        assert!(next.tick > first.tick, "a later tick");
        assert!(next.begin - next.tick < 3 * SECOND, "it waited for one lease at most: {next:?}");
    }
}
