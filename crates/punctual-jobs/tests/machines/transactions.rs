//! The verbs in transactions of the program's own: what is rolled back never was, what is committed is told, and others wait for no
//! more than the job.

use std::{future::Future, sync::mpsc, time::Duration};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{
    JobChange, JobFilter, JobId, JobQueue, JobRun, JobStage, JobState, Jobs, PostgresQueue,
    QueueError,
};
use tokio_postgres::Transaction;

use crate::{
    kinds::{Stubborn, Wait, Work},
    machine::{beats_async, drained, postgres, sender, start_that_polls},
    support::{block_on, in_time, opened, receive, server::Server, wait_until},
};

const LATER: Duration = Duration::from_secs(3600);

fn work(number: i64) -> Work {
    Work { number, millis: 0 }
}

fn all(queue: &JobQueue) -> Vec<punctual_jobs::JobStatus> {
    queue.list(&JobFilter::default()).unwrap()
}

/// Enqueues a job that waits, discards it, and returns its id.
fn discarded(queue: &JobQueue, number: i64, key: &str) -> JobId {
    let job = queue.after(LATER, work(number)).key(key).enqueue().unwrap();
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Done);
    job.id
}

/// Asks for a verb, and calls a closure as soon as the server has a statement wait for a lock.
async fn while_it_waits<T>(
    server: &Server,
    verb: impl Future<Output = T>,
    then: impl FnOnce(),
) -> T {
    let watch = async {
        server.has_one_wait().await;
        then();
    };
    tokio::join!(verb, watch).0
}

/// What each verb says to one job of each stage, in one transaction.
async fn each(
    queue: &PostgresQueue,
    transaction: &Transaction<'_>,
    lost: [JobId; 2],
    runs: [JobId; 2],
) {
    let in_it = transaction;
    assert_eq!(queue.retry_in(in_it, lost[0]).await.unwrap(), JobChange::Done);
    assert_eq!(queue.retry_in(in_it, runs[0]).await.unwrap(), JobChange::Running);
    assert_eq!(queue.remove_in(in_it, lost[1]).await.unwrap(), JobChange::Done);
    assert_eq!(queue.remove_in(in_it, lost[1]).await.unwrap(), JobChange::Unknown);
    assert_eq!(queue.remove_in(in_it, runs[0]).await.unwrap(), JobChange::Running);
    assert_eq!(queue.discard_in(in_it, lost[1]).await.unwrap(), JobChange::Unknown);
    assert_eq!(queue.discard_in(in_it, runs[0]).await.unwrap(), JobChange::Signalled);
    let hour = Duration::from_secs(3600);
    let moved = queue.reschedule_in(in_it, "later", hour).await.unwrap();
    assert_eq!(moved, JobChange::Done);
    let moved = queue.reschedule_in(in_it, "runs", hour).await.unwrap();
    assert_eq!(moved, JobChange::Running);
    assert_eq!(queue.cancel_in(in_it, "waits").await.unwrap(), JobChange::Done);
    assert_eq!(queue.cancel_in(in_it, "waits").await.unwrap(), JobChange::Unknown);
    assert_eq!(queue.cancel_in(in_it, "runs").await.unwrap(), JobChange::Signalled);
    assert_eq!(queue.cancel_in(in_it, "runs").await.unwrap(), JobChange::Unknown);
    let moved = queue.reschedule_in(in_it, "waits", hour).await.unwrap();
    assert_eq!(moved, JobChange::Unknown);
}

