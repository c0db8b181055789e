//! The effects of cancelling.

use punctual_jobs::{JobChange, JobState};

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, standard};

pub(crate) fn a_waiting_job_is_removed<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().after(HOUR, Note::new("tea")).key("k").enqueue().unwrap();
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Done);
    assert_eq!(world.queue().state(ticket.id).unwrap(), JobState::Gone);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Unknown);
    world.settle();
    assert_eq!(world.log().lines(), ["settled"]);
}

pub(crate) fn a_running_job_is_signalled<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::new("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().state(ticket.id).unwrap(), JobState::Running);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
    world.expect(&["job begins", "job is stopped"]);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Unknown);
}

pub(crate) fn a_signalled_job_is_not_tried_again<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::new("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
    world.until("its end", || world.log().has("job is stopped"));
    world.settle();
    assert_eq!(world.log().lines(), ["job begins", "job is stopped", "settled"]);
    world.until("its end", || world.queue().state(ticket.id).unwrap() == JobState::Gone);
}

pub(crate) fn a_signalled_job_may_still_succeed<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().now(Hold::that_forgives("job")).key("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
    world.until("its end", || world.log().has("job is stopped"));
    world.until("its end", || world.queue().state(ticket.id).unwrap() == JobState::Gone);
    world.settle();
    assert_eq!(world.log().lines(), ["job begins", "job is stopped", "settled"]);
}

pub(crate) fn a_job_between_two_attempts_is_removed<W: World>() {
    let world =
        W::open(|scene| standard(scene).backoff::<Flaky>(punctual::Backoff::constant(HOUR)));
    world.queue().now(Flaky::new("call", 9)).key("k").enqueue().unwrap();
    world.until("an attempt", || world.log().has("call 1"));
    world.until("its end", || world.queue().reschedule("k", HOUR).unwrap() == JobChange::Done);
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Done);
    world.settle();
    world.queue().after(2 * SHORT, Note::new("later")).enqueue().unwrap();
    world.expect(&["call 1", "settled", "later"]);
}

pub(crate) fn an_unknown_key_is_unknown<W: World>() {
    let world = W::open(standard);
    assert_eq!(world.queue().cancel("nobody").unwrap(), JobChange::Unknown);
}

pub(crate) fn a_cancelled_job_is_not_discarded<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("job")).key("k").max_attempts(1).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
    world.until("its end", || world.log().has("job is stopped"));
    world.queue().after(2 * SHORT, Flaky::new("other", 1)).max_attempts(1).enqueue().unwrap();
    world.expect(&["job begins", "job is stopped", "other 1", "flaky is discarded after 1"]);
}
