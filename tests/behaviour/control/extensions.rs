//! Runs that are put off by an extender: beside the queue, and once looked at for nothing in each span.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*};
use punctual::{
    Clock, DiscardOldestPolicy, Extender, ManualClock, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskError, TaskState,
    gate::{Entry, from_fn},
    trigger::every,
};

use crate::support::{Counter, HOUR, Log, elsewhere, eventually, manual, manual_with, ms};

fn now_of(clock: &ManualClock) -> u64 {
    u64::try_from(clock.elapsed().as_millis()).expect("a small number")
}

/// A task that returns when it ran, after ten milliseconds, and its extender.
fn timeout(clock: &ManualClock, executor: &Executor) -> (ScheduledFuture<u64>, Extender) {
    let clock = clock.clone();
    let task = executor.schedule(ms(10), move || now_of(&clock)).expect("accepted");
    let extender = task.extender();
    (task, extender)
}

/// A task that keeps the worker busy until the counter is raised.
fn busy(executor: &Executor) -> (ScheduledFuture<()>, Counter) {
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let busy = executor.submit(move || {
        is_started.add();
        gate.wait_for(1);
    });
    started.wait_for(1);
    (busy.expect("accepted"), release)
}

#[test]
fn a_run_takes_place_when_it_was_put_off_to() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    for _ in 0..50 {
        clock.run_for(ms(3));
        assert!(extender.extend(ms(10)));
        assert_eq!((task.delay(), task.state()), (Some(ms(10)), TaskState::Scheduled));
    }
    clock.run_for(ms(9));
    assert!(!task.is_done());
    clock.run_for(ms(1));
    assert_eq!(task.join().expect("it has run"), 160);
    assert!(!extender.extend(ms(10)), "it has run");
    assert_eq!(executor.statistics().runs, 1);
}

#[test]
fn an_extension_never_brings_a_run_forward() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    assert!(extender.extend(ms(4)), "it is later anyway");
    assert_eq!(task.delay(), Some(ms(10)));
    assert!(extender.extend(ms(20)) && extender.extend(ms(15)));
    assert_eq!(task.delay(), Some(ms(20)));
    assert!(extender.extend_to(clock.now() + ms(30)));
    assert!(extender.extend_to(clock.now() - ms(30)));
    assert_eq!(task.delay(), Some(ms(30)));
    clock.run_for(ms(29));
    assert!(!task.is_done());
    clock.run_for(ms(1));
    assert_eq!(task.join().expect("it has run"), 30);
}

#[test]
fn a_run_can_be_put_off_for_ever() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    assert!(extender.extend(ms(20)));
    assert!(extender.extend(Duration::MAX));
    assert!(extender.extend(ms(30)), "never is later");
    assert_eq!(task.delay(), None);
    clock.run_for(ms(100));
    assert!(!task.is_done());
    assert!(task.reschedule(ms(5)));
    assert!(extender.extend_to(None) && task.run_within(ms(5)));
    clock.run_for(ms(5));
    assert_eq!(task.join().expect("it has run"), 105);
}

#[test]
fn extenders_of_one_task_share_what_they_know() {
    let (clock, executor) = manual(1);
    let (task, first) = timeout(&clock, &executor);
    let second = task.task_handle().extender();
    let third = first.clone();
    assert!(first.extend(ms(20)));
    assert!(second.extend(ms(15)));
    assert_eq!(third.delay(), Some(ms(20)));
    drop((first, second));
    assert!(third.extend(ms(25)));
    clock.run_for(ms(24));
    assert!(!task.is_done());
    assert!(third.cancel());
    assert!(!third.extend(ms(1)), "it has ended");
    assert!(matches!(task.join(), Err(TaskError::Cancelled(_))));
    assert_eq!(executor.pending_count(), 0, "it has left the queue");
    assert!(format!("{third:?}").starts_with("Extender"));
}

