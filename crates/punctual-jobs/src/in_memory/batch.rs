//! Many jobs at once: all are on the board in one step under the lock, or none.
//!
//! Their tasks are submitted after that, and an executor with a bound may refuse one. Then the jobs that have not begun are taken
//! off again.

use super::Board;
use crate::{JobHandle, QueueError, queue::batch::Batch};

impl Board {
    pub(super) fn accept_all(&self, mut batch: Batch) -> Result<Vec<JobHandle>, QueueError> {
        let jobs = std::mem::take(&mut batch.jobs);
        let of_all = jobs.iter().map(|job| self.definition_for(job));
        let definitions = of_all.collect::<Result<Vec<_>, _>>()?;
        let mut state = self.state.lock();
        if state.closing.is_some() {
            return Err(QueueError::ShutDown);
        }
        let all = definitions.into_iter().zip(jobs);
        let (handles, stored): (Vec<_>, Vec<_>) =
            all.map(|(definition, job)| self.store(&mut state, definition, job)).unzip();
        drop(state);
        let mut refusal = None;
        for stored in stored.into_iter().flatten() {
            refusal = refusal.or(self.begin(stored).err());
        }
        let Some(error) = refusal else { return Ok(batch.handles(&handles)) };
        for handle in handles.iter().filter(|handle| !handle.is_skipped) {
            // One that runs goes on.
            let _ = self.remove_job(handle.id);
        }
        Err(error)
    }
}
