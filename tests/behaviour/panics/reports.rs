//! Reports to the failure handler: whose panic it was, of which task and run, with which message, and
//! where it began; and that the report comes in time, and once.

use std::{
    panic::{self, panic_any, resume_unwind},
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::Duration,
};

use punctual::{
    Backoff, Builder, Failure, FailurePolicy, FailureReport, FailureSource, Handle, ManualClock,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskContext, TaskHandle, TaskId,
    TaskState, Trigger,
    trigger::{every, on_demand},
    with_context,
};

use crate::support::{Bomb, Counter, Log, Wrapped, hold, manual_with, ms, worker_of};

/// The contents of a report.
#[derive(Clone, Debug)]
struct Told {
    source: FailureSource,
    id: Option<TaskId>,
    name: Option<String>,
    run: Option<u64>,
    message: String,
    /// File, line and column.
    location: Option<(String, u32, u32)>,
    line: String,
    thread: ThreadId,
}

impl Told {
    fn by(report: &FailureReport<'_>) -> Self {
        let location = report.location();
        Self {
            source: report.source(),
            id: report.task_id(),
            name: report.task_name().map(|name| name.to_string()),
            run: report.run_number(),
            message: report.message().to_owned(),
            location: location.map(|at| (at.file().to_owned(), at.line(), at.column())),
            line: report.to_string(),
            thread: thread::current().id(),
        }
    }

    fn line_number(&self) -> Option<u32> {
        self.location.as_ref().map(|(_, line, _)| *line)
    }
}

/// An executor whose handler records the reports.
fn telling(settings: impl FnOnce(Builder) -> Builder) -> (ManualClock, Executor, Log<Told>) {
    let log = Log::new();
    let told = log.clone();
    let (clock, executor) = manual_with(|builder| {
        settings(builder.failure_handler(move |report| told.push(Told::by(report))))
    });
    (clock, executor, log)
}

/// Runs a body, and returns the one report on it.
fn told_of(body: impl FnOnce() + Send + 'static) -> Told {
    let (clock, executor, log) = telling(|builder| builder);
    executor.execute(body).expect("accepted");
    clock.run_until_idle();
    only(&log)
}

fn only(log: &Log<Told>) -> Told {
    let [told] = &log.entries()[..] else { panic!("one report: {log:?}") };
    told.clone()
}

