//! One task on three machines with one gate: what each machine did at each tick.
//!
//! Each machine is an executor on a manual clock of its own, and the gate lets through the first machine that asks. The clocks
//! are moved one after the other, another one first at each tick, and one machine stops. Everything that is drawn was
//! recorded by the gate and by the body.

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

use crate::{
    palette::{CALM, FAINT, GRID, GROUND, STRONG, TEXT},
    svg::{Anchor, Frame, Letters, Picture},
};

const NAMES: [&str; 3] = ["A", "B", "C"];
const TICKS: u64 = 6;
/// The machine that stops, and its last tick.
const STOPS: (usize, u64) = (2, 3);
const PERIOD: Duration = Duration::from_secs(10);

/// What a machine did at a tick: it has run, or has skipped it.
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

const ROW: f32 = 52.0;
const FIRST: f32 = 84.0;
const GATE: f32 = FIRST + 3.0 * ROW - 8.0;

fn across(tick: u64) -> f32 {
    110.0 + 68.0 * tick as f32
}

fn down(machine: usize) -> f32 {
    FIRST + ROW * machine as f32
}

pub(crate) fn draw() -> String {
    let title = "Three machines, one gate";
    let description = "Three machines have the same periodic task. Each of its ticks is run by one of them, which \
                       was the first to ask the gate, and is skipped by the others. One machine stops, and the \
                       others go on.";
    let mut picture = Picture::new(GATE + 136.0, title, description);
    picture.text((20.0, 34.0), Anchor::Start, Letters::Title, TEXT, title);
    for tick in 1..=TICKS {
        picture.line(&[(across(tick), FIRST - 30.0), (across(tick), GATE)], GRID, false);
    }
    for (machine, name) in NAMES.into_iter().enumerate() {
        let y = down(machine);
        let last = if machine == STOPS.0 { STOPS.1 } else { TICKS };
        picture.text(
            (20.0, y + 5.0),
            Anchor::Start,
            Letters::Words,
            TEXT,
            &format!("machine {name}"),
        );
        picture.line(&[(130.0, y), (across(last) + 34.0, y)], FAINT, false);
    }
    let (machine, tick) = STOPS;
    let (x, y) = (across(tick) + 42.0, down(machine) + 5.0);
    // The lines of the ticks do not cross what is written.
    picture.bar((x - 4.0, y - 14.0), (92.0, 20.0), GROUND);
    picture.text((x, y), Anchor::Start, Letters::Words, FAINT, "has stopped");
    picture.frame((130.0, GATE), (454.0, 40.0), Frame::Strong);
    picture.text((20.0, GATE + 25.0), Anchor::Start, Letters::Words, TEXT, "the gate");
    for event in record() {
        draw_event(&mut picture, event);
    }
    legend(&mut picture, GATE + 92.0);
    picture.finish()
}

fn draw_event(picture: &mut Picture, event: Event) {
    let (x, y) = (across(event.tick), down(event.machine));
    if !event.has_run {
        return picture.frame((x - 6.0, y - 6.0), (12.0, 12.0), Frame::Plain);
    }
    picture.bar((x - 6.0, y - 15.0), (24.0, 30.0), CALM);
    let name = NAMES[event.machine];
    picture.text((x, GATE + 25.0), Anchor::Middle, Letters::Code, STRONG, name);
    let moment = format!("{} s", event.tick * PERIOD.as_secs());
    picture.text((x, GATE + 60.0), Anchor::Middle, Letters::Words, FAINT, &moment);
}

fn legend(picture: &mut Picture, y: f32) {
    let words = |picture: &mut Picture, x, y, text| {
        picture.text((x, y), Anchor::Start, Letters::Words, FAINT, text);
    };
    picture.bar((20.0, y - 12.0), (14.0, 14.0), CALM);
    words(picture, 42.0, y, "a run");
    picture.frame((120.0, y - 11.0), (12.0, 12.0), Frame::Plain);
    words(picture, 140.0, y, "a tick that is skipped");
    words(
        picture,
        20.0,
        y + 28.0,
        "The gate lets through the first machine that asks about a tick.",
    );
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
