//! A look inside, and the changes by id: list, retry, discard, remove.

use std::time::Duration;

use punctual_jobs::{
    Job, JobChange, JobError, JobFilter, JobId, JobLimit, JobRun, JobStage, JobState, JobStatus,
    JobWait, Jobs, Priority,
};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, standard};

fn ids<W: World>(world: &W, filter: JobFilter) -> Vec<i64> {
    world.queue().list(&filter).unwrap().iter().map(|job| job.id.0).collect()
}

fn one<W: World>(world: &W, id: JobId) -> JobStatus {
    let listed = world.queue().list(&JobFilter::default()).unwrap();
    listed.into_iter().find(|job| job.id == id).unwrap()
}

/// Waits until a job is discarded, and the program was told if it is to be.
fn discarded<W: World>(world: &W, id: JobId) {
    world.until("its end", || {
        matches!(world.queue().state(id).unwrap(), JobState::Discarded { .. })
    });
}

pub(crate) fn a_list_says_how_each_job_stands<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let lost = queue.now(Flaky::new("call", 9)).max_attempts(1).key("lost").enqueue().unwrap();
    discarded(&world, lost.id);
    let runs = queue.now(Hold::new("job")).ordering_key("user/1").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let before = world.wall();
    let waits = queue.after(HOUR, Note::new("tea")).key("k").max_attempts(7);
    let waits = waits.priority(Priority::Low).limit_key("tenant/1").enqueue().unwrap();
    let all = queue.list(&JobFilter::default()).unwrap();
    assert_eq!(all.iter().map(|job| job.id).collect::<Vec<_>>(), [lost.id, runs.id, waits.id]);
    let stages: Vec<_> = all.iter().map(|job| job.stage).collect();
    assert_eq!(stages, [JobStage::Discarded, JobStage::Running, JobStage::Waiting]);
    assert_eq!(all[0].waits_for, None, "it was discarded");
    let [lost, runs, waits] = &all[..] else { panic!("{all:?}") };
    assert_eq!((lost.kind.as_str(), lost.attempts, lost.max_attempts), ("flaky", 1, 1));
    assert!(lost.last_error.as_ref().unwrap().contains("not yet"), "{lost}");
    assert_eq!(lost.key.as_deref(), Some("lost"));
    assert_eq!((runs.attempts, runs.ordering_key.as_deref()), (1, Some("user/1")));
    assert!(runs.machine.as_ref().unwrap().ends_with(&format!(":{}", std::process::id())));
    assert!(runs.since.unwrap() <= world.wall() + Duration::from_secs(1));
    assert_eq!((waits.attempts, waits.max_attempts, waits.key.as_deref()), (0, 7, Some("k")));
    assert_eq!((runs.priority, waits.priority), (Priority::Normal, Priority::Low));
    assert_eq!((&runs.limit_key, waits.limit_key.as_deref()), (&None, Some("tenant/1")));
    assert!(all.iter().all(|job| job.payload.is_none()), "they are not asked for");
    let asked = queue
        .list(&JobFilter { key: Some("k".into()), payloads: true, ..JobFilter::default() })
        .unwrap();
    assert_eq!(asked[0].payload.as_deref(), Some(r#"{"text":"tea"}"#));
    let due = waits.due.unwrap().duration_since(before).unwrap();
    assert!(due + Duration::from_secs(1) > HOUR && due < HOUR + Duration::from_secs(60), "{due:?}");
    assert!((waits.machine.is_none(), waits.since.is_none()) == (true, true), "{waits}");
}

pub(crate) fn a_list_is_filtered_and_paged<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let notes: Vec<_> =
        (0..5).map(|_| queue.after(HOUR, Note::new("n")).enqueue().unwrap().id.0).collect();
    let flaky = queue.after(HOUR, Flaky::new("f", 0)).key("k").enqueue().unwrap().id.0;
    let line = queue.after(HOUR, Note::new("o")).ordering_key("line").limit_key("tenant");
    let line = line.enqueue().unwrap().id.0;
    assert_eq!(
        ids(&world, JobFilter { kind: Some("flaky".into()), ..JobFilter::default() }),
        [flaky]
    );
    assert_eq!(ids(&world, JobFilter { key: Some("k".into()), ..JobFilter::default() }), [flaky]);
    assert_eq!(
        ids(
            &world,
            JobFilter { key: Some("k".into()), kind: Some("note".into()), ..JobFilter::default() }
        ),
        Vec::<i64>::new()
    );
    assert_eq!(
        ids(&world, JobFilter { ordering_key: Some("line".into()), ..JobFilter::default() }),
        [line]
    );
    assert_eq!(
        ids(&world, JobFilter { limit_key: Some("tenant".into()), ..JobFilter::default() }),
        [line]
    );
    assert_eq!(
        ids(&world, JobFilter { limit_key: Some("".into()), ..JobFilter::default() }),
        Vec::<i64>::new()
    );
    assert_eq!(
        ids(&world, JobFilter { schedule: Some("none".into()), ..JobFilter::default() }),
        Vec::<i64>::new()
    );
    assert_eq!(
        ids(&world, JobFilter { stage: Some(JobStage::Running), ..JobFilter::default() }),
        Vec::<i64>::new()
    );
    assert_eq!(
        ids(&world, JobFilter { limit: Some(0), ..JobFilter::default() }),
        Vec::<i64>::new()
    );
    let page = JobFilter {
        stage: Some(JobStage::Waiting),
        kind: Some("note".into()),
        limit: Some(2),
        ..JobFilter::default()
    };
    assert_eq!(ids(&world, page.clone()), notes[..2]);
    assert_eq!(
        ids(&world, JobFilter { after: Some(JobId(notes[1])), ..page.clone() }),
        notes[2..4]
    );
    assert_eq!(ids(&world, JobFilter { after: Some(JobId(notes[3])), ..page }), [notes[4], line]);
}

