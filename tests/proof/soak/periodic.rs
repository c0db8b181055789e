//! Periodic tasks: at a fixed rate or with a fixed delay, with every policy; some panic, some time
//! out, some are cancelled from outside and some from inside.

use std::{
    panic::panic_any,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use punctual::{CancelReason, FailurePolicy, MissedRuns, ScheduledFuture, TaskError, TaskHandle};

use crate::{
    dice::Dice,
    ledger::{Capture, Meant},
    soak::{Settle, Soak, eventually},
    tasks::Work,
};

/// The plan of a periodic task.
#[derive(Clone, Copy, Debug)]
struct Course {
    initial: Duration,
    period: Duration,
    is_fixed_rate: bool,
    /// Each run whose number is a multiple of this panics.
    panics: Option<u64>,
    /// The run of this number is the last: it cancels the periodic task.
    cancels: Option<u64>,
    on_failure: FailurePolicy,
    missed: MissedRuns,
    limit: Option<Duration>,
}

impl Course {
    fn any(dice: &mut Dice) -> Self {
        use MissedRuns::{Burst, Coalesce, Delay, Skip};
        let ms = Duration::from_millis;
        let policies = [
            FailurePolicy::stop(),
            FailurePolicy::resume(),
            FailurePolicy::resume().stop_after(2),
            FailurePolicy::resume().back_off(ms(1)..=ms(20)), // longer than any period
        ];
        Self {
            initial: dice.up_to_ms(10),
            period: Duration::from_micros(200) + dice.up_to_ms(15),
            is_fixed_rate: dice.one_in(2),
            panics: dice.one_in(3).then(|| 1 + dice.roll(5)),
            cancels: dice.one_in(4).then(|| 1 + dice.roll(5)),
            on_failure: dice.any(&policies),
            missed: dice.any(&[Burst, Coalesce, Delay, Skip]),
            limit: dice.one_in(5).then(|| dice.up_to_ms(3)),
        }
    }
}

/// The state that the body of a periodic task uses.
struct Runner {
    soak: Arc<Soak>,
    capture: Capture,
    course: Course,
    /// The earliest time of the first run.
    first: Instant,
    runs: Arc<AtomicU64>,
    last_end: Option<Instant>,
    is_running: AtomicBool,
    own: Arc<OnceLock<TaskHandle>>,
}

impl Runner {
    fn run(&mut self, work: Work) {
        if self.is_running.swap(true, Ordering::SeqCst) {
            self.soak.ledger.complain("two runs of a periodic task overlap");
        }
        self.capture.begins(self.earliest());
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.soak.ends.runs.add(1);
        work.act();
        if self.course.cancels == Some(run) {
            if let Some(own) = self.own.get() {
                own.cancel();
            }
        }
        self.last_end = Some(Instant::now());
        self.is_running.store(false, Ordering::SeqCst);
        if self.course.panics.is_some_and(|number| run % number == 0) {
            panic_any(Meant);
        }
    }

    /// The earliest time of the next run: missed runs and waits after panics make it later, never
    /// earlier.
    fn earliest(&self) -> Instant {
        let period = self.course.period;
        match self.last_end {
            Some(end) if !self.course.is_fixed_rate => end + period,
            _ => self.first + period * self.runs.load(Ordering::SeqCst) as u32,
        }
    }
}

/// A periodic task that continues until it is cancelled, unless it has ended by then.
pub(crate) fn periodic(soak: &Arc<Soak>, dice: &mut Dice) -> Option<Settle> {
    let course = Course::any(dice);
    let work = Some(Work::any(dice)).filter(|work| *work != Work::Panic).unwrap_or(Work::Nothing);
    let (own, runs) = (Arc::new(OnceLock::new()), Arc::new(AtomicU64::new(0)));
    let mut runner = Runner {
        soak: Arc::clone(soak),
        capture: soak.ledger.enter("a periodic task", None),
        course,
        first: Instant::now() + course.initial,
        runs: Arc::clone(&runs),
        last_end: None,
        is_running: AtomicBool::new(false),
        own: Arc::clone(&own),
    };
    let id = runner.capture.id();
    let body = move || runner.run(work);
    let mut task = soak.pool.task().on_failure(course.on_failure).missed_runs(course.missed);
    task = match course.limit {
        Some(limit) => task.timeout(limit),
        None => task,
    };
    let future = soak.accepted(if course.is_fixed_rate {
        task.schedule_at_fixed_rate(course.initial, course.period, body)
    } else {
        task.schedule_with_fixed_delay(course.initial, course.period, body)
    })?;
    _ = own.set(future.task_handle());
    Some(Box::new(move |soak, dice| {
        let goes_on = || future.is_done() || runs.load(Ordering::SeqCst) > 1;
        // One that leaves late runs out may never run on a machine that is always late.
        let must_run = course.missed != MissedRuns::Skip;
        if dice.one_in(4) && must_run && !eventually(goes_on) {
            let (state, runs) = (future.state(), runs.load(Ordering::SeqCst));
            let handle = future.task_handle();
            soak.ledger.complain(format!(
                "a periodic task does not go on: {handle:?}, {state:?} after {runs} runs, {course:?}"
            ));
        }
        end(soak, id, course, &future);
    }))
}

fn end(soak: &Soak, id: u64, course: Course, future: &ScheduledFuture<()>) {
    let is_cancelled = future.cancel();
    soak.ledger.expect_soon(id);
    let Some(end) = future.try_join() else {
        return soak.ledger.complain("a periodic task that was cancelled has not ended");
    };
    let (may_time_out, cancels) = (course.limit.is_some(), course.cancels.is_some());
    let is_right = match &end {
        Err(TaskError::Failed(_)) => !is_cancelled && (may_time_out || course.panics.is_some()),
        Err(TaskError::Cancelled(CancelReason::Requested)) => is_cancelled || cancels,
        Err(error) => error.is_timeout() && may_time_out && !is_cancelled,
        Ok(()) => false,
    };
    if !is_right {
        soak.ledger.complain(format!("a periodic task ended with {end:?}; {course:?}"));
    }
    soak.ended_as("a periodic task", future.state(), matches!(end, Err(TaskError::Failed(_))));
    soak.ends.timed_out.add(matches!(end, Err(error) if error.is_timeout()).into());
}
