//! Limits of kinds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use punctual_jobs::{Job, JobChange, JobError, JobLimit, JobRun, Jobs, Priority};
use serde::{Deserialize, Serialize};

use crate::world::{Flaky, HOUR, Hold, LONG, Note, SHORT, Scene, World, standard};

#[derive(Serialize, Deserialize)]
struct Counted {}

impl Job for Counted {
    const NAME: &'static str = "counted";
}

/// Says how many run beside it, and takes some time.
fn counted(scene: &Scene, limit: u32) -> Jobs {
    let (log, clock) = (scene.log.clone(), scene.executor.clock().clone());
    let running = Arc::new(AtomicUsize::new(0));
    let handler = move |run: &JobRun, _: Counted| {
        let beside = running.fetch_add(1, Ordering::SeqCst);
        punctual::CancellationToken::with_clock(clock.clone()).sleep(SHORT / 4)?;
        running.fetch_sub(1, Ordering::SeqCst);
        log.say(beside.to_string());
        if run.id.0 % 3 == 0 && run.attempt == 1 {
            return Err(JobError::new("not yet"));
        }
        Ok(())
    };
    let jobs =
        standard(scene).on(handler).backoff::<Counted>(punctual::Backoff::constant(SHORT / 10));
    jobs.limit::<Counted>(JobLimit::at_once(limit))
}

fn so_many_at_once<W: World>(limit: u32) {
    let world = W::open(|scene| counted(scene, limit));
    let mut runs = 0;
    for number in 0..15 {
        let job = world.queue().now(Counted {});
        let job = if number % 4 == 0 { job.ordering_key((number % 8).to_string()) } else { job };
        let id = job.enqueue().unwrap().id.0;
        runs += if id % 3 == 0 { 2 } else { 1 };
    }
    world.until("all", || world.log().len() == runs);
    let beside: Vec<u32> = world.log().lines().iter().map(|it| it.parse().unwrap()).collect();
    assert_eq!(beside.iter().max(), Some(&(limit - 1)), "{beside:?}");
}

pub(crate) fn of_a_limited_kind_so_many_run_at_once<W: World>() {
    so_many_at_once::<W>(2);
}

pub(crate) fn a_limit_of_one_excludes<W: World>() {
    so_many_at_once::<W>(1);
}

/// Two jobs of a kind that may run one at a time: one holds, and more wait.
fn held<W: World>() -> W {
    let world = W::open(|scene| standard(scene).limit::<Hold>(JobLimit::at_once(1)));
    world.queue().now(Hold::new("first")).key("first").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world
}

pub(crate) fn a_slot_is_used_while_another_is_taken<W: World>() {
    let world = W::open(|scene| standard(scene).limit::<Hold>(JobLimit::at_once(2)));
    world.queue().now(Hold::new("first")).enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    world.queue().now(Hold::new("second")).enqueue().unwrap();
    world.until("its begin", || world.log().has("second begins"));
    assert_eq!(world.log().len(), 2);
    world.scene().gate.cancel();
    world.until("both ends", || world.log().len() == 4);
}

pub(crate) fn a_kind_that_is_full_holds_up_no_other<W: World>() {
    let world = held::<W>();
    for text in ["second", "third", "fourth", "fifth", "sixth"] {
        world.queue().now(Hold::new(text)).enqueue().unwrap();
    }
    world.queue().now(Note::new("other")).enqueue().unwrap();
    world.until("the other", || world.log().has("other"));
    assert_eq!(world.log().lines(), ["first begins", "other"]);
    world.scene().gate.cancel();
    world.until("all", || world.log().len() == 13);
}

pub(crate) fn the_next_of_a_limit_is_the_first_by_priority_and_moment<W: World>() {
    let world = held::<W>();
    let before = world.now();
    let send = |text: &str, priority| {
        world.queue().now(Hold::new(text)).priority(priority).enqueue().unwrap();
    };
    send("low", Priority::Low);
    send("normal", Priority::Normal);
    send("high", Priority::High);
    world.queue().at(before - SHORT, Hold::new("earlier")).enqueue().unwrap();
    world.scene().gate.cancel();
    world.until("all", || world.log().len() == 10);
    let begins: Vec<_> =
        world.log().lines().into_iter().filter(|it| it.ends_with("begins")).collect();
    assert_eq!(
        begins,
        ["first begins", "high begins", "earlier begins", "normal begins", "low begins"]
    );
}

