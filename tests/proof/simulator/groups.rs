//! What is done with whole groups, and what must hold of them.

use punctual::{DrainedTask, Grace, Group};

use crate::{ledger::Ledger, scenario::GroupVerb, world::World};

impl World {
    /// Does something with a group, between two notes in the ledger.
    pub(crate) fn ask_group(&self, number: usize, verb: GroupVerb) {
        let group = &self.groups[number];
        match verb {
            // In the end nobody would resume it.
            GroupVerb::Pause if self.may_disturb() => _ = group.pause(),
            GroupVerb::Pause => {}
            GroupVerb::Resume => _ = group.resume(),
            GroupVerb::SetLimit(limit) => {
                self.note(|ledger, _| ledger.limits_group(number, limit));
                group.set_limit(limit).expect("not zero");
            }
            GroupVerb::Reserve(workers) => group.set_reserved(workers),
            GroupVerb::CancelAll => self.ending_group(number, || _ = group.cancel_all()),
            GroupVerb::Shutdown => self.ending_group(number, || group.shutdown()),
            GroupVerb::ShutdownNow(runs) => self.ending_group(number, || {
                group.shutdown_now().into_iter().take(runs).for_each(DrainedTask::run);
            }),
            GroupVerb::ShutdownWithin(steps) => self.ending_group(number, || {
                let report = self.blocking(|| {
                    group.shutdown_within(Grace::patience(steps.span()).then(steps.span()))
                });
                self.is_wrong(report.is_err(), "an actor may wait for a group");
            }),
            GroupVerb::AwaitTermination(steps) => {
                let ended = self.blocking(|| group.await_termination(steps.span()));
                self.is_wrong(ended.is_err(), "an actor may wait for a group");
            }
        }
    }

    /// Ends tasks of a group, which may take them out of it and run or cancel them one by one.
    fn ending_group(&self, number: usize, end: impl FnOnce()) {
        self.note(|ledger, _| {
            ledger.ends_group(number);
            ledger.holders += 1;
        });
        end();
        self.note(|ledger, _| {
            ledger.ended_group(number);
            ledger.holders -= 1;
        });
    }

    /// Joins a task inside of a body or a gate. If that is in a group, tasks of the group may wait for it.
    pub(crate) fn join_inside(&self, own: usize, task: usize) {
        let is_in_group = self.note(|ledger, _| ledger.tasks[own].plan.group.is_some());
        self.note(|ledger, _| ledger.holders += usize::from(is_in_group));
        self.join(task);
        self.note(|ledger, _| ledger.holders -= usize::from(is_in_group));
    }

    pub(crate) fn resume_groups(&self) {
        self.groups.iter().for_each(|group| _ = group.resume());
    }

    /// Checks that the counts of each group agree with each other.
    pub(crate) fn look_at_groups(&self) {
        for group in &self.groups {
            let now = group.statistics();
            let ended = now.completed + now.failed + now.cancelled;
            let adds_up = now.submitted == now.pending as u64 + now.active as u64 + ended;
            let fits = now.waiting <= now.pending && now.failed_runs <= now.runs;
            let fits = fits && now.failed <= now.failed_runs;
            self.is_wrong(!adds_up || !fits, &format!("{now:?} does not add up"));
        }
    }

    /// Checks that nothing is left of any group.
    pub(crate) fn groups_have_ended(&self) {
        let is_over = |group: &Group| {
            let now = group.statistics();
            group.is_terminated() && now.pending + now.active + now.waiting == 0
        };
        for group in self.groups.iter().filter(|group| !is_over(group)) {
            let what = format!("something is left: {group:?}, {:?}", group.statistics());
            self.is_wrong(true, &what);
        }
    }
}

/// What is known of a group.
pub(crate) struct GroupRecord {
    /// The number of bodies that run on workers.
    running: usize,
    /// The largest limit that there has been.
    highest: usize,
    /// The number of threads that end all of its tasks.
    ending: usize,
}

impl GroupRecord {
    pub(crate) fn ends(&mut self) {
        self.running -= 1;
    }
}

impl Ledger {
    /// Records that a body begins on a worker: after those that come before it, and not beside too many.
    pub(crate) fn starts_in_group(&mut self, id: usize) {
        let Some(group) = self.tasks[id].plan.group else { return };
        if let Some(other) = self.overtaken_in_group_by(id) {
            self.violation(format!("task {id} has overtaken task {other} in its group"));
        }
        self.groups[group].running += 1;
        let GroupRecord { running, highest, .. } = self.groups[group];
        if running > highest {
            self.violation(format!("{running} tasks of group {group} run at once"));
        }
    }

    /// Returns a task of the same group, which has never had more than one permit, that should have started before
    /// this one and has not.
    fn overtaken_in_group_by(&self, id: usize) -> Option<usize> {
        let taken = &self.tasks[id];
        let group = taken.plan.group.filter(|group| self.groups[*group].highest == 1)?;
        let may_leave = self.is_stopping || self.discards || self.groups[group].ending > 0;
        if may_leave || taken.starts > 0 {
            return None;
        }
        // The worker asked the group after this task had been opened, and not before it was due.
        let low = taken.low;
        let is_due = self.advances.iter().find(|(_, now)| *now >= low);
        let asked = taken.opened.max(is_due.map_or(0, |(began, _)| *began));
        self.tasks.iter().position(|other| {
            let may_have_run = self.hooks_panic && other.plan.resumes;
            let has_begun = other.starts > 0 || may_have_run || other.plan.gate.is_some();
            // Or it was overdue, and has been left out.
            let has_begun = has_begun || other.plan.within.is_some() || other.plan.skips;
            let has_begun = has_begun || self.ticks.is_set;
            let waits = !has_begun && other.drops == 0 && !other.is_being_cancelled;
            let was_there = other.admitted.is_some_and(|event| event < asked);
            let comes_before = other.plan.group == Some(group) && other.high < low;
            waits && was_there && comes_before && other.plan.timeout.is_none()
        })
    }

    pub(crate) fn begin_groups(&mut self, limits: &[usize]) {
        self.groups = limits
            .iter()
            .map(|limit| GroupRecord { running: 0, highest: *limit, ending: 0 })
            .collect();
    }

    /// Records that a group is about to be given this limit.
    pub(crate) fn limits_group(&mut self, group: usize, limit: usize) {
        let highest = &mut self.groups[group].highest;
        *highest = limit.max(*highest);
    }

    /// Records that somebody is about to end the tasks of a group.
    pub(crate) fn ends_group(&mut self, group: usize) {
        self.groups[group].ending += 1;
        self.mark_ended_with(group);
    }

    /// Records that they have been ended.
    pub(crate) fn ended_group(&mut self, group: usize) {
        self.groups[group].ending -= 1;
        // Others may have been submitted meanwhile.
        self.mark_ended_with(group);
    }

    fn mark_ended_with(&mut self, group: usize) {
        self.event();
        for task in self.tasks.iter_mut().filter(|task| task.plan.group == Some(group)) {
            (task.is_being_cancelled, task.is_ended_with_group) = (true, true);
        }
    }
}
