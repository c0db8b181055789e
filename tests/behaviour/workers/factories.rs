//! Thread factories that fail, block, or use the executor that calls them.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use punctual::{
    CancellationToken, ConfigError, DropPolicy, Grace, Handle, RejectedExecutionError,
    RejectionReason, ScheduledFuture, ScheduledThreadPoolExecutor, ThreadFactory, Worker,
    WouldDeadlock,
};

use crate::{
    support::{
        Counter, Drops, Elsewhere, LONG, Log, assert_terminated, elsewhere, eventually, in_time,
        manual_with, ms, occupy, worker_of,
    },
    support::{Started, start},
};

type Way = fn(Worker) -> Started;

/// How a factory can fail.
const WAYS: [(&str, Way); 4] = [
    ("gives an error", |_| Err(io::Error::other("no more threads"))),
    ("panics", |_| panic!("no more threads")),
    ("drops the worker", |_| Ok(None)),
    ("has the worker dropped elsewhere", |worker| {
        thread::spawn(move || drop(worker)).join().expect("a worker can be dropped");
        Ok(None)
    }),
];

/// A factory that works this many times, and then fails in that way.
fn flaky(good: usize, then: Way) -> impl ThreadFactory {
    let calls = AtomicUsize::new(0);
    move |worker: Worker| {
        let is_good = calls.fetch_add(1, Ordering::SeqCst) < good;
        if is_good { start(worker) } else { then(worker) }
    }
}

fn with_factory(
    core_pool_size: usize,
    factory: impl ThreadFactory + 'static,
) -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(core_pool_size);
    builder.thread_factory(factory).build().unwrap()
}

/// CN-043: if only the first of a hundred threads can be started, a hundred tasks run on that one.
#[test]
fn one_worker_does_the_work_of_those_that_could_not_be_started() {
    for (what, fail) in WAYS {
        let executor = with_factory(100, flaky(1, fail));
        let futures: Vec<_> =
            (0..100).map(|_| executor.submit(|| thread::current().id()).unwrap()).collect();
        let worker = worker_of(&executor);
        for future in futures {
            assert_eq!(future.join_within(LONG).unwrap().unwrap(), worker, "{what}");
        }
        assert_eq!((executor.pool_size(), executor.largest_pool_size()), (1, 1), "{what}");
    }
}

/// F20, CN-044: whichever way a factory fails after four threads, eight tasks are accepted, the
/// four run them, and the executor terminates.
#[test]
fn a_factory_that_begins_to_fail_does_not_fail_submissions() {
    for (what, fail) in WAYS {
        let executor = with_factory(10, flaky(4, fail));
        let (begun, gate) = (Counter::new(), Counter::new());
        let futures: Vec<_> = (0..8)
            .map(|_| {
                let (begun, gate) = (begun.clone(), gate.clone());
                let task = move || {
                    begun.add();
                    gate.wait_for(1);
                };
                executor.submit(task).unwrap()
            })
            .collect();
        begun.wait_for(4);
        let now = executor.statistics();
        assert_eq!((now.pool_size, now.active, now.pending), (4, 4, 4), "{what}");
        gate.add();
        executor.shutdown();
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert!(futures.iter().all(|future| matches!(future.try_join(), Some(Ok(())))));
    }
}

/// F20, CN-044: if there is no worker and none can be started, a submission fails, whatever is
/// submitted; it returns the closure, counts as rejected, and leaves nothing in the queue. The next
/// one finds a factory that works again.
#[test]
fn without_any_worker_nothing_is_let_in() {
    for (what, fail) in WAYS {
        let executor = with_factory(2, flaky(0, fail));
        let ran = Counter::new();
        let count = ran.clone();
        let refused = executor.submit(move || count.add()).unwrap_err();
        assert!(matches!(refused.reason(), RejectionReason::Spawn(_)), "{what}: {refused}");
        refused.into_task().run();
        assert_eq!(ran.get(), 1);
        executor.execute(|| ()).unwrap_err();
        executor.schedule(LONG, || ()).unwrap_err();
        executor.schedule_at_fixed_rate(LONG, LONG, || ()).unwrap_err();
        executor.prestart_core_thread().unwrap_err();
        let now = executor.statistics();
        assert_eq!((now.submitted, now.pending, now.rejected), (0, 0, 4), "{what}");
        assert_eq!((now.pool_size, now.largest_pool_size), (0, 0), "{what}");

        executor.set_thread_factory(start);
        assert_eq!(executor.submit(|| 8).unwrap().join_within(LONG).unwrap().unwrap(), 8);
        executor.close().unwrap();
    }
}

