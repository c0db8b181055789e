//! Overload: tasks run late, but neither early nor out of order, and none is lost; and the backlog
//! is visible.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{ScheduledThreadPoolExecutor as Executor, TaskHandle, current_task};

use crate::support::{Counter, Drops, LONG, Log, in_time, manual, ms};

/// F44: tasks that fall due faster than they run form a backlog that the counts show; each runs,
/// late, none early, in the order of the deadlines, and none is left.
#[test]
fn a_backlog_is_seen_and_worked_off_in_order() {
    const TASKS: usize = 2_000;
    let (clock, executor) = manual(1);
    let (log, drops, begun, gate) = (Log::new(), Drops::new(), Counter::new(), Counter::new());
    let (begins, opens) = (begun.clone(), gate.clone());
    executor
        .execute(move || {
            begins.add();
            opens.wait_for(1);
        })
        .expect("accepted");
    begun.wait_for(1);
    for number in 0..TASKS {
        let place = number * 7_919 % TASKS;
        let (log, token) = (log.clone(), drops.token());
        let task = executor.schedule(ms(place as u64), move || {
            let lateness = current_task().expect("inside a task").lateness();
            log.push((place, lateness));
            drop(token);
        });
        drop(task.expect("accepted"));
    }
    clock.advance(ms(TASKS as u64));
    let now = executor.statistics();
    assert_eq!((now.pending, now.active, now.completed), (TASKS, 1, 0));
    gate.add();
    clock.run_until_idle();
    let late = |place: usize| (place, ms((TASKS - place) as u64));
    assert!(log.entries().into_iter().eq((0..TASKS).map(late)));
    let now = executor.statistics();
    assert_eq!((now.pending, now.active, now.completed), (0, 0, TASKS as u64 + 1));
    assert_eq!(drops.count(), TASKS);
}

/// F45: tasks that block occupy their workers, which nothing can take from them: tasks due behind
/// them wait, as the counts show, and their lateness afterwards; they run as soon as a worker is
/// free. Another executor is not affected.
#[test]
fn blocked_workers_show_in_the_counts() {
    const WORKERS: usize = 3;
    let (clock, executor) = manual(WORKERS);
    let (begun, gate) = (Counter::new(), Counter::new());
    let blockers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (begins, opens) = (begun.clone(), gate.clone());
            let blocks = move || {
                begins.add();
                opens.wait_for(number + 1);
            };
            executor.submit(blocks).expect("accepted")
        })
        .collect();
    begun.wait_for(WORKERS);
    let starved = executor.submit(|| current_task().expect("inside a task").lateness());
    let starved = starved.expect("accepted");
    clock.advance(ms(50));
    let now = executor.statistics();
    assert_eq!((now.active, now.pool_size, now.pending), (WORKERS, WORKERS, 1));
    assert_eq!(starved.delay(), Some(Duration::ZERO));
    let other = Executor::new(1);
    assert_eq!(other.submit(|| 7).expect("accepted").join().expect("it runs"), 7);

    gate.add();
    assert_eq!(starved.join().expect("it runs"), ms(50));
    assert_eq!(blockers.iter().filter(|task| !task.is_done()).count(), WORKERS - 1);
    (1..WORKERS).for_each(|_| gate.add());
    blockers.into_iter().for_each(|task| task.join().expect("it ends"));
}

/// F46: tasks that have fallen due are not overtaken by a flood of later tasks without delay,
/// submitted from several threads, also while tasks are taken.
#[test]
fn a_flood_overtakes_nothing_that_is_due() {
    const FLOODS: usize = 3;
    let (clock, executor) = manual(1);
    let (is_over, came) = (AtomicBool::new(false), AtomicUsize::new(0));
    let log = Log::new();
    thread::scope(|scope| {
        for flood in 1..=FLOODS {
            let (executor, is_over, came, log) = (&executor, &is_over, &came, &log);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::SeqCst) {
                    // Room for the observations, and no more: memory is not measured here.
                    if executor.pending_count() < 500 {
                        let log = log.clone();
                        number += 1;
                        let note = move || log.push((flood, number));
                        executor.execute(note).expect("it is open");
                        came.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        for step in 1..=100 {
            let (log, ran) = (log.clone(), Counter::new());
            let runs = ran.clone();
            let due = executor.schedule(ms(1), move || {
                log.push((0, step));
                runs.add();
            });
            drop(due.expect("it is open"));
            clock.advance(ms(1));
            ran.wait_for(1);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    let log = log.entries();
    assert_eq!(log.len(), came.load(Ordering::SeqCst) + 100);
    for flood in 0..=FLOODS {
        let own: Vec<_> = log.iter().filter(|(of, _)| *of == flood).map(|(_, n)| *n).collect();
        assert!(own.iter().copied().eq(1..=own.len()), "{flood}");
    }
}

/// F46, M62: exactly: of a thousand tasks without delay that are submitted after the deadline of a
/// due task none runs before that task, and all that were submitted earlier do.
#[test]
fn a_due_task_runs_after_earlier_and_before_later_submissions() {
    let (clock, executor) = manual(1);
    let (log, begun, gate) = (Log::new(), Counter::new(), Counter::new());
    let (begins, opens) = (begun.clone(), gate.clone());
    let due = log.clone();
    drop(executor.schedule(ms(1), move || due.push("due")).expect("accepted"));
    executor
        .execute(move || {
            begins.add();
            opens.wait_for(1);
        })
        .expect("accepted");
    begun.wait_for(1);
    for (when, count) in [("before", 1_000), ("after", 1_000)] {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..count / 4 {
                        let log = log.clone();
                        executor.execute(move || log.push(when)).expect("accepted");
                    }
                });
            }
        });
        clock.advance(ms(1));
    }
    gate.add();
    clock.run_until_idle();
    let log = log.entries();
    assert_eq!(log.len(), 2_001);
    assert!(log[..1_000].iter().all(|what| *what == "before") && log[1_000] == "due");
}

