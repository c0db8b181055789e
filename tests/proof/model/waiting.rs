//! Waits that end: by a token, a time limit, or a keep-alive; and races between these.

use std::{io, time::Duration};

use punctual::{
    CancellationToken, ScheduledThreadPoolExecutor, TaskError, TaskHandle, Worker, current_task,
};
use shuttle::thread;

use crate::support::{Count, Door, check, executor, executor_with};

const STEP: Duration = Duration::from_nanos(10);

/// A token is raised while two threads go to sleep on it, one of them in a join.
#[test]
fn a_token_that_is_raised_ends_every_wait() {
    check(|| {
        let (_, executor) = executor(1);
        let token = CancellationToken::new();
        let task = executor.schedule(STEP, || ()).expect("it is open");
        let (waits, joins) = (token.clone(), token.clone());
        let waiter = thread::spawn(move || waits.wait());
        let joiner = thread::spawn(move || assert!(task.join_within(&joins).is_none()));
        token.cancel();
        waiter.join().expect("nobody panics");
        joiner.join().expect("nobody panics");
        drop(executor.shutdown_now());
        executor.close().expect("not on a worker");
    });
}

/// A task that sleeps on its token is asked to stop, by itself or with its pool: it wakes.
#[test]
fn a_task_that_sleeps_is_asked_to_stop() {
    let asks: [fn(&ScheduledThreadPoolExecutor, &TaskHandle); 2] =
        [|_, handle| _ = handle.cancel_and_signal(), |executor, _| drop(executor.shutdown_now())];
    for ask in asks {
        check(move || {
            let (_, executor) = executor(1);
            let sleep = || current_task().map(|task| task.token().sleep(Duration::MAX).is_err());
            let task = executor.submit(sleep).expect("it is open");
            ask(&executor, &task.task_handle());
            executor.close().expect("not on a worker");
        });
    }
}

/// The time limit of a join expires when the task ends, or before, or after: the join returns the
/// result or nothing, and the next join returns the result.
#[test]
fn a_timed_join_meets_the_end() {
    check(|| {
        let (clock, executor) = executor(1);
        let task = executor.schedule(STEP, || 7).expect("it is open");
        let mover = thread::spawn(move || clock.advance(STEP));
        match task.join_within(STEP) {
            Some(outcome) => assert_eq!(outcome.expect("it runs"), 7),
            None => assert_eq!(task.join().expect("it runs"), 7),
        }
        mover.join().expect("nobody panics");
        executor.close().expect("not on a worker");
    });
}

/// The time limit of a wait for termination expires when termination comes, or before: the wait
/// reports which, and a thread that waits on sees termination.
#[test]
fn a_timed_wait_for_the_end_meets_it() {
    check(|| {
        let (clock, executor) = executor(1);
        executor.schedule(STEP, || ()).expect("it is open");
        let handle = executor.handle();
        let mover = thread::spawn(move || clock.advance(STEP));
        let stopper = thread::spawn(move || executor.shutdown());
        if handle.await_termination(STEP) != Ok(true) {
            assert_eq!(handle.await_termination(Duration::MAX), Ok(true));
        }
        mover.join().expect("nobody panics");
        stopper.join().expect("nobody panics");
        assert!(handle.is_terminated());
    });
}

/// A task and a shutdown arrive when the keep-alive of the last worker is over: the task is run or
/// refused. (That the queue alone may then delay termination needs an order of steps that chance
/// does not find here; loom does, in `src/pool/tests/exhaustive.rs`.)
#[test]
fn a_task_that_comes_when_the_last_worker_goes_is_run() {
    for core in [0, 1] {
        check(move || {
            let (clock, executor) = executor_with(|builder| {
                builder.core_pool_size(core).keep_alive(STEP).allows_core_thread_timeout(true)
            });
            executor.submit(|| ()).expect("it is open").join().expect("it runs");
            let handle = executor.handle();
            let submitter = thread::spawn(move || handle.submit(|| 7));
            clock.advance(STEP);
            executor.shutdown();
            assert!(executor.await_termination(Duration::MAX).expect("not on a worker"));
            if let Ok(task) = submitter.join().expect("nobody panics") {
                assert_eq!(task.try_join().expect("it has ended").expect("it runs"), 7);
            }
        });
    }
}

