//! G8: a fixed delay, over all replicas.

use std::{thread, time::Duration};

use crate::{
    runner::{Plan, Run, runs},
    support::{server::Server, times},
    ticks::SECOND,
};

/// G8
#[test]
fn a_delay_is_kept_between_the_runs_of_all_replicas() {
    let (url, name) = (Server::shared().url(), "delay".to_owned());
    let more = "delay=1000\n".to_owned();
    let plan = Plan { url, name, period: 0, lease: 2000, run: 200, more };
    let span = Duration::from_secs(7) * times(9);
    let replicas = plan.start_three([0, 7, -7]);
    thread::sleep(span);
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    let runs = runs(&said);
    assert!(runs.len() >= span.as_secs() as usize / 2, "{runs:?}");
    let gap = |pair: &[Run]| pair[1].begin - pair[0].end.expect("it has ended");
    for pair in runs.windows(2) {
        assert!(gap(pair) >= SECOND, "a gap of {} us: {pair:?}", gap(pair));
    }
    // It counts from the end of the run, and not from that of a lease that was not needed any more.
    let shortest = runs.windows(2).map(gap).min();
    assert!(shortest < Some(2 * SECOND), "{shortest:?} us at least");
    let replicas: std::collections::HashSet<_> = runs.iter().map(|run| run.replica).collect();
    println!("{} runs on {} replicas", runs.len(), replicas.len());
}

/// G8
#[test]
fn a_delay_goes_on_after_a_holder_was_killed() {
    let (url, name) = (Server::shared().url(), "delay killed".to_owned());
    let more = "delay=300\n".to_owned();
    let plan = Plan { url, name, period: 0, lease: 1000, run: 60_000, more };
    let (holder, others) = crate::ticks::find_holder(plan.start_three([0; 3]));
    let first = runs(&holder.kill())[0];
    let (next, _other) = crate::ticks::find_holder(others);
    let next = runs(&next.kill())[0];
    assert!(next.fence > first.fence, "{first:?} {next:?}");
    // The lease is counted from the grant, which is a little before the run begins.
    assert!(next.begin - first.begin >= 1_200_000, "a lease and a delay later: {first:?} {next:?}");
}
