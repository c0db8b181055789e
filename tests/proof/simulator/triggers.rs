//! A calendar, whose moments are on the wall clock, with and without jitter; and what must hold of its ticks.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{
    Outcome, RejectedExecutionError, ScheduledFuture, TaskBuilder, TaskContext, Trigger,
    trigger::{Due, TriggerContext},
};

use crate::{
    ledger::Ledger,
    scenario::{Kind, Steps, TaskPlan},
    world::World,
};

/// The multiples of a period since 1970.
struct Calendar {
    world: Arc<World>,
    id: usize,
    period: Duration,
}

impl Trigger for Calendar {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let after = last.after_wall().duration_since(UNIX_EPOCH).ok()?;
        let tick = UNIX_EPOCH + nanos((number(after, self.period) + 1) * whole(self.period));
        let at_first = self.world.wall_at_first;
        self.world.note(|ledger, _| ledger.answers(self.id, tick, at_first));
        self.world.call_back(self.world.callbacks.other);
        // In the first question a panic would be the submitter's.
        let is_first = last.runs() == 0 && last.planned().is_none();
        if !is_first && self.world.faults().payload {
            self.world.note(|ledger, _| ledger.trigger_panics(self.id));
            panic!("the trigger of task {} panics", self.id);
        }
        Some(Due::Wall(tick))
    }

    fn between(&mut self, from: Due, to: Due) -> u64 {
        let since = |due| match due {
            Due::Wall(moment) => moment.duration_since(UNIX_EPOCH).ok(),
            _ => None,
        };
        let ticks = since(from)
            .zip(since(to))
            .map(|(from, to)| number(to, self.period).saturating_sub(number(from, self.period)));
        ticks.unwrap_or(0)
    }

    fn share(&mut self, _: Option<&str>) -> bool {
        true
    }
}

