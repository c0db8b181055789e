//! The end of a queue.

use std::time::Duration;

use punctual::CancellationToken;
use punctual_jobs::{HistoryFilter, Job, JobChange, JobError, JobRun, Jobs, QueueError};
use serde::{Deserialize, Serialize};

use crate::world::{Hold, LONG, Note, SHORT, Scene, World, standard};

pub(crate) fn a_job_that_ends_in_time_has_run<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::new("job")).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let gate = world.scene().gate.clone();
    world.scene().executor.schedule(SHORT, move || gate.cancel()).unwrap();
    let report = world.shutdown(LONG, SHORT);
    assert_eq!(report.ran.iter().map(|job| job.id).collect::<Vec<_>>(), [ticket.id]);
    assert!(report.released.is_empty() && report.still_running.is_empty(), "{report:?}");
}

pub(crate) fn a_job_that_gives_up_when_asked_is_released<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::new("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let report = world.shutdown(SHORT, LONG);
    assert_eq!(world.log().lines(), ["job begins", "job is stopped"]);
    let [back] = &report.released[..] else { panic!("{report:?}") };
    assert_eq!((back.id, back.name, back.attempts), (ticket.id, "hold", 0));
    assert_eq!(back.key.as_deref(), Some("k"));
    assert!(back.payload.contains(r#""text":"job""#), "{}", back.payload);
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
    assert_eq!(report.still_running.iter().map(|job| job.id).collect::<Vec<_>>(), [ticket.id]);
    assert!(report.ran.is_empty());
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("ends"));
}

pub(crate) fn a_queue_that_was_shut_down_takes_no_jobs<W: World>() {
    let world = W::open(standard);
    world.shutdown(SHORT, SHORT);
    let error = world.queue().now(Note::new("late")).enqueue().unwrap_err();
    assert!(matches!(error, QueueError::ShutDown), "{error}");
    let error = world.queue().now(Note::new("late")).enqueue_async().wait(LONG);
    assert!(matches!(error, Err(QueueError::ShutDown)));
}

pub(crate) fn a_second_shutdown_finds_nothing<W: World>() {
    let world = W::open(standard);
    world.queue().after(Duration::MAX, Note::new("never")).enqueue().unwrap();
    world.shutdown(SHORT, SHORT);
    let again = world.shutdown(SHORT, SHORT);
    assert!(again.released.is_empty() && again.ran.is_empty());
}

/// Fails when the gate is opened, whatever its token says.
fn deaf_and_failing(scene: &Scene) -> Jobs {
    let (log, gate) = (scene.log.clone(), scene.gate.clone());
    standard(scene).on(move |_: &JobRun, _: Deaf| {
        log.say("begins");
        gate.wait();
        Err(JobError::new("stopped"))
    })
}

pub(crate) fn a_job_that_was_cancelled_is_not_released<W: World>() {
    for ends in [true, false] {
        let world = W::open(deaf_and_failing);
        let job = world.queue().now(Deaf {}).key("k").enqueue().unwrap();
        world.until("its begin", || world.log().has("begins"));
        assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
        let gate = world.scene().gate.clone();
        if ends {
            world.scene().executor.schedule(3 * SHORT, move || gate.cancel()).unwrap();
        }
        let report = world.shutdown(SHORT, if ends { LONG } else { SHORT });
        let still: Vec<_> = report.still_running.iter().map(|job| job.id).collect();
        assert_eq!(still, if ends { vec![] } else { vec![job.id] });
        assert!(report.ran.is_empty() && report.released.is_empty(), "{report:?}");
        assert_eq!(world.log().lines(), ["begins"], "it is not discarded");
    }
}

pub(crate) fn a_job_that_was_discarded_is_not_released<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        deaf_and_failing(scene).on_discarded(move |job| {
            log.say(format!("discarded after {}: {}", job.attempts, job.last_error));
        })
    });
    let job = world.queue().now(Deaf {}).enqueue().unwrap();
    world.until("its begin", || world.log().has("begins"));
    assert_eq!(world.queue().discard(job.id).unwrap(), JobChange::Signalled);
    let gate = world.scene().gate.clone();
    world.scene().executor.schedule(3 * SHORT, move || gate.cancel()).unwrap();
    let report = world.shutdown(SHORT, LONG);
    assert!(report.ran.is_empty() && report.released.is_empty(), "{report:?}");
    assert!(report.still_running.is_empty(), "{report:?}");
    world.expect(&["begins", "discarded after 1: stopped"]);
}

#[derive(Serialize, Deserialize)]
struct Reader {}

impl Job for Reader {
    const NAME: &'static str = "reader";
}

pub(crate) fn the_history_says_why_a_job_was_released<W: World>() {
    let world = W::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
        deaf_and_failing(scene).on(move |run: &JobRun, _: Reader| {
            let of_deaf = HistoryFilter { kind: Some("deaf".into()), ..HistoryFilter::default() };
            log.say("reads");
            loop {
                if let Some(past) = run.queue().history(&of_deaf)?.pop() {
                    log.say(format!("{}: {}", past.outcome, past.error.unwrap_or_default()));
                    return Ok(());
                }
                let _ = CancellationToken::with_clock(clock.clone()).sleep(SHORT / 10);
            }
        })
    });
    world.queue().now(Deaf {}).enqueue().unwrap();
    world.queue().now(Reader {}).enqueue().unwrap();
    world.until("their begin", || world.log().has("begins") && world.log().has("reads"));
    let gate = world.scene().gate.clone();
    world.scene().executor.schedule(3 * SHORT, move || gate.cancel()).unwrap();
    let report = world.shutdown(SHORT, LONG);
    assert_eq!((report.ran.len(), report.released.len()), (1, 1), "{report:?}");
    assert!(world.log().has("freed: stopped"), "{:?}", world.log().lines());
}

pub(crate) fn a_job_that_lost_its_key_is_not_released<W: World>() {
    let world = W::open(deaf_and_failing);
    let job = world.queue().now(Deaf {}).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("begins"));
    world.queue().after(Duration::MAX, Note::new("second")).key("k").enqueue().unwrap();
    let gate = world.scene().gate.clone();
    world.scene().executor.schedule(3 * SHORT, move || gate.cancel()).unwrap();
    let report = world.shutdown(SHORT, LONG);
    assert!(report.released.iter().all(|other| other.id != job.id), "{report:?}");
    assert!(report.ran.is_empty() && report.still_running.is_empty(), "{report:?}");
}

pub(crate) fn a_job_can_be_cancelled_during_a_shutdown<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    let (queue, log) = (world.queue().clone(), world.scene().log.clone());
    let cancel = move || log.say(format!("{:?}", queue.cancel("k").unwrap()));
    world.scene().executor.schedule(SHORT, cancel).unwrap();
    let report = world.shutdown(LONG, SHORT);
    assert!(report.ran.is_empty() && report.released.is_empty(), "{report:?}");
    assert!(world.log().has("job is stopped"));
    // The caller may hear of it after the job.
    world.until("the answer", || world.log().has("Signalled"));
}

pub(crate) fn a_queue_that_was_shut_down_answers_nothing<W: World>() {
    let world = W::open(standard);
    let job = world.queue().after(Duration::MAX, Note::new("x")).key("k").enqueue().unwrap();
    world.shutdown(SHORT, SHORT);
    let queue = world.queue();
    assert!(matches!(queue.cancel("k"), Err(QueueError::ShutDown)));
    assert!(matches!(queue.reschedule("k", SHORT), Err(QueueError::ShutDown)));
    assert!(matches!(queue.state(job.id), Err(QueueError::ShutDown)));
}
