//! Triggers: when a [repeated](crate::Handle::repeat) task runs next.
//!
//! A trigger is a value. Make one with a function of this module, or implement [`Trigger`] for a type of your own; the
//! methods of [`Trigger`] wrap one trigger in another. The executor asks the trigger for the next run when the task is
//! submitted, and then after each run.
//!
//! # The context of a trigger
//!
//! Most triggers answer with their first moment after [`TriggerContext::after`], which reflects the policy for missed
//! runs. With [`Burst`](crate::MissedRuns::Burst), for example, `after` is the moment for which the last run was
//! planned; with [`Coalesce`](crate::MissedRuns::Coalesce), the moment at which that run started; with
//! [`Skip`](crate::MissedRuns::Skip), the moment at which it ended.
//!
//! # Two clocks
//!
//! Rates and delays are measured on a clock that cannot be set ([`Due::At`]). A calendar's moments are on the wall
//! clock ([`Due::Wall`]): the task never runs before that clock shows the planned moment, and the executor notices
//! within 30 s that the clock was set or the machine slept. A calendar trigger reads [`TriggerContext::after_wall`],
//! which is `after` on the wall clock.
//!
//! # A trigger is user code
//!
//! A trigger is called first on the submitter's thread and then on workers, with no lock held. A panic on the
//! submitter's thread goes to the submitter; one on a worker ends the task as failed, and is reported like a panic in
//! the body.

mod context;
mod retry;

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) use self::context::LastRun;
pub use self::{
    context::{Due, TriggerContext},
    retry::{Backoff, Retry},
};
#[cfg(feature = "cron")]
pub use crate::extra::cron::{Cron, CronError, CronErrorKind, Missing, Repeated, cron};
use crate::{Attempt, time::saturating_nanos};

