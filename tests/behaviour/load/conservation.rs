//! Conservation: whatever races with whatever, each task is admitted or refused, each admitted task
//! ends, and the counts agree.

use std::{
    hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{
    Builder, Handle, RejectionReason, ScheduledFuture, ScheduledThreadPoolExecutor, TaskHandle,
    Worker,
};

use crate::{
    rounds::rounds,
    support::{LONG, eventually, ms, receive},
};

/// The kinds of pools in the races: a plain one, and two whose workers start and retire.
fn fresh(round: usize) -> Builder {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    match round % 3 {
        0 => builder,
        1 => builder.keep_alive(Duration::from_nanos(1)).allows_core_thread_timeout(true),
        _ => builder.keep_alive(Duration::ZERO).core_pool_size(0),
    }
}

/// Some of the pools with retiring workers have a factory that waits until the worker has ended. A
/// submitter that has started a worker for its task then finds that worker gone.
fn fresh_or_deserted(round: usize) -> ScheduledThreadPoolExecutor {
    let builder = fresh(round);
    let builder = if matches!(round % 30, 1 | 2) {
        builder.thread_factory(|worker: Worker| {
            thread::spawn(move || worker.run()).join().expect("a worker does not panic");
            Ok(None)
        })
    } else {
        builder
    };
    builder.build().expect("the settings are good")
}

/// F32, SP-024, G21: a schedule that races a shutdown never leaves a task behind in a terminated
/// executor, and its future pending for ever: a hundred thousand fresh pools, and every future has
/// ended. (Java's own strands about one in seventeen thousand.)
///
/// CI runs all hundred thousand; `cargo test` as many as fit into a few seconds.
#[test]
fn a_schedule_that_races_a_shutdown_in_a_hundred_thousand_pools_ends() {
    const POOLS: usize = 100_000;
    let (pools, stopper) = mpsc::channel::<(Handle, usize)>();
    let (stopped, has_stopped) = mpsc::channel();
    let (there, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let reach = |line: &AtomicUsize, round| {
        while line.load(Ordering::SeqCst) < round {
            thread::yield_now();
        }
    };
    let (is_there, may_go) = (Arc::clone(&there), Arc::clone(&go));
    let shutdowns = thread::spawn(move || {
        for (round, (pool, spins)) in stopper.iter().enumerate() {
            is_there.store(round + 1, Ordering::SeqCst);
            reach(&may_go, round + 1);
            (0..spins).for_each(|_| hint::spin_loop());
            pool.shutdown();
            stopped.send(()).expect("the test waits");
        }
    });
    let (mut accepted, mut refused) = (0, 0);
    let mut pools_left = rounds("a schedule that races a shutdown", POOLS);
    for round in pools_left.by_ref() {
        let executor = fresh_or_deserted(round);
        // Two of three submissions find a worker; the third starts one during the shutdown.
        if round % 9 > 2 {
            executor.execute(|| ()).expect("it is open");
        }
        pools.send((executor.handle(), round * 7 % 211)).expect("the stopper lives");
        reach(&there, round + 1);
        go.store(round + 1, Ordering::SeqCst);
        (0..round * 13 % 197).for_each(|_| hint::spin_loop());
        let submitted = executor.schedule(Duration::ZERO, move || round);
        receive(&has_stopped, "a shutdown does not block");
        assert_eq!(executor.await_termination(LONG), Ok(true), "round {round}");
        assert_eq!(executor.pending_count(), 0, "round {round}");
        match submitted {
            Ok(future) => {
                assert!(future.is_done(), "stranded in round {round}");
                assert_eq!(future.join().expect("what is due runs"), round);
                accepted += 1;
            }
            Err(error) if matches!(error.reason(), RejectionReason::Shutdown) => refused += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
    }
    drop(pools);
    shutdowns.join().expect("no shutdown panics");
    // Otherwise it was no race.
    let few = pools_left.begun() / 100;
    assert!(accepted > few && refused > few, "{accepted} in, {refused} not");
}

/// F30, ST-007: eight threads schedule and cancel against four workers; every admitted task has run
/// or been cancelled, and the executor's counts agree with those of the tasks.
#[test]
fn no_task_is_lost_between_eight_producers_and_four_workers() {
    const EACH: u64 = 50_000;
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(4)
        .max_pending(5_000)
        .build()
        .expect("the settings are good");
    let ran = Arc::new(AtomicU64::new(0));
    let producer = |seed: u64| {
        let (mut cancelled, mut refused) = (0, 0);
        for n in 0..EACH {
            let ran = Arc::clone(&ran);
            let delay = Duration::from_micros((n * 7_919 + seed * 104_729) % 3_000);
            let task = executor.schedule(delay, move || ran.fetch_add(1, Ordering::Relaxed));
            match task {
                Ok(future) => cancelled += u64::from(n % 2 == 0 && future.cancel()),
                Err(error) if matches!(error.reason(), RejectionReason::Saturated) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        (cancelled, refused)
    };
    let (cancelled, refused) = thread::scope(|scope| {
        let producers: Vec<_> = (0..8).map(|seed| scope.spawn(move || producer(seed))).collect();
        let counts = producers.into_iter().map(|thread| thread.join().expect("no panic"));
        counts.fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    });
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    let counts = executor.statistics();
    assert_eq!(counts.submitted + counts.rejected, 8 * EACH);
    assert_eq!((counts.cancelled, counts.rejected), (cancelled, refused));
    assert_eq!(counts.submitted, counts.completed + counts.cancelled);
    // A task that is cancelled while it runs is counted as cancelled, and has run all the same.
    assert!(ran.load(Ordering::Relaxed) >= counts.completed);
}

/// ST-010, G10: a shutdown races sixteen threads that submit and four that cancel, repeatedly: the
/// executor always terminates, and every future completes.
#[test]
fn a_shutdown_among_sixteen_submitters_and_four_cancellers_ends_everything() {
    const ROUNDS: usize = 10_000;
    let mut rounds_left = rounds("a shutdown among submitters and cancellers", ROUNDS);
    let round = Arc::new(Mutex::new(None::<(usize, Handle)>));
    let is_over = Arc::new(AtomicBool::new(false));
    let futures = Arc::new(Mutex::new(Vec::<ScheduledFuture<()>>::new()));
    let handles = Arc::new(Mutex::new(Vec::<TaskHandle>::new()));
    let submits = || {
        let mut last = 0;
        while !is_over.load(Ordering::SeqCst) {
            let Some((number, pool)) = round.lock().unwrap().clone() else { continue };
            if number == last {
                thread::yield_now();
                continue;
            }
            last = number;
            let delay = if number % 2 == 0 { Duration::ZERO } else { ms(60_000) };
            if let Ok(future) = pool.schedule(delay, || ()) {
                handles.lock().unwrap().push(future.task_handle());
                futures.lock().unwrap().push(future);
            }
        }
    };
    let cancels = || {
        while !is_over.load(Ordering::SeqCst) {
            let handle = handles.lock().unwrap().pop();
            if handle.is_none_or(|handle| !handle.cancel()) {
                thread::yield_now();
            }
        }
    };
    let cancels_all = || handles.lock().unwrap().drain(..).filter(|task| task.cancel()).count();
    thread::scope(|scope| {
        (0..16).for_each(|_| drop(scope.spawn(submits)));
        (0..4).for_each(|_| drop(scope.spawn(cancels)));
        for number in rounds_left.by_ref().map(|round| round + 1) {
            let executor = fresh(number).build().expect("the settings are good");
            executor.set_executes_existing_delayed_tasks_after_shutdown(number % 4 < 2);
            *round.lock().unwrap() = Some((number, executor.handle()));
            (0..number * 37 % 4_001).for_each(|_| hint::spin_loop());
            if number % 4 == 1 {
                drop(executor.shutdown_now())
            } else {
                executor.shutdown()
            }
            eventually("the executor ends", || {
                // The policy would keep this task for a minute.
                cancels_all();
                executor.is_terminated()
            });
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let futures = futures.lock().unwrap();
    assert!(futures.len() > rounds_left.begun() / 10);
    assert!(futures.iter().all(|task| task.is_done()));
}

/// ST-004, ST-005, G11: tasks that are half an hour away are scheduled and cancelled, by the thread
/// that scheduled them and by others, and nothing remains of them.
#[test]
fn scheduled_and_cancelled_tasks_leave_nothing() {
    for tasks in [100, 1_000, 10_000] {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let half_an_hour = Duration::from_secs(1_800);
        let schedule = || executor.schedule(half_an_hour, || ()).expect("it is open");
        let own: Vec<_> = (0..tasks).map(|_| schedule()).collect();
        assert!(own.iter().all(|task| task.cancel()));
        let mut others: Vec<_> = (0..tasks).map(|_| schedule()).collect();
        thread::scope(|scope| {
            while !others.is_empty() {
                let share = others.split_off(others.len() - others.len().min(tasks / 4));
                scope.spawn(move || assert!(share.iter().all(|task| task.cancel())));
            }
        });
        let counts = executor.statistics();
        assert_eq!((counts.pending, counts.cancelled), (0, 2 * tasks as u64));
        executor.close().expect("no worker waits");
    }
}

/// F44, ST-006: many tasks with the same delay all run, and none before its time.
#[test]
fn tasks_due_at_about_the_same_time_all_run() {
    for tasks in [100, 1_000, 10_000] {
        let executor = ScheduledThreadPoolExecutor::new(2);
        let start = Instant::now();
        let schedule = |_| executor.schedule(ms(10), move || start.elapsed()).expect("it is open");
        let futures: Vec<_> = (0..tasks).map(schedule).collect();
        for future in futures {
            assert!(future.join().expect("it runs") >= ms(10));
        }
        assert_eq!(executor.statistics().completed, tasks);
    }
}
