//! Compares the executor with a model, a sorted list: after the same operations, in any order, the
//! same tasks run at the same times, in the same order, and have the same fate.
//!
//! After each step the clock says when all that was due has run; then everything that can be seen
//! is compared. A body that panics resumes a panic that never began, so that none is reported.

use std::{
    mem, panic,
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use punctual::{
    CancelReason, ManualClock, RejectionReason, ScheduledFuture, ScheduledThreadPoolExecutor,
    TaskError, TaskHandle, TaskId, TaskState,
};

use crate::support::{Drops, hold, manual, ms};

/// How a task is to run again.
#[derive(Clone, Copy, Debug)]
enum Again {
    Never,
    Rate(u64),
    Delay(u64),
}

/// The act of a task's body in one of its runs.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Panic,
    /// Cancels a task that was admitted, perhaps this one; tasks are named likewise everywhere.
    Cancel(usize),
    Shutdown,
}

#[derive(Clone, Debug)]
enum Step {
    /// A delay, how the task repeats, and what the body does in which run, if anything.
    Schedule(u64, Again, Option<(u32, Deed)>),
    Cancel(usize),
    Claim(usize),
    DropFuture(usize),
    /// Advances in one jump.
    Leap(u64),
    /// Advances from deadline to deadline.
    Walk(u64),
    KeepDelayed(bool),
    KeepPeriodic(bool),
    Resize(usize),
    Shutdown,
    ShutdownNow,
}

/// Delays that are zero, short, shared with others, long, or infinite: `u64::MAX`.
fn delays() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 6 => 1..6_u64, 2 => Just(5), 2 => 10..80_u64, 1 => Just(u64::MAX)]
}

fn steps(most_workers: usize) -> impl Strategy<Value = Vec<Step>> {
    let again = prop_oneof![
        3 => Just(Again::Never),
        1 => (1..9_u64).prop_map(Again::Rate),
        1 => (1..9_u64).prop_map(Again::Delay),
    ];
    // With several workers these actions would have no order.
    let deed = if most_workers == 1 {
        let cancel = any::<usize>().prop_map(Deed::Cancel);
        prop_oneof![4 => Just(Deed::Panic), 6 => cancel, 1 => Just(Deed::Shutdown)].boxed()
    } else {
        Just(Deed::Panic).boxed()
    };
    let deed = proptest::option::weighted(0.3, (1..4_u32, deed));
    let schedule =
        (delays(), again, deed).prop_map(|(delay, again, deed)| Step::Schedule(delay, again, deed));
    let step = prop_oneof![
        20 => schedule,
        5 => any::<usize>().prop_map(Step::Cancel),
        3 => any::<usize>().prop_map(Step::Claim),
        2 => any::<usize>().prop_map(Step::DropFuture),
        4 => (0..40_u64).prop_map(Step::Leap),
        4 => (0..40_u64).prop_map(Step::Walk),
        1 => any::<bool>().prop_map(Step::KeepDelayed),
        1 => any::<bool>().prop_map(Step::KeepPeriodic),
        1 => (0..=most_workers).prop_map(Step::Resize),
        1 => Just(Step::Shutdown),
    ];
    let step = prop_oneof![80 => step, 1 => Just(Step::ShutdownNow)];
    proptest::collection::vec(step, 0..80)
}

fn delay_of(millis: u64) -> Duration {
    if millis == u64::MAX { Duration::MAX } else { ms(millis) }
}

/// A task, as the model knows it.
struct Known {
    id: TaskId,
    again: Again,
    deed: Option<(u32, Deed)>,
    runs: u32,
    state: Standing,
    /// Whether the result has been taken.
    is_claimed: bool,
    future: Option<ScheduledFuture<()>>,
}

/// The state of a task in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Until that moment; `u64::MAX` stands for never.
    Waits(u64),
    Runs,
    Completed,
    Panicked,
    Cancelled(CancelReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    ShuttingDown,
    Stopping,
}

/// An executor, and the model of what it should have done.
struct Both {
    clock: ManualClock,
    executor: ScheduledThreadPoolExecutor,
    /// The tasks that have run since the last comparison, and when.
    seen: Arc<Mutex<Vec<(usize, u64)>>>,
    expected: Vec<(usize, u64)>,
    now: u64,
    tasks: Vec<Known>,
    handles: Arc<Mutex<Vec<TaskHandle>>>,
    drops: Drops,
    phase: Phase,
    keep_delayed: bool,
    keep_periodic: bool,
    /// Returns `true` if the pool discards a periodic task between its runs.
    is_closed: bool,
    rejected: u64,
}

