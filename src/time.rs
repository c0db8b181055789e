//! Time: timestamps, the clocks that show them, and how a thread waits until a timestamp.
//!
//! # Timestamps
//!
//! A [`Timestamp`] is a number of nanoseconds since the clock's origin, in 64 bits (584 years). Arithmetic saturates,
//! and the largest value, which no clock ever shows, means *never*: `Duration::MAX` is a legal delay that never ends.
//!
//! # The two clocks
//!
//! * The **system clock** is [`Instant`]. It does not follow changes to the wall clock, and on Linux and macOS stands
//!   still while the machine sleeps.
//! * A [`ManualClock`] stands still until a test moves it.
//!
//! Both count from at least a year before they were made, or from as far back as the platform allows, so that instants
//! in that year keep their order. No thread sleeps by the wall clock ([`wall`]). The crate reads the clocks of the
//! system only in this module, and a thread sleeps until a timestamp only in [`Wait::park_until`].
//!
//! # Never early, and how late
//!
//! A deadline has come when `now >= deadline`. A timed park may end early (a stale wake-up, a coarse timer), so its
//! callers check the clock again. The system may end a park late, by up to the thread's *timer slack*, so that timers
//! close together share one interrupt. On Linux the slack is 50 µs by default; a thread may ask for
//! less ([`set_timer_slack`]).

mod manual;
mod wakers;
mod wall;

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use self::manual::ClockState;
pub use self::manual::ManualClock;
pub(crate) use self::{
    wakers::{PlaceId, Wakers},
    wall::estimate,
};
use crate::sync::{
    Parker,
    process::{AtomicU64, Ordering},
};

/// How far into the past the timestamps of a new clock should reach.
const PAST: Duration = Duration::from_nanos(PAST_NANOS);
const PAST_NANOS: u64 = 365 * 86_400 * 1_000_000_000;

/// Returns `instant - span`, or a later point in time if the platform's `Instant` cannot represent `instant - span`.
fn long_before(instant: Instant, span: Duration) -> Instant {
    (0..32).find_map(|n| instant.checked_sub(span / (1 << n))).unwrap_or(instant)
}

/// A point in time: nanoseconds since the origin of a [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(u64);

impl Timestamp {
    /// The deadline that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);
    /// A deadline that has come on every clock.
    pub(crate) const PAST: Self = Self(0);
    /// The last timestamp that a clock can show.
    const LAST: Self = Self(u64::MAX - 1);

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(delay)))
    }

    /// Returns the timestamp `lead` before this one, or the origin, whichever is later; `NEVER` stays `NEVER`.
    pub(crate) fn before(self, lead: Duration) -> Self {
        if self == Self::NEVER { self } else { Self(self.0.saturating_sub(saturating_nanos(lead))) }
    }

    /// Returns the time from `earlier` to this timestamp; zero if this one is not later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time from `now` to this timestamp: zero if the timestamp has come, `Duration::MAX` for `NEVER`.
    pub(crate) fn delay_at(self, now: Self) -> Duration {
        if self == Self::NEVER { Duration::MAX } else { self.since(now) }
    }
}

/// Returns a duration in nanoseconds; for more than 584 years, the largest number, which means forever.
#[inline]
pub(crate) const fn saturating_nanos(duration: Duration) -> u64 {
    // Not `as_nanos`, whose 128 bits take twice the instructions.
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(duration.subsec_nanos() as u64)
}

/// The source of time of an executor, a queue or a token.
///
/// [`Builder::clock`](crate::Builder::clock), [`DelayQueue::with_clock`](crate::DelayQueue::with_clock) and
/// [`CancellationToken::with_clock`](crate::CancellationToken::with_clock) take one, and
/// [`Handle::clock`](crate::Handle::clock) returns it. The default is the system's monotonic clock; a [`ManualClock`]
/// makes tests exact. Cloning is cheap, and clones show the same time.
///
/// Code that reads the time from a `Clock` works with either:
///
/// ```
/// use std::time::{Duration, Instant};
/// use punctual::{Clock, ManualClock};
///
/// fn is_idle(clock: &Clock, last_request: Instant) -> bool {
///     clock.now() - last_request >= Duration::from_secs(60)
/// }
///
/// let system = Clock::system();
/// assert!(!is_idle(&system, system.now()));
/// let manual = ManualClock::new();
/// let request = manual.now();
/// manual.advance(Duration::from_secs(60)); // takes no real time
/// assert!(is_idle(&manual.into(), request));
/// ```
#[derive(Clone, Debug)]
pub struct Clock {
    source: TimeSource,
}

#[derive(Clone, Debug)]
enum TimeSource {
    System {
        origin: Instant,
    },
    /// Reads the system clock at most once: for the first conversion to or from an [`Instant`].
    Manual(ManualClock),
}

