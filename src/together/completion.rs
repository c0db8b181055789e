//! A completion service: futures in the order in which their tasks end.
//!
//! A future that is pushed is kept among the *pending*, under a number, and its task is given a
//! [`CompletionWaker`], which moves the future from there to the *ended*. Those are taken from the
//! front. Pending, ended and waiting takers are under one lock, which is held only for moves between
//! them: cancelling, waking and dropping happen after the lock is released.
//!
//! # Why each future comes out once
//!
//! It is among the pending before its task knows the waker. The task then either calls the waker when
//! it ends, or reports at once that it has ended, and then [`push`](ExecutorCompletionService::push)
//! calls the waker. The first call finds the future among the pending and moves it, in one step; a
//! second call would find nothing there and change nothing.
//!
//! # Why no wake-up is lost
//!
//! There is an *answer* for a taker if something has ended, or if nothing is left to wait for. A
//! taker that finds none is listed in the same step ([`Watched`]). And every change, in whichever
//! thread, ends with one question ([`CompletionQueue::step`]): is there an answer? If so, the first
//! taker that waits is woken. The wake-up is a baton (`queue::waiters`): a taker asks the question when it
//! has its answer, and the drop of a [`Taker`] that has none asks too. The baton also passes the news that
//! nothing is left from one taker to the next, until all know it.
//!
//! # Ownership
//!
//! A task owns its waker, but the waker does not own the futures: they are dropped with the service,
//! and a waker that is called later finds nothing.
//!
//! # Workers that wait
//!
//! A worker that waits without a limit is registered with the pool's detection of deadlocks
//! (`pool/deadlock.rs`), together with what it waits for. It is not known here which task that will be, so
//! a taker waits for a [`Gate`], and the waker that it leaves here opens the gate. The thread that brings
//! the answer opens it before it goes on, so a thread that goes on to wait itself does not find a
//! registered taker that has its answer already.
//!
//! A wait is not registered if one of the futures can end without a worker of the pool, by a
//! time limit for instance, or on another pool. When such a future joins, all takers are woken to look again.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    future::poll_fn,
    task::{Poll, Wake, Waker},
    time::Duration,
};

use crate::{
    Handle, Limit, LimitReached, RejectedExecutionError, ScheduledFuture, TaskError, TaskHandle,
    TaskId, TaskOutput, WouldDeadlock,
    pool::JoinGuard,
    sync::{Arc, Weak},
    task::Run,
    time::Timestamp,
    unwind::discard,
    wait::{self, Place, Watched},
};

/// Returns futures in the order in which their tasks end. Java's `ExecutorCompletionService`.
///
/// Tasks are submitted through it, or their futures are [pushed](Self::push); each future can be taken once,
/// as soon as its task has ended in whichever way. Several threads may submit and take at once. **Dropping it
/// detaches** the futures that are in it, as dropping a [`ScheduledFuture`] does.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ExecutorCompletionService, ScheduledThreadPoolExecutor};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let answers = ExecutorCompletionService::new(&executor);
/// answers.schedule(Duration::from_millis(20), || "slow")?;
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

/// The futures of a service, which it shares with the wakers of their tasks.
struct CompletionQueue<T>(Watched<QueueState<T>>);

struct QueueState<T> {
    /// By number, so in the order in which they were pushed.
    pending: BTreeMap<u64, ScheduledFuture<T>>,
    /// The numbers of the pending futures whose tasks can end without a worker of the executor.
    independent: BTreeSet<u64>,
    ended: VecDeque<ScheduledFuture<T>>,
    /// The last number that was assigned.
    last: u64,
}

/// The answer for a taker: the next future, or `None` if nothing is left.
type Answer<T> = Option<ScheduledFuture<T>>;

impl<T: TaskOutput + Send + 'static> ExecutorCompletionService<T> {
    /// Submits a closure, to run as soon as a worker is free; its future can be taken here. Does not
    /// block. Java: `submit`.
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

    /// Submits a closure, to run once when `delay` has passed; its future can be taken here. Does not
    /// block.
    ///
    /// # Errors
    ///
    /// As for [`Handle::schedule`]; then nothing is pushed.
    #[track_caller]
    pub fn schedule(
        &self,
        delay: Duration,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Result<TaskId, RejectedExecutionError> {
        self.handle.schedule(delay, closure).map(|future| self.push(future))
    }
}

