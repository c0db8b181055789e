//! Triggers: when a repeated task runs, by a rate, a delay, given moments, a function, and by what
//! limits or delays those.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant},
};

use punctual::{
    ManualClock, MissedRuns, RejectionReason, ScheduledFuture,
    ScheduledThreadPoolExecutor as Executor, TaskState, Trigger,
    trigger::{Due, Every, Jitter, TriggerContext, at, every, fixed_delay, from_fn},
};

use crate::support::{Bomb, DropToken, Drops, Log, hold, manual, manual_with, ms};

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).expect("a small number")
}

/// The starts of the runs of the first so many milliseconds, each of which takes `takes`, and how the
/// task is then.
fn starts(trigger: impl Trigger, takes: u64, span: u64) -> (Vec<u64>, TaskState) {
    let (clock, executor) = manual(1);
    starts_on(&clock, &executor, trigger, takes, span)
}

fn starts_on(
    clock: &ManualClock,
    executor: &Executor,
    trigger: impl Trigger,
    takes: u64,
    span: u64,
) -> (Vec<u64>, TaskState) {
    let (runs, time) = (Log::new(), clock.clone());
    let log = runs.clone();
    let body = move || {
        log.push(millis(time.elapsed()));
        time.advance(ms(takes));
    };
    let future = executor.repeat(trigger, body).expect("accepted");
    clock.run_for(ms(span));
    (runs.entries(), future.state())
}

/// The same, by a policy, if only the second run takes its time.
fn starts_after_a_stall(policy: MissedRuns, trigger: impl Trigger, stall: u64) -> Vec<u64> {
    let (clock, executor) = manual(1);
    let (runs, time) = (Log::new(), clock.clone());
    let log = runs.clone();
    let body = move || {
        log.push(millis(time.elapsed()));
        if log.entries().len() == 2 {
            time.advance(ms(stall));
        }
    };
    let task = executor.task().missed_runs(policy);
    let _future = task.repeat(trigger, body).expect("accepted");
    clock.run_for(ms(200));
    runs.entries()
}

/// A rate and a delay begin at once, or after the given delay, and go on as the Java verbs do.
#[test]
fn a_rate_and_a_delay_are_those_of_the_java_verbs() {
    assert_eq!(starts(every(ms(10)), 0, 30).0, [0, 10, 20, 30]);
    assert_eq!(starts(every(ms(10)).first_in(ms(5)), 0, 30).0, [5, 15, 25]);
    assert_eq!(starts(fixed_delay(ms(10)), 2, 36).0, [0, 12, 24, 36]);
    assert_eq!(starts(fixed_delay(ms(10)).first_in(ms(3)), 2, 30).0, [3, 15, 27]);
}

/// A rate that is inside another trigger is asked as any trigger is, and runs at the same moments, in
/// time and late, by each policy that leaves the grid where it is.
#[test]
fn a_rate_inside_another_trigger_is_the_same_rate() {
    let policies =
        [MissedRuns::Burst, MissedRuns::Coalesce, MissedRuns::Skip, MissedRuns::Within(ms(25))];
    for (policy, stall) in policies.into_iter().flat_map(|p| [0, 3, 12, 47].map(|s| (p, s))) {
        let alone = starts_after_a_stall(policy, every(ms(10)), stall);
        let inside = starts_after_a_stall(policy, every(ms(10)).times(u64::MAX), stall);
        assert_eq!(alone, inside, "{policy:?}, {stall}");
    }
}

/// After a stall of 47 milliseconds each policy makes up for as many runs as it says.
#[test]
fn each_policy_makes_up_for_its_runs() {
    let starts = |policy| {
        let starts = starts_after_a_stall(policy, every(ms(10)).times(9), 47);
        assert_eq!(starts[..2], [0, 10]);
        starts[2..].to_vec()
    };
    assert_eq!(starts(MissedRuns::Burst), [57, 57, 57, 57, 60, 70, 80]);
    assert_eq!(starts(MissedRuns::Coalesce), [57, 60, 70, 80, 90, 100, 110]);
    assert_eq!(starts(MissedRuns::Skip), [60, 70, 80, 90, 100, 110, 120]);
    assert_eq!(starts(MissedRuns::Within(ms(25))), [57, 57, 60, 70, 80, 90, 100]);
}

