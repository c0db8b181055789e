//! One run of a scenario: the actors go through their steps, and then everything must end with no
//! more help than the passage of time.
//!
//! The first actor, the *director*, never waits for tasks: it moves the clock when every other
//! actor waits. Before it cancels anything or shuts anything down, every task that was due must
//! have been dealt with: a shutdown wakes every thread, and would hide a waiter that was not woken.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex as Notes, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use punctual::{
    AbortPolicy, BlockPolicy, Builder, CallerRunsPolicy, CancellationToken, DiscardOldestPolicy,
    DiscardPolicy, Group, Handle, ManualClock, PendingTask, ScheduledThreadPoolExecutor,
};
use shuttle::{
    sync::{Condvar, Mutex},
    thread,
};

use crate::{
    callbacks::{Callbacks, with_hooks},
    driver,
    ledger::{Future, Ledger, Record},
    scenario::{Faults, PoolPlan, Refusal, Scenario, Steps},
    tasks::{KEPT, Receipt},
};

/// A span longer than any finite delay, and than all sleeps of the bodies together.
pub(crate) const LONG: Steps = Steps(60);
/// The number of advances of the clock after which an unfinished scenario counts as hanging.
pub(crate) const ROUNDS: usize = 50;

/// The state that all threads of a scenario share.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    /// What the clock showed at first.
    pub(crate) begin: Instant,
    pub(crate) handle: Handle,
    pub(crate) groups: Vec<Group>,
    pub(crate) pool: PoolPlan,
    pub(crate) callbacks: Callbacks,
    /// `true` if a submission may have to wait for room.
    pub(crate) blocks: bool,
    /// What the wall clock shows when the clock shows its origin, unless it is set.
    pub(crate) wall_at_first: SystemTime,
    /// Lets the bodies go that stay, whatever they are asked.
    pub(crate) lets_go: CancellationToken,
    executor: Notes<Option<ScheduledThreadPoolExecutor>>,
    pub(crate) ledger: Arc<Notes<Ledger>>,
    pub(crate) faults: Faults,
    has_faults: Arc<AtomicBool>,
    is_winding_down: AtomicBool,
    /// The state of each actor except the director.
    actors: Mutex<Vec<Doing>>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Work,
    Wait,
    Nothing,
}

#[derive(Clone, Copy)]
pub(crate) enum Role {
    Director,
    Actor(usize),
    Worker,
    /// The director while it drives the executor.
    Driver,
    /// The timer thread.
    Other,
}

shuttle::thread_local! {
    pub(crate) static ROLE: Cell<Role> = const { Cell::new(Role::Other) };
}

/// The result of a scenario that violated no property.
pub(crate) struct Summary {
    /// The largest number of runs of any task.
    pub(crate) most_runs: u32,
    /// The number of events.
    pub(crate) events: u64,
}

/// Runs the scenario.
///
/// # Panics
///
/// Panics if a property is violated.
pub(crate) fn run(scenario: &Scenario) -> Summary {
    scenario.begin();
    ROLE.with(|role| role.set(Role::Director));
    let world = World::new(scenario);
    let mut ops = scenario.actors.iter().cloned();
    let directions = ops.next().unwrap_or_default();
    let actors: Vec<_> = ops
        .enumerate()
        .map(|(number, ops)| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                ROLE.with(|role| role.set(Role::Actor(number)));
                for op in ops {
                    if !world.is_winding_down.load(Ordering::SeqCst) {
                        world.perform(op);
                    }
                }
                world.becomes(number, Doing::Nothing);
            })
        })
        .collect();
    directions.into_iter().for_each(|op| world.perform(op));
    world.progress();
    world.wind_down();
    for actor in actors {
        actor.join().expect("no actor panics");
    }
    world.stop();
    world.the_end()
}

