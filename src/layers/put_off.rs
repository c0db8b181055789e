//! A run that is put off: its later moment is one word beside the entry, and the entry follows when it comes up.
//!
//! A timeout that is extended at each request would move its entry in the heap each time, though only the last move
//! counts. So an [extension](crate::Extender::extend) writes the later moment into a word that handle and task share
//! ([`PutOff`]), with one read-modify-write and no lock, and leaves the entry where it is. When the worker takes the entry
//! at its old moment, the task looks at the word before anything else is asked, and if the word is later it refuses the
//! run and is queued again for the later moment. That is one look for nothing in each span for which an entry
//! stands, however often the run was put off meanwhile.
//!
//! ```text
//!   entry     D ─────────────── taken: word > D ──▶ queued again at the word
//!   word      ──▶ E1 ──▶ E2                              taken: word = moment ──▶ closed, the run begins
//! ```
//!
//! # Who writes the word
//!
//! The word is *open* or *closed*. An extender writes an open word, and only to raise it. Everything else is done by the
//! thread that has the task's lock: it [closes](Extension::close) the word first, which hands it the last moment that an
//! extender has written, and opens it again when it has decided. So each extension comes before such a step, which then
//! counts with it, or after. An extender that finds the word closed has written nothing, and asks
//! [`control`](super::control) under the lock instead, which knows whether the task has begun, has ended, or is moved
//! otherwise. Closed is therefore no answer but "ask", and a task whose layers must be told at once of each move (a time
//! limit, a group, a gate) has a word that is never open.
//!
//! # Why its answer is true
//!
//! The worker closes the word in the step under the lock in which the run is let pass. An extension that has written
//! before is seen by that step, which refuses the run, and one that comes after has found the word closed. What the
//! closer has been handed is counted with by the same step: a change of the plan begins with it, and a worker that
//! refuses the run has the task queued for it. So a run never begins before a moment for which an extender has
//! written the word, unless a caller has asked for an earlier one since.
//!
//! # The order of equal deadlines
//!
//! An entry that goes on has its sequence still, as one that is [rescheduled](crate::ScheduledFuture::reschedule) has:
//! the sequence is the task's number, by which its handles find it. So equal moments are in the order of submission.

use super::calls::Calls;
use crate::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Timestamp,
};

/// The word is not to be written: the lock decides.
const CLOSED: u64 = u64::MAX;

/// What an extender and its task share; see the [module](self).
pub(crate) struct PutOff {
    /// When the run is due at the earliest, or `CLOSED`.
    later: AtomicU64,
    /// When the first of the calls came that wait for the run, if the task is debounced.
    first_call: AtomicU64,
}

impl PutOff {
    fn new() -> Self {
        Self { later: AtomicU64::new(CLOSED), first_call: AtomicU64::new(0) }
    }

    /// Puts the run off to this moment, unless it is later anyway. Returns `false`, and has no effect, if that is the
    /// lock's to decide.
    #[inline]
    pub(crate) fn put_off_to(&self, moment: Timestamp) -> bool {
        self.raise(|| moment, false)
    }

    /// Like [`put_off_to`](Self::put_off_to), for a moment that depends on the first of the calls which wait for the run. A
    /// call writes even what is there: the run that it has joined has to see what the caller did before.
    #[inline]
    pub(crate) fn put_off_for_call(&self, moment: impl Fn(Timestamp) -> Timestamp) -> bool {
        // Ordering: relaxed, written before the word was opened, which has been read with Acquire.
        let first = || Timestamp::from_nanos(self.first_call.load(Ordering::Relaxed));
        self.raise(|| moment(first()), true)
    }

    #[inline]
    fn raise(&self, moment: impl Fn() -> Timestamp, always_writes: bool) -> bool {
        // Ordering: Acquire pairs with the Release by which the word was opened.
        let mut seen = self.later.load(Ordering::Acquire);
        loop {
            // Moments beyond the last do not fit into the word.
            let moment = moment().as_nanos();
            if seen == CLOSED || moment == CLOSED {
                return false;
            } else if moment <= seen && !always_writes {
                return true;
            }
            let later = moment.max(seen);
            // Ordering: Release, so that what the caller did before is seen by the run that it has put off.
            match self.later.compare_exchange(seen, later, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }
}

/// When a word is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// Never: each move goes by the lock.
    Never,
    /// While the task waits.
    Always,
    /// While the task waits for its calls, the last of which has decided when it runs.
    ByCalls,
}

/// A task's end of the word. All of it is under the task's lock.
pub(super) struct Extension {
    word: Arc<PutOff>,
    opens: Opens,
    /// When the entry is due, as far as that is known.
    entry: Timestamp,
    /// True if the run for which a worker has taken the task does not take place, because it was put off, or because
    /// something was asked of the task before it could begin.
    is_refused: bool,
}

impl Extension {
    /// That of a task whose entry is due then; `None` if a worker has it.
    pub(super) fn new(opens: Opens, entry: Option<Timestamp>) -> Self {
        let word = Arc::new(PutOff::new());
        let mut extension = Self { word, opens, entry: Timestamp::PAST, is_refused: false };
        if let Some(entry) = entry {
            extension.settle(entry, None);
        }
        extension
    }

