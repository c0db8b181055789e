//! Statistics: what is counted, and that a snapshot never contradicts itself.

use std::{
    collections::HashSet,
    io, panic,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{
    CallerRunsPolicy, ExecutorState, FailurePolicy, Handle, MissedRuns,
    ScheduledThreadPoolExecutor, Statistics, ThreadFactory, Worker,
};

use crate::{
    support::start,
    support::{Counter, LONG, Log, eventually, manual, manual_with, ms},
};

/// A task that reports when it has begun and waits for its gate.
fn gated(begun: &Counter, gate: &Counter) -> impl FnOnce() + Send + 'static {
    let (begun, gate) = (begun.clone(), gate.clone());
    move || {
        begun.add();
        gate.wait_for(1);
    }
}

/// PS-001: no worker is active before the first task, and one is while it runs, as seen by the task
/// and by others.
#[test]
fn a_running_worker_is_active() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    assert_eq!(executor.active_count(), 0);
    let (begun, gate, handle) = (Counter::new(), Counter::new(), executor.handle());
    let body = gated(&begun, &gate);
    let task = move || {
        let inside = handle.active_count();
        body();
        inside
    };
    let future = executor.submit(task).unwrap();
    begun.wait_for(1);
    assert_eq!(executor.active_count(), 1);
    gate.add();
    assert_eq!(future.join_within(LONG).unwrap().unwrap(), 1);
    assert_eq!(executor.active_count(), 0, "who has the result finds it counted");
}

/// PS-002: a task has not completed before it ends, and is counted by the time its future is done.
#[test]
fn a_task_that_has_ended_is_counted_as_completed() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    assert_eq!(executor.completed_task_count(), 0);
    let (begun, gate, handle) = (Counter::new(), Counter::new(), executor.handle());
    let body = gated(&begun, &gate);
    let task = move || {
        let inside = handle.completed_task_count();
        body();
        inside
    };
    let future = executor.submit(task).unwrap();
    begun.wait_for(1);
    assert_eq!(executor.completed_task_count(), 0);
    gate.add();
    assert_eq!(future.join_within(LONG).unwrap().unwrap(), 0);
    assert_eq!(executor.completed_task_count(), 1);
}

/// PS-003: the largest size is zero before the first worker starts, and stays when all have gone.
#[test]
fn the_largest_size_is_kept() {
    let executor = ScheduledThreadPoolExecutor::new(3);
    assert_eq!(executor.largest_pool_size(), 0);
    let (begun, gate) = (Counter::new(), Counter::new());
    for _ in 0..3 {
        executor.execute(gated(&begun, &gate)).unwrap();
    }
    begun.wait_for(3);
    assert_eq!(executor.largest_pool_size(), 3);
    gate.add();
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_eq!((executor.largest_pool_size(), executor.pool_size()), (3, 0));
}

/// PS-004: there is no worker before the first task, and one from then on.
#[test]
fn workers_are_started_when_they_are_needed() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    assert_eq!(executor.pool_size(), 0);
    let (begun, gate, handle) = (Counter::new(), Counter::new(), executor.handle());
    let body = gated(&begun, &gate);
    let task = move || {
        let inside = handle.pool_size();
        body();
        inside
    };
    let future = executor.submit(task).unwrap();
    begun.wait_for(1);
    assert_eq!(executor.pool_size(), 1);
    gate.add();
    assert_eq!(future.join_within(LONG).unwrap().unwrap(), 1);
}

/// PS-010: ten tasks that wait for each other run on ten threads, each with a name of its own, and
/// when the executor is closed none of these threads is left.
#[test]
fn there_are_as_many_threads_as_workers() {
    let (started, stopped) = (Log::new(), Counter::new());
    let (begin, end) = (started.clone(), stopped.clone());
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(10)
        .thread_name("census")
        .on_thread_start(move || {
            begin.push(thread::current().name().map(str::to_owned).expect("it has a name"));
        })
        .on_thread_stop(move || end.add())
        .build()
        .unwrap();
    let meet = Arc::new(Barrier::new(10));
    assert!(started.entries().is_empty());
    let futures = [(); 10].map(|()| {
        let meet = Arc::clone(&meet);
        executor.submit(move || meet.wait()).unwrap()
    });
    futures.iter().for_each(|future| future.wait().unwrap());
    let names: HashSet<_> = started.entries().into_iter().collect();
    assert_eq!(names, (1..=10).map(|number| format!("census-{number}")).collect());
    assert_eq!(stopped.get(), 0);
    executor.close().unwrap();
    assert_eq!((started.entries().len(), stopped.get()), (10, 10));
}

