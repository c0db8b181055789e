//! The primitives for a model checker, which decides at every step which thread runs next.
//!
//! Models use the manual clock, so no thread ever waits for an `Instant`: a timed wait that never
//! times out would hide a leader that sleeps too long. The test moves the clock one step at a time,
//! and the clock wakes the threads that wait for that step. See `docs/testing.md`.

#[cfg(loom)]
#[path = "loom.rs"]
mod checker;
#[cfg(not(loom))]
mod checker {
    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::{hint::spin_loop, thread, thread_local};

    /// Returns the calling thread's number, which depends on nothing outside the execution, so that this can be
    /// repeated.
    pub(crate) fn thread_number() -> usize {
        shuttle::current::try_get_current_task().map_or(0, usize::from)
    }

    /// Returns `true` if a park is to end for no reason, as any park may; one in eight does.
    pub(super) fn is_restless() -> bool {
        use shuttle::rand::{Rng, thread_rng};
        thread_rng().gen_ratio(1, 8)
    }

    /// The atomics of the crate.
    pub(crate) mod atomic {
        pub(crate) use shuttle::sync::atomic::{
            AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        };
    }
}

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Instant};

use self::checker::{Condvar, Mutex, MutexGuard, is_restless};
pub(crate) use self::checker::{atomic, spin_loop, thread, thread_local, thread_number};

#[derive(Debug, Default)]
pub(super) struct Lock<T: ?Sized>(Mutex<T>);

pub(super) type LockGuard<'a, T> = MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(super) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn lock_briefly(&self) -> LockGuard<'_, T> {
        self.lock()
    }
}

impl<T: ?Sized> Lock<T> {
    pub(super) fn lock(&self) -> LockGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The token on which a thread parks.
pub(super) struct Token(Unparker);

#[derive(Clone, Default)]
pub(super) struct Unparker(Arc<(Mutex<bool>, Condvar)>);

impl Token {
    pub(super) fn new() -> Self {
        Self(Unparker::default())
    }

    pub(super) fn unparker(&self) -> &Unparker {
        &self.0
    }

    pub(super) fn park(&self) {
        if is_restless() {
            return;
        }
        let (stored, changed) = &*self.0.0;
        let mut stored = stored.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while !*stored {
            stored = changed.wait(stored).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *stored = false;
    }

    pub(super) fn park_deadline(&self, _: Instant) {
        unreachable!("the model's time is the manual clock's");
    }
}

impl Unparker {
    pub(super) fn unpark(&self) {
        let (stored, changed) = &*self.0;
        *stored.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        changed.notify_all();
    }
}

/// Does what `scoped-tls` does, for threads that are coroutines of one real thread: each has a stack
/// of its own with copies of the values, in place of references.
pub(crate) struct Scoped<T: 'static>(pub(crate) &'static thread::LocalKey<RefCell<Vec<Rc<T>>>>);

/// Takes the innermost value off the stack again, even during an unwind.
struct Leave<T: 'static>(&'static thread::LocalKey<RefCell<Vec<Rc<T>>>>);

impl<T> Drop for Leave<T> {
    fn drop(&mut self) {
        let _ = self.0.try_with(|stack| stack.borrow_mut().pop());
    }
}

impl<T: Clone + 'static> Scoped<T> {
    pub(crate) fn set<R>(&self, value: &T, body: impl FnOnce() -> R) -> R {
        self.0.with(|stack| stack.borrow_mut().push(Rc::new(value.clone())));
        let _leave = Leave(self.0);
        body()
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.try_with(|stack| !stack.borrow().is_empty()).unwrap_or(false)
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let value = self.0.with(|stack| stack.borrow().last().cloned());
        match value {
            Some(value) => look(&value),
            None => unreachable!("nothing is set"),
        }
    }
}

macro_rules! scoped_thread_local {
    (static $name:ident: $value:ty) => {
        static $name: $crate::sync::Scoped<$value> = {
            $crate::sync::thread_local! {
                static STACK: std::cell::RefCell<Vec<std::rc::Rc<$value>>> =
                    std::cell::RefCell::default();
            }
            $crate::sync::Scoped(&STACK)
        };
    };
}
pub(crate) use scoped_thread_local;

/// Returns `true` if the thread has ended, which a model cannot tell.
pub(crate) fn is_finished(_: &thread::JoinHandle<()>) -> bool {
    false
}

/// Returns the number of cores: the same on every machine.
pub(crate) fn cores() -> usize {
    2
}
