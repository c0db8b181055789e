//! The bound on the number of pending tasks: it is exact, and every permit is released.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{
    AbortPolicy, ConfigError, DiscardOldestPolicy, Handle, ManualClock, RejectionReason,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskState, Worker,
};

use crate::{
    rejection::policies::{HOUR, Why, bounded, occupy, why},
    rejection::rejected_tasks::without_second_worker,
    support::{Counter, LONG, eventually, ms},
};

/// Submits tasks until the executor is full, and checks that this happens at the configured bound.
fn fill(executor: &Handle, places: usize) -> Vec<ScheduledFuture<()>> {
    let futures = (0..places).map(|_| executor.schedule(2 * HOUR, || ()).unwrap()).collect();
    let refused = executor.schedule(2 * HOUR, || ()).unwrap_err();
    assert_eq!(why(&refused), Why::Saturated);
    assert_eq!(Some(executor.pending_count()), executor.max_pending());
    futures
}

/// If many threads submit concurrently, exactly as many submissions are admitted as the bound
/// allows, round after round.
#[test]
fn the_bound_is_exact_among_many_submitters() {
    const THREADS: usize = 4;
    for round in 0..50 {
        let bound = 1 + round % 7;
        let (_clock, executor) = bounded(bound, AbortPolicy);
        let (barrier, accepted) = (Barrier::new(THREADS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..5 {
                        let is_in = executor.schedule(HOUR, || ()).is_ok();
                        accepted.fetch_add(usize::from(is_in), Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(accepted.into_inner(), bound);
        let now = executor.statistics();
        assert_eq!((now.pending, now.submitted), (bound, bound as u64));
        assert_eq!(now.rejected, (THREADS * 5 - bound) as u64);
    }
}

/// An event by which a pending task gives up its permit.
type Leaving = fn(&ManualClock, &Executor, &ScheduledFuture<()>);

const LEAVINGS: [(&str, Leaving); 5] = [
    ("taken", |clock, _, _| clock.run_for(2 * HOUR)),
    ("cancelled", |_, _, future| assert!(future.cancel())),
    ("cancelled from a list", |_, executor, _| {
        assert!(executor.pending_tasks()[0].cancel());
    }),
    ("removed", |_, executor, future| assert!(executor.remove(future))),
    ("displaced", |_, executor, _| {
        let before = executor.rejected_execution_handler();
        executor.set_rejected_execution_handler(DiscardOldestPolicy);
        assert!(executor.schedule(3 * HOUR, || ()).unwrap().cancel());
        executor.set_rejected_execution_handler(before);
    }),
];

/// However a task leaves the queue, its permit is released, and only once.
#[test]
fn each_place_comes_back() {
    for (how, leave) in LEAVINGS {
        let (clock, executor) = bounded(2, AbortPolicy);
        let other = executor.schedule(Duration::MAX, || ()).unwrap();
        for _ in 0..3 {
            let future = executor.schedule(2 * HOUR, || ()).unwrap();
            assert!(executor.submit(|| ()).is_err(), "{how}");
            leave(&clock, &executor, &future);
            assert!(future.is_done(), "{how}");
            assert!(!future.cancel() && !executor.remove(&future), "{how}");
            fill(&executor, 1)[0].cancel();
        }
        assert_eq!(other.state(), TaskState::Scheduled, "{how}");
    }
}

/// The permit of a task that times out while it is pending is released.
#[test]
fn the_place_of_a_timed_out_task_is_released() {
    let (clock, executor) = bounded(1, AbortPolicy);
    let gate = occupy(&executor);
    for _ in 0..6 {
        let future = executor.task().timeout(ms(1)).submit(|| 1).unwrap();
        assert!(executor.submit(|| ()).is_err());
        clock.advance(ms(1));
        future.wait().unwrap();
        eventually("it leaves the queue", || executor.pending_count() == 0);
        eventually("its place is free", || match executor.schedule(HOUR, || ()) {
            Ok(next) => next.cancel(),
            Err(_) => false,
        });
    }
    gate.add();
}

/// A running task holds no permit, and a periodic one is queued again after its run even if that
/// exceeds the bound; then one more task has to leave before another is admitted.
#[test]
fn a_periodic_task_gets_in_again() {
    let (clock, executor) = bounded(1, AbortPolicy);
    let (busy, gate) = (Counter::new(), Counter::new());
    let (begun, open) = (busy.clone(), gate.clone());
    let periodic = executor
        .schedule_at_fixed_rate(ms(1), ms(1), move || {
            begun.add();
            open.wait_for(begun.get());
        })
        .unwrap();
    assert!(executor.submit(|| ()).is_err());
    clock.advance(ms(1));
    busy.wait_for(1);
    let other = fill(&executor, 1);
    gate.add();
    clock.run_until_idle();
    assert_eq!((executor.pending_count(), periodic.state()), (2, TaskState::Scheduled));

    assert!(other[0].cancel());
    assert!(executor.submit(|| ()).is_err());
    clock.advance(ms(1));
    busy.wait_for(2);
    assert!(periodic.cancel());
    gate.add();
    clock.run_until_idle();
    fill(&executor, 1);
}

/// An executor with room for no task would never run one: it cannot be built, and the error says
/// what to do.
#[test]
fn a_bound_of_zero_is_refused() {
    let refused = Executor::builder().max_pending(0).build().unwrap_err();
    assert!(matches!(refused, ConfigError::ZeroMaxPending), "{refused:?}");
    assert!(refused.to_string().contains("let at least one wait"), "{refused}");
}

/// A task that is admitted, and taken out again because the last worker has just retired and there
/// is no other, releases its permit.
#[test]
fn a_task_without_a_worker_leaves_its_place() {
    let executor = without_second_worker(Executor::builder().max_pending(1), |_| ());
    let refused = executor.submit(|| ()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::Spawn(_)), "{refused}");
    assert_eq!((executor.pending_count(), executor.pool_size()), (0, 0));
    let std_threads = |worker: Worker| Ok(Some(thread::spawn(move || worker.run())));
    executor.set_thread_factory(std_threads);
    for _ in 0..3 {
        executor.submit(|| ()).expect("there is room").join_within(LONG).unwrap().unwrap();
    }
}

/// Submits, cancels and runs tasks at random, from several threads.
fn churn(executor: &Handle, seed: u64, accepted: &AtomicUsize) {
    let mut random = seed;
    let mut futures = Vec::new();
    for _ in 0..2_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = random >> 60;
        let submitted = match choice {
            0..4 => executor.submit(|| ()),
            4..8 => executor.schedule(HOUR, || ()),
            8..11 => executor.task().timeout(Duration::from_micros(20)).submit(|| ()),
            _ => {
                let chosen: Option<ScheduledFuture<()>> = futures.pop();
                if let Some(future) = chosen {
                    future.cancel();
                }
                continue;
            }
        };
        accepted.fetch_add(usize::from(submitted.is_ok()), Ordering::SeqCst);
        futures.extend(submitted);
    }
    for future in futures {
        future.cancel();
    }
}

/// Under any load, no more tasks are pending than the bound allows, no permit is lost, and in the
/// end all are free.
#[test]
fn no_place_is_lost_or_given_twice() {
    const BOUND: usize = 3;
    let executor = Executor::builder().core_pool_size(2).max_pending(BOUND).build().unwrap();
    let (accepted, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let now = executor.statistics();
                assert!(now.pending <= BOUND, "{now:?}");
                let ended = now.completed + now.failed + now.cancelled;
                assert_eq!(now.submitted, (now.pending + now.active) as u64 + ended, "{now:?}");
            }
        });
        let churning: Vec<_> = (1..=3)
            .map(|seed| {
                scope.spawn({
                    let (e, a) = (&executor, &accepted);
                    move || churn(e, seed, a)
                })
            })
            .collect();
        let churned: Vec<_> = churning.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::SeqCst);
        watcher.join().unwrap();
        assert!(churned.iter().all(Result::is_ok));
    });
    eventually("nothing waits or runs", || {
        let now = executor.statistics();
        now.pending + now.active == 0
    });
    assert_eq!(executor.statistics().submitted, accepted.into_inner() as u64);
    // The timer thread may just be about to release the last one.
    eventually("all places are free", || {
        let futures: Vec<_> =
            (0..BOUND).filter_map(|_| executor.schedule(HOUR, || ()).ok()).collect();
        let are_free = futures.len() == BOUND;
        are_free || futures.iter().any(|future| !future.cancel())
    });
    fill(&executor, 0);
}
