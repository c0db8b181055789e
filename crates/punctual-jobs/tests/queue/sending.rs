//! How jobs are sent, and what arrives.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread::Thread,
    time::Duration,
};

use punctual_jobs::{Job, JobError, JobLimit, JobRun, JobState, Jobs, QueueError};
use serde::{Deserialize, Serialize};

use crate::world::{HOUR, Note, SHORT, World, for_some_span, standard};

pub(crate) fn a_job_runs_once_and_has_its_payload<W: World>() {
    let world = W::open(standard);
    let waits = world.queue().after(HOUR, Note::new("never")).enqueue().unwrap();
    let state = world.queue().state(waits.id).unwrap();
    assert_eq!(state, JobState::Waiting { attempts: 0, last_error: None });
    let ticket = world.queue().after(SHORT, Note::new("tea")).enqueue().unwrap();
    world.expect(&["tea"]);
    world.until("the end", || world.queue().state(ticket.id).unwrap() == JobState::Gone);
    world.settle();
    assert_eq!(world.log().lines(), ["tea", "settled"]);
}

pub(crate) fn jobs_run_in_the_order_of_their_moments<W: World>() {
    for_some_span::<W>(|span| {
        let world = W::open(standard);
        world.queue().after(9 * span, Note::new("third")).enqueue().unwrap();
        world.queue().after(3 * span, Note::new("first")).enqueue().unwrap();
        world.queue().after(6 * span, Note::new("second")).enqueue().unwrap();
        world.until("all", || world.log().len() == 3);
        world.log().lines() == ["first", "second", "third"]
    });
}

pub(crate) fn a_job_runs_at_an_instant<W: World>() {
    let world = W::open(standard);
    let due = world.now() + 3 * SHORT;
    world.queue().at(due, Note::new("then")).enqueue().unwrap();
    world.expect(&["then"]);
    assert!(world.now() >= due);
}

pub(crate) fn a_job_runs_at_a_wall_time<W: World>() {
    let world = W::open(standard);
    let due = world.wall() + 3 * SHORT;
    world.queue().at(due, Note::new("then")).enqueue().unwrap();
    world.expect(&["then"]);
    assert!(world.wall() >= due);
}

pub(crate) fn a_moment_that_has_passed_means_now<W: World>() {
    let world = W::open(standard);
    world.queue().at(world.now() - SHORT, Note::new("late")).enqueue().unwrap();
    world.expect(&["late"]);
    world.queue().at(world.wall() - SHORT, Note::new("later")).enqueue().unwrap();
    world.expect(&["late", "later"]);
}

pub(crate) fn a_delay_without_end_never_runs<W: World>() {
    let world = W::open(standard);
    let ticket = world.queue().after(Duration::MAX, Note::new("never")).key("k").enqueue().unwrap();
    world.settle();
    assert!(matches!(world.queue().state(ticket.id).unwrap(), JobState::Waiting { .. }));
    assert_eq!(world.log().lines(), ["settled"]);
}

pub(crate) fn ids_rise<W: World>() {
    let world = W::open(standard);
    let first = world.queue().after(SHORT, Note::new("a")).enqueue().unwrap();
    let second = world.queue().after(SHORT, Note::new("b")).enqueue().unwrap();
    assert!(first.id < second.id);
    assert_eq!(first.name, "note");
}

#[derive(Serialize, Deserialize)]
struct Odd {
    map: BTreeMap<Option<u8>, u8>,
}

impl Job for Odd {
    const NAME: &'static str = "odd";
}

pub(crate) fn a_payload_that_is_no_json_is_refused<W: World>() {
    let world = W::open(|scene| standard(scene).on(|_, _: Odd| Ok(())));
    let odd = Odd { map: BTreeMap::from([(None, 1)]) };
    let error = world.queue().now(odd).enqueue().unwrap_err();
    assert!(matches!(error, QueueError::Payload { name: "odd", .. }), "{error}");
}

#[derive(Serialize, Deserialize)]
struct Measured(f64);

