//! The termination hook is called once, after everything else and before any waiter is told,
//! whichever way the executor stops.

use std::{
    io,
    panic::panic_any,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use punctual::{
    Builder, CancellationToken, ExecutorState, FailureSource, Grace, Handle, RejectionReason,
    ScheduledThreadPoolExecutor as Executor, Worker,
};

use crate::support::{
    Bomb, Counter, Drops, LONG, Log, elsewhere, eventually, hold, in_time, manual_with, ms,
};

/// An executor that counts the calls of its termination hook.
fn counting(ends: &Counter, settings: impl FnOnce(Builder) -> Builder) -> Executor {
    let ends = ends.clone();
    let builder = Executor::builder().core_pool_size(2).terminated(move || ends.add());
    settings(builder).build().expect("the settings are good")
}

/// A way to stop an executor.
type Stop = fn(Executor);

/// The ways to stop an executor. When they return, an executor without a worker has terminated;
/// after the first ones, any executor has.
const STOPS: [(&str, Stop); 9] = [
    ("drop", drop),
    ("close", |executor| executor.close().expect("not on a worker")),
    ("close unless", |executor| {
        executor.close_within(CancellationToken::new()).expect("not on a worker");
    }),
    ("shut down within", |executor| {
        let report =
            executor.shutdown_within(Grace::patience(LONG).then(LONG)).expect("not on a worker");
        assert!(report.is_terminated);
    }),
    ("shut down", |executor| executor.shutdown()),
    ("shut down now", |executor| drop(executor.shutdown_now())),
    ("close in background", Executor::close_background),
    ("shut down in background", Executor::shutdown_background),
    ("drop while unwinding", |executor| {
        let unwinds = thread::spawn(move || {
            let _executor = executor;
            panic_any("a thread of the test's own");
        });
        unwinds.join().expect_err("it panics");
    }),
];

const WAITING_STOPS: usize = 4;

/// AT-004, HK-002: without a worker the hook has been called, once, when any call that stops the
/// executor returns.
#[test]
fn without_a_worker_the_stop_calls_the_hook() {
    for (how, stop) in STOPS {
        let ends = Counter::new();
        let executor = counting(&ends, |builder| builder);
        let handle = executor.handle();
        let seen = ends.clone();
        let called = in_time(how, move || {
            stop(executor);
            seen.get()
        });
        assert_eq!(called, 1, "{how}");
        assert!(handle.is_shutdown() && handle.is_terminated(), "{how}");
        handle.shutdown();
        drop(handle.shutdown_now());
        assert_eq!(ends.get(), 1, "{how}");
    }
}

/// AT-004, HK-002: with workers the hook has been called by the time that any thread can observe
/// termination.
#[test]
fn the_end_is_not_visible_before_the_hook_has_returned() {
    for _ in 0..50 {
        for (number, (how, stop)) in STOPS.into_iter().enumerate() {
            let ends = Counter::new();
            let executor = counting(&ends, |builder| builder);
            let handle = executor.handle();
            let tasks = [(); 4].map(|()| executor.submit(|| ()).expect("accepted"));
            let later = executor.schedule(LONG, || ()).expect("accepted");
            if number < WAITING_STOPS {
                assert!(later.cancel());
            }
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            let waiter = handle.clone();
            let seen = ends.clone();
            let waits = elsewhere(move || (waiter.await_termination(Duration::MAX), seen.get()));
            stop(executor);
            if number < WAITING_STOPS {
                assert_eq!(ends.get(), 1, "{how}");
            }
            assert_eq!(waits.get(), (Ok(true), 1), "{how}");
            assert!(tasks.iter().all(|task| task.is_done()) && later.is_cancelled(), "{how}");
            assert_eq!(ends.get(), 1, "{how}");
        }
    }
}

/// AT-004, HK-002: of many concurrent shutdowns one calls the hook.
#[test]
fn shutdowns_at_once_call_the_hook_once() {
    for round in 0..300 {
        let ends = Counter::new();
        let executor = counting(&ends, |builder| builder);
        if round % 2 == 0 {
            executor.execute(|| ()).expect("accepted");
        }
        let shutdowns = [(); 3].map(|()| {
            let handle = executor.handle();
            elsewhere(move || handle.shutdown())
        });
        drop(executor.shutdown_now());
        shutdowns.into_iter().for_each(|shutdown| shutdown.get());
        executor.close().expect("not on a worker");
        assert_eq!(ends.get(), 1);
    }
}

/// AT-004, HK-002: in the hook all work has ended, including the hooks of threads, but the executor
/// has not terminated: nothing is admitted, and waiters keep waiting.
#[test]
fn in_the_hook_the_end_has_not_come() {
    let (inside, gate, calls) = (Counter::new(), Counter::new(), Log::new());
    let (enters, opened) = (inside.clone(), gate.clone());
    let [stops, tasks, ends] = [(); 3].map(|()| calls.clone());
    let builder = Executor::builder()
        .core_pool_size(2)
        .on_thread_stop(move || stops.push("a thread stops"))
        .after_execute(move |_, _| tasks.push("a task ends"))
        .terminated(move || {
            ends.push("the end");
            enters.add();
            opened.wait_for(1);
        });
    let executor = builder.build().expect("the settings are good");
    for _ in 0..2 {
        executor.execute(|| ()).expect("accepted");
    }
    // If the workers are faster, the thread that shuts down calls the hook.
    let [stops, waits] = [(); 2].map(|()| executor.handle());
    let shutdown = elsewhere(move || stops.shutdown());
    let waits = elsewhere(move || waits.await_termination(LONG));
    inside.wait_for(1);
    let now = executor.statistics();
    assert_eq!((now.state, now.pool_size, now.pending), (ExecutorState::Stopping, 0, 0));
    assert!(executor.is_terminating() && !executor.is_terminated());
    let refused = executor.execute(|| ()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::Shutdown));
    assert_eq!(executor.await_termination(Duration::ZERO), Ok(false));
    gate.add();
    assert_eq!(waits.get(), Ok(true));
    shutdown.get();
    let calls = calls.entries();
    assert_eq!((calls.len(), calls[4]), (5, "the end"), "{calls:?}");
}

