//! Limits of kinds over machines that are killed and frozen, by a ledger that the server keeps.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use rustix::process::Signal;

use crate::{
    kinds::{RATIONED_AT_ONCE, Rationed},
    machine::{LEASE, drained, sender, start, start_with_clock},
    size,
    support::server::Server,
};

/// Has the server write down when claims begin and end. A claim that ends is committed before its slot is seen as free, so
/// by these moments no two claims of one slot overlap.
const LEDGER: &str = "
create table public.ledger (at timestamptz, ended bigint, begun bigint);
create function public.note() returns trigger language plpgsql as $$ begin
  if TG_OP = 'DELETE' then
    insert into public.ledger values (clock_timestamp(), old.claim, null);
  elsif new.claim is distinct from old.claim then
    insert into public.ledger values (clock_timestamp(), old.claim, new.claim);
  end if;
  return null;
end $$;
create trigger noted after update or delete on punctual.job for each row execute function public.note()";

/// Returns how many claims there were, and how many at once at most.
fn claims(server: &Server) -> (usize, usize) {
    let rows = server.sql(
        "select coalesce(ended, 0), coalesce(begun, 0) from public.ledger order by at, begun nulls first",
    );
    let (mut live, mut all, mut most) = (BTreeMap::new(), 0, 0);
    for row in rows {
        if row[0] != "0" {
            live.remove(&row[0]);
        }
        if row[1] != "0" {
            live.insert(row[1].clone(), ());
            all += 1;
        }
        most = most.max(live.len());
    }
    (all, most)
}

fn enqueue(server: &Server, jobs: i64, millis: u64) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    for number in 0..jobs {
        let job = queue.now(Rationed { number, millis }).max_attempts(20);
        let job = if number % 5 == 0 { job.ordering_key((number % 3).to_string()) } else { job };
        job.enqueue().unwrap();
    }
}

#[test]
fn a_limit_holds_over_machines_that_are_killed_and_frozen() {
    let server = Server::start();
    let jobs = size(300, 6000);
    enqueue(&server, jobs, 20);
    server.sql(LEDGER);
    let mut machines =
        [start(&server, 0), start_with_clock(&server, 1, 7), start_with_clock(&server, 2, -7)];
    for round in 0..size(2, 20) {
        let frozen = round % 2;
        machines[frozen].wait_for("rationed");
        machines[frozen].signal(Signal::STOP);
        machines[2].wait_for("rationed");
        machines[2].signal(Signal::KILL);
        machines[2] = start_with_clock(&server, 2, -7);
        std::thread::sleep(LEASE * 2);
        machines[frozen].signal(Signal::CONT);
    }
    drained(&server);
    let (all, most) = claims(&server);
    println!("{jobs} jobs of a limit of {RATIONED_AT_ONCE}: {all} claims, {most} at once at most");
    assert_eq!(most, RATIONED_AT_ONCE as usize);
    assert!(all >= jobs as usize);
}

#[test]
fn a_limit_is_used_up_by_several_machines() {
    let server = Server::start();
    let machines: Vec<_> = (0..3).map(|number| start(&server, number)).collect();
    let jobs = size(150, 1500);
    enqueue(&server, jobs, 20);
    let begun = Instant::now();
    drained(&server);
    let took = begun.elapsed();
    // As fast as the limit lets them, with much room: no slot waits for a poll each time.
    let least = Duration::from_millis(20) * (jobs as u32) / RATIONED_AT_ONCE;
    println!("{jobs} jobs of 20 ms, {RATIONED_AT_ONCE} at once: {took:?}, at least {least:?}");
    assert!(took < 10 * least + Duration::from_secs(60), "{took:?}");
    drop(machines);
}
