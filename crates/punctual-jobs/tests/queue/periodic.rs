//! Periodic jobs.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use punctual::trigger::Due;
use punctual_jobs::{Job, JobError, JobRun, Jobs, aligned};
use serde::{Deserialize, Serialize};

use crate::world::{Note, SHORT, World, standard};

#[derive(Serialize, Deserialize)]
struct Sweep {
    text: String,
}

impl Sweep {
    fn new() -> Self {
        Self { text: "sweep".to_owned() }
    }
}

impl Job for Sweep {
    const NAME: &'static str = "sweep";
}

pub(crate) fn each_tick_sends_a_job<W: World>() {
    // Read before the opening, which plans the first tick and may itself take longer than a period.
    let begun = OnceLock::new();
    let world = W::open(|scene| {
        begun.get_or_init(|| scene.executor.clock().wall_time());
        let log = scene.log.clone();
        Jobs::new()
            .on(move |_: &JobRun, job: Sweep| {
                log.say(job.text);
                Ok(())
            })
            .every(aligned(2 * SHORT), Sweep::new())
    });
    world.until("three ticks", || world.log().len() >= 3);
    assert!(world.wall().duration_since(*begun.get().unwrap()).unwrap() >= 4 * SHORT);
}

pub(crate) fn runs_of_a_periodic_job_do_not_overlap<W: World>() {
    let running = Arc::new(AtomicUsize::new(0));
    let world = W::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
        let running = Arc::clone(&running);
        Jobs::new()
            .on(move |_: &JobRun, _: Sweep| {
                let beside = running.fetch_add(1, Ordering::SeqCst);
                punctual::CancellationToken::with_clock(clock.clone()).sleep(SHORT)?;
                running.fetch_sub(1, Ordering::SeqCst);
                log.say(beside.to_string());
                Ok(())
            })
            .every(aligned(SHORT / 4), Sweep::new())
    });
    world.until("four runs", || world.log().len() >= 4);
    assert!(world.log().lines().iter().all(|beside| beside == "0"));
}

pub(crate) fn a_failed_tick_is_tried_again<W: World>() {
    let once = || {
        punctual::trigger::from_fn(|last| {
            (last.runs() == 0).then(|| Due::Wall(last.after_wall() + SHORT))
        })
    };
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(move |run: &JobRun, _: Sweep| {
                log.say(run.attempt.to_string());
                if run.attempt == 1 { Err(JobError::new("not yet")) } else { Ok(()) }
            })
            .backoff::<Sweep>(punctual::Backoff::constant(SHORT))
            .every(once(), Sweep::new())
    });
    world.expect(&["1", "2"]);
}

pub(crate) fn a_tick_that_finds_a_job_waiting_enqueues_none<W: World>() {
    let (has_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    // Until five have come in the first run; those before it find its job waiting.
    let ticks = || {
        let (begun, ends) = (Arc::clone(&has_begun), Arc::clone(&is_over));
        let mut beside = 0;
        punctual::trigger::from_fn(move |last| {
            beside += usize::from(begun.load(Ordering::SeqCst));
            ends.store(beside > 5, Ordering::SeqCst);
            (beside <= 5).then(|| Due::Wall(last.after_wall() + SHORT / 4))
        })
    };
    let world = W::open(|scene| {
        let (holds, has_begun) = (scene.clone(), Arc::clone(&has_begun));
        standard(scene)
            .on(move |run: &JobRun, _: Sweep| {
                holds.log.say("begins");
                has_begun.store(true, Ordering::SeqCst);
                holds.hold(run);
                holds.log.say("ends");
                Ok(())
            })
            .every(ticks(), Sweep::new())
    });
    world.until("the last tick", || is_over.load(Ordering::SeqCst) && world.log().has("begins"));
    world.settle();
    world.scene().gate.cancel();
    let ends = || world.log().lines().iter().filter(|line| *line == "ends").count();
    world.until("two runs", || ends() == 2);
    world.queue().after(2 * SHORT, Note::new("after")).enqueue().unwrap();
    world.until("what comes later", || world.log().has("after"));
    assert_eq!(ends(), 2, "one for the first tick, and one for all others");
}

pub(crate) fn a_tick_makes_the_next_attempt_due<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(move |run: &JobRun, _: Sweep| {
                log.say(run.attempt.to_string());
                if run.attempt == 1 { Err(JobError::new("not yet")) } else { Ok(()) }
            })
            .backoff::<Sweep>(punctual::Backoff::constant(36_000 * SHORT))
            .every(aligned(2 * SHORT), Sweep::new())
    });
    world.until("a second attempt", || world.log().has("2"));
}
