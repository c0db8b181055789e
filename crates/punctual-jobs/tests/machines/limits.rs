//! Limits of kinds over machines that are killed and frozen, by a ledger that the server keeps.

use std::{
    collections::BTreeMap,
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobError, JobLimit, JobRun, Jobs};
use rustix::process::Signal;

use crate::{
    kinds::{RATIONED_AT_ONCE, Rationed, SHARED_AT_ONCE, Shared},
    machine::{
        LEASE, drained, postgres, sender, start, start_ordered, start_that_polls, start_with,
    },
    size,
    support::{block_on, replica::Replica, server::Server, wait_until},
};

/// Has the server write down when claims begin and end. A claim that ends is committed before its slot is seen as free, so
/// by these moments no two claims of one slot overlap.
const LEDGER: &str = "
create table public.ledger (at timestamptz, ended bigint, begun bigint, key text);
create function public.note() returns trigger language plpgsql as $$ begin
  if TG_OP = 'DELETE' then
    insert into public.ledger values (clock_timestamp(), old.claim, null, old.limit_key);
  elsif new.claim is distinct from old.claim then
    insert into public.ledger values (clock_timestamp(), old.claim, new.claim, new.limit_key);
  end if;
  return null;
end $$;
create trigger noted after update or delete on punctual.job for each row execute function public.note()";

/// Returns how many claims there were of a limit key, and how many at once at most.
fn claims(server: &Server, key: &str) -> (usize, usize) {
    let rows = server.sql(&format!(
        "select coalesce(ended, 0), coalesce(begun, 0) from public.ledger where key = '{key}' order by at, begun nulls first",
    ));
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
        let job = queue.now(Rationed { number, millis }).max_attempts(100);
        let job = if number % 5 == 0 { job.ordering_key((number % 3).to_string()) } else { job };
        job.enqueue().unwrap();
    }
}

/// Three machines with clocks that differ, of which one is killed and one is frozen, again and again. Before each time more is
/// enqueued, so that each of them has something to run. From the second half on a transaction is open, whose snapshot has the server keep
/// each row that ends.
pub(crate) fn trouble(server: &Server, word: &str, enqueue: impl Fn()) {
    let lease = format!("lease={}", LEASE.as_millis());
    let start = |number, ahead| start_ordered(server, number, ahead, &lease);
    let mut machines = [start(0, 0), start(1, 7), start(2, -7)];
    let (rounds, mut snapshot) = (size(2, 20), None);
    for round in 0..rounds {
        if round == rounds / 2 {
            snapshot = Some(server.pin_snapshot());
        }
        enqueue();
        let frozen = round % 2;
        machines[frozen].wait_for(word);
        machines[frozen].signal(Signal::STOP);
        machines[2].wait_for(word);
        machines[2].signal(Signal::KILL);
        let gone = [machines[frozen].process(), machines[2].process()];
        machines[2] = start(2, -7);
        let theirs = gone.map(|process| format!("worker like '%:{process} %'")).join(" or ");
        let theirs = format!("select count(*) from punctual.job where {theirs}");
        wait_until("what they held is free", || server.value(&theirs) == "0");
        machines[frozen].signal(Signal::CONT);
    }
    drained(server);
    drop(snapshot);
}

#[test]
fn a_limit_holds_over_machines_that_are_killed_and_frozen() {
    let server = Server::start();
    let (jobs, rounds) = size((300, 2), (6000, 20));
    enqueue(&server, 0, 20);
    server.sql(LEDGER);
    trouble(&server, "rationed", || enqueue(&server, jobs / rounds, 20));
    let (all, most) = claims(&server, "");
    println!("{jobs} jobs of a limit of {RATIONED_AT_ONCE}: {all} claims, {most} at once at most");
    assert_eq!(most, RATIONED_AT_ONCE as usize);
    assert!(all >= jobs as usize);
}

#[test]
fn a_limit_for_each_key_holds_over_machines_that_are_killed_and_frozen() {
    let server = Server::start();
    let ((jobs, rounds), keys) = (size((600, 2), (9000, 20)), 4);
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    server.sql(LEDGER);
    let send = |number| {
        let job = queue.now(Shared { number, millis: 20 }).max_attempts(100);
        let key = number % keys;
        let job = if key > 0 { job.limit_key(key.to_string()) } else { job };
        let job = if number % 7 == 0 { job.ordering_key((number % 3).to_string()) } else { job };
        job.enqueue().unwrap();
    };
    trouble(&server, "shared", || (0..jobs / rounds).for_each(send));
    let of_keys: Vec<_> = ["", "1", "2", "3"].map(|key| claims(&server, key)).into();
    println!("{jobs} jobs, {SHARED_AT_ONCE} at once of each of {keys} keys: {of_keys:?}");
    assert!(of_keys.iter().all(|(_, most)| *most == SHARED_AT_ONCE as usize), "{of_keys:?}");
    assert!(of_keys.iter().map(|(all, _)| all).sum::<usize>() >= jobs as usize);
}

