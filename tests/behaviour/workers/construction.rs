//! Building an executor: what the builder checks, which settings read back, the names of the
//! threads, and that a dropped executor leaves nothing behind.

use std::{
    hint, ptr,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    AbortPolicy, Builder, ConfigError, FailureReport, FailureSource, Handle, RejectedTask,
    ScheduledThreadPoolExecutor, TaskState, ThreadFactory, Worker,
};

use crate::support::{Counter, Drops, LONG, Log, Started, assert_terminated, hold, ms, start};

fn builder(core_pool_size: usize) -> Builder {
    ScheduledThreadPoolExecutor::builder().core_pool_size(core_pool_size)
}

/// CN-006, CN-019: core threads that would retire at once are refused, by the builder and later,
/// and the previous settings stay.
#[test]
fn core_threads_cannot_go_at_once() {
    let refused = builder(1).keep_alive(Duration::ZERO).allows_core_thread_timeout(true).build();
    assert!(matches!(refused, Err(ConfigError::ZeroKeepAlive)));

    let executor = builder(1).keep_alive(ms(7)).allows_core_thread_timeout(true).build().unwrap();
    let refused = executor.set_keep_alive(Duration::ZERO);
    assert!(matches!(refused, Err(ConfigError::ZeroKeepAlive)));
    assert_eq!((executor.keep_alive(), executor.allows_core_thread_timeout()), (ms(7), true));

    let executor = builder(1).keep_alive(Duration::ZERO).build().unwrap();
    let refused = executor.set_allows_core_thread_timeout(true);
    assert!(matches!(refused, Err(ConfigError::ZeroKeepAlive)));
    let settings = (executor.keep_alive(), executor.allows_core_thread_timeout());
    assert_eq!(settings, (Duration::ZERO, false));
}

/// CN-021: settings read back as they were set, on the builder and later; by default core threads
/// stay.
#[test]
fn settings_read_back_as_they_were_set() {
    let settings = |executor: &Handle| {
        (executor.core_pool_size(), executor.keep_alive(), executor.allows_core_thread_timeout())
    };
    assert_eq!(settings(&ScheduledThreadPoolExecutor::new(3)), (3, ms(10), false));
    let executor = builder(2).keep_alive(ms(1000)).build().unwrap();
    assert_eq!(settings(&executor), (2, ms(1000), false));
    executor.set_core_pool_size(5);
    executor.set_keep_alive(Duration::MAX).unwrap();
    executor.set_allows_core_thread_timeout(true).unwrap();
    assert_eq!((executor.core_pool_size(), executor.allows_core_thread_timeout()), (5, true));
    assert!(executor.keep_alive() > 500 * 365 * Duration::from_secs(86_400), "almost for ever");
    assert_eq!(executor.pool_size(), 0, "none of it starts a thread");
}

/// No thread can have a name with a NUL in it.
#[test]
fn an_impossible_thread_name_is_refused() {
    let refused = builder(1).thread_name("half\0way").build().unwrap_err();
    assert!(matches!(&refused, ConfigError::InvalidThreadName(name) if name == "half\0way"));
    assert!(refused.to_string().contains("NUL"), "{refused}");
}

/// A factory that records, each time it is used, its address in memory.
struct Noting(Log<usize>);

impl ThreadFactory for Noting {
    fn new_thread(&self, worker: Worker) -> Started {
        self.0.push(ptr::from_ref(self).addr());
        start(worker)
    }
}

fn address<T: ?Sized>(thing: &T) -> usize {
    ptr::from_ref(thing).cast::<()>().addr()
}

/// CN-011, CN-012: the factory that is read is the one that was set, on the builder or later, and
/// the one that starts the next thread; it can be set again.
#[test]
fn the_thread_factory_is_the_one_that_was_set() {
    let used = Log::new();
    let executor = builder(3).thread_factory(Noting(used.clone())).build().unwrap();
    let first = executor.thread_factory();
    assert!(Arc::ptr_eq(&first, &executor.thread_factory()));
    executor.submit(|| ()).unwrap();
    executor.set_thread_factory(Noting(used.clone()));
    let second = executor.thread_factory();
    assert!(!Arc::ptr_eq(&first, &second));
    executor.submit(|| ()).unwrap();
    executor.set_thread_factory(first.clone());
    executor.submit(|| ()).unwrap();
    assert_eq!(used.entries(), [address(&*first), address(&*second), address(&*first)]);
}

/// CN-016: the handler that is read is the one that was set, and the one that is called.
#[test]
fn the_rejection_handler_is_the_one_that_was_set() {
    let executor = builder(1).rejected_execution_handler(AbortPolicy).build().unwrap();
    let first = executor.rejected_execution_handler();
    assert!(Arc::ptr_eq(&first, &executor.rejected_execution_handler()));
    let asked = Counter::new();
    let count = asked.clone();
    executor.set_rejected_execution_handler(move |task: RejectedTask<'_>| {
        count.add();
        task.abort()
    });
    let second = executor.rejected_execution_handler();
    assert!(!Arc::ptr_eq(&first, &second));
    executor.shutdown();
    executor.submit(|| ()).unwrap_err();
    assert_eq!(asked.get(), 1);
}

