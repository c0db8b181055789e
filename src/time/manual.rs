//! The manual clock: time that a test moves by hand, and that knows when nothing moves without it.
//!
//! Every wait of the crate goes through the clock, so under this one every sleeping thread is
//! on a list here, with the moment it sleeps until. Two things follow from the list alone.
//!
//! * **The next deadline** is the smallest moment on it: a pool's leader sleeps until its
//!   queue's head is due, so the head of every idle pool is on the list.
//! * **Idle** means that every worker thread is on it and has not been rung for. A worker that
//!   runs a task, or is on its way to one, is not; one whose task itself sleeps on the clock is.
//!   Only time can move such a system.
//!
//! Who has a waker and no thread sets an *alarm*. These are on a list beside; they count for the
//! next deadline, and are nobody's work.
//!
//! # Why no wake-up is lost, and none is seen too late
//!
//! A thread puts itself on the list under the clock's lock, and only if its moment has not come;
//! [`ManualClock::advance`] moves the present under the same lock and rings for everyone whose
//! moment came. So either the sleeper sees the new present, or the ringer sees the sleeper.
//!
//! A sleeper is rung for by whoever has news for it (`Bell`), and counts as busy from that call
//! on, not from when it gets a core: the ring is counted, and only the sleeper, back from its
//! park and off the list, takes note of it. So `run_until_idle`, called after `schedule`, waits
//! for what `schedule` set in motion.
//!
//! # Going on by itself
//!
//! With [`ManualClock::set_auto_advance`] nobody has to move the clock. It then also counts who
//! *waits*: threads that are no workers of its executors, from their first sleep until they have
//! the answer of their wait. If somebody waits, and all who wait and all workers are on the list
//! and have not been rung for, only time can move the system, and the clock moves it
//! ([`State::go_on`]).
//!
//! * **Nobody is missed.** That condition is made of what stands under the clock's lock, and of
//!   the rings. It can become true in four ways: a thread lies down, a worker ends, a wait ends,
//!   the mode is switched on; and an alarm can bring the first next deadline. Whoever does one of
//!   these looks at the condition before giving back the lock, and moves the clock. A ring makes
//!   the condition false, and only a thread that has left the list takes note of it: that thread
//!   lies down again, or ends its wait, or its work. So there is no loop that looks, and no
//!   thread beside: the last one to go to sleep moves the clock.
//! * **Nobody is too late.** Whoever is rung for, by a moment that has come or by news, makes
//!   the condition false in that call, and it stays so until that thread sleeps again or has its
//!   answer. A worker rings for those who wait for its task before it sleeps itself. So the clock
//!   stands still, at the moment of the news, until each of those it concerns has made up its
//!   mind.
//! * **Nobody stops for nothing.** A worker that slept for a task that has been cancelled since
//!   shows a moment for which nobody waits. So before each jump all who sleep are rung for once,
//!   look at what there is now, and lie down again; the last of them jumps.
//!
//! A jump may wake an alarm, which is user code, and may itself wait. A thread on the list must
//! not run any: it would take note of rings that are not about what it does there. So one that was
//! about to sleep leaves the list, wakes, and does not sleep this time; its caller looks again.

mod state;

use std::{
    cell::Cell,
    fmt,
    task::Waker,
    time::{Duration, Instant},
};

use self::state::{Alarm, Sleeper, State};
use super::{PAST, Timestamp, long_before, saturating_nanos};
use crate::{
    sync::{Arc, Condvar, Mutex, Parker},
    unwind::{discard, wake_all},
};

