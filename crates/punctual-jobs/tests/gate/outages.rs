//! G4 and G5: the server restarts, is killed, or does not answer.

use std::{collections::HashMap, thread, time::Duration};

use crate::{
    runner::{Plan, Run, runs},
    support::{real_micros, replica::Said, server::Server, times},
};

/// No tick has run twice to its end, no two runs of one tick overlap, and runs have gone on after each of
/// these moments.
fn nothing_ran_twice(runs: &[Run], outages: &[i64]) {
    let mut ended: HashMap<i64, i64> = HashMap::new();
    for run in runs {
        if let Some(end) = run.end {
            let other = ended.insert(run.tick, end);
            // One whose end could not be told may run again; not one whose end was told.
            let is_in_outage = |at: &i64| outages.iter().any(|it| (at - it).abs() < 3_000_000);
            assert!(other.as_ref().is_none_or(is_in_outage), "twice: {run:?} of {runs:?}");
        }
    }
    for pair in runs.windows(2) {
        assert!(pair[0].tick <= pair[1].tick, "in order: {pair:?}");
    }
    for outage in outages {
        let after = runs.iter().find(|run| run.begin > *outage).map(|run| run.begin - outage);
        let after = after.unwrap_or_else(|| panic!("nothing runs after {outage}: {runs:?}"));
        assert!(after < 5_000_000, "resumed after {after} us");
        println!("resumed after {after} us");
    }
}

fn words<'a>(said: &'a [Said], word: &'a str) -> impl Iterator<Item = &'a Said> {
    said.iter().filter(move |it| it.word == word)
}

/// Three replicas while the server is restarted again and again in a way.
fn restarted(name: &str, restart: impl Fn(&mut Server)) {
    let mut server = Server::start();
    let (url, name) = (server.url(), name.to_owned());
    // A tick is claimed, runs, is renewed or is left at nearly each moment.
    let plan = Plan { url, name, period: 200, lease: 1000, run: 150, more: String::new() };
    let replicas = plan.start_three([0; 3]);
    let mut outages = Vec::new();
    for round in 0..3 * times(10) {
        thread::sleep(Duration::from_millis(1000 + u64::from(round) * 37 % 200));
        restart(&mut server);
        outages.push(real_micros());
    }
    thread::sleep(Duration::from_millis(2500));
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    nothing_ran_twice(&runs(&said), &outages);
}

/// G4
#[test]
fn ticks_go_on_after_the_server_was_restarted_at_once() {
    restarted("restarted", Server::restart_immediate);
}

/// G4
#[test]
fn ticks_go_on_after_the_server_was_killed() {
    restarted("killed", Server::kill_and_restart);
}

/// G4
#[test]
fn ticks_in_an_outage_are_reported_and_run_by_nobody() {
    let mut server = Server::start();
    let (url, name) = (server.url(), "outage".to_owned());
    let plan = Plan { url, name, period: 500, lease: 1000, run: 10, more: String::new() };
    let mut replica = plan.start(0, 0);
    replica.wait_for("begin");
    server.stop();
    let stopped = real_micros();
    replica.wait_for("unreachable");
    let skipped = replica.wait_for("skipped");
    assert_eq!(skipped[1], 0, "for this reason");
    let again = real_micros();
    server.again();
    replica.wait_for("begin");
    let said = replica.end();
    let runs = runs(&said);
    // A run that was granted before the server stopped may begin a little after.
    let is_within = |run: &&Run| (stopped + 100_000..again).contains(&run.begin);
    assert_eq!(runs.iter().find(is_within).map(|run| run.tick), None, "nothing ran: {runs:?}");
    let ran_again = runs.iter().find(|run| run.tick == skipped[0]);
    assert!(ran_again.is_none(), "what was skipped stays skipped");
    let counts = &words(&said, "counts").next().unwrap().numbers;
    assert!(counts[2] >= 1 && counts[3] >= 1, "it is counted: {counts:?}");
}

/// G4
#[test]
fn a_tick_in_a_short_outage_runs_when_the_server_is_back() {
    let mut server = Server::start();
    let (url, name) = (server.url(), "short".to_owned());
    let plan = Plan { url, name, period: 1000, lease: 30_000, run: 10, more: String::new() };
    let mut replica = plan.start(0, 0);
    replica.wait_for("begin");
    server.stop();
    let tick = replica.wait_for("unreachable")[0];
    server.again();
    assert_eq!(replica.wait_for("begin")[0], tick);
    assert!(words(&replica.end(), "skipped").next().is_none());
}

/// G5
#[test]
fn a_server_that_does_not_answer_holds_no_worker() {
    let server = Server::start();
    let (url, name) = (server.url(), "mute".to_owned());
    let more = "beside=1\n".to_owned();
    let plan = Plan { url, name, period: 500, lease: 2000, run: 10, more };
    let mut replica = plan.start(0, 0);
    replica.wait_for("begin");
    server.freeze();
    for _ in 0..4 * times(5) {
        replica.wait_for("unreachable");
    }
    server.thaw();
    replica.wait_for("begin");
    let said = replica.end();
    // The request time-out is one second. The server was frozen for longer.
    let longest = words(&said, "asked").map(|it| it.numbers[0]).max().unwrap();
    println!("a worker was held for {longest} us at most");
    assert!(longest < 900_000, "a worker was held for {longest} us");
    let latest = words(&said, "latest").next().unwrap().numbers[0];
    println!("another task was {latest} us late at most");
    assert!(latest < 900_000, "another task was {latest} us late");
}
