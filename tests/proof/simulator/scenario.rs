//! The scenario that a seed stands for: a pool, the faults that are switched on, and the steps of
//! each actor, in order. It is data, so it can be printed and made smaller.

use std::fmt;

use proptest::{collection::vec, option::weighted, prelude::*};

pub(crate) use crate::steps::{Steps, When};
use crate::{
    callbacks::{Back, Callbacks, callbacks},
    pairs::{self, Way},
    steps,
};

/// The number of groups.
pub(crate) const GROUPS: usize = 2;

/// Everything except the order in which the threads run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The length of a step, in nanoseconds. What is late by less than a millisecond is on time for some policies.
    pub(crate) step: u64,
    pub(crate) pool: PoolPlan,
    pub(crate) callbacks: Callbacks,
    pub(crate) faults: Faults,
    /// The limits of the groups at first.
    pub(crate) limits: [usize; GROUPS],
    /// The actors' steps. Those of the first never block: it moves time to its end.
    pub(crate) actors: Vec<Vec<Op>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolPlan {
    pub(crate) workers: usize,
    /// `true` if the director runs what is due, in place of workers.
    pub(crate) driven: bool,
    /// `true` if workers retire when they have been idle for a while.
    pub(crate) retire: bool,
    pub(crate) keep_delayed: bool,
    pub(crate) keep_periodic: bool,
    pub(crate) bound: Option<(usize, Refusal)>,
}

/// The fate of a task for which there is no room.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    Abort,
    CallerRuns,
    Discard,
    DiscardOldest,
    /// The actors wait for room; no other thread does.
    Block,
}

/// The faults that happen where a plan has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// A body panics.
    pub(crate) body: bool,
    /// The payload of the body's panic panics when it is dropped.
    pub(crate) payload: bool,
    /// A capture panics when it is dropped.
    pub(crate) capture: bool,
    /// A result panics when it is dropped.
    pub(crate) result: bool,
    /// A waker panics when it is woken.
    pub(crate) waker: bool,
    /// Every third call of a hook panics.
    pub(crate) hooks: bool,
    /// Every second thread cannot be started, or ends before its worker runs.
    pub(crate) spawn: bool,
}

impl Faults {
    /// No fault at all.
    pub(crate) const fn none() -> Self {
        let (body, payload, capture, result) = (false, false, false, false);
        Self { body, payload, capture, result, waker: false, hooks: false, spawn: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Once,
    Rate(Steps),
    Delay(Steps),
    /// At the multiples of a period on the wall clock, with jitter.
    Calendar(Steps, Option<Steps>),
    /// With a longest wait.
    Debounce(Steps, Option<Steps>),
    Throttle(Steps),
}

impl Kind {
    /// Returns `true` for a task that runs when it is called.
    pub(crate) const fn is_called(self) -> bool {
        matches!(self, Self::Debounce(..) | Self::Throttle(_))
    }

    /// Returns how far apart the runs are, if there is a grid.
    pub(crate) const fn grid(self) -> Option<Steps> {
        match self {
            Self::Rate(period) | Self::Calendar(period, _) => Some(period),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskPlan {
    pub(crate) when: When,
    pub(crate) kind: Kind,
    pub(crate) body: Act,
    pub(crate) capture: OnDrop,
    pub(crate) timeout: Option<Steps>,
    /// How late a run of a periodic task may start.
    pub(crate) within: Option<Steps>,
    /// `true` if a periodic task leaves its missed runs out.
    pub(crate) skips: bool,
    /// `true` if a periodic task continues after a run that panicked.
    pub(crate) resumes: bool,
    /// What its gate does when it is asked, and answers, if it has one.
    pub(crate) gate: Option<(Act, Answer)>,
    pub(crate) group: Option<usize>,
    /// `true` if a shutdown keeps it whatever the policies are, and `false` if none does.
    pub(crate) is_kept: Option<bool>,
}

/// The plan of a task that does nothing.
pub(crate) const fn plain(when: When) -> TaskPlan {
    let (kind, body, capture) = (Kind::Once, Act::Return, OnDrop::Nothing);
    let (timeout, within, gate, group, is_kept) = (None, None, None, None, None);
    let (skips, resumes) = (false, false);
    TaskPlan { when, kind, body, capture, timeout, within, skips, resumes, gate, group, is_kept }
}

/// An operation on a whole group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GroupVerb {
    Pause,
    Resume,
    SetLimit(usize),
    Reserve(usize),
    CancelAll,
    Shutdown,
    /// Runs that many of the tasks it gets back.
    ShutdownNow(usize),
    ShutdownWithin(Steps),
    AwaitTermination(Steps),
}

/// What a gate answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Run,
    Hold,
    Skip,
    /// A lease and a skip in turn.
    InTurn,
    /// Puts each tick off once, and gives a lease then.
    Again(Steps),
}

/// The steps of a body. Numbers are those of tasks, in the order of submission, and wrap around.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Return,
    /// Takes some time.
    Dawdle,
    Sleep(Steps),
    Panic,
    Cancel(usize),
    CancelItself,
    Ask(usize, Verb),
    /// Moves its own next run.
    Move(Steps),
    Submit(When),
    Group(usize, GroupVerb),
    Join(usize),
    JoinFor(usize, Steps),
    AwaitTermination,
    Shutdown,
    ShutdownNow,
    DropExecutor,
    /// Waits until the director lets it go, whatever it is asked: before the end, and after all else must have come about.
    Stay,
    /// Asks for its own next run at once. Only on a driven executor, whose caller decides how often.
    AtOnce(Way),
}

/// A request to a task that may be alive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Reschedule(Steps),
    RunWithin(Steps),
    RunNow,
    SetPeriod(Steps),
    Pause,
    Resume,
    /// Cancels it, and waits until its body has returned.
    CancelAndWait,
}

/// The action of a capture's drop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnDrop {
    Nothing,
    Panic,
    Cancel(usize),
    Submit,
    DropExecutor,
    Back(Back),
}

