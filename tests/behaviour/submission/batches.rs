//! Batches: many tasks that are submitted as one, all or none, and in order.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{
    Batch, CancelReason, RejectionReason, ScheduledFuture, ScheduledThreadPoolExecutor as Executor,
    TaskRun,
};

use crate::support::{
    Bomb, Drops, HOUR, Log, assert_cancelled, hold, manual, manual_with, ms, occupy,
};

/// Tasks that note their numbers, all after an hour.
fn numbered(log: &Log<u64>, numbers: std::ops::Range<u64>) -> Batch<u64> {
    let task = |number| {
        let log = log.clone();
        let note = move || {
            log.push(number);
            number
        };
        (HOUR, note)
    };
    numbers.map(task).collect()
}

#[test]
fn a_batch_runs_in_the_order_in_which_it_was_added() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    let note = |number| {
        let log = log.clone();
        move || log.push(number)
    };
    let before = executor.schedule(HOUR, note(100)).expect("accepted");
    let futures = executor.schedule_batch(numbered(&log, 0..50)).expect("accepted");
    let after = executor.schedule(HOUR, note(101)).expect("accepted");
    assert_eq!(executor.pending_count(), 52);
    let ids: Vec<_> = futures.iter().map(ScheduledFuture::id).collect();
    assert!(ids.is_sorted() && before.id() < ids[0] && ids[49] < after.id());
    clock.run_for(HOUR);
    let expected: Vec<_> = [100].into_iter().chain(0..50).chain([101]).collect();
    assert_eq!(log.entries(), expected);
    let results: Vec<_> = futures.iter().map(|future| future.join().expect("it ran")).collect();
    assert_eq!(results, (0..50).collect::<Vec<_>>());
}

#[test]
fn each_task_has_a_moment_of_its_own() {
    let (clock, executor) = manual(1);
    clock.run_for(ms(10));
    let now = clock.now();
    let mut batch = Batch::with_capacity(6);
    assert!(batch.is_empty());
    batch.add(ms(5), || 0);
    batch.add(Duration::ZERO, || 1);
    batch.add(Duration::MAX, || 2);
    batch.add_at(now + ms(7), || 3);
    batch.add_at(now - ms(7), || 4);
    batch.add_at(None, || 5);
    batch.extend([(ms(3), || 6)]);
    assert_eq!(format!("{batch:?}"), "Batch { len: 7, .. }");
    // The delays count from here.
    clock.run_for(ms(1));
    let futures = executor.schedule_batch(batch).expect("accepted");
    let delays = |futures: &[ScheduledFuture<i32>]| {
        futures.iter().map(ScheduledFuture::delay).collect::<Vec<_>>()
    };
    clock.run_until_idle();
    let never = None;
    let expected = [Some(ms(5)), None, never, Some(ms(6)), None, never, Some(ms(3))];
    assert_eq!(delays(&futures), expected);
    assert!(futures[0].cancel());
    assert!(futures[5].reschedule(ms(2)));
    clock.run_for(ms(6));
    assert_eq!(executor.statistics().runs, 5);
    assert_cancelled(&futures[0], CancelReason::Requested);
    assert_eq!(futures[5].join().expect("it ran"), 5);
}

#[test]
fn an_empty_batch_is_nothing() {
    let (_clock, executor) = manual(2);
    assert!(executor.schedule_batch(Batch::<()>::default()).expect("accepted").is_empty());
    assert_eq!((executor.pool_size(), executor.statistics().submitted), (0, 0));
    executor.shutdown();
    assert!(executor.schedule_batch(Batch::<()>::new()).is_err());
}

