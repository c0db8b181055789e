//! What has to come about: whatever is due starts while a worker may be had, and whatever waits for an end sees one.
//!
//! The director looks when it has moved time past all that was planned, before it cancels anything or shuts anything
//! down. A step of another thread may be under way then; so each of these looks several times.

use std::{cell::Cell, time::Duration};

use punctual::{ShutdownReport, WouldDeadlock};
use shuttle::thread;

use crate::{
    ledger::Ledger,
    scenario::{Kind, When},
    tasks::{KEPT, UNKEPT},
    world::{Doing, ROUNDS, World},
};

shuttle::thread_local! {
    /// `true` while this thread is in a shutdown with a deadline.
    static IS_LIMITED: Cell<bool> = const { Cell::new(false) };
}

/// Who waits for what, and what the pool may keep.
#[derive(Default)]
pub(crate) struct Waits {
    pub(crate) keeps_delayed: bool,
    pub(crate) keeps_periodic: bool,
    /// The number of drops of the owner that are under way.
    drops: usize,
    /// The number of shutdowns with a deadline that are under way.
    limited: usize,
    /// `true` once such a shutdown has dropped the owner itself, in a capture: that waits for its bodies.
    has_own_drop: bool,
    /// `true` once such a shutdown has returned with something running.
    has_given_up: bool,
    /// The groups of the submissions that wait for room, if they have one.
    pub(crate) for_room: Vec<Option<usize>>,
}

impl World {
    /// Stays in a body until the director lets it go. The clock knows of this wait, and goes on.
    pub(crate) fn stay(&self) {
        if self.may_block() {
            self.blocking_for_a_while(|| self.lets_go.wait());
        }
    }

    /// Lets the bodies go that stay, once it is seen that what must not wait for them does not.
    pub(crate) fn let_go(&self) {
        let is_kept = || {
            // An actor that has seen one limit of its shutdown may wait for the other.
            self.clock.advance(self.clock.next_deadline().unwrap_or_default());
            // What waits for it then has only to be scheduled; that each returns is seen at the end.
            if self.handle.is_terminated() {
                return None;
            }
            self.note(|ledger, _| {
                let Waits { drops, limited, has_own_drop, has_given_up, .. } = ledger.waits;
                (limited > 0 && !has_own_drop)
                    .then_some("a shutdown with a deadline is not over at it")
                    .or({
                        (drops > 0 && has_given_up).then_some("a drop waits for what was given up")
                    })
            })
        };
        if let Some(what) = self.still(is_kept) {
            self.is_wrong(true, &format!("{what}: {:?}", self.handle));
        }
        self.lets_go.cancel();
        if !self.pool.driven {
            self.clock.run_until_idle();
        }
    }

    /// Looks until there is nothing to be seen, or has looked often. Returns what it has seen in the end.
    fn still<R>(&self, look: impl Fn() -> Option<R>) -> Option<R> {
        let mut seen = look();
        for _ in 0..ROUNDS {
            if seen.is_none() {
                return None;
            }
            self.drive();
            thread::yield_now();
            seen = look();
        }
        seen
    }

    /// Runs a shutdown with a deadline.
    pub(crate) fn within_limits<R>(&self, end: impl FnOnce() -> R) -> R {
        self.note(|ledger, _| ledger.waits.limited += 1);
        IS_LIMITED.with(|is_limited| is_limited.set(true));
        let result = end();
        IS_LIMITED.with(|is_limited| is_limited.set(false));
        self.note(|ledger, _| ledger.waits.limited -= 1);
        result
    }

    /// Notes what a shutdown with a deadline has returned.
    pub(crate) fn has_shut_down(&self, report: Result<ShutdownReport, WouldDeadlock>) {
        match report {
            Ok(report) if report.is_terminated => {}
            Ok(_) => self.note(|ledger, _| ledger.waits.has_given_up = true),
            Err(_) => self.is_wrong(true, "an actor may wait for the end"),
        }
    }

    /// Drops the owner.
    pub(crate) fn dropping<R>(&self, end: impl FnOnce() -> R) -> R {
        let is_own = IS_LIMITED.with(Cell::get);
        self.note(|ledger, _| {
            ledger.waits.has_own_drop |= is_own;
            ledger.waits.drops += 1;
        });
        let result = end();
        self.note(|ledger, _| ledger.waits.drops -= 1);
        result
    }

    /// Returns `true` if the calling thread may wait for room.
    pub(crate) fn may_wait_for_room(&self) -> bool {
        self.may_block() && !self.is_worker()
    }

