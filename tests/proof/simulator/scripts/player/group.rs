//! The player of a [script of groups](crate::scripts::group).

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use punctual::{
    DrivenExecutor, Group, ManualClock, ScheduledThreadPoolExecutor, ShutdownPolicy, TaskHandle,
};

use super::Stage;
use crate::scripts::{
    Event,
    group::{Counts, GroupOp, GroupScript, Op, Seen, is_over},
};

/// No script comes near so many calls of the executor in one step, so one that has no end fails.
const MOST_ROUNDS: usize = 1_000;

struct World {
    clock: ManualClock,
    executor: DrivenExecutor,
    cast: Arc<Cast>,
}

/// The tasks and groups, for the thread and for the bodies.
struct Cast {
    groups: Vec<Group>,
    tasks: OnceLock<Vec<(Arc<Stage>, TaskHandle)>>,
    seen: Mutex<Vec<Seen>>,
}

pub(in crate::scripts) fn play(script: &GroupScript) -> Vec<Seen> {
    let mut world = World::begin(script);
    let cast = Arc::clone(&world.cast);
    for op in &script.ops {
        let before = cast.seen.lock().expect("no panic").len();
        world.carry_out(op);
        if matches!(op, Op::Shutdown | Op::ShutdownNow) {
            // It cancels tasks in no particular order.
            cast.seen.lock().expect("no panic")[before..].sort_by_key(Seen::number);
        }
        if cast.is_over() {
            break;
        }
        world.stands();
    }
    world.sum();
    let seen = std::mem::take(&mut *cast.seen.lock().expect("no panic"));
    for (stage, task) in cast.tasks() {
        stage.task.lock().expect("no panic").take();
        task.cancel();
    }
    seen
}

impl World {
    fn begin(script: &GroupScript) -> Self {
        let clock = ManualClock::new();
        let (delayed, periodic) = script.keeps;
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
        let builder = builder
            .failure_handler(|_: &_| ())
            .executes_existing_delayed_tasks_after_shutdown(delayed)
            .continues_existing_periodic_tasks_after_shutdown(periodic);
        let executor = builder.build_driven().expect("valid settings");
        let groups: Vec<_> = script
            .limits
            .iter()
            .map(|limit| executor.group("one").limit(*limit).build().expect("a valid limit"))
            .collect();
        let cast = Arc::new(Cast { groups, tasks: OnceLock::new(), seen: Mutex::default() });
        let tasks = script.tasks.iter().enumerate().map(|(number, member)| {
            let (says, heard) = (member.says.clone(), Arc::downgrade(&cast));
            let echo = move |event: &Event| {
                if let Some(cast) = heard.upgrade() {
                    cast.hear(number, event, &says);
                }
            };
            let stage = Stage::new(&clock, &member.script, Box::new(echo));
            let builder = match member.group {
                Some(group) => cast.groups[group].task(),
                None => executor.task(),
            };
            let task = stage.begin(match member.keep {
                Some(true) => builder.on_shutdown(ShutdownPolicy::Keep),
                Some(false) => builder.on_shutdown(ShutdownPolicy::Cancel),
                None => builder,
            });
            (stage, task)
        });
        let tasks = tasks.collect();
        cast.tasks.set(tasks).unwrap_or_default();
        Self { clock, executor, cast }
    }

    fn carry_out(&mut self, op: &Op) {
        match *op {
            Op::Stall(span) => self.clock.advance(span.span()),
            Op::RunDue => {
                let ran = self.executor.run_due();
                self.cast.note(Seen::Number(ran));
            }
            Op::RunFor(span) => self.run_for(span.span()),
            Op::Shutdown => self.executor.shutdown(),
            Op::ShutdownNow => drop(self.executor.shutdown_now()),
            _ => self.cast.carry_out(op),
        }
    }

