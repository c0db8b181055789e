//! The primitives: the names of locks, atomics and parked threads that the whole crate uses.
//!
//! Every other module takes its primitives from here and from nowhere else, so that what a
//! lock *is* can be changed in one place (another library, a model checker) without a line of
//! the protocols changing.
//!
//! There are two grounds: the one for use (`native`), and one on which a model checker decides who
//! goes next (`model`). The manifest `ci/models/Cargo.toml` builds on the second, with `--cfg shuttle`
//! or `--cfg loom`; the published one never does. Nothing else in the crate knows which it is.
//!
//! # What is promised
//!
//! * [`Mutex::lock`] returns a guard and nothing else. There is no poisoning: no user code
//!   runs under a lock of this crate, so no lock is ever abandoned half-way by a panic.
//! * [`Parker`] is how a thread waits, everywhere: for a task to fall due, for a result, for
//!   termination, for a token. Each thread has one. What others hold to wake it is an ordinary
//!   [`Waker`], so a blocked thread and an awaiting future are woken by the same line of code.
//! * A wake-up is never lost between "I looked" and "I sleep": waking stores a token, and
//!   parking with a token stored returns at once. A late wake-up therefore makes the *next*
//!   park return early. Every caller parks in a loop that looks again; none of them may take a
//!   return from `park` as news.
//!
//! # How the rule about user code is kept
//!
//! In debug builds the guards count, for each thread, how many locks it holds, and
//! [`unwind`](crate::unwind), the one door to user code, asserts that the count is zero.
//! Every test in the crate is therefore also a test of the rule. In release builds the counter
//! does not exist.
//!
//! Several locks are held at once in three places only, and always in this order: a task's cell,
//! then a stripe or the gate of the queue (`Pool::rearm`; explained at the head of `pool`); the
//! ready list of a queue, then its stripes, by their numbers (`queue`); and before those of the
//! queue the one of who asks whether it is empty, or counts: crew or lifecycle (`pool`); the list of
//! joins after that of the crew.

#[cfg(punctual_models)]
#[path = "sync/model.rs"]
mod backend;
#[cfg(not(punctual_models))]
#[path = "sync/native.rs"]
mod backend;
pub(crate) mod rank;
pub(crate) mod spin;

pub(crate) use std::sync::{Arc, OnceLock, Weak};
use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    rc::Rc,
    task::{Wake, Waker},
    time::Instant,
};

#[cfg(punctual_models)]
pub(crate) use self::backend::Scoped;
pub(crate) use self::backend::{
    atomic, cores, is_finished, scoped_thread_local, spin_loop, thread, thread_local, thread_number,
};
#[cfg(debug_assertions)]
use self::rank::Held;
use self::{
    atomic::{AtomicU32, Ordering},
    backend::{Condition, Lock, LockGuard, Token, Unparker},
    spin::AdaptiveSpin,
};

/// What belongs to the process and orders nothing: numbers that are given out once, and whether
/// something was ever switched on. No model need see them.
pub(crate) mod process {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

/// A lock without poisoning. Its rank says which locks a thread may hold when it takes this one:
/// see [`rank`].
#[derive(Debug, Default)]
pub(crate) struct Mutex<T, const RANK: u8 = { rank::LEAF }> {
    lock: Lock<T>,
    /// The lock's number among those of its rank.
    #[cfg(debug_assertions)]
    number: u8,
}

/// Access to what a [`Mutex`] protects; releases the lock when dropped.
pub(crate) struct MutexGuard<'a, T> {
    guard: LockGuard<'a, T>,
    // After the guard, so that the lock is free before it counts as not held.
    #[cfg(debug_assertions)]
    _held: Held,
}

impl<T, const RANK: u8> Mutex<T, RANK> {
    pub(crate) fn new(value: T) -> Self {
        Self::numbered(0, value)
    }

