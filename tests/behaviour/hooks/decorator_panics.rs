//! Decorators and wrappers that panic, and submissions of decorated tasks that are refused.

use std::{
    panic::{self, AssertUnwindSafe, panic_any},
    sync::{Arc, Mutex},
};

use punctual::{
    Builder, CancelReason, FailurePolicy, FailureSource, RejectedTask,
    ScheduledThreadPoolExecutor as Executor, Submission, TaskError, TaskRun,
};

use crate::{
    hooks::decoration::counting,
    support::{Bomb, Counter, DropToken, Drops, Log, hold, in_time, manual_with, ms, worker_of},
};

/// When a wrapper panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Before,
    After,
    /// After the body has panicked, replacing the body's panic.
    Instead,
}

fn throwing(builder: Builder, when: When) -> Builder {
    builder.decorate_task(move |task: &Submission<'_>| {
        let is_meant = task.name().is_some();
        move |next: TaskRun<'_>| {
            assert!(!is_meant || when != When::Before, "the wrapper");
            let ran = panic::catch_unwind(AssertUnwindSafe(|| next.run()));
            assert!(!is_meant || when != When::After, "the wrapper");
            match ran {
                Ok(done) => done,
                Err(_) => panic_any("the wrapper"),
            }
        }
    })
}

/// F7, HK-037: a wrapper that panics, before the body, after it, or replacing its panic, ends its
/// task with that panic, which is reported as the task's; the remaining closure and result are
/// dropped once, and may panic as well; the worker survives.
#[test]
fn a_wrapper_that_panics_fails_its_run() {
    for when in [When::Before, When::After, When::Instead] {
        let (reports, outcomes) = (Log::new(), Log::new());
        let (told, seen) = (reports.clone(), outcomes.clone());
        let (_clock, executor) = manual_with(|builder| {
            throwing(builder, when)
                .failure_handler(move |report| told.push((report.source(), report.to_string())))
                .after_execute(move |_, outcome| seen.push(outcome.is_ok()))
        });
        let worker = worker_of(&executor);
        let (closures, results, body_ran) = (Drops::new(), Drops::new(), Counter::new());
        // If the call drops it during the body's own panic, nothing could contain the second panic.
        let bomb = (when == When::Before).then(|| Bomb("a capture"));
        let (captures, result, ran) = ((closures.token(), bomb), results.clone(), body_ran.clone());
        let task = executor.task().name("fails").submit(move || {
            hold(&captures);
            ran.add();
            assert!(when != When::Instead, "the body");
            (result.token(), Bomb("a result"))
        });
        let task = task.expect("accepted");
        assert_eq!(worker_of(&executor), worker, "{when:?}");
        let panic = task.join().expect_err("it failed").into_failure().expect("a panic");
        assert_eq!(panic.message(), "the wrapper");
        assert_eq!(body_ran.get(), usize::from(when != When::Before));
        let has_result = usize::from(when == When::After);
        assert_eq!((closures.count(), results.count()), (1, has_result), "{when:?}");
        let [(FailureSource::Task, line)] = &reports.entries()[..] else { panic!("{reports:?}") };
        assert!(line.contains("decorator_panics.rs") && line.ends_with(": the wrapper"), "{line}");
        assert_eq!(outcomes.entries().iter().filter(|is_ok| !**is_ok).count(), 1);
    }
}

/// HK-031: a panic of a wrapper is a failure of a periodic run: a periodic task that resumes
/// continues with the same wrapper and closure.
#[test]
fn a_periodic_task_goes_on_after_its_wrapper_panicked() {
    let (wrapped, wrappers, closures) = (Counter::new(), Drops::new(), Drops::new());
    let (count, tokens) = (wrapped.clone(), wrappers.clone());
    let (clock, executor) = manual_with(|builder| {
        builder.decorate_task(move |_: &Submission<'_>| {
            let (count, token, mut runs) = (count.clone(), tokens.token(), 0);
            move |next: TaskRun<'_>| {
                hold(&token);
                count.add();
                runs += 1;
                assert!(runs % 2 == 0, "the wrapper");
                next.run()
            }
        })
    });
    let (runs, capture) = (Counter::new(), closures.token());
    let ran = runs.clone();
    let task = executor.task().on_failure(FailurePolicy::resume());
    let series = task.schedule_at_fixed_rate(ms(1), ms(1), move || {
        hold(&capture);
        ran.add();
    });
    let series = series.expect("accepted");
    clock.run_for(ms(10));
    assert_eq!((wrapped.get(), runs.get()), (10, 5));
    assert_eq!(series.last_failure().map(|failed| failed.run_number()), Some(9));
    assert_eq!((wrappers.count(), closures.count()), (0, 0));
    assert!(series.cancel());
    assert_eq!((wrappers.count(), closures.count()), (1, 1));
}

/// A method that submits a closure with this capture.
type Submit = fn(&Executor, (DropToken, Bomb));

const SUBMITS: [Submit; 6] = [
    |executor, capture| drop(executor.execute(move || hold(&capture))),
    |executor, capture| drop(executor.submit(move || hold(&capture))),
    |executor, capture| drop(executor.schedule(ms(1), move || hold(&capture))),
    |executor, capture| drop(executor.schedule_at_fixed_rate(ms(1), ms(1), move || hold(&capture))),
    |executor, capture| drop(executor.task().submit(move || hold(&capture))),
    |executor, capture| {
        let task = executor.task().timeout(ms(1));
        drop(task.submit(move || {
            hold(&capture);
            Bomb("a result")
        }));
    },
];

