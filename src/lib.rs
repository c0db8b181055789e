//! A scheduled thread-pool executor: Java's `ScheduledThreadPoolExecutor`, rebuilt for Rust.
//!
//! A program submits closures to a fixed pool of threads, which run them after a delay, at a fixed
//! rate or with a fixed delay. Each call returns a future that can be waited for, awaited and
//! cancelled. The pool shuts down gracefully. It needs no async runtime and works beside any; there is
//! no unsafe code.
//!
//! ```
//! use std::time::Duration;
//! use punctual::ScheduledThreadPoolExecutor;
//!
//! let executor = ScheduledThreadPoolExecutor::new(4);
//! let answer = executor.schedule(Duration::from_millis(50), || 6 * 7)?;
//! let beat = executor.schedule_at_fixed_rate(Duration::ZERO, Duration::from_secs(1), || {
//!     println!("tick");
//! })?;
//! assert_eq!(answer.join()?, 42);
//! beat.cancel();
//! executor.close()?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # Guarantees
//!
//! * **No task starts early**, and tasks start in the order of their deadlines; those with the same
//!   deadline start in the order in which they were submitted.
//! * **Every future completes**: with a result, a panic, or the reason why the task was cancelled. No
//!   shutdown, rejection or drop leaves a caller waiting for ever.
//! * **Cancelling removes the task**: when `cancel` returns, a waiting task is out of the queue and its
//!   captures are dropped.
//! * **Runs of a periodic task never overlap**, and each sees the effects of the one before.
//! * **A panic is contained and reported.** It ends its task and nothing else, whether it comes from
//!   the closure, from a capture that is dropped, or from a waker. ([The process](#the-process) lists
//!   what no library can contain.)
//! * **No arithmetic overflows**: a delay of zero means now, `Duration::MAX` means never.
//! * **An idle pool does nothing**: no ticks, no wake-ups.
//!
//! # Where to find what
//!
//! | to | use |
//! |---|---|
//! | make an executor | [`ScheduledThreadPoolExecutor::new`], [`builder`](ScheduledThreadPoolExecutor::builder) |
//! | run something | [`schedule`](Handle::schedule), [`schedule_at_fixed_rate`](Handle::schedule_at_fixed_rate), … on [`Handle`] |
//! | run something until it has an answer, or until it works | [`repeat`](Handle::repeat), [`Outcome`], [`trigger`] |
//! | run something when a clock in a time zone shows certain times | [`trigger::cron`](trigger), with the feature `cron` |
//! | name a task, choose what happens to missed runs, get a rejected closure back | [`Handle::task`] |
//! | wait for a task, inspect it, cancel it | [`ScheduledFuture`] |
//! | run several closures and wait for all, or for the first that succeeds | [`invoke_all`](Handle::invoke_all), [`invoke_any`](Handle::invoke_any) |
//! | join or cancel several tasks together, or take them as they end | [`TaskSet`], [`ExecutorCompletionService`] |
//! | find out, inside a task, which one it is and whether to stop | [`current_task`], [`CancellationToken`] |
//! | shut down | [`shutdown`](Handle::shutdown), [`shutdown_now`](Handle::shutdown_now), [`shutdown_within`](Handle::shutdown_within), [`close`](ScheduledThreadPoolExecutor::close), or drop it ([`DropPolicy`]) |
//! | shut down in async code | [`shutdown_background`](ScheduledThreadPoolExecutor::shutdown_background), then await [`termination`](Handle::termination); [`cancelled`](CancellationToken::cancelled) for a token |
//! | limit a task's time, resume after a failed run | [`TaskBuilder::timeout`], [`TaskBuilder::on_failure`] |
//! | ask somebody just before each run whether it takes place | [`TaskBuilder::gate`], [`gate`] |
//! | bound the waiting tasks, decide what happens to the others | [`Builder::max_pending`], [`RejectedExecutionHandler`] |
//! | run code around each run, or after a failure | [`Builder::before_execute`], [`Builder::decorate_task`], [`Builder::failure_handler`] |
//! | see how late tasks are and how long they take | `Builder::histograms`, with the feature `histograms` |
//! | be told of runs that take long, and of tasks that cannot start | [`Builder::on_slow_run`], [`TaskBuilder::warn_after`], [`Builder::on_starvation`] |
//! | see work under the span that scheduled it | [`Builder::submitter_span`] |
//! | inspect an executor | [`statistics`](Handle::statistics), [`pending_tasks`](Handle::pending_tasks), and `Debug`; [metrics and snapshots as data](#features) |
//! | change the number of workers, or how they are started | [`set_core_pool_size`](Handle::set_core_pool_size), [`ThreadFactory`] |
//! | sleep, tick and limit the time of a future in async code | [`sleep`](Handle::sleep), [`interval`](Handle::interval), [`timeout`](Handle::timeout) |
//! | delay values without running tasks | [`DelayQueue`] |
//! | test timed code | [`ManualClock`], and [`Handle::clock`], [`DelayQueue::clock`] for code that accepts either clock |
//!
//! # Time
//!
//! Delays count on the system's monotonic clock, to the nanosecond. The lateness to expect is what the
//! operating system adds when it wakes a thread: on Linux some 50 to 100 microseconds. Setting the wall
//! clock changes nothing. On Linux and macOS the monotonic clock stands still while the machine is
//! suspended, so the rest of a delay is the same before and after. Only a task whose
//! [trigger](trigger::Due::Wall) names moments of the wall clock follows that clock.
//!
//! A process that was stopped, in a debugger for instance, runs all overdue tasks at once when it is
//! resumed, in the order of their deadlines. [`MissedRuns`] says what happens to the missed runs of a
//! periodic task.
//!
//! # Under load
//!
//! Tasks that become due faster than they are run are late, but neither early nor lost nor out of
//! order. Memory grows with the backlog: [`Statistics::pending`] shows it, and
//! [`Builder::max_pending`] bounds it. A task that blocks occupies its worker for as long as it blocks.
//! If all workers are occupied, the other tasks wait, as [`Statistics::active`] and
//! [`TaskContext::lateness`] show. Tasks that block for long should have an executor of their own.
//! It is unspecified which worker runs a task, and which of several threads that submit at the same
//! time comes first.
//!
//! # The process
//!
//! * **At the end of the process**, when `main` returns or `exit` is called, nothing waits for tasks:
//!   pending tasks are abandoned, as with any thread. Drop or
//!   [`close`](ScheduledThreadPoolExecutor::close) the executor first.
//! * **What aborts the process.** Rust aborts it, and no library can prevent that,
//!   * if a one-shot body panics and one of its captures panics in its drop during the same unwinding
//!     (where that is possible, catch the panic inside the body; the captures of a periodic task
//!     outlive each run, so their panics are contained);
//!   * if a thread-local panics in its drop when a worker ends;
//!   * if a task overflows its [stack](Builder::stack_size), exhausts the memory or aborts;
//!   * at the first panic of a program that is built with `panic = "abort"`.
//! * **`fork`** without `exec` is not supported. The child has none of the workers, so its copy of an
//!   executor runs nothing and a wait for it never ends; and a lock that another thread held at that
//!   moment stays locked. Fork before the first executor is made. [`std::process::Command`] is not
//!   affected.
//!
//! # Features
//!
//! * `tracing` (default): spans and events about every task, with the target `punctual`. They cost next
//!   to nothing without a subscriber.
//! * `timer-slack` (default): on Linux, workers ask the system to wake them without slack.
//! * `histograms`: `Builder::histograms`, how late tasks are and how long they take. It adds `hdrhistogram`.
//! * `stream`: [`DelayQueue::stream`] is a `futures_core::Stream`.
//! * `cron`: [`trigger::cron`](trigger), runs by the calendar of a time zone. It adds `jiff`, which reads
//!   the time zone files of the system.
//! * `metrics`: [`Handle::publish_metrics`] hands the statistics to whichever recorder of the crate
//!   `metrics` the program has installed. It adds `metrics`.
//! * `serde`: what can be seen of an executor can be serialised: [`Statistics`], [`ExecutorState`],
//!   [`TaskState`], [`TaskId`], [`CancelReason`], [`FailedRun`], [`ShutdownReport`] and [`PendingTask`].
//!   It adds `serde`.
//!
//!   [`Handle::publish_metrics`]: Handle#method.publish_metrics

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layer 4: the public interface.
mod auto_traits;
mod builder;
mod debounce;
pub mod delay_queue;
mod driven;
mod error;
mod executor;
mod future;
mod group;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "serde")]
mod serialized;
mod task_builder;
mod timer;
mod together;
// Layer 3: the pool of workers.
mod pool;
// Layer 2: the queue and the task, which do not know each other; the cancellation token, limits and gates.
pub mod gate;
mod limit;
mod queue;
mod task;
mod token;
pub mod trigger;
// Layer 1: time, waiting, user code, counts, threads on demand, events.
#[cfg(feature = "histograms")]
mod histogram;
mod lazy_thread;
mod statistics;
mod time;
mod trace;
mod unwind;
mod wait;
// Layer 0: locks, atomics, parked threads; task ids.
mod id;
mod sync;

