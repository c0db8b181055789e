//! The record that the manual clocks keep of one thread: whether it was woken, and for which of them it works.
//!
//! A sleeping thread that was woken is on its way, although it may not have a core yet, and must not
//! count as asleep. So every wake-up of the thread is counted here, before the thread is unparked,
//! and the thread itself takes note of the count when it is back from its park. A thread that never
//! waits on a manual clock and never works for one has no such record, and nothing is counted for it.
//!
//! The record comes to be when the thread becomes a worker or begins its first wait, so before
//! any other thread can have its waker for that wait.
//!
//! # When a thread takes note
//!
//! It does so after each park, on whichever clock, and before it looks at what the wake-ups were
//! about. On a manual clock it is off the list by then. So a wake-up that comes later is never taken
//! for one that was noticed. The count is acquired, so the look sees what was done before each
//! wake-up in the count, also if the thread has not been unparked for it yet.

use std::any::Any;

use crate::sync::{
    ParkedThread, Parker, WakeObserver,
    atomic::{AtomicU32, AtomicUsize, Ordering},
};

/// See the [module](self).
#[derive(Default)]
pub(in crate::time) struct Presence {
    /// How often the thread was woken.
    wakes: AtomicU32,
    /// How many of these wake-ups the thread has noticed.
    noticed: AtomicU32,
    /// The address of the clock whose worker the thread is; zero if it is no such worker.
    works_for: AtomicUsize,
}

impl WakeObserver for Presence {
    fn on_wake(&self) {
        // Ordering: releases what was done before the wake-up to `notice`.
        self.wakes.fetch_add(1, Ordering::Release);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Presence {
    /// Returns the record of the calling thread, whose parker this is.
    pub(in crate::time) fn of(parker: &Parker) -> &Self {
        if parker.thread().observer::<Self>().is_none() {
            parker.observe(Self::default());
        }
        match parker.thread().observer() {
            Some(presence) => presence,
            None => unreachable!("there are no other observers"),
        }
    }

    /// The calling thread takes note of every wake-up so far.
    pub(super) fn notice(&self) {
        // Ordering: acquires what was done before the wake-ups, from `on_wake`.
        let wakes = self.wakes.load(Ordering::Acquire);
        // Relaxed: orders no other access; other threads read it when the thread is on their list.
        self.noticed.store(wakes, Ordering::Relaxed);
    }

    /// The same after a park on the system's clock, if the thread has a record.
    pub(in crate::time) fn notice_after_park(parker: &Parker) {
        if let Some(presence) = parker.thread().observer::<Self>() {
            presence.notice();
        }
    }

    fn is_woken(&self) -> bool {
        // Relaxed: orders no other access; a wake-up that came before is seen in any case.
        self.wakes.load(Ordering::Relaxed) != self.noticed.load(Ordering::Relaxed)
    }

    /// Says for which clock the calling thread, whose parker this is, works from now on. Returns
    /// the one before.
    pub(in crate::time) fn set_works_for(parker: &Parker, clock: usize) -> usize {
        if clock == 0 && parker.thread().observer::<Self>().is_none() {
            return 0;
        }
        // Relaxed: orders no other access; only the thread itself reads and writes it.
        Self::of(parker).works_for.swap(clock, Ordering::Relaxed)
    }

    pub(super) fn works_for(&self, clock: usize) -> bool {
        // Relaxed: orders no other access; only the thread itself reads and writes it.
        self.works_for.load(Ordering::Relaxed) == clock
    }
}

/// Returns `true` if the thread was woken and has not taken note of that.
pub(super) fn is_woken(thread: &ParkedThread) -> bool {
    thread.observer().is_some_and(Presence::is_woken)
}
