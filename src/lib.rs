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
//!   from the closure, a capture that is dropped, or a waker. (What no library can contain is in
//!   [The process](#the-process).)
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
//! | stop | [`shutdown`](Handle::shutdown), [`shutdown_now`](Handle::shutdown_now), [`shutdown_within`](Handle::shutdown_within), [`close`](ScheduledThreadPoolExecutor::close), or drop it ([`DropPolicy`]) |
//! | stop in async code | [`shutdown_background`](ScheduledThreadPoolExecutor::shutdown_background), then await [`termination`](Handle::termination); [`cancelled`](CancellationToken::cancelled) for a token |
//! | limit a task's time, go on after a panic | [`TaskBuilder::timeout`], [`TaskBuilder::on_panic`] |
//! | bound what waits, decide what becomes of the rest | [`Builder::max_pending`], [`RejectedExecutionHandler`] |
//! | be called around each run, or when something panics | [`Builder::before_execute`], [`Builder::decorate_task`], [`Builder::panic_handler`] |
//! | look | [`statistics`](Handle::statistics), [`pending_tasks`](Handle::pending_tasks), and `Debug` |
//! | change the number of workers, or who starts them | [`set_core_pool_size`](Handle::set_core_pool_size), [`ThreadFactory`] |
//! | have values come out when their time has come, and no threads | [`DelayQueue`] |
//! | test code that is timed | [`ManualClock`], and [`Handle::clock`], [`DelayQueue::clock`] for code that takes either clock |
//!
//! # Time
//!
//! Delays count on the system's monotonic clock, to the nanosecond; what the operating system
//! adds when it wakes a thread (on Linux some 50 to 100 microseconds) is the lateness to expect.
//! Setting the wall clock changes nothing. On Linux and macOS the monotonic clock stands still
//! while the machine is suspended: what was left of a delay before is left of it afterwards, and no
//! clock that goes on meanwhile is offered.
//!
//! A process that was stopped, in a debugger for instance, runs at once whatever is overdue when it
//! goes on, in the order of the deadlines; for missed runs of a fixed rate there is
//! [`MissedRuns`].
//!
//! # Under load
//!
//! Tasks that fall due faster than they are run are late, but neither early nor lost nor out of
//! order. Memory grows with the backlog: [`Statistics::pending`] shows it, and
//! [`Builder::max_pending`] bounds it. A task that blocks occupies its worker, and nothing takes the
//! worker from it; if all are occupied the others wait, as [`Statistics::active`] and
//! [`TaskContext::lateness`] show. Tasks that block for long belong in an executor of their own.
//! Which worker runs a task is not promised, nor which of several threads that submit at the same
//! time comes first.
//!
//! # The process
//!
//! * **When it ends**, because `main` returns or somebody calls `exit`, nobody waits for tasks:
//!   what is pending is abandoned, as with any thread. Drop or
//!   [`close`](ScheduledThreadPoolExecutor::close) the executor first.
//! * **What ends it.** Rust aborts the process, and no library can contain it, if a one-shot body
//!   panics and a capture of it panics in its drop at the same time (where that can be, catch the
//!   panic inside the body; captures of a periodic task outlive each run, and are contained); if a
//!   thread-local panics in its drop when a worker ends; if a task overflows its
//!   [stack](Builder::stack_size), exhausts the memory or aborts; and in a program that is built
//!   with `panic = "abort"` at the first panic.
//! * **`fork`** without `exec` is not supported: the child has none of the workers, so its copy of
//!   an executor runs nothing and waiting for it never ends, and a lock that some thread held at
//!   that moment stays locked. Fork before the first executor is made. [`std::process::Command`]
//!   is not concerned.
//!
//! # Features
//!
//! * `tracing` (default): spans and events about every task, with the target `punctual`. They
//!   cost next to nothing while nobody listens.
//! * `timer-slack` (default): on Linux, workers ask the system to wake them on time.
//! * `stream`: [`DelayQueue::stream`] is a `futures_core::Stream`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layer 4: the face.
mod auto_traits;
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
// Layer 1: time, waiting, user code, counts, threads on demand, what is said about it.
mod lazy_thread;
mod statistics;
mod time;
mod trace;
mod unwind;
mod wait;
// Layer 0: locks, atomics, parked threads; the ids of tasks.
mod id;
mod sync;

pub use crate::{
    builder::Builder,
    delay_queue::{DelayQueue, Delayed},
    error::{
        CancelReason, ConfigError, InvokeAnyError, InvokeError, Panic, Rejected,
        RejectedExecutionError, TaskError, WouldDeadlock,
    },
    executor::{DropPolicy, Handle, PendingTask, ScheduledThreadPoolExecutor, Termination},
    future::{CancelHandle, CancelOnDrop, ScheduledFuture},
    id::{ParseTaskIdError, TaskId},
    pool::{
        AbortPolicy, BlockPolicy, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
        DrainedTask, DrainedTasks, ExecutorState, RejectedExecutionHandler, RejectedTask,
        Rejection, Shared, ShutdownReport, Statistics, StockPolicy, TaskSummary, ThreadFactory,
        Worker,
    },
    submit::TaskBuilder,
    task::{
        Done, FailedRun, MissedRuns, PanicPolicy, PanicReport, PanicSource, Submission,
        TaskContext, TaskRun, TaskState, current_task,
    },
    time::{Clock, ManualClock},
    together::{CancelAllOnDrop, ExecutorCompletionService, JoinAll, TaskSet},
    token::{CancellationToken, Cancelled, WaitForCancellation},
    unwind::PanicLocation,
};

/// The README's example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
