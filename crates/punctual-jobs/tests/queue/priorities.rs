//! Which of several jobs that are due begins first.

use std::time::Duration;

use punctual_jobs::{JobBuilder, JobChange, Priority};

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, standard};

/// Has all workers hold a job, so that what is enqueued waits.
fn occupied<W: World>() -> W {
    let world = W::open(standard);
    for place in 0..4 {
        let key = format!("hold {place}");
        world.queue().now(Hold::new("")).key(key).enqueue().unwrap();
    }
    world.until("all hold", || world.log().len() == 4);
    world
}

/// Has one worker free, which then runs one job after another.
fn free_one<W: World>(world: &W) {
    assert_eq!(world.queue().cancel("hold 0").unwrap(), JobChange::Signalled);
}

/// Waits until these lines follow those of the jobs that hold.
fn expect_then<W: World>(world: &W, lines: &[&str]) {
    world.until(&format!("{lines:?}"), || world.log().len() >= 5 + lines.len());
    assert_eq!(world.log().lines()[5..], *lines);
}

fn note<'a, W: World>(world: &'a W, text: &str, priority: Priority) -> JobBuilder<'a> {
    world.queue().now(Note::new(text)).priority(priority)
}

pub(crate) fn jobs_that_are_due_begin_by_priority<W: World>() {
    let world = occupied::<W>();
    let before = world.now();
    for (text, priority) in [
        ("low", Priority::Low),
        ("normal", Priority::Normal),
        ("high", Priority::High),
        ("second low", Priority::Low),
        ("second high", Priority::High),
    ] {
        note(&world, text, priority).enqueue().unwrap();
    }
    world.queue().now(Note::new("second normal")).enqueue().unwrap();
    let earlier = world.queue().at(before - SHORT, Note::new("earlier but low"));
    earlier.priority(Priority::Low).enqueue().unwrap();
    free_one(&world);
    let high = ["high", "second high", "normal", "second normal"];
    expect_then(&world, &[&high[..], &["earlier but low", "low", "second low"]].concat());
}

pub(crate) fn a_high_priority_does_not_begin_before_its_moment<W: World>() {
    let world = W::open(standard);
    let high = world.queue().after(HOUR, Note::new("high"));
    high.priority(Priority::High).key("high").enqueue().unwrap();
    let wall = world.queue().at(world.wall() + HOUR, Note::new("high by the wall"));
    wall.priority(Priority::High).key("wall").enqueue().unwrap();
    note(&world, "low", Priority::Low).enqueue().unwrap();
    world.expect(&["low"]);
    assert_eq!(world.queue().reschedule("high", SHORT).unwrap(), JobChange::Done);
    world.expect(&["low", "high"]);
    let wall = world.wall() + SHORT;
    assert_eq!(world.queue().reschedule("wall", wall).unwrap(), JobChange::Done);
    world.expect(&["low", "high", "high by the wall"]);
}

pub(crate) fn a_priority_by_the_wall_clock_counts<W: World>() {
    let world = occupied::<W>();
    note(&world, "low", Priority::Low).enqueue().unwrap();
    let wall = world.queue().at(world.wall() - SHORT, Note::new("high"));
    wall.priority(Priority::High).enqueue().unwrap();
    free_one(&world);
    expect_then(&world, &["high", "low"]);
}

pub(crate) fn a_job_that_is_replaced_has_the_new_priority<W: World>() {
    let world = occupied::<W>();
    note(&world, "was high", Priority::High).key("k").enqueue().unwrap();
    note(&world, "normal", Priority::Normal).enqueue().unwrap();
    note(&world, "is low", Priority::Low).key("k").enqueue().unwrap();
    note(&world, "was low", Priority::Low).unique("u").enqueue().unwrap();
    assert!(note(&world, "skipped", Priority::High).unique("u").enqueue().unwrap().was_skipped);
    free_one(&world);
    expect_then(&world, &["normal", "is low", "was low"]);
}

pub(crate) fn a_job_keeps_its_priority_when_it_is_moved<W: World>() {
    let world = occupied::<W>();
    note(&world, "low", Priority::Low).enqueue().unwrap();
    note(&world, "normal", Priority::Normal).enqueue().unwrap();
    let later = world.queue().after(Duration::from_secs(3600), Note::new("high"));
    later.priority(Priority::High).key("k").enqueue().unwrap();
    note(&world, "cancelled", Priority::High).key("c").enqueue().unwrap();
    world.queue().reschedule("k", Duration::ZERO).unwrap();
    assert_eq!(world.queue().cancel("c").unwrap(), JobChange::Done);
    free_one(&world);
    expect_then(&world, &["high", "normal", "low"]);
}

pub(crate) fn each_attempt_has_the_priority<W: World>() {
    let world =
        W::open(|scene| standard(scene).backoff::<Flaky>(punctual::Backoff::constant(HOUR)));
    let flaky = world.queue().now(Flaky::new("high", 1)).priority(Priority::High);
    flaky.key("flaky").enqueue().unwrap();
    world.until("an attempt", || world.log().has("high 1"));
    for place in 0..4 {
        let key = format!("hold {place}");
        world.queue().now(Hold::new("")).key(key).priority(Priority::High).enqueue().unwrap();
    }
    world.until("all hold", || world.log().len() >= 5);
    note(&world, "normal", Priority::Normal).enqueue().unwrap();
    note(&world, "low", Priority::Low).enqueue().unwrap();
    // Its next attempt is due before a worker is free.
    world.until("the end of the first", || {
        world.queue().reschedule("flaky", Duration::ZERO).unwrap() == JobChange::Done
    });
    free_one(&world);
    world.until("all", || world.log().has("low"));
    let lines = world.log().lines();
    let place = |line: &str| lines.iter().position(|other| other == line).unwrap();
    assert!(place("high 2") < place("normal") && place("normal") < place("low"), "{lines:?}");
}
