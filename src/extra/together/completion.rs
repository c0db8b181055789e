//! A completion service: futures in the order in which their tasks end.
//!
//! A pushed future gets a number, and joins the *pending* ones. Its task gets a [`CompletionWaker`], which moves the
//! future to the *ended* ones when the task ends. Takers take the first of the ended futures. One lock guards futures
//! and takers. A thread wakes takers and drops values only after it has released the lock. The task owns its waker, and
//! the service owns the futures: a waker that is called after the service was dropped finds nothing.
//!
//! # Why each future comes out once
//!
//! A future's number is pending before its task knows the waker. The first time the waker is called, it removes the
//! number and, in the same step, moves the future if `push` has stored it. A second call finds nothing. If `push` finds
//! that the task has ended or that the number is gone, it adds the future to the ended ones itself.
//!
//! # Why no wake-up is lost
//!
//! There is an *answer* for a taker if a task has ended, or if nothing is left to wait for. A [`Taker`] that finds no
//! answer joins the list of takers in the same step, with a token that wakes the taker. Every change ends with one
//! question ([`CompletionQueue::step`]): is there an answer? If so, the thread cancels the token of the first taker.
//! The wake-up is a baton: a taker that has its answer asks the question too, and so does one that is dropped without
//! an answer. So the news that nothing is left passes from taker to taker until all know it.
//!
//! # Workers that wait
//!
//! A worker that waits without a limit [announces](Handle::enter_wait) the wait and its token. The thread that supplies
//! the answer cancels the token before it goes on. So if that thread then waits, the taker with the answer no longer
//! counts as waiting. A wait is not announced if one of the tasks can end without a worker of the executor, for
//! instance at a time limit or on another executor. For such a task, `push` wakes all takers, so they look again.

#![allow(clippy::disallowed_types, reason = "this is a user of the crate, and locks as users do")]

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Wake},
};

use crate::{
    CancellationToken, Handle, Limit, LimitReached, RejectedExecutionError, ScheduledFuture,
    TaskError, TaskHandle, TaskId, TaskOutput, WaitGuard,
};

/// Returns futures in the order in which their tasks end. Java's `ExecutorCompletionService`.
///
/// Tasks are submitted through it, or their futures are [pushed](Self::push); each future can be taken once, as soon as
/// its task has ended, however it ended. Several threads may submit and take at once. **Dropping it detaches** the
/// tasks of the futures in it.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ExecutorCompletionService, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let answers = ExecutorCompletionService::new(&executor);
/// answers.push(executor.schedule(Duration::from_millis(20), || "slow")?);
/// answers.submit(|| "quick")?;
/// while let Some(future) = answers.take()? {
///     println!("{}", future.join()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("CompletionService", "FuturesUnordered", "as_completed"))]
pub struct ExecutorCompletionService<T> {
    handle: Handle,
    shared: Arc<CompletionQueue<T>>,
}

struct CompletionQueue<T>(Mutex<QueueState<T>>);

struct QueueState<T> {
    /// The pending futures by number, and so in the order of pushing. `None` stands for a future that is being pushed.
    pending: BTreeMap<u64, Option<ScheduledFuture<T>>>,
    independent: BTreeSet<u64>,
    ended: VecDeque<ScheduledFuture<T>>,
    /// The waiting takers, in order of arrival, and the tokens that wake them.
    takers: BTreeMap<u64, CancellationToken>,
    last: u64,
}

type Answer<T> = Option<ScheduledFuture<T>>;

impl<T: TaskOutput + Send + 'static> ExecutorCompletionService<T> {
    /// Submits a closure, to run as soon as a worker is free; its future can be taken here. Does not block. Java:
    /// `submit`.
    ///
    /// # Errors
    ///
    /// As for [`Handle::submit`]; then nothing is pushed.
    #[track_caller]
    pub fn submit(
        &self,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<TaskId, RejectedExecutionError> {
        self.handle.submit(closure).map(|future| self.push(future))
    }
}

