//! The events and spans for [`tracing`](https://docs.rs/tracing): one function for each event. No other module is
//! compiled differently with the `tracing` feature.
//!
//! `docs/events.md` lists all events, with their levels and fields; a test compares that page with this file
//! (`tests/house/events.rs`). So each event is written as one macro call, with its message as a literal.
//!
//! A run's span has the task's id (`task`, as text) and name, but is off at level `warn`. So each event about a task
//! carries the id and the name too. Without a subscriber, an event on a task's path costs one load and a branch. A
//! subscriber is user code: it is called with no lock held, and one that panics on a worker does not end the worker.
//!
//! # The span of the submitter
//!
//! A [`SubmitterSpan`] is the span that was current when a task was submitted. The task keeps it until the task ends.
//! The span of a one-shot task's run is a child of the submitter's span. If the spans of a periodic task's runs were
//! children of that span too, they would belong to a span whose work is long over, and to one trace that never ends. So
//! the span of each such run begins a trace of its own, and follows from the submitter's span. Cloning or dropping a
//! span calls the subscriber, so the span is in an `Arc`, which may be cloned under a lock.

#![cfg_attr(not(feature = "tracing"), allow(unused, reason = "the events are nothing without it"))]

use std::{fmt, io, panic::Location, time::Duration};

pub(crate) use self::events::{SubmitterSpan, failed, hears_errors, in_span, is_listening};
use self::events::{debug, emit, warn};
use crate::{TaskId, id::Subject};

const TARGET: &str = "punctual";

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) struct SpanFields {
    pub(crate) about: Subject,
    pub(crate) lateness: Duration,
    pub(crate) submitter: Option<SubmitterSpan>,
    pub(crate) is_periodic: bool,
}

pub(crate) fn scheduled(id: u64, name: Option<&str>, delay: Duration) {
    emit(
        || debug!(target: TARGET, task = %TaskId(id), name, delay_us = micros(delay), "scheduled"),
    );
}

pub(crate) fn skipped_by_gate(id: u64, name: Option<&str>, run: u64) {
    emit(|| debug!(target: TARGET, task = %TaskId(id), name, run, "skipped by its gate"));
}

pub(crate) fn left_out(id: u64, name: Option<&str>, run: u64, late: Duration) {
    let (task, lateness_us) = (TaskId(id), micros(late));
    emit(|| debug!(target: TARGET, %task, name, run, lateness_us, "left out: it is overdue"));
}

pub(crate) fn put_off_by_gate(id: u64, name: Option<&str>, run: u64, delay: Duration) {
    let delay_us = micros(delay);
    emit(|| debug!(target: TARGET, task = %TaskId(id), name, run, delay_us, "put off by its gate"));
}

pub(crate) fn slow_run(
    id: u64,
    name: Option<&str>,
    run: u64,
    running: Duration,
    scheduled_at: &Location<'_>,
) {
    let (task, running_us) = (TaskId(id), micros(running));
    emit(|| warn!(target: TARGET, %task, name, run, running_us, %scheduled_at, "a run takes long"));
}

pub(crate) fn starvation(
    waited: Duration,
    id: u64,
    name: Option<&str>,
    running: &dyn fmt::Display,
) {
    let (task, waited_us) = (TaskId(id), micros(waited));
    emit(
        || warn!(target: TARGET, %task, name, waited_us, %running, "nothing that is due could start"),
    );
}

pub(crate) fn rejected(id: u64, name: Option<&str>, reason: &dyn fmt::Display) {
    emit(|| debug!(target: TARGET, task = %TaskId(id), name, %reason, "rejected"));
}

pub(crate) fn cancelled(id: u64, name: Option<&str>, reason: &dyn fmt::Display) {
    emit(|| debug!(target: TARGET, task = %TaskId(id), name, %reason, "cancelled"));
}

pub(crate) fn worker(what: &'static str, name: &str) {
    emit(|| debug!(target: TARGET, worker = name, "worker {what}"));
}

pub(crate) fn spawn_failed(error: &io::Error) {
    emit(
        || warn!(target: TARGET, %error, "a worker could not be started; what is pending waits for another"),
    );
}

pub(crate) fn lifecycle(what: &'static str, executor: &str) {
    emit(|| debug!(target: TARGET, executor, "{what}"));
}

#[cfg(feature = "tracing")]
mod events {
    use std::time::Duration;

    use tracing::{
        Level, Span, enabled, error,
        field::{DisplayValue, Empty, display},
        info_span,
        level_filters::LevelFilter,
        span::Entered,
    };
    pub(super) use tracing::{debug, warn};

    use super::{SpanFields, TARGET, micros};
    pub(super) use crate::unwind::shield as emit;
    use crate::{
        Failure, FailureKind, TaskId,
        id::Subject,
        sync::Arc,
        unwind::{Contained, contain, discard},
    };

    #[inline]
    pub(crate) fn is_listening() -> bool {
        listens(Level::DEBUG, || enabled!(target: TARGET, Level::DEBUG))
    }

    pub(crate) fn hears_errors() -> bool {
        listens(Level::ERROR, || enabled!(target: TARGET, Level::ERROR))
    }

    /// Returns `true` if a subscriber listens. Asks it only if the maximum level, read in one load, admits `level`.
    #[inline]
    fn listens(level: Level, ask: impl FnOnce() -> bool) -> bool {
        level <= LevelFilter::current() && ask_subscriber(ask)
    }

    /// Asks the subscriber; a panic counts as `false`. Out of line, since no call comes here without a subscriber.
    #[cold]
    fn ask_subscriber(ask: impl FnOnce() -> bool) -> bool {
        contain(ask).map_err(discard).unwrap_or(false)
    }

