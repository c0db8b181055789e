//! Limits on how long a call may block: a duration, an instant, a token, or a time and a token.
//!
//! A duration counts from the start of the call that receives it, on the clock that the call uses. An answer takes
//! precedence: a wait that reaches its limit looks for an answer once more.

use std::{
    error::Error,
    fmt,
    task::Waker,
    time::{Duration, Instant},
};

use crate::{
    CancellationToken, Cancelled,
    time::{Clock, Timestamp},
    wait,
};

/// Limits how long a call may block. It is made from a [`Duration`], an [`Instant`] or a
/// [`CancellationToken`], and with [`unless`](Self::unless) from a time and a token. It replaces
/// Java's timeouts, and the interrupt of a thread that waits.
///
/// ```
/// use std::time::{Duration, Instant};
/// use punctual::{CancellationToken, Limit, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let answer = executor.schedule(Duration::from_secs(60), || 42)?;
/// let stop = CancellationToken::new();
///
/// assert!(answer.join_within(Instant::now()).is_none());
/// stop.cancel();
/// assert!(answer.join_within(&stop).is_none());
/// assert!(answer.join_within(Limit::from(Duration::from_secs(30)).unless(&stop)).is_none());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("deadline", "timeout"))]
#[derive(Clone, Debug)]
#[must_use = "a limit does nothing until it is given to a call that blocks"]
pub struct Limit {
    until: LimitEnd,
    pub(crate) token: Option<CancellationToken>,
}

#[derive(Clone, Copy, Debug)]
enum LimitEnd {
    Forever,
    After(Duration),
    At(Instant),
}

impl Limit {
    /// Adds a token: the call returns when the token is cancelled or when its time is up, whichever comes first.
    /// Replaces any token that was set before.
    pub fn unless(mut self, token: &CancellationToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// Counts the limit from now on this clock, not from each call that receives it, so that several calls share it.
    pub fn from_now(mut self, clock: &Clock) -> Self {
        if let LimitEnd::After(_) = self.until {
            let end = clock.instant_of(self.deadline(clock));
            self.until = end.map_or(LimitEnd::Forever, LimitEnd::At);
        }
        self
    }

    /// Returns the deadline of a call that begins now.
    pub(crate) fn deadline(&self, clock: &Clock) -> Timestamp {
        match self.until {
            LimitEnd::Forever => Timestamp::NEVER,
            LimitEnd::After(duration) => clock.read().after(duration),
            LimitEnd::At(instant) => clock.deadline_of(instant),
        }
    }

    /// Blocks until `poll` has an answer; returns `None` if `deadline` passes or the limit's token is cancelled first.
    /// The caller computes `deadline` as soon as it receives the limit. If there is no answer, `poll` may have left
    /// this thread's waker registered.
    pub(crate) fn block<R>(
        &self,
        clock: &Clock,
        deadline: Timestamp,
        poll: impl FnMut(&Waker) -> Option<R>,
    ) -> Option<R> {
        match &self.token {
            None => wait::block_until(clock, deadline, poll),
            Some(token) => token.block_unless_raised(clock, deadline, poll),
        }
    }

    /// Returns why a call with this limit had no answer: the token is cancelled, or else the time is up.
    pub fn reached(&self) -> LimitReached {
        let is_raised = self.token.as_ref().is_some_and(CancellationToken::is_cancelled);
        if is_raised { LimitReached::Cancelled } else { LimitReached::TimedOut }
    }
}

/// Waiting for a token to be cancelled.
impl CancellationToken {
    /// Blocks until the token is cancelled.
    pub fn wait(&self) {
        self.wait_within(Duration::MAX);
    }

    /// Blocks for `duration` (`Duration::MAX` never ends), or until the token is cancelled. Java: `Thread.sleep`,
    /// interruptible. The token of a task counts the time on the clock of its executor; on a manual clock [another
    /// thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`Cancelled`] if the token was cancelled before `duration` had passed.
    pub fn sleep(&self, duration: Duration) -> Result<(), Cancelled> {
        if self.wait_within(duration) { Err(Cancelled(())) } else { Ok(()) }
    }

    /// Blocks until the token is cancelled, or until `limit` is reached. Returns `true` if the token is cancelled.
    pub fn wait_within(&self, limit: impl Into<Limit>) -> bool {
        let (limit, mut places) = (limit.into(), Default::default());
        let end = limit.deadline(self.clock()).min(self.end_of_waits());
        let poll = |waker: &Waker| self.poll_raised(&mut places, waker);
        let is_raised = limit.block(self.clock(), end, poll).is_some();
        self.forget(&mut places);
        is_raised
    }
}

impl From<Duration> for Limit {
    fn from(timeout: Duration) -> Self {
        Self { until: LimitEnd::After(timeout), token: None }
    }
}

impl From<Instant> for Limit {
    fn from(instant: Instant) -> Self {
        Self { until: LimitEnd::At(instant), token: None }
    }
}

impl From<CancellationToken> for Limit {
    fn from(token: CancellationToken) -> Self {
        Self { until: LimitEnd::Forever, token: Some(token) }
    }
}

impl From<&CancellationToken> for Limit {
    fn from(token: &CancellationToken) -> Self {
        token.clone().into()
    }
}

/// The reason why a call that received a [`Limit`] returned without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitReached {
    /// The time is up.
    TimedOut,
    /// The token was cancelled.
    Cancelled,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the wait timed out",
            Self::Cancelled => "the wait was cancelled by its token",
        })
    }
}

impl Error for LimitReached {}
