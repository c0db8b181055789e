//! Helpers for all tests: latches with a limit, values that count or panic when they are dropped,
//! and the manual clock.

pub mod awaiting;
pub mod child;
pub mod patience;
#[allow(dead_code, reason = "the tests of the larger examples use the rest")]
pub mod program;

use std::{
    fmt::Debug,
    io, panic,
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread::{self, JoinHandle, ThreadId},
    time::Duration,
};

pub use patience::{LONG, Patience, TURN, eventually, next_of, receive};

use punctual::{
    Builder, CancelReason, Handle, ManualClock, MissedRuns, RejectionReason, ScheduledFuture,
    ScheduledThreadPoolExecutor, TaskError, Trigger, Worker,
    trigger::{Due, TriggerContext},
};

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An executor on a clock that stands still.
pub fn manual(core_pool_size: usize) -> (ManualClock, ScheduledThreadPoolExecutor) {
    manual_with(|builder| builder.core_pool_size(core_pool_size))
}

/// The same with further settings, and one worker.
pub fn manual_with(
    settings: impl FnOnce(Builder) -> Builder,
) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    (clock, settings(builder).build().expect("the settings are good"))
}

/// A counter that can be waited for, with patience: a latch when it counts to a number, a gate when it
/// counts to one.
#[derive(Clone, Default)]
pub struct Counter(Arc<(Mutex<usize>, Condvar)>);

impl Counter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn add(&self) {
        *self.lock() += 1;
        self.0.1.notify_all();
    }

    pub fn get(&self) -> usize {
        *self.lock()
    }

    /// Blocks until the count is at least `count`.
    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        let (mut now, mut patience) = (self.lock(), Patience::new());
        while *now < count {
            patience.go_on(format_args!("a count of {count}, and not of {}", *now));
            now = self.0.1.wait_timeout(now, TURN).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts how many of its tokens have been dropped.
#[derive(Clone, Default)]
pub struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub fn new() -> Self {
        Self::default()
    }

    /// A value to capture, which adds one when it is dropped.
    pub fn token(&self) -> DropToken {
        DropToken(Arc::clone(&self.0))
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub struct DropToken(Arc<AtomicUsize>);

impl Drop for DropToken {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Panics when it is dropped.
#[derive(Debug)]
pub struct Bomb(pub &'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(self.0);
    }
}

/// Panics when it is dropped, this many times: the payload does the same.
pub struct Chain(pub u32);

impl Drop for Chain {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::panic_any(Self(self.0 - 1));
        }
    }
}

/// A list that several threads write.
#[derive(Debug)]
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Log<T> {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    pub fn push(&self, entry: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    pub fn entries(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The result of a call on another thread, waited for with patience, so that a call that blocks for ever fails the test.
pub struct Elsewhere<R>(mpsc::Receiver<R>, thread::JoinHandle<()>);

pub fn elsewhere<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> Elsewhere<R> {
    let (sender, receiver) = mpsc::channel();
    // Whatever asks which test it is in goes by the name of the thread.
    let name = thread::current().name().unwrap_or("elsewhere").to_owned();
    let thread = thread::Builder::new().name(name).spawn(move || drop(sender.send(call())));
    Elsewhere(receiver, thread.expect("a thread can be started"))
}

impl<R> Elsewhere<R> {
    /// Returns `true` if [`get`](Self::get) will not wait.
    pub fn has_ended(&self) -> bool {
        self.1.is_finished()
    }

    #[track_caller]
    pub fn get(self) -> R {
        receive(&self.0, "the call returns")
    }
}

/// Runs it on a thread of its own, and panics if it does not return: for calls that might hang.
#[track_caller]
pub fn in_time<R: Send + 'static>(what: &str, act: impl FnOnce() -> R + Send + 'static) -> R {
    receive(&elsewhere(act).0, what)
}

/// Runs a task, which shows that a worker is alive, and returns the thread that ran it.
pub fn worker_of(executor: &Handle) -> ThreadId {
    let (tell, told) = mpsc::channel();
    executor
        .execute(move || tell.send(thread::current().id()).unwrap_or_default())
        .expect("the executor is open");
    receive(&told, "a worker lives")
}

/// Polls a future once.
pub fn poll<T: 'static>(
    future: &mut ScheduledFuture<T>,
    waker: &Waker,
) -> Poll<Result<T, TaskError>> {
    Future::poll(Pin::new(future), &mut Context::from_waker(waker))
}

/// A trigger of any type in a wrapper as the documentation shows it: it forwards `next`, and names the trigger inside.
pub struct Wrapped(Box<dyn Trigger>);

impl Wrapped {
    pub fn new(trigger: impl Trigger) -> Self {
        Self(Box::new(trigger))
    }
}

impl Trigger for Wrapped {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.0.next(last)
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut *self.0)
    }
}

