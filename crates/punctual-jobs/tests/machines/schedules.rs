//! Schedules as rows: what is put, changed, missed and made up for.

mod missed;
mod overlaps;
mod owners;
mod rows;
mod several;

use std::{
    sync::mpsc::{self, Receiver},
    time::{Duration, SystemTime},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{
    JobError, JobQueue, JobRun, Jobs, Postgres, QueueEvent, Schedule, ScheduleStatus,
};

use crate::{
    kinds::{Stubborn, Tick, Wait, Work},
    machine::postgres,
    support::{LIMIT, server::Server, wait_until},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A queue of this process whose handlers say what they do.
pub(crate) struct Desk {
    pub(crate) queue: JobQueue,
    pub(crate) said: Receiver<String>,
    pub(crate) events: Receiver<QueueEvent>,
    pub(crate) ticks: Receiver<Option<SystemTime>>,
    _executor: ScheduledThreadPoolExecutor,
}

impl Desk {
    pub(crate) fn open(server: &Server) -> Self {
        Self::open_with(server, |jobs| jobs)
    }

    /// Opens one whose definitions have more.
    pub(crate) fn open_with(server: &Server, more: impl FnOnce(Jobs) -> Jobs) -> Self {
        Self::open_as(server, more, |settings| settings)
    }

    /// Opens one with other settings, too.
    pub(crate) fn open_as(
        server: &Server,
        more: impl FnOnce(Jobs) -> Jobs,
        set: impl FnOnce(Postgres) -> Postgres,
    ) -> Self {
        let executor = ScheduledThreadPoolExecutor::new(8);
        let (says, said) = mpsc::channel();
        let (tells, events) = mpsc::channel();
        let (notes, ticks) = mpsc::channel();
        let (work, wait, stubborn) = (says.clone(), says.clone(), says.clone());
        let jobs = Jobs::new()
            .on(move |run: &JobRun, _: Tick| {
                notes.send(run.tick())?;
                Ok(says.send("tick".to_owned())?)
            })
            .on(move |run: &JobRun, job: Work| {
                work.send(format!("work {}", job.number))?;
                run.token().sleep(Duration::from_millis(job.millis))?;
                Ok(work.send(format!("worked {}", job.number))?)
            })
            .on(move |run: &JobRun, job: Wait| {
                wait.send(format!("waits {}", job.number))?;
                run.token().wait();
                wait.send(format!("stopped {:?}", run.stop_reason()))?;
                Err(JobError::new("stopped"))
            })
            .on(move |run: &JobRun, job: Stubborn| {
                stubborn.send(format!("attempt {}", run.attempt()))?;
                std::thread::sleep(Duration::from_millis(job.millis));
                if job.fails { Err(JobError::new("stubborn")) } else { Ok(()) }
            })
            .backoff::<Stubborn>(|_| Duration::from_secs(3600));
        // No case here is about a lease, and a busy machine must not lose one.
        let settings = postgres(&executor, &server.url()).lease(20 * SECOND);
        let settings = settings.on_event(move |event| drop(tells.send(event.clone())));
        let queue = more(jobs).open(set(settings)).unwrap();
        Self { queue, said, events, ticks, _executor: executor }
    }

    pub(crate) fn put(&self, schedule: Schedule) -> bool {
        self.queue.schedules().put(schedule).call().unwrap()
    }

    pub(crate) fn expect(&self, line: &str) {
        assert_eq!(self.said.recv_timeout(LIMIT).unwrap(), line);
    }

    /// Waits until this is said, whatever comes before.
    pub(crate) fn wait_for(&self, line: &str) {
        while self.said.recv_timeout(LIMIT).unwrap() != line {}
    }

    pub(crate) fn status(&self, name: &str) -> ScheduleStatus {
        let all = self.queue.schedules().list().call().unwrap();
        all.into_iter().find(|schedule| schedule.name == name).unwrap()
    }

    pub(crate) fn until(&self, name: &str, mut is_so: impl FnMut(&ScheduleStatus) -> bool) {
        wait_until("the schedule is so", || is_so(&self.status(name)));
    }
}

/// A schedule that ticks long after any test has ended.
pub(crate) fn far() -> Schedule {
    Schedule::cron("far", "0 0 1 1 *", "UTC", &Tick {}).unwrap()
}

pub(crate) fn each_second(name: &str) -> Schedule {
    Schedule::every(name, SECOND, &Tick {})
}
