//! Ticks over several machines.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{ManualClock, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobQueue, JobRun, Jobs, Postgres, QueueEvent, aligned};
use serde::{Deserialize, Serialize};

use crate::{
    kinds::Tick,
    machine::postgres,
    size,
    support::{LIMIT, server::Server, wait_until},
};

const SECOND: Duration = Duration::from_secs(1);

/// A clock that a test moves, at a full second an hour ago: what it ticks has come by the server's clock.
fn manual() -> ManualClock {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let clock = ManualClock::new();
    clock.set_wall_time(UNIX_EPOCH + Duration::from_secs(since - 3600));
    clock
}

fn executor_on(clock: &ManualClock) -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2);
    builder.clock(clock.clone()).build().unwrap()
}

/// The fates of the ticks of a schedule with a tick each second: each run counts as one, and a report of merged or
/// lost ticks as the number that it tells.
struct Fates {
    queue: JobQueue,
    told: Receiver<(&'static str, u64)>,
    counts: HashMap<&'static str, u64>,
}

impl Fates {
    fn open(settings: Postgres) -> Self {
        let (tell, told) = mpsc::channel();
        let runs = tell.clone();
        let jobs = Jobs::new().on(move |_: &JobRun, _: Tick| Ok(runs.send(("run", 1))?));
        let settings = settings.on_event(move |event| note(&tell, event));
        let queue = jobs.every(aligned(SECOND), Tick {}).open(settings).unwrap();
        Self { queue, told, counts: HashMap::new() }
    }

    /// Waits until this was told so often in all.
    fn wait_for(&mut self, words: &[&'static str], count: u64) {
        let of =
            |counts: &HashMap<_, _>| words.iter().filter_map(|word| counts.get(word)).sum::<u64>();
        while of(&self.counts) < count {
            let told = self.told.recv_timeout(LIMIT);
            let (word, more) =
                told.unwrap_or_else(|_| panic!("{words:?}: {count} of {:?}", self.counts));
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
    let mut fates = Fates::open(postgres(&executor, &server.url()));
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
    let settings = postgres(&executor, &server.url()).tick_deadline(SECOND);
    let mut fates = Fates::open(settings);
    server.stop();
    clock.run_for(10 * SECOND);
    fates.wait_for(&["lost"], 10);
    // More than are kept, and a queue that is closed meanwhile.
    clock.run_for(1100 * SECOND);
    let queue = fates.queue.clone();
    queue.shutdown_within(Duration::ZERO, Duration::ZERO).unwrap();
    fates.wait_for(&["lost"], 1110);
}

/// The executor is driven, and its owner does not call it: nothing that it runs would note a tick.
#[test]
fn a_tick_is_stored_while_no_worker_is_free() {
    let server = Server::start();
    let clock = manual();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.build_driven().unwrap();
    let jobs = Jobs::new().on(|_: &JobRun, _: Tick| Ok(())).every(aligned(SECOND), Tick {});
    let queue = jobs.open(postgres(&executor, &server.url())).unwrap();
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
        told.recv_timeout(LIMIT).unwrap();
    }
    assert_eq!(server.value("select count(*) from punctual.job_tick"), "2");
}

/// The server's clock was set back: a row is an hour ahead of it.
#[test]
fn a_tick_in_the_future_silences_no_schedule() {
    let server = Server::start();
    let clock = manual();
    let executor = executor_on(&clock);
    let mut fates = Fates::open(postgres(&executor, &server.url()));
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

#[test]
fn each_tick_is_sent_once_over_all_machines() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(6);
    let period = Duration::from_millis(250);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let queues: Vec<_> = (0..3)
        .map(|_| {
            let runs = Arc::clone(&runs);
            let jobs = Jobs::new().on(move |run: &JobRun, _: Tick| {
                runs.lock().unwrap().push((run.id(), SystemTime::now()));
                Ok(())
            });
            jobs.every(aligned(period), Tick {}).open(postgres(&executor, &server.url()).slots(2))
        })
        .map(Result::unwrap)
        .collect();
    std::thread::sleep(size(Duration::from_secs(4), Duration::from_secs(60)));
    drop(queues);
    let mut runs = std::mem::take(&mut *runs.lock().unwrap());
    runs.sort_by_key(|(_, at)| *at);
    let slot = |at: &SystemTime| at.duration_since(UNIX_EPOCH).unwrap().as_millis() / 250;
    let mut slots = HashMap::new();
    for (_, at) in &runs {
        *slots.entry(slot(at)).or_insert(0) += 1;
    }
    let span = slot(&runs[runs.len() - 1].1) - slot(&runs[0].1) + 1;
    // A run may be late by a period, so single slots say little; the sum does not lie.
    assert!(runs.len() as u128 <= span + 1, "{} runs in {span} periods", runs.len());
    assert!(runs.len() as u128 + 3 >= span, "{} runs in {span} periods", runs.len());
    assert_eq!(server.value("select count(*) from punctual.job_tick"), "1");
}
