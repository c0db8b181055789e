//! The manual clock: time that stands still until a test moves it, and tests that can wait for
//! idleness.

use std::{
    sync::mpsc,
    sync::mpsc::Receiver,
    thread,
    time::{Duration, Instant},
};

use punctual::{CancellationToken, DelayQueue, ManualClock, ScheduledThreadPoolExecutor};

use crate::support::{Counter, LONG, Log, eventually, in_time, manual, ms, receive};

const NANO: Duration = Duration::from_nanos(1);

/// An executor with one worker on this clock.
fn on(clock: &ManualClock) -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    let executor = builder.clock(clock.clone()).build();
    executor.expect("the settings are good")
}

/// Logs the moments at which a task with this period starts.
fn log_beat(
    clock: &ManualClock,
    executor: &ScheduledThreadPoolExecutor,
    period: Duration,
) -> Log<Duration> {
    let (log, clock) = (Log::new(), clock.clone());
    let starts = log.clone();
    let beat = executor.schedule_at_fixed_rate(period, period, move || log.push(clock.elapsed()));
    drop(beat.expect("accepted"));
    starts
}

/// A task runs at its deadline, and not a nanosecond earlier.
#[test]
fn a_task_runs_at_its_deadline_to_the_nanosecond() {
    let (clock, executor) = manual(1);
    let future = executor.schedule(ms(5), || 7).expect("accepted");
    clock.advance(ms(5) - NANO);
    clock.run_until_idle();
    assert!(!future.is_done());
    assert_eq!(future.delay(), Some(NANO));
    clock.advance(NANO);
    clock.run_until_idle();
    assert!(matches!(future.try_join(), Some(Ok(7))));
}

/// A clock that is not moved stands still, and its clones and conversions show the same time.
#[test]
fn time_stands_still_and_is_shared() {
    let clock = ManualClock::default();
    let clone = clock.clone();
    let origin = clock.now();
    clone.advance(ms(3));
    for _ in 0..2 {
        assert_eq!((clock.elapsed(), clock.now()), (ms(3), origin + ms(3)));
    }
}

/// A task submitted before `run_until_idle` has run when that call returns.
#[test]
fn idle_means_that_due_tasks_have_run() {
    let (clock, executor) = manual(2);
    for _ in 0..200 {
        let futures = [(); 4].map(|()| executor.submit(|| 7).expect("accepted"));
        clock.run_until_idle();
        assert!(futures.iter().all(|future| future.is_done()));
    }
}

/// The clock also waits for tasks that other tasks submit.
#[test]
fn idle_means_that_follow_up_tasks_have_run() {
    let (clock, executor) = manual(2);
    for _ in 0..100 {
        let (depth, handle) = (Counter::new(), executor.handle());
        let deepest = depth.clone();
        let chain = move || {
            let again = handle.clone();
            let inner = move || {
                again.execute(move || deepest.add()).expect("accepted");
            };
            handle.execute(inner).expect("accepted");
        };
        executor.execute(chain).expect("accepted");
        clock.run_until_idle();
        assert_eq!(depth.get(), 1);
    }
}

/// Without an executor, or without a running one, the clock is idle and has no next deadline.
#[test]
fn a_clock_without_workers_is_idle() {
    let clock = ManualClock::new();
    let idle = |clock: &ManualClock| {
        clock.run_until_idle();
        assert_eq!(clock.next_deadline(), None);
        assert_eq!(clock.advance_to_next_deadline(), None);
        clock.run_for(ms(1));
    };
    idle(&clock);
    let executor = on(&clock);
    idle(&clock);
    let future = executor.schedule(LONG, || 7).expect("accepted");
    drop(executor);
    idle(&clock);
    assert!(future.is_cancelled());
    assert_eq!(clock.elapsed(), ms(3));
}

/// After one jump a fixed rate catches up at the end of the jump; when the clock moves from
/// deadline to deadline it runs on time.
#[test]
fn a_jump_makes_late_and_a_run_does_not() {
    let (clock, executor) = manual(1);
    let starts = log_beat(&clock, &executor, ms(10));
    clock.run_for(ms(35));
    assert_eq!(starts.entries(), [ms(10), ms(20), ms(30)]);
    assert_eq!(clock.elapsed(), ms(35));
    clock.advance(ms(25));
    clock.run_until_idle();
    assert_eq!(starts.entries()[3..], [ms(60), ms(60), ms(60)]);
}

