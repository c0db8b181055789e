//! The policies of a trigger that makes up for missed ticks, without a database.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{Asked, CatchingUp, LastPlan};
use crate::{
    CatchUp, aligned,
    gate::{
        event::Reporter,
        named::whole_micros,
        rules::{OnHolderDeath, Row, Rule, Seen, decide},
    },
};

const MINUTE: u64 = 60;

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000 * MINUTE + second)
}

fn minutely(catch_up: CatchUp) -> CatchingUp {
    let minutely = aligned(Duration::from_secs(MINUTE));
    let next_after = Box::new(move |after| minutely.next_after(after));
    CatchingUp::new(Arc::from("a"), next_after, catch_up, Arc::new(Reporter::new(None)))
}

fn minutes(number: u64) -> Duration {
    Duration::from_secs(number * MINUTE)
}

const RERUN: Rule = Rule::Ticks(OnHolderDeath::Rerun);
const SKIP: Rule = Rule::Ticks(OnHolderDeath::Skip);

/// A row whose lease is over.
fn row(tick: SystemTime, done: bool) -> Row {
    let (lease, lease_until) = (Duration::from_secs(1), UNIX_EPOCH);
    Row { tick, done, fence: 1, lease, lease_until, is_orphan: false }
}

/// The row of a tick that was given back.
fn given_back(tick: SystemTime) -> Row {
    row(tick - Duration::from_micros(1), true)
}

/// Whether a question at the moment `now` is put off, if the row is this one.
fn puts_off(trigger: &CatchingUp, row: Row, rule: Rule, tick: SystemTime, now: u64) -> bool {
    let (now, row) = (at(now), Some(row));
    let seen = Seen { now, row };
    trigger.puts_off(&seen, decide(&seen, tick, rule), Asked { tick, rule, now })
}

/// A replica that began before the name had a row, and has planned the tick of the first minute.
fn ahead_of_the_row(catch_up: CatchUp) -> CatchingUp {
    let trigger = minutely(catch_up);
    let old = trigger.next(LastPlan::None, at(3)).expect("a tick");
    let (now, seen) = (at(3), Seen { now: at(3), row: None });
    let asked = Asked { tick: old, rule: RERUN, now };
    assert!(trigger.puts_off(&seen, decide(&seen, old, RERUN), asked), "nothing was missed");
    assert_eq!(trigger.next(LastPlan::Tick(old), now), Some(at(MINUTE)));
    trigger
}

const POLICIES: [fn(Duration) -> CatchUp; 3] = [|_| CatchUp::None, CatchUp::Last, CatchUp::Each];

/// The executor asks a second time if the first answer was not used, and has to hear the same.
#[test]
fn the_same_question_has_the_same_answer() {
    for policy in POLICIES {
        for now in [3, 29, 31, 65, 605] {
            for last in [LastPlan::None, LastPlan::Elsewhere, LastPlan::Tick(at(0))] {
                let trigger = minutely(policy(minutes(3)));
                let first = trigger.next(last, at(now));
                assert_eq!(trigger.next(last, at(now)), first, "{now}");
                trigger.note_row(&row(at(0), true), RERUN);
                let behind = trigger.next(last, at(now));
                assert_eq!(trigger.next(last, at(now)), behind, "{now}");
                assert!(behind > Some(at(0)), "{now}");
            }
        }
    }
}

/// The tick of a moment ago is on time, also for a replica that has only begun.
#[test]
fn the_tick_of_three_seconds_ago_is_planned_by_each_policy() {
    for policy in POLICIES {
        let trigger = minutely(policy(Duration::from_secs(1)));
        assert_eq!(trigger.next(LastPlan::None, at(MINUTE + 3)), Some(at(MINUTE)));
        let trigger = minutely(policy(Duration::from_secs(1)));
        assert_eq!(trigger.next(LastPlan::None, at(MINUTE + 11)), Some(at(2 * MINUTE)));
    }
}

/// What was planned before a pause of the process runs after it only if the policy still has it.
#[test]
fn after_a_pause_a_tick_that_is_later_than_the_policy_allows_is_left_out() {
    let none = minutely(CatchUp::None);
    let last = minutely(CatchUp::Last(minutes(5)));
    let each = minutely(CatchUp::Each(minutes(5)));
    let left_out = |now| [&none, &last, &each].map(|it| it.is_left_out(at(0), at(now)));
    assert_eq!(left_out(10), [false, false, false], "it is on time");
    assert_eq!(left_out(11), [true, false, false]);
    assert_eq!(left_out(59), [true, false, false]);
    assert_eq!(left_out(60), [true, true, false], "the next one stands for it");
    assert_eq!(left_out(300), [true, true, false]);
    assert_eq!(left_out(301), [true, true, true], "beyond the window");
}

/// The holder of the earlier tick has died, and another has given it back. The replica plans it, and then its own.
#[test]
fn a_tick_that_was_given_back_runs_before_a_later_one() {
    let trigger = ahead_of_the_row(CatchUp::Each(minutes(5)));
    for open in [row(at(0), false), given_back(at(0))] {
        assert!(puts_off(&trigger, open, RERUN, at(MINUTE), MINUTE + 1));
        assert_eq!(trigger.next(LastPlan::Tick(at(MINUTE)), at(MINUTE + 1)), Some(at(0)));
        assert!(!puts_off(&trigger, open, RERUN, at(0), MINUTE + 1));
    }
    assert_eq!(trigger.next(LastPlan::Tick(at(0)), at(MINUTE + 2)), Some(at(MINUTE)));
    assert!(!puts_off(&trigger, row(at(0), true), RERUN, at(MINUTE), MINUTE + 2));
}