fn whole(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("a simulated time")
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// Returns how many multiples of `period` have come.
fn number(since: Duration, period: Duration) -> u64 {
    whole(since) / whole(period)
}

/// The ledger's record of the ticks of a task.
#[derive(Default)]
pub(crate) struct TickRecord {
    /// The last answer of its trigger, as the time since the clock's origin and on the wall clock.
    answered: Option<(Duration, SystemTime)>,
    /// `true` if a run that was planned for that tick, or for later, has begun.
    has_run: bool,
}

/// The ledger's record of all ticks.
#[derive(Default)]
pub(crate) struct Ticks {
    /// `true` once a thread has begun to set the wall clock.
    pub(crate) is_set: bool,
    /// When the runs of a tick are due, by period, jitter and tick, of the tasks that are replicas of each other.
    replicas: BTreeMap<(Duration, Duration, SystemTime), SystemTime>,
}

impl World {
    pub(crate) fn repeat_by_calendar<F, O>(
        self: &Arc<Self>,
        task: TaskBuilder<'_>,
        id: usize,
        (period, jitter): (Steps, Option<Steps>),
        body: F,
    ) -> Result<ScheduledFuture<O::Value>, RejectedExecutionError>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome,
    {
        let calendar = Calendar { world: Arc::clone(self), id, period: period.span() };
        match jitter {
            Some(most) if self.note(|ledger, _| ledger.tasks[id].plan.gate.is_none()) => {
                task.repeat(calendar.jitter(most.span()).seed(id as u64), body)
            }
            // The replicas of a task have its name, and so its jitter.
            Some(most) => {
                // A task that is kept or not by itself has a name already, which says so.
                let is_named = self.note(|ledger, _| ledger.tasks[id].plan.is_kept.is_some());
                let name = format!("every {period:?}, {most:?}");
                let task = if is_named { task } else { task.name(name) };
                task.repeat(calendar.jitter(most.span()), body)
            }
            None => task.repeat(calendar, body),
        }
    }

    pub(crate) fn set_wall(&self, steps: Steps, is_back: bool) {
        self.note(|ledger, _| ledger.ticks.is_set = true);
        let now = self.clock.wall_time();
        self.clock.set_wall_time(if is_back { now - steps.span() } else { now + steps.span() });
    }

    /// Notes what the library says of a run that has begun.
    pub(crate) fn look_at_run(&self, id: usize, task: &TaskContext) {
        let planned = task.planned().map(|planned| planned.saturating_duration_since(self.begin));
        let Some(planned) = planned else { return };
        let on_wall = task.is_on_wall().then(|| task.planned_wall());
        let wall = self.clock.wall_time();
        self.note(|ledger, now| {
            ledger.starts_in_round(id);
            ledger.starts_called(id, planned + task.lateness(), now);
            ledger.starts_tick(id, planned, on_wall, wall);
        });
    }
}

impl Ledger {
    /// Records what a trigger answers: not a tick that has had its run.
    fn answers(&mut self, id: usize, tick: SystemTime, at_first: SystemTime) {
        let since = tick.duration_since(at_first).unwrap_or_default();
        let is_set = self.ticks.is_set;
        let ticks = &mut self.tasks[id].ticks;
        let before = ticks.answered.replace((since, tick));
        let had_run = std::mem::take(&mut ticks.has_run);
        if !is_set && had_run && before.is_some_and(|(before, _)| since <= before) {
            self.violation(format!("the tick at {since:?} of task {id} comes twice"));
        }
    }

    /// Records that a run begins which is planned for this moment, also on the wall clock: not early, and when
    /// the replicas of the task have theirs.
    fn starts_tick(
        &mut self,
        id: usize,
        planned: Duration,
        on_wall: Option<SystemTime>,
        wall: SystemTime,
    ) {
        let record = &mut self.tasks[id];
        let Some((since, tick)) = record.ticks.answered.filter(|_| !self.ticks.is_set) else {
            return;
        };
        record.ticks.has_run |= planned >= since;
        let Some(moment) = on_wall else { return };
        if wall < moment || moment < tick {
            self.violation(format!("task {id} runs at {wall:?}, planned for {moment:?}"));
        }
        let Kind::Calendar(period, jitter) = self.tasks[id].plan.kind else { return };
        if self.tasks[id].plan.gate.is_none() || self.tasks[id].is_moved {
            return;
        }
        let key = (period.span(), jitter.map_or(Duration::ZERO, Steps::span), tick);
        let first = *self.ticks.replicas.entry(key).or_insert(moment);
        if first != moment {
            self.violation(format!("replicas of task {id} run at {first:?} and {moment:?}"));
        }
    }

    /// Records which tick of the wall clock a gate is asked about: the trigger's own.
    pub(crate) fn is_about_tick(&mut self, id: usize, tick: SystemTime) {
        let answered = self.tasks[id].ticks.answered.map(|(_, answered)| answered);
        let is_wrong = answered.is_some_and(|answered| answered != tick) && !self.ticks.is_set;
        if is_wrong {
            self.violation(format!(
                "the gate of task {id} is asked about {tick:?}, not {answered:?}"
            ));
        }
    }
}

impl TaskPlan {
    /// The earliest moment of the first run, from the submission on.
    pub(crate) fn not_before(&self) -> Duration {
        match self.kind {
            Kind::Calendar(..) => Duration::ZERO,
            Kind::Debounce(..) | Kind::Throttle(_) => Duration::MAX,
            _ => self.when.delay(),
        }
    }

    /// The latest moment of the first run.
    pub(crate) fn first_in(&self) -> Duration {
        match self.kind {
            Kind::Calendar(period, jitter) => {
                period.span() + jitter.map_or(Duration::ZERO, Steps::span)
            }
            Kind::Debounce(..) | Kind::Throttle(_) => Duration::MAX,
            _ => self.when.delay(),
        }
    }

    /// How late a run may start that is left out if it is overdue: less than a period, or than a millisecond.
    pub(crate) fn skips_from(&self) -> Option<Duration> {
        let on_time = Duration::from_millis(1);
        let period = self.kind.grid().filter(|_| self.skips)?.span();
        Some(period.max(on_time) - nanos(1))
    }
}