pub use crate::{
    builder::Builder,
    debounce::{Debounced, Throttled},
    delay_queue::{DelayQueue, Delayed},
    driven::DrivenExecutor,
    error::{CancelReason, ConfigError, Failure, RejectionReason, TaskError, WouldDeadlock},
    executor::{DropPolicy, Handle, PendingTask, ScheduledThreadPoolExecutor, Termination},
    future::{CancelOnDrop, ScheduledFuture, TaskHandle},
    gate::RunGate,
    group::{Group, GroupBuilder, GroupStatistics, GroupTermination},
    id::{ParseTaskIdError, TaskId},
    limit::{Limit, LimitReached},
    pool::{
        AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
        DrainedTask, DrainedTasks, ExecutorState, RejectedExecutionError, RejectedExecutionHandler,
        RejectedTask, Rejection, RunningTask, Shared, ShutdownReport, SlowRun, Starvation,
        Statistics, StockPolicy, TaskSummary, ThreadFactory, Worker,
    },
    task::{
        Done, FailedRun, FailurePolicy, FailureReport, FailureSource, MissedRuns, Outcome,
        Submission, TaskContext, TaskRun, TaskState, current_task,
    },
    task_builder::TaskBuilder,
    time::{Clock, ManualClock},
    timer::{Interval, Sleep, TimeoutError, TimerStopped},
    together::{
        CancelAllOnDrop, ExecutorCompletionService, InvokeAnyError, InvokeError, JoinAll, TaskSet,
    },
    token::{CancellationToken, Cancelled, WaitForCancellation},
    trigger::Trigger,
    unwind::PanicLocation,
};
#[cfg(feature = "histograms")]
pub use crate::{
    histogram::{Histogram, HistogramBucket, RunHistograms},
    pool::Histograms,
};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the book are run as tests: those of each page that has some. Two pages need features.
#[cfg(doctest)]
#[doc = include_str!("../docs/book/first-task.md")]
struct FirstTask;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/series.md")]
struct Series;

#[cfg(all(doctest, feature = "cron"))]
#[doc = include_str!("../docs/book/calendar.md")]
struct Calendar;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/cancelling.md")]
struct Cancelling;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/timers.md")]
struct Timers;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/groups.md")]
struct Groups;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/testing-time.md")]
struct TestingTime;

#[cfg(all(doctest, feature = "histograms", feature = "metrics", feature = "serde"))]
#[doc = include_str!("../docs/book/observability.md")]
struct Observability;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/driven.md")]
struct Driven;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/precision.md")]
struct Precision;

#[cfg(doctest)]
#[doc = include_str!("../docs/book/coming-from-tokio.md")]
struct ComingFromTokio;

#[cfg(doctest)]
#[doc = include_str!("../docs/coming-from-java.md")]
struct ComingFromJava;
