//! Scenarios of two features: what a general one has together only once in many thousands.
//!
//! Each of these begins with what the pair needs, in the order in which it needs it, and lets a few steps that
//! may be anything come between and after.

use std::iter;

use proptest::{collection::vec, option::weighted, prelude::*};

use crate::callbacks::Back;
use crate::scenario::{
    self, Act, Answer, Faults, GroupVerb, Kind, OnDrop, Op, Refusal, Scenario, Steps, TaskPlan,
    Verb, When, answer, blocking_op, group_verb, quick_op, steps, task, verb_of_a_body,
    weighted_bool, when, which, which_group,
};

/// How a body asks for its own next run at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Reschedule,
    RunNow,
    /// Calls itself, if it is debounced or throttled.
    Call,
}

pub(crate) fn way() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Reschedule), Just(Way::RunNow), Just(Way::Call)]
}

/// What user code calls back. None of it waits, and none is for a run at once.
pub(crate) fn back() -> impl Strategy<Value = Back> {
    prop_oneof![
        2 => which().prop_map(Back::Cancel),
        4 => (which(), verb_of_a_body()).prop_map(|(task, verb)| Back::Ask(task, verb)),
        1 => which().prop_map(Back::Call),
        2 => when().prop_map(Back::Submit),
        3 => (which_group(), group_verb()).prop_map(|(group, verb)| Back::Group(group, verb)),
        1 => Just(Back::Shutdown),
        1 => Just(Back::Look),
    ]
}

/// A scenario of one of the pairs.
pub(crate) fn any() -> impl Strategy<Value = Scenario> {
    prop_oneof![
        first_submissions(),
        pause_and_core_timeout(),
        stay_and_deadline(),
        throttle_and_busy_worker(),
        gate_jitter_and_replicas(),
        debounce_and_skip(),
        prop_oneof![2 => driven_and_requeue(), 1 => driven_and_dropped_by_its_shutdown()],
        group_and_shutdown(),
        member_and_shutdown(),
        room_and_group(),
    ]
}

/// The plan of a task that is the pair's: no other feature than those that it is given.
fn only(kind: Kind) -> TaskPlan {
    TaskPlan { kind, ..scenario::plain(When::After(Steps(0))) }
}

/// A scenario that may have everything, with these steps before those of its actors.
fn led_by(
    steps: impl Strategy<Value = Vec<Vec<Op>>> + 'static,
    adapt: impl Fn(&mut Scenario) + Clone + 'static,
) -> BoxedStrategy<Scenario> {
    (scenario::general(), steps, vec(quick_op(), 0..3))
        .prop_map(move |(mut scenario, led, more)| {
            scenario.actors = led;
            if let Some(director) = scenario.actors.first_mut() {
                director.extend(more);
            }
            scenario.faults.spawn = false;
            scenario.pool.driven = false;
            adapt(&mut scenario);
            scenario
        })
        .boxed()
}

/// Several threads submit what needs a thread of its own, at the same moment.
fn first_submissions() -> BoxedStrategy<Scenario> {
    let first = || {
        let kind = (steps(2, 5), weighted(0.5, steps(1, 4)));
        prop_oneof![
            kind.prop_map(|(period, jitter)| only(Kind::Calendar(period, jitter))),
            steps(1, 4).prop_map(|limit| TaskPlan { timeout: Some(limit), ..only(Kind::Once) }),
        ]
        .prop_map(Op::Submit)
    };
    let actor = (first(), vec(quick_op(), 0..2))
        .prop_map(|(first, then)| iter::once(first).chain(then).collect::<Vec<_>>());
    led_by(vec(actor, 2..4), |_| ())
}

