//! How a queue is opened, and what is sent in a transaction.

use std::{
    os::unix::net::UnixListener,
    sync::mpsc,
    time::{Duration, Instant},
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobRun, Jobs, OpenError, Postgres};

use crate::{
    kinds::{Tick, Work},
    machine::{drained, postgres, sender, start},
    support::{
        LONG, block_on, for_some, opened, pgbouncer::PgBouncer, place::Place, receive,
        server::Server, wait_until,
    },
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

/// A queue that handles jobs has five connections, and one that only sends has one.
#[test]
fn a_role_with_too_few_connections_is_told_so() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    opened(|| Postgres::on(&executor, server.url()).migrate());
    server.sql("create role app login connection limit 4");
    server.sql(
        "grant all on all tables in schema punctual to app; grant usage on schema punctual to app",
    );
    server.sql("grant all on all sequences in schema punctual to app");
    let url = server.url().replace("user=punctual", "user=app");
    let open = |jobs: Jobs| jobs.open(postgres(&executor, &url));
    let error = open(Jobs::new().on(|_: &JobRun, _: Work| Ok(()))).unwrap_err();
    assert!(error.to_string().contains("too many connections for role"), "{error}");
    wait_until("they are closed", || {
        server.value("select count(*) from pg_stat_activity where usename = 'app'") == "0"
    });
    opened(|| open(Jobs::new()));
    server.sql("alter role app connection limit 5");
    opened(|| open(Jobs::new().on(|_: &JobRun, _: Work| Ok(()))));
}

/// Spans that no clock can add, more slots than a statement can claim, and a name that is a book.
#[test]
fn the_largest_settings_work() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (tell, told) = mpsc::channel();
    let most = || {
        let jobs =
            Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.clone().send(job.number)?));
        let most = Duration::MAX;
        let settings = Postgres::on(&executor, server.url()).lease(most).poll(most);
        let settings = settings.request_timeout(most).tick_deadline(most).history(most);
        jobs.open(settings.slots(usize::MAX).machine("m".repeat(1 << 20)))
    };
    let queue = most().unwrap();
    queue.now(Work { number: 7, millis: 0 }).enqueue().unwrap();
    assert_eq!(receive(&told, "its run"), 7);
    queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
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
    assert!(matches!(error, OpenError::Definition(_)), "{error}");
    assert!(error.to_string().contains("\"tick\" has a trigger that counts"), "{error}");
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
            queue.enqueue_in(&transaction, queue.now(job).key("k")).await.unwrap();
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
}
