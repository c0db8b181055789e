//! Which names and keys are accepted: the same on either queue.

use punctual_jobs::{Job, JobRun, QueueError};
use serde::{Deserialize, Serialize};

use crate::world::{Note, SHORT, World, standard};

/// Texts that no queue accepts, and what is said of them.
fn wrong(most: usize) -> [(String, String); 4] {
    [
        (String::new(), "is empty".to_owned()),
        ("\0".to_owned(), "has a NUL character".to_owned()),
        ("k\0k".to_owned(), "has a NUL character".to_owned()),
        ("ü".repeat(most / 2) + "x", format!("has more than {most} bytes")),
    ]
}

fn refused<T>(result: Result<T, QueueError>, message: String) {
    let error = result.err().expect("it is refused");
    assert!(matches!(error, QueueError::InvalidName(_)), "{error:?}");
    assert_eq!(error.to_string(), message);
}

pub(crate) fn a_key_that_no_job_can_have_is_refused<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    for (key, problem) in wrong(512) {
        let message = format!("the key of a job {problem}");
        refused(queue.now(Note::new("x")).key(&key).enqueue(), message.clone());
        refused(queue.now(Note::new("x")).key(&key).enqueue_async().wait(SHORT), message.clone());
        refused(queue.cancel(&key), message.clone());
        refused(queue.reschedule(&key, SHORT), message);
    }
    let longest = "k".repeat(512);
    queue.now(Note::new("longest")).key(longest).enqueue().unwrap();
    world.expect(&["longest"]);
}

pub(crate) fn an_ordering_key_that_no_job_can_have_is_refused<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    for (key, problem) in wrong(128) {
        let message = format!("an ordering key {problem}");
        refused(queue.now(Note::new("x")).ordering_key(&key).enqueue(), message);
    }
    for key in ["o".repeat(128), " ".to_owned(), "\u{1}".to_owned(), "\u{10FFFF}".to_owned()] {
        queue.now(Note::new("accepted")).ordering_key(key).enqueue().unwrap();
    }
    world.expect(&["accepted"; 4]);
}

pub(crate) fn a_limit_key_that_no_job_can_have_is_refused<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    for (key, problem) in wrong(128) {
        let message = format!("a limit key {problem}");
        refused(queue.now(Note::new("x")).limit_key(&key).enqueue(), message);
    }
    for key in ["o".repeat(128), " ".to_owned(), "\u{1}".to_owned(), "\u{10FFFF}".to_owned()] {
        queue.now(Note::new("accepted")).limit_key(key).enqueue().unwrap();
    }
    world.expect(&["accepted"; 4]);
}

#[derive(Serialize, Deserialize)]
struct Nameless {}

impl Job for Nameless {
    const NAME: &'static str = "";
}

#[derive(Serialize, Deserialize)]
struct Nul {}

impl Job for Nul {
    const NAME: &'static str = "nul\0";
}

#[derive(Serialize, Deserialize)]
struct Long {}

impl Job for Long {
    const NAME: &'static str = "a name of a kind of jobs that is so long that it has more than one hundred and \
                                twenty-eight bytes, and a few more bytes than that, to be sure of it";
}

/// Whether the kind has a handler here or not.
pub(crate) fn a_name_that_no_kind_can_have_is_refused<W: World>() {
    let world = W::open(standard);
    let message = |problem: &str| format!("the name of a kind of jobs {problem}");
    refused(world.queue().now(Nameless {}).enqueue(), message("is empty"));
    refused(world.queue().now(Nul {}).enqueue(), message("has a NUL character"));
    refused(world.queue().now(Long {}).enqueue(), message("has more than 128 bytes"));
    let handled = [
        W::try_open(|scene| standard(scene).on(|_: &JobRun, _: Nameless| Ok(()))),
        W::try_open(|scene| standard(scene).on(|_: &JobRun, _: Nul| Ok(()))),
        W::try_open(|scene| standard(scene).max_attempts::<Long>(1)),
    ];
    for (error, problem) in handled.into_iter().zip(["is empty", "has a NUL", "has more than 128"])
    {
        let error = error.err().expect("it is refused");
        assert!(matches!(error, punctual_jobs::OpenError::InvalidName(_)), "{error:?}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