/// SO-010: the panic of a decorator propagates to the submitter: nothing is queued, the closure is
/// dropped, even if a capture panics then, and the executor keeps working.
#[test]
fn a_decorator_that_panics_panics_in_the_submitter() {
    for submit in SUBMITS {
        let mut calls = 0;
        let calls_left = Mutex::new(move || {
            calls += 1;
            calls == 1
        });
        let (_clock, executor) = manual_with(|builder| {
            builder.decorate_task(move |_: &Submission<'_>| {
                let fails = calls_left.lock().expect("nobody panics while it is held")();
                assert!(!fails, "the decorator");
                |next: TaskRun<'_>| next.run()
            })
        });
        let drops = Drops::new();
        let capture = (drops.token(), Bomb("a capture"));
        let submitted = panic::catch_unwind(AssertUnwindSafe(|| submit(&executor, capture)));
        let payload = submitted.expect_err("it goes to the submitter");
        assert_eq!(payload.downcast_ref(), Some(&"the decorator"));
        assert_eq!((drops.count(), executor.pending_count()), (1, 0));
        assert_eq!(executor.statistics().submitted, 0);
        worker_of(&executor);
        executor.close().expect("not on a worker");
    }
}

/// SO-010: a decorated task that is refused comes back inside its wrapper, which is dropped with it
/// and may panic then without hiding anything; once the task has been run by hand, both are gone.
#[test]
fn a_refused_task_comes_back_decorated() {
    let (wrapped, wrappers) = (Counter::new(), Drops::new());
    let (count, tokens) = (wrapped.clone(), wrappers.clone());
    let (_clock, executor) = manual_with(|builder| {
        builder.decorate_task(move |_: &Submission<'_>| {
            let (count, captures) = (count.clone(), (tokens.token(), Bomb("a wrapper")));
            move |next: TaskRun<'_>| {
                hold(&captures);
                count.add();
                next.run()
            }
        })
    });
    executor.shutdown();
    let drops = Drops::new();
    let capture = drops.token();
    let body = move || hold(&capture);
    let refused = executor.submit(body).expect_err("shut down");
    assert_eq!((drops.count(), wrappers.count(), wrapped.get()), (0, 0, 0));
    refused.into_task().run();
    assert_eq!((drops.count(), wrappers.count(), wrapped.get()), (1, 1, 1));
    let refused = executor.schedule(ms(1), || ()).expect_err("shut down");
    assert!(refused.to_string().contains("the executor was shut down"), "{refused}");
    drop(refused);
    assert_eq!((wrappers.count(), wrapped.get()), (2, 1));
    let periodic = executor.schedule_with_fixed_delay(ms(1), ms(1), || ());
    periodic.expect_err("shut down").into_task().run();
    assert_eq!((wrappers.count(), wrapped.get()), (3, 2));
    drop(executor.task().timeout(ms(1)).schedule(ms(1), || ()).expect_err("shut down"));
    assert_eq!((wrappers.count(), wrapped.get()), (4, 2));
}

/// SO-010: a decorator may shut down or use the executor that calls it; the submission is then
/// refused, or runs after the tasks that the decorator submitted.
#[test]
fn a_decorator_may_use_its_executor() {
    let owner = Arc::new(Mutex::new(None::<Executor>));
    let (own, order) = (Arc::clone(&owner), Log::new());
    let log = order.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.decorate_task(move |task: &Submission<'_>| {
            let executor = task.name().and_then(|_| own.lock().expect("free").take());
            if let Some(executor) = executor {
                let log = log.clone();
                executor.execute(move || log.push("the decorator's")).expect("accepted");
                if task.name() == Some("closes") {
                    executor.close().expect("it waits for nobody but the task");
                } else {
                    *own.lock().expect("free") = Some(executor);
                }
            }
            |next: TaskRun<'_>| next.run()
        })
    });
    let handle = executor.handle();
    *owner.lock().expect("free") = Some(executor);
    let log = order.clone();
    handle.task().name("submits").execute(move || log.push("the submitter's")).expect("accepted");
    clock.run_until_idle();
    assert_eq!(order.entries(), ["the decorator's", "the submitter's"]);
    in_time("close", move || {
        let refused = handle.task().name("closes").submit(|| ());
        assert!(refused.is_err() && handle.is_terminated());
    });
    assert_eq!(order.entries().len(), 3);
}

/// SO-010: a decorated task that is rejected and run by the submitter runs inside its wrapper; one
/// that is discarded drops the wrapper.
#[test]
fn a_refused_task_keeps_its_wrapper() {
    let (runs, wrappers) = (Counter::new(), Drops::new());
    let (_clock, executor) = manual_with(|builder| {
        let handler = |task: RejectedTask<'_>| {
            if task.name().is_some() { task.run() } else { task.discard() }
        };
        counting(builder, &runs, &wrappers).rejected_execution_handler(handler)
    });
    executor.shutdown();
    let ran = executor.task().name("runs").submit(|| 7).expect("it is run");
    assert!(matches!(ran.try_join(), Some(Ok(7))));
    assert_eq!((runs.get(), wrappers.count()), (1, 1));
    let discarded = executor.submit(|| 7).expect("it is discarded");
    let cancelled = discarded.try_join();
    assert!(matches!(cancelled, Some(Err(TaskError::Cancelled(CancelReason::Rejected)))));
    assert_eq!((runs.get(), wrappers.count()), (1, 2));
}
