//! Runs that an extender puts off: beside the queue, and with one look for nothing in each span.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*};
use punctual::{
    CancellationToken, Clock, DiscardOldestPolicy, Extender, ManualClock, MissedRuns,
    ScheduledFuture, ScheduledThreadPoolExecutor as Executor, TaskError, TaskState, Trigger,
    gate::{self, Entry, Lease, RunEnd, from_fn},
    trigger::every,
};

use crate::{
    rounds::rounds,
    support::{Counter, HOUR, Log, elsewhere, eventually, manual, manual_with, ms},
};

fn now_of(clock: &ManualClock) -> u64 {
    u64::try_from(clock.elapsed().as_millis()).expect("a small number")
}

/// A task that returns when it ran, after ten milliseconds, and its extender.
fn timeout(clock: &ManualClock, executor: &Executor) -> (ScheduledFuture<u64>, Extender) {
    let clock = clock.clone();
    let (task, extender) = executor.task().extender();
    (task.schedule(ms(10), move || now_of(&clock)).expect("accepted"), extender)
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
        assert_eq!(task.state(), TaskState::Scheduled);
    }
    clock.run_for(ms(9));
    assert!(!task.is_done());
    clock.run_for(ms(1));
    assert_eq!(task.join().expect("it has run"), 160);
    assert!(!extender.extend(ms(10)), "it has run");
}

/// A look is no run, nothing was missed, and what was planned anew is not late.
#[test]
fn a_look_counts_as_nothing() {
    let (clock, executor) = manual(1);
    let (task, extender) = executor.task().missed_runs(MissedRuns::Within(ms(1))).extender();
    let seen = Log::new();
    let log = seen.clone();
    let series = task.schedule_at_fixed_rate(ms(10), ms(10), move || {
        let run = punctual::current_task().expect("inside a task");
        log.push((run.run_number(), run.attempt(), run.missed_runs(), run.lateness()));
    });
    for _ in 0..20 {
        clock.run_for(ms(3));
        assert!(extender.extend(ms(10)));
    }
    let counted = executor.statistics();
    assert_eq!((counted.runs, counted.missed_runs, counted.gate_skips), (0, 0, 0));
    clock.run_for(ms(10));
    assert_eq!(seen.entries(), [(1, 1, 0, Duration::ZERO)]);
    let counted = executor.statistics();
    assert_eq!((counted.runs, counted.missed_runs, counted.gate_skips), (1, 0, 0));
    assert_eq!(series.expect("accepted").delay(), Some(ms(10)), "the grid goes on from there");
}

#[test]
fn an_extension_never_brings_a_run_forward() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    assert!(extender.extend(ms(4)), "it is later anyway");
    assert!(extender.extend(ms(20)) && extender.extend(ms(15)));
    assert_eq!(task.delay(), Some(ms(10)), "the next look");
    assert!(extender.extend_to(clock.now() + ms(30)));
    assert!(extender.extend_to(clock.now() - ms(30)));
    clock.run_for(ms(10));
    assert_eq!(task.delay(), Some(ms(20)), "what the look has found");
    clock.run_for(ms(19));
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
    clock.run_for(ms(100));
    assert_eq!((task.delay(), task.is_done()), (None, false));
    assert!(task.reschedule(ms(5)));
    clock.run_for(ms(5));
    assert!(!task.is_done(), "it is looked at, and no more");
    assert!(extender.extend_to(None) && extender.take_back() && task.run_within(ms(5)));
    clock.run_for(ms(5));
    assert_eq!(task.join().expect("it has run"), 110);
    assert!(!extender.take_back(), "it has run");
}

