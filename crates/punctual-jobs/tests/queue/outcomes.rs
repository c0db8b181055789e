//! The verdicts of a handler on its job: that it is in vain, or that it was too early. And the errors in which no
//! verdict is read.

use std::time::Duration;

use punctual_jobs::{Job, JobChange, JobError, JobRun, JobState, Jobs};
use serde::{Deserialize, Serialize};

use crate::world::{HOUR, LONG, Note, SHORT, Scene, World, standard};

/// Says its attempt, and returns what it is told to, so many times.
#[derive(Clone, Serialize, Deserialize)]
struct Verdict {
    word: String,
    delay: Duration,
    times: usize,
    /// Waits for the gate, or its token, before it returns.
    holds: bool,
}

impl Job for Verdict {
    const NAME: &'static str = "verdict";
}

fn discard() -> Verdict {
    Verdict { word: "discard".to_owned(), delay: SHORT, times: 9, holds: false }
}

fn snooze(delay: Duration, times: usize) -> Verdict {
    Verdict { word: "snooze".to_owned(), delay, times, holds: false }
}

fn judging(scene: &Scene) -> Jobs {
    let scene_of_it = scene.clone();
    standard(scene).on(move |run: &JobRun, job: Verdict| {
        let log = &scene_of_it.log;
        let said = log.lines().iter().filter(|line| line.starts_with("verdict at ")).count();
        log.say(format!("verdict at {}", run.attempt));
        if job.holds {
            scene_of_it.hold(run);
        }
        match &*job.word {
            _ if said >= job.times => Ok(()),
            "discard" => Err(JobError::discard("in vain")),
            _ => Err(JobError::snooze(job.delay)),
        }
    })
}

pub(crate) fn a_retry_of_a_job_that_was_discarded_is_one_attempt<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        standard(scene).on(move |run: &JobRun, _: Verdict| {
            log.say(format!("{} of {}", run.attempt, run.max_attempts));
            Err(if run.attempt == 1 { JobError::discard("in vain") } else { JobError::new("no") })
        })
    });
    let job = world.queue().now(discard()).max_attempts(5).enqueue().unwrap();
    world.expect(&["1 of 5", "verdict is discarded after 1"]);
    assert_eq!(world.queue().retry(job.id).unwrap(), JobChange::Done);
    let twice =
        ["1 of 5", "verdict is discarded after 1", "2 of 2", "verdict is discarded after 2"];
    world.expect(&twice);
}

pub(crate) fn a_job_that_is_discarded_is_not_tried_again<W: World>() {
    let world = W::open(judging);
    let queue = world.queue();
    let job = queue.now(discard()).key("k").ordering_key("s").enqueue().unwrap();
    world.expect(&["verdict at 1", "verdict is discarded after 1"]);
    let discarded = JobState::Discarded { last_error: "in vain".to_owned() };
    assert_eq!(queue.state(job.id).unwrap(), discarded);
    assert_eq!(queue.cancel("k").unwrap(), JobChange::Unknown);
    let next = queue.now(Note::new("next")).key("k").ordering_key("s").enqueue().unwrap();
    assert_ne!(next.id, job.id);
    world.expect(&["verdict at 1", "verdict is discarded after 1", "next"]);
    world.settle();
    assert_eq!(world.log().len(), 4);
}

pub(crate) fn an_attempt_that_is_snoozed_is_not_counted<W: World>() {
    let world = W::open(judging);
    let job = world.queue().now(snooze(SHORT, 3)).max_attempts(1).enqueue().unwrap();
    world.expect(&["verdict at 1", "verdict at 1", "verdict at 1", "verdict at 1"]);
    world.until("its end", || world.queue().state(job.id).unwrap() == JobState::Gone);
    world.settle();
    assert_eq!(world.log().len(), 5);
}

/// Waits until the job waits again as if it had not run.
fn snoozed<W: World>(world: &W, job: punctual_jobs::JobId) {
    let waiting = JobState::Waiting { attempts: 0, last_error: None };
    world.until("an attempt", || world.log().has("verdict at 1"));
    world.until("it is snoozed", || world.queue().state(job).unwrap() == waiting);
}

pub(crate) fn a_job_that_is_snoozed_has_its_key<W: World>() {
    let world = W::open(judging);
    let job = world.queue().now(snooze(HOUR, 1)).key("k").enqueue().unwrap();
    snoozed(&world, job.id);
    assert_eq!(world.queue().reschedule("k", Duration::ZERO).unwrap(), JobChange::Done);
    world.expect(&["verdict at 1", "verdict at 1"]);
    world.until("its end", || world.queue().state(job.id).unwrap() == JobState::Gone);

    let job = world.queue().now(snooze(HOUR, 9)).key("k").enqueue().unwrap();
    world.until("it runs", || world.log().len() == 3);
    snoozed(&world, job.id);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Done);
}

pub(crate) fn a_job_that_is_snoozed_lets_the_others_go_first<W: World>() {
    let world = W::open(judging);
    let job = world.queue().now(snooze(HOUR, 1)).ordering_key("s").key("k").enqueue().unwrap();
    snoozed(&world, job.id);
    world.queue().now(Note::new("other")).ordering_key("s").enqueue().unwrap();
    world.expect(&["verdict at 1", "other"]);
    assert_eq!(world.queue().reschedule("k", SHORT).unwrap(), JobChange::Done);
    world.expect(&["verdict at 1", "other", "verdict at 1"]);
}

