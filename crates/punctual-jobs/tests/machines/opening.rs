//! How a queue is opened, and what is sent in a transaction.

use std::{
    os::unix::net::UnixListener,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{InMemory, JobRun, Jobs, OpenError, Postgres, QueueError};

use crate::{
    kinds::{Tick, Work},
    machine::{drained, postgres, sender, start},
    support::{block_on, for_some, opened, pgbouncer::PgBouncer, place::Place, server::Server},
};

#[test]
fn transaction_pooling_is_refused() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let pooler = PgBouncer::start(&server, "transaction", 5);
    let error = Jobs::new().open(postgres(&executor, pooler.url())).unwrap_err();
    assert!(matches!(error, OpenError::TransactionPooling(_)), "{error}");
    assert!(error.to_string().contains("pool_mode = session"), "{error}");
    let pooler = PgBouncer::start(&server, "session", 20);
    let queue = opened(|| Jobs::new().open(postgres(&executor, pooler.url())));
    queue.now(Work { number: 1, millis: 0 }).enqueue().unwrap();
}

#[test]
fn many_machines_open_at_once() {
    let server = Server::start();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let executor = ScheduledThreadPoolExecutor::new(1);
                drop(sender(&executor, &server.url()));
            });
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let url = "host=/nowhere user=nobody dbname=nothing";
    let error = Jobs::new().open(Postgres::on(&executor, url)).unwrap_err();
    assert!(matches!(error, OpenError::Server(_)), "{error}");
    let error = Jobs::new().open(Postgres::on(&executor, "no address")).unwrap_err();
    assert!(matches!(error, OpenError::Address(_)), "{error}");
}

/// A server that accepts a connection and says nothing.
#[test]
fn a_server_that_is_silent_is_an_error() {
    let place = Place::new();
    let silent = UnixListener::bind(place.path().join(".s.PGSQL.5432")).unwrap();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let url = format!("host={} user=nobody dbname=nothing", place.path().display());
    let limit = Duration::from_secs(1);
    let is_silent = |error| assert!(matches!(error, OpenError::Server(_)), "{error}");
    // Without a limit it would block each time.
    for_some("within its limit", &[1, 2, 3, 4], |_| {
        let begun = Instant::now();
        is_silent(
            Jobs::new().open(Postgres::on(&executor, &url).request_timeout(limit)).unwrap_err(),
        );
        begun.elapsed() < 4 * limit
    });
    for_some("within the usual limit", &[1, 2, 3, 4], |_| {
        let begun = Instant::now();
        is_silent(Postgres::on(&executor, &url).migrate().unwrap_err());
        begun.elapsed() < 16 * limit
    });
    drop(silent);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let on = || Postgres::on(&executor, "host=/nowhere");
    let second = Duration::from_secs(1);
    for wrong in [on().lease(second).heartbeat(second), on().slots(0), on().poll(Duration::ZERO)] {
        let error = Jobs::new().open(wrong).unwrap_err();
        assert!(matches!(error, OpenError::Setting(_)), "{error}");
    }
}

#[test]
fn ticks_have_to_be_on_the_wall_clock() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let every = punctual::trigger::every(Duration::from_secs(1));
    let jobs = Jobs::new().on(|_: &JobRun, _: Tick| Ok(())).every(every, Tick {});
    let error = jobs.open(postgres(&executor, &server.url())).unwrap_err();
    assert!(matches!(error, OpenError::NotOnWallClock { name: "tick" }), "{error}");
}

#[test]
fn a_job_in_a_transaction_exists_if_that_commits() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start(&server, 0);
    block_on(async {
        let mut client = server.connect().await;
        for (number, commits) in [(1, false), (2, true)] {
            let transaction = client.transaction().await.unwrap();
            let job = Work { number, millis: 0 };
            queue.now(job).key("k").enqueue_in(&transaction).await.unwrap();
            if commits {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
        }
    });
    drained(&server);
    let said = machine.end();
    let ran: Vec<_> = said.iter().filter(|said| said.word == "ran").collect();
    assert_eq!(ran.iter().map(|said| said.numbers[0]).collect::<Vec<_>>(), [2]);

    let in_memory = Jobs::new().on(|_: &JobRun, _: Work| Ok(()));
    let in_memory = in_memory.open(InMemory::on(&executor)).unwrap();
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let sent = in_memory.now(Work { number: 3, millis: 0 }).enqueue_in(&transaction).await;
        assert!(matches!(sent, Err(QueueError::Unsupported(_))));
    });
}
