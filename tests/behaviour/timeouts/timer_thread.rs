//! The thread that enforces timeouts: when it exists, what becomes of it and of its entries at
//! termination, and how user code can affect it.

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use punctual::{
    CancelReason, DrainedTask, FailurePolicy, Grace, Handle, ManualClock, RejectedTask,
    RejectionReason, ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskError,
    TaskState, Worker, current_task,
};

use crate::{
    support::{
        Bomb, Counter, Drops, LONG, Log, assert_cancelled, eventually, hold, in_time, manual, ms,
        worker_of,
    },
    support::{HOUR, occupy, start},
};

/// The names of the threads that were started, and how many have ended.
#[derive(Clone)]
struct Threads {
    started: Log<String>,
    ended: Counter,
}

impl Threads {
    /// An executor on this clock with one worker, whose threads are recorded.
    fn note(clock: &ManualClock) -> (Executor, Self) {
        let threads = Self { started: Log::new(), ended: Counter::new() };
        let noted = threads.clone();
        let factory = move |worker: Worker| {
            noted.started.push(worker.name().to_owned());
            let ended = noted.ended.clone();
            let thread = move || {
                worker.run();
                ended.add();
            };
            Ok(Some(thread::spawn(thread)))
        };
        let builder = Executor::builder().core_pool_size(1).clock(clock.clone());
        (builder.thread_name("pool").thread_factory(factory).build().unwrap(), threads)
    }
}

/// There is no timer thread before the first timeout, and one from then on; it is not a worker, and
/// ends with the executor.
#[test]
fn the_timekeeper_comes_with_the_first_timeout() {
    let (executor, threads) = Threads::note(&ManualClock::new());
    executor.submit(|| ()).unwrap().join().unwrap();
    assert_eq!(threads.started.entries(), ["pool-1"]);
    for _ in 0..3 {
        executor.task().timeout(HOUR).submit(|| ()).unwrap().join().unwrap();
    }
    assert_eq!(threads.started.entries(), ["pool-1", "pool-timeouts"]);
    assert_eq!((executor.pool_size(), executor.largest_pool_size()), (1, 1));
    executor.close().unwrap();
    assert_eq!(threads.ended.get(), 2);
}

/// A submission after a shutdown starts no timer thread.
#[test]
fn an_executor_that_was_shut_down_starts_no_timer_thread() {
    let (executor, threads) = Threads::note(&ManualClock::new());
    let gate = occupy(&executor);
    executor.shutdown();
    let refused = executor.task().timeout(HOUR).submit(|| ()).unwrap_err();
    assert!(matches!(refused.reason(), RejectionReason::Shutdown));
    gate.add();
    executor.close().unwrap();
    assert_eq!(threads.started.entries(), ["pool-1"]);
}

type Factory = fn(Worker) -> io::Result<Option<thread::JoinHandle<()>>>;

/// F20: if the timer thread cannot be started the submission is refused, and returns the closure;
/// tasks without a timeout do not need it. The next submission tries again.
#[test]
fn without_a_timekeeper_there_is_no_timeout() {
    let failures: [Factory; 3] = [
        |_| Err(io::Error::other("no thread")),
        |worker| {
            drop(worker);
            Ok(None)
        },
        |_| panic!("no thread"),
    ];
    for fail in failures {
        let clock = ManualClock::new();
        let builder = Executor::builder().core_pool_size(1).clock(clock.clone());
        let executor = builder.build().unwrap();
        let worker = worker_of(&executor);
        let stock = executor.thread_factory();
        executor.set_thread_factory(fail);
        let ran = Counter::new();
        let count = ran.clone();
        let refused = executor.task().timeout(ms(5)).submit(move || count.add()).unwrap_err();
        assert!(matches!(refused.reason(), RejectionReason::Spawn(_)), "{refused}");
        refused.into_task().run();
        assert_eq!(ran.get(), 1);
        let budget = executor.task().timeout(ms(5)).schedule_at_fixed_rate(ms(1), ms(1), || ());
        assert!(
            matches!(budget, Err(ref error) if matches!(error.reason(), RejectionReason::Spawn(_)))
        );
        assert_eq!((worker_of(&executor), executor.pending_count()), (worker, 0));

        executor.set_thread_factory(stock);
        let never =
            executor.task().timeout(ms(5)).submit(|| current_task().unwrap().token().wait());
        clock.run_for(ms(5));
        assert_cancelled(&never.unwrap(), CancelReason::TimedOut);
    }
}

