//! Scripts of groups: what one thread asks of several tasks, of which some are in groups, some have gates that answer
//! later, and some have bodies that take time.
//!
//! One body runs at a time, so the tasks of a group contend for permits with those whose gates have been asked and have not
//! answered. The [model](super::model::group) says which task has its turn when, and what each group counts after each step.
//!
//! One coincidence may be drawn and is not predicted, and has not come up: of two bodies in one round of the driver the first
//! moves a third task away, and the second moves it back.

use std::{fmt, iter, time::Duration};

use proptest::{collection::vec, option::weighted, prelude::*, strategy::BoxedStrategy};
use punctual::TaskState;

use super::{
    Event, MOST_TURNS, Report, first_difference,
    gate::{self, Answer, Entry},
    hunt, model, play, player,
    script::{self, Request, Script, steps},
};
use crate::{
    number,
    steps::{self, Steps},
};

std::thread_local! {
    static SCRIPTS: BoxedStrategy<GroupScript> = scripts().boxed();
}

#[derive(Clone, Debug)]
pub(super) struct GroupScript {
    /// The length of a step, in nanoseconds.
    step: u64,
    /// The limit of each group.
    pub(super) limits: Vec<usize>,
    /// Whether a shutdown keeps what is not due, and series.
    pub(super) keeps: (bool, bool),
    pub(super) tasks: Vec<Member>,
    pub(super) ops: Vec<Op>,
}

/// A task, which may be in no group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) group: Option<usize>,
    /// Whether a shutdown keeps it, if that is its own affair.
    pub(super) keep: Option<bool>,
    pub(super) script: Script,
    /// What its bodies do first, in turn, to other tasks and to groups.
    pub(super) says: Vec<Option<Op>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Ask(usize, Request),
    /// The last question about a task is answered that has not been answered yet, if there is one.
    Reply(usize, Entry),
    /// Time passes, and nothing runs.
    Stall(Steps),
    RunDue,
    RunFor(Steps),
    Group(usize, GroupOp),
    /// The executor is shut down.
    Shutdown,
    ShutdownNow,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum GroupOp {
    Pause,
    Resume,
    Limit(usize),
    /// The only worker is reserved for others, so one task may run all the same.
    Reserve(bool),
    CancelAll,
    Shutdown,
    ShutdownNow,
}

/// What there is to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Of(usize, Event),
    /// How many tasks have run, or were cancelled.
    Number(usize),
    Answer(bool),
    Drained(Vec<usize>),
    /// When the executor has to be called next.
    Next(Option<Duration>),
    Group {
        is_paused: bool,
        is_over: bool,
        counts: Counts,
    },
}

/// What a group counts. None of its tasks runs then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) pending: usize,
    pub(super) waiting: usize,
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) runs: u64,
    pub(super) failed_runs: u64,
}

impl Seen {
    /// Returns the number of the task.
    pub(super) fn number(&self) -> Option<usize> {
        if let Self::Of(number, _) = self { Some(*number) } else { None }
    }
}

impl Counts {
    pub(super) fn count(&mut self, end: TaskState) {
        match end {
            TaskState::Completed => self.completed += 1,
            TaskState::Failed => self.failed += 1,
            _ => self.cancelled += 1,
        }
    }
}

/// Returns `true` if a script is over that has shown this.
pub(super) fn is_over(seen: &[Seen]) -> bool {
    let turns =
        |seen: &&Seen| matches!(seen, Seen::Of(_, Event::Run { .. } | Event::Question { .. }));
    seen.iter().filter(turns).count() >= MOST_TURNS
}

fn scripts() -> impl Strategy<Value = GroupScript> {
    let group = prop_oneof![1 => Just(None), 6 => Just(Some(0)), 2 => Just(Some(1))];
    let keep = weighted(0.1, any::<bool>());
    let says = prop_oneof![2 => Just(vec![None]), 1 => vec(weighted(0.5, said()), 1..3)];
    let task = (group, keep, script::of(answers(), Just(Vec::new())), says)
        .prop_map(|(group, keep, script, says)| Member { group, keep, script, says });
    let keeps = (prop::bool::weighted(0.7), prop::bool::weighted(0.3));
    let limit = prop_oneof![3 => Just(1), 1 => Just(2), 1 => Just(3)];
    let end = prop_oneof![3 => Just(Op::Shutdown), 1 => Just(Op::ShutdownNow)];
    let end = weighted(0.3, (end, vec(op(Request::is_possible_at_end), 0..8)));
    let ops = (vec(op(|_| true), 1..16), end);
    (script::step(), vec(limit, 1..3), keeps, vec(task, 2..6), ops).prop_map(
        |(step, limits, keeps, mut tasks, (mut ops, end))| {
            let (groups, count, has_end) = (limits.len(), tasks.len(), end.is_some());
            let placed = |op: Op| match op {
                Op::Ask(task, request) => Op::Ask(task % count, request),
                Op::Reply(task, entry) => Op::Reply(task % count, entry),
                Op::Group(group, op) => Op::Group(group % groups, op),
                op => op,
            };
            for (number, Member { group, script, says, .. }) in tasks.iter_mut().enumerate() {
                (*group, script.step) = (group.map(|group| group % groups), step);
                script.bodies.iter_mut().for_each(|it| it.asks = it.asks.filter(|_| !has_end));
                let is_possible = |op: &Op| match op {
                    Op::Ask(task, request) => {
                        *task != number && (!has_end || request.is_possible_at_end())
                    }
                    Op::Reply(task, _) => *task != number,
                    _ => true,
                };
                says.iter_mut().for_each(|op| *op = op.map(placed).filter(is_possible));
            }
            ops.extend(end.into_iter().flat_map(|(end, after)| iter::once(end).chain(after)));
            let ops = ops.into_iter().map(placed);
            GroupScript { step, limits, keeps, tasks, ops: ops.collect() }
        },
    )
}

