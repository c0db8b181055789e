//! Work under the span that scheduled it.

use std::time::Duration;

use punctual::{ManualClock, ScheduledThreadPoolExecutor};
use tracing::info_span;

use super::collector::{Collector, Fields, only};
use crate::support::{manual_with, ms};

/// An executor on a clock that stands still, which follows the submitter's span if asked to.
fn following(follow: bool) -> (&'static Collector, ManualClock, ScheduledThreadPoolExecutor) {
    let collector = Collector::get();
    let (clock, executor) = manual_with(|builder| builder.submitter_span(follow));
    (collector, clock, executor)
}

fn submitter(text: &'static str) -> tracing::Span {
    info_span!(target: "punctual", "request", text)
}

/// The run of a one-shot task is a child of the span in which the task was submitted, also if nothing
/// else is said of the task; the wait and the run time are among its fields.
#[test]
fn a_run_is_a_child_of_the_span_that_scheduled_it() {
    let (collector, clock, executor) = following(true);
    let span = submitter("traced submitter");
    let time = clock.clone();
    let entered = span.entered();
    executor.schedule(ms(1), move || time.advance(ms(3))).unwrap();
    drop(entered);
    assert!(collector.closed("traced submitter").is_empty(), "the task holds it");
    clock.advance(ms(1) + Duration::from_micros(250));
    clock.run_until_idle();
    let said = collector.said_about("traced submitter");
    let run = said.iter().find(|said| said.is_span && said.span.is_some()).expect("under the span");
    assert_eq!(run.span.as_ref().map(|span| span.get("text")), Some("traced submitter"));
    assert_eq!(run.fields.get("queue_wait_us"), "250");
    assert_eq!(collector.closed("traced submitter").len(), 1, "it is released at the end");
}

/// The span of each run has the time that it took, once it is closed.
#[test]
fn the_run_time_is_recorded_in_the_span() {
    let (collector, clock, executor) = following(false);
    let time = clock.clone();
    executor.task().name("traced run time").execute(move || time.advance(ms(3))).unwrap();
    clock.run_until_idle();
    let closed = collector.closed("traced run time");
    assert_eq!(
        closed.iter().map(|span| span.fields.get("run_time_us")).collect::<Vec<_>>(),
        ["3000"]
    );
}

/// M195: the runs of a periodic task are no children of it. Each follows from it, and it is held until the task has ended.
#[test]
fn the_runs_of_a_periodic_task_follow_from_it() {
    let (collector, clock, executor) = following(true);
    let span = submitter("traced beat's");
    let entered = span.entered();
    let task = executor.task().name("traced beat");
    let beat = task.schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
    drop(entered);
    clock.run_for(ms(3));
    let runs = collector.closed("traced beat");
    assert_eq!(runs.len(), 3);
    for run in runs {
        let follows: Vec<_> =
            run.follows.iter().map(|span: &Fields| span.get("text").to_owned()).collect();
        assert_eq!(follows, ["traced beat's"]);
    }
    let said = collector.said_about("traced beat");
    assert!(said.iter().filter(|said| said.is_span).all(|span| span.span.is_none()));
    assert!(collector.closed("traced beat's").is_empty());
    assert!(beat.cancel());
    assert_eq!(collector.closed("traced beat's").len(), 1);
}

/// Unless it was switched on, a run is not under the span, which is closed when its submitter has left it.
#[test]
fn it_is_off_by_default() {
    let (collector, clock, executor) = following(false);
    let span = submitter("traced alone");
    span.in_scope(|| executor.task().name("traced lonely").execute(|| ())).unwrap();
    drop(span);
    assert_eq!(collector.closed("traced alone").len(), 1);
    clock.run_until_idle();
    let said = collector.said_about("traced lonely");
    assert!(only(&said, "").span.is_none());
}