/// When a repeated task runs next. See the [module](self) for what it is asked and when.
///
/// ```
/// use std::time::Duration;
/// use punctual::{Trigger, trigger::{TriggerContext, Due}};
///
/// /// After each run twice as long as before.
/// struct Doubling(Duration);
///
/// impl Trigger for Doubling {
///     fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
///         self.0 *= 2;
///         Some(Due::At(last.after() + self.0))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trigger",
    label = "this does not say when to run",
    note = "for a period write `trigger::every(period)`, and for a delay between runs `trigger::fixed_delay(delay)`",
    note = "for moments write `trigger::at([moment])`, and for a function `trigger::from_fn(|last| ..)`"
)]
pub trait Trigger: Send + 'static {
    /// Returns when the task runs next, or `None` if it does not run again. A moment that has passed means now.
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due>;

    /// Returns `true` if the trigger may be asked again before the task has run, because the wall clock has been set
    /// back. It is then asked as after the last run, except that [`after`](TriggerContext::after) is now, so its answer
    /// has to depend on the context alone. If it answers `None`, or is not asked, its plan stands. A trigger whose
    /// moments must not come twice also looks at [`planned_wall`](TriggerContext::planned_wall).
    ///
    /// Called once, when the task gets this trigger.
    fn is_asked_again(&mut self) -> bool {
        self.inner().is_some_and(|inner| inner.is_asked_again())
    }

    /// Returns the trigger that this one wraps, if it wraps one. Each method but [`next`](Self::next) asks that trigger
    /// by default, so a wrapper needs only these two.
    ///
    /// ```
    /// use punctual::{Trigger, trigger::{Due, TriggerContext}};
    ///
    /// /// Prints the moments of another trigger.
    /// struct Printed<G>(G);
    ///
    /// impl<G: Trigger> Trigger for Printed<G> {
    ///     fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
    ///         let next = self.0.next(last);
    ///         println!("{next:?}");
    ///         next
    ///     }
    ///
    ///     fn inner(&mut self) -> Option<&mut dyn Trigger> {
    ///         Some(&mut self.0)
    ///     }
    /// }
    /// ```
    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        None
    }

    /// Returns how long after `moment` its run is due; `moment` is the trigger's last answer to `last`. By default a
    /// trigger has no offset; [jitter](Self::jitter) and [tolerance](Self::tolerance) are offsets.
    ///
    /// The moment itself stays the [tick](crate::gate::Tick), and the trigger later sees it as the run's
    /// [`planned`](TriggerContext::planned) moment; [`after`](TriggerContext::after) is earlier by the offset. Lateness
    /// counts from the end of the offset.
    fn offset(&mut self, moment: Due, last: &TriggerContext<'_>) -> Duration {
        self.inner().map_or(Duration::ZERO, |inner| inner.offset(moment, last))
    }

    /// Called once, before all other calls, if the task has a [gate](crate::gate). Replicas in other processes compete
    /// for its moments, so the trigger has to plan the same ones, with the same offsets, on each. `name` is the name of
    /// the task. A trigger that cannot do so returns `false`, and the submission is refused, with
    /// [`UnsharedTrigger`](crate::RejectionReason::UnsharedTrigger).
    fn share(&mut self, name: Option<&str>) -> bool {
        self.inner().is_none_or(|inner| inner.share(name))
    }

    /// Returns which attempt the planned run is, if the trigger plans what follows a failed run, as
    /// [`retry`](Self::retry) does. The first failure then does not end the series, unless
    /// [`on_failure`](crate::TaskBuilder::on_failure) says so, and the report of a failure says [which
    /// attempt](crate::FailureReport::attempt) it was.
    ///
    /// Called when the task gets this trigger, and after each answer of [`next`](Self::next), until it returns `None`.
    fn attempt(&mut self) -> Option<Attempt> {
        self.inner()?.attempt()
    }

    /// Returns how many moments of the trigger are later than `from` and not later than `to`: how many runs were missed
    /// in between, for [`missed_runs`](crate::TaskContext::missed_runs). Zero if the trigger does not count them. One
    /// that would have to count for long may return what it has.
    ///
    /// Called on a worker: before a late run that stands for others, after a run if later ones were left out, and with
    /// [`Skip`](crate::MissedRuns::Skip) before each late run, which a single moment [leaves
    /// out](crate::MissedRuns#overdue-runs).
    fn between(&mut self, from: Due, to: Due) -> u64 {
        self.inner().map_or(0, |inner| inner.between(from, to))
    }

    /// Ends the series after `runs` runs of the task, including any [beside the schedule](crate::TaskHandle::run_now).
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ScheduledThreadPoolExecutor, Trigger, trigger::every};
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let thrice = every(Duration::from_millis(1)).times(3);
    /// executor.repeat(thrice, || println!("tick"))?.join()?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    fn times(self, runs: u64) -> Times<Self>
    where
        Self: Sized,
    {
        Times { inner: self, runs }
    }

    /// Ends the series before the first run that would be later than `end`. A run at exactly that moment takes place.
    /// The end may be on either clock, whichever clock the runs are on.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, Trigger, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let hour = Duration::from_secs(3600);
    /// let today = executor.repeat(every(hour).until(clock.now() + 8 * hour), || ())?;
    /// clock.run_for(24 * hour);
    /// today.join()?; // a series that returns nothing has ended well
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "deadline")]
    fn until(self, end: impl Into<Due>) -> Until<Self>
    where
        Self: Sized,
    {
        Until { inner: self, end: end.into() }
    }

    /// Retries a failed run after the delays of `backoff`, whether that is sooner or later than the next moment of this
    /// trigger. Once an attempt has succeeded, or the last was made, the trigger goes on from where it was: its grid
    /// does not move, and moments that have passed are left out.
    ///
    /// A failure does not end such a series, unless [`on_failure`](crate::TaskBuilder::on_failure) says so. Attempts
    /// are runs of the task: [`TaskContext::attempt`](crate::TaskContext::attempt) says which attempt a run is. `until`
    /// and `times` apply to retries only if called after this: `every(period).retry(backoff).until(end)` runs nothing
    /// after the end.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use punctual::{Backoff, ManualClock, ScheduledThreadPoolExecutor, Trigger, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let (second, time) = (Duration::from_secs(1), clock.clone());
    /// let (tell, told) = mpsc::channel();
    ///
    /// // Every minute; after a failure, again 5, 10 and 20 seconds later; then at the next full minute.
    /// let backoff = Backoff::exponential(5 * second..=20 * second).max_attempts(4);
    /// executor.repeat(every(60 * second).retry(backoff), move || {
    ///     tell.send(time.elapsed().as_secs()).ok();
    ///     Err::<(), _>("no connection")
    /// })?;
    /// clock.run_for(70 * second);
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), [0, 5, 15, 35, 60, 65]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias = "backoff")]
    fn retry(self, backoff: Backoff) -> Retry<Self>
    where
        Self: Sized,
    {
        Retry::new(self, backoff)
    }

    /// Delays each run by a random span below `most`, so that tasks on many machines do not all run at once. The runs
    /// do not drift: the inner trigger sees the moments that it chose. A run is late only after its span.
    ///
    /// The spans differ from trigger to trigger. [`Jitter::seed`] and [`Jitter::name`] make them repeatable: a function
    /// of the seed and the trigger's moment, if that is on the wall clock, and otherwise of the seed and the run's
    /// number. `most` should be shorter than the time between two runs. The book's cookbook has an example
    /// (`docs/book/cookbook/timers.md`).
    ///
    /// # Behind a gate
    ///
    /// Replicas of a task with a [gate](crate::gate) have to agree on what they compete for. The gate is asked about
    /// the trigger's own moment, without the span, and the spans are the same on each replica: a jitter without a seed
    /// takes the [name of the task](crate::TaskBuilder::name). A task with neither is refused, with
    /// [`UnsharedTrigger`](crate::RejectionReason::UnsharedTrigger).
    #[doc(alias = "thundering_herd")]
    fn jitter(self, most: Duration) -> Jitter<Self>
    where
        Self: Sized,
    {
        let seed = RandomState::new().hash_one(most);
        Jitter { inner: self, most, seed, is_seeded: false }
    }

    /// Lets each run start up to `most` after its moment, so that one wake-up serves many tasks: for polls and flushes
    /// whose exact moment does not matter. Apple has timer tolerance, Windows coalescable timers, Linux timer slack.
    ///
    /// A run is due at the roundest moment of its span, the one divisible, in nanoseconds, by the greatest power of
    /// two. So tasks on one clock meet, whatever their periods and tolerances, and run in the order of their
    /// submission. A run is never early, and the runs do not drift: the inner trigger sees the moments that it chose.
    /// `most` should be shorter than the time between two runs: otherwise several are due at once.
    ///
    /// [`delay`](crate::TaskHandle::delay) and [`next_run`](crate::PendingTask::next_run) show when the run is due.
    /// Lateness, histograms, [missed runs](crate::MissedRuns) and [`until`](Self::until) count from then. A moment that
    /// a caller asks for, as with [`reschedule`](crate::TaskHandle::reschedule), is exact. Apply `jitter` before the
    /// tolerance: after it, it would scatter the runs again. Each run costs as much as with a trigger of your own.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor, Trigger, trigger::every};
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let ms = Duration::from_millis;
    /// for phase in 0..20 {
    ///     let poll = every(ms(100)).first_in(ms(phase)).tolerance(ms(50));
    ///     executor.repeat(poll, || { /* poll */ })?;
    /// }
    /// clock.advance_to_next_deadline();
    /// clock.run_until_idle();
    /// assert_eq!(executor.statistics().runs, 20, "one wake-up is for all");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[doc(alias("coalesce", "slack", "leeway"))]
    fn tolerance(self, most: Duration) -> Tolerance<Self>
    where
        Self: Sized,
    {
        Tolerance { inner: self, most }
    }
}

