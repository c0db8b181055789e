//! The model: what a script of the wall clock has to show, by the rules of the documentation. Where that is silent the
//! model follows the executor: a request has the task follow the clock as a look does, and with jitter the next run
//! counts as due with the span of the present one.
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

/// The requests of a body. They apply to the run after this one.
#[derive(Default)]
struct Asked {
    plan: Option<Plan>,
    within: Option<Duration>,
}

/// What a worker has taken the task for.
#[derive(Clone, Copy)]
struct Taken {
    plan: Plan,
    is_extra: bool,
    started: Duration,
    started_wall: Duration,
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
    plan: Plan,
    extra: Option<Duration>,
    is_paused: bool,
    /// When a run was asked for that was due already: it is late from then on.
    asked: Option<Duration>,
    /// When a worker takes the task, and whether that is for the extra run.
    entry: Option<(Duration, bool)>,
    noted: Option<Asked>,
    runs: usize,
    /// How many runs were left out since the last one, how many of them are counted, and how many are in all.
    skipped: u64,
    counted: u64,
    all_missed: u64,
}

/// Returns what is to be seen.
pub(super) fn predict(script: &Script) -> Vec<Event> {
    let (now, ahead, mut moments) = (script.begins_at(), AHEAD_AT_FIRST, VecDeque::new());
    match &script.task {
        Task::Calendar(_) => {}
        Task::Once(change) => moments.push_back(change.of(now + ahead)),
        Task::List(spans) => moments.extend(spans.iter().scan(now + ahead, |moment, span| {
            *moment = span.of(*moment);
            Some(*moment)
        })),
    }
    // The first moment of a list may be that of the submission.
    if matches!(script.task, Task::List(_)) {
        moments.retain(|moment| *moment >= now + ahead);
    }
    let (extra, asked, entry, noted, end) = (None, None, None, None, None);
    let (runs, skipped, counted, all_missed, events) = (0, 0, 0, 0, Vec::new());
    let (plan, is_paused) = (Plan::At(now), false);
    #[rustfmt::skip]
    let mut model = Model {
        script, moments, now, ahead, events, end, plan, extra, is_paused, asked, entry, noted, runs,
        skipped, counted, all_missed,
    };
    // Any moment of a list or of a call is good by now; one that has passed means now.
    let first = if model.moments.is_empty() { now + ahead } else { Duration::ZERO };
    model.plan = model.planned_behind(first).expect("there is one that is to come");
    if let Plan::Wall { late_from, after, .. } = &mut model.plan {
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
            self.stands();
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

    /// The extra run comes before the plan, or the plan waits for the end of a pause.
    fn next_extra(&self) -> Option<Duration> {
        self.extra.filter(|extra| self.is_paused || *extra <= self.due(self.plan))
    }

    fn next(&self) -> Option<Duration> {
        self.next_extra().or((!self.is_paused).then_some(self.due(self.plan)))
    }

    fn stands(&mut self) {
        let waits = if self.is_paused { TaskState::Paused } else { TaskState::Scheduled };
        let state = self.end.unwrap_or(waits);
        let due = self.next().filter(|_| self.end.is_none());
        let delay = due.map(|due| due.saturating_sub(self.now));
        self.events.push(Event::Stands { now: self.now, state, delay });
    }

    /// The task waits: until it is due by what the clocks show, or for the next look.
    fn queue(&mut self) {
        let due = self.next();
        self.entry = match (due, self.next_extra(), self.plan) {
            (Some(due), None, Plan::Wall { .. }) if due > self.now => {
                let looks = self.now.as_secs() / BETWEEN_LOOKS + 1;
                Some((due.min(Duration::from_secs(looks * BETWEEN_LOOKS)), false))
            }
            (due, extra, _) => due.map(|due| (due, extra.is_some())),
        };
    }

    fn ask(&mut self, request: &Request) {
        let answer = match (self.end, request) {
            (Some(_), _) => false,
            (None, Request::Cancel) => {
                self.end = Some(TaskState::Cancelled);
                true
            }
            (None, _) if self.noted.is_some() && self.is_once() => false,
            (None, Request::Pause | Request::Resume) => {
                let pauses = matches!(request, Request::Pause);
                mem::replace(&mut self.is_paused, pauses) != pauses
            }
            (None, _) if self.noted.is_some() => self.ask_running(request),
            (None, _) => self.ask_waiting(request),
        };
        if self.noted.is_none() {
            self.queue();
        }
        self.events.push(Event::Answer(answer));
    }

    fn ask_waiting(&mut self, request: &Request) -> bool {
        let now = self.now;
        let is_due = |moment: Option<Duration>| moment.is_some_and(|moment| moment <= now);
        match *request {
            // A run that is due already is the one that was asked for.
            Request::RunNow if is_due(self.next_extra()) => {}
            Request::RunNow if is_due(self.next()) => self.asked = Some(now),
            Request::RunNow if self.is_once() => {
                (self.plan, self.is_paused) = (Plan::At(now), false);
            }
            Request::RunNow => self.extra = Some(now),
            Request::RunWithin(span) => self.hasten(now + span.span()),
            Request::Reschedule(span) => {
                (self.plan, self.asked) = (Plan::At(now + span.span()), None);
            }
            _ => {}
        }
        true
    }

    /// A plan that is earlier anyway is asked for anew.
    fn hasten(&mut self, moment: Duration) {
        let due = self.due(self.plan);
        if due < moment {
            self.asked = Some(moment);
        } else if due > moment {
            self.plan = Plan::At(moment);
        }
    }

    fn ask_running(&mut self, request: &Request) -> bool {
        let (now, noted) = (self.now, self.noted.take().unwrap_or_default());
        let due = noted.plan.map(|plan| self.due(plan));
        let (mut plan, mut within) = (noted.plan, noted.within);
        match *request {
            Request::RunNow if !self.is_paused && due.is_some_and(|due| due <= now) => {
                self.asked = Some(now);
            }
            Request::RunNow => self.extra = Some(now),
            Request::RunWithin(span) => {
                let moment = now + span.span();
                match due {
                    Some(due) if due < moment => self.asked = Some(moment),
                    Some(due) if due > moment => plan = Some(Plan::At(moment)),
                    Some(_) => {}
                    None => within = Some(within.map_or(moment, |within| within.min(moment))),
                }
            }
            Request::Reschedule(span) => {
                (plan, within, self.asked) = (Some(Plan::At(now + span.span())), None, None);
            }
            _ => {}
        }
        self.noted = Some(Asked { plan, within });
        true
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
        let (started, started_wall) = (self.now, self.wall());
        let plan = match self.extra.take_if(|_| is_extra) {
            Some(moment) => Plan::At(moment),
            None => self.plan,
        };
        match plan {
            Plan::Wall { moment, after, .. } if started_wall < moment => {
                let Task::Calendar(calendar) = self.script.task else { return };
                if calendar.is_asked_again && started_wall < after {
                    self.plan = self.planned_behind(started_wall).unwrap_or(self.plan);
                }
                return;
            }
            _ => {}
        }
        let asked = if is_extra { None } else { self.asked.take() };
        let taken = Taken { plan, is_extra, started, started_wall };
        self.noted = Some(Asked { plan: is_extra.then_some(self.plan), within: None });
        let next = match !is_extra && self.is_overdue(plan, asked) {
            true => self.leave_out(taken),
            false => self.run(taken),
        };
        let Asked { plan, within } = self.noted.take().unwrap_or_default();
        self.end = self.end.or(next.is_none().then_some(TaskState::Completed));
        self.plan = plan.or(next).unwrap_or(self.plan);
        within.into_iter().for_each(|within| self.hasten(within));
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

    fn run(&mut self, taken: Taken) -> Option<Plan> {
        let Taken { plan, is_extra, started, started_wall } = taken;
        let covered = match (self.script.missed, plan) {
            (Missed::Coalesce | Missed::Delay, Plan::Wall { moment, .. }) => {
                self.between(plan, moment, started_wall)
            }
            _ => 0,
        };
        let missed = if is_extra { 0 } else { self.skipped + covered };
        self.all_missed += missed - if is_extra { 0 } else { self.counted };
        let planned = self.due(plan);
        self.events.push(Event::Run { at: started, planned, missed, attempt: 1 });
        let is_exact = matches!(plan, Plan::Wall { .. });
        self.events.push(Event::OnWall { planned: planned + self.ahead, is_exact });
        let body = self.script.bodies[self.runs % self.script.bodies.len()];
        self.runs += 1;
        self.now += body.takes.span();
        body.sets.iter().for_each(|change| self.set(*change));
        body.asks.iter().for_each(|request| self.ask(request));
        if self.is_once() {
            return None;
        }
        if is_extra { Some(self.plan) } else { self.next_plan(taken) }
    }

    /// The run does not take place, and counts as missed at once.
    fn leave_out(&mut self, taken: Taken) -> Option<Plan> {
        let (before, counted) = (self.skipped + 1, self.counted);
        let next = self.next_plan(taken);
        self.skipped += before;
        self.all_missed += self.skipped - counted;
        self.counted = self.skipped;
        next
    }

    /// Returns the next plan of the trigger, which is asked behind what the policy says, and never behind the present.
    fn next_plan(&mut self, Taken { plan, started, started_wall, .. }: Taken) -> Option<Plan> {
        (self.skipped, self.counted) = (0, 0);
        let jitter = if let Plan::Wall { jitter, .. } = plan { jitter } else { Duration::ZERO };
        let (planned, started) = match plan {
            Plan::At(moment) => (moment + self.ahead, started + self.ahead),
            Plan::Wall { moment, .. } => (moment, started_wall),
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
                while self.moments.front().is_some_and(|moment| *moment <= after) {
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