impl Known {
    fn waits(&self) -> Option<u64> {
        if let Standing::Waits(until) = self.state { Some(until) } else { None }
    }

    fn is_done(&self) -> bool {
        !matches!(self.state, Standing::Waits(_) | Standing::Runs)
    }

    /// The body has returned.
    fn rest(&mut self, planned: u64, now: u64) {
        self.state = match self.again {
            Again::Never => Standing::Completed,
            Again::Rate(period) => Standing::Waits(planned + period),
            Again::Delay(delay) => Standing::Waits(now + delay),
        };
    }

    fn task_state(&self) -> TaskState {
        match self.state {
            Standing::Waits(_) => TaskState::Scheduled,
            Standing::Runs => TaskState::Running,
            Standing::Completed => TaskState::Completed,
            Standing::Panicked => TaskState::Failed,
            Standing::Cancelled(_) => TaskState::Cancelled,
        }
    }
}

impl Both {
    fn new(workers: usize) -> Self {
        let (clock, executor) = manual(workers);
        Self {
            clock,
            executor,
            seen: Arc::default(),
            expected: Vec::new(),
            now: 0,
            tasks: Vec::new(),
            handles: Arc::default(),
            drops: Drops::new(),
            phase: Phase::Running,
            keep_delayed: true,
            keep_periodic: false,
            is_closed: false,
            rejected: 0,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Schedule(delay, again, panics) => self.schedule(delay, again, panics),
            Step::Cancel(which) => self.cancel(which),
            Step::Claim(which) => self.claim(which),
            Step::DropFuture(which) => {
                self.any(which).into_iter().for_each(|task| task.future = None);
            }
            Step::Leap(millis) => {
                self.clock.advance(ms(millis));
                self.now += millis;
            }
            Step::Walk(millis) => {
                self.clock.run_for(ms(millis));
                self.walk_to(self.now + millis);
            }
            Step::KeepDelayed(keep) => {
                self.executor.set_executes_existing_delayed_tasks_after_shutdown(keep);
                self.keep_delayed = keep;
                self.end_what_is_not_kept();
            }
            Step::KeepPeriodic(keep) => {
                self.executor.set_continues_existing_periodic_tasks_after_shutdown(keep);
                self.keep_periodic = keep;
                self.end_what_is_not_kept();
            }
            Step::Resize(workers) => self.executor.set_core_pool_size(workers),
            Step::Shutdown => {
                self.executor.shutdown();
                self.is_shut_down();
            }
            Step::ShutdownNow => {
                let given_back = self.executor.shutdown_now().count();
                let waited = self.cancel_where(CancelReason::ShutdownNow, |_| true);
                assert_eq!(given_back, waited);
                self.phase = Phase::Stopping;
            }
        }
    }

    fn schedule(&mut self, delay: u64, again: Again, deed: Option<(u32, Deed)>) {
        let (body, first) = (self.body(deed), delay_of(delay));
        // A body that looks for a handle waits until the handle is there.
        let handles = Arc::clone(&self.handles);
        let mut handles = handles.lock().expect("nobody panics");
        let executor = &self.executor;
        let scheduled = match again {
            Again::Never => executor.schedule(first, body),
            Again::Rate(period) => executor.schedule_at_fixed_rate(first, ms(period), body),
            Again::Delay(delay) => executor.schedule_with_fixed_delay(first, ms(delay), body),
        };
        match scheduled {
            Ok(future) => {
                assert_eq!(self.phase, Phase::Running);
                let (id, state) = (future.id(), Standing::Waits(self.now.saturating_add(delay)));
                handles.push(future.task_handle());
                let (runs, is_claimed, future) = (0, false, Some(future));
                self.tasks.push(Known { id, again, deed, runs, state, is_claimed, future });
            }
            Err(error) => {
                assert!(matches!(error.reason(), RejectionReason::Shutdown));
                assert_ne!(self.phase, Phase::Running);
                self.rejected += 1;
            }
        }
    }