#[test]
fn clones_of_an_extender_put_off_one_task() {
    let (clock, executor) = manual(1);
    let (task, first) = timeout(&clock, &executor);
    let (second, third) = (first.clone(), first.clone());
    assert!(first.extend(ms(20)) && second.extend(ms(15)));
    drop((first, second));
    assert!(third.extend(ms(25)));
    clock.run_for(ms(24));
    assert!(!task.is_done());
    assert!(task.cancel());
    assert!(!third.extend(ms(1)), "it has ended");
    assert!(matches!(task.join(), Err(TaskError::Cancelled(_))));
    assert_eq!(executor.pending_count(), 0, "it has left the queue");
    assert!(format!("{third:?}").starts_with("Extender"));
}

/// A request for a run has a worker look at the task, and the extension decides, unless the caller has taken it back.
#[test]
fn an_extension_holds_whoever_asks() {
    let (clock, executor) = manual(1);
    let ran = |takes_back: bool, ask: &dyn Fn(&ScheduledFuture<u64>) -> bool| {
        let begun = now_of(&clock);
        let (task, extender) = timeout(&clock, &executor);
        assert!(extender.extend(ms(50)));
        assert!(!takes_back || extender.take_back());
        assert!(ask(&task));
        clock.run_for(ms(100));
        task.join().expect("it has run") - begun
    };
    assert_eq!(ran(false, &|task| task.reschedule(ms(5))), 50);
    assert_eq!(ran(true, &|task| task.reschedule(ms(5))), 5);
    assert_eq!(ran(false, &|task| task.reschedule(ms(60))), 60);
    assert_eq!(ran(false, &|task| task.run_within(ms(3))), 50);
    assert_eq!(ran(true, &|task| task.run_within(ms(3))), 3);
    assert_eq!(ran(false, &|task| task.run_now()), 50);
    assert_eq!(ran(true, &|task| task.run_now()), 0);
    assert_eq!(ran(false, &|task| task.pause() && task.resume()), 50);
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
    clock.run_for(ms(24));
    assert!(!task.is_done());
    clock.run_for(ms(1));
    assert_eq!(task.join().expect("it has run"), 40);
}

#[test]
fn a_member_of_a_paused_group_is_put_off_as_well() {
    let (clock, executor) = manual(1);
    let group = executor.group("few").limit(1).build().expect("good");
    let (task, extender) = group.task().extender();
    let own = clock.clone();
    let task = task.schedule(ms(10), move || now_of(&own)).expect("accepted");
    assert!(group.pause());
    assert!(extender.extend(ms(40)));
    clock.run_for(ms(15));
    assert!(group.resume());
    let other = group.task().schedule(ms(5), || ()).expect("accepted");
    clock.run_for(ms(24));
    assert!(other.is_done() && !task.is_done(), "a look does not keep the place");
    clock.run_for(ms(1));
    assert_eq!(task.join().expect("it has run"), 40);
}

/// A worker that is late finds what was put off meanwhile.
#[test]
fn a_due_task_is_put_off_as_long_as_no_worker_has_it() {
    let (clock, executor) = manual(1);
    let (busy, release) = busy(&executor);
    let (task, extender) = timeout(&clock, &executor);
    clock.advance(ms(20));
    assert_eq!(task.delay(), Some(Duration::ZERO));
    assert!(extender.extend(ms(10)), "it is due, and no worker has it");
    release.add();
    busy.join().expect("it returns");
    clock.run_until_idle();
    assert_eq!((task.is_done(), task.delay()), (false, Some(ms(10))));
    clock.run_for(ms(10));
    assert_eq!(task.join().expect("it has run"), 30);
}

