//! Which of the public types a panic cannot leave broken: `UnwindSafe` and `RefUnwindSafe`.
//!
//! The compiler gives a type these traits if all that it is made of has them. Locks, trait objects
//! and the user's closures do not, so without this file no handle could be used inside
//! [`catch_unwind`](std::panic::catch_unwind). It is said here, for each group of types, why it is
//! true all the same. What a type is not promised here is decided by its fields, and
//! `tests/auto_traits.rs` lists the outcome for every public type.
//!
//! # Whatever is behind a lock
//!
//! **No user code runs under a lock of this crate**, and no user value is dropped under one: all
//! of it goes through [`unwind`](crate::unwind), which asserts it in debug builds. A panic of the
//! user's comes from user code, so it never unwinds out of a critical section, and no other thread
//! finds a change half done. (That is also why the locks have no poisoning: `sync`.) One exception
//! is asked for by name: a `CheapClone` is cloned under the lock of its queue. Looking is all
//! that happens there; a clone that panics in spite of its promise interrupts no change.
//!
//! What the caller's own thread does *between* two critical sections can be interrupted, by a
//! hook, a waker or a thread factory that panics. Each of these is called when the state is whole,
//! or has a guard that makes it whole again in its drop (`Search`, `Loan`, `Member`).
//!
//! # Closures of the user's
//!
//! A task's closure that has panicked is dropped, or goes on if its `PanicPolicy` says so: the user
//! has decided then what a half-changed capture means. Hooks, factories and handlers are called
//! again after one of them has panicked, whether or not there is a `catch_unwind` of the user's
//! around anything: what they keep behind their own locks has to bear that anyway.
//!
//! # Types of a `T`
//!
//! * A future has a result that nobody sees before it is moved out, whole, to one caller, as by a
//!   `JoinHandle` or a channel. What the caller does with it afterwards is no matter of the future.
//!   So nothing is asked of `T`.
//! * A [`DelayQueue`] gives out clones as well: after a panic an `Rc<Cell<_>>` that was
//!   [looked at](DelayQueue::peek) is still in the queue, in whatever state. So it asks for
//!   `T: UnwindSafe`, and that is enough for a *reference* to one, which is what everyone has: no
//!   `&T` of what is inside is ever given out. Whoever waits for it (`NextExpired`, `Drain`, ...) has such a
//!   reference, and follows.
//! * What owns elements in the open (`Expired`, `Refused`, `Iter`, ...) is as safe as they are.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::{
    builder::Builder,
    delay_queue::DelayQueue,
    error::{ConfigError, Panic, RejectionReason},
    executor::Handle,
    future::{CancelHandle, ScheduledFuture},
    pool::{
        DrainedTask, DrainedTasks, RejectedExecutionError, RejectedTask, Rejection, Shared, Worker,
    },
    submit::TaskBuilder,
    task::{self, TaskContext},
    time::ManualClock,
    together::ExecutorCompletionService,
    token::CancellationToken,
};

macro_rules! unwind_safe {
    ($($type:ty),+ $(,)?) => {$(
        impl UnwindSafe for $type {}
        impl RefUnwindSafe for $type {}
    )+};
}

// Behind a lock, or a count of who holds what is behind one.
unwind_safe!(Handle, TaskBuilder<'_>, CancelHandle, TaskContext, CancellationToken, ManualClock);

impl<T> UnwindSafe for ScheduledFuture<T> {}
impl<T> RefUnwindSafe for ScheduledFuture<T> {}

impl<T> UnwindSafe for ExecutorCompletionService<T> {}
impl<T> RefUnwindSafe for ExecutorCompletionService<T> {}

impl<T: UnwindSafe> UnwindSafe for DelayQueue<T> {}
impl<T: UnwindSafe> RefUnwindSafe for DelayQueue<T> {}

// These own callbacks and tasks, which they call or drop behind the door and never look into.
unwind_safe!(Builder, DrainedTask, DrainedTasks, RejectedExecutionError);
unwind_safe!(RejectedTask<'_>, Rejection);

impl<T: ?Sized> UnwindSafe for Shared<T> {}
impl<T: ?Sized> RefUnwindSafe for Shared<T> {}

// The worker's loop, which contains what its tasks throw; and the way into a task, which can be gone
// once. A wrapper that catches what comes out of it has no `Done` and can only let it go on.
unwind_safe!(Worker, task::TaskRun<'_>);

// A payload, or the system's error, is moved in when it is made, is never changed, and is moved out
// whole.
unwind_safe!(ConfigError, Panic, RejectionReason);