pub(crate) fn a_discarded_job_that_is_retried_has_one_more_attempt<W: World>() {
    let world = W::open(|scene| standard(scene).max_attempts::<Flaky>(1));
    let job = world.queue().now(Flaky::new("call", 2)).key("k").enqueue().unwrap();
    world.expect(&["call 1", "flaky is discarded after 1"]);
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Done);
    // It is told again: it is discarded again.
    world.expect(&["call 1", "flaky is discarded after 1", "call 2", "flaky is discarded after 2"]);
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Done);
    world.until("its end", || world.queue().state(job.id).unwrap() == JobState::Gone);
    assert!(world.log().has("call 3"));
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Unknown);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Unknown);
}

pub(crate) fn a_waiting_job_that_is_retried_is_due<W: World>() {
    let world =
        W::open(|scene| standard(scene).backoff::<Flaky>(punctual::Backoff::constant(HOUR)));
    let job = world.queue().after(HOUR, Flaky::new("call", 1)).max_attempts(2).enqueue().unwrap();
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Done);
    world.until("the first", || one(&world, job.id).last_error.is_some());
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Done);
    world.expect(&["call 1", "call 2"]);
}

pub(crate) fn a_running_job_is_neither_retried_nor_removed<W: World>() {
    let world = W::open(standard);
    let job = world.queue().now(Hold::new("job")).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Running);
    assert_eq!(world.queue().remove(job.id).unwrap(), JobChange::Running);
    world.scene().gate.cancel();
    world.expect(&["job begins", "job ends"]);
}

pub(crate) fn a_retry_does_not_take_a_key_from_another_job<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let lost = queue.now(Flaky::new("call", 9)).max_attempts(1).key("k").enqueue().unwrap();
    discarded(&world, lost.id);
    let other = queue.after(HOUR, Note::new("tea")).key("k").enqueue().unwrap();
    assert_ne!(lost.id, other.id);
    assert_eq!(queue.retry(lost.id).unwrap(), JobChange::KeyTaken);
    discarded(&world, lost.id);
    assert_eq!(queue.cancel("k").unwrap(), JobChange::Done);
    assert_eq!(queue.retry(lost.id).unwrap(), JobChange::Done);
    world.until("its second attempt", || world.log().has("call 2"));
}

pub(crate) fn a_waiting_job_that_is_discarded_does_not_run<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let job = queue.after(HOUR, Note::new("tea")).key("k").enqueue().unwrap();
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Done);
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Done);
    let state = queue.state(job.id).unwrap();
    assert!(matches!(&state, JobState::Discarded { last_error } if last_error.contains("discard")));
    assert_eq!(queue.cancel("k").unwrap(), JobChange::Unknown, "its key is free");
    world.settle();
    assert_eq!(world.log().lines(), ["settled"], "nor is it told");
    assert_eq!(queue.retry(job.id).unwrap(), JobChange::Done);
    world.expect(&["settled", "tea"]);
    world.until("its end", || queue.state(job.id).unwrap() == JobState::Gone);
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Unknown);
}