impl<T: 'static> ExecutorCompletionService<T> {
    /// Makes an empty service that submits to this executor. It does not keep the executor alive.
    #[must_use]
    pub fn new(handle: &Handle) -> Self {
        let state = QueueState {
            pending: BTreeMap::new(),
            independent: BTreeSet::new(),
            ended: VecDeque::new(),
            last: 0,
        };
        Self { handle: handle.clone(), shared: Arc::new(CompletionQueue(Watched::new(state))) }
    }

    /// Adds a future: of any task, of whichever executor, also of one that has ended. Returns the id of
    /// its task. Does not block. Costs O(log n) under the lock of the service.
    pub fn push(&self, future: ScheduledFuture<T>) -> TaskId {
        let (id, task) = (future.id(), future.shared_task());
        let pool = self.handle.pool();
        let is_of_another_pool = !Arc::ptr_eq(future.pool(), pool);
        let is_independent = is_of_another_pool || task.may_end_without_worker(!pool.is_driven);
        let number = self.shared.step(|state| state.admit(future, is_independent));
        if is_independent {
            // Each taker has to look again.
            self.shared.0.lock().wake_all();
        }
        let waker = Arc::new(CompletionWaker { shared: Arc::downgrade(&self.shared), number });
        if task.poll_done(&mut Place::default(), &Waker::from(Arc::clone(&waker))) {
            waker.wake();
        }
        // The future may have been taken and dropped meanwhile.
        discard(task);
        id
    }

    /// Blocks until a task has ended, and takes its future. Returns `None` if there is nothing to wait
    /// for: every future has been taken. Java: `take`.
    ///
    /// On a manual clock [another thread has to move it](crate::ManualClock#when-it-blocks).
    ///
    /// # Errors
    ///
    /// [`TaskError::WouldDeadlock`], at once, in the task that is the only one left, and on the last worker of the
    /// executor that is not already waiting for a task that has not ended. Not there if one of those that are left is
    /// of another executor, or can end without a worker.
    #[doc(alias = "join_next")]
    pub fn take(&self) -> Result<Option<ScheduledFuture<T>>, TaskError> {
        let mut taker = self.shared.taker();
        loop {
            let gate = Arc::new(Gate::default());
            if let Some(answer) = taker.poll(&Waker::from(Arc::clone(&gate))) {
                return Ok(answer);
            }
            let Ok(_waiting) = self.enter_join(&gate) else {
                return Err(TaskError::WouldDeadlock);
            };
            let mut place = Place::default();
            wait::block_on(self.handle.pool().clock(), |waker| gate.poll(&mut place, waker));
        }
    }

    /// Takes a future as [`take`](Self::take) does, but blocks no longer than until `limit` is reached.
    /// Returns `Ok(None)` if nothing is left. Java: `poll(timeout, unit)`, and `take` in a thread that may be
    /// interrupted.
    ///
    /// # Errors
    ///
    /// Returns [`LimitReached`] if nothing has ended by then, and something is left.
    pub fn take_within(
        &self,
        limit: impl Into<Limit>,
    ) -> Result<Option<ScheduledFuture<T>>, LimitReached> {
        let limit = limit.into();
        self.take_by(&limit, limit.deadline(self.handle.pool().clock()))
    }

    /// Takes a future within a limit whose deadline was read before.
    pub(super) fn take_by(
        &self,
        limit: &Limit,
        deadline: Timestamp,
    ) -> Result<Option<ScheduledFuture<T>>, LimitReached> {
        let mut taker = self.shared.taker();
        let clock = self.handle.pool().clock();
        limit.block(clock, deadline, |waker| taker.poll(waker)).ok_or_else(|| limit.reached())
    }

    /// Takes a future whose task has ended; returns `None` if there is none. Does not block. Java:
    /// `poll`.
    #[must_use]
    pub fn poll(&self) -> Option<ScheduledFuture<T>> {
        self.shared.step(QueueState::take).flatten()
    }

    /// Takes a future as [`take`](Self::take) does, by awaiting. Needs no runtime. A call that is
    /// dropped before it completes has taken nothing. A poll and a drop cost O(log n), for n that wait
    /// here.
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
        let mut taker = self.shared.taker();
        poll_fn(|context| taker.poll(context.waker()).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Returns how many futures have been pushed and not taken.
    pub fn len(&self) -> usize {
        let state = self.shared.0.lock();
        state.pending.len() + state.ended.len()
    }

    /// Returns `true` if every future that was pushed has been taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [Cancels](TaskHandle::cancel) every task in here that has not ended, and returns how many
    /// that were. Their futures can be taken like all others. Does not block.
    pub fn cancel_all(&self) -> usize {
        self.handles().iter().filter(|handle| handle.cancel()).count()
    }

    /// Cancels as [`cancel_all`](Self::cancel_all) does, and raises the
    /// [token](crate::TaskContext::token) of each running task, to ask its body to stop.
    pub fn cancel_and_signal_all(&self) -> usize {
        self.handles().iter().filter(|handle| handle.cancel_and_signal()).count()
    }

    /// Returns handles from the last to the first: see
    /// [`TaskSet::cancel_and_signal_all`](super::TaskSet).
    fn handles(&self) -> Vec<TaskHandle> {
        let state = self.shared.0.lock();
        state.pending.values().rev().map(ScheduledFuture::task_handle).collect()
    }

    /// Says that this thread is about to wait without a limit. Its waker is here already.
    fn enter_join(&self, gate: &Arc<Gate>) -> Result<Option<JoinGuard<'_>>, WouldDeadlock> {
        let state = self.shared.0.lock();
        let is_independent = !state.independent.is_empty();
        let is_one = state.pending.len() == 1 && state.ended.is_empty();
        let only = state.pending.values().next().filter(|_| is_one);
        let only = only.map(|future| future.shared_task());
        drop(state);
        let pool = self.handle.pool();
        let waits_for_itself = |task| Run::is_of(task) && task.needs_worker(!pool.is_driven);
        let is_refused = only.as_ref().is_some_and(waits_for_itself);
        discard(only);
        if is_refused {
            return Err(WouldDeadlock(()));
        }
        if is_independent {
            return Ok(None);
        }
        let gate = Arc::clone(gate);
        pool.enter_wait(|| Arc::new(move |_: bool| !gate.is_open()))
    }
}

