//! A driven executor: the director is its caller, and what must hold of each call.

use std::cell::RefCell;

use punctual::{Builder, DrivenExecutor, Handle};
use shuttle::thread;

use crate::{
    ledger::Ledger,
    pairs::Way,
    scenario::{Scenario, Steps, Verb},
    world::{LONG, ROLE, Role, World},
};

/// How often the director drives at one moment: tasks may be due again at once, each time.
const CALLS: usize = 4;

shuttle::thread_local! {
    /// The executor, in the thread of the director, unless a call of it is under way.
    static DRIVEN: RefCell<Option<DrivenExecutor>> = const { RefCell::new(None) };
}

/// Builds a driven executor for this thread.
pub(crate) fn begin(builder: Builder) -> Handle {
    let executor = builder.build_driven().expect("valid settings");
    let handle = executor.handle();
    DRIVEN.with(|driven| driven.replace(Some(executor)));
    handle
}

/// The ledger's record of the calls of a driver.
#[derive(Default)]
pub(crate) struct DriverRecord {
    /// The number of the call that is under way; none if zero.
    round: u64,
    rounds: u64,
    /// How many bodies have begun in it.
    starts: usize,
    /// How many triggers have panicked in it: before a run, which then has no body, or after one.
    panics: usize,
    /// `true` if there may be runs without a body: of timers, and of those whose hook panics.
    has_others: bool,
}

impl World {
    pub(crate) fn run_due(&self) {
        self.as_driver(|executor| executor.run_due());
    }

    /// Calls the driven executor, if this thread has it, and compares the number of runs that it returns.
    fn as_driver(&self, call: impl FnOnce(&mut DrivenExecutor) -> usize) {
        let Some(mut executor) = DRIVEN.with(RefCell::take) else { return };
        let before = ROLE.with(|role| role.replace(Role::Driver));
        self.note(|ledger, _| ledger.begins_round());
        let ran = call(&mut executor);
        let (starts, most) = self.note(|ledger, _| ledger.ends_round());
        ROLE.with(|role| role.set(before));
        let is_wrong = ran < starts || ran > most;
        self.is_wrong(is_wrong, &format!("a driver says {ran} runs, and {starts} have begun"));
        DRIVEN.with(|driven| driven.replace(Some(executor)));
    }

    /// Drops the driven executor, if this thread has it.
    pub(crate) fn drop_driver(&self) {
        let Some(executor) = DRIVEN.with(RefCell::take) else { return };
        let before = ROLE.with(|role| role.replace(Role::Driver));
        self.holding(|| drop(executor));
        ROLE.with(|role| role.set(before));
    }

    /// Runs what is due, and what comes back at once a few times.
    pub(crate) fn drive(&self) {
        for _ in 0..CALLS {
            if self.sleeps() != Some(std::time::Duration::ZERO) {
                return;
            }
            self.run_due();
        }
    }

    fn sleeps(&self) -> Option<std::time::Duration> {
        DRIVEN.with(|driven| driven.borrow_mut().as_mut()?.time_until_next())
    }

    /// As [`go_on`](Self::go_on): moves time to when the executor says that it has to be called.
    pub(crate) fn drive_on(&self) {
        let end = self.clock.elapsed() + LONG.span();
        loop {
            self.drive();
            thread::yield_now();
            let now = self.clock.elapsed();
            if now >= end {
                return;
            }
            let left = end - now;
            // Tasks that are due again at once have time pass by a step.
            let next = self.sleeps().map_or(left, |next| next.max(Steps(1).span()));
            let next = self.clock.next_deadline().map_or(next, |other| other.min(next));
            self.clock.advance(next.min(left));
        }
    }

    /// Asks for the next run of the task that runs, at once. Only a driver's caller decides how often it comes back.
    pub(crate) fn ask_at_once(self: &std::sync::Arc<Self>, id: usize, way: Way) {
        if !self.pool.driven {
            return;
        }
        match way {
            Way::Reschedule => self.ask(id, Verb::Reschedule(Steps(0))),
            Way::RunNow => self.ask(id, Verb::RunNow),
            Way::Call => self.call(id),
        }
    }
}

impl Ledger {
    /// Has the scenario say what may happen.
    pub(crate) fn begin(&mut self, scenario: &Scenario) {
        use crate::scenario::{Op, Refusal};
        self.hooks_panic = scenario.faults.hooks;
        // Otherwise the order in which the threads took their tasks is unknown.
        self.has_many_workers = !scenario.has_one_worker();
        self.driver.has_others =
            scenario.faults.hooks || scenario.has(|op| matches!(op, Op::Timer(..) | Op::Sleep(_)));
        self.discards = matches!(scenario.pool.bound, Some((_, Refusal::DiscardOldest)));
        self.begin_groups(&scenario.limits);
        let keeps = |keep, sets: fn(&Op) -> bool| keep || scenario.has(sets);
        self.waits.keeps_delayed =
            keeps(scenario.pool.keep_delayed, |op| matches!(op, Op::KeepDelayed(true)));
        self.waits.keeps_periodic =
            keeps(scenario.pool.keep_periodic, |op| matches!(op, Op::KeepPeriodic(true)));
    }

    fn begins_round(&mut self) {
        self.driver.rounds += 1;
        self.driver.round = self.driver.rounds;
        (self.driver.starts, self.driver.panics) = (0, 0);
    }

    /// Returns how many bodies have begun, and how many runs there may have been.
    fn ends_round(&mut self) -> (usize, usize) {
        self.driver.round = 0;
        let DriverRecord { starts, panics, has_others, .. } = self.driver;
        (starts, if has_others { usize::MAX } else { starts + panics })
    }

    pub(crate) fn trigger_panics(&mut self, id: usize) {
        self.tasks[id].has_panicked = true;
        self.driver.panics += 1;
    }

    /// Records that a body begins: once in a call of the driver.
    pub(crate) fn starts_in_round(&mut self, id: usize) {
        let round = self.driver.round;
        if round == 0 {
            return;
        }
        self.driver.starts += 1;
        if std::mem::replace(&mut self.tasks[id].round, round) == round {
            self.violation(format!("task {id} runs twice in one call of its driver"));
        }
    }
}
