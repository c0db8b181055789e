//! A scheduled thread-pool executor: Java's `ScheduledThreadPoolExecutor`, rebuilt for Rust.
//!
//! A program hands closures to a fixed pool of threads, which run them after a delay, at a fixed
//! rate or with a fixed delay. Each call returns a future that can be waited for, awaited and
//! cancelled. The pool shuts down gracefully. No async runtime is needed, and it works beside
//! any; there is no unsafe code.
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
//! # What is promised
//!
//! * **A task never starts early**, and tasks start in the order of their deadlines; those with
//!   the same deadline in the order in which they were submitted.
//! * **Every future ends**: with a result, a panic, or the reason why the task was cancelled. No
//!   shutdown, refusal or drop leaves anybody waiting for ever.
//! * **Cancelling removes**: when `cancel` returns, a task that waited is out of the queue and
//!   its captures are dropped.
//! * **Runs of a periodic task never overlap**, and each sees what the one before did.
//! * **A panic is contained and reported.** It ends its task and nothing else, whether it comes
//!   from the closure, a capture that is dropped, or a waker. (One cannot be contained by any
//!   library: a one-shot body that panics while one of its captures panics in its drop.)
//! * **No arithmetic overflows**: a delay of zero is now, `Duration::MAX` is never.
//! * **An idle pool does nothing**: no ticks, no wake-ups.
//!
//! # Finding one's way
//!
//! | to | use |
//! |---|---|
//! | make an executor | [`ScheduledThreadPoolExecutor::new`], [`builder`](ScheduledThreadPoolExecutor::builder) |
//! | run something | [`schedule`](Handle::schedule), [`schedule_at_fixed_rate`](Handle::schedule_at_fixed_rate), … on [`Handle`] |
//! | name a task, choose what becomes of missed runs, get a refused closure back | [`Handle::task`] |
//! | wait, look, cancel | [`ScheduledFuture`] |
//! | run several and wait for all, or for the first that succeeds | [`invoke_all`](Handle::invoke_all), [`invoke_any`](Handle::invoke_any) |
//! | join or cancel several as one, or take them as they end | [`TaskSet`], [`ExecutorCompletionService`] |
//! | know, inside a task, which one it is, and whether to stop | [`current_task`], [`CancellationToken`] |
//! | stop | [`shutdown`](Handle::shutdown), [`shutdown_now`](Handle::shutdown_now), [`shutdown_within`](Handle::shutdown_within), [`close`](ScheduledThreadPoolExecutor::close), or drop it |
//! | limit a task's time, go on after a panic | [`TaskBuilder::timeout`], [`TaskBuilder::on_panic`] |
//! | bound what waits, decide what becomes of the rest | [`Builder::max_pending`], [`RejectedExecutionHandler`] |
//! | be called around each run, or when something panics | [`Builder::before_execute`], [`Builder::decorate_task`], [`Builder::panic_handler`] |
//! | look | [`statistics`](Handle::statistics), [`pending_tasks`](Handle::pending_tasks), and `Debug` |
//! | change the number of workers, or who starts them | [`set_core_pool_size`](Handle::set_core_pool_size), [`ThreadFactory`] |
//! | have values come out when their time has come, and no threads | [`DelayQueue`] |
//! | test code that is timed | [`ManualClock`] |
//!
//! # Time
//!
//! Delays count on the system's monotonic clock, to the nanosecond; what the operating system
//! adds when it wakes a thread (on Linux some 50 to 100 microseconds) is the lateness to expect.
//! On Linux and macOS that clock stands still while the machine sleeps.
//!
//! # Features
//!
//! * `tracing` (default): spans and events about every task, with the target `punctual`. They
//!   cost next to nothing while nobody listens.
//! * `timer-slack` (default): on Linux, workers ask the system to wake them on time.
//! * `stream`: [`DelayQueue::stream`] is a `futures_core::Stream`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layer 4: the face.
mod builder;
pub mod delay_queue;
mod error;
mod executor;
mod future;
mod submit;
mod together;
// Layer 3: the machine.
mod pool;
// Layer 2: two towers that do not know each other, and the token both sides hold.
mod queue;
mod task;
mod token;
// Layer 1: time, waiting, foreign code, what is said about it.
mod time;
mod trace;
mod unwind;
mod wait;
// Layer 0: locks, atomics, parked threads.
mod sync;

pub use crate::{
    builder::Builder,
    delay_queue::{DelayQueue, Delayed},
    error::{
        CancelReason, ConfigError, InvokeAnyError, InvokeError, Panic, Rejected,
        RejectedExecutionError, TaskError, WouldDeadlock,
    },
    executor::{Handle, QueuedTask, ScheduledThreadPoolExecutor},
    future::{CancelHandle, CancelOnDrop, ScheduledFuture},
    pool::{
        AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
        ExecutorState, PendingTask, PendingTasks, RejectedExecutionHandler, RejectedTask,
        Rejection, ShutdownReport, Statistics, TaskSummary, ThreadFactory, Worker,
    },
    submit::TaskBuilder,
    task::{
        Done, FailedRun, MissedRuns, Next, PanicPolicy, PanicReport, PanicSource, Submission,
        TaskContext, TaskId, TaskState, current_task,
    },
    time::{Clock, ManualClock},
    together::{CancelAllOnDrop, ExecutorCompletionService, JoinAll, TaskSet},
    token::{CancellationToken, Cancelled},
    unwind::PanicLocation,
};

/// The README's example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
