//! Definitions: which kinds of jobs there are, what handles them, and what becomes of those that fail.
//!
//! They are made once, and a queue is opened on them: in this process, or on PostgreSQL. The
//! definitions do not know which. A kind may have settings without a handler: such a process enqueues jobs
//! that another one runs. Settings and handler may come in either order.

use std::{
    any::TypeId,
    collections::{HashMap, HashSet},
    fmt,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use punctual::{Backoff, Trigger};
use serde::Serialize;

use crate::{
    DiscardedJob, Job, JobError, JobLimit, JobRun, OpenError,
    job::{
        attempts_of, backoff, clamped, job_limit::Limits, names::Names, payload::Payload,
        schedule::Ticking,
    },
    queue::{engine::NewJob, results::Returned},
    run::outcomes::Outcomes,
};

pub(crate) type Handler =
    Arc<dyn Fn(&JobRun, &Payload) -> Result<Option<Returned>, JobError> + Send + Sync>;
pub(crate) type OnDiscarded = Arc<dyn Fn(&DiscardedJob) + Send + Sync>;

/// The kinds of jobs of a program.
///
/// ```
/// use std::time::Duration;
/// use punctual::ScheduledThreadPoolExecutor;
/// use punctual_jobs::{InMemory, Job, JobRun, Jobs};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Remind {
///     user: u64,
///     text: String,
/// }
/// impl Job for Remind {
///     const NAME: &'static str = "remind";
/// }
///
/// let executor = ScheduledThreadPoolExecutor::new(2);
/// let (tell, told) = std::sync::mpsc::channel();
/// let jobs = Jobs::new()
///     .on(move |run: &JobRun, job: Remind| {
///         tell.send(format!("{} to {} at attempt {}", job.text, job.user, run.attempt))?;
///         Ok(())
///     })
///     .max_attempts::<Remind>(5)
///     .timeout::<Remind>(Duration::from_secs(30));
///
/// let queue = jobs.open(InMemory::on(&executor))?; // the line to change for many machines
/// queue.after(Duration::from_millis(5), Remind { user: 42, text: "tea".into() })
///     .key("remind/42")
///     .enqueue()?;
/// assert_eq!(told.recv()?, "tea to 42 at attempt 1");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Default)]
#[must_use = "definitions do nothing until a queue is opened on them"]
pub struct Jobs {
    kinds: HashMap<&'static str, Definition>,
    periodic: Vec<Periodic>,
    #[cfg(feature = "postgres")]
    declared: Vec<crate::Schedule>,
    on_discarded: Option<OnDiscarded>,
    /// The error of a definition, the last one if there are several.
    wrong: Option<OpenError>,
}

/// A kind of job, as a queue sees it.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    type_id: TypeId,
    pub(crate) handler: Option<Handler>,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) limits: Limits,
    /// Its handler returns values, which are stored.
    pub(crate) keeps_results: bool,
}

/// A schedule: a job that is enqueued at each tick of a trigger.
pub(crate) struct Periodic {
    pub(crate) schedule: String,
    pub(crate) job: NewJob,
    pub(crate) trigger: Ticking,
}

/// The definitions with which a queue is opened.
pub(crate) struct Definitions {
    pub(crate) kinds: HashMap<&'static str, Arc<Definition>>,
    pub(crate) on_discarded: Option<OnDiscarded>,
    /// How the runs have ended.
    pub(crate) outcomes: Outcomes,
}

impl Jobs {
    /// Returns definitions without any job.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind of job with the closure that handles it. The closure runs on a thread of the executor,
    /// for several jobs at once unless they have one [ordering key](crate::JobBuilder::ordering_key), and may block for long
    /// if the executor has the threads. An `Err` and a panic fail the attempt, and so does a payload that
    /// cannot be decoded. The job is then tried again after a delay, until its attempts are used up. A handler that
    /// knows better returns [`JobError::discard`] or [`JobError::snooze`].
    ///
    /// **A job may run more than once**: on several machines the attempt may have done its work when the
    /// machine died. [`JobRun::id`] and [`JobRun::fencing_token`] help to recognise that.
    pub fn on<J, F>(mut self, handler: F) -> Self
    where
        J: Job,
        F: Fn(&JobRun, J) -> Result<(), JobError> + Send + Sync + 'static,
    {
        let handler = move |run: &JobRun, payload: &Payload| {
            handler(run, payload.read()?)?;
            Ok(None)
        };
        self.handle::<J>(Arc::new(handler));
        self
    }