/// The step of an actor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Submit(TaskPlan),
    Cancel(usize),
    Ask(usize, Verb),
    /// Drops the future.
    Forget(usize),
    /// Polls the future with a waker.
    Poll(usize),
    /// Polls a timer with a waker, moves it, and drops it.
    Timer(Steps, Steps),
    Look,
    /// Calls one of the tasks that run when they are called.
    Call(usize),
    /// Has a debounced task run at once if a call waits.
    Flush(usize),
    /// Sets the wall clock ahead, or back.
    SetWall(Steps, bool),
    /// Drives the executor, if it is driven and this is the director.
    RunDue,
    Advance(Steps),
    Resize(usize),
    Group(usize, GroupVerb),
    KeepDelayed(bool),
    KeepPeriodic(bool),
    Prestart,
    Shutdown,
    /// Runs that many of the tasks it gets back.
    ShutdownNow(usize),
    Join(usize),
    JoinFor(usize, Steps),
    Await(usize),
    /// Awaits a timer.
    Sleep(Steps),
    AwaitTermination(Steps),
    ShutdownWithin(Steps),
    Close,
    DropExecutor,
}

/// Any scenario; smaller ones are tried first when one has failed.
pub(crate) fn any() -> BoxedStrategy<Scenario> {
    prop_oneof![2 => general(), 1 => pairs::any()].boxed()
}

/// A scenario that may have everything.
pub(crate) fn general() -> BoxedStrategy<Scenario> {
    let director = vec(quick_op(), 0..8);
    let others = vec(vec(prop_oneof![3 => quick_op(), 2 => blocking_op()], 0..7), 0..3);
    let limits = [1_usize..3, 1_usize..4];
    let step = prop_oneof![4 => Just(10_u64), 1 => Just(1_000_000)];
    (step, pool(), callbacks(), faults(), limits, director, others)
        .prop_map(|(step, pool, callbacks, faults, limits, director, others)| {
            let actors = std::iter::once(director).chain(others).collect();
            Scenario { step, pool, callbacks, faults, limits, actors }
        })
        .boxed()
}

fn pool() -> impl Strategy<Value = PoolPlan> {
    let refusal = prop_oneof![
        Just(Refusal::Abort),
        Just(Refusal::CallerRuns),
        Just(Refusal::Discard),
        Just(Refusal::DiscardOldest),
        Just(Refusal::Block),
    ];
    let workers = prop_oneof![5 => 1_usize..3, 1 => Just(0_usize), 1 => Just(3_usize)];
    let policies = (weighted_bool(0.7), weighted_bool(0.3));
    let kind = (workers, weighted_bool(0.12), weighted_bool(0.2));
    (kind, policies, weighted(0.2, (1_usize..4, refusal))).prop_map(
        |((workers, driven, retire), (keep_delayed, keep_periodic), bound)| PoolPlan {
            workers,
            driven,
            retire,
            keep_delayed,
            keep_periodic,
            bound,
        },
    )
}

/// Each fault is switched on in a third of all scenarios.
fn faults() -> impl Strategy<Value = Faults> {
    let one = || weighted_bool(0.3);
    (one(), one(), one(), one(), one(), one(), weighted_bool(0.1)).prop_map(
        |(body, payload, capture, result, waker, hooks, spawn)| Faults {
            body,
            payload,
            capture,
            result,
            waker,
            hooks,
            spawn,
        },
    )
}

pub(crate) fn weighted_bool(probability: f64) -> impl Strategy<Value = bool> {
    prop::bool::weighted(probability)
}

pub(crate) fn steps(least: u8, most: u8) -> impl Strategy<Value = Steps> {
    (least..=most).prop_map(Steps)
}

