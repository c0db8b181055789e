//! Which waits are refused in the thread that drives, and how it waits instead.

use std::{
    future::{poll_fn, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    task::Poll,
    thread,
};

use punctual::{
    BlockPolicy, ExecutorCompletionService, InvokeError, ManualClock, RejectionReason,
    ScheduledThreadPoolExecutor, TaskError, WouldDeadlock,
};

use super::{SECOND, driven, driven_with, runs};
use crate::support::{LONG, elsewhere, ms, receive};

/// G60, M199: a wait that could never end is refused, in a task and between two calls; with a time limit of the task, too,
/// since there is no timer thread. Once the task has ended it is no wait.
#[test]
fn a_wait_at_home_is_refused() {
    let (_, mut executor) = driven();
    let plain = executor.submit(|| 1).unwrap();
    let limited = executor.task().timeout(SECOND).submit(|| 2).unwrap();
    for task in [&plain, &limited] {
        assert!(matches!(task.join(), Err(TaskError::WouldDeadlock)));
        assert!(matches!(task.wait(), Err(TaskError::WouldDeadlock)));
    }
    let later = executor.task().timeout(SECOND).schedule(SECOND, || 3).unwrap();
    let inside = executor.submit(move || later.join()).unwrap();
    assert_eq!(executor.run_due(), 3);
    assert_eq!([plain, limited].map(|task| task.join().unwrap()), [1, 2]);
    assert!(matches!(inside.join().unwrap(), Err(TaskError::WouldDeadlock)));
}

#[test]
fn so_are_waits_for_several_tasks() {
    let (_, mut executor) = driven();
    let refused = executor.invoke_all([|| 1, || 2]);
    assert!(matches!(refused, Err(InvokeError::WouldDeadlock)), "{refused:?}");
    let service = ExecutorCompletionService::new(&executor.handle());
    service.submit(|| 4).unwrap();
    service.push(executor.task().timeout(SECOND).submit(|| 4).unwrap());
    assert!(service.take().is_err());
    executor.run_due();
    assert_eq!(service.take().unwrap().unwrap().join().unwrap(), 4);
}

/// Nor does a submission wait for room that only this thread could make.
#[test]
fn a_submission_at_home_does_not_wait_for_room() {
    let block = BlockPolicy::new(LONG);
    let (_, mut executor) =
        driven_with(|builder| builder.max_pending(1).rejected_execution_handler(block));
    executor.execute(|| ()).unwrap();
    let refused = executor.execute(|| ()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::Saturated));
    assert_eq!(executor.run_due(), 1);
}

#[test]
fn a_wait_for_the_end_is_refused_until_it_has_come() {
    let (_, mut executor) = driven();
    executor.execute(|| ()).unwrap();
    let refused: Result<bool, WouldDeadlock> = executor.await_termination(SECOND);
    assert!(refused.is_err());
    assert_eq!(executor.await_termination(SECOND), refused);
    executor.shutdown();
    assert_eq!(executor.await_termination(SECOND), refused);
    executor.run_due();
    assert_eq!(executor.await_termination(SECOND), Ok(true));
}

/// M200: each executor remembers by itself that this is its thread, in whichever order they are dropped.
#[test]
fn executors_come_and_go_in_any_order() {
    let (_, mut first) = driven();
    let (_, second) = driven();
    let (_, third) = driven();
    let waits = [&*first, &*second, &*third].map(|executor| executor.submit(|| ()).unwrap());
    let refused = |task: usize| matches!(waits[task].join(), Err(TaskError::WouldDeadlock));
    assert!(refused(0) && refused(1) && refused(2));
    drop(second);
    assert!(refused(0) && !refused(1) && refused(2), "it was run by the drop");
    drop(third);
    assert!(refused(0));
    first.run_due();
    assert!(!refused(0));
}

