//! The model of several tasks in groups. Each task is a [model](Model) of its own, which says what a turn of it comes to.
//! Here is whose turn it is: by the order of the executor, by the permits of the groups, and by their pauses.

use std::{cmp::Reverse, mem, time::Duration};

use punctual::TaskState;

use super::Model;
use crate::scripts::{
    Event,
    group::{Counts, GroupOp, GroupScript, Op, Seen, is_over},
    script::Task,
};

struct Member {
    task: Model,
    /// `true` if a shutdown treats it as a series.
    is_series: bool,
    group: Option<usize>,
    /// `true` if it has a permit, and waits for the answer of its gate.
    asks: bool,
    /// `true` if a worker has found that it is not its turn.
    waits: bool,
    has_left: bool,
}

#[derive(Default)]
struct Group {
    limit: usize,
    is_paused: bool,
    is_shut_down: bool,
    counts: Counts,
}

struct World {
    now: Duration,
    members: Vec<Member>,
    groups: Vec<Group>,
    /// Whether a shutdown keeps what is not due, and series.
    keeps: (bool, bool),
    seen: Vec<Seen>,
}

/// Returns what is to be seen.
pub(in crate::scripts) fn predict(script: &GroupScript) -> Vec<Seen> {
    let groups = script.limits.iter().map(|limit| Group { limit: *limit, ..Group::default() });
    let members = script.tasks.iter().map(|(group, script)| Member {
        task: Model::of(script),
        is_series: matches!(script.task, Task::Series(_)),
        group: *group,
        asks: false,
        waits: false,
        has_left: false,
    });
    let mut world = World {
        now: Duration::ZERO,
        members: members.collect(),
        groups: groups.collect(),
        keeps: script.keeps,
        seen: Vec::new(),
    };
    for op in &script.ops {
        world.carry_out(op);
        world.settle();
        if is_over(&world.seen) {
            break;
        }
        world.stands();
    }
    world.sum();
    world.seen
}

impl World {
    fn carry_out(&mut self, op: &Op) {
        match *op {
            Op::Ask(task, request) => self.with(task, |task| task.ask(&request)),
            Op::Reply(task, entry) => self.with(task, |task| task.reply(entry)),
            Op::Stall(span) => self.now += span.span(),
            Op::RunOne => {
                let ran = self.run_one();
                self.seen.push(Seen::Number(ran));
            }
            Op::RunDue => {
                let ran = self.run_due();
                self.seen.push(Seen::Number(ran));
            }
            Op::RunFor(span) => self.run_for(self.now + span.span()),
            Op::Group(group, op) => self.carry_out_group(group, op),
        }
    }

    fn carry_out_group(&mut self, number: usize, op: GroupOp) {
        let group = &mut self.groups[number];
        let answer = match op {
            GroupOp::Pause => {
                !group.is_shut_down && !mem::replace(&mut group.is_paused, true)
            }
            GroupOp::Resume => mem::take(&mut group.is_paused),
            GroupOp::Limit(limit) => {
                group.limit = limit;
                true
            }
            GroupOp::CancelAll => {
                let cancelled = self.cancel(number, |_| true);
                return self.seen.push(Seen::Number(cancelled.len()));
            }
            GroupOp::Shutdown => {
                (group.is_shut_down, group.is_paused) = (true, false);
                let (now, (delayed, periodic)) = (self.now, self.keeps);
                let keeps = |member: &Member| match member.is_series {
                    true => periodic,
                    false => delayed || member.due() <= now,
                };
                drop(self.cancel(number, |member| !keeps(member)));
                return;
            }
            GroupOp::ShutdownNow => {
                (group.is_shut_down, group.is_paused) = (true, false);
                let place = self.seen.len();
                let drained = self.cancel(number, |_| true);
                return self.seen.insert(place, Seen::Drained(drained));
            }
        };
        self.seen.push(Seen::Answer(answer));
    }

    /// Ends the pending members that are unwanted, in the order in which they were submitted. Returns their numbers.
    fn cancel(&mut self, group: usize, is_unwanted: impl Fn(&Member) -> bool) -> Vec<usize> {
        let members = self.members.iter().enumerate().filter(|(_, it)| it.is_in(group));
        let unwanted = members.filter(|(_, it)| is_unwanted(it)).map(|(task, _)| task);
        let unwanted: Vec<_> = unwanted.collect();
        for task in &unwanted {
            self.with(*task, |task| {
                task.end = Some(TaskState::Cancelled);
                task.settle();
            });
        }
        unwanted
    }

    /// Has something happen to a task at the present.
    fn with<R>(&mut self, number: usize, act: impl FnOnce(&mut Model) -> R) -> R {
        let task = &mut self.members[number].task;
        task.now = self.now;
        let done = act(task);
        self.now = task.now;
        self.seen.extend(task.events.drain(..).map(|event| Seen::Of(number, event)));
        done
    }

    /// What follows from a change: who ends leaves its group, who asks no more has no permit, and who waits and whose turn
    /// has come is looked at once more.
    fn settle(&mut self) {
        for member in &mut self.members {
            member.asks &= member.task.wait.is_some() && member.task.end.is_none();
            let Some((group, end)) = member.group.zip(member.task.end) else { continue };
            if !mem::replace(&mut member.has_left, true) {
                self.groups[group].counts.count(end);
            }
        }
        for number in 0..self.members.len() {
            self.members[number].waits &= !self.is_first(number) && !self.members[number].has_left;
        }
    }

