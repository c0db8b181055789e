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

use std::{
    fmt,
    task::{Wake, Waker},
    time::{Duration, Instant},
};

use super::{Deadline, saturating_nanos};
use crate::{
    sync::{Arc, Bell, Condvar, Mutex, Parker},
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
/// [`run_until_idle`](Self::run_until_idle) and what is built on it wait for tasks that run. A
/// task that waits for the test itself (a channel, a barrier) makes them wait for ever; one that
/// sleeps on its [token](crate::CancellationToken::sleep) or joins another task does not. Inside a
/// task they would wait for the task itself.
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Instant,
    state: Mutex<State>,
    /// Something on the list, or the number of workers, has changed.
    changed: Condvar,
}

struct State {
    now: Deadline,
    sleepers: Vec<Sleeper>,
    alarms: Vec<Alarm>,
    last_alarm: u64,
    /// Worker threads that were started and have not ended.
    workers: usize,
    /// How often a thread has gone to sleep.
    #[cfg(test)]
    parks: usize,
}

/// A waker that is to be woken at a moment.
struct Alarm {
    id: u64,
    until: Deadline,
    waker: Waker,
}

struct Sleeper {
    until: Deadline,
    bell: Arc<Bell>,
    /// Whether it is a worker of a pool on this clock, and not of another that waits here.
    is_worker: bool,
}

impl ManualClock {
    /// A clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(Duration::ZERO)
    }

    /// A clock that shows `elapsed` since its origin, to test what happens late in its life.
    /// The last moment it can show is 584 years after the origin.
    #[must_use]
    pub fn starting_at(elapsed: Duration) -> Self {
        let now = Deadline(saturating_nanos(elapsed)).min(Deadline::LAST);
        let state = State {
            now,
            sleepers: Vec::new(),
            alarms: Vec::new(),
            last_alarm: 0,
            workers: 0,
            #[cfg(test)]
            parks: 0,
        };
        #[allow(clippy::disallowed_methods, reason = "any instant serves as the origin")]
        let origin = Instant::now();
        let shared = Shared { origin, state: Mutex::new(state), changed: Condvar::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The present, as the [`Instant`] that
    /// [`schedule_at`](crate::Handle::schedule_at) understands.
    #[must_use]
    pub fn now(&self) -> Instant {
        let elapsed = self.elapsed();
        self.shared.origin.checked_add(elapsed).unwrap_or(self.shared.origin)
    }

    /// How far the present is from the origin.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.deadline_now().0)
    }

    /// Moves the present by `step`, in one jump, and rings for everyone whose moment came. Does
    /// not wait for what they do then: see [`run_until_idle`](Self::run_until_idle), and
    /// [`run_for`](Self::run_for) to go from deadline to deadline.
    pub fn advance(&self, step: Duration) {
        let mut state = self.shared.state.lock();
        let now = state.now.after(step).min(Deadline::LAST);
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
        self.step_up_to(Deadline::LAST)
    }

    /// Goes through the next `span` of time deadline by deadline, and waits at each until
    /// everything due has run: periodic tasks run on time, and not late in a burst as after one
    /// long [`advance`](Self::advance).
    pub fn run_for(&self, span: Duration) {
        let end = self.deadline_now().after(span).min(Deadline::LAST);
        while self.step_up_to(end).is_some() {}
        let woken = self.shared.state.lock().move_to(end);
        wake_all(woken);
        self.run_until_idle();
    }

    /// The moment nearest in time that anybody waits for, as the span from now; `None` if there
    /// is none. Does not block. Exact when [idle](Self::run_until_idle), but for this: a worker
    /// that waits for a task looks up only then, also if the task has been cancelled meanwhile.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let state = self.shared.state.lock();
        let next = state.next_deadline();
        (next < Deadline::NEVER).then(|| next.since(state.now))
    }

    fn step_up_to(&self, end: Deadline) -> Option<Duration> {
        self.settle();
        let mut state = self.shared.state.lock();
        let next = state.next_deadline();
        if next > end {
            return None;
        }
        let step = next.since(state.now);
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
        for worker in self.shared.state.lock().sleepers.iter().filter(|one| one.is_worker) {
            Wake::wake_by_ref(&worker.bell);
        }
        self.run_until_idle();
    }

    pub(super) fn origin(&self) -> Instant {
        self.shared.origin
    }

    pub(super) fn deadline_now(&self) -> Deadline {
        self.shared.state.lock().now
    }

    pub(super) fn park_until(&self, parker: &Parker, until: Deadline) {
        let mut state = self.shared.state.lock();
        if state.now >= until {
            return;
        }
        let bell = Arc::clone(parker.bell());
        state.sleepers.push(Sleeper { until, bell, is_worker: parker.works_by(self.address()) });
        #[cfg(test)]
        state.count_park();
        self.shared.changed.notify_all();
        drop(state);
        parker.park();
        let mut state = self.shared.state.lock();
        state.sleepers.retain(|sleeper| !Arc::ptr_eq(&sleeper.bell, parker.bell()));
        parker.hear();
    }

    /// Wakes `waker` once `until` has come; gives the number of the alarm.
    pub(crate) fn set_alarm(&self, until: Deadline, waker: Waker) -> u64 {
        let mut state = self.shared.state.lock();
        state.last_alarm += 1;
        let id = state.last_alarm;
        if state.now < until {
            state.alarms.push(Alarm { id, until, waker });
        } else {
            drop(state);
            wake_all([waker]);
        }
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

    pub(super) fn worker_begins(&self, parker: &Parker) {
        parker.work_by(self.address());
    }

    /// Tells this clock from others, for as long as anybody has it.
    fn address(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }

    pub(super) fn worker_ended(&self) {
        self.shared.state.lock().workers -= 1;
        self.shared.changed.notify_all();
    }

    /// How often a thread has gone to sleep.
    #[cfg(test)]
    pub(crate) fn parks(&self) -> usize {
        self.shared.state.lock().parks
    }

    /// The moments that threads sleep until.
    #[cfg(test)]
    #[cfg(not(any(shuttle, loom)))]
    pub(crate) fn sleepers(&self) -> Vec<Deadline> {
        let state = self.shared.state.lock();
        let mut moments: Vec<_> = state.sleepers.iter().map(|sleeper| sleeper.until).collect();
        moments.sort();
        moments
    }
}

