//! Schedules as rows: what is put, changed, missed and made up for.

mod jobs;
mod ledger;
mod missed;
mod overlaps;
mod owners;
mod rows;
mod several;

use std::{
    sync::mpsc::{self, Receiver, Sender},
    time::{Duration, SystemTime},
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{
    JobError, JobRun, Jobs, Overlap, Postgres, PostgresQueue, QueueEvent, Schedule, ScheduleStatus,
};

use crate::{
    kinds::{Stubborn, Tick, Wait, Work},
    machine::postgres,
    support::{connected, opened, receive, receive_until, server::Server, wait_until},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A queue of this process whose handlers say what they do.
pub(crate) struct Desk {
    pub(crate) queue: PostgresQueue,
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
    pub(crate) fn open_with(server: &Server, more: impl Fn(Jobs) -> Jobs) -> Self {
        Self::open_as(server, more, |settings| settings)
    }

    /// Opens one with other settings, too.
    pub(crate) fn open_as(
        server: &Server,
        more: impl Fn(Jobs) -> Jobs,
        set: impl Fn(Postgres) -> Postgres,
    ) -> Self {
        let executor = ScheduledThreadPoolExecutor::new(8);
        let (says, said) = mpsc::channel();
        let (tells, events) = mpsc::channel();
        let (notes, ticks) = mpsc::channel();
        let queue = opened(|| {
            let tells = tells.clone();
            // No case here is about a lease, and none ends during a test.
            let settings = postgres(&executor, &server.url());
            let settings = settings.on_event(move |event| drop(tells.send(event.clone())));
            more(Self::jobs(says.clone(), notes.clone())).open(set(settings))
        });
        Self { queue: connected(queue), said, events, ticks, _executor: executor }
    }

    /// The handlers, which say what they do, and note their ticks.
    fn jobs(says: Sender<String>, notes: Sender<Option<SystemTime>>) -> Jobs {
        let (work, wait, stubborn) = (says.clone(), says.clone(), says.clone());
        Jobs::new()
            .on(move |run: &JobRun, _: Tick| {
                notes.send(run.tick)?;
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
                stubborn.send(format!("attempt {}", run.attempt))?;
                std::thread::sleep(Duration::from_millis(job.millis));
                if job.fails { Err(JobError::new("stubborn")) } else { Ok(()) }
            })
            .backoff::<Stubborn>(punctual::Backoff::constant(Duration::from_secs(3600)))
    }

    pub(crate) fn put(&self, schedule: Schedule) -> bool {
        self.queue.schedules().put(schedule).call().unwrap()
    }

    pub(crate) fn expect(&self, line: &str) {
        assert_eq!(receive(&self.said, line), line);
    }

    /// Waits until this is said, whatever comes before.
    pub(crate) fn wait_for(&self, line: &str) {
        receive_until(&self.said, line, |said| said == line);
    }

    /// Receives the tick of the next job of the kind `Tick`.
    #[track_caller]
    pub(crate) fn next_tick(&self) -> Option<SystemTime> {
        receive(&self.ticks, "a tick")
    }

    /// Receives the next event.
    #[track_caller]
    pub(crate) fn event(&self) -> QueueEvent {
        receive(&self.events, "an event")
    }

    /// Waits until another schedule has ticked so often, which this machine does not do without looking at all that are due;
    /// returns what was said beside that. What would have come before is there by then.
    pub(crate) fn meanwhile(&self, ticks: usize) -> Vec<String> {
        let other = Schedule::every("meanwhile", SECOND / 5, &Work { number: 999, millis: 0 });
        self.put(other.overlap(Overlap::Skip));
        let mut said = Vec::new();
        for _ in 0..ticks {
            while said.last().is_none_or(|line: &String| line != "worked 999") {
                said.push(receive(&self.said, "another schedule ticks"));
            }
            said.pop();
        }
        assert!(self.queue.schedules().remove("meanwhile").call().unwrap());
        said.retain(|line| !line.ends_with(" 999"));
        said
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