/// A task that is due at the very end of `run_for` runs in it.
#[test]
fn run_for_includes_its_last_deadline() {
    let (clock, executor) = manual(1);
    let starts = log_beat(&clock, &executor, ms(10));
    clock.run_for(ms(10) - NANO);
    assert!(starts.entries().is_empty());
    clock.run_for(NANO);
    assert_eq!(starts.entries(), [ms(10)]);
    clock.run_for(Duration::ZERO);
    assert_eq!(clock.elapsed(), ms(10));
}

/// What falls due because the tasks move the clock beyond the end runs, too.
#[test]
fn run_for_waits_for_what_takes_longer() {
    let (clock, executor) = manual(1);
    for delay in 10..30 {
        let own = clock.clone();
        executor.schedule(ms(delay), move || own.advance(ms(5))).expect("accepted");
    }
    clock.run_for(ms(10));
    assert_eq!((executor.pending_count(), clock.elapsed()), (0, ms(10 + 20 * 5)));
}

/// A series whose body moves the clock by more than its period is never idle.
#[test]
fn run_for_ends_beside_a_series_that_is_never_idle() {
    let (clock, executor) = manual(1);
    let own = clock.clone();
    let series = executor.schedule_at_fixed_rate(ms(1), ms(1), move || own.advance(ms(2)));
    let after = in_time("the clock stops", move || {
        clock.run_for(ms(10));
        clock.elapsed()
    });
    assert!(series.expect("accepted").cancel() && after >= ms(10));
}

/// The clock can be moved from deadline to deadline, and returns how far each was.
#[test]
fn the_clock_goes_from_deadline_to_deadline() {
    let (clock, executor) = manual(1);
    let futures = [7, 3, 3].map(|delay| executor.schedule(ms(delay), || {}).expect("accepted"));
    let done = || futures.iter().filter(|future| future.is_done()).count();
    assert_eq!(clock.advance_to_next_deadline(), Some(ms(3)));
    assert_eq!((done(), clock.elapsed()), (2, ms(3)));
    assert_eq!(clock.advance_to_next_deadline(), Some(ms(4)));
    assert_eq!((done(), clock.elapsed()), (3, ms(7)));
    assert_eq!(clock.advance_to_next_deadline(), None);
    assert_eq!(clock.elapsed(), ms(7));
}

/// The next deadline is that of the nearest task, follows submissions and cancellations, and is
/// none for a task that is never due.
#[test]
fn the_next_deadline_is_the_nearest() {
    let (clock, executor) = manual(2);
    let next = || {
        clock.run_until_idle();
        clock.next_deadline()
    };
    let never = executor.schedule(Duration::MAX, || {}).expect("accepted");
    assert_eq!(next(), None);
    let far = executor.schedule(ms(9), || {}).expect("accepted");
    assert_eq!(next(), Some(ms(9)));
    let near = executor.schedule(ms(4), || {}).expect("accepted");
    assert_eq!(next(), Some(ms(4)));
    clock.advance(ms(1));
    assert_eq!(next(), Some(ms(3)));
    assert!(near.cancel());
    clock.advance_to_next_deadline();
    clock.advance_to_next_deadline();
    assert!(far.is_done() && !never.is_done());
    assert_eq!((clock.elapsed(), next()), (ms(9), None));
}

/// `schedule_at` accepts instants of the clock; one in the past means now.
#[test]
fn an_instant_of_the_clock_can_be_scheduled_at() {
    let (clock, executor) = manual(1);
    clock.advance(ms(2));
    let at = |instant| executor.schedule_at(instant, || {}).expect("accepted");
    let future = at(clock.now() + ms(5));
    assert_eq!(future.delay(), Some(ms(5)));
    let past = at(clock.now() - ms(1));
    clock.run_until_idle();
    assert!(past.is_done() && !future.is_done());
    clock.advance(ms(5) - NANO);
    clock.run_until_idle();
    assert!(!future.is_done());
    clock.advance(NANO);
    clock.run_until_idle();
    assert!(future.is_done());
}

