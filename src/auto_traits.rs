//! Unwind safety: which of the public types are `UnwindSafe` and `RefUnwindSafe`, and why.
//!
//! Locks, trait objects and user closures do not have these traits, so without this file no handle could be used inside
//! [`catch_unwind`](std::panic::catch_unwind). For all other types the fields decide. `tests/behaviour/auto_traits.rs` lists
//! the outcome for every public type.
//!
//! * **State behind a lock.** No user code runs and no user value is dropped under a lock of this crate
//!   ([`unwind`](crate::unwind) asserts it), so a user's panic leaves no change half done there. A `CheapClone` is cloned
//!   under the lock of its queue, where nothing is changed. What may panic *between* two critical sections, a hook, a waker
//!   or a thread factory, is called when the state is consistent, or under a guard whose drop makes it so.
//! * **User closures.** A task's closure that has panicked is dropped, unless its `FailurePolicy` resumes it: then the user
//!   has decided what a half-changed capture means. Hooks, factories, handlers and gates are called again after a panic in
//!   any case.
//! * **The result of a future** is not visible before it is moved out, whole, to one caller. So nothing is required of `T`.
//! * **A [`DelayQueue`]** also returns clones: after a panic an `Rc<Cell<_>>` that was [peeked at](DelayQueue::peek) is still
//!   in the queue, in whatever state. So it requires `T: UnwindSafe`, which is also enough for a *reference* to the queue,
//!   because no `&T` of an element inside is ever returned. Types that own elements directly are as safe as the elements.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::{
    builder::Builder,
    delay_queue::DelayQueue,
    drained::{DrainedTask, DrainedTasks, RejectedExecutionError},
    driven::DrivenExecutor,
    error::{ConfigError, Failure, RejectionReason},
    executor::Handle,
    feature::{Group, GroupBuilder, GroupTermination},
    future::{ScheduledFuture, TaskHandle},
    pool::WaitGuard,
    rejection::{RejectedTask, Rejection},
    task::{self, TaskContext},
    task_builder::TaskBuilder,
    thread_factory::Worker,
    time::ManualClock,
    timer::{Interval, Sleep},
    token::CancellationToken,
};

macro_rules! unwind_safe {
    ($($type:ty),+ $(,)?) => {$(
        impl UnwindSafe for $type {}
        impl RefUnwindSafe for $type {}
    )+};
}

// Locks, and reference counts of what is behind a lock.
unwind_safe!(Sleep, Interval, WaitGuard<'_>);
unwind_safe!(Group, GroupBuilder<'_>, GroupTermination);
// No panic of a task leaves it; one of a future in `run_until` leaves nothing half done.
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
unwind_safe!(Worker, task::TaskRun<'_>);

// The payload, or the system's error, is moved in once, is never changed, and is moved out whole.
unwind_safe!(ConfigError, Failure, RejectionReason);
