//! The cancellation token: it asks a running task to stop.
//!
//! A token is one flag that is never lowered, and a list of its waiters' wakers. The token of a task has a *parent*, as
//! a rule the token of its pool, and counts as cancelled when either flag is raised: a reader checks both flags, and a
//! waiter is on both lists. (If the parent has a parent too, a reader checks three flags, and a waiter is on three
//! lists.) So no parent has a list of children to maintain, and a task that never asks for its token pays nothing for
//! it (`task::cell::Extras`).
//!
//! The cancelling thread raises the flag and then takes the list; a waiter checks the flag and is listed in one step,
//! under the list's lock ([`Watched`]). So no wake-up is lost.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Clock, Timestamp},
    wait::{self, Place, Watched},
};

/// A request to stop, which a task can check, wait for, and sleep on. It replaces Java's `Thread.interrupt`.
///
/// A running task gets its own token from [`TaskContext::token`](crate::TaskContext::token), which
/// [`TaskHandle::cancel_and_signal`](crate::TaskHandle::cancel_and_signal) and
/// [`shutdown_now`](crate::Handle::shutdown_now) cancel. Independent tokens, made with [`new`](Self::new), end a wait
/// early: a blocking call can take one as its [limit](crate::Limit). A cancelled token stays cancelled. Clones share
/// one state.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ScheduledThreadPoolExecutor, with_context};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let (started, has_started) = std::sync::mpsc::channel();
/// let poller = executor.submit(with_context(move |run| {
///     started.send(()).ok();
///     while run.token().sleep(Duration::from_secs(60)).is_ok() {
///         // poll something, once a minute
///     }
/// }))?;
/// has_started.recv()?;
/// assert!(poller.cancel_and_signal());
/// executor.close()?; // does not wait for the minute to end
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("AbortSignal", "stop_token"))]
#[derive(Clone)]
pub struct CancellationToken {
    own: Arc<Signal>,
    clock: Clock,
    /// `true` if a timer thread cancels the token at its time limit. On a manual clock the timer thread may be late, so
    /// a thread that checks the token also reads the clock. Without a timer thread, a waiting thread also wakes at the
    /// limit to read the clock.
    has_timer_thread: bool,
}

#[derive(Default)]
struct Signal {
    parent: Option<Arc<Signal>>,
    raised: AtomicBool,
    /// The moment of the time limit, in nanoseconds; from then on the token counts as cancelled. Zero if there is no
    /// limit, or if a timer thread alone enforces it.
    limit: AtomicU64,
    waiters: Watched<()>,
}

pub(crate) type Places = [Place; 3];

