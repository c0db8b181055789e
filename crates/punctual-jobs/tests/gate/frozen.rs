//! G3: a holder that is frozen and wakes up again.

use std::{thread, time::Duration};

use rustix::process::Signal;

use crate::{
    runner::{Plan, runs},
    support::{real_micros, replica::Said, server::Server, times},
    ticks::{find_holder, find_holder_of_later},
};

fn find<'a>(said: &'a [Said], word: &str, fence: i64) -> Option<&'a Said> {
    said.iter().find(|it| it.word == word && it.numbers.first() == Some(&fence))
}

/// Freezes a holder for three leases; checks what it and its successor say.
pub(crate) fn freeze_the_holder(server: &Server, url: String, name: &str) {
    let table = format!("effect_{}", name.replace(' ', "_"));
    server.sql(&format!("create table {table} (tick bigint, fence bigint)"));
    let (name, more) = (name.to_owned(), format!("effects={table}\n"));
    let plan = Plan { url, name: name.clone(), period: 500, lease: 1000, run: 1500, more };
    let replicas = plan.start_three([0; 3]);
    // One that was not there yet would not plan an earlier tick.
    let (mut holder, others) = find_holder_of_later(real_micros(), replicas);
    holder.signal(Signal::STOP);
    let fence = holder.said.last().unwrap().numbers[1];
    thread::sleep(Duration::from_millis(3000));
    let (successor, other) = {
        let (successor, mut others) = find_holder(others);
        (successor, others.pop().unwrap())
    };
    holder.signal(Signal::CONT);
    let woken = real_micros();
    let told = holder.wait_for("told");
    assert_eq!(told[0], fence);
    assert_eq!(told[2], 1, "the body's first look sees that the lease is lost: {told:?}");
    assert!(told[3] - woken < 3_000_000, "{} us after it woke", told[3] - woken);
    assert_eq!(holder.wait_for("refused"), [fence], "the guard refuses its effects");
    thread::sleep(Duration::from_millis(2000));
    let mut said = holder.end();
    let lost = said.iter().filter(|it| it.word == "lost" && it.numbers[0] == fence).count();
    assert_eq!(lost, 1, "its end is told once: {said:?}");
    said.extend(successor.end());
    said.extend(other.end());
    let runs = runs(&said);
    let first = runs.iter().find(|run| run.fence == fence).unwrap();
    let second = runs.iter().find(|run| run.fence > fence).unwrap();
    assert_eq!(first.tick, second.tick, "the tick is taken over");
    assert!(find(&said, "effect", second.fence).is_some(), "the survivor has its effects");
    let twice = server.sql(&format!("select tick from {table} group by tick having count(*) > 1"));
    assert!(twice.is_empty(), "effects are there once: {twice:?}");
    assert_eq!(server.value(&format!("select count(*) from {table} where fence = {fence}")), "0");
    // The late leave of the one that woke has not touched what the others wrote.
    let ended = runs.iter().map(|run| run.fence).max().unwrap();
    let row = server.sql(&format!("select fence, done from punctual.gate where name = '{name}'"));
    assert_eq!(row, [[ended.to_string(), "t".to_owned()]]);
}

/// G3
#[test]
fn a_holder_that_was_frozen_knows_that_it_has_lost_its_lease() {
    let server = Server::shared();
    for round in 0..times(10) {
        freeze_the_holder(server, server.url(), &format!("frozen {round}"));
    }
}
