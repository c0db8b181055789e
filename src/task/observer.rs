//! Observers: the objects that an executor notifies while it runs, and the points at which it notifies them.
//!
//! One list holds the [`Observer`]s, each with the [`Points`] at which it wants to be called. At a point that no
//! observer wants, the executor tests one bit and prepares nothing. The closures given to the builder's methods
//! ([`Closures`]) form one observer on this list. Observers are user code, called with no lock held. If one panics, the
//! others are still called, except in `before_run`: there the run fails, and the remaining observers are not called.

use std::{
    any::Any,
    ops::BitOr,
    time::{Duration, Instant},
};

use super::{context::TaskContext, report::FailureReport};
use crate::{
    Failure, TaskId,
    sync::Arc,
    time::{Clock, Timestamp},
    unwind::{Callback, Contained},
};

/// Receives the events of an executor: a bridge to metrics, a trace, a health check or a log. Each method does nothing
/// by default. Set by [`Builder::observer`](crate::Builder::observer); an executor calls several in the order in which
/// they were given. Java: what a subclass of `ThreadPoolExecutor` overrides.
///
/// The executor calls it on its own threads, between tasks, so a slow observer makes the executor slow. None can wait
/// for the end of its own executor: [`await_termination`](crate::Handle::await_termination) returns
/// [`WouldDeadlock`](crate::WouldDeadlock). A panic is [reported](crate::FailureSource) and goes no further, except in
/// [`before_run`](Self::before_run).
///
/// ```
/// use std::{sync::{Arc, Mutex}, time::Duration};
/// use punctual::{EndedRun, ManualClock, Observer, ScheduledThreadPoolExecutor};
///
/// #[derive(Clone, Default)]
/// struct Slowest(Arc<Mutex<Duration>>);
///
/// impl Observer for Slowest {
///     fn run_ended(&self, run: &EndedRun<'_>) {
///         let mut slowest = self.0.lock().expect("no panic in here");
///         *slowest = (*slowest).max(run.run_time());
///     }
/// }
///
/// let (slowest, clock) = (Slowest::default(), ManualClock::new());
/// let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
/// let executor = builder.observer(slowest.clone()).build()?;
/// let passes = clock.clone();
/// executor.execute(move || passes.advance(Duration::from_secs(2)))?;
/// executor.shutdown();
/// executor.await_termination(Duration::MAX)?;
/// assert_eq!(*slowest.0.lock().expect("no panic in here"), Duration::from_secs(2));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("listener", "JobListener", "on_task_spawn", "on_task_terminate"))]
pub trait Observer: Send + Sync {
    /// Returns the points at which the executor calls this; by default, all of them. Called once. Leaving out
    /// [`BEFORE`](Points::BEFORE) and [`AFTER`](Points::AFTER) saves each run the cost of a call of
    /// [`current_task`](crate::current_task).
    fn points(&self) -> Points {
        Points::ALL
    }

    /// Called when a worker begins its work, on its own thread. An executor [without threads](crate::DrivenExecutor)
    /// does not call this.
    fn worker_started(&self) {}

    /// Called when a worker has ended its work, on its own thread.
    fn worker_ended(&self) {}

    /// Called when a worker has taken a task. The arguments say when, and how long after the task became due. The
    /// task's gate or group may still put the run off.
    fn task_taken(&self, _task: TaskId, _taken: Instant, _overdue: Duration) {}

    /// Called when a run of a task begins. If this panics, the closure does not run, and the run has failed with that
    /// panic. Java: `beforeExecute`.
    fn before_run(&self, _run: &TaskContext) {}

    /// Called when a run of a task has ended with this outcome, which no other thread can see yet. Not called if
    /// [`before_run`](Self::before_run) panicked. Java: `afterExecute`.
    fn after_run(&self, _run: &TaskContext, _outcome: Result<(), &Failure>) {}