/// F1, HK-004 to HK-007: a report names the task, by number and name, and the run; its line for a
/// log contains all of it. The handler is called on the thread on which the panic happened.
#[test]
fn a_report_says_which_run_of_which_task() {
    let (clock, executor, log) = telling(|builder| builder);
    let worker = worker_of(&executor);
    let mut runs = 0;
    let body = move || {
        runs += 1;
        assert!(runs < 3, "disk full");
    };
    let series = executor.task().name("back\"up").schedule_at_fixed_rate(ms(1), ms(1), body);
    let id = series.expect("accepted").id();
    clock.run_for(ms(10));
    let told = only(&log);
    assert_eq!((told.source, told.thread), (FailureSource::Task, worker));
    assert_eq!(told.id, id.to_string().parse().ok());
    assert_eq!((told.name.as_deref(), told.run), (Some("back\"up"), Some(3)));
    let (file, line, column) = told.location.expect("it is known");
    assert_eq!((&*file, &*told.message), (file!(), "disk full"));
    let place = format!("{file}:{line}:{column}");
    let whole = format!(r#"task "back\"up" ({id}), run 3: panicked at {place}: disk full"#);
    assert_eq!(told.line, whole);
}

/// HK-004 to HK-007: a report leaves unknown parts out of its line.
#[test]
fn a_report_leaves_out_unknown_parts() {
    let told = told_of(|| resume_unwind(Box::new("from elsewhere")));
    assert_eq!((told.name, told.run, told.location), (None, Some(1), None));
    let id = told.id.expect("it is a task");
    assert_eq!(told.line, format!("task ({id}), run 1: panicked: from elsewhere"));
}

/// HK-004 to HK-007: the location is that of the very call that panicked, whatever it throws.
#[test]
fn the_location_is_that_of_the_very_panic() {
    let list: Vec<u32> = Vec::new();
    let first_of = list.first().copied();
    let first = line!();
    let bodies: [Box<dyn FnOnce() + Send>; 6] = [
        Box::new(|| panic!("a literal")),
        Box::new(move || panic!("a text {first}")),
        Box::new(|| panic_any(7)),
        Box::new(move || assert!(first_of.expect("nothing") > 0)),
        Box::new(move || assert!(list[3] > 0)),
        Box::new(|| assert_eq!(1, 2)),
    ];
    for (body, line) in bodies.into_iter().zip(first + 2..) {
        let (file, told, column) = told_of(body).location.expect("it is known");
        assert_eq!((&*file, told), (file!(), line));
        assert!(column > 8, "{column}");
    }
}

/// A panic that is caught, so that it is not reported.
fn caught(message: &'static str) {
    let caught = panic::catch_unwind(|| panic_any(message));
    caught.expect_err("it panics");
}

/// Catches a panic when it is dropped.
struct Catches;

impl Drop for Catches {
    fn drop(&mut self) {
        (0..20).for_each(|_| caught("in a drop"));
    }
}

/// HK-007: a panic that was caught is not mistaken for the one that was resumed after it, and a new
/// panic is found behind others that were caught meanwhile.
#[test]
fn no_location_is_stale() {
    let resumed = told_of(|| {
        caught("an older one");
        resume_unwind(Box::new("from elsewhere"));
    });
    assert_eq!((&*resumed.message, resumed.location), ("from elsewhere", None));
    let other_type = told_of(|| {
        caught("the same text");
        resume_unwind(Box::new("the same text".to_owned()));
    });
    assert_eq!(other_type.location, None);
    let line = line!() + 3;
    let again = told_of(|| {
        caught("the same text");
        panic_any("the same text");
    });
    assert_eq!(again.line_number(), Some(line));
    let line = line!() + 3;
    let unwinds = told_of(|| {
        let _guard = Dropped(|| caught("in a drop"));
        panic_any("the body");
    });
    assert_eq!((&*unwinds.message, unwinds.line_number()), ("the body", Some(line)));
    let many = told_of(|| {
        let _catches = Catches;
        panic_any("the body");
    });
    assert!(many.line_number().is_none_or(|found| found > line), "{many:?}");
}

/// Calls a closure when it is dropped.
struct Dropped(fn());

impl Drop for Dropped {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// HK-007: a panic that is caught and resumed is reported with the place where it began.
#[test]
fn a_panic_that_is_resumed_where_it_began_keeps_its_location() {
    let line = line!() + 2;
    let told = told_of(|| {
        let caught = panic::catch_unwind(|| panic_any("begun here"));
        caught.unwrap_or_else(|payload| resume_unwind(payload));
    });
    assert_eq!((told.line_number(), &*told.message), (Some(line), "begun here"));
}

/// HK-007: the location of one task's panic is not shown for another that resumes it, nor does a
/// worker's earlier panic affect later reports.
#[test]
fn a_location_does_not_pass_from_task_to_task() {
    let (clock, executor, log) = telling(|builder| builder);
    let first = executor.submit::<()>(|| panic_any("the first")).expect("accepted");
    clock.run_until_idle();
    let bomb = Bomb("a capture");
    let waiting = executor.schedule(ms(10), move || hold(&bomb)).expect("accepted");
    let second = move || {
        assert!(waiting.cancel());
        let panic = first.join().expect_err("it panicked").into_failure().expect("a panic");
        assert!(panic.location().is_some());
        std::panic::resume_unwind(panic.into_payload());
    };
    executor.execute(second).expect("accepted");
    executor.execute(|| resume_unwind(Box::new("the third"))).expect("accepted");
    clock.run_until_idle();
    let told = log.entries().into_iter().map(|told| (told.message, told.location.is_some()));
    let expected =
        [("the first", true), ("a capture", true), ("the first", false), ("the third", false)];
    assert!(told.eq(expected.map(|(message, known)| (message.to_owned(), known))), "{log:?}");
}

/// HK-007: a run inside a run, and a hook that panics in between, do not change the report on the
/// outer run.
#[test]
fn a_run_inside_a_run_keeps_its_own_location() {
    let (_other_clock, other, inner_log) = telling(|builder| builder);
    other.schedule(ms(10), || panic_any("the inner")).expect("accepted");
    let pending = Mutex::new(Some(other.shutdown_now()));
    let line = line!() + 3;
    let told = told_of(move || {
        let _runs = RunsPending(pending);
        panic_any("the outer");
    });
    assert_eq!((&*told.message, told.line_number()), ("the outer", Some(line)));
    let inner = only(&inner_log);
    assert_eq!(&*inner.message, "the inner");
    assert!(inner.line_number().is_some_and(|inner| inner < line));
}

/// Runs drained tasks when it is dropped, also during a panic.
struct RunsPending(Mutex<Option<punctual::DrainedTasks>>);

impl Drop for RunsPending {
    fn drop(&mut self) {
        let pending = self.0.lock().expect("nobody panics").take();
        pending.into_iter().flatten().for_each(punctual::DrainedTask::run);
    }
}

/// HK-004 to HK-007: the handler is called before the outcome is visible, and for a periodic task
/// that continues once per failed run.
#[test]
fn the_handler_is_told_before_the_outcome_is_there() {
    let (states, own) = (Log::new(), Arc::new(Mutex::new(None::<TaskHandle>)));
    let (log, handle) = (states.clone(), Arc::clone(&own));
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| {
            let state = handle.lock().expect("nobody panics").as_ref().map(TaskHandle::state);
            log.push((state, report.run_number()));
        })
    });
    let task = executor.task().on_failure(FailurePolicy::resume().stop_after(3));
    let series = task.schedule_with_fixed_delay(ms(1), ms(1), || panic_any("each run"));
    let series = series.expect("accepted");
    *own.lock().expect("nobody panics") = Some(series.task_handle());
    clock.run_for(ms(10));
    let expected = [1, 2, 3].map(|run| (Some(TaskState::Running), Some(run)));
    assert_eq!(states.entries(), expected);
    assert_eq!(series.state(), TaskState::Failed);
}