/// Runs at a fixed rate: at once, and then at the end of each period. Runs do not drift: they are planned on a grid,
/// however late they start.
///
/// A period of zero is refused at submission, with [`ZeroPeriod`](crate::RejectionReason::ZeroPeriod). Inside another
/// trigger it is not recognised, and the runs follow each other without a pause.
///
/// ```
/// use std::time::Duration;
/// use punctual::{ScheduledThreadPoolExecutor, trigger::every};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let second = Duration::from_secs(1);
/// let sweep = executor.repeat(every(60 * second).first_in(10 * second), || { /* sweep */ })?;
/// assert!(sweep.delay() <= Some(10 * second));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[doc(alias("interval", "interval_at", "tick", "ticker"))]
pub fn every(period: Duration) -> Every {
    Every { span: period, first: Duration::ZERO, is_delay: false }
}

/// Runs with a fixed delay: at once, and then each time `delay` after the end of the previous run.
///
/// A delay of zero is refused, as a period of zero is for [`every`].
///
/// ```
/// use std::time::Duration;
/// use punctual::{ManualClock, ScheduledThreadPoolExecutor, trigger::fixed_delay};
///
/// let clock = ManualClock::new();
/// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
/// let (second, time) = (Duration::from_secs(1), clock.clone());
/// let poll = executor.repeat(fixed_delay(10 * second), move || time.advance(5 * second))?;
/// clock.run_until_idle(); // the first run has taken five seconds
/// assert_eq!(poll.delay(), Some(10 * second));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn fixed_delay(delay: Duration) -> Every {
    Every { span: delay, first: Duration::ZERO, is_delay: true }
}

