//! Records an executor's runs, with a recorder for each thread, for each name that is kept apart, and for each group.
//!
//! Each thread has a [`Seat`], a thread-local with the thread's own recorder and the recorders of the task name and the
//! group that it recorded last. A thread contends for the lock of its own recorder only with a snapshot; threads
//! share the other two recorders. When a thread has ended, its recorder goes to the next new thread.
//!
//! A name's recorder records a run *instead of* the thread's recorder, and the total adds up the recorders of names and
//! threads. A group's recorder records the run *as well*, and is not part of the total. So no run counts twice.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, Weak},
};

use super::{histogram::RunHistograms, locked};
use crate::{EndedRun, Observer, Points};

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

pub(crate) struct RunRecorder(Arc<Records>);

struct Records {
    most_names: usize,
    threads: Mutex<Vec<Arc<Recorder>>>,
    names: Mutex<BTreeMap<Arc<str>, Arc<Recorder>>>,
    /// Each group's recorder, by the address of the group's name. The weak reference in the entry keeps that address
    /// from being used again.
    groups: Mutex<HashMap<usize, OfGroup>>,
}

type OfGroup = (Weak<str>, Arc<Recorder>);

#[derive(Default)]
struct Recorder(Mutex<RunHistograms>);

struct Seat {
    of: Weak<Records>,
    own: Arc<Recorder>,
    named: Option<(Arc<str>, Arc<Recorder>)>,
    grouped: Option<(Arc<str>, Arc<Recorder>)>,
}

impl Observer for RunRecorder {
    fn points(&self) -> Points {
        Points::ENDED
    }

    fn run_ended(&self, run: &EndedRun<'_>) {
        let seated = SEAT.try_with(|seat| self.0.record(&mut seat.borrow_mut(), run));
        // A thread that runs a task while its thread-locals are being dropped no longer has a seat.
        seated.unwrap_or_else(|_| self.0.record(&mut None, run));
    }
}

impl Records {
    #[inline]
    fn record(self: &Arc<Self>, seat: &mut Option<Seat>, run: &EndedRun<'_>) {
        let seat = match seat {
            Some(seat) if seat.of.as_ptr() == Arc::as_ptr(self) => seat,
            _ => seat.insert(self.seat()),
        };
        let record =
            |recorder: &Recorder| locked(&recorder.0).record(run.lateness(), run.run_time());
        match run.name() {
            None => record(&seat.own),
            Some(name) => record(seat.of_name(self, name)),
        }
        if let Some(name) = run.group_name() {
            record(seat.of_group(self, name));
        }
    }

    #[cold]
    fn seat(self: &Arc<Self>) -> Seat {
        let mut threads = locked(&self.threads);
        // Only the list still refers to the recorder of a thread that has ended.
        let left = threads.iter().find(|recorder| Arc::strong_count(recorder) == 1).cloned();
        let own = left.unwrap_or_else(|| {
            threads.push(Arc::default());
            Arc::clone(&threads[threads.len() - 1])
        });
        Seat { of: Arc::downgrade(self), own, named: None, grouped: None }
    }

    /// Returns a name's recorder. If the name has none, makes one, or returns `None` if `most_names` names have one.
    fn of_name(&self, name: &str) -> Option<Arc<Recorder>> {
        let mut names = locked(&self.names);
        if !names.contains_key(name) && names.len() < self.most_names {
            names.insert(name.into(), Arc::default());
        }
        names.get(name).cloned()
    }

    /// Returns the recorder of a group. If the group has none yet, makes one, and drops the dead groups' recorders.
    fn of_group(&self, name: &Arc<str>) -> Arc<Recorder> {
        let mut groups = locked(&self.groups);
        let address = Arc::as_ptr(name).addr();
        if !groups.contains_key(&address) {
            groups.retain(|_, (name, _)| name.strong_count() > 0);
        }
        let (_, recorder) =
            groups.entry(address).or_insert_with(|| (Arc::downgrade(name), Arc::default()));
        Arc::clone(recorder)
    }
}

impl Seat {
    #[inline]
    fn of_name(&mut self, records: &Records, name: &str) -> &Recorder {
        if self.named.as_ref().is_none_or(|(known, _)| **known != *name) {
            let recorder = records.of_name(name).unwrap_or_else(|| Arc::clone(&self.own));
            self.named = Some((name.into(), recorder));
        }
        self.named.as_ref().map_or(&self.own, |(_, recorder)| recorder)
    }

    #[inline]
    fn of_group(&mut self, records: &Records, name: &Arc<str>) -> &Recorder {
        if self.grouped.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, name)) {
            self.grouped = Some((Arc::clone(name), records.of_group(name)));
        }
        self.grouped.as_ref().map_or(&self.own, |(_, recorder)| recorder)
    }
}

impl RunRecorder {
    pub(crate) fn new(most_names: usize) -> Self {
        let (threads, names, groups) = Default::default();
        Self(Arc::new(Records { most_names, threads, names, groups }))
    }

    pub(crate) fn snapshot(&self) -> Histograms {
        let (threads, named) = (locked(&self.0.threads).clone(), locked(&self.0.names).clone());
        locked(&self.0.groups).retain(|_, (name, _)| name.strong_count() > 0);
        let mut pool = RunHistograms::default();
        threads.iter().for_each(|recorder| pool.add(&locked(&recorder.0)));
        let copy = |(name, recorder): (_, Arc<Recorder>)| (name, locked(&recorder.0).clone());
        let names: BTreeMap<_, _> = named.into_iter().map(copy).collect();
        names.values().for_each(|own| pool.add(own));
        Histograms { pool, names }
    }

    /// Returns the histograms of the group with this name, which has to be the group's own `Arc`.
    pub(crate) fn of_group(&self, name: &Arc<str>) -> RunHistograms {
        locked(&self.0.of_group(name).0).clone()
    }
}

/// How late runs started and how long they took, overall and by name; from
/// [`Handle::histograms`](crate::Handle::histograms).
///
/// A snapshot has a run only once its worker has looked for the next task, shortly after the outcome is visible.
#[derive(Clone, Debug)]
pub struct Histograms {
    pool: RunHistograms,
    names: BTreeMap<Arc<str>, RunHistograms>,
}

impl Histograms {
    /// Returns the histograms of all runs.
    pub fn pool(&self) -> &RunHistograms {
        &self.pool
    }

    /// Returns the names that are kept apart, in alphabetical order, each with the histograms of all its tasks' runs.
    pub fn names(&self) -> impl ExactSizeIterator<Item = (&str, &RunHistograms)> + '_ {
        self.names.iter().map(|(name, histograms)| (&**name, histograms))
    }

    /// Returns the histograms of the runs of all tasks with this name; `None` if the name is not kept apart.
    pub fn named(&self, name: &str) -> Option<&RunHistograms> {
        self.names.get(name)
    }
}

/// A line for the pool and one for each name, without a newline after the last.
impl fmt::Display for Histograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool: {}", self.pool)?;
        self.names().try_for_each(|(name, seen)| write!(f, "\n{name:?}: {seen}"))
    }
}