    /// Like `ManualClock::run_for`, of a thread that is the only worker.
    fn run_for(&mut self, span: Duration) {
        let end = self.clock.elapsed() + span;
        for _ in 0..MOST_ROUNDS {
            if self.cast.is_over() {
                break;
            }
            let next = self.executor.time_until_next().map(|span| self.clock.elapsed() + span);
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.clock.advance(next.saturating_sub(self.clock.elapsed()));
            self.executor.run_due();
        }
        self.clock.advance(end.saturating_sub(self.clock.elapsed()));
    }

    fn stands(&mut self) {
        for (stage, task) in self.cast.tasks() {
            let (now, state, delay) = (self.clock.elapsed(), task.state(), task.delay());
            stage.note(Event::Stands { now, state, delay });
        }
        let next = self.executor.time_until_next();
        self.cast.note(Seen::Next(next));
        for group in &self.cast.groups {
            let now = group.statistics();
            assert_eq!((now.active, now.rejected), (0, 0), "nothing runs");
            let counts = Counts {
                pending: now.pending,
                waiting: now.waiting,
                completed: now.completed,
                failed: now.failed,
                cancelled: now.cancelled,
                runs: now.runs,
                failed_runs: now.failed_runs,
            };
            let (is_paused, is_over) = (group.is_paused(), group.is_terminated());
            self.cast.note(Seen::Group { is_paused, is_over, counts });
        }
    }

    fn sum(&self) {
        let counts = self.executor.statistics();
        let (runs, failed, missed) = (counts.runs, counts.failed_runs, counts.missed_runs);
        self.cast
            .note(Seen::Of(0, Event::Sum { runs, failed, missed, gate_skips: counts.gate_skips }));
    }
}

impl Cast {
    fn tasks(&self) -> &[(Arc<Stage>, TaskHandle)] {
        self.tasks.get().map_or(&[], Vec::as_slice)
    }

    fn note(&self, seen: Seen) {
        self.seen.lock().expect("no panic").push(seen);
    }

    fn is_over(&self) -> bool {
        is_over(&self.seen.lock().expect("no panic"))
    }

    /// Notes an event of a task. A body does first what it `says` for this run.
    fn hear(&self, number: usize, event: &Event, says: &[Option<Op>]) {
        let is_run =
            |seen: &&Seen| matches!(seen, Seen::Of(of, Event::Run { .. }) if *of == number);
        let runs = self.seen.lock().expect("no panic").iter().filter(is_run).count();
        self.note(Seen::Of(number, event.clone()));
        if let (Event::Run { .. }, Some(op)) = (event, &says[runs % says.len()]) {
            self.carry_out(op);
        }
    }

    /// Carries out what a body may do as well.
    fn carry_out(&self, op: &Op) {
        match *op {
            Op::Ask(task, request) => {
                let (stage, task) = &self.tasks()[task];
                stage.ask(task, &request);
            }
            Op::Reply(task, entry) => self.tasks()[task].0.reply(entry),
            Op::Group(group, op) => self.carry_out_group(&self.groups[group], op),
            _ => {}
        }
    }

    fn carry_out_group(&self, group: &Group, op: GroupOp) {
        self.note(match op {
            GroupOp::Pause => Seen::Answer(group.pause()),
            GroupOp::Resume => Seen::Answer(group.resume()),
            GroupOp::Limit(limit) => Seen::Answer(group.set_limit(limit).is_ok()),
            GroupOp::Reserve(is_reserved) => {
                group.set_reserved(usize::from(is_reserved));
                Seen::Answer(true)
            }
            GroupOp::CancelAll => Seen::Number(group.cancel_all()),
            GroupOp::Shutdown => return group.shutdown(),
            GroupOp::ShutdownNow => {
                let drained = group.shutdown_now();
                let place = |id| self.tasks().iter().position(|(_, task)| task.id() == id);
                let drained_ids = drained.iter().filter_map(|task| place(task.id()));
                self.note(Seen::Drained(drained_ids.collect()));
                return drop(drained);
            }
        });
    }
}
