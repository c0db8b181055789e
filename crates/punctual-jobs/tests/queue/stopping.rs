//! The reasons for which a token is cancelled.

use punctual_jobs::{Job, JobError, JobRun, Jobs};
use serde::{Deserialize, Serialize};

use crate::world::{LONG, SHORT, Scene, World, standard};

#[derive(Serialize, Deserialize)]
struct Stops {
    /// Cancels its token itself.
    by_itself: bool,
    /// Waits for the gate after its token was cancelled, and then says the reason once more.
    stays: bool,
}

impl Job for Stops {
    const NAME: &'static str = "stops";
}

fn say(run: &JobRun) -> String {
    run.stop_reason().map_or_else(|| "no reason".to_owned(), |reason| format!("{reason:?}"))
}

fn stopping(scene: &Scene) -> Jobs {
    let (log, gate) = (scene.log.clone(), scene.gate.clone());
    let jobs = standard(scene).on(move |run: &JobRun, job: Stops| {
        log.say(format!("begins: {}", say(run)));
        if job.by_itself {
            run.token().cancel();
        }
        run.token().wait();
        log.say(say(run));
        if job.stays {
            gate.wait();
            log.say(say(run));
        }
        Err(JobError::discard("stopped"))
    });
    jobs.on_discarded(|_| ())
}

const PLAIN: Stops = Stops { by_itself: false, stays: false };

/// Starts the job, and waits until its handler runs.
fn begun<W: World>(world: &W, job: Stops) {
    world.queue().now(job).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("begins: no reason"));
}

pub(crate) fn a_cancel_is_a_reason_to_stop<W: World>() {
    let world = W::open(stopping);
    begun(&world, PLAIN);
    world.queue().cancel("k").unwrap();
    world.expect(&["begins: no reason", "Cancelled"]);
}

pub(crate) fn a_shutdown_is_a_reason_to_stop<W: World>() {
    let world = W::open(stopping);
    begun(&world, PLAIN);
    world.shutdown(SHORT, LONG);
    world.expect(&["begins: no reason", "ShuttingDown"]);
}

pub(crate) fn a_time_limit_is_a_reason_to_stop<W: World>() {
    let world = W::open(|scene| stopping(scene).timeout::<Stops>(SHORT));
    begun(&world, PLAIN);
    world.expect(&["begins: no reason", "TimedOut"]);
}

pub(crate) fn the_first_reason_to_stop_stays<W: World>() {
    for time_limit in [true, false] {
        let world = W::open(|scene| {
            let jobs = stopping(scene);
            if time_limit { jobs.timeout::<Stops>(SHORT) } else { jobs }
        });
        begun(&world, Stops { stays: true, ..PLAIN });
        if !time_limit {
            world.queue().cancel("k").unwrap();
        }
        world.until("it is stopped", || world.log().len() == 2);
        let gate = world.scene().gate.clone();
        world.scene().executor.schedule(3 * SHORT, move || gate.cancel()).unwrap();
        world.shutdown(SHORT, LONG);
        let reason = if time_limit { "TimedOut" } else { "Cancelled" };
        world.expect(&["begins: no reason", reason, reason]);
    }
}

pub(crate) fn an_executor_that_stops_at_once_is_a_reason_to_stop<W: World>() {
    let world = W::open(stopping);
    begun(&world, PLAIN);
    drop(world.scene().executor.shutdown_now());
    world.expect(&["begins: no reason", "ShuttingDown"]);
}

pub(crate) fn what_a_program_raises_itself_has_no_reason<W: World>() {
    let world = W::open(stopping);
    begun(&world, Stops { by_itself: true, ..PLAIN });
    world.expect(&["begins: no reason", "no reason"]);
}
