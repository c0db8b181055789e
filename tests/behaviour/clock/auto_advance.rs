//! The manual clock in the mode in which it advances by itself while a thread waits: each wait
//! ends, at its deadline, and nothing else moves the clock. Also, a clock that advances until a
//! condition holds.

use std::{sync::mpsc, thread, time::Duration};

use punctual::{
    CancelReason, CancellationToken, DelayQueue, FailurePolicy, Grace, LimitReached, ManualClock,
    ScheduledThreadPoolExecutor, TaskError, current_task,
};

use crate::{
    support::awaiting::block_on,
    support::{Counter, Log, elsewhere, eventually, in_time, manual, ms, receive},
};

const HOUR: Duration = Duration::from_secs(3_600);
const NANO: Duration = Duration::from_nanos(1);

/// An executor on a clock that advances by itself.
fn auto(core_pool_size: usize) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let (clock, executor) = manual(core_pool_size);
    clock.set_auto_advance(true);
    (clock, executor)
}

/// G9: a join with a time limit gives up at its limit, to the nanosecond, and returns the result if
/// the task ends by then.
#[test]
fn a_timed_join_ends_at_its_limit() {
    in_time("the joins", || {
        for workers in [1, 3] {
            let (clock, executor) = auto(workers);
            let future = executor.schedule(HOUR, || 7).expect("accepted");
            assert!(future.join_within(ms(5)).is_none());
            assert_eq!(clock.elapsed(), ms(5));
            assert!(future.join_within(HOUR - ms(5) - NANO).is_none());
            assert_eq!(clock.elapsed(), HOUR - NANO);
            assert!(matches!(future.join_within(HOUR), Some(Ok(7))));
            assert_eq!(clock.elapsed(), HOUR);
        }
    });
}

/// A join without a limit moves the clock to the deadline of its task, stopping at each earlier
/// deadline.
#[test]
fn a_join_goes_through_every_deadline_before() {
    in_time("the join", || {
        for workers in [1, 3] {
            let (clock, executor) = auto(workers);
            let (starts, reads) = (Log::new(), clock.clone());
            let log = starts.clone();
            let period = HOUR / 4;
            let beat = executor.schedule_at_fixed_rate(period, period, move || {
                log.push(reads.elapsed());
            });
            let end = executor.schedule(HOUR + NANO, || 7).expect("accepted");
            assert!(matches!(end.join(), Ok(7)));
            assert_eq!(clock.elapsed(), HOUR + NANO);
            assert_eq!(starts.entries(), [1, 2, 3, 4].map(|n| n * period));
            drop(beat);
        }
    });
}

/// The wait for termination takes no longer than its limit, or than the last task.
#[test]
fn the_wait_for_the_end_counts_the_time() {
    in_time("the end", || {
        let (clock, executor) = auto(2);
        executor.schedule(HOUR, || ()).expect("accepted");
        executor.shutdown();
        assert_eq!(executor.await_termination(ms(5)), Ok(false));
        assert_eq!(clock.elapsed(), ms(5));
        assert_eq!(executor.await_termination(Duration::MAX), Ok(true));
        assert_eq!(clock.elapsed(), HOUR);
    });
}

/// A shutdown with a limit gives up at its limit, and a closed executor runs to its last task.
#[test]
fn shutdowns_count_the_time() {
    in_time("the shutdowns", || {
        let (clock, executor) = auto(1);
        executor.schedule(HOUR, || ()).expect("accepted");
        let asleep = executor.submit(|| own_token().sleep(2 * HOUR).is_err());
        let report =
            executor.shutdown_within(Grace::patience(ms(7)).then(HOUR)).expect("not on a worker");
        assert!(report.is_terminated);
        assert_eq!((report.cancelled.len(), clock.elapsed()), (1, ms(7)));
        assert!(matches!(asleep.expect("accepted").try_join(), Some(Ok(true))));

        let (clock, executor) = auto(1);
        executor.schedule(HOUR, || ()).expect("accepted");
        executor.close().expect("not on a worker");
        assert_eq!(clock.elapsed(), HOUR);
    });
}

fn own_token() -> CancellationToken {
    current_task().expect("inside a task").token()
}

/// G9: a thread sleeps on a token of the executor's clock until a periodic task has run five times:
/// it is woken at the moment of the fifth run. A sleep whose time is up earlier ends with the runs
/// that were due by then.
#[test]
fn a_sleeper_is_woken_by_the_fifth_run() {
    in_time("the sleeps", || {
        let (clock, executor) = auto(1);
        let token = CancellationToken::with_clock(executor.clock().clone());
        let (runs, raises, second) = (Counter::new(), token.clone(), Duration::from_secs(1));
        let counts = runs.clone();
        let beat = executor.schedule_at_fixed_rate(second, second, move || {
            counts.add();
            if counts.get() == 5 {
                raises.cancel();
            }
        });
        assert!(token.sleep(7 * second / 2).is_ok());
        assert_eq!((runs.get(), clock.elapsed()), (3, 7 * second / 2));
        assert!(token.sleep(Duration::MAX).is_err());
        assert_eq!((runs.get(), clock.elapsed()), (5, 5 * second));
        assert!(beat.expect("accepted").cancel());
    });
}

