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

use std::{io, panic, time::Duration};

use super::{
    Pool, Port,
    serving::{self, Role, Serving},
    worker,
};
use crate::{
    CancelReason,
    queue::{Admission, DelayedWorkQueue, Ticket},
    sync::{
        Arc, OnceLock, Parker,
        atomic::{AtomicBool, Ordering},
    },
    task::{Claim, PanicPolicy, Run, Runnable, Wrapper},
    time::{Deadline, slack},
    unwind::{contain, discard},
};

type Strike = Box<dyn FnOnce(&Pool) + Send>;

/// See the [module](self).
pub(super) struct Timeouts {
    queue: OnceLock<DelayedWorkQueue<Strike>>,
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
            if let Err(payload) = contain(|| (entry.element)(pool)) {
                discard(payload);
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.clock().worker_ended();
    }
}

/// A timeout that may strike; until this is dropped.
pub(crate) struct Watch {
    port: Port,
    ticket: Ticket,
}

impl Watch {
    /// Calls the timeout off. Whether it was in time for that.
    fn call_off(&self) -> bool {
        let queue = self.port.timeouts.queue.get();
        let strike = queue.and_then(|queue| queue.remove(self.ticket));
        let was_in_time = strike.is_some();
        discard(strike);
        was_in_time
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.call_off();
    }
}

impl Pool {
    /// Sees to it that there is a timekeeper, unless the pool is at its end.
    pub(crate) fn ensure_timekeeper(self: &Arc<Self>) -> io::Result<()> {
        // Ordering: a hint to those who have not got the turn, which orders the rest.
        let has_keeper = || self.timeouts.has_keeper.load(Ordering::Relaxed);
        if has_keeper() {
            return Ok(());
        }
        if serving::starts_for(self) {
            // The thread factory submits something: the turn is its own.
            return Err(worker::used_by_factory());
        }
        let Some(turn) = self.crew.turn(|_| !has_keeper()) else { return Ok(()) };
        // Held, so that who tidies finds the queue and closes it.
        if !self.lifecycle.hold() {
            return Ok(());
        }
        let config = &self.config;
        self.timeouts.queue.get_or_init(|| {
            DelayedWorkQueue::new(config.clock.clone(), config.stripes, config.lead)
        });
        self.clock().worker_starts();
        let (keeper, name) = (Keeper(Arc::clone(self)), format!("{}-timeouts", self.thread_name()));
        let started = self.start_thread(turn, name, None, || keeper.work());
        self.timeouts.has_keeper.store(started.is_ok(), Ordering::Relaxed);
        self.release();
        started
    }

    /// Lets `strike` happen at a moment, unless the pool ends before.
    fn watch(port: &Port, deadline: Deadline, strike: Strike) -> Option<Watch> {
        let queue = port.timeouts.queue.get()?;
        let now = port.clock().now();
        match queue.offer(port.stripe(), now, deadline, strike) {
            Ok(ticket) => Some(Watch { port: Arc::clone(port), ticket }),
            Err(refused) => {
                discard(refused.element);
                None
            }
        }
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
        if let Some(watch) = Self::watch(port, deadline, Box::new(strike)) {
            task.attach(Box::new(watch));
        }
    }

    /// The wrapper that gives each run of a periodic task so much time.
    pub(crate) fn budget(port: &Port, budget: Duration, policy: PanicPolicy) -> Wrapper {
        let port = Arc::clone(port);
        if policy.ends_after(1) { ending(port, budget) } else { failing(port, budget) }
    }
}

/// Ends the task when a run is over its budget.
fn ending(port: Port, budget: Duration) -> Wrapper {
    Wrapper::new(move |next| {
        let _watch = Run::current().and_then(|(task, id, started)| {
            let ticket = Ticket { slot: u32::MAX, sequence: id };
            let strike = move |pool: &Pool| {
                pool.cancel(&*task, ticket, CancelReason::TimedOut, true);
                discard(task);
            };
            Pool::watch(&port, started.after(budget), Box::new(strike))
        });
        next.run()
    })
}

/// Raises the token of a run that is over its budget, and lets it fail when it ends.
fn failing(port: Port, budget: Duration) -> Wrapper {
    Wrapper::new(move |next| {
        let Some((task, _, started)) = Run::current() else { return next.run() };
        let token = task.token(&port.stop);
        let _own = OwnToken(task);
        let strike = move |_: &Pool| token.cancel();
        let watch = Pool::watch(&port, started.after(budget), Box::new(strike));
        let done = next.run();
        if watch.is_some_and(|watch| !watch.call_off()) {
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
