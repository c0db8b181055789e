//! Tasks that run when they are called, debounced and throttled, and what must hold of their runs.

use std::{sync::Arc, time::Duration};

use punctual::{Debounced, ScheduledFuture, TaskHandle, Throttled};

use crate::{
    ledger::{Future, Ledger},
    pairs::Way,
    scenario::{Act, Kind, Steps},
    world::World,
};

/// The caller's side of such a task.
pub(crate) enum Caller {
    Debounced(Debounced),
    Throttled(Throttled),
}

impl Caller {
    fn task_handle(&self) -> &TaskHandle {
        match self {
            Self::Debounced(debounced) => debounced.task_handle(),
            Self::Throttled(throttled) => throttled.task_handle(),
        }
    }

    /// Returns `true` if a call waits for its run.
    fn is_waiting(&self) -> bool {
        matches!(self, Self::Debounced(debounced) if debounced.is_waiting())
    }
}

/// What a submission returns.
pub(crate) enum Launched {
    Future(Future),
    Called(Caller),
}

impl Launched {
    pub(crate) fn periodic(future: ScheduledFuture<()>) -> Self {
        Self::Future(Future::Periodic(future))
    }

    pub(crate) fn debounced(debounced: Debounced, most: Option<Steps>) -> Self {
        let limited = match most {
            Some(most) => debounced.max_wait(most.span()),
            None => debounced,
        };
        Self::Called(Caller::Debounced(limited))
    }
}

/// The ledger's record of the calls of a task.
#[derive(Default)]
pub(crate) struct CallRecord {
    pub(crate) caller: Option<Arc<Caller>>,
    /// How many calls have begun.
    begun: u32,
    /// How many flushes have begun: each asks for a run, which may have begun meanwhile, and then one more comes.
    flushes: u32,
    /// How many have not returned: the clock may be moved before they look at it.
    under_way: u32,
    /// When the run of the last call is due at the latest, unless more calls come.
    due: Duration,
    /// The moment from which the period of a throttle counts, or an earlier one.
    last_start: Option<Duration>,
}

impl World {
    /// The task and the caller with this number, among those that there are.
    fn caller(&self, number: usize) -> Option<(usize, Arc<Caller>)> {
        self.note(|ledger, _| {
            let callers = ledger.callers();
            callers.get(number.checked_rem(callers.len())?).cloned()
        })
    }

    pub(crate) fn call(&self, number: usize) {
        let Some((id, caller)) = self.caller(number) else { return };
        self.note(|ledger, now| ledger.calls(id, now));
        match &*caller {
            Caller::Debounced(debounced) => _ = debounced.call(),
            Caller::Throttled(throttled) => _ = throttled.call(),
        }
        self.note(|ledger, now| ledger.called(id, now));
        self.done_with(id, caller);
    }

    pub(crate) fn flush(&self, number: usize) {
        let Some((id, caller)) = self.caller(number) else { return };
        self.note(|ledger, now| {
            let record = &mut ledger.tasks[id];
            record.low = record.low.min(now);
            record.calls.flushes += 1;
        });
        if let Caller::Debounced(debounced) = &*caller {
            debounced.flush();
        }
        self.done_with(id, caller);
    }

    /// Drops a caller, which cancels its task if it is the last.
    fn done_with(&self, id: usize, caller: Arc<Caller>) {
        self.note(|ledger, _| {
            let is_last = ledger.tasks[id].calls.caller.is_none();
            ledger.tasks[id].is_being_cancelled |= is_last;
        });
        drop(caller);
    }

    /// Forgets the caller of a task, which cancels it.
    pub(crate) fn forget_caller(&self, task: usize) {
        let caller = self.with_task(task, |_, record| {
            let caller = record.calls.caller.take();
            record.is_being_cancelled |= caller.is_some();
            caller
        });
        drop(caller);
    }

