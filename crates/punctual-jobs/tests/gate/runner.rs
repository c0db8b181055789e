//! The role that most replicas have: a task behind a gate, which says what it does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use punctual::{
    MissedRuns, ScheduledThreadPoolExecutor, current_task,
    gate::{Entry, RunGate, Tick},
};
use punctual_jobs::{
    CatchUp, aligned,
    gate::{Gate, GateEvent, NamedGate, OnHolderDeath, SkipReason},
};

use crate::support::{
    LONG, block_on, opened, real_micros,
    replica::{Orders, Replica, Said, say, wait_for_the_end},
    server::connect,
};

const ROLE: &str = "runner::runner";

/// Not a test: the role.
#[test]
fn runner() {
    if let Some(orders) = Orders::of(ROLE) {
        run(&orders);
    }
}

fn run(orders: &Orders) {
    let gate = opened(|| {
        let dies = if orders.has("skip") { OnHolderDeath::Skip } else { OnHolderDeath::Rerun };
        let gate = Gate::postgres(orders.text("url")).lease(orders.millis("lease"));
        let gate = gate.request_timeout(orders.millis("limit")).on_holder_death(dies);
        gate.on_event(say_event).open()
    });
    let mut named = gate.for_name(orders.text("name")).unwrap();
    // Beside another task there is one worker: if the gate holds it, that task does not run.
    let executor = ScheduledThreadPoolExecutor::new(if orders.has("beside") { 1 } else { 2 });
    let body = {
        let (run, url) = (orders.millis("run"), orders.text("url").to_owned());
        let effects = orders.has("effects").then(|| orders.text("effects").to_owned());
        let (gate, name) = (gate.clone(), orders.text("name").to_owned());
        let last = Arc::new(AtomicI64::new(0));
        let tick = Arc::clone(&last);
        let body = move || {
            occupy(run, tick.load(Ordering::SeqCst));
            if let Some(table) = &effects {
                effect(&gate, &url, &name, table, tick.load(Ordering::SeqCst));
            }
            say("end", &[fencing_token(), real_micros()]);
        };
        (body, last)
    };
    let (body, last) = body;
    let mut task = executor.task().name("gated");
    if orders.has("burst") {
        task = task.missed_runs(MissedRuns::Burst);
    }
    let submitted = if orders.has("delay") {
        let delay = orders.millis("delay");
        named = named.with_delay(delay);
        task.gate(Recording(named, last)).schedule_with_fixed_delay(Duration::ZERO, delay, body)
    } else if orders.has("catches_up") {
        let calendar = aligned(orders.millis("period"));
        let hour = CatchUp::Last(Duration::from_secs(3600));
        let trigger = named.catch_up(move |after| calendar.next_after(after), hour);
        task.gate(Recording(named, last)).repeat(trigger, body)
    } else {
        task.gate(Recording(named, last)).repeat(aligned(orders.millis("period")), body)
    };
    let task = submitted.unwrap();
    if orders.has("beside") {
        let step = Duration::from_millis(20);
        executor.schedule_at_fixed_rate(step, step, || say("beside", &[])).unwrap();
    }
    say("ready", &[]);
    wait_for_the_end();
    task.cancel();
    executor.close().unwrap();
    let counts = gate.statistics();
    let numbers = [counts.asked, counts.granted, counts.unreachable, counts.skipped, counts.lost];
    say("counts", &numbers.map(|count| i64::try_from(count).unwrap()));
}

