//! `Debug` and `Display`: every public type prints its parts, every error its cause and the remedy.

use std::{
    collections::HashSet,
    error::Error,
    fmt::Debug,
    io,
    rc::Rc,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use punctual::{
    CancelReason, CancellationToken, Clock, ConfigError, DelayQueue, Delayed,
    ExecutorCompletionService, ExecutorState, FailurePolicy, Grace, InvokeError, RejectedTask,
    RejectionReason, ScheduledThreadPoolExecutor, Submission, TaskContext, TaskError, TaskRun,
    TaskSet, TaskState, Worker, trigger::every,
};

use crate::support::{Counter, LONG, manual, manual_with, ms};

/// The output begins with the type, and contains this.
fn shows(value: &impl Debug, parts: &[&str]) {
    let text = format!("{value:?}");
    let mut rest = &*text;
    for part in parts {
        let (_, behind) = rest.split_once(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        rest = behind;
    }
    assert!(text.starts_with(parts[0]), "{text}");
}

#[test]
fn executors_and_their_parts_can_be_printed() {
    let builder = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(3)
        .thread_name("clerk")
        .max_pending(7);
    shows(&builder, &["Builder", "core_pool_size: 3", "\"clerk\"", "max_pending: Some(7)"]);
    let executor = builder.build().expect("the settings are good");
    shows(&executor, &["ScheduledThreadPoolExecutor", "clerk"]);
    shows(&executor.handle(), &["Handle", "clerk", "Running"]);
    shows(&executor.task().name("letter"), &["TaskBuilder", "letter"]);
    shows(&Clock::default(), &["Clock", "System"]);
    let (clock, _) = manual(1);
    clock.advance(ms(3));
    shows(&clock, &["ManualClock", "3ms"]);
}

#[test]
fn tasks_and_their_futures() {
    let (_, executor) = manual(1);
    let later = || executor.task().name("later").schedule(LONG, || 7).expect("it is open");
    let future = later();
    shows(&future, &["ScheduledFuture"]);
    shows(&future.task_handle(), &["TaskHandle"]);
    shows(&future.cancel_on_drop(), &["ScheduledFuture"]);
    let set: TaskSet<_> = [later(), later()].into_iter().collect();
    shows(&set, &["TaskSet [ScheduledFuture", "ScheduledFuture"]);
    shows(&executor.pending_tasks(), &["[PendingTask", "later"]);
    let mut given_back = executor.shutdown_now();
    shows(&given_back, &["DrainedTasks", "len: 2"]);
    shows(&given_back.next().expect("there are two"), &["DrainedTask", "later"]);
    let token = CancellationToken::new();
    token.cancel();
    shows(&token, &["CancellationToken", "is_cancelled: true"]);
}

#[test]
fn several_as_they_end() {
    let (_, executor) = manual(1);
    let service = ExecutorCompletionService::new(&executor.handle());
    service.push(executor.schedule(LONG, || 7).expect("it is open"));
    shows(&service, &["ExecutorCompletionService", "pending: 1", "ended: 0"]);
}

/// Types that only the user's callbacks see: a worker, a rejected task, a decorated run.
#[test]
fn arguments_of_callbacks_can_be_printed() {
    let (tell, told) = mpsc::channel();
    let [worker, rejected, submitted, next, before] = [(); 5].map(|()| tell.clone());
    let say = |tell: &mpsc::Sender<String>, value: &dyn Debug| {
        tell.send(format!("{value:?}")).expect("somebody listens");
    };
    let (_, executor) = manual_with(|builder| {
        builder
            .max_pending(1)
            .stack_size(1 << 20)
            .thread_factory(move |own: Worker| {
                say(&worker, &own);
                std::thread::Builder::new().spawn(move || own.run()).map(Some)
            })
            .rejected_execution_handler(move |task: RejectedTask<'_>| {
                say(&rejected, &task);
                let answer = task.run();
                say(&rejected, &answer);
                answer
            })
            .decorate_task(move |task: &Submission<'_>| {
                assert!(!task.is_periodic());
                say(&submitted, task);
                let next_told = next.clone();
                move |run: TaskRun<'_>| {
                    say(&next_told, &run);
                    run.run()
                }
            })
            .before_execute(move |task: &TaskContext| say(&before, task))
    });
    executor.schedule(Duration::from_secs(3600), || ()).expect("there is room for one");
    executor.task().name("letter").execute(|| ()).expect("it is run here");
    drop(executor);
    drop(tell);
    let all: Vec<_> = told.iter().collect();
    for expected in ["Worker", "RejectedTask", "Rejection", "Submission", "TaskRun", "TaskContext"]
    {
        assert!(all.iter().any(|text| text.starts_with(expected)), "no {expected} in {all:?}");
    }
    assert!(all.iter().any(|text| text.contains("letter")), "{all:?}");
}

