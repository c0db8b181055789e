//! The end of a desk.

use std::time::Duration;

use punctual_jobs::{DeskError, Job, JobRun};
use serde::{Deserialize, Serialize};

use crate::world::{Hold, Note, SHORT, World, standard};

pub(crate) fn a_job_that_ends_in_time_has_run<W: World>() {
    let world = W::open(standard);
    let ticket = world.desk().now(Hold::new("job")).send().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let gate = world.scene().gate.clone();
    world.scene().executor.schedule(SHORT, move || gate.cancel()).unwrap();
    let report = world.shutdown(100 * SHORT, SHORT);
    assert_eq!(report.ran.iter().map(|job| job.id).collect::<Vec<_>>(), [ticket.id()]);
    assert!(report.handed_back.is_empty() && report.still_running.is_empty(), "{report:?}");
}

pub(crate) fn a_job_that_gives_up_when_asked_is_handed_back<W: World>() {
    let world = W::open(standard);
    let ticket = world.desk().now(Hold::new("job")).key("k").send().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let report = world.shutdown(SHORT, 100 * SHORT);
    assert_eq!(world.log().lines(), ["job begins", "job is stopped"]);
    let [back] = &report.handed_back[..] else { panic!("{report:?}") };
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
    let ticket = world.desk().now(Deaf {}).send().unwrap();
    world.until("its begin", || world.log().has("begins"));
    let report = world.shutdown(SHORT, SHORT);
    assert_eq!(report.still_running.iter().map(|job| job.id).collect::<Vec<_>>(), [ticket.id()]);
    assert!(report.ran.is_empty());
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("ends"));
}

pub(crate) fn a_desk_that_was_shut_down_takes_no_jobs<W: World>() {
    let world = W::open(standard);
    world.shutdown(SHORT, SHORT);
    let error = world.desk().now(Note::new("late")).send().unwrap_err();
    assert!(matches!(error, DeskError::ShutDown), "{error}");
    let error = world.desk().now(Note::new("late")).send_async().wait(Duration::from_secs(9));
    assert!(matches!(error, Err(DeskError::ShutDown)));
}

pub(crate) fn a_second_shutdown_finds_nothing<W: World>() {
    let world = W::open(standard);
    world.desk().after(Duration::MAX, Note::new("never")).send().unwrap();
    world.shutdown(SHORT, SHORT);
    let again = world.shutdown(SHORT, SHORT);
    assert!(again.handed_back.is_empty() && again.ran.is_empty());
}
