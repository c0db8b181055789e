//! Unwind safety: which of the public types are `UnwindSafe` and `RefUnwindSafe`, and why.
//!
//! The compiler implements these traits for a type if all its fields have them. Locks, trait objects
//! and user closures do not, so without this file no handle could be used inside
//! [`catch_unwind`](std::panic::catch_unwind). This file implements them for groups of types, and says
//! why that is right. For all other types the fields decide. `tests/behaviour/auto_traits.rs` lists the outcome
//! for every public type.
//!
//! # State behind a lock
//!
//! **No user code runs under a lock of this crate**, and no user value is dropped under one: all of it
//! goes through [`unwind`](crate::unwind), which asserts it in debug builds. A user's panic comes from
//! user code, so it never unwinds out of a critical section, and no other thread finds a change half
//! done. (That is also why the locks have no poisoning: `sync`.) There is one exception, which the
//! user asks for by name: a `CheapClone` is cloned under the lock of its queue. Nothing is changed
//! there, so a clone that panics in spite of its promise interrupts no change.
//!
//! A hook, a waker or a thread factory that panics can interrupt what the caller's own thread does
//! *between* two critical sections. Each of these is called when the state is consistent, or under a
//! guard whose drop makes it consistent again (`Search`, `Reservation`, `WorkerThread`).
//!
//! # User closures
//!
//! A task's closure that has panicked is dropped, unless its `FailurePolicy` resumes it: then the user
//! has decided what a half-changed capture means. Hooks, factories, handlers and gates are called again after
//! one of them has panicked, whether or not the user has a `catch_unwind` around anything, so what
//! they keep behind their own locks has to bear that anyway.
//!
//! # Types with a `T`
//!
//! * The result of a future is not visible before it is moved out, whole, to one caller, as with a
//!   `JoinHandle` or a channel. What the caller does with it afterwards does not concern the future.
//!   So nothing is required of `T`.
//! * A [`DelayQueue`] also returns clones: after a panic an `Rc<Cell<_>>` that was
//!   [peeked at](DelayQueue::peek) is still in the queue, in whatever state. So it requires
//!   `T: UnwindSafe`, which is also enough for a *reference* to the queue, because no `&T` of an
//!   element inside is ever returned. The types that wait for it (`NextExpired`, `Drain`, ...) hold
//!   such a reference, and follow.
//! * Types that own elements directly (`Expired`, `Refused`, `Iter`, ...) are as safe as the
//!   elements.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::{
    builder::Builder,
    delay_queue::DelayQueue,
    drained::{DrainedTask, DrainedTasks, RejectedExecutionError},
    driven::DrivenExecutor,
    error::{ConfigError, Failure, RejectionReason},
    executor::Handle,
    future::{ScheduledFuture, TaskHandle},
    group::{Group, GroupBuilder, GroupTermination},
    rejection::{RejectedTask, Rejection},
    shared::Shared,
    task::{self, TaskContext},
    task_builder::TaskBuilder,
    thread_factory::Worker,
    time::ManualClock,
    timer::{Interval, Sleep},
    together::ExecutorCompletionService,
    token::CancellationToken,
};

macro_rules! unwind_safe {
    ($($type:ty),+ $(,)?) => {$(
        impl UnwindSafe for $type {}
        impl RefUnwindSafe for $type {}
    )+};
}

// Locks, and reference counts of what is behind a lock.
unwind_safe!(Sleep, Interval);
unwind_safe!(Group, GroupBuilder<'_>, GroupTermination);
// No panic of a task leaves it; one of a future in `run_until` leaves nothing half done.
unwind_safe!(DrivenExecutor);
unwind_safe!(Handle, TaskBuilder<'_>, TaskHandle, TaskContext, CancellationToken, ManualClock);

impl<T> UnwindSafe for ScheduledFuture<T> {}
impl<T> RefUnwindSafe for ScheduledFuture<T> {}

impl<T> UnwindSafe for ExecutorCompletionService<T> {}
impl<T> RefUnwindSafe for ExecutorCompletionService<T> {}

impl<T: UnwindSafe> UnwindSafe for DelayQueue<T> {}
impl<T: UnwindSafe> RefUnwindSafe for DelayQueue<T> {}

// These own callbacks and tasks, which they call or drop through `unwind`, and never inspect.
unwind_safe!(Builder, DrainedTask, DrainedTasks, RejectedExecutionError);
unwind_safe!(RejectedTask<'_>, Rejection);

impl<T: ?Sized> UnwindSafe for Shared<T> {}
impl<T: ?Sized> RefUnwindSafe for Shared<T> {}

// The worker's loop, which contains the panics of its tasks; and the call of a task, which can be made
// once. A wrapper that catches its panic has no `Done`, and can only resume the panic.
unwind_safe!(Worker, task::TaskRun<'_>);

// The payload, or the system's error, is moved in once, is never changed, and is moved out whole.
unwind_safe!(ConfigError, Failure, RejectionReason);
