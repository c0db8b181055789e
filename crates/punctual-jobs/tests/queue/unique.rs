//! Jobs that are skipped if one with their key is there.

use std::time::Duration;

use punctual_jobs::{JobChange, JobState};

use crate::world::{Flaky, HOUR, Hold, Note, SHORT, World, standard};

pub(crate) fn a_unique_job_is_skipped_while_one_waits<W: World>() {
    let world = W::open(standard);
    let first = world.queue().after(HOUR, Note::new("first")).unique("k");
    let first = first.enqueue().unwrap();
    assert!(!first.was_skipped);
    let second = world.queue().now(Note::new("second")).unique("k").enqueue().unwrap();
    assert_eq!((second.id, second.was_skipped), (first.id, true));
    let other = world.queue().after(2 * SHORT, Note::new("other")).unique("l");
    assert!(!other.enqueue().unwrap().was_skipped);
    assert_eq!(world.queue().reschedule("k", 3 * SHORT).unwrap(), JobChange::Done);
    // On a busy machine either may be the first.
    world.until("both", || world.log().has("other") && world.log().has("first"));
    world.settle();
    let mut lines = world.log().lines();
    lines.sort();
    assert_eq!(lines, ["first", "other", "settled"]);
}

pub(crate) fn a_unique_job_is_skipped_whichever_way_the_key_came<W: World>() {
    let world = W::open(standard);
    let first = world.queue().after(HOUR, Note::new("first")).key("k").enqueue().unwrap();
    let second = world.queue().now(Note::new("second")).unique("k").enqueue().unwrap();
    assert!(second.was_skipped);
    // And a job that is not unique replaces one that is.
    let third = world.queue().after(SHORT, Note::new("third")).unique("x").key("k");
    let third = third.enqueue().unwrap();
    assert_eq!((third.id, third.was_skipped), (first.id, false));
    world.expect(&["third"]);
}

pub(crate) fn a_unique_job_is_skipped_while_one_runs<W: World>() {
    let world = W::open(standard);
    let first = world.queue().now(Hold::new("first")).unique("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    let second = world.queue().now(Note::new("second")).unique("k").enqueue().unwrap();
    assert_eq!((second.id, second.was_skipped), (first.id, true));
    world.scene().gate.cancel();
    world.until("its end", || world.queue().state(first.id).unwrap() == JobState::Gone);
    let third = world.queue().now(Note::new("third")).unique("k").enqueue().unwrap();
    assert!(!third.was_skipped && third.id != first.id);
    world.expect(&["first begins", "first ends", "third"]);
}

pub(crate) fn a_unique_job_is_skipped_between_two_attempts<W: World>() {
    let hour = punctual::Backoff::constant(Duration::from_secs(3600));
    let world = W::open(|scene| standard(scene).backoff::<Flaky>(hour).max_attempts::<Flaky>(2));
    let first = world.queue().now(Flaky::new("call", 9)).unique("k").enqueue().unwrap();
    let state = || world.queue().state(first.id).unwrap();
    world.until("an attempt", || matches!(state(), JobState::Waiting { attempts: 1, .. }));
    let second = world.queue().now(Note::new("second")).unique("k").enqueue().unwrap();
    assert_eq!((second.id, second.was_skipped), (first.id, true));
    world.queue().reschedule("k", Duration::ZERO).unwrap();
    world.expect(&["call 1", "call 2", "flaky is discarded after 2"]);
    // A discarded job is there no more.
    let third = world.queue().now(Note::new("third")).unique("k").enqueue().unwrap();
    assert!(!third.was_skipped && third.id != first.id);
    world.expect(&["call 1", "call 2", "flaky is discarded after 2", "third"]);
}

pub(crate) fn a_unique_job_is_skipped_while_one_waits_for_its_turn<W: World>() {
    let world = W::open(standard);
    world.queue().now(Hold::new("first")).ordering_key("s").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    let unique = |text| world.queue().now(Note::new(text)).ordering_key("s").unique("k");
    let second = unique("second").enqueue().unwrap();
    let third = unique("third").enqueue().unwrap();
    assert_eq!((third.id, third.was_skipped), (second.id, true));
    world.scene().gate.cancel();
    world.expect(&["first begins", "first ends", "second"]);
}

pub(crate) fn a_unique_job_is_not_skipped_beside_one_that_was_cancelled<W: World>() {
    let world = W::open(standard);
    let first = world.queue().now(Hold::that_forgives("first")).unique("k").enqueue().unwrap();
    world.until("its begin", || world.log().has("first begins"));
    assert_eq!(world.queue().cancel("k").unwrap(), JobChange::Signalled);
    let second = world.queue().after(SHORT, Note::new("second")).unique("k").enqueue().unwrap();
    assert!(!second.was_skipped && second.id != first.id);
    world.until("both", || world.log().len() >= 3);
    let mut lines = world.log().lines();
    // Beside each other.
    lines[1..].sort();
    assert_eq!(lines, ["first begins", "first is stopped", "second"]);
}

pub(crate) fn of_unique_jobs_at_once_one_is_stored<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    for round in 0..20 {
        let key = format!("k{round}");
        let handles: Vec<_> = std::thread::scope(|scope| {
            let enqueue = || {
                let job = queue.after(Duration::MAX, Note::new("x")).unique(&key);
                job.enqueue().unwrap()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(enqueue)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(handles.iter().filter(|job| !job.was_skipped).count(), 1, "{handles:?}");
        assert!(handles.iter().all(|job| job.id == handles[0].id), "{handles:?}");
    }
}
