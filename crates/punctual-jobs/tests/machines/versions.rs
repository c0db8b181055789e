//! Programs of two versions side by side (J9), and jobs from plain SQL.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{JobLimit, JobRun, JobState, Jobs, PostgresQueue};

use crate::{
    kinds::{Held, Tick, Work},
    machine::postgres,
    support::{LONG, opened, receive, server::Server, wait_until},
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