/// Tasks that wait for no moment, in a pool whose workers retire, are brought forward.
fn pause_and_core_timeout() -> BoxedStrategy<Scenario> {
    let brought = || {
        prop_oneof![
            Just(Verb::Resume),
            Just(Verb::RunNow),
            steps(0, 2).prop_map(Verb::Reschedule),
            steps(0, 2).prop_map(Verb::RunWithin),
        ]
    };
    let body = || {
        prop_oneof![2 => Just(Act::Return), 1 => steps(1, 3).prop_map(Act::Sleep),
        2 => Just(Act::Stay)]
    };
    let steps = (2_usize..4, vec(body(), 3), vec(brought(), 3), weighted_bool(0.5), steps(2, 6));
    let steps = steps.prop_map(|(tasks, bodies, verbs, never, idle)| {
        let mut ops = Vec::new();
        for (task, body) in bodies.into_iter().take(tasks).enumerate() {
            let when = if never { When::Never } else { When::After(Steps(1)) };
            ops.push(Op::Submit(TaskPlan { when, body, ..only(Kind::Once) }));
            ops.push(Op::Ask(task, Verb::Pause));
        }
        ops.push(Op::Advance(idle));
        let again = verbs.into_iter().take(tasks).enumerate();
        ops.extend(again.flat_map(|(task, verb)| {
            // What is paused stays so until it is resumed or asked to run.
            let resumed = (!matches!(verb, Verb::RunNow)).then_some(Op::Ask(task, Verb::Resume));
            resumed.into_iter().chain([Op::Ask(task, verb), Op::Advance(Steps(1))])
        }));
        vec![ops]
    });
    led_by(steps, |scenario| {
        (scenario.pool.retire, scenario.pool.bound) = (true, None);
        scenario.pool.workers = 2 + scenario.pool.workers % 2;
    })
}

/// A body stays beyond a shutdown with a deadline, and the owner is dropped, before or after that.
fn stay_and_deadline() -> BoxedStrategy<Scenario> {
    let parts = (steps(0, 3), weighted_bool(0.5), 0_usize..3, vec(blocking_op(), 0..2));
    let steps = parts.prop_map(|(limit, alone, kind, between)| {
        let kind = [Kind::Once, Kind::Rate(Steps(3)), Kind::Delay(Steps(2))][kind];
        let director =
            vec![Op::Submit(TaskPlan { body: Act::Stay, ..only(kind) }), Op::Advance(Steps(1))];
        let shutdown = Op::ShutdownWithin(limit);
        match alone {
            true => vec![
                director,
                iter::once(shutdown).chain(between).chain([Op::DropExecutor]).collect(),
            ],
            false => vec![director, vec![shutdown], vec![Op::Sleep(Steps(1)), Op::DropExecutor]],
        }
    });
    led_by(steps, |scenario| scenario.pool.workers = scenario.pool.workers.max(1))
}

/// Calls of a throttled task while the only worker is busy, and soon after.
fn throttle_and_busy_worker() -> BoxedStrategy<Scenario> {
    let parts = (steps(3, 6), steps(1, 8), vec(steps(0, 3), 2..6), 1_usize..3);
    let steps = parts.prop_map(|(period, busy, gaps, before)| {
        let sleeper = TaskPlan { body: Act::Sleep(busy), ..only(Kind::Once) };
        let mut ops = vec![Op::Submit(only(Kind::Throttle(period)))];
        ops.extend((0..before).map(|_| Op::Submit(sleeper)));
        for gap in gaps {
            ops.extend([Op::Call(0), Op::Advance(gap)]);
        }
        // Time goes on while an actor waits, and it calls then.
        let actor = vec![Op::Sleep(busy), Op::Call(0), Op::Sleep(Steps(1)), Op::Call(0)];
        vec![ops, actor]
    });
    led_by(steps, |scenario| {
        (scenario.pool.workers, scenario.pool.bound) = (1, None);
        scenario.faults = Faults::none();
    })
}

/// Several tasks with one name, calendar and jitter, behind gates; some are brought forward.
fn gate_jitter_and_replicas() -> BoxedStrategy<Scenario> {
    let parts = (steps(2, 5), steps(1, 6), vec(weighted(0.7, answer()), 2..4), verb_of_a_body());
    let steps =
        (parts, vec(steps(1, 3), 2..5)).prop_map(|((period, jitter, gates, verb), moves)| {
            let kind = Kind::Calendar(period, Some(jitter));
            let replica = |gate: Option<Answer>| TaskPlan {
                gate: gate.map(|answer| (Act::Return, answer)),
                ..only(kind)
            };
            let mut ops: Vec<_> = gates.into_iter().map(replica).map(Op::Submit).collect();
            let tasks = ops.len();
            for (number, step) in moves.into_iter().enumerate() {
                ops.extend([Op::Advance(step), Op::Ask(tasks - 1, verb)]);
                if number % 2 == 0 {
                    ops.push(Op::Ask(tasks - 1, Verb::RunWithin(Steps(0))));
                }
            }
            vec![ops]
        });
    led_by(steps, |_| ())
}

