//! Limits for a window of time.

use std::time::{Duration, Instant};

use punctual_jobs::{JobChange, JobLimit, Jobs};

use crate::world::{Flaky, Hold, LONG, Note, SHORT, Scene, World, for_some_span, standard};

/// After how long there is another token.
const GAP: Duration = SHORT;

/// So many at once, and then one each [`GAP`].
fn window(jobs: u32) -> JobLimit {
    JobLimit::in_window(jobs, jobs * GAP)
}

fn notes(scene: &Scene, limit: JobLimit) -> Jobs {
    standard(scene).limit::<Note>(limit)
}

fn send<W: World>(world: &W, text: &str, key: &str) {
    let job = world.queue().now(Note::new(text));
    let job = if key.is_empty() { job } else { job.limit_key(key) };
    job.enqueue().unwrap();
}

/// No fewer gaps have passed. The server's clock and this one run at the same speed but for a little.
fn at_least<W: World>(world: &W, since: Instant, gaps: u32) {
    let passed = world.now() - since;
    assert!(passed + Duration::from_millis(2) >= gaps * GAP, "{passed:?}");
}

pub(crate) fn of_a_window_so_many_begin_and_then_one_each_part_of_it<W: World>() {
    let world = W::open(|scene| notes(scene, window(3)));
    let since = world.now();
    for number in 0..8 {
        send(&world, &number.to_string(), "");
    }
    world.until("all", || world.log().len() == 8);
    at_least(&world, since, 5);
}

pub(crate) fn each_limit_key_has_a_window_of_its_own<W: World>() {
    let world = W::open(|scene| notes(scene, window(2).for_each_key()));
    let since = world.now();
    for key in ["a", "a", "a", "a", "b", "b", "", ""] {
        send(&world, key, key);
    }
    world.until("all", || world.log().len() == 8);
    at_least(&world, since, 2);
}

pub(crate) fn a_window_of_the_kind_and_one_of_each_key_hold_together<W: World>() {
    let world = W::open(|scene| notes(scene, window(4)).limit::<Note>(window(1).for_each_key()));
    let since = world.now();
    for key in ["a", "b", "c", "d", "e", "f", "a", "b"] {
        send(&world, key, key);
    }
    world.until("all", || world.log().len() == 8);
    at_least(&world, since, 4);
}

pub(crate) fn a_window_and_a_limit_at_once_hold_together<W: World>() {
    let limit = JobLimit::at_once(1).and_in_window(2, 2 * GAP);
    let world = W::open(|scene| standard(scene).limit::<Hold>(limit));
    let since = world.now();
    world.queue().now(Hold::new("1")).enqueue().unwrap();
    world.until("the first", || world.log().has("1 begins"));
    for text in ["2", "3"] {
        world.queue().now(Hold::new(text)).enqueue().unwrap();
    }
    world.settle();
    assert!(!world.log().has("2 begins") && !world.log().has("3 begins"), "one at a time");
    world.scene().gate.cancel();
    world.until("all", || world.log().has("2 ends") && world.log().has("3 ends"));
    at_least(&world, since, 1);
}

/// An attempt that fails has spent its token, and the next one takes another.
pub(crate) fn each_attempt_takes_a_token<W: World>() {
    let world = W::open(|scene| {
        standard(scene)
            .limit::<Flaky>(window(1))
            .backoff::<Flaky>(punctual::Backoff::constant(Duration::ZERO))
    });
    let since = world.now();
    world.queue().now(Flaky::new("x", 3)).enqueue().unwrap();
    world.expect(&["x 1", "x 2", "x 3", "x 4"]);
    at_least(&world, since, 3);
}

pub(crate) fn a_kind_without_tokens_holds_up_no_other<W: World>() {
    let world = W::open(|scene| {
        standard(scene).limit::<Note>(JobLimit::in_window(1, Duration::from_secs(3600)))
    });
    for _ in 0..8 {
        send(&world, "note", "");
    }
    world.queue().now(Flaky::new("other", 0)).enqueue().unwrap();
    world.queue().after(SHORT, Flaky::new("later", 0)).enqueue().unwrap();
    world.until("the others", || world.log().has("later 1") && world.log().has("note"));
    assert_eq!(world.log().lines().iter().filter(|it| *it == "note").count(), 1);
}

pub(crate) fn a_job_that_waits_for_a_token_can_be_changed<W: World>() {
    for_some_span::<W>(|span| {
        let world = W::open(|scene| notes(scene, JobLimit::in_window(1, 3 * span)));
        send(&world, "first", "");
        world.until("the first", || world.log().has("first"));
        for key in ["cancelled", "moved", "replaced", "last"] {
            world.queue().now(Note::new(key)).key(key).enqueue().unwrap();
        }
        let cancelled = world.queue().cancel("cancelled").unwrap();
        let moved = world.queue().reschedule("moved", 20 * span).unwrap();
        world.queue().now(Flaky::new("has no limit", 0)).key("replaced").enqueue().unwrap();
        if (cancelled, moved) != (JobChange::Done, JobChange::Done) {
            // There was a token by then.
            return false;
        }
        world.until("the moved", || world.log().has("moved"));
        world.until("all", || world.log().has("has no limit 1") && world.log().has("last"));
        world.log().len() == 4
    });
}

pub(crate) fn a_window_and_ordering_keys_hold_together<W: World>() {
    let world = W::open(|scene| notes(scene, window(2).for_each_key()));
    let since = world.now();
    for (text, order) in [("1", "s"), ("2", "s"), ("3", "s"), ("4", "s"), ("other", "t")] {
        let limit = if order == "s" { "a" } else { "b" };
        let job = world.queue().now(Note::new(text)).limit_key(limit);
        job.ordering_key(order).enqueue().unwrap();
    }
    world.until("all", || world.log().len() == 5);
    at_least(&world, since, 2);
}

pub(crate) fn a_shutdown_releases_what_waits_for_a_token<W: World>() {
    let world = W::open(|scene| notes(scene, JobLimit::in_window(1, Duration::from_secs(3600))));
    send(&world, "first", "");
    world.until("the first", || world.log().has("first"));
    send(&world, "second", "");
    let report = world.shutdown(Duration::ZERO, LONG);
    assert!(report.still_running.is_empty(), "{report}");
    assert_eq!(world.log().lines(), ["first"]);
}