/// G8: moments in the past keep their order, both after the clock's origin and up to a year before
/// it; and a clock that has advanced still distinguishes all moments of its own past.
#[test]
fn the_past_has_its_order() {
    let year = Duration::from_secs(365 * 86_400);
    for clock in [ManualClock::new(), ManualClock::starting_at(ms(3)), {
        let clock = ManualClock::starting_at(2 * year);
        clock.advance(ms(1));
        clock
    }] {
        let queue = DelayQueue::with_clock(clock.clone());
        let now = queue.clock().now();
        assert_eq!(now, clock.now());
        // A platform's instants may not reach back so far.
        let ago = |span| now.checked_sub(span).unwrap_or(now);
        let spans = [ms(5_000), ms(10_000), ms(10_000) + NANO, ms(0), ms(1)];
        for (number, span) in spans.into_iter().enumerate() {
            queue.insert(ago(span), number).expect("it is open");
        }
        if now.checked_sub(year).is_none() {
            return;
        }
        let taken: Vec<_> = queue.drain().map(|it| (it.element, it.deadline)).collect();
        let expected = [2, 1, 0, 4, 3].map(|number| (number, ago(spans[number])));
        assert_eq!(taken, expected);
    }
}

/// A task scheduled for a time in the past is due now, in its turn: behind tasks that were due
/// before it was submitted.
#[test]
fn a_task_scheduled_for_the_past_takes_its_turn() {
    let (clock, executor) = manual(1);
    let (log, gate) = (Log::new(), Counter::new());
    let opened = gate.clone();
    let blocks = executor.submit(move || opened.wait_for(1)).expect("accepted");
    for (number, ago) in [1, 9, 5].into_iter().enumerate() {
        let (log, past) = (log.clone(), clock.now() - Duration::from_secs(ago));
        executor.schedule_at(past, move || log.push(number)).expect("accepted");
    }
    gate.add();
    clock.run_until_idle();
    assert_eq!((log.entries(), blocks.is_done()), (vec![0, 1, 2], true));
}

/// Code that is given some clock, without knowing its kind, reads the time of its executor, its
/// queue and its token.
#[test]
fn the_clock_of_an_executor_can_be_read() {
    let (clock, executor) = manual(1);
    let queue = DelayQueue::<()>::with_clock(executor.clock().clone());
    clock.advance(ms(7));
    for shown in [executor.clock(), executor.handle().clock(), queue.clock()] {
        assert_eq!(shown.now(), clock.now());
    }
    assert_eq!(executor.clock().now() - ms(7), clock.now() - clock.elapsed());
    let at = executor.schedule_at(executor.clock().now() + ms(5), || ()).expect("accepted");
    assert_eq!(at.delay(), Some(ms(5)));
    let system = ScheduledThreadPoolExecutor::new(1);
    let before = Instant::now();
    let read = system.clock().now();
    assert!(before <= read && read <= Instant::now());
}

/// A token that the user makes sleeps on the clock it was given.
#[test]
fn a_token_can_have_a_clock() {
    let clock = ManualClock::new();
    let token = CancellationToken::with_clock(clock.clone());
    let slept = in_thread(move || token.sleep(ms(5)));
    eventually("it sleeps", || clock.next_deadline() == Some(ms(5)));
    clock.advance(ms(5));
    assert!(receive(&slept, "its time is up").is_ok());
}

/// A clock that starts late shows that time, and everything counts from there.
#[test]
fn a_clock_can_start_late() {
    let start = Duration::from_secs(400 * 365 * 24 * 3_600);
    let clock = ManualClock::starting_at(start);
    let executor = on(&clock);
    assert_eq!(clock.elapsed(), start);
    let starts = log_beat(&clock, &executor, ms(10));
    clock.run_for(ms(20));
    assert_eq!(starts.entries(), [start + ms(10), start + ms(20)]);
}

