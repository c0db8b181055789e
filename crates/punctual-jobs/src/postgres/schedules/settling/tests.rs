//! The rules, and the moments of a row, held against an enumeration of all ticks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use punctual::trigger::{Missing, Repeated};
use serde::{Deserialize, Serialize};

use super::{
    super::{Schedule, timing::seed_of},
    *,
};
use crate::Job;

#[derive(Serialize, Deserialize)]
struct Sweep {}

impl Job for Sweep {
    const NAME: &'static str = "sweep";
}

/// The moments of a schedule, as those of its row.
trait Timed {
    fn timing(&self) -> Timing;
}

impl Timed for Schedule {
    fn timing(&self) -> Timing {
        Timing {
            calendar: self.when.clone(),
            from: self.from,
            until: self.until,
            jitter: self.jitter,
            seed: seed_of(&self.name),
        }
    }
}

/// In seconds, of the year 2026.
fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn every(period: u64) -> Timing {
    Schedule::every("a", seconds(period), &Sweep {}).timing()
}

fn each(window: u64) -> CatchUp {
    CatchUp::Each(seconds(window))
}

fn last(window: u64) -> CatchUp {
    CatchUp::Last(seconds(window))
}

#[test]
fn a_tick_that_has_not_come_is_waited_for() {
    let settlement = settle(&every(60), CatchUp::None, at(0), at(59));
    assert_eq!(settlement, Settlement { next: Some(at(60)), ..Settlement::default() });
}

#[test]
fn a_tick_on_time_has_a_job_whatever_is_made_up_for() {
    for catch_up in [CatchUp::None, last(0), each(0)] {
        for late in [0, 1, 10] {
            let settlement = settle(&every(60), catch_up, at(0), at(60 + late));
            assert_eq!(settlement.ticks, [at(60)]);
            assert!(!settlement.waits && !settlement.is_late);
            assert_eq!((settlement.missed, settlement.next), (0, Some(at(120))));
        }
    }
}

#[test]
fn a_tick_that_is_late_is_missed_or_made_up_for() {
    let settle = |catch_up| settle(&every(60), catch_up, at(0), at(71));
    let missed = settle(CatchUp::None);
    assert!(missed.ticks.is_empty());
    assert_eq!((missed.missed, missed.settled), (1, Some(at(60))));
    let made_up = settle(last(30));
    assert_eq!(made_up.ticks, [at(60)]);
    assert!(made_up.is_late && !made_up.waits);
    let made_up = settle(each(30));
    assert_eq!(made_up.ticks, [at(60)]);
    assert!(made_up.is_late && made_up.waits);
}

#[test]
fn of_many_the_last_one_stands_for_all() {
    let settlement = settle(&every(60), last(3600), at(0), at(630));
    assert_eq!((settlement.ticks.as_slice(), settlement.missed), (&[at(600)][..], 9));
    assert!(settlement.is_late);
    let on_time = settle(&every(60), last(3600), at(0), at(603));
    assert_eq!((on_time.ticks.as_slice(), on_time.missed), (&[at(600)][..], 9));
    assert!(!on_time.is_late);
}

#[test]
fn each_within_the_window_waits_and_those_before_are_missed() {
    let settlement = settle(&every(60), each(200), at(0), at(650));
    assert_eq!(settlement.ticks, [at(480), at(540), at(600)]);
    assert_eq!(settlement.missed, 7);
    assert!(settlement.waits);
    let settled = settlement.settled.expect("some are missed");
    assert!(at(420) <= settled && settled < at(480));
}

#[test]
fn a_long_backlog_is_made_up_for_in_parts() {
    let settlement = settle(&every(1), each(100_000), at(0), at(50_000));
    assert_eq!(settlement.ticks.len(), AT_ONCE);
    assert_eq!((settlement.ticks[0], settlement.next), (at(1), Some(at(50_000))));
}