/// F7, AT-004, HK-002: a hook that panics is reported without a task, and the executor has
/// terminated.
#[test]
fn a_hook_for_the_end_that_panics_is_reported() {
    for (how, stop) in STOPS {
        let log = Log::new();
        let told = log.clone();
        let builder = Executor::builder().terminated(|| panic_any("the end"));
        let builder = builder.failure_handler(move |report| {
            let task = (report.task_id(), report.task_name(), report.run_number());
            told.push((report.source(), task, report.message().to_owned()));
        });
        let executor = builder.build().expect("the settings are good");
        let handle = executor.handle();
        in_time(how, move || stop(executor));
        assert!(handle.is_terminated(), "{how}");
        let expected = (FailureSource::Terminated, (None, None, None), "the end".to_owned());
        assert_eq!(log.entries(), [expected], "{how}");
    }
}

/// AT-004, G23: the hook is called after the last capture has been dropped, even if that drop
/// panics.
#[test]
fn the_hook_comes_after_the_last_capture() {
    let (drops, seen) = (Drops::new(), Log::new());
    let (counts, sees) = (drops.clone(), seen.clone());
    let (_clock, executor) =
        manual_with(|builder| builder.terminated(move || sees.push(counts.count())));
    for _ in 0..10 {
        let captures = (drops.token(), Bomb("a capture"));
        executor.schedule(ms(1), move || hold(&captures)).expect("accepted");
    }
    drop(executor);
    assert_eq!(seen.entries(), [10]);
}

/// AT-004, AT-021: a hook that waits for termination on the thread that brings it about gets an
/// error, even if that thread only submits: here, one whose executor is shut down while it starts a
/// thread.
#[test]
fn a_hook_in_the_thread_of_a_submitter_cannot_wait_for_the_end() {
    let own = Arc::new(Mutex::new(None::<Handle>));
    let handle_of = |own: &Mutex<Option<Handle>>| own.lock().expect("nobody panics").clone();
    let (in_factory, in_hook, waited) = (Arc::clone(&own), Arc::clone(&own), Log::new());
    let log = waited.clone();
    let factory = move |worker: Worker| {
        if worker.name().ends_with("timeouts") {
            let handle = handle_of(&in_factory).expect("it is given");
            handle.shutdown();
            eventually("the worker ends", || handle.pool_size() == 0);
            return Err(io::Error::other("no more threads"));
        }
        thread::Builder::new().spawn(move || worker.run()).map(Some)
    };
    let builder = Executor::builder().core_pool_size(1).thread_factory(factory);
    let builder = builder.terminated(move || {
        let handle = handle_of(&in_hook).expect("it is given");
        let answer = handle.await_termination(Duration::MAX).is_err();
        log.push((thread::current().id(), answer));
    });
    let executor = builder.build().expect("the settings are good");
    *own.lock().expect("nobody panics") = Some(executor.handle());
    let submitter = in_time("submit", move || {
        let refused = executor.task().timeout(LONG).submit(|| ());
        assert!(
            matches!(refused, Err(ref error) if matches!(error.reason(), RejectionReason::Spawn(_))),
            "{refused:?}"
        );
        assert!(executor.is_terminated());
        thread::current().id()
    });
    assert_eq!(waited.entries(), [(submitter, true)]);
    own.lock().expect("nobody panics").take();
}