impl World {
    fn new(scenario: &Scenario) -> Arc<Self> {
        let ledger = Arc::new(Notes::new(Ledger::default()));
        let has_faults = Arc::new(AtomicBool::new(true));
        let clock = ManualClock::new();
        let builder = builder(&clock, scenario.pool);
        let home = Arc::new(OnceLock::new());
        let builder = with_hooks(builder, scenario, &ledger, &has_faults, &home);
        let (handle, executor) = match scenario.pool.driven {
            true => (driver::begin(builder), None),
            false => {
                let executor = builder.build().expect("valid settings");
                (executor.handle(), Some(executor))
            }
        };
        notes(&ledger).begin(scenario);
        let actors = vec![Doing::Work; scenario.actors.len().saturating_sub(1)];
        let group = |limit| handle.group("g").limit(limit).build().expect("not zero");
        let groups = scenario.limits.into_iter().map(group).collect();
        let world = Arc::new(Self {
            begin: clock.now(),
            wall_at_first: clock.wall_time(),
            handle,
            groups,
            pool: scenario.pool,
            callbacks: scenario.callbacks,
            blocks: matches!(scenario.pool.bound, Some((_, Refusal::Block))),
            lets_go: CancellationToken::with_clock(clock.clone()),
            clock,
            executor: Notes::new(executor),
            ledger,
            faults: scenario.faults,
            has_faults,
            is_winding_down: AtomicBool::new(false),
            actors: Mutex::new(actors),
            changed: Condvar::new(),
        });
        let _ = home.set(Arc::downgrade(&world));
        world
    }

    /// Writes something into the ledger, at this moment.
    pub(crate) fn note<R>(&self, write: impl FnOnce(&mut Ledger, Duration) -> R) -> R {
        let now = self.clock.elapsed();
        write(&mut notes(&self.ledger), now)
    }

    pub(crate) fn is_wrong(&self, is_wrong: bool, what: &str) {
        if is_wrong {
            notes(&self.ledger).violation(what.to_owned());
        }
    }

    /// Returns `true` until time alone has to bring everything to its end.
    pub(crate) fn may_disturb(&self) -> bool {
        self.has_faults.load(Ordering::SeqCst)
    }

    /// Returns `true` if threads of the executor may not have been started.
    pub(crate) fn may_lack_threads(&self) -> bool {
        self.faults.spawn || self.note(|ledger, _| ledger.failed_starts > 0)
    }

    /// The faults that are on now.
    pub(crate) fn faults(&self) -> Faults {
        let on = self.has_faults.load(Ordering::SeqCst);
        let Faults { body, payload, capture, result, waker, hooks, spawn } = self.faults;
        Faults {
            body: on && body,
            payload: on && payload,
            capture: on && capture,
            result: on && result,
            waker: on && waker,
            hooks: on && hooks,
            spawn: on && spawn,
        }
    }

    pub(crate) fn is_worker(&self) -> bool {
        ROLE.with(|role| matches!(role.get(), Role::Worker | Role::Driver))
    }

    pub(crate) fn may_block(&self) -> bool {
        ROLE.with(|role| matches!(role.get(), Role::Actor(_) | Role::Worker))
    }

    /// Waits for something, and marks the actor as waiting for the director.
    pub(crate) fn blocking<R>(&self, wait: impl FnOnce() -> R) -> R {
        match ROLE.with(Cell::get) {
            Role::Actor(number) => {
                // The actor may be waiting already, for an end in which a capture waits for
                // another.
                let before = self.becomes(number, Doing::Wait);
                let result = wait();
                self.becomes(number, before);
                result
            }
            _ => wait(),
        }
    }

    /// Waits likewise for something that the passage of time ends. A body that waits so keeps
    /// others from being run; one that joins another task without a limit does not, because the
    /// last available worker is refused the join.
    pub(crate) fn blocking_for_a_while<R>(&self, wait: impl FnOnce() -> R) -> R {
        notes(&self.ledger).sleepers += 1;
        let result = self.blocking(wait);
        notes(&self.ledger).sleepers -= 1;
        result
    }