impl Clock {
    /// Returns the system's monotonic clock ([`Instant`]). It distinguishes points in the past up to a year back, or as
    /// far as the platform's `Instant` can represent; all earlier ones count as the earliest.
    #[must_use]
    pub fn system() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the one place where a clock begins")]
        let now = Instant::now();
        Self { source: TimeSource::System { origin: long_before(now, PAST) } }
    }

    /// Returns the current time. Does not block. On a manual clock it is [`ManualClock::now`]; the instants of one
    /// clock mean nothing on another.
    #[inline]
    pub fn now(&self) -> Instant {
        match &self.source {
            #[allow(clippy::disallowed_methods, reason = "it is what `read` reads")]
            TimeSource::System { .. } => Instant::now(),
            TimeSource::Manual(manual) => self.shown_at(manual.read()),
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> Timestamp {
        match &self.source {
            TimeSource::System { origin } => Timestamp(saturating_nanos(origin.elapsed())),
            TimeSource::Manual(manual) => manual.read(),
        }
    }

    pub(crate) fn is_manual(&self) -> bool {
        matches!(self.source, TimeSource::Manual(_))
    }

    /// Returns `true` if a timestamp means the same moment on both clocks.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.address() == other.address() && (self.is_manual() || self.origin() == other.origin())
    }

    pub(crate) fn manual(&self) -> Option<&ManualClock> {
        if let TimeSource::Manual(manual) = &self.source { Some(manual) } else { None }
    }

    /// Returns a number that is larger than the stamp of every submission, on any thread, that had ended before this
    /// one began. `now` was read from this clock after this submission began.
    ///
    /// On a clock finer than the time between two such submissions, the reading itself is such a number. Other clocks
    /// stand still or tick coarsely: there it is a counter, whose cache line all submitting threads share.
    #[inline]
    pub(crate) fn submission_stamp(&self, now: Timestamp) -> u64 {
        static SUBMISSIONS: AtomicU64 = AtomicU64::new(1);
        match self.source {
            // Counted from about when the clock was made, so that ids are short.
            TimeSource::System { .. } if cfg!(target_os = "linux") => {
                now.as_nanos().saturating_sub(PAST_NANOS)
            }
            // Relaxed: orders no other access. The changes to one variable have one order.
            _ => SUBMISSIONS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns `instant` as a timestamp of this clock: no earlier than the origin, and `NEVER` for `None`.
    pub(crate) fn deadline_of(&self, instant: impl Into<Option<Instant>>) -> Timestamp {
        let Some(instant) = instant.into() else { return Timestamp::NEVER };
        Timestamp(saturating_nanos(instant.saturating_duration_since(self.origin())))
    }

    /// Returns the deadline as an [`Instant`]; `None` for `NEVER`, and for a deadline that no `Instant` can represent.
    pub(crate) fn instant_of(&self, deadline: Timestamp) -> Option<Instant> {
        if deadline == Timestamp::NEVER {
            return None;
        }
        self.origin().checked_add(Duration::from_nanos(deadline.0))
    }

    /// Converts a timestamp that this clock has shown, and that an [`Instant`] can therefore represent.
    #[inline]
    pub(crate) fn shown_at(&self, timestamp: Timestamp) -> Instant {
        self.instant_of(timestamp).unwrap_or_else(|| self.origin())
    }

    #[inline]
    fn origin(&self) -> Instant {
        match &self.source {
            TimeSource::System { origin } => *origin,
            TimeSource::Manual(manual) => manual.base(),
        }
    }

    #[inline]
    pub(crate) fn wait<'a>(&'a self, parker: &'a Parker) -> Wait<'a> {
        Wait { clock: self, parker, is_counted: Cell::new(false) }
    }

    /// Changes the state of a manual clock; does nothing on the system clock.
    fn tell(&self, news: fn(&mut ClockState)) {
        if let Some(manual) = self.manual() {
            manual.change(news);
        }
    }

    /// Counts a worker that the calling thread will start, or the calling thread itself if it drives an executor.
    pub(crate) fn worker_starts(&self) {
        self.tell(|state| state.workers += 1);
    }

    /// Marks the calling thread, which owns `parker`, as a worker on this clock. Returns the thread's previous mark
    /// ([`Parker::works_for`]), which the thread restores when it stops working for the clock.
    pub(crate) fn worker_begins(&self, parker: &Parker) -> usize {
        parker.works_for.replace(self.address())
    }

    /// Returns the address of a manual clock; zero for the system clock.
    pub(crate) fn address(&self) -> usize {
        self.manual().map_or(0, ManualClock::address)
    }

    /// Counts the calling thread, which drives an executor, as waiting. Called after
    /// [`worker_starts`](Self::worker_starts).
    pub(crate) fn driver_waits(&self) {
        self.tell(|state| {
            state.waiting_drivers += 1;
            state.have_looked = false;
        });
    }

    pub(crate) fn driver_goes_on(&self) {
        self.tell(|state| state.waiting_drivers -= 1);
    }

    pub(crate) fn worker_ended(&self) {
        self.tell(ClockState::worker_ended);
    }
}

/// A thread's wait, which consists of one or more sleeps. The thread drops this value when the wait is over.
pub(crate) struct Wait<'a> {
    clock: &'a Clock,
    pub(crate) parker: &'a Parker,
    /// `true` if the manual clock counts this wait.
    is_counted: Cell<bool>,
}

impl Wait<'_> {
    /// Sleeps until the thread is woken or `deadline` comes, whichever is first; may return spuriously.
    pub(crate) fn park_until(&self, deadline: Timestamp) {
        if let TimeSource::Manual(manual) = &self.clock.source {
            return manual.park_until(self.parker, deadline, &self.is_counted);
        }
        match self.clock.instant_of(deadline) {
            Some(instant) => self.parker.park_until(instant),
            None => self.parker.park(),
        }
        self.parker.notice();
    }
}

