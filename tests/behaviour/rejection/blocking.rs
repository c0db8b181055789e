//! Waiting for room: until there is some, until the limit, or until a shutdown; and no released
//! permit is lost while a submitter waits for one.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use punctual::{
    BlockPolicy, Handle, ManualClock, RejectedExecutionError, RejectedTask, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskState,
};

use crate::{
    rejection::policies::{HOUR, Why, bounded, occupy, why},
    rounds::rounds,
    support::{Counter, Elsewhere, LONG, elsewhere, eventually, in_time, ms},
};

const NANO: Duration = Duration::from_nanos(1);

type Submitted = Result<ScheduledFuture<()>, RejectedExecutionError>;

/// A full executor, in which submissions wait this long for room.
fn full(timeout: Duration) -> (ManualClock, Executor, ScheduledFuture<()>) {
    let (clock, executor) = bounded(1, BlockPolicy::new(timeout));
    let first = executor.schedule(2 * HOUR, || ()).unwrap();
    // Its worker is idle, so from now on the clock's next deadline is that of the submitter that
    // waits for room.
    clock.run_until_idle();
    (clock, executor, first)
}

/// Submits on a thread of its own, and returns when that thread waits.
fn blocked(clock: &ManualClock, executor: &Handle, timeout: Duration) -> Elsewhere<Submitted> {
    let handle = executor.clone();
    let submission = elsewhere(move || handle.schedule(Duration::MAX, || ()));
    eventually("it waits for room", || clock.next_deadline() == Some(timeout));
    submission
}

/// Every event that makes room admits a waiting submission.
#[test]
fn a_submission_waits_for_room() {
    let makers: [fn(&ManualClock, &Executor, &ScheduledFuture<()>); 3] = [
        |_, _, first| assert!(first.cancel()),
        |_, executor, first| assert!(executor.remove(first)),
        |_, executor, _| assert!(executor.pending_tasks()[0].cancel()),
    ];
    for make_room in makers {
        let (clock, executor, first) = full(HOUR);
        let submission = blocked(&clock, &executor, HOUR);
        make_room(&clock, &executor, &first);
        let second = submission.get().expect("it was admitted");
        assert_eq!((second.state(), executor.pending_count()), (TaskState::Scheduled, 1));
        assert_eq!(executor.statistics().rejected, 0);
    }
}

/// A worker that takes a task makes room.
#[test]
fn a_submission_waits_for_a_worker() {
    let (clock, executor) = bounded(1, BlockPolicy::new(HOUR));
    let gate = occupy(&executor);
    let second = executor.submit(|| ()).unwrap();
    let third = blocked(&clock, &executor, HOUR);
    gate.add();
    let third = third.get().expect("it was admitted");
    second.wait().unwrap();
    assert!(third.cancel());
}

/// The submission gives up exactly at its limit, not a nanosecond before, and returns the reason
/// and the closure.
#[test]
fn a_submission_gives_up_in_time() {
    let (clock, executor, first) = full(ms(10));
    let handle = executor.handle();
    let ran = Counter::new();
    let count = ran.clone();
    let submission = elsewhere(move || handle.schedule(HOUR, move || count.add()));
    eventually("it waits for room", || clock.next_deadline() == Some(ms(10)));
    clock.advance(ms(10) - NANO);
    eventually("it still waits", || clock.next_deadline() == Some(NANO));
    clock.advance(NANO);
    let refused = submission.get().expect_err("it gave up");
    assert_eq!(why(&refused), Why::Saturated);
    refused.into_task().run();
    assert_eq!(ran.get(), 1);
    assert_eq!((first.state(), executor.statistics().rejected), (TaskState::Scheduled, 1));
}

/// With a limit of zero it fails at once, unless there is room by then.
#[test]
fn a_submission_may_have_no_time() {
    let (_clock, executor, first) = full(Duration::ZERO);
    assert_eq!(why(&executor.submit(|| ()).unwrap_err()), Why::Saturated);
    assert!(first.cancel());
    assert!(executor.schedule(HOUR, || ()).is_ok());
}

/// A shutdown, of whichever kind, wakes submitters that wait for room; the submission fails for
/// that reason, even if it would have waited for ever.
#[test]
fn a_shutdown_ends_the_wait() {
    let ends: [fn(Executor); 4] = [
        Executor::close_background,
        |executor| drop(executor.shutdown_now()),
        drop::<Executor>,
        Executor::shutdown_background,
    ];
    for end in ends {
        let (clock, executor, _first) = full(HOUR);
        let limited = blocked(&clock, &executor, HOUR);
        let forever = BlockPolicy::new(Duration::MAX);
        executor.set_rejected_execution_handler(forever);
        let handle = executor.handle();
        let unlimited = elsewhere(move || handle.schedule(HOUR, || ()));
        end(executor);
        for submission in [limited, unlimited] {
            assert_eq!(why(&submission.get().unwrap_err()), Why::Shutdown);
        }
    }
}