/// A worker that has begun counts, and runs submitted tasks, even if its factory fails after that.
#[test]
fn a_worker_that_has_begun_counts_though_its_factory_fails() {
    for panics in [false, true] {
        let begun = Counter::new();
        let (begin, has_begun) = (begun.clone(), begun.clone());
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let builder = builder.on_thread_start(move || begin.add());
        let executor = builder.thread_factory(move |worker: Worker| {
            start(worker)?;
            has_begun.wait_for(1);
            assert!(!panics, "too late");
            Err(io::Error::other("too late"))
        });
        let executor = executor.build().unwrap();
        assert_eq!(executor.submit(|| 7).unwrap().join_within(LONG).unwrap().unwrap(), 7);
        assert_eq!((executor.pool_size(), executor.largest_pool_size()), (1, 1));
        executor.close().unwrap();
    }
}

/// CN-043: while there is one worker no submission fails, however many threads race for workers
/// that cannot be started.
#[test]
fn no_submission_is_refused_while_a_worker_lives() {
    const SUBMITTERS: usize = 4;
    let ways: [Way; 2] = [
        |_| Err(io::Error::other("no more threads")),
        |worker| {
            drop(worker);
            thread::yield_now();
            Ok(None)
        },
    ];
    for fail in ways {
        let executor = with_factory(100, flaky(1, fail));
        assert!(executor.prestart_core_thread().unwrap());
        let ran = Counter::new();
        thread::scope(|scope| {
            for _ in 0..SUBMITTERS {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let ran = ran.clone();
                        executor.execute(move || ran.add()).expect("a worker lives");
                    }
                });
            }
        });
        ran.wait_for(SUBMITTERS * 200);
    }
}

/// A submitter does not wait for a thread that is being started if there are enough workers, even
/// if that thread has failed already and its factory does not return.
#[test]
fn a_factory_that_hangs_delays_no_submission_that_needs_no_thread() {
    for drops_first in [false, true] {
        let (called, gate) = (Counter::new(), Counter::new());
        let (tell, wait) = (called.clone(), gate.clone());
        let executor = with_factory(2, move |worker: Worker| {
            tell.add();
            if tell.get() == 1 {
                return start(worker);
            }
            let worker = Some(worker).filter(|_| !drops_first);
            wait.wait_for(1);
            worker.map_or(Ok(None), start)
        });
        let only = worker_of(&executor);
        let submitting = submit_elsewhere(&executor);
        called.wait_for(2);
        executor.set_core_pool_size(1);
        let handle = executor.handle();
        assert_eq!(in_time("a submission", move || worker_of(&handle)), only);
        gate.add();
        assert_eq!(submitting.get().unwrap().join_within(LONG).unwrap().unwrap(), 7);
    }
}

fn submit_elsewhere(
    executor: &Handle,
) -> Elsewhere<Result<ScheduledFuture<i32>, RejectedExecutionError>> {
    let handle = executor.clone();
    elsewhere(move || handle.submit(|| 7))
}

/// A shutdown does not wait for a thread that is being started, and the executor does not terminate
/// before that start is over: its submitter is then refused, whether the thread starts or not.
#[test]
fn a_shutdown_while_a_worker_is_being_started() {
    let shutdowns: [fn(&Handle); 2] = [Handle::shutdown, |handle| drop(handle.shutdown_now())];
    for (shut_down, starts) in shutdowns.into_iter().flat_map(|by| [(by, true), (by, false)]) {
        let (called, gate) = (Counter::new(), Counter::new());
        let (tell, wait) = (called.clone(), gate.clone());
        let executor = with_factory(1, move |worker: Worker| {
            tell.add();
            wait.wait_for(1);
            if starts { start(worker) } else { Err(io::Error::other("no more threads")) }
        });
        let submitting = submit_elsewhere(&executor);
        called.wait_for(1);
        let handle = executor.handle();
        in_time("the shutdown", move || shut_down(&handle));
        assert_eq!(executor.await_termination(ms(1)), Ok(false));
        assert!(executor.is_terminating());
        gate.add();
        let refused = submitting.get().unwrap_err();
        assert_eq!(matches!(refused.reason(), RejectionReason::Shutdown), starts, "{refused}");
        assert_eq!(executor.await_termination(LONG), Ok(true));
        assert_terminated(&executor);
        assert_eq!(called.get(), 1);
    }
}