/// AT-004, HK-002: hooks that belong to no task are reported without one.
#[test]
fn hooks_of_no_task_are_reported_without_one() {
    let line = line!() + 2;
    let (_clock, executor, log) = telling(|builder| {
        let builder = builder.on_thread_start(|| panic!("first"));
        let builder = builder.on_thread_stop(|| panic!("last"));
        builder.terminated(|| panic!("the end"))
    });
    let future = executor.submit(|| 7).expect("accepted");
    executor.close().expect("not on a worker");
    assert!(matches!(future.join(), Ok(7)));
    let expected = [
        (FailureSource::ThreadStart, "the hook at the start of a thread", "first"),
        (FailureSource::ThreadStop, "the hook at the end of a thread", "last"),
        (FailureSource::Terminated, "the hook at the end of the executor", "the end"),
    ];
    assert_eq!(log.entries().len(), 3);
    for ((told, (source, who, message)), line) in
        log.entries().into_iter().zip(expected).zip(line..)
    {
        assert_eq!(
            (told.source, &*told.message, told.line_number()),
            (source, message, Some(line))
        );
        assert_eq!((told.id, told.name, told.run), (None, None, None));
        let column = told.location.expect("it is known").2;
        assert_eq!(told.line, format!("{who}: panicked at {}:{line}:{column}: {message}", file!()));
    }
}