/// Tasks that sleep or join, timeouts, and pauses after a panic move the clock just as waits in a
/// queue do.
#[test]
fn waits_inside_tasks_move_the_clock() {
    in_time("the joins", || {
        let (clock, executor) = auto(2);
        let slept = executor.submit(|| own_token().sleep(HOUR).is_ok()).expect("accepted");
        let outer = executor.submit(move || slept.join()).expect("accepted");
        assert!(matches!(outer.join(), Ok(Ok(true))));
        assert_eq!(clock.elapsed(), HOUR);

        let struck = executor.task().timeout(ms(3)).submit(|| own_token().wait());
        let outcome = struck.expect("accepted").join();
        assert!(matches!(outcome, Err(TaskError::Cancelled(CancelReason::TimedOut))));
        assert_eq!(clock.elapsed(), HOUR + ms(3));

        let (token, mut left) = (executor.submit(own_token).expect("accepted"), 3);
        let token = token.join().expect("it runs");
        let raises = token.clone();
        let policy = FailurePolicy::resume();
        let series =
            executor.task().on_failure(policy).schedule_with_fixed_delay(ms(1), ms(1), move || {
                left -= 1;
                assert_eq!(left, 0, "not yet");
                raises.cancel();
            });
        token.wait();
        assert_eq!(clock.elapsed(), HOUR + ms(6));
        drop(series);
    });
}

/// The clock waits for several executors alike, including those whose worker waits for another
/// executor.
#[test]
fn several_executors_share_the_time() {
    in_time("the joins", || {
        let (clock, first) = auto(1);
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let second = builder.clock(first.clock().clone()).build().expect("the settings are good");
        let inner = second.schedule(ms(9), || 7).expect("accepted");
        let outer = first.schedule(ms(4), move || inner.join()).expect("accepted");
        assert!(matches!(outer.join(), Ok(Ok(7))));
        assert_eq!(clock.elapsed(), ms(9));
    });
}

/// A thread takes each value from a queue at its deadline, and gives up at its limit.
#[test]
fn a_queue_returns_its_elements_at_their_deadlines() {
    in_time("the takes", || {
        let clock = ManualClock::new();
        clock.set_auto_advance(true);
        let queue = DelayQueue::with_clock(clock.clone());
        for delay in [3, 1, 2] {
            queue.insert(delay * HOUR, delay).expect("it is open");
        }
        assert_eq!(queue.take_within(ms(1)).ok().flatten(), None);
        assert_eq!(clock.elapsed(), ms(1));
        let taken: Vec<_> =
            (0..3).map(|_| (queue.take().map(|it| it.element), clock.elapsed())).collect();
        assert_eq!(taken, [1, 2, 3].map(|n| (Some(n), n * HOUR)));
        let start = queue.clock().now();
        assert_eq!(queue.take_within(start + HOUR), Err(LimitReached::TimedOut));
        assert_eq!(queue.clock().now(), start + HOUR);
    });
}

/// An async task that awaits an element is woken while a thread waits, and that thread stays
/// asleep.
#[test]
fn an_async_task_is_woken_while_a_thread_waits() {
    let (clock, executor) = auto(1);
    let queue = DelayQueue::with_clock(clock.clone());
    queue.insert(ms(3), 7).expect("it is open");
    let awaits = elsewhere(move || block_on(queue.next()).map(|it| it.element));
    eventually("it awaits", || clock.next_deadline() == Some(ms(3)));
    let future = executor.schedule(ms(9), || ()).expect("accepted");
    in_time("the join", move || future.join().expect("it runs"));
    assert_eq!((awaits.get(), clock.elapsed()), (Some(7), ms(9)));
}

/// While the mode is off the clock stands still, whatever waits; when it is switched on, it moves
/// for threads that wait already; when it is switched off again, it stands still.
#[test]
fn it_goes_on_only_while_the_mode_is_on() {
    let (clock, executor) = manual(1);
    let future = executor.schedule(ms(5), || 7).expect("accepted");
    let joined = elsewhere(move || (future.join_within(ms(3)).is_none(), future.join()));
    eventually("it waits", || clock.next_deadline() == Some(ms(3)));
    clock.run_until_idle();
    assert_eq!(clock.elapsed(), Duration::ZERO);
    clock.set_auto_advance(true);
    let (gave_up, result) = joined.get();
    assert!(gave_up && matches!(result, Ok(7)));
    assert_eq!(clock.elapsed(), ms(5));
    clock.set_auto_advance(false);
    let future = executor.schedule(ms(5), || 7).expect("accepted");
    let joined = elsewhere(move || future.join_within(ms(3)).is_none());
    eventually("it waits", || clock.next_deadline() == Some(ms(3)));
    clock.run_until_idle();
    assert_eq!(clock.elapsed(), ms(5));
    clock.advance(ms(3));
    assert!(joined.get());
}

