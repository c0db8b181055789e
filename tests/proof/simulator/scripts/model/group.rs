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
    keep: Option<bool>,
    says: Vec<Option<Op>>,
    /// `true` while its body runs, which has a permit.
    runs: bool,
    /// `true` if it has a permit, and waits for the answer of its gate.
    asks: bool,
    /// When it is due, if a worker has found then that it is not its turn.
    waits: Option<Duration>,
    has_left: bool,
}

#[derive(Default)]
struct Group {
    limit: usize,
    is_reserved: bool,
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
    is_shut_down: bool,
    is_terminated: bool,
    seen: Vec<Seen>,
}

/// Returns what is to be seen.
pub(in crate::scripts) fn predict(script: &GroupScript) -> Vec<Seen> {
    let groups = script.limits.iter().map(|limit| Group { limit: *limit, ..Group::default() });
    let members = script.tasks.iter().map(|scripted| Member {
        task: Model::of(&scripted.script),
        is_series: matches!(scripted.script.task, Task::Series(_)),
        group: scripted.group,
        keep: scripted.keep,
        says: scripted.says.clone(),
        runs: false,
        asks: false,
        waits: None,
        has_left: false,
    });
    let mut world = World {
        now: Duration::ZERO,
        members: members.collect(),
        groups: groups.collect(),
        keeps: script.keeps,
        is_shut_down: false,
        is_terminated: false,
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
            Op::RunDue => {
                let ran = self.run_due();
                self.seen.push(Seen::Number(ran));
            }
            Op::RunFor(span) => self.run_for(self.now + span.span()),
            Op::Group(group, op) => self.carry_out_group(group, op),
            Op::Shutdown => {
                self.is_shut_down = true;
                let now = self.now;
                drop(self.cancel(|world, member| {
                    // What a paused group keeps from running waits, as what is not due.
                    let is_paused = member.group.is_some_and(|it| world.groups[it].is_paused);
                    !world.keeps(member, is_paused || member.due() > now)
                }));
                self.terminate();
            }
            Op::ShutdownNow => {
                self.is_shut_down = true;
                drop(self.cancel(|_, _| true));
                self.terminate();
            }
        }
    }

    /// Returns `true` if a shutdown keeps a pending task.
    fn keeps(&self, member: &Member, is_delayed: bool) -> bool {
        let (delayed, periodic) = self.keeps;
        let by_kind = if member.is_series { periodic } else { delayed || !is_delayed };
        member.keep.unwrap_or(by_kind)
    }

    /// An executor without tasks ends with its shutdown, or when it is called.
    fn terminate(&mut self) {
        let mut tasks = self.members.iter().map(|member| &member.task);
        self.is_terminated |= self.is_shut_down && tasks.all(|task| task.end.is_some());
    }

    /// Returns when the executor has to be called.
    fn next(&self) -> Option<Duration> {
        let mut members = self.members.iter();
        if self.is_shut_down && members.all(|member| member.task.end.is_some()) {
            return (!self.is_terminated).then_some(self.now);
        }
        self.members.iter().filter_map(Member::entry).min()
    }

    fn carry_out_group(&mut self, number: usize, op: GroupOp) {
        let group = &mut self.groups[number];
        let answer = match op {
            GroupOp::Pause => {
                let is_open = !group.is_shut_down && !self.is_shut_down;
                is_open && !mem::replace(&mut group.is_paused, true)
            }
            GroupOp::Resume => mem::take(&mut group.is_paused),
            GroupOp::Limit(limit) => {
                group.limit = limit;
                true
            }
            GroupOp::Reserve(is_reserved) => {
                group.is_reserved = is_reserved;
                true
            }
            GroupOp::CancelAll => {
                let cancelled = self.cancel(|_, member| member.is_in(number));
                return self.seen.push(Seen::Number(cancelled.len()));
            }
            GroupOp::Shutdown => {
                (group.is_shut_down, group.is_paused) = (true, false);
                let now = self.now;
                drop(self.cancel(|world, member| {
                    member.is_in(number) && !world.keeps(member, member.due() > now)
                }));
                return;
            }
            GroupOp::ShutdownNow => {
                (group.is_shut_down, group.is_paused) = (true, false);
                let place = self.seen.len();
                let drained = self.cancel(|_, member| member.is_in(number));
                return self.seen.insert(place, Seen::Drained(drained));
            }
        };
        self.seen.push(Seen::Answer(answer));
    }

    /// Ends the tasks that are unwanted, in the order in which they were submitted. Returns their numbers.
    fn cancel(&mut self, is_unwanted: impl Fn(&Self, &Member) -> bool) -> Vec<usize> {
        let tasks = self.members.iter().enumerate().filter(|(_, it)| it.task.end.is_none());
        let unwanted = tasks.filter(|(_, it)| is_unwanted(self, it)).map(|(task, _)| task);
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
            let ended = member.group.zip(member.task.end).filter(|_| !member.runs);
            let Some((group, end)) = ended else { continue };
            if !mem::replace(&mut member.has_left, true) {
                self.groups[group].counts.count(end);
            }
        }
        for number in 0..self.members.len() {
            // One that is due later waits for no turn until then.
            let is_first = self.is_first(number);
            let member = &mut self.members[number];
            let (due, has_left) = (member.due(), member.has_left);
            let waits = member.waits.is_some_and(|since| due <= since);
            member.waits = (waits && !is_first && !has_left).then_some(due);
        }
    }

    /// Returns `true` if a member without a permit may have one: there are more left than members before it.
    fn is_first(&self, number: usize) -> bool {
        let Some(group) = self.members[number].group else { return true };
        let members = || self.members.iter().enumerate().filter(|(_, it)| it.is_in(group));
        let running = self.members.iter().filter(|it| it.runs && it.group == Some(group)).count();
        let taken = running + members().filter(|(_, it)| it.asks).count();
        let place = |(number, member): (usize, &Member)| (member.due(), number);
        let own = place((number, &self.members[number]));
        let before = members().filter(|it| !it.1.asks && place(*it) < own).count();
        let group = &self.groups[group];
        !group.is_paused && before < group.permits().saturating_sub(taken)
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
            let next = self.next();
            let Some(next) = next.map(|next| next.max(self.now)).filter(|next| *next <= end) else {
                break;
            };
            self.now = next;
            self.run_due();
        }
        self.now = self.now.max(end);
    }

    /// Gives a turn to each task that was due when this began, up to the place of a series whose next moment has
    /// come as well.
    fn run_due(&mut self) -> usize {
        let (began, mut ran, mut end) = (self.now, 0, None);
        for (due, number) in self.due_now() {
            if end.is_some_and(|Reverse(end)| end < (due, number)) {
                break;
            }
            if self.members[number].entry() == Some(due) {
                ran += usize::from(self.take(number));
                let member = &self.members[number];
                let next = member.entry().filter(|_| member.task.schedule.is_some());
                let next = next.filter(|next| due < *next && *next <= began);
                end = end.max(next.map(|next| Reverse((next, number))));
            }
        }
        self.terminate();
        ran
    }

    /// A worker takes a task. Returns `true` if it has run.
    fn take(&mut self, number: usize) -> bool {
        let member = &mut self.members[number];
        if let Some(group) = member.group {
            // One that asks has its permit, which a pause takes from it.
            member.asks &= !self.groups[group].is_paused;
            if !member.asks && !self.is_first(number) {
                let member = &mut self.members[number];
                member.waits = Some(member.due());
                self.settle();
                return false;
            }
        }
        let (before, failed) = (self.members[number].task.runs, self.members[number].task.failed);
        let seen = self.seen.len();
        self.with(number, |task| {
            let Some(tick) = task.next() else { return };
            task.turn(tick);
        });
        self.say(number, before, seen);
        let member = &self.members[number];
        if self.is_shut_down && member.task.wait.is_none() && !self.keeps(member, true) {
            self.with(number, |task| task.end = task.end.or(Some(TaskState::Cancelled)));
        }
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

    /// If a body has run, by what is `seen` from there on, something was done at its begin.
    fn say(&mut self, number: usize, run: usize, seen: usize) {
        let member = &mut self.members[number];
        let Some(op) = member.says[run % member.says.len()] else { return };
        let begin = self.seen[seen..]
            .iter()
            .position(|seen| matches!(seen, Seen::Of(_, Event::Run { .. })));
        let Some(begin) = begin.map(|begin| seen + begin) else { return };
        let Seen::Of(_, Event::Run { at, .. }) = self.seen[begin] else { return };
        let after = self.seen.split_off(begin + 1);
        let end = mem::replace(&mut self.now, at);
        member.runs = true;
        self.carry_out(&op);
        self.settle();
        self.members[number].runs = false;
        self.seen.extend(after);
        self.now = end;
    }

    fn stands(&mut self) {
        for number in 0..self.members.len() {
            self.with(number, |task| task.stands());
        }
        let next = self.next();
        self.seen.push(Seen::Next(next.map(|next| next.saturating_sub(self.now))));
        for number in 0..self.groups.len() {
            let members = || self.members.iter().filter(|member| member.is_in(number));
            let group = &self.groups[number];
            let is_ending = group.is_shut_down || self.is_shut_down;
            let counts = Counts {
                pending: members().count(),
                waiting: members().filter(|member| member.waits.is_some()).count(),
                ..group.counts
            };
            let (is_paused, is_over) = (group.is_paused, is_ending && counts.pending == 0);
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

impl Group {
    fn permits(&self) -> usize {
        // There is one worker.
        if self.is_reserved { 1 } else { self.limit }
    }
}

impl Member {
    fn is_in(&self, group: usize) -> bool {
        self.group == Some(group) && self.task.end.is_none() && !self.runs
    }

    /// Returns when it is due, which may be never.
    fn due(&self) -> Duration {
        self.task.next().map_or(Duration::MAX, |next| next.due)
    }

    /// Returns when a worker may take it.
    fn entry(&self) -> Option<Duration> {
        let awaits = self.task.wait.as_ref().is_some_and(|wait| wait.given.is_none());
        let is_there = self.task.end.is_none() && self.waits.is_none() && !awaits;
        is_there.then(|| self.due()).filter(|due| *due < Duration::MAX)
    }
}
