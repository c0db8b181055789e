//! The number of missed runs that a run of any trigger is told.

use punctual::{
    MissedRuns, Trigger, current_task,
    trigger::{Due, TriggerContext, at, every},
};

use crate::support::{Log, Wrapped, manual, ms, occupy};

/// The moments of a task every ten milliseconds whose second run takes 35, with how many each run
/// stands for that were missed.
fn told(policy: MissedRuns, trigger: impl Trigger) -> Vec<(u64, u64)> {
    let (clock, executor) = manual(1);
    let (runs, own) = (Log::new(), clock.clone());
    let log = runs.clone();
    let body = move || {
        let now = u64::try_from(own.elapsed().as_millis()).expect("a small number");
        log.push((now, current_task().expect("inside a task").missed_runs()));
        if log.entries().len() == 2 {
            own.advance(ms(35));
        }
    };
    let task = executor.task().missed_runs(policy).repeat(trigger, body).expect("accepted");
    clock.run_for(ms(70));
    assert!(!task.is_done() || runs.entries().len() == 4);
    runs.entries()
}

/// M146: the same rate, once as the crate's own and once inside a trigger that it does not look into.
#[test]
fn a_trigger_is_told_what_a_rate_is_told() {
    use MissedRuns::{Burst, Coalesce, Delay, Skip, Within};
    for policy in [Burst, Coalesce, Skip, Delay, Within(ms(5)), Within(ms(12))] {
        let rate = told(policy, every(ms(10)).first_in(ms(10)));
        let inside = told(policy, every(ms(10)).first_in(ms(10)).times(1_000));
        // The grid of a trigger is its own, and does not move.
        if policy != Delay {
            assert_eq!(rate, inside, "{policy:?}");
        }
    }
    let coalesced = [(10, 0), (20, 0), (55, 2), (60, 0), (70, 0)];
    assert_eq!(told(Coalesce, every(ms(10)).first_in(ms(10)).times(9)), coalesced);
    let skipped = [(10, 0), (20, 0), (60, 3), (70, 0)];
    assert_eq!(told(Skip, every(ms(10)).first_in(ms(10)).jitter(ms(0))), skipped);
    assert_eq!(told(Coalesce, Wrapped::new(every(ms(10)).first_in(ms(10)))), coalesced);
    assert_eq!(told(Skip, Wrapped::new(every(ms(10)).first_in(ms(10)))), skipped);
}

#[test]
fn what_does_not_count_tells_nothing() {
    let (clock, executor) = manual(1);
    let missed = Log::new();
    let log = missed.clone();
    let moments = [10, 20, 30, 40].map(|millis| clock.now() + ms(millis));
    let own = clock.clone();
    let task = executor.repeat(at(moments), move || {
        log.push(current_task().expect("inside a task").missed_runs());
        own.advance(ms(15));
    });
    clock.run_for(ms(100));
    assert_eq!(missed.entries(), [0, 0, 0]);
    assert!(task.expect("accepted").is_done());
}

/// A trigger that panics when it counts.
struct Miscounts;

impl Trigger for Miscounts {
    fn next(&mut self, last: &TriggerContext<'_>) -> Option<Due> {
        Some(Due::At(last.after() + ms(10)))
    }

    fn between(&mut self, _: Due, _: Due) -> u64 {
        std::panic::resume_unwind(Box::new("too many"))
    }
}

#[test]
fn a_panic_while_counting_ends_the_task() {
    let (clock, executor) = manual(1);
    let task = executor.repeat(Miscounts, || ()).expect("accepted");
    clock.advance(ms(15));
    clock.run_until_idle();
    let error = task.join().expect_err("its trigger panics");
    assert!(error.to_string().contains("too many"), "{error}");
    assert_eq!(executor.pending_count(), 0);
}

/// A run beside the schedule that comes late stands for no moment of the grid: those are the next planned run's.
#[test]
fn an_extra_run_stands_for_no_missed_run() {
    let policies = [MissedRuns::Coalesce, MissedRuns::Delay];
    for trigger in [every(ms(10)).first_in(ms(10)), every(ms(10)).first_in(ms(11))] {
        for policy in policies {
            let (clock, executor) = manual(1);
            let gate = occupy(&executor);
            let runs = Log::new();
            let log = runs.clone();
            let body = move || log.push(current_task().expect("inside a task").missed_runs());
            let task = executor.task().missed_runs(policy).repeat(trigger, body).unwrap();
            assert!(task.run_now());
            clock.advance(ms(45));
            gate.add();
            clock.run_until_idle();
            assert_eq!((runs.entries(), executor.statistics().missed_runs), (vec![0, 3], 3));
        }
    }
}