    /// The same as [`on`](Self::on) for a closure that returns a value. When a run has succeeded its value is stored as JSON, and kept for
    /// `keep`: the sender of the job, or any other machine, [waits for it](crate::JobQueue::await_result) by the job's id. A value that is
    /// no JSON fails the attempt.
    ///
    /// On PostgreSQL it is a row, written by the statement that ends the run, and removed after its time by a machine that handles
    /// such a kind. Store a large result elsewhere, and return where it is.
    pub fn on_returning<J, R, F>(mut self, keep: Duration, handler: F) -> Self
    where
        J: Job,
        R: Serialize,
        F: Fn(&JobRun, J) -> Result<R, JobError> + Send + Sync + 'static,
    {
        let handler = move |run: &JobRun, payload: &Payload| {
            Returned::new(&handler(run, payload.read()?)?, keep).map(Some)
        };
        self.handle::<J>(Arc::new(handler));
        self.definition::<J>().keeps_results = true;
        self
    }

    fn handle<J: Job>(&mut self, handler: Handler) {
        let definition = self.definition::<J>();
        let is_second = definition.handler.replace(handler).is_some();
        if is_second {
            self.wrong = Some(defined_twice(J::NAME));
        }
    }

    /// Sets how many attempts a job of this kind has, at least one, if this program sends it; without this call the
    /// [kind](Job::MAX_ATTEMPTS) says how many, which is the right place if several programs send it.
    pub fn max_attempts<J: Job>(mut self, max_attempts: u32) -> Self {
        self.definition::<J>().max_attempts = clamped(max_attempts);
        self
    }

    /// Sets how long a job of this kind waits after an attempt that has failed here; without this call the
    /// [kind](Job::BACKOFF) says it.
    pub fn backoff<J: Job>(mut self, backoff: Backoff) -> Self {
        self.definition::<J>().backoff = Some(backoff);
        self
    }

    /// Sets how long an attempt may take here, from when its handler is called; without this call the [kind](Job::TIMEOUT) says
    /// it. When the time is up, the
    /// [token](JobRun::token) is cancelled, and the attempt has failed when the handler returns, whatever it
    /// returns but [`JobError::discard`]. Nothing ends a handler that does not look at its token.
    pub fn timeout<J: Job>(mut self, limit: Duration) -> Self {
        self.definition::<J>().timeout = Some(limit);
        self
    }

    /// Limits how many jobs of this kind run at once, over all machines: see [`JobLimit`]. A kind may have two limits: one for
    /// the kind, and one [for each key](JobLimit::for_each_key).
    pub fn limit<J: Job>(mut self, limit: JobLimit) -> Self {
        self.definition::<J>().limits.set(limit);
        self
    }