impl Job for Measured {
    const NAME: &'static str = "measured";
}

/// JSON has no such numbers; they would be `null`, which no run can read.
pub(crate) fn a_payload_that_no_run_could_read_is_refused<W: World>() {
    let world = W::open(|scene| standard(scene).on(|_, _: Measured| Ok(())));
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = world.queue().now(Measured(number)).enqueue().unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, QueueError::Payload { name: "measured", .. }), "{text}");
        assert!(text.contains("invalid type: null, expected f64"), "{text}");
    }
    world.queue().now(Measured(f64::MAX)).enqueue().unwrap();
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    text: String,
    most: u64,
    least: i64,
    float: f64,
    option: Option<String>,
    list: Vec<(u8, char)>,
    map: BTreeMap<String, bool>,
}

impl Job for Everything {
    const NAME: &'static str = "everything";
}

pub(crate) fn payloads_arrive_as_they_were<W: World>() {
    let sent = Everything {
        text: "\u{0}\u{1}\"\\ grüße \u{1F980}".to_owned(),
        most: u64::MAX,
        least: i64::MIN,
        float: 0.1 + 0.2,
        option: None,
        list: vec![(1, 'a'), (2, '\u{10FFFF}')],
        map: BTreeMap::from([("".to_owned(), true)]),
    };
    let expected = sent.clone();
    let world = W::open(|scene| {
        let (log, expected) = (scene.log.clone(), expected.clone());
        standard(scene).on(move |_: &JobRun, job: Everything| {
            log.say(if job == expected { "the same".to_owned() } else { format!("{job:?}") });
            Ok(())
        })
    });
    world.queue().now(sent).enqueue().unwrap();
    world.expect(&["the same"]);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Numbers {
    floats: Vec<f64>,
    most: u128,
    least: i128,
}

impl Job for Numbers {
    const NAME: &'static str = "numbers";
}

pub(crate) fn numbers_arrive_to_the_last_digit<W: World>() {
    let mut state = 7_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(state ^ state >> 29)
    };
    let floats =
        std::iter::repeat_with(&mut next).filter(|float| float.is_finite()).take(1000).collect();
    let sent = Numbers { floats, most: u128::MAX, least: i128::MIN };
    let expected = sent.clone();
    let world = W::open(|scene| {
        let (log, expected) = (scene.log.clone(), expected.clone());
        standard(scene).on(move |_: &JobRun, job: Numbers| {
            let pairs = job.floats.iter().zip(&expected.floats);
            let changed = pairs.filter(|(one, other)| one.to_bits() != other.to_bits()).count();
            let rest = (job.most, job.least) == (expected.most, expected.least);
            log.say(format!("{changed} of {} changed, {rest}", job.floats.len()));
            Ok(())
        })
    });
    world.queue().now(sent).enqueue().unwrap();
    world.expect(&["0 of 1000 changed, true"]);
}

#[derive(Serialize, Deserialize)]
struct Nothing;

impl Job for Nothing {
    const NAME: &'static str = "nothing";
}

pub(crate) fn a_payload_of_nothing_arrives<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new().on(move |_: &JobRun, _: Nothing| {
            log.say("nothing");
            Ok(())
        })
    });
    world.queue().now(Nothing).enqueue().unwrap();
    world.expect(&["nothing"]);
}

#[derive(Serialize, Deserialize)]
struct Chain {
    left: u32,
}

impl Job for Chain {
    const NAME: &'static str = "chain";
}

pub(crate) fn a_handler_sends_another_job<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new().on(move |run: &JobRun, job: Chain| {
            log.say(format!("{} left", job.left));
            if job.left > 0 {
                run.queue().now(Chain { left: job.left - 1 }).enqueue()?;
            }
            Ok(())
        })
    });
    world.queue().now(Chain { left: 2 }).enqueue().unwrap();
    world.expect(&["2 left", "1 left", "0 left"]);
}

