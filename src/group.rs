//! Groups: handles on a part of an executor's tasks.
//!
//! A [`Group`] is an [executor's handle](Handle) and the state that its members share. What that state
//! decides, and why no member is stranded, is in `task::group`; what it takes to move and to end members is in
//! `pool::groups`. Here are the names.

mod builder;
mod statistics;
mod stopping;
mod submitting;

use std::fmt;

pub use self::{builder::GroupBuilder, statistics::GroupStatistics, stopping::GroupTermination};
#[cfg(feature = "histograms")]
use crate::histogram::RunHistograms;
use crate::{
    CancelReason, ConfigError, Handle, TaskBuilder, pool::IfRunning, sync::Arc, task::GroupState,
};

/// A named group of an executor's tasks: how many of them may run at once, and what is done with all of them
/// together.
///
/// It is made by [`Handle::group`]. It is cheap to clone, keeps no executor alive, and dropping it
/// changes nothing: the tasks of a group without handles go on, under its limit. [`Handle::groups`] finds it
/// again as long as there is a task of it, or the future of one.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
///
/// let clock = ManualClock::new();
/// let executor =
///     ScheduledThreadPoolExecutor::builder().core_pool_size(4).clock(clock.clone()).build()?;
/// let mail = executor.group("mail").limit(1).build()?; // one at a time
/// for _ in 0..10 {
///     mail.submit(|| { /* send one */ })?;
/// }
/// let (initial_delay, period) = (Duration::ZERO, Duration::from_secs(60));
/// mail.schedule_at_fixed_rate(initial_delay, period, || { /* fetch */ })?;
/// clock.run_for(Duration::from_secs(60));
/// let counted = mail.statistics();
/// assert_eq!((counted.completed, counted.runs, counted.active), (10, 12, 0));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # The limit
///
/// At most [`limit`](GroupBuilder::limit) tasks of the group run at once; with 1 they never overlap. If
/// workers are [reserved](GroupBuilder::reserve) for others, at most as many run as the core pool size leaves
/// without these, but always one. A run counts from the question to its [gate](TaskBuilder::gate), if it
/// has one, until its body and the hooks around it have returned; so does that of a task that was cancelled
/// meanwhile. A limit that is lowered interrupts no run.
///
/// A task that is due and has to wait for its group occupies no worker, and other tasks that are due run. It is
/// pending, and everything that can be done with a pending task can be done with it: it can be cancelled, moved and
/// paused, its time limit goes on, and its delay and its lateness are those of its plan.
///
/// **The order** inside a group is that of the executor: the task that is due first runs first, and of those that
/// are due at the same moment the one that was submitted first. That is strict, however many workers there are: no task
/// of a group starts while one that comes before it waits and the permits suffice for one of them only.
///
/// # Pauses
///
/// While a group is [paused](Self::pause) none of its tasks starts. Their schedules go on, as that of a
/// [paused task](crate::ScheduledFuture::pause) does: what falls due meanwhile is late, and after the pause the
/// [policy for missed runs](crate::MissedRuns) of each task says what becomes of its runs.
///
/// # The end of the executor
///
/// A task that is due and waits for its group is due: a shutdown treats it as it treats every other task
/// that is. The drop of the owner runs it, in its turn, and [`shutdown_now`](Handle::shutdown_now) gives it
/// back. A group that is *paused* keeps its tasks as a pause of each of them would: a shutdown that keeps delayed tasks
/// waits until the group is resumed, and every other way to stop cancels them. No group can be paused after
/// that. A task that was given back, or that is run [by hand](crate::DrainedTask::run) or by the thread that submits it,
/// has left its group, and the limit does not hold for it.
///
/// # What never ends
///
/// A task that waits for another one of its group, while it has the only permit, would wait for ever; that
/// [`join`](crate::ScheduledFuture::join) is [refused](crate::TaskError::WouldDeadlock). If several tasks have all permits
/// of a group between them and each waits for one that has not begun, this is not noticed. Nor is a wait for a task of a
/// paused group: somebody may resume it.
///
/// # What it costs
///
/// A task without a group pays nothing. A task in a group is larger by one allocation, and takes the
/// group's lock twice to be submitted, twice to start and once to end, each time in O(log n) for n tasks of the
/// group that are pending. A task that has to wait is taken and queued once more.
#[doc(alias("Semaphore", "bulkhead", "JoinSet", "TaskTracker"))]
#[derive(Clone)]
pub struct Group {
    handle: Handle,
    state: Arc<GroupState>,
}

impl Handle {
    /// Describes a group of this executor's tasks, which [`build`](GroupBuilder::build) makes. Several groups may have
    /// the same name.
    pub fn group(&self, name: impl Into<Arc<str>>) -> GroupBuilder<'_> {
        GroupBuilder::new(self, name.into())
    }

    /// Returns the groups of this executor that are alive, in the order in which they were made: those of which there is
    /// a handle, a task, or the future of one. Takes time linear in their number.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let _mail = executor.group("mail").build()?;
    /// let names: Vec<_> = executor.groups().iter().map(|group| group.name().to_owned()).collect();
    /// assert_eq!(names, ["mail"]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let groups = self.pool().groups().into_iter();
        groups.map(|state| Group { handle: self.clone(), state }).collect()
    }
}

