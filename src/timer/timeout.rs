//! A future with a time limit.

use std::{
    error::Error,
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use super::{Sleep, TimerStopped};

/// Why a future with a [time limit](crate::Handle::timeout) has no output.
///
/// ```
/// use std::{future, time::Duration};
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor, TimeoutError};
///
/// let clock = ManualClock::new();
/// clock.set_auto_advance(true);
/// let mut executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build_driven()?;
/// let asked = executor.timeout(Duration::from_secs(2), future::pending::<()>());
/// assert_eq!(executor.run_until(asked), Err(TimeoutError::Elapsed));
/// assert_eq!(clock.elapsed(), Duration::from_secs(2));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias = "Elapsed")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The time was up before the future was ready.
    Elapsed,
    /// The executor stopped before, so that there was no limit any more.
    Stopped(TimerStopped),
}

impl TimeoutError {
    /// Returns `true` if the time was up.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        matches!(self, Self::Elapsed)
    }
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed => f.write_str("the time was up before the future was ready"),
            Self::Stopped(stopped) => stopped.fmt(f),
        }
    }
}

impl Error for TimeoutError {}

impl From<TimerStopped> for TimeoutError {
    fn from(stopped: TimerStopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// Runs a future until the sleep is over. It is an async function because that pins the future in place,
/// with no allocation.
pub(super) async fn limited<F: Future>(
    mut sleep: Sleep,
    future: F,
) -> Result<F::Output, TimeoutError> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        sleep.poll_elapsed(context).map(|ended| match ended {
            Ok(()) => Err(TimeoutError::Elapsed),
            Err(stopped) => Err(stopped.into()),
        })
    })
    .await
}
