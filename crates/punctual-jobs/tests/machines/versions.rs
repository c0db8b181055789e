//! Programs of two versions side by side (J9), and jobs from plain SQL.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobLimit, JobRun, JobState, Jobs, PostgresQueue};

use crate::{
    kinds::{Held, Tick, Work},
    machine::postgres,
    support::{LONG, block_on, in_time, opened, receive, server::Server, wait_until},
};

#[test]
fn an_unknown_name_stays_waiting_and_a_changed_payload_fails_with_its_name() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = mpsc::channel();
    let old = opened(|| {
        let (tell, discarded) = (tell.clone(), tell.clone());
        let old = Jobs::new()
            .on(move |_: &JobRun, job: Work| {
                tell.send(format!("work {}", job.number))?;
                Ok(())
            })
            .on_discarded(move |job| drop(discarded.send(job.last_error.clone())));
        old.open(postgres(&executor, &server.url()))
    });
    let unknown = old.now(Tick {}).enqueue().unwrap();
    server.sql(
        "insert into punctual.job (name, payload, max_attempts) values ('work', '{\"n\": 1}', 1)",
    );
    let error = receive(&told, "the error");
    assert!(error.contains("the payload of the job \"work\" cannot be decoded"), "{error}");
    assert!(error.ends_with("it does not fit the type of the kind, at line 1 column 8"), "{error}");
    server.sql("insert into punctual.job (name, payload) values ('work', '{\"number\": 5, \"millis\": 0}')");
    assert_eq!(receive(&told, "a run"), "work 5");
    let waiting = JobState::Waiting { attempts: 0, last_error: None };
    assert_eq!(old.state(unknown.id).unwrap(), waiting);

    let (tell, told) = mpsc::channel();
    let _new = opened(|| {
        let tell = tell.clone();
        let new = Jobs::new().on(move |_: &JobRun, _: Tick| {
            tell.send("tick")?;
            Ok(())
        });
        new.open(postgres(&executor, &server.url()))
    });
    assert_eq!(receive(&told, "a run"), "tick");
}

/// Makes the tables those of version 5.
fn as_of_version_5(server: &Server) {
    server.sql(
        "drop index punctual.job_waiting, punctual.job_not_due, punctual.job_keyed, punctual.job_turns, punctual.job_key_slot;
         alter table punctual.job drop column limit_key, drop column key_slot, drop column key_claim;
         create index job_waiting on punctual.job (name, priority, run_at, id)
           where ordering_key is null and claim is null and attempts < max_attempts;
         create index job_not_due on punctual.job (run_at)
           where ordering_key is not null and claim is null and attempts < max_attempts and not due;
         drop table punctual.job_bucket, punctual.job_pause, punctual.job_result;
         alter table punctual.job drop column traceparent;
         alter table punctual.job_schedule drop column priority, drop column ordering_key, drop column limit_key;
         alter table punctual.job_worker drop column lease_us;
         delete from punctual.job_version where version > 5",
    );
}

/// The statements of version 5 that name columns or depend on indexes, with their parameters in place.
const OLDER: [(&str, &str); 4] = [
    (
        "enqueue",
        "insert into punctual.job (name, payload, ordering_key, run_at, due, max_attempts, key, priority)
           values ('held', '{\"number\": 9, \"millis\": 0}', null, clock_timestamp(), true, 25, null, 0)",
    ),
    (
        "mark",
        "update punctual.job set due = true where id in (
           select id from punctual.job
            where ordering_key is not null and claim is null and attempts < max_attempts and not due and run_at <= now()
            order by run_at limit 1000 for update skip locked)",
    ),
    (
        "claim",
        "with free as materialized (
           select place.slot from generate_series(0, 1) place(slot)
            where not exists (select from punctual.job o where o.name = 'held' and o.slot = place.slot and o.claim = o.slot_claim)
            limit 1
         ), picked as materialized (
           select id, slot, nextval('punctual.job_claim') as claim from free, (
             select id from punctual.job
              where ordering_key is null and claim is null and attempts < max_attempts
                and name = 'held' and priority = 0 and run_at <= now()
              order by run_at, id limit 1 for update skip locked) job
         )
         update punctual.job j set claim = picked.claim, slot_claim = picked.claim, slot = picked.slot,
           worker = 'older', claimed_at = clock_timestamp(), attempts = attempts + 1
           from picked where j.id = picked.id",
    ),
    ("end", "delete from punctual.job where worker = 'older'"),
];

