//! The extender: a handle that puts a run off with one atomic operation. [`pace`](super) says why an extension holds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{FIRST, NEVER, Time, Word, nanos};
use crate::{
    CancellationToken, Handle, RunGate, TaskBuilder,
    gate::{Entry, Lease, RunEnd, Tick},
};

/// Puts off the next run of a task, any number of times, for one atomic operation each; from [`TaskBuilder::extender`].
///
/// It is for a timeout that every sign of life extends: an idle connection, a session, a lease, a watchdog.
/// [`reschedule`](crate::TaskHandle::reschedule) moves the task in the queue at each call, under two locks. An extender
/// notes the later moment in a [gate](crate::gate) of the task, and the worker that takes the task at its old moment
/// queues it for the later one. This check takes a microsecond or two, and counts as no run, no missed run and no
/// attempt. There is at most one per span: a timeout of 30 s is checked every 30 s, even if extended a million times.
///
/// Cloning it is cheap, and dropping it does nothing. It is for one task: submit the builder once.
///
/// * An extension also puts off a run that a caller asks for: `reschedule`,
///   [`run_within`](crate::TaskHandle::run_within) and, for a one-shot task, [`run_now`](crate::TaskHandle::run_now)
///   choose when the worker checks. To let one through, call [`take_back`](Self::take_back) first. A `run_now` of a
///   series takes place, beside the schedule.
/// * [`delay`](crate::TaskHandle::delay), [`next_run`](crate::PendingTask::next_run) and
///   [`pending_tasks`](crate::Handle::pending_tasks) show the next check, and a [manual
///   clock](crate::ManualClock::advance_to_next_deadline) may stop at one.
/// * A check plans the run anew, as `reschedule` does: lateness, [missed runs](crate::MissedRuns), a [time
///   limit](crate::TaskBuilder::timeout) and the grid of a fixed rate count from there. If a check is so late that the
///   policy for missed runs or the limit ends the run, an extension does not save it.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let second = Duration::from_secs(1);
/// let (task, activity) = executor.task().extender();
/// let hang_up = task.schedule(30 * second, || "idle for 30 seconds")?;
/// for _ in 0..100 {
///     clock.run_for(second); // a request each second
///     assert!(activity.extend(30 * second));
/// }
/// clock.run_for(30 * second);
/// assert_eq!(hang_up.join()?, "idle for 30 seconds");
/// assert!(!activity.extend(30 * second), "too late");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("keep_alive", "heartbeat", "watchdog", "touch", "renew"))]
#[derive(Clone, Debug)]
pub struct Extender {
    executor: Handle,
    put_off: Arc<PutOff>,
}

#[derive(Debug)]
struct PutOff {
    time: Time,
    word: Word,
}

#[allow(clippy::must_use_candidate, reason = "they are done for what they do")]
impl Extender {
    pub(crate) fn of(task: TaskBuilder<'_>) -> (TaskBuilder<'_>, Self) {
        let executor = task.handle();
        let time = Time::new(executor.clock().clone());
        let put_off = Arc::new(PutOff { time, word: Word(FIRST.into()) });
        let of_gate = Arc::clone(&put_off);
        let task = task.gate_around(|inner| ExtenderGate { put_off: of_gate, inner });
        (task, Self { executor, put_off })
    }

    /// Keeps the task from running until `delay` has passed from now: puts its next run off, or leaves it alone if it
    /// is later anyway. It never brings a run forward; [`run_within`](crate::TaskHandle::run_within) does.
    ///
    /// Returns `true` if the next run does not take place before then. Returns `false`, and has no effect, if the run
    /// has begun or the gate has just let it pass, if the task has ended, or if the executor was shut down; also while
    /// the answer of another gate of the task is still to [come](crate::gate::Entry::Later), and until the next check.
    ///
    /// Does not block: at most one reading of the clock and one atomic operation. Java: `cancel` and `schedule`.
    #[doc(alias("reset", "postpone"))]
    #[inline]
    pub fn extend(&self, delay: Duration) -> bool {
        self.put_off_to(self.put_off.time.now().saturating_add(nanos(delay)))
    }

    /// Like [`extend`](Self::extend), to an instant of the executor's [clock](crate::Handle::clock), which this does
    /// not read; `None` means never.
    pub fn extend_to(&self, instant: impl Into<Option<Instant>>) -> bool {
        self.put_off_to(instant.into().map_or(NEVER, |instant| self.put_off.time.of(instant)))
    }

    /// Takes all extensions back: the run takes place when it was planned, or when a check has planned it, unless a
    /// [`run_now`](crate::TaskHandle::run_now) or another request moves it. Returns `false`, and has no effect, if the
    /// run has begun or the task has ended. Does not block: one atomic operation.
    pub fn take_back(&self) -> bool {
        self.put_off.word.lower(FIRST)
    }

    #[inline]
    fn put_off_to(&self, moment: u64) -> bool {
        !self.executor.is_shutdown() && self.put_off.word.raise(false, || moment)
    }
}

struct ExtenderGate {
    put_off: Arc<PutOff>,
    inner: Option<Arc<dyn RunGate>>,
}

impl RunGate for ExtenderGate {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let PutOff { time, word } = &*self.put_off;
        let ask = || self.inner.as_ref().map_or(Entry::Run, |inner| inner.enter(tick));
        if tick.is_extra() {
            return ask();
        }
        // No lease has reopened the word: see the head of `pace`.
        if word.is_closed() {
            word.open(FIRST);
        }
        if let Some(later) = word.later_than(time.now()) {
            return time.put_off(later);
        }
        let entry = ask();
        if !matches!(entry, Entry::Run | Entry::Hold(_) | Entry::Later(_)) {
            return entry;
        }
        if let Err(later) = word.close_at(time.now()) {
            if let Entry::Hold(lease) = entry {
                lease.leave(RunEnd::NotRun, None);
            }
            return time.put_off(later);
        }
        let inner = match entry {
            Entry::Run if tick.is_periodic() => None,
            Entry::Hold(lease) if tick.is_periodic() => Some(lease),
            entry => return entry,
        };
        Entry::Hold(Arc::new(RunOfSeries { put_off: Arc::clone(&self.put_off), inner }))
    }
}

impl Drop for ExtenderGate {
    fn drop(&mut self) {
        self.put_off.word.close();
    }
}

/// The lease for a run of a series. Its `leave` reopens the word. Wraps the lease that the user's gate gave, if any.
struct RunOfSeries {
    put_off: Arc<PutOff>,
    inner: Option<Arc<dyn Lease>>,
}

impl Lease for RunOfSeries {
    fn fencing_token(&self) -> Option<u64> {
        self.inner.as_ref()?.fencing_token()
    }

    fn is_lost(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.is_lost())
    }

    fn watch(&self, token: CancellationToken) {
        if let Some(inner) = &self.inner {
            inner.watch(token);
        }
    }

    fn leave(&self, end: RunEnd<'_>, next: Option<Instant>) {
        self.put_off.word.open(FIRST);
        if let Some(inner) = &self.inner {
            inner.leave(end, next);
        }
    }
}
