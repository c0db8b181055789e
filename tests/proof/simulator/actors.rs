//! The operations that actors and bodies perform on tasks and the pool. Each call of the library is
//! between two notes in the ledger, never under its lock.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use punctual::{Grace, TaskError, TaskHandle, WouldDeadlock};
use shuttle::sync::{Condvar, Mutex};

use crate::{
    ledger::{Future, Ledger},
    scenario::{Op, Steps, Verb},
    tasks::Receipt,
    world::World,
};

impl World {
    pub(crate) fn perform(self: &Arc<Self>, op: Op) {
        match op {
            Op::Submit(plan) => self.submit(plan),
            Op::Cancel(task) => self.cancel(task),
            Op::Ask(task, verb) => self.ask(task, verb),
            Op::Forget(task) => {
                self.forget_caller(task);
                drop(self.take_future(task));
            }
            Op::Call(task) => self.call(task),
            Op::Flush(task) => self.flush(task),
            Op::SetWall(steps, is_back) => self.set_wall(steps, is_back),
            Op::RunDue => self.run_due(),
            Op::Poll(task) => self.poll(task),
            Op::Timer(first, then) => self.use_timer(first, then),
            Op::Look => self.look(),
            Op::Advance(steps) => self.advance(steps),
            Op::Resize(size) => self.handle.set_core_pool_size(size),
            Op::Group(group, verb) => self.ask_group(group, verb),
            Op::KeepDelayed(keep) => {
                self.note(|ledger, _| ledger.is_stopping = true);
                self.handle.set_executes_existing_delayed_tasks_after_shutdown(keep);
            }
            Op::KeepPeriodic(keep) => {
                self.handle.set_continues_existing_periodic_tasks_after_shutdown(keep);
            }
            // An error means that a thread could not be started.
            Op::Prestart => drop(self.handle.prestart_all_core_threads()),
            Op::Shutdown => self.shutdown(),
            Op::ShutdownNow(runs) => self.shutdown_now(runs),
            Op::Join(task) => self.join(task),
            Op::JoinFor(task, steps) => self.join_for(task, steps),
            Op::Await(task) => self.await_end(task),
            Op::Sleep(steps) => self.sleep(steps),
            Op::AwaitTermination(steps) => {
                let ended = self.blocking(|| self.handle.await_termination(steps.span()));
                self.is_wrong(ended.is_err(), "an actor may wait for the end");
            }
            Op::ShutdownWithin(steps) => {
                let grace = Grace::patience(steps.span()).then(steps.span());
                let report =
                    self.ending(|| self.within_limits(|| self.handle.shutdown_within(grace)));
                self.has_shut_down(report);
            }
            Op::Close => self.close(),
            Op::DropExecutor => self.drop_executor(),
        }
    }

    fn advance(&self, steps: Steps) {
        let began = self.note(|ledger, _| ledger.advance_begins());
        self.clock.advance(steps.span());
        self.note(|ledger, now| ledger.advanced(began, now));
    }

    /// Checks that what can be observed of the pool does not contradict itself.
    pub(crate) fn look(&self) {
        let seen = self.handle.statistics();
        let dealt_with = seen.completed + seen.failed + seen.cancelled;
        let accounted = seen.pending as u64 + seen.active as u64 + dealt_with;
        self.is_wrong(seen.submitted != accounted, &format!("{seen:?} does not add up"));
        let workers = seen.active <= seen.pool_size && seen.pool_size <= seen.largest_pool_size;
        self.is_wrong(!workers, &format!("{seen:?} has too few workers"));
        drop(self.handle.pending_tasks());
        self.look_at_groups();
    }

    pub(crate) fn cancel(&self, task: usize) {
        let handle = self.with_task(task, |id, record| Some((id, record.handle.clone()?)));
        if let Some((id, handle)) = handle {
            self.cancel_by(id, || handle.cancel());
        } else if let Some((id, future)) = self.take_future(task) {
            self.cancel_by(id, || match &future {
                Future::Once(future) => future.cancel(),
                Future::Periodic(future) => future.cancel(),
            });
            self.put_back(id, future);
        }
    }

