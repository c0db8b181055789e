//! One machine: a process that opens a queue and runs jobs, and says what it does.

use std::time::Duration;

use punctual::{Grace, Handle, ScheduledThreadPoolExecutor};
use punctual_jobs::{
    JobError, JobLimit, JobOutcome, JobRun, Jobs, Postgres, PostgresQueue, QueueEvent,
};

use crate::{
    kinds::{
        Abort, Directed, FAILS, METERED, Metered, RATIONED_AT_ONCE, Rationed, SHARED_AT_ONCE,
        Shared, Stubborn, Wait, Work,
    },
    support::{
        LONG, Patience, block_on, connected, opened, real_micros,
        replica::{Orders, Replica, say, wait_for_the_end},
        server::{Server, rows},
    },
};

/// How many jobs a machine runs at a time.
pub(crate) const SLOTS: usize = 4;
/// After which silence a machine counts as dead whose death is waited for.
pub(crate) const LEASE: Duration = Duration::from_millis(1500);

/// Starts a machine. It has a lease that outlasts the test, so it loses no job because the machine of the test stands still.
pub(crate) fn start(server: &Server, number: usize) -> Replica {
    start_at(&server.url(), number)
}

/// Starts a machine whose jobs are soon taken over if it is killed or frozen; and if the machine of the test stands still.
pub(crate) fn start_mortal(server: &Server, number: usize) -> Replica {
    start_with_lease(server, number, LEASE)
}

/// Starts a machine with another lease than the usual one.
pub(crate) fn start_with_lease(server: &Server, number: usize, lease: Duration) -> Replica {
    start_with(server, number, &format!("lease={}", lease.as_millis()))
}

/// The workers of a process, in the tables.
fn workers_of(process: u32) -> String {
    format!("punctual.job_worker where id like '%:{process} %'")
}

/// Ends the lease of a machine that is dead, or frozen: what time does as well.
pub(crate) fn end_lease(server: &Server, process: u32) {
    let ended = "set until = clock_timestamp(), lease_us = 0";
    let workers = workers_of(process).replace(" where", &format!(" {ended} where"));
    server.sql(&format!("update {workers}"));
}

/// Waits until a process has had so many heartbeats, with all that belongs to one.
pub(crate) fn beats(server: &Server, process: u32, count: usize) {
    block_on(beats_async(server, process, count));
}

