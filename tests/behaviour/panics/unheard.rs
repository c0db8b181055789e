//! A periodic task that ends although its user did not end it is one line on standard error, unless a failure handler
//! or a subscriber is told.
//!
//! Each case is a program of its own: this test binary, started again.

use std::{
    env,
    ops::ControlFlow,
    process::{Command, Stdio},
};

use punctual::{
    Builder, DiscardOldestPolicy, FailurePolicy, Handle, ManualClock, MissedRuns, Observer,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, Trigger, current_task,
    trigger::{every, from_fn},
    with_context,
};

use crate::support::{
    Counter, LONG,
    child::{again, assert_fine, run, said},
    ms,
};

const CASE: &str = "PUNCTUAL_TEST_CASE";
const TEST: &str = "an_end_that_nothing_hears_is_a_line";

/// The act of a case; it returns when the program may end.
type Case = fn(&ManualClock, &Executor);

/// The cases, each with its end of a line, or `None` if there is to be none. The number of a task differs.
const CASES: [(&str, Case, Option<&str>); 14] = [
    (
        "an error ends the series",
        |_, executor| fails(executor, FailurePolicy::stop()),
        Some("), run 1: failed: no route\\n\\u{1b}[2J; the task will not run again"),
    ),
    (
        "the third error in a row ends it",
        |_, executor| fails(executor, FailurePolicy::resume().stop_after(3)),
        Some("), run 3: failed: no route\\n\\u{1b}[2J; the task will not run again"),
    ),
    (
        "a run exceeds its time limit",
        |clock, executor| over_limit(clock, executor, FailurePolicy::stop()),
        Some("), run 1: exceeded its time limit of 5ms; the task will not run again"),
    ),
    (
        "two runs exceed their time limit",
        |clock, executor| over_limit(clock, executor, FailurePolicy::resume().stop_after(2)),
        Some("), run 2: exceeded its time limit of 5ms; the task will not run again"),
    ),
    (
        "another task displaces it",
        |clock, executor| {
            // While time stands still, the first task is pending when the second arrives.
            clock.set_auto_advance(false);
            executor.set_rejected_execution_handler(DiscardOldestPolicy);
            let beat = executor.task().name("beat").schedule_at_fixed_rate(LONG, LONG, || ());
            executor.schedule(LONG, || ()).unwrap();
            ends(&beat.unwrap());
            clock.set_auto_advance(true);
        },
        Some("): was ended: it was discarded for another task; the task will not run again"),
    ),
    (
        "nobody takes an `Err`",
        |_, executor| {
            let body = || Err::<(), _>("no route\n\u{1b}[2J");
            let task = executor.task().name("poller").submit(body).unwrap();
            task.wait().unwrap();
        },
        Some("): failed: no route\\n\\u{1b}[2J; nobody has taken this result"),
    ),
    // From here on there is no line.
    (
        "a cancelled task returns an `Err`",
        |_, executor| {
            let begun = Counter::new();
            let begins = begun.clone();
            let task = executor.submit(move || {
                begins.add();
                current_task().expect("inside a task").token().wait();
                Err::<(), _>("interrupted")
            });
            begun.wait_for(1);
            task.unwrap().cancel_and_signal();
        },
        None,
    ),
    ("a panic has one of its own", |_, executor| panics(executor, || panic!("aloud")), None),
    (
        "so has the panic of a trigger",
        |_, executor| {
            let mut first = true;
            let moments = from_fn(move |now: &punctual::trigger::TriggerContext<'_>| {
                assert!(std::mem::take(&mut first), "aloud");
                every(ms(1)).next(now)
            });
            ends(&executor.repeat(moments, || ()).unwrap());
        },
        None,
    ),
    (
        "the policy goes on",
        |_, executor| {
            let task = executor.task().on_failure(FailurePolicy::resume());
            let body = with_context(|run| {
                if run.run_number() == 10 {
                    run.token().cancel();
                }
                Err::<(), _>("no")
            });
            ends(&task.repeat(every(ms(1)), body).unwrap());
        },
        None,
    ),
    (
        "the policy goes on, and the trigger ends",
        |_, executor| {
            let task = executor.task().on_failure(FailurePolicy::resume());
            ends(&task.repeat(every(ms(1)).times(2), || Err::<(), _>("no")).unwrap());
        },
        None,
    ),
    (
        "the user cancels a run, which then fails",
        |_, executor| {
            let (series, begun) = waits(executor);
            begun.wait_for(1);
            series.cancel_and_signal();
            assert!(series.join().unwrap_err().is_cancelled());
        },
        None,
    ),
    (
        "the user stops the executor, and a run then fails",
        |_, executor| {
            let (series, begun) = waits(executor);
            begun.wait_for(1);
            drop(executor.shutdown_now());
            assert!(series.join().unwrap_err().is_failure());
        },
        None,
    ),
    (
        "the series ends with a value",
        |_, executor| {
            let last = || Ok::<_, String>(ControlFlow::<i32>::Break(7));
            let series = executor.repeat(every(ms(1)), last);
            assert_eq!(series.unwrap().join().unwrap(), 7);
        },
        None,
    ),
];