    /// Submits something, for which there may have to be room.
    pub(crate) fn waiting_for_room<R>(
        &self,
        group: Option<usize>,
        submit: impl FnOnce() -> R,
    ) -> R {
        if !self.blocks || !self.may_wait_for_room() {
            return submit();
        }
        self.note(|ledger, _| ledger.waits.for_room.push(group));
        let result = self.blocking(submit);
        self.note(|ledger, _| {
            let waiting = &mut ledger.waits.for_room;
            let own = waiting.iter().position(|other| *other == group).expect("it is there");
            waiting.swap_remove(own);
        });
        result
    }

    /// Checks that nothing is pending after a shutdown which neither its policies nor the tasks' own keep.
    pub(crate) fn look_for_what_is_not_kept(&self) {
        let (delayed, periodic) =
            self.note(|ledger, _| (ledger.waits.keeps_delayed, ledger.waits.keeps_periodic));
        for task in self.handle.pending_tasks() {
            let is_kept = match (task.name().as_deref(), task.is_periodic) {
                (Some(KEPT), _) => true,
                (Some(UNKEPT), _) => false,
                (_, true) => periodic,
                (_, false) => delayed || task.delay.is_zero(),
            };
            self.is_wrong(!is_kept, &format!("a shutdown has missed {task}"));
        }
    }

    /// Checks that no due task is pending while the pool may have another worker. A pool that could
    /// not start a worker before may do so now.
    pub(crate) fn look_for_neglect(&self) {
        let is_neglected = || {
            let is_quiet = !self.doings().contains(&Doing::Work);
            // A task that waits for its group needs no worker.
            let waiting = self.groups.iter().map(|group| group.statistics().waiting).sum::<usize>();
            let pending = self.handle.pending_tasks();
            let is_due = pending.iter().filter(|task| task.delay.is_zero()).count() > waiting;
            let now = self.handle.statistics();
            is_quiet && is_due && now.active < now.core_pool_size.max(1)
        };
        let mut rounds = 0..ROUNDS;
        // Once the wall clock was set, a task on it may be shown as due that a worker looks at within thirty seconds.
        // An actor may set it meanwhile.
        let may_wait = || self.may_lack_threads() || self.note(|ledger, _| ledger.ticks.is_set);
        while is_neglected() && !may_wait() {
            if rounds.next().is_none() {
                let what = format!(
                    "a due task waits, and no worker is awake for it: {:?}",
                    self.handle.statistics()
                );
                return self.is_wrong(true, &what);
            }
            thread::yield_now();
        }
    }

    /// Checks that each of these series has begun that was to begin, that no call waits for a run that has been left
    /// out, and that no submission holds up the end of its group.
    pub(crate) fn look_for_what_never_comes(&self, tasks: &[usize], now: Duration) {
        if self.may_lack_threads() || self.note(|ledger, _| ledger.sleepers + ledger.holders > 0) {
            return;
        }
        let series = || self.note(|ledger, _| ledger.missing_series(tasks, now));
        if let Some(id) = self.still(series) {
            let what = format!("task {id} never begins: {:?}", self.handle);
            self.is_wrong(true, &what);
        }
        if let Some(id) = self.still(|| self.calls_that_wait().first().copied()) {
            self.is_wrong(true, &format!("a call of task {id} waits for ever"));
        }
        let held_up = || {
            let groups = self.note(|ledger, _| ledger.waits.for_room.clone());
            let is_over = |group: &usize| self.groups[*group].is_shutdown();
            groups.into_iter().flatten().find(is_over)
        };
        if let Some(group) = self.still(held_up) {
            self.is_wrong(true, &format!("a submission to group {group} outlives its shutdown"));
        }
    }
}

impl Ledger {
    /// Returns one of these series that was to have its first run by now, and has not.
    fn missing_series(&self, tasks: &[usize], now: Duration) -> Option<usize> {
        let is_missing = |id: &usize| {
            let record = &self.tasks[*id];
            let plan = &record.plan;
            let is_series = match plan.kind {
                Kind::Rate(_) | Kind::Delay(_) => !matches!(plan.when, When::Never),
                Kind::Calendar(..) => !self.ticks.is_set,
                _ => false,
            };
            let may_skip = plan.gate.is_some() || plan.within.is_some() || plan.skips;
            let may_skip = may_skip || self.hooks_panic;
            is_series
                && record.high <= now
                && record.starts == 0
                && !may_skip
                && !self.may_wait_long(*id, now)
        };
        tasks.iter().copied().find(is_missing)
    }
}