/// Equal moments are in the order of submission, also after a look.
#[test]
fn equal_moments_are_in_the_order_of_submission() {
    let (clock, executor) = manual(1);
    let order = Log::new();
    let submit = |number: u64, delay| {
        let order = order.clone();
        let (task, extender) = executor.task().extender();
        task.schedule(ms(delay), move || order.push(number)).expect("accepted");
        extender
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
    let (is_started, held) = (started.clone(), release.clone());
    let (task, extender) = executor.task().extender();
    let series = task.schedule_at_fixed_rate(ms(10), ms(10), move || {
        noted.push(now_of(&of_body));
        is_started.add();
        held.wait_for(is_started.get());
    });
    let series = series.expect("accepted");
    assert!(extender.extend(ms(15)));
    clock.run_for(ms(10));
    clock.advance(ms(5));
    started.wait_for(1);
    assert!(!extender.extend(ms(50)), "a run is under way");
    assert!(!extender.take_back());
    release.add();
    clock.run_until_idle();
    assert_eq!(series.delay(), Some(ms(10)), "the grid goes on from there");
    assert!(extender.extend(ms(12)), "the run is over");
    assert!(series.run_now(), "an extra run is beside the schedule");
    started.wait_for(2);
    assert!(extender.extend(ms(12)), "and the extension is for the plan");
    release.add();
    clock.run_until_idle();
    release.add();
    clock.run_for(ms(12));
    assert_eq!(runs.entries(), [15, 15, 27]);
    assert!(series.set_trigger(every(ms(3)).first_in(ms(3))));
    assert!(extender.extend(ms(5)));
    release.add();
    clock.run_for(ms(5));
    assert_eq!(runs.entries(), [15, 15, 27, 32]);
}

/// A run that panics opens the word for the next one, and so does one that is left out after the question.
#[test]
fn the_end_of_a_run_opens_the_word_however_it_ends() {
    let (clock, executor) = manual(1);
    let resume = punctual::FailurePolicy::resume();
    let (task, extender) = executor.task().on_failure(resume).extender();
    let series = task.schedule_at_fixed_rate(ms(10), ms(10), || panic!("no"));
    let series = series.expect("accepted");
    clock.run_for(ms(10));
    assert!(extender.extend(ms(15)));
    clock.run_for(ms(14));
    assert_eq!(executor.statistics().runs, 1);
    clock.run_for(ms(1));
    assert_eq!(executor.statistics().runs, 2);
    assert!(series.cancel() && !extender.extend(ms(1)));
    // The gate behind takes so long that the run is overdue when it answers.
    let slow = clock.clone();
    let slow = from_fn(move |_| {
        slow.advance(ms(7));
        Entry::Run
    });
    let task = executor.task().gate(slow).missed_runs(MissedRuns::Within(ms(5)));
    let (task, extender) = task.extender();
    let _series = task.schedule_at_fixed_rate(ms(10), ms(10), || ()).expect("accepted");
    clock.run_for(ms(10));
    assert_eq!((executor.statistics().runs, executor.statistics().missed_runs), (2, 1));
    assert!(extender.extend(ms(5)));
}

/// A gate of the user's is asked about a run that the extender lets pass, and an extension meanwhile still counts.
#[test]
fn another_gate_is_asked_behind_it() {
    let (clock, executor) = manual(1);
    let asked = Log::new();
    let (log, own) = (asked.clone(), clock.clone());
    let inside = Arc::new(OnceLock::<Extender>::new());
    let extends = Arc::clone(&inside);
    let gate = from_fn(move |tick| {
        log.push((now_of(&own), tick.attempt()));
        match log.entries().len() {
            1 => Entry::Again(ms(5)),
            2 => {
                assert!(extends.get().expect("it is there").extend(ms(7)));
                Entry::Run
            }
            _ => Entry::Run,
        }
    });
    let (task, extender) = executor.task().gate(gate).extender();
    let own = clock.clone();
    let task = task.schedule(ms(10), move || now_of(&own)).expect("accepted");
    let extender = inside.get_or_init(|| extender);
    assert!(extender.extend(ms(20)));
    clock.run_for(ms(50));
    assert_eq!(asked.entries(), [(20, 1), (25, 2), (32, 1)]);
    assert_eq!(task.join().expect("it has run"), 32);
}

/// A lease that is lost before the body.
struct Lost(Counter, bool);

impl Lease for Lost {
    fn is_lost(&self) -> bool {
        self.1
    }

    fn fencing_token(&self) -> Option<u64> {
        Some(7)
    }

    fn watch(&self, _: CancellationToken) {}

    fn leave(&self, _: RunEnd<'_>, _: Option<Instant>) {
        self.0.add();
    }
}

/// The leases of a gate behind are left, whatever becomes of the run.
#[test]
fn leases_of_another_gate_are_left() {
    for is_periodic in [false, true] {
        let (clock, executor) = manual(1);
        let (given, left) = (Counter::new(), Counter::new());
        let (gives, leaves) = (given.clone(), left.clone());
        let inside = Arc::new(OnceLock::<Extender>::new());
        let extends = Arc::clone(&inside);
        let gate = from_fn(move |_| {
            gives.add();
            // The first is lost, and during the second question the run is put off.
            if gives.get() == 2 {
                assert!(extends.get().expect("it is there").extend(ms(5)));
            }
            Entry::Hold(Arc::new(Lost(leaves.clone(), gives.get() == 1)))
        });
        let (task, extender) = executor.task().gate(gate).extender();
        let fence = punctual::with_context(|run| assert_eq!(run.fencing_token(), Some(7)));
        let task = match is_periodic {
            true => task.schedule_at_fixed_rate(ms(10), HOUR, fence),
            false => task.schedule(ms(10), fence),
        };
        let (task, extender) = (task.expect("accepted"), inside.get_or_init(|| extender));
        clock.run_for(ms(14));
        assert_eq!((given.get(), left.get(), executor.statistics().runs), (2, 2, 0));
        clock.run_for(ms(1));
        assert_eq!((given.get(), left.get(), executor.statistics().runs), (3, 3, 1));
        assert_eq!((task.is_done(), extender.extend(ms(1))), (!is_periodic, is_periodic));
    }
}

/// While the answer of the gate behind is to come, the run has been let pass.
#[test]
fn an_extension_is_refused_while_an_answer_is_to_come() {
    let (clock, executor) = manual(1);
    let replies = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keeps = Arc::clone(&replies);
    let gate = from_fn(move |_| {
        let (reply, entry) = gate::later();
        keeps.lock().expect("no panic").push(reply);
        entry
    });
    let (task, extender) = executor.task().gate(gate).extender();
    let task = task.schedule(ms(10), || ()).expect("accepted");
    assert!(extender.extend(ms(20)));
    clock.run_for(ms(20));
    assert!(!extender.extend(ms(20)));
    let reply = || replies.lock().expect("no panic").pop().expect("it was asked");
    reply().send(Entry::Again(ms(5)));
    clock.run_for(ms(5));
    assert!(!task.is_done());
    reply().send(Entry::Run);
    clock.run_until_idle();
    assert!(task.is_done() && !extender.extend(ms(1)));
}

/// The limit of a one-shot task counts from the last look.
#[test]
fn a_time_limit_and_a_group_move_along() {
    let (clock, executor) = manual(1);
    let (limited, of_limited) = executor.task().timeout(ms(2)).extender();
    let limited = limited.schedule(ms(10), || 1).expect("accepted");
    let group = executor.group("few").limit(1).build().expect("good");
    let (member, of_member) = group.task().extender();
    let member = member.schedule(ms(10), || 2).expect("accepted");
    let (tasks, extenders) = ([limited, member], [of_limited, of_member]);
    for _ in 0..10 {
        clock.run_for(ms(5));
        assert!(extenders.iter().all(|extender| extender.extend(ms(10))));
    }
    clock.run_for(ms(9));
    assert!(tasks.iter().all(|task| !task.is_done()));
    clock.run_for(ms(1));
    assert_eq!(tasks.map(|task| task.join().expect("it has run")), [1, 2]);
    assert!(extenders.iter().all(|extender| !extender.extend(ms(1))));
}

/// The limit that has moved ends the task: the timer thread has been told.
#[test]
fn a_limit_that_has_moved_is_kept() {
    let (clock, executor) = manual_with(|builder| builder.core_pool_size(1));
    let (task, extender) = executor.task().timeout(ms(5)).extender();
    let task = task.schedule(ms(10), || ()).expect("accepted");
    assert!(extender.extend(ms(30)));
    clock.run_for(ms(29));
    let (busy, release) = busy(&executor);
    clock.advance(ms(5));
    assert!(!task.is_done(), "at 34");
    clock.advance(ms(1));
    assert!(task.join().expect_err("no worker was free").is_timeout());
    eventually("its gate is gone", || !extender.extend(ms(1)));
    release.add();
    busy.join().expect("it returns");
}

/// Jitter moves the plan and not the extension, which decides.
#[test]
fn a_series_with_jitter_is_put_off() {
    let (clock, executor) = manual(1);
    let (task, extender) = executor.task().extender();
    let runs = Log::new();
    let (log, own) = (runs.clone(), clock.clone());
    let spread = every(ms(100)).first_in(ms(10)).jitter(ms(10)).seed(7);
    task.repeat(spread, move || log.push(now_of(&own))).expect("accepted");
    assert!(extender.extend(ms(40)));
    clock.run_for(ms(99));
    assert_eq!(runs.entries(), [40]);
}

#[test]
fn what_is_shown_of_the_queue_is_the_next_look() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    let other = executor.schedule(ms(20), || ()).expect("accepted");
    assert!(extender.extend(ms(30)));
    let shown: Vec<_> =
        executor.pending_tasks().iter().map(|task| (task.id(), task.delay)).collect();
    assert_eq!(shown, [(task.id(), ms(10)), (other.id(), ms(20))]);
    assert_eq!(clock.advance_to_next_deadline(), Some(ms(10)), "the look");
    clock.run_until_idle();
    assert_eq!((now_of(&clock), task.delay()), (10, Some(ms(20))));
    let drained: Vec<_> = executor.shutdown_now().collect();
    let of_task = drained.iter().find(|one| one.id() == task.id()).expect("it was pending");
    assert_eq!(of_task.deadline(), Some(clock.now() + ms(20)));
    drained.into_iter().for_each(punctual::DrainedTask::run);
    assert_eq!(task.join().expect("it was run by hand, which asks no gate"), 10);
}

