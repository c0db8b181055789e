//! Moments as `SystemTime`, zones by name, and the special cases of both.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;

use super::{POLICIES, bundled, moments, second};
use crate::{
    extra::cron::{
        Cron, CronErrorKind, Missing, Policy, Repeated, cron, expression::Expression, second_of,
    },
    time::Clock,
    trigger::{Due, Trigger, TriggerContext},
};

fn utc(expression: &str) -> Cron {
    cron(expression, "UTC").expect("it is good")
}

fn at(seconds: u64, nanos: u32) -> SystemTime {
    UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// Returns the moments of an expression in a zone between two moments, by the expression's own policy.
fn found(expression: &str, zone: &str, from: &str, to: &str) -> Vec<i64> {
    by(None, expression, zone, from, to)
}

fn by(policy: Option<Policy>, expression: &str, zone: &str, from: &str, to: &str) -> Vec<i64> {
    let parsed = Expression::parse(expression).expect("it is good");
    let policy = policy.unwrap_or(Policy::of(&parsed));
    moments(&parsed.fields, policy, &bundled(zone), second(from), second(to))
}

#[test]
fn the_next_moment_is_later_and_a_whole_second() {
    let minutely = utc("* * * * *");
    assert_eq!(minutely.next_after(at(0, 0)), Some(at(60, 0)));
    assert_eq!(minutely.next_after(at(59, 999_999_999)), Some(at(60, 0)));
    assert_eq!(minutely.next_after(at(60, 0)), Some(at(120, 0)));
    assert_eq!(minutely.next_after(at(60, 1)), Some(at(120, 0)));
}

#[test]
fn moments_before_1970_are_moments() {
    let secondly = utc("* * * * * *");
    let before = |span| UNIX_EPOCH - span;
    let next = |moment| secondly.next_after(moment).expect("there is one");
    assert_eq!(next(before(Duration::from_nanos(1))), UNIX_EPOCH);
    assert_eq!(next(before(Duration::from_secs(1))), UNIX_EPOCH);
    assert_eq!(next(before(Duration::new(1, 1))), before(Duration::from_secs(1)));
    let one = Duration::from_secs(1);
    assert_eq!([UNIX_EPOCH - one, UNIX_EPOCH, UNIX_EPOCH + one].map(second_of), [-1, 0, 1]);
    let far = Duration::from_secs(u64::MAX >> 1);
    assert!(UNIX_EPOCH.checked_sub(far).is_none_or(|moment| second_of(moment) == i64::MIN));
    assert!(UNIX_EPOCH.checked_add(far).is_none_or(|moment| second_of(moment) == i64::MAX));
}

/// A series ends after the year 9999, without a panic.
#[test]
fn nothing_is_later_than_9999() {
    let daily = utc("0 0 * * *");
    let end = u64::try_from(second("9999-12-30T22:00:00Z")).expect("it is late");
    assert_eq!(daily.next_after(at(end - 86_400 * 2, 0)), Some(at(end - 22 * 3600 - 86_400, 0)));
    for seconds in [end, end + 1, end * 2, u64::MAX >> 1] {
        if let Some(moment) = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)) {
            assert_eq!(daily.next_after(moment), None);
        }
    }
    if let Some(moment) = UNIX_EPOCH.checked_sub(Duration::from_secs(u64::MAX >> 1)) {
        assert!(daily.next_after(moment).is_some(), "the first moment that there is");
    }
}

/// All of these times are missing, in every year to come.
#[test]
fn what_is_always_missing_and_skipped_never_runs() {
    let (expression, zone) = ("30 2 * 3 SUN#2", "America/New_York");
    let fields = Expression::parse(expression).expect("it is good").fields;
    let skipping = POLICIES[0];
    assert_eq!(skipping.missing, Missing::Skip);
    let from = second("2026-01-01T00:00:00Z");
    let last = super::first_from(&fields, skipping, &bundled(zone), from);
    assert_eq!(last, None);
    assert_eq!(found(expression, zone, "2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z").len(), 2);
}

#[test]
fn a_day_that_is_left_out_runs_once_at_its_end() {
    // Samoa had no 30 December 2011.
    let (from, to) = ("2011-12-29T22:00:00Z", "2011-12-31T09:00:00Z");
    let end = second("2011-12-30T10:00:00Z");
    let noons = [second("2011-12-29T22:00:00Z"), end, second("2011-12-30T22:00:00Z")];
    assert_eq!(found("0 12 * * *", "Pacific/Apia", from, to), noons);
    assert_eq!(found("0 1,12,23 30 * *", "Pacific/Apia", from, to), [end]);
    let skipping = POLICIES.into_iter().find(|policy| policy.missing == Missing::Skip);
    assert_eq!(by(skipping, "0 12 * * *", "Pacific/Apia", from, to), [noons[0], noons[2]]);
}

