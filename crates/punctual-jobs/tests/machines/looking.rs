//! A look inside from another machine, and changes that meet a claim, a run, or a transaction.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, UNIX_EPOCH},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobChange, JobFilter, JobHandle, JobStage, JobState, JobWait, Schedule};

use crate::{
    kinds::{Named, RATIONED_AT_ONCE, Rationed, Wait, Work},
    machine::{drained, end_lease, sender, start},
    size,
    support::{block_on, server::Server, wait_until},
};

#[test]
fn a_run_of_another_machine_is_seen_and_discarded() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start(&server, 0);
    let dying = machine.process();
    let job = queue.now(Wait { number: 1 }).max_attempts(9).enqueue().unwrap();
    machine.wait_for("waits");
    let running =
        queue.list(&JobFilter { stage: Some(JobStage::Running), ..JobFilter::default() }).unwrap();
    assert_eq!(running.len(), 1, "{running:?}");
    let elsewhere = running[0].machine.as_ref().unwrap();
    assert!(elsewhere.contains(':'), "{elsewhere}");
    assert!(!elsewhere.ends_with(&format!(":{}", std::process::id())), "{elsewhere}");
    assert!(running[0].since.is_some() && running[0].attempts == 1);
    assert_eq!(queue.retry(job.id).unwrap(), JobChange::Running);
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Signalled);
    machine.wait_for("Cancelled");
    assert_eq!(machine.wait_for("stopped"), [1, 0], "the claim still stood");
    assert_eq!(machine.wait_for("discarded"), [job.id.0, 1], "no further attempt, and told");
    wait_until("it is discarded", || {
        matches!(queue.state(job.id).unwrap(), JobState::Discarded { .. })
    });
    assert_eq!(queue.retry(job.id).unwrap(), JobChange::Done);
    assert_eq!(machine.wait_for("waits"), [1, 2], "it runs, and nobody has asked it to stop");
    // A machine that dies leaves it discarded.
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Signalled);
    machine.kill();
    end_lease(&server, dying);
    let _other = start(&server, 1);
    wait_until("it is discarded", || {
        matches!(queue.state(job.id).unwrap(), JobState::Discarded { .. })
    });
    assert_eq!(queue.remove(job.id).unwrap(), JobChange::Done);
}

#[test]
fn a_job_that_a_transaction_holds_is_asked_for_again() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let later = Duration::from_secs(600);
    let jobs: Vec<_> = (0..3)
        .map(|number| queue.after(later, Work { number, millis: 0 }).enqueue().unwrap().id)
        .collect();
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        transaction.query("select from punctual.job for update", &[]).await.unwrap();
        let (retried, discarded) = (queue.retry_async(jobs[0]), queue.discard_async(jobs[1]));
        let removed = queue.remove_async(jobs[2]);
        // A list waits for no lock.
        assert_eq!(queue.list(&JobFilter::default()).unwrap().len(), 3);
        // The three have been asked for as well when others have been answered.
        for _ in 0..10 {
            assert_eq!(queue.cancel_async("nobody").await.unwrap(), JobChange::Unknown);
        }
        let held = "select count(*) from punctual.job where run_at > now() and max_attempts = 25";
        assert_eq!(server_value(&server, held).await, "3", "nothing was changed");
        transaction.commit().await.unwrap();
        assert_eq!(retried.await.unwrap(), JobChange::Done);
        assert_eq!(discarded.await.unwrap(), JobChange::Done);
        assert_eq!(removed.await.unwrap(), JobChange::Done);
    });
}

/// The server's own helper blocks on a runtime, which a future must not.
async fn server_value(server: &Server, text: &str) -> String {
    let client = server.connect().await;
    let rows = client.simple_query(text).await.unwrap();
    let value = rows.iter().find_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    value.unwrap().to_owned()
}

