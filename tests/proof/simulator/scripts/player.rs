//! The player: it carries a script out on a driven executor, and notes what there is to see.

pub(super) mod group;

use std::{
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant, SystemTime},
};

use punctual::{
    CancellationToken, DrivenExecutor, ManualClock, RunGate, ScheduledThreadPoolExecutor,
    TaskBuilder, TaskHandle, Trigger as _, current_task,
    gate::{self, Lease, Reply, RunEnd, Tick},
    trigger::{every, fixed_delay},
};

use super::{
    Event, gate::{Answer, Entry}, is_over,
    script::{Op, Request, Rhythm, Script, Task, Trigger},
};

/// What the thread, the bodies and the gate share.
struct Stage {
    clock: ManualClock,
    /// Both clocks, when the script begins.
    begin: (Instant, SystemTime),
    script: Script,
    events: Mutex<Vec<Event>>,
    /// Hears of each event: a script of a group has several tasks.
    echo: Echo,
    task: Mutex<Option<TaskHandle>>,
    /// For the last question that is to be answered later.
    reply: Mutex<Option<Reply>>,
}

type Echo = Box<dyn Fn(&Event) + Send + Sync>;

/// The gate, with a stage that outlives it.
struct ScriptedGate(Weak<Stage>);

struct ScriptedLease {
    stage: Weak<Stage>,
    is_lost: bool,
}