/// A thread factory that submits a task with a timeout while it starts a worker or the timer thread
/// itself is refused, and does not wait for itself.
#[test]
fn a_factory_cannot_use_the_timekeeper_it_starts() {
    let (own, refused) = (Arc::new(OnceLock::<Handle>::new()), Log::new());
    let (handle, log) = (Arc::clone(&own), refused.clone());
    let factory = move |worker: Worker| {
        let executor = handle.get().expect("set below");
        let inside = executor.task().timeout(HOUR).submit(|| ());
        log.push(
            matches!(inside, Err(ref error) if matches!(error.reason(), RejectionReason::Spawn(_))),
        );
        Ok(Some(thread::spawn(move || worker.run())))
    };
    let builder = Executor::builder().core_pool_size(1).thread_factory(factory);
    let executor = builder.build().unwrap();
    own.set(executor.handle()).expect("set once");
    in_time("the submission", move || {
        executor.task().timeout(HOUR).submit(|| ()).unwrap().join().unwrap();
    });
    assert_eq!(refused.entries(), [true, true]);
}

/// The ways to end an executor, of which some wait.
const ENDS: [fn(Executor); 6] = [
    |executor| drop(executor.shutdown_now()),
    drop::<Executor>,
    |executor| executor.close().unwrap(),
    Executor::close_background,
    Executor::shutdown_background,
    |executor| {
        executor.shutdown();
        drop(executor);
    },
];

/// An executor terminates, in every way, while timeouts are pending for tasks that wait, run, or
/// are between two runs: its threads end, and every closure and every value is dropped, although
/// futures are kept.
#[test]
fn an_executor_ends_although_timeouts_are_pending() {
    for end in ENDS {
        let clock = ManualClock::new();
        let (executor, threads) = Threads::note(&clock);
        let drops = Drops::new();
        let body = || {
            let token = drops.token();
            move || hold(&token)
        };
        let task = || executor.task().timeout(HOUR);
        let resting = task().on_failure(FailurePolicy::resume());
        let resting = resting.schedule_with_fixed_delay(ms(1), HOUR, body()).unwrap();
        clock.run_for(ms(1));
        let (gate, capture) = (Counter::new(), drops.token());
        let open = gate.clone();
        let running = task().submit(move || {
            hold(&capture);
            open.wait_for(1);
        });
        let due = task().submit(body());
        let waiting = task().schedule_at_fixed_rate(HOUR, HOUR, body());
        let futures = [resting, running.unwrap(), due.unwrap(), waiting.unwrap()];
        eventually("it runs", || futures[1].state() == TaskState::Running);
        let opener = thread::spawn(move || gate.add());
        in_time("the end", move || end(executor));
        opener.join().unwrap();
        threads.ended.wait_for(2);
        assert!(futures.iter().all(|future| future.is_done()));
        assert_eq!(drops.count(), 4);
        assert_eq!(clock.next_deadline(), None);
    }
}

/// A drained task still times out while the executor has not terminated, and not afterwards.
#[test]
fn a_drained_task_times_out_until_the_end() {
    for ends_first in [false, true] {
        let (clock, executor) = manual(1);
        let (gate, ran) = (occupy(&executor), Counter::new());
        let count = ran.clone();
        let future = executor.task().timeout(ms(5)).submit(move || count.add()).unwrap();
        let mut given_back = executor.shutdown_now();
        if ends_first {
            gate.add();
            assert!(executor.await_termination(LONG).unwrap());
        }
        clock.advance(ms(5));
        if !ends_first {
            future.wait().unwrap();
            gate.add();
        }
        given_back.next().expect("one waited").run();
        assert_eq!(ran.get(), usize::from(ends_first));
        let state = if ends_first { TaskState::Completed } else { TaskState::Cancelled };
        assert_eq!(future.state(), state);
    }
}

/// A task that is run by hand times out like one that a worker runs.
#[test]
fn a_task_run_by_hand_times_out() {
    let (clock, executor) = manual(1);
    let (gate, begun) = (occupy(&executor), Counter::new());
    let count = begun.clone();
    let future = executor.task().timeout(ms(5)).submit(move || {
        let token = current_task().unwrap().token();
        assert!(!token.is_cancelled());
        count.add();
        token.wait();
    });
    let (future, given_back) = (future.unwrap(), executor.shutdown_now().next());
    let by_hand = thread::spawn(move || given_back.expect("one waited").run());
    begun.wait_for(1);
    clock.advance(ms(5));
    by_hand.join().unwrap();
    assert_cancelled(&future, CancelReason::TimedOut);
    gate.add();
}