impl Drop for Wait<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_counted.get() {
            self.clock.tell(|state| state.waiting -= 1);
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl From<ManualClock> for Clock {
    fn from(manual: ManualClock) -> Self {
        Self { source: TimeSource::Manual(manual) }
    }
}

/// The largest slack that a thread asks for. If it asked for more than the system can represent, no timer would fire.
const MOST_SLACK: Duration = Duration::from_secs(1);

/// Sets the timer slack of the calling thread through a file in procfs; zero restores the thread's default slack. Has
/// an effect only on Linux with the `timer-slack` feature, and ignores a refusal by the system.
pub(crate) fn set_timer_slack(slack: Duration) {
    if !cfg!(all(target_os = "linux", feature = "timer-slack")) {
        return;
    }
    let nanos = saturating_nanos(slack.min(MOST_SLACK));
    // Only the thread's directory at the top of `/proc` has that file.
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    if let Some(number) = thread.file_name() {
        let file = std::path::Path::new("/proc").join(number).join("timerslack_ns");
        let _ = std::fs::write(file, nanos.to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Wake, Waker};

    use super::*;
    use crate::sync::Arc;

    #[test]
    fn the_longest_delay_means_never() {
        let clock = Clock::system();
        assert_eq!(clock.read().after(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::LAST.after(Duration::from_nanos(1)), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER.after(Duration::from_nanos(1)), Timestamp::NEVER);
        assert!(clock.instant_of(Timestamp::NEVER).is_none());
    }

    #[test]
    fn an_instant_survives_the_way_there_and_back() {
        let clock = Clock::system();
        let instant = clock.origin() + Duration::from_nanos(123_456_789);
        assert_eq!(clock.instant_of(clock.deadline_of(instant)), Some(instant));
    }

    /// G8: instants in the past keep their order.
    #[test]
    fn the_past_is_in_order() {
        let start = Duration::from_secs(1);
        let manual = [ManualClock::new(), ManualClock::starting_at(start)].map(Clock::from);
        for clock in manual.into_iter().chain([Clock::system()]) {
            let (now, instant) = (clock.read(), clock.now());
            let ago = |seconds| instant.checked_sub(Duration::from_secs(seconds));
            let (Some(long), Some(short)) = (ago(2), ago(1)) else { return };
            assert!(clock.deadline_of(long) < clock.deadline_of(short));
            assert!(clock.deadline_of(short) < now);
        }
    }

    #[test]
    fn what_lies_before_the_origin_is_the_origin() {
        let clock = Clock::system();
        if let Some(past) = clock.origin().checked_sub(Duration::from_secs(1)) {
            assert_eq!(clock.deadline_of(past), Timestamp::from_nanos(0));
        }
    }

    /// A waker that counts its calls.
    #[derive(Default)]
    struct Wakes(AtomicU64);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn an_alarm_wakes_when_its_deadline_has_come() {
        let (manual, wakes) = (ManualClock::from_zero(), Arc::new(Wakes::default()));
        let set = |nanos| manual.set_alarm(Timestamp(nanos), Waker::from(Arc::clone(&wakes)));
        let woken = || wakes.0.load(Ordering::SeqCst);
        let (first, second) = (set(10), set(20));
        manual.advance(Duration::from_nanos(9));
        assert_eq!((woken(), manual.next_deadline()), (0, Some(Duration::from_nanos(1))));
        manual.advance(Duration::from_nanos(1));
        assert_eq!((woken(), manual.next_deadline()), (1, Some(Duration::from_nanos(10))));
        let called_off = [first, second].map(|alarm| manual.call_off(alarm).is_some());
        assert_eq!(called_off, [false, true]);
        assert_eq!(manual.next_deadline(), None);
        // An alarm that is set too late wakes at once.
        set(10);
        assert_eq!((woken(), manual.next_deadline()), (2, None));
        assert_eq!(Arc::strong_count(&wakes), 1, "what is over is dropped");
    }

    #[test]
    fn no_clock_ever_shows_never() {
        let manual = ManualClock::starting_at(Duration::MAX);
        manual.advance(Duration::MAX);
        assert!(Clock::from(manual).read() < Timestamp::NEVER);
    }
}