/// A row that a replica with a slow clock has made leaves open all that it has not come to.
#[test]
fn what_a_row_leaves_open_runs_as_the_policy_says() {
    let far_behind = row(at(0) - minutes(9), true);
    for (catch_up, first) in [
        (CatchUp::Each(minutes(5)), Some(at(2 * MINUTE))),
        (CatchUp::Each(minutes(1)), Some(at(6 * MINUTE))),
        (CatchUp::Last(minutes(5)), None),
        (CatchUp::None, None),
    ] {
        let trigger = ahead_of_the_row(catch_up);
        let (tick, now) = (at(7 * MINUTE), 7 * MINUTE);
        assert_eq!(puts_off(&trigger, far_behind, RERUN, tick, now), first.is_some());
        if first.is_some() {
            assert_eq!(trigger.next(LastPlan::Tick(tick), at(now)), first, "{catch_up:?}");
        }
    }
}

/// Replicas whose clocks are apart run one tick after a pause, and not each that is on time by one of them.
#[test]
fn a_later_tick_stands_for_those_that_are_on_time() {
    for policy in POLICIES {
        let secondly = aligned(Duration::from_secs(1));
        let next_after = Box::new(move |after| secondly.next_after(after));
        let (catch_up, reporter) = (policy(minutes(5)), Arc::new(Reporter::new(None)));
        let trigger = CatchingUp::new(Arc::from("a"), next_after, catch_up, reporter);
        let goes_back = puts_off(&trigger, row(at(0), true), RERUN, at(7), 7);
        assert_eq!(goes_back, matches!(catch_up, CatchUp::Each(_)), "{catch_up:?}");
    }
}

#[test]
fn a_moment_that_was_requested_waits_for_no_tick() {
    let trigger = ahead_of_the_row(CatchUp::Each(minutes(5)));
    assert!(!puts_off(&trigger, given_back(at(0)), RERUN, at(MINUTE + 1), MINUTE + 1));
    assert!(!puts_off(&trigger, given_back(at(0)), Rule::Retry(7), at(MINUTE), MINUTE + 1));
}

/// A run that was lost is missed if it would have run again, and is over if it would not.
#[test]
fn a_lost_run_is_counted_as_missed_only_if_it_would_have_run_again() {
    for (rule, missed) in [(RERUN, 2), (SKIP, 1)] {
        let trigger = ahead_of_the_row(CatchUp::Last(minutes(5)));
        let lost = row(at(0), false);
        assert!(!puts_off(&trigger, lost, rule, at(2 * MINUTE), 2 * MINUTE + 1));
        trigger.tell_passed_over(at(2 * MINUTE));
        assert_eq!(trigger.reporter.statistics(0).missed, missed);
    }
    let trigger = ahead_of_the_row(CatchUp::Each(minutes(5)));
    assert!(!puts_off(&trigger, row(at(0), false), SKIP, at(MINUTE), MINUTE + 1), "it is over");
}

/// A claim whose answer was lost has passed over ticks as well. They are told when the claim is found, and only then.
#[test]
fn a_claim_whose_answer_was_lost_tells_what_it_has_missed() {
    for rule in [RERUN, SKIP] {
        let trigger = ahead_of_the_row(CatchUp::Last(minutes(5)));
        assert!(!puts_off(&trigger, row(at(0), true), rule, at(3 * MINUTE), 3 * MINUTE + 1));
        let orphan = || Row { is_orphan: true, ..row(at(3 * MINUTE), false) };
        assert!(!puts_off(&trigger, orphan(), rule, at(3 * MINUTE), 3 * MINUTE + 2));
        assert_eq!(trigger.reporter.statistics(0).missed, 2);
        trigger.tell_passed_over(at(3 * MINUTE));
        assert!(!puts_off(&trigger, orphan(), rule, at(3 * MINUTE), 3 * MINUTE + 3));
        assert_eq!(trigger.reporter.statistics(0).missed, 2, "not a second time");
    }
}

/// The database has moments in microseconds. A tick between two of them is the one that its row says.
#[test]
fn ticks_between_two_microseconds_are_those_of_the_row() {
    let third = aligned(Duration::from_nanos(333_333_333));
    let next_after = Box::new(move |after| third.next_after(after));
    let each = CatchUp::Each(minutes(5));
    let trigger = CatchingUp::new(Arc::from("a"), next_after, each, Arc::new(Reporter::new(None)));
    let mut last = third.next_after(at(0)).expect("a tick");
    trigger.next(LastPlan::None, at(0));
    for _ in 0..9 {
        let tick = third.next_after(last).expect("a tick");
        let row = row(whole_micros(last), true);
        assert!(!puts_off(&trigger, row, RERUN, whole_micros(tick), 5), "it comes next");
        trigger.tell_passed_over(whole_micros(tick));
        last = tick;
    }
    assert_eq!(trigger.reporter.statistics(0).missed, 0);
}
