//! A script: a task, what its bodies do, and the steps of the one thread. It is data, and prints as code.

use std::{fmt, time::Duration};

use proptest::{collection::vec, option::weighted, prelude::*};
use punctual::{Backoff, FailurePolicy, MissedRuns};

use super::gate::{self, Answer, Entry};
use crate::steps::{self, Steps};

#[derive(Clone, Debug)]
pub(super) struct Script {
    /// The length of a step, in nanoseconds. `Skip` knows a millisecond and ten seconds.
    pub(super) step: u64,
    pub(super) task: Task,
    pub(super) missed: Missed,
    pub(super) on_failure: Option<OnFailure>,
    /// The bodies of the runs, in turn.
    pub(super) bodies: Vec<Body>,
    /// The answers of the gate, in turn. There is no gate if this is empty.
    pub(super) gate: Vec<Answer>,
    pub(super) ops: Vec<Op>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Once(Steps),
    Series(Trigger),
    Call(Tries),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Rhythm {
    Every(Steps),
    Delay(Steps),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Trigger {
    pub(super) rhythm: Rhythm,
    pub(super) first: Steps,
    pub(super) retry: Option<Tries>,
}

/// A back-off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    first: Steps,
    longest: Steps,
    attempts: Option<u32>,
    pub(super) elapsed: Option<Steps>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Missed {
    #[default]
    Burst,
    Coalesce,
    Skip,
    Delay,
    Within(Steps),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum OnFailure {
    Resume,
    StopAfter(u32),
}

/// A body: it takes some time, asks something of its task, and may fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub(super) takes: Steps,
    pub(super) asks: Option<Request>,
    pub(super) fails: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Ask(Request),
    /// Time passes, and nothing runs: all workers are busy.
    Stall(Steps),
    /// Time passes, and what is due runs at its moment.
    RunFor(Steps),
    /// The last question of the gate is answered that has not been answered yet, if there is one.
    Reply(Entry),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Pause,
    Resume,
    RunNow,
    RunWithin(Steps),
    Reschedule(Steps),
    SetTrigger(Trigger),
    Cancel,
}

pub(super) fn any() -> BoxedStrategy<Script> {
    let op = prop_oneof![
        4 => request().prop_map(Op::Ask),
        2 => steps(9).prop_map(Op::Stall),
        3 => steps(9).prop_map(Op::RunFor),
        2 => gate::entry().prop_map(Op::Reply),
    ];
    of(gate::answers(), vec(op, 1..12)).boxed()
}

pub(super) fn step() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(1_u64), 1 => Just(300_000), 1 => Just(3_000_000_000)]
}

/// Returns a script with such a gate and such ops.
pub(super) fn of(
    gate: impl Strategy<Value = Vec<Answer>>,
    ops: impl Strategy<Value = Vec<Op>>,
) -> impl Strategy<Value = Script> {
    let task = prop_oneof![
        1 => steps(6).prop_map(Task::Once),
        6 => trigger().prop_map(Task::Series),
        2 => tries().prop_map(Task::Call),
    ];
    let missed = prop_oneof![
        1 => Just(Missed::Burst),
        1 => Just(Missed::Coalesce),
        1 => Just(Missed::Skip),
        1 => Just(Missed::Delay),
        2 => steps(4).prop_map(Missed::Within),
    ];
    let on_failure = prop_oneof![
        3 => Just(None),
        2 => Just(Some(OnFailure::Resume)),
        1 => (1_u32..4).prop_map(|most| Some(OnFailure::StopAfter(most))),
    ];
    (step(), task, missed, on_failure, vec(body(), 1..4), gate, ops).prop_map(
        |(step, task, missed, on_failure, bodies, gate, ops)| Script {
            step,
            task,
            missed,
            on_failure,
            bodies,
            gate,
            ops,
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let takes = prop_oneof![3 => Just(Steps(0)), 1 => steps(12)];
    (takes, weighted(0.2, request()), prop::bool::weighted(0.3))
        .prop_map(|(takes, asks, fails)| Body { takes, asks, fails })
}

pub(super) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        4 => Just(Request::Pause),
        5 => Just(Request::Resume),
        5 => Just(Request::RunNow),
        3 => steps(6).prop_map(Request::RunWithin),
        3 => steps(6).prop_map(Request::Reschedule),
        2 => trigger().prop_map(Request::SetTrigger),
        1 => Just(Request::Cancel),
    ]
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let span = || (1_u8..7).prop_map(Steps);
    let rhythm =
        prop_oneof![3 => span().prop_map(Rhythm::Every), 1 => span().prop_map(Rhythm::Delay)];
    (rhythm, steps(6), weighted(0.4, tries())).prop_map(|(rhythm, first, retry)| Trigger {
        rhythm,
        first,
        retry,
    })
}