/// A fixed rate, or a fixed delay; from [`every`] or [`fixed_delay`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Every {
    pub(crate) span: Duration,
    pub(crate) first: Duration,
    /// `true` if the span counts from the end of each run.
    pub(crate) is_delay: bool,
}

impl Every {
    /// Sets the delay of the first run; by default there is none.
    pub fn first_in(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }
}

impl Trigger for Every {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let next = match last.last {
            None => last.after.after(self.first),
            Some(run) if self.is_delay => run.ended.after(self.span),
            Some(run) => run.planned.on_grid_after(self.span, last.after),
        };
        last.clock.instant_of(next).map(Due::At)
    }

    fn between(&mut self, from: Due, to: Due) -> u64 {
        let (Due::At(from), Due::At(to), false) = (from, to, self.is_delay) else { return 0 };
        let passed = saturating_nanos(to.saturating_duration_since(from));
        passed / saturating_nanos(self.span).max(1)
    }
}

/// Runs at these moments, which have to be in order, on either clock. One that is not later than
/// [`after`](TriggerContext::after) is left out.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use punctual::{ScheduledThreadPoolExecutor, trigger::at};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let century = UNIX_EPOCH + Duration::from_secs(4_102_444_800); // 1 January 2100
/// let _fireworks = executor.repeat(at([century, century + Duration::from_secs(3600)]), || ())?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn at(moments: impl IntoIterator<Item: Into<Due>, IntoIter: Send + 'static>) -> impl Trigger {
    let mut moments = moments.into_iter();
    from_fn(move |last| {
        let is_first = last.last.is_none();
        moments.by_ref().map(Into::into).find(|due: &Due| {
            let after = match due {
                Due::Wall(_) => Due::Wall(last.after_wall()),
                _ => Due::At(last.after()),
            };
            // The first run may be at the moment of submission.
            due.is_after(after, last.clock) || is_first && *due == after
        })
    })
}

/// Runs only on request: at once ([`run_now`](crate::TaskHandle::run_now)), some time after the last request
/// ([`reschedule`](crate::TaskHandle::reschedule)), or some time after the first
/// ([`run_within`](crate::TaskHandle::run_within)).
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, trigger::on_demand};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let save = executor.repeat(on_demand(), || println!("saved"))?;
/// assert_eq!(save.delay(), None);
/// assert!(save.run_now());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn on_demand() -> impl Trigger {
    from_fn(|_| Some(Due::OnDemand))
}

/// Runs whenever the function says.
///
/// ```
/// use std::time::Duration;
/// use punctual::trigger::from_fn;
///
/// // One second after the end of a run, and ten after one that has failed.
/// let patient = from_fn(|last| {
///     let wait = if last.failures_in_a_row() == 0 { 1 } else { 10 };
///     Some((last.ended().unwrap_or(last.after()) + Duration::from_secs(wait)).into())
/// });
/// ```
pub fn from_fn(
    next: impl FnMut(&TriggerContext<'_>) -> Option<Due> + Send + 'static,
) -> impl Trigger {
    FromFn(next)
}

struct FromFn<F>(F);

impl<F: FnMut(&TriggerContext<'_>) -> Option<Due> + Send + 'static> Trigger for FromFn<F> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        (self.0)(last)
    }
}

/// A limited number of runs of another trigger; from [`Trigger::times`].
#[derive(Clone, Debug)]
pub struct Times<G> {
    inner: G,
    runs: u64,
}

