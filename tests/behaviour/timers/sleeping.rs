//! One sleep: when it is ready, which waker it wakes and how often, what a drop and a reset do.

use std::{
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use punctual::{RejectionReason, ScheduledThreadPoolExecutor, Sleep, TimerStopped};

use crate::{
    support::awaiting::{Wakes, block_on},
    support::{eventually, manual, manual_with, ms},
};

/// Polls once, as a runtime would that is woken through `waker`.
pub fn poll<W>(sleep: &mut Sleep, waker: &Arc<W>) -> Poll<Result<(), TimerStopped>>
where
    W: Wake + Send + Sync + 'static,
{
    let waker = Waker::from(Arc::clone(waker));
    Pin::new(sleep).poll(&mut Context::from_waker(&waker))
}

#[test]
fn it_is_ready_at_its_deadline_and_not_a_nanosecond_before() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(!sleep.is_elapsed());
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(10) - Duration::from_nanos(1));
    assert_eq!(wakes.count(), 0);
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(Duration::from_nanos(1));
    assert_eq!(wakes.count(), 1);
    assert!(sleep.is_elapsed());
    assert_eq!(poll(&mut sleep, &wakes), Poll::Ready(Ok(())));
    assert_eq!(poll(&mut sleep, &wakes), Poll::Ready(Ok(())), "and stays so");
    assert_eq!((wakes.count(), timers.pending_count()), (1, 0));
}

/// The deadline counts from the call, and not from the first poll.
#[test]
fn it_enters_the_queue_when_it_is_polled_first() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert_eq!(timers.pending_count(), 0);
    assert_eq!(sleep.deadline(), Some(clock.now() + ms(10)));
    clock.run_for(ms(4));
    assert!(poll(&mut sleep, &wakes).is_pending());
    assert_eq!(timers.pending_count(), 1);
    clock.run_for(ms(6));
    assert_eq!(wakes.count(), 1);
    assert!(poll(&mut sleep, &wakes).is_ready());
}

#[test]
fn one_that_is_due_at_its_first_poll_costs_no_entry() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    assert!(poll(&mut timers.sleep(Duration::ZERO), &wakes).is_ready());
    assert!(poll(&mut timers.sleep_until(clock.now()), &wakes).is_ready());
    let mut sleep = timers.sleep(ms(5));
    clock.run_for(ms(5));
    assert!(poll(&mut sleep, &wakes).is_ready());
    assert_eq!((wakes.count(), timers.statistics().submitted), (0, 0));
}

#[test]
fn one_without_a_deadline_is_never_ready() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleeps = [timers.sleep(Duration::MAX), timers.sleep_until(None)];
    for sleep in &mut sleeps {
        assert!(poll(sleep, &wakes).is_pending());
        assert_eq!(sleep.deadline(), None);
    }
    clock.run_for(Duration::from_secs(1 << 40));
    assert_eq!(wakes.count(), 0);
}

/// M171.
#[test]
fn dropping_it_removes_its_entry_and_wakes_nobody() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleeps = [1, 2, 3].map(|s| timers.sleep(Duration::from_secs(s)));
    for sleep in &mut sleeps {
        assert!(poll(sleep, &wakes).is_pending());
    }
    let [first, second, third] = sleeps;
    drop(second);
    assert_eq!(timers.pending_count(), 2);
    drop((first, third));
    assert_eq!(timers.pending_count(), 0);
    clock.run_for(Duration::from_secs(10));
    assert_eq!(wakes.count(), 0);
    assert_eq!(Arc::strong_count(&wakes), 1, "its wakers are gone as well");
}

/// M206.
#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let (clock, timers) = manual(1);
    let (first, second) = (Wakes::new(), Wakes::new());
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &first).is_pending());
    assert!(poll(&mut sleep, &second).is_pending());
    assert_eq!(Arc::strong_count(&first), 1, "the old one has been dropped");
    assert!(poll(&mut sleep, &second).is_pending());
    assert_eq!(timers.pending_count(), 1);
    clock.run_for(ms(10));
    assert_eq!((first.count(), second.count()), (0, 1));
}

