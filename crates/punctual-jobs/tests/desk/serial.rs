//! Sequences.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use punctual_jobs::{Cancellation, Job, JobRun, Jobs};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, Hold, Note, SHORT, World, standard};

#[derive(Serialize, Deserialize)]
struct Counted {}

impl Job for Counted {
    const NAME: &'static str = "counted";
}

pub(crate) fn jobs_of_a_sequence_run_one_at_a_time<W: World>() {
    let running = Arc::new(AtomicUsize::new(0));
    let world = W::open(|scene| {
        let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
        Jobs::new().on(move |_: &JobRun, _: Counted| {
            let beside = running.fetch_add(1, Ordering::SeqCst);
            punctual::CancellationToken::with_clock(clock.clone()).sleep(SHORT / 4)?;
            running.fetch_sub(1, Ordering::SeqCst);
            log.say(beside.to_string());
            Ok(())
        })
    });
    for _ in 0..12 {
        world.desk().now(Counted {}).serial("s").send().unwrap();
    }
    world.until("all", || world.log().len() == 12);
    assert_eq!(world.log().lines(), ["0"; 12]);
}

pub(crate) fn jobs_of_a_sequence_run_in_order<W: World>() {
    let world = W::open(standard);
    world.desk().now(Hold::new("first")).serial("s").send().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    let before = world.now();
    for text in ["a", "b", "c", "d"] {
        world.desk().now(Note::new(text)).serial("s").send().unwrap();
    }
    world.desk().at(before - SHORT, Note::new("earlier")).serial("s").send().unwrap();
    world.scene().gate.cancel();
    world.expect(&["first begins", "first ends", "earlier", "a", "b", "c", "d"]);
}

pub(crate) fn sequences_do_not_wait_for_each_other<W: World>() {
    let world = W::open(standard);
    world.desk().now(Hold::new("first")).serial("s").send().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world.desk().now(Note::new("other")).serial("t").send().unwrap();
    world.until("the other", || world.log().has("other"));
    world.scene().gate.cancel();
    world.expect(&["first begins", "other", "first ends"]);
}

pub(crate) fn a_failed_job_lets_the_others_go_first<W: World>() {
    let world = W::open(|scene| standard(scene).backoff::<Flaky>(|_| 5 * SHORT));
    world.desk().now(Flaky::new("call", 1)).serial("s").send().unwrap();
    world.until("an attempt", || world.log().has("call 1"));
    world.desk().now(Note::new("other")).serial("s").send().unwrap();
    world.expect(&["call 1", "other", "call 2"]);
}

pub(crate) fn a_cancelled_job_leaves_the_line<W: World>() {
    let world = W::open(standard);
    world.desk().now(Hold::new("first")).serial("s").send().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world.desk().now(Note::new("second")).serial("s").key("k").send().unwrap();
    world.desk().now(Note::new("third")).serial("s").send().unwrap();
    assert_eq!(world.desk().cancel("k").unwrap(), Cancellation::Removed);
    world.scene().gate.cancel();
    world.expect(&["first begins", "first ends", "third"]);
}

pub(crate) fn a_panic_gives_the_turn_back<W: World>() {
    let world = W::open(|scene| {
        standard(scene).on(|_: &JobRun, _: Counted| panic!("on purpose")).attempts::<Counted>(1)
    });
    world.desk().now(Counted {}).serial("s").send().unwrap();
    world.until("the end", || world.log().has("counted is given up after 1"));
    world.desk().now(Note::new("next")).serial("s").send().unwrap();
    world.expect(&["counted is given up after 1", "next"]);
}

pub(crate) fn a_job_of_a_sequence_that_is_due_later_runs<W: World>() {
    let world = W::open(standard);
    let send = |delay, text: &str| {
        world.desk().after(delay, Note::new(text)).serial("s").send().unwrap();
    };
    send(Duration::ZERO, "first");
    send(4 * SHORT, "last");
    send(SHORT, "second");
    world.expect(&["first", "second", "last"]);
}