#[test]
fn a_year_of_seconds_is_found_quickly() {
    let year = 365 * 24 * 3600;
    let seconds = Schedule::cron("a", "* * * * * *", "UTC", &Sweep {}).expect("an expression");
    // The machine may stand still in one of them. What looks at each second takes minutes each time.
    let is_quick = (0..4).any(|_| {
        let begun = std::time::Instant::now();
        let settlement = settle(&seconds.timing(), last(3600), at(0), at(year));
        assert_eq!(settlement.ticks, [at(year)]);
        assert_eq!(settlement.missed, 999, "a thousand are counted");
        assert_eq!(settle(&every(1), last(3600), at(0), at(year)).missed, year - 1);
        begun.elapsed() < seconds_of_a_test()
    });
    assert!(is_quick);
}

fn seconds_of_a_test() -> Duration {
    Duration::from_secs(5)
}

#[test]
fn a_row_that_is_ahead_waits_for_a_minute_and_is_not_believed_beyond() {
    let waits = settle(&every(1), last(60), at(100), at(50));
    assert_eq!((waits.ticks.len(), waits.ahead), (0, None));
    assert_eq!(waits.next, Some(at(101)));
    let not_believed = settle(&every(60), last(60), at(10_000), at(100));
    assert_eq!(not_believed.ahead, Some(seconds(9_900)));
    assert_eq!((not_believed.settled, not_believed.next), (Some(at(100)), Some(at(120))));
}

#[test]
fn the_bounds_are_ticks_themselves() {
    let schedule = Schedule::every("a", seconds(60), &Sweep {});
    let timing = schedule.from(at(120)).until(at(240)).timing();
    assert_eq!(timing.next_after(at(0)), Some(at(120)));
    assert_eq!(timing.next_after(at(180)), Some(at(240)));
    assert_eq!(timing.next_after(at(240)), None);
    assert_eq!(timing.count(at(0), at(1000)), 3);
    let settlement = settle(&timing, each(3600), at(0), at(1000));
    assert_eq!(settlement.ticks, [at(120), at(180), at(240)]);
    assert_eq!((settlement.missed, settlement.next), (0, None), "it is over");
}

#[test]
fn a_row_that_ticks_seldom_is_looked_at_each_day() {
    let yearly = Schedule::cron("a", "0 0 1 1 *", "UTC", &Sweep {}).expect("an expression");
    let settlement = settle(&yearly.timing(), last(60), at(0), at(60));
    assert_eq!(settlement.next, Some(at(60 + 24 * 3600)));
}

/// 29 March and 25 October 2026, in Berlin.
#[test]
fn the_missing_and_the_repeated_hour_follow_their_policies() {
    let half_past_two = || Schedule::cron("a", "30 2 * * *", "Europe/Berlin", &Sweep {});
    let half_past_two = || half_past_two().expect("an expression");
    let (spring, autumn) = (at(86 * 86_400 + 43_200), at(296 * 86_400 + 43_200));
    let ticks = |schedule: Schedule, from: SystemTime| {
        settle(&schedule.timing(), each(3 * 86_400), from, from + seconds(86_400)).ticks
    };
    let hour = |from: SystemTime, minutes: u64| from + seconds(60 * minutes);
    assert_eq!(ticks(half_past_two(), spring), [hour(spring, 13 * 60)]);
    assert!(ticks(half_past_two().missing(Missing::Skip), spring).is_empty());
    assert_eq!(ticks(half_past_two(), autumn), [hour(autumn, 12 * 60 + 30)]);
    let last = half_past_two().repeated(Repeated::Last);
    assert_eq!(ticks(last, autumn), [hour(autumn, 13 * 60 + 30)]);
    let both = half_past_two().repeated(Repeated::Both);
    assert_eq!(ticks(both, autumn).len(), 2);
}

#[test]
fn jitter_is_a_function_of_name_and_tick_and_stays_within_the_tick() {
    let timing = |name: &str| {
        let schedule = Schedule::every(name, seconds(60), &Sweep {});
        schedule.jitter(seconds(3600)).timing()
    };
    let (one, same, other) = (timing("a"), timing("a"), timing("b"));
    let ticks = (1..200).map(|number| at(60 * number));
    let offset = |timing: &Timing, tick| timing.due(tick).duration_since(tick).expect("later");
    let mut distinct = std::collections::HashSet::new();
    for tick in ticks {
        assert_eq!(offset(&one, tick), offset(&same, tick));
        assert!(offset(&one, tick) < seconds(60) && offset(&other, tick) < seconds(60));
        distinct.insert(offset(&one, tick));
        distinct.insert(offset(&other, tick));
    }
    assert!(distinct.len() > 390, "{}", distinct.len());
    // By hand: another version has to say the same.
    assert_eq!(offset(&one, at(60)), Duration::from_micros(51_637_541));
}

