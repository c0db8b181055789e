//! Several tasks as one: submitted together, and waited for: all of them, the first that succeeds, or each as
//! it ends.
//!
//! Neither a task nor the pool knows of this module. Everything here is made of futures and of the poll that
//! each of their tasks has ([`wait`](crate::wait)). A [`TaskSet`] waits for its futures one after the other:
//! all have ended when the last that was waited for has, and no more than one waker is kept at a time. An
//! [`ExecutorCompletionService`] gives each task a waker of its own, and so learns the order in which they
//! end. [`invoke_all`](crate::Handle::invoke_all) is a set that cancels what it has submitted when it cannot
//! go on, [`invoke_any`](crate::Handle::invoke_any) is a completion service that does.
//!
//! A wait without a limit that is known not to end is refused, as that for a single future is; see
//! [`completion`] for a wait for whichever of several ends first.

mod completion;
mod invoke;
mod set;

pub use self::{
    completion::ExecutorCompletionService,
    invoke::{InvokeAnyError, InvokeError},
    set::{CancelAllOnDrop, JoinAll, TaskSet},
};