/// The same in the runtime of the caller.
pub(crate) async fn beats_async(server: &Server, process: u32, count: usize) {
    let client = server.connect().await;
    let last = format!("select max(until) from {}", workers_of(process));
    let (mut seen, mut changes, mut patience) = (None, 0, Patience::new());
    // What was going on at the first change may have begun before this call, and the last one may not be over.
    while changes <= count + 1 {
        let until = Some(rows(&client, &last).await.unwrap());
        if until != seen {
            (seen, changes, patience) = (until, changes + 1, Patience::new());
        }
        patience.go_on("a heartbeat");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Starts a machine that looks for jobs by itself only after such a time.
pub(crate) fn start_that_polls(server: &Server, number: usize, poll: Duration) -> Replica {
    start_with(server, number, &format!("poll={}", poll.as_millis()))
}

/// Starts a machine with these further orders.
pub(crate) fn start_with(server: &Server, number: usize, more: &str) -> Replica {
    start_ordered(server, number, 0, more)
}

/// The same with a wall clock that is so many seconds ahead.
pub(crate) fn start_ordered(server: &Server, number: usize, ahead: i32, more: &str) -> Replica {
    let orders = format!("url={}\n{more}", server.url());
    let mut replica = Replica::start("machine::machine", number, &orders, ahead);
    replica.wait_for("open");
    replica
}

/// Starts a machine that dies as soon as it is to tell of a discarded job.
pub(crate) fn start_that_dies_telling(server: &Server, number: usize) -> Replica {
    start_with(server, number, "dies=telling")
}

/// Starts a machine that keeps a history.
pub(crate) fn start_with_history(server: &Server, number: usize) -> Replica {
    start_ahead(server, number, 0)
}

/// The same with a wall clock that is so many seconds ahead.
pub(crate) fn start_ahead(server: &Server, number: usize, ahead: i32) -> Replica {
    start_ordered(server, number, ahead, "history=yes")
}

/// Starts a machine whose server is at this address.
pub(crate) fn start_at(url: &str, number: usize) -> Replica {
    let mut replica = Replica::start("machine::machine", number, &format!("url={url}"), 0);
    replica.wait_for("open");
    replica
}

/// The role: a test that does nothing unless this process is a machine.
#[test]
fn machine() {
    let Some(orders) = Orders::of("machine::machine") else { return };
    let executor = ScheduledThreadPoolExecutor::new(SLOTS);
    let dies = orders.has("dies");
    let queue = opened(|| {
        let queue = handled().on_discarded(move |job| {
            if dies {
                say("dies_telling", &[job.id.0]);
                std::process::abort();
            }
            say("discarded", &[job.id.0, job.attempts.into()]);
        });
        queue.open(ordered(&executor, &orders))
    });
    say("open", &[]);
    wait_for_the_end();
    say("threads", &[std::fs::read_dir("/proc/self/task").unwrap().count() as i64]);
    queue.shutdown_within(Grace::patience(LONG).then(Duration::from_secs(1))).unwrap();
    for kind in queue.outcomes() {
        say(
            &format!("counted_{}", kind.kind),
            &[kind.of(JobOutcome::Succeeded) as i64, kind.of(JobOutcome::Lost) as i64],
        );
    }
    say("closed", &[]);
}

/// The settings of a machine by its orders.
fn ordered(executor: &Handle, orders: &Orders) -> Postgres {
    let mut postgres = postgres(executor, orders.text("url")).on_event(|event| {
        say(if let QueueEvent::ClaimLost { .. } = event { "lost" } else { "event" }, &[]);
    });
    if orders.has("lease") {
        let lease = orders.millis("lease");
        postgres = postgres.lease(lease).heartbeat((lease / 4).min(BEAT));
    }
    if orders.has("limit") {
        postgres = postgres.request_timeout(orders.millis("limit"));
    }
    if orders.has("poll") {
        postgres = postgres.poll(orders.millis("poll"));
    }
    if orders.has("history") {
        postgres = postgres.history(Duration::from_secs(3600));
    }
    postgres
}

/// A queue of this process that sends and runs nothing. It has no heartbeat, and finds nothing of dead machines.
pub(crate) fn sender(executor: &ScheduledThreadPoolExecutor, url: &str) -> PostgresQueue {
    connected(opened(|| Jobs::new().open(postgres(executor, url))))
}

/// How often a machine says that it lives.
const BEAT: Duration = Duration::from_millis(250);

pub(crate) fn postgres(executor: &Handle, url: &str) -> Postgres {
    Postgres::on(executor, url)
        .poll(Duration::from_millis(100))
        .lease(LONG)
        .heartbeat(BEAT)
        .request_timeout(LONG)
}

fn handled() -> Jobs {
    Jobs::new()
        .on(|run: &JobRun, job: Work| {
            say("begins", &[job.number, real_micros(), run.attempt.into()]);
            run.token().sleep(Duration::from_millis(job.millis))?;
            say("ran", &[job.number, real_micros(), run.attempt.into()]);
            Ok(())
        })
        .on(|run: &JobRun, job: Rationed| {
            say("rationed", &[job.number, run.attempt.into()]);
            run.token().sleep(Duration::from_millis(job.millis))?;
            Ok(())
        })
        .limit::<Rationed>(JobLimit::at_once(RATIONED_AT_ONCE))
        .on(|run: &JobRun, job: Shared| {
            say("shared", &[job.number, run.attempt.into()]);
            run.token().sleep(Duration::from_millis(job.millis))?;
            Ok(())
        })
        .limit::<Shared>(JobLimit::at_once(SHARED_AT_ONCE).for_each_key())
        .on(|run: &JobRun, job: Metered| {
            say("metered", &[job.number, run.attempt.into()]);
            if job.number % 9 == 0 && run.attempt == 1 {
                Err(JobError::new("once"))
            } else {
                Ok(())
            }
        })
        .backoff::<Metered>(punctual::Backoff::constant(Duration::from_millis(50)))
        .limit::<Metered>(
            JobLimit::in_window(METERED.0, Duration::from_millis(METERED.1) * METERED.0)
                .for_each_key(),
        )
        .on(|run: &JobRun, job: Stubborn| {
            say("stubborn", &[job.number, run.attempt.into()]);
            std::thread::sleep(Duration::from_millis(job.millis));
            say("stubborn_ends", &[job.number, run.attempt.into()]);
            if job.fails { Err(JobError::new("stubborn")) } else { Ok(()) }
        })
        .backoff::<Stubborn>(punctual::Backoff::constant(Duration::from_millis(100)))
        .on(|run: &JobRun, job: Directed| {
            say("directed", &[job.number, run.attempt.into()]);
            let word = job.word_for(run.attempt);
            say("directed_ends", &[job.number, run.attempt.into()]);
            if word == FAILS { Err(JobError::new("directed")) } else { Ok(()) }
        })
        .backoff::<Directed>(punctual::Backoff::constant(Duration::from_millis(100)))
        .on(|run: &JobRun, _: Abort| {
            say("aborts", &[run.attempt.into()]);
            std::process::abort();
        })
        .on(|run: &JobRun, job: Wait| {
            say("waits", &[job.number, run.attempt.into()]);
            run.token().wait();
            say(&format!("{:?}", run.stop_reason().unwrap()), &[job.number]);
            say("stopped", &[job.number, i64::from(run.fencing_token().is_err())]);
            Err(JobError::new("stopped"))
        })
}

/// Waits until no job is left that can still run. However many there are, some have to go on.
pub(crate) fn drained(server: &Server) {
    let left = "from punctual.job where attempts < max_attempts or claim is not null";
    let (mut last, mut waited) = (String::new(), (Patience::new(), Patience::new()));
    loop {
        let now = server.value(&format!("select count(*) {left}"));
        if now == "0" {
            return;
        }
        if now != last {
            (last, waited) = (now, (Patience::new(), Patience::new()));
        }
        // A job that was hit more than once waits for longer than one patience.
        if !waited.0.lasts() && !waited.1.lasts() {
            let what = "id, attempts, worker, claimed_at, run_at, clock_timestamp(), last_error";
            panic!("not done: {:#?}", server.sql(&format!("select {what} {left} limit 20")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
