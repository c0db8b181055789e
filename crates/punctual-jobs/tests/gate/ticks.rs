//! G1 and G2: each tick once, whatever the clocks say, and again if its replica is killed.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use crate::{
    runner::{FOREVER, Plan, Run, runs},
    support::{
        Patience, for_some, real_micros,
        replica::{Replica, Said},
        server::Server,
        times, wait_until,
    },
};

pub(crate) const SECOND: i64 = 1_000_000;

/// Waits until runs have begun that are of interest, on whichever replica; returns the place of the last one's replica.
pub(crate) fn wait_for_runs(
    replicas: &mut [Replica],
    count: usize,
    is_meant: impl Fn(&Said) -> bool,
) -> usize {
    let (mut begun, mut patience) = (0, Patience::new());
    loop {
        for (place, replica) in replicas.iter_mut().enumerate() {
            while let Some(said) = replica.next_said() {
                if said.word == "begin" && is_meant(&said) {
                    (begun, patience) = (begun + 1, Patience::new());
                }
                if begun >= count {
                    return place;
                }
            }
        }
        patience.go_on("a run begins");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Three replicas, two of them with clocks that are seven seconds off. Returns what they said, and the
/// runs of the ticks since all of them were there: so many at least.
pub(crate) fn three_with_wrong_clocks(
    url: String,
    name: &str,
    at_least: usize,
) -> (Vec<Said>, Vec<Run>) {
    // A replica that falls behind makes up for it, and no lease ends because the machine stands still.
    let (name, more) = (name.to_owned(), "burst=1\n".to_owned());
    let plan = Plan { url, name, period: 500, lease: FOREVER, run: 20, more };
    let mut replicas = plan.start_three([0, 7, -7]);
    let begun = real_micros();
    wait_for_runs(&mut replicas, at_least, |said| said.numbers[0] > begun);
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    let mut runs = runs(&said);
    runs.retain(|run| run.tick > begun);
    (said, runs)
}

/// Checks that the ticks of the period ran in order, none twice, and not early by the machine's clock. Returns whether none is
/// missing: when the machine has stood still, a replica whose clock is ahead asks for a later tick first, which ends those before.
pub(crate) fn each_tick_ran_once(runs: &[Run], period: i64, at_least: usize) -> bool {
    assert!(runs.len() >= at_least, "{} runs, and not {at_least}: {runs:?}", runs.len());
    let mut fences = HashSet::new();
    for run in runs {
        assert!(fences.insert(run.fence), "one fence twice: {run:?}");
        assert!(run.begin >= run.tick - 50_000, "early by the database's clock: {run:?}");
    }
    let gaps: Vec<_> = runs.windows(2).map(|pair| pair[1].tick - pair[0].tick).collect();
    let is_in_order = gaps.iter().all(|gap| *gap > 0 && gap % period == 0);
    assert!(is_in_order, "twice, or none of the schedule's: {runs:?}");
    gaps.iter().all(|gap| *gap == period)
}

/// G1
#[test]
fn each_tick_runs_once_whatever_the_clocks_say() {
    let at_least = 12 * times(10) as usize;
    for_some("none is missing", &[1, 2, 3, 4], |attempt| {
        let name = format!("clocks {attempt}");
        let (said, runs) = three_with_wrong_clocks(Server::shared().url(), &name, at_least);
        assert!(said.iter().all(|it| it.word != "lost" && it.word != "skipped"), "{said:?}");
        each_tick_ran_once(&runs, SECOND / 2, at_least)
    });
}

/// Waits until one of the replicas has begun a run that is meant; returns it, the others, and that run.
pub(crate) fn find_holder(
    mut replicas: Vec<Replica>,
    is_meant: impl Fn(&Said) -> bool,
) -> (Replica, Vec<Replica>, Run) {
    let holder = wait_for_runs(&mut replicas, 1, is_meant);
    let holder = replicas.swap_remove(holder);
    let run = *runs(&holder.said[holder.said.len() - 1..]).last().unwrap();
    (holder, replicas, run)
}

/// How long the lease is that a killed holder had, in milliseconds.
const LEASE: u64 = 2000;

/// Starts three replicas, of which one runs a tick that all of them have planned.
fn three_with_a_holder(word: &str, more: &str) -> (String, Replica, Vec<Replica>, Run) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut patience = Patience::new();
    loop {
        let (url, number) = (Server::shared().url(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (name, more) = (format!("{word} {number}"), more.to_owned());
        let plan = Plan { url, name, period: 1000, lease: LEASE, run: 60_000, more };
        let replicas = plan.start_three([0; 3]);
        let since = real_micros();
        let (holder, others, run) = find_holder(replicas, |_| true);
        // One that was not there yet would not plan an earlier tick.
        if run.tick > since {
            return (plan.name, holder, others, run);
        }
        patience.go_on("a tick that all have planned");
    }
}

/// G2: kills the holder in its run, and returns the run, the next one, and after how many microseconds that began.
/// `None` if the machine stood still, and the holder had lost its lease before.
fn kill_the_holder(word: &str, more: &str) -> Option<(Run, Run, i64)> {
    let (name, holder, others, first) = three_with_a_holder(word, more);
    let of_name = format!("from punctual.gate where name = '{name}'");
    let row = |what: &str| Server::shared().value(&format!("select {what} {of_name}"));
    let until = row("lease_until");
    wait_until("the lease is renewed", || row("lease_until") != until);
    let killed_at = real_micros();
    let is_held = row(&format!("fence = {} and not done", first.fence)) == "t";
    holder.kill();
    if !is_held {
        return None;
    }
    let (next, others, _) = find_holder(others, |said| said.numbers[1] > first.fence);
    let said: Vec<_> =
        [next].into_iter().chain(others).flat_map(|replica| replica.kill()).collect();
    let runs: Vec<_> = runs(&said).into_iter().filter(|run| run.fence > first.fence).collect();
    let next = runs[0];
    // A second one only if the first one has lost its lease, because the machine stood still.
    let is_lost = said.iter().any(|it| it.word == "told" && it.numbers[0] == next.fence);
    assert!(runs.len() == 1 || is_lost, "one takes over: {runs:?}");
    assert!(next.fence > first.fence, "a larger fence: {first:?} {next:?}");
    let took = next.begin - killed_at;
    println!("taken over after {took} us");
    (took > 0).then_some((first, next, took))
}

/// By when the next run has to begin, with the time that a busy machine may take: in one round of some.
const IN_TIME: i64 = 2 * LEASE as i64 * 1000;

/// G2
#[test]
fn a_killed_holders_tick_runs_again_elsewhere() {
    for _ in 0..times(20) {
        for_some("it is taken over in time", &[1, 2, 3, 4, 5], |_| {
            let killed = kill_the_holder("killed", "");
            let Some((first, next, took)) = killed else { return false };
            assert_eq!(next.tick, first.tick, "the same tick");
            took < IN_TIME
        });
    }
}

/// G2
#[test]
fn a_killed_holders_tick_is_skipped_and_the_next_one_is_not_held_up() {
    for _ in 0..times(20) {
        for_some("the next one is not held up", &[1, 2, 3, 4, 5], |_| {
            let killed = kill_the_holder("skipped", "skip=1\n");
            let Some((first, next, took)) = killed else { return false };
            assert!(next.tick > first.tick, "a later tick");
            took < IN_TIME && next.begin - next.tick < 3 * SECOND
        });
    }
}