/// Opens a queue that runs the kind `Held`, by these limits.
fn with_limits(
    executor: &ScheduledThreadPoolExecutor,
    server: &Server,
    limits: &[JobLimit],
    running: &Arc<Mutex<(usize, usize)>>,
) -> PostgresQueue {
    opened(|| {
        let running = Arc::clone(running);
        let mut jobs = Jobs::new().on(move |run: &JobRun, job: Held| {
            {
                let mut running = running.lock().unwrap();
                running.0 += 1;
                running.1 = running.1.max(running.0);
            }
            run.token().sleep(Duration::from_millis(job.millis))?;
            running.lock().unwrap().0 -= 1;
            Ok(())
        });
        for limit in limits {
            jobs = jobs.limit::<Held>(*limit);
        }
        jobs.open(postgres(executor, &server.url()))
    })
}

/// Jobs wait and run while the tables are brought up to date: those that run end, and all others run by the new limits.
#[test]
fn tables_of_version_5_with_jobs_are_brought_up_to_date() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(8);
    let running = Arc::new(Mutex::new((0, 0)));
    drop(with_limits(&executor, &server, &[], &running));
    as_of_version_5(&server);
    server.sql(
        "insert into punctual.job_worker values ('older', now() + interval '1 day');
         insert into punctual.job (name, payload) select 'held', '{\"number\": 1, \"millis\": 20}' from generate_series(1, 20);
         insert into punctual.job (name, payload, ordering_key, due)
           select 'held', '{\"number\": 2, \"millis\": 20}', 'k' || n % 3, true from generate_series(1, 9) n",
    );
    server.sql(OLDER[2].1);
    let limits = [JobLimit::at_once(2), JobLimit::at_once(2).for_each_key()];
    let queue = with_limits(&executor, &server, &limits, &running);
    assert_eq!(server.value("select max(version) from punctual.job_version"), "11");
    // One slot of the two is the older program's, which goes on.
    for number in 0..5 {
        queue.now(Held { number, millis: 20 }).limit_key("new").enqueue().unwrap();
    }
    let left = "select count(*) from punctual.job where worker is distinct from 'older'";
    wait_until("all others", || server.value(left) == "0");
    assert_eq!(running.lock().unwrap().1, 1, "beside the one that the older program runs");
    for (what, statement) in OLDER {
        server.sql(statement);
        println!("{what}: a statement of version 5");
    }
    wait_until("all", || server.value("select count(*) from punctual.job") == "0");
}

/// Two versions with different limits: no more than the larger one says, and no less.
#[test]
fn of_two_versions_with_different_limits_the_larger_one_holds() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(16);
    let running = Arc::new(Mutex::new((0, 0)));
    let limit = |most| [JobLimit::at_once(most).for_each_key()];
    let queues = [
        with_limits(&executor, &server, &limit(1), &running),
        with_limits(&executor, &server, &limit(3), &running),
    ];
    for number in 0..60 {
        queues[0].now(Held { number, millis: 20 }).limit_key("k").enqueue().unwrap();
    }
    wait_until("all", || server.value("select count(*) from punctual.job") == "0");
    assert_eq!(running.lock().unwrap().1, 3);
}

/// Two versions with different windows: each has a bucket of its own.
#[test]
fn two_versions_with_different_windows_have_both() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(16);
    let running = Arc::new(Mutex::new((0, 0)));
    let hour = Duration::from_secs(3600);
    let window = |jobs| [JobLimit::in_window(jobs, hour)];
    let queues = [
        with_limits(&executor, &server, &window(3), &running),
        with_limits(&executor, &server, &window(5), &running),
    ];
    for number in 0..20 {
        queues[0].now(Held { number, millis: 0 }).enqueue().unwrap();
    }
    wait_until("both bursts", || server.value("select count(*) from punctual.job") == "12");
    // They look again, and find no token.
    for queue in queues {
        queue.now(Held { number: 0, millis: 0 }).enqueue().unwrap();
        queue.shutdown_within(Grace::patience(LONG)).unwrap();
    }
    assert_eq!(server.value("select count(*) from punctual.job"), "14");
}

/// What waits for a table has all wait behind it that come later, and a program of the older version writes its heartbeats.
#[test]
fn a_step_to_the_next_version_that_waits_for_a_table_holds_up_no_program() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    opened(|| postgres(&executor, &server.url()).migrate());
    as_of_version_5(&server);
    block_on(async {
        let (mut client, other) = (server.connect().await, server.connect().await);
        let reader = client.transaction().await.unwrap();
        reader.batch_execute("select from punctual.job").await.unwrap();
        let url = server.url();
        let stepping = thread::spawn(move || {
            let executor = ScheduledThreadPoolExecutor::new(1);
            opened(|| postgres(&executor, &url).migrate());
        });
        // What comes while it waits goes on, although the reader does not: it gives way each time.
        for _ in 0..4 {
            server.has_one_wait().await;
            let update = other.batch_execute("update punctual.job set attempts = 0");
            in_time("a program goes on", update).await.unwrap();
        }
        assert!(!stepping.is_finished(), "the reader has the table");
        reader.rollback().await.unwrap();
        stepping.join().unwrap();
    });
    assert_eq!(server.value("select max(version) from punctual.job_version"), "11");
}
