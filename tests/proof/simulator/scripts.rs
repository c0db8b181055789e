//! Scripts: one thread asks things of one task and moves the clock, so every moment is known to the nanosecond.
//!
//! The ledger of a scenario allows for what another thread may have done meanwhile, and so cannot tell two moments
//! apart that coincide. A script has no other thread: a caller drives the executor, bodies take no time, and a second small
//! implementation of the rules ([`model`]) says beforehand what each call answers, when each run is, for which moment it
//! was planned, and how many were missed. All spans are a few seconds, so that moments coincide often.
//!
//! A script that fails is made smaller, call by call, and printed. `PUNCTUAL_SCRIPTS=1 ci/simulate.sh 1 SEED` runs the scripts of
//! that seed again.

mod model;
mod script;

use self::script::Script;

/// The number of scripts that one execution of the model checker runs.
const BATCH: u64 = 50;

/// The executor does what the rules say, in each script.
#[test]
fn every_script_goes_as_the_rules_say() {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, scripts) = (number("PUNCTUAL_FIRST_SEED", 1), number("PUNCTUAL_SCRIPTS", 4_000));
    for batch in 0..scripts / BATCH {
        let from: u64 = first + batch * BATCH;
        let report = in_model(move || (from..from + BATCH).find_map(|seed| hunt(seed).err()));
        assert!(report.is_none(), "{}", report.unwrap_or_default());
    }
}

/// A rule that is wrong is found: here it is that a run which was asked for is never one of the schedule's.
#[test]
fn a_wrong_rule_is_found() {
    let is_found = in_model(|| {
        (1..2_000).any(|seed| {
            let script = Script::draw(seed);
            let mut model = model::Model::new(script.task);
            model.is_wrong_about_run_now = true;
            script.play_beside(model).is_err()
        })
    });
    assert!(is_found);
}

/// Runs it under the model checker, whose locks the crate has here.
fn in_model<R: Send + 'static>(run: impl Fn() -> R + Send + Sync + 'static) -> R {
    let (tell, told) = std::sync::mpsc::channel();
    let mut config = shuttle::Config::new();
    config.max_steps = shuttle::MaxSteps::None;
    config.stack_size = 1 << 20;
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(1, 1);
    shuttle::Runner::new(scheduler, config).run(move || {
        let _ = tell.send(run());
    });
    told.recv().expect("it has run")
}

/// Plays the script of a seed.
///
/// # Errors
///
/// A report of the smallest part of it that fails.
fn hunt(seed: u64) -> Result<(), String> {
    let mut script = Script::draw(seed);
    let Err(mut failure) = script.play() else { return Ok(()) };
    let mut at = 0;
    while at < script.calls.len() {
        let mut smaller = script.clone();
        smaller.calls.remove(at);
        match smaller.play() {
            Ok(()) => at += 1,
            Err(found) => (script, failure) = (smaller, found),
        }
    }
    Err(format!("seed {seed}: {failure}\n  {:?}\n  {:?}", script.task, script.calls))
}