/// Tasks that the rejection handler itself keeps form no reference cycle: when executor and futures
/// are gone, so are the handler, its tasks and their closures.
#[test]
fn a_handler_that_keeps_tasks_does_not_keep_the_executor() {
    let drops = Drops::new();
    let (kept, of_handler) = (Mutex::new(Vec::<DrainedTask>::new()), drops.token());
    let builder = Executor::builder().core_pool_size(1).max_pending(1);
    let builder = builder.rejected_execution_handler(move |task: RejectedTask<'_>| {
        hold(&of_handler);
        let (task, answer) = task.keep();
        kept.lock().unwrap().push(task);
        answer
    });
    let executor = builder.build().unwrap();
    let first = executor.schedule(HOUR, || ()).unwrap();
    let task = || executor.task().timeout(HOUR);
    let body = || {
        let token = drops.token();
        move || hold(&token)
    };
    let once = task().submit(body()).unwrap();
    let with_value = task().submit(body()).unwrap();
    let ending = task().schedule_at_fixed_rate(HOUR, HOUR, body()).unwrap();
    let task = task().on_failure(FailurePolicy::resume());
    let failing = task.schedule_at_fixed_rate(HOUR, HOUR, body()).unwrap();
    drop(executor);
    assert_eq!(drops.count(), 0);
    drop((first, once, with_value, ending, failing));
    assert_eq!(drops.count(), 5);
}

/// An executor does not terminate while the timer thread times a task out: when it has terminated,
/// the closure that the timer thread drops is gone.
#[test]
fn the_end_waits_for_the_timer_thread() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let (dropping, may_drop, drops) = (Counter::new(), Counter::new(), Drops::new());
    let slow = Slow { begun: dropping.clone(), gate: may_drop.clone() };
    let capture = (slow, drops.token());
    executor.task().timeout(ms(5)).execute(move || hold(&capture)).unwrap();
    clock.advance(ms(5));
    dropping.wait_for(1);
    executor.shutdown();
    gate.add();
    eventually("the worker goes", || executor.pool_size() == 0);
    assert!(executor.is_terminating());
    may_drop.add();
    eventually("it ends", || executor.is_terminated());
    assert_eq!(drops.count(), 1);
}

/// Takes a while to be dropped.
struct Slow {
    begun: Counter,
    gate: Counter,
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.begun.add();
        self.gate.wait_for(1);
    }
}

/// The timer thread survives a timeout that drops a panicking value, or one that owns the executor.
#[test]
fn the_timer_thread_survives_the_drops_it_causes() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let bomb = Bomb("a capture");
    let loud = executor.task().timeout(ms(1)).submit(move || {
        hold(&bomb);
        Bomb("a result")
    });
    let next = executor.task().timeout(ms(2)).submit(|| ()).unwrap();
    let (own, handle) = (Executor::new(1), executor.handle());
    let owner = executor.task().timeout(ms(3)).submit(move || hold(&own)).unwrap();
    clock.advance(ms(1));
    std::mem::forget(loud.unwrap().join_within(LONG));
    clock.advance(ms(1));
    next.wait().unwrap();
    clock.advance(ms(1));
    owner.wait().unwrap();
    assert_cancelled(&owner, CancelReason::TimedOut);
    eventually("all are out of the queue", || handle.pending_count() == 0);
    gate.add();
    executor.close().unwrap();
}

/// F16: a task may own its executor: a timeout that drops it, on the timer thread, does not wait
/// for termination, which comes by itself.
#[test]
fn a_timeout_may_drop_the_executor_itself() {
    let (clock, executor) = manual(1);
    let (gate, handle) = (occupy(&executor), executor.handle());
    let owner = Arc::new(Mutex::new(None));
    let capture = Arc::clone(&owner);
    executor.task().timeout(ms(5)).execute(move || hold(&capture)).unwrap();
    *owner.lock().unwrap() = Some(executor);
    // From now on only the task owns it.
    drop(owner);
    clock.advance(ms(5));
    eventually("it is dropped", || handle.is_shutdown());
    gate.add();
    assert!(handle.await_termination(LONG).unwrap());
}

/// The report of a shutdown names tasks that timed out meanwhile: one that never ran is listed as
/// cancelled, with or without a value.
#[test]
fn a_report_names_the_timed_out_task() {
    let (clock, executor) = manual(1);
    let gate = occupy(&executor);
    let task = |name: &'static str| executor.task().timeout(ms(5)).name(name);
    let plain = task("plain").submit(|| ()).unwrap();
    let valued = task("valued").submit(|| ()).unwrap();
    let handle = executor.handle();
    let report = thread::spawn(move || handle.shutdown_within(Grace::patience(HOUR)).unwrap());
    eventually("it is shut down", || executor.is_shutdown());
    clock.advance(ms(5));
    plain.wait().unwrap();
    valued.wait().unwrap();
    gate.add();
    let report = report.join().unwrap();
    let mut names: Vec<_> = report.cancelled.iter().filter_map(|task| task.name()).collect();
    names.sort_unstable();
    assert_eq!((names, report.ran.len()), (vec!["plain", "valued"], 1));
}

/// Blocks in its drop until the test lets it go.
struct BlocksInItsDrop {
    begins: Counter,
    gate: Counter,
}

