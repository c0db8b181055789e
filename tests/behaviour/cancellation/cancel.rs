//! Cancels tasks before, during and after a run, twice, from the task itself, and in a race with
//! the worker that runs the task.

use std::{
    panic,
    sync::{
        Arc, Barrier, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{
    CancelReason, CancellationToken, DrainedTask, Handle, ScheduledFuture,
    ScheduledThreadPoolExecutor, TaskError, TaskHandle, TaskState, current_task,
};

use crate::{
    rounds::rounds,
    support::awaiting::{Wakes, poll},
    support::{Counter, Drops, LONG, Log, eventually, manual, ms},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The two ways to cancel: without a signal to the body, and with one.
const WAYS: [fn(&TaskHandle) -> bool; 2] = [TaskHandle::cancel, TaskHandle::cancel_and_signal];

fn was_requested<T>(outcome: &Result<T, TaskError>) -> bool {
    matches!(outcome, Err(TaskError::Cancelled(CancelReason::Requested)))
}

/// A task of each kind, due in 10 ms and, if it is periodic, every 10 ms after that.
fn one_of_each(executor: &Handle, runs: &Counter) -> [ScheduledFuture<()>; 3] {
    let body = || {
        let runs = runs.clone();
        move || runs.add()
    };
    [
        executor.schedule(ms(10), body()),
        executor.schedule_at_fixed_rate(ms(10), ms(10), body()),
        executor.schedule_with_fixed_delay(ms(10), ms(10), body()),
    ]
    .map(|task| task.expect("the executor is open"))
}

fn own_token() -> CancellationToken {
    current_task().expect("inside a task").token()
}

/// Waits for every body to have returned.
fn terminate(executor: &Handle) {
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
}

/// CA-001, CA-002, CA-010, G12: a task that is cancelled while it is pending never runs.
#[test]
fn a_task_cancelled_before_its_time_never_runs() {
    for cancel in WAYS {
        let (clock, executor) = manual(1);
        let runs = Counter::new();
        let tasks = one_of_each(&executor, &runs);
        assert!(tasks.iter().all(|task| cancel(task)));
        for _ in 0..3 {
            clock.run_for(ms(10));
        }
        assert!(!tasks.iter().any(|task| cancel(task)));
        assert_eq!(runs.get(), 0);
        for task in tasks {
            assert!(task.is_done() && task.is_cancelled());
            assert!(was_requested(&task.join()));
        }
    }
}

/// CA-001, CA-002, CA-010, CA-018: a task that was drained and cancelled, even twice, ends once,
/// and does not run for the thread that drained it.
#[test]
fn a_cancelled_task_refuses_to_be_run_by_hand() {
    for cancel in WAYS {
        let (_clock, executor) = manual(1);
        let (runs, wakes) = (Counter::new(), Wakes::new());
        let mut tasks = one_of_each(&executor, &runs);
        let drained: Vec<_> = executor.shutdown_now().collect();
        assert_eq!(drained.len(), tasks.len());
        assert!(tasks.iter_mut().all(|task| poll(task, &wakes).is_pending()));
        assert!(tasks.iter().all(|task| cancel(task)));
        assert!(!tasks.iter().any(|task| cancel(task)));
        drained.into_iter().for_each(DrainedTask::run);
        assert_eq!(runs.get(), 0);
        assert_eq!(wakes.count(), tasks.len());
        for task in tasks {
            assert!(was_requested(&task.join()));
        }
    }
}

/// F31, CA-003, CA-004: a task that has ended cannot be cancelled, and its value stays.
#[test]
fn a_task_that_has_ended_cannot_be_cancelled() {
    for cancel in WAYS {
        let (clock, executor) = manual(1);
        let runs = Counter::new();
        let ran = runs.clone();
        let task = executor.submit(move || {
            ran.add();
            7
        });
        let task = task.expect("the executor is open");
        clock.run_until_idle();
        assert!(!cancel(&task));
        assert_eq!(task.state(), TaskState::Completed);
        assert!(matches!(task.join(), Ok(7)));
        assert_eq!(runs.get(), 1);
    }
}

/// Signals a task that waits on its token for a day and ends with `end`; returns its future when
/// the body has returned.
fn signalled<T: Unpin + Send + 'static>(end: fn() -> T) -> ScheduledFuture<T> {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (begun, woken) = (Counter::new(), Log::new());
    let (begins, wakes) = (begun.clone(), woken.clone());
    let task = executor.submit(move || {
        let token = own_token();
        begins.add();
        wakes.push(token.sleep(DAY).is_err());
        end()
    });
    let task = task.expect("the executor is open");
    begun.wait_for(1);
    assert!(task.cancel_and_signal());
    assert!(task.is_cancelled() && task.is_done());
    terminate(&executor);
    assert_eq!(woken.entries(), [true]);
    task
}

/// CA-005, CA-008: a signal wakes a body that waits on its token, and the value that the body
/// returns then is discarded.
#[test]
fn a_signalled_body_wakes_and_its_result_is_not_seen() {
    assert!(was_requested(&signalled(|| ()).join()));
    assert!(was_requested(&signalled(|| 7).join()));
}

/// CA-006: a task whose body panics after the signal is cancelled all the same.
#[test]
fn a_panic_after_the_signal_is_not_seen() {
    let task = signalled(|| panic!("after the signal"));
    assert_eq!(task.state(), TaskState::Cancelled);
    assert!(was_requested(&task.join()));
}

/// CA-007: a cancel without a signal leaves the token unraised and lets the body finish.
#[test]
fn a_cancel_without_signal_leaves_the_body_alone() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (begun, gate, raised) = (Counter::new(), Counter::new(), Log::new());
    let (begins, opened, sees) = (begun.clone(), gate.clone(), raised.clone());
    let task = executor.submit(move || {
        let token = own_token();
        begins.add();
        opened.wait_for(1);
        sees.push(token.is_cancelled());
    });
    let task = task.expect("the executor is open");
    begun.wait_for(1);
    assert!(task.cancel());
    assert!(task.is_cancelled() && task.is_done());
    gate.add();
    terminate(&executor);
    assert_eq!(raised.entries(), [false]);
}

/// F31, CA-011: a running task and one that waits for its worker are both done once they are
/// cancelled.
#[test]
fn running_or_queued_a_cancelled_task_is_over_at_once() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begins, opened) = (begun.clone(), gate.clone());
    let blocker = executor.submit(move || {
        begins.add();
        opened.wait_for(1);
    });
    begun.wait_for(1);
    let tasks = [blocker, executor.submit(|| ())].map(|task| task.expect("the executor is open"));
    for task in tasks {
        assert!(task.cancel());
        assert!(task.is_cancelled() && task.is_done());
        let timed = task.join_within(LONG).expect("it is over");
        assert!(was_requested(&timed));
        assert!(was_requested(&task.join()));
    }
    gate.add();
    terminate(&executor);
}