/// An executor whose handler records each line, without the id of the task, and whether the failure was final.
fn saying(
    settings: impl FnOnce(Builder) -> Builder,
) -> (ManualClock, Executor, Log<(String, bool)>) {
    let log = Log::new();
    let told = log.clone();
    let (clock, executor) = manual_with(|builder| {
        settings(builder.failure_handler(move |report| {
            let id = report.task_id().expect("it is a task's").to_string();
            told.push((report.to_string().replace(&id, "7"), report.is_final()));
        }))
    });
    (clock, executor, log)
}

fn assert_said<const N: usize>(log: &Log<(String, bool)>, expected: [(&str, bool); N]) {
    assert_eq!(log.entries(), expected.map(|(line, is_final)| (line.to_owned(), is_final)));
}

/// A failed attempt is told from a final failure: the report says which of how many it was, and when the next is, whatever
/// made it fail.
#[test]
fn a_report_says_which_attempt_it_was_and_when_the_next_is() {
    let (clock, executor, log) = saying(|builder| builder);
    let backoff = Backoff::exponential(ms(100)..=ms(200)).max_attempts(5);
    let time = clock.clone();
    let body = with_context(move |run| match run.attempt() {
        2 => {
            time.advance(ms(300));
            Ok(())
        }
        3 => resume_unwind(Box::new("confused")),
        _ => Err("no route"),
    });
    let task = executor.task().name("downstream").timeout(ms(300)).retry(backoff, body);
    clock.run_for(ms(1_000));
    assert_said(
        &log,
        [
            (r#"task "downstream" (7), attempt 1 of 5: failed: no route; again in 100ms"#, false),
            (
                r#"task "downstream" (7), attempt 2 of 5: exceeded its time limit of 300ms; again in 200ms"#,
                false,
            ),
            (r#"task "downstream" (7), attempt 3 of 5: panicked: confused; again in 200ms"#, false),
            (r#"task "downstream" (7), attempt 4 of 5: failed: no route; again in 200ms"#, false),
            (r#"task "downstream" (7), attempt 5 of 5: failed: no route"#, true),
        ],
    );
    assert_eq!(task.expect("accepted").state(), TaskState::Failed);
}

/// The attempts at each moment of a series are counted anew, and the run is named beside them. A run beside the schedule is
/// no attempt, and the plan stands.
#[test]
fn a_report_of_a_series_with_retries_says_both() {
    let (clock, executor, log) = saying(|builder| builder);
    let trigger = every(ms(10)).retry(Backoff::constant(Duration::ZERO).max_attempts(2));
    let trigger = Wrapped::new(trigger.times(4));
    let series = executor.repeat(trigger, || Err::<(), _>("no")).expect("accepted");
    clock.run_for(ms(4));
    assert!(series.run_now());
    clock.run_for(ms(10));
    assert_said(
        &log,
        [
            ("task (7), attempt 1 of 2: failed: no; again at once", false),
            ("task (7), attempt 2 of 2: failed: no; again in 10ms", false),
            ("task (7), run 3: failed: no; again in 6ms", false),
            ("task (7), run 4, attempt 1 of 2: failed: no", true),
        ],
    );
}

/// The next run is the one that was asked for during the run, if one was. A task whose end was asked for meanwhile does not
/// run again, and one that is paused or runs on demand does, at no moment that is known.
#[test]
fn a_report_knows_what_was_asked_for_during_the_run() {
    type Ask = fn(&TaskContext, &TaskHandle);
    let asks: [(Ask, (&str, bool)); 6] = [
        (|run, _| assert!(run.reschedule(ms(70))), ("; again in 70ms", false)),
        (|_, task| assert!(task.run_now()), ("; again at once", false)),
        (|_, task| assert!(task.set_trigger(on_demand())), ("", false)),
        (|_, task| assert!(task.pause()), ("", false)),
        (|_, task| assert!(task.cancel()), ("", true)),
        (|run, _| run.token().cancel(), ("", true)),
    ];
    for (ask, (end, is_final)) in asks {
        let (clock, executor, log) = saying(|builder| builder);
        let own = Arc::new(Mutex::new(None::<TaskHandle>));
        let handle = Arc::clone(&own);
        let body = with_context(move |run| {
            if run.run_number() == 1 {
                ask(run, handle.lock().expect("nobody panics").as_ref().expect("it is set"));
            }
            Err::<(), _>("no")
        });
        let task = executor.task().on_failure(FailurePolicy::resume());
        let series = task.repeat(every(ms(10)).first_in(ms(10)), body).expect("accepted");
        *own.lock().expect("nobody panics") = Some(series.task_handle());
        clock.run_for(ms(10));
        assert_eq!(log.entries()[0], (format!("task (7), run 1: failed: no{end}"), is_final));
    }
}

/// The panic of a hook before a run is that run's failure, and says what follows; that of one after it is not.
#[test]
fn a_hook_that_panics_is_named() {
    let (clock, executor, log) = saying(|builder| {
        let before = |run: &TaskContext| {
            if run.run_number() == 1 {
                resume_unwind(Box::new("not ready"));
            }
        };
        let after = |_: &TaskContext, _: Result<(), &Failure>| resume_unwind(Box::new("no log"));
        builder.before_execute(before).after_execute(after)
    });
    let task = executor.task().on_failure(FailurePolicy::resume());
    task.schedule_at_fixed_rate(ms(0), ms(10), || ()).expect("accepted");
    clock.run_for(ms(10));
    assert_said(
        &log,
        [
            ("the hook before task (7), run 1: panicked: not ready; again in 10ms", false),
            ("the hook after task (7), run 2: panicked: no log", false),
        ],
    );
}

/// F7, HK-004: a handler that panics changes nothing: the outcome stays, the next panic is reported
/// as well, and the worker survives.
#[test]
fn a_handler_that_panics_changes_nothing() {
    let calls = Log::new();
    let called = calls.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| {
            called.push(report.message().to_owned());
            panic_any(Bomb("what the handler throws"));
        })
    });
    let worker = worker_of(&executor);
    let tasks = ["one", "two"].map(|text| executor.submit::<()>(move || panic_any(text)));
    clock.run_until_idle();
    for (task, text) in tasks.into_iter().zip(["one", "two"]) {
        let panic = task.expect("accepted").join().expect_err("panicked").into_failure();
        assert_eq!(panic.expect("a panic").message(), text);
    }
    assert_eq!(calls.entries(), ["one", "two"]);
    assert_eq!(worker_of(&executor), worker);
}

/// HK-004: the handler may use its executor, and the tasks that it submits may fail in turn.
#[test]
fn a_handler_may_submit() {
    let (messages, own) = (Log::new(), Arc::new(Mutex::new(None::<Handle>)));
    let (log, handle) = (messages.clone(), Arc::clone(&own));
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| {
            log.push(report.message().to_owned());
            let handle = handle.lock().expect("nobody panics").take();
            if let Some(handle) = handle {
                handle.execute(|| panic_any("the second")).expect("accepted");
            }
        })
    });
    *own.lock().expect("nobody panics") = Some(executor.handle());
    executor.execute(|| panic_any("the first")).expect("accepted");
    clock.run_until_idle();
    assert_eq!(messages.entries(), ["the first", "the second"]);
}

