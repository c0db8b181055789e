//! Launching: how a node made from a closure gets its settings, and enters its pool.
//!
//! A task without settings, submitted by [`schedule`] or [`execute`], goes straight into the queue if all workers of
//! its pool have been started, the pool adds nothing to its tasks, and no subscriber listens. Every other task goes
//! through [`TaskBuilder::launch`], which takes these steps:
//!
//! 1. The submitter announces itself to the task's group, which cannot terminate until the submission is over. A task
//!    that is refused in this step or the next still gets its extensions, since the error hands it back ready to run.
//! 2. The submitter starts a worker if one is missing, and a timer thread if the task's time limit needs one. The
//!    submitter calls the executor's decorator, whose panic it passes on, and gives the task its extensions and the
//!    code around its runs.
//! 3. The pool admits the task. From here on the task may run, be cancelled, and end.
//! 4. The submitter enters the task into its group, and arms the time limit of a one-shot task. If the task has already
//!    ended, neither action has any effect.

use std::{
    panic::{self, Location},
    time::{Duration, Instant},
};

use super::TaskBuilder;
use crate::{
    CancelReason, MissedRuns, RejectedExecutionError, RejectionReason, ScheduledFuture, Submission,
    TaskHandle,
    entry::{Ticket, Timing},
    feature::{Requested, submitted},
    pool::{Pool, PoolRef, PoolRefs, Staffing},
    schedule::Schedule,
    sync::Arc,
    task::{Around, Drops, Node, Plan, Task},
    time::Timestamp,
    trace,
    trigger::Trigger,
    unwind::{PanicPayload, contain, discard},
};

