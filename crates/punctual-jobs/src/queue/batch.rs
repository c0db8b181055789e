//! Many jobs at once: all of them are stored, or none.
//!
//! A batch is put in order before an engine sees it: its jobs are checked, and of those with one key one is left, which the
//! handles of the others lead to. So an engine stores jobs whose keys differ, and answers with a handle for each.

use std::collections::{HashMap, hash_map::Entry};

use crate::{
    QueueError,
    queue::engine::{JobHandle, NewJob},
};

/// Jobs that are to be stored together. No two have one key.
pub(crate) struct Batch {
    pub(crate) jobs: Vec<NewJob>,
    asked: Vec<Asked>,
}

struct Asked {
    name: &'static str,
    /// Which of the batch's jobs stands for it.
    place: usize,
    /// It was unique, and came after another job with its key.
    is_skipped: bool,
}

impl Batch {
    /// Checks the jobs, and leaves one for each key.
    pub(crate) fn of(
        new_jobs: impl IntoIterator<Item = Result<NewJob, QueueError>>,
    ) -> Result<Self, QueueError> {
        let (mut jobs, mut asked) = (Vec::<NewJob>::new(), Vec::new());
        let mut places = HashMap::<String, usize>::new();
        for new_job in new_jobs {
            let mut new_job = new_job?;
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
            let JobHandle { id, was_skipped: of_all, .. } = stored[*place];
            JobHandle { id, name, was_skipped: of_all || *is_skipped }
        };
        self.asked.iter().map(handle).collect()
    }
}
