//! The submitted tasks: a body that follows its plan, a capture that is noted when it is dropped, a
//! result that is counted.

use std::{cell::Cell, panic, sync::Arc, time::Duration};

use punctual::{ShutdownPolicy, TaskContext, current_task};

use crate::{
    calls::{Caller, Launched},
    gates::Gate,
    ledger::Future,
    scenario::{Act, Kind, OnDrop, Steps, TaskPlan, Verb, When, plain},
    world::World,
};

/// The names of the tasks that a shutdown keeps whatever the policies are, and of those that none does.
pub(crate) const KEPT: &str = "kept";
pub(crate) const UNKEPT: &str = "unkept";

/// Lives as long as the closure of its task.
pub(crate) struct Capture {
    world: Arc<World>,
    id: usize,
}

/// The result of a one-shot task.
pub(crate) struct Receipt {
    world: Arc<World>,
    /// `true` if the executor still has to drop it.
    may_panic: bool,
}

/// A payload that panics when it is dropped.
struct Bomb(Arc<World>);

shuttle::thread_local! {
    /// The task that this thread is submitting, and may have to run itself.
    static SUBMITTED: Cell<Option<usize>> = const { Cell::new(None) };
}

impl World {
    /// Submits a task. The ledger has it whether it is admitted or not.
    pub(crate) fn submit(self: &Arc<Self>, plan: TaskPlan) {
        let id = self.note(|ledger, now| ledger.open(plan, now));
        let capture = Capture { world: Arc::clone(self), id };
        let mut task = self.handle.task();
        if self.blocks && !self.may_wait_for_room() {
            task = task.abort_if_rejected();
        }
        if let Some(steps) = plan.timeout {
            task = task.timeout(steps.span());
        }
        if let Some(steps) = plan.within {
            task = task.missed_runs(punctual::MissedRuns::Within(steps.span()));
        } else if plan.skips {
            task = task.missed_runs(punctual::MissedRuns::Skip);
        }
        if plan.resumes {
            task = task.on_failure(punctual::FailurePolicy::resume());
        }
        if let Some((act, answer)) = plan.gate {
            task = task.gate(Gate { world: Arc::clone(self), id, act, answer });
        }
        if let Some(group) = plan.group {
            task = task.group(&self.groups[group]);
        }
        if let Some(is_kept) = plan.is_kept {
            let policy = if is_kept { ShutdownPolicy::Keep } else { ShutdownPolicy::Cancel };
            task = task.on_shutdown(policy).name(if is_kept { KEPT } else { UNKEPT });
        }
        let delay = plan.when.delay();
        let outer = SUBMITTED.with(|own| own.replace(Some(id)));
        let launched = self.waiting_for_room(plan.group, || match plan.kind {
            Kind::Once => {
                let body = move || {
                    capture.run();
                    let world = Arc::clone(&capture.world);
                    // This comes first: Rust leaks a call's result if a local panics in its drop.
                    drop(capture);
                    Receipt::new(&world)
                };
                task.schedule(delay, body).map(|future| Launched::Future(Future::Once(future)))
            }
            Kind::Rate(period) => task
                .schedule_at_fixed_rate(delay, period.span(), move || capture.run())
                .map(Launched::periodic),
            Kind::Delay(pause) => task
                .schedule_with_fixed_delay(delay, pause.span(), move || capture.run())
                .map(Launched::periodic),
            Kind::Calendar(period, jitter) => self
                .repeat_by_calendar(task, id, (period, jitter), move || capture.run())
                .map(Launched::periodic),
            Kind::Debounce(quiet, most) => task
                .debounce(quiet.span(), move || capture.run())
                .map(|debounced| Launched::debounced(debounced, most)),
            Kind::Throttle(period) => task
                .throttle(period.span(), move || capture.run())
                .map(|throttled| Launched::Called(Caller::Throttled(throttled))),
        });
        SUBMITTED.with(|own| own.set(outer));
        match launched {
            Ok(Launched::Future(future)) => {
                self.note(|ledger, now| ledger.admitted(id, now, future));
            }
            Ok(Launched::Called(caller)) => {
                self.note(|ledger, _| ledger.admitted_called(id, caller));
            }
            Err(_) => self.note(|ledger, _| ledger.refused(id)),
        }
    }

