//! What handlers return, and who waits for it.

use std::time::Duration;

use punctual_jobs::{
    Job, JobError, JobId, JobQueue, JobRun, JobState, Jobs, QueueError, QueueFuture,
};
use serde::{Deserialize, Serialize};

use crate::world::{HOUR, LONG, Note, SHORT, Scene, World, standard};

/// Adds, at its second attempt.
#[derive(Serialize, Deserialize)]
struct Add {
    numbers: Vec<u128>,
    says: String,
}

impl Job for Add {
    const NAME: &'static str = "add";
    const MAX_ATTEMPTS: u32 = 2;
}

fn adding(scene: &Scene, keep: Duration) -> Jobs {
    let log = scene.log.clone();
    let add = move |run: &JobRun, job: Add| {
        log.say(format!("{} {}", job.says, run.attempt));
        match job.says.as_str() {
            "fails" => Err(JobError::discard("no numbers")),
            _ if run.attempt == 1 => Err(JobError::new("not yet")),
            _ => Ok(job.numbers.iter().sum::<u128>()),
        }
    };
    standard(scene).on_returning(keep, add).backoff::<Add>(punctual::Backoff::constant(SHORT))
}

fn add(queue: &JobQueue, says: &str, after: Duration) -> JobId {
    let numbers = vec![u128::MAX - 3, 1, 2];
    let job = Add { numbers, says: says.to_owned() };
    queue.after(after, job).key(says).enqueue().unwrap().id
}

/// Waits for an answer that is to come.
fn answer<W: World>(world: &W, awaited: QueueFuture<JobState>) -> JobState {
    world.until("an answer", || format!("{awaited:?}").contains("is_there: true"));
    awaited.wait(LONG).unwrap()
}

pub(crate) fn a_result_is_stored_and_awaited<W: World>() {
    let world = W::open(|scene| adding(scene, HOUR));
    let queue = world.queue();
    let job = add(queue, "adds", SHORT);
    assert!(matches!(queue.state(job).unwrap(), JobState::Waiting { .. }));
    let awaited = [(); 3].map(|()| queue.await_result_async(job));
    for awaited in awaited {
        let JobState::Returned(value) = answer(&world, awaited) else { panic!("it has one") };
        assert_eq!(value.read::<u128>().unwrap(), u128::MAX, "to the last digit");
        assert!(value.read::<String>().is_err() && !format!("{value:?}").contains("34028"));
    }
    // It is there for those that come later, too.
    assert!(matches!(queue.state(job).unwrap(), JobState::Returned(_)));
    assert!(matches!(queue.await_result(job, LONG).unwrap(), JobState::Returned(_)));
    assert_eq!(world.log().lines(), ["adds 1", "adds 2"]);
}

pub(crate) fn a_job_without_a_result_is_not_awaited_for_ever<W: World>() {
    let world = W::open(|scene| adding(scene, HOUR));
    let queue = world.queue();
    let discarded = add(queue, "fails", SHORT);
    let cancelled = add(queue, "cancelled", HOUR);
    let removed = add(queue, "removed", HOUR);
    let plain = queue.after(SHORT, Note::new("plain")).enqueue().unwrap().id;
    let all = [discarded, cancelled, removed, plain, JobId(i64::MAX)];
    let awaited = all.map(|id| queue.await_result_async(id));
    queue.cancel("cancelled").unwrap();
    queue.remove(removed).unwrap();
    let results = awaited.map(|awaited| answer(&world, awaited));
    assert_eq!(results[0], JobState::Discarded { last_error: "no numbers".to_owned() });
    assert!(results[1..].iter().all(|result| *result == JobState::Gone), "{results:?}");
}

pub(crate) fn a_result_goes_when_its_time_is_over<W: World>() {
    let world = W::open(|scene| adding(scene, 5 * SHORT));
    let queue = world.queue();
    let job = add(queue, "adds", Duration::ZERO);
    // A clock that is set by hand goes on to it.
    queue.after(20 * SHORT, Note::new("later")).enqueue().unwrap();
    world.until("it has run", || world.log().has("adds 2"));
    world.until("its time is over", || queue.state(job).unwrap() == JobState::Gone);
}

pub(crate) fn a_job_that_is_awaited_in_vain_times_out<W: World>() {
    let world = W::open(|scene| adding(scene, HOUR));
    let queue = world.queue();
    let job = add(queue, "later", HOUR);
    assert!(matches!(queue.await_result(job, SHORT), Err(QueueError::TimedOut { .. })));
    let awaited = queue.await_result_async(job);
    world.shutdown(Duration::ZERO, Duration::ZERO);
    let error = awaited.wait(LONG).unwrap_err();
    assert!(matches!(error, QueueError::ShutDown), "{error}");
    let error = queue.state(job).unwrap_err();
    assert!(matches!(error, QueueError::ShutDown), "{error}");
}
