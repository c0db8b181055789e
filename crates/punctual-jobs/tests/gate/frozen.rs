//! G3: a holder that is frozen and wakes up again.

use rustix::process::Signal;

use crate::{
    runner::{Plan, Run, runs},
    support::{
        real_micros,
        replica::{Replica, Said},
        server::Server,
        times,
    },
    ticks::{find_holder, wait_for_runs},
};

fn has(said: &[Said], word: &str, fence: i64) -> bool {
    said.iter().any(|it| it.word == word && it.numbers.first() == Some(&fence))
}

/// Freezes a holder that has the row. On a busy machine a run may have ended by then: so it is tried with the next one.
fn freeze_one(
    server: &Server,
    name: &str,
    mut replicas: Vec<Replica>,
) -> (Replica, Vec<Replica>, Run) {
    // One that was not there yet would not plan an earlier tick.
    let since = real_micros();
    loop {
        let (holder, others, run) = find_holder(replicas, |said| said.numbers[0] > since);
        holder.signal(Signal::STOP);
        let fence = run.fence;
        let is_held = format!(
            "select count(*) from punctual.gate where name = '{name}' and fence = {fence} and not done and not exists (
               select from pg_stat_activity where state like 'idle in transaction%')"
        );
        if server.value(&is_held) == "1" {
            return (holder, others, run);
        }
        holder.signal(Signal::CONT);
        replicas = others;
        replicas.push(holder);
    }
}

/// Freezes a holder until its lease is over; checks what it and its successor say.
pub(crate) fn freeze_the_holder(server: &Server, url: String, name: &str) {
    let table = format!("effect_{}", name.replace(' ', "_"));
    server.sql(&format!("create table {table} (tick bigint, fence bigint)"));
    let (name, more) = (name.to_owned(), format!("effects={table}\n"));
    let plan = Plan { url, name: name.clone(), period: 500, lease: 1000, run: 1500, more };
    let (mut holder, others, first) = freeze_one(server, &name, plan.start_three([0; 3]));
    let fence = first.fence;
    // The tick is taken over.
    let is_again = |said: &Said| said.numbers[0] == first.tick && said.numbers[1] > fence;
    let (successor, other, _) = find_holder(others, is_again);
    let woken = real_micros();
    holder.signal(Signal::CONT);
    holder.has_said("told", |said| said.word == "told" && said.numbers[0] == fence);
    let told = holder.said.iter().find(|it| it.word == "told" && it.numbers[0] == fence).unwrap();
    assert_eq!(told.numbers[2], 1, "the body's first look sees that the lease is lost: {told:?}");
    for word in ["refused", "lost"] {
        holder.has_said(word, |said| said.word == word && said.numbers[0] == fence);
    }
    // Until all have gone on for a while: neither what was told nor the effects come again.
    let mut all = vec![holder, successor];
    all.extend(other);
    wait_for_runs(&mut all, 3, |said| said.numbers[2] > woken);
    let said: Vec<_> = all.into_iter().flat_map(Replica::end).collect();
    let lost = said.iter().filter(|it| it.word == "lost" && it.numbers[0] == fence).count();
    assert_eq!(lost, 1, "its end is told once: {said:?}");
    let runs = runs(&said);
    let mut again = runs.iter().filter(|run| run.tick == first.tick && run.fence > fence);
    assert!(again.any(|run| has(&said, "effect", run.fence)), "the survivors have its effects");
    let twice = server.sql(&format!("select tick from {table} group by tick having count(*) > 1"));
    assert!(twice.is_empty(), "effects are there once: {twice:?}");
    assert_eq!(server.value(&format!("select count(*) from {table} where fence = {fence}")), "0");
    let ended = runs.iter().map(|run| run.fence).max().unwrap();
    let row = format!("select fence >= {ended}, done from punctual.gate where name = '{name}'");
    // A run at the end that has lost its lease as well has told no end.
    let is_done = if has(&said, "effect", ended) { "t" } else { "f" };
    assert_eq!(server.sql(&row), [["t", is_done]]);
}

/// G3
#[test]
fn a_holder_that_was_frozen_knows_that_it_has_lost_its_lease() {
    let server = Server::shared();
    for round in 0..times(10) {
        freeze_the_holder(server, server.url(), &format!("frozen {round}"));
    }
}
