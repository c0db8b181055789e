//! The calls that wait for one run, the gate that lets the run pass, and the trigger that says when the next run is
//! due. See [`pace`](super).

#![allow(clippy::disallowed_types, reason = "this is a user of the crate, and locks as users do")]

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{CLOSED, NEVER, Time, Word, nanos};
use crate::{
    Handle, Outcome, RejectedExecutionError, RunGate, TaskBuilder, TaskHandle, TaskState, Trigger,
    gate::{Entry, Tick},
    trigger::{Due, TriggerContext},
};

/// The state that a debounced or throttled task shares with its handle. All its moments are on the clock `time`.
#[derive(Debug)]
pub(super) struct Calls {
    time: Time,
    /// The moment before which the coming run does not take place. Open while calls may still join that run.
    until: Word,
    /// When the first of the waiting calls came. Valid while `until` is open.
    first: AtomicU64,
    period: u64,
    waiting: Mutex<WaitingCalls>,
}

#[derive(Debug, Default)]
struct WaitingCalls {
    /// `true` if a call is waiting for the coming run, or for the run that the gate was asked about.
    is_called: bool,
    /// The calls since the gate was asked: when the first of them came, and when their run would be due.
    since: Option<(u64, u64)>,
    period_end: u64,
}

impl Calls {
    /// Submits a task that runs when it is called, at most once per `period`.
    #[track_caller]
    pub(super) fn submit<O: Outcome>(
        task: TaskBuilder<'_>,
        period: Duration,
        mut body: impl FnMut() -> O + Send + 'static,
    ) -> Result<Caller, RejectedExecutionError> {
        let executor = task.handle();
        let calls = Arc::new(Self {
            time: Time::new(executor.clock().clone()),
            until: Word(CLOSED.into()),
            first: AtomicU64::new(0),
            period: nanos(period),
            waiting: Mutex::default(),
        });
        let (of_gate, of_body) = (Arc::clone(&calls), Arc::clone(&calls));
        let task = task.gate_around(|inner| CallGate { calls: of_gate, inner });
        let trigger = CallTrigger(Arc::clone(&calls));
        let body = move || {
            of_body.begin();
            body()
        };
        let task = task.repeat(trigger, body)?.task_handle();
        Ok(Caller { executor, task, calls, cancels_on_drop: false })
    }

    fn lock(&self) -> MutexGuard<'_, WaitingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, waiting: &mut WaitingCalls, first: u64, due: u64) {
        waiting.is_called = true;
        // Ordering: relaxed; opening the word publishes it.
        self.first.store(first, Ordering::Relaxed);
        self.until.open(due);
    }

    fn give_up(&self, waiting: &mut WaitingCalls) {
        self.until.close();
        (waiting.is_called, waiting.since) = (false, None);
    }

    /// Called when the gate is asked about a run. Closes the word, and returns the word's moment if it was open.
    ///
    /// # Errors
    ///
    /// Returns the moment before which the run must not take place.
    fn ask(&self, is_extra: bool) -> Result<Option<u64>, u64> {
        let (now, waiting) = (self.time.now(), self.lock());
        if waiting.period_end > now {
            return Err(waiting.period_end);
        }
        // Calls do not put off a run beside the schedule: that run serves them.
        self.until.close_at(if is_extra { NEVER } else { now })
    }

    /// Reopens the word for waiting calls, with `until` or a later moment, so that more calls can join them. Called
    /// when the user's gate has put the run off, or has skipped an extra run.
    fn wait_on(&self, until: Option<u64>) {
        let mut waiting = self.lock();
        if waiting.is_called && self.until.is_closed() {
            let since = waiting.since.take().map_or(0, |(_, due)| due);
            self.until.open(since.max(until.unwrap_or(0)));
        }
    }

    fn begin(&self) {
        let (now, mut waiting) = (self.time.now(), self.lock());
        self.give_up(&mut waiting);
        waiting.period_end = now.saturating_add(self.period);
    }

    /// After the tick for which a worker took the task at `taken`, drops the calls whose run did not take place.
    /// Returns when the run for the calls still waiting is due; `None` if no call is waiting.
    fn tick_is_over(&self, taken: u64) -> Option<u64> {
        let mut waiting = self.lock();
        // Open with a moment before `taken`: the gate was not asked. Closed with a call waiting: no body has begun.
        if let Err(due) = self.until.close_at(taken.saturating_sub(1)) {
            return Some(due);
        }
        let since = waiting.since;
        self.give_up(&mut waiting);
        let (first, due) = since?;
        self.open(&mut waiting, first, due);
        Some(due)
    }
}

