//! Attempts that fail, and what follows.

use std::time::Duration;

use punctual::Backoff;
use punctual_jobs::{Job, JobChange, JobError, JobFilter, JobRun, JobState, Jobs};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, HOUR, SHORT, World, standard};

pub(crate) fn a_failed_attempt_is_tried_again<W: World>() {
    let world = W::open(standard);
    world.queue().now(Flaky::new("call", 2)).enqueue().unwrap();
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
                log.say(run.id.to_string());
                if run.attempt == run.max_attempts {
                    Ok(())
                } else {
                    Err(JobError::new("once more"))
                }
            })
            .max_attempts::<Probe>(3)
            .backoff::<Probe>(punctual::Backoff::constant(SHORT))
    });
    let ticket = world.queue().now(Probe {}).enqueue().unwrap();
    let id = ticket.id.to_string();
    world.expect(&[&id, &id, &id]);
}

pub(crate) fn a_job_is_discarded_after_its_attempts<W: World>() {
    let world = W::open(|scene| standard(scene).max_attempts::<Flaky>(2));
    let ticket = world.queue().now(Flaky::new("call", 9)).enqueue().unwrap();
    world.expect(&["call 1", "call 2", "flaky is discarded after 2"]);
    let state = world.queue().state(ticket.id).unwrap();
    assert!(matches!(&state, JobState::Discarded { last_error } if last_error.contains("not yet")));
    world.settle();
    assert_eq!(world.log().len(), 4);
}

pub(crate) fn a_job_has_as_many_attempts_as_it_was_sent_with<W: World>() {
    let world = W::open(|scene| standard(scene).max_attempts::<Flaky>(5));
    world.queue().now(Flaky::new("call", 9)).max_attempts(1).enqueue().unwrap();
    world.expect(&["call 1", "flaky is discarded after 1"]);
}

#[derive(Serialize, Deserialize)]
struct Scarce {}

impl Job for Scarce {
    const NAME: &'static str = "scarce";
    const MAX_ATTEMPTS: u32 = 2;
    const TIMEOUT: Option<Duration> = Some(SHORT);
}

/// The two numbers of the kind hold without a word where it is defined.
pub(crate) fn a_kind_says_its_attempts_and_its_time_limit<W: World>() {
    let world = W::open(|scene| {
        let (log, told) = (scene.log.clone(), scene.log.clone());
        Jobs::new()
            .on(move |run: &JobRun, _: Scarce| {
                log.say(format!("{} {}", run.attempt, run.attempt == run.max_attempts));
                run.token().wait();
                Ok(())
            })
            .backoff::<Scarce>(punctual::Backoff::constant(SHORT))
            .on_discarded(move |job| told.say(job.last_error.contains("time limit").to_string()))
    });
    world.queue().now(Scarce {}).enqueue().unwrap();
    world.expect(&["1 false", "2 true", "true"]);
}

pub(crate) fn a_panic_fails_the_attempt<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(|run: &JobRun, _: Probe| {
                assert!(run.attempt > 9, "attempt {} was too early", run.attempt);
                Ok(())
            })
            .max_attempts::<Probe>(1)
            .on_discarded(move |job| log.say(job.last_error.clone()))
    });
    world.queue().now(Probe {}).enqueue().unwrap();
    world.until("the end", || world.log().len() == 1);
    assert!(world.log().lines()[0].contains("has panicked: attempt 1 was too early"));
}

#[derive(Serialize, Deserialize)]
struct Slowly {}

impl Job for Slowly {
    const NAME: &'static str = "slowly";
    const BACKOFF: Option<Backoff> =
        Some(Backoff::exponential(HOUR..=Duration::from_secs(4 * 3600)).max_attempts(3));
}