/// Given moments are kept one by one; those that have passed when the task is submitted are left out.
#[test]
fn given_moments_are_kept() {
    let clock = ManualClock::new();
    clock.advance(ms(10));
    let executor = Executor::builder().clock(clock.clone()).build().expect("the settings are good");
    let start = clock.now();
    let moment = move |millis: u64| start + ms(millis);
    let before = start - ms(5);
    let moments = [before, start, moment(7), moment(8), moment(30)];
    let (runs, state) = starts_on(&clock, &executor, at(moments), 0, 50);
    assert_eq!((runs, state), (vec![10, 17, 18, 40], TaskState::Completed));
}

/// Moments that pass while a run goes on are made up for by one run, as is the rule for `repeat`.
#[test]
fn given_moments_that_pass_are_left_out() {
    let (clock, executor) = manual(1);
    let start = clock.now();
    let moments: Vec<Instant> = [5, 10, 11, 12, 40].map(|millis| start + ms(millis)).into();
    let (runs, _) = starts_on(&clock, &executor, at(moments), 9, 60);
    assert_eq!(runs, [5, 14, 40], "10 is late, and stands for 11 and 12");
}

/// A function is told of the last run, and decides.
#[test]
fn a_function_is_told_of_the_last_run() {
    let told = Log::new();
    let log = told.clone();
    let (clock, executor) = manual(1);
    let start = clock.now();
    let trigger = from_fn(move |last: &TriggerContext<'_>| {
        let since = |moment: Option<Instant>| moment.map(|moment| millis(moment - start));
        log.push((last.runs(), since(last.planned()), since(last.started()), since(last.ended())));
        assert_eq!(last.failures_in_a_row(), 0);
        (last.runs() < 3).then(|| (last.ended().unwrap_or(last.after()) + ms(10)).into())
    });
    let (runs, state) = starts_on(&clock, &executor, trigger, 2, 100);
    assert_eq!((runs, state), (vec![10, 22, 34], TaskState::Completed));
    let run = |number: u64, start: u64| (number, Some(start), Some(start), Some(start + 2));
    assert_eq!(told.entries(), [(0, None, None, None), run(1, 10), run(2, 22), run(3, 34)]);
}

/// So many runs, and no run after the end; one at the very end takes place.
#[test]
fn a_series_can_be_limited() {
    assert_eq!(starts(every(ms(10)).times(3), 0, 100), (vec![0, 10, 20], TaskState::Completed));
    let (clock, executor) = manual(1);
    let until = every(ms(10)).until(clock.now() + ms(20));
    assert_eq!(
        starts_on(&clock, &executor, until, 0, 100),
        (vec![0, 10, 20], TaskState::Completed)
    );
    let (clock, executor) = manual(1);
    let until = fixed_delay(ms(10)).until(clock.now() + ms(19));
    assert_eq!(starts_on(&clock, &executor, until, 0, 100).0, [0, 10]);
}

/// A delayed run does not delay the ones behind it, and the same seed or name gives the same delays.
#[test]
fn jitter_does_not_drift_and_can_be_repeated() {
    fn jittered(of: impl Fn(Jitter<Every>) -> Jitter<Every>) -> Vec<u64> {
        starts(of(every(ms(100)).jitter(ms(50))), 0, 10_000).0
    }
    let runs = jittered(|jitter| jitter.seed(7));
    assert_eq!(runs.len(), 100);
    for (number, start) in (0..).zip(&runs) {
        assert!((100 * number..100 * number + 50).contains(start), "run {number} at {start}");
    }
    let spans = runs.iter().map(|start| start % 100);
    assert!(spans.clone().max() > Some(40) && spans.min() < Some(10), "they are spread");
    assert_eq!(runs, jittered(|jitter| jitter.seed(7)));
    assert_ne!(runs, jittered(|jitter| jitter.seed(8)));
    let named = jittered(|jitter| jitter.name("backup"));
    assert_eq!(named, jittered(|jitter| jitter.name("backup")));
    assert_ne!(named, jittered(|jitter| jitter.name("report")));
    assert_ne!(jittered(|jitter| jitter), jittered(|jitter| jitter), "by chance");
}