/// F26: at the end of its time a clock stands still, and a deadline beyond the end is never due.
#[test]
fn a_clock_at_its_end_stands_still() {
    let clock = ManualClock::starting_at(Duration::MAX);
    let end = clock.elapsed();
    assert_eq!(end, Duration::from_nanos(u64::MAX - 1));
    clock.advance(Duration::MAX);
    assert_eq!(clock.elapsed(), end);
    let executor = on(&clock);
    let late = executor.schedule(NANO, || {}).expect("accepted");
    let due = executor.submit(|| {}).expect("accepted");
    let starts = log_beat(&clock, &executor, ms(1));
    clock.run_until_idle();
    clock.advance(LONG);
    clock.run_until_idle();
    assert!(due.is_done() && !late.is_done());
    assert_eq!(late.delay(), None);
    assert!(starts.entries().is_empty());
}

/// F26: a periodic task whose next deadline is beyond the end of time does not run again, and stays
/// pending.
#[test]
fn a_periodic_task_at_the_end_of_time_waits() {
    let end = Duration::from_nanos(u64::MAX - 1);
    let clock = ManualClock::starting_at(end - ms(25));
    let executor = on(&clock);
    let starts = log_beat(&clock, &executor, ms(10));
    clock.run_for(Duration::MAX);
    assert_eq!(starts.entries(), [end - ms(15), end - ms(5)]);
    assert_eq!((clock.elapsed(), clock.next_deadline()), (end, None));
    assert_eq!(executor.pending_count(), 1);
}

/// Executors on one clock share its time, and each runs its tasks at their deadlines.
#[test]
fn several_executors_share_a_clock() {
    let clock = ManualClock::new();
    let executors = [(); 3].map(|()| on(&clock));
    let log = Log::new();
    for (index, executor) in executors.iter().enumerate() {
        let (log, clock) = (log.clone(), clock.clone());
        let delay = ms(10 + index as u64);
        let body = move || log.push((index, clock.elapsed()));
        let beat = executor.schedule_with_fixed_delay(delay, ms(10), body);
        drop(beat.expect("accepted"));
    }
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(ms(10)));
    clock.run_for(ms(21));
    let expected = [(0, 10), (1, 11), (2, 12), (0, 20), (1, 21)];
    assert_eq!(log.entries(), expected.map(|(who, at)| (who, ms(at))));
}

/// The end of one executor does not affect another on the same clock.
#[test]
fn executors_leave_a_shared_clock() {
    let clock = ManualClock::new();
    let (gone, stays) = (on(&clock), on(&clock));
    let starts = log_beat(&clock, &stays, ms(10));
    drop(log_beat(&clock, &gone, ms(1)));
    drop(gone);
    clock.run_for(ms(20));
    assert_eq!(starts.entries(), [ms(10), ms(20)]);
}

/// Waits on a thread of its own, for waits that need the clock to move.
fn in_thread<R: Send + 'static>(wait: impl FnOnce() -> R + Send + 'static) -> Receiver<R> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(wait()));
    told
}

/// A join with a timeout measures it by the clock.
#[test]
fn a_timed_join_counts_the_time_of_the_clock() {
    let (clock, executor) = manual(1);
    let future = executor.schedule(Duration::MAX, || {}).expect("accepted");
    let joined = in_thread(move || future.join_within(ms(5)).is_none());
    eventually("it waits", || clock.next_deadline() == Some(ms(5)));
    clock.advance(ms(5) - NANO);
    assert!(joined.recv_timeout(ms(1)).is_err());
    assert_eq!(clock.next_deadline(), Some(NANO));
    clock.advance(NANO);
    assert!(receive(&joined, "its time is up"));
    eventually("it left the clock", || clock.next_deadline().is_none());
}

/// A join with a timeout returns when the task ends, if that is first.
#[test]
fn a_timed_join_ends_with_the_task() {
    let (clock, executor) = manual(1);
    let future = executor.schedule(ms(5), || 7).expect("accepted");
    let joined = in_thread(move || future.join_within(Duration::MAX));
    clock.advance(ms(5));
    let answer = receive(&joined, "it ends with the task");
    assert!(matches!(answer, Some(Ok(7))), "{answer:?}");
}

