//! The ground as it is built for use: `parking_lot`, the standard library, and a parker of
//! crossbeam's, whose token nobody else can take.

pub(crate) use scoped_tls::scoped_thread_local;
use std::time::Instant;
pub(crate) use std::{hint::spin_loop, thread, thread_local};

pub(super) use crossbeam_utils::sync::Unparker;

/// The atomics of the crate.
pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// How many turns a thread waits for a lock before it gives way.
const TURNS: u32 = 100;

#[derive(Debug, Default)]
pub(super) struct Lock<T>(parking_lot::Mutex<T>);

pub(super) type LockGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    #[inline]
    pub(super) fn lock(&self) -> LockGuard<'_, T> {
        self.0.try_lock().unwrap_or_else(|| self.lock_soon())
    }

    /// The lock is taken. What is done under one of this crate takes less than a microsecond as a
    /// rule; to give way takes as long, and that is what `parking_lot` does almost at once.
    #[cold]
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

    pub(super) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

#[derive(Debug, Default)]
pub(super) struct Condition(parking_lot::Condvar);

impl Condition {
    pub(super) fn wait<T>(&self, guard: &mut LockGuard<'_, T>) {
        self.0.wait(guard);
    }

    pub(super) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// What a thread parks on.
pub(super) struct Token(crossbeam_utils::sync::Parker);

impl Token {
    pub(super) fn new() -> Self {
        Self(crossbeam_utils::sync::Parker::new())
    }

    pub(super) fn unparker(&self) -> Unparker {
        self.0.unparker().clone()
    }

    pub(super) fn park(&self) {
        self.0.park();
    }

    pub(super) fn park_until(&self, instant: Instant) {
        self.0.park_deadline(instant);
    }
}

/// Whether the thread is at its end.
pub(crate) fn is_finished(thread: &thread::JoinHandle<()>) -> bool {
    thread.is_finished()
}