    /// One of several locks of its rank that a thread may hold together.
    pub(crate) fn numbered(number: usize, value: T) -> Self {
        #[cfg(not(debug_assertions))]
        let _ = number;
        Self {
            lock: Lock::new(value),
            #[cfg(debug_assertions)]
            number: number as u8,
        }
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(debug_assertions)]
        let _held = Held::new::<T>(RANK, self.number);
        MutexGuard {
            guard: self.lock.lock(),
            #[cfg(debug_assertions)]
            _held,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition on what a [`Mutex`] protects. Used by the manual clock alone; everything that
/// waits for time parks.
#[derive(Debug, Default)]
pub(crate) struct Condvar(Condition);

impl Condvar {
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        rank::assert_one_held("a thread is about to wait");
        self.0.wait(&mut guard.guard);
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

thread_local! {
    static PARKER: Rc<Parker> = Rc::new(Parker::new());
}

/// The calling thread, as one that can sleep until somebody rings.
pub(crate) struct Parker {
    token: Token,
    bell: Arc<Bell>,
    waker: Waker,
    /// The clock whose worker this thread is, by its address; zero if it is nobody's.
    clock: Cell<usize>,
    spin: AdaptiveSpin,
}

/// What wakes a parked thread.
///
/// It counts how often it was rung and how many of those its thread has heard. Only the manual
/// clock asks: a sleeper that has been rung for is on its way, and does not count as resting.
pub(crate) struct Bell {
    unparker: Unparker,
    rings: AtomicU32,
    heard: AtomicU32,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Ordering: released to whoever asks `is_rung`; the sleeper is ordered by the token.
        self.rings.fetch_add(1, Ordering::Release);
        self.unparker.unpark();
    }
}

impl Bell {
    /// Whether somebody rang and the thread has not come back from its park since.
    pub(crate) fn is_rung(&self) -> bool {
        // Ordering: pairs with `wake_by_ref`; `heard` is read under the lock it is written under.
        self.rings.load(Ordering::Acquire) != self.heard.load(Ordering::Acquire)
    }
}

impl Parker {
    fn new() -> Self {
        let token = Token::new();
        let bell = Arc::new(Bell {
            unparker: token.unparker(),
            rings: AtomicU32::new(0),
            heard: AtomicU32::new(0),
        });
        let waker = Waker::from(Arc::clone(&bell));
        Self { token, bell, waker, clock: Cell::new(0), spin: AdaptiveSpin::new() }
    }

    /// The parker of the calling thread, or a new one while the thread is being torn down.
    pub(crate) fn current() -> Rc<Self> {
        PARKER.try_with(Rc::clone).unwrap_or_else(|_| Rc::new(Self::new()))
    }

    /// What others keep to end a park of this thread.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// How long this thread looks on before it parks.
    pub(crate) fn spin(&self) -> &AdaptiveSpin {
        &self.spin
    }

    pub(crate) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Says that this thread is a worker of a pool on this clock; gives what it was before.
    pub(crate) fn work_by(&self, clock: usize) -> usize {
        self.clock.replace(clock)
    }

    pub(crate) fn works_by(&self, clock: usize) -> bool {
        self.clock.get() == clock
    }

    /// Sleeps until rung, or not at all if that has happened already.
    pub(crate) fn park(&self) {
        rank::assert_none_held("a thread is about to sleep");
        self.token.park();
    }

    /// The same, but at most until `instant`.
    pub(crate) fn park_until(&self, instant: Instant) {
        rank::assert_none_held("a thread is about to sleep");
        self.token.park_until(instant);
    }

    /// Takes note of every ring so far. To be called after a park and before looking at what
    /// the ring was about: a ring that comes later is then never taken for heard.
    pub(crate) fn hear(&self) {
        // Ordering: acquires what the ringer did before it rang.
        let rings = self.bell.rings.load(Ordering::Acquire);
        self.bell.heard.store(rings, Ordering::Release);
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "sync/tests/exhaustive.rs"]
pub(crate) mod exhaustive;
