//! Several machines, as processes with clocks of their own, that are killed and frozen.

use std::{collections::BTreeMap, time::Duration};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{CatchUp, JobRun, Jobs, Overlap, Schedule};
use rustix::process::Signal;

use super::SECOND;
use crate::{
    kinds::Tick,
    machine::{postgres, sender},
    size,
    support::{
        LONG, for_some, opened, real_micros,
        replica::{Orders, Replica, Said, say, wait_for_the_end},
        server::Server,
        wait_until,
    },
};

/// The role: a test that does nothing unless this process is a machine.
#[test]
fn ticks() {
    let Some(orders) = Orders::of("schedules::several::ticks") else { return };
    let executor = ScheduledThreadPoolExecutor::new(4);
    let queue = opened(|| {
        let jobs = Jobs::new().on(|run: &JobRun, _: Tick| {
            let micros = |time: std::time::SystemTime| {
                time.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64
            };
            say("tick", &[run.tick.map_or(0, micros), real_micros(), run.attempt.into()]);
            Ok(())
        });
        jobs.open(postgres(&executor, orders.text("url")))
    });
    say("open", &[]);
    wait_for_the_end();
    queue.shutdown_within(Grace::patience(LONG).then(SECOND)).unwrap();
}

fn start(server: &Server, number: usize, clock: i32) -> Replica {
    let orders = format!("url={}", server.url());
    let mut replica = Replica::start("schedules::several::ticks", number, &orders, clock);
    replica.wait_for("open");
    replica
}

fn put(server: &Server, schedule: Schedule) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    queue.schedules().put(schedule).call().unwrap();
}

/// How often each tick was begun, by its moment, and the latest by which one began.
fn runs_of(said: &[Said]) -> (BTreeMap<i64, u32>, i64) {
    let mut runs = BTreeMap::new();
    let mut latest = 0;
    for said in said.iter().filter(|said| said.word == "tick") {
        *runs.entry(said.numbers[0]).or_default() += 1;
        latest = latest.max(said.numbers[1] - said.numbers[0]);
        assert!(said.numbers[1] >= said.numbers[0] - 50_000, "it is early: {said:?}");
    }
    (runs, latest)
}

fn gaps(runs: &BTreeMap<i64, u32>, period: i64) -> i64 {
    let (first, last) = (runs.keys().next().unwrap(), runs.keys().last().unwrap());
    (last - first) / period + 1 - runs.len() as i64
}

/// The ticks are the server's, whatever the clocks of the machines say.
#[test]
fn each_tick_runs_once_whatever_the_clocks_say() {
    let server = Server::start();
    put(&server, Schedule::every("a", SECOND / 4, &Tick {}).overlap(Overlap::Allow(20)));
    let replicas = [start(&server, 0, 0), start(&server, 1, 7), start(&server, 2, -7)];
    let count = |what: &str| -> i64 {
        server.value(&format!("select {what} from punctual.job_schedule")).parse().unwrap()
    };
    for part in 1..=size(1, 16) {
        wait_until("they tick", || count("enqueued") >= 30 * part);
    }
    let said: Vec<_> = replicas.into_iter().flat_map(Replica::end).collect();
    let (runs, latest) = runs_of(&said);
    println!("{} ticks of three machines, {latest} us late at most", runs.len());
    assert!(runs.values().all(|count| *count == 1), "none twice: {runs:?}");
    // Late ones when the machine stands still, and those for which there is no room then.
    let without = count("missed + skipped");
    assert!(gaps(&runs, 250_000) <= without, "none is lost but {without}: {runs:?}");
    assert!(runs.len() > 20, "{runs:?}");
}

/// Machines are killed and frozen, again and again. A job that was running when its machine died runs again, so a tick
/// may begin twice; it has one job.
#[test]
fn no_tick_is_lost_or_enqueued_twice_when_machines_die() {
    let server = Server::start();
    server.sql("create table enqueued (id bigint, tick timestamptz)");
    let schedule = Schedule::every("a", SECOND / 4, &Tick {}).overlap(Overlap::Allow(1000));
    put(&server, schedule.catch_up(CatchUp::Each(Duration::from_secs(3600))));
    server.sql(
        "create function note() returns trigger language plpgsql as $$ begin \
         insert into public.enqueued values (new.id, new.tick); return new; end $$",
    );
    server.sql(
        "create trigger note after insert on punctual.job for each row execute function note()",
    );
    let mut replicas: Vec<_> = [0, 7, -7]
        .iter()
        .enumerate()
        .map(|(number, clock)| start(&server, number, *clock))
        .collect();
    for round in 0..size(6, 60) {
        std::thread::sleep(Duration::from_millis(700 + 130 * (round % 5)));
        let place = round as usize % 3;
        match round % 4 {
            0 | 2 => {
                replicas.remove(place).kill();
                replicas.insert(place, start(&server, place, [0, 7, -7][place]));
            }
            _ => {
                replicas[place].signal(Signal::STOP);
                std::thread::sleep(Duration::from_millis(900));
                replicas[place].signal(Signal::CONT);
            }
        }
    }
    let enough = || server.value("select count(*) > 20 from enqueued") == "t";
    wait_until("some more ticks", enough);
    server.sql("update punctual.job_schedule set paused = true, next_at = null");
    drop(replicas);
    let all = server.value("select count(*) from enqueued").parse::<i64>().unwrap();
    let distinct =
        server.value("select count(distinct tick) from enqueued").parse::<i64>().unwrap();
    assert_eq!(all, distinct, "a tick has one job");
    let span = "extract(epoch from max(tick) - min(tick)) * 4 + 1";
    let ticks =
        server.value(&format!("select ({span})::int8 from enqueued")).parse::<i64>().unwrap();
    println!("{all} ticks");
    assert_eq!(all, ticks, "each tick has a job");
}

/// All machines stand still for longer than the time that a tick is on time, and wake up at once.
#[test]
fn machines_that_were_all_frozen_make_up_for_it_once() {
    // If the machine of the test stands still as well, there is more to make up for.
    for_some("once, and the others are missed", &[1, 2, 3, 4], |_| make_up());
}

fn make_up() -> bool {
    let server = Server::start();
    let schedule = Schedule::every("a", SECOND, &Tick {});
    put(&server, schedule.catch_up(CatchUp::Last(Duration::from_secs(3600))));
    let replicas = [start(&server, 0, 0), start(&server, 1, 7), start(&server, 2, -7)];
    let count = |what: &str| -> i64 {
        server.value(&format!("select {what} from punctual.job_schedule")).parse().unwrap()
    };
    wait_until("they tick", || count("enqueued") >= 2);
    replicas.iter().for_each(|replica| replica.signal(Signal::STOP));
    let before = count("enqueued");
    std::thread::sleep(12 * SECOND);
    replicas.iter().for_each(|replica| replica.signal(Signal::CONT));
    wait_until("they go on", || count("enqueued") >= before + 3);
    let (after, missed) = (count("enqueued"), count("missed"));
    let said: Vec<_> = replicas.into_iter().flat_map(Replica::end).collect();
    let (runs, _) = runs_of(&said);
    assert!(runs.values().all(|count| *count == 1), "none twice: {runs:?}");
    println!("from {before} to {after}, and {missed} missed");
    after <= before + 6 && (8..=13).contains(&missed)
}
