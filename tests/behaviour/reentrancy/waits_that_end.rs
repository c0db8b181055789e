//! Waits inside a task that look like deadlocks but are not, and the effects of a refused wait.

use std::sync::{Arc, Mutex, mpsc};

use punctual::{
    DrainedTask, ExecutorCompletionService, Handle, RejectedTask,
    ScheduledThreadPoolExecutor as Executor, TaskError, TaskSet, current_task,
    trigger::{Due, every, from_fn},
};

use crate::support::{Counter, HOUR, LONG, in_time, manual, ms, receive};

/// G18: the only worker may wait for a task that has a time limit: the wait ends at the limit.
#[test]
fn the_last_worker_waits_for_a_task_with_a_time_limit() {
    let executor = Executor::new(1);
    let handle = executor.handle();
    let body = move || {
        let inner = handle.task().timeout(ms(20)).submit(|| 7).unwrap();
        let waited = inner.wait().is_ok();
        (waited, inner.join().expect_err("nobody was left to run it").is_timeout())
    };
    let outer = executor.submit(body).unwrap();
    assert_eq!(outer.join_within(LONG).expect("it ends").unwrap(), (true, true));
}

/// A limit that is never reached counts as none, and so does the limit of a single run.
#[test]
fn a_limit_that_never_ends_the_task_is_no_reason_to_wait() {
    let executor = Executor::new(1);
    let handle = executor.handle();
    let body = move || {
        let endless = handle.task().timeout(std::time::Duration::MAX).submit(|| ()).unwrap();
        let each_run = handle.task().timeout(ms(5)).schedule_at_fixed_rate(ms(1), ms(1), || ());
        [endless.wait(), each_run.unwrap().wait()]
    };
    let outer = executor.submit(body).unwrap();
    let waits = outer.join_within(LONG).expect("it ends").unwrap();
    assert!(waits.iter().all(|wait| matches!(wait, Err(TaskError::WouldDeadlock))), "{waits:?}");
}

/// The second of two workers may wait as well if the first waits for a task that has a time limit:
/// the first will continue.
#[test]
fn a_worker_that_waits_with_a_limit_goes_on() {
    let executor = Executor::new(2);
    let (handle, both) = (executor.handle(), Counter::new());
    let first = {
        let (handle, both) = (handle.clone(), both.clone());
        executor.submit(move || {
            let limited = handle.task().timeout(ms(20)).submit(|| ()).unwrap();
            both.add();
            both.wait_for(2);
            limited.wait()
        })
    };
    let second = executor.submit(move || {
        both.add();
        both.wait_for(2);
        handle.submit(|| 7).unwrap().join()
    });
    assert!(first.unwrap().join_within(LONG).expect("it ends").unwrap().is_ok());
    // The order of the two waits decides whether any worker is left; no thread waits for ever.
    let second = second.unwrap().join_within(LONG).expect("it ends").unwrap();
    assert!(matches!(second, Ok(7)), "{second:?}");
}

/// G18: the only worker may wait for a task that the rejection handler has kept: another thread
/// runs it.
#[test]
fn the_last_worker_waits_for_a_rejected_task_that_was_kept() {
    let (keep, kept) = mpsc::channel::<DrainedTask>();
    let keep = Mutex::new(keep);
    let builder = Executor::builder().core_pool_size(1).max_pending(1);
    let builder = builder.rejected_execution_handler(move |task: RejectedTask<'_>| {
        let (task, answer) = task.keep();
        keep.lock().unwrap().send(task).unwrap();
        answer
    });
    let executor = builder.build().unwrap();
    let (handle, waits) = (executor.handle(), Counter::new());
    let begins = waits.clone();
    let outer = executor.submit(move || {
        let filler = handle.schedule(LONG, || ()).unwrap();
        let inner = handle.submit(|| 7).unwrap();
        begins.add();
        let answer = inner.join();
        filler.cancel();
        answer
    });
    waits.wait_for(1);
    receive(&kept, "a worker is kept").run();
    let answer = outer.unwrap().join_within(LONG).expect("it ends").unwrap();
    assert_eq!(answer.unwrap(), 7);
}

