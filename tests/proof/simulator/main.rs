//! The simulator: one seed is one scenario (the actors' steps, the faults, the thread schedule),
//! run on the model checker's threads and the manual clock, and checked throughout.
//!
//! A scenario has two phases. In the first, several actors submit, cancel, wait, resize and shut
//! down while tasks panic, captures panic in their drops, hooks and wakers panic, and threads
//! cannot be started; the seed switches each fault on or off. No safety property may be violated
//! then (`ledger`). In the second the faults are off, time advances, and everything must come to
//! its end (`world`): a task that is due runs without outside help, every waiter is woken, the pool
//! terminates, and nothing of it is left.
//!
//! A failing seed prints its scenario, made as small as it can be and still fail, and the
//! violation. `ci/simulate.sh 1 SEED` runs that seed again.
//!
//! This program is empty without `--cfg shuttle`; see `docs/testing.md`.

#![cfg(shuttle)]
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and what it notes is no step that a model should see"
)]

mod actors;
mod callbacks;
mod calls;
mod driver;
mod gates;
mod groups;
mod ledger;
mod liveness;
mod pairs;
mod scenario;
mod scripts;
mod steps;
mod tasks;
mod timers;
mod triggers;
mod world;

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Once,
        atomic::{AtomicU64, Ordering},
    },
};

use proptest::{
    strategy::{BoxedStrategy, Strategy},
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use shuttle::{
    FailurePersistence, MaxSteps, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};

use crate::scenario::Scenario;

/// The number of schedules that a scenario gets while it is made smaller: a changed scenario fails
/// in a different schedule, if at all.
const TRIES: u64 = 60;

std::thread_local! {
    /// The message of the last panic of a simulation: the one by which it failed, because none
    /// follows it.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_SIMULATING: Cell<bool> = const { Cell::new(false) };

    /// What all scenarios are drawn from. It has thousands of nodes, and making it costs more than
    /// half of what a simulation does, so each thread makes it once.
    static SCENARIOS: BoxedStrategy<Scenario> = scenario::any();
}

/// No seed violates a property.
#[test]
fn every_seed_holds() {
    let first = number("PUNCTUAL_FIRST_SEED", 1);
    for seed in first..first + number("PUNCTUAL_SEEDS", 1_000) {
        if let Err(report) = hunt(seed, world::run) {
            panic!("{report}");
        }
    }
}

/// A seed yields the same scenario and the same order of steps each time, whatever ran before.
#[test]
fn a_seed_can_be_repeated() {
    let events_of = |seed| {
        let events = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&events);
        hunt(seed, move |scenario| noted.store(world::run(scenario).events, Ordering::SeqCst))
            .expect("the promises are kept");
        events.load(Ordering::SeqCst)
    };
    for seed in 1..100 {
        assert_eq!(events_of(seed), events_of(seed), "seed {seed}");
    }
}

/// A scenario that violates a property is found and made as small as it can be. The property here
/// is a false one: that no task runs twice.
#[test]
fn a_broken_promise_is_found_and_made_small() {
    let report = (1..100).find_map(|seed| {
        let outcome = hunt(seed, |scenario| {
            assert!(world::run(scenario).most_runs < 2, "a task has run twice");
        });
        outcome.err()
    });
    let report = report.expect("there is a seed in which a task runs twice");
    assert!(report.contains("a task has run twice"), "{report}");
    assert_eq!(report.matches("Submit(TaskPlan").count(), 1, "one task is enough: {report}");
}

/// Returns a number of the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Returns what draws by this seed, and makes what fails smaller.
fn runner_of(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let (max_shrink_time, max_shrink_iters) = (60_000, 100_000);
    let config = Config {
        failure_persistence: None,
        max_shrink_time,
        max_shrink_iters,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Tries the scenario of this seed. Returns a report if it fails.
fn hunt<R>(
    seed: u64,
    simulate: impl Fn(&Scenario) -> R + Clone + Send + Sync + 'static,
) -> Result<(), String> {
    let mut runner = runner_of(seed);
    let scenarios = SCENARIOS.with(Clone::clone);
    let tree = scenarios.new_tree(&mut runner).map_err(|error| error.to_string())?;
    let has_failed = Cell::new(false);
    let test = |scenario: Scenario| {
        let schedules = if has_failed.get() { TRIES } else { 1 };
        try_schedules(&scenario, seed..seed + schedules, &simulate).map_err(|what| {
            has_failed.set(true);
            TestCaseError::fail(what)
        })
    };
    match runner.run_one(tree, test) {
        Err(TestError::Fail(what, scenario)) => {
            let still_fails =
                |scenario: &Scenario| try_schedules(scenario, seed..seed + TRIES, &simulate).err();
            let (what, scenario) = reduce(what.to_string(), scenario, still_fails);
            Err(format!("seed {seed}: {what}\n{scenario}"))
        }
        Err(TestError::Abort(why)) => Err(why.to_string()),
        Ok(_) => Ok(()),
    }
}

/// Leaves out one step after the other, repeatedly: a step that was needed at first may not be once
/// the rest is smaller.
fn reduce(
    what: String,
    scenario: Scenario,
    still_fails: impl Fn(&Scenario) -> Option<String> + Copy,
) -> (String, Scenario) {
    let attempt = |scenario| still_fails(&scenario).map(|what| (what, scenario));
    let smaller = scenario.with_one_op_less().find_map(attempt);
    match smaller {
        Some((what, smaller)) => reduce(what, smaller, still_fails),
        None => (what, scenario),
    }
}

/// The violation in the first order of steps that has one.
fn try_schedules<R>(
    scenario: &Scenario,
    seeds: Range<u64>,
    simulate: &(impl Fn(&Scenario) -> R + Clone + Send + Sync + 'static),
) -> Result<(), String> {
    seeds.into_iter().try_for_each(|seed| try_schedule(scenario, seed, simulate.clone()))
}

/// Runs the scenario in one order of steps, chosen at random or by random priorities.
fn try_schedule<R>(
    scenario: &Scenario,
    seed: u64,
    simulate: impl Fn(&Scenario) -> R + Send + Sync + 'static,
) -> Result<(), String> {
    let scenario = scenario.clone();
    let body = move || drop(simulate(&scenario));
    if seed % 2 == 0 {
        explore(PctScheduler::new_from_seed(seed, 3, 1), body)
    } else {
        explore(RandomScheduler::new_from_seed(seed, 1), body)
    }
}

/// Runs `body` on the model checker's threads. Returns the message of the panic by which it failed.
fn explore(
    scheduler: impl Scheduler + 'static,
    body: impl Fn() + Send + Sync + 'static,
) -> Result<(), String> {
    let mut config = shuttle::Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(2_000_000);
    // A hook that submits, to a pool whose callers run what is refused, is called inside of itself.
    config.stack_size = 1 << 18;
    keep_panics_quiet();
    let run = AssertUnwindSafe(|| Runner::new(scheduler, config).run(body));
    IS_SIMULATING.set(true);
    let outcome = panic::catch_unwind(run);
    IS_SIMULATING.set(false);
    outcome.map_err(|_| LAST_PANIC.take().unwrap_or_default()).map(drop)
}

/// Installs a panic hook that notes panics instead of printing them, because tasks are meant to
/// panic here. The model checker's own hook, which prints, is installed by its first run and never
/// again, so a run comes first.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        shuttle::check_random(|| (), 1);
        panic::set_hook(Box::new(move |panic| {
            if !IS_SIMULATING.get() {
                return usual(panic);
            }
            let payload = panic.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a bomb");
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            LAST_PANIC.set(Some(format!("{text} ({place})")));
        }));
    });
}