impl TaskBuilder<'_> {
    #[track_caller]
    pub(super) fn launch_after(
        self,
        task: Arc<Task>,
        delay: Duration,
    ) -> Result<TaskHandle, RejectedExecutionError> {
        let now = self.clock().read();
        self.launch(task, now, Timing::At(now.after(delay)))
    }

    #[track_caller]
    pub(super) fn launch_at(
        self,
        task: Arc<Task>,
        instant: Option<Instant>,
    ) -> Result<TaskHandle, RejectedExecutionError> {
        let clock = self.clock();
        let now = clock.read();
        // An instant in the past means now: the task queues up behind those that are due already.
        let deadline = clock.deadline_of(instant).max(now);
        self.launch(task, now, Timing::At(deadline))
    }

    #[track_caller]
    pub(super) fn launch_periodic(
        self,
        task: Arc<Task>,
        initial_delay: Duration,
        period: Duration,
        kind: fn(Duration, MissedRuns) -> Schedule,
    ) -> Result<TaskHandle, RejectedExecutionError> {
        let now = self.clock().read();
        let period = kind(period, self.missed.unwrap_or(MissedRuns::Burst));
        task.set_plan(Plan::new(period, self.on_failure));
        self.launch(task, now, Timing::At(now.after(initial_delay)))
    }

    #[track_caller]
    pub(super) fn launch_series<G: Trigger>(
        self,
        task: Arc<Task>,
        trigger: G,
    ) -> Result<TaskHandle, RejectedExecutionError> {
        let clock = self.clock();
        let (now, missed) = (clock.read(), self.missed.unwrap_or(MissedRuns::Coalesce));
        let shared = self.requested.shares_trigger().then_some(self.name.as_deref());
        match contain(|| Schedule::of(trigger, missed, shared, clock, now)) {
            Ok((period, first)) => {
                task.set_plan(Plan::new(period, self.on_failure));
                self.launch(task, now, first.into())
            }
            Err(payload) => resume_unwind(task, payload),
        }
    }

    #[inline(never)]
    #[track_caller]
    fn launch(
        self,
        task: Arc<Task>,
        now: Timestamp,
        timing: Timing,
    ) -> Result<TaskHandle, RejectedExecutionError> {
        let deadline = timing.due();
        let pool_ref = self.pool_refs.local();
        let (unplannable, look, has_trigger) = task.look_at_plan();
        let joined = self.requested.join(pool_ref.pool());
        let (_joining, refusal) =
            joined.map_or_else(|reason| (None, Some(reason)), |it| (it, None));
        // First, since the code that limits the runs of a periodic task needs the timer thread's queue.
        let staffed = match unplannable.or(refusal) {
            Some(reason) => Err(reason),
            None => ensure_threads(pool_ref, &self.requested),
        };
        let listened_to = trace::is_listening().then(|| self.name.clone());
        let (needs_ticket, asks_handler) = (self.requested.needs_ticket(), !self.aborts);
        if let Err(payload) = self.extend(&*task, has_trigger, now, deadline) {
            resume_unwind(task, payload);
        }
        // Not earlier: the error hands back the refused task, and that needs the code around its runs as well.
        let staffing = match staffed {
            Ok(staffing) => staffing,
            Err(reason) => return Err(pool_ref.refuse(task, now, deadline, reason)),
        };
        let timing = timing.no_later_than(look);
        let ticket = match pool_ref.admit(task.clone(), now, timing, staffing, asks_handler) {
            Ok(ticket) => ticket,
            Err(refused) => return end_or_error(task, pool_ref, refused),
        };
        if needs_ticket {
            submitted(&task, pool_ref, ticket, deadline, deadline > now);
        }
        if let Some(name) = listened_to.filter(|_| ticket.has_slot()) {
            trace::scheduled(ticket.sequence, name.as_deref(), deadline.since(now));
        }
        Ok(TaskHandle::new(task, pool_ref.clone(), ticket))
    }

    /// Gives a task the parts that only some tasks have. Fails with the panic's payload if the decorator panics.
    #[track_caller]
    pub(super) fn extend(
        self,
        task: &Task,
        has_trigger: bool,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Result<(), PanicPayload> {
        let pool_ref = self.pool_refs.local();
        let is_periodic = task.is_periodic();
        let around = self.around(is_periodic, pool_ref, (now, deadline), Location::caller())?;
        let submitter = pool_ref.pool().submitter_span();
        let Self { name, requested, .. } = self;
        let extensions = requested.extensions(task, pool_ref.pool(), has_trigger, deadline);
        if name.is_some() || around.is_some() || submitter.is_some() || !extensions.is_empty() {
            task.extend(|extras| {
                (extras.name, extras.submitter) = (name, submitter);
                (extras.around, extras.extensions) = (around, extensions);
            });
        }
        Ok(())
    }

    /// Returns the code around each run, if there is any. From the inside out: the time limit of a periodic task, the
    /// executor's decorator, and the watch for slow runs. Fails with the panic's payload if the decorator panics.
    #[inline]
    fn around(
        &self,
        is_periodic: bool,
        pool_ref: &PoolRef,
        (now, deadline): (Timestamp, Timestamp),
        scheduled_at: &'static Location<'static>,
    ) -> Result<Option<Around>, PanicPayload> {
        let name = self.name.as_deref();
        let pool = pool_ref.pool();
        let warn_after = self.warn_after.or(pool.warn_after).filter(|limit| *limit < Duration::MAX);
        let delay = deadline.delay_at(now);
        let submission = || Submission { name, is_periodic, delay, scheduled_at };
        let mut around = if is_periodic { self.requested.around(pool_ref) } else { None };
        if let Some(decorate) = &pool.callbacks.decorate {
            let decorator = contain(|| decorate(&submission()))?;
            around = Some(decorator.enclose(around));
        }
        if let Some((watch, limit)) = pool.callbacks.watch.as_ref().zip(warn_after) {
            around = Some(watch(&submission(), limit, pool).enclose(around));
        }
        Ok(around)
    }
}

/// Submits a task without settings, bypassing the builder if the pool [admits it at once](admits_at_once).
#[inline]
#[track_caller]
pub(crate) fn schedule<T: Send + 'static>(
    pool_refs: &Arc<PoolRefs>,
    delay: Duration,
    closure: impl FnOnce() -> T + Send + 'static,
) -> Result<ScheduledFuture<T>, RejectedExecutionError> {
    submit(pool_refs, Node::once(closure), delay).map(ScheduledFuture::new)
}