    /// Enqueues this job at each tick of the trigger: a *schedule*, whose name is that of the job's kind. A kind
    /// with several schedules gives them names by [`every_named`](Self::every_named). Java:
    /// `scheduleAtFixedRate`, over machines.
    ///
    /// * **Each tick is taken once**, on PostgreSQL over all machines.
    /// * **The runs of a schedule never overlap.** A job that comes before the last one has ended waits for it.
    /// * **One job of a schedule waits at a time.** A tick that finds one waiting enqueues none, because that one
    ///   begins after the tick; so a backlog is one job, however long it lasts. If it waits for its next attempt it
    ///   is made due at once: a job that fails is tried again at the next tick at the latest. (River and Oban
    ///   have the first as an option, unique jobs; `MissedRuns::Coalesce`, the default of a task, is the same rule
    ///   in one process.)
    ///
    /// # On several machines
    ///
    /// The trigger has to name moments of the wall clock, or machines would not agree on the ticks:
    /// [`aligned`](crate::aligned()), or `punctual::trigger::cron`. Its jitter is the same on each machine. The
    /// database's clock decides when a tick has come: a machine whose clock is ahead keeps its ticks until then, for as long as
    /// `Postgres::tick_deadline` says, and of one whose clock is behind the others have taken them. The name of the schedule is what the database knows
    /// it by, in every program and every version of it: do not change it lightly, and give it to nothing else.
    ///
    /// The queue asks the trigger on a thread of its own, by the executor's clock. A tick is stored at its moment
    /// also while all workers of the executor are busy, or while it is driven and not called. A panic of
    /// the trigger ends the schedule on this machine, and is one line on standard error.
    ///
    /// While the server cannot be asked, ticks are kept, as many as a thousand of each schedule, and each for an hour
    /// unless `Postgres::tick_deadline` says otherwise. When the server is back those that were kept enqueue
    /// one job. What could not be kept is told, and counted, by `QueueEvent::TicksLost`. Ticks
    /// while no machine runs are not made up for.
    ///
    /// ```
    /// # use punctual_jobs::{Job, Jobs, aligned};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Sweep {}
    /// # impl Job for Sweep { const NAME: &'static str = "sweep"; }
    /// use std::time::Duration;
    ///
    /// let jobs = Jobs::new()
    ///     .on(|_run, _: Sweep| Ok(()))
    ///     .every(aligned(Duration::from_secs(300)), Sweep {});
    /// ```
    pub fn every<J: Job>(self, trigger: impl Trigger, job: J) -> Self {
        self.every_named(J::NAME, trigger, job)
    }

    /// The same as [`every`](Self::every), with a name for the schedule, of 1 to 128 bytes, without a NUL. Opening a queue fails
    /// if two schedules have one name.
    ///
    /// ```
    /// # use punctual_jobs::{Job, Jobs, aligned};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Sweep { region: String }
    /// # impl Job for Sweep { const NAME: &'static str = "sweep"; }
    /// use std::time::Duration;
    ///
    /// let sweep = |region: &str| Sweep { region: region.to_owned() };
    /// let jobs = Jobs::new()
    ///     .on(|_run, _: Sweep| Ok(()))
    ///     .every_named("sweep/eu", aligned(Duration::from_secs(300)), sweep("eu"))
    ///     .every_named("sweep/us", aligned(Duration::from_secs(600)), sweep("us"));
    /// ```
    pub fn every_named<J: Job>(
        mut self,
        name: impl Into<String>,
        trigger: impl Trigger,
        job: J,
    ) -> Self {
        self.definition::<J>();
        let (schedule, trigger) = (name.into(), Ticking::new(trigger));
        match Payload::of(&job) {
            Ok(payload) => {
                let job = NewJob::of_tick(&schedule, J::NAME, payload, attempts_of::<J>());
                self.periodic.push(Periodic { schedule, job, trigger });
            }
            Err(error) => self.wrong = Some(OpenError::Refused(error.into())),
        }
        self
    }

    /// Declares a [schedule](crate::Schedule) that is a row of the database: it is listed, paused and changed by
    /// [`PostgresQueue::schedules`](crate::PostgresQueue::schedules), and its missed ticks are made up for. Opening a queue writes the row unless
    /// it is there as this program says; if a person has put or removed it since, [`Schedule::on_edit`](crate::Schedule::on_edit)
    /// says who wins. It ticks while a program that has declared it has a queue open. An in-memory queue refuses to open with one.
    ///
    /// While two versions of a program run side by side, the row is as the one says that was started last. No tick is taken
    /// twice; a definition that ticks at other moments counts its ticks from when it is written. But a name that moves here from
    /// [`every`](Self::every) ticks twice while both versions run: neither knows of the other's ticks.
    ///
    /// The other way to have a job at each tick is [`every`](Self::every), which takes any trigger, and works in memory.
    ///
    /// ```
    /// # use punctual_jobs::{Job, Jobs};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Report {}
    /// # impl Job for Report { const NAME: &'static str = "report"; }
    /// use punctual_jobs::{OnEdit, Schedule};
    ///
    /// let nine = Schedule::cron("report", "0 9 * * *", "Europe/Paris", &Report {})?;
    /// let jobs = Jobs::new().on(|_run, _: Report| Ok(())).schedule(nine.on_edit(OnEdit::CodeWins));
    /// # Ok::<(), punctual::trigger::CronError>(())
    /// ```
    #[cfg(feature = "postgres")]
    pub fn schedule(mut self, schedule: crate::Schedule) -> Self {
        self.declared.push(schedule);
        self
    }