#[test]
fn what_is_rolled_back_changes_nothing_and_what_is_committed_is_done_and_told() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let lost = [discarded(&queue, 1, "lost"), discarded(&queue, 2, "gone")];
    // It looks for jobs when it is told, and otherwise not before this test is over.
    let mut machine = start_that_polls(&server, 0, Duration::from_secs(3600));
    let runs = [3, 4].map(|number| {
        let job = queue.now(Wait { number }).max_attempts(9);
        let job = if number == 4 { job.key("runs") } else { job };
        let id = job.enqueue().unwrap().id;
        machine.wait_for("waits");
        id
    });
    for (number, key) in [(5, "later"), (6, "waits")] {
        queue.after(LATER, work(number)).key(key).enqueue().unwrap();
    }
    let before = all(&queue);
    assert_eq!(before.len(), 6);
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        each(&queue, &transaction, lost, runs).await;
        // Heartbeats go on, and find nothing of it.
        beats_async(&server, machine.process(), 6).await;
        assert_eq!(all(&queue), before, "it is seen by nobody else");
        transaction.rollback().await.unwrap();
        beats_async(&server, machine.process(), 3).await;
        assert_eq!(all(&queue), before);
        let transaction = client.transaction().await.unwrap();
        each(&queue, &transaction, lost, runs).await;
        transaction.commit().await.unwrap();
    });
    // A retried job begins because it is told, and both tokens are cancelled.
    assert_eq!(machine.wait_for("ran")[0], 1);
    wait_until("the first is discarded", || {
        matches!(queue.state(runs[0]).unwrap(), JobState::Discarded { .. })
    });
    wait_until("the second is gone", || queue.state(runs[1]).unwrap() == JobState::Gone);
    wait_until("the retried one is gone", || queue.state(lost[0]).unwrap() == JobState::Gone);
    let left = all(&queue);
    let left: Vec<_> = left.iter().map(|job| (job.stage, job.key.as_deref())).collect();
    assert_eq!(left, [(JobStage::Discarded, None), (JobStage::Waiting, Some("later"))]);
    let said = machine.end();
    let stopped = said.iter().filter(|said| said.word == "Cancelled");
    let mut stopped: Vec<_> = stopped.map(|said| said.numbers[0]).collect();
    stopped.sort_unstable();
    assert_eq!(stopped, [3, 4]);
    assert_eq!(said.iter().filter(|said| said.word == "lost").count(), 0, "each claim stood");
    let began: Vec<_> = said.iter().filter(|said| said.word == "begins").collect();
    assert_eq!(began.iter().map(|said| said.numbers[0]).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_job_that_is_moved_to_now_begins_with_the_commit() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start_that_polls(&server, 0, Duration::from_secs(3600));
    queue.after(LATER, work(1)).key("k").enqueue().unwrap();
    // Its turn comes when the first of its line is gone.
    queue.after(LATER, work(2)).key("first").ordering_key("line").enqueue().unwrap();
    queue.after(2 * LATER, work(3)).key("next").ordering_key("line").enqueue().unwrap();
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let moved = queue.reschedule_in(&transaction, "k", Duration::ZERO).await.unwrap();
        assert_eq!(moved, JobChange::Done);
        transaction.commit().await.unwrap();
    });
    assert_eq!(machine.wait_for("ran")[0], 1);
    server.sql("update punctual.job set run_at = now(), due = true where key = 'next'");
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let gone = queue.cancel_in(&transaction, "first").await.unwrap();
        assert_eq!(gone, JobChange::Done);
        transaction.commit().await.unwrap();
    });
    assert_eq!(machine.wait_for("ran")[0], 3);
    drained(&server);
}

/// A transaction that has discarded a running job, and is not committed.
#[test]
fn a_transaction_that_holds_a_run_stops_nobody_else() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(4);
    let (tell, told) = mpsc::channel();
    // Each of the first two runs until it is told to end.
    let ends = [punctual::CancellationToken::new(), punctual::CancellationToken::new()];
    let queue = opened(|| {
        let (tell, ends) = (tell.clone(), ends.clone());
        let jobs = Jobs::new()
            .on(move |run: &JobRun, job: Stubborn| {
                tell.send((job.number, run.token().is_cancelled()))?;
                if let Some(end) = ends.get(job.number as usize - 1) {
                    end.wait();
                }
                tell.send((-job.number, run.token().is_cancelled()))?;
                Ok(())
            })
            .on_discarded(|job| panic!("{job}"));
        jobs.open(postgres(&executor, &server.url()))
    });
    let job = |number| Stubborn { number, millis: 0, fails: false };
    let told = || receive(&told, "a run");
    let held = queue.now(job(1)).key("k").enqueue().unwrap();
    assert_eq!(told(), (1, false));
    let longer = queue.now(job(2)).enqueue().unwrap();
    assert_eq!(told(), (2, false));
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        for id in [held.id, longer.id] {
            let signalled = queue.discard_in(&transaction, id).await.unwrap();
            assert_eq!(signalled, JobChange::Signalled);
        }
        // All of this is while the transaction is open. No limit of the queue ends so soon.
        ends[0].cancel();
        assert_eq!(told(), (-1, false), "its end cannot be written down");
        let third = queue.now(job(3)).enqueue().unwrap();
        assert_eq!((told(), told()), ((3, false), (-3, false)));
        in_time("its end is written", async {
            while queue.state_async(third.id).await.unwrap() != JobState::Gone {}
        })
        .await;
        beats_async(&server, std::process::id(), 6).await;
        ends[1].cancel();
        assert_eq!(told(), (-2, false), "the claim stands");
        assert_eq!(queue.state(held.id).unwrap(), JobState::Running);
        transaction.rollback().await.unwrap();
    });
    wait_until("both ends are written", || all(&queue).is_empty());
}

