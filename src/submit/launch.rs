//! Launching: a job and what is said of it become a task, and the task is handed to the pool.

use std::{io, panic};

use super::{TaskBuilder, Tried};
use crate::{
    Rejected, RejectedExecutionError, ScheduledFuture, Submission,
    pool::PoolRef,
    queue::Ticket,
    sync::Arc,
    task::{Job, Limit, Task, Wrapper},
    time::Timestamp,
    trace,
    unwind::{Payload, contain, discard},
};

impl TaskBuilder<'_> {
    /// Hands a job to the pool. If that is refused `closure_of` takes the closure out again, and
    /// the value for the case that the timeout strikes is left where it is.
    pub(super) fn launch<J: Job, F>(
        self,
        job: J,
        now: Timestamp,
        deadline: Timestamp,
        on_timeout: &mut Option<J::Output>,
        closure_of: impl FnOnce(J) -> F,
    ) -> Tried<J::Output, F> {
        let pool_ref = self.pool_refs.local();
        let is_staffed = match self.ensure_threads(pool_ref) {
            Ok(is_staffed) => is_staffed,
            Err(error) => {
                pool_ref.pool().count_rejected();
                let error = RejectedExecutionError::Spawn(error);
                return Err(Rejected { error, closure: closure_of(job) });
            }
        };
        let wrapper = match self.wrapper::<J>(pool_ref, now, deadline) {
            Ok(wrapper) => wrapper,
            Err(payload) => {
                // Not by the unwinding, which a capture that panics too would turn into an abort.
                discard(job);
                discard(on_timeout.take());
                panic::resume_unwind(payload)
            }
        };
        let limit = self.timeout.filter(|_| !J::IS_PERIODIC).map(|time| deadline.after(time));
        let listened_to = trace::is_listening().then(|| self.name.clone());
        let task = Task::new(job, self.name, wrapper);
        let task = Arc::new(match limit {
            None => task,
            Some(at) => task.limited(Limit { at, value: on_timeout.take() }),
        });
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
            Err((sequence, error)) => match task.reclaim() {
                Some((job, value)) => {
                    *on_timeout = value.or(on_timeout.take());
                    Err(refused(task, error, closure_of(job)))
                }
                // It was in the queue for a moment, and there somebody has cancelled it.
                None => {
                    let ticket = Ticket { slot: u32::MAX, sequence };
                    Ok(ScheduledFuture::new(task, pool_ref.clone(), ticket))
                }
            },
        }
    }

    /// Sees to it that somebody will run the task, and watch over its time. Whether the pool need
    /// not do without a worker that could not be started.
    #[inline]
    fn ensure_threads(&self, pool_ref: &PoolRef) -> io::Result<bool> {
        let is_staffed = pool_ref.pool().ensure_worker()?;
        if self.timeout.is_some() {
            pool_ref.pool().ensure_timer_thread()?;
        }
        Ok(is_staffed)
    }

    /// What is to be called around each run, if anything is; or what the decorator panicked with.
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

/// What is given back of a task that was refused. The wrapper goes with the task, which is foreign.
fn refused<J: Job, F>(
    task: Arc<Task<J>>,
    error: RejectedExecutionError,
    closure: F,
) -> Rejected<F> {
    discard(task);
    Rejected { error, closure }
}