/// Without a bound no submission waits for room: an executor that was shut down refuses at once.
#[test]
fn without_a_bound_no_submitter_waits() {
    let forever = BlockPolicy::new(Duration::MAX);
    let builder = Executor::builder().rejected_execution_handler(forever);
    let executor = builder.core_pool_size(1).build().unwrap();
    executor.shutdown();
    let refused = in_time("the submission", move || executor.submit(|| ()));
    assert_eq!(why(&refused.unwrap_err()), Why::Shutdown);
}

/// On one of the executor's own workers it fails at once, whether that is the only worker or not;
/// on another executor's worker it waits.
#[test]
fn no_worker_waits_for_its_own_executor() {
    for workers in [1, 2] {
        let builder = Executor::builder().core_pool_size(workers).max_pending(1);
        let handler = BlockPolicy::new(Duration::MAX);
        let executor = builder.rejected_execution_handler(handler).build().unwrap();
        let first = executor.schedule(HOUR, || ()).unwrap();
        assert!(first.cancel());
        let handle = executor.handle();
        let inside = executor.submit(move || {
            let first = handle.schedule(HOUR, || ()).unwrap();
            let refused = handle.submit(|| ()).unwrap_err();
            first.cancel();
            why(&refused)
        });
        let found = inside.unwrap().join_within(LONG).expect("it does not wait");
        assert_eq!(found.unwrap(), Why::Saturated);
    }
    let (clock, executor, first) = full(HOUR);
    let (other, handle) = (Executor::new(1), executor.handle());
    let outside = other.submit(move || handle.schedule(HOUR, || ()).is_ok()).unwrap();
    eventually("it waits for room", || clock.next_deadline() == Some(HOUR));
    assert!(first.cancel());
    assert!(outside.join_within(LONG).expect("it was admitted").unwrap());
}

/// A submitter that gives up just as a permit is released, whether it gets the permit or not, does
/// not keep another one waiting: whichever of the two is admitted, the other is admitted once that
/// task has left.
#[test]
fn a_submitter_that_gives_up_blocks_no_other() {
    let (clock, executor) = bounded(1, |task: RejectedTask<'_>| {
        let patience = if task.name().is_some() { HOUR } else { ms(1) };
        task.wait_for_room(patience)
    });
    let mut let_in = 0;
    for _ in 0..300 {
        let first = executor.schedule(Duration::MAX, || ()).unwrap();
        let handle = executor.handle();
        let patient = move || handle.task().name("patient").schedule(Duration::MAX, || ());
        let patient = elsewhere(patient);
        eventually("one waits for room", || clock.next_deadline() == Some(HOUR));
        let hasty = blocked(&clock, &executor, ms(1));
        let cancelling = elsewhere(move || assert!(first.cancel()));
        clock.advance(ms(1));
        cancelling.get();
        if let Ok(second) = hasty.get() {
            let_in += 1;
            assert!(second.cancel());
        }
        let third = patient.get().expect("it was admitted");
        assert!(third.cancel());
    }
    assert_eq!((executor.pending_count(), executor.statistics().rejected), (0, 300 - let_in));
}

/// Many submitters compete for few permits: given enough time all are admitted, and there are never
/// more pending tasks than the bound.
#[test]
fn every_waiting_submitter_is_admitted_in_the_end() {
    const THREADS: usize = 4;
    const EACH: usize = 500;
    for bound in [1, 3] {
        let handler = BlockPolicy::new(LONG);
        let builder = Executor::builder().core_pool_size(2).max_pending(bound);
        let executor = builder.rejected_execution_handler(handler).build().unwrap();
        let (ran, most) = (Counter::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let count = ran.clone();
                        executor.execute(move || count.add()).expect("it was admitted");
                        most.fetch_max(executor.pending_count(), Ordering::SeqCst);
                    }
                });
            }
        });
        ran.wait_for(THREADS * EACH);
        assert!(most.into_inner() <= bound);
        assert_eq!(executor.statistics().rejected, 0);
    }
}

/// Most of the submitters give up, on the system clock, while tasks come and go: no submitter with
/// time left waits for ever, and in the end all permits are free.
#[test]
fn submitters_that_give_up_do_not_disturb_others() {
    let builder = Executor::builder().core_pool_size(1).max_pending(1);
    let builder = builder.rejected_execution_handler(|task: RejectedTask<'_>| {
        let is_patient = task.name().is_some();
        task.wait_for_room(if is_patient { LONG } else { Duration::from_micros(20) })
    });
    let executor = builder.build().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..500).for_each(|_| drop(executor.submit(|| ()))));
            scope.spawn(|| {
                for _ in rounds("a patient submitter among others", 500) {
                    let patient = executor.task().name("patient");
                    patient.execute(thread::yield_now).expect("it was admitted");
                }
            });
        }
    });
    eventually("nothing waits", || executor.pending_count() == 0);
    eventually("the place is free", || executor.schedule(HOUR, || ()).is_ok_and(|it| it.cancel()));
}
