//! The manual clock: a test moves it by hand, and the clock knows when no thread can go on until time moves.
//!
//! Every wait in the crate goes through a clock, so a manual clock lists every thread that sleeps on it, with the
//! timestamp until which the thread sleeps. The **next deadline** is the earliest of these timestamps. The clock is
//! **idle** when all workers are on the list and none of them has been woken. A future has no sleeping thread. It sets
//! an *alarm* instead, which counts towards the next deadline too.
//!
//! # Why no wake-up is lost, and none is seen too late
//!
//! As in `queue::waiters`, the two sides meet at the clock's lock: under it, a thread lists itself if its deadline has
//! not come, and [`ManualClock::advance`] moves the time and wakes every sleeper whose deadline has come.
//!
//! A sleeper counts as busy from the call that wakes it, not from when it gets a core ([`ParkedThread::is_woken`]). So
//! `run_until_idle`, called after `schedule`, waits for the worker that `schedule` woke.
//!
//! # Automatic advance
//!
//! With [`ManualClock::set_auto_advance`] the clock advances by itself once at least one thread *waits*, all waiting
//! threads and all workers are on the list, and none of them has been woken ([`ClockState::go_on`]). In this sense, a
//! thread that is not a worker of the clock's executors waits from its first sleep until it has its answer. The clock
//! counts such threads even while automatic advance is off.
//!
//! * **No jump is missed.** The condition can become true in four ways: a thread goes to sleep, a worker ends, a wait
//!   ends, or automatic advance is switched on. If there is no deadline yet, a new alarm can bring one. A thread that
//!   does any of this checks the condition before releasing the lock, and moves the clock if the condition is true.
//! * **No jump is too early.** The call that wakes a thread makes the condition false. The condition stays false until
//!   the woken thread sleeps again or has its answer. A worker wakes the waiters of its task before it sleeps itself.
//! * **The clock never stops at a stale deadline.** A worker may be asleep until the deadline of a task that has since
//!   been cancelled. So before each jump the clock wakes all sleepers once. Each of them checks again whether it has
//!   anything to do. The last to go back to sleep moves the clock.
//!
//! A jump may fire an alarm, whose waker is user code and may itself wait. A thread on the list must not call such a
//! waker. So if a thread about to sleep fires alarms, it leaves the list, calls their wakers, and does not sleep.

use super::{PAST, PlaceId, Timestamp, Wakers, long_before, saturating_nanos, wall::BETWEEN_LOOKS};
use crate::{
    sync::{Arc, Mutex, OnceLock, ParkedThread, Parker},
    unwind::wake_all,
};
use std::{
    cell::Cell,
    fmt,
    task::{Wake, Waker},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A clock that stands still until a test moves it: for tests of anything timed.
///
/// An executor built on it ([`Builder::clock`](crate::Builder::clock)) runs its tasks on real threads, in zero real
/// time and at exact moments. Timed waits for its futures, its tokens and its termination use this clock's time too.
/// Clones share one time, and several executors may share a clock.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let reminder = executor.schedule(Duration::from_secs(3600), || "time for tea")?;
/// clock.run_for(Duration::from_secs(3599));
/// assert!(!reminder.is_done());
/// clock.run_for(Duration::from_secs(1));
/// assert_eq!(reminder.join()?, "time for tea");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # When it blocks
///
/// **A wait with a time limit does not end by itself.** `join_within`, `await_termination`, `shutdown_within`,
/// `take_within`, a token's `sleep` and all other timed waits use this clock's time if their executor, queue or token
/// is on it. While no thread moves the clock, no limit is ever reached, and no task that is not yet due runs: a test
/// that waits on its only thread, even in `join`, hangs. There are three ways out.
///
/// * Move the clock first, with [`run_for`](Self::run_for) or [`run_until`](Self::run_until), and then ask, with
///   `try_join` or `is_done`.
/// * Let it advance by itself while the test waits: [`set_auto_advance`](Self::set_auto_advance).
/// * Wait on one thread, and move the clock on another.
///
/// [`run_until_idle`](Self::run_until_idle) and the methods built on it wait for running tasks. A task that waits for
/// the test itself (a channel, a barrier) makes them wait forever; one that sleeps on its
/// [token](crate::CancellationToken::sleep) or joins another task does not. Called inside a task, they wait forever,
/// for that task itself. So do all but [`run_for`](Self::run_for) if a periodic task moves the clock by more than its
/// period.
#[doc(alias("mock_clock", "MockClock", "FakeClock"))]
#[doc(alias("fake_time", "pause", "virtual_time", "test_clock"))]
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<SharedClock>,
}

