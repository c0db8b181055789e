//! G4 and G5: the server restarts, is killed, or does not answer.

use std::{thread, time::Duration};

use punctual_jobs::gate::Gate;

use crate::{
    runner::{FOREVER, Plan, Run, runs},
    support::{opened, real_micros, replica::Said, server::Server, times},
    ticks::wait_for_runs,
};

/// Has the server write down which ends of runs it was told, by their ticks in microseconds.
pub(crate) const LEDGER: &str = "
create table public.told (tick bigint, fence bigint);
create function public.note() returns trigger language plpgsql as $$ begin
  if new.done and not old.done then
    insert into public.told values ((extract(epoch from new.tick) * 1000000)::bigint, new.fence);
  end if;
  return null;
end $$;
create trigger noted after update on punctual.gate for each row execute function public.note()";

/// No tick has run again after its end was told. One whose end could not be told runs again.
pub(crate) fn nothing_ran_again(server: &Server, runs: &[Run]) {
    for row in server.sql("select tick, fence from public.told") {
        let [tick, fence] = [0, 1].map(|place: usize| row[place].parse::<i64>().unwrap());
        let again = runs.iter().find(|run| run.tick == tick && run.fence > fence);
        assert!(again.is_none(), "twice: {again:?} of {runs:?}");
    }
}

/// The same, and ticks have run in order.
fn nothing_ran_twice(server: &Server, runs: &[Run]) {
    nothing_ran_again(server, runs);
    for pair in runs.windows(2) {
        assert!(pair[0].tick <= pair[1].tick, "in order: {pair:?}");
    }
}

fn words<'a>(said: &'a [Said], word: &'a str) -> impl Iterator<Item = &'a Said> {
    said.iter().filter(move |it| it.word == word)
}

/// Three replicas while the server is restarted again and again in a way.
fn restarted(name: &str, restart: impl Fn(&mut Server)) {
    let mut server = Server::start();
    // It makes the table.
    drop(opened(|| Gate::postgres(server.url()).open()));
    server.sql(LEDGER);
    let (url, name) = (server.url(), name.to_owned());
    // A tick is claimed, runs, is renewed or is left at nearly each moment.
    let plan = Plan { url, name, period: 200, lease: 1000, run: 150, more: String::new() };
    let mut replicas = plan.start_three([0; 3]);
    let goes_on = |replicas: &mut [_], since: i64| {
        wait_for_runs(replicas, 4, |said| said.numbers[2] > since);
    };
    goes_on(&mut replicas, 0);
    for round in 0..3 * times(10) {
        thread::sleep(Duration::from_millis(u64::from(round) * 37 % 200));
        restart(&mut server);
        let since = real_micros();
        goes_on(&mut replicas, since);
        println!("resumed within {} us, with four runs", real_micros() - since);
    }
    let said: Vec<_> = replicas.into_iter().flat_map(|replica| replica.end()).collect();
    nothing_ran_twice(&server, &runs(&said));
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
    // A run that was granted before the server stopped may begin after, but not one whose tick had not come.
    let is_within = |run: &&Run| run.tick > stopped && run.begin < again;
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
    // A question is given up soon, and its tick is not before a whole lease has passed.
    let more = "limit=1000\n".to_owned();
    let plan = Plan { url, name, period: 1000, lease: FOREVER, run: 10, more };
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
    let frozen_at = real_micros();
    // Each question waits for its time-out of one second. The pool has one worker, and meanwhile that runs another task.
    let mut goes_on = 0;
    for _ in 0..4 * times(5) {
        let asked = replica.said.len();
        replica.wait_for("unreachable");
        let said = &replica.said[asked..];
        let asks = said.iter().rposition(|said| said.word == "asks");
        goes_on += u32::from(asks.is_some_and(|asks| words(&said[asks..], "beside").count() > 0));
    }
    println!("another task ran beside {goes_on} questions");
    assert!(goes_on > 0, "a worker was held: {:?}", replica.said);
    server.thaw();
    replica.has_said("a run", |said| said.word == "begin" && said.numbers[2] > frozen_at);
    drop(replica.end());
}