#[test]
fn keys_of_a_queue() {
    let queue = DelayQueue::new();
    let keys: HashSet<_> = (0..3).map(|n| queue.insert(LONG, n).expect("it is open")).collect();
    assert_eq!(keys.len(), 3);
    keys.iter().for_each(|key| shows(key, &["Key("]));
}

/// A pointer to an element that knows its deadline is `Delayed` as well.
#[test]
fn a_pointer_to_a_delayed_element_is_delayed() {
    struct At(Instant);

    impl Delayed for At {
        fn deadline(&self) -> Option<Instant> {
            Some(self.0)
        }
    }

    fn asked(element: impl Delayed) -> Option<Instant> {
        element.deadline()
    }

    let moment = Instant::now();
    let at = At(moment);
    assert_eq!(asked(&at), Some(moment));
    assert_eq!(asked(Box::new(at)), Some(moment));
    assert_eq!(asked(Rc::new(At(moment))), Some(moment));
    assert_eq!(asked(Arc::new(At(moment))), Some(moment));
}

/// Each error says what happened, and what to do if something can be done.
#[test]
fn errors_name_the_cause_and_the_remedy() {
    use CancelReason::*;
    let no_thread = || {
        let builder = ScheduledThreadPoolExecutor::builder();
        let factory = |_: Worker| Err(io::Error::other("no more"));
        let executor = builder.thread_factory(factory).build().expect("the settings are good");
        executor.submit(|| 7).expect_err("there is no thread")
    };
    for (reason, part) in [
        (RejectionReason::Shutdown, "the executor was shut down"),
        (RejectionReason::ZeroPeriod, "the shortest is one nanosecond"),
        (RejectionReason::Saturated, "try again later, or use a handler"),
        (RejectionReason::Full, "no room for one more task; try again"),
    ] {
        assert!(reason.to_string().contains(part), "{reason}");
    }
    let texts: [(&dyn Error, &str); 18] = [
        (&TaskError::Cancelled(Requested), "was cancelled: cancellation was requested"),
        (&TaskError::Cancelled(Shutdown), "was cancelled: the executor was shut down"),
        (&TaskError::Cancelled(ShutdownNow), "the executor was stopped by `shutdown_now`"),
        (&TaskError::Cancelled(ExecutorDropped), "the executor was dropped"),
        (&TaskError::Cancelled(Removed), "it was removed from the queue"),
        (&TaskError::Cancelled(Rejected), "it was rejected"),
        (&TaskError::Cancelled(TimedOut), "its timeout expired"),
        (&TaskError::ResultTaken, "has already been taken; return an `Arc`"),
        (&TaskError::WouldDeadlock, "use more workers or a timeout, or do not wait inside a task"),
        (&no_thread(), "no thread could be started for it: no more; try again"),
        (&InvokeError::<&str>::Rejected(no_thread()), "no thread could be started"),
        (&InvokeError::<&str>::WouldDeadlock, "use more workers"),
        (&InvokeError::<&str>::Interrupted, "interrupted by its token; the tasks were cancelled"),
        (&InvokeError::<&str>::NoTasks, "pass at least one"),
        (&InvokeError::Failed("burnt"), "every task failed; the last error: burnt"),
        (&ConfigError::ZeroKeepAlive, "set a longer one first"),
        (&ConfigError::ZeroMaxPending, "let at least one wait"),
        (&ConfigError::Spawn(io::Error::other("no more")), "ask for fewer"),
    ];
    for (error, part) in texts {
        let text = error.to_string();
        assert!(text.contains(part), "{text}");
        assert_eq!(error.source().is_some(), text.contains("no more"), "{text}");
    }
    assert!(TaskError::ResultTaken.into_failure().is_none());
}

