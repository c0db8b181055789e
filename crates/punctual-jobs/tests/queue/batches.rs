//! Many jobs at once.

use std::time::Duration;

use punctual_jobs::{JobFilter, JobLimit, JobState, Priority, QueueError};

use crate::world::{HOUR, Hold, Note, SHORT, World, standard};

pub(crate) fn a_batch_is_stored_in_its_order<W: World>() {
    let world = W::open(standard);
    let texts = ["a", "b", "c", "d", "e", "f"];
    // In memory, jobs that are due at one moment come into line as their workers do.
    let job = |(text, place)| world.queue().after(SHORT * place, Note::new(text)).ordering_key("s");
    let jobs: Vec<_> = texts.into_iter().zip(1..).map(job).collect();
    let handles = world.queue().enqueue_all(jobs).unwrap();
    assert!(handles.windows(2).all(|pair| pair[0].id < pair[1].id), "{handles:?}");
    assert!(handles.iter().all(|job| job.name == "note" && !job.was_skipped));
    world.expect(&texts);
    world.until("the end", || world.queue().state(handles[5].id).unwrap() == JobState::Gone);
}

pub(crate) fn each_job_of_a_batch_is_stored_as_one_would_be<W: World>() {
    let world = W::open(|scene| standard(scene).limit::<Note>(JobLimit::at_once(1).for_each_key()));
    let queue = world.queue();
    let waits = queue.after(HOUR, Note::new("old")).key("waits").enqueue().unwrap();
    let kept = queue.after(HOUR, Note::new("old")).key("kept").enqueue().unwrap();
    let there = queue.after(HOUR, Note::new("there")).key("there").enqueue().unwrap();
    let handles = queue
        .enqueue_all([
            queue.after(2 * HOUR, Note::new("new")).key("waits").priority(Priority::High),
            queue.after(HOUR, Note::new("plain")).max_attempts(3),
            queue.now(Note::new("skipped")).unique("there"),
            queue.after(HOUR, Note::new("unique")).unique("free").limit_key("tenant"),
            queue.now(Note::new("kept")).key("kept").keep_moment(),
            queue.after(HOUR, Hold::new("other")).ordering_key("line"),
        ])
        .unwrap();
    assert_eq!([handles[0].id, handles[2].id, handles[4].id], [waits.id, there.id, kept.id]);
    let skipped: Vec<_> = handles.iter().map(|job| job.was_skipped).collect();
    assert_eq!(skipped, [false, false, true, false, false, false]);
    assert_eq!(handles[5].name, "hold");
    let listed = queue.list(&JobFilter { payloads: true, ..JobFilter::default() }).unwrap();
    let of = |place: usize| listed.iter().find(|job| job.id == handles[place].id).unwrap();
    for (place, text) in ["new", "plain", "there", "unique", "kept", "other"].iter().enumerate() {
        let payload = of(place).payload.clone().unwrap();
        assert!(payload.starts_with(&format!(r#"{{"text":"{text}""#)), "{payload}");
    }
    assert_eq!((of(0).priority, of(1).priority), (Priority::High, Priority::Normal));
    assert_eq!((of(1).max_attempts, of(3).max_attempts), (3, 25));
    assert_eq!((of(3).key.as_deref(), of(3).limit_key.as_deref()), (Some("free"), Some("tenant")));
    assert_eq!((of(5).ordering_key.as_deref(), of(5).key.as_deref()), (Some("line"), None));
    let waits_for = |place: usize| of(place).due.unwrap().duration_since(world.wall()).unwrap();
    assert!(waits_for(0) > HOUR + HOUR / 2);
    assert!(waits_for(4) > HOUR / 2, "its moment stays");
    assert_eq!(listed.len(), 6);
}

pub(crate) fn of_several_jobs_with_one_key_the_last_one_counts<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let handles = queue
        .enqueue_all([
            queue.after(SHORT, Note::new("first")).unique("k"),
            queue.after(HOUR, Note::new("second")).key("k").keep_moment(),
            queue.now(Note::new("third")).unique("k"),
            queue.after(SHORT, Note::new("alone")).unique("l"),
        ])
        .unwrap();
    let skipped: Vec<_> = handles.iter().map(|job| job.was_skipped).collect();
    assert_eq!(skipped, [false, false, true, false]);
    assert!(handles[..3].iter().all(|job| job.id == handles[0].id));
    assert_ne!(handles[3].id, handles[0].id);
    world.until("both", || world.log().len() >= 2);
    world.settle();
    let mut lines = world.log().lines();
    lines.sort();
    assert_eq!(lines, ["alone", "second", "settled"]);
}

pub(crate) fn a_batch_beside_running_jobs_takes_their_keys<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let first = queue.now(Hold::that_fails("first")).key("k").enqueue().unwrap();
    let other = queue.now(Hold::new("other")).key("l").enqueue().unwrap();
    world.until("both", || world.log().len() == 2);
    let handles = queue
        .enqueue_all([
            queue.now(Note::new("second")).key("k"),
            queue.now(Note::new("skipped")).unique("l"),
        ])
        .unwrap();
    assert_ne!(handles[0].id, first.id);
    assert_eq!((handles[1].id, handles[1].was_skipped), (other.id, true));
    world.until("it has run", || world.log().has("second"));
    world.scene().gate.cancel();
    // It has lost its key, and is not tried again.
    world.until("its end", || queue.state(first.id).unwrap() == JobState::Gone);
    world.settle();
    assert!(!world.log().has("skipped"));
}

pub(crate) fn a_batch_with_a_job_that_is_refused_stores_none<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let jobs = [queue.now(Note::new("one")), queue.now(Note::new("two")).key("")];
    let error = queue.enqueue_all(jobs).unwrap_err();
    assert!(matches!(error, QueueError::InvalidName(_)), "{error}");
    assert!(queue.list(&JobFilter::default()).unwrap().is_empty());
    world.shutdown(Duration::ZERO, Duration::ZERO);
    let error = queue.enqueue_all([queue.now(Note::new("late"))]).unwrap_err();
    assert!(matches!(error, QueueError::ShutDown), "{error}");
    assert!(world.log().lines().is_empty());
}

pub(crate) fn an_empty_batch_stores_nothing<W: World>() {
    let world = W::open(standard);
    assert_eq!(world.queue().enqueue_all([]).unwrap(), []);
    assert!(world.queue().list(&JobFilter::default()).unwrap().is_empty());
}
