//! How a job is moved.

use punctual_jobs::JobChange;

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, for_some_span, standard};

pub(crate) fn a_job_can_run_earlier<W: World>() {
    let world = W::open(standard);
    world.queue().after(HOUR, Note::new("moved")).key("k").enqueue().unwrap();
    world.queue().after(HOUR, Note::new("other")).enqueue().unwrap();
    assert_eq!(world.queue().reschedule("k", 2 * SHORT).unwrap(), JobChange::Done);
    world.expect(&["moved"]);
}

pub(crate) fn a_job_can_run_later<W: World>() {
    for_some_span::<W>(|span| {
        let world = W::open(standard);
        world.queue().after(2 * span, Note::new("moved")).key("k").enqueue().unwrap();
        let later = world.now() + 8 * span;
        let moved = world.queue().reschedule("k", later).unwrap();
        world.queue().after(4 * span, Note::new("other")).enqueue().unwrap();
        world.until("both", || world.log().has("moved") && world.log().has("other"));
        moved == JobChange::Done && world.log().lines() == ["other", "moved"]
    });
}

pub(crate) fn a_job_can_be_moved_to_a_wall_time<W: World>() {
    let world = W::open(standard);
    world.queue().after(HOUR, Note::new("moved")).key("k").enqueue().unwrap();
    let then = world.wall() + 2 * SHORT;
    assert_eq!(world.queue().reschedule("k", then).unwrap(), JobChange::Done);
    world.expect(&["moved"]);
    assert!(world.wall() >= then);
}

pub(crate) fn a_running_job_is_not_moved<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().reschedule("k", SHORT).unwrap(), JobChange::Running);
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("job ends"));
    world.settle();
    assert_eq!(world.log().lines(), ["job begins", "job ends", "settled"]);
}

pub(crate) fn a_job_between_two_attempts_can_be_moved<W: World>() {
    let hour = std::time::Duration::from_secs(3600);
    let world =
        W::open(|scene| standard(scene).backoff::<Flaky>(punctual::Backoff::constant(hour)));
    world.queue().now(Flaky::new("call", 1)).key("k").enqueue().unwrap();
    world.until("an attempt", || world.log().has("call 1"));
    world.until("its end", || world.queue().reschedule("k", SHORT).unwrap() == JobChange::Done);
    world.expect(&["call 1", "call 2"]);
}

pub(crate) fn an_unknown_key_cannot_be_moved<W: World>() {
    let world = W::open(standard);
    assert_eq!(world.queue().reschedule("nobody", SHORT).unwrap(), JobChange::Unknown);
}