    fn becomes(&self, actor: usize, doing: Doing) -> Doing {
        let before = std::mem::replace(&mut self.doings()[actor], doing);
        self.changed.notify_all();
        before
    }

    pub(crate) fn doings(&self) -> shuttle::sync::MutexGuard<'_, Vec<Doing>> {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `act` to one task, if there is any.
    pub(crate) fn with_task<R>(
        &self,
        task: usize,
        act: impl FnOnce(usize, &mut Record) -> Option<R>,
    ) -> Option<R> {
        let mut ledger = notes(&self.ledger);
        let id = task.checked_rem(ledger.tasks.len())?;
        act(id, &mut ledger.tasks[id])
    }

    pub(crate) fn take_future(&self, task: usize) -> Option<(usize, Future)> {
        self.with_task(task, |id, record| Some((id, record.future.take()?)))
    }

    pub(crate) fn put_back(&self, id: usize, future: Future) {
        // What it replaces is dropped outside the ledger: that is user code.
        drop(self.note(|ledger, _| ledger.tasks[id].future.replace(future)));
    }

    pub(crate) fn take_executor(&self) -> Option<ScheduledThreadPoolExecutor> {
        notes(&self.ledger).is_stopping = true;
        self.executor.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until every other actor waits or has finished. Returns `true` if all have finished.
    fn rest(&self) -> bool {
        let mut actors = self.doings();
        while actors.contains(&Doing::Work) {
            actors = self.changed.wait(actors).unwrap_or_else(PoisonError::into_inner);
        }
        actors.iter().all(|doing| *doing == Doing::Nothing)
    }

    /// Switches the faults off. Time advances, and due tasks run.
    fn progress(&self) {
        self.has_faults.store(false, Ordering::SeqCst);
        self.rest();
        self.resume_groups();
        let tasks = self.note(|ledger, _| ledger.all_admitted());
        let end = self.clock.elapsed() + LONG.span();
        self.go_on();
        self.let_go();
        let missing = || {
            self.note(|ledger, _| {
                let is_held_up = ledger.sleepers > 0 || ledger.holders > 0;
                if is_held_up { Vec::new() } else { ledger.missing(&tasks, end) }
            })
        };
        // A thread in the drop of a capture may wait there, and may also be running: it may have
        // more to drop.
        let mut rounds = 0..ROUNDS;
        while !missing().is_empty() && rounds.next().is_some() {
            // A body may have paused its group just now.
            self.resume_groups();
            self.drive();
            thread::yield_now();
        }
        let missing = missing();
        if !missing.is_empty() {
            let what = format!("nobody runs what is due: {missing:?}, {:?}", self.handle);
            self.is_wrong(true, &what);
        }
        self.look_for_what_never_comes(&tasks, end);
        self.look();
    }

    /// Moves time from one deadline to the next that a thread waits for. It does not use `run_for`,
    /// which wakes every worker to see what it waits for, and so would hide one that was not woken.
    pub(crate) fn go_on(&self) {
        if self.pool.driven {
            return self.drive_on();
        }
        let end = self.clock.elapsed() + LONG.span();
        self.clock.run_until_idle();
        while self.clock.elapsed() < end {
            let left = end - self.clock.elapsed();
            self.clock.advance(self.clock.next_deadline().map_or(left, |next| next.min(left)));
            self.clock.run_until_idle();
            self.look_for_neglect();
        }
    }

    /// Cancels what would continue for ever; then every waiter returns.
    fn wind_down(&self) {
        self.is_winding_down.store(true, Ordering::SeqCst);
        for _ in 0..ROUNDS {
            let tasks = self.note(|ledger, _| ledger.tasks.len());
            (0..tasks).for_each(|task| self.cancel(task));
            // No thread keeps these tasks and could be asked to cancel them.
            self.handle.set_executes_existing_delayed_tasks_after_shutdown(false);
            self.handle.set_continues_existing_periodic_tasks_after_shutdown(false);
            self.go_on();
            if self.rest() {
                return;
            }
            // A task that is never due, and that no thread can cancel, has the room for which an actor waits.
            if self.note(|ledger, _| !ledger.waits.for_room.is_empty()) {
                self.shutdown();
            }
            self.end_what_is_kept();
            thread::yield_now();
        }
        panic!("an actor waits for ever: {:?}", self.handle);
    }

    /// Ends what a shutdown keeps whatever the policies are, if there is any and no thread can cancel it.
    fn end_what_is_kept(&self) {
        let is_kept = |task: &PendingTask| task.name().as_deref() == Some(KEPT);
        // A body or a gate that waits for its own series has the only future of it, and may be running each time that this
        // looks.
        let is_running = |ledger: &mut Ledger, _: Duration| {
            let mut kept = ledger.tasks.iter().filter(|task| task.plan.is_kept == Some(true));
            kept.any(|task| task.is_running || task.gate.is_asked)
        };
        if self.handle.pending_tasks().iter().any(is_kept) || self.note(is_running) {
            drop(self.handle.shutdown_now());
        }
    }

    fn stop(&self) {
        let executor = self.take_executor();
        self.handle.shutdown();
        for _ in 0..ROUNDS {
            self.go_on();
            if self.handle.is_terminated() {
                break;
            }
            self.end_what_is_kept();
            thread::yield_now();
        }
        self.drop_driver();
        assert!(self.handle.is_terminated(), "the pool does not end: {:?}", self.handle);
        if let Some(executor) = executor {
            executor.close().expect("not on a worker");
        }
    }

    /// Checks that everything has ended, and returns the summary.
    fn the_end(self: Arc<Self>) -> Summary {
        let tasks = self.note(|ledger, _| ledger.tasks.len());
        for task in 0..tasks {
            if let Some((id, future)) = self.take_future(task) {
                let outcome = match &future {
                    Future::Once(future) => future.try_join().map(|end| end.map(Receipt::accept)),
                    Future::Periodic(future) => future.try_join(),
                };
                match outcome {
                    Some(outcome) => self.note(|ledger, _| ledger.learns(id, &outcome)),
                    None => self.is_wrong(true, &format!("the future of task {id} never ends")),
                }
                drop(future);
            }
        }
        self.look();
        let seen = self.handle.statistics();
        self.is_wrong(seen.pending + seen.active > 0, &format!("{seen:?} has something left"));
        self.groups_have_ended();
        let faults = self.faults;
        self.note(|ledger, _| ledger.check_the_end(faults.capture || faults.result));
        self.is_wrong(Arc::strong_count(&self) > 1, "something of a task is still alive");
        let ledger = notes(&self.ledger);
        assert!(ledger.violations.is_empty(), "{}", ledger.violations.join("; "));
        Summary { most_runs: ledger.most_runs(), events: ledger.events }
    }
}

pub(crate) fn notes<T>(shared: &Notes<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn builder(clock: &ManualClock, plan: PoolPlan) -> Builder {
    let builder = ScheduledThreadPoolExecutor::builder()
        .clock(clock.clone())
        .core_pool_size(plan.workers)
        .keep_alive(Steps(3).span() / 2)
        .allows_core_thread_timeout(plan.retire)
        .executes_existing_delayed_tasks_after_shutdown(plan.keep_delayed)
        .continues_existing_periodic_tasks_after_shutdown(plan.keep_periodic);
    let Some((bound, refusal)) = plan.bound else { return builder };
    let builder = builder.max_pending(bound);
    match refusal {
        Refusal::Abort => builder.rejected_execution_handler(AbortPolicy),
        Refusal::CallerRuns => builder.rejected_execution_handler(CallerRunsPolicy),
        Refusal::Discard => builder.rejected_execution_handler(DiscardPolicy),
        Refusal::DiscardOldest => builder.rejected_execution_handler(DiscardOldestPolicy),
        Refusal::Block => builder.rejected_execution_handler(BlockPolicy::new(Duration::MAX)),
    }
}
