//! The wall clock: its time, the worth of that as a timestamp, and the threads that are told when it is set.
//!
//! # An estimate, and when it is good
//!
//! A moment of the wall clock has no timestamp. It has an *estimate*: if the wall clock goes on as the
//! monotonic clock does, it comes then. Everything that waits does so until a timestamp, so a task on
//! the wall clock waits for its estimate, and two things make that exact:
//!
//! * A worker that takes a task reads the wall clock once more, and so notices that it is *too early*.
//! * A sleeping worker cannot notice that it is *too late*, when the wall clock jumps ahead of the
//!   estimate. The [`WallWatch`] tells one thread that the clock was set, and that thread estimates all
//!   moments again.
//!
//! The monotonic clock is read first, and the wall clock then. A thread that loses its core between
//! the two readings makes the estimate too early, which is found, and never too late.
//!
//! # How the two clocks part
//!
//! Time servers correct a wall clock by letting it go a little faster or slower. On Linux the
//! monotonic clock is made to go faster or slower with it (`clock_gettime(2)`), so such a correction
//! leaves every estimate good. There the two part only in a step: when the clock is set, at a leap
//! second, and while the machine sleeps, which the monotonic clock does not count. The kernel reports
//! each of these ([`timer`]), so on Linux estimates are exact, without a tick.
//!
//! Elsewhere, and where the timer cannot be had, the watch compares the clocks every
//! [thirty seconds](TICK), and only while a task waits for a moment of the wall clock. What has been
//! set is followed that much later, and a correction of 500 millionths adds up to 15 ms in that time.
//!
//! A manual clock tells its watchers itself ([`manual`](super::manual)).
//!
//! # Why no change is missed
//!
//! The watch begins when it is made: the timer is armed then, or the difference of the clocks noted. A
//! thread makes the watch first, then queues what waits, and reads the clocks once more when it is
//! queued. After a change the watcher looks through what is queued: the other side of `queue::waiters`.
//!
//! A watcher that ticks and sees no task [waiting](Waiting) sleeps without a limit. It decides that, and
//! says so, under the lock of [`Told`]; a thread that begins to wait is counted first and takes the lock
//! then. (The count is that of the process: the watcher of one executor ticks while a task waits at
//! another.)

#[cfg(all(target_os = "linux", feature = "wall-clock"))]
mod timer;
#[cfg(not(all(target_os = "linux", feature = "wall-clock")))]
mod timer {
    //! In place of the timer, where the system does not say that the wall clock was set.

    use std::io;

    /// There is none of these.
    pub(super) enum SetTimer {}

    impl SetTimer {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn was_set(&self) -> bool {
            match *self {}
        }

        pub(super) fn wait(&self) -> bool {
            match *self {}
        }

        pub(super) fn ring(&self) {
            match *self {}
        }
    }
}