pub(super) fn play(script: &Script) -> Vec<Event> {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let mut executor = builder.failure_handler(|_: &_| ()).build_driven().expect("valid settings");
    let stage = Stage::new(&clock, script, Box::new(|_| ()));
    let task = stage.begin(executor.task());
    for op in &script.ops {
        match op {
            Op::Ask(request) => stage.ask(&task, request),
            Op::Stall(span) => stage.clock.advance(span.span()),
            Op::RunFor(span) => {
                run_for(&stage.clock, span.span(), &mut executor, || stage.is_over());
            }
            Op::Reply(entry) => stage.reply(*entry),
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

impl RunGate for ScriptedGate {
    fn enter(&self, tick: &Tick<'_>) -> gate::Entry {
        self.0.upgrade().map_or(gate::Entry::Skip, |stage| stage.enter(tick))
    }
}

impl Lease for ScriptedLease {
    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn watch(&self, _: CancellationToken) {}

    fn leave(&self, end: RunEnd<'_>, next: Option<Instant>) {
        let Some(stage) = self.stage.upgrade() else { return };
        let success = match end {
            RunEnd::Completed => Some(true),
            RunEnd::Failed(_) => Some(false),
            _ => None,
        };
        let next = next.map(|next| next.duration_since(stage.begin.0));
        stage.note(Event::Left { success, next });
    }
}

impl Stage {
    fn new(clock: &ManualClock, script: &Script, echo: Echo) -> Arc<Self> {
        let begin = (clock.now(), clock.wall_time());
        let (events, task, reply) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (clock, script) = (clock.clone(), script.clone());
        Arc::new(Self { clock, begin, script, events, echo, task, reply })
    }

    /// Submits the task.
    fn begin(self: &Arc<Self>, builder: TaskBuilder<'_>) -> TaskHandle {
        let task = self.submit(builder);
        *self.task.lock().expect("no panic") = Some(task.clone());
        task
    }

    fn submit(self: &Arc<Self>, builder: TaskBuilder<'_>) -> TaskHandle {
        let builder = builder.missed_runs(self.script.missed.policy());
        let builder = match self.script.on_failure {
            Some(policy) => builder.on_failure(policy.policy()),
            None => builder,
        };
        let builder = match self.script.gate.is_empty() {
            true => builder,
            false => builder.gate(ScriptedGate(Arc::downgrade(self))),
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
        let number = self.count(|event| matches!(event, Event::Run { .. }));
        self.note(Event::Run { at, planned, missed, attempt });
        let body = self.script.bodies[number % self.script.bodies.len()];
        self.clock.advance(body.takes.span());
        self.ask_own(body.asks);
        if body.fails { Err("no") } else { Ok(()) }
    }

    fn enter(self: &Arc<Self>, tick: &Tick<'_>) -> gate::Entry {
        let at = self.clock.elapsed();
        let planned = tick.planned().expect("a moment of this clock").duration_since(self.begin.0);
        let on_wall = tick.planned_wall().duration_since(self.begin.1).expect("no earlier moment");
        let asked = self.count(|event| matches!(event, Event::Question { .. }));
        let (number, attempt) = (tick.run_number(), tick.attempt());
        self.note(Event::Question { at, planned, on_wall, number, attempt });
        let Answer { takes, asks, entry } = self.script.gate[asked % self.script.gate.len()];
        self.clock.advance(takes.span());
        self.ask_own(asks);
        self.answer(entry)
    }

    /// Returns the answer of the gate. If it comes later, the reply is kept in place of the one before.
    fn answer(self: &Arc<Self>, entry: Entry) -> gate::Entry {
        let lease =
            |is_lost| Arc::new(ScriptedLease { stage: Arc::downgrade(self), is_lost });
        let (reply, entry) = match entry {
            Entry::Run => (None, gate::Entry::Run),
            Entry::Hold => (None, gate::Entry::Hold(lease(false))),
            Entry::HoldLost => (None, gate::Entry::Hold(lease(true))),
            Entry::Skip => (None, gate::Entry::Skip),
            Entry::Again(span) => (None, gate::Entry::Again(span.span())),
            Entry::Never => (None, gate::Entry::Again(Duration::MAX)),
            Entry::Later => {
                let (reply, entry) = gate::later();
                (Some(reply), entry)
            }
        };
        drop(std::mem::replace(&mut *self.reply.lock().expect("no panic"), reply));
        entry
    }

    fn reply(self: &Arc<Self>, entry: Entry) {
        let reply = self.reply.lock().expect("no panic").take();
        if let Some(reply) = reply {
            reply.send(self.answer(entry));
        }
    }

    /// Asks something of the task that runs, or whose gate is asked.
    fn ask_own(&self, request: Option<Request>) {
        let task = self.task.lock().expect("no panic").clone();
        if let (Some(request), Some(task)) = (&request, task) {
            self.ask(&task, request);
        }
    }

    fn ask(&self, task: &TaskHandle, request: &Request) {
        self.note(Event::Answer(answer_of(task, request)));
    }

    fn is_over(&self) -> bool {
        is_over(&self.events.lock().expect("no panic"))
    }

    fn count(&self, counted: impl Fn(&Event) -> bool) -> usize {
        self.events.lock().expect("no panic").iter().filter(|event| counted(event)).count()
    }

    fn note(&self, event: Event) {
        (self.echo)(&event);
        self.events.lock().expect("no panic").push(event);
    }
}

/// Like `ManualClock::run_for`, of a thread that is the only worker.
pub(super) fn run_for(
    clock: &ManualClock,
    span: Duration,
    executor: &mut DrivenExecutor,
    is_over: impl Fn() -> bool,
) {
    let end = clock.elapsed() + span;
    while !is_over() {
        let next = executor.time_until_next().map(|span| clock.elapsed() + span);
        let Some(next) = next.filter(|next| *next <= end) else { break };
        clock.advance(next.saturating_sub(clock.elapsed()));
        executor.run_due();
    }
    clock.advance(end.saturating_sub(clock.elapsed()));
}

/// Asks something of a task. Returns what it answers.
pub(super) fn answer_of(task: &TaskHandle, request: &Request) -> bool {
    match *request {
        Request::Pause => task.pause(),
        Request::Resume => task.resume(),
        Request::RunNow => task.run_now(),
        Request::RunWithin(span) => task.run_within(span.span()),
        Request::Reschedule(span) => task.reschedule(span.span()),
        Request::SetTrigger(trigger) => set_trigger(task, trigger),
        Request::Cancel => task.cancel(),
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
