//! How a task ends other than by a run, and what every ended task leaves behind.
//!
//! Under the task's lock, the thread that ends a task publishes the end, and takes out the waiters and the values that
//! only some tasks have ([`Leftovers`]). After releasing the lock, the thread proceeds in this order:
//!
//! 1. It does the work that the extensions have deferred, such as work for other tasks.
//! 2. It cancels the task's token if the task timed out.
//! 3. It wakes the waiters.
//! 4. It drops user values: first the extensions' values, and last the closure, or a result that no call will take.
//!
//! The waiters are woken before the drops because the drop of a captured executor joins its workers, one of which may
//! be waiting for this very task. The task's entry leaves the queue last, so the pool does not terminate before the
//! drops are done. A drop that waited for the pool to terminate would therefore wait for itself. Each thread knows
//! which tasks' values it is dropping ([`is_releasing`]), so a wait for termination inside a drop first removes the
//! entries of those tasks. Each value is dropped separately, through [`unwind`](crate::unwind), so a panic in one drop
//! does not stop the others.

use std::{any::Any, cell::RefCell, mem::ManuallyDrop, task::Waker};

use super::{Cancellation, Drops, FailedRun, Hooks, Task, cell::Parts, extensions::Deferred};
use crate::{
    CancelReason, CancellationToken, Failure, TaskError,
    sync::thread_local,
    time::Timestamp,
    trace,
    unwind::{discard, wake_all},
};

thread_local! {
    /// The addresses of the tasks that this thread has ended and whose values it is dropping.
    static RELEASED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks the calling thread as dropping the values of a task, until the thread drops this.
struct Releasing;

impl Releasing {
    fn enter(task: &Task) -> Self {
        let _ = RELEASED.try_with(|tasks| tasks.borrow_mut().push(address(task)));
        Self
    }
}

impl Drop for Releasing {
    fn drop(&mut self) {
        let _ = RELEASED.try_with(|tasks| tasks.borrow_mut().pop());
    }
}

/// Returns `true` if the calling thread is dropping values of a task that it has ended, or if the thread is ending.
pub(crate) fn is_releasing() -> bool {
    RELEASED.try_with(|tasks| !tasks.borrow().is_empty()).unwrap_or(true)
}

fn address(task: &Task) -> usize {
    std::ptr::from_ref(task).cast::<()>() as usize
}

enum Request<'a> {
    Cancel(CancelReason),
    /// To end the task because this limit expired. A series keeps the run that exceeded the limit as its last failure.
    TimeOut(Timestamp, &'a mut Option<FailedRun>),
    /// To drop the result, now or as soon as there is one.
    Abandon,
}

pub(crate) struct End<'a> {
    task: &'a Task,
    request: Request<'a>,
    drops: Drops<'a>,
    found: Cancellation,
    rest: Option<Box<Leftovers>>,
}

impl End<'_> {
    /// Changes the state as requested. Returns `true` if the payload must empty the node. Called under the task's lock.
    pub(super) fn decide(&mut self, parts: &mut Parts<'_>) -> bool {
        let Request::Cancel(reason) = self.request else { return self.decide_rare(parts) };
        let found = parts.stage.cancel(reason);
        self.note(found, parts)
    }

    #[cold]
    fn decide_rare(&mut self, parts: &mut Parts<'_>) -> bool {
        match &mut self.request {
            Request::Abandon => return self.abandon(parts),
            Request::TimeOut(limit, _) if parts.has_other_limit(*limit) => return false,
            Request::Cancel(_) | Request::TimeOut(..) => {}
        }
        let found = parts.stage.cancel(CancelReason::TimedOut);
        if let Request::TimeOut(_, failure @ Some(_)) = &mut self.request {
            if found != Cancellation::TooLate {
                parts.extras().last_failure = failure.take();
            }
        }
        self.note(found, parts)
    }

    /// Notes `found`, the state in which the request found the task. Takes out the leftovers, unless the request came
    /// too late. Returns `true` if the closure is in the node.
    #[inline]
    fn note(&mut self, found: Cancellation, parts: &mut Parts<'_>) -> bool {
        self.found = found;
        if found == Cancellation::TooLate {
            return false;
        }
        let is_waiting = matches!(found, Cancellation::Waiting(_));
        if !parts.is_plain() || parts.is_periodic() {
            self.note_extended(is_waiting, parts);
        }
        is_waiting
    }

    #[inline(never)]
    fn note_extended(&mut self, is_waiting: bool, parts: &mut Parts<'_>) {
        let mut plan = None;
        if is_waiting {
            self.found = Cancellation::Waiting(parts.slot());
            plan = parts.plan.as_deref_mut().and_then(Option::take);
        }
        self.rest.insert(Box::new(Leftovers::of(parts).unwrap_or_default())).keep(plan);
    }

    fn abandon(&mut self, parts: &mut Parts<'_>) -> bool {
        match parts.claim() {
            Some(Ok(())) => return true,
            Some(Err(error)) => {
                self.rest.get_or_insert_default().keep(error.into_failure());
            }
            None => parts.extras().is_abandoned = true,
        }
        false
    }

    /// Releases the leftovers, and then calls `drop_taken` to drop what the payload has taken out of the node. Reports
    /// the failure that `drop_taken` returns after dropping an `Err`. The caller holds no lock.
    pub(super) fn release(&mut self, drop_taken: &mut dyn FnMut() -> Option<Failure>) {
        let _releasing = Releasing::enter(self.task);
        if let Some(rest) = self.rest.take() {
            let timed_out = matches!(self.request, Request::TimeOut(..));
            rest.release(timed_out, self.task, self.drops);
        }
        let mut untaken = None;
        self.drops.contain(&mut || untaken = drop_taken(), self.task);
        if let Some(failure) = untaken {
            self.drops.tell_untaken(self.task, failure);
        }
    }

    /// Like [`release`](Self::release), for a payload that has nothing to drop: only the leftovers are released.
    #[inline]
    pub(super) fn release_without_drop(&mut self) {
        if self.rest.is_some() {
            self.release(&mut || None);
        }
    }
}

