//! A feature by the recipe in `CONTRIBUTING.md`, compiled for the tests alone: a rate limit, at most so many runs of a
//! task in a span of time. A run that would exceed the limit is planned for the moment when it no longer would. The
//! feature is asked after the group, to show that a feature may refuse a run that already has its permit.

use std::{collections::VecDeque, rc::Rc, time::Duration};

use super::Gated;
use crate::{
    CancellationToken, Clock, ManualClock, gate,
    schedule::{MissedRuns, Schedule},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Around, Call, Hooks, Node, Plan, Run, Task, Verdict, WorkerContext},
    time::Timestamp,
};

pub(crate) struct RateLimit {
    most: usize,
    span: Duration,
    /// When the runs of the last span began.
    begun: VecDeque<Timestamp>,
}

impl RateLimit {
    pub(crate) fn before_run(&mut self, call: &Call<'_>) -> Result<(), Verdict> {
        let now = call.run.started();
        while self.begun.front().is_some_and(|first| first.after(self.span) <= now) {
            self.begun.pop_front();
        }
        match self.begun.front() {
            Some(first) if self.begun.len() >= self.most => {
                Err(Verdict::Again(first.after(self.span)))
            }
            _ => {
                self.begun.push_back(now);
                Ok(())
            }
        }
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// Runs a task as a worker would that has taken it for `moment`, on time. Returns the verdict.
fn run(task: &Arc<Task>, moment: Timestamp) -> Verdict {
    let manual = ManualClock::from_zero();
    manual.advance(Duration::from_nanos(moment.as_nanos()));
    let clock = Clock::from(manual);
    let stop = CancellationToken::with_clock(clock.clone());
    let worker = Rc::new(WorkerContext::new(clock, stop, Arc::default(), true));
    let run = Run::new(worker, Arc::clone(task), 1, moment, moment);
    run.task.run(&run, &Hooks::default())
}

#[test]
fn a_run_that_is_one_too_many_waits() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&runs);
    let task: Arc<Task> = Node::repeated(move || _ = counts.fetch_add(1, Ordering::Relaxed));
    let period = Schedule::fixed_rate(Duration::from_secs(10), MissedRuns::Burst);
    task.set_plan(Plan::new(period, None));
    let limit = RateLimit { most: 2, span: Duration::from_secs(60), begun: VecDeque::new() };
    task.extend(|extras| extras.extensions.rate = Some(limit));

    assert_eq!(run(&task, at(0)), Verdict::Again(at(10)));
    assert_eq!(run(&task, at(10)), Verdict::Again(at(20)));
    assert_eq!((run(&task, at(20)), runs.load(Ordering::Relaxed)), (Verdict::Again(at(60)), 2));
    assert_eq!((run(&task, at(60)), runs.load(Ordering::Relaxed)), (Verdict::Again(at(70)), 3));
    assert_eq!((run(&task, at(70)), runs.load(Ordering::Relaxed)), (Verdict::Again(at(80)), 4));
    assert_eq!((run(&task, at(80)), runs.load(Ordering::Relaxed)), (Verdict::Again(at(120)), 4));
}

/// If the gate leaves a run out, the code around the body stays in place for the next run.
#[test]
fn a_wrapper_stays_when_a_run_is_left_out() {
    let (asked, wrapped) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&wrapped);
    let task: Arc<Task> = Node::repeated(|| ());
    let period = Schedule::fixed_rate(Duration::from_secs(10), MissedRuns::Burst);
    task.set_plan(Plan::new(period, None));
    let gate =
        gate::from_fn(move |_: &gate::Tick<'_>| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => gate::Entry::Skip,
            1 => gate::Entry::Again(Duration::from_secs(10)),
            _ => gate::Entry::Run,
        });
    let around = Around::of_wrapper(move |next| {
        counts.fetch_add(1, Ordering::Relaxed);
        next.run()
    });
    task.extend(|extras| {
        extras.extensions.gate = Some(Box::new(Gated::new(Arc::new(gate), Weak::new())));
        extras.around = Some(around);
    });
    let after = [0, 10, 20, 30].map(|moment| {
        assert!(matches!(run(&task, at(moment)), Verdict::Again(_)));
        wrapped.load(Ordering::Relaxed)
    });
    assert_eq!(after, [0, 0, 1, 2]);
}