/// HK-037: a capture that panics when a run drops it counts as that run's panic, and is reported.
#[test]
fn a_capture_that_panics_is_reported_if_a_run_drops_it() {
    let (clock, executor, log) = telling(|builder| builder);
    let worker = worker_of(&executor);
    let bomb = Bomb("a capture");
    let ran = executor.schedule(ms(1), move || hold(&bomb));
    clock.run_for(ms(1));
    assert_eq!(ran.expect("accepted").state(), TaskState::Failed);
    let told = only(&log);
    assert_eq!((told.source, &*told.message), (FailureSource::Task, "a capture"));
    assert!(told.location.is_some_and(|(file, ..)| file.ends_with("mod.rs")));
    assert_eq!(worker_of(&executor), worker);
}

/// Panics when it is dropped, by resuming a panic, so that the process's panic hook is not called.
struct Quiet;

impl Drop for Quiet {
    fn drop(&mut self) {
        resume_unwind(Box::new("a quiet capture"));
    }
}

type End = fn(Executor, ScheduledFuture<()>);

/// The ways in which a pending task is dropped without having run.
const ENDS: [(&str, End); 6] = [
    ("cancel", |_, future| assert!(future.cancel())),
    ("remove", |executor, future| assert!(executor.remove(&future))),
    ("shutdown", |executor, _| {
        executor.set_executes_existing_delayed_tasks_after_shutdown(false);
        executor.shutdown();
    }),
    ("the drop of the executor", |executor, _| drop(executor)),
    ("the drop of what shutdown_now gave back", |executor, _| drop(executor.shutdown_now())),
    ("the same, one by one", |executor, _| executor.shutdown_now().for_each(drop)),
];