pub(crate) struct Claiming<'a> {
    /// An `Option<T>`, where `T` is the type of the result.
    pub(super) place: &'a mut dyn Any,
    error: Option<TaskError>,
}

impl Claiming<'_> {
    pub(super) fn decide(&mut self, parts: &mut Parts<'_>) -> bool {
        parts.stage.claim_value() || self.decide_rare(parts)
    }

    #[cold]
    fn decide_rare(&mut self, parts: &mut Parts<'_>) -> bool {
        match parts.claim() {
            Some(Ok(())) => return true,
            Some(Err(error)) => self.error = Some(error),
            None => {}
        }
        false
    }
}

impl Task {
    /// Takes the result; `None` until the task has ended. A value or a failure can be taken once, and the reason for a
    /// cancellation any number of times. `T` is the type of the task's result.
    #[inline]
    pub(crate) fn take_result<T: 'static>(&self) -> Option<Result<T, TaskError>> {
        let mut place = None::<T>;
        let mut claiming = Claiming { place: &mut place, error: None };
        self.claim(&mut claiming);
        match claiming.error {
            Some(error) => Some(Err(error)),
            None => place.map(Ok),
        }
    }

    /// Ends the task as cancelled, unless it has ended. Wakes its waiters, and drops the closure if no worker has it.
    #[inline]
    pub(crate) fn cancel(&self, reason: CancelReason, drops: Drops<'_>) -> Cancellation {
        self.end_by(Request::Cancel(reason), drops)
    }

    #[inline(always)]
    pub(crate) fn end_as_cancelled(
        &self,
        id: u64,
        reason: CancelReason,
        hooks: &Hooks,
    ) -> Cancellation {
        let found = self.cancel(reason, hooks.drops(id));
        if trace::is_listening() && found != Cancellation::TooLate {
            trace::cancelled(id, self.name().as_deref(), &reason);
        }
        found
    }

    /// Ends the task as timed out, unless it has ended, or is a one-shot task whose limit is no longer `limit`. A
    /// series keeps `failure`, the run that took too long, as its last failure.
    pub(crate) fn time_out(
        &self,
        limit: Timestamp,
        mut failure: Option<FailedRun>,
        drops: Drops<'_>,
    ) -> Cancellation {
        self.end_by(Request::TimeOut(limit, &mut failure), drops)
    }

    /// Drops the result, now or as soon as there is one, since no call will take it.
    pub(crate) fn abandon(&self, drops: Drops<'_>) {
        self.end_by(Request::Abandon, drops);
    }

    #[inline]
    fn end_by(&self, request: Request<'_>, drops: Drops<'_>) -> Cancellation {
        let (found, rest) = (Cancellation::TooLate, None);
        // The payload releases what is left. Drop glue would check that once more at each call.
        let mut end = ManuallyDrop::new(End { task: self, request, drops, found, rest });
        self.end(&mut end);
        debug_assert!(end.rest.is_none(), "all of it is the user's");
        end.found
    }

    /// Returns `true` if the calling thread has ended the task, and is dropping its values. A thread that is ending has
    /// no list of such tasks, and gets `true` for every task that has ended.
    pub(crate) fn is_released_here(&self) -> bool {
        let is_listed = RELEASED.try_with(|tasks| tasks.borrow().contains(&address(self)));
        is_listed.unwrap_or_else(|_| self.state().is_done())
    }
}

/// What an ended task leaves behind, apart from its closure and its result. Dropping this runs user code.
#[derive(Default)]
pub(crate) struct Leftovers {
    pub(crate) deferred: Deferred,
    /// Values that [`release`](Self::release) drops one by one.
    pub(crate) values: Vec<Box<dyn Send>>,
    waiters: Vec<Waker>,
    token: Option<CancellationToken>,
}

impl Leftovers {
    pub(crate) fn keep(&mut self, value: Option<impl Send + 'static>) {
        self.values.extend(value.map(|value| Box::new(value) as _));
    }

    /// Takes out what the ended task leaves behind; `None` for a plain task.
    #[inline]
    pub(super) fn of(parts: &mut Parts<'_>) -> Option<Self> {
        if parts.is_plain() { None } else { Self::of_extended(parts) }
    }

    #[inline(never)]
    fn of_extended(parts: &mut Parts<'_>) -> Option<Self> {
        let (mut left, (extensions, core)) = (Self::default(), parts.split());
        extensions.on_end(&core, &mut left);
        let extras = parts.extras_if_any()?;
        left.keep(extras.around.take());
        left.keep(extras.submitter.take());
        left.waiters = extras.waiters.take_all();
        left.waiters.extend(extras.awaiting.take());
        left.token.clone_from(&extras.token);
        Some(left)
    }

    /// Does the deferred work, cancels the token if `timed_out`, wakes the waiters, and drops the values. The caller
    /// holds no lock.
    #[inline(never)]
    pub(super) fn release(self, timed_out: bool, task: &Task, drops: Drops<'_>) {
        let Self { deferred, values, waiters, token } = self;
        deferred.run();
        match &token {
            Some(token) if timed_out => token.cancel(),
            Some(token) => token.set_limit(None),
            None => {}
        }
        wake_all(waiters);
        for value in values {
            let mut value = Some(value);
            drops.contain(&mut || drop(value.take()), task);
        }
        discard(token);
    }
}