/// A discarded job has not run and does not run; one that was claimed first has run, or was asked to stop.
#[test]
fn discards_and_retries_race_with_claims() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machines = [start(&server, 0), start(&server, 1)];
    let jobs = size(200, 2000);
    let mut never = BTreeSet::new();
    let mut all: Vec<(i64, JobHandle)> = Vec::new();
    for number in 0..jobs {
        let job = queue.now(Work { number, millis: 0 }).enqueue().unwrap();
        if number % 4 == 0 {
            thread::sleep(Duration::from_micros(500 * (number as u64 % 7)));
        }
        if queue.discard(job.id).unwrap() == JobChange::Done {
            // What was claimed, failed and was signalled by nobody cannot be: a discard is asked once.
            never.insert(number);
        }
        all.push((number, job));
    }
    drained(&server);
    let begun = |said: &[crate::support::replica::Said]| -> BTreeSet<i64> {
        said.iter().filter(|said| said.word == "begins").map(|said| said.numbers[0]).collect()
    };
    let [one, two] = machines;
    let said = [one.end(), two.end()].concat();
    assert!(begun(&said).is_disjoint(&never), "a discarded job has run");
    assert_eq!(begun(&said).len() + never.len(), all.len(), "each was either claimed or discarded");
    println!("{} of {jobs} were discarded before a claim", never.len());
    // Two callers retry each at once, while a machine claims.
    let machine = start(&server, 2);
    let retry = |queue: &punctual_jobs::JobQueue| {
        for (_, job) in &all {
            queue.retry(job.id).unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| retry(&queue));
        retry(&queue);
    });
    drained(&server);
    let said = machine.end();
    let again = begun(&said);
    assert!(never.is_subset(&again), "each that was retried has run");
    let twice = "select count(*) from punctual.job where attempts > 2";
    assert_eq!(server.value(twice), "0");
}

/// A program that sends jobs and handles none stores what their kind says, by whichever way.
#[test]
fn a_sender_without_handlers_stores_the_attempts_of_the_kind() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let named = || Named { name: "job".to_owned() };
    queue.after(Duration::from_secs(600), named()).enqueue().unwrap();
    assert_eq!(queue.list(&JobFilter::default()).unwrap()[0].max_attempts, 3);
    let schedule = Schedule::every("hourly", Duration::from_secs(3600), &named());
    queue.schedules().put(schedule).call().unwrap();
    assert_eq!(server.value("select max_attempts from punctual.job_schedule"), "3");
    queue.schedules().run_now("hourly").call().unwrap();
    assert_eq!(server.value("select min(max_attempts) from punctual.job"), "3");
}

/// The years of the server's clock end later than those of a calendar with four digits.
#[test]
fn a_moment_of_any_year_is_listed_as_it_was_asked_for() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let year = Duration::from_secs(365 * 86_400);
    let moments = [100, 8_100, 290_000].map(|years| UNIX_EPOCH + years * year);
    for moment in moments {
        queue.at(moment, Work { number: 1, millis: 0 }).enqueue().unwrap();
    }
    let due: Vec<_> =
        queue.list(&JobFilter::default()).unwrap().iter().map(|job| job.due).collect();
    assert_eq!(due, moments.map(Some));
    queue.after(Duration::MAX, Work { number: 1, millis: 0 }).enqueue().unwrap();
    let insert = "insert into punctual.job (name, payload, run_at) values ('work', '{}',";
    server.sql(&format!("{insert} 'infinity'), ('work', '{{}}', '-infinity')"));
    assert_eq!(queue.list(&JobFilter::default()).unwrap().len(), moments.len() + 3);
    assert_eq!(queue.counts().unwrap()[0].waiting, 6);
}

/// The limit is that of another program: what this one sees is that all places up to the last are taken.
#[test]
fn a_list_of_another_program_says_that_a_job_waits_for_its_limit() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let machine = start(&server, 0);
    let most = RATIONED_AT_ONCE as usize;
    for number in 0..most as i64 + 2 {
        queue.now(Rationed { number, millis: 600_000 }).enqueue().unwrap();
    }
    queue.after(Duration::from_secs(600), Rationed { number: 99, millis: 0 }).enqueue().unwrap();
    let mut waits = Vec::new();
    wait_until("as many run as may", || {
        let all = queue.list(&JobFilter::default()).unwrap();
        let running = all.iter().filter(|job| job.stage == JobStage::Running).count();
        waits = all.iter().map(|job| job.waits_for).collect();
        running == most
    });
    let limit = waits.iter().filter(|wait| **wait == Some(JobWait::Limit)).count();
    assert_eq!((limit, waits.last()), (2, Some(&None)), "{waits:?}");
    drop(machine.kill());
}
