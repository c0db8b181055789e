//! What is done with whole groups, and what must hold of them.

use punctual::{DrainedTask, Group};

use crate::{scenario::GroupVerb, world::World};

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
                let report = self.blocking(|| group.shutdown_within(steps.span(), steps.span()));
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
