//! The primitives that the whole crate uses: locks, atomics and thread parking.
//!
//! There are two backends: one for real use (`native`), and one in which a model checker decides which thread runs next
//! (`model`). The manifest `tests/proof/models/Cargo.toml` builds the second, with `--cfg shuttle` or `--cfg loom`; the
//! published manifest never does.
//!
//! * [`Mutex`] has no poisoning: a change under a lock runs no code that may panic, so no value is ever left half
//!   changed.
//! * Every thread sleeps on its [`Parker`], through which other threads wake it.
//! * Threads take locks in one order, which debug builds check: [`rank`].
//!
//! The pages `docs/locks.md` and `docs/atomics.md` list every lock and every atomic of the crate.

#[cfg(punctual_models)]
#[path = "sync/tests/model.rs"]
mod backend;
#[cfg(not(punctual_models))]
#[path = "sync/native.rs"]
mod backend;
mod parker;
pub(crate) mod rank;

use std::ops::{Deref, DerefMut};
pub(crate) use std::sync::{Arc, OnceLock, Weak};

#[cfg(punctual_models)]
pub(crate) use self::backend::Scoped;
use self::backend::{Lock, LockGuard};
#[cfg(debug_assertions)]
use self::rank::Held;
pub(crate) use self::{
    backend::{
        atomic, cores, is_finished, scoped_thread_local, spin_loop, thread, thread_local,
        thread_number,
    },
    parker::{ParkedThread, Parker, spin_until},
};

/// Atomics that order nothing, so the models need not see them: numbers that are handed out once, flags that stay set,
/// and a handle's flags for its own drop.
pub(crate) mod process {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
}

/// A lock without poisoning. Its [`rank`] says which locks a thread may hold when it takes this one.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized, const RANK: u8 = { rank::LEAF }> {
    /// The lock's number among the locks of its rank.
    #[cfg(debug_assertions)]
    number: u8,
    // Last, since its value may be unsized.
    lock: Lock<T>,
}

pub(crate) struct MutexGuard<'a, T: ?Sized> {
    guard: LockGuard<'a, T>,
    // After the guard, so that the lock is free before it counts as not held.
    #[cfg(debug_assertions)]
    _held: Held,
}

impl<T, const RANK: u8> Mutex<T, RANK> {
    pub(crate) fn new(value: T) -> Self {
        Self::numbered(0, value)
    }

    /// Makes the lock with this number. A thread may hold several locks of rank `STRIPE`, taken in numerical order.
    pub(crate) fn numbered(number: usize, value: T) -> Self {
        #[cfg(not(debug_assertions))]
        let _ = number;
        Self {
            #[cfg(debug_assertions)]
            number: number as u8,
            lock: Lock::new(value),
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.lock.into_inner()
    }

    /// Like [`lock`](Self::lock), but compiles to less code: for rarely contended locks in functions that are compiled
    /// for each closure.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock_briefly(&self) -> MutexGuard<'_, T> {
        self.guard(Lock::lock_briefly)
    }
}

impl<T: ?Sized, const RANK: u8> Mutex<T, RANK> {
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.guard(Lock::lock)
    }

    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    fn guard<'a>(
        &'a self,
        lock: impl FnOnce(&'a Lock<T>) -> LockGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        #[cfg(debug_assertions)]
        let _held = Held::new::<T>(RANK, self.number);
        MutexGuard {
            guard: lock(&self.lock),
            #[cfg(debug_assertions)]
            _held,
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "sync/tests/exhaustive.rs"]
pub(crate) mod exhaustive;