/// A shutdown keeps the extension or the task ends: a run before the moment there is not.
#[test]
fn a_shutdown_keeps_what_was_promised_or_ends_the_task() {
    for keeps in [true, false] {
        let (clock, executor) =
            manual_with(|builder| builder.executes_existing_delayed_tasks_after_shutdown(keeps));
        let (busy, release) = busy(&executor);
        let (task, extender) = timeout(&clock, &executor);
        clock.advance(ms(10));
        assert!(extender.extend(ms(5)), "it is due, and put off");
        executor.shutdown();
        release.add();
        busy.join().expect("it returns");
        clock.run_for(ms(4));
        assert_eq!(task.is_done(), !keeps, "its look was due");
        assert!(!extender.extend(ms(3)), "nothing is put off any more");
        clock.run_for(ms(1));
        assert_eq!(task.join().ok(), keeps.then_some(15));
        executor.close().expect("outside of the pool");
    }
}

/// The owner's drop runs what is due, and what was put off from there is not.
#[test]
fn what_was_put_off_ends_with_its_executor() {
    let (clock, executor) = manual(1);
    let (task, extender) = timeout(&clock, &executor);
    clock.run_for(ms(9));
    assert!(extender.extend(ms(10)));
    drop(executor);
    assert!(!extender.extend(ms(10)));
    assert!(task.join().expect_err("it was not due").is_cancelled());
    for is_over in [true, false] {
        let (clock, executor) = manual(1);
        let (busy, release) = busy(&executor);
        let (task, extender) = timeout(&clock, &executor);
        assert!(extender.extend(ms(20)));
        clock.advance(ms(if is_over { 30 } else { 15 }));
        let handle = executor.handle();
        let end = elsewhere(move || drop(executor));
        eventually("it is shut down", || handle.is_shutdown());
        release.add();
        busy.join().expect("it returns");
        end.get();
        assert_eq!(task.join().ok(), is_over.then_some(30));
    }
}