pub(crate) fn a_running_job_that_is_discarded_is_asked_to_stop<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let job = queue.now(Hold::new("job")).key("k").max_attempts(5).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Signalled);
    world.expect(&["job begins", "job is stopped", "hold is discarded after 1"]);
    let state = queue.state(job.id).unwrap();
    assert_eq!(state, JobState::Discarded { last_error: "stopped".to_owned() });
    // Nothing of that is left when it is retried.
    assert_eq!(queue.retry(job.id).unwrap(), JobChange::Done);
    world.scene().gate.cancel();
    world.until("its end", || queue.state(job.id).unwrap() == JobState::Gone);
    assert_eq!(world.log().lines().last().unwrap(), "job ends");
}

pub(crate) fn a_running_job_that_is_discarded_may_still_succeed<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let job = queue.now(Hold::that_forgives("job")).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(queue.discard(job.id).unwrap(), JobChange::Signalled);
    world.until("its end", || queue.state(job.id).unwrap() == JobState::Gone);
    world.settle();
    assert_eq!(world.log().lines(), ["job begins", "job is stopped", "settled"]);
}

pub(crate) fn a_job_that_was_discarded_does_not_snooze<W: World>() {
    let world = W::open(|scene| {
        let (log, held, told) = (scene.log.clone(), scene.clone(), scene.log.clone());
        Jobs::new()
            .on(move |run: &JobRun, _: Note| {
                log.say("begins");
                held.hold(run);
                Err(JobError::snooze(SHORT))
            })
            .on_discarded(move |job| told.say(format!("discarded after {}", job.attempts)))
    });
    let job = world.queue().now(Note::new("n")).enqueue().unwrap();
    world.until("its begin", || world.log().has("begins"));
    assert_eq!(world.queue().discard(job.id).unwrap(), JobChange::Signalled);
    world.expect(&["begins", "discarded after 1"]);
    discarded(&world, job.id);
}

pub(crate) fn jobs_that_do_not_run_are_removed<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let waits = queue.after(HOUR, Note::new("tea")).key("k").enqueue().unwrap();
    let lost = queue.now(Flaky::new("call", 9)).max_attempts(1).enqueue().unwrap();
    discarded(&world, lost.id);
    for job in [waits, lost] {
        assert_eq!(queue.remove(job.id).unwrap(), JobChange::Done);
        assert_eq!(queue.remove(job.id).unwrap(), JobChange::Unknown);
        assert_eq!(queue.state(job.id).unwrap(), JobState::Gone);
    }
    assert_eq!(queue.list(&JobFilter::default()).unwrap(), []);
    world.settle();
    assert!(!world.log().has("tea"));
}

pub(crate) fn a_discarded_job_leaves_the_line<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let in_line = |job: Hold| queue.now(job).ordering_key("line").enqueue().unwrap();
    let _first = in_line(Hold::new("first"));
    world.until("its begin", || world.log().has("first begins"));
    let second = in_line(Hold::new("second"));
    let third = in_line(Hold::new("third"));
    let fourth = in_line(Hold::new("fourth"));
    assert_eq!(queue.discard(second.id).unwrap(), JobChange::Done);
    assert_eq!(queue.remove(third.id).unwrap(), JobChange::Done);
    world.scene().gate.cancel();
    world.until("its end", || queue.state(fourth.id).unwrap() == JobState::Gone);
    assert_eq!(world.log().lines(), ["first begins", "first ends", "fourth begins", "fourth ends"]);
    assert_eq!(queue.retry(second.id).unwrap(), JobChange::Done);
    world.until("its end", || queue.state(second.id).unwrap() == JobState::Gone);
}

pub(crate) fn a_queue_that_was_shut_down_shows_nothing<W: World>() {
    let world = W::open(standard);
    let job = world.queue().after(HOUR, Note::new("tea")).enqueue().unwrap();
    world.shutdown(SHORT, SHORT);
    let queue = world.queue();
    let errors = [
        queue.list(&JobFilter::default()).map(drop).unwrap_err(),
        queue.retry(job.id).map(drop).unwrap_err(),
        queue.discard(job.id).map(drop).unwrap_err(),
        queue.remove(job.id).map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, punctual_jobs::QueueError::ShutDown), "{error}");
    }
}

