//! How many workers there are: which start, which stay and which retire when they are idle, and the
//! effect of changing the numbers while they work.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    time::Duration,
};

use punctual::{
    CancelReason, Handle, ManualClock, RejectedTask, Rejection, ScheduledFuture,
    ScheduledThreadPoolExecutor, Submission, TaskRun, Worker, current_task,
};

use crate::{
    support::start,
    support::{Counter, LONG, assert_cancelled, assert_terminated, eventually, manual, ms},
};

const NANO: Duration = Duration::from_nanos(1);
const HOUR: Duration = Duration::from_secs(3600);

/// An executor on a clock that stands still, whose workers may retire.
fn elastic(
    core_pool_size: usize,
    keep_alive: Duration,
    core_timeout: bool,
) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(core_pool_size)
        .keep_alive(keep_alive)
        .allows_core_thread_timeout(core_timeout)
        .clock(clock.clone())
        .build()
        .expect("the settings are good");
    (clock, executor)
}

/// CN-022: core workers that may time out retire when they have been idle for the keep-alive, not a
/// nanosecond before; the setting can still be read after a shutdown.
#[test]
fn core_workers_go_when_they_have_been_idle_long_enough() {
    let (clock, executor) = elastic(10, ms(30), true);
    for _ in 0..10 {
        executor.submit(|| ()).unwrap();
    }
    clock.run_for(ms(30) - NANO);
    assert_eq!(executor.pool_size(), 10);
    clock.run_for(NANO);
    assert_eq!((executor.pool_size(), executor.largest_pool_size()), (0, 10));

    executor.submit(|| ()).unwrap();
    assert_eq!(executor.pool_size(), 1, "the next submission starts one anew");
    executor.shutdown();
    assert!(executor.allows_core_thread_timeout());
}

/// Core workers that may not time out stay, however long they are idle.
#[test]
fn core_workers_stay() {
    let (clock, executor) = elastic(3, ms(30), false);
    assert_eq!(executor.prestart_all_core_threads().unwrap(), 3);
    clock.run_for(1000 * HOUR);
    assert_eq!(executor.pool_size(), 3);
    executor.set_allows_core_thread_timeout(true).unwrap();
    clock.run_until_idle();
    assert_eq!(executor.pool_size(), 0, "they have been idle for longer than the keep-alive");
}

/// A worker that has something to do is not idle: only the time after it counts.
#[test]
fn being_idle_begins_with_the_end_of_the_last_task() {
    let (clock, executor) = elastic(1, ms(10), true);
    for _ in 0..5 {
        executor.submit(|| ()).unwrap();
        clock.run_for(ms(10) - NANO);
        assert_eq!(executor.pool_size(), 1);
    }
    clock.run_for(NANO);
    assert_eq!(executor.pool_size(), 0);
    assert_eq!(executor.largest_pool_size(), 1, "it was the same one all the time");
}

/// CN-027: prestarting starts one core worker after the other, returns whether one was missing, and
/// takes a larger core into account.
#[test]
fn workers_can_be_started_one_by_one_before_they_are_needed() {
    let (_clock, executor) = manual(2);
    let start = || (executor.prestart_core_thread().unwrap(), executor.pool_size());
    assert_eq!(executor.pool_size(), 0);
    assert_eq!([start(), start(), start()], [(true, 1), (true, 2), (false, 2)]);
    executor.set_core_pool_size(4);
    assert_eq!(executor.pool_size(), 2, "nothing waits for more");
    assert_eq!([start(), start(), start()], [(true, 3), (true, 4), (false, 4)]);
    executor.shutdown();
    assert!(!executor.prestart_core_thread().unwrap());
}

/// CN-028: prestarting all starts the missing ones, and returns how many these were.
#[test]
fn all_workers_can_be_started_before_they_are_needed() {
    let (_clock, executor) = manual(2);
    let start = || (executor.prestart_all_core_threads().unwrap(), executor.pool_size());
    assert_eq!([start(), start()], [(2, 2), (0, 2)]);
    executor.set_core_pool_size(4);
    assert_eq!([start(), start()], [(2, 4), (0, 4)]);
    executor.set_core_pool_size(0);
    assert_eq!(start().0, 0);
}

