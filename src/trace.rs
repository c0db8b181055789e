//! The events and spans for [`tracing`](https://docs.rs/tracing): one function for each event. This is
//! the only file that knows the feature `tracing`.
//!
//! | what | level | fields |
//! |---|---|---|
//! | span `task`, around each run | info | `task`, `name`, `run`, `lateness_us` |
//! | a task was scheduled | debug | `task`, `name`, `delay_us` |
//! | a run started | debug | in its span |
//! | a run ended | debug | `run_time_us`, in its span |
//! | a task was cancelled | debug | `task`, `name`, `reason` |
//! | a task was rejected | debug | `task`, `name`, `reason` |
//! | a task or a hook panicked, or the drop of a task's value | error | `panic`, in its span |
//! | a run returned an `Err` | error | `error`, in its span |
//! | a periodic task ended although its user did not end it | warn | `task`, `name`, `reason` |
//! | a worker started, ended | debug | `worker` |
//! | a worker could not be started | warn | `error` |
//! | shutdown, shut down now, dropped, terminated | debug | `executor` |
//!
//! `task` is the text of the task's id. The target is always `punctual`. Without a subscriber, each
//! event on the path of a task costs one load and a branch. A subscriber is user code, so it is called
//! with no lock held, and one that panics on a worker does not end the worker.

#[cfg(feature = "tracing")]
mod events {
    use std::{fmt, io, time::Duration};

    use tracing::{
        Level, Span, debug, enabled, error, info_span, level_filters::LevelFilter, span::Entered,
        warn,
    };

    use crate::{
        Failure, TaskId,
        unwind::{contain, discard},
    };

    const TARGET: &str = "punctual";

    /// Emits an event. A panic of the subscriber goes no further.
    fn emit(event: impl FnOnce()) {
        if let Err(payload) = contain(event) {
            discard(payload);
        }
    }

    fn micros(duration: Duration) -> u64 {
        u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns `true` if a subscriber wants the events of single tasks.
    #[inline]
    pub(crate) fn is_listening() -> bool {
        listens(Level::DEBUG, || enabled!(target: TARGET, Level::DEBUG))
    }

    /// Asks the subscriber only if its level, which is one load, admits the event.
    #[inline]
    fn listens(level: Level, ask: impl FnOnce() -> bool) -> bool {
        level <= LevelFilter::current() && ask_subscriber(ask)
    }

    /// Asks the subscriber. Without one this never runs, and so it must not make its callers larger.
    #[cold]
    fn ask_subscriber(ask: impl FnOnce() -> bool) -> bool {
        contain(ask).map_err(discard).unwrap_or(false)
    }

    pub(crate) fn scheduled(id: u64, name: Option<&str>, delay: Duration) {
        emit(
            || debug!(target: TARGET, task = %TaskId(id), name, delay_us = micros(delay), "scheduled"),
        );
    }

    /// Calls `run` in the span of one run of a task, and emits an event when it starts and ends.
    #[inline]
    pub(crate) fn in_span<R>(
        fields: impl FnOnce() -> SpanFields,
        run_time: impl FnOnce() -> Duration,
        run: impl FnOnce() -> R,
    ) -> R {
        if !is_listening_to_runs() {
            return run();
        }
        let span = RunSpan(new_span(fields()));
        let entered = span.enter();
        let result = run();
        emit(|| debug!(target: TARGET, run_time_us = micros(run_time()), "ended"));
        leave(entered);
        result
    }

    // These are compiled once, and not for every type of task.

    #[inline]
    fn is_listening_to_runs() -> bool {
        listens(Level::INFO, || enabled!(target: TARGET, Level::INFO))
    }

    fn new_span(SpanFields { id, name, run, lateness }: SpanFields) -> Span {
        let mut span = Span::none();
        emit(|| {
            span = info_span!(
                target: TARGET, "task",
                task = %TaskId(id), name = name.as_deref(), run, lateness_us = micros(lateness)
            );
        });
        span
    }

    fn leave(entered: Option<Entered<'_>>) {
        emit(|| drop(entered));
    }

    /// The span of one run. Dropping it calls the subscriber.
    struct RunSpan(Span);

    impl RunSpan {
        fn enter(&self) -> Option<Entered<'_>> {
            let entered = contain(|| self.0.enter()).map_err(discard).ok();
            emit(|| debug!(target: TARGET, "started"));
            entered
        }
    }

    impl Drop for RunSpan {
        fn drop(&mut self) {
            let span = std::mem::replace(&mut self.0, Span::none());
            emit(|| drop(span));
        }
    }

    /// The fields of the span of a run.
    pub(crate) struct SpanFields {
        pub(crate) id: u64,
        pub(crate) name: Option<std::sync::Arc<str>>,
        pub(crate) run: u64,
        pub(crate) lateness: Duration,
    }

    pub(crate) fn failed(whose: &str, failure: &Failure) {
        let message = failure.message();
        if failure.is_panic() {
            emit(|| error!(target: TARGET, panic = message, "{whose} panicked"));
        } else {
            emit(|| error!(target: TARGET, error = message, "{whose} failed"));
        }
    }

    pub(crate) fn ended(id: u64, name: Option<&str>, reason: &str) {
        emit(
            || warn!(target: TARGET, task = %TaskId(id), name, reason, "a periodic task was ended"),
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
        emit(|| warn!(target: TARGET, %error, "a worker could not be started; the others go on"));
    }

    pub(crate) fn lifecycle(what: &'static str, executor: &str) {
        emit(|| debug!(target: TARGET, executor, "{what}"));
    }
}

#[cfg(not(feature = "tracing"))]
mod events {
    use std::{fmt, io, time::Duration};

    use crate::Failure;

    #[inline]
    pub(crate) fn is_listening() -> bool {
        false
    }

    pub(crate) fn scheduled(_: u64, _: Option<&str>, _: Duration) {}

    #[inline]
    pub(crate) fn in_span<R>(
        _: impl FnOnce() -> SpanFields,
        _: impl FnOnce() -> Duration,
        run: impl FnOnce() -> R,
    ) -> R {
        run()
    }

    #[allow(dead_code, reason = "the same shape as with the feature")]
    pub(crate) struct SpanFields {
        pub(crate) id: u64,
        pub(crate) name: Option<std::sync::Arc<str>>,
        pub(crate) run: u64,
        pub(crate) lateness: Duration,
    }

    pub(crate) fn failed(_: &str, _: &Failure) {}
    pub(crate) fn ended(_: u64, _: Option<&str>, _: &str) {}
    pub(crate) fn rejected(_: u64, _: Option<&str>, _: &dyn fmt::Display) {}
    pub(crate) fn cancelled(_: u64, _: Option<&str>, _: &dyn fmt::Display) {}
    pub(crate) fn worker(_: &'static str, _: &str) {}
    pub(crate) fn spawn_failed(_: &io::Error) {}
    pub(crate) fn lifecycle(_: &'static str, _: &str) {}
}

pub(crate) use self::events::*;