impl<G: Trigger> Trigger for Times<G> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        if last.runs < self.runs { self.inner.next(last) } else { None }
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut self.inner)
    }
}

/// The runs of another trigger that are not later than a moment; from [`Trigger::until`].
#[derive(Clone, Debug)]
pub struct Until<G> {
    inner: G,
    end: Due,
}

impl<G: Trigger> Trigger for Until<G> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let tick = self.inner.next(last)?;
        let due = match tick {
            Due::OnDemand => Due::At(last.after()),
            tick => tick.later_by(self.inner.offset(tick, last))?,
        };
        (!due.is_after(self.end, last.clock)).then_some(tick)
    }

    fn between(&mut self, from: Due, to: Due) -> u64 {
        self.inner.between(from, to.earlier(self.end))
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut self.inner)
    }
}

/// Another trigger whose runs are delayed by random spans; from [`Trigger::jitter`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Jitter<G> {
    inner: G,
    most: Duration,
    seed: u64,
    is_seeded: bool,
}

impl<G> Jitter<G> {
    /// Makes the spans the same for each trigger with this seed.
    pub fn seed(mut self, seed: u64) -> Self {
        (self.seed, self.is_seeded) = (seed, true);
        self
    }

    /// Makes the spans the same for each trigger with this name, in every process and on every machine.
    pub fn name(self, name: &str) -> Self {
        self.seed(hash(name))
    }

    fn span_of(&self, run: u64) -> Duration {
        let mixed = mix(self.seed ^ mix(run));
        let most = saturating_nanos(self.most);
        Duration::from_nanos(((u128::from(mixed) * u128::from(most)) >> 64) as u64)
    }
}

fn hash(name: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Returns a moment as a number that is the same on every machine.
fn number_of(moment: SystemTime) -> u64 {
    let nanos = |span: Duration| span.as_nanos() as u64;
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => !nanos(before.duration()),
    }
}

impl<G: Trigger> Trigger for Jitter<G> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.inner.next(last)
    }

    fn offset(&mut self, moment: Due, last: &TriggerContext<'_>) -> Duration {
        let span = match moment {
            Due::At(_) => self.span_of(last.runs),
            Due::Wall(moment) => self.span_of(number_of(moment)),
            Due::OnDemand => Duration::ZERO,
        };
        self.inner.offset(moment, last).saturating_add(span)
    }

    fn share(&mut self, name: Option<&str>) -> bool {
        if let Some(name) = name.filter(|_| !self.is_seeded) {
            (self.seed, self.is_seeded) = (hash(name), true);
        }
        self.is_seeded && self.inner.share(name)
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut self.inner)
    }
}

/// Another trigger whose runs may start a little late; from [`Trigger::tolerance`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Tolerance<G> {
    inner: G,
    most: Duration,
}

impl<G: Trigger> Trigger for Tolerance<G> {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.inner.next(last)
    }

    fn offset(&mut self, moment: Due, last: &TriggerContext<'_>) -> Duration {
        let offset = self.inner.offset(moment, last);
        // Each clock counts from an origin that all tasks share.
        let from = match moment.later_by(offset) {
            Some(Due::At(moment)) => last.clock.deadline_of(moment).as_nanos(),
            Some(Due::Wall(moment)) => {
                moment.duration_since(UNIX_EPOCH).map_or(0, saturating_nanos)
            }
            _ => return offset,
        };
        let due = roundest(from, from.saturating_add(saturating_nanos(self.most)));
        offset.saturating_add(Duration::from_nanos(due - from))
    }

    fn inner(&mut self) -> Option<&mut dyn Trigger> {
        Some(&mut self.inner)
    }
}

/// Returns the number in `from..=to` that is divisible by the greatest power of two. It is `to`, with all bits cleared
/// below the highest bit in which `to` and `from - 1` differ.
fn roundest(from: u64, to: u64) -> u64 {
    let differ = from.wrapping_sub(1) ^ to;
    differ.checked_ilog2().map_or(0, |bit| to >> bit << bit)
}

/// Mixes a number as SplitMix64 does: every bit of the result depends on every bit of the argument.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
