//! How a thread spins, sleeps, and is woken.
//!
//! Each thread has one [`Parker`]. Other threads wake the thread with an ordinary [`Waker`], as they wake async tasks.
//!
//! No wake-up is lost between the thread's last poll and its sleep: waking stores a token, and a park that finds one
//! returns at once. So a late wake-up makes the *next* park return early, which is why every caller parks in a loop.
//!
//! # Adaptive spinning
//!
//! A thread needs a few microseconds to wake up, and tens of them if its core has gone idle. For a shorter wait,
//! spinning is cheaper. So a thread learns from its recent waits ([`Parker::learn`]): after a short one it spins for as
//! long as a wake-up takes, and after a long one only for half as long as before.
//!
//! # Wake-ups that are on their way
//!
//! A manual clock has to know whether a sleeping thread has been woken, even if that thread has no core yet. So the
//! waking thread counts each wake-up before it unparks the sleeper, and the woken thread notes the count after each
//! park, before it polls. By then the woken thread is off the clock's list. A later wake-up is still unnoticed when
//! that thread is listed again, so the clock sees the wake-up.

use std::{
    cell::Cell,
    rc::Rc,
    task::{Wake, Waker},
    time::{Duration, Instant},
};

use super::{
    Arc,
    atomic::{AtomicU32, Ordering},
    backend::{Token, Unparker},
    rank, spin_loop, thread, thread_local,
};

thread_local! {
    static PARKER: Rc<Parker> = Rc::new(Parker::new());
}

/// What a thread parks on. See the [module](self).
pub(crate) struct Parker {
    token: Token,
    pub(crate) thread: Arc<ParkedThread>,
    waker: Waker,
    /// The address of the manual clock that the thread works for; zero if it works for none.
    pub(crate) works_for: Cell<usize>,
    /// How long this thread spins before it parks.
    pub(crate) spin: Cell<Duration>,
}

/// The part of a [`Parker`] that other threads use.
pub(crate) struct ParkedThread {
    unparker: Unparker,
    /// How many times the thread has been woken.
    wakes: AtomicU32,
    /// How many wake-ups the thread has noticed.
    noticed: AtomicU32,
}

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Ordering: releases what was done before the wake-up to `notice`.
        self.wakes.fetch_add(1, Ordering::Release);
        self.unparker.unpark();
    }
}

impl ParkedThread {
    /// Returns `true` if there was a wake-up that the thread has not noticed yet.
    pub(crate) fn is_woken(&self) -> bool {
        // Relaxed: orders no other access; a wake-up that came before is seen in any case.
        self.wakes.load(Ordering::Relaxed) != self.noticed.load(Ordering::Relaxed)
    }
}

impl Parker {
    #[inline(never)]
    fn new() -> Self {
        let token = Token::new();
        let thread = Arc::new(ParkedThread {
            unparker: token.unparker().clone(),
            wakes: AtomicU32::new(0),
            noticed: AtomicU32::new(0),
        });
        let waker = Waker::from(Arc::clone(&thread));
        Self { token, thread, waker, works_for: Cell::new(0), spin: Cell::new(LONGEST_SPIN) }
    }

    /// Returns the parker of the calling thread, or a new one while the thread is being torn down.
    pub(crate) fn current() -> Rc<Self> {
        PARKER.try_with(Rc::clone).unwrap_or_else(|_| Rc::new(Self::new()))
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(crate) fn learn(&self, waited: Duration) {
        let half = self.spin.get() / 2;
        let next = if half < SHORTEST_SPIN { Duration::ZERO } else { half };
        self.spin.set(if waited <= LONGEST_SPIN { LONGEST_SPIN } else { next });
    }

    /// Takes note of every wake-up so far.
    pub(crate) fn notice(&self) {
        // Ordering: acquires what was done before the wake-ups, from `wake_by_ref`.
        let wakes = self.thread.wakes.load(Ordering::Acquire);
        // Relaxed: orders no other access; other threads read it when the thread is on their list.
        self.thread.noticed.store(wakes, Ordering::Relaxed);
    }

    /// Sleeps until the thread is woken, or not at all if it has been woken since the last park.
    pub(crate) fn park(&self) {
        rank::assert_none_held("a thread is about to sleep");
        self.token.park();
    }

    /// Like [`park`](Self::park), but sleeps at most until `instant`.
    pub(crate) fn park_until(&self, instant: Instant) {
        rank::assert_none_held("a thread is about to sleep");
        self.token.park_deadline(instant);
    }
}

/// The longest spin: roughly as long as a wake-up takes.
const LONGEST_SPIN: Duration = Duration::from_micros(20);
const SHORTEST_SPIN: Duration = Duration::from_micros(1);
/// How many turns a thread spins; after that it yields its core at each turn.
const EAGER_TURNS: u32 = 4;

/// Calls `look` again and again until it returns an answer; spins or yields the core in between.
pub(crate) fn spin_until<R>(look: impl Fn() -> Option<R>) -> R {
    let mut eager = 0..EAGER_TURNS;
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        if eager.next().is_some() { spin_loop() } else { thread::yield_now() }
    }
}
