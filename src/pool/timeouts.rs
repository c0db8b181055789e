//! Timeouts: what strikes when a task, or one run of it, takes too long.
//!
//! A worker cannot watch over itself, and all of them may be busy with what takes too long. So
//! timeouts have a queue of their own and one thread for it, the *timekeeper*, which is started
//! with the first timeout and ends with the pool. Until then there is neither.
//!
//! * A **one-shot task** has one entry, for the moment it was due plus the timeout. When it
//!   strikes, the task ends as timed out, or with the value given for that, wherever it is: in the
//!   queue, from which it is then removed, or running, and then its token is raised.
//! * A **periodic task** has one entry for each run, made when it begins, by a [`Wrapper`] around
//!   the closure. A task that its policy would stop at the first failure is ended by the strike.
//!   For another the strike only raises the token, which is the run's own, and when the body has
//!   returned the run counts as one that panicked.
//!
//! # Who wins
//!
//! A strike and the end of the task meet at the lock of the task, like `cancel` and the end: the
//! second finds it done and does nothing. A task that ends drops its [`Watch`], which takes the
//! entry out of the queue. The watch is given to the task when that is in the queue already, and
//! perhaps done; then it is dropped at once.
//!
//! # The end
//!
//! A strike is foreign code: it drops closures and wakes who waits. So the pool does not end in
//! the middle of one. When it ends the queue is emptied, and nothing strikes any more; a run that
//! goes on nevertheless, of a task that `shutdown_now` gave back, is not over its budget for that.
//!
//! What tasks keep for their timeouts leads to this queue and not to the pool, which would keep
//! itself alive by a task that its own rejection handler has kept.

use std::{io, panic, time::Duration};

use super::{
    Pool, Port,
    serving::{self, Role, Serving},
    worker::factory_error,
};
use crate::{
    CancelReason,
    queue::{Admission, DelayedWorkQueue, Ticket},
    sync::{
        Arc, OnceLock, Parker,
        atomic::{AtomicBool, Ordering},
    },
    task::{Claim, PanicPolicy, Run, Runnable, Wrapper},
    time::{Clock, Deadline, slack},
    trace,
    unwind::{contain, discard},
};

type Strike = Box<dyn FnOnce(&Pool) + Send>;
type Strikes = DelayedWorkQueue<Strike>;

/// See the [module](self).
pub(super) struct Timeouts {
    queue: OnceLock<Arc<Strikes>>,
    has_keeper: AtomicBool,
}

impl Timeouts {
    pub(super) fn new() -> Self {
        Self { queue: OnceLock::new(), has_keeper: AtomicBool::new(false) }
    }

    /// Nothing strikes any more.
    pub(super) fn close(&self) {
        let Some(queue) = self.queue.get() else { return };
        queue.close(Admission::Closed);
        let mut left = queue.drain();
        while let Some(strike) = left.next_element() {
            discard(strike);
        }
    }
}

/// The thread that lets timeouts strike.
struct Keeper(Arc<Pool>);

impl Keeper {
    fn work(self) {
        let pool = &*self.0;
        // Who joins the pool's threads waits for this one as well.
        let _serving = Serving::begin(pool, Role::Stopper);
        pool.clock().worker_begins(&Parker::current());
        slack::set(pool.config.timer_slack);
        let Some(queue) = pool.timeouts.queue.get() else { return };
        while let Some((entry, _)) = queue.take() {
            if !pool.lifecycle.hold() {
                discard(entry.element);
                continue;
            }
            if let Err(payload) = contain(|| (entry.element)(pool)) {
                discard(payload);
            }
            pool.release();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.clock().worker_ended();
    }
}

/// Where the timeouts of a task go.
struct Timer {
    strikes: Arc<Strikes>,
    stripe: usize,
    clock: Clock,
}

impl Timer {
    /// Nothing if there has never been a timekeeper: then the pool is at its end.
    fn of(port: &Port) -> Option<Self> {
        let strikes = Arc::clone(port.timeouts.queue.get()?);
        Some(Self { strikes, stripe: port.stripe(), clock: port.clock().clone() })
    }

