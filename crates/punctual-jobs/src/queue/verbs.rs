//! The verbs beside sending a job: many at once, one by its id, lists, counts, the history, pauses and results.

use std::time::Duration;

use crate::{
    HistoryFilter, JobBuilder, JobChange, JobFilter, JobHandle, JobId, JobQueue, JobState,
    JobStatus, KindCounts, KindOutcomes, PastRun, QueueError, QueueFuture, When, job::names::Names,
    queue::batch::Batch,
};

/// The other verbs.
impl JobQueue {
    /// Stores all of these jobs, or none: each as [`enqueue`](JobBuilder::enqueue) would, with its keys, its priority and its moment.
    /// The handles come in the order of the jobs. Jobs without a [`unique`](JobBuilder::unique) key have ids that rise in that
    /// order, so those with one ordering key and one moment run in it. (Oban: `insert_all`, River: `InsertMany`, Sidekiq: `push_bulk`.)
    ///
    /// Of several jobs with one key the last one counts, in the first one's place, unless it is unique: that one is skipped.
    ///
    /// On PostgreSQL it is one statement, on a connection that no other verb waits for, so it is as fast as the server can
    /// insert rows. It has to be answered within the [request time-out](Self::request_timeout): send some ten thousand jobs
    /// at a time. Each key that a transaction holds makes all of the batch wait.
    ///
    /// In memory an executor with a bound may refuse the task of one of them. The jobs that have not begun by then are taken
    /// back; those that they have replaced are gone.
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail { user: u64 }
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// let mails = (1..=1000).map(|user| queue.now(Mail { user }).unique(format!("mail/{user}")));
    /// let handles = queue.enqueue_all(mails)?;
    /// assert_eq!(handles.len(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`enqueue`](JobBuilder::enqueue), of the first job that has one. Nothing is stored then, unless the error is
    /// [`TimedOut`](QueueError::TimedOut) or that of a broken connection, which leave open whether all are.
    pub fn enqueue_all<'a>(
        &'a self,
        jobs: impl IntoIterator<Item = JobBuilder<'a>>,
    ) -> Result<Vec<JobHandle>, QueueError> {
        self.enqueue_all_async(jobs).wait(self.request_timeout())
    }

    /// The same as [`enqueue_all`](Self::enqueue_all), without blocking.
    pub fn enqueue_all_async<'a>(
        &'a self,
        jobs: impl IntoIterator<Item = JobBuilder<'a>>,
    ) -> QueueFuture<Vec<JobHandle>> {
        match Batch::of(jobs.into_iter().map(JobBuilder::checked)) {
            Ok(batch) if batch.jobs.is_empty() => QueueFuture::ready(Ok(Vec::new())),
            Ok(batch) => self.engine.enqueue_all(batch),
            Err(error) => QueueFuture::ready(Err(error)),
        }
    }

    /// Lists jobs, in the order of their ids. (River: `JobList`, Oban and good_job: their dashboards.)
    ///
    /// On PostgreSQL it is one statement, which takes no locks. It finds jobs that run and those that are discarded
    /// by an index; for others it reads the table in the order of the ids until the page is full. An in-memory queue remembers
    /// the last thousand discarded jobs, and sorts the jobs it finds while it holds its lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, JobFilter, JobChange, JobStage, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// queue.after(Duration::from_secs(60), Mail {}).enqueue()?;
    /// let waiting = queue.list(&JobFilter { stage: Some(JobStage::Waiting), kind: Some("mail".into()), ..JobFilter::default() })?;
    /// for job in &waiting {
    ///     println!("{job}, due {:?}", job.due);
    /// }
    /// assert_eq!(queue.retry(waiting[0].id)?, JobChange::Done);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn list(&self, filter: &JobFilter) -> Result<Vec<JobStatus>, QueueError> {
        self.list_async(filter).wait(self.request_timeout())
    }

    /// The same as [`list`](Self::list), without blocking.
    pub fn list_async(&self, filter: &JobFilter) -> QueueFuture<Vec<JobStatus>> {
        self.engine.list(filter.clone())
    }

    /// Makes a job due at once. One that was discarded waits again, with one more attempt than it has had. One that
    /// waits has its moment brought forward, and keeps its attempts. (River: `JobChange`, Oban: `retry_job`.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked; in memory also [`Refused`](QueueError::Refused), and then the job is gone.
    pub fn retry(&self, id: JobId) -> Result<JobChange, QueueError> {
        self.retry_async(id).wait(self.request_timeout())
    }

    /// The same as [`retry`](Self::retry), without blocking.
    pub fn retry_async(&self, id: JobId) -> QueueFuture<JobChange> {
        self.engine.retry(id)
    }

    /// Has a job make no further attempt, on whichever machine it is. One that waits is discarded, and
    /// [`on_discarded`](crate::Jobs::on_discarded) is not told: the caller knows. One that runs has its token cancelled;
    /// unless it succeeds all the same it is discarded when its attempt has ended, and `on_discarded` is told. It can be
    /// [retried](Self::retry) later. (River: `JobCancel`, Oban: `cancel_job`.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn discard(&self, id: JobId) -> Result<JobChange, QueueError> {
        self.discard_async(id).wait(self.request_timeout())
    }

    /// The same as [`discard`](Self::discard), without blocking.
    pub fn discard_async(&self, id: JobId) -> QueueFuture<JobChange> {
        self.engine.discard(id)
    }

    /// Removes a job that waits or is discarded. Nothing is left of it. (River: `JobDelete`.)
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn remove(&self, id: JobId) -> Result<JobChange, QueueError> {
        self.remove_async(id).wait(self.request_timeout())
    }

    /// The same as [`remove`](Self::remove), without blocking.
    pub fn remove_async(&self, id: JobId) -> QueueFuture<JobChange> {
        self.engine.remove(id)
    }

    /// Counts the jobs of each kind, in the order of the names. Kinds without a job are left out, unless they are [paused](Self::pause_kind). (Sidekiq: `Stats` and
    /// `Queue#latency`, River: `QueueList`.)
    ///
    /// It looks at all jobs. On PostgreSQL that is one statement, which reads the whole table and takes no locks: ask every ten
    /// seconds, and not for each request. An in-memory queue remembers the last thousand discarded jobs, and is locked
    /// meanwhile.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// queue.after(Duration::from_secs(60), Mail {}).enqueue()?;
    /// let counts = queue.counts()?;
    /// assert_eq!(counts[0].waiting, 1);
    /// assert_eq!(counts[0].to_string(), r#""mail": 1 waiting, 0 due, 0 running, 0 discarded"#);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn counts(&self) -> Result<Vec<KindCounts>, QueueError> {
        self.counts_async().wait(self.request_timeout())
    }

    /// The same as [`counts`](Self::counts), without blocking.
    pub fn counts_async(&self) -> QueueFuture<Vec<KindCounts>> {
        self.engine.counts()
    }

    /// Returns runs that have ended, the last one first, if the machines that have run them keep a history.
    ///
    /// On PostgreSQL it is one statement, which takes no locks, and finds the runs of a job, a kind or a schedule by an
    /// index. An in-memory queue keeps ten thousand runs at most, and looks through them while it holds its lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    /// use punctual_jobs::{HistoryFilter, InMemory, Job, JobOutcome, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let jobs = Jobs::new().on(|_run, _: Mail| Ok(()));
    /// let queue = jobs.open(InMemory::on(&executor).history(Duration::from_secs(86_400)))?;
    /// queue.after(Duration::from_secs(5), Mail {}).enqueue()?;
    /// let of_mail = HistoryFilter { kind: Some("mail".into()), ..HistoryFilter::default() };
    /// assert!(clock.run_until(|| !queue.history(&of_mail).unwrap().is_empty()));
    /// let last = &queue.history(&of_mail)?[0];
    /// assert_eq!((last.attempt, last.outcome), (1, JobOutcome::Succeeded));
    /// println!("{last}");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn history(&self, filter: &HistoryFilter) -> Result<Vec<PastRun>, QueueError> {
        self.history_async(filter).wait(self.request_timeout())
    }

    /// The same as [`history`](Self::history), without blocking.
    pub fn history_async(&self, filter: &HistoryFilter) -> QueueFuture<Vec<PastRun>> {
        self.engine.history(filter.clone())
    }

    /// Pauses a kind until a moment, or without one until it is [resumed](Self::resume_kind): none of its jobs begins, on any machine.
    /// Those that run go on. Those that fall due meanwhile wait, and none is lost. A pause of a kind that is paused takes the place
    /// of the old one.
    /// (Oban: `pause_queue`, River: `QueuePause`, BullMQ: `pause`.)
    ///
    /// The moment is by the server's clock on PostgreSQL, where the machines find it with their next poll, and by the executor's in
    /// memory. One that has passed ends a pause. A job that is being claimed while this is called may still begin. On PostgreSQL a pause outlives the programs. A
    /// due job with an [ordering key](crate::JobBuilder::ordering_key) keeps its place: those behind it wait as well, of whatever kind.
    /// The [counts](Self::counts) say that a kind is paused, and so does the [list](Self::list).
    ///
    /// ```
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// queue.pause_kind("mail", None)?;
    /// queue.now(Mail {}).enqueue()?;
    /// let counts = queue.counts()?;
    /// assert!(counts[0].paused);
    /// assert!(queue.resume_kind("mail")?);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidName`](QueueError::InvalidName), if no kind can have this name; else [`QueueError`], if the engine cannot be
    /// asked. In memory also [`Refused`](QueueError::Refused), if the executor does not take the task that ends the pause; the kind is
    /// not paused then.
    pub fn pause_kind(&self, kind: &str, until: Option<When>) -> Result<(), QueueError> {
        self.pause_kind_async(kind, until).wait(self.request_timeout())
    }

    /// The same as [`pause_kind`](Self::pause_kind), without blocking.
    pub fn pause_kind_async(&self, kind: &str, until: Option<When>) -> QueueFuture<()> {
        match Names::KIND.check(kind) {
            Ok(()) => self.engine.pause_kind(kind, until),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Ends the pause of a kind. Its due jobs begin as if they had fallen due now. Answers whether it was paused.
    ///
    /// # Errors
    ///
    /// As of [`pause_kind`](Self::pause_kind).
    pub fn resume_kind(&self, kind: &str) -> Result<bool, QueueError> {
        self.resume_kind_async(kind).wait(self.request_timeout())
    }

    /// The same as [`resume_kind`](Self::resume_kind), without blocking.
    pub fn resume_kind_async(&self, kind: &str) -> QueueFuture<bool> {
        match Names::KIND.check(kind) {
            Ok(()) => self.engine.resume_kind(kind),
            Err(invalid) => QueueFuture::ready(Err(QueueError::InvalidName(invalid))),
        }
    }

    /// Waits for a job to come to its end for as long as `patience`, of real time, on whichever machine it runs: it has
    /// [returned](JobState::Returned) a value, is discarded, or is gone. (Celery: `AsyncResult`, Java: `Future.get`.)
    ///
    /// On PostgreSQL the server is asked again after 20 ms, and then seldomer, once a second at last: so the answer may come a second late, and a caller
    /// that waits costs that statement a second. Do not wait in a handler for a job that may need the same worker, slot or ordering key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, JobRun, JobState, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Count { text: String }
    /// impl Job for Count { const NAME: &'static str = "count"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let hour = Duration::from_secs(3600);
    /// let jobs = Jobs::new().on_returning(hour, |_: &JobRun, job: Count| Ok(job.text.len()));
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// let job = queue.now(Count { text: "tea".into() }).enqueue()?;
    /// let JobState::Returned(value) = queue.await_result(job.id, hour)? else { panic!("it fails") };
    /// assert_eq!(value.read::<usize>()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TimedOut`](QueueError::TimedOut), if it has not come to its end by then; else [`QueueError`], if the engine cannot be asked.
    pub fn await_result(&self, id: JobId, patience: Duration) -> Result<JobState, QueueError> {
        self.await_result_async(id).wait(patience)
    }

    /// The same as [`await_result`](Self::await_result), without blocking and without a limit. Drop the future, or let a time limit of
    /// the runtime do so, to wait no longer.
    pub fn await_result_async(&self, id: JobId) -> QueueFuture<JobState> {
        self.engine.await_result(id)
    }

    /// Returns how the runs of each kind have ended in this process since the queue was opened, in the order of the names. Each
    /// kind that this process handles is there, also if none of its runs has ended. (Sidekiq: `Stats#processed` and `failed`.)
    ///
    /// A run is counted when its end is known: on PostgreSQL when it is written down. So the sum over all processes is how many runs
    /// there were, except for those of a process that was killed before it was asked; the attempt that a machine did not survive is
    /// counted by the machine that finds it. If an answer of the server is lost, the run may be counted by two machines.
    ///
    /// Costs one atomic addition for each run, and a look costs a few loads for each kind. Does not block, and asks no database. The
    /// numbers are read one after the other.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    /// use punctual_jobs::{InMemory, Job, JobError, JobOutcome, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let clock = ManualClock::new();
    /// let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// let jobs = Jobs::new()
    ///     .on(|run, _: Mail| if run.attempt == 1 { Err(JobError::new("no route")) } else { Ok(()) });
    /// let queue = jobs.open(InMemory::on(&executor))?;
    /// queue.after(Duration::from_secs(5), Mail {}).enqueue()?;
    /// assert!(clock.run_until(|| queue.outcomes()[0].of(JobOutcome::Succeeded) == 1));
    /// assert_eq!(queue.outcomes()[0].to_string(), "\"mail\" ran 1, failed 1");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    #[must_use]
    pub fn outcomes(&self) -> Vec<KindOutcomes> {
        self.definitions.outcomes.now()
    }
}