    /// Calls `run`. If a subscriber listens to runs, does so in a new span, and emits events before and after the run.
    #[inline(always)]
    pub(crate) fn in_span<R>(
        fields: impl FnOnce() -> SpanFields,
        run_time: impl FnOnce() -> Duration,
        run: impl FnOnce() -> R,
    ) -> R {
        if !is_listening_to_runs() {
            return run();
        }
        in_new_span(fields(), run_time, run)
    }

    #[inline(never)]
    fn in_new_span<R>(
        mut fields: SpanFields,
        run_time: impl FnOnce() -> Duration,
        run: impl FnOnce() -> R,
    ) -> R {
        let span = RunSpan(Contained::new(new_span(&mut fields)));
        let entered = span.enter(&fields.about);
        let result = run();
        span.end(entered, run_time(), &fields.about);
        result
    }

    // The functions below are compiled once, and not for every type of task.

    #[inline]
    fn is_listening_to_runs() -> bool {
        listens(Level::INFO, || enabled!(target: TARGET, Level::INFO))
    }

    fn new_span(fields: &mut SpanFields) -> Span {
        let ((task, name, run), lateness_us) = (fields.about.fields(), micros(fields.lateness));
        let (submitter, mut span) = (fields.submitter.take(), Span::none());
        macro_rules! task_span {
            ($($parent:tt)*) => {
                info_span!(
                    target: TARGET, $($parent)* "task",
                    task, name, run, lateness_us, queue_wait_us = lateness_us, run_time_us = Empty,
                )
            };
        }
        emit(|| {
            span = match &submitter {
                Some(SubmitterSpan(submitter)) if fields.is_periodic => {
                    let span = task_span!();
                    span.follows_from(&*submitter.0);
                    span
                }
                Some(SubmitterSpan(submitter)) => task_span!(parent: &*submitter.0,),
                None => task_span!(),
            };
        });
        span
    }

    /// The span of a run or of a submitter. Dropping it calls the subscriber.
    struct RunSpan(Contained<Span>);

    impl RunSpan {
        fn enter(&self, about: &Subject) -> Option<Entered<'_>> {
            let entered = contain(|| self.0.enter()).map_err(discard).ok();
            let (task, name, run) = about.fields();
            emit(|| debug!(target: TARGET, task, name, run, "started"));
            entered
        }

        fn end(&self, entered: Option<Entered<'_>>, run_time: Duration, about: &Subject) {
            let run_time_us = micros(run_time);
            emit(|| _ = self.0.record("run_time_us", run_time_us));
            let (task, name, run) = about.fields();
            emit(|| debug!(target: TARGET, task, name, run, run_time_us, "ended"));
            emit(|| drop(entered));
        }
    }

    #[derive(Clone)]
    pub(crate) struct SubmitterSpan(Arc<RunSpan>);

    impl SubmitterSpan {
        /// Returns the current span, if there is one and a subscriber listens to runs.
        pub(crate) fn current() -> Option<Self> {
            if !is_listening_to_runs() {
                return None;
            }
            let span = contain(Span::current).map_err(discard).ok()?;
            (!span.is_none()).then(|| Self(Arc::new(RunSpan(Contained::new(span)))))
        }
    }

    impl Subject {
        fn fields(&self) -> (Option<DisplayValue<TaskId>>, Option<&str>, Option<u64>) {
            (self.id.map(|id| display(TaskId(id))), self.name.as_deref(), self.run)
        }
    }

    /// Emits the event for a failure: a warning if the task runs again, otherwise an error. `again` is the delay from
    /// the failed run to the next: `Duration::MAX` if no moment is planned, `None` if there is no next run.
    pub(crate) fn failed(whose: &str, about: &Subject, failure: &Failure, again: Option<Duration>) {
        let ((task, name, run), attempt) = (about.fields(), about.attempt.map(display));
        let again_us = again.filter(|span| *span < Duration::MAX).map(micros);
        let message = failure.message();
        emit(|| match failure.kind() {
            _ if again.is_some() => {
                warn!(target: TARGET, task, name, run, attempt, again_us, error = message, "{whose} failed; the task runs again");
            }
            FailureKind::Panic => {
                error!(target: TARGET, task, name, run, attempt, panic = message, "{whose} panicked");
            }
            FailureKind::Error | FailureKind::TimeLimit => {
                error!(target: TARGET, task, name, run, attempt, error = message, "{whose} failed");
            }
            FailureKind::Displaced => {
                error!(target: TARGET, task, name, run, reason = message, "{whose} was ended");
            }
        });
    }
}

#[cfg(not(feature = "tracing"))]
mod events {
    use std::time::Duration;

    use super::SpanFields;
    use crate::{Failure, id::Subject};

    macro_rules! nothing {
        ($($event:tt)*) => {
            ()
        };
    }
    pub(super) use {nothing as debug, nothing as warn};

    pub(super) fn emit(_: impl FnOnce()) {}

    #[inline]
    pub(crate) fn is_listening() -> bool {
        false
    }

    pub(crate) fn hears_errors() -> bool {
        false
    }

    #[inline]
    pub(crate) fn in_span<R>(
        _: impl FnOnce() -> SpanFields,
        _: impl FnOnce() -> Duration,
        run: impl FnOnce() -> R,
    ) -> R {
        run()
    }

    #[derive(Clone)]
    pub(crate) enum SubmitterSpan {}

    impl SubmitterSpan {
        pub(crate) fn current() -> Option<Self> {
            None
        }
    }

    pub(crate) fn failed(_: &str, _: &Subject, _: &Failure, _: Option<Duration>) {}
}