/// A trigger without a first run, and a period of zero, are refused; the task comes back.
#[test]
fn a_trigger_that_never_runs_is_refused() {
    let (_, executor) = manual(1);
    let drops = Drops::new();
    let body = |token: DropToken| move || hold(&token);
    let never = executor.repeat(every(ms(1)).times(0), body(drops.token()));
    let refused = never.expect_err("it has no run");
    assert!(matches!(refused.reason(), RejectionReason::NeverRuns));
    assert_eq!(drops.count(), 0, "the error owns the task");
    drop(refused);
    assert_eq!(drops.count(), 1);
    for zero in [
        executor.repeat(every(Duration::ZERO), || ()),
        executor.repeat(fixed_delay(Duration::ZERO), || ()),
    ] {
        let refused = zero.expect_err("it would run without a pause");
        assert!(matches!(refused.reason(), RejectionReason::ZeroPeriod));
    }
    assert_eq!(executor.statistics().pending, 0);
}

/// Panics when it is asked for a run that is not one of the first.
struct Fragile {
    good: u64,
    _token: DropToken,
}

impl Trigger for Fragile {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        if last.runs() == self.good {
            resume_unwind(Box::new("no idea"));
        }
        Some(Due::At(last.after() + ms(10)))
    }
}

/// A trigger that panics at the submission panics in the submitter; nothing is submitted, and all
/// that it was given is dropped.
#[test]
fn a_trigger_that_panics_at_first_panics_in_the_submitter() {
    let (_, executor) = manual(1);
    let drops = Drops::new();
    let (trigger, token) = (Fragile { good: 0, _token: drops.token() }, drops.token());
    let submit = AssertUnwindSafe(|| executor.repeat(trigger, move || hold(&token)));
    let payload = catch_unwind(submit).expect_err("the trigger's panic");
    assert_eq!(payload.downcast_ref(), Some(&"no idea"));
    assert_eq!((drops.count(), executor.statistics().submitted), (2, 0));
}

/// A trigger that panics later ends its task, which says so, and nothing else: the worker lives.
#[test]
fn a_trigger_that_panics_later_ends_its_task() {
    let reports = Log::new();
    let told = reports.clone();
    let (clock, executor) = manual_with(|builder| {
        builder.failure_handler(move |report| told.push((report.run_number(), report.to_string())))
    });
    let drops = Drops::new();
    let (trigger, token) = (Fragile { good: 2, _token: drops.token() }, drops.token());
    let future = executor.repeat(trigger, move || hold(&token)).expect("accepted");
    clock.run_for(ms(100));
    assert_eq!((future.state(), drops.count()), (TaskState::Failed, 2));
    let line = format!("the trigger of task ({}), run 2: panicked: no idea", future.id());
    assert_eq!(reports.entries(), [(Some(2), line)]);
    assert_eq!(future.join().expect_err("it has failed").to_string(), "the task panicked: no idea");
    let next = executor.submit(|| 7).expect("accepted");
    clock.run_until_idle();
    assert_eq!(next.join().expect("it has run"), 7);
}

/// Answers as a rate does, and panics when it is dropped.
struct Explosive(Every, #[allow(dead_code, reason = "it is dropped")] Bomb);

impl Trigger for Explosive {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        self.0.next(last)
    }
}

/// A body and a trigger that both panic when they are dropped do not abort the process, whichever thread
/// drops them: the canceller's, the one that shuts down, or the worker after the last run.
#[test]
fn a_body_and_a_trigger_that_panic_in_their_drops_are_contained() {
    let ends: [fn(&ManualClock, &Executor, &ScheduledFuture<()>); 3] = [
        |_, _, future| assert!(future.cancel()),
        |_, executor, _| drop(executor.shutdown_now()),
        |clock, _, _| clock.run_for(ms(30)),
    ];
    for end in ends {
        // Not due at once: a task that runs has not ended when `shutdown_now` returns.
        let ((clock, executor), rate) = (manual(1), every(ms(10)).first_in(ms(10)));
        let (body, trigger) = (Bomb("body"), Explosive(rate, Bomb("trigger")));
        let future = executor.repeat(trigger.times(2), move || hold(&body)).expect("accepted");
        end(&clock, &executor, &future);
        assert!(future.is_done());
    }
}

/// A trigger that is cancelled with its task is dropped with it.
#[test]
fn a_cancelled_task_drops_its_trigger() {
    let (clock, executor) = manual(1);
    let drops = Drops::new();
    let trigger = Fragile { good: u64::MAX, _token: drops.token() };
    let future = executor.repeat(trigger, || ()).expect("accepted");
    clock.run_for(ms(25));
    assert!(future.cancel());
    assert_eq!(drops.count(), 1);
}