pub(crate) fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        3 => Just(When::After(Steps(0))),
        5 => steps(1, 4).prop_map(When::After),
        1 => steps(9, 12).prop_map(When::After),
        1 => Just(When::Never),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        12 => Just(Kind::Once),
        3 => steps(2, 5).prop_map(Kind::Rate),
        3 => steps(2, 5).prop_map(Kind::Delay),
        2 => (steps(2, 5), weighted(0.6, steps(1, 4)))
            .prop_map(|(period, jitter)| Kind::Calendar(period, jitter)),
        1 => (steps(1, 4), weighted(0.5, steps(1, 6)))
            .prop_map(|(quiet, most)| Kind::Debounce(quiet, most)),
        1 => steps(2, 6).prop_map(Kind::Throttle),
    ]
}

pub(crate) fn task() -> BoxedStrategy<TaskPlan> {
    let kind = kind();
    let timeout = weighted(0.15, steps(0, 4));
    let gate = weighted(0.25, (act(), answer()));
    let group = weighted(0.5, 0..GROUPS);
    let overdue = (weighted(0.3, steps(0, 3)), weighted_bool(0.2));
    let is_kept = weighted(0.1, any_bool());
    let limits = (timeout, overdue, is_kept);
    (when(), kind, act(), on_drop(), limits, any_bool(), gate, group)
        .prop_map(|(when, kind, body, capture, limits, resumes, gate, group)| {
            let (timeout, (within, skips), is_kept) = limits;
            // What a shutdown does with a task is told by its name, and a replica has another one.
            let is_replica = gate.is_some() && matches!(kind, Kind::Calendar(_, Some(_)));
            let is_kept = is_kept.filter(|_| !is_replica);
            TaskPlan { when, kind, body, capture, timeout, within, skips, resumes, gate, group, is_kept }
        })
        .boxed()
}

/// An operation on a group, by a thread that must not wait.
pub(crate) fn group_verb() -> impl Strategy<Value = GroupVerb> {
    prop_oneof![
        4 => Just(GroupVerb::Pause),
        4 => Just(GroupVerb::Resume),
        3 => (1_usize..4).prop_map(GroupVerb::SetLimit),
        1 => (0_usize..3).prop_map(GroupVerb::Reserve),
        2 => Just(GroupVerb::CancelAll),
        1 => Just(GroupVerb::Shutdown),
        1 => Just(GroupVerb::ShutdownNow(0)),
    ]
}

pub(crate) fn which_group() -> impl Strategy<Value = usize> {
    0..GROUPS
}

pub(crate) fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        1 => Just(Answer::Run),
        2 => Just(Answer::Hold),
        1 => Just(Answer::Skip),
        2 => Just(Answer::InTurn),
        3 => steps(0, 4).prop_map(Answer::Again),
    ]
}

fn any_bool() -> impl Strategy<Value = bool> {
    prop::bool::ANY
}

pub(crate) fn which() -> impl Strategy<Value = usize> {
    0_usize..6
}

/// The requests of an actor that do not block.
fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        1 => Just(Verb::Reschedule(Steps(0))),
        1 => Just(Verb::RunWithin(Steps(0))),
        2 => Just(Verb::RunNow),
        7 => verb_of_a_body(),
    ]
}

/// The requests of a body. None of them is for a run at once: tasks would run for ever at one moment.
pub(crate) fn verb_of_a_body() -> impl Strategy<Value = Verb> {
    prop_oneof![
        4 => steps(1, 6).prop_map(Verb::Reschedule),
        2 => steps(1, 6).prop_map(Verb::RunWithin),
        1 => steps(2, 5).prop_map(Verb::SetPeriod),
        2 => Just(Verb::Pause),
        2 => Just(Verb::Resume),
    ]
}

fn act() -> BoxedStrategy<Act> {
    prop_oneof![
        8 => Just(Act::Return),
        2 => Just(Act::Dawdle),
        1 => steps(1, 2).prop_map(Act::Sleep),
        4 => Just(Act::Panic),
        2 => which().prop_map(Act::Cancel),
        2 => Just(Act::CancelItself),
        2 => (which(), verb_of_a_body()).prop_map(|(task, verb)| Act::Ask(task, verb)),
        1 => steps(1, 6).prop_map(Act::Move),
        3 => when().prop_map(Act::Submit),
        3 => (which_group(), group_verb()).prop_map(|(group, verb)| Act::Group(group, verb)),
        1 => which().prop_map(Act::Join),
        1 => (which(), steps(0, 3)).prop_map(|(task, limit)| Act::JoinFor(task, limit)),
        1 => Just(Act::AwaitTermination),
        1 => Just(Act::Shutdown),
        1 => Just(Act::ShutdownNow),
        1 => Just(Act::DropExecutor),
        1 => Just(Act::Stay),
        2 => pairs::way().prop_map(Act::AtOnce),
    ]
    .boxed()
}