/// All ticks of a timing in a span.
fn all(timing: &Timing, after: SystemTime, until: SystemTime) -> Vec<SystemTime> {
    let mut ticks = Vec::new();
    let mut next = timing.next_after(after);
    while let Some(tick) = next.filter(|tick| *tick <= until) {
        ticks.push(tick);
        next = timing.next_after(tick);
    }
    ticks
}

fn timings() -> impl Strategy<Value = Timing> {
    let expressions =
        ["* * * * * *", "*/7 * * * * *", "0 * * * *", "0 9 * * MON-FRI", "30 2 * * *"];
    let cron = prop::sample::select(expressions.to_vec()).prop_map(|expression| {
        Schedule::cron("a", expression, "America/New_York", &Sweep {}).expect("an expression")
    });
    let period = (1_u64..5_000)
        .prop_map(|tenths| Schedule::every("b", Duration::from_millis(100 * tenths), &Sweep {}));
    let schedule = prop_oneof![cron, period];
    let bounds = (prop::option::of(0_u64..4_000), prop::option::of(0_u64..9_000));
    (schedule, 0_u64..100, bounds).prop_map(|(mut schedule, jitter, (from, until))| {
        if let Some(from) = from {
            schedule = schedule.from(at(from));
        }
        if let Some(until) = until {
            schedule = schedule.until(at(until));
        }
        schedule.jitter(seconds(jitter)).timing()
    })
}

fn catch_ups() -> impl Strategy<Value = CatchUp> {
    prop_oneof![Just(CatchUp::None), (0_u64..5_000).prop_map(last), (0_u64..5_000).prop_map(each),]
}

proptest! {
    /// Each tick that is due has one fate, in order, and the next look is at the first one that is not due.
    #[test]
    fn every_tick_has_one_fate(
        timing in timings(),
        catch_up in catch_ups(),
        settled in 0_u64..5_000,
        passed in 0_u64..5_000,
    ) {
        let (settled, now) = (at(settled), at(settled + passed));
        let settlement = settle(&timing, catch_up, settled, now);
        let ticks = all(&timing, settled, now);
        let due: Vec<_> = ticks.into_iter().filter(|tick| timing.due(*tick) <= now).collect();
        let (window, is_each) = match catch_up {
            CatchUp::None => (ON_TIME, false),
            CatchUp::Last(window) => (window.max(ON_TIME), false),
            CatchUp::Each(window) => (window.max(ON_TIME), true),
        };
        let is_young = |tick: &&SystemTime| timing.due(**tick) + window >= now;
        let mut chosen: Vec<_> = due.iter().filter(is_young).copied().collect();
        if !is_each {
            chosen = due.last().filter(is_young).copied().into_iter().collect();
        }
        chosen.truncate(AT_ONCE);
        prop_assert_eq!(&settlement.ticks, &chosen);
        let before = chosen.first().map_or(due.len(), |first| {
            due.iter().filter(|tick| *tick < first).count()
        });
        prop_assert_eq!(settlement.missed, (before as u64).min(settlement.missed.max(999)));
        if let Some(until) = settlement.settled {
            prop_assert!(due[..before].iter().all(|tick| *tick <= until));
            prop_assert!(chosen.first().is_none_or(|first| until < *first));
        } else {
            prop_assert!(before == 0 || !settlement.waits && !chosen.is_empty());
        }
        let rest = chosen.last().or(due.last()).copied().unwrap_or(settled);
        if chosen.len() < AT_ONCE || chosen.last() == due.last() {
            let next = timing.next_after(rest).map(|tick| timing.due(tick));
            let again = now + LOOK_AGAIN;
            prop_assert_eq!(settlement.next, next.map(|next| next.min(again)));
        }
    }
}