/// Like [`schedule`], without a delay and without a future.
#[inline]
#[track_caller]
pub(crate) fn execute(
    pool_refs: &Arc<PoolRefs>,
    closure: impl FnOnce() + Send + 'static,
) -> Result<(), RejectedExecutionError> {
    submit_unawaited(pool_refs, Node::once(closure))
}

#[inline(never)]
#[track_caller]
fn submit(
    pool_refs: &Arc<PoolRefs>,
    task: Arc<Task>,
    delay: Duration,
) -> Result<TaskHandle, RejectedExecutionError> {
    let pool = pool_refs.pool();
    if !admits_at_once(pool) {
        return TaskBuilder::new(pool_refs).launch_after(task, delay);
    }
    let now = pool.clock().read();
    let timing = Timing::At(now.after(delay));
    let pool_ref = pool_refs.local();
    let admitted = pool_ref.admit(task.clone(), now, timing, Staffing::Complete, true);
    match admitted {
        Ok(ticket) => Ok(TaskHandle::new(task, pool_ref.clone(), ticket)),
        Err(refused) => end_or_error(task, pool_ref, refused),
    }
}

#[inline(never)]
#[track_caller]
fn submit_unawaited(
    pool_refs: &Arc<PoolRefs>,
    task: Arc<Task>,
) -> Result<(), RejectedExecutionError> {
    let pool_ref = pool_refs.local();
    let pool = pool_ref.pool();
    if !admits_at_once(pool) {
        return TaskBuilder::new(pool_refs).launch_after(task, Duration::ZERO).map(drop);
    }
    let now = pool.clock().read();
    let admitted = pool_ref.admit(task, now, Timing::At(now), Staffing::Complete, true);
    match admitted {
        Ok(_) => Ok(()),
        Err(refused) if has_ended(&refused) => Ok(()),
        Err(refused) => Err(refused),
    }
}

/// Returns `true` if a plain task can go straight into the queue: all wanted workers have been started, the pool adds
/// nothing to its tasks, and no subscriber listens.
#[inline]
fn admits_at_once(pool: &Pool) -> bool {
    pool.workers.is_complete() && !pool.extends_submissions && !trace::is_listening()
}

/// Detaches a refused task from its features. Returns a handle if the task has ended, and otherwise the error.
#[cold]
fn end_or_error(
    task: Arc<Task>,
    pool_ref: &PoolRef,
    refused: RejectedExecutionError,
) -> Result<TaskHandle, RejectedExecutionError> {
    task.leave_schedule();
    if !has_ended(&refused) {
        return Err(refused);
    }
    // It was briefly queued (`rescue` in `pool::submitting`), where another thread cancelled it: a future says so.
    let ticket = Ticket::without_slot(refused.task().id().0);
    Ok(TaskHandle::new(task, pool_ref.clone(), ticket))
}

/// Returns `true` if the refused task, which the error still holds, has ended.
fn has_ended(refused: &RejectedExecutionError) -> bool {
    refused.task().task.as_ref().is_some_and(|task| task.state().is_done())
}

/// Starts a worker if one is missing. If the task has a time limit, also starts a timer thread if one is missing.
#[inline]
fn ensure_threads(pool_ref: &PoolRef, requested: &Requested) -> Result<Staffing, RejectionReason> {
    let pool = pool_ref.pool();
    let staffed = pool.ensure_worker().and_then(|it| requested.ensure_threads(pool).map(|()| it));
    staffed.map_err(|error| {
        pool.rejections.count();
        RejectionReason::Spawn(error)
    })
}

/// Ends a task, contains any panic from dropping it, and then resumes the panic that user code raised during the
/// submission.
#[cold]
fn resume_unwind(task: Arc<Task>, payload: PanicPayload) -> ! {
    let _ = task.cancel(CancelReason::Rejected, Drops::UNREPORTED);
    discard(task);
    panic::resume_unwind(payload)
}