/// F27, CN-040: without a core a delayed task runs all the same, also after a shutdown, and the
/// executor terminates.
#[test]
fn without_a_core_a_delayed_task_runs() {
    let (clock, executor) = manual(0);
    let future = executor.schedule(ms(12), || 7).unwrap();
    executor.shutdown();
    clock.run_for(ms(12) - NANO);
    assert!(!executor.is_terminated());
    clock.run_for(NANO);
    eventually("it terminates", || executor.is_terminated());
    assert_eq!(future.try_join().unwrap().unwrap(), 7);
    assert_eq!(executor.core_pool_size(), 0);
    assert_terminated(&executor);
}

/// CN-041: without a core the single worker sleeps until its task is due, instead of one keep-alive
/// at a time; when the task is gone it retires after the keep-alive.
#[test]
fn without_a_core_the_worker_sleeps_until_its_task_is_due() {
    let (clock, executor) = elastic(0, ms(10), false);
    let future = executor.schedule(HOUR, || ()).unwrap();
    clock.run_until_idle();
    let now = executor.statistics();
    assert_eq!((now.pool_size, now.largest_pool_size, now.active), (1, 1, 0));
    assert_eq!((executor.task_count(), executor.completed_task_count()), (1, 0));
    assert_eq!(clock.next_deadline(), Some(HOUR));
    clock.run_for(HOUR - NANO);
    assert_eq!(executor.pool_size(), 1);
    clock.run_for(NANO);
    assert!(future.is_done());
    assert_eq!((clock.next_deadline(), executor.pool_size()), (Some(ms(10)), 1));
    clock.run_for(ms(10));
    assert_eq!((clock.next_deadline(), executor.pool_size()), (None, 0));
}

/// CN-042: while one task is pending for long a single worker is started for it, and it stays,
/// whether core threads may time out or not.
#[test]
fn one_task_that_waits_needs_one_worker() {
    for core_timeout in [false, true] {
        let (clock, calls) = (ManualClock::new(), Counter::new());
        let count = calls.clone();
        let executor = ScheduledThreadPoolExecutor::builder()
            .core_pool_size(10)
            .keep_alive(ms(1))
            .allows_core_thread_timeout(core_timeout)
            .thread_factory(move |worker: Worker| {
                count.add();
                start(worker)
            })
            .clock(clock.clone())
            .build()
            .unwrap();
        let future = executor.schedule(10 * LONG, || ()).unwrap();
        clock.run_for(ms(12));
        assert_eq!((calls.get(), executor.pool_size()), (1, 1));
        clock.run_for(10 * LONG);
        assert!(future.is_done());
        assert_eq!(calls.get(), 1);
    }
}

/// If several idle workers may retire, one stays as long as a task is pending, and retires as
/// well when that task is cancelled.
#[test]
fn the_last_worker_stays_for_waiting_tasks() {
    let (clock, executor) = elastic(4, ms(10), true);
    executor.prestart_all_core_threads().unwrap();
    let waiting = executor.schedule(Duration::MAX, || ()).unwrap();
    clock.run_for(HOUR);
    assert_eq!(executor.pool_size(), 1);
    assert!(waiting.cancel());
    clock.run_for(ms(10));
    assert_eq!(executor.pool_size(), 0);
}

