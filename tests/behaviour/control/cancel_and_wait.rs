//! `cancel_and_wait`: when it returns the closure is not running and never will.

use std::{sync::mpsc, thread};

use punctual::{ScheduledThreadPoolExecutor as Executor, WouldDeadlock, current_task};

use crate::support::{Counter, Drops, manual, ms};

#[test]
fn a_waiting_task_is_gone_at_once() {
    let (_, executor) = manual(1);
    let drops = Drops::default();
    let token = drops.token();
    let task = executor.schedule(ms(10), move || drop(token)).expect("accepted");
    assert!(task.cancel_and_wait().expect("outside of the pool"));
    assert_eq!((drops.count(), executor.pending_count()), (1, 0));
    assert!(!task.task_handle().cancel_and_wait().expect("outside of the pool"));
}

/// The body ends some time after it has been asked to, and the captures of a series go then.
#[test]
fn a_running_body_is_waited_for() {
    let executor = Executor::new(1);
    for is_series in [false, true] {
        let (started, drops, ended) = (Counter::new(), Drops::default(), Counter::new());
        let (is_started, has_ended, token) = (started.clone(), ended.clone(), drops.token());
        let body = move || {
            let _ = &token;
            is_started.add();
            current_task().expect("inside a task").token().wait();
            thread::yield_now();
            has_ended.add();
        };
        let task = if is_series {
            executor.schedule_at_fixed_rate(ms(0), ms(1), body)
        } else {
            executor.submit(body)
        };
        let task = task.expect("accepted");
        started.wait_for(1);
        let handle = task.task_handle();
        let other = thread::spawn(move || {
            let ended = handle.cancel_and_wait().expect("outside of the pool");
            (ended, drops.count())
        });
        let own = task.cancel_and_wait().expect("outside of the pool");
        assert_eq!(ended.get(), 1);
        let (others, dropped) = other.join().expect("nobody panics");
        assert!(own != others, "one of them ended it");
        assert_eq!(dropped, 1);
        assert!(task.is_cancelled());
    }
}

/// A task that has completed is not waited for.
#[test]
fn a_task_that_has_ended_has_left() {
    let executor = Executor::new(1);
    let task = executor.submit(|| 7).expect("accepted");
    task.wait().expect("outside of the pool");
    assert!(!task.cancel_and_wait().expect("outside of the pool"));
    assert_eq!(task.join().expect("it has completed"), 7);
}

#[test]
fn a_task_does_not_wait_for_itself() {
    let executor = Executor::new(1);
    let (send, receive) = mpsc::channel::<punctual::TaskHandle>();
    let (answer, answers) = mpsc::channel();
    let task = executor.submit(move || {
        let own = receive.recv().expect("it is sent");
        answer.send(own.cancel_and_wait()).expect("it is awaited");
    });
    let task = task.expect("accepted");
    send.send(task.task_handle()).expect("it is awaited");
    assert!(matches!(answers.recv().expect("it answers"), Err(WouldDeadlock { .. })));
    assert!(task.join().expect_err("it was cancelled all the same").is_cancelled());
}

/// The last worker that does not wait is not to wait for a body that waits for a worker.
#[test]
fn the_last_free_worker_does_not_wait() {
    let executor = Executor::new(2);
    let handle = executor.handle();
    let (started, go) = (Counter::new(), Counter::new());
    let (is_started, may_go) = (started.clone(), go.clone());
    let joins = executor.submit(move || {
        is_started.add();
        may_go.wait_for(1);
        let task = handle.submit(|| 7).expect("accepted");
        task.join().is_ok()
    });
    let joins = joins.expect("accepted");
    started.wait_for(1);
    let stuck = joins.task_handle();
    let waits = executor.submit(move || {
        go.add();
        stuck.cancel_and_wait().is_ok()
    });
    // Either the wait is refused, or the join is: the other goes on then.
    let waited = waits.expect("accepted").join();
    assert!(waited.is_ok());
    assert!(joins.is_done());
}