/// The row is locked, and its key has gone to another job by the time at which it is free.
#[test]
fn a_verb_that_has_waited_sees_what_the_other_transaction_has_left() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    queue.after(LATER, work(1)).key("k").enqueue().unwrap();
    block_on(async {
        let (mut client, mut other) = (server.connect().await, server.connect().await);
        for verb in ["cancel", "reschedule"] {
            let theirs = other.transaction().await.unwrap();
            queue.cancel_in(&theirs, "k").await.unwrap();
            let next = queue.after(LATER, work(2)).key("k");
            let next = queue.enqueue_in(&theirs, next).await.unwrap();
            let ours = client.transaction().await.unwrap();
            let (commit, committed) = tokio::sync::oneshot::channel();
            let their_end = async {
                committed.await.unwrap();
                theirs.commit().await.unwrap();
            };
            let our_verb = async {
                match verb {
                    "cancel" => {
                        let removed = queue.cancel_in(&ours, "k").await.unwrap();
                        assert_eq!(removed, JobChange::Done, "the new one");
                    }
                    _ => {
                        let moved = queue.reschedule_in(&ours, "k", LATER).await.unwrap();
                        assert_eq!(moved, JobChange::Done, "the new one");
                    }
                }
            };
            let verb_while = while_it_waits(&server, our_verb, move || commit.send(()).unwrap());
            tokio::join!(verb_while, their_end);
            assert_eq!(queue.state_async(next.id).await.unwrap(), waiting());
            ours.rollback().await.unwrap();
        }
    });
}

fn waiting() -> JobState {
    JobState::Waiting { attempts: 0, last_error: None }
}

/// The key of a discarded job is enqueued and committed while the retry waits for that.
#[test]
fn a_retry_whose_key_is_taken_meanwhile_leaves_the_transaction_as_it_was() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let lost = discarded(&queue, 1, "k");
    server.sql("create table note (text text)");
    block_on(async {
        let (mut client, mut other) = (server.connect().await, server.connect().await);
        let theirs = other.transaction().await.unwrap();
        let other = queue.after(LATER, work(2)).key("k");
        queue.enqueue_in(&theirs, other).await.unwrap();
        let ours = client.transaction().await.unwrap();
        ours.execute("insert into note values ('before')", &[]).await.unwrap();
        let (commit, committed) = tokio::sync::oneshot::channel();
        let their_end = async {
            committed.await.unwrap();
            theirs.commit().await.unwrap();
        };
        let retried =
            while_it_waits(&server, queue.retry_in(&ours, lost), move || commit.send(()).unwrap());
        let (retried, ()) = tokio::join!(retried, their_end);
        assert_eq!(retried.unwrap(), JobChange::KeyTaken);
        ours.execute("insert into note values ('behind')", &[]).await.unwrap();
        // The next one finds the key taken at once.
        assert_eq!(queue.retry_in(&ours, lost).await.unwrap(), JobChange::KeyTaken);
        ours.commit().await.unwrap();
    });
    assert_eq!(server.value("select count(*) from note"), "2");
    assert!(matches!(queue.state(lost).unwrap(), JobState::Discarded { .. }));
}

#[test]
fn a_key_that_no_queue_accepts_is_refused_in_a_transaction() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        let invalid = queue.cancel_in(&transaction, "").await;
        assert!(matches!(invalid, Err(QueueError::InvalidName(_))), "{invalid:?}");
    });
}

/// A number of microseconds cannot show the moment, so no notification names it.
#[test]
fn a_transaction_takes_jobs_whose_moment_never_comes() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let never = |number| queue.after(Duration::MAX, work(number));
    queue.after(LATER, work(1)).key("k").enqueue().unwrap();
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        queue.enqueue_in(&transaction, never(2)).await.unwrap();
        let moved = queue.reschedule_in(&transaction, "k", Duration::MAX).await.unwrap();
        assert_eq!(moved, JobChange::Done);
        queue.enqueue_all_in(&transaction, [never(3), never(4)]).await.unwrap();
        transaction.commit().await.unwrap();
    });
    assert_eq!(all(&queue).len(), 4);
}

/// A transaction holds the first jobs of as many ordering keys as the machine has slots. Those of another key do not wait for it.
#[test]
fn jobs_that_a_transaction_holds_keep_no_other_ordering_key_waiting() {
    for (kind, said) in [("work", "ran"), ("rationed", "rationed")] {
        let server = Server::start();
        let executor = ScheduledThreadPoolExecutor::new(1);
        drop(sender(&executor, &server.url()));
        let insert = format!(
            "insert into punctual.job (name, payload, ordering_key, due)
               select '{kind}', '{{\"number\": ' || n || ', \"millis\": 0}}', n::text, true from generate_series(1, 9) n"
        );
        server.sql(&insert);
        block_on(async {
            let mut client = server.connect().await;
            let transaction = client.transaction().await.unwrap();
            let hold = "select from punctual.job where ordering_key < '9' for update";
            transaction.query(hold, &[]).await.unwrap();
            let ran = std::thread::scope(|scope| {
                let ran = scope.spawn(|| {
                    let mut machine = start_that_polls(&server, 0, Duration::from_millis(50));
                    machine.wait_for(said)
                });
                ran.join().unwrap()
            });
            assert_eq!(ran[0], 9);
            transaction.rollback().await.unwrap();
        });
    }
}