/// PS-006: with ten pending periodic tasks a smaller core lets idle workers retire, and a larger
/// one starts workers at once; `shutdown_now` ends it.
#[test]
fn the_core_shrinks_and_grows_while_tasks_wait() {
    let (clock, executor) = manual(10);
    for number in 1..=10 {
        let second = ms(1000);
        executor.schedule_at_fixed_rate(number * ms(100), second, || ()).unwrap();
    }
    assert_eq!(executor.pool_size(), 10);
    clock.run_for(ms(2500));
    executor.set_core_pool_size(7);
    clock.run_for(executor.keep_alive());
    assert_eq!(executor.pool_size(), 7);
    executor.set_core_pool_size(10);
    assert_eq!(executor.pool_size(), 10);
    executor.set_core_pool_size(13);
    assert_eq!((executor.pool_size(), executor.largest_pool_size()), (13, 13));
    assert_eq!(executor.shutdown_now().len(), 10);
    eventually("it terminates", || executor.is_terminated());
}

/// A larger core starts no more workers than there are pending tasks.
#[test]
fn growing_starts_as_many_workers_as_there_is_work_for() {
    let (_clock, executor) = manual(1);
    let futures = [(); 3].map(|()| executor.schedule(HOUR, || ()).unwrap());
    assert_eq!(executor.pool_size(), 1);
    executor.set_core_pool_size(100);
    assert_eq!(executor.pool_size(), 4);
    drop(futures);
}

/// PS-007: a smaller core affects no busy worker; idle workers retire after a keep-alive that was
/// shortened, and core threads retire if they may; the counts reflect all of this.
#[test]
fn a_smaller_core_and_a_shorter_keep_alive_act_on_idle_workers() {
    let (clock, executor) = elastic(12, ms(3 * 60_000), false);
    let (begun, gate) = (Counter::new(), Counter::new());
    for _ in 0..21 {
        let (begun, gate) = (begun.clone(), gate.clone());
        let task = move || {
            begun.add();
            gate.wait_for(1);
        };
        executor.submit(task).unwrap();
    }
    begun.wait_for(12);
    let seen = || {
        let now = executor.statistics();
        (now.active, now.pool_size, now.largest_pool_size, executor.task_count(), now.completed)
    };
    assert_eq!(seen(), (12, 12, 12, 21, 0));
    executor.set_core_pool_size(6);
    assert_eq!(seen(), (12, 12, 12, 21, 0));
    gate.add();
    clock.run_until_idle();
    assert_eq!(seen(), (0, 12, 12, 21, 21));
    executor.set_keep_alive(ms(7)).unwrap();
    clock.run_for(ms(7) - NANO);
    assert_eq!(executor.pool_size(), 12);
    clock.run_for(NANO);
    assert_eq!(seen(), (0, 6, 12, 21, 21));
    executor.set_allows_core_thread_timeout(true).unwrap();
    clock.run_for(ms(7));
    assert_eq!(seen(), (0, 0, 12, 21, 21));
}

/// PS-009: a hundred tasks that make their own executor larger and smaller while they run do not
/// affect each other: no token is raised, and no worker retires before it is idle.
#[test]
fn resizing_disturbs_no_running_task() {
    const WORKERS: usize = 100;
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(WORKERS).keep_alive(NANO);
    let executor = builder.build().unwrap();
    let (begun, resized, gate) = (Counter::new(), Counter::new(), Counter::new());
    let futures: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (begun, resized, gate) = (begun.clone(), resized.clone(), gate.clone());
            let handle = executor.handle();
            let task = move || {
                begun.add();
                begun.wait_for(WORKERS);
                handle.set_core_pool_size(WORKERS);
                handle.set_core_pool_size(1);
                resized.add();
                gate.wait_for(1);
                current_task().unwrap().token().is_cancelled()
            };
            executor.submit(task).unwrap()
        })
        .collect();
    resized.wait_for(WORKERS);
    assert_eq!((executor.pool_size(), executor.core_pool_size()), (WORKERS, 1));
    gate.add();
    for future in futures {
        assert!(!future.join_within(LONG).unwrap().unwrap());
    }
    eventually("those that are too many go", || executor.pool_size() == 1);
}

