//! A driven executor on a machine where `Instant::now`, `SystemTime::now`, a thread and a park all end the
//! program. [`check`] uses what a program uses there, and returns how many checks have held.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use punctual::{
    CancelReason, FailurePolicy, ManualClock, MissedRuns, ScheduledThreadPoolExecutor, TaskError,
    current_task,
    gate::{Entry, from_fn},
    trigger::at,
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the number of checks that have held; a check that fails ends the program.
#[unsafe(no_mangle)]
pub extern "C" fn check() -> u32 {
    let mut held = 0;
    let mut check = |is_so: bool| {
        assert!(is_so);
        held += 1;
    };
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).max_pending(100);
    let mut executor = builder.build_driven().expect("the settings are good");

    let ran = Arc::new(AtomicUsize::new(0));
    let count = || {
        let ran = Arc::clone(&ran);
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    };
    let answer = executor.schedule(3 * SECOND, || 6 * 7).expect("it is open");
    check(matches!(answer.join(), Err(TaskError::WouldDeadlock)));
    let beat = executor.task().missed_runs(MissedRuns::Skip).name("beat");
    let beat = beat.schedule_at_fixed_rate(SECOND, SECOND, count()).expect("it is open");
    let pause = executor.schedule_with_fixed_delay(SECOND, SECOND, count()).expect("it is open");
    let wall = executor.repeat(at([clock.wall_time() + 2 * SECOND]), count()).expect("it is open");
    let gate = from_fn(|tick| if tick.attempt() < 3 { Entry::Again(SECOND) } else { Entry::Run });
    executor.task().gate(gate).execute(count()).expect("it is open");
    let limited = executor.task().timeout(SECOND).gate(from_fn(|_| Entry::Again(9 * SECOND)));
    let limited = limited.submit(|| ()).expect("it is open");
    let budget = executor.task().timeout(SECOND).on_failure(FailurePolicy::resume());
    let body = || check_token();
    let budget = budget.schedule_at_fixed_rate(SECOND, SECOND, body).expect("it is open");
    let mut sleep = Box::pin(executor.sleep(2 * SECOND));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    check(sleep.as_mut().poll(&mut context).is_pending());

    // A page does this in each of its frames, where this loop advances the clock by what has passed.
    while clock.elapsed() < 3 * SECOND {
        executor.run_due();
        clock.advance(executor.time_until_next().unwrap_or(SECOND).max(SECOND / 60));
    }
    executor.run_due();
    check(executor.run_until(answer).is_ok_and(|answer| answer == 42));
    check(sleep.as_mut().poll(&mut context).is_ready());
    check(matches!(limited.try_join(), Some(Err(TaskError::Cancelled(CancelReason::TimedOut)))));
    check(wall.is_done() && !beat.is_done() && !pause.is_done());
    let (beats, pauses, on_wall, gated) = (3, 3, 1, 1);
    check(ran.load(Ordering::Relaxed) == beats + pauses + on_wall + gated);
    check(budget.cancel() && executor.statistics().timed_out == 1);
    check(executor.prestart_all_core_threads().is_ok_and(|started| started == 0));

    executor.shutdown();
    check(executor.is_terminated() && executor.execute(|| ()).is_err());
    let other = ScheduledThreadPoolExecutor::builder().clock(clock).build_driven();
    let due = other.expect("the settings are good").submit(|| ()).expect("it is open");
    check(due.is_done()); // by the drop
    held
}

fn check_token() {
    let token = current_task().expect("it runs in a task").token().clone();
    assert!(!token.is_cancelled());
}
