//! Jobs that fall due on a machine that has not enqueued them, and does not poll meanwhile; and what it costs to tell of them.

use std::{
    future::poll_fn,
    time::{Duration, SystemTime},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobChange, JobRun, Jobs};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::{
    kinds::{Rationed, Work},
    machine::{postgres, sender, start, start_that_polls},
    support::{LONG, block_on, in_time, opened, replica::Said, server::Server, wait_until},
};

/// No test waits for it.
const HOUR: Duration = Duration::from_secs(3600);

/// The jobs are sent by a process that runs none, from the latest to the earliest, and before the machine listens.
#[test]
fn a_job_of_another_machine_is_not_left_to_the_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let work = |number| Work { number, millis: 0 };
    queue.after(Duration::from_secs(3), work(0)).enqueue().unwrap();
    let mut machine = start_that_polls(&server, 0, HOUR);
    let after = |number: i64| Duration::from_millis(2000 - 300 * number.unsigned_abs());
    queue.after(after(1), work(1)).unique("one").enqueue().unwrap();
    queue.after(after(2), work(2)).ordering_key("line").enqueue().unwrap();
    queue.after(after(3), work(3)).key("three").enqueue().unwrap();
    queue.after(HOUR, work(4)).key("four").enqueue().unwrap();
    assert_eq!(queue.reschedule("four", after(4)).unwrap(), JobChange::Done);
    queue.after(after(5), Rationed { number: 5, millis: 0 }).limit_key("k").enqueue().unwrap();
    for number in [5, 4, 3, 2, 1, 0] {
        let begun = |said: &Said| {
            matches!(said.word.as_str(), "begins" | "rationed") && said.numbers[0] == number
        };
        machine.has_said("each job begins", begun);
    }
}

/// A job of plain SQL tells of nothing. A machine that looks at the tables when it starts knows its moment.
#[test]
fn a_machine_that_starts_knows_the_next_moment() {
    let server = Server::start();
    drop(start(&server, 0).end());
    let insert = "insert into punctual.job (name, payload, run_at) values";
    let payload = |number: i64| format!(r#"{{"number": {number}, "millis": 0}}"#);
    for number in 1..=3 {
        let at = format!("now() + {number} * interval '1 second'");
        server.sql(&format!("{insert} ('work', '{}', {at})", payload(number)));
    }
    let mut machine = start_that_polls(&server, 1, HOUR);
    for number in 1..=3 {
        assert_eq!(machine.wait_for("begins")[0], number);
    }
}

/// Each is too late for the claim of the one before, and may have come before the next question.
#[test]
fn moments_that_follow_each_other_closely_are_not_left_to_the_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start_that_polls(&server, 0, HOUR);
    let moment = SystemTime::now() + Duration::from_secs(2);
    for number in 0..40_u32 {
        let work = Work { number: number.into(), millis: 0 };
        queue.at(moment + number * Duration::from_micros(1300), work).enqueue().unwrap();
    }
    for number in 0..40 {
        machine.has_said("each job begins", |said: &Said| {
            said.word == "begins" && said.numbers[0] == number
        });
    }
}

#[test]
fn the_moments_of_a_batch_are_not_left_to_the_poll() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let mut machine = start_that_polls(&server, 0, HOUR);
    let job = |number| queue.after(Duration::from_secs(2), Work { number, millis: 0 });
    queue.enqueue_all([job(0), job(1).key("one"), job(2).unique("two")]).unwrap();
    for number in 0..3 {
        machine.has_said("each job begins", |said: &Said| {
            said.word == "begins" && said.numbers[0] == number
        });
    }
}