/// PS-011: the number of tasks decreases by those that are cancelled.
#[test]
fn the_number_of_tasks_falls_by_those_that_are_cancelled() {
    let (_clock, executor) = manual(1);
    let futures = [(); 5].map(|()| executor.schedule(LONG, || ()).unwrap());
    assert_eq!((executor.task_count(), executor.pending_count()), (5, 5));
    assert!(futures[1].cancel());
    assert!(futures[3].cancel_and_signal());
    assert_eq!(executor.purge(), 0, "cancelling has removed them");
    assert_eq!((executor.task_count(), executor.pending_count()), (3, 3));
    assert_eq!(executor.statistics().cancelled, 2);
}

/// F1: each task is counted once, by how it ended, and each run of a periodic task as a run;
/// refused tasks are counted separately.
#[test]
fn every_task_is_counted_by_its_outcome() {
    let (clock, executor) = manual(2);
    executor.submit(|| ()).unwrap();
    executor.submit(|| panic::resume_unwind(Box::new("no"))).unwrap();
    executor.schedule(LONG, || ()).unwrap();
    assert!(executor.schedule(LONG, || ()).unwrap().cancel());
    let removed = executor.schedule(LONG, || ()).unwrap();
    assert!(executor.remove(&removed));
    let periodic = executor.schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
    clock.run_for(ms(4));
    let counts = |now: Statistics| {
        [now.submitted, now.completed, now.failed, now.cancelled, now.runs, now.rejected]
    };
    let now = executor.statistics();
    assert_eq!(counts(now), [6, 1, 1, 2, 6, 0]);
    assert_eq!((now.pending, now.active, now.state), (2, 0, ExecutorState::Running));

    executor.shutdown();
    assert!(periodic.is_cancelled());
    executor.submit(|| ()).unwrap_err();
    assert_eq!(executor.statistics().state, ExecutorState::ShuttingDown);
    for task in executor.shutdown_now() {
        task.run();
    }
    eventually("it terminates", || executor.is_terminated());
    let now = executor.statistics();
    assert_eq!(counts(now), [6, 1, 1, 4, 6, 1]);
    assert_eq!((now.pending, now.state), (0, ExecutorState::Terminated));
}

/// A task that is cancelled while it runs is active until its body returns; a periodic task that a
/// shutdown prevents from running again counts as cancelled too.
#[test]
fn a_task_cancelled_while_it_runs_is_active_until_it_returns() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (begun, gate) = (Counter::new(), Counter::new());
    let body = gated(&begun, &gate);
    let cancelled = executor.submit(gated(&begun, &gate)).unwrap();
    let mut body = Some(body);
    let period = Duration::from_nanos(1);
    let periodic = executor.schedule_at_fixed_rate(Duration::ZERO, period, move || {
        body.take().expect("it runs once")();
    });
    begun.wait_for(2);
    assert!(cancelled.cancel());
    executor.shutdown();
    let now = executor.statistics();
    assert_eq!((now.active, now.pending, now.cancelled, now.runs), (2, 0, 0, 0));
    gate.add();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    let now = executor.statistics();
    assert_eq!((now.active, now.pending, now.cancelled, now.runs), (0, 0, 2, 2));
    assert!(periodic.unwrap().is_cancelled());
}

