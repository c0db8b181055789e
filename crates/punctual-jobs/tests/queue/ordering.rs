//! Sequences.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use punctual_jobs::{Job, JobChange, JobRun, Jobs};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, standard};

#[derive(Serialize, Deserialize)]
struct Counted {}

impl Job for Counted {
    const NAME: &'static str = "counted";
}

pub(crate) fn jobs_of_one_key_run_one_at_a_time<W: World>() {
    let running = Arc::new(AtomicUsize::new(0));
    let world = W::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
        let running = Arc::clone(&running);
        Jobs::new().on(move |_: &JobRun, _: Counted| {
            let beside = running.fetch_add(1, Ordering::SeqCst);
            punctual::CancellationToken::with_clock(clock.clone()).sleep(SHORT / 4)?;
            running.fetch_sub(1, Ordering::SeqCst);
            log.say(beside.to_string());
            Ok(())
        })
    });
    for _ in 0..12 {
        world.queue().now(Counted {}).ordering_key("s").enqueue().unwrap();
    }
    world.until("all", || world.log().len() == 12);
    assert_eq!(world.log().lines(), ["0"; 12]);
}

pub(crate) fn jobs_of_one_key_run_in_order<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("first")).ordering_key("s").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    let before = world.now();
    for text in ["a", "b", "c", "d"] {
        world.queue().now(Note::new(text)).ordering_key("s").enqueue().unwrap();
    }
    world.queue().at(before - SHORT, Note::new("earlier")).ordering_key("s").enqueue().unwrap();
    world.scene().gate.cancel();
    world.expect(&["first begins", "first ends", "earlier", "a", "b", "c", "d"]);
}

pub(crate) fn ordering_keys_do_not_wait_for_each_other<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("first")).ordering_key("s").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world.queue().now(Note::new("other")).ordering_key("t").enqueue().unwrap();
    world.until("the other", || world.log().has("other"));
    world.scene().gate.cancel();
    world.expect(&["first begins", "other", "first ends"]);
}

pub(crate) fn a_failed_job_lets_the_others_go_first<W: World>() {
    let world =
        W::open(|scene| standard(scene).backoff::<Flaky>(punctual::Backoff::constant(HOUR)));
    world.queue().now(Flaky::new("call", 1)).ordering_key("s").key("k").enqueue().unwrap();
    world.until("an attempt", || world.log().has("call 1"));
    world.queue().now(Note::new("other")).ordering_key("s").enqueue().unwrap();
    world.expect(&["call 1", "other"]);
    assert_eq!(world.queue().reschedule("k", SHORT).unwrap(), JobChange::Done);
    world.expect(&["call 1", "other", "call 2"]);
}

pub(crate) fn a_cancelled_job_leaves_the_line<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("first")).ordering_key("s").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world.queue().now(Note::new("second")).ordering_key("s").key("k").enqueue().unwrap();
    world.queue().now(Note::new("third")).ordering_key("s").enqueue().unwrap();
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Done);
    world.scene().gate.cancel();
    world.expect(&["first begins", "first ends", "third"]);
}

pub(crate) fn a_panic_gives_the_turn_back<W: World>() {
    let world = W::open(|scene| {
        standard(scene).on(|_: &JobRun, _: Counted| panic!("on purpose")).max_attempts::<Counted>(1)
    });
    world.queue().now(Counted {}).ordering_key("s").enqueue().unwrap();
    world.until("the end", || world.log().has("counted is discarded after 1"));
    world.queue().now(Note::new("next")).ordering_key("s").enqueue().unwrap();
    world.expect(&["counted is discarded after 1", "next"]);
}

pub(crate) fn a_job_with_an_ordering_key_that_is_due_later_runs<W: World>() {
    let world = W::open(standard);
    let send = |delay, text: &str| {
        world.queue().after(delay, Note::new(text)).ordering_key("s").enqueue().unwrap();
    };
    send(Duration::ZERO, "first");
    send(4 * SHORT, "last");
    send(SHORT, "second");
    world.expect(&["first", "second", "last"]);
}
