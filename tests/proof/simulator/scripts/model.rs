//! The model: what a script has to show, by the rules of the documentation. Where that is silent the model follows the
//! executor: how the attempts behind an extra run count, and how many runs a late attempt has missed.
//!
//! A task has a *plan*, which is when it runs next by its [schedule](Schedule), and perhaps an *extra* run beside it. All
//! else follows from these two.

use std::{mem, time::Duration};

use punctual::TaskState;

use super::{
    Event, MOST_RUNS,
    schedule::Schedule,
    script::{Body, Missed, OnFailure, Op, Request, Script, Task},
};

/// What is asked of a task while it runs. It applies to the run after it.
#[derive(Default)]
struct Asked {
    plan: Option<Duration>,
    within: Option<Duration>,
    schedule: Option<Schedule>,
}

#[derive(Default)]
struct Model {
    missed: Missed,
    on_failure: Option<OnFailure>,
    bodies: Vec<Body>,
    /// `true` if the first run that succeeds ends the task.
    is_call: bool,
    now: Duration,
    events: Vec<Event>,
    end: Option<TaskState>,
    schedule: Option<Schedule>,
    plan: Duration,
    extra: Option<Duration>,
    is_paused: bool,
    /// When a run was asked for that was due already: it is late from then on.
    asked: Option<Duration>,
    /// While the task runs.
    noted: Option<Asked>,
    runs: usize,
    in_a_row: u32,
    failed: u64,
    /// How many runs were left out since the last one, how many of them are counted, and how many are in all.
    skipped: u64,
    counted: u64,
    all_missed: u64,
}

/// Returns what is to be seen.
pub(super) fn predict(script: &Script) -> Vec<Event> {
    let (plan, schedule) = match script.task {
        Task::Once(delay) => (delay.span(), None),
        Task::Series(trigger) => (trigger.first.span(), Some(Schedule::of(trigger))),
        Task::Call(tries) => (Duration::ZERO, Some(Schedule::new(None, Some(tries)))),
    };
    let mut model = Model {
        missed: script.missed,
        on_failure: script.on_failure,
        bodies: script.bodies.clone(),
        is_call: matches!(script.task, Task::Call(_)),
        plan,
        schedule,
        ..Model::default()
    };
    for op in &script.ops {
        match op {
            Op::Ask(request) => model.ask(request),
            Op::Stall(span) => model.now += span.span(),
            Op::RunFor(span) => model.run_for(span.span()),
        }
        if model.runs >= MOST_RUNS {
            break;
        }
        model.stands();
    }
    let (runs, failed, missed) = (model.runs as u64, model.failed, model.all_missed);
    model.note(Event::Sum { runs, failed, missed });
    model.events
}

impl Model {
    fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    fn stands(&mut self) {
        let waits = if self.is_paused { TaskState::Paused } else { TaskState::Scheduled };
        let due = self.due().filter(|_| self.end.is_none());
        let delay = due.map(|due| due.saturating_sub(self.now));
        let state = self.end.unwrap_or(waits);
        self.note(Event::Stands { now: self.now, state, delay });
    }

    /// The extra run comes before the plan, or the plan waits for the end of a pause.
    fn next_extra(&self) -> Option<Duration> {
        self.extra.filter(|extra| self.is_paused || *extra <= self.plan)
    }

    fn due(&self) -> Option<Duration> {
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
        self.note(Event::Answer(answer));
    }

    fn ask_waiting(&mut self, request: &Request) -> bool {
        let (now, is_due) = (self.now, self.due().is_some_and(|due| due <= self.now));
        match *request {
            Request::Pause | Request::Resume => return self.toggle(request),
            // A run that is due already is the one that was asked for.
            Request::RunNow if self.next_extra().is_some() => {}
            Request::RunNow if is_due => self.asked = Some(now),
            Request::RunNow if self.schedule.is_some() => self.extra = Some(now),
            Request::RunNow => (self.plan, self.is_paused) = (now, false),
            Request::RunWithin(span) => self.hasten(now + span.span()),
            Request::Reschedule(span) => (self.plan, self.asked) = (now + span.span(), None),
            Request::SetTrigger(_) if self.schedule.is_none() => return false,
            Request::SetTrigger(trigger) => {
                (self.plan, self.asked) = (now + trigger.first.span(), None);
                self.replace(Schedule::of(trigger));
            }
            Request::Cancel => {}
        }
        true
    }