/// Other threads wait as always, and on other executors this thread does.
#[test]
fn other_waits_are_not_refused() {
    let (_, mut executor) = driven();
    let task = executor.submit(|| 1).unwrap();
    let waiter = elsewhere(move || task.join().unwrap());
    while executor.run_due() == 0 {}
    assert_eq!(waiter.get(), 1);
    let other = ScheduledThreadPoolExecutor::new(1);
    assert_eq!(other.submit(|| 2).unwrap().join().unwrap(), 2);
    let (tell, told) = mpsc::channel();
    let handle = other.handle();
    executor.execute(move || tell.send(handle.submit(|| 3).unwrap().join()).unwrap()).unwrap();
    executor.run_due();
    assert_eq!(told.recv().unwrap().unwrap(), 3);
}

#[test]
fn the_caller_drives_until_a_future_is_ready() {
    let mut executor = ScheduledThreadPoolExecutor::builder().build_driven().unwrap();
    assert_eq!(executor.run_until(ready(1)), 1);
    let task = executor.schedule(ms(2), || 2).unwrap();
    assert_eq!(executor.run_until(task).unwrap(), 2);
    let sleep = executor.sleep(ms(2));
    assert!(executor.run_until(sleep).is_ok());
    // Another thread submits, and another executor wakes.
    let (handle, other) = (executor.handle(), ScheduledThreadPoolExecutor::new(1));
    let submitted = other.submit(move || handle.submit(|| 3).unwrap()).unwrap();
    let inner = executor.run_until(submitted).unwrap();
    assert_eq!(executor.run_until(inner).unwrap(), 3);
}

/// A clock that goes on by itself goes on while the caller waits, and not further than it has to.
#[test]
fn time_passes_while_the_caller_waits() {
    let (clock, mut executor) = driven();
    clock.set_auto_advance(true);
    let beat = executor.schedule_at_fixed_rate(SECOND, SECOND, || ()).unwrap();
    let task = executor.schedule(10 * SECOND, || "tea").unwrap();
    assert_eq!(executor.run_until(task).unwrap(), "tea");
    assert_eq!(clock.elapsed(), 10 * SECOND);
    assert_eq!(runs(&executor), [10], "it became due before the task at that moment");
    beat.cancel();
    executor.schedule(SECOND, || ()).unwrap();
    executor.close();
    assert_eq!(clock.elapsed(), 11 * SECOND);
}

/// The clock counts a driver that waits as one of its workers, and forgets it, also if the future panics.
#[test]
fn the_clock_knows_a_driver_that_waits() {
    let (clock, mut executor) = driven();
    let wrong = catch_unwind(AssertUnwindSafe(|| {
        executor.run_until(poll_fn(|_| -> Poll<()> { panic!("the future") }))
    }));
    assert!(wrong.is_err());
    clock.run_until_idle();
    let (tell, told) = mpsc::channel();
    let driver = thread::spawn({
        let clock = clock.clone();
        move || {
            let builder = ScheduledThreadPoolExecutor::builder().clock(clock);
            let mut executor = builder.build_driven().unwrap();
            let (handle, mut sender) = (executor.handle(), Some(tell));
            let end = handle.termination();
            let ready = poll_fn(move |_| {
                sender.take().into_iter().for_each(|tell| tell.send(handle.clone()).unwrap());
                Poll::<()>::Ready(())
            });
            executor.run_until(async {
                ready.await;
                end.await;
            });
        }
    });
    let handle = receive(&told, "it is driven");
    let task = handle.schedule(SECOND, || "tea").unwrap();
    clock.run_for(SECOND);
    assert_eq!(task.try_join().unwrap().unwrap(), "tea");
    handle.shutdown();
    driver.join().unwrap();
    clock.run_until_idle();
}

/// A task may drive another executor of its thread.
#[test]
fn a_task_drives_another_executor() {
    let clock = ManualClock::new();
    clock.set_auto_advance(true);
    let (shown, outer) = (clock.clone(), ScheduledThreadPoolExecutor::builder());
    let mut outer = outer.clock(clock.clone()).build_driven().unwrap();
    let task = outer.submit(move || {
        let mut inner = ScheduledThreadPoolExecutor::builder().clock(shown).build_driven().unwrap();
        let answer = inner.schedule(SECOND, || 7).unwrap();
        inner.run_until(answer).unwrap()
    });
    assert_eq!(outer.run_until(task.unwrap()).unwrap(), 7);
    assert_eq!(clock.elapsed(), SECOND);
    drop(outer);
    clock.run_until_idle();
}