/// The policy goes by when a task is looked at next.
#[test]
fn the_oldest_task_is_the_one_that_is_looked_at_first() {
    let clock = ManualClock::new();
    let executor = Executor::builder()
        .core_pool_size(1)
        .clock(clock.clone())
        .max_pending(2)
        .rejected_execution_handler(DiscardOldestPolicy)
        .build()
        .expect("right");
    let (session, extender) = timeout(&clock, &executor);
    let soon = executor.schedule(ms(20), || ()).expect("accepted");
    assert!(extender.extend(ms(1_000)));
    clock.run_for(ms(10));
    let _third = executor.schedule(ms(30), || ()).expect("accepted");
    assert!(soon.is_cancelled() && !session.is_done(), "it has been looked at");
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
    let (task, extender) = executor.task().extender();
    let task = task.schedule(ms(10), move || drop(captured)).expect("accepted");
    assert!(extender.extend(ms(30)));
    clock.run_for(ms(20));
    assert_eq!(executor.pending_count(), 1);
    assert!(task.cancel());
    assert_eq!((executor.pending_count(), Arc::strong_count(&value)), (0, 1));
}

/// An extender whose task is rejected, not submitted, or given another gate says so.
#[test]
fn an_extender_without_a_task_says_so() {
    let (_clock, executor) = manual_with(|builder| {
        builder.max_pending(1).rejected_execution_handler(punctual::DiscardPolicy)
    });
    let _full = executor.schedule(ms(10), || ()).expect("accepted");
    let (task, discarded) = executor.task().extender();
    task.schedule(ms(10), || ()).expect("it ends as cancelled");
    assert!(!discarded.extend(ms(20)));
    let (task, unused) = executor.task().extender();
    assert!(unused.extend(ms(20)), "it is to come");
    let task = task.gate(from_fn(|_| Entry::Run));
    assert!(!unused.extend(ms(20)), "its gate is gone");
    drop(task);
}

