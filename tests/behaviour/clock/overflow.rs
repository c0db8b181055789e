//! The ends of time: delays that overflow when added, times in the past, and clocks close to their
//! last nanosecond.

use std::time::{Duration, Instant};

use punctual::{
    CancellationToken, Handle, ManualClock, ScheduledThreadPoolExecutor, TaskHandle, TaskState,
    current_task,
};

use crate::{
    support::POLICIES,
    support::{Counter, LONG, Log, in_time, manual, ms},
};

const NANO: Duration = Duration::from_nanos(1);
const SECOND: Duration = Duration::from_secs(1);
/// The last moment that a clock starting after a year or later can show: a task with a later
/// deadline is never due.
const LAST: Duration = Duration::from_nanos(u64::MAX - 1);

/// Schedules a task that counts its runs, with this delay before the first.
type Verb = fn(&Handle, Duration, Counter) -> TaskHandle;

/// The methods that take a delay; the periodic ones with short and long periods.
const VERBS: [(&str, Verb); 4] = [
    ("nothing, once", |handle, delay, runs| {
        let task = handle.schedule(delay, move || runs.add());
        task.expect("accepted").task_handle()
    }),
    ("a value, once", |handle, delay, runs| {
        let task = handle.schedule(delay, move || {
            runs.add();
            7
        });
        task.expect("accepted").task_handle()
    }),
    ("with fixed delay", |handle, delay, runs| {
        let task = handle.schedule_with_fixed_delay(delay, 1_000 * NANO, move || runs.add());
        task.expect("accepted").task_handle()
    }),
    ("at fixed rate", |handle, delay, runs| {
        let task = handle.schedule_at_fixed_rate(delay, SECOND, move || runs.add());
        task.expect("accepted").task_handle()
    }),
];

/// An executor on a clock that shows `elapsed`.
fn manual_at(elapsed: Duration) -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::starting_at(elapsed);
    let executor = on(&clock);
    (clock, executor)
}

/// An executor with one worker on this clock.
fn on(clock: &ManualClock) -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
    builder.clock(clock.clone()).build().expect("the settings are good")
}

/// The moment at which a wait begins: at the beginning of the clock, shortly before its end, and at its end.
const BEGINNINGS: [Duration; 3] = [Duration::ZERO, LAST.saturating_sub(SECOND), LAST];

/// Makes a call that waits, checks that it still waits when the clock has reached its end, triggers
/// `end`, and returns what the call returned.
fn outlasting<T: Unpin + Send + 'static>(
    clock: &ManualClock,
    wait: impl FnOnce() -> T + Send + 'static,
    end: impl FnOnce(),
) -> T {
    // A worker makes the call, so that the clock knows whether it still waits.
    let executor = on(clock);
    let waiting = executor.submit(wait).expect("the executor is open");
    clock.run_until_idle();
    clock.advance(Duration::MAX);
    clock.run_until_idle();
    assert_eq!(waiting.state(), TaskState::Running);
    end();
    clock.run_until_idle();
    waiting.try_join().expect("the call is over").expect("it gave an answer")
}

/// F24, DO-003, DO-004, DO-005, DO-006, DO-007, DO-008, DO-011, DO-012, DO-014, DO-015, DO-016: a
/// task that is never due delays no later task, whichever way the two are scheduled.
#[test]
fn a_due_task_is_not_delayed_by_one_that_is_never_due() {
    for ((near, schedule_near), (far, schedule_far)) in
        VERBS.into_iter().flat_map(|near| VERBS.map(|far| (near, far)))
    {
        let (clock, executor) = manual(1);
        let (near_runs, far_runs) = (Counter::new(), Counter::new());
        let counters = (near_runs.clone(), far_runs.clone());
        let (handle, ticking) = (executor.handle(), clock.clone());
        // The only worker schedules both, so both have to wait for it.
        let scheduling = executor.submit(move || {
            schedule_near(&handle, Duration::ZERO, counters.0);
            ticking.advance(NANO);
            schedule_far(&handle, Duration::MAX, counters.1)
        });
        clock.run_until_idle();
        let task = scheduling.unwrap().try_join().unwrap().unwrap();
        let runs = (near_runs.get(), far_runs.get());
        assert_eq!(runs, (1, 0), "{near}, before {far}");
        assert!(task.cancel());
    }
}

