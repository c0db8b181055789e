//! Limits: no threads, unusual numbers, many pools, many tasks, and handles that outlive
//! everything.

use std::{sync::mpsc, thread, time::Duration};

use punctual::{
    CancelReason, ConfigError, RejectedExecutionError, RejectionReason, ScheduledFuture,
    ScheduledThreadPoolExecutor, TaskError, TaskState, current_task,
};

use crate::support::{Counter, Drops, LONG, Log, manual, ms, receive, worker_of};

/// Threads that cannot be started. A failure beside a live worker cannot be provoked here.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod spawn {
    use std::{error::Error, io, time::Instant};

    use punctual::{Handle, ManualClock};

    use super::*;
    use crate::support::{DropToken, hold, in_time};

    /// A stack for which the address space has no room.
    const TOO_LARGE: usize = 1 << 60;

    /// An executor none of whose threads can be started.
    fn without_threads() -> ScheduledThreadPoolExecutor {
        let builder = ScheduledThreadPoolExecutor::builder().stack_size(TOO_LARGE);
        builder.build().expect("the settings are good")
    }

    fn assert_refused(error: &RejectedExecutionError) {
        assert!(matches!(error.reason(), RejectionReason::Spawn(_)), "{error}");
        let cause = error.source().and_then(|cause| cause.downcast_ref());
        let kind = cause.map(io::Error::kind);
        assert_eq!(kind, Some(io::ErrorKind::WouldBlock));
    }

    /// A submission by each of the verbs, as its error.
    type Verb = fn(&Handle, DropToken) -> Option<RejectedExecutionError>;

    const VERBS: [Verb; 6] = [
        |handle, token| handle.execute(move || drop(token)).err(),
        |handle, token| handle.submit(move || token).err(),
        |handle, token| handle.schedule(ms(1), move || token).err(),
        |handle, token| {
            let now = Instant::now();
            handle.schedule_at(now, move || token).err()
        },
        |handle, token| {
            let body = move || hold(&token);
            handle.schedule_at_fixed_rate(ms(1), ms(1), body).err()
        },
        |handle, token| {
            let body = move || hold(&token);
            handle.schedule_with_fixed_delay(ms(1), ms(1), body).err()
        },
    ];

    /// F20: if no thread can be started every submission reports that, returns its task and queues
    /// nothing, repeatedly.
    #[test]
    fn a_submission_without_a_thread_is_refused() {
        let executor = without_threads();
        let drops = Drops::new();
        for (index, verb) in VERBS.iter().enumerate() {
            let error = verb(&executor, drops.token()).expect("refused");
            assert_refused(&error);
            assert_eq!(drops.count(), index);
            drop(error);
            assert_eq!(drops.count(), index + 1);
        }
        assert_eq!((executor.pending_count(), executor.pool_size()), (0, 0));
        assert!(!executor.is_shutdown());
    }

    /// Runs a task that was handed back.
    fn run_refused<T>(tried: Result<T, RejectedExecutionError>) {
        let refused = tried.map(drop).expect_err("refused");
        assert_refused(&refused);
        refused.into_task().run();
    }

    /// F20: if no thread can be started the error returns the task intact.
    #[test]
    fn a_submission_without_a_thread_gives_the_closure_back() {
        let executor = without_threads();
        let runs = Counter::new();
        let body = || {
            let runs = runs.clone();
            move || runs.add()
        };
        run_refused(executor.execute(body()));
        run_refused(executor.submit(body()));
        run_refused(executor.schedule(ms(1), body()));
        let now = Instant::now();
        run_refused(executor.schedule_at(now, body()));
        let task = executor.task();
        run_refused(task.schedule_at_fixed_rate(ms(1), ms(1), body()));
        let task = executor.task();
        run_refused(task.schedule_with_fixed_delay(ms(1), ms(1), body()));
        assert_eq!(runs.get(), 6);
    }

    /// F20: an executor none of whose threads could be started terminates at once, in each way.
    #[test]
    fn an_executor_without_threads_ends() {
        type End = fn(ScheduledThreadPoolExecutor);
        let ends: [(&str, End); 4] = [
            ("dropped", drop),
            ("closed", |executor| executor.close().expect("not a task")),
            ("shut down", |executor| executor.close_background()),
            ("now", |executor| assert!(executor.shutdown_now().is_empty())),
        ];
        for (how, end) in ends {
            let executor = without_threads();
            let handle = executor.handle();
            assert!(executor.submit(|| 7).is_err());
            in_time(how, move || end(executor));
            assert!(handle.is_terminated(), "{how}");
            let refused = handle.submit(|| 7);
            assert!(
                matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
            );
        }
    }

    /// F20: an executor whose threads cannot be started does not affect one whose threads can.
    #[test]
    fn a_later_executor_has_its_threads() {
        let failing = without_threads();
        assert!(failing.submit(|| 7).is_err());
        let executor = ScheduledThreadPoolExecutor::new(1);
        worker_of(&executor);
        assert!(failing.submit(|| 7).is_err());
        worker_of(&executor);
    }

    /// F20: on a manual clock the clock does not wait for a thread that could not be started.
    #[test]
    fn a_clock_does_not_wait_for_a_thread_that_never_was() {
        let clock = ManualClock::new();
        let builder = ScheduledThreadPoolExecutor::builder().stack_size(TOO_LARGE);
        let executor = builder.clock(clock.clone()).build();
        let executor = executor.expect("the settings are good");
        assert!(executor.submit(|| 7).is_err());
        in_time("idle", move || clock.run_until_idle());
    }
}