/// CA-013: a body that panics with the error that a cancelled future reports has panicked, and is
/// not cancelled.
#[test]
fn a_thrown_cancellation_is_a_panic() {
    fn check<T: Unpin + Send + 'static>(
        executor: &Handle,
        join: fn(ScheduledFuture<T>) -> TaskError,
    ) {
        let task = executor.submit(|| -> T {
            panic::resume_unwind(Box::new(TaskError::Cancelled(CancelReason::Requested)))
        });
        let task = task.expect("the executor is open");
        task.wait().expect("this is no worker");
        assert!(!task.is_cancelled());
        assert_eq!(task.state(), TaskState::Failed);
        let panic = join(task).into_failure().expect("it panicked");
        let payload = panic.into_payload().downcast::<TaskError>();
        assert!(payload.expect("what was thrown").is_cancelled());
    }
    fn untimed<T: 'static>(task: ScheduledFuture<T>) -> TaskError {
        task.join().err().expect("no value")
    }
    fn timed<T: 'static>(task: ScheduledFuture<T>) -> TaskError {
        let outcome = task.join_within(Duration::from_secs(1000));
        outcome.expect("it has ended").err().expect("no value")
    }
    let executor = ScheduledThreadPoolExecutor::new(1);
    check::<()>(&executor, untimed);
    check::<()>(&executor, timed);
    check::<i32>(&executor, untimed);
    check::<i32>(&executor, timed);
}