    /// Returns the tasks of which a call waits although it is long since there was one, and those that were called
    /// and have never run.
    pub(crate) fn calls_that_wait(&self) -> Vec<usize> {
        let callers = self.note(|ledger, _| match ledger.calls_itself() {
            true => Vec::new(),
            false => ledger.callers(),
        });
        let waits = |(id, caller): &(usize, Arc<Caller>)| {
            // A call by a capture may come when all time has passed.
            let may_wait = self.note(|ledger, now| {
                let CallRecord { under_way, due, .. } = ledger.tasks[*id].calls;
                ledger.may_wait_long(*id, now) || under_way > 0 || due > now
            });
            let is_waiting = caller.is_waiting() || self.note(|ledger, _| ledger.lacks_run(*id));
            is_waiting && !may_wait && !caller.task_handle().is_done()
        };
        let waiting = callers.iter().filter(|caller| waits(caller)).map(|(id, _)| *id).collect();
        callers.into_iter().for_each(|(id, caller)| self.done_with(id, caller));
        waiting
    }
}

impl Kind {
    /// For how long a run waits that has been called once.
    fn quiet(&self) -> Duration {
        match self {
            Self::Debounce(quiet, most) => {
                quiet.span().min(most.map_or(Duration::MAX, Steps::span))
            }
            _ => Duration::ZERO,
        }
    }
}

impl Ledger {
    /// Records that a task has been admitted that runs when it is called.
    pub(crate) fn admitted_called(&mut self, id: usize, caller: Caller) {
        let event = self.event();
        let record = &mut self.tasks[id];
        record.admitted = Some(event);
        record.handle = Some(caller.task_handle().clone());
        record.calls.caller = Some(Arc::new(caller));
    }

    fn callers(&self) -> Vec<(usize, Arc<Caller>)> {
        let callers = self.tasks.iter().enumerate();
        callers.filter_map(|(id, record)| Some((id, record.calls.caller.clone()?))).collect()
    }

    /// Returns `true` if there is a call again and again.
    fn calls_itself(&self) -> bool {
        let calls = |act| matches!(act, Act::AtOnce(Way::Call));
        let mut plans = self.tasks.iter().map(|record| record.plan);
        plans.any(|plan| calls(plan.body) || plan.gate.is_some_and(|(act, _)| calls(act)))
    }

    /// Records that a task is about to be called.
    fn calls(&mut self, id: usize, now: Duration) {
        let record = &mut self.tasks[id];
        record.calls.begun += 1;
        record.calls.under_way += 1;
        let quiet = record.plan.kind.quiet();
        let is_limited = matches!(record.plan.kind, Kind::Debounce(_, Some(_)));
        // The first of the calls may have been long ago: if the run was put off since, this one brings it forward.
        let wait = if record.is_moved && is_limited { Duration::ZERO } else { quiet };
        record.low = record.low.min(now + wait);
    }

    /// Records that the call has returned.
    fn called(&mut self, id: usize, now: Duration) {
        let record = &mut self.tasks[id];
        record.calls.under_way -= 1;
        record.calls.due = now + record.plan.kind.quiet();
    }

    /// Records that the body of such a task has begun, in a run that the library has started at `started`: not without
    /// a call, and a period after the one before, if it is throttled.
    pub(crate) fn starts_called(&mut self, id: usize, started: Duration, now: Duration) {
        let record = &mut self.tasks[id];
        if record.is_moved || !record.plan.kind.is_called() {
            return;
        }
        let last = record.calls.last_start.replace(started);
        let (starts, begun) = (record.starts, record.calls.begun);
        if starts > begun + record.calls.flushes {
            self.violation(format!("task {id} runs {starts} times, and was called {begun} times"));
        }
        let Kind::Throttle(period) = self.tasks[id].plan.kind else { return };
        if let Some(last) = last.filter(|last| now < *last + period.span()) {
            self.violation(format!(
                "task {id} runs at {now:?} and has run at {last:?}, which is in one period"
            ));
        }
    }

    /// Returns `true` if a task has been called, has never run, and no policy has left its run out.
    fn lacks_run(&self, id: usize) -> bool {
        let record = &self.tasks[id];
        let may_skip = record.plan.gate.is_some() || record.plan.within.is_some();
        let may_skip = may_skip || record.plan.skips || self.hooks_panic;
        record.calls.begun > 0 && record.starts == 0 && !may_skip
    }

    /// Returns `true` if the run of a task may be held up for as long as there is.
    pub(crate) fn may_wait_long(&self, id: usize, now: Duration) -> bool {
        let record = &self.tasks[id];
        let is_asked = record.is_moved || record.is_paused || record.is_being_cancelled;
        is_asked
            || self.is_put_off_by_gate(id, now)
            || record.is_running
            || record.drops > 0
            || self.is_stopping
    }
}
