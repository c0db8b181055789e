//! The model: what a script of the wall clock has to show, by the rules of the documentation. Where that is silent the
//! model follows the executor:
//!
//! * A request has the task follow the clock as a look does.
//! * A planned run that is due when it is asked for, and no more when the worker takes it, waits for its moment.
//! * With jitter the next run counts as due, for `Skip`, with the span of the present one.
//! * A first moment that has passed means now to a starting deadline, and is the moment from which lateness counts.
//!
//! All moments are since the origin of the manual clock, or, of the wall clock, since 1970. The one is the other and how far
//! that clock is ahead, which changes when it is set.

use std::{collections::VecDeque, mem, time::Duration};

use punctual::TaskState;

use super::{Change, Op, Script, Spread, Task};
use crate::scripts::{
    Event, is_over,
    script::{Missed, Request},
};

const BETWEEN_LOOKS: u64 = 30;
/// What the wall clock shows at the origin of a manual clock: the year 2000.
const AHEAD_AT_FIRST: Duration = Duration::from_secs(946_684_800);
/// Up to here `Skip` takes a run for one that is on time, and from there on for one that is too late in any case.
const ON_TIME: Duration = Duration::from_millis(1);
const TOO_LATE: Duration = Duration::from_secs(10);
const NANO: Duration = Duration::from_nanos(1);

/// The plan for the next run.
#[derive(Clone, Copy)]
enum Plan {
    /// On the executor's clock: it was asked for.
    At(Duration),
    /// On the wall clock: it is the first of its trigger behind `after`.
    Wall { moment: Duration, jitter: Duration, after: Duration, late_from: Duration },
}

struct Model<'a> {
    script: &'a Script,
    /// The moments of a list that are to come.
    moments: VecDeque<Duration>,
    now: Duration,
    /// How far the wall clock is ahead.
    ahead: Duration,
    events: Vec<Event>,
    end: Option<TaskState>,
    /// `None` while the planned run is under way, unless it has asked for the next.
    plan: Option<Plan>,
    extra: Option<Duration>,
    is_paused: bool,
    /// When a run was asked for that was due already: it is late from then on.
    asked: Option<Duration>,
    /// When the next run is due at the latest, by a request while there is no plan.
    within: Option<Duration>,
    /// When a worker takes the task, and whether that is for the extra run. `None` while it runs, too.
    entry: Option<(Duration, bool)>,
    is_running: bool,
    /// When the worker has taken the task, on both clocks.
    started: (Duration, Duration),
    runs: usize,
    /// How many runs were left out since the last one, how many of them are counted, and how many are in all.
    skipped: u64,
    counted: u64,
    all_missed: u64,
}

/// Returns what is to be seen.
pub(super) fn predict(script: &Script) -> Vec<Event> {
    let (now, ahead) = (script.begins_at(), AHEAD_AT_FIRST);
    let mut moments = VecDeque::from(script.task.moments(now + ahead));
    // The first moment of a list may be that of the submission. The one of a call may be any: it means now if it has passed.
    if matches!(script.task, Task::List(..)) {
        moments.retain(|moment| *moment >= now + ahead);
    }
    let mut model = Model {
        script,
        moments,
        now,
        ahead,
        events: Vec::new(),
        end: None,
        plan: None,
        extra: None,
        is_paused: false,
        asked: None,
        within: None,
        entry: None,
        is_running: false,
        started: (now, now),
        runs: 0,
        skipped: 0,
        counted: 0,
        all_missed: 0,
    };
    let first = if model.moments.is_empty() { now + ahead } else { Duration::ZERO };
    model.plan = model.planned_behind(first);
    if let Some(Plan::Wall { late_from, after, .. }) = &mut model.plan {
        (*late_from, *after) = ((*late_from).max(now + ahead), now + ahead);
    }
    model.queue();
    model.play();
    let (runs, missed) = (model.runs as u64, model.all_missed);
    model.events.push(Event::Sum { runs, failed: 0, missed, gate_skips: 0 });
    model.events
}

