//! Pace: an extender puts a run off; debounce and throttle serve many calls with one run. Each feature is a gate that
//! shares one atomic word with a handle.
//!
//! Putting a run off moves no queue entry. The handle raises an open word by one read-modify-write, without a lock. The
//! worker that takes the task at its old moment asks the gate, which answers [`Entry::At`] if the word is later.
//!
//! ```text
//!   entry     D ─────────────── taken: word > D ──▶ queued again at the word
//!   word      ──▶ E1 ──▶ E2                              taken: word ≤ now ──▶ closed, the run passes
//! ```
//!
//! # Why a granted extension holds
//!
//! The extender's gate lets a planned run pass only by changing the word from a due moment to *closed*, in one
//! compare-and-exchange. An extension changes only an open word, and only to a later moment. The atomic orders all
//! these changes. An extension that comes first makes the exchange fail, and the gate looks again; one that comes
//! second finds the word closed, and returns `false`. So no planned run begins before the moment of a granted
//! extension. The gate closes the word only after asking the user's gate, so an extension can be granted until then.
//!
//! # What reopens the word
//!
//! * **The extender** of a one-shot task does not reopen the word after the run, which ends the task. In a series, each
//!   run that the gate lets pass at once has a [`Lease`](crate::gate::Lease), whose `leave` opens the word when the run
//!   has ended or did not take place after all. So an extension that comes during a run is refused; one that comes
//!   after the run puts off the next run.
//! * **Calls**: a call that finds no other call waiting reopens the word with the moment when its run is due. The task
//!   runs on demand, so the call also asks for the run ([`TaskHandle::run_within`](crate::TaskHandle::run_within)).
//! * **The extender's gate** reopens a word that is still closed when a worker asks the gate. In that case no lease has
//!   reopened it, because the user's gate gave its answer later, or because a one-shot task lost its lease.
//! * The end of the task drops the gate, which closes the word for good.
//!
//! # What a call waits for
//!
//! The waiting calls are in one of two states, guarded by the lock of [`calls::Calls`]. *Open*: the run is still ahead,
//! and calls join it through the word. *Asked*: the gate has closed the word, and new calls are noted separately.
//!
//! | what happens next | calls before the gate was asked | later calls |
//! |---|---|---|
//! | the body begins | served | served |
//! | the user's gate puts the run off, or skips an extra run | go on waiting | join them |
//! | a planned run is skipped or overdue, or its hook fails | dropped with it | wait for a run of their own |
//!
//! The body notes that it begins. The trigger, which a worker asks after each tick, detects the case in the last row:
//! no body has begun, and the calls are still *asked*, or *open* with a word that was due before the worker took the
//! task. The trigger answers with the moment when the run for the calls still waiting is due, so none of them is lost.
//!
//! A throttled task notes when its body begins. Its gate puts off any run within the period, even one from `run_now`.
//!
//! # What else moves the task
//!
//! `cancel` ends the task, and drops the gate. `reschedule`, `run_within`, a pause and a new trigger choose when a
//! worker asks the gate; the word then decides whether the run passes. `run_now` gives a series an extra run, outside
//! its schedule ([`Tick::is_extra`](crate::gate::Tick::is_extra)). The extender lets that run pass; a debounced task
//! serves its calls with it. A call and a flush ask for their run after they release the lock, since asking may start a
//! thread. If the run has begun by then, one more run takes place, which serves no call.

mod calls;
mod debounce;
mod extender;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

pub use self::{
    debounce::{Debounced, Throttled},
    extender::Extender,
};
use crate::{Clock, gate::Entry};

const CLOSED: u64 = 0;
/// The earliest moment.
const FIRST: u64 = 1;
const NEVER: u64 = u64::MAX;

/// The moment before which no run takes place, shared by a handle and a gate; `CLOSED` while there is no such moment.
#[derive(Debug)]
struct Word(AtomicU64);

impl Word {
    /// Raises an open word to `moment()`, computed anew if another thread changes the word first. Returns `false` if
    /// the word is closed. If `joins`, also writes an unchanged word, so that the run sees what the caller did before.
    #[inline]
    fn raise(&self, joins: bool, moment: impl Fn() -> u64) -> bool {
        // Ordering: Acquire pairs with the Release by which the word was opened, and Release with the Acquire of
        // `close_at`.
        let mut seen = self.0.load(Ordering::Acquire);
        while seen != CLOSED {
            let moment = moment();
            if moment <= seen && !joins {
                return true;
            }
            let raised = moment.max(seen);
            match self.0.compare_exchange_weak(seen, raised, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Closes the word if its moment has come, and returns that moment; `None` if the word was already closed.
    ///
    /// # Errors
    ///
    /// Returns the moment if it is still ahead.
    fn close_at(&self, now: u64) -> Result<Option<u64>, u64> {
        // Ordering: Acquire pairs with the Release of `raise`: the run sees what the callers did before.
        let closed = self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, |seen| {
            (seen != CLOSED && seen <= now).then_some(CLOSED)
        });
        match closed {
            Ok(moment) => Ok(Some(moment)),
            Err(CLOSED) => Ok(None),
            Err(later) => Err(later),
        }
    }

    fn close(&self) {
        _ = self.close_at(NEVER);
    }

    fn open(&self, moment: u64) {
        // Ordering: Release, so that callers who join see what the opening thread did before.
        self.0.store(moment.max(FIRST), Ordering::Release);
    }

    /// Lowers an open word to `moment`, if that is earlier. Returns `false` if the word is closed.
    fn lower(&self, moment: u64) -> bool {
        let lower = |seen: u64| (seen != CLOSED).then_some(seen.min(moment).max(FIRST));
        // Ordering: as in `raise`.
        self.0.fetch_update(Ordering::Release, Ordering::Relaxed, lower).is_ok()
    }

    fn later_than(&self, moment: u64) -> Option<u64> {
        // Ordering: relaxed. This closes nothing, so no run begins because of it.
        Some(self.0.load(Ordering::Relaxed)).filter(|seen| *seen > moment)
    }

    fn is_closed(&self) -> bool {
        // Ordering: relaxed. A thread that acts on it holds the calls' lock, or asks an extender's gate.
        self.0.load(Ordering::Relaxed) == CLOSED
    }
}

/// A clock whose moments are numbers: the nanoseconds since it was made, plus [`FIRST`].
#[derive(Debug)]
struct Time {
    clock: Clock,
    origin: Instant,
}

impl Time {
    fn new(clock: Clock) -> Self {
        let origin = clock.now();
        Self { clock, origin }
    }

    #[inline]
    fn now(&self) -> u64 {
        self.of(self.clock.now())
    }

    #[inline]
    fn of(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.origin)).saturating_add(FIRST)
    }

    fn put_off(&self, moment: u64) -> Entry {
        let instant = self.instant(moment).filter(|_| moment < NEVER);
        instant.map_or(Entry::Again(Duration::MAX), Entry::At)
    }

    fn instant(&self, moment: u64) -> Option<Instant> {
        self.origin.checked_add(Duration::from_nanos(moment.saturating_sub(FIRST)))
    }
}

#[inline]
fn nanos(span: Duration) -> u64 {
    // Not `as_nanos`, whose 128 bits take twice the instructions.
    let seconds = span.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(span.subsec_nanos()))
}