/// A batch finds room for all of its tasks, or comes back; no handler is asked about it.
#[test]
fn a_bound_admits_all_or_none() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let (_clock, executor) = manual_with(|builder| {
        let handler = move |task: punctual::RejectedTask<'_>| {
            counted.fetch_add(1, Ordering::SeqCst);
            task.discard()
        };
        builder.max_pending(10).rejected_execution_handler(handler)
    });
    let log = Log::new();
    let futures = executor.schedule_batch(numbered(&log, 0..7)).expect("there is room");
    let refused = executor.schedule_batch(numbered(&log, 7..11)).expect_err("there is not");
    assert!(matches!(refused.reason(), RejectionReason::Saturated));
    assert!(refused.to_string().starts_with("of 4 tasks that were submitted as one: the task"));
    assert_eq!(executor.pending_count(), 7);
    assert_eq!((executor.statistics().rejected, asked.load(Ordering::SeqCst)), (4, 0));
    assert!(futures[0].cancel());
    let batch = refused.into_batch();
    assert_eq!(batch.len(), 4);
    let others = executor.schedule_batch(batch).expect("there is room now");
    assert_eq!((others.len(), executor.pending_count()), (4, 10));
    let too_large = executor.schedule_batch(numbered(&log, 0..11)).expect_err("for ever");
    assert!(futures.iter().chain(&others).all(|future| future.cancel() || future.is_done()));
    assert!(
        executor.schedule_batch(too_large.into_batch()).is_err(),
        "it is larger than the bound"
    );
    assert!(executor.schedule_batch(numbered(&log, 0..10)).is_ok(), "all places are free again");
}

/// Many threads submit batches under a bound: exactly as many are admitted as have room.
#[test]
fn the_bound_is_exact_among_batches() {
    for round in 0..50 {
        let (_clock, executor) = manual_with(|builder| builder.max_pending(10));
        let (barrier, admitted) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let batch: Batch<()> = (0..4).map(|_| (HOUR, || ())).collect();
                    barrier.wait();
                    if executor.schedule_batch(batch).is_ok() {
                        admitted.fetch_add(4, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((admitted.into_inner(), executor.pending_count()), (8, 8), "round {round}");
    }
}

#[test]
fn a_batch_that_comes_too_late_comes_back() {
    let (_clock, executor) = manual_with(|builder| builder.max_pending(5));
    executor.shutdown();
    let drops = Drops::new();
    let batch: Batch<()> = (0..3)
        .map(|_| {
            (HOUR, {
                let token = drops.token();
                move || hold(&token)
            })
        })
        .collect();
    let refused = executor.schedule_batch(batch).expect_err("it is closed");
    assert!(matches!(refused.reason(), RejectionReason::Shutdown));
    assert_eq!((drops.count(), executor.statistics().rejected), (0, 3));
    let (other_clock, other) = manual(1);
    let futures = other.schedule_batch(refused.into_batch()).expect("this one is open");
    other_clock.run_for(HOUR);
    assert!(futures.iter().all(ScheduledFuture::is_done));
    assert_eq!(drops.count(), 3);
}

/// A shutdown meets a batch in one step: it has all of it, or none.
#[test]
fn a_shutdown_sees_all_of_a_batch_or_none() {
    for round in 0..200 {
        let executor = Executor::new(1);
        let barrier = Barrier::new(2);
        let batch: Batch<u64> = (0..20).map(|number| (HOUR, move || number)).collect();
        let (admitted, drained) = thread::scope(|scope| {
            let submitter = scope.spawn(|| {
                barrier.wait();
                executor.schedule_batch(batch)
            });
            barrier.wait();
            for _ in 0..round {
                std::hint::spin_loop();
            }
            let drained = executor.shutdown_now().count();
            (submitter.join().expect("it does not panic"), drained)
        });
        match admitted {
            Ok(futures) => {
                assert_eq!(drained, 20);
                futures.iter().for_each(|it| assert_cancelled(it, CancelReason::ShutdownNow));
            }
            Err(refused) => assert_eq!((drained, refused.into_batch().len()), (0, 20)),
        }
    }
}

/// As with single submissions there is a worker for each task, up to the core size; and sleeping workers are woken.
#[test]
fn a_batch_starts_and_wakes_workers() {
    let executor = Executor::new(3);
    let together = Arc::new(Barrier::new(3));
    for _ in 0..100 {
        let meet = |_| {
            let together = Arc::clone(&together);
            let meet = move || _ = together.wait();
            (Duration::ZERO, meet)
        };
        let batch: Batch<()> = (0..3).map(meet).collect();
        let futures = executor.schedule_batch(batch).expect("accepted");
        assert_eq!(executor.pool_size(), 3);
        // No task returns before each has a worker.
        futures.iter().for_each(|future| future.join().expect("they meet"));
    }
    let (_clock, executor) = manual(4);
    let two: Batch<()> = (0..2).map(|_| (HOUR, || ())).collect();
    executor.schedule_batch(two).expect("accepted");
    assert_eq!(executor.pool_size(), 2);
}

#[test]
fn a_batch_that_has_no_worker_comes_back() {
    let factory = |_: punctual::Worker| Err(std::io::Error::other("no thread"));
    let builder = Executor::builder().core_pool_size(1).thread_factory(factory);
    let executor = builder.build().expect("the settings are good");
    let log = Log::new();
    let refused = executor.schedule_batch(numbered(&log, 0..3)).expect_err("no worker");
    assert!(matches!(refused.reason(), RejectionReason::Spawn(_)));
    assert!(std::error::Error::source(&refused).is_some());
    assert_eq!((executor.pending_count(), refused.into_batch().len()), (0, 3));
}

/// The code around the runs of an executor is around those of a batch, once, also if it was refused before.
#[test]
fn a_batch_is_decorated() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let around = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&around);
    let (clock, executor) = manual_with(|builder| {
        builder.max_pending(4).decorate_task(move |_: &punctual::Submission<'_>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let noted = Arc::clone(&noted);
            move |run: TaskRun<'_>| {
                noted.fetch_add(1, Ordering::SeqCst);
                run.run()
            }
        })
    });
    let log = Log::new();
    let full = executor.schedule_batch(numbered(&log, 10..12)).expect("there is room");
    let refused = executor.schedule_batch(numbered(&log, 0..3)).expect_err("there is no room");
    assert_eq!(made.load(Ordering::SeqCst), 5);
    assert!(full.iter().all(ScheduledFuture::cancel));
    let futures = executor.schedule_batch(refused.into_batch()).expect("there is room");
    clock.run_for(HOUR);
    assert!(futures.iter().all(|future| future.join().is_ok()));
    assert_eq!((log.entries(), around.load(Ordering::SeqCst)), (vec![0, 1, 2], 3));
}