/// A later request counts, and starts from the moment to which the run was put off.
#[test]
fn later_requests_come_after_an_extension() {
    let (clock, executor) = manual(1);
    let asked = |ask: &dyn Fn(&ScheduledFuture<u64>) -> bool| {
        let (task, extender) = timeout(&clock, &executor);
        assert!(extender.extend(ms(50)));
        assert!(ask(&task));
        let delay = task.delay();
        assert!(task.cancel());
        delay
    };
    assert_eq!(asked(&|task| task.reschedule(ms(5))), Some(ms(5)));
    assert_eq!(asked(&|task| task.reschedule(ms(30))), Some(ms(30)));
    assert_eq!(asked(&|task| task.run_within(ms(30))), Some(ms(30)));
    assert_eq!(asked(&|task| task.run_within(ms(60))), Some(ms(50)));
    assert_eq!(asked(&|task| task.pause()), None);
    assert_eq!(asked(&|task| task.pause() && task.resume()), Some(ms(50)));
    assert_eq!(asked(&|task| task.extender().extend(ms(60))), Some(ms(60)));
    let (task, extender) = timeout(&clock, &executor);
    assert!(extender.extend(ms(50)) && task.run_now());
    clock.run_until_idle();
    assert!(task.is_done());
}

#[test]
fn a_paused_task_is_put_off_as_well() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    assert!(task.pause());
    assert!(extender.extend(ms(40)));
    assert_eq!((task.delay(), task.state()), (None, TaskState::Paused));
    clock.run_for(ms(15));
    assert!(task.resume());
    assert_eq!(task.delay(), Some(ms(25)));
    clock.run_for(ms(25));
    assert_eq!(task.join().expect("it has run"), 40);
}

/// A worker that is late finds what was put off meanwhile, and what was asked of it.
#[test]
fn a_due_task_is_put_off_as_long_as_no_worker_has_it() {
    let (clock, executor) = manual(1);
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let first = executor.schedule(ms(1), move || {
        is_started.add();
        gate.wait_for(1);
    });
    let (task, extender) = timeout(&clock, &executor);
    clock.advance(ms(20));
    started.wait_for(1);
    assert_eq!(task.delay(), Some(Duration::ZERO));
    assert!(extender.extend(ms(10)), "it is due, and no worker has it");
    assert_eq!(task.delay(), Some(ms(10)));
    assert!(!first.expect("accepted").extender().extend(ms(1)), "it runs");
    release.add();
    clock.run_until_idle();
    assert!(!task.is_done());
    clock.run_for(ms(10));
    assert_eq!(task.join().expect("it has run"), 30);
}

/// Equal moments are in the order of submission, whether by the entry or beside it.
#[test]
fn equal_moments_are_in_the_order_of_submission() {
    let (clock, executor) = manual(1);
    let order = Log::new();
    let submit = |number: u64, delay| {
        let order = order.clone();
        executor.schedule(ms(delay), move || order.push(number)).expect("accepted").extender()
    };
    let tasks = [submit(0, 5), submit(1, 20), submit(2, 7), submit(3, 3)];
    for number in [2, 0, 3] {
        assert!(tasks[number].extend(ms(20)));
    }
    clock.run_for(ms(20));
    assert_eq!(order.entries(), [0, 1, 2, 3]);
}

#[test]
fn the_next_run_of_a_series_is_put_off() {
    let (clock, executor) = manual(1);
    let runs = Log::new();
    let (noted, of_body) = (runs.clone(), clock.clone());
    let (started, release) = (Counter::new(), Counter::new());
    let (is_started, gate) = (started.clone(), release.clone());
    let series = executor.schedule_at_fixed_rate(ms(10), ms(10), move || {
        noted.push(now_of(&of_body));
        is_started.add();
        gate.wait_for(is_started.get());
    });
    let extender = series.expect("accepted").extender();
    assert!(extender.extend(ms(15)));
    clock.advance(ms(15));
    started.wait_for(1);
    assert!(!extender.extend(ms(50)), "a run is under way");
    release.add();
    clock.run_until_idle();
    assert_eq!(extender.delay(), Some(ms(10)), "the grid goes on from there");
    assert!(extender.extend(ms(12)));
    assert!(extender.run_now(), "an extra run leaves the plan as it is");
    release.add();
    clock.run_until_idle();
    assert_eq!(extender.delay(), Some(ms(12)));
    release.add();
    clock.run_for(ms(12));
    assert_eq!(runs.entries(), [15, 15, 27]);
    assert!(extender.set_trigger(every(ms(3)).first_in(ms(3))));
    assert_eq!(extender.delay(), Some(ms(3)));
}