    /// Sets what is called when a job is discarded: all of its attempts have failed, or its handler has
    /// [said so](JobError::discard). It is called on a thread of the executor, once for each such job, and never for
    /// one that was cancelled or replaced while it ran.
    ///
    /// On PostgreSQL that is once over all machines. The machine that ran the last attempt calls it, or another one that
    /// handles jobs if that one has died, so set it in each of them. It is called a second time if the process dies,
    /// or loses its lease, after the call and before that is written down. A shutdown waits for it, for at most
    /// `Postgres::request_timeout`; if it was not called by then another machine calls it,
    /// or this one when it is started again. In memory it is called unless the process ends before.
    ///
    /// Without this, such a job is one line on standard error.
    ///
    /// A panic in it is the executor's to report.
    pub fn on_discarded(mut self, closure: impl Fn(&DiscardedJob) + Send + Sync + 'static) -> Self {
        self.on_discarded = Some(Arc::new(closure));
        self
    }

    /// Opens a queue on these definitions: `InMemory::on(&executor)`, or `Postgres::on(&executor, url)`
    /// with the feature `postgres`.
    ///
    /// # Errors
    ///
    /// [`OpenError`], if a definition is wrong or the engine cannot be reached.
    pub fn open<E: OpenQueue>(mut self, engine: E) -> Result<E::Queue, OpenError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let names = self.periodic.iter().map(|it| it.schedule.as_str());
        #[cfg(feature = "postgres")]
        let names = names.chain(self.declared.iter().map(crate::Schedule::name));
        check_schedules(&names.collect::<Vec<_>>())?;
        for name in self.kinds.keys() {
            Names::KIND.check(name).map_err(OpenError::InvalidName)?;
        }
        let handled = self.kinds.values().filter(|kind| kind.handler.is_some());
        let outcomes = Outcomes::of_kinds(handled.map(|kind| kind.name));
        let kinds = self.kinds.into_iter().map(|(name, kind)| (name, Arc::new(kind))).collect();
        let definitions = Definitions { kinds, on_discarded: self.on_discarded, outcomes };
        for Periodic { job, .. } in &mut self.periodic {
            job.max_attempts = definitions.max_attempts(job.name, job.max_attempts);
        }
        engine.open_queue(Opening {
            definitions: Arc::new(definitions),
            periodic: self.periodic,
            #[cfg(feature = "postgres")]
            declared: self.declared,
        })
    }

    fn definition<J: Job>(&mut self) -> &mut Definition {
        let type_id = TypeId::of::<J>();
        let kind = self.kinds.entry(J::NAME).or_insert_with(|| Definition {
            name: J::NAME,
            type_id,
            handler: None,
            max_attempts: attempts_of::<J>(),
            backoff: J::BACKOFF,
            timeout: J::TIMEOUT,
            limits: Limits::default(),
            keeps_results: false,
        });
        if kind.type_id != type_id {
            self.wrong = Some(defined_twice(J::NAME));
        }
        kind
    }
}

/// A schedule is known by its name, in the database too.
fn check_schedules(schedules: &[&str]) -> Result<(), OpenError> {
    let mut names = HashSet::new();
    for schedule in schedules {
        Names::SCHEDULE.check(schedule).map_err(OpenError::InvalidName)?;
        if !names.insert(*schedule) {
            let what = "give each a name of its own by Jobs::every_named";
            return Err(OpenError::Definition(format!(
                "two schedules have the name {schedule:?}: {what}"
            )));
        }
    }
    Ok(())
}