/// A clock that stands still until it is told to move: for tests of everything that is timed.
///
/// An executor built on it ([`Builder::clock`](crate::Builder::clock)) runs its tasks on real
/// threads, in zero real time and at exact moments. Timed waits on its futures, tokens and its
/// termination count this clock's time too. Clones share one time; several executors may.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let reminder = executor.schedule(Duration::from_secs(3600), || "time for tea")?;
///
/// clock.advance(Duration::from_secs(3599));
/// clock.run_until_idle();
/// assert!(!reminder.is_done());
///
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(reminder.join()?, "time for tea");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # When it blocks
///
/// **A wait with a time limit does not end by itself.** `join_timeout`, `await_termination`,
/// `shutdown_within`, `poll_timeout`, a token's `sleep` and all others count the time of this clock
/// if their executor, queue or token is on it. While no thread moves the clock no limit is ever
/// reached, and no task that is not yet due runs: a test that waits in its only thread, also in
/// `join`, hangs. There are three ways out.
///
/// * Move the clock first, by [`run_for`](Self::run_for) or [`run_until`](Self::run_until), and
///   ask then, by `try_join` or `is_done`.
/// * Let it go on by itself while the test waits: [`set_auto_advance`](Self::set_auto_advance).
/// * Wait in one thread, and move the clock in another.
///
/// [`run_until_idle`](Self::run_until_idle) and what is built on it wait for tasks that run. A
/// task that waits for the test itself (a channel, a barrier) makes them wait for ever; one that
/// sleeps on its [token](crate::CancellationToken::sleep) or joins another task does not. Inside a
/// task they would wait for the task itself.
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    /// The instant from which moments are counted.
    base: Instant,
    /// The moment from which [`ManualClock::elapsed`] counts.
    origin: Timestamp,
    state: Mutex<State>,
    /// Something on the list, or the number of workers, has changed.
    changed: Condvar,
}