    /// Called when a run of a task has ended, and its worker has read the clock to look for the next task; this reading
    /// counts as the end of the run. Other threads may see the outcome earlier. Not called for a run by hand, such as a
    /// [`DrainedTask`](crate::DrainedTask)'s.
    fn run_ended(&self, _run: &EndedRun<'_>) {}

    /// Called when something has failed; see [`Builder::failure_handler`](crate::Builder::failure_handler). Returns
    /// `true` if this observer brings the failure to a person's attention. A periodic task that ends unexpectedly gets
    /// a line on standard error if no observer returns `true` and no `tracing` subscriber hears of the failure.
    fn failed(&self, _report: &FailureReport<'_>) -> bool {
        false
    }

    /// Called when all work of the executor has ended, before any thread can see that it has terminated; see
    /// [`Builder::terminated`](crate::Builder::terminated). Java: `terminated`.
    fn terminated(&self) {}
}

/// An observer that does nothing.
impl Observer for () {}

/// A run that has ended; the argument of [`Observer::run_ended`].
#[derive(Clone, Debug)]
pub struct EndedRun<'a> {
    pub(crate) facts: RunFacts,
    pub(crate) names: &'a Names,
    pub(crate) ended: Timestamp,
    pub(crate) clock: &'a Clock,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) task: Option<Arc<str>>,
    pub(crate) group: Option<Arc<str>>,
}

impl Names {
    pub(crate) const NONE: Self = Self { task: None, group: None };
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunFacts {
    pub(crate) id: TaskId,
    pub(crate) number: u64,
    pub(crate) attempt: u32,
    pub(crate) has_failed: bool,
    pub(crate) planned: Timestamp,
    pub(crate) due: Timestamp,
    pub(crate) started: Timestamp,
}

impl EndedRun<'_> {
    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        self.facts.id
    }

    /// Returns the name of the task, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.names.task.as_deref()
    }

    /// Returns the name of the task's [group](crate::Group), if it is in one. Each group has an `Arc` of its own, so
    /// [`Arc::ptr_eq`] tells groups of the same name apart.
    pub fn group_name(&self) -> Option<&Arc<str>> {
        self.names.group.as_ref()
    }

    /// Returns which run of the task it was, 1 for the first.
    pub fn run_number(&self) -> u64 {
        self.facts.number
    }

    /// Returns 1 plus the number of runs just before this one that have failed in a row.
    pub fn attempt(&self) -> u32 {
        self.facts.attempt
    }

    /// Returns `true` if the run has failed.
    pub fn has_failed(&self) -> bool {
        self.facts.has_failed
    }

    /// Returns the moment for which the run was planned; `None` if no [`Instant`] can represent it.
    pub fn planned(&self) -> Option<Instant> {
        self.clock.instant_of(self.facts.planned)
    }

    /// Returns the moment at which a worker was to take the task: later than the plan if a gate has put the run off.
    pub fn due(&self) -> Option<Instant> {
        self.clock.instant_of(self.facts.due)
    }

    /// Returns when the run started.
    pub fn started(&self) -> Option<Instant> {
        self.clock.instant_of(self.facts.started)
    }

    /// Returns when its worker looked for the next task.
    pub fn ended(&self) -> Option<Instant> {
        self.clock.instant_of(self.ended)
    }

    /// Returns how long after its planned moment the run started.
    pub fn lateness(&self) -> Duration {
        self.facts.started.since(self.facts.planned)
    }

    /// Returns how long the run occupied its worker.
    pub fn run_time(&self) -> Duration {
        self.ended.since(self.facts.started)
    }
}

/// Points at which an [`Observer`] is called, joined by `|`; from [`Observer::points`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points(u8);

impl Points {
    /// A worker starts, and ends.
    pub const WORKER: Self = Self(1);
    /// A worker has taken a task.
    pub const TAKEN: Self = Self(2);
    /// A run begins.
    pub const BEFORE: Self = Self(4);
    /// A run has ended, and its outcome is not published yet.
    pub const AFTER: Self = Self(8);
    /// A run has ended, and its worker looks for the next task.
    pub const ENDED: Self = Self(16);
    /// Something has failed.
    pub const FAILED: Self = Self(32);
    /// All work of the executor has ended.
    pub const TERMINATED: Self = Self(64);
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    pub(crate) fn has_any(self, points: Self) -> bool {
        self.0 & points.0 != 0
    }