/// The names of the threads of an executor with two workers, once both are busy.
fn thread_names(executor: &ScheduledThreadPoolExecutor) -> Vec<String> {
    let (names, started) = (Log::new(), Counter::new());
    for _ in 0..2 {
        let (names, started) = (names.clone(), started.clone());
        let body = move || {
            names.push(thread::current().name().unwrap_or_default().to_owned());
            started.add();
            started.wait_for(2);
        };
        executor.execute(body).expect("accepted");
    }
    started.wait_for(2);
    let mut names = names.entries();
    names.sort();
    names
}

/// Threads have the name of their executor and a number from one.
#[test]
fn threads_are_named_and_numbered() {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2);
    let named = builder.clone().thread_name("mailer").build();
    let named = named.expect("the name is good");
    assert_eq!(thread_names(&named), ["mailer-1", "mailer-2"]);
    let unnamed = builder.build().expect("the settings are good");
    assert_eq!(thread_names(&unnamed), ["punctual-1", "punctual-2"]);
}

/// The builder refuses a name that no thread can have, and reports the name.
#[test]
fn a_name_with_a_nul_is_refused() {
    let builder = ScheduledThreadPoolExecutor::builder().thread_name("mai\0ler");
    let error = builder.build().expect_err("refused");
    assert!(matches!(&error, ConfigError::InvalidThreadName(name) if name == "mai\0ler"));
    assert!(error.to_string().contains("mai\\0ler"), "{error}");
}

/// F27: an executor with a core size of zero has one worker, which starts when it is needed.
#[test]
fn a_core_size_of_zero_runs_tasks() {
    let executor = ScheduledThreadPoolExecutor::new(0);
    assert_eq!((executor.core_pool_size(), executor.pool_size()), (0, 0));
    let delayed = executor.schedule(ms(1), || 7).expect("accepted");
    assert!(matches!(delayed.join_within(LONG), Some(Ok(7))));
    assert_eq!(worker_of(&executor), worker_of(&executor));
    assert_eq!(executor.pool_size(), 1);
}

/// A thousand executors can be created, used and dropped.
#[test]
fn a_thousand_executors_come_and_go() {
    let drops = Drops::new();
    for number in 0..1_000 {
        let executor = ScheduledThreadPoolExecutor::new(1);
        let token = drops.token();
        let future = executor.submit(move || (number, token));
        let answer = future.expect("accepted").join_within(LONG);
        let (answer, _token) = answer.expect("it ends").expect("no panic");
        assert_eq!(answer, number);
        executor.execute(|| {}).expect("accepted");
    }
    assert_eq!(drops.count(), 1_000);
}

/// An executor that gets no task starts no thread, and terminates at once.
#[test]
fn an_unused_executor_starts_no_thread() {
    for _ in 0..1_000 {
        let executor = ScheduledThreadPoolExecutor::new(64);
        let handle = executor.handle();
        assert_eq!(handle.pool_size(), 0);
        drop(executor);
        assert!(handle.is_terminated());
    }
}

const MANY: usize = 10_000;

/// F28: ten thousand tasks can be pending; a drop of the executor ends each of them, and drops its
/// captures.
#[test]
fn ten_thousand_tasks_can_wait_and_be_dropped() {
    let (_clock, executor) = manual(1);
    let drops = Drops::new();
    let schedule = |index: usize| {
        let (token, delay) = (drops.token(), LONG + ms((index * 7_919 % MANY) as u64));
        executor.schedule(delay, move || token).expect("accepted")
    };
    let futures: Vec<_> = (0..MANY).map(schedule).collect();
    assert_eq!((executor.pending_count(), drops.count()), (MANY, 0));
    drop(executor);
    assert_eq!(drops.count(), MANY);
    for future in futures {
        let error = future.try_join().expect("ended").expect_err("cancelled");
        let expected = CancelReason::ExecutorDropped;
        assert!(matches!(error, TaskError::Cancelled(reason) if reason == expected));
    }
}

/// F28: ten thousand pending tasks run in the order of their deadlines.
#[test]
fn ten_thousand_tasks_run_in_order() {
    let (clock, executor) = manual(1);
    let log = Log::new();
    for index in 0..MANY {
        let place = index * 7_919 % MANY;
        let log = log.clone();
        let task = executor.schedule(ms(place as u64), move || log.push(place));
        drop(task.expect("accepted"));
    }
    clock.advance(ms(MANY as u64));
    clock.run_until_idle();
    assert!(log.entries().into_iter().eq(0..MANY));
}