/// CA-014, ST-003: scheduling and cancelling repeatedly retains neither entries nor closures.
#[test]
fn cancelled_tasks_do_not_pile_up() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (runs, drops) = (Counter::new(), Drops::new());
    for round in 1..=200_000 {
        let (ran, capture) = (runs.clone(), drops.token());
        let task = executor.schedule(Duration::from_secs(600), move || {
            let _capture = capture;
            ran.add();
        });
        assert!(task.expect("the executor is open").cancel_and_signal());
        assert_eq!(drops.count(), round);
        assert!(executor.pending_count() <= 1);
    }
    terminate(&executor);
    assert_eq!(runs.get(), 0);
}

/// CA-015, G11: the captures of a cancelled task are dropped while the workers are still asleep,
/// whether its future is kept or not.
#[test]
fn a_cancelled_task_retains_nothing() {
    for keep_futures in [true, false] {
        let (clock, executor) = manual(10);
        let drops = Drops::new();
        // Each is due before the one before it, so each is the new head.
        let tasks: Vec<_> = (1..=100)
            .rev()
            .map(|minutes| {
                let capture = drops.token();
                executor.schedule(Duration::from_secs(minutes * 60), move || drop(capture))
            })
            .collect::<Result<_, _>>()
            .expect("the executor is open");
        clock.run_until_idle();
        let kept: Vec<_> = tasks.into_iter().filter(|task| task.cancel() && keep_futures).collect();
        assert_eq!(drops.count(), 100);
        assert_eq!(executor.pending_count(), 0);
        assert_eq!(executor.pool_size(), 10);
        assert_eq!(kept.len(), if keep_futures { 100 } else { 0 });
    }
}

/// CA-016: of several tasks that compete for a lock, the signalled ones stop, and the one that was
/// not signalled completes.
#[test]
fn the_signalled_stop_and_the_other_completes() {
    for competitors in 2..=5 {
        let executor = ScheduledThreadPoolExecutor::new(competitors);
        let (begun, turns) = (Counter::new(), Arc::new(Mutex::new(0_usize)));
        let compete = |limit: usize| {
            let (begins, turns) = (begun.clone(), Arc::clone(&turns));
            let task = executor.submit(move || {
                let token = own_token();
                begins.add();
                (0..limit)
                    .take_while(|_| !token.is_cancelled())
                    .for_each(|_| *turns.lock().expect("nobody panics") += 1);
            });
            task.expect("the executor is open")
        };
        let winner = compete(10_000);
        let losers: Vec<_> = (1..competitors).map(|_| compete(usize::MAX)).collect();
        begun.wait_for(competitors);
        assert!(losers.iter().all(|task| task.cancel_and_signal()));
        assert!(matches!(winner.join_within(LONG), Some(Ok(()))));
        assert!(losers.iter().all(|loser| loser.is_done() && loser.is_cancelled()));
        terminate(&executor);
        assert!(*turns.lock().expect("nobody panics") >= 10_000);
    }
}