/// A setting read from one executor can be given to another, by its builder or a setter, also when
/// the first executor is gone; and shared values are dropped with their last owner.
#[test]
fn settings_that_were_read_can_be_given_to_another_executor() {
    let (used, asked, drops) = (Log::new(), Counter::new(), Drops::new());
    let (count, token) = (asked.clone(), drops.token());
    let own = builder(1).thread_factory(Noting(used.clone()));
    let own = own.rejected_execution_handler(move |task: RejectedTask<'_>| {
        hold(&token);
        count.add();
        task.abort()
    });
    let first = own.build().unwrap();
    let by_builder = builder(1)
        .thread_factory(first.thread_factory())
        .rejected_execution_handler(first.rejected_execution_handler())
        .build()
        .unwrap();
    let by_setter = ScheduledThreadPoolExecutor::new(1);
    by_setter.set_thread_factory(first.thread_factory());
    by_setter.set_rejected_execution_handler(first.rejected_execution_handler());
    let factory = first.thread_factory();
    assert!(Arc::ptr_eq(&factory, &by_setter.thread_factory()));
    drop(first);
    for executor in [by_builder, by_setter] {
        assert_eq!(executor.submit(|| 7).unwrap().join_within(LONG).unwrap().unwrap(), 7);
        executor.shutdown();
        executor.submit(|| ()).unwrap_err();
        assert_eq!(drops.count(), 0);
    }
    assert_eq!((used.entries(), asked.get()), (vec![address(&*factory); 2], 2));
    assert_eq!(drops.count(), 1);
}

/// A setting that was read can be set again any number of times, without gaining a layer each time.
#[test]
fn a_setting_that_is_set_back_stays_itself() {
    let executor = builder(1).thread_factory(start).build().unwrap();
    let (factory, handler) = (executor.thread_factory(), executor.rejected_execution_handler());
    for _ in 0..100_000 {
        executor.set_thread_factory(executor.thread_factory());
        executor.set_rejected_execution_handler(executor.rejected_execution_handler());
    }
    assert!(Arc::ptr_eq(&executor.thread_factory(), &factory));
    assert!(Arc::ptr_eq(&executor.rejected_execution_handler(), &handler));
    let (own, builder): (Arc<dyn ThreadFactory>, _) = (Arc::new(start), builder(1));
    let executor = builder.thread_factory(Arc::clone(&own)).build().unwrap();
    assert!(Arc::ptr_eq(&executor.thread_factory(), &own));
}

/// CN-029: with any size, with a factory and a handler or without, an executor can be built and
/// shut down at once, and leaves nothing behind.
#[test]
fn every_new_executor_can_be_stopped_at_once() {
    for (core, has_factory, has_handler) in
        (0..8).map(|number| (number & 1, number & 2 > 0, number & 4 > 0))
    {
        let (drops, mut builder) = (Drops::new(), builder(core));
        if has_factory {
            let token = drops.token();
            builder = builder.thread_factory(move |worker: Worker| {
                hold(&token);
                start(worker)
            });
        }
        if has_handler {
            let token = drops.token();
            builder = builder.rejected_execution_handler(move |task: RejectedTask<'_>| {
                hold(&token);
                task.abort()
            });
        }
        let executor = builder.build().unwrap();
        assert!(executor.shutdown_now().is_empty());
        assert_terminated(&executor);
        drop(executor);
        assert_eq!(drops.count(), usize::from(has_factory) + usize::from(has_handler));
    }
}

/// CN-030, CN-031: an executor with one thread or two does not run a task before its time, the task
/// is not done before its gate opens, and then its value is joined with a limit and without.
#[test]
fn a_small_executor_returns_the_value_of_a_gated_task() {
    for workers in [1, 2] {
        let executor = ScheduledThreadPoolExecutor::new(workers);
        let (delay, gate, begin) = (ms(12), Counter::new(), Instant::now());
        let futures = [(); 2].map(|()| {
            let gate = gate.clone();
            let gated = move || {
                let started = begin.elapsed();
                gate.wait_for(1);
                started
            };
            executor.schedule(delay, gated).unwrap()
        });
        assert!(futures[0].join_within(delay).is_none());
        assert!(!futures[0].is_done());
        gate.add();
        let [limited, unlimited] = futures;
        assert!(limited.join_within(LONG).unwrap().unwrap() >= delay);
        unlimited.wait().unwrap();
        assert_eq!(unlimited.state(), TaskState::Completed);
        assert!(!unlimited.is_cancelled());
        assert!(unlimited.join().unwrap() >= delay);
    }
}

