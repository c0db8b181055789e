//! The end of a queue.

use std::time::Duration;

use punctual_jobs::{Job, JobRun, QueueError};
use serde::{Deserialize, Serialize};

use crate::world::{Hold, Note, SHORT, World, standard};

pub(crate) fn a_job_that_ends_in_time_has_run<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::new("job")).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let gate = world.scene().gate.clone();
    world.scene().executor.schedule(SHORT, move || gate.cancel()).unwrap();
    let report = world.shutdown(100 * SHORT, SHORT);
    assert_eq!(report.ran.iter().map(|job| job.id).collect::<Vec<_>>(), [ticket.id()]);
    assert!(report.released.is_empty() && report.still_running.is_empty(), "{report:?}");
}

pub(crate) fn a_job_that_gives_up_when_asked_is_released<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::new("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let report = world.shutdown(SHORT, 100 * SHORT);
    assert_eq!(world.log().lines(), ["job begins", "job is stopped"]);
    let [back] = &report.released[..] else { panic!("{report:?}") };
    assert_eq!((back.id, back.name, back.attempts), (ticket.id(), "hold", 0));
    assert_eq!(back.key.as_deref(), Some("k"));
    assert_eq!(back.payload["text"], "job");
    assert!(report.ran.is_empty() && report.still_running.is_empty(), "{report:?}");
}

#[derive(Serialize, Deserialize)]
struct Deaf {}

impl Job for Deaf {
    const NAME: &'static str = "deaf";
}

pub(crate) fn a_job_that_does_not_end_is_still_running<W: World>() {
    let world = W::open(|scene| {
        let (log, gate) = (scene.log.clone(), scene.gate.clone());
        standard(scene).on(move |_: &JobRun, _: Deaf| {
            log.say("begins");
            gate.wait();
            log.say("ends");
            Ok(())
        })
    });
    let ticket = world.queue().now(Deaf {}).enqueue().unwrap();
    world.until("its begin", || world.log().has("begins"));
    let report = world.shutdown(SHORT, SHORT);
    assert_eq!(report.still_running.iter().map(|job| job.id).collect::<Vec<_>>(), [ticket.id()]);
    assert!(report.ran.is_empty());
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("ends"));
}

pub(crate) fn a_queue_that_was_shut_down_takes_no_jobs<W: World>() {
    let world = W::open(standard);
    world.shutdown(SHORT, SHORT);
    let error = world.queue().now(Note::new("late")).enqueue().unwrap_err();
    assert!(matches!(error, QueueError::ShutDown), "{error}");
    let error = world.queue().now(Note::new("late")).enqueue_async().wait(Duration::from_secs(9));
    assert!(matches!(error, Err(QueueError::ShutDown)));
}

pub(crate) fn a_second_shutdown_finds_nothing<W: World>() {
    let world = W::open(standard);
    world.queue().after(Duration::MAX, Note::new("never")).enqueue().unwrap();
    world.shutdown(SHORT, SHORT);
    let again = world.shutdown(SHORT, SHORT);
    assert!(again.released.is_empty() && again.ran.is_empty());
}
