//! One machine: a process that opens a queue and runs jobs, and says what it does.

use std::time::Duration;

use punctual::{Handle, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobError, JobLimit, JobQueue, JobRun, Jobs, Postgres, QueueEvent};

use crate::{
    kinds::{
        Abort, METERED, Metered, RATIONED_AT_ONCE, Rationed, SHARED_AT_ONCE, Shared, Stubborn,
        Wait, Work,
    },
    support::{
        LIMIT, real_micros,
        replica::{Orders, Replica, say, wait_for_the_end},
        server::Server,
    },
};

/// How many jobs a machine runs at a time.
pub(crate) const SLOTS: usize = 4;
/// After which silence a machine counts as dead.
pub(crate) const LEASE: Duration = Duration::from_millis(1500);

/// Starts a machine.
pub(crate) fn start(server: &Server, number: usize) -> Replica {
    start_at(&server.url(), number)
}

/// Starts a machine with another lease than the usual one.
pub(crate) fn start_with_lease(server: &Server, number: usize, lease: Duration) -> Replica {
    let orders = format!("url={}\nlease={}", server.url(), lease.as_millis());
    let mut replica = Replica::start("machine::machine", number, &orders, 0);
    replica.wait_for("open");
    replica
}

/// Starts a machine that looks for jobs by itself only after such a time.
pub(crate) fn start_that_polls(server: &Server, number: usize, poll: Duration) -> Replica {
    let orders = format!("url={}\npoll={}", server.url(), poll.as_millis());
    let mut replica = Replica::start("machine::machine", number, &orders, 0);
    replica.wait_for("open");
    replica
}

/// Starts a machine that dies as soon as it is to tell of a discarded job.
pub(crate) fn start_that_dies_telling(server: &Server, number: usize) -> Replica {
    let orders = format!("url={}\ndies=telling", server.url());
    let mut replica = Replica::start("machine::machine", number, &orders, 0);
    replica.wait_for("open");
    replica
}

/// Starts a machine that keeps a history.
pub(crate) fn start_with_history(server: &Server, number: usize) -> Replica {
    start_ahead(server, number, 0)
}

/// The same with a wall clock that is so many seconds ahead.
pub(crate) fn start_ahead(server: &Server, number: usize, ahead: i32) -> Replica {
    let orders = format!(
        "url={}
history=yes",
        server.url()
    );
    let mut replica = Replica::start("machine::machine", number, &orders, ahead);
    replica.wait_for("open");
    replica
}

/// Starts a machine whose wall clock is so many seconds ahead.
pub(crate) fn start_with_clock(server: &Server, number: usize, ahead: i32) -> Replica {
    let orders = format!("url={}", server.url());
    let mut replica = Replica::start("machine::machine", number, &orders, ahead);
    replica.wait_for("open");
    replica
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
    let mut postgres = postgres(&executor, orders.text("url")).on_event(|event| {
        say(if let QueueEvent::ClaimLost { .. } = event { "lost" } else { "event" }, &[]);
    });
    if orders.has("lease") {
        let lease = orders.millis("lease");
        postgres = postgres.lease(lease).heartbeat(lease / 4);
    }
    if orders.has("poll") {
        postgres = postgres.poll(orders.millis("poll"));
    }
    if orders.has("history") {
        postgres = postgres.history(Duration::from_secs(3600));
    }
    let dies = orders.has("dies");
    let queue = handled().on_discarded(move |job| {
        if dies {
            say("dies_telling", &[job.id.get()]);
            std::process::abort();
        }
        say("discarded", &[job.id.get(), job.attempts.into()]);
    });
    let queue = queue.open(postgres).unwrap();
    say("open", &[]);
    wait_for_the_end();
    say("threads", &[std::fs::read_dir("/proc/self/task").unwrap().count() as i64]);
    queue.shutdown_within(Duration::from_secs(10), Duration::from_secs(1)).unwrap();
    for kind in queue.outcomes() {
        say(&format!("counted_{}", kind.kind), &[kind.succeeded as i64, kind.lost as i64]);
    }
    say("closed", &[]);
}