    /// Lets `strike` happen at a moment, unless the pool ends before.
    fn watch(&self, deadline: Deadline, strike: Strike) -> Option<Watch> {
        match self.strikes.offer(self.stripe, self.clock.now(), deadline, strike) {
            Ok(ticket) => Some(Watch { strikes: Arc::clone(&self.strikes), ticket }),
            Err(refused) => {
                discard(refused.element);
                None
            }
        }
    }
}

/// A timeout that may strike; until this is dropped.
struct Watch {
    strikes: Arc<Strikes>,
    ticket: Ticket,
}

impl Drop for Watch {
    fn drop(&mut self) {
        discard(self.strikes.remove(self.ticket));
    }
}

impl Pool {
    /// Sees to it that there is a timekeeper, unless the pool is at its end.
    pub(crate) fn ensure_timekeeper(self: &Arc<Self>) -> io::Result<()> {
        // Ordering: whoever sees it sees the queue, and does without the turn.
        let has_keeper = || self.timeouts.has_keeper.load(Ordering::Acquire);
        if has_keeper() || self.queue.is_closed() {
            return Ok(());
        }
        if serving::starts_for(self) {
            // The thread factory submits something, and has the turn.
            return Err(factory_error("uses its executor"));
        }
        let Some(turn) = self.crew.turn(|_| !has_keeper()) else { return Ok(()) };
        // Held, so that who tidies finds the queue and closes it.
        if !self.lifecycle.hold() {
            return Ok(());
        }
        let config = &self.config;
        self.timeouts.queue.get_or_init(|| {
            Arc::new(Strikes::new(config.clock.clone(), config.stripes, config.lead))
        });
        self.clock().worker_starts();
        let (keeper, name) = (Keeper(Arc::clone(self)), format!("{}-timeouts", self.thread_name()));
        let started = self.start_thread(turn, name, None, || keeper.work());
        self.timeouts.has_keeper.store(started.is_ok(), Ordering::Release);
        // Others who wanted a thread meanwhile have left that to whoever had the turn.
        self.relieve().unwrap_or_else(|error| trace::spawn_failed(&error));
        self.release();
        started
    }

    /// Ends a one-shot task at that moment if it has not ended: with the value, or as timed out.
    pub(crate) fn watch_task<T: Send + 'static>(
        port: &Port,
        task: Arc<dyn Claim<T>>,
        ticket: Ticket,
        deadline: Deadline,
        value: Option<T>,
    ) {
        let watched = Arc::clone(&task);
        let strike = move |pool: &Pool| {
            match value {
                None => pool.cancel(&*watched, ticket, CancelReason::TimedOut, true),
                Some(value) => pool.settle(&*watched, ticket, value),
            };
            discard(watched);
        };
        let timer = Timer::of(port);
        if let Some(watch) = timer.and_then(|timer| timer.watch(deadline, Box::new(strike))) {
            task.attach(Box::new(watch));
        }
    }

    /// The wrapper that gives each run of a periodic task so much time.
    pub(crate) fn budget(port: &Port, budget: Duration, policy: PanicPolicy) -> Option<Wrapper> {
        let timer = Timer::of(port)?;
        Some(if policy.ends_after(1) { ending(timer, budget) } else { failing(timer, budget) })
    }
}

/// Ends the task when a run is over its budget.
fn ending(timer: Timer, budget: Duration) -> Wrapper {
    Wrapper::new(move |next| {
        let _watch = Run::current().and_then(|(task, id, started)| {
            let ticket = Ticket { slot: u32::MAX, sequence: id };
            let strike = move |pool: &Pool| {
                pool.cancel(&*task, ticket, CancelReason::TimedOut, true);
                discard(task);
            };
            timer.watch(started.after(budget), Box::new(strike))
        });
        next.run()
    })
}

/// Raises the token of a run that is over its budget, and lets it fail when it ends.
fn failing(timer: Timer, budget: Duration) -> Wrapper {
    Wrapper::new(move |next| {
        let Some(((task, _, started), token)) = Run::current().zip(Run::current_token()) else {
            return next.run();
        };
        let _own = OwnToken(task);
        let is_over = Arc::new(AtomicBool::new(false));
        let notes = Arc::clone(&is_over);
        let strike = move |_: &Pool| {
            // Ordering: a body that has seen its token raised finds this.
            notes.store(true, Ordering::Release);
            token.cancel();
        };
        let watch = timer.watch(started.after(budget), Box::new(strike));
        let done = next.run();
        drop(watch);
        if is_over.load(Ordering::Acquire) {
            // No panic of anybody's code, so it does not go through the process's panic hook.
            panic::resume_unwind(Box::new(format!("the run was over its budget of {budget:?}")));
        }
        done
    })
}

/// Until this is dropped the task's token is this run's alone.
struct OwnToken(Arc<dyn Runnable>);

impl Drop for OwnToken {
    fn drop(&mut self) {
        self.0.forget_token();
    }
}
