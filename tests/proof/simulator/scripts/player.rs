//! The player: it carries a script out on a driven executor, and notes what there is to see.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use punctual::{
    DrivenExecutor, ManualClock, ScheduledThreadPoolExecutor, TaskHandle, Trigger as _,
    current_task,
    trigger::{every, fixed_delay},
};

use super::{
    Event, MOST_RUNS,
    script::{Op, Request, Rhythm, Script, Task, Trigger},
};

/// What the thread and the bodies share.
struct Stage {
    clock: ManualClock,
    script: Script,
    events: Mutex<Vec<Event>>,
    runs: Mutex<usize>,
    task: Mutex<Option<TaskHandle>>,
}

pub(super) fn play(script: &Script) -> Vec<Event> {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.failure_handler(|_: &_| ()).build_driven().expect("valid settings");
    let (events, runs, task) = (Mutex::default(), Mutex::default(), Mutex::default());
    let stage = Arc::new(Stage { clock, script: script.clone(), events, runs, task });
    let task = stage.submit(&executor);
    *stage.task.lock().expect("no panic") = Some(task.clone());
    for op in &script.ops {
        match op {
            Op::Ask(request) => stage.ask(&task, request),
            Op::Stall(span) => stage.clock.advance(span.span()),
            Op::RunFor(span) => stage.run_for(span.span(), &mut executor),
        }
        if stage.runs() >= MOST_RUNS {
            break;
        }
        let (now, state, delay) = (stage.clock.elapsed(), task.state(), task.delay());
        stage.note(Event::Stands { now, state, delay });
    }
    stage.task.lock().expect("no panic").take();
    let counts = executor.statistics();
    let (runs, failed, missed) = (counts.runs, counts.failed_runs, counts.missed_runs);
    task.cancel();
    stage.note(Event::Sum { runs, failed, missed });
    let events = &mut *stage.events.lock().expect("no panic");
    std::mem::take(events)
}

impl Stage {
    fn submit(self: &Arc<Self>, executor: &DrivenExecutor) -> TaskHandle {
        let builder = executor.task().missed_runs(self.script.missed.policy());
        let builder = match self.script.on_failure {
            Some(policy) => builder.on_failure(policy.policy()),
            None => builder,
        };
        let stage = Arc::clone(self);
        match self.script.task {
            Task::Once(delay) => {
                let once = move || stage.run().unwrap_or_default();
                builder.schedule(delay.span(), once).map(|future| future.task_handle())
            }
            Task::Call(tries) => builder
                .retry(tries.backoff(), move || stage.run())
                .map(|future| future.task_handle()),
            Task::Series(Trigger { rhythm, first, retry }) => {
                let body = move || stage.run();
                let (first, retry) = (first.span(), retry.map(|tries| tries.backoff()));
                let future = match (rhythm, retry) {
                    (Rhythm::Every(period), None) => {
                        builder.repeat(every(period.span()).first_in(first), body)
                    }
                    (Rhythm::Every(period), Some(retry)) => {
                        builder.repeat(every(period.span()).first_in(first).retry(retry), body)
                    }
                    (Rhythm::Delay(delay), None) => {
                        builder.repeat(fixed_delay(delay.span()).first_in(first), body)
                    }
                    (Rhythm::Delay(delay), Some(retry)) => {
                        builder.repeat(fixed_delay(delay.span()).first_in(first).retry(retry), body)
                    }
                };
                future.map(|future| future.task_handle())
            }
        }
        .expect("accepted")
    }

    fn run(&self) -> Result<(), &'static str> {
        let run = current_task().expect("inside of a task");
        let at = self.clock.elapsed();
        let planned = at.checked_sub(run.lateness()).expect("no moment before the first");
        let (missed, attempt) = (run.missed_runs(), run.attempt());
        self.note(Event::Run { at, planned, missed, attempt });
        let number = {
            let mut runs = self.runs.lock().expect("no panic");
            *runs += 1;
            *runs - 1
        };
        let body = self.script.bodies[number % self.script.bodies.len()];
        self.clock.advance(body.takes.span());
        let task = self.task.lock().expect("no panic").clone();
        if let (Some(request), Some(task)) = (&body.asks, task) {
            self.ask(&task, request);
        }
        if body.fails { Err("no") } else { Ok(()) }
    }

    /// Like `ManualClock::run_for`, of a thread that is the only worker.
    fn run_for(&self, span: Duration, executor: &mut DrivenExecutor) {
        let end = self.clock.elapsed() + span;
        while self.runs() < MOST_RUNS {
            let next = executor.time_until_next().map(|span| self.clock.elapsed() + span);
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.clock.advance(next.saturating_sub(self.clock.elapsed()));
            executor.run_one();
        }
        self.clock.advance(end.saturating_sub(self.clock.elapsed()));
    }

    fn ask(&self, task: &TaskHandle, request: &Request) {
        let answer = match *request {
            Request::Pause => task.pause(),
            Request::Resume => task.resume(),
            Request::RunNow => task.run_now(),
            Request::RunWithin(span) => task.run_within(span.span()),
            Request::Reschedule(span) => task.reschedule(span.span()),
            Request::SetTrigger(trigger) => set_trigger(task, trigger),
            Request::Cancel => task.cancel(),
        };
        self.note(Event::Answer(answer));
    }

    fn runs(&self) -> usize {
        *self.runs.lock().expect("no panic")
    }

    fn note(&self, event: Event) {
        self.events.lock().expect("no panic").push(event);
    }
}

fn set_trigger(task: &TaskHandle, Trigger { rhythm, first, retry }: Trigger) -> bool {
    let (first, retry) = (first.span(), retry.map(|tries| tries.backoff()));
    match (rhythm, retry) {
        (Rhythm::Every(period), None) => task.set_trigger(every(period.span()).first_in(first)),
        (Rhythm::Every(period), Some(retry)) => {
            task.set_trigger(every(period.span()).first_in(first).retry(retry))
        }
        (Rhythm::Delay(delay), None) => task.set_trigger(fixed_delay(delay.span()).first_in(first)),
        (Rhythm::Delay(delay), Some(retry)) => {
            task.set_trigger(fixed_delay(delay.span()).first_in(first).retry(retry))
        }
    }
}
