//! Priorities hold across all jobs without an ordering key: with limit keys, without, and of kinds with a limit.

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobLimit, JobQueue, JobRun, Jobs, Priority};

use crate::{
    kinds::{Held, Work},
    machine::{SLOTS, drained, postgres, sender},
    support::{opened, server::Server},
};

/// Writes down each claim with the priority of its job.
const LEDGER: &str = "
create table public.ledger (claim bigint, priority int);
create function public.note() returns trigger language plpgsql as $$ begin
  if new.claim is distinct from old.claim and new.claim is not null then
    insert into public.ledger values (new.claim, new.priority);
  end if;
  return null;
end $$;
create trigger noted after update on punctual.job for each row execute function public.note()";

/// Stores jobs, has one machine run them, and says whether no job was claimed before one of a higher priority.
fn claimed_by_priority(store: impl Fn(&JobQueue)) {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(SLOTS);
    store(&sender(&executor, &server.url()));
    server.sql(LEDGER);
    let machine = opened(|| {
        let jobs = Jobs::new()
            .on(|_: &JobRun, _: Work| Ok(()))
            .on(|_: &JobRun, _: Held| Ok(()))
            .limit::<Held>(JobLimit::at_once(10));
        jobs.open(postgres(&executor, &server.url()))
    });
    drained(&server);
    drop(machine);
    let before = "select count(*) from public.ledger low
        where claim < (select max(claim) from public.ledger high where high.priority < low.priority)";
    assert_eq!(server.value(before), "0", "{:?}", server.sql("select * from public.ledger"));
    assert_eq!(server.value("select count(*) from public.ledger"), "70");
}

/// Stores as many jobs of each priority, the least urgent first.
fn jobs(store: impl Fn(i64, Priority)) {
    for (count, priority) in [(40, Priority::Low), (10, Priority::Normal), (20, Priority::High)] {
        (0..count).for_each(|number| store(number, priority));
    }
}

#[test]
fn a_priority_is_before_the_limit_keys_of_a_kind_without_a_limit() {
    claimed_by_priority(|queue| {
        jobs(|number, priority| {
            let job = queue.now(Work { number, millis: 0 }).priority(priority);
            let job = if priority == Priority::High { job.limit_key("key") } else { job };
            job.enqueue().unwrap();
        });
    });
}

#[test]
fn a_priority_is_before_the_kinds_with_a_limit() {
    claimed_by_priority(|queue| {
        jobs(|number, priority| {
            let job = match priority {
                Priority::High => queue.now(Held { number, millis: 0 }),
                _ => queue.now(Work { number, millis: 0 }),
            };
            job.priority(priority).enqueue().unwrap();
        });
    });
}

#[test]
fn a_priority_is_before_the_kinds_without_a_limit() {
    claimed_by_priority(|queue| {
        jobs(|number, priority| {
            let job = match priority {
                Priority::Low => queue.now(Held { number, millis: 0 }).limit_key("key"),
                _ => queue.now(Work { number, millis: 0 }),
            };
            job.priority(priority).enqueue().unwrap();
        });
    });
}