#[derive(Debug)]
pub(super) struct Caller {
    executor: Handle,
    pub(super) task: TaskHandle,
    calls: Arc<Calls>,
    pub(super) cancels_on_drop: bool,
}

impl Caller {
    /// Notes a call. From the moments of this call and of the first waiting call, `until` computes when the run is due.
    /// After a shutdown, a call does not put the run off. Returns `false` if the task has ended.
    #[inline]
    pub(super) fn call(&self, until: impl Fn(u64, u64) -> u64) -> bool {
        let (calls, now) = (&*self.calls, self.calls.time.now());
        let is_open = !self.executor.is_shutdown();
        // Ordering: relaxed; `first` was written before the word was opened, and the word was read with Acquire.
        let first = || calls.first.load(Ordering::Relaxed);
        loop {
            if calls.until.raise(true, || if is_open { until(now, first()) } else { 0 }) {
                return true;
            }
            if let Some(lives) = self.call_under_lock(now, &until) {
                return lives;
            }
        }
    }

    /// Notes a call that found the word closed. Returns `call`'s result; `None` if a thread has reopened the word.
    #[inline(never)]
    fn call_under_lock(&self, now: u64, until: &dyn Fn(u64, u64) -> u64) -> Option<bool> {
        let Self { task, calls, .. } = self;
        let mut waiting = calls.lock();
        if !calls.until.is_closed() {
            return None;
        }
        let first = waiting.since.map_or(now, |(first, _)| first);
        let due = until(now, first).max(now).max(waiting.period_end);
        if waiting.is_called {
            waiting.since = Some((first, due));
            drop(waiting);
            return Some(!task.is_done());
        }
        calls.open(&mut waiting, now, due);
        drop(waiting);
        let lives = task.run_within(Duration::from_nanos(due - now));
        if !lives {
            calls.give_up(&mut calls.lock());
        }
        Some(lives)
    }

    /// Asks for a run at once if calls are waiting. Returns `false` if none are, or if the task has ended.
    pub(super) fn flush(&self) -> bool {
        let Self { task, calls, .. } = self;
        let (now, mut waiting) = (calls.time.now(), calls.lock());
        if !waiting.is_called {
            return false;
        }
        if calls.until.lower(now) {
            drop(waiting);
            return task.run_within(Duration::ZERO);
        }
        if let Some((_, due)) = &mut waiting.since {
            *due = now;
        }
        drop(waiting);
        // If the gate is being asked, the run is about to begin.
        task.state() == TaskState::Running || task.run_within(Duration::ZERO)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.calls.lock().is_called && !self.task.is_done()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.cancels_on_drop {
            self.task.cancel();
        }
    }
}

struct CallGate {
    calls: Arc<Calls>,
    inner: Option<Arc<dyn RunGate>>,
}

impl RunGate for CallGate {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let closed = match self.calls.ask(tick.is_extra()) {
            Ok(closed) => closed,
            Err(later) => return self.calls.time.put_off(later),
        };
        let entry = self.inner.as_ref().map_or(Entry::Run, |inner| inner.enter(tick));
        match entry {
            Entry::Again(_) | Entry::At(_) => self.calls.wait_on(closed),
            // The plan stands, and the calls go on waiting.
            Entry::Skip if tick.is_extra() => self.calls.wait_on(closed),
            _ => {}
        }
        entry
    }
}

impl Drop for CallGate {
    fn drop(&mut self) {
        self.calls.give_up(&mut self.calls.lock());
    }
}

/// An on-demand trigger, except that after a tick it plans a run for calls that are still waiting.
struct CallTrigger(Arc<Calls>);

impl Trigger for CallTrigger {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let Self(calls) = self;
        let taken = last.started().map(|taken| calls.time.of(taken));
        let due = taken.and_then(|taken| calls.tick_is_over(taken));
        let due = due.and_then(|due| calls.time.instant(due));
        Some(due.map_or(Due::OnDemand, Due::At))
    }
}