impl TaskBuilder<'_> {
    /// Puts the task into a group of the same executor, in place of another that was set before. See
    /// [`Group`].
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(2);
    /// let reports = executor.group("reports").limit(1).build()?;
    /// let report = executor.task().name("monthly").group(&reports).submit(|| "written")?;
    /// assert_eq!(report.join()?, "written");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn group(self, group: &Group) -> Self {
        self.in_group(Arc::clone(&group.state))
    }
}

impl Group {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.state.name()
    }

    /// Returns the executor's handle.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns how late the runs of the group's tasks have started and how long they took, since the group was made; `None`
    /// if the executor keeps no [histograms](crate::Builder::histograms). Costs what
    /// [`Handle::histograms`] does for one name.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    /// let executor = builder.histograms(10).build()?;
    /// let mail = executor.group("mail").limit(1).build()?;
    /// let millisecond = Duration::from_millis(1);
    /// for _ in 0..2 {
    ///     let time = clock.clone();
    ///     mail.schedule(millisecond, move || time.advance(3 * millisecond))?;
    /// }
    /// clock.run_for(millisecond);
    /// let seen = mail.histograms().expect("they are kept");
    /// assert_eq!(seen.lateness().max(), Some(3 * millisecond), "one waited for the other");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[cfg(feature = "histograms")]
    #[cfg_attr(docsrs, doc(cfg(feature = "histograms")))]
    #[must_use]
    pub fn histograms(&self) -> Option<RunHistograms> {
        let mut seen = RunHistograms::new();
        self.state.recorder.as_ref()?.add_to(&mut seen);
        Some(seen)
    }

    /// Returns how many tasks of the group may run at once, as it was set; `usize::MAX` if it was not.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.state.limit()
    }

    /// Sets how many tasks of the group may run at once. If these are more than before, tasks that wait start at once;
    /// if they are fewer, no task starts until enough of those that run have ended.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(4);
    /// let mail = executor.group("mail").limit(1).build()?;
    /// mail.set_limit(3)?;
    /// assert_eq!(mail.limit(), 3);
    /// assert!(mail.set_limit(0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroLimit`] if it is zero. Nothing is changed then.
    pub fn set_limit(&self, limit: usize) -> Result<(), ConfigError> {
        if limit == 0 {
            return Err(ConfigError::ZeroLimit);
        }
        self.state.set_limit(limit);
        Ok(())
    }

    /// Returns how many workers the group leaves to others.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.state.reserved()
    }

    /// Sets how many workers the group leaves to others: see [`GroupBuilder::reserve`].
    pub fn set_reserved(&self, workers: usize) {
        self.state.set_reserved(workers);
    }

    /// Keeps all tasks of the group from starting until it is [resumed](Self::resume). Runs that are under way
    /// are not interrupted. Each task is late then, and its [policy](crate::MissedRuns) decides about the runs that
    /// were missed.
    ///
    /// Returns `false`, and does nothing, if the group is paused already, or if it or its executor was shut down.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, MissedRuns, ScheduledThreadPoolExecutor};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let polls = executor.group("polls").build()?;
    /// let second = Duration::from_secs(1);
    /// let (initial_delay, period) = (second, second);
    /// polls.task().missed_runs(MissedRuns::Coalesce).schedule_at_fixed_rate(initial_delay, period, || ())?;
    /// assert!(polls.pause());
    /// clock.run_for(10 * second);
    /// assert_eq!(polls.statistics().runs, 0);
    /// assert!(polls.resume());
    /// clock.run_until_idle();
    /// assert_eq!(polls.statistics().runs, 1, "one run for the ten that were missed");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn pause(&self) -> bool {
        self.state.pause()
    }

    /// Ends a [pause](Self::pause). Returns `false` if there was none.
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn resume(&self) -> bool {
        self.state.resume()
    }

    /// Returns `true` if the group is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state.is_paused()
    }

    /// Cancels all tasks of the group. Those that are pending when this is called do not start any more; those that run
    /// end for everybody who waits for them, and are asked to stop through their
    /// [tokens](crate::TaskContext::token), as by
    /// [`cancel_and_signal`](crate::ScheduledFuture::cancel_and_signal). Returns how many tasks these are. The group
    /// goes on, and admits others. Takes time linear in the number of its tasks, and drops their closures.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let mail = executor.group("mail").build()?;
    /// for _ in 0..3 {
    ///     mail.schedule(Duration::from_secs(60), || ())?;
    /// }
    /// assert_eq!(mail.cancel_all(), 3);
    /// assert_eq!(mail.submit(|| "the group goes on")?.join()?, "the group goes on");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "abort_all")]
    #[allow(clippy::must_use_candidate, reason = "it is done for what it does")]
    pub fn cancel_all(&self) -> usize {
        let reason = CancelReason::Requested;
        self.handle.pool().end_called_off(self.state.call_off(reason), reason, IfRunning::Signal)
    }

    /// Returns what the group has counted, and how many tasks it has, in one consistent snapshot. Takes one lock.
    #[must_use]
    pub fn statistics(&self) -> GroupStatistics {
        GroupStatistics::new(self.state.counts())
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupStatistics { pending, waiting, active, .. } = self.statistics();
        f.debug_struct("Group")
            .field("name", &self.name())
            .field("limit", &self.limit())
            .field("is_paused", &self.is_paused())
            .field("pending", &pending)
            .field("waiting", &waiting)
            .field("active", &active)
            .finish_non_exhaustive()
    }
}
