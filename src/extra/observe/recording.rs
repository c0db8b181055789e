//! The record of the runs of an executor: a recorder for each thread that runs tasks, one for each name that is kept apart,
//! and one for each group.
//!
//! Each thread keeps its recorder in a seat, with the recorders of its last name and its last group. To record a run, it
//! compares, takes one lock that only a snapshot contends for, and increments two counts. The recorder of a thread that
//! has ended goes to the next thread, so its records stay.
//!
//! # No run is counted twice
//!
//! A run of a task whose name is kept apart goes to the recorder of that name *in place of* the thread's, since the total
//! of the executor adds up both kinds. A run of a group's task goes to the recorder of the group *as well*, which the
//! total leaves out.

#![allow(clippy::disallowed_types, reason = "this is a user of the crate, and locks as users do")]

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::histogram::RunHistograms;
use crate::{EndedRun, Observer, Points};

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// The observer that records the runs of one executor; see the [module](self).
pub(crate) struct RunRecorder(Arc<Records>);

struct Records {
    most_names: usize,
    /// Each with what its thread holds while it lives.
    threads: Mutex<Vec<(Arc<Recorder>, Weak<()>)>>,
    names: Mutex<BTreeMap<Arc<str>, Arc<Recorder>>>,
    /// By the address of the group's name, which is unique while a reference to the name exists.
    groups: Mutex<HashMap<usize, OfGroup>>,
}

type OfGroup = (Weak<str>, Arc<Recorder>);

#[derive(Default)]
struct Recorder(Mutex<RunHistograms>);

/// The recorders that one thread uses.
struct Seat {
    /// The owner of these recorders, which this does not keep alive.
    of: Weak<Records>,
    own: Arc<Recorder>,
    /// While it is there, no other thread takes the recorder.
    _holds: Arc<()>,
    named: Option<(Arc<str>, Arc<Recorder>)>,
    grouped: Option<(Arc<str>, Arc<Recorder>)>,
}

/// No thread panics while it holds one of these locks.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    #[inline]
    fn record(&self, run: &EndedRun<'_>) {
        locked(&self.0).record(run.lateness(), run.run_time());
    }

    fn add_to(&self, sum: &mut RunHistograms) {
        sum.add(&locked(&self.0));
    }

    fn snapshot(&self) -> RunHistograms {
        locked(&self.0).clone()
    }
}

impl Observer for RunRecorder {
    fn points(&self) -> Points {
        Points::ENDED
    }

    fn run_ended(&self, run: &EndedRun<'_>) {
        let seated = SEAT.try_with(|seat| self.0.record(&mut seat.borrow_mut(), run));
        // A thread that runs a task while its thread-locals are dropped no longer has a seat.
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
        match run.name() {
            None => seat.own.record(run),
            Some(name) => seat.of_name(self, name).record(run),
        }
        if let Some(name) = run.group_name() {
            seat.of_group(self, name).record(run);
        }
    }

    /// Returns a seat with a recorder that no other thread has.
    #[cold]
    fn seat(self: &Arc<Self>) -> Seat {
        let (mut threads, holds) = (locked(&self.threads), Arc::new(()));
        let place = threads.iter().position(|(_, holder)| holder.strong_count() == 0);
        let own = place.map_or_else(Arc::default, |place| threads.swap_remove(place).0);
        threads.push((Arc::clone(&own), Arc::downgrade(&holds)));
        Seat { of: Arc::downgrade(self), own, _holds: holds, named: None, grouped: None }
    }

    /// Returns the recorder of a name; `None` if it is not kept apart.
    fn of_name(&self, name: &str) -> Option<Arc<Recorder>> {
        let mut names = locked(&self.names);
        if !names.contains_key(name) && names.len() < self.most_names {
            names.insert(name.into(), Arc::default());
        }
        names.get(name).cloned()
    }

    /// Returns the recorder of a group. A new one makes room by dropping those of groups that are gone.
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
    /// Keeps the first `most_names` names apart.
    pub(crate) fn new(most_names: usize) -> Self {
        let (threads, names, groups) = Default::default();
        Self(Arc::new(Records { most_names, threads, names, groups }))
    }

    pub(crate) fn snapshot(&self) -> Histograms {
        let (threads, named) = (locked(&self.0.threads).clone(), locked(&self.0.names).clone());
        locked(&self.0.groups).retain(|_, (name, _)| name.strong_count() > 0);
        let mut pool = RunHistograms::default();
        threads.iter().for_each(|(recorder, _)| recorder.add_to(&mut pool));
        let names = named.into_iter().map(|(name, recorder)| (name, recorder.snapshot()));
        let names: BTreeMap<_, _> = names.collect();
        names.values().for_each(|own| pool.add(own));
        Histograms { pool, names }
    }

    /// Returns the records so far of the runs in the group with this name, which is the group's own `Arc`.
    pub(crate) fn of_group(&self, name: &Arc<str>) -> RunHistograms {
        self.0.of_group(name).snapshot()
    }
}

/// How late runs started and how long they took, in a pool and by name; from
/// [`Handle::histograms`](crate::Handle::histograms).
///
/// A snapshot does not change. A run enters it when its worker looks for the next task, shortly after the outcome of the
/// run is visible.
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

    /// Returns the names that are kept apart, in alphabetical order, each with the histograms of the runs
    /// of all tasks with that name.
    pub fn names(&self) -> impl ExactSizeIterator<Item = (&str, &RunHistograms)> + '_ {
        self.names.iter().map(|(name, histograms)| (&**name, histograms))
    }

    /// Returns the histograms of the runs of all tasks with this name; `None` if the name is not kept
    /// apart.
    pub fn named(&self, name: &str) -> Option<&RunHistograms> {
        self.names.get(name)
    }
}

/// A line for the pool and one for each name, without an end of line after the last.
impl fmt::Display for Histograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool: {}", self.pool)?;
        self.names().try_for_each(|(name, seen)| write!(f, "\n{name:?}: {seen}"))
    }
}
