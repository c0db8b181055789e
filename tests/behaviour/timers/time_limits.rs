//! A future with a time limit.

use std::{
    future::{pending, poll_fn, ready},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use punctual::{CancelReason, TimeoutError};

use crate::support::{Drops, manual, ms};

#[test]
fn a_future_that_is_ready_costs_no_entry() {
    let (_clock, timers) = manual(1);
    let mut context = Context::from_waker(Waker::noop());
    let mut limited = pin!(timers.timeout(ms(1), ready(7)));
    assert_eq!(limited.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
    assert_eq!(timers.statistics().submitted, 0);
}

#[test]
fn the_time_counts_from_the_call_and_the_future_is_dropped_when_it_is_up() {
    let (clock, timers) = manual(1);
    let mut context = Context::from_waker(Waker::noop());
    let drops = Drops::new();
    let token = drops.token();
    let future = async move {
        let _token = token;
        pending::<()>().await;
    };
    let mut limited = Box::pin(timers.timeout(ms(10), future));
    clock.run_for(ms(4));
    assert!(limited.as_mut().poll(&mut context).is_pending());
    clock.run_for(ms(5));
    assert!(limited.as_mut().poll(&mut context).is_pending());
    clock.run_for(ms(1));
    assert_eq!(limited.as_mut().poll(&mut context), Poll::Ready(Err(TimeoutError::Elapsed)));
    drop(limited);
    assert_eq!((drops.count(), timers.pending_count()), (1, 0));
}

/// M212: Both are ready at this poll: what is there is not thrown away.
#[test]
fn a_future_that_is_ready_when_the_time_is_up_is_in_time() {
    let (clock, timers) = manual(1);
    let mut context = Context::from_waker(Waker::noop());
    let (now, due) = (clock.clone(), clock.now() + ms(10));
    let future = poll_fn(move |_| if now.now() >= due { Poll::Ready(7) } else { Poll::Pending });
    let mut limited = pin!(timers.timeout(ms(10), future));
    assert!(limited.as_mut().poll(&mut context).is_pending());
    clock.run_for(ms(10));
    assert_eq!(limited.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
}

#[test]
fn a_limit_that_is_dropped_leaves_nothing() {
    let (_clock, timers) = manual(1);
    let mut context = Context::from_waker(Waker::noop());
    let mut limited = Box::pin(timers.timeout(ms(10), pending::<()>()));
    assert!(limited.as_mut().poll(&mut context).is_pending());
    assert_eq!(timers.pending_count(), 1);
    drop(limited);
    assert_eq!(timers.pending_count(), 0);
}

#[test]
fn without_an_executor_there_is_no_limit_and_that_is_said() {
    let (_clock, timers) = manual(1);
    let mut context = Context::from_waker(Waker::noop());
    let mut limited = pin!(timers.timeout(ms(10), pending::<()>()));
    assert!(limited.as_mut().poll(&mut context).is_pending());
    drop(timers.shutdown_now());
    let Poll::Ready(Err(TimeoutError::Stopped(stopped))) = limited.as_mut().poll(&mut context)
    else {
        panic!("the limit is gone");
    };
    assert_eq!(stopped.reason(), CancelReason::Shutdown);
    let error = TimeoutError::from(stopped);
    assert!(error != TimeoutError::Elapsed && error.to_string().contains("shut down"), "{error}");
}

#[test]
fn the_longest_limit_never_expires() {
    let (clock, timers) = manual(1);
    let mut context = Context::from_waker(Waker::noop());
    let mut limited = pin!(timers.timeout(Duration::MAX, pending::<()>()));
    assert!(limited.as_mut().poll(&mut context).is_pending());
    clock.run_for(Duration::from_secs(1 << 33));
    assert!(limited.as_mut().poll(&mut context).is_pending());
}