    fn only_if(self, is_told: bool) -> Self {
        if is_told { self } else { Self::default() }
    }
}

impl BitOr for Points {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The observers of one executor; [`hooks`](super::hooks) calls them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// The points that at least one observer wants.
    points: Points,
    all: Arc<Vec<Listed>>,
}

#[derive(Clone, Debug)]
struct Listed {
    points: Points,
    /// For finding the observer by type. Declared, and so dropped, before `observer`, whose drop catches panics.
    typed: Arc<dyn Any + Send + Sync>,
    observer: Callback<dyn Observer>,
}

impl Hooks {
    /// Adds an observer that is called before those added so far.
    pub(crate) fn add_first<T: Observer + 'static>(&mut self, observer: T) {
        self.add(observer);
        Arc::make_mut(&mut self.all).rotate_right(1);
    }

    pub(crate) fn add<T: Observer + 'static>(&mut self, observer: T) {
        let (points, typed) = (observer.points(), Arc::new(observer));
        let observer = Contained::new(Arc::clone(&typed) as _);
        self.points = self.points | points;
        Arc::make_mut(&mut self.all).push(Listed { points, typed, observer });
    }

    pub(crate) fn has(&self, points: Points) -> bool {
        self.points.has_any(points)
    }

    pub(crate) fn at(&self, points: Points) -> impl Iterator<Item = &dyn Observer> {
        let told = self.all.iter().filter(move |listed| listed.points.has_any(points));
        told.map(|listed| &**listed.observer)
    }

    pub(crate) fn find<T: 'static>(&self) -> Option<&T> {
        self.all.iter().find_map(|listed| listed.typed.downcast_ref())
    }
}

type Occasion = dyn Fn() + Send + Sync;
type Before = dyn Fn(&TaskContext) + Send + Sync;
type After = dyn Fn(&TaskContext, Result<(), &Failure>) + Send + Sync;
type OnFailure = dyn Fn(&FailureReport<'_>) + Send + Sync;

/// The closures given to the builder's methods. A second call of a method replaces the closure of the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closures {
    pub(crate) thread_start: Option<Callback<Occasion>>,
    pub(crate) thread_stop: Option<Callback<Occasion>>,
    pub(crate) before: Option<Callback<Before>>,
    pub(crate) after: Option<Callback<After>>,
    pub(crate) failed: Option<Callback<OnFailure>>,
    pub(crate) terminated: Option<Callback<Occasion>>,
}

impl Observer for Closures {
    fn points(&self) -> Points {
        let Self { thread_start, thread_stop, before, after, failed, terminated } = self;
        Points::WORKER.only_if(thread_start.is_some() || thread_stop.is_some())
            | Points::BEFORE.only_if(before.is_some())
            | Points::AFTER.only_if(after.is_some())
            | Points::FAILED.only_if(failed.is_some())
            | Points::TERMINATED.only_if(terminated.is_some())
    }

    fn worker_started(&self) {
        self.thread_start.iter().for_each(|call| call());
    }

    fn worker_ended(&self) {
        self.thread_stop.iter().for_each(|call| call());
    }

    fn before_run(&self, run: &TaskContext) {
        self.before.iter().for_each(|call| call(run));
    }

    fn after_run(&self, run: &TaskContext, outcome: Result<(), &Failure>) {
        self.after.iter().for_each(|call| call(run, outcome));
    }

    fn failed(&self, report: &FailureReport<'_>) -> bool {
        self.failed.iter().for_each(|call| call(report));
        self.failed.is_some()
    }

    fn terminated(&self) {
        self.terminated.iter().for_each(|call| call());
    }
}