impl<T: 'static> ExecutorCompletionService<T> {
    /// Makes an empty service that submits to this executor. It does not keep the executor alive.
    #[must_use]
    pub fn new(handle: &Handle) -> Self {
        let (pending, independent, ended, takers) = Default::default();
        let state = QueueState { pending, independent, ended, takers, last: 0 };
        Self { handle: handle.clone(), shared: Arc::new(CompletionQueue(Mutex::new(state))) }
    }

    /// Adds the future of a task on any executor, even of one that has ended. Returns the id of the task. Does not
    /// block. Costs O(log n) under the lock of the service.
    pub fn push(&self, mut future: ScheduledFuture<T>) -> TaskId {
        let id = future.id();
        let number = self.shared.lock().assign();
        let waker = Arc::new(CompletionWaker { shared: Arc::downgrade(&self.shared), number });
        let has_ended = future.poll_end(&mut Context::from_waker(&waker.into())).is_ready();
        let is_independent = !has_ended && !self.handle.has_to_run(&future);
        self.shared.step(|state| state.admit(number, future, has_ended, is_independent));
        if is_independent {
            let takers = mem::take(&mut self.shared.lock().takers);
            takers.values().for_each(CancellationToken::cancel);
        }
        id
    }

    /// Blocks until a task has ended, and takes its future. Returns `None` if every future has been taken. Java:
    /// `take`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`TaskError::WouldDeadlock`], at once, inside the only task left, and on the executor's last worker that is not
    /// already waiting; but not if one of the tasks left is on another executor, or can end without a worker.
    #[doc(alias = "join_next")]
    pub fn take(&self) -> Result<Option<ScheduledFuture<T>>, TaskError> {
        let mut taker = Taker { service: self, number: 0 };
        loop {
            match taker.look() {
                Ok(answer) => return Ok(answer),
                Err(token) => {
                    let _waiting = self.enter_wait(&token)?;
                    token.wait();
                }
            }
        }
    }

    /// Takes a future as [`take`](Self::take) does, but blocks at most until `limit` is reached. Returns `Ok(None)` if
    /// nothing is left. Java: `poll(timeout, unit)`, and `take` in a thread that may be interrupted.
    ///
    /// # Errors
    ///
    /// Returns [`LimitReached`] if no task has ended by then and some are left.
    pub fn take_within(
        &self,
        limit: impl Into<Limit>,
    ) -> Result<Option<ScheduledFuture<T>>, LimitReached> {
        let limit = limit.into().from_now(self.handle.clock());
        let mut taker = Taker { service: self, number: 0 };
        loop {
            match taker.look() {
                Ok(answer) => return Ok(answer),
                Err(token) if token.wait_within(limit.clone()) => {}
                Err(_) => return taker.look().map_err(|_| limit.reached()),
            }
        }
    }

    /// Takes a future whose task has ended; returns `None` if there is none. Does not block. Java: `poll`.
    #[must_use]
    pub fn poll(&self) -> Option<ScheduledFuture<T>> {
        self.shared.step(QueueState::take).flatten()
    }

    /// Like [`take`](Self::take), for async code. Needs no runtime. A call that is dropped before it completes has
    /// taken nothing. A poll and a drop cost O(log n) for n waiters.
    ///
    /// ```
    /// use punctual::{ExecutorCompletionService, ScheduledThreadPoolExecutor, TaskError};
    ///
    /// async fn sum(parts: &ExecutorCompletionService<u32>) -> Result<u32, TaskError> {
    ///     let mut sum = 0;
    ///     while let Some(part) = parts.next().await {
    ///         sum += part.await?;
    ///     }
    ///     Ok(sum)
    /// }
    /// ```
    pub async fn next(&self) -> Option<ScheduledFuture<T>> {
        let mut taker = Taker { service: self, number: 0 };
        loop {
            match taker.look() {
                Ok(answer) => return answer,
                Err(token) => token.cancelled().await,
            }
        }
    }

    /// Returns how many futures have been pushed but not taken.
    pub fn len(&self) -> usize {
        let state = self.shared.lock();
        state.pending.len() + state.ended.len()
    }

    /// Returns `true` if every future that was pushed has been taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [Cancels](TaskHandle::cancel) every task in here that has not ended, and returns how many it cancelled. Their
    /// futures can be taken like all others. Does not block.
    pub fn cancel_all(&self) -> usize {
        self.handles().iter().filter(|handle| handle.cancel()).count()
    }

    /// Cancels as [`cancel_all`](Self::cancel_all) does, and also cancels the [token](crate::TaskContext::token) of
    /// each running task, to ask its body to stop.
    pub fn cancel_and_signal_all(&self) -> usize {
        self.handles().iter().filter(|handle| handle.cancel_and_signal()).count()
    }

    /// Returns handles of the pending tasks, last to first: the order in which a [`TaskSet`](super::TaskSet) cancels.
    fn handles(&self) -> Vec<TaskHandle> {
        let state = self.shared.lock();
        state.pending.values().rev().flatten().map(ScheduledFuture::task_handle).collect()
    }

    /// Announces that this thread will wait, without a limit, until the listed `token` is cancelled. Returns `None` if
    /// the wait need not be announced. Fails if the wait could never end.
    fn enter_wait(&self, token: &CancellationToken) -> Result<Option<WaitGuard<'_>>, TaskError> {
        let state = self.shared.lock();
        let is_independent = !state.independent.is_empty();
        let is_one = state.pending.len() == 1 && state.ended.is_empty();
        let only = state.pending.values().flatten().next().filter(|_| is_one);
        let only = only.map(|future| future.task_handle());
        drop(state);
        if only.is_some_and(|task| task.is_current() && self.handle.has_to_run(&task)) {
            return Err(TaskError::WouldDeadlock);
        }
        if is_independent {
            return Ok(None);
        }
        let token = token.clone();
        let waiting = self.handle.enter_wait(move || token.is_cancelled());
        waiting.map_err(|_| TaskError::WouldDeadlock)
    }
}