pub(crate) fn counts_say_how_many_jobs_stand_where<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    assert_eq!(queue.counts().unwrap(), []);
    let lost = queue.now(Flaky::new("call", 9)).max_attempts(1).enqueue().unwrap();
    discarded(&world, lost.id);
    queue.now(Hold::new("job")).ordering_key("user/1").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    // One waits for its turn, and two for their moment.
    queue.now(Hold::new("next")).ordering_key("user/1").enqueue().unwrap();
    queue.after(HOUR, Note::new("tea")).enqueue().unwrap();
    queue.after(HOUR, Note::new("milk")).enqueue().unwrap();
    world.until("a moment ago", || {
        queue.counts().unwrap().iter().any(|it| it.kind == "hold" && !it.latency.is_zero())
    });
    let counts = queue.counts().unwrap();
    let seen: Vec<_> = counts
        .iter()
        .map(|it| (it.kind.as_str(), [it.waiting, it.due, it.running, it.discarded]))
        .collect();
    assert_eq!(seen, [("flaky", [0, 0, 0, 1]), ("hold", [1, 1, 1, 0]), ("note", [2, 0, 0, 0])]);
    assert!(counts[0].latency.is_zero() && counts[2].latency.is_zero(), "{counts:?}");
    assert!(counts[1].latency < HOUR, "{counts:?}");
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Large {
    most: u128,
    least: i128,
}

impl Job for Large {
    const NAME: &'static str = "large";
}

/// A value of JSON would have the nearest float.
pub(crate) fn a_list_has_the_payload_that_was_sent<W: World>() {
    let world = W::open(|scene| standard(scene).on(|_: &JobRun, _: Large| Ok(())));
    let large = || Large { most: u128::MAX - 1, least: i128::MIN + 1 };
    world.queue().after(HOUR, large()).enqueue().unwrap();
    let listed = world.queue().list(&JobFilter { payloads: true, ..JobFilter::default() }).unwrap();
    let text = listed[0].payload.as_deref().unwrap();
    assert_eq!(serde_json::from_str::<Large>(text).unwrap(), large());
}

pub(crate) fn a_list_says_what_a_due_job_waits_for<W: World>() {
    let world = W::open(|scene| {
        let limit = JobLimit::at_once;
        standard(scene).limit::<Hold>(limit(2)).limit::<Hold>(limit(1).for_each_key())
    });
    let queue = world.queue();
    let hold = |text: &str, key: &str| queue.now(Hold::new(text)).limit_key(key);
    hold("first", "t").ordering_key("line").enqueue().unwrap();
    hold("other", "u").enqueue().unwrap();
    world.until("both", || world.log().has("first begins") && world.log().has("other begins"));
    let tenant = hold("tenant", "t").enqueue().unwrap().id;
    let kind = hold("kind", "v").enqueue().unwrap().id;
    let line = queue.now(Note::new("line")).ordering_key("line").enqueue().unwrap().id;
    let later = queue.after(HOUR, Note::new("later")).ordering_key("line").enqueue().unwrap().id;
    world.until("they are in their lines", || one(&world, line).waits_for.is_some());
    world.until("the limit", || one(&world, kind).waits_for.is_some());
    assert_eq!(one(&world, tenant).waits_for, Some(JobWait::LimitOfKey));
    assert_eq!(one(&world, kind).waits_for, Some(JobWait::Limit));
    assert_eq!(one(&world, line).waits_for, Some(JobWait::OrderingKey));
    assert_eq!(one(&world, later).waits_for, None);
    let shown = one(&world, line).to_string();
    assert!(shown.contains("waiting for its ordering key"), "{shown}");
    world.scene().gate.cancel();
}

pub(crate) fn a_job_of_a_paused_kind_waits_for_a_limit_that_is_reached<W: World>() {
    let world = W::open(|scene| standard(scene).limit::<Hold>(JobLimit::at_once(1)));
    let queue = world.queue();
    queue.now(Hold::new("first")).enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    let waits = queue.now(Hold::new("second")).enqueue().unwrap().id;
    world.until("the limit", || one(&world, waits).waits_for == Some(JobWait::Limit));
    queue.pause_kind("hold", None).unwrap();
    assert_eq!(one(&world, waits).waits_for, Some(JobWait::Limit));
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("first ends"));
    world.until("the place is free", || one(&world, waits).waits_for.is_none());
    let shown = one(&world, waits);
    assert!(shown.paused && shown.stage == JobStage::Waiting, "{shown}");
}