/// A taker on the only worker waits as long as one of the futures has a time limit, also one that
/// is added while it waits; it is refused when none has.
#[test]
fn a_taker_waits_for_a_task_with_a_time_limit() {
    let executor = Executor::new(1);
    let handle = executor.handle();
    let body = move || {
        let service = ExecutorCompletionService::new(&handle);
        service.submit(|| 7).unwrap();
        service.push(handle.task().timeout(ms(20)).submit(|| 8).unwrap());
        let first = service.take().expect("one has a limit").expect("it is there").join();
        let second = service.take().map(|future| future.is_some());
        (first, second)
    };
    let (first, second) = executor.submit(body).unwrap().join_within(LONG).unwrap().unwrap();
    assert!(first.expect_err("it never ran").is_timeout());
    assert!(matches!(second, Err(TaskError::WouldDeadlock)), "{second:?}");
}

/// The same holds if the future with the limit is added only when the taker already waits, and
/// another worker asks whether any worker is left.
#[test]
fn a_limit_that_joins_later_counts() {
    let executor = Executor::new(2);
    let handle = executor.handle();
    let service = Arc::new(ExecutorCompletionService::new(&handle));
    service.push(handle.schedule(LONG, || 7).unwrap());
    let (taker, waits) = (Arc::clone(&service), Counter::new());
    let begins = waits.clone();
    let first = executor.submit(move || {
        begins.add();
        taker.take().expect("somebody is left").expect("it is there").join()
    });
    waits.wait_for(1);
    let second = executor.submit(move || {
        service.push(handle.task().timeout(ms(20)).submit(|| 8).unwrap());
        handle.submit(|| 9).unwrap().join()
    });
    let second = second.unwrap().join_within(LONG).expect("it ends").unwrap();
    assert!(matches!(second, Ok(9)), "{second:?}");
    let first = first.unwrap().join_within(LONG).expect("it ends").unwrap();
    assert!(first.expect_err("it never ran").is_timeout());
}

/// G18: a refused wait takes nothing: the future can be joined later, alone or in its set.
#[test]
fn a_refused_wait_leaves_the_future() {
    let (clock, executor) = manual(1);
    let handle = executor.handle();
    let body = move || {
        let inner = handle.submit(|| 7).unwrap();
        assert!(matches!(inner.join(), Err(TaskError::WouldDeadlock)));
        let done = handle.schedule(ms(1), || 8).unwrap();
        assert!(done.cancel());
        let mut set = TaskSet::from_iter([done, handle.submit(|| 9).unwrap()]);
        let results = set.join_all();
        assert!(matches!(&results[0], Err(error) if error.is_cancelled()));
        assert!(matches!(results[1], Err(TaskError::WouldDeadlock)));
        assert_eq!(set.len(), 1);
        (inner, set)
    };
    let outer = executor.submit(body).unwrap();
    let (inner, mut set) = in_time("the task", move || outer.join().unwrap());
    assert_eq!(inner.join().unwrap(), 7);
    assert!(matches!(set.join_all()[..], [Ok(9)]));
    assert!(set.is_empty());
    clock.run_until_idle();
}

/// The drop of a replaced trigger waits for a task that another worker has to run. By then the worker that was called
/// for the series is awake, and no thread relies on the worker that drops the trigger.
#[test]
fn the_drop_of_a_replaced_trigger_waits_for_another_worker() {
    struct WaitsInDrop(Handle, mpsc::Sender<()>);
    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            let (run, ran) = mpsc::channel();
            self.0.execute(move || run.send(()).unwrap()).unwrap();
            receive(&ran, "the other worker runs it");
            self.1.send(()).unwrap();
        }
    }
    // The other worker sleeps at the moment of the request in every second round or so.
    for is_in_run in [true, false].repeat(20) {
        let (clock, executor) = manual(2);
        executor.prestart_all_core_threads().unwrap();
        let (end, dropped) = mpsc::channel();
        let waits = WaitsInDrop(executor.handle(), end);
        let trigger = from_fn(move |context| {
            let _ = &waits;
            Some(Due::At(context.after() + HOUR))
        });
        let body = move || {
            let task = current_task().unwrap();
            assert!(!is_in_run || task.set_trigger(every(HOUR).first_in(ms(1))));
        };
        let series = executor.repeat(trigger, body).unwrap();
        match is_in_run {
            true => clock.advance(HOUR),
            false => assert!(series.set_trigger(every(HOUR).first_in(ms(1)))),
        }
        receive(&dropped, "the trigger has been dropped");
        assert!(series.cancel());
    }
}
