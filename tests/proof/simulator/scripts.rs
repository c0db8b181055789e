//! Scripts: what one thread asks of one task, on a driven executor and a manual clock, so that every moment is known to
//! the nanosecond.
//!
//! The scenarios have several threads, and free their ledger from knowing a moment that two of them decide. A
//! [script](script) leaves nothing open: a small [model](model) says beforehand which run begins when, for which moment it
//! was planned, how many it has missed, what its [gate](gate) is asked before, what becomes of a lease, and what each request
//! answers, and the [player](player) has to note exactly that. [Groups](group) of tasks and the [wall clock](wall) have
//! scripts and models of their own.
//!
//! A seed that fails prints the smallest script that does, as code, and the first event that differs. `PUNCTUAL_SCRIPTS=1
//! ci/simulate.sh 1 SEED` runs that script again. Each seed stands for a scenario and for a script, which have nothing
//! else in common.

mod gate;
mod group;
mod model;
mod player;
mod schedule;
mod script;
mod wall;

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

/// After so many runs and questions a script is over: a body may ask for its next run at once, and a gate to be asked
/// again.
const MOST_TURNS: usize = 32;

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
    /// The gate is asked, and what the tick says: for when it is planned, also on the wall clock, which run it would be,
    /// and how often the gate was asked about it.
    Question {
        at: Duration,
        planned: Duration,
        on_wall: Duration,
        number: u64,
        attempt: u32,
    },
    /// Behind a run: for when it was planned on the wall clock, since 1970, and whether it was planned there.
    OnWall {
        planned: Duration,
        is_exact: bool,
    },
    /// A lease is left: after a run that succeeded or not, or did not take place, and before the next one.
    Left {
        success: Option<bool>,
        next: Option<Duration>,
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
        gate_skips: u64,
    },
}

/// Returns `true` if a script is over that has shown this.
fn is_over(events: &[Event]) -> bool {
    let turns = |event: &&Event| matches!(event, Event::Run { .. } | Event::Question { .. });
    events.iter().filter(turns).count() >= MOST_TURNS
}

/// Each script goes as its model says.
#[test]
fn every_script_goes_as_predicted() -> Result<(), Report> {
    let first = number("PUNCTUAL_FIRST_SEED", 1);
    let scripts = SCRIPTS.with(Clone::clone);
    (first..first + number("PUNCTUAL_SCRIPTS", 4_000))
        .try_for_each(|seed| hunt(seed, &scripts, compare))
}

/// What a test that fails says. A panic would be noted by the executor's hook, which is the model checker's by now.
struct Report(String);

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tries the script of this seed. Returns a report if it does not go as predicted.
fn hunt<S: Clone + fmt::Debug + fmt::Display + 'static>(
    seed: u64,
    scripts: &BoxedStrategy<S>,
    compare: fn(S) -> Result<(), String>,
) -> Result<(), Report> {
    let mut runner = runner_of(seed);
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
    let seen = play(move || player::play(&script))?;
    first_difference(&seen, &predicted).map_or(Ok(()), Err)
}

/// Returns what there is to see of a script.
fn play<E: Send + 'static>(
    play: impl Fn() -> Vec<E> + Send + Sync + 'static,
) -> Result<Vec<E>, String> {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    explore(RandomScheduler::new_from_seed(0, 1), move || {
        *notes.lock().expect("no panic") = play();
    })?;
    let seen = std::mem::take(&mut *noted.lock().expect("no panic"));
    Ok(seen)
}

/// Says which event is the first that differs, if one does.
fn first_difference<E: PartialEq + fmt::Debug>(seen: &[E], predicted: &[E]) -> Option<String> {
    let same = seen.iter().zip(predicted).take_while(|(seen, predicted)| seen == predicted).count();
    let (seen, predicted) = (seen.get(same), predicted.get(same));
    (seen.is_some() || predicted.is_some())
        .then(|| format!("event {same} is {seen:?}, and not {predicted:?}"))
}

/// The comparison tells each event that is not as predicted, and one that is missing.
#[test]
fn an_event_that_differs_is_told() -> Result<(), Report> {
    let mut runner = runner_of(1);
    (0..20).try_for_each(|_| {
        let tree = SCRIPTS.with(Clone::clone).new_tree(&mut runner);
        let script = tree.map_err(|error| Report(error.to_string()))?.current();
        script.begin();
        let predicted = model::predict(&script);
        let seen = play(move || player::play(&script)).map_err(Report)?;
        (0..predicted.len()).try_for_each(|number| {
            let mut altered = predicted.clone();
            altered[number] = another(&predicted[number]);
            let told = first_difference(&seen, &altered).unwrap_or_default();
            let is_told = told.starts_with(&format!("event {number} is Some("));
            let is_missed = first_difference(&seen[..number], &predicted).is_some();
            if is_told && is_missed { Ok(()) } else { Err(Report(told)) }
        })
    })
}

/// Returns an event that differs from this one by as little as can be.
fn another(event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event {
        Event::Run { missed: count, .. } | Event::Sum { runs: count, .. } => *count += 1,
        Event::Question { attempt, .. } => *attempt += 1,
        Event::Stands { now: moment, .. } | Event::OnWall { planned: moment, .. } => {
            *moment += Duration::from_nanos(1);
        }
        Event::Left { success, .. } => *success = Some(!success.unwrap_or(false)),
        Event::Answer(answer) => *answer = !*answer,
    }
    event
}
