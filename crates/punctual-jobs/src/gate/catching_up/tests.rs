//! The policies of a trigger that makes up for missed ticks, without a database.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{CatchingUp, LastPlan};
use crate::{CatchUp, aligned, gate::event::Reporter};

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
                trigger.note_row(at(0), true);
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