/// CN-037: the threads have the name that was given to the builder, and a number each; by default
/// the name is the crate's.
#[test]
fn threads_are_named_and_numbered() {
    for (name, builder) in [("punctual", builder(3)), ("mailer", builder(3).thread_name("mailer"))]
    {
        let (executor, meet) = (builder.build().unwrap(), Arc::new(Barrier::new(3)));
        let futures = [(); 3].map(|()| {
            let meet = Arc::clone(&meet);
            let task = move || {
                meet.wait();
                thread::current().name().map(str::to_owned)
            };
            executor.submit(task).unwrap()
        });
        let mut names = futures.map(|future| future.join_within(LONG).unwrap().unwrap().unwrap());
        names.sort();
        assert_eq!(names, [1, 2, 3].map(|number| format!("{name}-{number}")));
    }
}

/// This needs a large stack.
#[inline(never)]
fn eat_stack() -> u8 {
    let eaten = [7_u8; 8 << 20];
    *hint::black_box(&eaten).last().unwrap()
}

/// F50: the threads have the requested stack size, and a factory is told that size.
#[test]
fn the_stack_is_as_large_as_asked() {
    let executor = builder(1).stack_size(16 << 20).build().unwrap();
    assert_eq!(executor.submit(eat_stack).unwrap().join_within(LONG).unwrap().unwrap(), 7);

    for (asked, builder) in [(None, builder(1)), (Some(1 << 20), builder(1).stack_size(1 << 20))] {
        let told = Log::new();
        let tell = told.clone();
        let factory = move |worker: Worker| {
            tell.push((worker.name().to_owned(), worker.stack_size()));
            start(worker)
        };
        let executor = builder.thread_name("told").thread_factory(factory).build().unwrap();
        executor.submit(|| ()).unwrap();
        assert_eq!(told.entries(), [("told-1".to_owned(), asked)]);
    }
}

/// Each thread calls the start callback first and the stop callback last, once; when the executor
/// is closed all have been called.
#[test]
fn each_thread_tells_of_its_start_and_its_end() {
    let told = Log::new();
    let tell = |what: &'static str| {
        let told = told.clone();
        move || told.push((thread::current().id(), what))
    };
    let executor =
        builder(2).on_thread_start(tell("start")).on_thread_stop(tell("stop")).build().unwrap();
    let meet = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let (meet, run) = (Arc::clone(&meet), tell("run"));
        let task = move || {
            run();
            meet.wait();
        };
        executor.execute(task).unwrap();
    }
    executor.close().unwrap();
    let told = told.entries();
    assert_eq!(told.len(), 6);
    for (thread, _) in &told {
        let own = told.iter().filter(|(other, _)| other == thread).map(|(_, what)| *what);
        assert_eq!(own.collect::<Vec<_>>(), ["start", "run", "stop"]);
    }
}

/// F7: the panic of a thread callback is reported without a task, and the worker works all the
/// same.
#[test]
fn a_thread_callback_that_panics_is_contained() {
    let reports = Log::new();
    let report = reports.clone();
    let executor = builder(1)
        .on_thread_start(|| panic!("no start"))
        .on_thread_stop(|| panic!("no stop"))
        .failure_handler(move |panic: &FailureReport<'_>| {
            assert!(panic.task_id().is_none());
            report.push((panic.source(), panic.message().to_owned()));
        })
        .build()
        .unwrap();
    assert_eq!(executor.submit(|| 7).unwrap().join_within(LONG).unwrap().unwrap(), 7);
    executor.close().unwrap();
    let started = (FailureSource::ThreadStart, "no start".to_owned());
    assert_eq!(reports.entries(), [started, (FailureSource::ThreadStop, "no stop".to_owned())]);
}

/// CN-048: ten thousand executors that are built, used and dropped leave neither a thread nor any
/// value that they were given.
#[test]
fn executors_that_are_dropped_leave_nothing() {
    const EXECUTORS: usize = 10_000;
    let (drops, threads) = (Drops::new(), Drops::new());
    for number in 0..EXECUTORS {
        let (own, thread) = (drops.token(), threads.clone());
        let factory = move |worker: Worker| {
            hold(&own);
            let token = thread.token();
            let work = move || {
                worker.run();
                drop(token);
            };
            thread::Builder::new().spawn(work).map(Some)
        };
        let executor = builder(1).thread_factory(factory).build().unwrap();
        let token = drops.token();
        let task = move || hold(&token);
        // Only one in fifty starts a thread; otherwise the test would measure the system's threads.
        match number % 150 {
            0 => executor.execute(task).unwrap(),
            50 => drop(executor.schedule(LONG, task).unwrap()),
            100 => drop(executor.schedule_at_fixed_rate(LONG, LONG, task).unwrap()),
            _ => drop(task),
        }
        drop(executor);
        assert_eq!(threads.count(), number / 50 + 1, "its thread has ended");
        assert_eq!(drops.count(), 2 * (number + 1), "nothing is left");
    }
}
