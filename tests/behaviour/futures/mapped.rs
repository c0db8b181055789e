//! Results that go through a closure on their way to the caller.

use std::{panic::AssertUnwindSafe, panic::catch_unwind, thread, time::Duration};

use punctual::{CancelReason, Limit, TaskError, TaskState};

use crate::support::{Drops, awaiting::block_on, hold, manual, ms};

/// However the result is taken, it goes through the closure, on the thread that takes it.
#[test]
fn every_way_to_take_the_result_calls_the_closure() {
    let (_clock, executor) = manual(1);
    let here = thread::current().id();
    let mapped = || {
        let name = String::from("number");
        executor.submit(|| 7).expect("accepted").map(move |number| {
            assert_eq!(thread::current().id(), here);
            (name, number) // it can be called only once
        })
    };
    let expected = || (String::from("number"), 7);
    assert_eq!(mapped().join().expect("it ran"), expected());
    let timed = mapped().join_timeout(Duration::MAX).expect("there is time");
    assert_eq!(timed.expect("it ran"), expected());
    let within = mapped().join_within(Limit::from(Duration::MAX)).expect("there is time");
    assert_eq!(within.expect("it ran"), expected());
    assert_eq!(block_on(mapped()).expect("it ran"), expected());
    let twice = mapped().map(|(name, number)| name.len() + number);
    twice.wait().expect("this is no worker");
    assert_eq!(twice.try_join().expect("it has ended").expect("it ran"), 13);
    assert!(matches!(twice.join(), Err(TaskError::ResultTaken)));
    assert!(matches!(twice.map(|n| n + 1).join(), Err(TaskError::ResultTaken)));
}

/// It looks at, controls and cancels the task as the future does; without a result the closure is dropped uncalled.
#[test]
fn it_is_a_handle_to_the_task() {
    let (clock, executor) = manual(1);
    let drops = Drops::new();
    let guard = drops.token();
    let late = executor.task().name("late").schedule(ms(10), || 7).expect("accepted");
    let late = late.map(move |number: i32| {
        hold(&guard);
        number + 1
    });
    assert_eq!((late.name().as_deref(), late.delay()), (Some("late"), Some(ms(10))));
    assert!(late.try_join().is_none());
    assert!(late.join_timeout(Duration::ZERO).is_none());
    assert!(late.reschedule(ms(20)));
    clock.run_for(ms(10));
    assert_eq!(late.state(), TaskState::Scheduled);
    assert!(late.cancel());
    assert!(matches!(late.join(), Err(TaskError::Cancelled(CancelReason::Requested))));
    assert_eq!(drops.count(), 0);
    drop(late);
    assert_eq!(drops.count(), 1);
}

/// A panic of the closure is the caller's, and the result is gone.
#[test]
fn a_panic_of_the_closure_is_the_callers() {
    let (_clock, executor) = manual(1);
    let mapped = executor.submit(|| 7).expect("accepted").map(|_| -> u32 { panic!("not seven") });
    assert!(catch_unwind(AssertUnwindSafe(|| mapped.join())).is_err());
    assert!(matches!(mapped.join(), Err(TaskError::ResultTaken)));
    assert_eq!(executor.statistics().completed, 1);
}