impl Model<'_> {
    fn play(&mut self) {
        for op in &self.script.ops {
            match op {
                Op::Set(change) => self.set(*change),
                Op::Ask(request) => self.ask(request),
                Op::Stall(span) => self.now += span.span(),
                Op::RunFor(span) => self.run_for(span.span()),
            }
            if is_over(&self.events) {
                break;
            }
            let waits = if self.is_paused { TaskState::Paused } else { TaskState::Scheduled };
            let due = self.next().filter(|_| self.end.is_none());
            let (now, state) = (self.now, self.end.unwrap_or(waits));
            let delay = due.map(|due| due.saturating_sub(now));
            self.events.push(Event::Stands { now, state, delay });
        }
    }

    fn is_once(&self) -> bool {
        matches!(self.script.task, Task::Once(_))
    }

    fn wall(&self) -> Duration {
        self.now + self.ahead
    }

    fn set(&mut self, change: Change) {
        self.ahead = change.of(self.ahead);
    }

    /// Returns when a plan is due, by what the wall clock shows.
    fn due(&self, plan: Plan) -> Duration {
        match plan {
            Plan::At(moment) => moment,
            Plan::Wall { moment, .. } => moment.saturating_sub(self.ahead),
        }
    }

    /// The plan waits for the end of a pause.
    fn next_planned(&self) -> Option<Duration> {
        self.plan.filter(|_| !self.is_paused).map(|plan| self.due(plan))
    }

    /// The extra run comes before the plan.
    fn next_extra(&self) -> Option<Duration> {
        self.extra.filter(|extra| self.next_planned().is_none_or(|plan| *extra <= plan))
    }

    fn next(&self) -> Option<Duration> {
        self.next_extra().or(self.next_planned())
    }

    /// The task waits: until it is due by what the clocks show, or for the next look.
    fn queue(&mut self) {
        let due = self.next();
        self.entry = match (due, self.next_extra(), self.plan) {
            (Some(due), None, Some(Plan::Wall { .. })) if due > self.now => {
                let looks = self.now.as_secs() / BETWEEN_LOOKS + 1;
                Some((due.min(Duration::from_secs(looks * BETWEEN_LOOKS)), false))
            }
            (due, extra, _) => due.map(|due| (due, extra.is_some())),
        };
    }

    fn ask(&mut self, request: &Request) {
        let answer = match request {
            _ if self.end.is_some() => false,
            Request::Cancel => {
                self.end = Some(TaskState::Cancelled);
                true
            }
            // No run is to come.
            _ if self.is_running && self.is_once() => false,
            Request::Pause | Request::Resume => {
                let pauses = matches!(request, Request::Pause);
                mem::replace(&mut self.is_paused, pauses) != pauses
            }
            _ => {
                self.plan_anew(request);
                true
            }
        };
        if !self.is_running {
            self.queue();
        }
        self.events.push(Event::Answer(answer));
    }

    fn plan_anew(&mut self, request: &Request) {
        let now = self.now;
        let is_due = |moment: Option<Duration>| moment.is_some_and(|moment| moment <= now);
        match *request {
            // A run that is due already is the one that was asked for.
            Request::RunNow if !self.is_running && is_due(self.next_extra()) => {}
            Request::RunNow if is_due(self.next_planned()) => self.asked = Some(now),
            Request::RunNow if self.is_once() => {
                (self.plan, self.is_paused) = (Some(Plan::At(now)), false);
            }
            Request::RunNow => self.extra = Some(now),
            Request::RunWithin(span) => self.hasten(now + span.span()),
            Request::Reschedule(span) => {
                self.plan = Some(Plan::At(now + span.span()));
                (self.within, self.asked) = (None, None);
            }
            _ => {}
        }
    }

    /// A plan that is earlier anyway is asked for anew.
    fn hasten(&mut self, moment: Duration) {
        match self.plan.map(|plan| self.due(plan)) {
            None => self.within = Some(self.within.map_or(moment, |within| within.min(moment))),
            Some(due) if due < moment => self.asked = Some(moment),
            Some(due) if due > moment => self.plan = Some(Plan::At(moment)),
            Some(_) => {}
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.end.is_none() && !is_over(&self.events) {
            let entry = self.entry.filter(|(due, _)| (*due).max(self.now) <= end);
            let Some((due, is_extra)) = entry else { break };
            self.now = due.max(self.now);
            self.turn(is_extra);
            self.queue();
        }
        self.now = self.now.max(end);
    }

    /// A worker takes the task. If that is too early by the wall clock it was a look, which is no run.
    fn turn(&mut self, is_extra: bool) {
        self.started = (self.now, self.wall());
        let extra = self.extra.take_if(|_| is_extra).map(Plan::At);
        let Some(plan) = extra.or(self.plan) else { return };
        match plan {
            Plan::Wall { moment, after, .. } if self.wall() < moment => {
                let Task::Calendar(calendar) = self.script.task else { return };
                if calendar.is_asked_again && self.wall() < after {
                    self.plan = self.planned_behind(self.wall());
                }
                return;
            }
            _ => {}
        }
        let asked = if is_extra { None } else { self.asked.take() };
        self.plan.take_if(|_| !is_extra);
        self.is_running = true;
        let next = match !is_extra && self.is_overdue(plan, asked) {
            true => self.leave_out(plan),
            false => self.run(plan, is_extra),
        };
        self.is_running = false;
        self.end = self.end.or(next.is_none().then_some(TaskState::Completed));
        self.plan = self.plan.or(next);
        self.within.take().into_iter().for_each(|within| self.hasten(within));
    }

    /// A starting deadline is for series.
    fn is_overdue(&self, plan: Plan, asked: Option<Duration>) -> bool {
        let late = match plan {
            Plan::At(moment) => self.now - moment,
            Plan::Wall { late_from, .. } => self.wall().saturating_sub(late_from),
        };
        let late = asked.map_or(late, |asked| late.min(self.now.saturating_sub(asked)));
        let is_next_due = || self.between(plan, self.wall() - late, self.wall()) > 0;
        match self.script.missed {
            _ if self.is_once() => false,
            Missed::Within(limit) => late > limit.span(),
            Missed::Skip => late > TOO_LATE || late >= ON_TIME && is_next_due(),
            _ => false,
        }
    }

    /// Returns how many runs there are behind one moment of the wall clock and up to another, if they are delayed as this
    /// one. A calendar knows of none on the other clock.
    fn between(&self, plan: Plan, from: Duration, to: Duration) -> u64 {
        match (&self.script.task, plan) {
            (Task::Calendar(calendar), Plan::Wall { jitter, .. }) if calendar.counts => {
                let up_to = |moment: Duration| calendar.count_up_to(moment.saturating_sub(jitter));
                up_to(to).saturating_sub(up_to(from))
            }
            _ => 0,
        }
    }

    /// Returns the next plan. An extra run leaves it as it is, and stands for no other.
    fn run(&mut self, plan: Plan, is_extra: bool) -> Option<Plan> {
        let covered = match (self.script.missed, plan) {
            (Missed::Coalesce | Missed::Delay, Plan::Wall { moment, .. }) => {
                self.between(plan, moment, self.wall())
            }
            _ => 0,
        };
        let missed = if is_extra { 0 } else { self.skipped + covered };
        self.all_missed += missed - if is_extra { 0 } else { self.counted };
        let (at, planned) = (self.now, self.due(plan));
        self.events.push(Event::Run { at, planned, missed, attempt: 1 });
        let is_exact = matches!(plan, Plan::Wall { .. });
        self.events.push(Event::OnWall { planned: planned + self.ahead, is_exact });
        let body = self.script.bodies[self.runs % self.script.bodies.len()];
        self.runs += 1;
        self.now += body.takes.span();
        body.sets.iter().for_each(|change| self.set(*change));
        body.asks.iter().for_each(|request| self.ask(request));
        match is_extra {
            _ if self.is_once() => None,
            true => self.plan,
            false => self.next_plan(plan),
        }
    }

    /// The run does not take place, and counts as missed at once.
    fn leave_out(&mut self, plan: Plan) -> Option<Plan> {
        let (before, counted) = (self.skipped + 1, self.counted);
        let next = self.next_plan(plan);
        self.skipped += before;
        self.all_missed += self.skipped - counted;
        self.counted = self.skipped;
        next
    }

    /// Returns the next plan of the trigger, which is asked behind what the policy says, and never behind the present.
    fn next_plan(&mut self, plan: Plan) -> Option<Plan> {
        (self.skipped, self.counted) = (0, 0);
        let (planned, started, jitter) = match plan {
            Plan::At(moment) => (moment + self.ahead, self.started.0 + self.ahead, Duration::ZERO),
            Plan::Wall { moment, jitter, .. } => (moment, self.started.1, jitter),
        };
        let after = match self.script.missed {
            Missed::Burst => planned,
            Missed::Coalesce | Missed::Delay => started,
            Missed::Skip => self.wall(),
            Missed::Within(limit) => planned.max(self.wall() - limit.span() - NANO),
        };
        let next = self.planned_behind((after - jitter).min(self.wall()))?;
        if let Plan::Wall { moment, jitter: span, .. } = next {
            if self.script.missed.has_deadline() {
                // Both are counted by their ticks.
                let between = self.between(plan, planned, moment - span + jitter);
                self.skipped = between.saturating_sub(1);
            }
        }
        Some(next)
    }

    /// Returns the plan for the first moment of the trigger behind this one.
    fn planned_behind(&mut self, after: Duration) -> Option<Plan> {
        let (tick, jitter) = match self.script.task {
            Task::Calendar(calendar) => {
                let tick = calendar.first_after(after);
                (tick, calendar.jitter.map_or(Duration::ZERO, |spread| spread.of(tick)))
            }
            _ => {
                let leaves_out = matches!(self.script.task, Task::List(..));
                while leaves_out && self.moments.front().is_some_and(|moment| *moment <= after) {
                    self.moments.pop_front();
                }
                (self.moments.pop_front()?, Duration::ZERO)
            }
        };
        let moment = tick + jitter;
        Some(Plan::Wall { moment, jitter, after, late_from: moment })
    }
}

impl Spread {
    /// Returns the span of a run: a function of the seed and of the tick, the same on every machine and for ever.
    fn of(self, tick: Duration) -> Duration {
        let mixed = mix(self.seed ^ mix(tick.as_nanos() as u64));
        Duration::from_nanos((u128::from(mixed) * self.most.span().as_nanos() >> 64) as u64)
    }
}

/// The finalizer of SplitMix64.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
