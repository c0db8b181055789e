//! Kinds that are paused.

use std::time::Duration;

use punctual_jobs::{JobChange, JobFilter, JobLimit, JobState, Priority, QueueError};

use crate::world::{HOUR, Hold, LONG, Note, SHORT, World, for_some_span, standard};

/// The kinds that are paused, by the counts.
fn paused<W: World>(world: &W) -> Vec<String> {
    let counts = world.queue().counts().unwrap();
    counts.into_iter().filter(|kind| kind.paused).map(|kind| kind.kind).collect()
}

pub(crate) fn jobs_of_a_paused_kind_wait_until_it_is_resumed<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    queue.now(Hold::new("runs")).enqueue().unwrap();
    world.until("it runs", || world.log().has("runs begins"));
    queue.pause_kind("hold", None).unwrap();
    let waits = queue.now(Hold::new("waits")).enqueue().unwrap();
    queue.now(Note::new("another kind")).enqueue().unwrap();
    world.until("the other kind", || world.log().has("another kind"));
    // What runs goes on.
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("runs ends"));
    world.settle();
    assert!(!world.log().has("waits begins"), "{:?}", world.log().lines());
    let state = queue.state(waits.id).unwrap();
    assert_eq!(state, JobState::Waiting { attempts: 0, last_error: None });
    assert!(queue.resume_kind("hold").unwrap());
    assert!(!queue.resume_kind("hold").unwrap());
    world.until("it has run", || world.log().has("waits ends"));
}

pub(crate) fn counts_and_lists_say_what_is_paused<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    queue.pause_kind("note", None).unwrap();
    queue.pause_kind("hold", Some(HOUR.into())).unwrap();
    let note = queue.now(Note::new("a")).enqueue().unwrap();
    queue.after(HOUR, crate::world::Flaky::new("b", 0)).enqueue().unwrap();
    let counts = queue.counts().unwrap();
    let kinds: Vec<_> = counts.iter().map(|kind| (kind.kind.as_str(), kind.waiting)).collect();
    assert_eq!(kinds, [("flaky", 1), ("hold", 0), ("note", 1)]);
    assert!(!counts[0].paused);
    assert_eq!((counts[2].paused, counts[2].paused_until), (true, None));
    let until = counts[1].paused_until.unwrap();
    assert!(until > world.wall() + HOUR / 2 && until < world.wall() + 2 * HOUR);
    assert!(counts[2].to_string().ends_with(", paused"), "{}", counts[2]);
    let listed = queue.list(&JobFilter { paused: true, ..JobFilter::default() }).unwrap();
    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), [note.id]);
    assert!(listed[0].paused && listed[0].to_string().contains("waiting (paused)"));
    let all = queue.list(&JobFilter::default()).unwrap();
    assert_eq!(all.iter().filter(|job| job.paused).count(), 1);
    assert!(queue.resume_kind("note").unwrap() && queue.resume_kind("hold").unwrap());
    assert!(queue.list(&JobFilter { paused: true, ..JobFilter::default() }).unwrap().is_empty());
    assert!(paused(&world).is_empty());
}

pub(crate) fn a_pause_ends_at_its_moment<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    let until = world.now() + 5 * SHORT;
    queue.pause_kind("note", Some(until.into())).unwrap();
    queue.now(Note::new("a")).enqueue().unwrap();
    world.expect(&["a"]);
    assert!(world.now() >= until);
    assert!(paused(&world).is_empty());
    assert!(!queue.resume_kind("note").unwrap());
}

pub(crate) fn a_pause_takes_the_place_of_another<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    queue.pause_kind("note", Some((2 * SHORT).into())).unwrap();
    queue.pause_kind("note", None).unwrap();
    queue.now(Note::new("a")).enqueue().unwrap();
    queue.after(8 * SHORT, Hold::new("later")).enqueue().unwrap();
    world.expect(&["later begins"]);
    queue.pause_kind("note", Some(Duration::ZERO.into())).unwrap();
    world.expect(&["later begins", "a"]);
}

pub(crate) fn a_job_of_a_paused_kind_can_be_changed<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    queue.pause_kind("note", None).unwrap();
    for key in ["cancelled", "replaced", "moved"] {
        queue.now(Note::new(key)).key(key).enqueue().unwrap();
    }
    queue.after(SHORT, Hold::new("x")).enqueue().unwrap();
    world.expect(&["x begins"]);
    assert_eq!(queue.cancel("cancelled").unwrap(), JobChange::Done);
    queue.now(Note::new("new")).key("replaced").enqueue().unwrap();
    queue.reschedule("moved", HOUR).unwrap();
    assert!(queue.resume_kind("note").unwrap());
    world.expect(&["x begins", "new"]);
    queue.reschedule("moved", Duration::ZERO).unwrap();
    world.expect(&["x begins", "new", "moved"]);
}

pub(crate) fn a_paused_kind_with_a_limit_waits_and_keeps_its_limit<W: World>() {
    let world = W::open(|scene| standard(scene).limit::<Hold>(JobLimit::at_once(1)));
    let queue = world.queue();
    queue.now(Hold::new("a")).enqueue().unwrap();
    world.expect(&["a begins"]);
    queue.now(Hold::new("low")).priority(Priority::Low).enqueue().unwrap();
    queue.pause_kind("hold", None).unwrap();
    queue.now(Hold::new("high")).priority(Priority::High).enqueue().unwrap();
    world.scene().gate.cancel();
    world.until("its end", || world.log().has("a ends"));
    world.settle();
    assert_eq!(world.log().lines(), ["a begins", "a ends", "settled"]);
    queue.resume_kind("hold").unwrap();
    world.until("all", || world.log().len() == 7);
    let lines = world.log().lines();
    assert_eq!(lines[3..], ["high begins", "high ends", "low begins", "low ends"]);
}

pub(crate) fn a_paused_job_keeps_its_turn_of_an_ordering_key<W: World>() {
    for_some_span::<W>(|span| {
        let world = W::open(standard);
        let queue = world.queue();
        queue.pause_kind("note", None).unwrap();
        queue.now(Note::new("first")).ordering_key("s").enqueue().unwrap();
        queue.after(span, Hold::new("second")).ordering_key("s").enqueue().unwrap();
        queue.now(Hold::new("aside")).ordering_key("t").enqueue().unwrap();
        world.until("aside", || world.log().has("aside begins"));
        queue.after(2 * span, Hold::new("later")).enqueue().unwrap();
        world.until("later", || world.log().has("later begins"));
        assert!(!world.log().has("second begins"), "it overtakes a paused job");
        world.scene().gate.cancel();
        queue.resume_kind("note").unwrap();
        world.until("all", || world.log().has("second ends"));
        let place = |line: &str| world.log().lines().iter().position(|other| other == line);
        place("first") < place("second begins")
    });
}

pub(crate) fn a_name_that_no_kind_can_have_is_not_paused<W: World>() {
    let world = W::open(standard);
    let error = world.queue().pause_kind("", None).unwrap_err();
    assert!(matches!(error, QueueError::InvalidName(_)), "{error}");
    let error = world.queue().resume_kind("a\0b").unwrap_err();
    assert!(matches!(error, QueueError::InvalidName(_)), "{error}");
    world.shutdown(Duration::ZERO, LONG);
    let error = world.queue().pause_kind("note", None).unwrap_err();
    assert!(matches!(error, QueueError::ShutDown), "{error}");
}