/// Checks what must hold for one snapshot, and for two in their order.
fn check(before: &Statistics, now: &Statistics) {
    let ended = now.completed + now.failed + now.cancelled;
    assert_eq!(now.submitted, now.pending as u64 + now.active as u64 + ended, "{now:?}");
    assert!(now.active <= now.pool_size, "{now:?}");
    assert!(now.pool_size <= now.largest_pool_size, "{now:?}");
    assert!(now.completed + now.failed <= now.runs, "{now:?}");
    let counts = |s: &Statistics| {
        let sizes = [s.largest_pool_size as u64, s.submitted, s.completed, s.failed];
        (sizes, [s.cancelled, s.rejected, s.runs])
    };
    let ((a, b), (c, d)) = (counts(before), counts(now));
    let falls = a.iter().zip(&c).chain(b.iter().zip(&d)).any(|(before, now)| before > now);
    assert!(!falls, "{before:?} and then {now:?}");
    assert!(order(before.state) <= order(now.state), "{before:?} and then {now:?}");
}

fn order(state: ExecutorState) -> usize {
    use ExecutorState::{Running, ShuttingDown, Stopping, Terminated};
    let states = [Running, ShuttingDown, Stopping, Terminated];
    states.iter().position(|other| *other == state).expect("there is no other")
}

/// Submits tasks of every kind and lets them end in every way; returns how many were admitted.
fn produce(executor: &Handle, seed: usize, rounds: usize) -> u64 {
    let (tiny, far) = (Duration::from_micros(20), LONG);
    let mut accepted = 0;
    for round in 0..rounds {
        let submitted = match (round + seed) % 8 {
            0 => executor.submit(|| ()),
            1 => executor.submit(|| panic::resume_unwind(Box::new("no"))),
            2 => executor.schedule(tiny, || ()).inspect(|soon| _ = soon.cancel_and_signal()),
            3 => executor
                .schedule(far, || ())
                .inspect(|late| assert!(late.cancel() || executor.is_shutdown())),
            4 => executor.schedule(far, || ()).inspect(|late| _ = executor.remove(late)),
            5 => executor.schedule_at_fixed_rate(tiny, tiny, || ()).inspect(|periodic| {
                let _ = periodic.join_within(5 * tiny);
                assert!(periodic.cancel() || executor.is_shutdown());
            }),
            6 => executor.schedule_with_fixed_delay(tiny, tiny, third_time_lucky()),
            _ => executor.schedule(far, || ()),
        };
        accepted += u64::from(submitted.is_ok());
    }
    accepted
}

/// A body that ends its task in its third run.
fn third_time_lucky() -> impl FnMut() + Send + 'static {
    let mut left = 3;
    move || {
        left -= 1;
        if left == 0 {
            panic::resume_unwind(Box::new("no more"));
        }
    }
}

/// A thread factory of which one call in fifty succeeds.
fn rarely() -> impl ThreadFactory + 'static {
    let calls = AtomicU64::new(0);
    move |worker: Worker| {
        let is_good = calls.fetch_add(1, Ordering::Relaxed) % 50 == 0;
        if is_good { start(worker) } else { Err(io::Error::other("not now")) }
    }
}

/// PS-012, G20: every snapshot adds up, whatever happens concurrently: every admitted task is
/// pending, active, or has ended in one way; no more tasks are active than there are workers; and
/// from one snapshot to the next no count decreases. This holds while workers start and retire, and
/// while threads fail to start.
#[test]
fn a_snapshot_never_contradicts_itself() {
    for core_timeout in [false, true] {
        let executor = ScheduledThreadPoolExecutor::builder()
            .core_pool_size(3)
            .keep_alive(Duration::from_nanos(1))
            .allows_core_thread_timeout(core_timeout)
            .build()
            .unwrap();
        if !core_timeout {
            executor.set_thread_factory(rarely());
        }
        let (is_over, accepted) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut before = executor.statistics();
                    while !is_over.load(Ordering::SeqCst) {
                        let now = executor.statistics();
                        check(&before, &now);
                        before = now;
                    }
                });
            }
            let producers = [0, 3].map(|seed| {
                let (executor, accepted) = (&executor, &accepted);
                scope.spawn(move || {
                    accepted.fetch_add(produce(executor, seed, 400), Ordering::SeqCst);
                })
            });
            let runs_enough = || executor.statistics().submitted > 300;
            eventually("most have come", runs_enough);
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            executor.shutdown();
            drop(executor.shutdown_now());
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            let terminated = executor.await_termination(LONG);
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(terminated, Ok(true));
        });
        let end = executor.statistics();
        check(&end, &executor.statistics());
        assert_eq!(end.submitted, accepted.into_inner());
        assert_eq!((end.pending, end.active, end.pool_size), (0, 0, 0));
        assert_eq!(end.state, ExecutorState::Terminated);
    }
}

