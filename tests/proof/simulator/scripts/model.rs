//! The model: what a script has to show, by the rules of the documentation. Where that is silent the model follows the
//! executor: how the attempts behind an extra run count, and how many runs a late attempt has missed.
//!
//! A task has a *plan*, which is when it runs next by its [schedule](Schedule), and perhaps an *extra* run beside it. Each
//! of the two is a [tick](Tick), about which its gate is asked. All else follows from these two.

pub(super) mod group;
mod turn;

use std::{mem, time::Duration};

use punctual::TaskState;

use super::{
    Event,
    gate::{Answer, Entry},
    is_over,
    schedule::Schedule,
    script::{Body, Missed, OnFailure, Op, Request, Script, Task},
};
use crate::steps::Steps;

/// A moment of the schedule, or one at which an extra run was asked for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tick {
    planned: Duration,
    /// When the task is taken for it, which is later if the gate has put it off.
    due: Duration,
    /// How often the gate was asked about it.
    attempt: u32,
}

impl Tick {
    fn at(moment: Duration) -> Self {
        Self { planned: moment, due: moment, attempt: 0 }
    }

    /// A run that is asked for at the moment of this one is this one.
    fn moved_to(self, moment: Duration) -> Self {
        if self.due == moment { self } else { Self::at(moment) }
    }
}

/// The requests that a body or a gate makes while it is called. They apply to the run after this one.
#[derive(Default)]
struct Asked {
    plan: Option<Tick>,
    within: Option<Duration>,
    schedule: Option<Schedule>,
}

/// The reply for which the task waits, due at this tick.
struct Wait {
    tick: Tick,
    given: Option<Entry>,
}

#[derive(Default)]
struct Model {
    missed: Missed,
    on_failure: Option<OnFailure>,
    bodies: Vec<Body>,
    gate: Vec<Answer>,
    /// `true` if the first run that succeeds ends the task.
    is_call: bool,
    now: Duration,
    events: Vec<Event>,
    end: Option<TaskState>,
    schedule: Option<Schedule>,
    plan: Tick,
    extra: Option<Tick>,
    is_paused: bool,
    /// When a run was asked for that was due already: it is late from then on.
    asked: Option<Duration>,
    /// While the task runs, or its gate is asked.
    noted: Option<Asked>,
    wait: Option<Wait>,
    /// `true` if the gate has a reply to send, whether the task waits for it or not.
    has_reply: bool,
    runs: usize,
    questions: usize,
    in_a_row: u32,
    failed: u64,
    gate_skips: u64,
    /// How many runs were left out since the last one, how many of them are counted, and how many are in all.
    skipped: u64,
    counted: u64,
    all_missed: u64,
}

/// Returns what is to be seen.
pub(super) fn predict(script: &Script) -> Vec<Event> {
    let mut model = Model::of(script);
    for op in &script.ops {
        match op {
            Op::Ask(request) => model.ask(request),
            Op::Stall(span) => model.now += span.span(),
            Op::RunFor(span) => model.run_for(span.span()),
            Op::Reply(entry) => model.reply(*entry),
        }
        if is_over(&model.events) {
            break;
        }
        model.stands();
    }
    let (runs, failed, missed) = (model.runs as u64, model.failed, model.all_missed);
    model.note(Event::Sum { runs, failed, missed, gate_skips: model.gate_skips });
    model.events
}

impl Model {
    fn of(script: &Script) -> Self {
        let (plan, schedule) = match script.task {
            Task::Once(delay) => (delay.span(), None),
            Task::Series(trigger) => (trigger.first.span(), Some(Schedule::of(trigger))),
            Task::Call(tries) => (Duration::ZERO, Some(Schedule::new(None, Some(tries)))),
        };
        Self {
            missed: script.missed,
            on_failure: script.on_failure,
            bodies: script.bodies.clone(),
            gate: script.gate.clone(),
            is_call: matches!(script.task, Task::Call(_)),
            plan: Tick::at(plan),
            schedule,
            ..Self::default()
        }
    }

    fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    fn stands(&mut self) {
        let waits = if self.is_paused { TaskState::Paused } else { TaskState::Scheduled };
        let due = self.next().map(|next| next.due).filter(|due| *due < Duration::MAX);
        let delay = due.filter(|_| self.end.is_none()).map(|due| due.saturating_sub(self.now));
        let state = self.end.unwrap_or(waits);
        self.note(Event::Stands { now: self.now, state, delay });
    }

    /// The extra run comes before the plan, or the plan waits for the end of a pause.
    fn next_extra(&self) -> Option<Tick> {
        self.extra.filter(|extra| self.is_paused || extra.due <= self.plan.due)
    }

    fn next(&self) -> Option<Tick> {
        self.next_extra().or((!self.is_paused).then_some(self.plan))
    }

