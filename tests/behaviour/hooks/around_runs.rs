//! Hooks before and after each run: when they are called, what they see, and what they may do.

use std::{
    hint::black_box,
    panic::{panic_any, resume_unwind},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

use punctual::{
    Builder, Failure, Grace, ManualClock, MissedRuns, RejectedTask, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskContext, TaskError, TaskHandle, TaskId, TaskState,
    current_task,
};

use crate::support::{Counter, LONG, Log, in_time, manual_with, ms, receive, worker_of};

/// A call: `before`, `body` or `after`; for which run of which task; on which thread.
type Call = (&'static str, TaskId, u64, ThreadId);

/// Hooks that log each call.
fn noting(builder: Builder, log: &Log<Call>) -> Builder {
    let (before, after) = (log.clone(), log.clone());
    builder
        .before_execute(move |task| before.push(call("before", task)))
        .after_execute(move |task, _| after.push(call("after", task)))
}

fn call(what: &'static str, task: &TaskContext) -> Call {
    (what, task.id(), task.run_number(), thread::current().id())
}

fn note_body(log: &Log<Call>) {
    log.push(call("body", &current_task().expect("inside a task")));
}

fn noted(log: &Log<Call>) -> Vec<(&'static str, u64)> {
    log.entries().into_iter().map(|(what, _, run, _)| (what, run)).collect()
}

const ONE_RUN: [(&str, u64); 3] = [("before", 1), ("body", 1), ("after", 1)];

/// HK-001: one hook is called before the body and the other after it, for the same task and on the
/// same thread.
#[test]
fn hooks_stand_around_the_body() {
    let log = Log::new();
    let (_clock, executor) = manual_with(|builder| noting(builder, &log));
    let inside = log.clone();
    let task = executor.submit(move || note_body(&inside)).expect("accepted");
    let worker = worker_of(&executor);
    let calls = log.entries();
    assert_eq!(noted(&log)[..3], ONE_RUN);
    assert!(calls[..3].iter().all(|call| (call.1, call.3) == (task.id(), worker)), "{calls:?}");
}

/// HK-001, HK-036: both hooks are called around every run of a periodic task, including a run that
/// fails.
#[test]
fn hooks_are_called_for_every_run() {
    for is_rate in [true, false] {
        let log = Log::new();
        let (clock, executor) = manual_with(|builder| noting(builder, &log));
        let inside = log.clone();
        let body = move || {
            note_body(&inside);
            assert!(log_len(&inside) < 8, "the third run");
        };
        let series = if is_rate {
            executor.schedule_at_fixed_rate(ms(10), ms(10), body)
        } else {
            executor.schedule_with_fixed_delay(ms(10), ms(10), body)
        };
        clock.run_for(ms(100));
        let calls = (1..=3).flat_map(|run| ["before", "body", "after"].map(|what| (what, run)));
        assert_eq!(noted(&log), calls.collect::<Vec<_>>());
        assert_eq!(series.expect("accepted").state(), TaskState::Failed);
    }
}

fn log_len(log: &Log<Call>) -> usize {
    log.entries().len()
}

/// How a task can end without a run.
type End = fn(&ManualClock, Executor, &ScheduledFuture<()>);

/// HK-001: a task that does not run has no hooks called, however it ends.
#[test]
fn hooks_are_not_called_for_tasks_that_do_not_run() {
    let ends: [End; 5] = [
        |clock, _executor, task| {
            assert!(task.cancel());
            clock.run_for(ms(20));
        },
        |_, executor, task| assert!(executor.remove(task)),
        |_, executor, _| drop(executor.shutdown_now()),
        |_, executor, _| drop(executor),
        |_, executor, _| {
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            executor.close().expect("not on a worker");
        },
    ];
    for end in ends {
        let log = Log::new();
        let (clock, executor) = manual_with(|builder| noting(builder, &log));
        let task = executor.schedule(ms(10), || ()).expect("accepted");
        end(&clock, executor, &task);
        assert!(task.is_cancelled());
        assert_eq!(noted(&log), []);
    }
}

/// HK-001: the hooks are also called when a drained or rejected task is run by hand.
#[test]
fn hooks_are_called_wherever_a_task_is_run() {
    let here = thread::current().id();
    for is_refused in [false, true] {
        let log = Log::new();
        let (_clock, executor) = manual_with(|builder| {
            noting(builder, &log).rejected_execution_handler(|task: RejectedTask<'_>| task.run())
        });
        if is_refused {
            executor.shutdown();
        }
        let inside = log.clone();
        let task = executor.schedule(LONG, move || note_body(&inside)).expect("accepted");
        executor.shutdown_now().for_each(punctual::DrainedTask::run);
        assert_eq!(noted(&log), ONE_RUN, "refused: {is_refused}");
        assert!(log.entries().iter().all(|call| (call.1, call.3) == (task.id(), here)));
        assert!(matches!(task.try_join(), Some(Ok(()))));
    }
}

/// HK-001: the hooks see the name of the task, the planned time of its run, its lateness, and the
/// runs it missed, just as the body sees them.
#[test]
fn hooks_see_the_same_context_as_the_body() {
    let log = Log::new();
    let (before, after) = (log.clone(), log.clone());
    let look = |task: &TaskContext| {
        (task.name(), task.planned(), task.lateness(), task.missed_runs(), task.id())
    };
    let (clock, executor) = manual_with(|builder| {
        builder
            .before_execute(move |task| before.push(look(task)))
            .after_execute(move |task, _| after.push(look(task)))
    });
    let (origin, inside) = (clock.now(), log.clone());
    let task = executor.task().name("poll").missed_runs(MissedRuns::Coalesce);
    let series = task.schedule_at_fixed_rate(ms(10), ms(10), move || {
        inside.push(look(&current_task().expect("inside a task")));
    });
    let id = series.expect("accepted").id();
    clock.run_until_idle();
    clock.advance(ms(45));
    clock.run_until_idle();
    let seen = (Some("poll".into()), Some(origin + ms(10)), ms(35), 3, id);
    assert_eq!(log.entries(), vec![seen; 3]);
}

/// A payload of a type of the test's own.
struct Custom;

/// HK-036, HK-003 to HK-007: the hook after a run sees its exact outcome: the message of the panic
/// and the type of the payload.
#[test]
fn the_hook_after_sees_the_outcome() {
    type Is = fn(&Failure) -> bool;
    /// A body, and what it panics with.
    type Case = (fn(), Option<(&'static str, Is)>);
    let silent = "a panic without a message";
    let cases: [Case; 6] = [
        (|| (), None),
        (|| panic_any("a literal"), Some(("a literal", Failure::is::<&'static str>))),
        (|| panic!("text {}", black_box(7)), Some(("text 7", Failure::is::<String>))),
        (|| panic_any(Custom), Some((silent, Failure::is::<Custom>))),
        (|| panic_any(std::fmt::Error), Some((silent, Failure::is::<std::fmt::Error>))),
        (|| resume_unwind(Box::new(Custom)), Some((silent, Failure::is::<Custom>))),
    ];
    for (body, expected) in cases {
        let log = Log::new();
        let seen = log.clone();
        let (clock, executor) = manual_with(|builder| {
            builder.after_execute(move |_, outcome| match outcome {
                Ok(()) => seen.push(None),
                Err(panic) => {
                    let is_it = expected.is_some_and(|(_, is)| is(panic));
                    seen.push(Some((panic.message().to_owned(), is_it)));
                }
            })
        });
        executor.execute(body).expect("accepted");
        clock.run_until_idle();
        assert_eq!(log.entries(), [expected.map(|(message, _)| (message.to_owned(), true))]);
    }
}

/// HK-001: in both hooks the task still counts as running, and a waiting thread is released only
/// when the hook after the run has returned.
#[test]
fn a_future_ends_when_its_hook_has_returned() {
    let (reached, gate, returned) = (Counter::new(), Counter::new(), Counter::new());
    let (before, after) = ((reached.clone(), gate.clone()), (reached.clone(), gate.clone()));
    let returns = returned.clone();
    let (_clock, executor) = manual_with(|builder| {
        builder
            .before_execute(move |_| {
                before.0.add();
                before.1.wait_for(1);
            })
            .after_execute(move |_, _| {
                after.0.add();
                after.1.wait_for(2);
                returns.add();
            })
    });
    let future = executor.submit(|| 7).expect("accepted");
    for place in 1..=2 {
        reached.wait_for(place);
        assert_eq!(future.state(), TaskState::Running);
        assert!(future.try_join().is_none());
        assert_eq!((executor.active_count(), executor.completed_task_count()), (1, 0));
        gate.add();
    }
    let joined = in_time("join", move || (future.join(), returned.get()));
    assert!(matches!(joined, (Ok(7), 1)), "{joined:?}");
    assert_eq!(executor.completed_task_count(), 1);
}

/// HK-001: a task that is cancelled while it is in one of its hooks has been cancelled, and the
/// hook after the run sees what the body did.
#[test]
fn a_task_can_be_cancelled_in_its_hooks() {
    for in_before in [true, false] {
        let (own, answers) = (Arc::new(Mutex::new(None::<TaskHandle>)), Log::new());
        let (handle, answer) = (Arc::clone(&own), answers.clone());
        let cancel = move || {
            let handle = handle.lock().unwrap_or_else(PoisonError::into_inner).take();
            answer.push(handle.is_some_and(|handle| handle.cancel()));
        };
        let outcomes = Log::new();
        let told = outcomes.clone();
        let also_cancel = cancel.clone();
        let (clock, executor) = manual_with(|builder| {
            builder
                .before_execute(move |_| {
                    if in_before {
                        cancel()
                    }
                })
                .after_execute(move |_, outcome| {
                    told.push(outcome.is_ok());
                    if !in_before {
                        also_cancel();
                    }
                })
        });
        let series = executor.schedule_at_fixed_rate(ms(10), ms(10), || ()).expect("accepted");
        *own.lock().expect("nobody panics") = Some(series.task_handle());
        clock.run_for(ms(50));
        assert_eq!((answers.entries(), outcomes.entries()), (vec![true], vec![true]));
        assert!(series.is_cancelled());
        assert_eq!(executor.pending_count(), 0);
        let now = executor.statistics();
        assert_eq!((now.cancelled, now.completed, now.runs), (1, 0, 1));
    }
}

/// HK-030: ten workers that block in the hook before their tasks are active: 25 tasks are
/// submitted, of which 15 have completed.
#[test]
fn a_task_in_its_first_hook_is_at_work() {
    let (parked, gate) = (Counter::new(), Counter::new());
    let (parks, opens) = (parked.clone(), gate.clone());
    let builder = Executor::builder().core_pool_size(10).before_execute(move |task| {
        if task.name().is_some() {
            parks.add();
            opens.wait_for(1);
        }
    });
    let executor = builder.build().expect("the settings are good");
    let processed: Vec<_> = (0..15).map(|_| executor.submit(|| ()).expect("accepted")).collect();
    processed.into_iter().for_each(|task| task.join_within(LONG).expect("it ends").expect("it"));
    for _ in 0..10 {
        executor.task().name("parks").execute(|| ()).expect("accepted");
    }
    parked.wait_for(10);
    assert_eq!((executor.task_count(), executor.completed_task_count()), (25, 15));
    assert_eq!((executor.active_count(), executor.pool_size()), (10, 10));
    gate.add();
    executor.close().expect("not on a worker");
}

/// An action that a hook performs on its own executor.
type Act = fn(Executor);

const ACTS: [(&str, Act); 8] = [
    ("submits", |executor| {
        let _ = executor.submit(|| ());
        executor.close_background();
    }),
    ("cancels", |executor| {
        executor.pending_tasks().iter().for_each(|task| {
            task.cancel();
        });
        executor.shutdown_background();
    }),
    ("shuts down", Executor::close_background),
    ("shuts down now", |executor| drop(executor.shutdown_now())),
    ("drops", drop),
    ("closes", |executor| assert!(executor.close().is_err())),
    ("waits", |executor| {
        assert!(executor.await_termination(Duration::MAX).is_err());
        assert!(executor.await_termination(ms(1)).is_err());
        drop(executor);
    }),
    ("shuts down in time", |executor| {
        assert!(executor.shutdown_within(Grace::patience(LONG).then(LONG)).is_err());
        drop(executor);
    }),
];

/// Installs a callback in one of the places where an executor calls back.
type Place = fn(Builder, Box<dyn Fn() + Send + Sync>) -> Builder;

const PLACES: [(&str, Place); 6] = [
    ("thread start", |builder, act| builder.on_thread_start(act)),
    ("before", |builder, act| builder.before_execute(move |_| act())),
    ("after", |builder, act| builder.after_execute(move |_, _| act())),
    ("failure handler", |builder, act| builder.failure_handler(move |_| act())),
    ("thread stop", |builder, act| builder.on_thread_stop(act)),
    ("terminated", |builder, act| builder.terminated(act)),
];

/// F14, F15, F16, F18, HK-001, AT-021: whatever a hook does to its own executor, nothing hangs: the
/// executor terminates, and each of its futures completes.
#[test]
fn a_hook_can_do_anything_to_its_executor() {
    for (place, hook) in PLACES {
        for (what, act) in ACTS {
            in_time(&format!("{place} {what}"), move || act_in(hook, act));
        }
    }
}

fn act_in(hook: Place, act: Act) {
    let (owner, acted) = (Arc::new(Mutex::new(None::<Executor>)), Counter::new());
    let (own, acts) = (Arc::clone(&owner), acted.clone());
    let on_call = move || {
        let executor = own.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(executor) = executor {
            act(executor);
            acts.add();
        }
    };
    let builder = hook(Executor::builder().core_pool_size(1), Box::new(on_call));
    let executor = builder.build().expect("the settings are good");
    let handle = executor.handle();
    *owner.lock().expect("nobody panics") = Some(executor);
    let body = || resume_unwind(Box::new("the failure handler is to be called"));
    // The submission is refused if the hook was faster.
    let due = handle.submit::<()>(body).ok();
    let later = handle.schedule(LONG, || ()).ok();
    if let Some(due) = due {
        due.join_within(LONG).expect("it ends").expect_err("it panics");
    }
    handle.set_executes_existing_delayed_tasks_after_shutdown(false);
    handle.shutdown();
    assert_eq!(handle.await_termination(LONG), Ok(true));
    assert!(later.is_none_or(|later| later.is_cancelled()));
    assert_eq!(acted.get(), 1);
}

/// HK-001: a hook that waits for its own task gets an error at once.
#[test]
fn a_hook_cannot_join_its_own_task() {
    for in_before in [true, false] {
        let (give, take) = std::sync::mpsc::channel::<ScheduledFuture<()>>();
        let (take, answers) = (Mutex::new(take), Log::new());
        let told = answers.clone();
        let join = move || {
            let take = take.lock().unwrap_or_else(PoisonError::into_inner);
            let own = receive(&take, "it is given");
            told.push(matches!(own.wait(), Err(TaskError::WouldDeadlock)));
            told.push(matches!(own.join(), Err(TaskError::WouldDeadlock)));
        };
        let builder = Executor::builder().core_pool_size(2);
        let executor = if in_before {
            builder.before_execute(move |_| join())
        } else {
            builder.after_execute(move |_, _| join())
        };
        let executor = executor.build().expect("the settings are good");
        give.send(executor.submit(|| ()).expect("accepted")).expect("it runs");
        in_time("close", move || executor.close()).expect("not on a worker");
        assert_eq!(answers.entries(), [true, true], "before: {in_before}");
    }
}