/// Returns the answers of a gate, which may ask nothing of its task.
fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let takes = prop_oneof![4 => Just(Steps(0)), 1 => steps(9)];
    let entry = prop_oneof![1 => gate::entry(), 2 => Just(Entry::Later)];
    let answer = (takes, entry).prop_map(|(takes, entry)| Answer { takes, asks: None, entry });
    prop_oneof![1 => Just(Vec::new()), 2 => vec(answer, 1..4)]
}

/// Returns a step, with a request that `is_possible`. After the shutdown of an executor a task is not put off any more, and so
/// none of that is drawn, in no body either.
fn op(is_possible: fn(&Request) -> bool) -> impl Strategy<Value = Op> {
    let task = || 0_usize..6;
    let request = script::request().prop_filter("possible", is_possible);
    prop_oneof![
        4 => (task(), request).prop_map(|(task, request)| Op::Ask(task, request)),
        5 => (task(), gate::entry()).prop_map(|(task, entry)| Op::Reply(task, entry)),
        2 => steps(4).prop_map(Op::Stall),
        5 => Just(Op::RunDue),
        5 => steps(4).prop_map(Op::RunFor),
        3 => (0_usize..2, group_op()).prop_map(|(group, op)| Op::Group(group, op)),
    ]
}

/// Returns what a body does first. It ends no group, since its own task would end by that.
fn said() -> impl Strategy<Value = Op> {
    let op = prop_oneof![
        Just(GroupOp::Pause),
        Just(GroupOp::Resume),
        (1_usize..4).prop_map(GroupOp::Limit),
        any::<bool>().prop_map(GroupOp::Reserve),
    ];
    prop_oneof![
        3 => (0_usize..6, script::request()).prop_map(|(task, request)| Op::Ask(task, request)),
        1 => (0_usize..6, gate::entry()).prop_map(|(task, entry)| Op::Reply(task, entry)),
        2 => (0_usize..2, op).prop_map(|(group, op)| Op::Group(group, op)),
    ]
}

impl Request {
    fn is_possible_at_end(&self) -> bool {
        matches!(self, Self::Resume | Self::RunNow | Self::RunWithin(_) | Self::Cancel)
    }
}

fn group_op() -> impl Strategy<Value = GroupOp> {
    prop_oneof![
        6 => Just(GroupOp::Pause),
        8 => Just(GroupOp::Resume),
        6 => (1_usize..4).prop_map(GroupOp::Limit),
        1 => any::<bool>().prop_map(GroupOp::Reserve),
        1 => Just(GroupOp::CancelAll),
        2 => Just(GroupOp::Shutdown),
        1 => Just(GroupOp::ShutdownNow),
    ]
}

/// Each script goes as its model says.
#[test]
fn every_group_script_goes_as_predicted() -> Result<(), Report> {
    let first = number("PUNCTUAL_FIRST_SEED", 1);
    let scripts = SCRIPTS.with(Clone::clone);
    (first..first + number("PUNCTUAL_SCRIPTS", 2_000))
        .try_for_each(|seed| hunt(seed, &scripts, compare))
}

fn compare(script: GroupScript) -> Result<(), String> {
    steps::begin(script.step);
    let predicted = model::group::predict(&script);
    let seen = play(move || player::group::play(&script))?;
    first_difference(&seen, &predicted).map_or(Ok(()), Err)
}

/// The script as code.
impl fmt::Display for GroupScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    // a shutdown keeps what is not due, and series: {:?}", self.keeps)?;
        self.limits.iter().enumerate().try_for_each(|(group, limit)| {
            writeln!(
                f,
                "    let group{group} = executor.group(\"{group}\").limit({limit}).build()?;"
            )
        })?;
        self.tasks.iter().enumerate().try_for_each(
            |(task, Member { group, keep, script, says })| {
                write!(f, "    // task{task}, which a shutdown keeps: {keep:?}, in ")?;
                match group {
                    Some(group) => writeln!(f, "group{group}:")?,
                    None => writeln!(f, "no group:")?,
                }
                script.fmt(f)?;
                writeln!(f, "    // its bodies do first, in turn: {says:?}")
            },
        )?;
        self.ops.iter().try_for_each(|op| match op {
            Op::Ask(task, request) => writeln!(f, "    task{task}.{request};"),
            Op::Reply(task, entry) => {
                writeln!(f, "    reply{task}.send({entry}); // if there is one")
            }
            Op::Stall(span) => writeln!(f, "    clock.advance({span}); // and nothing runs"),
            Op::RunDue => writeln!(f, "    executor.run_due();"),
            Op::RunFor(span) => writeln!(f, "    clock.run_for({span});"),
            Op::Group(group, op) => writeln!(f, "    group{group}: {op:?}"),
            Op::Shutdown => writeln!(f, "    executor.shutdown();"),
            Op::ShutdownNow => writeln!(f, "    drop(executor.shutdown_now());"),
        })
    }
}