/// F30, M41: eight threads cancel the same tasks at the moment when they fall due: each task runs
/// or is cancelled by one of them, its captures are dropped once, and its slot in the queue is
/// free.
#[test]
fn a_storm_of_cancels_at_the_deadline_has_one_winner_each() {
    const TASKS: usize = 2_000;
    const CANCELLERS: usize = 8;
    for round in 0..4 {
        let (executor, drops) = (Executor::new(2), Drops::new());
        let (ran, cancelled) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let due = Instant::now() + ms(20);
        let schedule = |_| {
            let (ran, token) = (Arc::clone(&ran), drops.token());
            let body = move || {
                ran.fetch_add(1, Ordering::SeqCst);
                drop(token);
            };
            executor.schedule_at(due, body).expect("it is open").task_handle()
        };
        let handles: Vec<TaskHandle> = (0..TASKS).map(schedule).collect();
        thread::scope(|scope| {
            for canceller in 0..CANCELLERS {
                let (handles, cancelled) = (&handles, &cancelled);
                scope.spawn(move || {
                    while Instant::now() < due {
                        thread::yield_now();
                    }
                    // Some threads begin at the end, because the workers begin at the beginning.
                    let order = |n| if canceller % 2 == round % 2 { n } else { TASKS - 1 - n };
                    let won = (0..TASKS).filter(|n| handles[order(*n)].cancel()).count();
                    cancelled.fetch_add(won, Ordering::SeqCst);
                });
            }
        });
        assert!(handles.iter().all(TaskHandle::is_done));
        executor.shutdown();
        assert_eq!(executor.await_termination(LONG), Ok(true));
        let (ran, cancelled) = (ran.load(Ordering::SeqCst), cancelled.into_inner());
        let now = executor.statistics();
        assert_eq!((now.cancelled, now.pending), (cancelled as u64, 0));
        assert_eq!(now.completed + now.cancelled, TASKS as u64);
        // Tasks that were running when they were cancelled have run all the same.
        assert!((now.completed..=TASKS as u64).contains(&(ran as u64)), "{ran} ran: {now:?}");
        assert_eq!(drops.count(), TASKS);
    }
}

/// F28: a hundred thousand tasks are pending; whichever way they are ended, on a small stack, they
/// are dropped one after the other without recursion.
#[test]
fn very_many_tasks_can_be_dropped_on_a_small_stack() {
    const TASKS: usize = 100_000;
    type End = fn(Executor);
    let ends: [(&str, End); 4] = [
        ("drop", drop),
        ("shutdown now", |executor| drop(executor.shutdown_now())),
        ("policy", |executor| {
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            executor.close().expect("not on a worker");
        }),
        ("abandoned", |executor| executor.shutdown_background()),
    ];
    for (how, end) in ends {
        let (_clock, executor) = manual(1);
        let (handle, drops) = (executor.handle(), Drops::new());
        for number in 0..TASKS {
            let token = drops.token();
            // This puts some into the sorted run, and most into the heap.
            let delay = LONG + ms((number * 7_919 % TASKS) as u64);
            drop(executor.schedule(delay, move || token).expect("accepted"));
        }
        assert_eq!((handle.pending_count(), drops.count()), (TASKS, 0));
        in_time(how, move || {
            let small = thread::Builder::new().stack_size(64 << 10);
            small.spawn(move || end(executor)).expect("it starts").join().expect("no panic");
        });
        assert_eq!((handle.pending_count(), drops.count()), (0, TASKS), "{how}");
    }
}