    /// The steps of a body, or of a gate, with this plan.
    pub(crate) fn act(self: &Arc<Self>, id: usize, act: Act) {
        match act {
            Act::Return | Act::Panic => {}
            Act::Dawdle => (0..5).for_each(|_| shuttle::thread::yield_now()),
            Act::Sleep(steps) => {
                let token = current_task().map(|task| task.token());
                if let Some(token) = token.filter(|_| self.may_block()) {
                    // An error means that the task is asked to stop, which it does.
                    let _ = self.blocking_for_a_while(|| token.sleep(steps.span()));
                }
            }
            Act::Cancel(task) => self.cancel(task),
            Act::CancelItself => self.cancel(id),
            Act::Ask(task, verb) => self.ask(task, verb),
            Act::Move(steps) => self.move_itself(id, steps),
            Act::Submit(when) => self.submit(plain(when)),
            Act::Group(group, verb) => self.ask_group(group, verb),
            Act::Join(task) => self.join_inside(id, task),
            Act::JoinFor(task, steps) => self.join_for(task, steps),
            Act::AwaitTermination => self.await_termination_inside(),
            Act::Shutdown => self.shutdown(),
            Act::ShutdownNow => self.shutdown_now(0),
            Act::DropExecutor => self.drop_executor(),
            Act::Stay => self.stay(),
            Act::AtOnce(way) => self.ask_at_once(id, way),
        }
    }
}

impl World {
    fn move_itself(&self, id: usize, steps: Steps) {
        let Some(task) = current_task() else { return };
        let verb = Verb::Reschedule(steps);
        self.note(|ledger, now| ledger.asks(id, verb, now));
        let had_effect = task.reschedule(steps.span());
        self.note(|ledger, now| ledger.asked(id, verb, had_effect, now));
    }
}

impl Capture {
    fn run(&self) {
        let (world, id) = (&self.world, self.id);
        let is_submitter = SUBMITTED.with(Cell::get) == Some(id);
        let is_worker = world.is_worker() && !is_submitter;
        let task = current_task();
        let late = task.as_ref().map_or(Duration::ZERO, |task| task.lateness());
        let planned = task.as_ref().and_then(TaskContext::planned);
        // When the worker read the clock, which may have been moved since.
        let began = planned.map(|planned| planned.saturating_duration_since(world.begin) + late);
        let plan = world.note(|ledger, now| {
            ledger.starts(id, now, is_worker);
            ledger.is_late(id, late, began.unwrap_or(now), is_worker);
            ledger.tasks[id].plan
        });
        if let Some(task) = task.filter(|_| is_worker) {
            world.look_at_run(id, &task);
        }
        world.act(id, plan.body);
        let panics = matches!(plan.body, Act::Panic) && world.faults().body;
        world.note(|ledger, now| ledger.ends(id, now, is_worker, panics));
        if panics && world.faults().payload {
            panic::panic_any(Bomb(Arc::clone(world)));
        }
        assert!(!panics, "the body of task {id} panics");
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let (world, id) = (&self.world, self.id);
        let (plan, is_panicking) = world.note(|ledger, _| {
            let is_panicking = ledger.dropped(id);
            (ledger.tasks[id].plan, is_panicking)
        });
        match plan.capture {
            OnDrop::Nothing => {}
            OnDrop::Panic => {
                let panics = world.faults().capture && !is_panicking;
                assert!(!panics, "the capture of task {id} panics");
            }
            OnDrop::Cancel(task) => world.cancel(task),
            OnDrop::Submit => world.submit(plain(When::After(Steps(0)))),
            OnDrop::DropExecutor => world.drop_executor(),
            OnDrop::Back(back) => world.call_back(back),
        }
    }
}

impl Receipt {
    fn new(world: &Arc<World>) -> Self {
        world.note(|ledger, _| ledger.results_alive += 1);
        Self { world: Arc::clone(world), may_panic: true }
    }

    /// The thread that joined has the result.
    pub(crate) fn accept(mut self) {
        self.may_panic = false;
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.world.note(|ledger, _| ledger.results_alive -= 1);
        if self.may_panic {
            self.world.call_back(self.world.callbacks.other);
        }
        let panics = self.may_panic && self.world.faults().result;
        assert!(!panics, "a result panics");
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0.faults().payload, "a payload panics");
    }
}