/// These move along, so the task is moved under its lock.
#[test]
fn a_time_limit_a_gate_and_a_group_move_along() {
    let (clock, executor) = manual(1);
    let limited = executor.task().timeout(ms(2)).schedule(ms(10), || 1).expect("accepted");
    let group = executor.group("few").limit(1).build().expect("good");
    let member = group.schedule(ms(10), || 2).expect("accepted");
    let gated = executor.task().gate(from_fn(|_| Entry::Run)).schedule(ms(10), || 3);
    let tasks = [limited, member, gated.expect("accepted")];
    let extenders = tasks.each_ref().map(ScheduledFuture::extender);
    for _ in 0..10 {
        clock.run_for(ms(5));
        assert!(extenders.iter().all(|extender| extender.extend(ms(10))));
        assert!(tasks.iter().all(|task| task.delay() == Some(ms(10))));
    }
    clock.run_for(ms(9));
    assert!(tasks.iter().all(|task| !task.is_done()));
    clock.run_for(ms(1));
    assert_eq!(tasks.map(|task| task.join().expect("it has run")), [1, 2, 3]);
    assert!(extenders.iter().all(|extender| !extender.extend(ms(1))));
}

#[test]
fn what_is_shown_of_the_queue_is_what_will_run() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    let other = executor.schedule(ms(20), || ()).expect("accepted");
    assert!(extender.extend(ms(30)));
    let shown: Vec<_> =
        executor.pending_tasks().iter().map(|task| (task.id(), task.delay())).collect();
    assert_eq!(shown, [(other.id(), ms(20)), (task.id(), ms(30))]);
    let now = clock.now();
    let drained: Vec<_> = executor.shutdown_now().collect();
    let of_task = drained.iter().find(|one| one.id() == task.id()).expect("it was pending");
    assert_eq!(of_task.deadline(), Some(now + ms(30)));
    assert!(!extender.extend(ms(50)), "the executor was shut down");
    clock.advance(ms(20));
    assert!(!of_task.is_due());
    clock.advance(ms(10));
    assert!(of_task.is_due());
    drained.into_iter().for_each(punctual::DrainedTask::run);
    assert_eq!(task.join().expect("it was run by hand"), 30);
}

/// A shutdown keeps or ends a task that was put off as one that is due then, also while the worker is busy.
#[test]
fn a_shutdown_decides_by_where_a_run_was_put_off_to() {
    for keeps in [true, false] {
        let (clock, executor) =
            manual_with(|builder| builder.executes_existing_delayed_tasks_after_shutdown(keeps));
        let (busy, release) = busy(&executor);
        let (task, extender) = timeout(&clock, &executor);
        clock.advance(ms(10));
        assert!(extender.extend(ms(5)), "it is due, and put off");
        executor.shutdown();
        assert_eq!(task.is_done(), !keeps, "no worker is needed to end what is not kept");
        assert!(!extender.extend(ms(50)), "nothing is put off any more");
        release.add();
        busy.join().expect("it returns");
        clock.run_for(ms(5));
        let ended = task.join();
        assert_eq!(ended.ok(), keeps.then_some(15));
        executor.close().expect("outside of the pool");
    }
}

/// The owner's drop runs what is due, and so does a shutdown. A run that was put off is due at its later moment.
#[test]
fn what_was_put_off_and_is_due_runs_at_the_end() {
    for drops in [true, false] {
        let (clock, executor) =
            manual_with(|builder| builder.executes_existing_delayed_tasks_after_shutdown(false));
        let (busy, release) = busy(&executor);
        let (task, extender) = timeout(&clock, &executor);
        let beats = Counter::new();
        let counts = beats.clone();
        let series = executor.schedule_at_fixed_rate(ms(10), ms(100), move || counts.add());
        assert!(extender.extend(ms(20)));
        assert!(series.expect("accepted").extender().extend(ms(20)));
        clock.advance(ms(30));
        let handle = executor.handle();
        let end = elsewhere(move || if drops { drop(executor) } else { executor.close().unwrap() });
        eventually("it is shut down", || handle.is_shutdown());
        release.add();
        busy.join().expect("it returns");
        end.get();
        assert_eq!(task.join().expect("it was due"), 30);
        assert_eq!(beats.get(), usize::from(drops), "a shutdown keeps no series");
    }
}

