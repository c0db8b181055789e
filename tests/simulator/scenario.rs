//! The scenario that a seed stands for: a pool, the faults that are switched on, and the steps of
//! each actor, in order. It is data, so it can be printed and made smaller.

use std::{fmt, time::Duration};

use proptest::{collection::vec, option::weighted, prelude::*};

/// The number of groups.
pub(crate) const GROUPS: usize = 2;

/// Everything except the order in which the threads run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) pool: PoolPlan,
    pub(crate) faults: Faults,
    /// The limits of the groups at first.
    pub(crate) limits: [usize; GROUPS],
    /// The actors' steps. Those of the first never block: it moves time to its end.
    pub(crate) actors: Vec<Vec<Op>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolPlan {
    pub(crate) workers: usize,
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
    /// Every second thread cannot be started.
    pub(crate) spawn: bool,
}

/// A span of time, in steps of ten nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps(pub(crate) u8);

impl Steps {
    pub(crate) fn span(self) -> Duration {
        Duration::from_nanos(10 * u64::from(self.0))
    }
}

/// When a task runs first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    After(Steps),
    Never,
}

impl When {
    pub(crate) fn delay(self) -> Duration {
        match self {
            Self::After(steps) => steps.span(),
            Self::Never => Duration::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Once,
    Rate(Steps),
    Delay(Steps),
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
    /// `true` if a periodic task continues after a run that panicked.
    pub(crate) resumes: bool,
    /// What its gate does when it is asked, and answers, if it has one.
    pub(crate) gate: Option<(Act, Answer)>,
    pub(crate) group: Option<usize>,
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
}

/// A request to a task that may be alive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Reschedule(Steps),
    RunWithin(Steps),
    Extend(Steps),
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
}

/// The step of an actor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Submit(TaskPlan),
    /// Submits three plain tasks as one.
    Batch([When; 3]),
    Cancel(usize),
    Ask(usize, Verb),
    /// Drops the future.
    Forget(usize),
    /// Polls the future with a waker.
    Poll(usize),
    /// Polls a timer with a waker, moves it, and drops it.
    Timer(Steps, Steps),
    Look,
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
pub(crate) fn any() -> impl Strategy<Value = Scenario> {
    let director = vec(quick_op(), 0..8);
    let others = vec(vec(prop_oneof![3 => quick_op(), 2 => blocking_op()], 0..7), 0..3);
    let limits = [1_usize..3, 1_usize..4];
    (pool(), faults(), limits, director, others).prop_map(
        |(pool, faults, limits, director, others)| {
            let actors = std::iter::once(director).chain(others).collect();
            Scenario { pool, faults, limits, actors }
        },
    )
}

fn pool() -> impl Strategy<Value = PoolPlan> {
    let refusal = prop_oneof![
        Just(Refusal::Abort),
        Just(Refusal::CallerRuns),
        Just(Refusal::Discard),
        Just(Refusal::DiscardOldest),
    ];
    let workers = prop_oneof![5 => 1_usize..3, 1 => Just(0_usize), 1 => Just(3_usize)];
    let policies = (weighted_bool(0.7), weighted_bool(0.3));
    (workers, weighted_bool(0.2), policies, weighted(0.2, (1_usize..4, refusal))).prop_map(
        |(workers, retire, (keep_delayed, keep_periodic), bound)| PoolPlan {
            workers,
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

fn weighted_bool(probability: f64) -> impl Strategy<Value = bool> {
    prop::bool::weighted(probability)
}

fn steps(least: u8, most: u8) -> impl Strategy<Value = Steps> {
    (least..=most).prop_map(Steps)
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        3 => Just(When::After(Steps(0))),
        5 => steps(1, 4).prop_map(When::After),
        1 => steps(9, 12).prop_map(When::After),
        1 => Just(When::Never),
    ]
}

fn task() -> impl Strategy<Value = TaskPlan> {
    let kind = prop_oneof![
        4 => Just(Kind::Once),
        1 => steps(2, 5).prop_map(Kind::Rate),
        1 => steps(2, 5).prop_map(Kind::Delay),
    ];
    let timeout = weighted(0.15, steps(0, 4));
    let gate = weighted(0.25, (act(), answer()));
    let group = weighted(0.5, 0..GROUPS);
    let within = weighted(0.3, steps(0, 3));
    (when(), kind, act(), on_drop(), (timeout, within), any_bool(), gate, group).prop_map(
        |(when, kind, body, capture, (timeout, within), resumes, gate, group)| TaskPlan {
            when,
            kind,
            body,
            capture,
            timeout,
            within,
            resumes,
            gate,
            group,
        },
    )
}

/// An operation on a group, by a thread that must not wait.
fn group_verb() -> impl Strategy<Value = GroupVerb> {
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

fn which_group() -> impl Strategy<Value = usize> {
    0..GROUPS
}

fn answer() -> impl Strategy<Value = Answer> {
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

fn which() -> impl Strategy<Value = usize> {
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
fn verb_of_a_body() -> impl Strategy<Value = Verb> {
    prop_oneof![
        4 => steps(1, 6).prop_map(Verb::Reschedule),
        2 => steps(1, 6).prop_map(Verb::RunWithin),
        4 => steps(0, 6).prop_map(Verb::Extend),
        1 => steps(2, 5).prop_map(Verb::SetPeriod),
        2 => Just(Verb::Pause),
        2 => Just(Verb::Resume),
    ]
}

fn act() -> impl Strategy<Value = Act> {
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
    ]
}

fn on_drop() -> impl Strategy<Value = OnDrop> {
    prop_oneof![
        6 => Just(OnDrop::Nothing),
        4 => Just(OnDrop::Panic),
        2 => which().prop_map(OnDrop::Cancel),
        1 => Just(OnDrop::Submit),
        1 => Just(OnDrop::DropExecutor),
    ]
}

/// The steps that do not block.
fn quick_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => task().prop_map(Op::Submit),
        2 => [when(), when(), when()].prop_map(Op::Batch),
        5 => steps(1, 4).prop_map(Op::Advance),
        1 => steps(10, 30).prop_map(Op::Advance),
        4 => which().prop_map(Op::Cancel),
        6 => (which(), verb()).prop_map(|(task, verb)| Op::Ask(task, verb)),
        2 => which().prop_map(Op::Forget),
        2 => which().prop_map(Op::Poll),
        2 => (steps(0, 4), steps(0, 4)).prop_map(|(first, then)| Op::Timer(first, then)),
        2 => Just(Op::Look),
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
}

/// The steps that may have to wait for time to pass, or for other threads.
fn blocking_op() -> impl Strategy<Value = Op> {
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

    /// Returns `true` if there is never more than one worker at a time.
    pub(crate) fn has_one_worker(&self) -> bool {
        let resizes = |op: &Op| matches!(op, Op::Resize(_));
        self.pool.workers <= 1 && !self.actors.iter().flatten().any(resizes)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:?}\n  {:?}\n  limits {:?}", self.pool, self.faults, self.limits)?;
        for (number, ops) in self.actors.iter().enumerate() {
            writeln!(f, "  {}:", if number == 0 { "director" } else { "actor" })?;
            for op in ops {
                writeln!(f, "    {op:?}")?;
            }
        }
        Ok(())
    }
}
