//! Many jobs by one statement, on a server: in a transaction, beside others, and with rows that are refused.

use std::{collections::HashSet, future::Future, sync::mpsc, time::Duration};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobFilter, JobRun, Jobs, QueueError};

use crate::{
    kinds::Work,
    machine::{drained, postgres, sender, start_that_polls},
    size,
    support::{LONG, block_on, opened, receive, server::Server},
};

const LATER: Duration = Duration::from_secs(3600);

fn work(number: i64) -> Work {
    Work { number, millis: 0 }
}

/// All of a large batch run, on the machines that are told of it and look by themselves only after the test.
#[test]
fn a_large_batch_runs_on_all_machines_that_are_told() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machines = [0, 1].map(|number| start_that_polls(&server, number, LATER));
    let many = size(2_000, 100_000);
    let jobs = (0..many).map(|number| queue.now(work(number)).unique(format!("job/{number}")));
    let handles = queue.enqueue_all(jobs).unwrap();
    let ids: HashSet<_> = handles.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), many as usize);
    drained(&server);
    let said = machines.into_iter().flat_map(|machine| machine.end());
    let ran: Vec<_> = said.filter(|said| said.word == "ran").map(|said| said.numbers[0]).collect();
    assert_eq!(ran.len(), many as usize);
    assert_eq!(ran.into_iter().collect::<HashSet<_>>().len(), many as usize);
}

#[test]
fn a_batch_in_a_transaction_is_stored_with_it_or_not_at_all() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (tell, told) = mpsc::channel();
    let queue = opened(|| {
        let tell = tell.clone();
        let jobs = Jobs::new().on(move |_: &JobRun, job: Work| Ok(tell.send(job.number)?));
        jobs.open(postgres(&executor, &server.url()).poll(LATER))
    });
    block_on(async {
        let mut client = server.connect().await;
        for commits in [false, true] {
            let transaction = client.transaction().await.unwrap();
            let jobs = (0..3).map(|number| queue.now(work(number)).key(format!("{number}")));
            let handles = queue.enqueue_all_in(&transaction, jobs).await.unwrap();
            assert_eq!(handles.len(), 3);
            assert!(queue.enqueue_all_in(&transaction, []).await.unwrap().is_empty());
            assert!(queue.list(&JobFilter::default()).unwrap().is_empty());
            if commits {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
        }
    });
    let mut ran: Vec<_> = (0..3).map(|_| receive(&told, "a run")).collect();
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 2]);
    queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
}

/// A trigger of the program's that leaves one row out, or refuses it, leaves nothing of the batch; the transaction of a caller goes on.
#[test]
fn a_row_that_is_left_out_or_refused_takes_the_batch_with_it() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    drop(sender(&executor, &server.url()));
    let limit = Duration::from_secs(2);
    let queue =
        opened(|| Jobs::new().open(postgres(&executor, &server.url()).request_timeout(limit)));
    server.sql(
        "create function choose() returns trigger language plpgsql as $$ begin \
         if new.key = 'left out' then return null; end if; \
         if new.key = 'refused' then raise exception 'not this one'; end if; return new; end $$",
    );
    server.sql(
        "create trigger choose before insert on punctual.job for each row execute function choose()",
    );
    let three = |key: &str| {
        [Some("a"), Some(key), None].map(|key| {
            let job = queue.after(LATER, work(1));
            if let Some(key) = key { job.key(key) } else { job }
        })
    };
    for key in ["left out", "refused"] {
        // A machine that stands still may have it time out.
        let error = queue.enqueue_all(three(key)).unwrap_err();
        let is_timeout = matches!(error, QueueError::TimedOut { .. });
        assert!(is_timeout || matches!(error, QueueError::Server(_)), "{error}");
        assert_eq!(server.value("select count(*) from punctual.job"), "0");
    }
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let error = queue.enqueue_all_in(&transaction, three("left out")).await.unwrap_err();
        assert!(error.to_string().contains("leaves it out"), "{error}");
        let handles = queue.enqueue_all_in(&transaction, three("other")).await.unwrap();
        assert_eq!(handles.len(), 3);
        transaction.commit().await.unwrap();
    });
    assert_eq!(server.value("select count(*) from punctual.job"), "3");
}

/// Batches with the same keys, from several threads and in several orders, while jobs with these keys run and end: each key has one
/// job that waits, and each batch is stored whole.
#[test]
fn batches_of_the_same_keys_do_not_lose_a_job() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start_that_polls(&server, 0, Duration::from_millis(5));
    let rounds = size(8, 400);
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let queue = &queue;
            scope.spawn(move || {
                for round in 0..rounds {
                    let place = |place: i64| if thread % 2 == 0 { place } else { 19 - place };
                    let jobs = (0..20).map(place).map(|place| {
                        let job = queue.now(work(place));
                        let key = format!("k{place}");
                        if (thread + round + place) % 3 == 0 {
                            job.unique(key)
                        } else {
                            job.key(key)
                        }
                    });
                    assert_eq!(queue.enqueue_all(jobs).unwrap().len(), 20);
                }
            });
        }
    });
    drained(&server);
    let said = machine.end();
    let ran: HashSet<_> =
        said.iter().filter(|said| said.word == "ran").map(|said| said.numbers[0]).collect();
    assert_eq!(ran.len(), 20);
}

/// Has another transaction change the rows of the key, and commits it as soon as a statement waits for it.
async fn while_another_one_does<T>(
    server: &Server,
    change: &str,
    verb: impl Future<Output = T>,
) -> T {
    let mut other = server.connect().await;
    let theirs = other.transaction().await.unwrap();
    theirs.batch_execute(change).await.unwrap();
    let their_end = async {
        server.has_one_wait().await;
        theirs.commit().await.unwrap();
    };
    tokio::join!(verb, their_end).0
}

/// What the statement saw when it began says that the key is free, or that its job waits. It stores nothing, and is asked again.
#[test]
fn a_batch_of_one_job_is_asked_again_when_its_key_was_taken_meanwhile() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let claim =
        "update punctual.job set claim = 1, worker = 'other 1', attempts = 1 where key = 'k'";
    let insert = "insert into punctual.job (name, payload, key) values ('work', '{}', 'u')";
    let replacing = |number| queue.after(LATER, work(number)).key("k");
    let unique = |number| queue.after(LATER, work(number)).unique("u");
    block_on(async {
        let mut client = server.connect().await;
        replacing(1).enqueue_async().await.unwrap();
        let stored = async { queue.enqueue_all_async([replacing(2)]).await };
        let stored = while_another_one_does(&server, claim, stored).await.unwrap();
        assert_eq!(stored.len(), 1);
        let transaction = client.transaction().await.unwrap();
        let stored = queue.enqueue_all_in(&transaction, [replacing(3)]);
        let stored = while_another_one_does(&server, claim, stored).await.unwrap();
        assert!(!stored[0].was_skipped);
        let stored = queue.enqueue_all_in(&transaction, [unique(4)]);
        let stored = while_another_one_does(&server, insert, stored).await.unwrap();
        assert!(stored[0].was_skipped);
        transaction.commit().await.unwrap();
    });
    let left = "select count(*), count(key), count(claim) from punctual.job";
    assert_eq!(server.sql(left), [["4", "2", "2"]]);
}