/// An executor whose factory, before it returns, waits until the new worker sleeps, and then
/// performs this action on its executor.
fn slow_to_start(
    core_pool_size: usize,
    act: fn(&Handle),
) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let (clock, own) = (ManualClock::new(), Arc::new(OnceLock::<Handle>::new()));
    let (in_factory, handle) = (clock.clone(), Arc::clone(&own));
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(core_pool_size)
        .keep_alive(ms(10))
        .clock(clock.clone())
        .decorate_task(|task: &Submission<'_>| {
            assert!(task.name() != Some("impossible"), "no such task");
            |next: TaskRun<'_>| next.run()
        })
        .thread_factory(move |worker: Worker| {
            let thread = start(worker);
            in_factory.run_until_idle();
            act(handle.get().expect("it is set"));
            in_factory.run_until_idle();
            thread
        })
        .build()
        .unwrap();
    assert!(own.set(executor.handle()).is_ok());
    (clock, executor)
}

/// If the core size is reduced while a worker is being started, a surplus worker retires after the
/// keep-alive, although it fell asleep before its start was over.
#[test]
fn a_core_that_shrinks_while_a_worker_is_being_started() {
    let (clock, executor) = slow_to_start(2, |own| {
        if own.pool_size() == 2 {
            own.set_core_pool_size(1);
        }
    });
    assert_eq!(executor.prestart_all_core_threads().unwrap(), 2);
    clock.run_until_idle();
    // This does not use `run_for`, which makes every worker check again.
    assert_eq!(clock.next_deadline(), Some(ms(10)));
    clock.run_for(ms(10));
    assert_eq!(executor.pool_size(), 1);
}

/// Without a core a worker that was started for a failed submission retires after the keep-alive.
#[test]
fn a_worker_that_was_started_for_nothing_goes() {
    let (clock, executor) = slow_to_start(0, |_| ());
    let submit = || executor.task().name("impossible").execute(|| ());
    assert!(catch_unwind(AssertUnwindSafe(submit)).is_err());
    assert_eq!(executor.pool_size(), 1);
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(ms(10)));
    clock.run_for(ms(10));
    assert_eq!(executor.pool_size(), 0);
}

/// Makes the only worker stay for a task that is never due, which it schedules itself.
fn wait_for_ever(clock: &ManualClock, executor: &Handle) -> ScheduledFuture<()> {
    let handle = executor.clone();
    let scheduling = executor.submit(move || handle.schedule(Duration::MAX, || ()));
    clock.run_until_idle();
    assert_eq!((executor.pool_size(), clock.next_deadline()), (1, None), "it stays");
    scheduling.unwrap().try_join().unwrap().unwrap().unwrap()
}

/// Without a core the worker retires as well when the task that it stayed for was displaced by
/// another task, which was not admitted after all.
#[test]
fn a_worker_whose_task_was_discarded_goes() {
    let clock = ManualClock::new();
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(0)
        .keep_alive(ms(10))
        .max_pending(1)
        .rejected_execution_handler(|task: RejectedTask<'_>| -> Rejection {
            drop(task.discard_oldest());
            panic!("undecided");
        })
        .clock(clock.clone())
        .build()
        .unwrap();
    let discarded = wait_for_ever(&clock, &executor);
    let submit = || executor.schedule(HOUR, || ());
    assert!(catch_unwind(AssertUnwindSafe(submit)).is_err());
    assert_cancelled(&discarded, CancelReason::Rejected);
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(ms(10)));
}

/// A worker that stayed because it was the last is not woken when there is another: the other one
/// retires, if it has nothing to do.
#[test]
fn a_worker_beside_the_one_that_stays_goes() {
    let (clock, executor) = elastic(1, ms(10), true);
    let _waiting = wait_for_ever(&clock, &executor);
    executor.set_core_pool_size(2);
    assert_eq!(executor.pool_size(), 2, "something waits");
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(ms(10)));
    clock.advance(ms(10));
    clock.run_until_idle();
    assert_eq!((executor.pool_size(), clock.next_deadline()), (1, None));
}
