//! The histograms of a pool: a recorder for each worker, one for each name, and the snapshot of all.
//!
//! A worker has a recorder to itself for as long as it lives, and leaves it to the next worker, so what has
//! been recorded stays. The first names that are submitted have a recorder each, up to the number that the
//! builder was given, and keep it. The runs of any other task are recorded by its worker, and so count for
//! the pool alone.

use std::{collections::HashMap, fmt};

use crate::{
    histogram::{Recorder, Recorders, RunHistograms},
    sync::{Arc, Mutex},
};

/// See the [module](self).
pub(in crate::pool) struct PoolHistograms {
    workers: Mutex<WorkerRecorders>,
    names: Mutex<HashMap<Arc<str>, Arc<Recorders>>>,
    most_names: usize,
}

#[derive(Default)]
struct WorkerRecorders {
    all: Vec<Arc<Recorder>>,
    /// Those of workers that have ended.
    free: Vec<Arc<Recorder>>,
}

impl PoolHistograms {
    pub(super) fn new(most_names: usize) -> Self {
        Self { workers: Mutex::default(), names: Mutex::default(), most_names }
    }

    /// Returns the recorder of a worker that is about to start.
    pub(in crate::pool) fn of_worker(self: &Arc<Self>) -> WorkerHistograms {
        let free = self.workers.lock().free.pop();
        let own = free.unwrap_or_else(|| {
            let made = Arc::new(Recorder::new());
            self.workers.lock().all.push(Arc::clone(&made));
            made
        });
        WorkerHistograms { of_pool: Arc::clone(self), own }
    }

    /// Returns where the runs of tasks with this name are recorded; `None` if that is not apart.
    pub(super) fn of_name(&self, name: &Arc<str>) -> Option<Arc<Recorders>> {
        let mut names = self.names.lock();
        if let Some(known) = names.get(name) {
            return Some(Arc::clone(known));
        }
        if names.len() >= self.most_names {
            return None;
        }
        let made = Arc::new(Recorders { of_name: Some(Arc::new(Recorder::new())), of_group: None });
        names.insert(Arc::clone(name), Arc::clone(&made));
        Some(made)
    }

    /// Returns the records so far.
    pub(super) fn snapshot(&self) -> Histograms {
        let workers = self.workers.lock().all.clone();
        let named = self.names.lock().clone();
        let mut pool = RunHistograms::new();
        workers.iter().for_each(|recorder| recorder.add_to(&mut pool));
        let mut names: Vec<_> = named
            .into_iter()
            .map(|(name, recorders)| {
                let mut own = RunHistograms::new();
                if let Some(recorder) = &recorders.of_name {
                    recorder.add_to(&mut own);
                }
                pool.add(&own);
                (name, own)
            })
            .collect();
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Histograms { pool, names }
    }
}

/// The recorder of one worker, while it works.
pub(in crate::pool) struct WorkerHistograms {
    of_pool: Arc<PoolHistograms>,
    pub(in crate::pool) own: Arc<Recorder>,
}

impl Drop for WorkerHistograms {
    fn drop(&mut self) {
        self.of_pool.workers.lock().free.push(Arc::clone(&self.own));
    }
}

/// How late runs started and how long they took, in a pool and by name; from
/// [`Handle::histograms`](crate::Handle::histograms).
///
/// A snapshot: it does not change any more. A run is in it from the moment at which its worker looks for the
/// next task, which is shortly after its outcome can be seen.
#[derive(Clone, Debug)]
pub struct Histograms {
    pool: RunHistograms,
    names: Vec<(Arc<str>, RunHistograms)>,
}

impl Histograms {
    /// Returns the histograms of all runs.
    pub fn pool(&self) -> &RunHistograms {
        &self.pool
    }

    /// Returns the names that are kept apart, in alphabetical order, each with the histograms of the runs
    /// of all tasks with that name.
    pub fn names(&self) -> impl ExactSizeIterator<Item = (&str, &RunHistograms)> + '_ {
        self.names.iter().map(|(name, histograms)| (&**name, histograms))
    }

    /// Returns the histograms of the runs of all tasks with this name; `None` if the name is not kept
    /// apart.
    pub fn named(&self, name: &str) -> Option<&RunHistograms> {
        let place = self.names.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        Some(&self.names[place].1)
    }
}

/// A line for the pool and one for each name, without an end of line after the last.
impl fmt::Display for Histograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool: {}", self.pool)?;
        self.names().try_for_each(|(name, seen)| write!(f, "\n{name:?}: {seen}"))
    }
}
