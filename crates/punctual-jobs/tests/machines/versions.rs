//! Programs of two versions side by side (J9), and jobs from plain SQL.

use std::{sync::mpsc, time::Duration};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobRun, JobState, Jobs};

use crate::{
    kinds::{Tick, Work},
    machine::postgres,
    support::server::Server,
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
