//! The interface of timers that are awaited, and its implementations.

use std::{
    marker::PhantomData,
    time::{Duration, Instant},
};

use punctual::ScheduledThreadPoolExecutor;
use tokio::runtime::{Builder, EnterGuard, Runtime};

/// Whatever makes futures that are ready at a moment.
pub(super) trait Timers: Sync {
    type Timer: Future + Send;
    /// Held by a thread while it makes and polls timers.
    type Entered<'a>
    where
        Self: 'a;

    /// `workers` is how many threads wake those who await, if that can be chosen.
    fn new(workers: usize) -> Self;

    fn enter(&self) -> Self::Entered<'_>;

    /// A future that is ready after the duration.
    fn sleep(&self, duration: Duration) -> Self::Timer;

    /// A future that is ready at the instant.
    fn sleep_until(&self, due: Instant) -> Self::Timer;
}

/// `punctual`: this project.
pub(super) struct Punctual(ScheduledThreadPoolExecutor);

impl Timers for Punctual {
    type Timer = punctual::Sleep;
    type Entered<'a> = ();

    fn new(workers: usize) -> Self {
        Self(ScheduledThreadPoolExecutor::new(workers))
    }

    fn enter(&self) {}

    #[inline]
    fn sleep(&self, duration: Duration) -> Self::Timer {
        self.0.sleep(duration)
    }

    fn sleep_until(&self, due: Instant) -> Self::Timer {
        self.0.sleep_until(due)
    }
}

/// `tokio`, the runtime with several threads.
pub(super) struct Tokio(Runtime);

impl Timers for Tokio {
    type Timer = tokio::time::Sleep;
    type Entered<'a> = EnterGuard<'a>;

    fn new(workers: usize) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build();
        Self(runtime.expect("its threads start"))
    }

    fn enter(&self) -> EnterGuard<'_> {
        self.0.enter()
    }

    #[inline]
    fn sleep(&self, duration: Duration) -> Self::Timer {
        tokio::time::sleep(duration)
    }

    fn sleep_until(&self, due: Instant) -> Self::Timer {
        tokio::time::sleep_until(due.into())
    }
}

/// `async-io`, whose own thread watches the timers.
pub(super) struct AsyncIo(PhantomData<()>);

impl Timers for AsyncIo {
    type Timer = async_io::Timer;
    type Entered<'a> = ();

    fn new(_workers: usize) -> Self {
        Self(PhantomData)
    }

    fn enter(&self) {}

    #[inline]
    fn sleep(&self, duration: Duration) -> Self::Timer {
        async_io::Timer::after(duration)
    }

    fn sleep_until(&self, due: Instant) -> Self::Timer {
        async_io::Timer::at(due)
    }
}

/// `futures-timer`, with a thread of its own. It takes durations only.
pub(super) struct FuturesTimer(PhantomData<()>);

impl Timers for FuturesTimer {
    type Timer = futures_timer::Delay;
    type Entered<'a> = ();

    fn new(_workers: usize) -> Self {
        Self(PhantomData)
    }

    fn enter(&self) {}

    #[inline]
    fn sleep(&self, duration: Duration) -> Self::Timer {
        futures_timer::Delay::new(duration)
    }

    fn sleep_until(&self, due: Instant) -> Self::Timer {
        futures_timer::Delay::new(due.saturating_duration_since(Instant::now()))
    }
}
