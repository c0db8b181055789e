//! The executor without threads: its caller runs the due tasks. Most of its code is in the pool (`pool::driver`).
//!
//! To refuse waits that could never end, the pool must know which thread drives it. So [`DrivenExecutor`] is not
//! `Send`.

use std::{
    fmt,
    future::Future,
    ops::Deref,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    DropPolicy, Handle,
    pool::{Config, Driver, Role},
    time::Timestamp,
    wait::Place,
};

/// An executor that starts no thread: it runs its tasks when it is called. For event loops, games, simulators, and
/// targets that have one thread. [`Builder::build_driven`](crate::Builder::build_driven) makes one.
///
/// It has the methods of [`Handle`], to which it dereferences, and handles may be used in any thread. In place
/// of a worker and the timer thread, the thread that owns it calls [`run_due`](Self::run_due), and asks it [how
/// long it may sleep](Self::time_until_next):
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let mut executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build_driven()?;
/// let tea = executor.schedule(Duration::from_secs(3), || "tea")?;
/// // Here the clock advances; an event loop would wait for events instead, for no longer than `span`.
/// while let Some(span) = executor.time_until_next() {
///     clock.advance(span);
///     executor.run_due();
/// }
/// assert_eq!(tea.join()?, "tea");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// Other threads may submit while the loop sleeps. [`set_waker`](Self::set_waker) takes a waker that ends the sleep
/// if the moment that the loop was told turns out to be too late.
///
/// # Which waits are refused
///
/// In the thread of the executor, a [`join`](crate::ScheduledFuture::join) of a task that has not ended could never
/// return, and fails with [`WouldDeadlock`](crate::WouldDeadlock), as [`await_termination`](Handle::await_termination)
/// does; other threads may wait. [`run_until`](Self::run_until) waits and runs what is due meanwhile. A wait with a
/// time limit is not refused, but waits in vain.
///
/// # Differences
///
/// * Nothing happens between two calls: tasks are as late as the caller is. A [time limit](crate::TaskBuilder::timeout)
///   still counts from its start, but a waiter for the task, or for its token, learns of it in the next call.
/// * It has one worker until it has terminated. Settings about threads have no effect: their number, names, stacks,
///   [factory](crate::ThreadFactory), keep-alive, timer slack, and the callbacks at the
///   [start](crate::Builder::on_thread_start) and the [end](crate::Builder::on_thread_stop) of each.
/// * No thread watches a run: [starvation](crate::Builder::on_starvation) is not reported, and a [run that takes
///   long](crate::Builder::warn_after) is reported once it has ended.
/// * A task may run on a stack that is already deep.
///
/// # Stopping
///
/// After a [`shutdown`](Handle::shutdown), by any handle, further calls of `run_due` run what the policies keep. The
/// executor terminates in the call that runs the last task, or at once if there is none. The drop does what
/// [`DropPolicy`] says, in this thread: by default, and with [`DropPolicy::ShutdownBackground`], it runs what is due,
/// waits for the answer of a [gate](crate::gate#an-answer-that-comes-later) about such a task, and cancels the rest.
/// With [`DropPolicy::Close`] it sleeps here until the last task has run, unless a [shutdown with a
/// deadline](Handle::shutdown_within) on another thread gives up first. In the drop of a value that a shutdown in this
/// thread is cancelling, it never waits.
///
/// ```compile_fail,E0277
/// fn is_send<T: Send>(_: T) {}
/// is_send(punctual::ScheduledThreadPoolExecutor::builder().build_driven().unwrap()); // an error
/// ```
#[doc(alias("event_loop", "single_threaded", "current_thread", "wasm"))]
pub struct DrivenExecutor {
    handle: Handle,
    driver: Driver,
    waker: Option<Waker>,
    on_drop: DropPolicy,
}

impl DrivenExecutor {
    pub(crate) fn from_config(config: Config, on_drop: DropPolicy) -> Self {
        let handle = Handle::to_new_pool(config);
        let driver = Driver::new(handle.pool());
        Self { handle, driver, waker: None, on_drop }
    }

