//! Programs of two versions side by side (J9), and jobs from plain SQL.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobRun, JobState, Jobs};

use crate::{
    kinds::{Tick, Work},
    machine::postgres,
    support::{block_on, server::Server},
};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_unknown_name_stays_waiting_and_a_changed_payload_fails_with_its_name() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = mpsc::channel();
    let discarded = tell.clone();
    let old = Jobs::new()
        .on(move |_: &JobRun, job: Work| {
            tell.send(format!("work {}", job.number))?;
            Ok(())
        })
        .on_discarded(move |job| drop(discarded.send(job.last_error.clone())));
    let old = old.open(postgres(&executor, &server.url())).unwrap();
    let unknown = old.now(Tick {}).enqueue().unwrap();
    server.sql(
        "insert into punctual.job (name, payload, max_attempts) values ('work', '{\"n\": 1}', 1)",
    );
    let error = told.recv_timeout(LONG).unwrap();
    assert!(error.contains("the payload of the job \"work\" cannot be decoded"), "{error}");
    assert!(error.ends_with("it does not fit the type of the kind, at line 1 column 8"), "{error}");
    server.sql("insert into punctual.job (name, payload) values ('work', '{\"number\": 5, \"millis\": 0}')");
    assert_eq!(told.recv_timeout(LONG).unwrap(), "work 5");
    let waiting = JobState::Waiting { attempts: 0, last_error: None };
    assert_eq!(old.state(unknown.id()).unwrap(), waiting);

    let (tell, told) = mpsc::channel();
    let new = Jobs::new().on(move |_: &JobRun, _: Tick| {
        tell.send("tick")?;
        Ok(())
    });
    let _new = new.open(postgres(&executor, &server.url())).unwrap();
    assert_eq!(told.recv_timeout(LONG).unwrap(), "tick");
}

/// What waits for a table has all wait behind it that come later, and a program of the older version writes its heartbeats.
#[test]
fn a_step_to_the_next_version_that_waits_for_a_table_holds_up_no_program() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(1);
    postgres(&executor, &server.url()).migrate().unwrap();
    server.sql(
        "alter table punctual.job drop column slot, drop column slot_claim; \
         delete from punctual.job_version where version = 5",
    );
    let mut longest = Duration::ZERO;
    block_on(async {
        let (mut client, other) = (server.connect().await, server.connect().await);
        other.batch_execute("set statement_timeout = '10s'").await.unwrap();
        let reader = client.transaction().await.unwrap();
        reader.batch_execute("select from punctual.job").await.unwrap();
        let url = server.url();
        let stepping = thread::spawn(move || {
            let executor = ScheduledThreadPoolExecutor::new(1);
            postgres(&executor, &url).migrate()
        });
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            let asked = Instant::now();
            other.batch_execute("update punctual.job set attempts = 0").await.unwrap();
            longest = longest.max(asked.elapsed());
        }
        assert!(!stepping.is_finished(), "the reader has the table");
        reader.rollback().await.unwrap();
        stepping.join().unwrap().unwrap();
    });
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    assert_eq!(server.value("select max(version) from punctual.job_version"), "5");
}
