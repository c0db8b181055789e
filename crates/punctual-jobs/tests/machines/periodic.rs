//! Ticks over several machines.

use std::{
    collections::HashMap,
    sync::mpsc::{self, Receiver, Sender},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use punctual::{Grace, ManualClock, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobRun, Jobs, Postgres, PostgresQueue, QueueEvent, aligned};
use serde::{Deserialize, Serialize};

use crate::{
    kinds::Tick,
    machine::postgres,
    size,
    support::{LONG, opened, receive, server::Server, wait_until},
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A clock that a test moves, at a full second an hour ago: what it ticks has come by the server's clock.
fn manual() -> ManualClock {
    manual_at(|now| now - HOUR)
}

/// A clock that a test moves, at the full second that is made of this one.
fn manual_at(moment: impl Fn(Duration) -> Duration) -> ManualClock {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let clock = ManualClock::new();
    clock.set_wall_time(UNIX_EPOCH + moment(Duration::from_secs(since)));
    clock
}

fn executor_on(clock: &ManualClock) -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2);
    builder.clock(clock.clone()).build().unwrap()
}

/// The fates of the ticks of a schedule with a tick each second: each run counts as one, and a report of merged or
/// lost ticks as the number that it tells.
struct Fates {
    queue: PostgresQueue,
    told: Receiver<(&'static str, u64)>,
    counts: HashMap<&'static str, u64>,
}

impl Fates {
    fn open(settings: impl Fn() -> Postgres) -> Self {
        let (tell, told) = mpsc::channel();
        let queue = opened(|| {
            let (runs, tell) = (tell.clone(), tell.clone());
            let jobs = Jobs::new().on(move |_: &JobRun, _: Tick| Ok(runs.send(("run", 1))?));
            let settings = settings().on_event(move |event| note(&tell, event));
            jobs.every(aligned(SECOND), Tick {}).open(settings)
        });
        Self { queue, told, counts: HashMap::new() }
    }