/// An executor of two workers, with a factory that first performs this action on its executor, each
/// time.
fn self_using<R: Send + Sync + 'static>(
    act: impl Fn(&Handle) -> R + Send + Sync + 'static,
) -> (ScheduledThreadPoolExecutor, Log<Arc<R>>) {
    let (own, told) = (Arc::new(OnceLock::<Handle>::new()), Log::new());
    let (handle, tell) = (Arc::clone(&own), told.clone());
    let executor = with_factory(2, move |worker: Worker| {
        tell.push(Arc::new(act(handle.get().expect("it is set"))));
        start(worker)
    });
    assert!(own.set(executor.handle()).is_ok());
    (executor, told)
}

/// F18: a factory can submit to its own executor: the task is admitted if there is a worker, and
/// otherwise refused, because the worker that would run it is only being started. Neither waits for
/// ever.
#[test]
fn a_factory_can_submit_to_its_own_executor() {
    type Submission = fn(&Handle) -> Result<ScheduledFuture<i32>, RejectedExecutionError>;
    let ways: [Submission; 3] = [
        |own| own.submit(|| 7),
        |own| own.task().timeout(LONG).submit(|| 7),
        |own| own.task().timeout(LONG).schedule(ms(1), || 7),
    ];
    for submit in ways {
        let told = in_time("two submissions", move || {
            let (executor, told) = self_using(submit);
            for _ in 0..2 {
                executor.submit(|| ()).expect("a worker is started for it");
            }
            // This happens at its third thread, the timer thread.
            executor.task().timeout(LONG).submit(|| ()).expect("a worker lives");
            executor.close().expect("this is no worker");
            told.entries()
        });
        assert!(
            matches!(*told[0], Err(ref error) if matches!(error.reason(), RejectionReason::Spawn(_))),
            "{:?}",
            told[0]
        );
        let has_timeout = matches!(*told[1], Err(ref error) if matches!(error.reason(), RejectionReason::Spawn(_)));
        if !has_timeout {
            let future = told[1].as_ref().as_ref().expect("it was admitted");
            assert!(matches!(future.try_join(), Some(Ok(7))));
        }
    }
}

/// F14: every other call that a factory makes on its own executor returns: it cannot start another
/// thread, and cannot wait for termination.
#[test]
fn a_factory_can_use_its_own_executor() {
    fn check<R: PartialEq + std::fmt::Debug + Send + Sync + 'static>(
        act: fn(&Handle) -> R,
        is_expected: fn(&R) -> bool,
    ) {
        let told = in_time("two submissions", move || {
            let (executor, told) = self_using(act);
            // The submission is refused if the factory has shut the executor down.
            let futures = [executor.submit(|| 7), executor.submit(|| 8)];
            executor.close().expect("this is no worker");
            assert!(futures.into_iter().flatten().all(|future| future.is_done()));
            told.entries()
        });
        assert!(!told.is_empty() && told.iter().all(|answer| is_expected(answer)), "{told:?}");
    }
    check(|own| own.prestart_core_thread().unwrap_or(false), |started| !started);
    check(|own| own.set_core_pool_size(3), |()| true);
    check(|own| own.set_core_pool_size(0), |()| true);
    check(|own| own.statistics().pool_size, |live| *live < 2);
    check(Handle::pool_size, |live| *live < 2);
    check(Handle::shutdown, |()| true);
    check(|own| own.shutdown_now().len(), |left| *left == 0);
    check(|own| own.await_termination(LONG), Result::is_err);
    check(
        |own| own.shutdown_within(Grace::patience(LONG).then(LONG)),
        |answer: &Result<_, WouldDeadlock>| answer.is_err(),
    );
    check(|own| own.set_thread_factory(start), |()| true);
}

/// A thread that has run a worker and then does other work is no longer a worker: a manual clock
/// does not count it as one when it waits.
#[test]
fn a_thread_that_was_a_worker_is_none_for_the_clock() {
    let (give, take) = mpsc::channel::<Worker>();
    let give = Mutex::new(give);
    let (clock, executor) = manual_with(|builder| {
        builder.thread_factory(move |worker: Worker| {
            let give = give.lock().unwrap_or_else(PoisonError::into_inner);
            give.send(worker).map_err(|_| io::Error::other("nobody runs it"))?;
            Ok(None)
        })
    });
    let (sleeps, slept) = (CancellationToken::with_clock(clock.clone()), Counter::new());
    let has_slept = slept.clone();
    thread::spawn(move || {
        take.recv().expect("a worker").run();
        sleeps.sleep(ms(5)).expect("nobody raises it");
        has_slept.add();
    });
    executor.execute(|| ()).expect("accepted");
    executor.close().expect("this is no worker");
    eventually("it sleeps", || clock.next_deadline() == Some(ms(5)));
    let same = clock.clone();
    in_time("idle", move || same.run_until_idle());
    clock.advance(ms(5));
    slept.wait_for(1);
}