use std::{
    task::Waker,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use self::timer::SetTimer;
use super::{Clock, TimeSource, Timestamp};
use crate::{
    sync::{
        Mutex, Parker,
        process::{AtomicU64, Ordering},
    },
    unwind::wake_all,
};

/// How often the clocks are compared where the system does not say that one was set.
const TICK: Duration = Duration::from_secs(30);

/// By how many nanoseconds two clocks of the system may seem to have parted because a thread has lost its
/// core between the readings.
const NOISE: u128 = 1_000_000;

impl Clock {
    /// Returns the wall time: that of the system, or [that of a manual
    /// clock](crate::ManualClock::wall_time). Does not block.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use punctual::{Clock, ManualClock};
    ///
    /// /// Works on either clock, so its test does not depend on when it runs.
    /// fn is_over(clock: &Clock, end: SystemTime) -> bool {
    ///     clock.wall_time() >= end
    /// }
    ///
    /// let manual = ManualClock::new();
    /// let clock = Clock::from(manual.clone());
    /// let end = clock.wall_time() + Duration::from_secs(60);
    /// assert!(!is_over(&clock, end));
    /// manual.set_wall_time(end);
    /// assert!(is_over(&clock, end));
    /// ```
    #[must_use]
    pub fn wall_time(&self) -> SystemTime {
        self.read_both().1
    }

    /// Returns the present as a timestamp and on the wall clock.
    pub(crate) fn read_both(&self) -> (Timestamp, SystemTime) {
        match &self.source {
            TimeSource::System { .. } => {
                // In this order: see the head of the module.
                let now = self.read();
                #[allow(clippy::disallowed_methods, reason = "the one place that reads it")]
                (now, SystemTime::now())
            }
            TimeSource::Manual(manual) => manual.read_both(),
        }
    }

    /// Returns when the wall clock shows `moment`, as far as can be said today. A moment that has passed
    /// has a timestamp that has passed.
    pub(crate) fn wall_deadline(&self, moment: SystemTime) -> Timestamp {
        estimate(self.read_both(), moment)
    }

    /// Returns what today's wall clock shows, or would have shown, at a timestamp.
    pub(crate) fn wall_at(&self, timestamp: Timestamp) -> SystemTime {
        let (now, wall) = self.read_both();
        let shown = if timestamp < now {
            wall.checked_sub(now.since(timestamp))
        } else {
            wall.checked_add(timestamp.since(now))
        };
        shown.unwrap_or(wall)
    }

    /// Returns by how many nanoseconds the wall clock is ahead of the timestamps.
    fn wall_lead(&self) -> i128 {
        let (now, wall) = self.read_both();
        let nanos = |span: Duration| i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
        let wall = match wall.duration_since(UNIX_EPOCH) {
            Ok(since) => nanos(since),
            Err(before) => -nanos(before.duration()),
        };
        wall - i128::from(now.as_nanos())
    }
}

/// Returns when the wall clock shows `moment`, if it showed this at that timestamp.
pub(crate) fn estimate((now, wall): (Timestamp, SystemTime), moment: SystemTime) -> Timestamp {
    match moment.duration_since(wall) {
        Ok(ahead) => now.after(ahead),
        Err(passed) => now.before(passed.duration()),
    }
}

/// How many moments of the wall clock are waited for.
static WAITING: AtomicU64 = AtomicU64::new(0);

/// A task waits for a moment of the wall clock, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(());

impl Waiting {
    pub(crate) fn begin() -> Self {
        // Ordering: the lock of `Told` orders it; see the head of the module.
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    fn is_any() -> bool {
        WAITING.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says when the wall clock was set, to the one thread that watches it; see the [module](self).
pub(crate) struct WallWatch {
    clock: Clock,
    told: Mutex<Told>,
    /// None on a manual clock, and where there is no such timer.
    timer: Option<SetTimer>,
}

/// The messages between the watcher and other threads.
struct Told {
    is_over: bool,
    /// The lead of the wall clock when the watcher last looked.
    lead: i128,
    /// How to wake the watcher from a sleep without the timer.
    watcher: Option<Waker>,
    /// Whether the watcher sleeps until a task waits.
    sleeps_on: bool,
}

impl WallWatch {
    /// Begins to watch the wall clock.
    pub(crate) fn new(clock: Clock) -> Self {
        let timer = if clock.is_manual() { None } else { SetTimer::new().ok() };
        Self::with_timer(clock, timer)
    }

    /// The same for a caller that looks itself, again and again.
    pub(crate) fn without_timer(clock: Clock) -> Self {
        Self::with_timer(clock, None)
    }

    fn with_timer(clock: Clock, timer: Option<SetTimer>) -> Self {
        let told =
            Told { is_over: false, lead: clock.wall_lead(), watcher: None, sleeps_on: false };
        Self { clock, told: Mutex::new(told), timer }
    }

    /// Calls `changed` each time the wall clock has been set, until the watch is [over](Self::end).
    pub(crate) fn watch(&self, changed: impl Fn()) {
        let parker = Parker::current();
        let waker = parker.waker().clone();
        self.told.lock().watcher = Some(waker);
        self.attend(&parker);
        while !self.told.lock().is_over {
            if self.has_changed() {
                changed();
            } else {
                self.sleep(&parker);
            }
        }
        self.leave(&parker);
    }

    /// Registers the calling thread, whose parker this is, to be woken when a manual clock is set.
    pub(crate) fn attend(&self, parker: &Parker) {
        if let Some(manual) = self.clock.manual() {
            manual.watch_wall(parker);
        }
    }

    /// Ends what [`attend`](Self::attend) began.
    pub(crate) fn leave(&self, parker: &Parker) {
        if let Some(manual) = self.clock.manual() {
            manual.unwatch_wall(parker);
        }
    }

    /// Returns when a caller is to look again at the latest, if it looks [without a
    /// timer](Self::without_timer) and is not woken when the clock is set.
    pub(crate) fn next_look(&self) -> Timestamp {
        if self.clock.is_manual() || !Waiting::is_any() {
            return Timestamp::NEVER;
        }
        self.clock.read().after(TICK)
    }

    /// Returns `true` if the wall clock has been set since this was last asked, and a task waits for
    /// one of its moments.
    pub(crate) fn concerns_anybody(&self) -> bool {
        Waiting::is_any() && self.has_changed()
    }

    /// Returns `true` if the wall clock has been set since this was last asked.
    fn has_changed(&self) -> bool {
        if let Some(timer) = &self.timer {
            return timer.was_set();
        }
        let lead = self.clock.wall_lead();
        let noise = if self.clock.is_manual() { 0 } else { NOISE };
        let mut told = self.told.lock();
        let has_changed = lead.abs_diff(told.lead) > noise;
        if has_changed {
            told.lead = lead;
        }
        has_changed
    }

    /// Sleeps until the wall clock has been set, as far as that can be told, or for no reason at all.
    fn sleep(&self, parker: &Parker) {
        if self.timer.as_ref().is_some_and(SetTimer::wait) {
            return;
        }
        let mut told = self.told.lock();
        // A manual clock needs no tick. A timer that could not be waited for is tried again soon.
        let is_long = self.clock.is_manual() || self.timer.is_none() && !Waiting::is_any();
        told.sleeps_on = is_long;
        drop(told);
        let limit = if is_long { Timestamp::NEVER } else { self.clock.read().after(TICK) };
        self.clock.wait(parker).park_until(limit);
    }

    /// Tells the watcher that a task [waits](Waiting).
    pub(crate) fn tell_waiting(&self) {
        if self.timer.is_some() || self.clock.is_manual() {
            return;
        }
        let mut told = self.told.lock();
        let watcher = if std::mem::take(&mut told.sleeps_on) { told.watcher.clone() } else { None };
        drop(told);
        wake_all(watcher);
    }

    /// Ends the watch.
    pub(crate) fn end(&self) {
        let mut told = self.told.lock();
        told.is_over = true;
        let watcher = told.watcher.take();
        drop(told);
        wake_all(watcher);
        if let Some(timer) = &self.timer {
            timer.ring();
        }
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::{
        sync::atomic::{AtomicU32, Ordering},
        time::ManualClock,
    };

    #[test]
    fn an_estimate_goes_both_ways() {
        let manual = ManualClock::from_zero();
        manual.advance(Duration::from_secs(100));
        let (clock, wall) = (Clock::from(manual.clone()), manual.wall_time());
        let second = Duration::from_secs(1);
        assert_eq!(clock.wall_deadline(wall + second), clock.read().after(second));
        assert_eq!(clock.wall_deadline(wall - second), clock.read().before(second));
        manual.set_wall_time(wall + 50 * second);
        for moment in [wall, wall + 7 * second, wall + 70 * second] {
            assert_eq!(clock.wall_at(clock.wall_deadline(moment)), moment);
        }
        assert_eq!(clock.wall_deadline(UNIX_EPOCH), Timestamp::PAST);
    }

    /// Waits until the watcher has come so far.
    fn until(what: impl Fn() -> bool) {
        while !what() {
            thread::yield_now();
        }
    }

    /// Every step of a manual clock is reported once, also one that was made before the watcher began,
    /// and nothing else is.
    #[test]
    fn each_step_is_reported() {
        let manual = ManualClock::new();
        let (watch, changes) = (WallWatch::new(manual.clone().into()), AtomicU32::new(0));
        let changes_now = || changes.load(Ordering::SeqCst);
        manual.set_wall_time(UNIX_EPOCH);
        thread::scope(|scope| {
            scope.spawn(|| {
                watch.watch(|| {
                    changes.fetch_add(1, Ordering::SeqCst);
                })
            });
            until(|| changes_now() == 1);
            manual.advance(TICK);
            for step in 1..100 {
                manual.set_wall_time(UNIX_EPOCH - step * TICK);
                until(|| changes_now() == 1 + step);
            }
            watch.end();
        });
        assert_eq!(changes_now(), 100);
    }

    /// Where the system says nothing, the watcher sleeps without a limit as long as no task waits, is woken
    /// by the first that does, and by the end.
    #[test]
    fn a_watcher_without_a_timer_ticks_only_while_somebody_waits() {
        let mut watch = WallWatch::new(Clock::system());
        watch.timer = None;
        let sleeps_on = || watch.told.lock().sleeps_on;
        thread::scope(|scope| {
            scope.spawn(|| watch.watch(|| {}));
            until(sleeps_on);
            let waiting = Waiting::begin();
            watch.tell_waiting();
            assert!(!sleeps_on());
            watch.tell_waiting();
            drop(waiting);
            watch.end();
        });
    }
}