/// A transaction may be open for longer than it is until the moment. What a machine has asked by then has not shown it the job.
#[test]
fn a_transaction_tells_of_a_moment_however_far_ahead() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    let work = |number| Work { number, millis: 0 };
    block_on(in_time("each moment is told", async {
        let (listener, mut connection) =
            tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        let mut told = tokio::spawn(async move {
            let mut told = Vec::new();
            while told.len() < 4 {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(it))) => told.push(it.payload().to_owned()),
                    Some(Ok(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
            told
        });
        listener.batch_execute("listen punctual").await.unwrap();
        // Outside of a transaction it is told by no notification, since no machine can have looked past it.
        queue.after(HOUR, work(0)).enqueue_async().await.unwrap();
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        queue.enqueue_in(&transaction, queue.after(HOUR, work(1))).await.unwrap();
        let two = queue.after(2 * HOUR, work(2)).unique("two");
        queue.enqueue_in(&transaction, two).await.unwrap();
        queue.reschedule_in(&transaction, "two", 3 * HOUR).await.unwrap();
        queue.enqueue_all_in(&transaction, [queue.after(4 * HOUR, work(4))]).await.unwrap();
        transaction.commit().await.unwrap();
        let told = (&mut told).await.unwrap();
        let micros = |told: &String| told.strip_prefix("at ").unwrap().parse::<u64>().unwrap();
        let moments = told.iter().map(micros).collect::<Vec<_>>();
        assert!(moments.windows(2).all(|pair| pair[1] >= pair[0] + 3_500_000_000), "{moments:?}");
    }));
}

/// A transaction that has notified commits under a lock of the whole database. Verbs give up on a lock after a millisecond, and
/// have to wait longer for this one, or many would be refused and come again after a pause.
#[test]
fn no_verb_is_refused_while_other_transactions_that_have_notified_commit() {
    const SLOW: &str = "set commit_delay = 100000; set commit_siblings = 0";
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    server.sql("create table public.other (number int)");
    let enqueue = async {
        for number in 0..40 {
            queue.now(Work { number, millis: 0 }).enqueue_async().await.unwrap();
        }
    };
    let commit = async {
        let client = server.connect().await;
        client.batch_execute(SLOW).await.unwrap();
        loop {
            client
                .batch_execute("insert into public.other values (1); notify other")
                .await
                .unwrap();
        }
    };
    block_on(in_time("the verbs", async {
        tokio::select! {
            () = enqueue => {}
            () = commit => {}
        }
    }));
    let log = std::fs::read_to_string(server.place().path().join("log")).unwrap();
    assert_eq!(log.matches("due to lock timeout").count(), 0, "{log}");
}

/// The verbs wait longer for it than a heartbeat, behind which the lease would end, and the ends of runs. The trigger looks at each commit.
#[test]
fn a_heartbeat_waits_for_the_commits_of_others_no_longer_than_its_lease_allows() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let lease = Duration::from_millis(1600);
    let queue = opened(|| {
        let jobs = Jobs::new().on(|_: &JobRun, _: Work| Ok(()));
        jobs.open(postgres(&executor, &server.url()).lease(lease))
    });
    queue.after(LONG, Work { number: 1, millis: 0 }).ordering_key("dead").enqueue().unwrap();
    server.sql("create table public.seen (what text, timeout text)");
    server.sql(
        "create function note() returns trigger language plpgsql as $$ begin \
         insert into public.seen values (tg_op, current_setting('lock_timeout')); return null; end $$",
    );
    server.sql(
        "create constraint trigger note after insert or update or delete on punctual.job \
         deferrable initially deferred for each row execute function note()",
    );
    server.sql("update punctual.job set claim = 1, worker = 'dead 1', attempts = 1");
    queue.now(Work { number: 2, millis: 0 }).ordering_key("s").enqueue().unwrap();
    let seen = "select distinct what, timeout from public.seen where timeout in ('1s', '200ms') order by what";
    wait_until("a verb, the sweep and an end", || server.sql(seen).len() == 3);
    let seen = server.sql(seen);
    assert_eq!(seen, [["DELETE", "200ms"], ["INSERT", "1s"], ["UPDATE", "200ms"]]);
}