/// The wait for termination is measured by the clock, and returns when the executor terminates, if
/// that is first.
#[test]
fn the_wait_for_termination_counts_the_time_of_the_clock() {
    let (clock, executor) = manual(1);
    drop(executor.schedule(ms(9), || {}).expect("accepted"));
    executor.shutdown();
    let handle = executor.handle();
    let ended = in_thread(move || handle.await_termination(ms(5)));
    eventually("it waits", || clock.next_deadline() == Some(ms(5)));
    clock.advance(ms(5));
    let answer = receive(&ended, "its time is up");
    assert!(matches!(answer, Ok(false)), "{answer:?}");
    let handle = executor.handle();
    let ended = in_thread(move || handle.await_termination(Duration::MAX));
    clock.advance(ms(4));
    let answer = receive(&ended, "the last task has run");
    assert!(matches!(answer, Ok(true)), "{answer:?}");
}

/// A close is measured by the clock: it lasts as long as the tasks that are kept.
#[test]
fn a_close_lasts_until_the_clock_has_moved() {
    let (clock, executor) = manual(1);
    let future = executor.schedule(ms(9), || 7).expect("accepted");
    let handle = executor.handle();
    let closed = in_thread(move || executor.close());
    eventually("it has begun", || handle.is_shutdown());
    clock.run_until_idle();
    assert!(handle.is_terminating() && !future.is_done());
    clock.advance(ms(9));
    let answer = receive(&closed, "the last task has run");
    assert!(answer.is_ok() && handle.is_terminated());
    assert!(matches!(future.try_join(), Some(Ok(7))));
}

/// A task that joins another counts as idle, so the clock advances for the other.
#[test]
fn a_task_that_joins_is_idle() {
    let (clock, executor) = manual(2);
    let inner = executor.schedule(ms(5), || 7).expect("accepted");
    let outer = executor.submit(move || inner.join()).expect("accepted");
    clock.run_until_idle();
    assert_eq!(clock.next_deadline(), Some(ms(5)));
    clock.advance(ms(5));
    clock.run_until_idle();
    assert!(matches!(outer.try_join(), Some(Ok(Ok(7)))));
}

/// A worker of an executor on another clock that waits for something on this clock is not counted
/// as one of this clock's workers.
#[test]
fn a_worker_of_another_clock_does_not_count() {
    let (clock, executor) = manual(1);
    let (started, gate, ended) = (Counter::new(), Counter::new(), Counter::new());
    let (has_started, opened, has_ended) = (started.clone(), gate.clone(), ended.clone());
    let inner = executor.submit(move || {
        has_started.add();
        opened.wait_for(1);
        has_ended.add();
    });
    let inner = inner.expect("accepted");
    started.wait_for(1);
    let other = ScheduledThreadPoolExecutor::new(1);
    let outer = other.submit(move || inner.join_within(ms(5)).is_some());
    eventually("it waits", || clock.next_deadline() == Some(ms(5)));
    let ended_when_idle = in_time("idle", move || {
        gate.add();
        clock.run_until_idle();
        ended.get()
    });
    assert_eq!(ended_when_idle, 1, "a task runs, and the clock says it is idle");
    let answer = outer.expect("accepted").join_within(LONG);
    assert!(matches!(answer, Some(Ok(true))), "{answer:?}");
}

/// A clock is idle while a worker of an executor on another clock waits for something on it.
#[test]
fn a_worker_of_another_clock_does_not_keep_it_busy() {
    let (clock, executor) = manual(1);
    let inner = executor.schedule(ms(5), || 7).expect("accepted");
    let other = ScheduledThreadPoolExecutor::new(1);
    let outer = other.submit(move || inner.join_within(ms(4)).is_none());
    eventually("it waits", || clock.next_deadline() == Some(ms(4)));
    let same = clock.clone();
    in_time("idle", move || same.run_until_idle());
    clock.advance(ms(4));
    let answer = outer.expect("accepted").join_within(LONG);
    assert!(matches!(answer, Some(Ok(true))), "{answer:?}");
}

/// The next deadline is that of a task that is still there, not of one that was cancelled.
#[test]
fn a_cancelled_task_is_not_stepped_to() {
    let (clock, executor) = manual(2);
    let cancelled = executor.schedule(ms(10), || ()).expect("it is open");
    let kept = executor.schedule(ms(30), || ()).expect("it is open");
    clock.run_until_idle();
    assert!(cancelled.cancel());
    assert_eq!(clock.advance_to_next_deadline(), Some(ms(30)));
    assert!(kept.is_done());
}
