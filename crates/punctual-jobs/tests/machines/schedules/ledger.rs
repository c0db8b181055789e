//! The ledger of schedules, which the server keeps: what became of each tick while machines are killed and answers are lost.

use std::{collections::BTreeMap, time::Duration};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{CatchUp, Overlap, Schedule};
use rustix::process::Signal;

use crate::{
    kinds::Work,
    machine::{postgres, sender},
    size,
    support::{opened, proxy::Proxy, replica::Replica, server::Server, wait_until},
};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Half of it is how long a machine that opens waits for an answer.
const LEASE: Duration = Duration::from_secs(4);

/// Has the server write down each job of a schedule, and each change of a row, in the transaction that makes it.
const LEDGER: &str = "
create table public.enqueued (id bigint, schedule text, tick timestamptz);
create table public.settled (name text, period_us bigint, after timestamptz, until timestamptz, enqueued bigint, missed bigint, skipped bigint);
create function public.enqueues() returns trigger language plpgsql as $$ begin
  insert into public.enqueued values (new.id, new.schedule, new.tick); return null; end $$;
create function public.settles() returns trigger language plpgsql as $$ begin
  insert into public.settled values (new.name, new.period_us, old.tick, new.tick,
    new.enqueued - old.enqueued, new.missed - old.missed, new.skipped - old.skipped); return null; end $$;
create trigger enqueues after insert on punctual.job for each row when (new.schedule is not null) execute function public.enqueues();
create trigger settles after update on punctual.job_schedule for each row execute function public.settles()";

/// One for each policy that settles ticks in its own way. Those of `Each` with room enough leave out no tick.
fn schedules() -> Vec<Schedule> {
    let every = |name: &str, period: u32, millis: u64| {
        Schedule::every(name, period * MILLI, &Work { number: 0, millis })
    };
    let each = CatchUp::Each(HOUR);
    vec![
        every("each", 250, 0).catch_up(each).overlap(Overlap::Allow(1000)),
        every("each with jitter", 300, 5)
            .catch_up(each)
            .overlap(Overlap::Allow(1000))
            .jitter(200 * MILLI),
        every("each of few", 200, 20).catch_up(each).overlap(Overlap::Allow(2)),
        every("each in line", 250, 20).catch_up(each),
        every("each or none", 400, 30).catch_up(each).overlap(Overlap::Skip),
        every("the last", 300, 400).catch_up(CatchUp::Last(HOUR)).overlap(Overlap::Replace),
        every("none", 350, 20).catch_up(CatchUp::None).overlap(Overlap::Skip),
    ]
}

fn start(proxy: &Proxy, number: usize) -> Replica {
    let orders =
        format!("url={}\nlease={}\nhistory=yes\nlimit=5000", proxy.url(), LEASE.as_millis());
    let mut replica = Replica::start("machine::machine", number, &orders, 0);
    replica.wait_for("open");
    replica
}

/// The numbers of each schedule, by its name.
fn numbers(server: &Server, text: &str) -> BTreeMap<String, Vec<i64>> {
    let rows = server.sql(text).into_iter().map(|row| {
        let numbers = row[1..].iter().map(|number| number.parse().unwrap());
        (row[0].clone(), numbers.collect())
    });
    rows.collect()
}

/// The number of a tick, whose moments are the multiples of the period.
const NUMBER: &str = "create function public.number(moment timestamptz, period bigint) returns bigint language sql as \
    $$ select floor(extract(epoch from moment) * 1000000 / period)::bigint $$";

/// Each tick has one fate, and one job at most; no tick has succeeded twice, and each run in the history is that of a job. From the second
/// half on a transaction is open, whose snapshot has the server keep each row that ends.
#[test]
fn each_tick_is_counted_once_when_machines_die_and_answers_are_lost() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    opened(|| postgres(&executor, &server.url()).migrate());
    server.sql(LEDGER);
    server.sql(NUMBER);
    let queue = sender(&executor, &server.url());
    for schedule in schedules() {
        queue.schedules().put(schedule).call().unwrap();
    }
    let proxy = Proxy::start(&server);
    let mut machines: Vec<_> = (0..3).map(|number| start(&proxy, number)).collect();
    let (rounds, mut snapshot) = (size(4, 60), None);
    for round in 0..rounds {
        if round == rounds / 2 {
            snapshot = Some(server.pin_snapshot());
        }
        std::thread::sleep(Duration::from_millis(300 + 170 * (round % 4)));
        proxy.cut();
        let place = round as usize % 3;
        match round % 4 {
            0 | 2 => {
                std::thread::sleep(Duration::from_millis(40 * round % 130));
                machines.remove(place).kill();
                machines.insert(place, start(&proxy, place));
            }
            1 => {
                machines[place].signal(Signal::STOP);
                std::thread::sleep(LEASE + LEASE / 4);
                machines[place].signal(Signal::CONT);
            }
            _ => {}
        }
    }
    let least = "select min(enqueued) > 5 from punctual.job_schedule";
    wait_until("each has ticked", || server.value(least) == "t");
    for schedule in queue.schedules().list().call().unwrap() {
        assert!(queue.schedules().pause(&schedule.name).call().unwrap());
    }
    add_up(&server);
    drop(snapshot);
}

fn add_up(server: &Server) {
    let twice = "select schedule, tick, array_agg(id) from public.enqueued group by schedule, tick having count(*) > 1";
    assert!(server.sql(twice).is_empty(), "a tick has two jobs: {:?}", server.sql(twice));
    let wrong = "select * from public.settled where enqueued + missed + skipped \
                 <> public.number(until, period_us) - public.number(after, period_us)";
    assert!(server.sql(wrong).is_empty(), "a change does not add up: {:?}", server.sql(wrong));
    let counted = numbers(
        server,
        "select s.name, s.enqueued, s.missed, s.skipped,
           public.number(s.tick, s.period_us) - public.number(b.begin, s.period_us),
           (select count(*) from public.enqueued e where e.schedule = s.name)
         from punctual.job_schedule s
         join (select name, min(after) as begin from public.settled group by name) b on b.name = s.name",
    );
    assert_eq!(counted.len(), schedules().len());
    for (name, numbers) in &counted {
        let [enqueued, missed, skipped, passed, jobs] = numbers[..] else { panic!("{numbers:?}") };
        println!("{name}: {enqueued} jobs, {missed} missed, {skipped} left out of {passed} ticks");
        assert_eq!(enqueued + missed + skipped, passed, "of the ticks of {name}");
        assert_eq!(enqueued, jobs, "of the jobs of {name}");
        if ["each", "each with jitter"].contains(&name.as_str()) {
            assert_eq!(enqueued, passed, "{name} leaves none out");
        }
    }
    let ran = "select schedule, tick, count(*) from punctual.job_run where outcome = 'ran' and schedule is not null \
               group by schedule, tick having count(*) > 1";
    assert!(server.sql(ran).is_empty(), "a tick has succeeded twice: {:?}", server.sql(ran));
    let known = "select count(*) from punctual.job_run r where schedule is not null \
                 and not exists (select from public.enqueued e where e.id = r.job and e.tick = r.tick)";
    assert_eq!(server.value(known), "0", "a run of a tick that has no job");
}