struct SharedClock {
    /// The instant from which timestamps are counted. Set only when needed, because some platforms have no clock.
    base: OnceLock<Instant>,
    /// The timestamp from which [`ManualClock::elapsed`] counts.
    origin: Timestamp,
    state: Mutex<ClockState>,
}

pub(super) struct ClockState {
    now: Timestamp,
    sleepers: Vec<Sleeper>,
    alarms: Wakers,
    pub(super) workers: usize,
    is_auto: bool,
    /// How many threads other than workers wait; each counts from its first sleep to the end of its wait.
    pub(super) waiting: usize,
    /// How many threads drive an executor while they wait for something. Each counts as a worker, and not in `waiting`.
    pub(super) waiting_drivers: usize,
    /// `true` once the clock has woken all sleepers to look for work. Becomes `false` when the clock advances by
    /// itself, when a wait begins, and when automatic advance is switched on or off.
    pub(super) have_looked: bool,
    /// A timestamp, and the wall time at that timestamp.
    wall: (Timestamp, SystemTime),
    /// The threads to wake when the clock becomes idle. Each is also woken when the clock moves past its timestamp.
    idle_watchers: Vec<(Timestamp, Arc<ParkedThread>)>,
    #[cfg(test)]
    parks: usize,
}

struct Sleeper {
    until: Timestamp,
    thread: Arc<ParkedThread>,
    /// `true` if the thread is a worker of an executor on this clock.
    is_worker: bool,
}

impl ClockState {
    fn end_sleep(&mut self, thread: &Arc<ParkedThread>) {
        self.sleepers.retain(|sleeper| !Arc::ptr_eq(&sleeper.thread, thread));
    }

    fn wake_where(&self, is_meant: impl Fn(&Sleeper) -> bool) {
        let meant = self.sleepers.iter().filter(|sleeper| is_meant(sleeper));
        meant.for_each(|sleeper| Wake::wake_by_ref(&sleeper.thread));
    }

    fn is_idle(&self) -> bool {
        let rests = |sleeper: &&Sleeper| sleeper.is_worker && !sleeper.thread.is_woken();
        self.sleepers.iter().filter(rests).count() == self.workers
    }

    /// Wakes the watchers if the clock is idle. Called when a thread goes to sleep or a worker ends.
    fn tell_if_idle(&mut self) {
        if self.is_idle() {
            self.idle_watchers.drain(..).for_each(|(_, watcher)| watcher.wake());
        }
    }

    /// Returns the next deadline, or `NEVER`. Ignores sleepers whose deadline has come, since they have been woken.
    fn next_deadline(&self) -> Timestamp {
        let sleepers = self.sleepers.iter().map(|sleeper| sleeper.until);
        let sleepers = sleepers.filter(|until| *until > self.now);
        sleepers.fold(self.alarms.first(), Timestamp::min)
    }

    /// Moves the clock to `now`, but never back, and wakes the threads whose deadlines have come. Returns the wakers of
    /// the alarms that fire. The caller calls these wakers after it has released the lock.
    #[must_use]
    fn move_to(&mut self, now: Timestamp) -> Vec<Waker> {
        self.now = self.now.max(now);
        self.wake_where(|sleeper| sleeper.until <= self.now);
        for (_, watcher) in self.idle_watchers.iter().filter(|(end, _)| *end < self.now) {
            Wake::wake_by_ref(watcher);
        }
        self.alarms.take_due(self.now)
    }

    pub(super) fn worker_ended(&mut self) {
        self.workers -= 1;
        self.tell_if_idle();
    }

    /// Advances the clock if automatic advance is on, a thread waits, and all waiting threads and workers are asleep.
    /// The first such call only wakes them to look for work; once they have looked, the next call moves the clock to
    /// the next deadline. Returns the wakers of the alarms that fire. The caller releases the lock and calls them; if
    /// there were any, it has to call this again.
    #[must_use]
    fn go_on(&mut self) -> Vec<Waker> {
        let is_waited_for = self.waiting + self.waiting_drivers > 0
            && self.sleepers.len() == self.waiting + self.workers
            && !self.sleepers.iter().any(|sleeper| sleeper.thread.is_woken());
        if !self.is_auto || !is_waited_for {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.have_looked, true) {
            self.wake_where(|_| true);
            return Vec::new();
        }
        let next = self.next_deadline();
        if next == Timestamp::NEVER {
            return Vec::new();
        }
        self.have_looked = false;
        self.move_to(next)
    }
}

