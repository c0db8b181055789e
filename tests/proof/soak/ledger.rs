//! The ledger: every capture of every task and every element of a queue while it is alive, with the
//! time by which it should be gone; and the faults found.
//!
//! A lost task keeps its capture, so the capture stays in the ledger beyond its time; a capture
//! that is dropped twice is missing from the ledger the second time.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::patience::TURN;

/// How late a task may end: far longer than any load delays it. What the process stands still does not count.
pub(crate) const GRACE: Duration = Duration::from_secs(30);
/// The number of faults that are reported; the others are like them.
const TOLD: usize = 20;

/// The payload of an intended panic.
pub(crate) struct Meant;

#[derive(Default)]
pub(crate) struct Ledger {
    alive: [Mutex<HashMap<u64, Entry>>; 16],
    last: AtomicU64,
    faults: Mutex<Vec<String>>,
    /// When the process went on after it had stood still, and for how long it had.
    halts: Mutex<Vec<(Instant, Duration)>>,
}

struct Entry {
    what: &'static str,
    /// `None` for a task that waits until it is cancelled.
    by: Option<Instant>,
}

impl Ledger {
    /// Returns a value to capture, which should be gone by then.
    pub(crate) fn enter(self: &Arc<Self>, what: &'static str, by: Option<Instant>) -> Capture {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.page(id).insert(id, Entry { what, by });
        Capture { ledger: Arc::clone(self), id, is_bomb: false }
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.page(id).contains_key(&id)
    }

    /// Expects the capture to go soon, if it is still alive.
    pub(crate) fn expect_soon(&self, id: u64) {
        if let Some(entry) = self.page(id).get_mut(&id) {
            entry.by = Some(Instant::now());
        }
    }

    /// The number of captures so far.
    pub(crate) fn entered(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Descriptions of the captures that are alive.
    pub(crate) fn alive(&self) -> Vec<String> {
        self.listed(|_| true)
    }

    /// Descriptions of the captures that should have been gone for long.
    pub(crate) fn overdue(&self) -> Vec<String> {
        let is_late = |by: Instant| {
            let late = by.elapsed();
            late > GRACE && late.saturating_sub(self.halted_since(by)) > GRACE
        };
        self.listed(|entry| entry.by.is_some_and(is_late))
    }

    /// Notes if the process has stood still since the watcher looked last, which it does all the time.
    pub(crate) fn look(&self, looked: &mut Instant) {
        let before = std::mem::replace(looked, Instant::now());
        let halt = (*looked - before).saturating_sub(TURN);
        if !halt.is_zero() {
            lock(&self.halts).push((*looked, halt));
        }
    }

    /// For how long the process has stood still since then.
    fn halted_since(&self, then: Instant) -> Duration {
        let halts = lock(&self.halts);
        halts.iter().rev().take_while(|(end, _)| *end > then).map(|(_, halt)| *halt).sum()
    }

    pub(crate) fn complain(&self, fault: impl Into<String>) {
        let mut faults = lock(&self.faults);
        if faults.len() < TOLD {
            faults.push(fault.into());
        }
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        lock(&self.faults).clone()
    }

    fn listed(&self, is_meant: impl Fn(&Entry) -> bool) -> Vec<String> {
        let mut listed = Vec::new();
        for page in &self.alive {
            let page = lock(page);
            let meant = page.iter().filter(|(_, entry)| is_meant(entry));
            listed.extend(meant.map(|(id, entry)| format!("{} (number {id})", entry.what)));
        }
        listed
    }

    fn page(&self, id: u64) -> MutexGuard<'_, HashMap<u64, Entry>> {
        lock(&self.alive[id as usize % self.alive.len()])
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value to capture, which is in the ledger until it is dropped.
pub(crate) struct Capture {
    ledger: Arc<Ledger>,
    id: u64,
    is_bomb: bool,
}

impl Capture {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Makes the capture panic when it is dropped.
    pub(crate) fn armed(mut self) -> Self {
        self.is_bomb = true;
        self
    }

    /// Checks that the work that calls this does not start before `due`.
    pub(crate) fn begins(&self, due: Instant) {
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            let what = self.ledger.page(self.id).get(&self.id).map(|entry| entry.what);
            self.ledger.complain(format!("{what:?}, number {}, was {early:?} early", self.id));
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let entry = self.ledger.page(self.id).remove(&self.id);
        if entry.is_none() {
            self.ledger.complain(format!("number {} was dropped twice", self.id));
        }
        // A second panic during a panic would abort the process.
        if self.is_bomb && !thread::panicking() {
            std::panic::panic_any(Meant);
        }
    }
}