/// Calls of a debounced task whose runs are skipped by a gate, or left out since they are overdue.
fn debounce_and_skip() -> BoxedStrategy<Scenario> {
    let gate = prop_oneof![
        1 => Just(None),
        2 => Just(Some((Act::Return, Answer::Skip))),
        2 => Just(Some((Act::Return, Answer::InTurn))),
    ];
    let plan = (steps(1, 4), weighted(0.5, steps(1, 6)), gate, weighted(0.4, steps(0, 2)));
    let steps = (plan, vec(steps(0, 6), 1..5)).prop_map(|((quiet, most, gate, within), gaps)| {
        let plan = TaskPlan { gate, within, ..only(Kind::Debounce(quiet, most)) };
        let calls = gaps.into_iter().flat_map(|gap| [Op::Call(0), Op::Advance(gap)]);
        vec![iter::once(Op::Submit(plan)).chain(calls).collect()]
    });
    led_by(steps, |_| ())
}

/// A driven executor whose tasks ask for themselves at once.
fn driven_and_requeue() -> BoxedStrategy<Scenario> {
    let body = || prop_oneof![2 => way().prop_map(Act::AtOnce), 1 => Just(Act::Return)];
    let plan = || {
        (task(), body())
            .prop_map(|(plan, body)| Op::Submit(TaskPlan { body, timeout: None, ..plan }))
    };
    let step = prop_oneof![
        3 => plan(),
        2 => which().prop_map(Op::Call),
        5 => Just(Op::RunDue),
        2 => steps(1, 6).prop_map(Op::Advance),
    ];
    let others = vec(prop_oneof![quick_op(), blocking_op()], 0..3);
    let steps = (vec(step, 2..8), others).prop_map(|(director, other)| vec![director, other]);
    led_by(steps, |scenario| scenario.pool.driven = true)
}

/// A driven executor that a capture drops while a shutdown of the same thread drops the capture, with tasks before and
/// after it that are due, are to come, or wait for calls.
fn driven_and_dropped_by_its_shutdown() -> BoxedStrategy<Scenario> {
    let kind = || {
        prop_oneof![
            2 => Just(Kind::Once),
            2 => steps(2, 5).prop_map(Kind::Rate),
            1 => steps(1, 3).prop_map(Kind::Delay),
            1 => steps(1, 3).prop_map(|quiet| Kind::Debounce(quiet, None)),
        ]
    };
    let owner = (kind(), when(), weighted(0.3, which_group())).prop_map(|(kind, when, group)| {
        Op::Submit(TaskPlan { when, group, capture: OnDrop::DropExecutor, ..only(kind) })
    });
    let other = || {
        let parts = (kind(), when(), weighted(0.3, which_group()));
        parts.prop_map(|(kind, when, group)| Op::Submit(TaskPlan { when, group, ..only(kind) }))
    };
    let end = prop_oneof![
        4 => Just(Op::Shutdown),
        1 => Just(Op::ShutdownNow(0)),
        1 => which_group().prop_map(|group| Op::Group(group, GroupVerb::Shutdown)),
    ];
    let wait = prop_oneof![2 => blocking_op(), 1 => quick_op()];
    let steps = (vec(other(), 0..3), owner, vec(other(), 0..3), steps(0, 2), end, vec(wait, 0..2));
    let steps = steps.prop_map(|(before, owner, after, step, end, waits)| {
        let ops = before.into_iter().chain([owner]).chain(after);
        vec![ops.chain([Op::Advance(step), end]).collect(), waits]
    });
    led_by(steps, |scenario| {
        (scenario.pool.driven, scenario.pool.bound) = (true, None);
        scenario.pool.keep_periodic = false;
    })
}