    fn cancel_by(&self, id: usize, cancel: impl FnOnce() -> bool) {
        self.note(|ledger, _| ledger.cancel_begins(id));
        let did_it = cancel();
        self.note(|ledger, now| ledger.cancelled(id, did_it, now));
    }

    /// Asks something of a task, by a handle that is kept for others.
    pub(crate) fn ask(&self, task: usize, verb: Verb) {
        let kept = self.with_task(task, |id, record| Some((id, record.handle.clone()?)));
        let (id, handle) = match kept {
            Some(kept) => kept,
            None => {
                let Some((id, future)) = self.take_future(task) else { return };
                let handle = future.task_handle();
                self.put_back(id, future);
                (id, handle)
            }
        };
        if let Verb::CancelAndWait = verb {
            return self.cancel_and_wait(id, &handle);
        }
        self.note(|ledger, now| ledger.asks(id, verb, now));
        let had_effect = match verb {
            Verb::Reschedule(steps) => handle.reschedule(steps.span()),
            Verb::RunWithin(steps) => handle.run_within(steps.span()),
            Verb::RunNow => handle.run_now(),
            Verb::SetPeriod(steps) => {
                let period = steps.span();
                handle.set_trigger(punctual::trigger::every(period).first_in(period))
            }
            Verb::Pause => handle.pause(),
            Verb::Resume => handle.resume(),
            Verb::CancelAndWait => unreachable!("it has been dealt with"),
        };
        self.note(|ledger, now| ledger.asked(id, verb, had_effect, now));
    }

    fn cancel_and_wait(&self, id: usize, handle: &TaskHandle) {
        if !self.may_block() {
            return;
        }
        self.note(|ledger, _| ledger.cancel_begins(id));
        let outcome = self.blocking(|| handle.cancel_and_wait());
        self.note(|ledger, now| {
            ledger.cancelled(id, matches!(outcome, Ok(true)), now);
            ledger.has_left(id);
        });
        self.is_wrong(outcome.is_err(), "an actor may wait for a body");
    }

    pub(crate) fn join(&self, task: usize) {
        if !self.may_block() {
            return;
        }
        let Some((id, future)) = self.take_future(task) else { return };
        // Everything is cancelled in the end, so every waiter returns.
        let handle = future.task_handle();
        // Dropped outside the ledger: that is user code, and takes locks.
        drop(self.with_task(id, |_, record| record.handle.replace(handle)));
        let outcome = self.blocking(|| match future {
            Future::Once(future) => future.join().map(Receipt::accept),
            Future::Periodic(future) => future.join(),
        });
        // On a worker the join is refused if no other worker is left to run the task.
        if !matches!(outcome, Err(TaskError::WouldDeadlock)) {
            self.learn(id, outcome);
        }
    }

    pub(crate) fn join_for(&self, task: usize, limit: Steps) {
        if !self.may_block() {
            return;
        }
        let Some((id, future)) = self.take_future(task) else { return };
        let outcome = self.blocking_for_a_while(|| match &future {
            Future::Once(future) => {
                let outcome = future.join_within(limit.span())?;
                Some(outcome.map(Receipt::accept))
            }
            Future::Periodic(future) => future.join_within(limit.span()),
        });
        self.put_back(id, future);
        if let Some(outcome) = outcome {
            self.learn(id, outcome);
        }
    }

    /// Polls the future with a waker, which panics if the scenario has panicking wakers.
    fn poll(self: &Arc<Self>, task: usize) {
        let Some((id, mut future)) = self.take_future(task) else { return };
        let waker = Waker::from(Arc::new(Rouse { world: Arc::clone(self) }));
        let polled = poll_once(&mut future, &waker);
        self.put_back(id, future);
        if let Poll::Ready(outcome) = polled {
            self.learn(id, outcome);
        }
    }

