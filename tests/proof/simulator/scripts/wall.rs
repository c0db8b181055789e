//! Scripts of the wall clock: one task whose moments are on that clock, and a clock that is set ahead and back, by the thread
//! and by the bodies. Its own [model](model) says when each run begins on both clocks, and the [player](player) has to
//! note exactly that.
//!
//! A worker looks at the wall clock at each multiple of 30 s of the manual clock. So a script begins some steps
//! before such a moment, or has steps of which it takes a few from one look to the next. Another trigger, retries and a
//! gate are for the other scripts.

mod model;
mod player;

use std::{
    fmt,
    ops::{Add, Sub},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use proptest::{collection::vec, option::weighted, prelude::*};
use punctual::{
    Trigger,
    trigger::{Due, TriggerContext},
};

use super::{
    Report, first_difference, hunt, play,
    script::{Missed, Request, steps},
};
use crate::{
    number,
    steps::{self, Steps},
};

/// A moment of the manual clock at which a worker looks at the wall clock, a day from its origin.
const LOOK: Duration = Duration::from_secs(86_400);

std::thread_local! {
    static SCRIPTS: BoxedStrategy<Script> = scripts();
}

#[derive(Clone, Debug)]
struct Script {
    /// The length of a step, in nanoseconds.
    step: u64,
    /// How long before a look the script begins.
    before_look: Steps,
    task: Task,
    missed: Missed,
    /// The bodies of the runs, in turn.
    bodies: Vec<Body>,
    ops: Vec<Op>,
}

#[derive(Clone, Debug)]
enum Task {
    Calendar(Calendar),
    /// At moments that lie so far from the beginning, and each of them so much later than the one before.
    List(Change, Vec<Steps>),
    /// The same by a function, which leaves out no moment that has passed.
    Given(Change, Vec<Steps>),
    Once(Change),
}

/// At the multiples of a period since 1970.
#[derive(Clone, Copy, Debug)]
struct Calendar {
    period: Steps,
    is_asked_again: bool,
    counts: bool,
    jitter: Option<Spread>,
}

/// Jitter: each run is delayed by less than `most`.
#[derive(Clone, Copy, Debug)]
struct Spread {
    most: Steps,
    seed: u64,
}

/// A span ahead or back on the wall clock.
#[derive(Clone, Copy, Debug)]
enum Change {
    Ahead(Steps),
    Back(Steps),
}

/// A body: it takes some time, may set the wall clock, and may ask something of its task.
#[derive(Clone, Copy, Debug)]
struct Body {
    takes: Steps,
    sets: Option<Change>,
    asks: Option<Request>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Set(Change),
    Ask(Request),
    /// Time passes, and nothing runs: all workers are busy.
    Stall(Steps),
    RunFor(Steps),
}

fn scripts() -> BoxedStrategy<Script> {
    let step = prop_oneof![
        2 => Just(1_u64),
        1 => Just(300_000),
        2 => Just(3_000_000_000),
        1 => Just(7_000_000_000),
        1 => Just(10_000_000_000),
    ];
    let task = prop_oneof![
        5 => calendar().prop_map(Task::Calendar),
        2 => (change(9), vec(steps(6), 0..5)).prop_map(|(first, later)| {
            // The last is not before the submission.
            Task::List(first, later.into_iter().chain([Steps(9)]).collect())
        }),
        1 => (change(9), vec(steps(6), 0..5))
            .prop_map(|(first, later)| Task::Given(first, later)),
        1 => change(9).prop_map(Task::Once),
    ];
    let missed = prop_oneof![
        1 => Just(Missed::Burst),
        2 => Just(Missed::Coalesce),
        2 => Just(Missed::Skip),
        1 => Just(Missed::Delay),
        2 => steps(6).prop_map(Missed::Within),
    ];
    let op = prop_oneof![
        4 => change(30).prop_map(Op::Set),
        3 => request().prop_map(Op::Ask),
        1 => steps(9).prop_map(Op::Stall),
        5 => steps(12).prop_map(Op::RunFor),
    ];
    (step, steps(12), task, missed, vec(body(), 1..4), vec(op, 1..12))
        .prop_map(|(step, before_look, task, missed, bodies, ops)| Script {
            step,
            before_look,
            task,
            missed,
            bodies,
            ops,
        })
        .boxed()
}

fn calendar() -> impl Strategy<Value = Calendar> {
    let spread = (steps(9), prop::num::u64::ANY).prop_map(|(most, seed)| Spread { most, seed });
    let period = (1_u8..9).prop_map(Steps);
    (period, prop::bool::weighted(0.7), prop::bool::weighted(0.7), weighted(0.4, spread)).prop_map(
        |(period, is_asked_again, counts, jitter)| Calendar {
            period,
            is_asked_again,
            counts,
            jitter,
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let takes = prop_oneof![3 => Just(Steps(0)), 1 => steps(9)];
    (takes, weighted(0.3, change(30)), weighted(0.2, request()))
        .prop_map(|(takes, sets, asks)| Body { takes, sets, asks })
}

fn change(most: u8) -> impl Strategy<Value = Change> {
    prop_oneof![steps(most).prop_map(Change::Ahead), steps(most).prop_map(Change::Back)]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        4 => Just(Request::Pause),
        4 => Just(Request::Resume),
        4 => Just(Request::RunNow),
        3 => steps(9).prop_map(Request::RunWithin),
        3 => steps(9).prop_map(Request::Reschedule),
        1 => Just(Request::Cancel),
    ]
}

/// Each script of the wall clock goes as its model says.
#[test]
fn every_wall_script_goes_as_predicted() -> Result<(), Report> {
    let first = number("PUNCTUAL_FIRST_SEED", 1);
    let scripts = SCRIPTS.with(Clone::clone);
    (first..first + number("PUNCTUAL_SCRIPTS", 4_000)).try_for_each(|seed| {
        hunt(seed, &scripts, |script: Script| {
            script.begin();
            let predicted = model::predict(&script);
            let seen = play(move || player::play(&script))?;
            first_difference(&seen, &predicted).map_or(Ok(()), Err)
        })
    })
}

impl Script {
    fn begin(&self) {
        steps::begin(self.step);
    }

    /// Returns what the manual clock shows when the script begins.
    fn begins_at(&self) -> Duration {
        LOOK - self.before_look.span()
    }
}

impl Task {
    /// Returns the moments of a task that has some of its own, on the wall clock, which shows this when it begins.
    fn moments<T: Copy + Add<Duration, Output = T> + Sub<Duration, Output = T>>(
        &self,
        begin: T,
    ) -> Vec<T> {
        let (first, later) = match self {
            Self::Calendar(_) => return Vec::new(),
            Self::Once(change) => (change.of(begin), [].as_slice()),
            Self::List(first, later) | Self::Given(first, later) => {
                (first.of(begin), later.as_slice())
            }
        };
        let mut moments = vec![first];
        moments.extend(later.iter().scan(first, |moment, span| {
            *moment = *moment + span.span();
            Some(*moment)
        }));
        moments
    }
}

impl Change {
    /// Returns the moment that is so much later or earlier.
    fn of<T: Add<Duration, Output = T> + Sub<Duration, Output = T>>(self, moment: T) -> T {
        match self {
            Self::Ahead(span) => moment + span.span(),
            Self::Back(span) => moment - span.span(),
        }
    }
}

impl Calendar {
    /// Returns how many of its moments there are from 1970 up to this one.
    fn count_up_to(self, moment: Duration) -> u64 {
        (moment.as_nanos() / self.period.span().as_nanos()) as u64
    }

    fn first_after(self, moment: Duration) -> Duration {
        let period = self.period.span().as_nanos() as u64;
        Duration::from_nanos((self.count_up_to(moment) + 1) * period)
    }
}

fn since_1970(moment: SystemTime) -> Duration {
    moment.duration_since(UNIX_EPOCH).expect("no script goes that far back")
}

impl Trigger for Calendar {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        let next = self.first_after(since_1970(last.after_wall()));
        Some(Due::Wall(UNIX_EPOCH + next))
    }

    fn is_asked_again(&mut self) -> bool {
        self.is_asked_again
    }

    fn between(&mut self, from: Due, to: Due) -> u64 {
        let (Due::Wall(from), Due::Wall(to), true) = (from, to, self.counts) else { return 0 };
        let up_to = |moment| self.count_up_to(since_1970(moment));
        up_to(to).saturating_sub(up_to(from))
    }
}

/// The script as code. A body is written behind the steps.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.begin();
        let begins = self.begins_at().as_nanos();
        writeln!(f, "    let clock = ManualClock::starting_at(Duration::from_nanos({begins}));")?;
        writeln!(f, "    let begin = clock.wall_time();")?;
        writeln!(f, "    let task = executor.task().missed_runs({:?})", self.missed.policy())?;
        match &self.task {
            Task::Calendar(calendar) => writeln!(f, "        .repeat({calendar}, body)?;")?,
            Task::Once(change) => writeln!(f, "        .schedule_at(begin {change}, body)?;")?,
            Task::List(first, later) | Task::Given(first, later) => {
                let is_list = matches!(self.task, Task::List(..));
                write!(f, "        .repeat({}([", if is_list { "at" } else { "given" })?;
                (0..=later.len()).try_for_each(|last| {
                    write!(f, "{}begin {first}", if last == 0 { "" } else { ", " })?;
                    later[..last].iter().try_for_each(|span| write!(f, " + {span}"))
                })?;
                writeln!(f, "]), body)?;")?;
            }
        }
        self.ops.iter().try_for_each(|op| match op {
            Op::Set(change) => writeln!(f, "    {};", set(*change)),
            Op::Ask(request) => writeln!(f, "    task.{request};"),
            Op::Stall(span) => writeln!(f, "    clock.advance({span}); // and nothing runs"),
            Op::RunFor(span) => writeln!(f, "    clock.run_for({span});"),
        })?;
        self.bodies.iter().enumerate().try_for_each(|(number, Body { takes, sets, asks })| {
            write!(f, "    // body {}: clock.advance({takes});", number + 1)?;
            sets.iter().try_for_each(|change| write!(f, " {};", set(*change)))?;
            asks.iter().try_for_each(|request| write!(f, " task.{request};"))?;
            writeln!(f)
        })
    }
}

fn set(change: Change) -> String {
    format!("clock.set_wall_time(clock.wall_time() {change})")
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead(span) => write!(f, "+ {span}"),
            Self::Back(span) => write!(f, "- {span}"),
        }
    }
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { period, is_asked_again, counts, jitter } = self;
        write!(f, "Calendar {{ period: {period}, is_asked_again: {is_asked_again}, ")?;
        write!(f, "counts: {counts} }}")?;
        jitter
            .iter()
            .try_for_each(|Spread { most, seed }| write!(f, ".jitter({most}).seed({seed})"))
    }
}