    /// Returns a handle, which schedules tasks in any thread and does not keep the executor alive.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs each task that is due, once and in order, and expires the time limits that are up. Returns how many runs
    /// there were: a task that its gate puts off or skips, or that has ended, is not counted. Never sleeps. A panic of
    /// a task does not leave it.
    ///
    /// It runs only what was due *when it was called*. A task that one of these tasks submits, brings forward or puts
    /// off waits for the next call, and so does a task that is queued again. So no task can keep the caller here, and a
    /// long task may submit the rest of its work.
    ///
    /// A series that has missed runs, and whose [policy](crate::MissedRuns) makes up for them, has one run in each
    /// call. Since runs start in the order of their deadlines, the call ends where the next missed run has its place,
    /// or where a gate has put a series off to a moment that has come. Then [`time_until_next`](Self::time_until_next)
    /// is zero. A caller that comes once per frame calls this until nothing is left:
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor, trigger::every};
    ///
    /// let (clock, step) = (ManualClock::new(), Duration::from_millis(10));
    /// let mut executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build_driven()?;
    /// let task = executor.task().missed_runs(MissedRuns::Burst);
    /// task.repeat(every(step).first_in(step), || { /* one step of the simulation */ })?;
    /// clock.advance(3 * step); // a frame that took long
    /// let mut steps = 0;
    /// while executor.time_until_next() == Some(Duration::ZERO) {
    ///     steps += executor.run_due();
    /// }
    /// assert_eq!(steps, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// For a task [on the wall clock](crate::trigger::Due::Wall) it reads that clock every 30 s; the reading is due
    /// like a task, but is no run.
    ///
    /// Besides the tasks it costs two clock readings, an allocation, and a lock for each stripe of the queue; less if
    /// nothing is due.
    #[doc(alias("poll", "tick"))]
    pub fn run_due(&mut self) -> usize {
        self.driver.run_due().ran
    }

    /// Returns how long the caller may sleep until it has to call [`run_due`](Self::run_due) again: zero if something
    /// is due, `None` if nothing is pending. Never sleeps. A caller that is early finds nothing due, and does no harm.
    /// While a task waits for a wall-clock moment, the answer is at most 30 s.
    ///
    /// From now until the next call of a method that runs tasks, the [waker](Self::set_waker) is called if the
    /// answer turns out to be too long.
    pub fn time_until_next(&mut self) -> Option<Duration> {
        let next = match &self.waker {
            Some(waker) => self.driver.arm(waker),
            None => self.driver.next(),
        };
        (next < Timestamp::NEVER).then(|| next.since(self.handle.clock().read()))
    }

    /// Sets the waker that ends the caller's sleep. The thread that causes the change calls it, at most once after each
    /// call of [`time_until_next`](Self::time_until_next): if a task or a time limit becomes due sooner than that call
    /// said, and when the executor has nothing left to run after a shutdown, or has terminated. Without a waker such
    /// news waits for the next call.
    ///
    /// Whatever ends the sleep of an event loop from another thread (a `Waker` of mio, a ping of calloop, a proxy of
    /// winit) becomes a waker behind [`Wake`](std::task::Wake). A waker that panics is contained.
    pub fn set_waker(&mut self, waker: Waker) {
        self.driver.disarm();
        self.waker = Some(waker);
    }

    /// Runs whatever is due until the future completes, sleeping in between, and returns its output. This is the way to
    /// wait in the thread of the executor. On a [`ManualClock`](crate::ManualClock) it counts as a worker, and as a
    /// wait: another thread moves the clock, or it [goes on by itself](crate::ManualClock::set_auto_advance).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let mut executor = ScheduledThreadPoolExecutor::builder().build_driven()?;
    /// let answer = executor.schedule(Duration::from_millis(2), || 6 * 7)?;
    /// assert_eq!(executor.run_until(answer)?, 42);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the future does.
    #[doc(alias = "block_on")]
    pub fn run_until<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        self.driver.drive_until(|waker| {
            match future.as_mut().poll(&mut Context::from_waker(waker)) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            }
        })
    }

    /// [Shuts down](Handle::shutdown), and runs what the policies keep, however far in the future that is. Sleeps
    /// in between, on a manual clock as [`run_until`](Self::run_until) does. Java: `close`.
    pub fn close(mut self) {
        self.handle.shutdown();
        let termination = self.handle.termination();
        self.run_until(termination);
    }
}

impl Deref for DrivenExecutor {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for DrivenExecutor {
    fn drop(&mut self) {
        let pool = self.handle.pool();
        let (policy, is_inside) =
            (self.on_drop.carry_out(pool), pool.lifecycle.has_caller_as(Role::Stopper));
        // Unless the policy is `Close`, this waits only for a gate's answer about a due task, because no other thread
        // would run that task.
        if policy != DropPolicy::ShutdownNow && !is_inside {
            let mut place = Place::default();
            let lifecycle = &pool.lifecycle;
            let over = |waker: &_| lifecycle.poll_terminated(&mut place, waker, true);
            self.driver.drive_until(over);
        }
        // Runs the tasks that are due, and all that are left if it was shut down before.
        self.driver.run_all();
        if is_inside {
            // No thread would run what is left, and the shutdown in progress on this thread would not end.
            drop(pool.shutdown_now());
        }
    }
}

impl fmt::Debug for DrivenExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe(f, "DrivenExecutor")
    }
}