/// A queue of this process that sends and runs nothing.
pub(crate) fn sender(executor: &ScheduledThreadPoolExecutor, url: &str) -> JobQueue {
    Jobs::new().open(postgres(executor, url)).unwrap()
}

pub(crate) fn postgres(executor: &Handle, url: &str) -> Postgres {
    Postgres::on(executor, url)
        .poll(Duration::from_millis(100))
        .lease(LEASE)
        .heartbeat(Duration::from_millis(250))
        .request_timeout(Duration::from_secs(30))
}

fn handled() -> Jobs {
    Jobs::new()
        .on(|run: &JobRun, job: Work| {
            say("begins", &[job.number, real_micros(), run.attempt().into()]);
            run.token().sleep(Duration::from_millis(job.millis))?;
            say("ran", &[job.number, real_micros(), run.attempt().into()]);
            Ok(())
        })
        .on(|run: &JobRun, job: Rationed| {
            say("rationed", &[job.number, run.attempt().into()]);
            run.token().sleep(Duration::from_millis(job.millis))?;
            Ok(())
        })
        .limit::<Rationed>(JobLimit::at_once(RATIONED_AT_ONCE))
        .on(|run: &JobRun, job: Shared| {
            say("shared", &[job.number, run.attempt().into()]);
            run.token().sleep(Duration::from_millis(job.millis))?;
            Ok(())
        })
        .limit::<Shared>(JobLimit::at_once(SHARED_AT_ONCE).for_each_key())
        .on(|run: &JobRun, job: Metered| {
            say("metered", &[job.number, run.attempt().into()]);
            if job.number % 9 == 0 && run.attempt() == 1 {
                Err(JobError::new("once"))
            } else {
                Ok(())
            }
        })
        .backoff::<Metered>(|_| Duration::from_millis(50))
        .limit::<Metered>(
            JobLimit::in_window(METERED.0, Duration::from_millis(METERED.1) * METERED.0)
                .for_each_key(),
        )
        .on(|run: &JobRun, job: Stubborn| {
            say("stubborn", &[job.number, run.attempt().into()]);
            // A second attempt takes twice as long.
            std::thread::sleep(Duration::from_millis(job.millis * u64::from(run.attempt())));
            say("stubborn_ends", &[job.number, run.attempt().into()]);
            if job.fails { Err(JobError::new("stubborn")) } else { Ok(()) }
        })
        .backoff::<Stubborn>(|_| Duration::from_millis(100))
        .on(|run: &JobRun, _: Abort| {
            say("aborts", &[run.attempt().into()]);
            std::process::abort();
        })
        .on(|run: &JobRun, job: Wait| {
            say("waits", &[job.number, run.attempt().into()]);
            run.token().wait();
            say(&format!("{:?}", run.stop_reason().unwrap()), &[job.number]);
            say("stopped", &[job.number, i64::from(run.fencing_token().is_err())]);
            Err(JobError::new("stopped"))
        })
}

/// Waits until no job is left that can still run. However many there are, some have to go on.
pub(crate) fn drained(server: &Server) {
    let left = "from punctual.job where attempts < max_attempts or claim is not null";
    let (mut last, mut since) = (String::new(), std::time::Instant::now());
    loop {
        let now = server.value(&format!("select count(*) {left}"));
        if now == "0" {
            return;
        }
        if now != last {
            (last, since) = (now, std::time::Instant::now());
        }
        // A job that was hit twice or thrice waits for up to 20 s.
        if since.elapsed() > 3 * LIMIT {
            let what = "id, attempts, worker, claimed_at, run_at, clock_timestamp(), last_error";
            panic!("not done: {:#?}", server.sql(&format!("select {what} {left} limit 20")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
