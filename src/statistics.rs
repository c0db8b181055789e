//! Worker statistics: the current task and the counts of one worker.
//!
//! Each [`WorkerStats`] is written only by its worker, so counting needs only a load and a store, in a cache line that
//! no other worker writes. Other threads read it: the pool's statistics add up the counts of all workers, and the
//! shutdown report names the tasks that are still running.
//!
//! A run is counted under the lock of its task, in the step that publishes the outcome. So a thread that sees that a
//! task has ended also sees the task's last run counted.

use crossbeam_utils::CachePadded;

use crate::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Timestamp,
};

#[derive(Debug, Default)]
pub(crate) struct WorkerStats(CachePadded<Counters>);

#[derive(Debug, Default)]
struct Counters {
    /// The id of the running task; zero if none is running.
    current: AtomicU64,
    /// When the current task's run began, in nanoseconds.
    since: AtomicU64,
    /// The id and the name of the last named task that the worker began to run.
    named: Mutex<Option<(u64, Arc<str>)>>,
    completed: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    failed_runs: AtomicU64,
    missed_runs: AtomicU64,
    gate_skips: AtomicU64,
    runs: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) failed_runs: u64,
    pub(crate) missed_runs: u64,
    pub(crate) gate_skips: u64,
    pub(crate) runs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    Failed,
    Cancelled,
}

impl WorkerStats {
    #[inline]
    pub(crate) fn begin(&self, id: u64, name: Option<Arc<str>>, now: Timestamp) {
        if let Some(name) = name {
            self.note_name(id, name);
        }
        self.0.since.store(now.as_nanos(), Ordering::Relaxed);
        self.0.current.store(id, Ordering::Release);
    }

    #[cold]
    fn note_name(&self, id: u64, name: Arc<str>) {
        *self.0.named.lock() = Some((id, name));
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.0.current.store(0, Ordering::Release);
    }

    /// Counts a run, the runs missed just before it, and the end of its task if this was the last run. The run is
    /// counted first and the end last, and a reader reads in the opposite order. So the reader finds no failed task
    /// without a failed run, and no failed run without a run.
    #[inline]
    pub(crate) fn count(&self, failed: bool, missed: u64, ended: Option<Ended>) {
        add(&self.0.runs, 1);
        if missed > 0 {
            add(&self.0.missed_runs, missed);
        }
        if failed {
            add(&self.0.failed_runs, 1);
        }
        if let Some(ended) = ended {
            self.count_ended(ended);
        }
    }

    #[inline]
    pub(crate) fn count_ended(&self, ended: Ended) {
        match ended {
            Ended::Completed => add(&self.0.completed, 1),
            Ended::Failed => add(&self.0.failed, 1),
            Ended::Cancelled => add(&self.0.cancelled, 1),
        }
    }

    /// Counts missed runs that no later run will count.
    pub(crate) fn count_missed(&self, missed: u64) {
        add(&self.0.missed_runs, missed);
    }

    /// Counts a run that a gate has skipped, and the runs missed just before it.
    pub(crate) fn count_skip(&self, missed: u64) {
        add(&self.0.gate_skips, 1);
        add(&self.0.missed_runs, missed);
    }

    pub(crate) fn count_cancelled(&self) {
        add(&self.0.cancelled, 1);
    }

    /// Returns the worker's counts of runs and of failed runs. Called only on the worker's thread.
    pub(crate) fn counted(&self) -> (u64, u64) {
        // Relaxed: this thread has written both counts.
        (self.0.runs.load(Ordering::Relaxed), self.0.failed_runs.load(Ordering::Relaxed))
    }

    pub(crate) fn totals(&self) -> Totals {
        let read = |count: &AtomicU64| count.load(Ordering::Acquire);
        Totals {
            completed: read(&self.0.completed),
            failed: read(&self.0.failed),
            cancelled: read(&self.0.cancelled),
            failed_runs: read(&self.0.failed_runs),
            missed_runs: read(&self.0.missed_runs),
            gate_skips: read(&self.0.gate_skips),
            runs: read(&self.0.runs),
        }
    }

    pub(crate) fn current(&self) -> Option<(u64, Option<Arc<str>>, Timestamp)> {
        loop {
            let id = self.0.current.load(Ordering::Acquire);
            let since = Timestamp::from_nanos(self.0.since.load(Ordering::Relaxed));
            let named = self.0.named.lock().clone().filter(|(of, _)| *of == id);
            // All of it belongs to this task if the task was the current one before and after.
            if id == self.0.current.load(Ordering::Acquire) {
                return (id > 0).then_some((id, named.map(|(_, name)| name), since));
            }
        }
    }
}

impl Totals {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            cancelled: self.cancelled + other.cancelled,
            failed_runs: self.failed_runs + other.failed_runs,
            missed_runs: self.missed_runs.saturating_add(other.missed_runs),
            gate_skips: self.gate_skips + other.gate_skips,
            runs: self.runs + other.runs,
        }
    }

    pub(crate) fn ended(&self) -> u64 {
        self.completed + self.failed + self.cancelled
    }
}

/// Adds to a count, on the only thread that writes it.
///
/// Ordering: releases this thread's earlier writes, so that a reader of the count sees those writes.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    let sum = count.load(Ordering::Relaxed).saturating_add(more);
    count.store(sum, Ordering::Release);
}