/// Makes a closure capture a value that it does not use.
pub fn hold<T>(_: &T) {}

pub fn assert_shut_down(handle: &Handle) {
    assert!(handle.is_shutdown());
    assert!(handle.is_terminating() || handle.is_terminated());
    let refused = handle.execute(|| ());
    assert!(
        matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
    );
}

pub fn assert_terminated(handle: &Handle) {
    assert_shut_down(handle);
    assert!(handle.is_terminated());
    assert!(!handle.is_terminating());
    assert_eq!(handle.pending_count(), 0);
    assert_eq!(handle.pool_size(), 0);
    assert_eq!(handle.await_termination(Duration::ZERO), Ok(true));
}

pub fn assert_cancelled<T: Debug + 'static>(future: &ScheduledFuture<T>, expected: CancelReason) {
    match future.try_join() {
        Some(Err(TaskError::Cancelled(reason))) => assert_eq!(reason, expected),
        outcome => panic!("not cancelled: {outcome:?}"),
    }
}

/// The outcome of a future, in a form that tests can compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Value(i32),
    Panicked(i32),
    Cancelled,
    Taken,
}

impl From<Result<i32, TaskError>> for Outcome {
    fn from(result: Result<i32, TaskError>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(TaskError::Cancelled(CancelReason::Requested)) => Self::Cancelled,
            Err(TaskError::ResultTaken) => Self::Taken,
            Err(other) => {
                let panic = other.into_failure().expect("one of the four");
                let payload = panic.into_payload().downcast();
                Self::Panicked(*payload.expect("what the body threw"))
            }
        }
    }
}

/// Panics without a message on standard error.
pub fn throw<T>(payload: i32) -> T {
    panic::resume_unwind(Box::new(payload))
}

/// The policies for missed runs.
pub const POLICIES: [MissedRuns; 4] =
    [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Delay];

/// Tries spans of 1, 3, 9, … milliseconds until `attempt` succeeds with one: on a slow machine a
/// test gets more time instead of more tolerance, and one that stands still costs it one attempt.
pub fn for_some_span(attempt: impl Fn(Duration) -> bool) {
    let mut spans = (0..SPANS).map(|power| ms(3_u64.pow(power)));
    assert!(spans.any(attempt), "not even with a span of {:?}", ms(3_u64.pow(SPANS - 1)));
}

/// The longest takes twenty seconds.
const SPANS: u32 = 10;

pub const HOUR: Duration = Duration::from_secs(3600);

/// Keeps the only worker busy until the gate is opened.
pub fn occupy(executor: &Handle) -> Counter {
    let (busy, gate) = (Counter::new(), Counter::new());
    let (begun, open) = (busy.clone(), gate.clone());
    executor
        .execute(move || {
            begun.add();
            open.wait_for(1);
        })
        .unwrap();
    busy.wait_for(1);
    gate
}

/// The result of a thread factory.
pub type Started = io::Result<Option<JoinHandle<()>>>;

/// A thread factory that uses std's threads.
pub fn start(worker: Worker) -> Started {
    let thread = thread::Builder::new().name(worker.name().to_owned());
    thread.spawn(move || worker.run()).map(Some)
}