impl<T> CompletionQueue<T> {
    /// Makes one step: a change, and then the question whether a taker is to be woken for it.
    fn step<R>(&self, change: impl FnOnce(&mut QueueState<T>) -> R) -> R {
        let mut state = self.0.lock();
        let outcome = change(&mut state);
        if state.has_answer() {
            state.wake_one();
        }
        outcome
    }

    /// Returns a new taker.
    fn taker(&self) -> Taker<'_, T> {
        Taker { shared: self, place: Place::default() }
    }
}

impl<T> QueueState<T> {
    /// Adds a future. Returns its number.
    fn admit(&mut self, future: ScheduledFuture<T>, is_independent: bool) -> u64 {
        self.last += 1;
        self.pending.insert(self.last, future);
        if is_independent {
            self.independent.insert(self.last);
        }
        self.last
    }

    /// Moves a future whose task has ended.
    fn end(&mut self, number: u64) {
        self.independent.remove(&number);
        self.ended.extend(self.pending.remove(&number));
    }

    fn has_answer(&self) -> bool {
        !self.ended.is_empty() || self.pending.is_empty()
    }

    fn take(&mut self) -> Option<Answer<T>> {
        self.has_answer().then(|| self.ended.pop_front())
    }
}

/// The waker that a task wakes when it has ended.
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

/// A thread or a future that takes from the queue. Its waker is taken off the list on drop.
struct Taker<'a, T> {
    shared: &'a CompletionQueue<T>,
    place: Place,
}

impl<T> Taker<'_, T> {
    /// The poll of [`wait`]: returns the answer, once there is one.
    fn poll(&mut self, waker: &Waker) -> Option<Answer<T>> {
        let answer = self.shared.0.poll(&mut self.place, waker, QueueState::take)?;
        self.shared.step(|_| ());
        Some(answer)
    }
}

impl<T> Drop for Taker<'_, T> {
    fn drop(&mut self) {
        if self.place.is_taken() {
            self.shared.0.forget(&mut self.place);
            self.shared.step(|_| ());
        }
    }
}

/// The gate for which a thread that takes waits; see the head of the module. It is open once this is `true`.
#[derive(Default)]
struct Gate(Watched<bool>);

impl Gate {
    fn is_open(&self) -> bool {
        *self.0.lock()
    }

    /// The poll of [`wait`]: an answer once the gate is open.
    fn poll(&self, place: &mut Place, waker: &Waker) -> Option<()> {
        self.0.poll(place, waker, |is_open| is_open.then_some(()))
    }
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        let mut is_open = self.0.lock();
        *is_open = true;
        is_open.wake_all();
    }
}

impl<T> fmt::Debug for ExecutorCompletionService<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.0.lock();
        let (pending, ended) = (state.pending.len(), state.ended.len());
        drop(state);
        f.debug_struct("ExecutorCompletionService")
            .field("pending", &pending)
            .field("ended", &ended)
            .finish_non_exhaustive()
    }
}