    /// Returns `true` if a member without a permit may have one: there are more left than members before it.
    fn is_first(&self, number: usize) -> bool {
        let Some(group) = self.members[number].group else { return true };
        let members = || self.members.iter().enumerate().filter(|(_, it)| it.is_in(group));
        let asking = members().filter(|(_, it)| it.asks).count();
        let place = |(number, member): (usize, &Member)| (member.due(), number);
        let own = place((number, &self.members[number]));
        let before = members().filter(|it| !it.1.asks && place(*it) < own).count();
        let Group { limit, is_paused, .. } = self.groups[group];
        !is_paused && before < limit.saturating_sub(asking)
    }

    /// Returns the tasks that a worker would take, in order, and when each is due.
    fn due_now(&self) -> Vec<(Duration, usize)> {
        let entries = self.members.iter().enumerate();
        let entries = entries.filter_map(|(number, it)| Some((it.entry()?, number)));
        let mut due: Vec<_> = entries.filter(|(due, _)| *due <= self.now).collect();
        due.sort_unstable();
        due
    }

    fn run_for(&mut self, end: Duration) {
        while !is_over(&self.seen) {
            let next = self.members.iter().filter_map(Member::entry).min();
            let Some(next) = next.map(|next| next.max(self.now)).filter(|next| *next <= end) else {
                break;
            };
            self.now = next;
            self.run_due();
        }
        self.now = self.now.max(end);
    }

    /// If the first does not run, the next one has its turn.
    fn run_one(&mut self) -> usize {
        let due = self.due_now();
        let Some((_, first)) = due.first() else { return 0 };
        let began = self.now;
        if self.take(*first) { 1 } else { self.run_round(began, Some(*first), 1) }
    }

    fn run_due(&mut self) -> usize {
        self.run_round(self.now, None, usize::MAX)
    }

    /// Has each task have its turn that was due when this `began`, up to the place of a run that was missed.
    fn run_round(&mut self, began: Duration, except: Option<usize>, most: usize) -> usize {
        let (mut ran, mut end) = (0, None);
        let now = mem::replace(&mut self.now, began);
        let list = self.due_now();
        self.now = now;
        for (due, number) in list.into_iter().filter(|(_, number)| Some(*number) != except) {
            if end.is_some_and(|Reverse(end)| end < (due, number)) {
                break;
            }
            if self.members[number].entry() == Some(due) {
                ran += usize::from(self.take(number));
                let next = self.members[number].next_missed();
                let next = next.filter(|next| due < *next && *next <= began);
                end = end.max(next.map(|next| Reverse((next, number))));
            }
            if ran >= most {
                break;
            }
        }
        ran
    }

    /// A worker takes a task. Returns `true` if it has run.
    fn take(&mut self, number: usize) -> bool {
        let member = &mut self.members[number];
        if let Some(group) = member.group {
            // One that asks has its permit, which a pause takes from it.
            member.asks &= !self.groups[group].is_paused;
            if !member.asks && !self.is_first(number) {
                self.members[number].waits = true;
                self.settle();
                return false;
            }
        }
        let (before, failed) = (self.members[number].task.runs, self.members[number].task.failed);
        self.with(number, |task| {
            let Some(tick) = task.next() else { return };
            task.turn(tick);
        });
        let member = &mut self.members[number];
        member.asks = member.task.wait.is_some();
        let runs = (member.task.runs - before) as u64;
        if let Some(group) = member.group {
            self.groups[group].counts.runs += runs;
            self.groups[group].counts.failed_runs += member.task.failed - failed;
        }
        self.settle();
        runs > 0
    }

    fn stands(&mut self) {
        for number in 0..self.members.len() {
            self.with(number, |task| task.stands());
        }
        let next = self.members.iter().filter_map(Member::entry).min();
        self.seen.push(Seen::Next(next.map(|next| next.saturating_sub(self.now))));
        for number in 0..self.groups.len() {
            let members = || self.members.iter().filter(|member| member.is_in(number));
            let group = &self.groups[number];
            let counts = Counts {
                pending: members().count(),
                waiting: members().filter(|member| member.waits).count(),
                ..group.counts
            };
            let (is_paused, is_over) = (group.is_paused, group.is_shut_down && counts.pending == 0);
            self.seen.push(Seen::Group { is_paused, is_over, counts });
        }
    }

    fn sum(&mut self) {
        let tasks = || self.members.iter().map(|member| &member.task);
        let sum = Event::Sum {
            runs: tasks().map(|task| task.runs as u64).sum(),
            failed: tasks().map(|task| task.failed).sum(),
            missed: tasks().map(|task| task.all_missed).sum(),
            gate_skips: tasks().map(|task| task.gate_skips).sum(),
        };
        self.seen.push(Seen::Of(0, sum));
    }
}

impl Member {
    fn is_in(&self, group: usize) -> bool {
        self.group == Some(group) && self.task.end.is_none()
    }

    /// Returns when it is due, which may be never.
    fn due(&self) -> Duration {
        self.task.next().map_or(Duration::MAX, |next| next.due)
    }

    /// Returns when a worker may take it.
    fn entry(&self) -> Option<Duration> {
        let awaits = self.task.wait.as_ref().is_some_and(|wait| wait.given.is_none());
        let is_there = self.task.end.is_none() && !self.waits && !awaits;
        is_there.then(|| self.due()).filter(|due| *due < Duration::MAX)
    }

    /// Returns when the next run of a series is due that its gate has not put off.
    fn next_missed(&self) -> Option<Duration> {
        let next = self.task.next().filter(|next| self.task.schedule.is_some() && next.attempt == 0);
        self.entry().filter(|due| next.is_some_and(|next| next.due == *due))
    }
}