/// While no thread waits the clock stands still, whatever is due later.
#[test]
fn it_stands_while_no_thread_waits() {
    let (clock, executor) = auto(1);
    let future = executor.schedule(ms(5), || 7).expect("accepted");
    for _ in 0..3 {
        clock.run_until_idle();
        assert_eq!((clock.elapsed(), clock.next_deadline()), (Duration::ZERO, Some(ms(5))));
    }
    assert_eq!(clock.advance_to_next_deadline(), Some(ms(5)));
    assert!(future.is_done());
}

/// A running task keeps the clock from advancing for as long as it runs.
#[test]
fn it_stands_while_a_task_runs() {
    let (clock, executor) = auto(2);
    let (begun, gate, reads) = (Counter::new(), Counter::new(), clock.clone());
    let (begins, opened) = (begun.clone(), gate.clone());
    let runs = executor.submit(move || {
        begins.add();
        opened.wait_for(1);
        reads.elapsed()
    });
    begun.wait_for(1);
    let later = executor.schedule(ms(5), || ()).expect("accepted");
    let joined = elsewhere(move || later.join());
    gate.add();
    let ended_at = in_time("the run", move || runs.expect("accepted").join());
    assert_eq!(ended_at.expect("it runs"), Duration::ZERO);
    joined.get().expect("it runs");
    assert_eq!(clock.elapsed(), ms(5));
}

/// G9: without a next deadline the clock stands still, also if the only deadline was that of a task
/// that has been cancelled. A waiting thread is woken by the event it waits for.
#[test]
fn it_stands_without_a_next_deadline() {
    let (clock, executor) = auto(2);
    let far = executor.schedule(HOUR, || ()).expect("accepted");
    clock.run_until_idle();
    assert!(far.cancel());
    let never = executor.schedule(Duration::MAX, || ()).expect("accepted");
    let (handle, (tell, told)) = (never.task_handle(), mpsc::channel());
    thread::spawn(move || tell.send(never.join()));
    assert!(told.recv_timeout(ms(2)).is_err());
    assert!(handle.cancel());
    assert!(receive(&told, "it is woken").is_err());
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

/// When a worker ends, time still advances for waiting threads and for the other workers.
#[test]
fn time_goes_on_after_the_end_of_a_worker() {
    in_time("the end", || {
        for round in 0..50 {
            let (clock, executor) = auto(2);
            let stays = executor.submit(move || own_token().sleep(ms(8)).is_ok());
            executor.submit(|| ()).expect("accepted");
            executor.shutdown();
            assert_eq!(executor.await_termination(HOUR), Ok(true), "{round}");
            assert!(matches!(stays.expect("accepted").try_join(), Some(Ok(true))));
            assert_eq!(clock.elapsed(), ms(8));
        }
    });
}

/// Due tasks run first; if the condition holds after that, the clock does not move.
#[test]
fn it_runs_until_a_condition_holds() {
    let (clock, executor) = manual(1);
    let at_once = executor.submit(|| ()).expect("accepted");
    assert!(clock.run_until(|| at_once.is_done()));
    assert_eq!(clock.elapsed(), Duration::ZERO);
    let runs = Counter::new();
    let counts = runs.clone();
    let beat = executor.schedule_at_fixed_rate(ms(2), ms(3), move || counts.add());
    assert!(clock.run_until(|| runs.get() == 4));
    assert_eq!(clock.elapsed(), ms(11));
    assert!(clock.run_until(|| runs.get() == 4), "it holds already");
    assert_eq!(clock.elapsed(), ms(11));
    assert!(beat.expect("accepted").cancel());
}

/// If the condition never holds, the clock advances to the last deadline and reports that.
#[test]
fn a_condition_that_never_holds_ends_with_the_last_deadline() {
    let (clock, executor) = manual(1);
    let mut asked = Vec::new();
    let futures = [3, 7].map(|delay| executor.schedule(ms(delay), || ()).expect("accepted"));
    let reads = clock.clone();
    let holds = clock.run_until(|| {
        asked.push(reads.elapsed());
        false
    });
    asked.dedup();
    assert_eq!((holds, asked), (false, vec![Duration::ZERO, ms(3), ms(7)]));
    assert!(futures.iter().all(|future| future.is_done()));
    assert!(!ManualClock::new().run_until(|| false));
    assert!(ManualClock::new().run_until(|| true));
}