/// Waits for the end of a series that ends without a result. The line has been written when it is over.
fn ends<T: Send + 'static>(series: &ScheduledFuture<T>) {
    series.wait().unwrap();
}

fn fails(executor: &Handle, policy: FailurePolicy) {
    let task = executor.task().name("poller").on_failure(policy);
    ends(&task.repeat(every(ms(1)), || Err::<(), _>("no route\n\u{1b}[2J")).unwrap());
}

fn panics(executor: &Handle, body: impl FnMut() + Send + 'static) {
    ends(&executor.schedule_at_fixed_rate(ms(1), ms(1), body).unwrap());
}

fn over_limit(clock: &ManualClock, executor: &Handle, policy: FailurePolicy) {
    let (time, task) = (clock.clone(), executor.task().timeout(ms(5)).on_failure(policy));
    let task = task.missed_runs(MissedRuns::Skip);
    ends(&task.schedule_at_fixed_rate(ms(1), ms(20), move || time.advance(ms(5))).unwrap());
}

/// A series whose run waits for its token, and then fails.
fn waits(executor: &Handle) -> (ScheduledFuture<()>, Counter) {
    let begun = Counter::new();
    let begins = begun.clone();
    let series = executor.repeat(every(ms(1)), move || {
        begins.add();
        current_task().expect("inside a task").token().wait();
        Err::<(), _>("interrupted")
    });
    (series.unwrap(), begun)
}

/// Does what the case says, on a clock that goes by itself.
fn play(case: &str, settings: impl FnOnce(Builder) -> Builder) {
    let clock = ManualClock::new();
    clock.set_auto_advance(true);
    let builder = Executor::builder().core_pool_size(1).clock(clock.clone()).max_pending(1);
    let executor = settings(builder).build().expect("it is right");
    let (_, play, _) = CASES.iter().find(|(name, ..)| *name == case).expect("a case");
    play(&clock, &executor);
}

fn program_of(test: &str, case: &str) -> Option<Command> {
    let mut program = again(module_path!(), test)?;
    program.env(CASE, case);
    Some(program)
}

fn case_of_this_program() -> String {
    env::var(CASE).expect("it is set")
}

/// The lines of the crate on standard error.
fn lines(program: Command) -> Vec<String> {
    let output = run(program);
    assert_fine(&output);
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    lines.lines().filter(|line| line.starts_with("punctual:")).map(str::to_owned).collect()
}

/// Each end that the user did not ask for is one line, with which task it was and why; no other end is.
#[test]
fn an_end_that_nothing_hears_is_a_line() {
    for (case, _, line) in CASES {
        let Some(program) = program_of(TEST, case) else {
            return play(&case_of_this_program(), |builder| builder);
        };
        let lines = lines(program);
        match (line, &lines[..]) {
            (None, []) => {}
            (Some(end), [line]) => {
                assert!(
                    line.starts_with("punctual: task ") && line.ends_with(end),
                    "{case}: {line}"
                );
            }
            _ => panic!("{case}: {lines:?}"),
        }
    }
}

