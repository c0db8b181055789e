//! A script: a task, and what one thread asks of it. It is drawn from a seed, and played on an executor beside the
//! [model](super::model).

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use punctual::{
    DrivenExecutor, ManualClock, MissedRuns, ScheduledFuture, ScheduledThreadPoolExecutor,
    current_task, trigger,
};

use super::model::{Model, Ran};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Once,
    Rate(u64),
    Delay(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    Burst,
    Coalesce,
    Skip,
    Delay,
    Within(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) kind: Kind,
    pub(super) first: u64,
    pub(super) missed_runs: Missed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Advance(u64),
    /// Runs whatever is due.
    Drive,
    Pause,
    Resume,
    RunNow,
    RunWithin(u64),
    Reschedule(u64),
    SetEvery(u64),
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) task: Task,
    pub(super) calls: Vec<Call>,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }
}

fn seconds(span: u64) -> Duration {
    Duration::from_secs(span)
}

impl Script {
    pub(super) fn draw(seed: u64) -> Self {
        let mut random = Random(seed);
        let kind = match random.below(6) {
            0 => Kind::Once,
            1 => Kind::Delay(1 + random.below(4)),
            _ => Kind::Rate(1 + random.below(4)),
        };
        let missed_runs = match random.below(6) {
            0 => Missed::Burst,
            1 => Missed::Coalesce,
            2 => Missed::Skip,
            3 => Missed::Delay,
            _ => Missed::Within(random.below(4)),
        };
        let task = Task { kind, first: random.below(4), missed_runs };
        let calls = (0..4 + random.below(16)).map(|_| match random.below(20) {
            0..5 => Call::Advance(1 + random.below(4)),
            5 => Call::Advance(9 + random.below(6)),
            6..11 => Call::Drive,
            11 | 12 => Call::Pause,
            13 | 14 => Call::Resume,
            15 | 16 => Call::RunNow,
            17 => Call::RunWithin(random.below(4)),
            18 => match random.below(3) {
                0 => Call::SetEvery(1 + random.below(4)),
                _ => Call::Reschedule(random.below(4)),
            },
            _ => match random.below(8) {
                0 => Call::Cancel,
                _ => Call::RunWithin(random.below(4)),
            },
        });
        Self { task, calls: calls.collect() }
    }

    pub(super) fn play(&self) -> Result<(), String> {
        self.play_beside(Model::new(self.task))
    }

    /// Plays it on an executor, and compares each step with the model.
    ///
    /// # Errors
    ///
    /// What differs.
    pub(super) fn play_beside(&self, mut model: Model) -> Result<(), String> {
        let stage = Stage::new(self.task);
        for (number, call) in self.calls.iter().enumerate() {
            let (answer, expected) = (stage.call(*call), model.call(*call));
            let differs = |what: &str, seen: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
                format!("call {number}, {call:?}: {what} is {seen:?}, and should be {expected:?}")
            };
            if answer != expected {
                return Err(differs("the answer", &answer, &expected));
            }
            let runs = stage.runs.lock().expect("no body panics").clone();
            if runs != model.runs {
                return Err(differs("the list of runs", &runs, &model.runs));
            }
            let missed = stage.executor.borrow().statistics().missed_runs;
            if missed != model.missed {
                return Err(differs("the number of missed runs", &missed, &model.missed));
            }
            let (next, expected) = (stage.next(), model.next_call());
            if next != expected {
                return Err(differs("the next run", &next, &expected));
            }
        }
        Ok(())
    }
}

/// An executor with the task of a script, which this thread drives.
struct Stage {
    clock: ManualClock,
    begun: Instant,
    executor: Rc<RefCell<DrivenExecutor>>,
    future: ScheduledFuture<()>,
    runs: Arc<Mutex<Vec<Ran>>>,
}

impl Stage {
    fn new(Task { kind, first, missed_runs }: Task) -> Self {
        let clock = ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
        let executor = builder.build_driven().expect("valid settings");
        let (begun, runs) = (clock.now(), Arc::new(Mutex::new(Vec::new())));
        let (noted, now) = (Arc::clone(&runs), clock.clone());
        let body = move || {
            let since = |moment: Instant| moment.duration_since(begun).as_secs();
            let run = current_task().expect("it is a task");
            let ran = Ran { at: since(now.now()), planned: run.planned().map_or(u64::MAX, since) };
            noted.lock().expect("no body panics").push(ran);
        };
        let task = executor.task().missed_runs(match missed_runs {
            Missed::Burst => MissedRuns::Burst,
            Missed::Coalesce => MissedRuns::Coalesce,
            Missed::Skip => MissedRuns::Skip,
            Missed::Delay => MissedRuns::Delay,
            Missed::Within(limit) => MissedRuns::Within(seconds(limit)),
        });
        let first = seconds(first);
        let future = match kind {
            Kind::Once => task.schedule(first, body),
            Kind::Rate(period) => task.schedule_at_fixed_rate(first, seconds(period), body),
            Kind::Delay(pause) => task.schedule_with_fixed_delay(first, seconds(pause), body),
        };
        let executor = Rc::new(RefCell::new(executor));
        Self { clock, begun, executor, future: future.expect("it is admitted"), runs }
    }

    fn call(&self, call: Call) -> Answer {
        let future = &self.future;
        let has_effect = match call {
            Call::Advance(span) => {
                self.clock.advance(seconds(span));
                true
            }
            Call::Drive => {
                let mut executor = self.executor.borrow_mut();
                while executor.time_until_next() == Some(Duration::ZERO) {
                    executor.run_due();
                }
                true
            }
            Call::Pause => future.pause(),
            Call::Resume => future.resume(),
            Call::RunNow => future.run_now(),
            Call::RunWithin(span) => future.run_within(seconds(span)),
            Call::Reschedule(span) => future.reschedule(seconds(span)),
            Call::SetEvery(period) => future.set_trigger(trigger::every(seconds(period))),
            Call::Cancel => future.cancel(),
        };
        if has_effect { Answer::Yes } else { Answer::No }
    }

    /// When the executor wants to be called next.
    fn next(&self) -> Option<u64> {
        let next = self.executor.borrow_mut().next_deadline()?;
        Some(next.duration_since(self.begun).as_secs())
    }
}