    /// Waits until this was told so often in all.
    fn wait_for(&mut self, words: &[&'static str], count: u64) {
        let of =
            |counts: &HashMap<_, _>| words.iter().filter_map(|word| counts.get(word)).sum::<u64>();
        while of(&self.counts) < count {
            let what = format!("{words:?}: {count} of {:?}", self.counts);
            let (word, more) = receive(&self.told, &what);
            *self.counts.entry(word).or_default() += more;
        }
        assert_eq!(of(&self.counts), count, "{:?}", self.counts);
    }
}

fn note(tell: &Sender<(&'static str, u64)>, event: &QueueEvent) {
    let _ = match event {
        QueueEvent::TicksLost { ticks, .. } => tell.send(("lost", *ticks)),
        QueueEvent::TicksMerged { ticks, .. } => tell.send(("merged", *ticks)),
        QueueEvent::TickInFuture { .. } => tell.send(("in the future", 1)),
        _ => return,
    };
}

#[test]
fn ticks_in_an_outage_enqueue_a_job_when_the_server_is_back() {
    let mut server = Server::start();
    let clock = manual();
    let executor = executor_on(&clock);
    let mut fates = Fates::open(|| postgres(&executor, &server.url()));
    clock.run_for(SECOND);
    fates.wait_for(&["run"], 1);
    server.stop();
    clock.run_for(10 * SECOND);
    server.again();
    fates.wait_for(&["run", "merged"], 11);
    assert_eq!(fates.counts["run"], 2, "one for all ten");
    clock.run_for(SECOND);
    fates.wait_for(&["run"], 3);
}

#[test]
fn ticks_that_cannot_be_kept_are_counted() {
    let mut server = Server::start();
    let clock = manual();
    let executor = executor_on(&clock);
    let mut fates = Fates::open(|| postgres(&executor, &server.url()).tick_deadline(SECOND));
    server.stop();
    clock.run_for(10 * SECOND);
    fates.wait_for(&["lost"], 10);
    // More than are kept, and a queue that is closed meanwhile.
    clock.run_for(1100 * SECOND);
    let queue = fates.queue.clone();
    queue.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    fates.wait_for(&["lost"], 1110);
}

/// The trigger counts the questions by a sequence, which no rollback takes back.
#[test]
fn a_tick_that_cannot_be_taken_is_asked_for_less_and_less_often() {
    let server = Server::start();
    let clock = manual();
    let executor = executor_on(&clock);
    let mut fates = Fates::open(|| postgres(&executor, &server.url()));
    server.sql(
        "create sequence public.asked; create function public.refuse() returns trigger language plpgsql as $$ begin \
         perform nextval('public.asked'); raise exception 'no'; end $$; \
         create trigger refuse before insert or update on punctual.job_tick for each row execute function public.refuse()",
    );
    let asked = || server.value("select case when is_called then last_value else 0 end from asked");
    let begun = Instant::now();
    clock.run_for(SECOND);
    wait_until("it is asked for four times", || asked().parse::<u64>().unwrap() >= 4);
    assert!(begun.elapsed() >= (1 + 2 + 4) * SECOND, "after {:?}", begun.elapsed());
    server.sql("drop trigger refuse on punctual.job_tick");
    fates.wait_for(&["run"], 1);
}

/// The executor is driven, and its owner does not call it: nothing that it runs would note a tick.
#[test]
fn a_tick_is_stored_while_no_worker_is_free() {
    let server = Server::start();
    let clock = manual();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.build_driven().unwrap();
    let queue = opened(|| {
        let jobs = Jobs::new().on(|_: &JobRun, _: Tick| Ok(())).every(aligned(SECOND), Tick {});
        jobs.open(postgres(&executor, &server.url()))
    });
    let last = "select extract(epoch from tick)::int8 from punctual.job_tick where name = 'tick'";
    for _ in 0..5 {
        clock.advance(SECOND);
        let tick = clock.wall_time().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
        wait_until("the tick is stored", || {
            server.sql(last).first().is_some_and(|row| row[0] == tick)
        });
    }
    let jobs = || server.value("select count(*) from punctual.job").parse::<u64>().unwrap();
    assert!(jobs() <= 2, "one is claimed, and one waits for all later ticks");
    wait_until("they have run", || {
        executor.run_due();
        jobs() == 0
    });
    drop(queue);
}

/// The longest name of a kind, and the longest of a schedule.
#[derive(Serialize, Deserialize)]
struct Long {}

impl Job for Long {
    const NAME: &'static str = "a2345678912345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
}

#[test]
fn schedules_of_the_longest_names_tick() {
    assert_eq!(Long::NAME.len(), 128);
    let server = Server::start();
    let clock = manual();
    let executor = executor_on(&clock);
    let (tell, told) = mpsc::channel();
    let jobs = Jobs::new().on(move |_: &JobRun, _: Long| Ok(tell.send(())?));
    let jobs = jobs.every(aligned(SECOND), Long {});
    let jobs = jobs.every_named("b".repeat(128), aligned(SECOND), Long {});
    let _queue = jobs.open(postgres(&executor, &server.url())).unwrap();
    clock.run_for(SECOND);
    for _ in 0..2 {
        receive(&told, "both tick");
    }
    assert_eq!(server.value("select count(*) from punctual.job_tick"), "2");
}

/// The server's clock was set back: a row is an hour ahead of it.
#[test]
fn a_tick_in_the_future_silences_no_schedule() {
    let server = Server::start();
    let clock = manual();
    let executor = executor_on(&clock);
    let mut fates = Fates::open(|| postgres(&executor, &server.url()));
    clock.run_for(SECOND);
    fates.wait_for(&["run"], 1);
    server.sql("update punctual.job_tick set tick = clock_timestamp() + interval '1 hour'");
    clock.run_for(SECOND);
    fates.wait_for(&["run"], 2);
    fates.wait_for(&["in the future"], 1);
    clock.run_for(SECOND);
    fates.wait_for(&["run"], 3);
    fates.wait_for(&["in the future"], 1);
}

/// Has the server write down which ticks were taken, and how many jobs were enqueued.
const LEDGER: &str = "
create table public.taken (tick timestamptz);
create table public.enqueued (id bigint);
create function public.takes() returns trigger language plpgsql as $$ begin
  insert into public.taken values (new.tick); return null; end $$;
create function public.enqueues() returns trigger language plpgsql as $$ begin
  insert into public.enqueued values (new.id); return null; end $$;
create trigger takes after insert or update of tick on punctual.job_tick for each row execute function public.takes();
create trigger enqueues after insert on punctual.job for each row execute function public.enqueues()";

/// By the server's clock the ticks of a machine that is ahead have not come, and one that is behind finds them taken. So neither
/// makes one, and the machine whose clock is right makes each. The ticks of those that are ahead are told as lost.
#[test]
fn a_machine_whose_clock_is_wrong_makes_no_tick_beside_one_that_is_right() {
    let server = Server::start();
    let right = manual();
    let executor = executor_on(&right);
    opened(|| postgres(&executor, &server.url()).migrate());
    server.sql(LEDGER);
    let _queue = Fates::open(|| postgres(&executor, &server.url()));
    let begin = right.wall_time();
    let taken = || server.sql("select extract(epoch from tick)::int8 from public.taken order by 1");
    right.run_for(SECOND);
    wait_until("the first tick is taken", || taken().len() == 1);
    let behind = manual_at(|now| now - 2 * HOUR);
    let wrong_executor = executor_on(&behind);
    let _behind = Fates::open(|| postgres(&wrong_executor, &server.url()));
    behind.run_for(8 * SECOND);
    for ahead in [HOUR, 86_400 * 24 * HOUR] {
        let ahead = manual_at(|now| now + ahead);
        let executor = executor_on(&ahead);
        let mut fates = Fates::open(|| postgres(&executor, &server.url()).tick_deadline(SECOND));
        ahead.run_for(8 * SECOND);
        fates.wait_for(&["lost"], 8);
    }
    for count in 2..=8 {
        right.run_for(SECOND);
        wait_until("the tick is taken", || taken().len() >= count);
    }
    let first = begin.duration_since(UNIX_EPOCH).unwrap().as_secs() + 1;
    let ticks: Vec<_> = (first..first + 8).map(|tick| vec![tick.to_string()]).collect();
    assert_eq!(taken(), ticks);
}

#[test]
fn each_tick_is_sent_once_over_all_machines() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(6);
    opened(|| postgres(&executor, &server.url()).migrate());
    server.sql(LEDGER);
    let (tell, told) = mpsc::channel();
    let queues: Vec<_> = (0..3)
        .map(|_| {
            opened(|| {
                let tell = tell.clone();
                let jobs = Jobs::new().on(move |run: &JobRun, _: Tick| Ok(tell.send(run.id)?));
                let jobs = jobs.every(aligned(SECOND / 4), Tick {});
                jobs.open(postgres(&executor, &server.url()).slots(2))
            })
        })
        .collect();
    let mut ran: Vec<_> =
        (0..size(16, 240)).map(|_| receive(&told, "a tick").to_string()).collect();
    for queue in queues {
        queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
    }
    ran.extend(told.try_iter().map(|id| id.to_string()));
    let value = |what: &str| server.value(what).parse::<usize>().unwrap();
    let twice =
        "select count(*) from (select 1 from public.taken group by tick having count(*) > 1) t";
    assert_eq!(value(twice), 0, "no tick is taken twice");
    let other = "select count(*) from public.taken where extract(epoch from tick) * 4 % 1 <> 0";
    assert_eq!(value(other), 0, "each is one of the schedule's");
    let taken = value("select count(*) from public.taken");
    // While a job of a tick waits there is no other one, so some ticks may have none of their own.
    let enqueued = value("select count(*) from public.enqueued");
    println!("{taken} ticks, {enqueued} jobs");
    assert!(enqueued <= taken, "{enqueued} jobs of {taken} ticks");
    let all = ran.len();
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), all, "no job has run twice");
    assert!(all <= enqueued, "{all} of {enqueued} have run");
    assert_eq!(server.value("select count(*) from punctual.job_tick"), "1");
}