/// M209.
#[test]
fn a_reset_moves_the_entry_in_place() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(5));
    sleep.reset(ms(10));
    assert_eq!((timers.pending_count(), timers.statistics().submitted), (1, 1));
    clock.run_for(ms(9));
    assert_eq!(wakes.count(), 0, "it was put off");
    clock.run_for(ms(1));
    assert_eq!(wakes.count(), 1, "and needs no poll in between");
    assert!(poll(&mut sleep, &wakes).is_ready());

    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    sleep.reset_at(clock.now() + ms(2));
    clock.run_for(ms(2));
    assert_eq!(wakes.count(), 2, "it was brought forward");
    assert!(poll(&mut sleep, &wakes).is_ready());
}

/// M207: An entry that was due already, and waits for a worker, gets another place when it is put off. That is the one
/// that the drop has to look in.
#[test]
fn one_that_is_put_off_after_it_was_due_is_still_found() {
    let (clock, timers) = manual(1);
    let (hold, held) = mpsc::channel::<()>();
    let busy = timers.schedule(ms(10), move || held.recv()).expect("accepted");
    let wakes = Wakes::new();
    let mut sleeps = [(); 3].map(|()| timers.sleep(ms(10)));
    for sleep in &mut sleeps {
        assert!(poll(sleep, &wakes).is_pending());
    }
    clock.advance(ms(10));
    eventually("the worker is busy", || timers.statistics().active == 1);
    for sleep in &mut sleeps {
        sleep.reset(Duration::from_secs(3600));
    }
    assert_eq!(timers.pending_count(), 3);
    drop(sleeps);
    assert_eq!(timers.pending_count(), 0);
    drop(hold);
    assert!(busy.join().expect("it has run").is_err());
    assert_eq!((wakes.count(), Arc::strong_count(&wakes)), (0, 1));
}

/// M213: The poll that finds it ready is as good as the worker that has not come yet.
#[test]
fn one_that_is_found_ready_has_left_the_queue() {
    let (clock, timers) = manual(1);
    let (hold, held) = mpsc::channel::<()>();
    let busy = timers.submit(move || held.recv()).expect("accepted");
    eventually("the worker is busy", || timers.statistics().active == 1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(10));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.advance(ms(10));
    assert_eq!(timers.pending_count(), 1);
    assert!(poll(&mut sleep, &wakes).is_ready());
    assert_eq!((timers.pending_count(), Arc::strong_count(&wakes)), (0, 1));
    drop(hold);
    assert!(busy.join().expect("it has run").is_err());
    assert_eq!(wakes.count(), 0, "nobody waits any more");
}

#[test]
fn a_reset_after_the_end_begins_anew() {
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(1));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(1));
    // It has gone off, and no poll has seen it.
    sleep.reset(ms(5));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(5));
    assert_eq!(wakes.count(), 2);
    assert!(poll(&mut sleep, &wakes).is_ready());
    sleep.reset(ms(5));
    assert!(!sleep.is_elapsed());
    assert!(poll(&mut sleep, &wakes).is_pending());
    sleep.reset_at(None);
    clock.run_for(Duration::from_secs(3600));
    assert_eq!((wakes.count(), timers.pending_count()), (2, 1));
}

#[test]
fn sleeps_and_tasks_are_due_in_one_order() {
    let (clock, timers) = manual(1);
    let order = crate::support::Log::new();
    struct Note(crate::support::Log<&'static str>, &'static str);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.0.push(self.1);
        }
    }
    let note = |text| Arc::new(Note(order.clone(), text));
    let at = clock.now() + ms(5);
    let mut early = timers.sleep_until(at);
    assert!(poll(&mut early, &note("first")).is_pending());
    let log = order.clone();
    timers.schedule_at(at, move || log.push("second")).expect("it is open");
    let mut late = timers.sleep_until(at);
    assert!(poll(&mut late, &note("third")).is_pending());
    clock.run_for(ms(5));
    assert_eq!(order.entries(), ["first", "second", "third"]);
}