pub(crate) fn a_waiting_job_of_a_limit_can_be_cancelled_moved_and_replaced<W: World>() {
    let world = held::<W>();
    for key in ["cancelled", "moved", "replaced"] {
        world.queue().now(Hold::new(key)).key(key).enqueue().unwrap();
    }
    world.queue().now(Hold::new("last")).enqueue().unwrap();
    world.queue().now(Note::new("time")).enqueue().unwrap();
    world.until("time", || world.log().has("time"));
    assert_eq!(world.queue().cancel("cancelled").unwrap(), JobChange::Done);
    let moved = world.queue().reschedule("moved", 4 * SHORT).unwrap();
    assert_eq!(moved, JobChange::Done);
    world.queue().now(Note::new("is a note now")).key("replaced").enqueue().unwrap();
    world.until("the note", || world.log().has("is a note now"));
    world.scene().gate.cancel();
    world.expect(&[
        "first begins",
        "time",
        "is a note now",
        "first ends",
        "last begins",
        "last ends",
        "moved begins",
        "moved ends",
    ]);
}

pub(crate) fn a_job_that_is_cancelled_or_fails_gives_its_slot_back<W: World>() {
    let world = held::<W>();
    world.queue().now(Hold::new("second")).key("second").enqueue().unwrap();
    assert_eq!(world.queue().cancel("first").unwrap(), JobChange::Signalled);
    world.until("the second", || world.log().has("second begins"));
    world.queue().now(Hold::that_fails("third")).enqueue().unwrap();
    world.queue().now(Hold::new("fourth")).enqueue().unwrap();
    world.scene().gate.cancel();
    world.until("the fourth", || world.log().has("fourth ends"));
}

pub(crate) fn a_job_between_two_attempts_has_no_slot<W: World>() {
    let world = W::open(|scene| {
        let jobs = standard(scene).limit::<Flaky>(JobLimit::at_once(1));
        jobs.backoff::<Flaky>(punctual::Backoff::constant(HOUR))
    });
    world.queue().now(Flaky::new("a", 1)).key("a").enqueue().unwrap();
    world.until("an attempt", || world.log().has("a 1"));
    world.queue().now(Flaky::new("b", 0)).enqueue().unwrap();
    world.expect(&["a 1", "b 1"]);
    assert_eq!(world.queue().reschedule("a", SHORT).unwrap(), JobChange::Done);
    world.expect(&["a 1", "b 1", "a 2"]);
}

pub(crate) fn a_limit_and_an_ordering_key_hold_together<W: World>() {
    let world = held::<W>();
    world.queue().now(Hold::new("second")).ordering_key("s").key("k").enqueue().unwrap();
    world.queue().after(SHORT, Note::new("after it")).ordering_key("s").enqueue().unwrap();
    world.queue().after(2 * SHORT, Note::new("other")).ordering_key("t").enqueue().unwrap();
    world.until("the other", || world.log().has("other"));
    assert_eq!(world.log().lines(), ["first begins", "other"]);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Done);
    world.until("the next of the key", || world.log().has("after it"));
    world.queue().now(Hold::new("third")).ordering_key("s").enqueue().unwrap();
    world.scene().gate.cancel();
    world.until("all", || world.log().has("third ends"));
}

pub(crate) fn a_shutdown_releases_what_waits_for_a_slot<W: World>() {
    let world = held::<W>();
    world.queue().now(Hold::new("second")).enqueue().unwrap();
    let report = world.shutdown(Duration::ZERO, LONG);
    assert!(report.still_running.is_empty(), "{report}");
    assert_eq!(world.log().lines(), ["first begins", "first is stopped"]);
}
