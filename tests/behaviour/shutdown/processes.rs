//! The end of a program whose executor has a body that never returns: after a shutdown with a deadline the program
//! ends, in each of the ways in which the documentation shows it.
//!
//! Each test runs itself again as a program of its own.

use std::{
    env,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    CancellationToken, DropPolicy, Grace, ScheduledThreadPoolExecutor as Executor, ShutdownReport,
    TaskState, WouldDeadlock,
};

use crate::support::{
    Counter, LONG,
    child::{again, assert_fine, run},
    eventually, ms,
    patience::exit_at_last,
};

type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const PATIENCE: Duration = ms(20);
const GRACE: Duration = ms(30);

/// Occupies a worker with a body that never returns, and ignores its token.
fn be_stuck(executor: &Executor) {
    let begun = Counter::new();
    let begins = begun.clone();
    let stuck = executor.task().name("stuck").execute(move || {
        begins.add();
        loop {
            thread::park();
        }
    });
    stuck.expect("accepted");
    begun.wait_for(1);
}

/// Starts a periodic task, and waits until it is between two runs: a run in which the machine is held up is one that did not
/// stop.
fn sweep(executor: &Executor) -> Ended {
    let sweep =
        executor.task().name("sweep").schedule_at_fixed_rate(Duration::ZERO, LONG, || ())?;
    eventually("the first run is over", || {
        sweep.state() == TaskState::Scheduled && executor.statistics().runs == 1
    });
    Ok(())
}

fn named(report: &ShutdownReport) -> Vec<Option<&str>> {
    report.still_running.iter().map(|task| task.name()).collect()
}

/// As the chapter on a first task: the owner is in `main`, a signal raises a token, and what still runs is printed.
fn as_in_the_book() -> Ended {
    let stop = CancellationToken::new();
    let raise = stop.clone();
    thread::spawn(move || raise.cancel());
    let executor = Executor::new(4);
    sweep(&executor)?;
    be_stuck(&executor);
    stop.wait();
    let report = executor.shutdown_within(Grace::patience(PATIENCE).then(GRACE))?;
    assert_eq!(named(&report), [Some("stuck")]);
    Ok(())
}

/// As the recipe for Ctrl-C: a handler sends through a channel.
fn as_in_the_cookbook() -> Ended {
    let (stop, stopped) = mpsc::channel();
    thread::spawn(move || stop.send(()).unwrap_or(()));
    let executor = Executor::new(2);
    sweep(&executor)?;
    be_stuck(&executor);
    stopped.recv()?;
    let report = executor.shutdown_within(Grace::patience(PATIENCE).then(GRACE))?;
    assert_eq!(named(&report), [Some("stuck")]);
    Ok(())
}

/// As the example: `main` returns an error if something did not stop, and the owner is dropped on the way.
fn as_in_the_example() -> Ended {
    fn serve() -> Ended {
        let executor = Executor::new(2);
        executor.task().name("report").schedule(LONG, || ())?;
        be_stuck(&executor);
        let report = executor.shutdown_within(Grace::patience(PATIENCE).then(GRACE))?;
        if !report.is_terminated {
            return Err("some tasks did not stop, and end with the program".into());
        }
        Ok(())
    }
    serve().expect_err("a body does not stop");
    Ok(())
}

/// A supervisor shuts down by a handle, and the owner may be waiting in its drop already, whatever its policy.
fn by_a_handle() -> Ended {
    for policy in [DropPolicy::Stop, DropPolicy::Close] {
        let executor = Executor::builder().core_pool_size(1).on_drop(policy).build()?;
        be_stuck(&executor);
        let handle = executor.handle();
        let supervisor =
            thread::spawn(move || handle.shutdown_within(Grace::patience(PATIENCE).then(GRACE)));
        drop(executor);
        let report: Result<_, WouldDeadlock> = supervisor.join().expect("it does not panic");
        assert_eq!(named(&report?), [Some("stuck")]);
    }
    Ok(())
}

/// The last of several owners is dropped, after a group had its own deadline.
fn by_one_of_several_owners() -> Ended {
    let executor = Arc::new(Executor::new(2));
    let group = executor.group("g").build()?;
    let begun = Counter::new();
    let begins = begun.clone();
    group.task().execute(move || {
        begins.add();
        loop {
            thread::park();
        }
    })?;
    begun.wait_for(1);
    assert!(!group.shutdown_within(Grace::patience(PATIENCE).then(GRACE))?.is_terminated);
    let owner = Arc::clone(&executor);
    assert!(!owner.shutdown_within(Grace::patience(PATIENCE).then(GRACE))?.is_terminated);
    drop((executor, owner));
    Ok(())
}

/// A program, from its first line to its end.
type Program = fn() -> Ended;

const WAYS: [(&str, Program); 5] = [
    ("as in the book", as_in_the_book),
    ("as in the cookbook", as_in_the_cookbook),
    ("as in the example", as_in_the_example),
    ("by a handle", by_a_handle),
    ("by one of several owners", by_one_of_several_owners),
];

/// A program whose executor was shut down with a deadline ends, although a body never returns.
#[test]
fn a_program_ends_after_a_shutdown_with_a_deadline() {
    const WAY: &str = "PUNCTUAL_TEST_WAY";
    const NAME: &str = "a_program_ends_after_a_shutdown_with_a_deadline";
    if again(module_path!(), NAME).is_none() {
        // If it does not, this program must not stay behind.
        exit_at_last(9);
        let way = env::var(WAY).expect("it is set");
        let (_, end) = WAYS.iter().find(|(name, _)| *name == way).expect("it is one of these");
        let start = Instant::now();
        end().expect("nothing fails");
        return assert!(start.elapsed() >= PATIENCE + GRACE, "it had both limits");
    }
    for (way, _) in WAYS {
        let mut program = again(module_path!(), NAME).expect("not inside it");
        program.env(WAY, way);
        assert_fine(&run(program));
    }
}