/// CA-019: a periodic task that cancels itself finishes its run and does not run again.
#[test]
fn a_periodic_task_can_cancel_itself() {
    let (clock, executor) = manual(1);
    let neighbour = executor.schedule(DAY, || ()).expect("the executor is open");
    let (queue_lengths, drops) = (Log::new(), Drops::new());
    let myself = [(); 2].map(|()| Arc::new(OnceLock::<TaskHandle>::new()));
    let [at_rate, with_delay] = myself.each_ref().map(|myself| {
        let (myself, handle) = (Arc::clone(myself), executor.handle());
        let (lengths, capture) = (queue_lengths.clone(), drops.token());
        move || {
            let _capture = &capture;
            let before = handle.pending_count();
            assert!(myself.get().expect("it was set").cancel());
            lengths.push((before, handle.pending_count()));
        }
    });
    let tasks = [
        executor.schedule_at_fixed_rate(ms(10), ms(10), at_rate),
        executor.schedule_with_fixed_delay(ms(20), ms(10), with_delay),
    ]
    .map(|task| task.expect("the executor is open"));
    for (myself, task) in myself.iter().zip(&tasks) {
        assert!(myself.set(task.task_handle()).is_ok());
    }
    clock.run_for(ms(100));
    // Besides the neighbour, the first task saw the second pending; neither task saw itself.
    assert_eq!(queue_lengths.entries(), [(2, 2), (1, 1)]);
    assert_eq!(drops.count(), 2);
    assert!(tasks.iter().all(|task| task.is_cancelled()));
    assert_eq!(executor.pending_count(), 1);
    assert!(!neighbour.is_done());
}

/// CA-020, G13: after the cancel no run starts, only the one in progress finishes, and nothing is
/// queued again.
#[test]
fn a_cancel_that_races_the_requeueing_wins() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    for round in rounds("a cancel that races the requeueing", 5_000) {
        let (starts, drops) = (Arc::new(AtomicUsize::new(0)), Drops::new());
        let (started, capture) = (Arc::clone(&starts), drops.token());
        let again = Duration::from_nanos(1);
        let task = executor.schedule_with_fixed_delay(Duration::ZERO, again, move || {
            let _capture = &capture;
            started.fetch_add(1, Ordering::SeqCst);
        });
        let task = task.expect("the executor is open");
        eventually("it runs", || starts.load(Ordering::SeqCst) > round % 3);
        assert!(task.cancel());
        assert_eq!(executor.pending_count(), 0);
        let seen = starts.load(Ordering::SeqCst);
        eventually("the closure is gone", || drops.count() == 1);
        // A run in progress may not have counted itself yet when the count was read.
        assert!(starts.load(Ordering::SeqCst) <= seen + 1);
    }
}

/// CA-021: of two concurrent cancels exactly one succeeds.
#[test]
fn of_two_cancels_at_once_one_succeeds() {
    let (_clock, executor) = manual(1);
    let tasks: Vec<_> = (0..10_000)
        .map(|_| executor.schedule(DAY, || ()))
        .collect::<Result<_, _>>()
        .expect("the executor is open");
    let start = Barrier::new(2);
    let cancel_all = || {
        let cancel = |task: &ScheduledFuture<()>| {
            start.wait();
            task.cancel()
        };
        tasks.iter().map(cancel).collect::<Vec<_>>()
    };
    let (mine, theirs) = thread::scope(|scope| {
        let other = scope.spawn(cancel_all);
        (cancel_all(), other.join().expect("no panic"))
    });
    assert!(mine.iter().zip(&theirs).all(|(mine, theirs)| mine != theirs));
    assert_eq!(executor.pending_count(), 0);
}

/// CA-022: a cancelled task leaves the queue at once, and its neighbours still run in order.
#[test]
fn a_cancelled_task_leaves_the_queue_and_no_other_does() {
    let (clock, executor) = manual(1);
    let order = Log::new();
    let tasks: Vec<_> = (1..=9)
        .map(|number| {
            let order = order.clone();
            executor.schedule(ms(number), move || order.push(number))
        })
        .collect::<Result<_, _>>()
        .expect("the executor is open");
    for (task, left) in tasks.iter().step_by(2).zip((4..9).rev()) {
        assert!(task.cancel());
        assert_eq!(executor.pending_count(), left);
    }
    clock.run_for(ms(9));
    assert_eq!(order.entries(), [2, 4, 6, 8]);
    let (cancelled, run): (Vec<_>, Vec<_>) = tasks.iter().partition(|task| task.is_cancelled());
    assert_eq!((cancelled.len(), run.len()), (5, 4));
    assert!(run.iter().all(|task| task.state() == TaskState::Completed));
}