pub(crate) fn a_job_that_was_cancelled_is_gone_whatever_it_says<W: World>() {
    for verdict in [discard(), snooze(SHORT, 9)] {
        let world = W::open(judging);
        let job = Verdict { holds: true, ..verdict };
        let job = world.queue().now(job).key("k").enqueue().unwrap();
        world.until("its begin", || world.log().has("verdict at 1"));
        assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
        world.until("its end", || world.queue().state(job.id).unwrap() == JobState::Gone);
        world.settle();
        assert_eq!(world.log().lines(), ["verdict at 1", "settled"]);
    }
}

pub(crate) fn a_job_that_lost_its_key_is_gone_whatever_it_says<W: World>() {
    for verdict in [discard(), snooze(SHORT, 9)] {
        let world = W::open(judging);
        let job = Verdict { holds: true, ..verdict };
        let job = world.queue().now(job).key("k").enqueue().unwrap();
        world.until("its begin", || world.log().has("verdict at 1"));
        world.queue().now(Note::new("second")).key("k").enqueue().unwrap();
        world.until("the second", || world.log().has("second"));
        world.scene().gate.cancel();
        world.until("its end", || world.queue().state(job.id).unwrap() == JobState::Gone);
        world.settle();
        assert_eq!(world.log().lines(), ["verdict at 1", "second", "settled"]);
    }
}

pub(crate) fn after_its_time_limit_a_job_can_be_discarded_and_not_snoozed<W: World>() {
    for (verdict, error) in [(discard(), "in vain"), (snooze(HOUR, 9), "its time limit is 100ms")] {
        let world = W::open(|scene| judging(scene).timeout::<Verdict>(SHORT));
        let job = Verdict { holds: true, ..verdict };
        let job = world.queue().now(job).max_attempts(1).enqueue().unwrap();
        world.expect(&["verdict at 1", "verdict is discarded after 1"]);
        let state = world.queue().state(job.id).unwrap();
        let JobState::Discarded { last_error } = state else { panic!("{state:?}") };
        assert!(last_error.contains(error), "{last_error}");
    }
}

pub(crate) fn a_job_can_be_discarded_during_a_shutdown<W: World>() {
    let world = W::open(judging);
    world.queue().now(Verdict { holds: true, ..discard() }).enqueue().unwrap();
    world.until("its begin", || world.log().has("verdict at 1"));
    let report = world.shutdown(SHORT, LONG);
    assert!(report.ran.is_empty() && report.released.is_empty(), "{report:?}");
    world.expect(&["verdict at 1", "verdict is discarded after 1"]);
}

pub(crate) fn a_job_can_be_snoozed_during_a_shutdown<W: World>() {
    let world = W::open(judging);
    let job = Verdict { holds: true, ..snooze(HOUR, 9) };
    world.queue().now(job).max_attempts(1).enqueue().unwrap();
    world.until("its begin", || world.log().has("verdict at 1"));
    let report = world.shutdown(SHORT, LONG);
    assert!(report.ran.is_empty() && report.still_running.is_empty(), "{report:?}");
    assert!(report.released.iter().all(|job| job.attempts == 0), "{report:?}");
    assert_eq!(world.log().lines(), ["verdict at 1"], "it is not discarded");
}

#[derive(Serialize, Deserialize)]
struct Probe {}

impl Job for Probe {
    const NAME: &'static str = "probe";
}

pub(crate) fn what_an_error_says_has_no_meaning<W: World>() {
    let words = ["handed back", "released", "freed", "ran", "gone", "discarded", "snoozed", ""];
    let world = W::open(|scene| {
        let log = scene.log.clone();
        standard(scene)
            .on(move |run: &JobRun, _: Probe| {
                log.say("probe");
                Err(JobError::new(words[run.attempt as usize - 1]))
            })
            .backoff::<Probe>(punctual::Backoff::constant(Duration::ZERO))
            .max_attempts::<Probe>(words.len() as u32)
    });
    let job = world.queue().now(Probe {}).key("k").enqueue().unwrap();
    world.until("the end", || world.log().has("probe is discarded after 8"));
    assert_eq!(world.log().len(), words.len() + 1);
    let discarded = JobState::Discarded { last_error: String::new() };
    assert_eq!(world.queue().state(job.id).unwrap(), discarded);
}

pub(crate) fn an_error_with_a_nul_is_kept_without_it<W: World>() {
    for discards in [true, false] {
        let world = W::open(|scene| {
            standard(scene)
                .on(move |_: &JobRun, _: Probe| {
                    let text = "no\0route";
                    Err(if discards { JobError::discard(text) } else { JobError::new(text) })
                })
                .max_attempts::<Probe>(1)
        });
        let job = world.queue().now(Probe {}).enqueue().unwrap();
        world.expect(&["probe is discarded after 1"]);
        let discarded = JobState::Discarded { last_error: "no\u{FFFD}route".to_owned() };
        assert_eq!(world.queue().state(job.id).unwrap(), discarded);
    }
}

/// Panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose, once more");
    }
}

pub(crate) fn a_panic_that_panics_when_it_is_dropped_ends_the_attempt<W: World>() {
    let world = W::open(|scene| {
        standard(scene)
            .on(|run: &JobRun, _: Probe| {
                run.token().wait();
                std::panic::panic_any(Bomb)
            })
            .timeout::<Probe>(SHORT)
            .max_attempts::<Probe>(1)
    });
    world.queue().now(Probe {}).ordering_key("s").enqueue().unwrap();
    world.expect(&["probe is discarded after 1"]);
    world.queue().now(Note::new("next")).ordering_key("s").enqueue().unwrap();
    world.expect(&["probe is discarded after 1", "next"]);
}