/// The delays are the kind's, without a word where it is defined, and so is the end of them.
pub(crate) fn a_kind_says_its_backoff<W: World>() {
    let world = W::open(|scene| {
        let (log, told) = (scene.log.clone(), scene.log.clone());
        Jobs::new()
            .on(move |run: &JobRun, _: Slowly| {
                log.say(run.attempt.to_string());
                Err(JobError::new("not yet"))
            })
            .on_discarded(move |job| told.say(format!("discarded after {}", job.attempts)))
    });
    let job = world.queue().now(Slowly {}).enqueue().unwrap();
    for attempts in [1, 2] {
        let failed =
            |state| matches!(state, JobState::Waiting { attempts: it, .. } if it == attempts);
        world.until("it has failed", || failed(world.queue().state(job.id).unwrap()));
        let due = world.queue().list(&JobFilter::default()).unwrap()[0].due.unwrap();
        let ahead = due.duration_since(world.wall()).unwrap();
        assert!(ahead > HOUR * (2 * attempts - 1) / 2 && ahead <= HOUR * attempts, "{ahead:?}");
        assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Done);
    }
    world.expect(&["1", "2", "3", "discarded after 3"]);
}

/// A kind as the program that sends it knows it, and as the one that runs it does.
#[derive(Serialize, Deserialize)]
struct Before(String);

impl Job for Before {
    const NAME: &'static str = "changed";
    const MAX_ATTEMPTS: u32 = 1;
}

#[derive(Serialize, Deserialize)]
struct Changed {
    _number: u32,
}

impl Job for Changed {
    const NAME: &'static str = "changed";
}

/// And with the place, and with nothing of the payload.
pub(crate) fn a_payload_that_cannot_be_decoded_fails_with_its_name<W: World>() {
    let world = W::open(|scene| {
        let (log, discarded) = (scene.log.clone(), scene.log.clone());
        Jobs::new()
            .on(move |_: &JobRun, _: Changed| {
                log.say("decoded");
                Ok(())
            })
            .max_attempts::<Changed>(1)
            .on_discarded(move |job| discarded.say(job.last_error.clone()))
    });
    world.queue().now(Before("a text".to_owned())).enqueue().unwrap();
    world.until("the end", || world.log().len() == 1);
    let error = &world.log().lines()[0];
    let fault = "it does not fit the type of the kind, at line 1 column 8";
    assert_eq!(*error, format!("the payload of the job \"changed\" cannot be decoded: {fault}"));
}

pub(crate) fn a_waiting_job_shows_its_last_error<W: World>() {
    let hour = punctual::Backoff::constant(Duration::from_secs(3600));
    let world = W::open(|scene| standard(scene).backoff::<Flaky>(hour));
    let ticket = world.queue().now(Flaky::new("call", 1)).enqueue().unwrap();
    world.expect(&["call 1"]);
    let state = || world.queue().state(ticket.id).unwrap();
    // The attempt has said that it runs before it has failed.
    world.until("its error", || matches!(state(), JobState::Waiting { last_error: Some(_), .. }));
    let state = state();
    assert!(matches!(state, JobState::Waiting { attempts: 1, .. }), "{state:?}");
}

pub(crate) fn a_time_limit_raises_the_token_and_fails_the_attempt<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        let discarded = scene.log.clone();
        Jobs::new()
            .on(move |run: &JobRun, _: Probe| {
                run.token().wait();
                log.say("stopped");
                Ok(())
            })
            .max_attempts::<Probe>(1)
            .timeout::<Probe>(SHORT)
            .on_discarded(move |job| discarded.say(job.last_error.clone()))
    });
    world.queue().now(Probe {}).enqueue().unwrap();
    world.until("the end", || world.log().len() == 2);
    let lines = world.log().lines();
    assert_eq!(lines[0], "stopped");
    assert!(lines[1].contains("its time limit is 100ms"), "{lines:?}");
}

pub(crate) fn success_after_the_time_limit_is_a_failure<W: World>() {
    let world = W::open(|scene| {
        let discarded = scene.log.clone();
        let clock = scene.executor.clock().clone();
        Jobs::new()
            .on(move |_: &JobRun, _: Probe| {
                let nobody = punctual::CancellationToken::with_clock(clock.clone());
                nobody.sleep(2 * SHORT)?;
                Ok(())
            })
            .max_attempts::<Probe>(1)
            .timeout::<Probe>(SHORT)
            .on_discarded(move |_| discarded.say("discarded"))
    });
    world.queue().now(Probe {}).enqueue().unwrap();
    world.expect(&["discarded"]);
}