impl<T> CompletionQueue<T> {
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change under the lock, then wakes the first taker if there is an answer.
    fn step<R>(&self, change: impl FnOnce(&mut QueueState<T>) -> R) -> R {
        let mut state = self.lock();
        let outcome = change(&mut state);
        let woken = if state.has_answer() { state.takers.pop_first() } else { None };
        drop(state);
        if let Some((_, token)) = woken {
            token.cancel();
        }
        outcome
    }
}

impl<T> QueueState<T> {
    fn assign(&mut self) -> u64 {
        self.last += 1;
        self.pending.insert(self.last, None);
        self.last
    }

    fn admit(
        &mut self,
        number: u64,
        future: ScheduledFuture<T>,
        has_ended: bool,
        is_independent: bool,
    ) {
        match self.pending.get_mut(&number).filter(|_| !has_ended) {
            Some(place) => {
                *place = Some(future);
                self.independent.extend(is_independent.then_some(number));
            }
            None => {
                self.pending.remove(&number);
                self.ended.push_back(future);
            }
        }
    }

    fn end(&mut self, number: u64) {
        self.independent.remove(&number);
        self.ended.extend(self.pending.remove(&number).flatten());
    }

    fn has_answer(&self) -> bool {
        !self.ended.is_empty() || self.pending.is_empty()
    }

    fn take(&mut self) -> Option<Answer<T>> {
        self.has_answer().then(|| self.ended.pop_front())
    }
}

struct CompletionWaker<T> {
    shared: Weak<CompletionQueue<T>>,
    number: u64,
}

impl<T> Wake for CompletionWaker<T> {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.step(|state| state.end(self.number));
        }
    }
}

/// A call to `take`, `take_within` or `next`. A taker that is dropped leaves the list of takers.
struct Taker<'a, T> {
    service: &'a ExecutorCompletionService<T>,
    /// The taker's place on the list. Zero until the taker is first listed, and again once it has its answer.
    number: u64,
}

impl<T> Taker<'_, T> {
    /// If there is an answer, returns it and passes the baton on. Otherwise, fails with a token that is cancelled when
    /// the taker has to look again. A taker that was woken in vain keeps its place on the list.
    fn look(&mut self) -> Result<Answer<T>, CancellationToken> {
        let clock = self.service.handle.clock();
        self.service.shared.step(|state| {
            if let Some(answer) = state.take() {
                state.takers.remove(&mem::take(&mut self.number));
                return Ok(answer);
            }
            if self.number == 0 {
                state.last += 1;
                self.number = state.last;
            }
            let token = CancellationToken::with_clock(clock.clone());
            state.takers.insert(self.number, token.clone());
            Err(token)
        })
    }
}

impl<T> Drop for Taker<'_, T> {
    fn drop(&mut self) {
        if self.number > 0 {
            self.service.shared.step(|state| state.takers.remove(&self.number));
        }
    }
}

impl<T> fmt::Debug for ExecutorCompletionService<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        let (pending, ended) = (state.pending.len(), state.ended.len());
        drop(state);
        f.debug_struct("ExecutorCompletionService")
            .field("pending", &pending)
            .field("ended", &ended)
            .finish_non_exhaustive()
    }
}