/// One step of a task's life, by the model below.
#[derive(Clone, Copy, Debug)]
enum Step {
    Extend(u64),
    TakeBack,
    Reschedule(u64),
    Within(u64),
    Pause,
    Resume,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u64..20).prop_map(Step::Extend),
        1 => Just(Step::TakeBack),
        1 => (1_u64..20).prop_map(Step::Reschedule),
        1 => (1_u64..20).prop_map(Step::Within),
        1 => Just(Step::Pause),
        1 => Just(Step::Resume),
        4 => (1_u64..9).prop_map(Step::Pass),
    ]
}

/// The task as two variables: when it is looked at, and when it runs at the earliest.
struct Model {
    now: u64,
    look: u64,
    not_before: u64,
    is_paused: bool,
    ran: Option<u64>,
}

impl Model {
    fn pass_to(&mut self, now: u64) {
        while self.ran.is_none() && !self.is_paused && self.look <= now {
            let looks = self.look.max(self.now);
            if self.not_before > looks {
                self.look = self.not_before;
            } else {
                self.ran = Some(looks);
            }
        }
        self.now = now;
    }

    /// Follows the step. Returns what the request is answered.
    fn follow(&mut self, step: Step) -> bool {
        let (now, is_alive, was_paused) = (self.now, self.ran.is_none(), self.is_paused);
        match step {
            Step::Pass(span) => self.pass_to(now + span),
            _ if !is_alive => {}
            Step::Extend(span) => self.not_before = self.not_before.max(now + span),
            Step::TakeBack => self.not_before = 0,
            Step::Reschedule(span) => self.look = now + span,
            Step::Within(span) => self.look = self.look.min(now + span),
            Step::Pause => self.is_paused = true,
            Step::Resume => self.is_paused = false,
        }
        self.pass_to(self.now);
        match step {
            Step::Pause => is_alive && !was_paused,
            Step::Resume => is_alive && was_paused,
            _ => is_alive,
        }
    }
}