fn defined_twice(name: &str) -> OpenError {
    let what = "give each kind of job one type, one name and one handler";
    OpenError::Definition(format!("the job name {name:?} is defined twice: {what}"))
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("names", &self.kinds.keys()).finish_non_exhaustive()
    }
}

impl Definitions {
    /// Returns how many attempts a job sent from here has: the number of its kind, unless this program defines another.
    pub(crate) fn max_attempts(&self, name: &str, of_kind: u32) -> u32 {
        self.kinds.get(name).map_or(of_kind, |kind| kind.max_attempts)
    }

    /// Says that all attempts of a job have failed: to the callback, or else on standard error, since the
    /// sender of the job is not told. User code: the caller holds no lock.
    pub(crate) fn tell_discarded(&self, discarded: &DiscardedJob) {
        match &self.on_discarded {
            Some(callback) => callback(discarded),
            None => print_line(&discarded.to_string()),
        }
    }

    /// Returns the kind, if something in this process handles it.
    pub(crate) fn handled(&self, name: &str) -> Option<&Arc<Definition>> {
        self.kinds.get(name).filter(|kind| kind.handler.is_some())
    }

    /// Returns the kinds with limits: how many of each may run at once, and how many of each limit key.
    #[cfg(feature = "postgres")]
    pub(crate) fn limits(&self) -> (Vec<&'static str>, Vec<Option<i32>>, Vec<Option<i32>>) {
        let count = |most: Option<usize>| most.and_then(|most| i32::try_from(most).ok());
        let limited = self.kinds.values().filter(|kind| kind.limits.is_some());
        let all =
            limited.map(|kind| (kind.name, kind.limits.kind.at_once, kind.limits.key.at_once));
        all.map(|(name, of_kind, of_key)| (name, count(of_kind), count(of_key))).collect()
    }

    /// Returns the names of the kinds that this process handles, in their order.
    #[cfg(any(feature = "postgres", feature = "metrics"))]
    pub(crate) fn handled_names(&self) -> Vec<&'static str> {
        let kinds = self.kinds.values();
        let mut names: Vec<_> =
            kinds.filter(|kind| kind.handler.is_some()).map(|kind| kind.name).collect();
        // A map has them in another order in each process.
        names.sort_unstable();
        names
    }
}

/// Prints on standard error what no callback hears. Not by `eprintln`, which panics if nothing can be written there.
pub(crate) fn print_line(text: &str) {
    let line = format!("punctual-jobs: {}\n", in_one_line(text));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Returns the text with its control characters escaped: an error may say anything, and is neither to begin a
/// line of its own nor to speak to a terminal.
fn in_one_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len() + 1), |mut line, letter| {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
        line
    })
}

impl Definition {
    /// Returns how long to wait after so many attempts that have failed; `None` if the backoff allows no further one.
    pub(crate) fn delay_after(&self, attempts: u32) -> Option<Duration> {
        match &self.backoff {
            Some(backoff) => backoff.delay_after(attempts),
            None => Some(backoff::exponential(attempts)),
        }
    }
}

/// The argument that opens an engine's queue.
#[allow(unnameable_types, reason = "only the engines of this crate open queues")]
#[allow(missing_debug_implementations, reason = "nobody outside sees one")]
pub struct Opening {
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) periodic: Vec<Periodic>,
    #[cfg(feature = "postgres")]
    pub(crate) declared: Vec<crate::Schedule>,
}

/// An engine that a queue can be opened on: `InMemory`, or `Postgres`. Only the types of this crate implement it.
pub trait OpenQueue: sealed::Sealed {
    /// What opening returns: a [`JobQueue`](crate::JobQueue), or a `PostgresQueue`, which is one and has more.
    type Queue;

    #[doc(hidden)]
    fn open_queue(self, opening: Opening) -> Result<Self::Queue, OpenError>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}
