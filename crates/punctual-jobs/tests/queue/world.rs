//! The scene of a case: a queue on one of the engines, an executor, and a clock.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use punctual::{CancellationToken, Grace, Handle, ManualClock, ScheduledThreadPoolExecutor};
use punctual_jobs::{InMemory, Job, JobError, JobQueue, JobRun, Jobs, OpenError, ShutdownReport};
use serde::{Deserialize, Serialize};

pub(crate) use crate::patience::LONG;

pub(crate) const SHORT: Duration = Duration::from_millis(100);
/// No test waits for it.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The events, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.0.lock().unwrap().iter().any(|other| other == line)
    }
}

/// A queue on one of the engines.
pub(crate) trait World: Sized {
    /// The spans of a case in which one thing has to be asked for before another one is due. In real time the machine may
    /// stand still between the two, and the next span is longer.
    const SPANS: &[Duration];
    /// Opens a queue of four threads on these definitions.
    fn try_open(jobs: impl Fn(&Scene) -> Jobs) -> Result<Self, OpenError>;
    fn queue(&self) -> &JobQueue;
    fn scene(&self) -> &Scene;
    /// Blocks until the condition holds, and lets time pass.
    fn until(&self, what: &str, condition: impl FnMut() -> bool);
    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport;

    fn open(jobs: impl Fn(&Scene) -> Jobs) -> Self {
        Self::try_open(jobs).unwrap()
    }

    fn log(&self) -> &Log {
        &self.scene().log
    }

    /// Waits until the log has these lines, and no others.
    fn expect(&self, lines: &[&str]) {
        self.until(&format!("{lines:?}"), || self.log().len() >= lines.len());
        assert_eq!(self.log().lines(), lines);
    }

    fn now(&self) -> Instant {
        self.scene().executor.clock().now()
    }

    fn wall(&self) -> SystemTime {
        self.scene().executor.clock().wall_time()
    }

    /// Waits until everything has run that is due, by a job that is due later than all others.
    fn settle(&self) {
        self.queue().after(2 * SHORT, Note::new("settled")).enqueue().unwrap();
        self.until("settled", || self.log().has("settled"));
    }
}

/// Tries the spans of a world until the case holds with one of them.
pub(crate) fn for_some_span<W: World>(holds: impl FnMut(Duration) -> bool) {
    let held = W::SPANS.iter().copied().any(holds);
    assert!(held, "not with any of {:?}", W::SPANS);
}

/// The things that handlers need.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) log: Log,
    pub(crate) executor: Handle,
    /// Handlers of `Hold` wait until this is cancelled.
    pub(crate) gate: CancellationToken,
}

impl Scene {
    pub(crate) fn on(executor: &Handle) -> Self {
        let gate = CancellationToken::with_clock(executor.clock().clone());
        Self { log: Log::default(), executor: executor.clone(), gate }
    }

    /// Waits for the gate, or for the token of the run, which ever comes first.
    pub(crate) fn hold(&self, run: &JobRun) -> bool {
        while !self.gate.is_cancelled() {
            if run.token().sleep(Duration::from_millis(5)).is_err() {
                return false;
            }
        }
        true
    }
}

/// Says its text.
#[derive(Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) text: String,
}

impl Note {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

impl Job for Note {
    const NAME: &'static str = "note";
}

/// Says its text and the attempt, and fails as often as it says.
#[derive(Serialize, Deserialize)]
pub(crate) struct Flaky {
    pub(crate) text: String,
    pub(crate) fails: u32,
}

impl Flaky {
    pub(crate) fn new(text: &str, fails: u32) -> Self {
        Self { text: text.to_owned(), fails }
    }
}

impl Job for Flaky {
    const NAME: &'static str = "flaky";
}

/// Begins, and ends when the gate is opened, or fails when its token is cancelled.
#[derive(Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) text: String,
    /// Succeeds also if its token is cancelled.
    pub(crate) forgives: bool,
    /// Fails when the gate is opened.
    pub(crate) fails: bool,
}

impl Hold {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), forgives: false, fails: false }
    }

    pub(crate) fn that_forgives(text: &str) -> Self {
        Self { forgives: true, ..Self::new(text) }
    }

    pub(crate) fn that_fails(text: &str) -> Self {
        Self { fails: true, ..Self::new(text) }
    }
}

impl Job for Hold {
    const NAME: &'static str = "hold";
}

/// The kinds that most cases need.
pub(crate) fn standard(scene: &Scene) -> Jobs {
    let (note, flaky, hold) = (scene.clone(), scene.clone(), scene.clone());
    let discarded = scene.log.clone();
    Jobs::new()
        .on(move |_: &JobRun, job: Note| {
            note.log.say(job.text);
            Ok(())
        })
        .on(move |run: &JobRun, job: Flaky| {
            flaky.log.say(format!("{} {}", job.text, run.attempt));
            if run.attempt <= job.fails { Err(JobError::new("not yet")) } else { Ok(()) }
        })
        .backoff::<Flaky>(punctual::Backoff::constant(SHORT))
        .on(move |run: &JobRun, job: Hold| {
            hold.log.say(format!("{} begins", job.text));
            let was_opened = hold.hold(run);
            let how = if was_opened { "ends" } else { "is stopped" };
            hold.log.say(format!("{} {how}", job.text));
            let is_well = if was_opened { !job.fails } else { job.forgives };
            if is_well { Ok(()) } else { Err(JobError::new("stopped")) }
        })
        .backoff::<Hold>(punctual::Backoff::constant(SHORT))
        .on_discarded(move |job| {
            discarded.say(format!("{} is discarded after {}", job.name, job.attempts));
        })
}

/// The in-memory queue, on the manual clock.
pub(crate) struct InProcess {
    queue: Option<JobQueue>,
    scene: Scene,
    clock: ManualClock,
    _executor: ScheduledThreadPoolExecutor,
}

impl InProcess {
    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Drops the queue, and returns how many tasks are pending then.
    pub(crate) fn close_queue(&mut self) -> usize {
        drop(self.queue.take());
        self.scene.executor.statistics().pending
    }
}

impl Drop for InProcess {
    /// The executor waits for handlers that sleep, so time has to go on.
    fn drop(&mut self) {
        self.scene.gate.cancel();
        self.clock.set_auto_advance(true);
    }
}

impl World for InProcess {
    const SPANS: &[Duration] = &[SHORT];

    fn try_open(jobs: impl Fn(&Scene) -> Jobs) -> Result<Self, OpenError> {
        let clock = ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(4);
        let executor = builder.clock(clock.clone()).build().unwrap();
        let scene = Scene::on(&executor);
        let queue =
            jobs(&scene).open(InMemory::on(&executor).history(Duration::from_secs(3600)))?;
        Ok(Self { queue: Some(queue), scene, clock, _executor: executor })
    }

    fn queue(&self) -> &JobQueue {
        self.queue.as_ref().unwrap()
    }

    fn scene(&self) -> &Scene {
        &self.scene
    }

    fn until(&self, what: &str, condition: impl FnMut() -> bool) {
        assert!(self.clock.run_until(condition), "no {what}: {:?}", self.log().lines());
    }

    fn shutdown(&self, patience: Duration, grace: Duration) -> ShutdownReport {
        self.clock.set_auto_advance(true);
        let report = self.queue().shutdown_within(Grace::patience(patience).then(grace)).unwrap();
        self.clock.set_auto_advance(false);
        report
    }
}
