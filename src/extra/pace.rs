//! Pace: a run that is put off, and one run for many calls. Each is a gate, with one word that it shares with the handle.
//!
//! The entry of the task stays where it is in the queue. The handle raises the word, with one read-modify-write and no lock.
//! The worker that takes the task at its old moment asks the gate, and the gate answers [`Entry::At`] if the word is later.
//!
//! ```text
//!   entry     D ─────────────── taken: word > D ──▶ queued again at the word
//!   word      ──▶ E1 ──▶ E2                              taken: word ≤ now ──▶ closed, the run passes
//! ```
//!
//! # Why the answer is true
//!
//! The gate lets a run pass only by changing the word from a moment that has come to *closed*, in one compare-and-exchange. An
//! extender changes only an open word, and only to a later moment. All of these are changes of one atomic and so have an
//! order. An extension before the closing makes it fail, and the gate looks again; one after it finds the word
//! closed, changes nothing and returns `false`. So no run that the gate has let pass begins before an extension that
//! was answered `true`. A gate of the user's is asked between the look and the closing, so that no time passes after it.
//!
//! # Who opens the word again
//!
//! * **The extender** of a one-shot task: nobody, since the task ends with that run. A series has each run under
//!   a [`Lease`](crate::gate::Lease), whose `leave` opens the word when the run is over, whether it has taken place, has panicked or
//!   was left out after all. So an extension during a run is refused, and one after it is for the next run.
//! * **Calls**: the next call, with its own moment. The task is on demand, and a call that finds none waiting asks for a run
//!   ([`TaskHandle::run_within`](crate::TaskHandle::run_within)).
//! * A gate that is asked again about a run that it has let pass (the lease of the user's gate was lost) opens it.
//! * The end of the task drops the gate, and that closes the word for good.
//!
//! # What a call waits for
//!
//! The calls that wait for a run are in one of two states, under the lock of [`calls::Calls`]. *Open*: the run is to come, and
//! further calls join it by the word. *Asked*: the gate has closed the word and lets the run pass, unless the gate of the
//! user's does not; a call that comes now waits beside the others.
//!
//! | then | the calls before | the calls since |
//! |---|---|---|
//! | the body begins | served | served |
//! | the user's gate puts the run off | go on waiting | join them |
//! | the run is skipped, left out as overdue, or its hook fails | gone with it | wait for a run of their own |
//!
//! The body itself says that it begins. Of the last row the trigger learns: it is asked for the next run after each tick, and by
//! then the calls are asked still, or open with a moment from before the run was taken. What it answers is when the calls are due
//! that still wait, so no request for a moment is lost on the way.
//!
//! A throttled task keeps when its body last began, and the gate puts off whatever would begin within the period, also a
//! run by hand: nobody but the gate decides.
//!
//! # Others who move the task
//!
//! `cancel` ends it, and the gate is dropped. `pause` keeps it from being looked at; the word goes on to count. `reschedule`,
//! `run_within` and a new trigger choose when the gate looks, and the word decides then. `run_now` of a series is beside its
//! schedule ([`Tick::is_extra`](crate::gate::Tick::is_extra)): it passes the extender, and takes the calls of a debounced task with it.
//! The call that asks for a run and the flush do so after they have released the lock, since that may start a thread. If the run
//! has begun in between, for another reason, one run more takes place, for no call. A drained task that is run by hand
//! asks no gate: its holder has decided.

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

/// The word is not to be raised.
const CLOSED: u64 = 0;
/// The first moment, and the last, which never comes.
const FIRST: u64 = 1;
const NEVER: u64 = u64::MAX;

/// The moment before which a run does not take place, shared by a handle and a gate.
#[derive(Debug)]
struct Word(AtomicU64);

impl Word {
    /// Raises the open word to `moment`, which is asked again if another thread was faster. Returns `false` if it is closed.
    /// If the caller `joins` a run it writes also what is there, so that the run sees what the caller has done before.
    #[inline]
    fn raise(&self, joins: bool, moment: impl Fn() -> u64) -> bool {
        // Ordering: Acquire pairs with the Release by which the word was opened, and Release with the Acquire of `close_at`.
        let raised = self.0.fetch_update(Ordering::Release, Ordering::Acquire, |seen| {
            let moment = moment();
            (seen != CLOSED && (joins || moment > seen)).then_some(moment.max(seen))
        });
        raised != Err(CLOSED)
    }

    /// Closes the word if its moment has come, and returns what it was; `None` if it is closed.
    ///
    /// # Errors
    ///
    /// The moment, if it is to come.
    fn close_at(&self, now: u64) -> Result<Option<u64>, u64> {
        // Ordering: Acquire pairs with the Release of `raise`: the run sees what came before.
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
        // Ordering: Acquire, as in `close_at`.
        self.0.swap(CLOSED, Ordering::Acquire);
    }

    fn open(&self, moment: u64) {
        // Ordering: Release, for what those see who join.
        self.0.store(moment.max(FIRST), Ordering::Release);
    }

    /// Lowers the open word to `moment`. Returns `false` if it is closed.
    fn lower(&self, moment: u64) -> bool {
        let lower = |seen: u64| (seen != CLOSED).then_some(seen.min(moment).max(FIRST));
        // Ordering: as in `raise`.
        self.0.fetch_update(Ordering::Release, Ordering::Relaxed, lower).is_ok()
    }

    /// Returns the moment of the word if it is open and later.
    fn later_than(&self, moment: u64) -> Option<u64> {
        // Ordering: relaxed. It closes nothing, so nothing begins by it.
        Some(self.0.load(Ordering::Relaxed)).filter(|seen| *seen > moment)
    }

    fn is_closed(&self) -> bool {
        // Ordering: relaxed. Those who act on it hold the lock under which the word is opened and closed.
        self.0.load(Ordering::Relaxed) == CLOSED
    }
}

/// A clock whose moments are numbers: nanoseconds since this was made, counted from [`FIRST`].
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

    /// Returns the answer of a gate that puts a run off until `moment`.
    fn put_off(&self, moment: u64) -> Entry {
        let instant = self.instant(moment).filter(|_| moment < NEVER);
        instant.map_or(Entry::Again(Duration::MAX), Entry::At)
    }

    /// Returns the moment as an instant, if one can represent it.
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
