//! Many jobs at once: all of them are stored, or none.
//!
//! A batch is put in order before an engine sees it: its jobs are checked, and of those with one key one is left, which the
//! handles of the others lead to. So an engine stores jobs whose keys differ, and answers with a handle for each.

use std::collections::{HashMap, hash_map::Entry};

use crate::{JobBuilder, JobHandle, JobQueue, QueueError, QueueFuture, queue::NewJob};

/// Many jobs at once.
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
        match Batch::of(jobs) {
            Ok(batch) if batch.jobs.is_empty() => QueueFuture::ready(Ok(Vec::new())),
            Ok(batch) => self.engine.enqueue_all(batch),
            Err(error) => QueueFuture::ready(Err(error)),
        }
    }
}

/// Jobs that are to be stored together. No two have one key.
pub(crate) struct Batch {
    pub(crate) jobs: Vec<NewJob>,
    asked: Vec<Asked>,
}

/// A job that was asked for.
struct Asked {
    name: &'static str,
    /// Which of the batch's jobs stands for it.
    place: usize,
    /// It was unique, and came after another job with its key.
    is_skipped: bool,
}

impl Batch {
    /// Checks the jobs, and leaves one for each key.
    #[allow(single_use_lifetimes, reason = "it cannot be left out here")]
    pub(crate) fn of<'a>(
        builders: impl IntoIterator<Item = JobBuilder<'a>>,
    ) -> Result<Self, QueueError> {
        let (mut jobs, mut asked) = (Vec::<NewJob>::new(), Vec::new());
        let mut places = HashMap::<String, usize>::new();
        for builder in builders {
            let mut new_job = builder.checked()?;
            let (name, place) = (new_job.name, jobs.len());
            let known = new_job.key.as_ref().map(|key| places.entry(key.clone()));
            let (place, is_skipped) = match known {
                Some(Entry::Occupied(known)) => {
                    let place = *known.get();
                    let is_skipped = new_job.is_unique;
                    if !is_skipped {
                        new_job.take_place_of(&jobs[place]);
                        jobs[place] = new_job;
                    }
                    (place, is_skipped)
                }
                free => {
                    if let Some(Entry::Vacant(free)) = free {
                        free.insert(place);
                    }
                    jobs.push(new_job);
                    (place, false)
                }
            };
            asked.push(Asked { name, place, is_skipped });
        }
        Ok(Self { jobs, asked })
    }

    /// Returns the handle of each job that was asked for, from those of the jobs that are left.
    pub(crate) fn handles(&self, stored: &[JobHandle]) -> Vec<JobHandle> {
        let handle = |Asked { name, place, is_skipped }: &Asked| {
            let JobHandle { id, is_skipped: of_all, .. } = stored[*place];
            JobHandle { id, name, is_skipped: of_all || *is_skipped }
        };
        self.asked.iter().map(handle).collect()
    }
}

impl NewJob {
    /// Replaces a job that is not stored yet: if the moment of that one is to stay, this one has it.
    fn take_place_of(&mut self, former: &Self) {
        if self.keeps_moment {
            (self.when, self.keeps_moment) = (former.when, former.keeps_moment);
        }
    }
}
