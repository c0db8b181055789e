//! Periodic jobs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use punctual::trigger::Due;
use punctual_jobs::{Job, JobError, JobRun, Jobs, aligned};
use serde::{Deserialize, Serialize};

use crate::world::{SHORT, World};

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
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(move |_: &JobRun, job: Sweep| {
                log.say(job.text);
                Ok(())
            })
            .every(aligned(2 * SHORT), Sweep::new())
    });
    let begun = world.wall();
    world.until("three ticks", || world.log().len() >= 3);
    assert!(world.wall().duration_since(begun).unwrap() >= 4 * SHORT);
}

pub(crate) fn runs_of_a_periodic_job_do_not_overlap<W: World>() {
    let running = Arc::new(AtomicUsize::new(0));
    let world = W::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
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
    let once = punctual::trigger::from_fn(|last| {
        (last.runs() == 0).then(|| Due::Wall(last.after_wall() + SHORT))
    });
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(move |run: &JobRun, _: Sweep| {
                log.say(run.attempt().to_string());
                if run.attempt() == 1 { Err(JobError::new("not yet")) } else { Ok(()) }
            })
            .backoff::<Sweep>(|_| SHORT)
            .every(once, Sweep::new())
    });
    world.expect(&["1", "2"]);
}