/// Runs a future on this thread, without a runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub(crate) fn the_verbs_can_be_awaited<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    block_on(async {
        let id =
            queue.after(Duration::MAX, Note::new("x")).key("k").enqueue_async().await.unwrap().id;
        assert!(matches!(queue.state_async(id).await.unwrap(), JobState::Waiting { .. }));
        queue.reschedule_async("k", SHORT).await.unwrap();
    });
    world.expect(&["x"]);
    block_on(async {
        let unknown = punctual_jobs::JobChange::Unknown;
        assert_eq!(queue.cancel_async("nobody").await.unwrap(), unknown);
    });
}

#[derive(Serialize, Deserialize)]
struct Asked {}

impl Job for Asked {
    const NAME: &'static str = "asked";
}

pub(crate) fn a_run_knows_its_key<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new().on(move |run: &JobRun, _: Asked| {
            log.say(format!("{} {:?}", run.name, run.key.as_deref()));
            Ok(())
        })
    });
    world.queue().now(Asked {}).key("k").enqueue().unwrap();
    world.expect(&["asked Some(\"k\")"]);
}

pub(crate) fn fences_rise_from_run_to_run<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new().on(move |run: &JobRun, _: Asked| {
            let fence = run.fencing_token()?;
            assert_eq!(fence, run.fencing_token()?);
            log.say(fence.to_string());
            Ok(())
        })
    });
    for sent in 1..=3 {
        world.queue().now(Asked {}).enqueue().unwrap();
        world.until("a run", || world.log().len() == sent);
    }
    let fences: Vec<u64> = world.log().lines().iter().map(|line| line.parse().unwrap()).collect();
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
}

/// In every attempt, by whichever statement the job is claimed; of two with one key the last one's counts.
pub(crate) fn each_run_has_the_trace_context_of_its_sender<W: World>() {
    let world = W::open(|scene| {
        let (free, limited) = (scene.log.clone(), scene.log.clone());
        let said = |run: &JobRun, text: &str| {
            format!("{text} {} {}", run.attempt, run.traceparent.as_deref().unwrap_or("none"))
        };
        Jobs::new()
            .on(move |run: &JobRun, job: Note| {
                free.say(said(run, &job.text));
                if run.attempt == 1 { Err(JobError::new("again")) } else { Ok(()) }
            })
            .backoff::<Note>(punctual::Backoff::constant(SHORT))
            .on(move |run: &JobRun, job: crate::world::Hold| {
                limited.say(said(run, &job.text));
                Ok(())
            })
            .limit::<crate::world::Hold>(JobLimit::at_once(9))
    });
    let (queue, hold) = (world.queue(), crate::world::Hold::new);
    queue.now(Note::new("a")).traceparent("00-a").enqueue().unwrap();
    queue.now(Note::new("b")).traceparent("00-b").limit_key("l").enqueue().unwrap();
    queue.now(Note::new("c")).traceparent("00-c").ordering_key("s").enqueue().unwrap();
    queue.now(hold("d")).traceparent("00-d").unique("d").enqueue().unwrap();
    queue.now(hold("e")).traceparent("00-e").ordering_key("t").enqueue().unwrap();
    queue.after(HOUR, hold("old")).key("f").traceparent("00-old").enqueue().unwrap();
    let batch = [
        queue.now(hold("f")).key("f").traceparent("00-f"),
        queue.now(hold("g")).traceparent("00-g"),
        queue.now(hold("h")).unique("h"),
    ];
    queue.enqueue_all(batch).unwrap();
    world.until("all", || world.log().len() == 11);
    let mut lines = world.log().lines();
    lines.sort();
    let of_notes = ["a 1 00-a", "a 2 00-a", "b 1 00-b", "b 2 00-b", "c 1 00-c", "c 2 00-c"];
    assert_eq!(lines[..6], of_notes);
    assert_eq!(lines[6..], ["d 1 00-d", "e 1 00-e", "f 1 00-f", "g 1 00-g", "h 1 none"]);
    let error = queue.now(Note::new("x")).traceparent("").enqueue().unwrap_err();
    assert!(matches!(error, QueueError::InvalidName(_)), "{error}");
}
