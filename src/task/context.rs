//! The context of a run, as the running task sees it, and closures that receive it.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime},
};

use super::{Task, current_task, extensions::RunExtensions};
use crate::{CancellationToken, TaskId, id::Subject, sync::Arc, time::Timestamp};

/// A running task, as it sees itself; from [`current_task`], and the argument of the hooks around a run.
#[derive(Clone)]
pub struct TaskContext {
    pub(crate) task: Arc<Task>,
    pub(crate) stop: CancellationToken,
    pub(crate) extensions: RunExtensions,
    pub(crate) id: TaskId,
    pub(crate) number: u64,
    pub(super) attempt: u32,
    pub(super) missed: u64,
    pub(super) planned: Timestamp,
    pub(super) planned_wall: Option<SystemTime>,
    pub(crate) started: Timestamp,
    pub(crate) ends_by_failure: bool,
}

impl TaskContext {
    /// Returns the id of the task, the same for all its runs.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Returns the name that [`TaskBuilder::name`](crate::TaskBuilder::name) gave the task.
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name()
    }

    /// Returns which run this is: 1 for the first, and always 1 for a one-shot task.
    pub fn run_number(&self) -> u64 {
        self.number
    }

    /// Returns 1 plus the number of runs just before this one that have failed in a row: which attempt it is, if failed
    /// runs are [tried again](crate::Handle::retry).
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns how many runs were left out just before this one, by the [`MissedRuns`](crate::MissedRuns) policy of the
    /// task. Only a fixed rate and triggers that [count](crate::Trigger::between) know that; a calendar counts up to a
    /// thousand.
    pub fn missed_runs(&self) -> u64 {
        self.missed
    }

    /// Returns the moment for which this run was planned; `None` if no [`Instant`] can represent it.
    pub fn planned(&self) -> Option<Instant> {
        self.stop.clock().instant_of(self.planned)
    }

    /// Returns the same moment on the wall clock. It is exact if the run was planned [on that clock](Self::is_on_wall).
    /// Otherwise it is computed from what both clocks show now, and is off by as much as the wall clock has been set
    /// since.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use punctual::{Clock, ManualClock, ScheduledThreadPoolExecutor, current_task};
    /// use punctual::trigger::{Due, from_fn};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(12 * 3_600);
    /// clock.set_wall_time(noon - Duration::from_secs(60));
    /// let mut moments = [Due::Wall(noon)].into_iter();
    /// let report = executor.repeat(from_fn(move |_| moments.next()), move || {
    ///     let task = current_task().expect("inside a task");
    ///     assert!(task.is_on_wall() && task.planned_wall() == noon);
    /// })?;
    /// clock.run_for(Duration::from_secs(75));
    /// report.join()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn planned_wall(&self) -> SystemTime {
        self.planned_wall.unwrap_or_else(|| self.stop.clock().wall_at(self.planned))
    }

    /// Returns `true` if the run was planned on the wall clock, by [`Due::Wall`](crate::trigger::Due::Wall).
    pub fn is_on_wall(&self) -> bool {
        self.planned_wall.is_some()
    }

    /// Returns when the run started; `None` if no [`Instant`] can represent it.
    pub fn started(&self) -> Option<Instant> {
        self.stop.clock().instant_of(self.started)
    }

    /// Returns how long after its planned moment the run started.
    #[doc(alias = "latency")]
    pub fn lateness(&self) -> Duration {
        self.started.since(self.planned)
    }

    /// Returns the token that is cancelled when this task is asked to stop. Java: the interrupt status of the thread,
    /// but of the task alone.
    ///
    /// The token belongs to the task, not to the run: once it is cancelled, the task does not run again. So a periodic
    /// task can end itself by cancelling its own token. When the run returns, the task's future completes, cancelled as
    /// [requested](crate::CancelReason::Requested). A periodic task with a [time limit](crate::TaskBuilder::timeout)
    /// has a new token for each run, and so has a run under a [lease](crate::gate::Lease); the task goes on after that
    /// one is cancelled, if its policy says so. Allocates at the first call for a task. Does not block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, current_task, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let countdown = executor.repeat(every(Duration::from_millis(1)), || {
    ///     let task = current_task().expect("inside a task");
    ///     if task.run_number() == 3 {
    ///         task.token().cancel(); // the third run is the last
    ///     }
    /// })?;
    /// assert!(countdown.join().expect_err("it ended itself").is_cancelled());
    /// assert_eq!(executor.statistics().runs, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.task.token(&self.stop)
    }

    pub(crate) fn subject(&self) -> Subject {
        let (id, name, run) = (Some(self.id.0), self.name(), Some(self.number));
        Subject { id, name, run, attempt: None }
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("id", &self.id)
            .field("name", &self.name())
            .field("run_number", &self.number)
            .field("missed_runs", &self.missed)
            .field("lateness", &self.lateness())
            .finish_non_exhaustive()
    }
}

/// Turns a closure that takes the [context](TaskContext) of its run into one that any method accepts. The context says
/// which run it is, how late it is, and whether it is asked to stop. Costs as much as [`current_task`], for each run.
///
/// The methods call closures without an argument (E0593). A closure that gives away what it has captured can be called
/// only once, and is for [`with_context_once`] (E0507):
///
/// ```compile_fail,E0593
/// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
/// executor.submit(|run| ())?; // an error: write `with_context(|run| ())`
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// ```compile_fail,E0507
/// # let executor = punctual::ScheduledThreadPoolExecutor::new(1);
/// # use punctual::with_context;
/// let text = String::from("hello");
/// executor.submit(with_context(move |_| text))?; // an error: write `with_context_once(move |_| text)`
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::every, with_context};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let (tell, told) = mpsc::channel();
/// let second = Duration::from_secs(1);
/// executor.repeat(every(second), with_context(move |run| drop(tell.send(run.run_number()))))?;
/// clock.run_for(2 * second);
/// assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Panics
///
/// The returned closure panics if it is called outside a task.
#[doc(alias("current_task", "JobExecutionContext"))]
pub fn with_context<F, T>(mut body: F) -> impl FnMut() -> T + use<F, T>
where
    F: FnMut(&TaskContext) -> T,
{
    move || body(&context())
}

/// Like [`with_context`], for a closure that can be called only once.
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, with_context_once};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let greeting = String::from("hello");
/// let task = executor.task().name("greeter").submit(with_context_once(move |run| {
///     (greeting, run.name())
/// }))?;
/// assert_eq!(task.join()?, ("hello".into(), Some("greeter".into())));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Panics
///
/// The returned closure panics if it is called outside a task.
pub fn with_context_once<F, T>(body: F) -> impl FnOnce() -> T + use<F, T>
where
    F: FnOnce(&TaskContext) -> T,
{
    move || body(&context())
}

#[allow(
    clippy::panic,
    reason = "documented: a test that calls such a closure by itself has no other answer"
)]
fn context() -> TaskContext {
    match current_task() {
        Some(context) => context,
        None => panic!("a closure of `with_context` was called outside of a task"),
    }
}
