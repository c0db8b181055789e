//! Hooks that panic, in every combination with bodies that do: each affects at most its own run.

use std::{
    collections::HashSet,
    io,
    panic::{panic_any, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use punctual::{
    AbortPolicy, Failure, FailureReport, FailureSource, RejectedTask, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, Submission, TaskContext, TaskRun, TaskState, Worker,
};

use crate::support::{
    Bomb, Chain, Counter, Drops, LONG, Log, hold, in_time, manual_with, ms, worker_of,
};

const WORKERS: usize = 10;

/// The payload with which a hook or a body panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Throw {
    Nothing,
    Error,
    Text,
    Custom,
    Foreign,
}

struct Custom;

impl Throw {
    const ALL: [Self; 5] = [Self::Nothing, Self::Error, Self::Text, Self::Custom, Self::Foreign];

    fn throw(self, who: &'static str) {
        match self {
            Self::Nothing => {}
            Self::Error => panic_any(io::Error::other(who)),
            Self::Text => panic_any(who),
            Self::Custom => panic_any(Custom),
            Self::Foreign => resume_unwind(Box::new(who.to_owned())),
        }
    }

    /// Returns `true` if the panic has this payload, the message of `who`, and a location if one is
    /// known.
    fn is_in(self, panic: &Failure, who: &str) -> bool {
        let (is_it, message) = match self {
            Self::Nothing => (false, ""),
            Self::Error => (panic.is::<io::Error>(), "a panic without a message"),
            Self::Text => (panic.is::<&'static str>(), who),
            Self::Custom => (panic.is::<Custom>(), "a panic without a message"),
            Self::Foreign => (panic.is::<String>(), who),
        };
        let file = panic.location().map(|location| location.file());
        is_it && panic.message() == message && file == self.is_begun_here().then_some(file!())
    }

    fn is_begun_here(self) -> bool {
        !matches!(self, Self::Nothing | Self::Foreign)
    }
}

/// Ten workers whose hooks and tasks panic, all at once.
struct Stage {
    executor: Executor,
    /// The hooks are active only while this is set.
    is_on: Arc<AtomicBool>,
    /// The threads that were in the hook before a run.
    workers: Log<ThreadId>,
    bodies: Arc<AtomicUsize>,
    /// For each call of the hook after a run, whether it saw the body's outcome.
    outcomes: Log<bool>,
    /// For each call of the failure handler, the source, and whether the panic was the expected one.
    reports: Log<(FailureSource, bool)>,
}

/// The payload with which each of the three panics.
#[derive(Clone, Copy, Debug)]
struct Script {
    before: Throw,
    body: Throw,
    after: Throw,
}

impl Script {
    fn is_as_written(self, report: &FailureReport<'_>) -> bool {
        let panic = report.failure();
        report.message() == panic.message()
            && report.location() == panic.location()
            && report.run_number() == Some(1)
            && match report.source() {
                FailureSource::BeforeExecute => self.before.is_in(panic, "before"),
                FailureSource::Task => self.body.is_in(panic, "body"),
                FailureSource::AfterExecute => self.after.is_in(panic, "after"),
                _ => false,
            }
    }

    fn is_outcome(self, outcome: Result<(), &Failure>) -> bool {
        match outcome {
            Ok(()) => self.body == Throw::Nothing,
            Err(panic) => self.body.is_in(panic, "body"),
        }
    }
}

impl Stage {
    fn new(script: Script) -> Self {
        let (is_on, bodies) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let (workers, outcomes, reports) = (Log::new(), Log::new(), Log::new());
        let (before_on, after_on) = (Arc::clone(&is_on), Arc::clone(&is_on));
        let (all_here, arrive) = (Counter::new(), workers.clone());
        let (seen, told) = (outcomes.clone(), reports.clone());
        let builder = Executor::builder()
            .core_pool_size(WORKERS)
            .before_execute(move |_| {
                arrive.push(thread::current().id());
                all_here.add();
                // This gives each worker one task, in both rounds.
                all_here.wait_for(all_here.get().next_multiple_of(WORKERS));
                if before_on.load(Ordering::SeqCst) {
                    script.before.throw("before");
                }
            })
            .after_execute(move |_, outcome| {
                if after_on.load(Ordering::SeqCst) {
                    seen.push(script.is_outcome(outcome));
                    script.after.throw("after");
                }
            })
            .failure_handler(move |report| {
                told.push((report.source(), script.is_as_written(report)));
            });
        let executor = builder.build().expect("the settings are good");
        Self { executor, is_on, workers, bodies, outcomes, reports }
    }

    /// Lets each worker run a task that panics with this; returns the futures, which are done.
    fn round(&self, throw: Throw) -> Vec<ScheduledFuture<()>> {
        let submit = |_| {
            let bodies = Arc::clone(&self.bodies);
            let body = move || {
                bodies.fetch_add(1, Ordering::SeqCst);
                throw.throw("body");
            };
            self.executor.submit(body).expect("accepted")
        };
        let futures: Vec<_> = (0..WORKERS).map(submit).collect();
        for future in &futures {
            future.wait().expect("not on a worker");
        }
        futures
    }

    fn check(self, script: Script) {
        let futures = self.round(script.body);
        let before_fails = script.before != Throw::Nothing;
        let fails = before_fails || script.body != Throw::Nothing;
        for future in futures {
            let ended = future.join().map_err(|error| error.into_failure().expect("a panic"));
            let is_right = match &ended {
                Err(panic) if before_fails => script.before.is_in(panic, "before"),
                outcome => script.is_outcome(outcome.as_ref().copied()),
            };
            assert!(is_right, "{script:?}: {ended:?}");
        }
        let (ran, failed) = if before_fails { (0, WORKERS) } else { (WORKERS, 0) };
        assert_eq!(self.bodies.load(Ordering::SeqCst), ran, "{script:?}");
        assert_eq!(self.outcomes.entries(), vec![true; ran], "{script:?}");
        self.check_reports(script, failed);
        let now = self.executor.statistics();
        let expected = if fails { (0, 10, 10) } else { (10, 0, 10) };
        assert_eq!((now.completed, now.failed, now.runs), expected, "{script:?}");
        assert_eq!(self.executor.completed_task_count(), 10, "{script:?}");
        self.check_workers();
    }

    /// Each panic was reported once, and nothing else was.
    fn check_reports(&self, script: Script, failed_before: usize) {
        let reports = self.reports.entries();
        assert!(reports.iter().all(|(_, is_as_written)| *is_as_written), "{script:?}: {reports:?}");
        let count = |source| reports.iter().filter(|(other, _)| *other == source).count();
        let after_before = WORKERS - failed_before;
        let of = |throw| if throw == Throw::Nothing { 0 } else { after_before };
        assert_eq!(count(FailureSource::BeforeExecute), failed_before, "{script:?}");
        assert_eq!(count(FailureSource::Task), of(script.body), "{script:?}");
        assert_eq!(count(FailureSource::AfterExecute), of(script.after), "{script:?}");
    }

    /// The pool has the same workers as before, and all of them work.
    fn check_workers(&self) {
        self.is_on.store(false, Ordering::SeqCst);
        for future in self.round(Throw::Nothing) {
            assert_eq!(future.state(), TaskState::Completed);
        }
        let workers = self.workers.entries();
        let (first, second) = workers.split_at(WORKERS);
        let [first, second] = [first, second].map(|ids| ids.iter().collect::<HashSet<_>>());
        assert_eq!((first.len(), &first), (WORKERS, &second));
        assert_eq!((self.executor.pool_size(), self.executor.largest_pool_size()), (10, 10));
    }
}

/// F7, HK-003 to HK-027: a panic of the hook before a run, with any payload, keeps the body and the
/// other hook from being called and ends the future with that panic; and the panic of a body is
/// seen with its payload. The handler is called once for each, and the pool keeps its ten workers.
#[test]
fn a_hook_before_that_panics_fails_its_run_and_nothing_else() {
    for before in Throw::ALL {
        for body in Throw::ALL {
            let script = Script { before, body, after: Throw::Nothing };
            Stage::new(script).check(script);
        }
    }
}

/// F7, HK-003 to HK-007: a panic of the hook after a run, with any payload, changes no outcome: the
/// future has the body's outcome. The handler is called for both, and the pool keeps its ten
/// workers.
#[test]
fn a_hook_after_that_panics_changes_no_outcome() {
    for after in Throw::ALL {
        for body in Throw::ALL {
            let script = Script { before: Throw::Nothing, body, after };
            Stage::new(script).check(script);
        }
    }
}

/// HK-008 to HK-027: if the hook before a run panics, the closure is dropped, once and before the
/// future ends, and a capture that panics then as well is contained.
#[test]
fn a_hook_before_that_panics_has_the_closure_dropped() {
    let log = Log::new();
    let reports = log.clone();
    let (_clock, executor) = manual_with(|builder| {
        builder
            .before_execute(|task| assert!(task.name().is_none(), "before"))
            .failure_handler(move |report| reports.push(report.message().to_owned()))
    });
    let worker = worker_of(&executor);
    let drops = Drops::new();
    let captures = (drops.token(), Bomb("a capture"), drops.token());
    let future = executor.task().name("fails").submit(move || hold(&captures)).expect("accepted");
    future.wait().expect("not on a worker");
    assert_eq!(drops.count(), 2);
    let panic = future.try_join().expect("ended").expect_err("panicked").into_failure();
    assert_eq!(panic.expect("a panic").message(), "before");
    assert_eq!(log.entries(), ["before"]);
    assert_eq!(worker_of(&executor), worker);
}

/// HK-008 to HK-027: a panic of the hook before a run is a failure of a periodic task like any
/// other: it ends the periodic task, and its closure is dropped.
#[test]
fn a_hook_before_that_panics_ends_a_periodic_task() {
    let (clock, executor) = manual_with(|builder| {
        builder.before_execute(|task| assert!(task.run_number() < 3, "before"))
    });
    let (runs, drops) = (Counter::new(), Drops::new());
    let (ran, capture) = (runs.clone(), drops.token());
    let series = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        hold(&capture);
        ran.add();
    });
    clock.run_for(ms(100));
    let series = series.expect("accepted");
    assert_eq!((runs.get(), drops.count()), (2, 1));
    assert_eq!(series.state(), TaskState::Failed);
    let failure = series.last_failure().expect("the third run");
    assert_eq!((failure.run_number(), failure.in_a_row(), failure.message()), (3, 1, "before"));
}