/// G27: a capture that panics when the executor drops it, because the task will not run, reaches
/// the handler, even if the panic does not reach the process's panic hook.
#[test]
fn a_capture_that_panics_is_reported_if_the_task_never_ran() {
    for (how, end) in ENDS {
        let (_clock, executor, log) = telling(|builder| builder);
        let quiet = Quiet;
        let body = move || drop(quiet);
        let future = executor.task().name("loud").schedule(ms(1), body).expect("accepted");
        let id = future.id();
        end(executor, future);
        let told = only(&log);
        assert_eq!(
            (told.source, &*told.message),
            (FailureSource::Drop, "a quiet capture"),
            "{how}"
        );
        assert_eq!((told.name.as_deref(), told.run), (Some("loud"), None), "{how}");
        assert!(told.id.is_none_or(|told| told == id), "{how}");
        assert!(
            told.line.starts_with("the drop of a value of task \"loud\""),
            "{how}: {}",
            told.line
        );
    }
}

/// G27: a result that panics when it is dropped reaches the handler as well: because the task was
/// cancelled while it ran, because its future was dropped, or with its future.
#[test]
fn a_result_that_panics_is_reported() {
    type Act = fn(ScheduledFuture<Quiet>, &Counter);
    let acts: [(&str, Act); 3] = [
        ("cancelled", |future, gate| {
            assert!(future.cancel());
            gate.add();
        }),
        ("detached", |future, gate| {
            drop(future);
            gate.add();
        }),
        ("dropped with its future", |future, gate| {
            gate.add();
            future.wait().expect("it ends");
        }),
    ];
    for (how, act) in acts {
        let (_clock, executor, log) = telling(|builder| builder);
        let (begun, gate) = (Counter::new(), Counter::new());
        let (begins, opened) = (begun.clone(), gate.clone());
        let body = move || {
            begins.add();
            opened.wait_for(1);
            Quiet
        };
        let future = executor.submit(body).expect("accepted");
        begun.wait_for(1);
        act(future, &gate);
        executor.close().expect("not on a worker");
        let told = only(&log);
        assert_eq!(
            (told.source, &*told.message),
            (FailureSource::Drop, "a quiet capture"),
            "{how}"
        );
    }
}

/// HK-004: a report can be printed, with all of its contents.
#[test]
fn a_report_prints_its_parts() {
    let log = Log::new();
    let told = log.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| {
            told.push(format!("{report:?}"));
        })
    });
    executor.task().name("shown").execute(|| panic_any("no")).expect("accepted");
    clock.run_until_idle();
    let [shown] = &log.entries()[..] else { panic!("{log:?}") };
    for part in ["source: Task", "Some(\"shown\")", "run: Some(1)", "Panic(\"no\")"] {
        assert!(shown.contains(part), "{shown}");
    }
}