fn on_drop() -> impl Strategy<Value = OnDrop> {
    prop_oneof![
        6 => Just(OnDrop::Nothing),
        4 => Just(OnDrop::Panic),
        2 => which().prop_map(OnDrop::Cancel),
        1 => Just(OnDrop::Submit),
        1 => Just(OnDrop::DropExecutor),
        3 => pairs::back().prop_map(OnDrop::Back),
    ]
}

/// The steps that do not block.
pub(crate) fn quick_op() -> BoxedStrategy<Op> {
    prop_oneof![
        12 => task().prop_map(Op::Submit),
        5 => steps(1, 4).prop_map(Op::Advance),
        1 => steps(10, 30).prop_map(Op::Advance),
        4 => which().prop_map(Op::Cancel),
        6 => (which(), verb()).prop_map(|(task, verb)| Op::Ask(task, verb)),
        2 => which().prop_map(Op::Forget),
        2 => which().prop_map(Op::Poll),
        2 => (steps(0, 4), steps(0, 4)).prop_map(|(first, then)| Op::Timer(first, then)),
        2 => Just(Op::Look),
        4 => which().prop_map(Op::Call),
        1 => which().prop_map(Op::Flush),
        1 => (steps(1, 9), weighted_bool(0.3)).prop_map(|(steps, is_back)| Op::SetWall(steps, is_back)),
        5 => Just(Op::RunDue),
        1 => (0_usize..4).prop_map(Op::Resize),
        5 => (which_group(), group_verb()).prop_map(|(group, verb)| Op::Group(group, verb)),
        1 => (which_group(), 0_usize..3)
            .prop_map(|(group, runs)| Op::Group(group, GroupVerb::ShutdownNow(runs))),
        1 => any_bool().prop_map(Op::KeepDelayed),
        1 => any_bool().prop_map(Op::KeepPeriodic),
        1 => Just(Op::Prestart),
        1 => Just(Op::Shutdown),
        1 => (0_usize..3).prop_map(Op::ShutdownNow),
    ]
    .boxed()
}

/// The steps that may have to wait for time to pass, or for other threads.
pub(crate) fn blocking_op() -> BoxedStrategy<Op> {
    prop_oneof![
        4 => which().prop_map(Op::Join),
        3 => (which(), steps(0, 3)).prop_map(|(task, limit)| Op::JoinFor(task, limit)),
        3 => which().prop_map(Op::Await),
        2 => steps(0, 4).prop_map(Op::Sleep),
        2 => steps(0, 4).prop_map(Op::AwaitTermination),
        1 => (which_group(), steps(0, 4))
            .prop_map(|(group, steps)| Op::Group(group, GroupVerb::AwaitTermination(steps))),
        1 => (which_group(), steps(0, 4))
            .prop_map(|(group, steps)| Op::Group(group, GroupVerb::ShutdownWithin(steps))),
        1 => steps(0, 4).prop_map(Op::ShutdownWithin),
        1 => which().prop_map(|task| Op::Ask(task, Verb::CancelAndWait)),
        1 => Just(Op::Close),
        1 => Just(Op::DropExecutor),
    ]
    .boxed()
}

impl Scenario {
    /// The variants of this scenario with one step left out.
    pub(crate) fn with_one_op_less(&self) -> impl Iterator<Item = Self> {
        let ops = self.actors.iter().enumerate();
        let ops = ops.flat_map(|(actor, ops)| (0..ops.len()).map(move |op| (actor, op)));
        ops.map(|(actor, op)| {
            let mut smaller = self.clone();
            smaller.actors[actor].remove(op);
            smaller
        })
    }

    /// Returns `true` if there is never more than one worker at a time. (A driver takes what is due in rounds.)
    pub(crate) fn has_one_worker(&self) -> bool {
        self.pool.workers <= 1 && !self.pool.driven && !self.has(|op| matches!(op, Op::Resize(_)))
    }

    /// Returns `true` if some actor has such a step.
    pub(crate) fn has(&self, is_such: impl FnMut(&Op) -> bool) -> bool {
        self.actors.iter().flatten().any(is_such)
    }

    /// Has the steps of this scenario be as long as it says.
    pub(crate) fn begin(&self) {
        steps::begin(self.step);
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:?}\n  {:?}\n  {:?}", self.pool, self.faults, self.callbacks)?;
        writeln!(f, "  steps of {} ns, limits {:?}", self.step, self.limits)?;
        for (number, ops) in self.actors.iter().enumerate() {
            writeln!(f, "  {}:", if number == 0 { "director" } else { "actor" })?;
            for op in ops {
                writeln!(f, "    {op:?}")?;
            }
        }
        Ok(())
    }
}