proptest! {
    /// Whatever is asked in whatever order, the task runs when two variables say.
    #[test]
    fn every_history_of_an_extended_task_is_that_of_two_variables(steps in vec(step(), 1..30)) {
        let (clock, executor) = manual(1);
        let (task, extender) = timeout(&clock, &executor);
        let mut model = Model { now: 0, look: 10, not_before: 0, is_paused: false, ran: None };
        for step in steps {
            let expected = model.follow(step);
            let answered = match step {
                Step::Pass(span) => {
                    clock.run_for(ms(span));
                    expected
                }
                Step::Extend(span) => extender.extend(ms(span)),
                Step::TakeBack => extender.take_back(),
                Step::Reschedule(span) => task.reschedule(ms(span)),
                Step::Within(span) => task.run_within(ms(span)),
                Step::Pause => task.pause(),
                Step::Resume => task.resume(),
            };
            clock.run_until_idle();
            prop_assert_eq!(answered, expected, "{:?}", step);
            if model.ran.is_none() && !model.is_paused {
                prop_assert_eq!(task.delay(), Some(ms(model.look - model.now)));
            }
            prop_assert_eq!(task.is_done(), model.ran.is_some());
        }
        let result = task.try_join().map(|result| result.expect("it has run"));
        prop_assert_eq!(result, model.ran);
    }
}

/// A run that is extended by two threads while its worker looks.
fn race(executor: &Executor, round: usize) -> u64 {
    let (clock, origin) = (executor.clock(), executor.clock().now());
    let promised = Arc::new(AtomicU64::new(0));
    let (kept, of_body) = (Arc::clone(&promised), clock.clone());
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&has_begun);
    let (task, extender) = executor.task().extender();
    let task = task.schedule(Duration::from_micros(round as u64 % 80), move || {
        begins.store(true, Ordering::SeqCst);
        let ran = (of_body.now() - origin).as_nanos() as u64;
        (ran, kept.load(Ordering::SeqCst))
    });
    let (task, extends) =
        (task.expect("accepted"), || extend_until_it_fails(&extender, clock, origin, &promised));
    let made = thread::scope(|scope| {
        let other = scope.spawn(extends);
        // It has the task looked at, and no more.
        task.run_within(Duration::from_micros(20));
        extends() + other.join().expect("no panic")
    });
    let (ran, promised) = task.join().expect("it runs");
    assert!(has_begun.load(Ordering::SeqCst) && !extender.extend(HOUR));
    assert!(ran >= promised, "it ran at {ran}, and {promised} was promised");
    made
}

/// Puts a run off by some microseconds until that is refused, and notes each moment that was promised. Returns how many
/// were.
fn extend_until_it_fails(
    extender: &Extender,
    clock: &Clock,
    origin: Instant,
    promised: &AtomicU64,
) -> u64 {
    for step in 0..1_000 {
        let moment = clock.now() + Duration::from_micros(step % 7 * 3);
        if !extender.extend_to(moment) {
            return step;
        }
        promised.fetch_max((moment - origin).as_nanos() as u64, Ordering::SeqCst);
    }
    1_000
}

/// An extension that has succeeded is never followed by a run before its moment: on the system clock, with every race. All
/// rounds are a million extensions and more.
#[test]
fn an_extension_is_kept_or_refused() {
    let executor = Executor::new(2);
    let made: u64 =
        rounds("an extension that races its run", 20_000).map(|round| race(&executor, round)).sum();
    assert!(made > 0);
    assert_eq!(executor.pending_count(), 0);
}