/// The bound is for tasks. A timer is counted and not refused, and no handler decides about it.
#[test]
fn a_bound_refuses_no_timer() {
    let (clock, timers) = manual_with(|builder| {
        builder.max_pending(1).rejected_execution_handler(punctual::CallerRunsPolicy)
    });
    let wakes = Wakes::new();
    let mut sleeps = [1, 2, 3].map(|s| timers.sleep(ms(s)));
    for sleep in &mut sleeps {
        assert!(poll(sleep, &wakes).is_pending());
    }
    let refused = timers.schedule(ms(1), || ()).expect_err("there is no room for a task");
    assert!(matches!(refused.reason(), RejectionReason::Saturated));
    clock.run_for(ms(3));
    assert_eq!(wakes.count(), 3);
    for sleep in &mut sleeps {
        assert!(poll(sleep, &wakes).is_ready());
    }
    timers.schedule(ms(1), || ()).expect("each timer has given back what it took");
}

/// No hook and no decorator of the user's is called: there is no code of a task.
#[test]
fn hooks_and_decorators_do_not_hear_of_timers() {
    let called = crate::support::Counter::new();
    let (before, after, decorated) = (called.clone(), called.clone(), called.clone());
    let (clock, timers) = manual_with(|builder| {
        builder
            .before_execute(move |_| before.add())
            .after_execute(move |_, _| after.add())
            .decorate_task(move |_| {
                decorated.add();
                |run: punctual::TaskRun<'_>| run.run()
            })
    });
    let wakes = Wakes::new();
    let mut sleep = timers.sleep(ms(1));
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.run_for(ms(1));
    assert!(poll(&mut sleep, &wakes).is_ready());
    assert_eq!(called.get(), 0);
    let statistics = timers.statistics();
    assert_eq!((statistics.submitted, statistics.completed), (1, 1), "but it is counted");
}

/// A waker that panics does no harm to any other task.
#[test]
fn a_waker_that_panics_is_contained() {
    struct Throws;
    impl Wake for Throws {
        fn wake(self: Arc<Self>) {
            panic!("a waker");
        }
    }
    let (clock, timers) = manual(1);
    let wakes = Wakes::new();
    let (mut bad, mut good) = (timers.sleep(ms(1)), timers.sleep(ms(1)));
    assert!(poll(&mut bad, &Arc::new(Throws)).is_pending());
    assert!(poll(&mut good, &wakes).is_pending());
    clock.run_for(ms(1));
    assert_eq!(wakes.count(), 1);
    assert!(poll(&mut bad, &Arc::new(Throws)).is_ready());
}

#[test]
fn on_the_system_clock_it_is_never_early() {
    let timers = ScheduledThreadPoolExecutor::new(2);
    for micros in [0, 1, 50, 700, 3_000] {
        let duration = Duration::from_micros(micros);
        let begun = Instant::now();
        block_on(timers.sleep(duration)).expect("the executor runs");
        assert!(begun.elapsed() >= duration);
    }
}

/// A poll with another waker, a reset and a drop race with the worker that wakes.
#[test]
fn whatever_races_with_the_worker_a_sleeper_that_waits_is_woken() {
    let timers = ScheduledThreadPoolExecutor::new(2);
    for round in crate::rounds::rounds("a sleep that races its worker", 20_000) {
        let mut sleep = timers.sleep(Duration::from_micros(20));
        let (first, last) = (Wakes::new(), Wakes::new());
        if poll(&mut sleep, &first).is_ready() {
            continue;
        }
        match round % 3 {
            0 => {}
            1 => sleep.reset(Duration::from_micros(10)),
            _ => drop(timers.sleep(Duration::from_micros(20))),
        }
        let is_pending = poll(&mut sleep, &last).is_pending();
        if is_pending && round % 7 == 0 {
            drop(sleep);
            assert_eq!(timers.pending_count(), 0);
        } else if is_pending {
            eventually("it is woken", || last.count() > 0 && poll(&mut sleep, &last).is_ready());
        }
    }
}