/// The start of the year 2000 in UTC, as the time since the Unix epoch.
const BEGINNING: Duration = Duration::from_secs(946_684_800);

/// How many times tasks may move the clock past the end of a [`ManualClock::run_for`] before that call gives up.
const MOVES_BEYOND: u32 = 1_000;

impl ManualClock {
    /// Returns a clock that shows its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(Duration::ZERO)
    }

    /// Returns a clock that shows `elapsed` since its origin, to test what happens late in its life. The last point in
    /// time it can show is more than 583 years after the origin. It distinguishes points in the past up to a year back,
    /// or as far as the platform's `Instant` can represent; all earlier ones count as the earliest.
    #[must_use]
    pub fn starting_at(elapsed: Duration) -> Self {
        // A worker checks the wall clock at multiples of this span, so the origin has to be one too.
        let after_look = saturating_nanos(elapsed) % saturating_nanos(BETWEEN_LOOKS);
        Self::with_past(elapsed, PAST + Duration::from_nanos(after_look))
    }

    /// Makes a clock that shows `elapsed`, with timestamps that cover at least the span `past` before the current time.
    fn with_past(elapsed: Duration, past: Duration) -> Self {
        let origin = Timestamp(saturating_nanos(past.saturating_sub(elapsed)));
        let now = origin.after(elapsed).min(Timestamp::LAST);
        let beginning = UNIX_EPOCH + BEGINNING;
        let wall = beginning.checked_add(elapsed).unwrap_or(beginning);
        let state = ClockState {
            now,
            sleepers: Vec::new(),
            alarms: Wakers::default(),
            workers: 0,
            is_auto: false,
            waiting: 0,
            waiting_drivers: 0,
            have_looked: false,
            wall: (now, wall),
            idle_watchers: Vec::new(),
            #[cfg(test)]
            parks: 0,
        };
        let (base, state) = (OnceLock::new(), Mutex::new(state));
        Self { shared: Arc::new(SharedClock { base, origin, state }) }
    }

    /// Returns the current time as an [`Instant`], for [`schedule_at`](crate::Handle::schedule_at). Does not block.
    pub fn now(&self) -> Instant {
        let (base, since_base) = (self.base(), Duration::from_nanos(self.read().0));
        base.checked_add(since_base).unwrap_or(base)
    }

    /// Returns the time since the origin. Does not block.
    pub fn elapsed(&self) -> Duration {
        self.read().since(self.shared.origin)
    }

    /// Moves the clock forward by `step`, in one jump, and wakes every thread and every waker whose deadline has come.
    /// Does not block, and does not wait for what they then do: [`run_until_idle`](Self::run_until_idle) does, and
    /// [`run_for`](Self::run_for) goes from deadline to deadline.
    pub fn advance(&self, step: Duration) {
        let mut state = self.shared.state.lock();
        let now = state.now.after(step).min(Timestamp::LAST);
        let woken = state.move_to(now);
        drop(state);
        wake_all(woken);
    }

    /// Blocks until no worker of the executors on this clock has anything to do before time moves: everything due has
    /// run. Blocks as long as a task runs.
    pub fn run_until_idle(&self) {
        self.run_until_idle_or_beyond(Timestamp::LAST);
    }

    /// Waits [until idle](Self::run_until_idle), jumps to the next deadline, and waits until idle again. Returns how
    /// far it jumped; if nothing waits for a deadline, it does not move, and returns `None`. With a task [on the wall
    /// clock](crate::trigger::Due::Wall), each multiple of 30 s of [`elapsed`](Self::elapsed) is a deadline too: a
    /// worker then checks that clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// executor.schedule(Duration::from_secs(30), || ())?;
    /// assert_eq!(clock.advance_to_next_deadline(), Some(Duration::from_secs(30)));
    /// assert_eq!(clock.advance_to_next_deadline(), None);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn advance_to_next_deadline(&self) -> Option<Duration> {
        self.step_up_to(Timestamp::LAST)
    }

    /// Moves through the next `span` of time deadline by deadline, and blocks at each until everything due has run:
    /// periodic tasks run on time, and not late in a burst as after one big [`advance`](Self::advance).
    ///
    /// A task may move the clock itself, as if its work took that time, even past the end. This call waits for
    /// everything that falls due meanwhile, but not forever: a periodic task that moves the clock by more than its
    /// period is never idle. After a thousand moves past the end, this call returns and leaves the tasks running.
    pub fn run_for(&self, span: Duration) {
        let end = self.read().after(span).min(Timestamp::LAST);
        while self.step_up_to(end).is_some() {}
        let woken = self.shared.state.lock().move_to(end);
        wake_all(woken);
        self.run_until_idle_or_beyond(end);
    }

    /// Moves from deadline to deadline until `condition` holds, and blocks at each until everything due has run.
    /// Returns `true` if the condition holds, and `false` if it does not and nothing waits for a deadline any more. The
    /// condition is first called when everything due now has run, and then after each step.
    ///
    /// A periodic task always waits for its next run, so unless it is cancelled, a condition that never holds keeps
    /// this going until the end of the clock's time: count the runs, or check [`elapsed`](Self::elapsed), in the
    /// condition.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (tell, told) = mpsc::channel();
    /// executor.schedule(Duration::from_secs(7200), move || tell.send("tea"))?;
    /// assert!(clock.run_until(|| told.try_recv().is_ok()));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(7200));
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

    /// Switches automatic advance on or off; it is off at first. While it is on, and a thread waits on this clock that
    /// is not a worker of an executor on it, time passes as soon as nothing else can happen: when all waiting threads
    /// sleep and no worker has anything to do, the clock jumps to the next deadline, again and again until the waiting
    /// thread is woken. Then it stands still at that time. (Tokio's paused clock does the same.)
    ///
    /// A wait is any call of this crate that blocks: a `join`, with a limit or without,
    /// [`await_termination`](crate::Handle::await_termination), a token's [`sleep`](crate::CancellationToken::sleep) on
    /// this clock, the drop of an executor. A thread that blocks on something else, such as a channel or a future that
    /// it awaits, does not wait in this sense, and the clock does not see a third thread that is about to do something.
    /// While several threads wait, time passes for all of them: one that has its answer may read a later time than the
    /// answer's.
    ///
    /// **Without a next deadline nothing happens**: a wait for something that does not depend on time blocks as usual.
    /// Beside a periodic task there is always a next deadline, and such a wait keeps the clock running and a core busy.
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
    /// let hour = Duration::from_secs(3600);
    /// assert_eq!(executor.schedule(hour, || "done")?.join()?, "done"); // takes no real time
    /// assert_eq!(clock.elapsed(), hour);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("start_paused", "pause"))]
    pub fn set_auto_advance(&self, is_on: bool) {
        self.change(|state| (state.is_auto, state.have_looked) = (is_on, false));
    }

    /// Returns the time from now until the next deadline that a thread or a future waits for; `None` if there is none.
    /// Does not block. It is exact when the clock is [idle](Self::run_until_idle), with one exception: a worker that
    /// waits for a task keeps that deadline even if the task has been cancelled meanwhile.
    pub fn next_deadline(&self) -> Option<Duration> {
        let state = self.shared.state.lock();
        let next = state.next_deadline();
        (next < Timestamp::NEVER).then(|| next.since(state.now))
    }

    fn step_up_to(&self, end: Timestamp) -> Option<Duration> {
        self.run_until_idle_or_beyond(end);
        // A worker may sleep until the deadline of a task that was cancelled meanwhile.
        self.shared.state.lock().wake_where(|sleeper| sleeper.is_worker);
        self.run_until_idle_or_beyond(end);
        let mut state = self.shared.state.lock();
        let next = state.next_deadline();
        if next > end {
            return None;
        }
        let step = next.since(state.now);
        let woken = state.move_to(next);
        drop(state);
        wake_all(woken);
        self.run_until_idle_or_beyond(end);
        Some(step)
    }

    /// Blocks until the clock is idle. Gives up if tasks keep moving it past `end`: it might never be idle.
    fn run_until_idle_or_beyond(&self, end: Timestamp) {
        let (parker, mut moves) = (Parker::current(), 0);
        let mut state = self.shared.state.lock();
        while !state.is_idle() && moves < MOVES_BEYOND {
            state.idle_watchers.push((end, Arc::clone(&parker.thread)));
            drop(state);
            parker.park();
            state = self.shared.state.lock();
            state.idle_watchers.retain(|(_, watcher)| !Arc::ptr_eq(watcher, &parker.thread));
            parker.notice();
            moves += u32::from(state.now > end);
        }
    }

    /// Changes the state. Then, if the clock may advance by itself, advances it and calls the wakers that are due.
    pub(super) fn change(&self, change: impl FnOnce(&mut ClockState)) {
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

    #[cold]
    #[inline(never)]
    pub(super) fn base(&self) -> Instant {
        *self.shared.base.get_or_init(|| {
            #[allow(clippy::disallowed_methods, reason = "any instant serves as the origin")]
            let some = Instant::now();
            long_before(some, Duration::from_nanos(self.shared.origin.0))
        })
    }

    pub(super) fn read(&self) -> Timestamp {
        self.shared.state.lock().now
    }

    /// Sleeps until the thread is woken or `until` comes; may also return at once. Sets `is_counted` when the clock
    /// begins to count the thread's wait.
    pub(super) fn park_until(&self, parker: &Parker, until: Timestamp, is_counted: &Cell<bool>) {
        let mut state = self.shared.state.lock();
        if state.now >= until {
            return;
        }
        let is_worker = parker.works_for.get() == self.address();
        if !is_worker && !is_counted.replace(true) {
            state.waiting += 1;
            state.have_looked = false;
        }
        state.sleepers.push(Sleeper { until, thread: Arc::clone(&parker.thread), is_worker });
        #[cfg(test)]
        {
            state.parks += 1;
        }
        let woken = state.go_on();
        if !woken.is_empty() {
            // User code: see the head of the module.
            state.end_sleep(&parker.thread);
            drop(state);
            wake_all(woken);
            return;
        }
        state.tell_if_idle();
        drop(state);
        parker.park();
        let mut state = self.shared.state.lock();
        state.end_sleep(&parker.thread);
        parker.notice();
    }

    /// Sets an alarm that calls `waker` when `until` comes. Calls `waker` at once if `until` has already come.
    pub(crate) fn set_alarm(&self, until: Timestamp, waker: Waker) -> PlaceId {
        let (mut id, mut late) = ((until, 0), None);
        self.change(|state| {
            if state.now < until {
                id = state.alarms.add(until, waker);
            } else {
                late = Some(waker);
            }
        });
        wake_all(late);
        id
    }

    /// Takes an alarm off the list. Returns its waker; `None` if the alarm has fired.
    pub(crate) fn call_off(&self, id: PlaceId) -> Option<Waker> {
        self.shared.state.lock().alarms.remove(id)
    }

    /// Returns a number that no other clock has while this one exists.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }
}

