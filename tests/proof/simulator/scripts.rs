//! Scripts: what one thread asks of one task, on a driven executor and a manual clock, so that every moment is known to
//! the nanosecond.
//!
//! The scenarios have several threads, and free their ledger from knowing a moment that two of them decide. A
//! [script](script) leaves nothing open: a small [model](model) says beforehand which run begins when, for which moment it
//! was planned, how many it has missed, and what each request answers, and the [player](player) has to note exactly that.
//!
//! A seed that fails prints the smallest script that does, as code, and the first event that differs. `PUNCTUAL_SCRIPTS=1
//! ci/simulate.sh 1 SEED` runs that script again. Each seed stands for a scenario and for a script, which have nothing
//! else in common.

mod model;
mod player;
mod schedule;
mod script;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::{
    strategy::{BoxedStrategy, Strategy},
    test_runner::{TestCaseError, TestError},
};
use punctual::TaskState;
use shuttle::scheduler::RandomScheduler;

use self::script::Script;
use crate::{explore, number, runner_of};

/// After so many runs a script is over: a body may ask for its next run at once.
const MOST_RUNS: usize = 24;

std::thread_local! {
    static SCRIPTS: BoxedStrategy<Script> = script::any();
}

/// What there is to see of a script. Moments are in nanoseconds since its begin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Run {
        at: Duration,
        planned: Duration,
        missed: u64,
        attempt: u32,
    },
    /// The answer of a request.
    Answer(bool),
    /// How the task stands after a step.
    Stands {
        now: Duration,
        state: TaskState,
        delay: Option<Duration>,
    },
    /// The counts of the executor in the end.
    Sum {
        runs: u64,
        failed: u64,
        missed: u64,
    },
}

/// Each script goes as its model says.
#[test]
fn every_script_goes_as_predicted() -> Result<(), Report> {
    let first = number("PUNCTUAL_FIRST_SEED", 1);
    (first..first + number("PUNCTUAL_SCRIPTS", 4_000)).try_for_each(hunt)
}

/// What a test that fails says. A panic would be noted by the executor's hook, which is the model checker's by now.
struct Report(String);

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tries the script of this seed. Returns a report if it does not go as predicted.
fn hunt(seed: u64) -> Result<(), Report> {
    let mut runner = runner_of(seed);
    let scripts = SCRIPTS.with(Clone::clone);
    let tree = scripts.new_tree(&mut runner).map_err(|error| Report(error.to_string()))?;
    match runner.run_one(tree, |script| compare(script).map_err(TestCaseError::fail)) {
        Err(TestError::Fail(what, script)) => {
            Err(Report(format!("script {seed}: {what}\n{script}")))
        }
        Err(TestError::Abort(why)) => Err(Report(why.to_string())),
        Ok(_) => Ok(()),
    }
}

/// Plays a script, and compares what there is to see with what is predicted.
fn compare(script: Script) -> Result<(), String> {
    script.begin();
    let predicted = model::predict(&script);
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    explore(RandomScheduler::new_from_seed(0, 1), move || {
        *notes.lock().expect("no panic") = player::play(&script);
    })?;
    let seen = noted.lock().expect("no panic");
    let same =
        seen.iter().zip(&predicted).take_while(|(seen, predicted)| seen == predicted).count();
    if predicted.len() == same && seen.len() == same {
        return Ok(());
    }
    let (seen, predicted) = (seen.get(same), predicted.get(same));
    Err(format!("event {same} is {seen:?}, and not {predicted:?}"))
}