    /// A plan that is earlier anyway is asked for anew.
    fn hasten(&mut self, moment: Duration) {
        if self.plan < moment { self.asked = Some(moment) } else { self.plan = moment }
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
            Request::RunNow if !self.is_paused && noted.plan.is_some_and(|plan| plan <= now) => {
                self.asked = Some(now);
            }
            Request::RunNow => self.extra = Some(now),
            Request::RunWithin(span) => {
                let moment = now + span.span();
                match &mut noted.plan {
                    Some(plan) if *plan < moment => self.asked = Some(moment),
                    Some(plan) => *plan = moment,
                    None => noted.within = Some(noted.within.map_or(moment, |old| old.min(moment))),
                }
            }
            Request::Reschedule(span) => {
                (noted.plan, noted.within, self.asked) = (Some(now + span.span()), None, None);
            }
            Request::SetTrigger(trigger) => {
                (noted.plan, noted.within) = (Some(now + trigger.first.span()), None);
                self.asked = None;
                noted.schedule = Some(Schedule::of(trigger));
            }
            Request::Cancel => {}
        }
        true
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.end.is_none() && self.runs < MOST_RUNS {
            let next = self.due().map(|due| due.max(self.now));
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next;
            self.turn(self.next_extra().is_some());
        }
        self.now = self.now.max(end);
    }

    /// A worker takes the task.
    fn turn(&mut self, is_extra: bool) {
        let (planned, started) = (self.due().unwrap_or_default(), self.now);
        if !is_extra && self.is_overdue(planned) {
            return self.leave_out(planned);
        }
        let covered = self.schedule.map_or(0, |schedule| match self.missed {
            Missed::Coalesce | Missed::Delay => schedule.between(planned, started),
            _ => 0,
        });
        // An extra run stands for no moment of the schedule.
        let missed = if is_extra { 0 } else { self.skipped + covered };
        self.note(Event::Run { at: started, planned, missed, attempt: self.in_a_row + 1 });
        self.all_missed += if is_extra { 0 } else { missed - self.counted };
        let body = self.bodies[self.runs % self.bodies.len()];
        *(if is_extra { &mut self.extra } else { &mut self.asked }) = None;
        let plan = is_extra.then_some(self.plan);
        self.noted = Some(Asked { plan, ..Asked::default() });
        self.runs += 1;
        self.now += body.takes.span();
        body.asks.iter().for_each(|request| self.ask(request));
        let noted = self.noted.take().unwrap_or_default();
        self.follow(body.fails, is_extra, (planned, started), noted);
    }

    /// The run has ended: what follows it?
    fn follow(&mut self, fails: bool, is_extra: bool, run: (Duration, Duration), noted: Asked) {
        let Some(schedule) = &mut self.schedule else {
            self.end = self.end.or(Some(TaskState::Completed));
            return;
        };
        self.in_a_row = if fails { self.in_a_row + 1 } else { 0 };
        self.failed += u64::from(fails);
        // Attempts are failures in a row, and an extra run may have succeeded in between.
        if !is_extra {
            schedule.failed = schedule.failed.min(self.in_a_row.saturating_sub(1));
        }
        let goes_on = match self.on_failure {
            // A failure does not end what is to be tried again.
            None => schedule.retry.is_some(),
            Some(OnFailure::Resume) => true,
            Some(OnFailure::StopAfter(most)) => self.in_a_row < most,
        };
        let ending = match fails {
            true if !goes_on => Some(TaskState::Failed),
            false if self.is_call => Some(TaskState::Completed),
            _ => None,
        };
        let next =
            if ending.is_some() || is_extra { noted.plan } else { self.next(run, Some(fails)) };
        let ending = ending.or(next.is_none().then_some(TaskState::Failed));
        self.end = self.end.or(ending);
        self.go_on(next.unwrap_or_default(), noted);
    }

    /// The task waits for `next`, or for what was asked for meanwhile.
    fn go_on(&mut self, next: Duration, noted: Asked) {
        self.plan = noted.plan.unwrap_or(next);
        noted.within.into_iter().for_each(|within| self.hasten(within));
        noted.schedule.into_iter().for_each(|schedule| self.replace(schedule));
    }

    fn is_overdue(&self, planned: Duration) -> bool {
        let from = self.asked.map_or(planned, |asked| asked.max(planned));
        self.schedule.is_some_and(|schedule| schedule.is_overdue(from, self.now, self.missed))
    }

    /// The run does not take place, and counts as missed at once.
    fn leave_out(&mut self, planned: Duration) {
        self.asked = None;
        let (before, counted) = (self.skipped + 1, self.counted);
        let next = self.next((planned, self.now), None);
        self.skipped += before;
        self.counted = self.skipped;
        self.all_missed += self.skipped - counted;
        match next {
            Some(next) => self.plan = next,
            None if self.in_a_row > 0 => self.end = Some(TaskState::Failed),
            None => self.end = Some(TaskState::Completed),
        }
    }

    /// Returns the next moment of the schedule, after a run that `fails` or not, or did not take place.
    fn next(&mut self, run: (Duration, Duration), fails: Option<bool>) -> Option<Duration> {
        (self.skipped, self.counted) = (0, 0);
        let schedule = self.schedule.as_mut()?;
        let next = schedule.next(run, self.now, self.missed, fails)?;
        if self.missed.has_deadline() {
            self.skipped = schedule.between(run.0, next).saturating_sub(1);
        }
        Some(next)
    }
}
