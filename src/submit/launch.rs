//! The launch: a job and its settings become a task, and the task is handed to the pool.

use std::{io, panic, time::Duration};

use super::TaskBuilder;
use crate::{
    RejectedExecutionError, RejectionReason, ScheduledFuture, Submission,
    pool::{Pool, PoolRef},
    queue::Ticket,
    sync::Arc,
    task::{Job, Runnable, Task, Wrapper},
    time::Timestamp,
    trace,
    unwind::{Payload, contain, discard},
};

impl TaskBuilder<'_> {
    /// Makes a task of the job and hands it to the pool.
    pub(super) fn launch<J: Job>(
        self,
        job: J,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Result<ScheduledFuture<J::Output>, RejectedExecutionError> {
        let pool_ref = self.pool_refs.local();
        let (has_zero_period, timeout) = (job.has_zero_period(), self.timeout);
        let limit = timeout.filter(|_| !J::IS_PERIODIC).map(|time| deadline.after(time));
        let listened_to = trace::is_listening().then(|| self.name.clone());
        let wrapper = match self.wrapper::<J>(pool_ref, now, deadline) {
            Ok(wrapper) => wrapper,
            Err(payload) => resume_unwind(job, payload),
        };
        let task = Task::new(job, self.name, wrapper);
        let task = Arc::new(match limit {
            None => task,
            Some(limit) => task.limited(limit),
        });
        // Not earlier: the error hands a refused task back, which needs its wrapper as well.
        let staffed = if has_zero_period {
            Err(RejectionReason::ZeroPeriod)
        } else {
            ensure_threads(pool_ref, timeout)
        };
        let is_staffed = match staffed {
            Ok(is_staffed) => is_staffed,
            Err(reason) => return Err(pool_ref.refuse(task, now, deadline, reason)),
        };
        match pool_ref.admit(task.clone(), now, deadline, is_staffed) {
            Ok(ticket) => {
                if let Some(limit) = limit {
                    pool_ref.set_timeout(task.clone(), ticket, limit);
                }
                if let Some(name) = listened_to {
                    trace::scheduled(ticket.sequence, name.as_deref(), deadline.since(now));
                }
                Ok(ScheduledFuture::new(task, pool_ref.clone(), ticket))
            }
            // The task was in the queue for a moment, and was cancelled there.
            Err(refused) if task.state().is_done() => {
                let ticket = Ticket { slot: u32::MAX, sequence: refused.task().id().0 };
                Ok(ScheduledFuture::new(task, pool_ref.clone(), ticket))
            }
            Err(refused) => Err(refused),
        }
    }

    /// Returns the wrapper that is to be called around each run, if there is one.
    ///
    /// # Errors
    ///
    /// The payload, if the decorator panicked.
    #[inline]
    fn wrapper<J: Job>(
        &self,
        pool_ref: &PoolRef,
        now: Timestamp,
        deadline: Timestamp,
    ) -> Result<Option<Wrapper>, Payload> {
        let (is_periodic, name) = (J::IS_PERIODIC, self.name.as_deref());
        let budget = self.timeout.filter(|_| is_periodic);
        let budget = budget.and_then(|budget| pool_ref.limit_runs(budget, self.on_panic));
        match &pool_ref.pool().callbacks().decorate {
            None => Ok(budget),
            Some(decorate) => {
                let submission = Submission { name, is_periodic, delay: deadline.delay_at(now) };
                let wrapper = contain(|| decorate(&submission))?;
                Ok(Some(wrapper.around(budget)))
            }
        }
    }
}

/// Ensures that a worker will run the task, and that the timer thread watches over its time limit.
/// Returns `false` if a worker is missing that could not be started, and the pool does without it.
#[inline]
fn ensure_threads(pool_ref: &PoolRef, timeout: Option<Duration>) -> Result<bool, RejectionReason> {
    let pool = pool_ref.pool();
    let is_staffed = pool.ensure_worker().map_err(|error| not_started(pool, error))?;
    if timeout.is_some() {
        pool.ensure_timer_thread().map_err(|error| not_started(pool, error))?;
    }
    Ok(is_staffed)
}

/// Counts a submission for which no thread could be started.
#[cold]
fn not_started(pool: &Pool, error: io::Error) -> RejectionReason {
    pool.count_rejected();
    RejectionReason::Spawn(error)
}

/// Passes the panic of a decorator on to the submitter. The unwinding must not drop the job: a capture
/// that panics in its drop would then abort the process.
#[cold]
fn resume_unwind<J>(job: J, payload: Payload) -> ! {
    discard(job);
    panic::resume_unwind(payload)
}
