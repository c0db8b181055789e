//! One task on three machines with one gate: the picture shows what each machine does at each tick.
//!
//! Each machine is an executor on a manual clock of its own, and the gate lets through the first machine that asks. The clocks
//! are moved one after the other, another one first at each tick, and one machine stops.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use punctual::{
    ManualClock, ScheduledThreadPoolExecutor,
    gate::{self, Entry},
};

use super::svg::picture;

const NAMES: [&str; 3] = ["A", "B", "C"];
const TICKS: u64 = 6;
/// The machine that stops, and its last tick.
const STOPS: (usize, u64) = (2, 3);
const PERIOD: Duration = Duration::from_secs(10);

/// The act of a machine at a tick: it has run, or has skipped it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    machine: usize,
    tick: u64,
    has_run: bool,
}

/// Starts a machine. The gate lets a tick through if it is later than the last that was taken.
fn start(
    machine: usize,
    taken: Arc<AtomicU64>,
    tell: &Sender<Event>,
) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
    let executor = builder.core_pool_size(1).build().expect("one worker");
    let note = |has_run| {
        let (clock, tell) = (clock.clone(), tell.clone());
        move || {
            let tick = clock.elapsed().as_secs() / PERIOD.as_secs();
            tell.send(Event { machine, tick, has_run }).expect("the test listens");
        }
    };
    let (skips, runs) = (note(false), note(true));
    let now = clock.clone();
    let first_to_ask = gate::from_fn(move |_| {
        let tick = now.elapsed().as_secs() / PERIOD.as_secs();
        if taken.fetch_max(tick, Ordering::Relaxed) < tick {
            return Entry::Run;
        }
        skips();
        Entry::Skip
    });
    let task = executor.task().gate(first_to_ask);
    task.schedule_at_fixed_rate(PERIOD, PERIOD, runs).expect("it is open");
    (clock, executor)
}

/// Runs the task on all machines.
fn record() -> Vec<Event> {
    let (tell, told) = channel();
    let taken = Arc::new(AtomicU64::new(0));
    let machines: Vec<_> =
        (0..NAMES.len()).map(|machine| start(machine, Arc::clone(&taken), &tell)).collect();
    for tick in 1..=TICKS {
        for turn in 0..machines.len() {
            let machine = (turn + tick as usize - 1) % machines.len();
            if machine != STOPS.0 || tick <= STOPS.1 {
                let (clock, _) = &machines[machine];
                clock.advance(PERIOD);
                clock.run_until_idle();
            }
        }
    }
    drop(machines);
    told.try_iter().collect()
}

/// Each mark of the picture is what a machine did, and no other mark is there.
#[test]
fn the_marks_are_what_the_machines_did() {
    let across = |tick: u64| 110.0 + 68.0 * tick as f32;
    let down = |machine: usize| 84.0 + 52.0 * machine as f32;
    let events = record();
    let mark = |event: &Event| {
        // A run is a bar, and a tick that is skipped a circle; in the middle of the line of its machine.
        let (above, size) = if event.has_run { (15.0, (24.0, 30.0)) } else { (6.0, (12.0, 12.0)) };
        ((across(event.tick) - 6.0, down(event.machine) - above), size)
    };
    let elements = picture("gate");
    // The circle of the legend is below the machines.
    let marks = elements.iter().filter(|it| it.name == "rect" && it.at().1 < down(NAMES.len()));
    let marks = marks.map(|it| (it.at(), it.size()));
    let marks: Vec<_> =
        marks.filter(|(_, size)| [(24.0, 30.0), (12.0, 12.0)].contains(size)).collect();
    assert_eq!(marks, events.iter().map(mark).collect::<Vec<_>>());
    let runs = events.iter().filter(|event| event.has_run);
    let named = elements.iter().filter(|it| it.has_class("strong") && it.has_class("code"));
    assert!(named.map(|it| it.text.as_str()).eq(runs.map(|event| NAMES[event.machine])));
}

/// Each tick has one run, whichever machine has stopped, and every other machine that is there skips it.
#[test]
fn each_tick_is_run_once() {
    let events = record();
    for tick in 1..=TICKS {
        let at = |has_run| events.iter().filter(move |e| e.tick == tick && e.has_run == has_run);
        assert_eq!(at(true).count(), 1, "{events:?}");
        assert_eq!(at(false).count(), if tick <= STOPS.1 { 2 } else { 1 }, "{events:?}");
    }
    let runners: Vec<_> = events.iter().filter(|e| e.has_run).map(|e| NAMES[e.machine]).collect();
    assert_eq!(runners, ["A", "B", "C", "A", "B", "A"]);
}