/// A refusal is an error that names its task; a task that waits for its own termination is told
/// where to wait instead.
#[test]
fn refusals_are_errors() {
    let (_, executor) = manual(1);
    let handle = executor.handle();
    let waits = executor.submit(move || handle.await_termination(Duration::ZERO));
    let refused = waits.expect("it is open").join().expect("it runs").expect_err("it is inside");
    assert!(refused.to_string().contains("wait on another thread"), "{refused}");
    executor.shutdown();
    let refused = executor.task().name("late").submit(|| 7).expect_err("it was shut down");
    shows(&refused, &["RejectedExecutionError", "Shutdown", "late"]);
    assert_eq!(refused.to_string(), refused.reason().to_string());
    assert!(refused.source().is_none());
    assert!(matches!(refused.reason(), RejectionReason::Shutdown));
    assert_eq!(refused.task().name().as_deref(), Some("late"));
}

#[test]
fn the_states_of_an_executor_have_names() {
    use ExecutorState::*;
    let names = [Running, ShuttingDown, Stopping, Terminated].map(|state| state.to_string());
    assert_eq!(names, ["running", "shutting down", "stopping", "terminated"]);
}

/// Each report that a program would log is one line.
#[test]
fn reports_are_lines() {
    let (clock, executor) = manual(2);
    executor.submit(|| ()).unwrap().join().unwrap();
    let group = executor.group("g").build().unwrap();
    let poll = group.task().name("poll").on_failure(FailurePolicy::resume());
    let poll = poll.repeat(every(ms(10)), || Err::<(), _>("no answer")).unwrap();
    clock.run_for(ms(15));
    let failed = poll.last_failure().unwrap();
    assert_eq!(failed.to_string(), "run 2 failed (2 in a row): no answer");
    let panics = executor.task().on_failure(FailurePolicy::resume());
    let panics = panics.schedule_at_fixed_rate(ms(0), LONG, || panic!("loud")).unwrap();
    clock.run_until_idle();
    assert_eq!(panics.last_failure().unwrap().to_string(), "run 1 panicked (1 in a row): loud");
    panics.cancel();
    let pending = executor.pending_tasks();
    let id = poll.id();
    assert_eq!(pending[0].to_string(), format!("{id} \"poll\" (scheduled): due in 5ms, runs 2"));
    poll.pause();
    let paused = format!("{id} \"poll\" (paused): never due, runs 2");
    assert_eq!(executor.pending_tasks()[0].to_string(), paused);
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begins, opened) = (begun.clone(), gate.clone());
    let hangs = executor.task().name("upload").submit(move || {
        begins.add();
        opened.wait_for(1);
    });
    begun.wait_for(1);
    let report = executor.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    let running = format!("{} \"upload\"", hangs.unwrap().id());
    assert_eq!(report.still_running[0].to_string(), running);
    let line = format!("not terminated: 0 ran, 1 cancelled, 1 still running: {running}");
    assert_eq!(report.to_string(), line);
    gate.add();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    let report = executor.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    assert!(report.to_string().starts_with("terminated: "), "{report}");
}

/// Distributions are printed as what one wants to know of them.
#[cfg(feature = "histograms")]
#[test]
fn histograms_are_lines() {
    let (clock, executor) = manual_with(|builder| builder.histograms(1));
    let none = executor.histograms().unwrap();
    assert_eq!(none.to_string(), "pool: lateness: count 0; run time: count 0");
    let time = clock.clone();
    executor.task().name("tea").schedule(ms(10), move || time.advance(ms(4))).unwrap();
    clock.advance(ms(13));
    clock.run_until_idle();
    executor.submit(|| ()).unwrap().join().unwrap();
    clock.run_until_idle();
    let named = executor.histograms().unwrap().named("tea").unwrap().to_string();
    let one = |span| format!("count 1, median {span}, p99 {span}, longest {span}");
    assert_eq!(named, format!("lateness: {}; run time: {}", one("3ms"), one("4ms")));
    let all = executor.histograms().unwrap().to_string();
    assert!(all.starts_with("pool: lateness: count ") && all.ends_with(&named), "{all}");
    assert!(all.contains("\n\"tea\": lateness: "), "{all}");
}

#[test]
fn the_states_of_a_task_have_names() {
    use TaskState::*;
    let states = [Scheduled, Paused, Running, Completed, Failed, Cancelled];
    let names = states.map(|state| state.to_string());
    assert_eq!(names, ["scheduled", "paused", "running", "completed", "failed", "cancelled"]);
}
