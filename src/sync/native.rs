//! The primitives for real use: `parking_lot`'s locks, the standard library's atomics and threads, and crossbeam's
//! parker. (The standard library's parker is shared with user code, which could take a token that was meant for this
//! crate.)

pub(crate) use scoped_tls::scoped_thread_local;
use std::cell::Cell;
pub(crate) use std::{hint::spin_loop, thread, thread_local};

pub(super) use crossbeam_utils::sync::{Parker as Token, Unparker};
pub(crate) use num_cpus::get as cores;

use super::process;

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
}

/// How many times a thread spins on a held lock before it waits in `parking_lot`.
const TURNS: u32 = 100;

#[derive(Debug, Default)]
pub(super) struct Lock<T: ?Sized>(parking_lot::Mutex<T>);

pub(super) type LockGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(super) fn into_inner(self) -> T {
        self.0.into_inner()
    }

    #[inline]
    pub(super) fn lock_briefly(&self) -> LockGuard<'_, T> {
        self.0.lock()
    }
}

impl<T: ?Sized> Lock<T> {
    #[inline]
    pub(super) fn lock(&self) -> LockGuard<'_, T> {
        self.0.try_lock().unwrap_or_else(|| self.lock_soon())
    }

    /// Takes a contended lock. Spins first, because a thread usually holds a lock of this crate for less than a
    /// microsecond; yielding takes longer, and `parking_lot` yields almost at once.
    #[cold]
    #[inline(never)]
    fn lock_soon(&self) -> LockGuard<'_, T> {
        for _ in 0..TURNS {
            spin_loop();
            if !self.0.is_locked() {
                if let Some(guard) = self.0.try_lock() {
                    return guard;
                }
            }
        }
        self.0.lock()
    }
}

pub(crate) fn is_finished(thread: &thread::JoinHandle<()>) -> bool {
    thread.is_finished()
}

thread_local! {
    static THREAD_NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// Returns the calling thread's number. Threads are numbered consecutively, so they spread evenly over the stripes.
#[inline]
pub(crate) fn thread_number() -> usize {
    static LAST: process::AtomicU64 = process::AtomicU64::new(0);
    let mut number = THREAD_NUMBER.with(Cell::get);
    if number == 0 {
        // Relaxed: orders no other access.
        number = LAST.fetch_add(1, process::Ordering::Relaxed) + 1;
        THREAD_NUMBER.with(|own| own.set(number));
    }
    number as usize
}
