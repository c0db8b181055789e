//! The player: it carries a script out on a driven executor, and notes what there is to see.

use std::sync::{Arc, Mutex};

use punctual::{
    DrivenExecutor, ManualClock, ScheduledThreadPoolExecutor, TaskHandle, Trigger as _,
    current_task,
    trigger::{Due, at, from_fn},
};

use super::{Body, Change, Op, Script, Task, since_1970};
use crate::scripts::{Event, is_over, player::answer_of, player::run_for, script::Request};

/// What the thread and the bodies share.
struct Stage {
    clock: ManualClock,
    script: Script,
    events: Mutex<Vec<Event>>,
    task: Mutex<Option<TaskHandle>>,
}

pub(super) fn play(script: &Script) -> Vec<Event> {
    let clock = ManualClock::starting_at(script.begins_at());
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.build_driven().expect("valid settings");
    let (events, task) = (Mutex::default(), Mutex::default());
    let stage = Arc::new(Stage { clock, script: script.clone(), events, task });
    let task = stage.submit(&executor);
    *stage.task.lock().expect("no panic") = Some(task.clone());
    for op in &script.ops {
        match op {
            Op::Set(change) => stage.set(*change),
            Op::Ask(request) => stage.ask(&task, request),
            Op::Stall(span) => stage.clock.advance(span.span()),
            Op::RunFor(span) => {
                run_for(&stage.clock, span.span(), &mut executor, || stage.is_over());
            }
        }
        if stage.is_over() {
            break;
        }
        let (now, state, delay) = (stage.clock.elapsed(), task.state(), task.delay());
        stage.note(Event::Stands { now, state, delay });
    }
    stage.task.lock().expect("no panic").take();
    let counts = executor.statistics();
    let (runs, failed, missed) = (counts.runs, counts.failed_runs, counts.missed_runs);
    stage.note(Event::Sum { runs, failed, missed, gate_skips: counts.gate_skips });
    let events = std::mem::take(&mut *stage.events.lock().expect("no panic"));
    task.cancel();
    events
}

impl Stage {
    fn submit(self: &Arc<Self>, executor: &DrivenExecutor) -> TaskHandle {
        let builder = executor.task().missed_runs(self.script.missed.policy());
        let (stage, begin) = (Arc::clone(self), self.clock.wall_time());
        let body = move || stage.run();
        let moments = self.script.task.moments(begin);
        match &self.script.task {
            Task::Once(_) => builder.schedule_at(moments[0], body),
            Task::List(..) => builder.repeat(at(moments), body),
            Task::Given(..) => {
                let mut moments = moments.into_iter();
                builder.repeat(from_fn(move |_| moments.next().map(Due::Wall)), body)
            }
            Task::Calendar(calendar) => match calendar.jitter {
                None => builder.repeat(*calendar, body),
                Some(spread) => {
                    let jitter = calendar.jitter(spread.most.span()).seed(spread.seed);
                    builder.repeat(jitter, body)
                }
            },
        }
        .expect("accepted")
        .task_handle()
    }

    fn run(&self) {
        let run = current_task().expect("inside of a task");
        let (at, missed, attempt) = (self.clock.elapsed(), run.missed_runs(), run.attempt());
        let planned = at.checked_sub(run.lateness()).expect("no moment before the first");
        let is_run = |event: &&Event| matches!(event, Event::Run { .. });
        let number = self.events.lock().expect("no panic").iter().filter(is_run).count();
        self.note(Event::Run { at, planned, missed, attempt });
        let on_wall = since_1970(run.planned_wall());
        self.note(Event::OnWall { planned: on_wall, is_exact: run.is_on_wall() });
        let Body { takes, sets, asks } = self.script.bodies[number % self.script.bodies.len()];
        self.clock.advance(takes.span());
        sets.into_iter().for_each(|change| self.set(change));
        let task = self.task.lock().expect("no panic").clone();
        if let (Some(request), Some(task)) = (&asks, task) {
            self.ask(&task, request);
        }
    }

    fn set(&self, change: Change) {
        self.clock.set_wall_time(change.of(self.clock.wall_time()));
    }

    fn ask(&self, task: &TaskHandle, request: &Request) {
        self.note(Event::Answer(answer_of(task, request)));
    }

    fn is_over(&self) -> bool {
        is_over(&self.events.lock().expect("no panic"))
    }

    fn note(&self, event: Event) {
        self.events.lock().expect("no panic").push(event);
    }
}
