//! G8: a fixed delay, over all replicas.

use crate::{
    runner::{FOREVER, Plan, Run, runs},
    support::{for_some, server::Server, times},
    ticks::{SECOND, find_holder, wait_for_runs},
};

/// G8
#[test]
fn a_delay_is_kept_between_the_runs_of_all_replicas() {
    let (url, name) = (Server::shared().url(), "delay".to_owned());
    let more = "delay=1000\n".to_owned();
    // It counts from the end of a run, and not from that of a lease that was not needed any more: that is none of these.
    let plan = Plan { url, name, period: 0, lease: FOREVER, run: 200, more };
    let mut replicas = plan.start_three([0, 7, -7]);
    wait_for_runs(&mut replicas, 5 * times(9) as usize, |_| true);
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    let runs = runs(&said);
    let gap = |pair: &[Run]| pair[1].begin - pair[0].end.expect("it has ended");
    for pair in runs.windows(2) {
        assert!(gap(pair) >= SECOND, "a gap of {} us: {pair:?}", gap(pair));
    }
    let shortest = runs.windows(2).map(gap).min();
    let replicas: std::collections::HashSet<_> = runs.iter().map(|run| run.replica).collect();
    println!("{} runs on {} replicas, {shortest:?} us apart", runs.len(), replicas.len());
}

/// G8
#[test]
fn a_delay_goes_on_after_a_holder_was_killed() {
    // It is counted from the grant. If the machine stands still between that and the begin, it is shorter.
    for_some("a lease and a delay later", &[1, 2, 3, 4], |attempt| {
        let (url, name) = (Server::shared().url(), format!("delay killed {attempt}"));
        let more = "delay=300\n".to_owned();
        let plan = Plan { url, name, period: 0, lease: 1000, run: 60_000, more };
        let (holder, others, first) = find_holder(plan.start_three([0; 3]), |_| true);
        holder.kill();
        let (_next, _other, next) = find_holder(others, |said| said.numbers[1] > first.fence);
        println!("{} us later", next.begin - first.begin);
        next.begin - first.begin >= 1_200_000
    });
}
