//! Tasks on the wall clock, as the caller of a driven executor sees them.

use std::{
    sync::{Arc, OnceLock, mpsc},
    time::Duration,
};

use punctual::{
    CancelReason, ManualClock, ScheduledThreadPoolExecutor, ShutdownPolicy, TaskHandle, trigger::at,
};

use super::{SECOND, Wakes, driven, run_for};
use crate::support::{Log, TURN, assert_cancelled, elsewhere, hold, receive};

const HOUR: Duration = Duration::from_secs(3_600);

/// M201: the first call at a look after the clock was set finds every task where it belongs then.
#[test]
fn a_call_follows_the_wall_clock() {
    let (clock, mut executor) = driven();
    let begin = clock.wall_time();
    let log = Log::new();
    let (ran, shown) = (log.clone(), clock.clone());
    let moments = [begin + HOUR, begin + 2 * HOUR, begin + 3 * HOUR];
    let task = executor.repeat(at(moments), move || {
        ran.push((shown.elapsed(), shown.wall_time().duration_since(begin).unwrap()));
    });
    let (task, look) = (task.unwrap(), 30 * SECOND);
    assert_eq!((executor.time_until_next(), task.delay()), (Some(look), Some(HOUR)));
    clock.set_wall_time(begin + HOUR - SECOND);
    assert_eq!((executor.time_until_next(), task.delay()), (Some(look), Some(SECOND)));
    // Ahead, beyond the moment: it is due at the look.
    clock.advance(look);
    assert_eq!((executor.time_until_next(), executor.run_due()), (Some(Duration::ZERO), 1));
    // Back: the next moment is further away.
    clock.set_wall_time(begin);
    assert_eq!((executor.run_due(), task.delay()), (0, Some(2 * HOUR)));
    run_for(&clock, &mut executor, 3 * HOUR);
    let ran =
        [(look, HOUR + 29 * SECOND), (2 * HOUR + look, 2 * HOUR), (3 * HOUR + look, 3 * HOUR)];
    assert_eq!(log.entries(), ran);
}

/// A clock that does not start at its origin has its looks at multiples of half a minute from there all the same.
#[test]
fn looks_are_counted_from_the_origin_of_the_clock() {
    let year = 365 * 24 * HOUR;
    for (elapsed, look) in [(SECOND, 29), (31 * SECOND, 29), (2 * year + 29 * SECOND, 1)] {
        let clock = ManualClock::starting_at(elapsed);
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
        let mut executor = builder.build_driven().unwrap();
        let _task = executor.repeat(at([clock.wall_time() + HOUR]), || ()).unwrap();
        assert_eq!(executor.time_until_next(), Some(look * SECOND), "{elapsed:?}");
    }
}

/// The clock is set before or during an extra run. What its body asks for is compared with the moment of the next run by
/// what the clock shows then. It was compared with the moment at which the task had been queued for.
#[test]
fn a_request_during_an_extra_run_sees_the_clock_that_was_set() {
    type Ask = fn(&TaskHandle) -> bool;
    let within_two: Ask = |task| task.run_within(2 * HOUR);
    // The plan is for three hours after the beginning.
    let cases: [(i32, Ask, usize, Duration); 4] = [
        (2, within_two, 1, HOUR),          // earlier anyway
        (-2, within_two, 1, 2 * HOUR),     // brought forward
        (4, TaskHandle::run_now, 2, HOUR), // the run that is due is the one that is meant, and the next is at five
        (-1, TaskHandle::run_now, 2, 4 * HOUR),
    ];
    for (hours, ask, runs, delay) in cases {
        let (clock, mut executor) = driven();
        let begin = clock.wall_time();
        let log = Log::new();
        let (ran, shown) = (log.clone(), clock.clone());
        let itself = Arc::new(OnceLock::<TaskHandle>::new());
        let own = Arc::clone(&itself);
        let task = executor.repeat(at([begin + 3 * HOUR, begin + 5 * HOUR]), move || {
            ran.push(());
            if ran.entries().len() == 1 {
                let span = HOUR * hours.unsigned_abs();
                let wall = shown.wall_time();
                shown.set_wall_time(if hours < 0 { wall - span } else { wall + span });
                assert!(ask(own.get().unwrap()));
            }
        });
        let task = task.unwrap();
        itself.set(task.task_handle()).unwrap();
        assert!(task.run_now());
        while executor.time_until_next() == Some(Duration::ZERO) {
            executor.run_due();
        }
        assert_eq!((log.entries().len(), task.delay()), (runs, Some(delay)), "{hours}");
    }
}

/// On the system's clock, which is not set here, the caller is to look within half a minute; and not at all if
/// nothing waits.
#[test]
fn the_caller_looks_within_half_a_minute() {
    let mut executor = ScheduledThreadPoolExecutor::builder().build_driven().unwrap();
    let _wakes = Wakes::of(&mut executor);
    assert_eq!(executor.time_until_next(), None);
    let task = executor.repeat(at([executor.clock().wall_time() + HOUR]), || ()).unwrap();
    let told = executor.time_until_next().unwrap();
    assert!(told <= 30 * SECOND && told > 20 * SECOND, "{told:?}");
    assert!(task.cancel());
    assert_eq!(executor.time_until_next(), None);
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A member whose body returns while a thread ends its group ends there and then, although that thread has not come to it
/// and its moment on the wall clock is far away. The worker used to take it and to queue it again until the thread came.
#[test]
fn a_member_ends_with_its_run_if_its_group_is_ended_meanwhile() {
    let (clock, mut executor) = driven();
    let group = executor.group("g").on_shutdown(ShutdownPolicy::Cancel).build().unwrap();
    let (runs, begins) = mpsc::channel();
    let (is_ending, ends) = mpsc::channel();
    let (goes_on, may_go_on) = mpsc::channel();
    // The thread that ends the group is held here, before it comes to the other member.
    let holds = OnDrop(move || {
        is_ending.send(()).unwrap();
        let _ = may_go_on.recv_timeout(20 * TURN);
    });
    let first = group.task().schedule(HOUR, move || hold(&holds)).unwrap();
    let ended = group.clone();
    let thread = elsewhere(move || {
        receive(&begins, "the body runs");
        ended.shutdown();
    });
    let begin = clock.wall_time();
    let calendar = group.task().repeat(at([begin + SECOND, begin + HOUR]), move || {
        runs.send(()).unwrap();
        receive(&ends, "the group is being ended");
    });
    clock.advance(SECOND);
    assert_eq!(executor.run_due(), 1);
    goes_on.send(()).expect("the thread has not come to the other member");
    assert_cancelled(&calendar.unwrap(), CancelReason::GroupShutdown);
    thread.get();
    assert_cancelled(&first, CancelReason::GroupShutdown);
    assert!(group.is_terminated());
}