/// Tasks of a group, parked and not, whose captures bring others forward when a shutdown ends them.
fn group_and_shutdown() -> BoxedStrategy<Scenario> {
    let ended = prop_oneof![
        Just(Verb::Resume),
        steps(1, 4).prop_map(Verb::RunWithin),
        steps(1, 4).prop_map(Verb::Reschedule),
    ];
    let kind = prop_oneof![
        2 => Just(Kind::Once),
        1 => steps(2, 5).prop_map(Kind::Rate),
        1 => steps(1, 3).prop_map(|quiet| Kind::Debounce(quiet, None)),
    ];
    let member = (kind, when(), weighted(0.6, which_group()), ended, 0_usize..4);
    let member = member.prop_map(|(kind, when, group, verb, other)| {
        let capture = OnDrop::Back(Back::Ask(other, verb));
        TaskPlan { when, group, capture, ..only(kind) }
    });
    let pauses = vec(
        prop_oneof![
            2 => (0_usize..4).prop_map(|task| Op::Ask(task, Verb::Pause)),
            1 => which_group().prop_map(|group| Op::Group(group, GroupVerb::Pause)),
            1 => which().prop_map(Op::Call),
        ],
        1..4,
    );
    let end = prop_oneof![
        3 => Just(Op::Shutdown),
        1 => which_group().prop_map(|group| Op::Group(group, GroupVerb::Shutdown)),
        1 => Just(Op::KeepDelayed(false)),
    ];
    let steps = (vec(member, 2..4), pauses, end, blocking_op());
    let steps = steps.prop_map(|(members, pauses, end, wait)| {
        let members = members.into_iter().map(Op::Submit);
        vec![members.chain(pauses).chain([end]).collect(), vec![wait]]
    });
    led_by(steps, |scenario| {
        (scenario.pool.keep_delayed, scenario.pool.bound) = (scenario.pool.retire, None);
        scenario.pool.keep_periodic = false;
    })
}

/// Series of one group with one permit, of which one is due while another has the permit, when a shutdown comes.
fn member_and_shutdown() -> BoxedStrategy<Scenario> {
    let body = prop_oneof![
        2 => Just(Act::Return),
        2 => Just(Act::Dawdle),
        1 => steps(1, 2).prop_map(Act::Sleep),
    ];
    let member = (steps(2, 4), steps(0, 1), body).prop_map(|(period, first, body)| {
        let plan = only(Kind::Rate(period));
        Op::Submit(TaskPlan { when: When::After(first), body, group: Some(0), ..plan })
    });
    let parts = (vec(member, 2..4), steps(0, 3), weighted_bool(0.5));
    let steps = parts.prop_map(|(members, step, is_other)| {
        let (begin, end) = (Op::Advance(step), Op::Shutdown);
        match is_other {
            true => vec![members.into_iter().chain([begin]).collect(), vec![end]],
            false => vec![members.into_iter().chain([begin, end]).collect()],
        }
    });
    led_by(steps, |scenario| {
        scenario.limits[0] = 1;
        (scenario.pool.workers, scenario.pool.bound) = (2, None);
        scenario.pool.keep_periodic = false;
    })
}

/// A submission to a group waits for room when the group is shut down.
fn room_and_group() -> BoxedStrategy<Scenario> {
    let filler = prop_oneof![Just(When::Never), steps(1, 12).prop_map(When::After)];
    let parts = (filler, which_group(), steps(0, 3), weighted_bool(0.3));
    let steps = parts.prop_map(|(when, group, step, is_now)| {
        let member = TaskPlan { group: Some(group), ..only(Kind::Once) };
        let end = if is_now { GroupVerb::ShutdownNow(0) } else { GroupVerb::Shutdown };
        let director = vec![
            Op::Submit(TaskPlan { when, ..only(Kind::Once) }),
            Op::Advance(step),
            Op::Group(group, end),
        ];
        vec![director, vec![Op::Submit(member)]]
    });
    led_by(steps, |scenario| scenario.pool.bound = Some((1, Refusal::Block)))
}