    pub(super) fn word(&self) -> Arc<PutOff> {
        Arc::clone(&self.word)
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Returns the moment to which the run was put off; that of a closed word has been counted with.
    pub(super) fn later(&self) -> Timestamp {
        // Ordering: Acquire, as in `close`.
        match self.word.later.load(Ordering::Acquire) {
            CLOSED => Timestamp::PAST,
            later => Timestamp::from_nanos(later),
        }
    }

    /// Returns `true` if the run was put off since the entry was last moved.
    pub(super) fn is_behind(&self) -> bool {
        self.later() > self.entry
    }

    /// Closes the word. Returns what it was, if it was open: the moment to which the run was put off.
    pub(super) fn close(&self) -> Option<Timestamp> {
        // Ordering: Acquire pairs with the Release of an extension: the run that was put off sees what came before.
        let later = self.word.later.swap(CLOSED, Ordering::Acquire);
        (later != CLOSED).then(|| Timestamp::from_nanos(later))
    }

    /// Opens the word, which is closed.
    fn open(&self, later: Timestamp) {
        // Ordering: Release, so that an extender sees the first call. No other thread writes a closed word.
        self.word.later.store(later.as_nanos(), Ordering::Release);
    }

    /// Opens the word as it was before it was closed.
    pub(super) fn restore(&self, closed: Option<Timestamp>) {
        if let Some(later) = closed {
            self.open(later);
        }
    }

    /// The task waits in the queue, for this moment, with which all is counted that the word was.
    pub(super) fn settle(&mut self, entry: Timestamp, calls: Option<&Calls>) {
        (self.entry, self.is_refused) = (entry, false);
        match self.opens {
            Opens::Never => {}
            Opens::Always => self.open(Timestamp::PAST),
            Opens::ByCalls => self.open_for(calls),
        }
    }

    /// The task waits in the queue, for this moment, and what the word was still counts. It is one write: between two an
    /// extender could write, and be overwritten.
    pub(super) fn settle_behind(&mut self, entry: Timestamp, later: Timestamp) {
        (self.entry, self.is_refused) = (entry, false);
        self.open(later);
    }

    /// Opens the word for further calls, if one waits for the run.
    pub(super) fn open_for(&self, calls: Option<&Calls>) {
        let first = calls.and_then(Calls::first).filter(|_| self.opens == Opens::ByCalls);
        if let Some(first) = first {
            // Ordering: see `put_off_for_call`.
            self.word.first_call.store(first.as_nanos(), Ordering::Relaxed);
            self.open(Timestamp::PAST);
        }
    }

    /// A worker has taken the task for a run that was planned then. Returns the moment to which the run was put off, if
    /// it does not take place for that.
    pub(super) fn look(&mut self, planned: Timestamp) -> Option<Timestamp> {
        if self.is_refused {
            return Some(planned);
        }
        let later = self.close().filter(|later| *later > planned)?;
        (self.entry, self.is_refused) = (later, true);
        Some(later)
    }

    /// A change has found no entry, and has closed the word, which was `closed`: a worker has the task. Returns the
    /// moment for which the task is to be queued again, if the run for which it was taken does not take place, so
    /// that the change can be noted for that.
    pub(super) fn await_refusal(
        &mut self,
        closed: Option<Timestamp>,
        is_periodic: bool,
    ) -> Option<Timestamp> {
        // A series is queued again in any case.
        let is_to_be = closed.is_some_and(|later| later > self.entry || !is_periodic);
        if !self.is_refused && !is_to_be {
            self.restore(closed);
            return None;
        }
        self.is_refused = true;
        Some(closed.map_or(self.entry, |later| later.max(self.entry)))
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "tests/exhaustive.rs"]
mod exhaustive;