impl Drop for BlocksInItsDrop {
    fn drop(&mut self) {
        self.begins.add();
        self.gate.wait_for(1);
    }
}

/// Captures that block in their drops hold up no other limit, however many there are; and when they have returned, two
/// threads are left.
#[test]
fn a_capture_that_blocks_in_its_drop_holds_up_no_other_limit() {
    const BLOCKED: usize = 5;
    let clock = ManualClock::new();
    let (executor, threads) = Threads::note(&clock);
    let (begins, gate) = (Counter::new(), Counter::new());
    for number in 1..=BLOCKED {
        let capture = BlocksInItsDrop { begins: begins.clone(), gate: gate.clone() };
        executor.task().timeout(ms(1)).schedule(HOUR, move || drop(capture)).unwrap();
        clock.advance(HOUR + ms(1));
        begins.wait_for(number);
    }
    let expire = || {
        let other = executor.task().timeout(ms(1)).schedule(HOUR, || ()).unwrap();
        clock.advance(HOUR + ms(1));
        let outcome = in_time("the other limit", move || other.join());
        assert!(matches!(outcome, Err(TaskError::Cancelled(CancelReason::TimedOut))));
    };
    expire();
    gate.add();
    // Each that comes back and finds two others ends; those that came back together end with later limits.
    eventually("two are left, and the worker", || {
        expire();
        threads.started.entries().len() - threads.ended.get() == 3
    });
    executor.close().unwrap();
    assert_eq!(threads.started.entries().len(), threads.ended.get());
}

/// A capture that waits in its drop for another task, which ends by its own limit.
struct WaitsInItsDrop(Option<ScheduledFuture<()>>);

impl Drop for WaitsInItsDrop {
    fn drop(&mut self) {
        let awaited = self.0.take().map(|task| task.join());
        assert!(awaited.is_some_and(|outcome| outcome.is_err()));
    }
}

#[test]
fn a_capture_may_wait_in_its_drop_for_another_limit() {
    let clock = ManualClock::new();
    clock.set_auto_advance(true);
    let (executor, _threads) = Threads::note(&clock);
    let drops = Drops::new();
    let (guard, limited) = (drops.token(), |limit| executor.task().timeout(limit));
    let awaited = limited(ms(2)).schedule(HOUR, || ()).unwrap();
    let capture = WaitsInItsDrop(Some(awaited));
    let first = limited(ms(1)).schedule(HOUR, move || drop((capture, guard))).unwrap();
    in_time("both limits", move || first.join().unwrap_err());
    eventually("the capture is gone", || drops.count() == 1);
}

/// An executor with one worker whose factory answers `Ok` for the timer thread of this number, counted from zero, and has
/// it dropped without running once `lose` says so.
fn losing(clock: &ManualClock, number: usize, lose: &Counter, lost: &Counter) -> Executor {
    let (lose, lost, timer_threads) = (lose.clone(), lost.clone(), AtomicUsize::new(0));
    let factory = move |worker: Worker| {
        let is_worker = worker.index().is_some();
        if is_worker || timer_threads.fetch_add(1, Ordering::SeqCst) != number {
            return start(worker);
        }
        let (lose, lost) = (lose.clone(), lost.clone());
        let thread = move || {
            lose.wait_for(1);
            drop(worker);
            lost.add();
        };
        Ok(Some(thread::spawn(thread)))
    };
    let builder = Executor::builder().core_pool_size(1).clock(clock.clone());
    builder.thread_factory(factory).build().unwrap()
}

/// A timer thread that is lost although its start has not failed is replaced: the first one, and the one that was to stand
/// in for the first, which is in the drop of a capture and leaves the rest to it.
#[test]
fn a_timer_thread_that_is_lost_is_replaced() {
    for number in [0, 1] {
        let clock = ManualClock::new();
        let (lose, lost) = (Counter::new(), Counter::new());
        let executor = losing(&clock, number, &lose, &lost);
        let busy = occupy(&executor);
        let (begins, gate) = (Counter::new(), Counter::new());
        let capture = BlocksInItsDrop { begins: begins.clone(), gate: gate.clone() };
        let limited = || executor.task().timeout(ms(1));
        let first = limited().submit(move || drop(capture)).unwrap();
        if number == 0 {
            lose.add();
            lost.wait_for(1);
        }
        clock.advance(ms(1));
        begins.wait_for(1);
        let second = limited().submit(|| ()).unwrap();
        lose.add();
        lost.wait_for(1);
        gate.add();
        in_time("the first limit", move || first.join().unwrap_err());
        clock.advance(ms(1));
        in_time("the second limit", move || second.join().unwrap_err());
        busy.add();
        executor.close().unwrap();
    }
}
