//! What a queue answers when it is asked how it stands: counts, the jobs of each stage, and schedules.
//!
//! All is asked at once, and the answer is a future, which waits for no database on the thread that draws.

use std::{future::Future, pin::Pin, time::SystemTime};

use punctual_jobs::{JobFilter, JobQueue, JobStage, JobStatus, KindCounts, QueueError};

/// How many jobs of each stage are shown at most.
const PAGE: usize = 50;
/// What matters most comes first.
const STAGES: [JobStage; 3] = [JobStage::Running, JobStage::Discarded, JobStage::Waiting];

#[derive(Default)]
pub(crate) struct Look {
    pub(crate) counts: Vec<KindCounts>,
    pub(crate) jobs: Vec<JobStatus>,
    pub(crate) schedules: Vec<ScheduleLook>,
}

/// A schedule that is a row of a database.
pub(crate) struct ScheduleLook {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) ticks: String,
    pub(crate) next: Option<SystemTime>,
    pub(crate) last: Option<SystemTime>,
    pub(crate) is_paused: bool,
}

/// An answer that is to come.
pub(crate) type Asked<T> = Pin<Box<dyn Future<Output = Result<T, QueueError>> + Send>>;

pub(crate) fn ask(queue: &JobQueue) -> Asked<Look> {
    let counts = queue.counts_async();
    let pages = STAGES.map(|stage| {
        queue.list_async(&JobFilter {
            stage: Some(stage),
            limit: Some(PAGE),
            ..JobFilter::default()
        })
    });
    let schedules = schedules(queue);
    Box::pin(async move {
        let counts = counts.await?;
        let mut jobs = Vec::new();
        for page in pages {
            jobs.extend(page.await?);
        }
        Ok(Look { counts, jobs, schedules: schedules.await? })
    })
}

#[cfg(not(feature = "postgres"))]
fn schedules(_: &JobQueue) -> Asked<Vec<ScheduleLook>> {
    Box::pin(async { Ok(Vec::new()) })
}

/// A queue in memory has no such schedules.
#[cfg(feature = "postgres")]
fn schedules(queue: &JobQueue) -> Asked<Vec<ScheduleLook>> {
    use punctual_jobs::PostgresQueue;

    use crate::values::short;

    let listed = PostgresQueue::of(queue).map(|queue| queue.schedules().list().call_async());
    Box::pin(async move {
        let listed = match listed {
            Some(listed) => listed.await?,
            None => Vec::new(),
        };
        let look = |it: punctual_jobs::ScheduleStatus| ScheduleLook {
            ticks: match (it.expression, it.period) {
                (Some(expression), _) => format!("{expression} {}", it.zone.unwrap_or_default()),
                (None, period) => format!("each {}", short(period.unwrap_or_default())),
            },
            next: it.next,
            last: it.last_enqueued,
            name: it.name,
            kind: it.kind,
            is_paused: it.is_paused,
        };
        Ok(listed.into_iter().map(look).collect())
    })
}