impl CancellationToken {
    /// Makes a token that is not cancelled, and that [sleeps](Self::sleep) on the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Clock::system())
    }

    /// Makes one that [sleeps](Self::sleep) on this clock: an [executor's](crate::Handle::clock), or a
    /// [`ManualClock`](crate::ManualClock) in a test.
    pub fn with_clock(clock: impl Into<Clock>) -> Self {
        let (own, clock) = (Arc::default(), clock.into());
        Self { own, clock, has_timer_thread: true }
    }

    /// Makes a token that no timer thread cancels: the token counts as cancelled once the clock reaches the token's
    /// time limit. A child of the token is of the same kind, but has a limit of its own.
    pub(crate) fn without_timer_thread(clock: Clock) -> Self {
        Self { has_timer_thread: false, ..Self::with_clock(clock) }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn child(&self) -> Self {
        debug_assert!(self.signals().count() < Places::default().len(), "no token has three");
        let own = Signal { parent: Some(Arc::clone(&self.own)), ..Signal::default() };
        let (clock, has_timer_thread) = (self.clock.clone(), self.has_timer_thread);
        Self { own: Arc::new(own), clock, has_timer_thread }
    }

    /// Sets the token's time limit, unless a timer thread alone enforces it; `None` removes the limit.
    pub(crate) fn set_limit(&self, limit: Option<Timestamp>) {
        let limit = limit.filter(|_| !self.has_timer_thread || self.clock.is_manual());
        // Relaxed: orders no other access. The clock's lock orders a limit that has come.
        self.own.limit.store(limit.map_or(0, Timestamp::as_nanos), Ordering::Relaxed);
    }

    /// Returns `true` if a thread has cancelled this very token. A cancelled parent does not count, nor does a time
    /// limit that has come but on which no thread has acted yet.
    pub(crate) fn is_raised_itself(&self) -> bool {
        self.own.is_raised()
    }

    /// Cancels the token, and wakes every waiter. Idempotent. Does not block. Java: `Thread.interrupt`.
    pub fn cancel(&self) {
        self.own.raise();
    }

    /// Returns `true` if the token is cancelled. Costs a few loads. Java: `Thread.isInterrupted`.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.signals().any(Signal::is_raised) || self.is_at_limit()
    }

    /// Returns a future that completes when the token is cancelled. It needs no runtime, is `'static`, and may be
    /// dropped at any time, as in a `select`: a poll and a drop cost O(log n) for n waiters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{CancellationToken, ScheduledThreadPoolExecutor};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let token = CancellationToken::new();
    /// let canceller = token.clone();
    /// executor.schedule(Duration::from_millis(1), move || canceller.cancel())?;
    /// # smol::block_on(async {
    /// token.cancelled().await;
    /// # });
    /// assert!(token.is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn cancelled(&self) -> WaitForCancellation {
        WaitForCancellation { token: self.clone(), places: Places::default() }
    }

    /// Blocks until `poll` has an answer; returns `None` if `deadline` comes or the token is cancelled first. `poll` is
    /// called before the token is checked, so an answer that is there counts even if the token is cancelled. Leaves no
    /// waker on the token; `poll` itself may have left one elsewhere.
    pub(crate) fn block_unless_raised<R>(
        &self,
        clock: &Clock,
        deadline: Timestamp,
        mut poll: impl FnMut(&Waker) -> Option<R>,
    ) -> Option<R> {
        let is_same = clock.is_same(&self.clock);
        let end = if is_same { deadline.min(self.end_of_waits()) } else { deadline };
        let mut places = Places::default();
        let answer = wait::block_until(clock, end, |waker| {
            let answer = poll(waker).map(Some);
            answer.or_else(|| self.poll_raised(&mut places, waker).map(|()| None))
        });
        self.forget(&mut places);
        answer.flatten()
    }

    /// Polls, in the sense of [`wait`]: returns an answer once the token is cancelled, and until then keeps the waker
    /// on the lists. [`forget`](Self::forget) removes it.
    pub(crate) fn poll_raised(&self, places: &mut Places, waker: &Waker) -> Option<()> {
        let mut lists = self.signals().zip(places);
        let is_raised =
            lists.any(|(signal, place)| signal.poll(place, waker)) || self.is_at_limit();
        is_raised.then_some(())
    }

    pub(crate) fn forget(&self, places: &mut Places) {
        for (signal, place) in self.signals().zip(places) {
            signal.waiters.forget(place);
        }
    }

    fn is_at_limit(&self) -> bool {
        let limit = self.limit();
        limit < Timestamp::NEVER && limit <= self.clock.read()
    }

    /// Returns the moment at which a waiting thread has to check the clock; `NEVER` if it need not.
    pub(crate) fn end_of_waits(&self) -> Timestamp {
        if self.has_timer_thread { Timestamp::NEVER } else { self.limit() }
    }

    fn limit(&self) -> Timestamp {
        match self.own.limit.load(Ordering::Relaxed) {
            0 => Timestamp::NEVER,
            limit => Timestamp::from_nanos(limit),
        }
    }

    fn signals(&self) -> impl Iterator<Item = &Signal> {
        std::iter::successors(Some(&*self.own), |signal| signal.parent.as_deref())
    }
}

impl Signal {
    fn is_raised(&self) -> bool {
        // SeqCst: see the head of the module, and `docs/atomics.md`.
        self.raised.load(Ordering::SeqCst)
    }

    fn raise(&self) {
        // SeqCst: before the list is taken; see the head of the module.
        if !self.raised.swap(true, Ordering::SeqCst) {
            self.waiters.lock().wake_all();
        }
    }

    fn poll(&self, place: &mut Place, waker: &Waker) -> bool {
        self.waiters.poll(place, waker, |()| self.is_raised().then_some(())).is_some()
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// The error of a wait that a token has ended, such as [`CancellationToken::sleep`]. Java: `InterruptedException`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cancelled(pub(crate) ());

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait was interrupted: its token was cancelled")
    }
}

impl Error for Cancelled {}

/// Completes when a token is cancelled; from [`CancellationToken::cancelled`]. Dropping it leaves nothing on the token.
#[must_use = "it waits for nothing unless it is awaited"]
#[derive(Debug)]
pub struct WaitForCancellation {
    token: CancellationToken,
    places: Places,
}

impl Future for WaitForCancellation {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { token, places } = &mut *self;
        if token.poll_raised(places, context.waker()).is_none() {
            return Poll::Pending;
        }
        token.forget(places);
        Poll::Ready(())
    }
}

impl Drop for WaitForCancellation {
    fn drop(&mut self) {
        self.token.forget(&mut self.places);
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;

#[cfg(test)]
#[cfg(loom)]
#[path = "token/tests/exhaustive.rs"]
mod exhaustive;