/// Works for a while, and says so when it is told to stop.
fn occupy(run: Duration, tick: i64) {
    say("begin", &[tick, fencing_token(), real_micros()]);
    let begun = Instant::now();
    loop {
        let task = current_task().unwrap();
        // The looks of one check: what a body does between two steps of its work.
        let (is_cancelled, is_lost) = (task.token().is_cancelled(), task.is_lease_lost());
        if is_cancelled || is_lost {
            say(
                "told",
                &[fencing_token(), i64::from(is_cancelled), i64::from(is_lost), real_micros()],
            );
            break;
        }
        if begun.elapsed() >= run {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Writes a row under the guard, and says whether that was possible.
fn effect(gate: &Gate, url: &str, name: &str, table: &str, tick: i64) {
    let fence = fencing_token();
    let is_done = block_on(async {
        let mut client = connect(url).await?;
        let transaction = client.transaction().await?;
        let insert = format!("insert into {table} values ({tick}, {fence})");
        transaction.batch_execute(&insert).await?;
        gate.finish(&transaction, name, u64::try_from(fence).unwrap()).await?;
        transaction.commit().await
    });
    say(if is_done.is_ok() { "effect" } else { "refused" }, &[fence]);
}

fn fencing_token() -> i64 {
    let task = current_task().unwrap();
    i64::try_from(task.fencing_token().expect("a gated run has a fence")).unwrap()
}

fn say_event(event: &GateEvent) {
    match event {
        GateEvent::Lost { fence, .. } => {
            say("lost", &[i64::try_from(*fence).unwrap(), real_micros()]);
        }
        GateEvent::Unreachable { tick, .. } => say("unreachable", &[micros(*tick), real_micros()]),
        GateEvent::Skipped { tick, reason, .. } => {
            let is_clock = *reason == SkipReason::NotOnWallClock;
            say("skipped", &[micros(*tick), i64::from(is_clock)]);
        }
        _ => {}
    }
}

pub(crate) fn micros(moment: SystemTime) -> i64 {
    i64::try_from(moment.duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// A gate that notes which tick it was asked about last, since a body is not told, and says that it is asked.
struct Recording(NamedGate, Arc<AtomicI64>);

impl RunGate for Recording {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        say("asks", &[micros(tick.planned_wall())]);
        let entry = self.0.enter(tick);
        // The next one is asked about when this one has run, or does not run.
        self.1.store(micros(tick.planned_wall()), Ordering::SeqCst);
        entry
    }
}

/// A lease in milliseconds that outlasts each test, however long the machine stands still.
pub(crate) const FOREVER: u64 = LONG.as_secs() * 1000;

/// The orders of a runner.
pub(crate) struct Plan {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) period: u64,
    pub(crate) lease: u64,
    pub(crate) run: u64,
    /// Further lines.
    pub(crate) more: String,
}

impl Plan {
    pub(crate) fn start(&self, number: usize, ahead: i32) -> Replica {
        let Self { url, name, period, lease, run, more } = self;
        // A test that is not about time-outs has a long lease, and its replicas give up no question.
        let limit = if *lease < FOREVER { (*lease).min(1000) } else { FOREVER };
        let orders = format!(
            "url={url}\nname={name}\nperiod={period}\nlease={lease}\nlimit={limit}\nrun={run}\n{more}"
        );
        Replica::start(ROLE, number, &orders, ahead)
    }

    /// Starts three, whose clocks are so far ahead.
    pub(crate) fn start_three(&self, ahead: [i32; 3]) -> Vec<Replica> {
        let mut all: Vec<_> = (0..3).map(|number| self.start(number, ahead[number])).collect();
        for replica in &mut all {
            replica.wait_for("ready");
        }
        all
    }
}

/// One run, as it was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) tick: i64,
    pub(crate) fence: i64,
    pub(crate) replica: usize,
    /// The machine's time.
    pub(crate) begin: i64,
    pub(crate) end: Option<i64>,
}

/// Returns the runs, in the order of their fencing tokens.
pub(crate) fn runs(said: &[Said]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for said in said {
        match (&*said.word, &*said.numbers) {
            ("begin", &[tick, fence, begin]) => {
                runs.push(Run { tick, fence, replica: said.replica, begin, end: None });
            }
            ("end", &[fence, end]) => {
                let run = runs.iter_mut().find(|run| run.fence == fence).expect("it has begun");
                run.end = Some(end);
            }
            _ => {}
        }
    }
    runs.sort_by_key(|run| run.fence);
    runs
}