/// An observer that does not hear of failures changes nothing.
#[test]
fn an_observer_that_is_deaf_leaves_the_line() {
    struct Deaf;
    impl Observer for Deaf {}
    let (case, _, line) = CASES[0];
    let Some(program) = program_of("an_observer_that_is_deaf_leaves_the_line", case) else {
        return play(&case_of_this_program(), |builder| builder.observer(Deaf));
    };
    let lines = lines(program);
    assert!(matches!(&lines[..], [one] if one.ends_with(line.expect("there is one"))), "{lines:?}");
}

/// A failure handler is told, so there is no line.
#[test]
fn a_handler_is_told_in_place_of_a_line() {
    for (case, ..) in CASES {
        let Some(program) = program_of("a_handler_is_told_in_place_of_a_line", case) else {
            return play(&case_of_this_program(), |builder| builder.failure_handler(|_| ()));
        };
        assert_eq!(lines(program), [""; 0], "{case}");
    }
}

/// A program that has closed its standard error goes on.
#[test]
fn a_line_that_cannot_be_written_is_ignored() {
    let Some(mut program) = program_of("a_line_that_cannot_be_written_is_ignored", CASES[0].0)
    else {
        play(&case_of_this_program(), |builder| builder);
        println!("it goes on");
        return;
    };
    let mut program = program.stdin(Stdio::null()).spawn().expect("it starts");
    drop(program.stderr.take());
    let output = program.wait_with_output().expect("it ends");
    assert_fine(&output);
    assert!(said(&output).contains("it goes on"), "{}", said(&output));
}

#[cfg(feature = "tracing")]
mod subscribers {
    use tracing::{
        Event, Metadata, Subscriber,
        level_filters::LevelFilter,
        span::{Attributes, Id, Record},
        subscriber::set_global_default,
    };

    use super::*;

    /// A subscriber that wants events up to a level, and does nothing with them.
    struct Wants(LevelFilter);

    impl Subscriber for Wants {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= self.0
        }

        fn max_level_hint(&self) -> Option<LevelFilter> {
            Some(self.0)
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// Plays a case in a program with a subscriber. Returns how many lines there are.
    fn lines_beside(test: &str, case: &str, level: LevelFilter) -> Option<usize> {
        let Some(program) = program_of(test, case) else {
            set_global_default(Wants(level)).expect("there is no other");
            play(&case_of_this_program(), |builder| builder);
            return None;
        };
        Some(lines(program).len())
    }

    /// A subscriber that takes errors is told in place of a line.
    #[test]
    fn a_subscriber_is_told_in_place_of_a_line() {
        for (case, ..) in CASES {
            let test = "subscribers::a_subscriber_is_told_in_place_of_a_line";
            let Some(lines) = lines_beside(test, case, LevelFilter::ERROR) else { return };
            assert_eq!(lines, 0, "{case}");
        }
    }

    /// A subscriber that takes none does not hear it.
    #[test]
    fn a_subscriber_that_does_not_hear_it_is_none() {
        for (case, _, line) in CASES {
            let test = "subscribers::a_subscriber_that_does_not_hear_it_is_none";
            let Some(lines) = lines_beside(test, case, LevelFilter::OFF) else { return };
            assert_eq!(lines, usize::from(line.is_some()), "{case}");
        }
    }
}

/// A series that succeeds for long says nothing.
#[test]
fn success_is_silent() {
    let Some(program) = program_of("success_is_silent", "") else {
        let executor = Executor::new(1);
        let task = executor.task().timeout(LONG);
        let series = task.repeat(every(ms(1)).times(20), || ());
        return ends(&series.unwrap());
    };
    assert_eq!(lines(program), [""; 0]);
}