/// F5, HK-037: payloads from hooks and from the handler itself may panic when they are dropped.
#[test]
fn payloads_of_hooks_may_panic_when_dropped() {
    let (_clock, executor) = manual_with(|builder| {
        builder
            .before_execute(|task| {
                if task.name().as_deref() == Some("before") {
                    panic_any(Chain(2));
                }
            })
            .after_execute(|_, _| panic_any(Chain(2)))
            .failure_handler(|_| panic_any(Chain(2)))
    });
    let worker = worker_of(&executor);
    for name in ["before", "after"] {
        let future = executor.task().name(name).submit(|| 7).expect("accepted");
        let ended = future.join_within(LONG).expect("it ends");
        assert_eq!(ended.is_ok(), name == "after");
        std::mem::forget(ended);
    }
    assert_eq!(worker_of(&executor), worker);
}

/// The captures of a hook, a decorator, a handler or a factory are dropped with the executor, or
/// when the callback is replaced; a capture that panics then is contained.
#[test]
fn captures_of_callbacks_may_panic_when_dropped() {
    let [one, two, three, four] = ["before", "decorator", "handler", "factory"].map(Bomb);
    let executor = Executor::builder()
        .core_pool_size(1)
        .before_execute(move |_: &TaskContext| hold(&one))
        .decorate_task(move |_: &Submission<'_>| {
            hold(&two);
            |next: TaskRun<'_>| next.run()
        })
        .rejected_execution_handler(move |task: RejectedTask<'_>| {
            hold(&three);
            task.abort()
        })
        .thread_factory(move |worker: Worker| {
            hold(&four);
            thread::Builder::new().spawn(move || worker.run()).map(Some)
        })
        .build()
        .expect("the settings are good");
    assert_eq!(executor.submit(|| 7).expect("it is open").join().expect("it runs"), 7);
    executor.set_rejected_execution_handler(AbortPolicy);
    in_time("the drop", move || drop(executor));
}