/// The policy ends the task that runs first, and not the one whose entry is first.
#[test]
fn what_was_put_off_is_not_the_oldest() {
    let clock = ManualClock::new();
    let executor = Executor::builder()
        .core_pool_size(1)
        .clock(clock.clone())
        .max_pending(2)
        .rejected_execution_handler(DiscardOldestPolicy)
        .build()
        .expect("right");
    let session = executor.schedule(ms(10), || ()).expect("accepted");
    let soon = executor.schedule(ms(20), || ()).expect("accepted");
    assert!(session.extender().extend(ms(1_000)));
    let _third = executor.schedule(ms(30), || ()).expect("accepted");
    assert!(soon.is_cancelled() && !session.is_done());
}

#[test]
fn a_dropped_executor_cancels_what_was_put_off() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    clock.run_for(ms(9));
    assert!(extender.extend(ms(10)));
    drop(executor);
    assert!(!extender.extend(ms(10)));
    assert!(task.join().expect_err("it was not due").is_cancelled());
}

/// In a closed queue a run that was put off can still be brought forward, and not be put off again.
#[test]
fn a_shut_down_executor_brings_forward_only() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    let (other, of_other) = timeout(&clock, &executor);
    assert!(extender.extend(ms(50)) && of_other.extend(ms(50)));
    executor.shutdown();
    assert!(!extender.reschedule(ms(40)), "later than the entry");
    assert!(!extender.extend(ms(60)) && !extender.pause());
    assert_eq!(task.delay(), Some(ms(50)));
    assert!(extender.run_within(ms(40)), "at the latest");
    clock.run_for(ms(10));
    assert_eq!(task.join().expect("it has run"), 10);
    assert_eq!(other.delay(), Some(ms(40)), "its entry has followed");
    assert!(of_other.run_now());
    clock.run_until_idle();
    assert_eq!(other.join().expect("it has run"), 10);
}

#[test]
fn a_bounded_executor_keeps_the_place_of_what_was_put_off() {
    let (clock, executor) = manual_with(|builder| builder.max_pending(1));
    let (task, extender) = timeout(&clock, &executor);
    for _ in 0..5 {
        clock.run_for(ms(8));
        assert!(extender.extend(ms(10)));
        assert!(executor.schedule(ms(1), || ()).is_err(), "there is no room");
    }
    clock.run_for(ms(10));
    assert!(task.is_done());
    assert!(executor.schedule(ms(1), || ()).is_ok());
}

/// What it captured is dropped at once by a cancellation, wherever the run was put off to.
#[test]
fn a_cancelled_task_leaves_from_where_it_has_gone_on_to() {
    let (clock, executor) = manual(1);
    let value = Arc::new(());
    let captured = Arc::clone(&value);
    let task = executor.schedule(ms(10), move || drop(captured)).expect("accepted");
    let extender = task.extender();
    assert!(extender.extend(ms(30)));
    clock.run_for(ms(20));
    assert_eq!(executor.pending_count(), 1);
    assert!(task.cancel());
    assert_eq!((executor.pending_count(), Arc::strong_count(&value)), (0, 1));
}

#[test]
fn an_extender_of_a_task_that_was_rejected_says_so() {
    let (_clock, executor) = manual_with(|builder| {
        builder.max_pending(1).rejected_execution_handler(punctual::DiscardPolicy)
    });
    let _full = executor.schedule(ms(10), || ()).expect("accepted");
    let discarded = executor.schedule(ms(10), || ()).expect("it ends as cancelled");
    assert!(!discarded.extender().extend(ms(20)));
}