/// PS-013: the `Debug` output of an executor and of its handle is one line for a log, with its
/// phase, the number of workers, and how the tasks have ended.
#[test]
fn debug_shows_state_and_counts() {
    let clock = punctual::ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().thread_name("mailer").core_pool_size(2);
    let executor = builder.clock(clock.clone()).build().unwrap();
    executor.submit(|| ()).unwrap();
    executor.schedule(LONG, || ()).unwrap();
    executor.schedule(LONG, || ()).unwrap().cancel();
    clock.run_until_idle();
    let statistics = executor.statistics();
    let counts = format!("{{ name: \"mailer\", statistics: {statistics:?} }}");
    assert_eq!(format!("{executor:?}"), format!("ScheduledThreadPoolExecutor {counts}"));
    assert_eq!(format!("{:?}", executor.handle()), format!("Handle {counts}"));

    executor.shutdown();
    assert!(format!("{executor:?}").contains("state: ShuttingDown"));
    drop(executor.shutdown_now());
    eventually("it terminates", || executor.is_terminated());
    let shown = format!("{executor:?}");
    assert!(shown.contains("state: Terminated, core_pool_size: 2, pool_size: 0,"), "{shown}");
}

/// Failed runs are counted although the task continues, and among them the runs that took too long;
/// missed runs are counted too; and everything still adds up.
#[test]
fn runs_that_fail_or_are_missed_are_counted() {
    let (clock, executor) = manual(1);
    let task = executor.task().on_failure(FailurePolicy::resume());
    let stubborn = task.schedule_at_fixed_rate(ms(1), ms(1), || panic!("again")).unwrap();
    clock.run_for(ms(21));
    stubborn.cancel();
    let now = executor.statistics();
    assert_eq!((now.runs, now.failed_runs, now.failed, now.cancelled), (21, 21, 0, 1));
    executor.submit::<()>(|| panic!("once")).unwrap().wait().unwrap();
    let now = executor.statistics();
    assert_eq!((now.runs, now.failed_runs, now.failed), (22, 22, 1));
    for (policy, missed) in [
        (MissedRuns::Burst, 0),
        (MissedRuns::Coalesce, 9),
        // The first of the ten is overdue as well.
        (MissedRuns::Skip, 10),
        (MissedRuns::Delay, 9),
    ] {
        let (clock, executor) = manual(1);
        let task = executor.task().missed_runs(policy);
        let beat = task.schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
        clock.run_until_idle();
        clock.advance(ms(10));
        clock.run_until_idle();
        clock.run_for(ms(1));
        beat.cancel();
        assert_eq!(executor.statistics().missed_runs, missed, "{policy:?}");
    }
}

/// Tasks that the caller runs, because there is no room for them, are counted separately, with
/// those that panicked: they were never admitted.
#[test]
fn the_callers_runs_are_counted_apart() {
    let (clock, executor) =
        manual_with(|builder| builder.max_pending(1).rejected_execution_handler(CallerRunsPolicy));
    let waits = executor.schedule(ms(1), || ()).unwrap();
    for number in 0..5 {
        executor.submit(move || assert!(number < 3, "no")).unwrap().wait().unwrap();
    }
    let now = executor.statistics();
    assert_eq!((now.rejected, now.caller_runs, now.caller_panics), (5, 5, 2));
    assert_eq!((now.submitted, now.pending, now.runs, now.failed), (1, 1, 0, 0));
    clock.run_for(ms(1));
    assert!(waits.is_done());
}