    /// The body of the task that is admitted next.
    fn body(&self, deed: Option<(u32, Deed)>) -> impl FnMut() + Send + 'static {
        let (number, token, clock) = (self.tasks.len(), self.drops.token(), self.clock.clone());
        let (seen, handles) = (Arc::clone(&self.seen), Arc::clone(&self.handles));
        let (executor, mut runs) = (self.executor.handle(), 0);
        move || {
            hold(&token);
            seen.lock().expect("nobody panics").push((number, clock.elapsed().as_millis() as u64));
            runs += 1;
            match deed.filter(|(run, _)| *run == runs) {
                None => {}
                Some((_, Deed::Panic)) => panic::resume_unwind(Box::new("as it was told")),
                Some((_, Deed::Shutdown)) => executor.shutdown(),
                Some((_, Deed::Cancel(which))) => {
                    let handles = handles.lock().expect("nobody panics");
                    let handle = handles[which % handles.len()].clone();
                    drop(handles);
                    handle.cancel();
                }
            }
        }
    }

    /// Names a task that was admitted.
    fn any(&mut self, which: usize) -> Option<&mut Known> {
        let count = self.tasks.len().max(1);
        self.tasks.get_mut(which % count)
    }

    fn cancel(&mut self, which: usize) {
        let Some(task) = self.any(which) else { return };
        let Some(future) = &task.future else { return };
        assert_eq!(future.cancel(), !task.is_done());
        self.is_cancelled(which);
    }

    /// Records that a task was cancelled.
    fn is_cancelled(&mut self, which: usize) {
        if let Some(task) = self.any(which).filter(|task| !task.is_done()) {
            task.state = Standing::Cancelled(CancelReason::Requested);
        }
    }

    fn claim(&mut self, which: usize) {
        let Some(task) = self.any(which) else { return };
        let Some(future) = &task.future else { return };
        match (future.try_join(), task.state) {
            (None, Standing::Waits(_)) => return,
            (Some(Err(TaskError::Cancelled(why))), Standing::Cancelled(expected)) => {
                assert_eq!(why, expected);
            }
            (Some(Err(TaskError::ResultTaken)), _) => assert!(task.is_claimed),
            (Some(Ok(())), Standing::Completed) => assert!(!task.is_claimed),
            (Some(Err(TaskError::Failed(_))), Standing::Panicked) => assert!(!task.is_claimed),
            (outcome, state) => panic!("{outcome:?} of one that is {state:?}"),
        }
        task.is_claimed = true;
    }

    fn is_shut_down(&mut self) {
        self.phase = self.phase.max(Phase::ShuttingDown);
        self.end_what_is_not_kept();
    }

    /// Ends the tasks that a shutdown ends, or a policy that is changed after it.
    fn end_what_is_not_kept(&mut self) {
        if self.phase != Phase::ShuttingDown {
            return;
        }
        let (keep_delayed, keep_periodic, now) = (self.keep_delayed, self.keep_periodic, self.now);
        self.is_closed |= !keep_periodic;
        self.cancel_where(CancelReason::Shutdown, |task| match task.again {
            Again::Never => !keep_delayed && task.waits() > Some(now),
            Again::Rate(_) | Again::Delay(_) => !keep_periodic,
        });
    }

    /// How many there were.
    fn cancel_where(&mut self, why: CancelReason, is_unwanted: impl Fn(&Known) -> bool) -> usize {
        let waiting = self.tasks.iter_mut().filter(|task| task.waits().is_some());
        let ended = waiting.filter(|task| is_unwanted(task));
        ended.map(|task| task.state = Standing::Cancelled(why)).count()
    }

    /// The pending tasks as numbers, in due order.
    fn waiting(&self) -> Vec<(u64, usize)> {
        let tasks = self.tasks.iter().enumerate();
        let mut waiting: Vec<_> =
            tasks.filter_map(|(number, task)| Some((task.waits()?, number))).collect();
        waiting.sort_unstable();
        waiting
    }

    /// Runs everything that is due, in order.
    fn settle(&mut self) {
        while let Some((planned, number)) = self.waiting().first().copied() {
            if planned > self.now {
                return;
            }
            self.expected.push((number, self.now));
            self.run(number, planned);
        }
    }

    fn run(&mut self, number: usize, planned: u64) {
        let task = &mut self.tasks[number];
        task.runs += 1;
        task.state = Standing::Runs;
        match task.deed.filter(|(run, _)| *run == task.runs) {
            None => {}
            Some((_, Deed::Panic)) => task.state = Standing::Panicked,
            Some((_, Deed::Shutdown)) => self.is_shut_down(),
            Some((_, Deed::Cancel(which))) => self.is_cancelled(which),
        }
        let task = &mut self.tasks[number];
        if task.state == Standing::Runs {
            task.rest(planned, self.now);
            if self.is_closed && task.waits().is_some() {
                task.state = Standing::Cancelled(CancelReason::Shutdown);
            }
        }
    }

    fn walk_to(&mut self, end: u64) {
        self.settle();
        while let Some((next, _)) = self.waiting().first().copied().filter(|(at, _)| *at <= end) {
            self.now = next;
            self.settle();
        }
        self.now = end;
    }

    /// Waits until all due tasks have run, on both sides, and compares everything observable.
    fn compare(&mut self, is_ordered: bool) {
        self.clock.run_until_idle();
        self.settle();
        let mut seen = mem::take(&mut *self.seen.lock().expect("nobody panics"));
        let mut expected = mem::take(&mut self.expected);
        if !is_ordered {
            seen.sort_unstable_by_key(|(number, at)| (*at, *number));
            expected.sort_unstable_by_key(|(number, at)| (*at, *number));
        }
        assert_eq!(seen, expected, "what has run");
        let waiting = self.waiting();
        let listed: Vec<_> = self.executor.pending_tasks().iter().map(|task| task.id()).collect();
        let ids: Vec<_> = waiting.iter().map(|(_, number)| self.tasks[*number].id).collect();
        assert_eq!(listed, ids, "what waits");
        for task in &self.tasks {
            let Some(future) = &task.future else { continue };
            assert_eq!(future.state(), task.task_state());
            let due = task.waits().filter(|at| *at < u64::MAX);
            assert_eq!(future.delay(), due.map(|at| ms(at - self.now)));
        }
        let is_over = self.phase != Phase::Running && waiting.is_empty();
        assert_eq!(self.executor.is_terminated(), is_over);
        self.compare_counts(waiting.len());
    }

    fn compare_counts(&self, waiting: usize) {
        let now = self.executor.statistics();
        let count = |is_such: fn(Standing) -> bool| {
            self.tasks.iter().filter(|task| is_such(task.state)).count() as u64
        };
        assert_eq!((now.submitted, now.rejected), (self.tasks.len() as u64, self.rejected));
        assert_eq!((now.pending, now.active), (waiting, 0));
        assert_eq!(now.completed, count(|state| state == Standing::Completed));
        assert_eq!(now.failed, count(|state| state == Standing::Panicked));
        assert_eq!(now.cancelled, count(|state| matches!(state, Standing::Cancelled(_))));
        assert_eq!(now.runs, self.tasks.iter().map(|task| u64::from(task.runs)).sum::<u64>());
        let gone = self.tasks.len() as u64 + self.rejected - waiting as u64;
        assert_eq!(self.drops.count() as u64, gone, "captures that are gone");
    }

    /// Drops the executor, after which every task has one fate.
    fn end(mut self) {
        self.cancel_where(CancelReason::ExecutorDropped, |_| true);
        drop(self.executor);
        for task in &self.tasks {
            let Some(future) = &task.future else { continue };
            assert_eq!(future.state(), task.task_state());
            if let Standing::Cancelled(expected) = task.state {
                let outcome = future.try_join().expect("it has ended");
                assert!(matches!(outcome, Err(TaskError::Cancelled(why)) if why == expected));
            }
        }
        assert_eq!(self.drops.count() as u64, self.tasks.len() as u64 + self.rejected);
        assert!(self.seen.lock().expect("nobody panics").is_empty());
    }
}

fn is_explained(workers: usize, steps: Vec<Step>) {
    let mut both = Both::new(workers);
    for step in steps {
        both.step(step);
        both.compare(workers == 1);
    }
    both.end();
}

proptest! {
    /// With one worker: which tasks run, when, and in which order.
    #[test]
    fn every_history_of_one_worker_is_explained_by_a_sorted_list(steps in steps(1)) {
        is_explained(1, steps);
    }

    /// With several workers: which tasks run, and when.
    #[test]
    fn every_history_of_several_workers_is_explained_by_a_sorted_list(steps in steps(3)) {
        is_explained(3, steps);
    }
}