    fn await_end(&self, task: usize) {
        let Some((id, mut future)) = self.take_future(task) else { return };
        let outcome = self.blocking(|| {
            loop {
                let door = Arc::new(Door::default());
                match poll_once(&mut future, &Waker::from(Arc::clone(&door))) {
                    Poll::Ready(outcome) => break outcome,
                    Poll::Pending => self.pass(id, &future, &door),
                }
            }
        });
        self.put_back(id, future);
        self.learn(id, outcome);
    }

    /// Waits to be woken. Everything is cancelled in the end, so the wait ends.
    fn pass(&self, id: usize, future: &Future, door: &Door) {
        let handle = future.task_handle();
        // Dropped outside the ledger: that is user code, and takes locks.
        drop(self.with_task(id, |_, record| record.handle.replace(handle)));
        door.pass();
    }

    pub(crate) fn shutdown(&self) {
        self.note(|ledger, _| ledger.is_stopping = true);
        self.handle.shutdown();
        self.look_for_what_is_not_kept();
    }

    pub(crate) fn shutdown_now(&self, runs: usize) {
        self.holding(|| {
            let mut given_back = self.handle.shutdown_now();
            given_back.by_ref().take(runs).for_each(punctual::DrainedTask::run);
        });
    }

    /// Runs `end`, which shuts the pool down and waits for its termination.
    pub(crate) fn ending<R>(&self, end: impl FnOnce() -> R) -> R {
        self.holding(|| self.blocking(end))
    }

    /// Runs `deal`, which takes tasks out of the pool, and runs or cancels them one by one.
    pub(crate) fn holding<R>(&self, deal: impl FnOnce() -> R) -> R {
        self.note(|ledger, _| {
            ledger.is_stopping = true;
            ledger.holders += 1;
        });
        let result = deal();
        self.note(|ledger, _| ledger.holders -= 1);
        result
    }

    pub(crate) fn await_termination_inside(&self) {
        let ended = self.handle.await_termination(std::time::Duration::ZERO);
        self.is_wrong(self.is_worker() && ended.is_ok(), "a worker cannot wait for its own end");
    }

    fn close(&self) {
        if let Some(executor) = self.take_executor() {
            let closed: Result<(), WouldDeadlock> = self.ending(|| executor.close());
            self.is_wrong(closed.is_err(), "an actor may wait for the end");
        }
    }

    /// Drops the executor, which waits for running tasks; the director, which moves the clock, must
    /// not wait.
    pub(crate) fn drop_executor(&self) {
        match self.take_executor() {
            Some(executor) if self.may_block() => self.dropping(|| self.ending(|| drop(executor))),
            Some(executor) => executor.shutdown_background(),
            None => self.drop_driver(),
        }
    }

    fn learn(&self, id: usize, outcome: Result<(), TaskError>) {
        self.note(|ledger, _| ledger.learns(id, &outcome));
        // A task's panic belongs to the thread that joined it, and the payload may panic when it is
        // dropped.
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(outcome))));
    }
}

impl Ledger {
    /// Records that the body of a task that was cancelled has returned, and that its capture is gone.
    fn has_left(&mut self, id: usize) {
        if self.tasks[id].is_running {
            self.violation(format!("task {id} runs, and a thread has waited until it has left"));
        }
    }
}

fn poll_once(future: &mut Future, waker: &Waker) -> Poll<Result<(), TaskError>> {
    let mut context = Context::from_waker(waker);
    match future {
        Future::Once(future) => {
            let polled = Pin::new(future).poll(&mut context);
            polled.map(|outcome| outcome.map(Receipt::accept))
        }
        Future::Periodic(future) => Pin::new(future).poll(&mut context),
    }
}

/// A waker that may panic.
pub(crate) struct Rouse {
    pub(crate) world: Arc<World>,
}

impl Wake for Rouse {
    fn wake(self: Arc<Self>) {
        self.world.call_back(self.world.callbacks.waker);
        assert!(!self.world.faults().waker, "a waker panics");
    }
}

/// A door that is opened once.
#[derive(Default)]
pub(crate) struct Door {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Door {
    pub(crate) fn pass(&self) {
        let mut is_open = self.is_open.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl Wake for Door {
    fn wake(self: Arc<Self>) {
        *self.is_open.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        self.opened.notify_all();
    }
}