#[test]
fn the_panic_of_a_decorator_is_the_submitters() {
    let calls = AtomicUsize::new(0);
    let (_clock, executor) = manual_with(|builder| {
        builder.decorate_task(move |_: &punctual::Submission<'_>| {
            assert!(calls.fetch_add(1, Ordering::SeqCst) < 2, "no more");
            |run: TaskRun<'_>| run.run()
        })
    });
    let drops = Drops::new();
    let task = |number: u64| {
        let token = drops.token();
        let bomb = (number % 2 == 0).then(|| Bomb("in the drop of a closure"));
        (HOUR, move || hold(&(&token, &bomb)))
    };
    let batch: Batch<()> = (0..5).map(task).collect();
    let caught = catch_unwind(AssertUnwindSafe(|| executor.schedule_batch(batch).is_ok()));
    assert!(caught.is_err());
    assert_eq!((drops.count(), executor.pending_count()), (5, 0));
}

/// One closure that panics in its drop keeps none of the others.
#[test]
fn a_batch_that_is_dropped_drops_all_its_closures() {
    let drops = Drops::new();
    let mut batch = Batch::new();
    for number in 0..4 {
        let token = drops.token();
        let bomb = (number == 1).then(|| Bomb("in the drop of a closure"));
        batch.add(HOUR, move || hold(&(&token, &bomb)));
    }
    drop(batch);
    assert_eq!(drops.count(), 4);
}

/// Tasks of several threads keep the order in which each thread submitted, among equal moments.
#[test]
fn batches_of_many_threads_keep_their_orders() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let log = Log::new();
    let moment = clock.now() + ms(5);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (log, executor) = (log.clone(), &executor);
            scope.spawn(move || {
                for round in 0..5 {
                    let mut batch = Batch::new();
                    for number in 0..20 {
                        let log = log.clone();
                        batch.add_at(moment, move || log.push((thread, round * 20 + number)));
                    }
                    executor.schedule_batch(batch).expect("accepted");
                }
            });
        }
    });
    gate.add();
    clock.run_for(ms(5));
    let entries = log.entries();
    assert_eq!(entries.len(), 400);
    for thread in 0..4 {
        let own: Vec<_> = entries.iter().filter(|entry| entry.0 == thread).collect();
        assert!(own.is_sorted(), "the order of thread {thread}");
    }
}