/// F25: each periodic method refuses a period of zero, and returns the closure.
#[test]
fn a_period_of_zero_is_refused() {
    let (_clock, executor) = manual(1);
    let zero = Duration::ZERO;
    let refused = [
        executor.schedule_at_fixed_rate(ms(1), zero, || {}).err(),
        executor.schedule_with_fixed_delay(ms(1), zero, || {}).err(),
    ];
    for error in refused {
        assert!(
            matches!(error, Some(ref error) if matches!(error.reason(), RejectionReason::ZeroPeriod))
        );
    }
    let runs = Counter::new();
    let (first, second) = (runs.clone(), runs.clone());
    let rate = executor.task();
    let rate = rate.schedule_at_fixed_rate(ms(1), zero, move || first.add());
    rate.expect_err("refused").into_task().run();
    let delay = executor.task();
    let delay = delay.schedule_with_fixed_delay(ms(1), zero, move || second.add());
    delay.expect_err("refused").into_task().run();
    assert_eq!((runs.get(), executor.pending_count()), (2, 0));
}

/// F48: a future that is dropped before, while or after its task runs lets it run all the same.
#[test]
fn a_dropped_future_detaches_at_every_moment() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (started, gate, drops) = (Counter::new(), Counter::new(), Drops::new());
    for drop_at in 0..3 {
        let (has_started, opened, token) = (started.clone(), gate.clone(), drops.token());
        let future = executor.submit(move || {
            has_started.add();
            opened.wait_for(drop_at + 1);
            token
        });
        let mut future = Some(future.expect("accepted"));
        future = future.filter(|_| drop_at != 0);
        started.wait_for(drop_at + 1);
        future = future.filter(|_| drop_at != 1);
        gate.add();
        worker_of(&executor);
        drop(future);
        assert_eq!(drops.count(), drop_at + 1);
    }
}

/// F48: a guard cancels when it is dropped, but not once it was detached.
#[test]
fn a_guard_cancels_unless_it_was_detached() {
    let (clock, executor) = manual(1);
    let schedule = || executor.schedule(ms(1), || 7).expect("accepted");
    let guard = schedule().cancel_on_drop();
    let handle = guard.task_handle();
    drop(guard);
    assert!(handle.is_cancelled());
    let detached = schedule().cancel_on_drop().detach();
    clock.advance(ms(1));
    worker_of(&executor);
    assert!(matches!(detached.try_join(), Some(Ok(7))));
}

/// A handle that outlives its executor is refused, and still answers queries.
#[test]
fn a_handle_that_outlives_its_executor_is_refused() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    worker_of(&executor);
    let handle = executor.handle();
    drop(executor);
    assert!(handle.is_shutdown() && handle.is_terminated() && !handle.is_terminating());
    let refused = handle.submit(|| 7);
    assert!(
        matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Shutdown))
    );
    handle.shutdown();
    assert!(handle.shutdown_now().is_empty());
    assert!(matches!(handle.await_termination(Duration::MAX), Ok(true)));
    assert_eq!((handle.pool_size(), handle.pending_count()), (0, 0));
    assert!(!format!("{handle:?}").is_empty());
}

/// Futures and their handles outlive the executor, and report how each task ended.
#[test]
fn futures_outlive_their_executor() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let completed = executor.submit(|| 7).expect("accepted");
    let waiting: ScheduledFuture<i32> = executor.schedule(LONG, || 8).expect("accepted");
    let handle = waiting.task_handle();
    drop(executor);
    assert!(matches!(completed.join(), Ok(7)));
    assert_eq!(handle.state(), TaskState::Cancelled);
    assert!(!handle.cancel() && !waiting.cancel_and_signal());
    assert_eq!(waiting.delay(), None);
    assert!(waiting.wait().is_ok());
    let error = waiting.join().expect_err("cancelled");
    assert!(matches!(error, TaskError::Cancelled(CancelReason::ExecutorDropped)));
}

/// The context that a task gets outlives the task and its executor.
#[test]
fn a_context_outlives_its_task() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (tell, told) = mpsc::channel();
    let body = move || tell.send(current_task()).expect("the test waits");
    let future = executor.task().name("outlived").submit(body);
    let id = future.expect("accepted").id();
    let context = receive(&told, "it runs");
    let context = context.expect("inside a task");
    drop(executor);
    assert_eq!((context.id(), context.run_number()), (id, 1));
    assert_eq!(context.name().as_deref(), Some("outlived"));
    context.token().cancel();
    assert!(context.token().is_cancelled());
    assert!(current_task().is_none());
}

/// By default there are as many workers as the process may use cores.
#[test]
fn the_default_is_a_worker_for_each_core() {
    let executor = ScheduledThreadPoolExecutor::builder().build().expect("the settings are good");
    assert_eq!(executor.core_pool_size(), num_cpus::get());
}
