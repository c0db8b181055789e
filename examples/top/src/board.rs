//! The tasks of an executor, as the view knows them.
//!
//! The executor counts ([`statistics`](punctual::Handle::statistics)), and a task handle knows the state and the next
//! run. How late each run was and how long it took is recorded here, in two hooks around every run. They write
//! under a lock that the view takes some four times a second, for microseconds.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use punctual::{
    Builder, Clock, Failure, FailureReport, Handle, Statistics, TaskContext, TaskHandle, TaskId,
    TaskState,
};

/// How many runs of each task are remembered: more than a terminal has columns.
const REMEMBERED: usize = 512;

/// The records of all tasks; clones share them.
#[derive(Clone)]
pub(crate) struct Board {
    clock: Clock,
    begun: Instant,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    records: HashMap<TaskId, Record>,
    last_failure: Option<String>,
}

/// The records of one task.
#[derive(Default)]
struct Record {
    started: Option<Instant>,
    lateness: VecDeque<Duration>,
    run_time: Option<Duration>,
    runs: u64,
    failures: u64,
}

/// Everything that the view shows, at one moment.
pub(crate) struct Snapshot {
    pub(crate) up: Duration,
    pub(crate) counts: Statistics,
    pub(crate) rows: Vec<Row>,
    pub(crate) last_failure: Option<String>,
}

/// One task, as it is shown.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) state: TaskState,
    /// None if the task is not going to run.
    pub(crate) next_run: Option<Duration>,
    pub(crate) run_time: Option<Duration>,
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    /// How late each of the last runs was, the last one last.
    pub(crate) lateness: Vec<Duration>,
}

impl Board {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), begun: clock.now(), kept: Arc::default() }
    }

    /// Adds the hooks that record each run.
    pub(crate) fn watch(&self, builder: Builder) -> Builder {
        let [before, after, failed] = [(); 3].map(|()| self.clone());
        builder
            .before_execute(move |task: &TaskContext| before.begin(task))
            .after_execute(move |task: &TaskContext, outcome: Result<(), &Failure>| {
                after.end(task, outcome.is_err());
            })
            .failure_handler(move |report: &FailureReport<'_>| failed.fail(report))
    }

    fn begin(&self, task: &TaskContext) {
        let now = self.clock.now();
        let mut kept = self.lock();
        let record = kept.records.entry(task.id()).or_default();
        record.started = Some(now);
        if record.lateness.len() == REMEMBERED {
            record.lateness.pop_front();
        }
        record.lateness.push_back(task.lateness());
    }

    fn end(&self, task: &TaskContext, is_failure: bool) {
        let now = self.clock.now();
        let mut kept = self.lock();
        let record = kept.records.entry(task.id()).or_default();
        record.run_time = record.started.take().map(|started| now - started);
        record.runs += 1;
        record.failures += u64::from(is_failure);
    }

    fn fail(&self, report: &FailureReport<'_>) {
        let name = report.task_name().unwrap_or_else(|| "a task without a name".into());
        let run = report.run_number().map_or_else(String::new, |run| format!(", run {run}"));
        self.lock().last_failure = Some(format!("{name}{run}: {}", report.message()));
    }

    /// Returns what there is to see of an executor and of these tasks.
    pub(crate) fn snapshot(&self, executor: &Handle, tasks: &[TaskHandle]) -> Snapshot {
        // The tasks first: asking each takes its lock, which is not to be done under this one.
        let seen: Vec<_> =
            tasks.iter().map(|task| (task.id(), task.name(), task.state(), task.delay())).collect();
        let counts = executor.statistics();
        let kept = self.lock();
        let nothing = Record::default();
        let row = |(id, name, state, delay): (_, Option<Arc<str>>, _, Option<Duration>)| {
            let record = kept.records.get(&id).unwrap_or(&nothing);
            Row {
                name: name.map_or_else(String::new, |name| name.to_string()),
                state,
                next_run: delay,
                run_time: record.run_time,
                runs: record.runs,
                failures: record.failures,
                lateness: record.lateness.iter().copied().collect(),
            }
        };
        Snapshot {
            up: self.clock.now() - self.begun,
            counts,
            rows: seen.into_iter().map(row).collect(),
            last_failure: kept.last_failure.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics under it.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