    fn ask(&mut self, request: &Request) {
        let answer = match (self.end, request) {
            (Some(_), _) => false,
            (None, Request::Cancel) => {
                self.end = Some(TaskState::Cancelled);
                true
            }
            (None, _) if self.noted.is_some() => self.ask_running(request),
            (None, _) => self.ask_waiting(request),
        };
        self.settle();
        self.note(Event::Answer(answer));
    }

    /// A task that never runs has an extra run for its next. One that does not wait for the same tick any more has no use
    /// for a reply about it.
    fn settle(&mut self) {
        let is_never = self.plan.due == Duration::MAX && !self.is_paused && self.noted.is_none();
        if let Some(extra) = self.extra.take_if(|_| is_never) {
            self.plan = extra;
        }
        let next = self.next().filter(|_| self.end.is_none());
        if let Some(unused) = self.wait.take_if(|wait| Some(wait.tick) != next) {
            self.leave_unused(unused.given);
        }
    }

    fn leave_unused(&mut self, entry: Option<Entry>) {
        if entry.is_some_and(Entry::has_lease) {
            self.note(Event::Left { success: None, next: None });
        }
    }

    /// The gate gives the answer for which the task waits. It goes on at the next turn.
    fn reply(&mut self, entry: Entry) {
        if !mem::replace(&mut self.has_reply, false) {
            return;
        }
        self.has_reply = entry == Entry::Later;
        match &mut self.wait {
            Some(wait) => wait.given = Some(entry),
            None => self.leave_unused(Some(entry)),
        }
    }

    fn ask_waiting(&mut self, request: &Request) -> bool {
        let now = self.now;
        let is_due = |tick: Option<Tick>| tick.is_some_and(|tick| tick.due <= now);
        match *request {
            Request::Pause | Request::Resume => return self.toggle(request),
            // A run that is due already is the one that was asked for.
            Request::RunNow if is_due(self.next_extra()) => {}
            Request::RunNow if is_due(self.next()) => self.asked = Some(now),
            Request::RunNow if self.schedule.is_some() => self.extra = Some(Tick::at(now)),
            Request::RunNow => (self.plan, self.is_paused) = (self.plan.moved_to(now), false),
            Request::RunWithin(span) => self.hasten(now + span.span()),
            Request::Reschedule(span) => self.reschedule(span),
            Request::SetTrigger(_) if self.schedule.is_none() => return false,
            Request::SetTrigger(trigger) => {
                self.reschedule(trigger.first);
                self.replace(Schedule::of(trigger));
            }
            Request::Cancel => {}
        }
        true
    }

    fn reschedule(&mut self, span: Steps) {
        (self.plan, self.asked) = (Tick::at(self.now + span.span()), None);
    }

    /// A plan that is earlier anyway is asked for anew.
    fn hasten(&mut self, moment: Duration) {
        if self.plan.due < moment {
            self.asked = Some(moment);
        } else {
            self.plan = self.plan.moved_to(moment);
        }
    }

    fn replace(&mut self, schedule: Schedule) {
        (self.schedule, self.skipped, self.counted) = (Some(schedule), 0, 0);
    }

    fn toggle(&mut self, request: &Request) -> bool {
        let before = mem::replace(&mut self.is_paused, matches!(request, Request::Pause));
        before != self.is_paused
    }

    fn ask_running(&mut self, request: &Request) -> bool {
        let (now, is_series) = (self.now, self.schedule.is_some());
        let Some(noted) = self.noted.as_mut().filter(|_| is_series) else { return false };
        match *request {
            Request::Pause | Request::Resume => return self.toggle(request),
            Request::RunNow if !self.is_paused && noted.plan.is_some_and(|plan| plan.due <= now) => {
                self.asked = Some(now);
            }
            Request::RunNow => {
                self.extra = Some(self.extra.map_or(Tick::at(now), |extra| extra.moved_to(now)));
            }
            Request::RunWithin(span) => {
                let moment = now + span.span();
                match &mut noted.plan {
                    Some(plan) if plan.due < moment => self.asked = Some(moment),
                    Some(plan) => *plan = plan.moved_to(moment),
                    None => noted.within = Some(noted.within.map_or(moment, |old| old.min(moment))),
                }
            }
            Request::Reschedule(span) => {
                (noted.plan, noted.within) = (Some(Tick::at(now + span.span())), None);
                self.asked = None;
            }
            Request::SetTrigger(trigger) => {
                (noted.plan, noted.within) = (Some(Tick::at(now + trigger.first.span())), None);
                self.asked = None;
                noted.schedule = Some(Schedule::of(trigger));
            }
            Request::Cancel => {}
        }
        true
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.end.is_none() && !is_over(&self.events) {
            // Time does not wait for a reply.
            let is_awaiting = self.wait.as_ref().is_some_and(|wait| wait.given.is_none());
            let next = self.next().filter(|_| !is_awaiting);
            let Some(next) = next.filter(|next| next.due.max(self.now) <= end) else { break };
            self.now = next.due.max(self.now);
            self.turn(next);
        }
        self.now = self.now.max(end);
    }
}