/// G19: a task is brought forward from never while a worker retires, and two others wait for it in their bodies: it has
/// its worker. Two that are idle stay for tasks that wait.
#[test]
fn a_task_that_is_brought_forward_gets_its_worker() {
    check(|| {
        let (clock, executor) = executor_with(|builder| {
            builder.core_pool_size(3).keep_alive(STEP).allows_core_thread_timeout(true)
        });
        let door = Door::default();
        let others = [1, 2].map(|_| {
            let (begun, door) = (Door::default(), door.clone());
            let begins = begun.clone();
            let body = move || {
                begins.open();
                door.pass();
            };
            (begun, executor.schedule(Duration::MAX, body).expect("it is open"))
        });
        let last = executor.schedule(Duration::MAX, move || door.open()).expect("it is open");
        clock.advance(STEP);
        others.iter().for_each(|(_, task)| assert!(task.run_within(Duration::ZERO)));
        let ager = thread::spawn(move || clock.advance(STEP));
        others.iter().for_each(|(begun, _)| begun.pass());
        assert!(last.reschedule(Duration::ZERO));
        assert!(last.join().is_ok() && others.iter().all(|(_, task)| task.join().is_ok()));
        ager.join().expect("nobody panics");
        executor.close().expect("not on a worker");
    });
}

/// The clock advances by itself while two threads wait: each wait ends, at its deadline or with
/// what it waits for.
#[test]
fn an_auto_advancing_clock_ends_every_wait() {
    check(|| {
        let (clock, executor) = executor(2);
        clock.set_auto_advance(true);
        let task = executor.schedule(2 * STEP, || 7).expect("it is open");
        let token = CancellationToken::with_clock(clock.clone());
        let sleeper = thread::spawn(move || token.sleep(STEP).is_ok());
        assert_eq!(task.join().expect("it runs"), 7);
        assert!(clock.elapsed() >= 2 * STEP);
        assert!(sleeper.join().expect("nobody panics"));
        executor.close().expect("not on a worker");
        assert!(clock.elapsed() <= 3 * STEP);
    });
}

/// G9: a thread that waits alone is woken at its deadline, and not later.
#[test]
fn an_auto_advancing_clock_stops_at_each_deadline() {
    check(|| {
        let (clock, executor) = executor(2);
        clock.set_auto_advance(true);
        let far = executor.schedule(3 * STEP, || ()).expect("it is open");
        let near = executor.schedule(STEP, || ()).expect("it is open");
        near.join().expect("it runs");
        assert_eq!(clock.elapsed(), STEP);
        assert!(far.join_within(STEP).is_none());
        assert_eq!(clock.elapsed(), 2 * STEP);
        executor.shutdown();
        assert_eq!(executor.await_termination(Duration::MAX), Ok(true));
        assert_eq!(clock.elapsed(), 3 * STEP);
    });
}

/// G9: a thread whose limit is over returns before the clock advances for another waiter, even if a
/// worker that was woken at the same moment is faster.
#[test]
fn an_auto_advancing_clock_waits_for_a_timed_out_thread_to_return() {
    check(|| {
        let (clock, executor) = executor(1);
        let [late, last] = [2, 3].map(|n| executor.schedule(n * STEP, || ()).expect("it is open"));
        let impatient = thread::spawn(move || late.join_within(STEP));
        while clock.next_deadline() != Some(STEP) {
            thread::yield_now();
        }
        executor.schedule(STEP, || ()).expect("it is open");
        clock.set_auto_advance(true);
        last.join().expect("it runs");
        assert!(impatient.join().expect("nobody panics").is_none());
    });
}

/// What a factory does with a worker other than to run it.
type Loses = fn(Worker) -> io::Result<Option<thread::JoinHandle<()>>>;

/// The outcome of a task that waits in its body for another one, while a thread submits a third. There may be two workers, but
/// those from the second up to this one are lost in this way.
fn joined_beside_lost_workers(last: usize, lose: Loses) -> Result<(), TaskError> {
    let threads = Count::default();
    let factory = move |worker: Worker| match threads.add() {
        number if 0 < number && number < last => lose(worker),
        _ => thread::Builder::new().spawn(move || worker.run()).map(Some),
    };
    let (_, executor) = executor_with(|builder| builder.core_pool_size(2).thread_factory(factory));
    let handle = executor.handle();
    let waits = executor.submit(move || handle.submit(|| ()).expect("there is a worker").join());
    executor.submit(|| ()).expect("there is a worker").join().expect("it runs");
    let joined = waits.expect("there is a worker").join().expect("it runs");
    executor.close().expect("not on a worker");
    joined
}

/// A worker waits for a task while another one is being started, and that start fails: the wait has not relied on it.
#[test]
fn no_wait_relies_on_a_worker_that_does_not_start() {
    check(|| {
        let joined = joined_beside_lost_workers(usize::MAX, |_| Err(io::Error::other("no more")));
        assert!(matches!(joined, Err(TaskError::WouldDeadlock)));
    });
}

/// A worker is lost after its start, and all that are left wait for tasks: another one is started for these.
#[test]
fn a_worker_that_is_lost_beside_those_that_wait_is_replaced() {
    check(|| {
        let lose: Loses = |worker| thread::Builder::new().spawn(|| drop(worker)).map(Some);
        assert!(joined_beside_lost_workers(2, lose).is_ok());
    });
}
