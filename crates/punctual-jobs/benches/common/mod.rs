//! The parts of the programs of this folder: a kind of job, the machines that run it, and the figures of a server.

#![allow(dead_code, reason = "not each program uses all of it")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::sleep,
    time::Duration,
};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{Job, JobLimit, JobQueue, JobRun, Jobs, Postgres};
use serde::{Deserialize, Serialize};

#[path = "../../tests/support/mod.rs"]
pub(crate) mod support;

pub(crate) use self::support::server::Server;

/// A job that does nothing, or takes a nap.
#[derive(Serialize, Deserialize)]
pub(crate) struct Nothing {
    /// When it was sent, in microseconds since 1970; zero if that is not measured.
    #[serde(default)]
    pub(crate) sent: u64,
}

impl Job for Nothing {
    const NAME: &'static str = "nothing";
}

/// The numbers of the command line, one after another.
pub(crate) struct Numbers(std::env::Args);

impl Numbers {
    pub(crate) fn read() -> Self {
        Self(std::env::args())
    }

    /// Returns the next number, or the usual one if there is none.
    pub(crate) fn next(&mut self, usual: usize) -> usize {
        self.0.find_map(|word| word.parse().ok()).unwrap_or(usual)
    }
}

/// The machines of a round.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) machines: usize,
    pub(crate) slots: usize,
    /// How long a job lasts.
    pub(crate) nap: Duration,
    pub(crate) limit: Option<JobLimit>,
    /// How long a history is kept, if one is.
    pub(crate) history: Option<Duration>,
}

impl Plan {
    pub(crate) fn new(machines: usize, slots: usize) -> Self {
        Self { machines, slots, nap: Duration::ZERO, limit: None, history: None }
    }
}

/// Machines of one server: queues of this process, each with an executor of its own.
pub(crate) struct Machines {
    open: Vec<(JobQueue, ScheduledThreadPoolExecutor)>,
    runs: Arc<AtomicUsize>,
    /// When a job was sent that says so, and when it began.
    pub(crate) begun: Receiver<(u64, u64)>,
}

impl Machines {
    pub(crate) fn open(server: &Server, plan: Plan) -> Self {
        let (tell, begun) = mpsc::channel();
        let runs = Arc::default();
        let open = (0..plan.machines).map(|_| machine(server, plan, &runs, &tell)).collect();
        Self { open, runs, begun }
    }

    /// Returns the queue of the first one.
    pub(crate) fn queue(&self) -> &JobQueue {
        &self.open[0].0
    }

    /// Returns how many jobs have run.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) fn wait_for(&self, count: usize) {
        while self.runs() < count {
            sleep(Duration::from_micros(200));
        }
    }

    pub(crate) fn shut_down(self) {
        for (queue, _executor) in self.open {
            queue.shutdown_within(punctual::Grace::patience(Duration::from_secs(30))).unwrap();
        }
    }
}

fn machine(
    server: &Server,
    plan: Plan,
    runs: &Arc<AtomicUsize>,
    tell: &Sender<(u64, u64)>,
) -> (JobQueue, ScheduledThreadPoolExecutor) {
    let executor = ScheduledThreadPoolExecutor::new(plan.slots);
    let (runs, tell) = (Arc::clone(runs), tell.clone());
    let jobs = Jobs::new().on(move |_: &JobRun, job: Nothing| {
        if job.sent > 0 {
            let _ = tell.send((job.sent, micros()));
        }
        if !plan.nap.is_zero() {
            sleep(plan.nap);
        }
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let jobs = match plan.limit {
        Some(limit) => jobs.limit::<Nothing>(limit),
        None => jobs,
    };
    let postgres = Postgres::on(&executor, server.url()).slots(plan.slots);
    let postgres = match plan.history {
        Some(keep) => postgres.history(keep),
        None => postgres,
    };
    (jobs.open(postgres).unwrap().into(), executor)
}

/// Returns the wall clock in microseconds since 1970.
pub(crate) fn micros() -> u64 {
    u64::try_from(support::real_micros()).unwrap()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the number that a statement answers with.
pub(crate) fn value(server: &Server, text: &str) -> f64 {
    server.value(text).parse().unwrap()
}

/// Returns how many bytes the server's log has had.
pub(crate) fn logged(server: &Server) -> f64 {
    value(server, "select pg_current_wal_insert_lsn() - '0/0'")
}