fn tries() -> impl Strategy<Value = Tries> {
    (steps(5), steps(9), weighted(0.5, 0_u32..5), weighted(0.3, steps(20)))
        .prop_map(|(first, longest, attempts, elapsed)| Tries { first, longest, attempts, elapsed })
}

pub(super) fn steps(most: u8) -> impl Strategy<Value = Steps> {
    (0..=most).prop_map(Steps)
}

impl Script {
    pub(super) fn begin(&self) {
        steps::begin(self.step);
    }
}

impl Tries {
    pub(super) fn backoff(self) -> Backoff {
        let backoff = Backoff::exponential(self.first.span()..=self.longest.span());
        let backoff = self.attempts.map_or(backoff, |most| backoff.max_attempts(most));
        self.elapsed.map_or(backoff, |most| backoff.max_elapsed(most.span()))
    }

    /// Returns how long to wait after so many failures: twice as long after each, up to the longest.
    pub(super) fn delay_after(self, failures: u32) -> Option<Duration> {
        let is_over = self.attempts.is_some_and(|most| failures >= most.max(1));
        let doubled = self.first.span() * 2_u32.pow(failures.max(1) - 1);
        (!is_over).then(|| doubled.min(self.longest.span()))
    }
}

impl OnFailure {
    pub(super) fn policy(self) -> FailurePolicy {
        match self {
            Self::Resume => FailurePolicy::resume(),
            Self::StopAfter(most) => FailurePolicy::resume().stop_after(most),
        }
    }
}

impl Missed {
    pub(super) fn has_deadline(self) -> bool {
        matches!(self, Self::Skip | Self::Within(_))
    }

    pub(super) fn policy(self) -> MissedRuns {
        match self {
            Self::Burst => MissedRuns::Burst,
            Self::Coalesce => MissedRuns::Coalesce,
            Self::Skip => MissedRuns::Skip,
            Self::Delay => MissedRuns::Delay,
            Self::Within(span) => MissedRuns::Within(span.span()),
        }
    }
}

/// The script as code. A body, and an answer, is written behind the steps, since a closure would have to share the clock and the task.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.begin();
        writeln!(f, "    let task = executor.task().missed_runs({:?})", self.missed.policy())?;
        if let Some(policy) = self.on_failure {
            writeln!(f, "        .on_failure({:?})", policy.policy())?;
        }
        if !self.gate.is_empty() {
            writeln!(f, "        .gate(gate)")?;
        }
        match self.task {
            Task::Once(delay) => writeln!(f, "        .schedule({delay}, body)?;")?,
            Task::Series(trigger) => writeln!(f, "        .repeat({trigger}, body)?;")?,
            Task::Call(tries) => writeln!(f, "        .retry({tries}, body)?;")?,
        }
        self.ops.iter().try_for_each(|op| match op {
            Op::Ask(request) => writeln!(f, "    task.{request};"),
            Op::Stall(span) => writeln!(f, "    clock.advance({span}); // and nothing runs"),
            Op::RunFor(span) => writeln!(f, "    clock.run_for({span});"),
            Op::Reply(entry) => writeln!(f, "    reply.send({entry}); // if there is one"),
        })?;
        self.gate.iter().enumerate().try_for_each(|(number, answer)| {
            writeln!(f, "    // answer {}: {answer}", number + 1)
        })?;
        self.bodies.iter().enumerate().try_for_each(|(number, Body { takes, asks, fails })| {
            write!(f, "    // body {}: clock.advance({takes});", number + 1)?;
            asks.iter().try_for_each(|request| write!(f, " task.{request};"))?;
            writeln!(f, " {}", if *fails { "Err(\"no\")" } else { "Ok(())" })
        })
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Duration::from_nanos({})", self.span().as_nanos())
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rhythm {
            Rhythm::Every(period) => write!(f, "every({period})")?,
            Rhythm::Delay(delay) => write!(f, "fixed_delay({delay})")?,
        }
        write!(f, ".first_in({})", self.first)?;
        self.retry.iter().try_for_each(|tries| write!(f, ".retry({tries})"))
    }
}

impl fmt::Display for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backoff::exponential({}..={})", self.first, self.longest)?;
        self.attempts.iter().try_for_each(|most| write!(f, ".max_attempts({most})"))?;
        self.elapsed.iter().try_for_each(|most| write!(f, ".max_elapsed({most})"))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause => f.write_str("pause()"),
            Self::Resume => f.write_str("resume()"),
            Self::RunNow => f.write_str("run_now()"),
            Self::RunWithin(span) => write!(f, "run_within({span})"),
            Self::Reschedule(span) => write!(f, "reschedule({span})"),
            Self::SetTrigger(trigger) => write!(f, "set_trigger({trigger})"),
            Self::Cancel => f.write_str("cancel()"),
        }
    }
}
