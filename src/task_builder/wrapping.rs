//! The code around each run of a task, made when the task is submitted. It consists, from the inside out, of the time limit, the
//! executor's decorator, and the watch for runs that take long.

use std::panic::Location;

use super::TaskBuilder;
use crate::{
    Submission,
    pool::PoolRef,
    task::Around,
    time::Timestamp,
    unwind::{PanicPayload, contain},
};

impl TaskBuilder<'_> {
    /// Returns the code that is to be called around each run, if there is one.
    ///
    /// # Errors
    ///
    /// The payload, if the decorator panicked.
    #[inline]
    pub(super) fn around(
        &self,
        is_periodic: bool,
        pool_ref: &PoolRef,
        (now, deadline): (Timestamp, Timestamp),
        scheduled_at: &'static Location<'static>,
    ) -> Result<Option<Around>, PanicPayload> {
        let name = self.name.as_deref();
        let budget = self.timeout.filter(|_| is_periodic);
        let budget = budget
            .and_then(|budget| pool_ref.limit_runs(budget, self.on_failure.unwrap_or_default()));
        let decorated = match &pool_ref.pool().callbacks().decorate {
            None => budget,
            Some(decorate) => {
                let submission = Submission { name, is_periodic, delay: deadline.delay_at(now) };
                let around = contain(|| decorate(&submission))?;
                Some(around.enclose(budget))
            }
        };
        let warn_after = self.warn_after.or_else(|| pool_ref.pool().warn_after());
        let watch = warn_after.and_then(|limit| pool_ref.watch_runs(limit, scheduled_at));
        Ok(match watch {
            None => decorated,
            Some(watch) => Some(watch.enclose(decorated)),
        })
    }
}
