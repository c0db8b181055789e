//! What becomes of attempts that fail.

use std::time::Duration;

use punctual_jobs::{Job, JobError, JobRun, JobState, Jobs};
use serde::{Deserialize, Serialize, Serializer};

use crate::world::{Flaky, SHORT, World, standard};

pub(crate) fn a_failed_attempt_is_tried_again<W: World>() {
    let world = W::open(standard);
    world.desk().now(Flaky::new("call", 2)).send().unwrap();
    world.expect(&["call 1", "call 2", "call 3"]);
    world.settle();
    assert_eq!(world.log().len(), 4);
}

#[derive(Serialize, Deserialize)]
struct Probe {}

impl Job for Probe {
    const NAME: &'static str = "probe";
}

pub(crate) fn the_id_is_the_same_in_every_attempt<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(move |run: &JobRun, _: Probe| {
                log.say(run.id().to_string());
                if run.is_last_attempt() { Ok(()) } else { Err(JobError::new("once more")) }
            })
            .attempts::<Probe>(3)
            .backoff::<Probe>(|_| SHORT)
    });
    let ticket = world.desk().now(Probe {}).send().unwrap();
    let id = ticket.id().to_string();
    world.expect(&[&id, &id, &id]);
}

pub(crate) fn a_job_is_given_up_after_its_attempts<W: World>() {
    let world = W::open(|scene| standard(scene).attempts::<Flaky>(2));
    let ticket = world.desk().now(Flaky::new("call", 9)).send().unwrap();
    world.expect(&["call 1", "call 2", "flaky is given up after 2"]);
    let state = world.desk().state(ticket.id()).unwrap();
    assert!(matches!(&state, JobState::GivenUp { last_error } if last_error.contains("not yet")));
    world.settle();
    assert_eq!(world.log().len(), 4);
}

pub(crate) fn a_job_has_as_many_attempts_as_it_was_sent_with<W: World>() {
    let world = W::open(|scene| standard(scene).attempts::<Flaky>(5));
    world.desk().now(Flaky::new("call", 9)).attempts(1).send().unwrap();
    world.expect(&["call 1", "flaky is given up after 1"]);
}

pub(crate) fn a_panic_fails_the_attempt<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(|run: &JobRun, _: Probe| {
                assert!(run.attempt() > 9, "attempt {} was too early", run.attempt());
                Ok(())
            })
            .attempts::<Probe>(1)
            .on_given_up(move |job| log.say(job.last_error.clone()))
    });
    world.desk().now(Probe {}).send().unwrap();
    world.until("the end", || world.log().len() == 1);
    assert!(world.log().lines()[0].contains("has panicked: attempt 1 was too early"));
}

pub(crate) fn the_delay_is_asked_for_with_the_attempts<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        standard(scene).backoff::<Flaky>(move |attempts| {
            log.say(format!("after {attempts}"));
            SHORT / 10
        })
    });
    world.desk().now(Flaky::new("call", 2)).send().unwrap();
    world.expect(&["call 1", "after 1", "call 2", "after 2", "call 3"]);
}

/// Is sent as a text, and read as a number.
#[derive(Deserialize)]
struct Changed {
    _number: u32,
}

impl Serialize for Changed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("a text")
    }
}

impl Job for Changed {
    const NAME: &'static str = "changed";
}

pub(crate) fn a_payload_that_cannot_be_decoded_fails_with_its_name<W: World>() {
    let world = W::open(|scene| {
        let (log, given_up) = (scene.log.clone(), scene.log.clone());
        Jobs::new()
            .on(move |_: &JobRun, _: Changed| {
                log.say("decoded");
                Ok(())
            })
            .attempts::<Changed>(1)
            .on_given_up(move |job| given_up.say(job.last_error.clone()))
    });
    world.desk().now(Changed { _number: 1 }).send().unwrap();
    world.until("the end", || world.log().len() == 1);
    let error = &world.log().lines()[0];
    assert!(error.contains("the payload of the job \"changed\" cannot be decoded"), "{error}");
}

pub(crate) fn a_waiting_job_shows_its_last_error<W: World>() {
    let hour = |_| Duration::from_secs(3600);
    let world = W::open(|scene| standard(scene).backoff::<Flaky>(hour));
    let ticket = world.desk().now(Flaky::new("call", 1)).send().unwrap();
    world.expect(&["call 1"]);
    let mut state = JobState::Gone;
    let desk = world.desk();
    // The attempt has said that it runs before it has failed.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !matches!(&state, JobState::Waiting { last_error: Some(_), .. }) {
        assert!(std::time::Instant::now() < deadline, "{state:?}");
        state = desk.state(ticket.id()).unwrap();
    }
    assert!(matches!(state, JobState::Waiting { attempts: 1, .. }), "{state:?}");
}

pub(crate) fn a_time_limit_raises_the_token_and_fails_the_attempt<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        let given_up = scene.log.clone();
        Jobs::new()
            .on(move |run: &JobRun, _: Probe| {
                run.token().wait();
                log.say("stopped");
                Ok(())
            })
            .attempts::<Probe>(1)
            .time_limit::<Probe>(SHORT)
            .on_given_up(move |job| given_up.say(job.last_error.clone()))
    });
    world.desk().now(Probe {}).send().unwrap();
    world.until("the end", || world.log().len() == 2);
    let lines = world.log().lines();
    assert_eq!(lines[0], "stopped");
    assert!(lines[1].contains("its time limit is 100ms"), "{lines:?}");
}

pub(crate) fn success_after_the_time_limit_is_a_failure<W: World>() {
    let world = W::open(|scene| {
        let given_up = scene.log.clone();
        let clock = scene.executor.clock().clone();
        Jobs::new()
            .on(move |_: &JobRun, _: Probe| {
                let nobody = punctual::CancellationToken::with_clock(clock.clone());
                nobody.sleep(2 * SHORT)?;
                Ok(())
            })
            .attempts::<Probe>(1)
            .time_limit::<Probe>(SHORT)
            .on_given_up(move |_| given_up.say("given up"))
    });
    world.desk().now(Probe {}).send().unwrap();
    world.expect(&["given up"]);
}