impl State {
    #[cfg(test)]
    fn count_park(&mut self) {
        self.parks += 1;
    }

    fn is_idle(&self) -> bool {
        let rests = |sleeper: &&Sleeper| sleeper.is_worker && !sleeper.bell.is_rung();
        self.sleepers.iter().filter(rests).count() == self.workers
    }

    /// Of what is still to come: whose moment has come has been rung for, and is on its way.
    fn next_deadline(&self) -> Deadline {
        let sleepers = self.sleepers.iter().map(|sleeper| sleeper.until);
        let sleepers = sleepers.filter(|until| *until > self.now);
        let alarms = self.alarms.iter().map(|alarm| alarm.until);
        sleepers.chain(alarms).min().unwrap_or(Deadline::NEVER)
    }

    /// Rings for the threads whose moment has come. Gives whom to wake without the lock.
    #[must_use]
    fn move_to(&mut self, now: Deadline) -> Vec<Waker> {
        self.now = self.now.max(now);
        for sleeper in self.sleepers.iter().filter(|sleeper| sleeper.until <= self.now) {
            Wake::wake_by_ref(&sleeper.bell);
        }
        let alarms = std::mem::take(&mut self.alarms).into_iter();
        let (due, later): (Vec<_>, _) = alarms.partition(|alarm| alarm.until <= self.now);
        self.alarms = later;
        due.into_iter().map(|alarm| alarm.waker).collect()
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
        let clock = ManualClock::new();
        let sleeper = |nanos| {
            let bell = Arc::clone(Parker::current().bell());
            Sleeper { until: Deadline::from_nanos(nanos), bell, is_worker: false }
        };
        clock.shared.state.lock().sleepers.extend([sleeper(10), sleeper(30)]);
        clock.advance(Duration::from_nanos(20));
        assert_eq!(clock.next_deadline(), Some(Duration::from_nanos(10)));
    }
}