#[test]
fn a_gap_that_ends_on_another_day_runs_on_that_day() {
    // Nuuk's clocks go from Saturday, 23:00, to Sunday.
    let (from, to) = ("2026-03-28T00:00:00Z", "2026-03-30T00:00:00Z");
    let saturday = found("30 23 * * SAT", "America/Nuuk", from, to);
    assert_eq!(saturday, [second("2026-03-29T01:00:00Z")]);
    // The last day of March 1919 was followed by half past midnight in Toronto.
    let (from, to) = ("1919-03-31T00:00:00Z", "1919-04-01T00:00:00Z");
    let last = found("45 23 30 3 *", "America/Toronto", from, to);
    assert_eq!(last, [second("1919-03-31T04:30:00Z")]);
}

#[test]
fn two_hours_that_come_twice_come_twice() {
    let (from, to) = ("2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z");
    let at = |times: &[&str]| -> Vec<_> {
        times.iter().map(|time| second(&format!("2026-10-25T{time}:00Z"))).collect()
    };
    let quarters = found("30 1,2 * * *", "Antarctica/Troll", from, to);
    assert_eq!(quarters, [second("2026-10-24T23:30:00Z"), second("2026-10-25T00:30:00Z")]);
    let last = POLICIES.into_iter().find(|policy| policy.repeated == Repeated::Last);
    assert_eq!(by(last, "30 1,2 * * *", "Antarctica/Troll", from, to), at(&["01:30", "02:30"]));
}

#[test]
fn moments_between_two_are_counted_up_to_a_thousand() {
    let mut hourly = cron("0 * * * *", "Etc/UTC").expect("it is good");
    let mut between = |from, to| hourly.between(Due::Wall(from), Due::Wall(to));
    assert_eq!(between(at(0, 0), at(7_199, 0)), 1, "the first end does not count");
    assert_eq!(between(at(0, 0), at(7_200, 0)), 2);
    assert_eq!(between(at(7_200, 0), at(0, 0)), 0);
    assert_eq!(between(at(0, 0), at(u64::from(u32::MAX), 0)), 1_000);
}

#[test]
fn a_zone_has_to_be_known() {
    let unknown = ["Europe/Lodnon", "", "local", "Etc/Unknown", "EST5EDT,M3.2.0,M11.1.0", "\0"];
    let beside = [" ", "+", "UTC+15", "+05:30", "UTC+é"];
    for zone in unknown.into_iter().chain(beside) {
        let error = cron("0 0 * * *", zone).expect_err(zone);
        assert_eq!((error.kind(), error.span()), (CronErrorKind::UnknownZone, None), "{zone}");
        let message = error.to_string();
        assert!(message.contains(&format!("{zone:?}")) && message.contains("cron-bundled-zones"));
    }
    assert!(cron("0 0 * * *", "europe/london").is_ok());
}

/// A fault of the expression is reported before an unknown zone.
#[test]
fn a_zone_is_looked_up_for_a_good_expression_only() {
    assert_eq!(cron("", "").map_err(|error| error.kind()).err(), Some(CronErrorKind::Syntax));
}

#[test]
fn a_calendar_shows_what_it_is() {
    let nine = cron("0 9 * * MON-FRI", "Europe/London").expect("it is good");
    assert_eq!((nine.expression(), nine.zone()), ("0 9 * * MON-FRI", "Europe/London"));
    assert_eq!(nine.to_string(), "0 9 * * MON-FRI (Europe/London)");
    let set = nine.missing(Missing::Skip).repeated(Repeated::Both);
    assert!(format!("{set:?}").contains("missing: Skip, repeated: Both"));
}

/// Returns the moment after which the trigger has to answer, and its answer.
fn asked(calendar: &mut Cron) -> (SystemTime, Option<Due>) {
    let clock = Clock::default();
    let after = clock.read();
    let last = TriggerContext {
        clock: &clock,
        after,
        after_wall: None,
        last: None,
        runs: 0,
        failures_in_a_row: 0,
        is_asked_again: false,
    };
    (last.after_wall(), calendar.next(&last))
}

#[test]
fn the_trigger_answers_with_the_next_moment_on_the_wall() {
    let mut nine = cron("0 9 * * *", "Asia/Kolkata").expect("it is good");
    let (after, answer) = asked(&mut nine);
    assert!(answer.is_some());
    assert_eq!(answer, nine.next_after(after).map(Due::Wall));
}

/// Each answer looks the zone up again, and the trigger keeps the rules that it finds.
#[test]
fn the_trigger_keeps_the_zone_that_it_found_last() {
    let mut nine = cron("0 9 * * *", "Asia/Kolkata").expect("it is good");
    let before = nine.next_after(UNIX_EPOCH);
    nine.last_known = TimeZone::UTC;
    asked(&mut nine);
    nine.zone = "Vanished/Zone".into();
    assert_eq!(nine.next_after(UNIX_EPOCH), before);
}

/// A trigger uses the zone that it was made with for as long as it finds no other.
#[test]
fn a_zone_that_has_vanished_is_the_last_one_known() {
    let mut nine = cron("0 9 * * *", "Asia/Kolkata").expect("it is good");
    let before = nine.next_after(UNIX_EPOCH);
    nine.zone = "Vanished/Zone".into();
    assert_eq!(nine.next_after(UNIX_EPOCH), before);
    assert_ne!(before, utc("0 9 * * *").next_after(UNIX_EPOCH));
}
