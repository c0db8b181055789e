//! One key, three queues, and a model (J4).

use std::{collections::HashMap, time::Duration};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobChange, JobId};

use crate::{
    kinds::Work,
    machine::sender,
    size,
    support::{LONG, server::Server},
};

/// A sequence of numbers that is the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The job that a key leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Waiting {
    id: JobId,
    number: i64,
    hours: u64,
}

#[test]
fn three_queues_agree_with_a_model() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queues: Vec<_> = (0..3).map(|_| sender(&executor, &server.url())).collect();
    let (mut model, mut numbers) = (HashMap::<String, Waiting>::new(), Numbers(7));
    for step in 0..size(600, 10_000) {
        let queue = &queues[numbers.below(3) as usize];
        let key = format!("key {}", numbers.below(4));
        let hours = 1 + numbers.below(1000);
        let delay = Duration::from_secs(3600 * hours);
        let known = model.get(&key).copied();
        match numbers.below(4) {
            0 | 1 => {
                let sending = queue.after(delay, Work { number: step, millis: 0 }).key(&key);
                let keeps = numbers.below(2) == 0;
                let sending = if keeps { sending.keep_moment() } else { sending };
                let id = sending.enqueue().unwrap().id;
                if let Some(known) = known {
                    assert_eq!(id, known.id, "a waiting job is replaced in place");
                }
                let hours = known.filter(|_| keeps).map_or(hours, |known| known.hours);
                model.insert(key, Waiting { id, number: step, hours });
            }
            2 => {
                let expected = if known.is_some() { JobChange::Done } else { JobChange::Unknown };
                assert_eq!(queue.reschedule(&key, delay).unwrap(), expected);
                model.entry(key).and_modify(|known| known.hours = hours);
            }
            _ => {
                let expected = if known.is_some() { JobChange::Done } else { JobChange::Unknown };
                assert_eq!(queue.cancel(&key).unwrap(), expected);
                model.remove(&key);
            }
        }
    }
    let rows = server.sql(
        "select key, id, payload::json->>'number', round(extract(epoch from run_at - now()) / 3600)
           from punctual.job order by key",
    );
    let mut expected: Vec<_> = model.into_iter().collect();
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    let expected: Vec<_> = (expected.into_iter())
        .map(|(key, job)| {
            vec![key, job.id.to_string(), job.number.to_string(), job.hours.to_string()]
        })
        .collect();
    assert_eq!(rows, expected);
}

/// Among unique jobs in transactions that are not committed the first one counts, if it is committed.
#[test]
fn a_unique_job_waits_for_a_transaction_that_has_its_key() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let later = Duration::from_secs(3600);
    let job = |number| queue.after(later, Work { number, millis: 0 }).unique("k");
    crate::support::block_on(async {
        for commits in [false, true] {
            let mut client = server.connect().await;
            let transaction = client.transaction().await.unwrap();
            let first = queue.enqueue_in(&transaction, job(1)).await.unwrap();
            assert!(!first.was_skipped);
            let again = queue.enqueue_in(&transaction, job(2)).await.unwrap();
            assert_eq!((again.id, again.was_skipped), (first.id, true));
            let outside = job(3).enqueue_async();
            // It is asked again and again, and other verbs are answered.
            assert_eq!(queue.cancel("another").unwrap(), JobChange::Unknown);
            if commits {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
            let outside = outside.wait(LONG).unwrap();
            assert_eq!(outside.was_skipped, commits);
            assert_eq!(outside.id == first.id, commits);
            assert_eq!(queue.cancel("k").unwrap(), JobChange::Done);
        }
    });
}

/// Whether a job is there does not depend on a transaction that only holds it.
#[test]
fn a_unique_job_does_not_wait_for_a_row_that_is_held() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let later = Duration::from_secs(3600);
    let job = |number| queue.after(later, Work { number, millis: 0 }).unique("k");
    let first = job(1).enqueue().unwrap();
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        transaction.query("select 1 from punctual.job for update", &[]).await.unwrap();
        let second = job(2).enqueue().unwrap();
        assert_eq!((second.id, second.was_skipped), (first.id, true));
        transaction.rollback().await.unwrap();
    });
}

/// No caller waits for the answer to the first verb of a connection, which takes no more round trips than those behind it.
#[test]
fn the_first_verbs_of_a_queue_are_carried_out_in_their_order() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let stored = queue.after(LONG, Work { number: 1, millis: 0 }).key("k").enqueue_async();
    let cancelled = queue.cancel_async("k");
    stored.wait(LONG).unwrap();
    assert_eq!(cancelled.wait(LONG).unwrap(), JobChange::Done);
}
