//! Results that one machine stores and another awaits.

use std::{sync::mpsc, time::Duration};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobId, JobRun, JobState, Jobs, PostgresQueue};

use crate::{
    kinds::Work,
    machine::{postgres, sender},
    support::{LONG, opened, receive, server::Server, wait_until},
};

const WORD: &str = "'{\"number\": 1, \"millis\": 0}'";

fn returning(
    executor: &ScheduledThreadPoolExecutor,
    server: &Server,
    keep: Duration,
) -> PostgresQueue {
    opened(|| {
        let jobs = Jobs::new().on_returning(keep, |_: &JobRun, job: Work| Ok(job.number + 1));
        // It removes what is over as often as a history that is kept for so long.
        jobs.open(postgres(executor, &server.url()).history(Duration::from_secs(2)))
    })
}

/// The sender handles nothing, and the job may have come from plain SQL.
#[test]
fn a_result_is_awaited_on_a_machine_that_handles_nothing() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (queue, keep) = (sender(&executor, &server.url()), Duration::from_secs(3600));
    let job = queue.now(Work { number: 6, millis: 0 }).enqueue().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| tell.send(queue.await_result(job.id, LONG)).unwrap());
        let other = returning(&executor, &server, keep);
        let JobState::Returned(value) = receive(&told, "the result").unwrap() else {
            panic!("it has one")
        };
        assert_eq!(value.read::<i64>().unwrap(), 7);
        let plain = format!(
            "insert into punctual.job (name, payload) values ('work', {WORD}) returning id"
        );
        let plain: i64 = server.value(&plain).parse().unwrap();
        let JobState::Returned(value) = other.await_result(JobId(plain), LONG).unwrap() else {
            panic!("it has one")
        };
        assert_eq!(value.read::<i64>().unwrap(), 2);
        other.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
    });
    assert_eq!(server.value("select count(*) from punctual.job_result"), "2");
}

#[test]
fn results_whose_time_is_over_are_removed() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    drop(sender(&executor, &server.url()));
    // More than go at a time, and one that stays.
    server.sql(
        "insert into punctual.job_result (job, value, until) \
         select n, '0', now() - interval '1 second' from generate_series(10000, 12500) n; \
         insert into punctual.job_result (job, value, until) values (1000000, '5', now() + interval '1 hour')",
    );
    let queue = returning(&executor, &server, Duration::from_millis(1));
    assert_eq!(queue.state(JobId(10_000)).unwrap(), JobState::Gone, "it is not read any more");
    let job = queue.now(Work { number: 6, millis: 0 }).enqueue().unwrap();
    wait_until("one is left", || {
        queue.state(job.id).unwrap() == JobState::Gone
            && server.value("select count(*) from punctual.job_result") == "1"
    });
    assert!(matches!(queue.state(JobId(1_000_000)).unwrap(), JobState::Returned(_)));
    queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
}

/// A trigger that refuses one result stops no other end.
#[test]
fn a_result_that_is_refused_stops_no_other_end() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let queue = sender(&executor, &server.url());
    server.sql("alter table punctual.job_result add check (value <> '8')");
    let jobs: Vec<_> =
        (0..20).map(|number| queue.now(Work { number, millis: 0 }).enqueue().unwrap().id).collect();
    let other = returning(&executor, &server, Duration::from_secs(3600));
    for (number, job) in jobs.iter().enumerate().filter(|(number, _)| *number != 7) {
        let JobState::Returned(value) = queue.await_result(*job, LONG).unwrap() else {
            panic!("{number} has one")
        };
        assert_eq!(value.read::<usize>().unwrap(), number + 1);
    }
    assert_eq!(queue.state(jobs[7]).unwrap(), JobState::Running);
    server.sql("alter table punctual.job_result drop constraint job_result_value_check");
    let JobState::Returned(value) = queue.await_result(jobs[7], LONG).unwrap() else {
        panic!("it has one by now")
    };
    assert_eq!(value.read::<i64>().unwrap(), 8);
    other.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
}