/// One step of a task's life, by the model below.
#[derive(Clone, Copy, Debug)]
enum Step {
    Extend(u64),
    Reschedule(u64),
    Within(u64),
    Pause,
    Resume,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u64..20).prop_map(Step::Extend),
        1 => (1_u64..20).prop_map(Step::Reschedule),
        1 => (1_u64..20).prop_map(Step::Within),
        1 => Just(Step::Pause),
        1 => Just(Step::Resume),
        4 => (1_u64..9).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Whatever is asked in whatever order, the task runs when a plain variable says.
    #[test]
    fn every_history_of_an_extended_task_is_that_of_a_variable(steps in vec(step(), 1..30)) {
        let (clock, executor) = manual(1);
        let (task, extender) = timeout(&clock, &executor);
        let (mut now, mut plan, mut is_paused, mut ran) = (0, 10, false, None);
        for step in steps {
            if let Step::Pass(span) = step {
                clock.run_for(ms(span));
                now += span;
                if ran.is_none() && !is_paused && plan <= now {
                    ran = Some(plan);
                }
            }
            let is_alive = ran.is_none();
            match step {
                Step::Pass(_) => {}
                Step::Extend(span) => {
                    prop_assert_eq!(extender.extend(ms(span)), is_alive);
                    plan = plan.max(now + span);
                }
                Step::Reschedule(span) => {
                    prop_assert_eq!(task.reschedule(ms(span)), is_alive);
                    plan = now + span;
                }
                Step::Within(span) => {
                    prop_assert_eq!(task.run_within(ms(span)), is_alive);
                    plan = plan.min(now + span);
                }
                Step::Pause => {
                    prop_assert_eq!(task.pause(), is_alive && !is_paused);
                    is_paused = true;
                }
                Step::Resume => {
                    prop_assert_eq!(task.resume(), is_alive && is_paused);
                    is_paused = false;
                    clock.run_until_idle();
                    if is_alive && plan <= now {
                        ran = Some(now);
                    }
                }
            }
            if ran.is_none() && !is_paused {
                prop_assert_eq!(task.delay(), Some(ms(plan.saturating_sub(now))));
            }
            prop_assert_eq!(task.is_done(), ran.is_some());
        }
        let result = task.try_join().map(|result| result.expect("it has run"));
        prop_assert_eq!(result, ran);
    }
}

/// An extension that has succeeded is never followed by a run before its moment, and one that has failed comes after the
/// run has begun: on the system clock, with every race.
#[test]
fn an_extension_is_kept_or_refused() {
    let executor = Executor::new(2);
    let clock = executor.clock();
    for round in 0..400_u64 {
        let origin = clock.now();
        let promised = Arc::new(AtomicU64::new(0));
        let (kept, of_body) = (Arc::clone(&promised), clock.clone());
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&has_begun);
        let task = executor.schedule(Duration::from_micros(round % 80), move || {
            begins.store(true, Ordering::SeqCst);
            let ran = (of_body.now() - origin).as_nanos() as u64;
            (ran, kept.load(Ordering::SeqCst))
        });
        let task = task.expect("accepted");
        let extenders = [task.extender(), task.extender()];
        thread::scope(|scope| {
            for extender in &extenders {
                scope.spawn(|| extend_until_it_fails(extender, clock, origin, &promised));
            }
            scope.spawn(|| extenders[0].run_within(HOUR));
        });
        let (ran, promised) = task.join().expect("it runs");
        assert!(has_begun.load(Ordering::SeqCst));
        assert!(ran >= promised, "it ran at {ran}, and {promised} was promised");
    }
    assert_eq!(executor.pending_count(), 0);
}

/// Puts a run off a few times, by some microseconds, and notes each moment that was promised.
fn extend_until_it_fails(
    extender: &Extender,
    clock: &Clock,
    origin: Instant,
    promised: &AtomicU64,
) {
    for step in 0..20 {
        let moment = clock.now() + Duration::from_micros(step % 7 * 3);
        if !extender.extend_to(moment) {
            // It has begun, so nothing that is promised afterwards is kept.
            let state = extender.state();
            return assert!(state.is_done() || state == TaskState::Running, "{state}");
        }
        promised.fetch_max((moment - origin).as_nanos() as u64, Ordering::SeqCst);
    }
}