/// The wall time.
impl ManualClock {
    /// Returns the wall time. At the clock's origin it is the beginning of the year 2000 in UTC, and it advances with
    /// the clock. Does not block.
    pub fn wall_time(&self) -> SystemTime {
        self.read_both().1
    }

    /// Sets the wall time, as an administrator or a time server does, or as if the machine had slept. The clock itself
    /// stands still: [`now`](Self::now) and [`elapsed`](Self::elapsed) do not change, nor do rates and delays. A task
    /// that is planned [on the wall clock](crate::trigger::Due::Wall) follows when a worker next checks that clock:
    /// when [`elapsed`](Self::elapsed) is a multiple of 30 s, or when its run was due before. What its handle shows
    /// changes at once. Does not block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::at};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let tea = executor.repeat(at([clock.wall_time() + Duration::from_secs(3600)]), || ())?;
    /// clock.set_wall_time(clock.wall_time() + Duration::from_secs(3600)); // to summer time
    /// clock.run_for(Duration::from_secs(30));
    /// assert!(tea.is_done());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn set_wall_time(&self, wall: SystemTime) {
        let mut state = self.shared.state.lock();
        state.wall = (state.now, wall);
    }

    pub(super) fn read_both(&self) -> (Timestamp, SystemTime) {
        let state = self.shared.state.lock();
        let (now, (since, wall)) = (state.now, state.wall);
        (now, wall.checked_add(now.since(since)).unwrap_or(wall))
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
#[cfg(loom)]
#[path = "manual/tests/exhaustive.rs"]
mod exhaustive;

#[cfg(test)]
mod tests;
