//! How a thread spins, sleeps, and is woken.
//!
//! Each thread has one [`Parker`]. Others wake the thread through an ordinary [`Waker`], so one
//! line of code wakes a blocked thread and an awaiting future alike.
//!
//! A wake-up is never lost between the thread's look and its sleep: waking stores a token, and a
//! park that finds a token stored returns at once. So a late wake-up makes the *next* park return
//! early. Every caller therefore parks in a loop that looks again, and no caller may conclude
//! anything from the return of a park.
//!
//! # Adaptive spinning
//!
//! How long does a thread that has nothing to do spin before it parks? A thread needs some
//! microseconds to wake up, and tens of them if its core has gone idle; the thread that wakes it
//! pays too. If what it waits for comes sooner than that, spinning is cheaper for both. If not, the
//! spinning was wasted. So a thread learns from its last waits ([`AdaptiveSpin`]): after a short one
//! it spins for as long as a wake-up costs, after a long one only for half as long as before. A
//! thread whose waits are long does not spin at all.
//!
//! After a few turns the spinning thread yields, each time, to any other thread that wants its core
//! ([`spin_until`]): that may be the one it waits for, and in any case no other thread is kept from
//! working.
//!
//! # Observers
//!
//! A manual clock has to know whether a sleeping thread was woken and has not come back yet. It
//! puts a [`WakeObserver`] of its own on each thread that waits on it. A thread that never waits on
//! a manual clock has none: to wake it is one load, which finds nothing, and the unpark. The
//! observer belongs to the thread and not to one of its wakers, because a thread is named on lists
//! of waiters by its waker, and that must not change.

use std::{
    any::Any,
    cell::Cell,
    rc::Rc,
    task::{Wake, Waker},
    time::{Duration, Instant},
};

use super::{
    Arc, OnceLock,
    backend::{Token, Unparker},
    rank, spin_loop, thread, thread_local,
};

thread_local! {
    static PARKER: Rc<Parker> = Rc::new(Parker::new());
}

/// The calling thread, as one that can sleep until it is woken. See the [module](self).
pub(crate) struct Parker {
    token: Token,
    thread: Arc<ParkedThread>,
    waker: Waker,
    spin: AdaptiveSpin,
}

/// A thread, as the others see it that wake it.
pub(crate) struct ParkedThread {
    unparker: Unparker,
    observer: OnceLock<Box<dyn WakeObserver>>,
}

/// An observer of the wake-ups of one thread.
pub(crate) trait WakeObserver: Send + Sync + 'static {
    /// The thread is about to be unparked. Runs in the thread that wakes it.
    fn on_wake(&self);

    fn as_any(&self) -> &dyn Any;
}

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(observer) = self.observer.get() {
            observer.on_wake();
        }
        self.unparker.unpark();
    }
}

impl ParkedThread {
    /// The observer of this thread, if it has one of that type.
    pub(crate) fn observer<O: WakeObserver>(&self) -> Option<&O> {
        self.observer.get().and_then(|observer| observer.as_any().downcast_ref())
    }
}

impl Parker {
    fn new() -> Self {
        let token = Token::new();
        let thread =
            Arc::new(ParkedThread { unparker: token.unparker(), observer: OnceLock::new() });
        let waker = Waker::from(Arc::clone(&thread));
        Self { token, thread, waker, spin: AdaptiveSpin::new() }
    }

    /// The parker of the calling thread, or a new one while the thread is being torn down.
    pub(crate) fn current() -> Rc<Self> {
        PARKER.try_with(Rc::clone).unwrap_or_else(|_| Rc::new(Self::new()))
    }

    /// Returns the waker that ends a park of this thread.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// How long this thread spins before it parks.
    pub(crate) fn spin(&self) -> &AdaptiveSpin {
        &self.spin
    }

    pub(crate) fn thread(&self) -> &Arc<ParkedThread> {
        &self.thread
    }

    /// From now on `observer` is told of every wake-up of this thread, unless the thread has an
    /// observer already.
    pub(crate) fn observe(&self, observer: impl WakeObserver) {
        self.thread.observer.get_or_init(|| Box::new(observer));
    }

    /// Sleeps until the thread is woken, or not at all if that has happened already.
    pub(crate) fn park(&self) {
        rank::assert_none_held("a thread is about to sleep");
        self.token.park();
    }

    /// The same, but at most until `instant`.
    pub(crate) fn park_until(&self, instant: Instant) {
        rank::assert_none_held("a thread is about to sleep");
        self.token.park_until(instant);
    }
}

/// The rough cost of a wake-up; the longest time to spin.
const LONGEST_SPIN: Duration = Duration::from_micros(20);
/// A time to spin that is shorter than this counts as none.
const SHORTEST_SPIN: Duration = Duration::from_micros(1);
/// How many turns a thread spins before it yields in each.
const EAGER_TURNS: u32 = 4;

/// How long a thread spins before it parks; see the [module](self). Belongs to that thread.
pub(crate) struct AdaptiveSpin(Cell<Duration>);

impl AdaptiveSpin {
    const fn new() -> Self {
        Self(Cell::new(LONGEST_SPIN))
    }

    /// Returns how long to spin before the next park.
    pub(crate) fn span(&self) -> Duration {
        self.0.get()
    }

    /// Takes note of how long a wait was.
    pub(crate) fn learn(&self, waited: Duration) {
        let half = self.0.get() / 2;
        let next = if half < SHORTEST_SPIN { Duration::ZERO } else { half };
        self.0.set(if waited <= LONGEST_SPIN { LONGEST_SPIN } else { next });
    }
}

/// Calls `look` until it has an answer.
pub(crate) fn spin_until<R>(look: impl Fn() -> Option<R>) -> R {
    for _ in 0..EAGER_TURNS {
        if let Some(answer) = look() {
            return answer;
        }
        spin_loop();
    }
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        thread::yield_now();
    }
}
