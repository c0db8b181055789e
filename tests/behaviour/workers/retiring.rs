//! Workers that retire just as a task is submitted: no task is left behind, no surplus worker
//! stays, and the executor terminates.

use std::{
    hint,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use punctual::{
    Builder, Handle, ScheduledFuture, ScheduledThreadPoolExecutor, TaskHandle,
    gate::{self, Entry, Tick},
    trigger::on_demand,
};

use crate::support::{Counter, LONG, eventually, manual_with, ms};

const NANO: Duration = Duration::from_nanos(1);
const HOUR: Duration = Duration::from_secs(3600);
const ROUNDS: usize = 400;

/// An executor whose workers retire as soon as they have nothing to do: because there is no core,
/// or because it may time out.
fn fleeting(core_pool_size: usize) -> Builder {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(core_pool_size);
    builder.keep_alive(NANO).allows_core_thread_timeout(core_pool_size > 0)
}

fn spin(turns: usize) {
    (0..turns).for_each(|_| hint::spin_loop());
}

/// A task that is submitted as the last worker retires is run, by that worker or by another.
#[test]
fn a_task_that_comes_when_the_last_worker_goes_is_run() {
    for core in [0, 1, 2] {
        let executor = fleeting(core).build().unwrap();
        for round in 0..ROUNDS {
            let future = executor.submit(move || round).unwrap();
            let outcome = future.join_within(LONG).expect("it is not left behind");
            assert_eq!(outcome.unwrap(), round);
            // From no time to long after the worker has retired.
            spin(round * 7 % 1_009);
        }
        eventually("all have gone", || executor.pool_size() == 0);
        assert_eq!(executor.statistics().completed, ROUNDS as u64);
    }
}

/// G19, M73: a worker that joins a task runs none meanwhile. So the last worker that does not join
/// stays for the awaited task, and retires when no worker joins any more.
#[test]
fn the_last_that_does_not_wait_for_a_task_stays() {
    for core in [0, 1] {
        let (clock, executor) = manual_with(|builder| {
            builder.core_pool_size(2).keep_alive(ms(10)).allows_core_thread_timeout(core == 0)
        });
        executor.prestart_all_core_threads().unwrap();
        let handle = executor.handle();
        let waits = move || handle.schedule(ms(1_000), || 7).unwrap().join().unwrap();
        let outer = executor.submit(waits).unwrap();
        clock.run_until_idle();
        executor.set_core_pool_size(core);
        clock.run_for(ms(1_000));
        eventually("what is waited for has run", || outer.is_done());
        assert_eq!(outer.join().unwrap(), 7);
        clock.run_until_idle();
        clock.run_for(ms(20));
        eventually("who is surplus has gone", || executor.pool_size() == core);
    }
}

/// The same with several submitters, so that some find a worker that others have started.
#[test]
fn tasks_that_come_from_several_threads_when_workers_go_are_run() {
    let executor = fleeting(2).build().unwrap();
    thread::scope(|scope| {
        for seed in 1..=3 {
            let executor = &executor;
            scope.spawn(move || {
                for round in 0..ROUNDS / 2 {
                    let delay = Duration::from_micros((round % 3) as u64 * 20);
                    let future = executor.schedule(delay, || ()).unwrap();
                    future.join_within(LONG).expect("it is not left behind").unwrap();
                    spin(round * seed * 7 % 1_009);
                }
            });
        }
    });
    eventually("all have gone", || executor.pool_size() == 0);
}

/// A task that is submitted as the last worker retires and another thread shuts down is either
/// refused or run; the executor terminates in any case.
#[test]
fn a_task_that_comes_when_the_last_worker_goes_and_all_ends() {
    for round in 0..ROUNDS {
        let executor = fleeting(round % 2).build().unwrap();
        executor.execute(|| ()).unwrap();
        spin(round * 7 % 1_009);
        let handle = executor.handle();
        let racer = thread::spawn(move || {
            spin(round * 11 % 503);
            handle.submit(|| 7)
        });
        spin(round * 13 % 503);
        executor.shutdown();
        let submitted = racer.join().unwrap();
        assert_eq!(executor.await_termination(LONG), Ok(true));
        let counts = executor.statistics();
        assert_eq!((counts.pending, counts.active, counts.pool_size), (0, 0, 0));
        if let Ok(future) = submitted {
            assert_eq!(future.try_join().expect("it has ended").unwrap(), 7);
        }
    }
}

/// The last worker, which stayed for a task, retires when that task is cancelled, at any time: also
/// while it decides how long to sleep.
#[test]
fn the_last_worker_goes_when_its_task_is_cancelled() {
    for delay in [HOUR, Duration::MAX] {
        for round in 0..ROUNDS / 2 {
            let executor = fleeting(round % 2).build().unwrap();
            let future = executor.schedule(delay, || ()).unwrap();
            spin(round * 37 % 10_007);
            assert!(future.cancel());
            eventually("it has gone", || executor.pool_size() == 0);
        }
    }
}

/// Submits tasks that have no moment, each for another reason.
fn parked(executor: &ScheduledThreadPoolExecutor) -> Vec<TaskHandle> {
    let paused = executor.schedule(HOUR, || ()).unwrap().task_handle();
    assert!(paused.pause());
    let on_demand = executor.repeat(on_demand(), || ()).unwrap().task_handle();
    let put_off = executor.task().gate(gate::from_fn(|_: &Tick<'_>| Entry::Again(Duration::MAX)));
    let put_off = put_off.submit(|| ()).unwrap().task_handle();
    let group = executor.group("paused").build().unwrap();
    assert!(group.pause());
    vec![paused, on_demand, put_off, group.task().submit(|| ()).unwrap().task_handle()]
}

/// No worker stays for tasks that wait for no moment, and one comes for each that gets one.
#[test]
fn no_worker_stays_for_what_is_parked() {
    let (clock, executor) =
        manual_with(|builder| builder.keep_alive(ms(1)).allows_core_thread_timeout(true));
    let tasks = parked(&executor);
    clock.run_for(ms(2));
    assert_eq!((executor.pool_size(), executor.pending_count()), (0, tasks.len()));
    assert!(tasks[0].run_now() && tasks[1].run_now());
    clock.run_until_idle();
    assert_eq!(executor.statistics().runs, 2);
    clock.run_for(ms(2));
    assert_eq!((executor.pool_size(), executor.pending_count()), (0, tasks.len() - 1));
    drop(executor.shutdown_now());
}

/// An executor that was shut down, and that keeps tasks for which no worker has stayed, ends with the last of
/// them: whichever way that one goes, and just as the last worker does.
#[test]
fn an_executor_ends_with_the_last_of_its_parked_tasks() {
    let ways: [fn(&ScheduledThreadPoolExecutor, &ScheduledFuture<()>); 3] = [
        |_, task| assert!(task.cancel()),
        |executor, task| assert!(executor.remove(task)),
        |executor, _| drop(executor.shutdown_now()),
    ];
    for round in 0..ROUNDS {
        let builder = fleeting(1 + round % 2);
        let executor =
            builder.continues_existing_periodic_tasks_after_shutdown(true).build().unwrap();
        let task = executor.repeat(on_demand(), || ()).unwrap();
        if round % 4 > 0 {
            spin(round * 37 % 10_007);
        } else {
            eventually("they have gone", || executor.pool_size() == 0);
        }
        executor.shutdown();
        assert_eq!(executor.await_termination(Duration::ZERO), Ok(false));
        ways[round % ways.len()](&executor, &task);
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert!(task.is_done());
    }
}

/// Surplus workers retire, whenever the core size is reduced.
#[test]
fn workers_go_when_the_core_shrinks() {
    let changes: [fn(&Handle); 2] = [
        |executor| executor.set_core_pool_size(0),
        |executor| executor.set_allows_core_thread_timeout(true).unwrap(),
    ];
    for round in 0..ROUNDS {
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1 + round % 2);
        let executor = builder.keep_alive(NANO).build().unwrap();
        executor.prestart_all_core_threads().unwrap();
        spin(round * 37 % 10_007);
        changes[round / 2 % 2](&executor);
        eventually("they have gone", || executor.pool_size() == 0);
    }
}

/// While sizes and times change continuously every task is run, and in the end all workers retire.
#[test]
fn tasks_are_run_while_everything_changes() {
    let executor = fleeting(1).build().unwrap();
    let (ran, is_over) = (Counter::new(), AtomicBool::new(false));
    const TASKS: usize = 200;
    thread::scope(|scope| {
        let submitters = [1, 2].map(|seed| {
            let (executor, ran) = (&executor, &ran);
            scope.spawn(move || {
                for round in 0..TASKS {
                    let ran = ran.clone();
                    let task = move || ran.add();
                    let delay = Duration::from_micros((round % 4) as u64 * 10);
                    executor.schedule(delay, task).unwrap();
                    spin(round * seed * 7 % 499);
                }
            })
        });
        scope.spawn(|| {
            for size in (0..4).cycle() {
                executor.set_core_pool_size(size);
                executor.set_allows_core_thread_timeout(size % 2 == 0).unwrap();
                executor.set_keep_alive(Duration::from_nanos(1 + 100 * size as u64)).unwrap();
                if size == 3 {
                    executor.prestart_core_thread().unwrap();
                }
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
        ran.wait_for(2 * TASKS);
        is_over.store(true, Ordering::SeqCst);
    });
    executor.set_core_pool_size(0);
    eventually("all have gone", || executor.pool_size() == 0);
    assert_eq!(executor.statistics().completed, 2 * TASKS as u64);
}