/// Existing threads can run workers, of several executors one after the other; these terminate when
/// their workers have ended.
#[test]
fn threads_that_are_there_already_can_run_workers() {
    let (give, take) = mpsc::channel::<Worker>();
    let take = Arc::new(Mutex::new(take));
    let threads = [(); 2].map(|()| {
        let take = Arc::clone(&take);
        thread::spawn(move || {
            let next = || take.lock().unwrap_or_else(PoisonError::into_inner).recv();
            while let Ok(worker) = next() {
                worker.run();
            }
        })
    });
    let ids = threads.each_ref().map(|thread| thread.thread().id());
    for _ in 0..3 {
        let give = give.clone();
        let executor = with_factory(2, move |worker: Worker| {
            give.send(worker).expect("the threads take it");
            Ok(None)
        });
        let futures: Vec<_> =
            (0..10).map(|_| executor.submit(|| thread::current().id()).unwrap()).collect();
        executor.close().unwrap();
        for future in futures {
            assert!(ids.contains(&future.try_join().unwrap().unwrap()));
        }
    }
    drop(give);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// CN-044: while threads fail to start now and then, accepted tasks run, refused ones do not, and
/// every worker is accounted for in the end.
#[test]
fn accepted_tasks_run_though_threads_fail_to_start() {
    let calls = AtomicUsize::new(0);
    let factory = move |worker: Worker| {
        let is_good = calls.fetch_add(1, Ordering::Relaxed) % 3 == 0;
        if is_good { start(worker) } else { Err(io::Error::other("not now")) }
    };
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(3);
    let builder = builder.keep_alive(Duration::from_nanos(1)).allows_core_thread_timeout(true);
    let executor = builder.thread_factory(factory).build().unwrap();
    let (accepted, ran) = (AtomicUsize::new(0), Counter::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let ran = ran.clone();
                    if executor.execute(move || ran.add()).is_ok() {
                        accepted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let accepted = accepted.into_inner();
    assert!(accepted > 0);
    ran.wait_for(accepted);
    eventually("all have gone", || executor.pool_size() == 0);
    assert_eq!(ran.get(), accepted);
    assert_eq!(executor.statistics().completed, accepted as u64);
    executor.close().unwrap();
}

/// A factory that answers `Ok`, and whose first thread ends before the worker runs, in this way: once `accepted` says so,
/// because a submission that saw it would be refused.
fn losing(accepted: &Counter, gone: &Counter, lose: fn(Worker)) -> impl ThreadFactory + use<> {
    let (calls, accepted, gone) = (AtomicUsize::new(0), accepted.clone(), gone.clone());
    move |worker: Worker| {
        if calls.fetch_add(1, Ordering::SeqCst) > 0 {
            return start(worker);
        }
        let (accepted, gone) = (accepted.clone(), gone.clone());
        let thread = move || {
            accepted.wait_for(1);
            let _ = panic::catch_unwind(AssertUnwindSafe(|| lose(worker)));
            gone.add();
        };
        thread::Builder::new().spawn(thread).map(Some)
    }
}

/// A worker that was lost before a shutdown, although its start has not failed, is replaced by the shutdown: so what it
/// keeps is run, and every way to wait for the end returns.
#[test]
fn a_shutdown_replaces_a_worker_that_was_lost_before() {
    let ways: [fn(Worker); 2] = [drop, |worker| {
        let _held = worker;
        panic::resume_unwind(Box::new("in the set-up of the thread"));
    }];
    let ends: [fn(ScheduledThreadPoolExecutor); 3] = [
        |executor| executor.close().unwrap(),
        drop,
        |executor| {
            executor.shutdown();
            assert_eq!(executor.await_termination(LONG), Ok(true));
        },
    ];
    for (lose, end) in ways.into_iter().flat_map(|lose| ends.map(|end| (lose, end))) {
        let (accepted, gone) = (Counter::new(), Counter::new());
        let executor = with_factory(1, losing(&accepted, &gone, lose));
        let ran = executor.submit(|| 7).unwrap();
        accepted.add();
        gone.wait_for(1);
        in_time("the end", move || end(executor));
        assert_eq!(ran.join().unwrap(), 7);
    }
}

/// The same with another worker that is busy: a task that is due does not wait for that one.
#[test]
fn a_shutdown_replaces_a_lost_worker_beside_a_busy_one() {
    let (accepted, gone) = (Counter::new(), Counter::new());
    let first = AtomicUsize::new(0);
    let lost = losing(&accepted, &gone, drop);
    let executor = with_factory(2, move |worker: Worker| {
        if first.fetch_add(1, Ordering::SeqCst) == 0 {
            start(worker)
        } else {
            lost.new_thread(worker)
        }
    });
    let gate = occupy(&executor);
    let ran = executor.submit(|| 7).unwrap();
    accepted.add();
    gone.wait_for(1);
    executor.shutdown();
    assert_eq!(in_time("the task", move || ran.join().unwrap()), 7);
    gate.add();
    in_time("the end", move || executor.close().unwrap());
}

/// The core threads can exist from the beginning: then the builder starts them, and tasks start
/// none.
#[test]
fn the_builder_can_start_the_core() {
    for core in [0, 1, 3] {
        let started = Counter::new();
        let count = started.clone();
        let factory = move |worker: Worker| {
            count.add();
            start(worker)
        };
        let builder =
            ScheduledThreadPoolExecutor::builder().core_pool_size(core).thread_factory(factory);
        let executor = builder.clone().prestart_core_threads(true).build().unwrap();
        assert_eq!((executor.pool_size(), started.get()), (core, core));
        executor.submit(|| 7).unwrap().join_within(LONG).unwrap().unwrap();
        assert_eq!(started.get(), core.max(1));
        let lazy = builder.prestart_core_threads(false).build().unwrap();
        assert_eq!((lazy.pool_size(), started.get()), (0, core.max(1)));
    }
}

/// If a core thread cannot be started there is no executor, the error gives the reason, and the
/// threads before it have ended, whatever the drop policy of the executor was.
#[test]
fn a_core_that_cannot_be_started_leaves_no_thread() {
    for (what, fail) in WAYS {
        let (begun, ended, asked) = (Counter::new(), Drops::new(), Counter::new());
        let (begins, tokens, asks) = (begun.clone(), ended.clone(), asked.clone());
        let factory = move |worker: Worker| {
            asks.add();
            if asks.get() == 3 {
                return fail(worker);
            }
            let (begins, token) = (begins.clone(), tokens.token());
            let work = move || {
                begins.add();
                worker.run();
                drop(token);
            };
            thread::Builder::new().spawn(work).map(Some)
        };
        let builder = ScheduledThreadPoolExecutor::builder()
            .core_pool_size(4)
            .thread_factory(factory)
            .on_drop(DropPolicy::ShutdownBackground);
        let refused = in_time("to build it", || builder.prestart_core_threads(true).build());
        let ConfigError::Spawn(error) = refused.unwrap_err() else { panic!("another error") };
        let text = error.to_string();
        assert!(text.contains("no more threads") || text.contains("dropped the worker"), "{text}");
        assert_eq!((asked.get(), begun.get(), ended.count()), (3, 2, 2), "{what}");
    }
}

/// A factory is told which worker it starts a thread for: the first, the second, one that replaces
/// another; and that the timer thread is none.
#[test]
fn a_factory_is_told_which_worker_it_is_for() {
    let told = Log::new();
    let tell = told.clone();
    let factory = move |worker: Worker| {
        tell.push((worker.name().to_owned(), worker.index()));
        // The third does not start, and its number is used up.
        if worker.index() == Some(3) { Err(io::Error::other("no third")) } else { start(worker) }
    };
    let executor = with_factory(2, factory);
    assert_eq!(executor.prestart_all_core_threads().unwrap(), 2);
    let timed = executor.task().timeout(LONG).submit(|| ()).unwrap();
    // A pending task would make the setter start the third.
    timed.join_within(LONG).unwrap().unwrap();
    executor.set_core_pool_size(3);
    executor.prestart_core_thread().unwrap_err();
    assert!(executor.prestart_core_thread().unwrap());
    let told = told.entries();
    let indices: Vec<_> = told.iter().map(|(_, index)| *index).collect();
    assert_eq!(indices, [Some(1), Some(2), None, Some(3), Some(4)]);
    for (name, index) in told {
        assert_eq!(
            index.is_some_and(|number| name == format!("punctual-{number}")),
            index.is_some()
        );
    }
}
