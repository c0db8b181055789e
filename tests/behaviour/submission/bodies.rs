//! The arguments of bodies, and what they may return.

use std::{
    convert::Infallible, future::Future, ops::ControlFlow, panic::catch_unwind, pin::Pin,
    sync::mpsc, time::Duration,
};

use punctual::{
    FailurePolicy, ScheduledFuture, TaskError, current_task, trigger::every, with_context,
    with_context_once,
};

use crate::support::{Log, manual, ms};

/// Each verb can be handed a body that takes the context, and it is that of its run.
#[test]
fn every_verb_takes_a_body_with_the_context() {
    let (clock, executor) = manual(1);
    let group = executor.group("g").build().expect("it can be built");
    let log = Log::new();
    let note = |name: &'static str| {
        let log = log.clone();
        with_context(move |run| {
            assert_eq!(Some(run.id()), current_task().map(|task| task.id()));
            log.push((name, run.run_number()));
        })
    };
    executor.execute(note("execute")).expect("accepted");
    executor.submit(note("submit")).expect("accepted");
    executor.schedule(ms(1), note("schedule")).expect("accepted");
    group.task().schedule_at(clock.now() + ms(2), note("schedule_at")).expect("accepted");
    group.task().schedule_at_fixed_rate(ms(3), ms(10), note("rate")).expect("accepted");
    executor.schedule_with_fixed_delay(ms(4), ms(10), note("delay")).expect("accepted");
    executor.task().repeat(every(ms(10)).first_in(ms(5)), note("repeat")).expect("accepted");
    let save = executor.task().debounce(ms(6), note("debounce")).expect("accepted");
    save.call();
    clock.run_for(ms(13));
    let names =
        ["execute", "submit", "schedule", "schedule_at", "rate", "delay", "repeat", "debounce"];
    let mut expected: Vec<_> = names.map(|name| (name, 1)).to_vec();
    expected.push(("rate", 2));
    assert_eq!(log.entries(), expected);
    executor.invoke_all([note("all")]).expect("it ran");
    assert_eq!(log.entries().last(), Some(&("all", 1)));
}

/// A body that consumes what it has captured is called once; outside of a task there is no context.
#[test]
fn a_body_that_can_be_called_once() {
    let (_clock, executor) = manual(1);
    let (send, receive) = mpsc::channel();
    let body = with_context_once(move |run| {
        send.send(run.id()).expect("it is received");
        drop(send);
    });
    let future = executor.submit(body).expect("accepted");
    assert_eq!(receive.iter().collect::<Vec<_>>(), [future.id()]);
    assert!(catch_unwind(with_context(|run| run.run_number())).is_err());
    assert!(catch_unwind(with_context_once(|run| run.run_number())).is_err());
}

/// A result may be a future that the caller awaits, in a box; and one of this crate.
#[test]
fn a_boxed_future_may_be_the_result() {
    type Boxed = Pin<Box<dyn Future<Output = u32> + Send>>;
    let (_clock, executor) = manual(1);
    let future = executor.submit(|| -> Boxed { Box::pin(async { 7 }) }).expect("accepted");
    let boxed = future.join().expect("it ran");
    assert_eq!(crate::support::awaiting::block_on(boxed), 7);
    let handle = executor.handle();
    let future = executor.submit(move || handle.submit(|| 8)).expect("accepted");
    let inner = future.join().expect("it ran").expect("accepted");
    assert_eq!(inner.join().expect("it ran"), 8);
}

/// A closure that never returns may run once and again, with every verb.
#[test]
fn a_closure_may_have_no_result_at_all() {
    let (clock, executor) = manual(1);
    let once: Result<ScheduledFuture<()>, _> = executor.submit(|| panic!("once"));
    let futures = [
        executor.schedule_at_fixed_rate(ms(0), ms(10), || panic!("rate")),
        executor.schedule_with_fixed_delay(ms(0), ms(10), || panic!("delay")),
        executor.repeat(every(ms(10)), || panic!("repeat")),
        once,
    ];
    clock.run_until_idle();
    for (future, message) in futures.into_iter().zip(["rate", "delay", "repeat", "once"]) {
        let error = future.expect("accepted").join().expect_err("it panicked");
        assert_eq!(error.to_string(), format!("the task panicked: {message}"));
    }
    let task = executor.task().on_failure(FailurePolicy::resume());
    let task = task.schedule_at_fixed_rate(ms(0), ms(10), || panic!("again"));
    clock.run_for(ms(20));
    assert!(task.expect("accepted").cancel());
    assert_eq!(executor.statistics().failed_runs, 3 + 1 + 3);
    let none = executor.submit(|| -> Result<u32, Infallible> { Ok(7) }).expect("accepted");
    assert!(matches!(none.join_within(Duration::MAX), Some(Ok(Ok(7)))));
    assert!(matches!(none.join(), Err(TaskError::ResultTaken)));
}

/// A run at a fixed rate or with a fixed delay reports by its value, as with `repeat`.
#[test]
fn a_rate_reports_by_what_its_runs_return() {
    let (clock, executor) = manual(1);
    let (initial_delay, period, mut runs) = (ms(0), ms(10), 0);
    let ends = executor.schedule_at_fixed_rate(initial_delay, period, move || {
        runs += 1;
        if runs < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(runs) }
    });
    let fails = || Err::<(), _>("no paper");
    let fails = executor.schedule_with_fixed_delay(initial_delay, period, fails);
    clock.run_for(2 * period);
    assert_eq!(ends.expect("accepted").join().expect("it has ended"), 3);
    let error = fails.expect("accepted").join().expect_err("its first run has failed");
    assert!(error.to_string().ends_with("no paper"), "{error}");
    assert_eq!(executor.statistics().runs, 4);
}
