//! The effects of a key.

use std::time::Duration;

use punctual_jobs::{Job, JobChange, JobRun};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, for_some_span, standard};

pub(crate) fn a_waiting_job_is_replaced<W: World>() {
    let world = W::open(standard);
    let first = world.queue().after(HOUR, Note::new("old")).key("k").enqueue().unwrap();
    let second = world.queue().after(3 * SHORT, Note::new("new")).key("k").enqueue().unwrap();
    assert_eq!(first.id, second.id);
    world.expect(&["new"]);
    world.settle();
    assert_eq!(world.log().len(), 2);
}

#[derive(Serialize, Deserialize)]
struct Batch(Vec<u32>, Vec<u32>);

impl Job for Batch {
    const NAME: &'static str = "batch";
}

pub(crate) fn a_list_is_replaced_and_not_joined<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        standard(scene).on(move |_: &JobRun, job: Batch| {
            log.say(format!("{:?} {:?}", job.0, job.1));
            Ok(())
        })
    });
    world.queue().after(HOUR, Batch(vec![1], vec![2])).key("k").enqueue().unwrap();
    world.queue().after(3 * SHORT, Batch(vec![3], vec![])).key("k").enqueue().unwrap();
    world.expect(&["[3] []"]);
}

pub(crate) fn replacing_sets_another_moment<W: World>() {
    for_some_span::<W>(|span| {
        let world = W::open(standard);
        world.queue().after(2 * span, Note::new("old")).key("k").enqueue().unwrap();
        world.queue().after(8 * span, Note::new("new")).key("k").enqueue().unwrap();
        world.queue().after(4 * span, Note::new("between")).enqueue().unwrap();
        world.until("both", || world.log().has("between") && world.log().has("new"));
        world.log().lines() == ["between", "new"]
    });
}

pub(crate) fn replacing_can_keep_the_moment<W: World>() {
    let world = W::open(standard);
    let first = world.queue().after(3 * SHORT, Note::new("old")).key("k").enqueue().unwrap();
    // Long after any test. A machine that stands still has run the first one by then, beside which this one is a second one.
    let second = world.queue().after(HOUR, Note::new("new")).key("k").keep_moment();
    let second = second.enqueue().unwrap();
    if first.id == second.id {
        world.expect(&["new"]);
    } else {
        assert!(W::SPANS.len() > 1, "on the manual clock no time has passed");
        world.expect(&["old"]);
    }
}

pub(crate) fn a_replaced_job_has_all_its_attempts<W: World>() {
    let world =
        W::open(|scene| standard(scene).backoff::<Flaky>(punctual::Backoff::constant(HOUR)));
    world.queue().now(Flaky::new("old", 9)).key("k").max_attempts(2).enqueue().unwrap();
    world.until("an attempt", || world.log().has("old 1"));
    world.until("its end", || world.queue().reschedule("k", HOUR).unwrap() == JobChange::Done);
    world.queue().now(Flaky::new("new", 1)).key("k").max_attempts(2).enqueue().unwrap();
    world.until("an attempt", || world.log().has("new 1"));
    let again = || world.queue().reschedule("k", Duration::ZERO).unwrap();
    world.until("its end", || again() == JobChange::Done);
    world.expect(&["old 1", "new 1", "new 2"]);
}

pub(crate) fn beside_a_running_job_its_key_makes_a_second_one<W: World>() {
    let world = W::open(standard);
    let first = world.queue().now(Hold::new("first")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    let second = world.queue().now(Note::new("second")).key("k").enqueue().unwrap();
    assert_ne!(first.id, second.id);
    world.until("the second", || world.log().has("second"));
    world.scene().gate.cancel();
    world.expect(&["first begins", "second", "first ends"]);
}

pub(crate) fn a_job_that_lost_its_key_is_not_tried_again<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::that_fails("first")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world.queue().now(Note::new("second")).key("k").enqueue().unwrap();
    world.until("the second", || world.log().has("second"));
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("first ends"));
    world.settle();
    assert_eq!(world.log().lines(), ["first begins", "second", "first ends", "settled"]);
}

pub(crate) fn a_key_is_free_when_its_job_has_ended<W: World>() {
    let world = W::open(standard);
    let first = world.queue().now(Note::new("first")).key("k").enqueue().unwrap();
    world.until("the first", || world.log().has("first"));
    world.until("its end", || world.queue().cancel("k").unwrap() == JobChange::Unknown);
    let second = world.queue().now(Note::new("second")).key("k").enqueue().unwrap();
    assert_ne!(first.id, second.id);
    world.expect(&["first", "second"]);
}

pub(crate) fn a_key_is_free_when_its_job_was_discarded<W: World>() {
    let world = W::open(standard);
    world.queue().now(Flaky::new("call", 9)).key("k").max_attempts(1).enqueue().unwrap();
    world.expect(&["call 1", "flaky is discarded after 1"]);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Unknown);
    assert_eq!(world.queue().reschedule("k", SHORT).unwrap(), JobChange::Unknown);
    world.queue().now(Note::new("another")).key("k").enqueue().unwrap();
    world.expect(&["call 1", "flaky is discarded after 1", "another"]);
}