/// DO-017, DO-018, DO-020: a task that a run schedules starts, whichever way it was scheduled,
/// although the next run of the periodic task never comes.
#[test]
fn a_periodic_task_that_never_runs_again_does_not_delay_tasks_it_scheduled() {
    for (verb, schedule) in VERBS {
        let (clock, executor) = manual(1);
        let (handle, runs) = (executor.handle(), Counter::new());
        let count = runs.clone();
        let series = executor.schedule_with_fixed_delay(Duration::ZERO, Duration::MAX, move || {
            schedule(&handle, Duration::ZERO, count.clone());
        });
        clock.run_until_idle();
        assert_eq!(runs.get(), 1, "{verb}");
        assert_eq!(series.unwrap().delay(), None);
    }
}

/// F24: a task with the longest delay never runs on the system clock either, and delays no other
/// task, whichever way it is scheduled.
#[test]
fn the_longest_delay_never_comes_on_the_system_clock() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let runs = Counter::new();
    let tasks = VERBS.map(|(_, schedule)| schedule(&executor, Duration::MAX, runs.clone()));
    let far_away = Instant::now() + Duration::from_secs(1 << 60);
    let at = executor.schedule_at(far_away, || ()).unwrap();
    let near = executor.schedule(ms(1), || 7).unwrap();
    assert_eq!(near.join_within(LONG).unwrap().unwrap(), 7);
    assert_eq!(runs.get(), 0);
    assert_eq!(at.delay(), None);
    assert!(tasks.iter().all(TaskHandle::cancel));
}

/// DO-022, G6: delays are exact up to the last moment of the clock, and never end beyond it; the
/// tasks of that last moment start in the order in which they were submitted.
#[test]
fn the_last_representable_time_comes_and_later_ones_do_not() {
    // This is late enough for the whole past that the clock distinguishes to lie after its origin.
    let start = 366 * 86_400 * SECOND;
    let (clock, executor) = manual_at(start);
    let started = Log::new();
    let beyond = [LAST - start + NANO, Duration::from_secs(u64::MAX), Duration::MAX]
        .map(|delay| executor.schedule(delay, || ()).unwrap());
    let last = [0, 1, 2].map(|number| {
        let started = started.clone();
        let task = move || started.push(number);
        executor.schedule(LAST - start, task).unwrap()
    });
    for _ in 0..2 {
        let left = LAST - clock.elapsed();
        assert!(last.iter().all(|task| task.delay() == Some(left)));
        assert!(beyond.iter().all(|task| task.delay().is_none()));
        clock.run_for(3_600 * SECOND);
    }
    assert!(started.entries().is_empty());

    clock.run_for(Duration::MAX);
    assert_eq!(clock.elapsed(), LAST);
    assert_eq!(started.entries(), [0, 1, 2]);
    assert_eq!((clock.next_deadline(), executor.pending_count()), (None, 3));
    assert!(beyond.iter().all(|task| task.cancel()));
}

/// F23, DO-023, G6: a time in the past, even before the clock began, means now, and the task runs
/// in its turn among others that are due now.
#[test]
fn a_time_in_the_past_means_now() {
    let (clock, executor) = manual_at(3_600 * SECOND);
    let (handle, started) = (executor.handle(), Log::new());
    let (now, log) = (clock.now(), started.clone());
    let moments = [
        Some(now - NANO),
        None,
        Some(now - clock.elapsed() - SECOND),
        None,
        Some(now),
        Some(now - SECOND),
    ];
    // The only worker submits them, so none starts before all are submitted.
    executor
        .execute(move || {
            for (number, moment) in moments.into_iter().enumerate() {
                let log = log.clone();
                let task = move || log.push((number, current_task().map(|task| task.lateness())));
                match moment {
                    Some(moment) => handle.schedule_at(moment, task),
                    None => handle.schedule(Duration::ZERO, task),
                }
                .unwrap();
            }
        })
        .unwrap();
    clock.run_until_idle();
    let expected = [0, 1, 2, 3, 4, 5].map(|number| (number, Some(Duration::ZERO)));
    assert_eq!(started.entries(), expected);
}

/// F29, DO-024: a second before a signed or unsigned counter of nanoseconds would wrap a thousand
/// tasks start in order, and those that would be due after the last moment do not.
#[test]
fn order_holds_where_counters_wrap() {
    for wrap in [u64::MAX / 2, u64::MAX] {
        let begin = Duration::from_nanos(wrap) - SECOND;
        let (clock, executor) = manual_at(begin);
        let started = Log::new();
        let due = |number: u64| begin + ms(number * number * 7_919 % 2_000);
        for number in 0..1_000 {
            let started = started.clone();
            let task = move || started.push(number);
            executor.schedule(due(number) - begin, task).unwrap();
        }
        clock.run_for(3 * SECOND);

        let mut expected: Vec<_> = (0..1_000).filter(|number| due(*number) <= LAST).collect();
        expected.sort_by_key(|number| due(*number));
        assert_eq!(started.entries(), expected);
        assert_eq!(executor.pending_count(), 1_000 - expected.len());
    }
}