impl ManualClock {
    /// A clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(Duration::ZERO)
    }

    /// A clock that shows `elapsed` since its origin, to test what happens late in its life.
    /// The last moment it can show is more than 583 years after the origin. Moments of the past
    /// have their order on it as far back as a year, or as the platform's `Instant` can say;
    /// earlier ones count as that.
    #[must_use]
    pub fn starting_at(elapsed: Duration) -> Self {
        Self::with_past(elapsed, PAST)
    }

    /// A clock whose moments are numbers from zero on.
    #[cfg(test)]
    pub(crate) fn from_zero() -> Self {
        Self::with_past(Duration::ZERO, Duration::ZERO)
    }

    /// One that reaches so far back before its present.
    fn with_past(elapsed: Duration, past: Duration) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any instant serves as the origin")]
        let start = Instant::now();
        let base = long_before(start, past.saturating_sub(elapsed));
        let origin = Timestamp(saturating_nanos(start.saturating_duration_since(base)));
        let state = Mutex::new(State::new(origin.after(elapsed).min(Timestamp::LAST)));
        let shared = Shared { base, origin, state, changed: Condvar::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The present, as the [`Instant`] that
    /// [`schedule_at`](crate::Handle::schedule_at) understands.
    #[must_use]
    pub fn now(&self) -> Instant {
        let since_base = Duration::from_nanos(self.deadline_now().0);
        self.shared.base.checked_add(since_base).unwrap_or(self.shared.base)
    }

    /// How far the present is from the origin.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.deadline_now().since(self.shared.origin)
    }

    /// Moves the present by `step`, in one jump, and rings for everyone whose moment came. Does
    /// not wait for what they do then: see [`run_until_idle`](Self::run_until_idle), and
    /// [`run_for`](Self::run_for) to go from deadline to deadline.
    pub fn advance(&self, step: Duration) {
        let mut state = self.shared.state.lock();
        let now = state.now().after(step).min(Timestamp::LAST);
        let woken = state.move_to(now);
        drop(state);
        wake_all(woken);
    }

    /// Waits until every worker of the executors on this clock has nothing to do before time
    /// moves: what was due has run. Blocks as long as a task runs.
    pub fn run_until_idle(&self) {
        let mut state = self.shared.state.lock();
        while !state.is_idle() {
            self.shared.changed.wait(&mut state);
        }
    }

    /// Waits until idle, jumps to the next deadline, and waits until idle again. Gives back how
    /// far it jumped, or `None`, having moved nothing, if nobody waits for any moment.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn advance_to_next_deadline(&self) -> Option<Duration> {
        self.step_up_to(Timestamp::LAST)
    }

    /// Goes through the next `span` of time deadline by deadline, and waits at each until
    /// everything due has run: periodic tasks run on time, and not late in a burst as after one
    /// long [`advance`](Self::advance).
    pub fn run_for(&self, span: Duration) {
        let end = self.deadline_now().after(span).min(Timestamp::LAST);
        while self.step_up_to(end).is_some() {}
        let woken = self.shared.state.lock().move_to(end);
        wake_all(woken);
        self.run_until_idle();
    }

    /// Goes from deadline to deadline until `condition` holds, and waits at each until everything
    /// due has run. Whether it holds: `false` if nobody waits for any moment any more. It is asked
    /// first when what is due now has run, and then after each step.
    ///
    /// A periodic task always waits for its next moment, so beside one that nobody cancels a
    /// condition that never holds keeps this going until the end of the clock's time: count the
    /// runs, or look at [`elapsed`](Self::elapsed), in the condition.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (tell, told) = mpsc::channel();
    /// executor.schedule(Duration::from_secs(7200), move || tell.send("tea"))?;
    /// let mut news = None;
    /// assert!(clock.run_until(|| {
    ///     news = told.try_recv().ok();
    ///     news.is_some()
    /// }));
    /// assert_eq!((news, clock.elapsed()), (Some("tea"), Duration::from_secs(7200)));
    /// assert!(!clock.run_until(|| false), "nothing is to come");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn run_until(&self, mut condition: impl FnMut() -> bool) -> bool {
        loop {
            self.run_until_idle();
            if condition() {
                return true;
            }
            if self.advance_to_next_deadline().is_none() {
                return condition();
            }
        }
    }

    /// Lets the clock go on by itself, or stops that; off at first. While it is on, and a thread
    /// waits on this clock that is no worker of an executor on it, time passes as soon as nothing
    /// else can happen: when everyone who waits sleeps, and every worker has nothing to do, the
    /// clock jumps to the next deadline, again and again until the thread that waits is woken.
    /// Then it stands still at that moment. (The paused clock of tokio does the same.)
    ///
    /// A wait is any call of this crate that blocks: a `join`, with a limit or without,
    /// [`await_termination`](crate::Handle::await_termination), a token's
    /// [`sleep`](crate::CancellationToken::sleep) on this clock, the drop of an executor.
    /// A thread that blocks on something else, a channel or a future that it awaits, does not wait
    /// in this sense, and the clock does not see a third thread that is about to do something.
    /// While several threads wait, time passes for all of them: one that has its answer may read a
    /// later time than that of the answer.
    ///
    /// **Without a next deadline nothing happens**: a wait for something that no moment brings
    /// blocks as ever. Beside a periodic task there is always a next deadline, and such a wait
    /// keeps the clock going, and a core busy.
    ///
    /// Does not block. All clones of the clock are in the same mode.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// clock.set_auto_advance(true);
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let minute = Duration::from_secs(60);
    ///
    /// let report = executor.schedule(60 * minute, || "done")?;
    /// assert!(report.join_timeout(minute).is_none()); // not within a minute
    /// assert_eq!(clock.elapsed(), minute);
    /// assert_eq!(report.join()?, "done"); // within an hour
    /// assert_eq!(clock.elapsed(), 60 * minute);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn set_auto_advance(&self, is_on: bool) {
        self.change(|state| state.set_auto(is_on));
    }

    /// Whether the clock [goes on by itself](Self::set_auto_advance). Does not block.
    #[must_use]
    pub fn auto_advance(&self) -> bool {
        self.shared.state.lock().is_auto()
    }

    /// The moment nearest in time that anybody waits for, as the span from now; `None` if there
    /// is none. Does not block. Exact when [idle](Self::run_until_idle), but for this: a worker
    /// that waits for a task looks up only then, also if the task has been cancelled meanwhile.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let state = self.shared.state.lock();
        let next = state.next_deadline();
        (next < Timestamp::NEVER).then(|| next.since(state.now()))
    }

    fn step_up_to(&self, end: Timestamp) -> Option<Duration> {
        self.settle();
        let mut state = self.shared.state.lock();
        let next = state.next_deadline();
        if next > end {
            return None;
        }
        let step = next.since(state.now());
        let woken = state.move_to(next);
        drop(state);
        wake_all(woken);
        self.run_until_idle();
        Some(step)
    }

    /// Waits until idle, and until every worker sleeps for what there is now: one that slept for
    /// a task that has been cancelled since would show a moment for which nobody waits.
    fn settle(&self) {
        self.run_until_idle();
        self.shared.state.lock().rouse_workers();
        self.run_until_idle();
    }

    /// Changes something, after which the clock may go on by itself.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.shared.state.lock();
        change(&mut state);
        loop {
            let woken = state.go_on();
            drop(state);
            if woken.is_empty() {
                return;
            }
            wake_all(woken);
            state = self.shared.state.lock();
        }
    }

    pub(super) fn base(&self) -> Instant {
        self.shared.base
    }

    pub(super) fn deadline_now(&self) -> Timestamp {
        self.shared.state.lock().now()
    }

    /// Sleeps until the thread is rung for or its moment comes; or not at all. `is_counted` says
    /// whether the clock knows that this thread waits: see [`wait_ends`](Self::wait_ends).
    pub(super) fn park_until(&self, parker: &Parker, until: Timestamp, is_counted: &Cell<bool>) {
        let mut state = self.shared.state.lock();
        if state.now() >= until {
            return;
        }
        let is_worker = parker.works_by(self.address());
        if !is_worker && !is_counted.replace(true) {
            state.wait_begins();
        }
        state.lie_down(Sleeper { until, bell: Arc::clone(parker.bell()), is_worker });
        let woken = state.go_on();
        if !woken.is_empty() {
            // user code: see the head of the module.
            state.get_up(parker.bell());
            drop(state);
            wake_all(woken);
            return;
        }
        self.shared.changed.notify_all();
        drop(state);
        parker.park();
        let mut state = self.shared.state.lock();
        state.get_up(parker.bell());
        parker.hear();
    }

    /// The calling thread, which was counted as one that waits, has its answer.
    pub(super) fn wait_ends(&self) {
        self.change(State::wait_ends);
    }

    /// Wakes `waker` once `until` has come; gives the number of the alarm.
    pub(crate) fn set_alarm(&self, until: Timestamp, waker: Waker) -> u64 {
        let (mut id, mut late) = (0, None);
        self.change(|state| {
            id = state.next_alarm();
            if state.now() < until {
                state.alarms.push(Alarm { id, until, waker });
            } else {
                late = Some(waker);
            }
        });
        wake_all(late);
        id
    }

    /// Takes an alarm off the list, unless it has rung.
    pub(crate) fn call_off(&self, id: u64) {
        let mut state = self.shared.state.lock();
        let index = state.alarms.iter().position(|alarm| alarm.id == id);
        let alarm = index.map(|index| state.alarms.swap_remove(index));
        drop(state);
        discard(alarm);
    }

    pub(super) fn worker_starts(&self) {
        self.shared.state.lock().workers += 1;
    }

    /// Tells this clock from others, for as long as anybody has it.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }

    pub(super) fn worker_ended(&self) {
        self.change(|state| state.workers -= 1);
        self.shared.changed.notify_all();
    }

    /// How often a thread has gone to sleep.
    #[cfg(test)]
    pub(crate) fn parks(&self) -> usize {
        self.shared.state.lock().parks
    }

    /// The moments that threads sleep until.
    #[cfg(test)]
    pub(crate) fn sleepers(&self) -> Vec<Timestamp> {
        self.shared.state.lock().moments()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who waits for a moment that has come, and has not been given a core since, is no reason to
    /// look at that moment again: `run_for` would do so until it is given one.
    #[test]
    fn who_is_slow_to_wake_is_not_waited_for() {
        let clock = ManualClock::from_zero();
        let sleeper = |nanos| {
            let bell = Arc::clone(Parker::current().bell());
            Sleeper { until: Timestamp::from_nanos(nanos), bell, is_worker: false }
        };
        for nanos in [10, 30] {
            clock.shared.state.lock().lie_down(sleeper(nanos));
        }
        clock.advance(Duration::from_nanos(20));
        assert_eq!(clock.next_deadline(), Some(Duration::from_nanos(10)));
    }
}