/// A limit key with many jobs holds up no other, on one machine with four threads.
#[test]
fn a_limit_key_with_many_jobs_lets_the_others_have_their_turns() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let jobs = size(20_000, 100_000);
    let insert = |kind: &str, key: &str, count: i64| {
        server.sql(&format!(
            "insert into punctual.job (name, payload, limit_key, due, run_at)
               select '{kind}', '{{\"number\": 0, \"millis\": 5}}', '{key}', true, now() - interval '1 hour'
                 from generate_series(1, {count}) n"
        ));
    };
    for kind in ["shared", "rationed"] {
        insert(kind, "many", jobs);
        insert(kind, "one", 1);
        insert(kind, "another", 1);
    }
    server.sql(LEDGER);
    let machine = start(&server, 0);
    let left = "select count(*) from punctual.job where limit_key in ('one', 'another')";
    wait_until("the others have run", || server.value(left) == "0");
    machine.kill();
    let before = "select count(*) from public.ledger where begun is not null and key = 'many'
        and begun < (select max(begun) from public.ledger where key in ('one', 'another'))";
    let before: i64 = server.value(before).parse().unwrap();
    println!(
        "beside {jobs} jobs of one limit key of each kind: {before} of them began before those of others"
    );
    assert!(before <= 20, "{before}");
}

#[test]
fn a_limit_is_used_up_by_several_machines() {
    let server = Server::start();
    // A slot that is free is taken at once: none waits for a poll.
    let hour = Duration::from_secs(3600);
    let machines: Vec<_> = (0..3).map(|number| start_that_polls(&server, number, hour)).collect();
    let jobs = size(150, 1500);
    enqueue(&server, jobs, 20);
    let begun = Instant::now();
    drained(&server);
    let took = begun.elapsed();
    let least = Duration::from_millis(20) * (jobs as u32) / RATIONED_AT_ONCE;
    println!("{jobs} jobs of 20 ms, {RATIONED_AT_ONCE} at once: {took:?}, at least {least:?}");
    assert!(took >= least, "{took:?}");
    drop(machines);
}

/// A machine shares the lock of a limit that cannot bind with others, and waits until it has that of one that can bind alone.
#[test]
fn a_limit_that_cannot_bind_shares_its_lock() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = mpsc::channel();
    let tell_shared = tell.clone();
    let jobs = Jobs::new()
        .on(move |_: &JobRun, _: Rationed| tell.send("rationed").map_err(JobError::new))
        .limit::<Rationed>(JobLimit::at_once(1))
        .on(move |_: &JobRun, _: Shared| tell_shared.send("shared").map_err(JobError::new))
        .limit::<Shared>(JobLimit::at_once(2).for_each_key());
    let queue = jobs.open(postgres(&executor, &server.url()).slots(2)).unwrap();
    block_on(async {
        let holder = server.connect().await;
        let lock = "select pg_advisory_lock_shared(hashtextextended('punctual.limit ' || kind, 0))
            from unnest(array['rationed', 'shared']) kind";
        holder.batch_execute(lock).await.unwrap();
        queue.now(Rationed { number: 0, millis: 0 }).enqueue().unwrap();
        for number in 0..20 {
            queue.now(Shared { number, millis: 0 }).limit_key("key").enqueue().unwrap();
            assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("shared"));
        }
        holder.batch_execute("select pg_advisory_unlock_all()").await.unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("rationed"));
    });
}

/// Machines that claim jobs of one limit at the same moment do not wait for each other in the server, and none reports that the server
/// is away.
#[test]
fn a_limit_makes_no_statement_wait_for_a_lock() {
    let server = Server::start();
    // The server says which statement waits for longer than a millisecond, and for what.
    server.sql("alter system set log_lock_waits = on");
    server.sql("alter system set deadlock_timeout = '1ms'");
    server.sql("select pg_reload_conf()");
    // On a busy machine an answer may take seconds, and its lateness would be an event.
    let machines: Vec<_> =
        (0..3).map(|number| start_with(&server, number, "limit=30000")).collect();
    let jobs = size(300, 3000);
    server.sql(&format!(
        "insert into punctual.job (name, payload, limit_key)
           select kind, format('{{\"number\": %s, \"millis\": 5}}', n), case when kind = 'shared' then (n % 8)::text else '' end
             from generate_series(1, {jobs}) n, (values ('rationed'), ('shared')) kinds(kind);
         notify punctual"
    ));
    drained(&server);
    let said: Vec<_> = machines.into_iter().flat_map(Replica::end).collect();
    let events = said.iter().filter(|said| said.word == "event").count();
    assert_eq!(events, 0, "events of what is normal");
    let log = std::fs::read_to_string(server.place().path().join("log")).unwrap();
    let waits = log.matches("still waiting for ShareLock on transaction").count();
    assert_eq!(waits, 0, "of {jobs} jobs of each kind");
}