/// Every method works on a clock that has reached its end; a periodic task whose next run would be
/// later does not run again.
#[test]
fn due_tasks_run_at_the_end_of_the_clock() {
    let beginnings = [(LAST - SECOND, 2), (LAST - NANO, 1), (LAST, 1), (Duration::MAX, 1)];
    for ((begin, runs_of_series), (verb, schedule)) in
        beginnings.into_iter().flat_map(|begin| VERBS.map(|verb| (begin, verb)))
    {
        let (clock, executor) = manual_at(begin);
        let runs = Counter::new();
        let task = schedule(&executor, Duration::ZERO, runs.clone());
        clock.run_until_idle();
        assert_eq!(runs.get(), 1, "{verb}, at {begin:?}");

        clock.advance(Duration::MAX);
        clock.run_until_idle();
        let is_series = task.state() == TaskState::Scheduled;
        let expected = if is_series { runs_of_series } else { 1 };
        assert_eq!(runs.get(), expected, "{verb}, from {begin:?} to the end");
        assert_eq!(task.cancel(), is_series);
    }
}

/// F26, DO-025: a periodic task with the longest period runs once, under every policy; then it
/// stays queued, delays no other task, and can be cancelled.
#[test]
fn the_longest_period_allows_one_run() {
    for policy in POLICIES {
        let (clock, executor) = manual(1);
        let runs = Counter::new();
        let count = runs.clone();
        let task = executor.task().missed_runs(policy);
        let series =
            task.schedule_at_fixed_rate(ms(1), Duration::MAX, move || count.add()).unwrap();
        clock.advance(SECOND);
        clock.run_until_idle();
        assert_eq!(runs.get(), 1, "{policy:?}");
        assert_eq!(series.delay(), None);

        let other = executor.schedule(SECOND, || 7).unwrap();
        clock.run_for(Duration::MAX);
        assert_eq!(other.try_join().unwrap().unwrap(), 7);
        assert_eq!((runs.get(), executor.pending_count()), (1, 1), "{policy:?}");
        assert!(series.cancel());
        assert_eq!(executor.pending_count(), 0);
    }
}

/// A join with the longest limit outlasts the clock and returns when its task ends.
#[test]
fn the_longest_join_outlasts_the_clock() {
    for (clock, executor) in BEGINNINGS.map(manual_at) {
        let never = executor.schedule(Duration::MAX, || ()).unwrap();
        let task = never.task_handle();
        let join = move || never.join_within(Duration::MAX);
        let joined = outlasting(&clock, join, || assert!(task.cancel()));
        assert!(joined.unwrap().unwrap_err().is_cancelled());
    }
}

/// The longest sleep outlasts the clock and ends when the token is raised.
#[test]
fn the_longest_sleep_outlasts_the_clock() {
    for (clock, executor) in BEGINNINGS.map(manual_at) {
        let task = executor.submit(current_task).unwrap();
        clock.run_until_idle();
        let token = task.try_join().unwrap().unwrap().unwrap().token();
        let raised = token.clone();
        let sleep = move || token.sleep(Duration::MAX);
        assert!(outlasting(&clock, sleep, || raised.cancel()).is_err());
    }
}

/// Waiting for termination with the longest limit outlasts the clock and ends when the executor
/// terminates.
#[test]
fn the_longest_wait_for_the_termination_outlasts_the_clock() {
    for (clock, executor) in BEGINNINGS.map(manual_at) {
        executor.execute(|| ()).unwrap();
        let handle = executor.handle();
        let wait = move || handle.await_termination(Duration::MAX);
        assert_eq!(outlasting(&clock, wait, || executor.shutdown()), Ok(true));
    }
}

/// On the system clock, too, a wait with the longest limit ends with the event it waits for, and
/// not before.
#[test]
fn the_longest_wait_ends_on_the_system_clock() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let soon = executor.schedule(ms(5), || 7).unwrap();
    let joined = in_time("an answer", move || soon.join_within(Duration::MAX));
    assert_eq!(joined.unwrap().unwrap(), 7);

    let token = CancellationToken::new();
    let raised = token.clone();
    executor.schedule(ms(5), move || raised.cancel()).unwrap();
    assert!(in_time("an answer", move || token.sleep(Duration::MAX)).is_err());

    executor.schedule(ms(5), || ()).unwrap();
    executor.shutdown();
    let handle = executor.handle();
    let terminated = in_time("an answer", move || handle.await_termination(Duration::MAX));
    assert_eq!(terminated, Ok(true));
}
