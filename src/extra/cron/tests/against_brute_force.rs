//! Compares the walk with brute force: around each change of a zone's offset, it asks `jiff`, for every time that an
//! expression matches, whether and when a clock shows that time. Also compares the fields with another crate.

use std::collections::BTreeSet;

use croner::parser::{CronParser, Seconds, Year};
use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase},
};

use super::{Numbers, POLICIES, moments, second};
use crate::extra::cron::{Missing, Policy, Repeated, expression::Expression, fields::Fields};

const DAY: i64 = 24 * 60 * 60;

/// Returns `true` if all rounds of a long test were asked for.
fn is_long() -> bool {
    std::env::var("PUNCTUAL_ROUNDS").is_ok_and(|rounds| rounds == "all")
}

fn civil(seconds: i64) -> DateTime {
    Offset::UTC.to_datetime(Timestamp::from_second(seconds).expect("it is near"))
}

/// Returns the first moment after `before`, and up to `after`, at which the zone has this offset.
fn change_between(zone: &TimeZone, mut before: i64, mut after: i64, offset: Offset) -> i64 {
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        let there = zone.to_offset(Timestamp::from_second(middle).expect("it is near"));
        if there == offset { after = middle } else { before = middle }
    }
    after
}

/// Returns the moments at which a clock shows these times, as `jiff` says.
fn by_brute_force(
    times: &[(i64, AmbiguousOffset)],
    policy: Policy,
    zone: &TimeZone,
) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    for &(time, shown) in times {
        let at = |offset: Offset| time - i64::from(offset.seconds());
        match shown {
            AmbiguousOffset::Unambiguous { offset } => {
                found.insert(at(offset));
            }
            AmbiguousOffset::Gap { before, after } => {
                if policy.missing == Missing::Next {
                    found.insert(change_between(zone, at(after), at(before), after));
                }
            }
            AmbiguousOffset::Fold { before, after } => {
                let both = [at(before), at(after)];
                found.extend(match policy.repeated {
                    Repeated::First => &both[..1],
                    Repeated::Last => &both[1..],
                    Repeated::Both => &both,
                });
            }
        }
    }
    found
}

fn pick<'a>(numbers: &mut Numbers, from: &[&'a str]) -> &'a str {
    from[numbers.below(from.len() as u64) as usize]
}

/// Makes an expression that often has runs within a day of a change.
fn dense(numbers: &mut Numbers) -> String {
    let minute = match numbers.below(3) {
        0 => numbers.below(60).to_string(),
        1 => format!("*/{}", 5 + numbers.below(40)),
        _ => format!("{},{}", numbers.below(30), 30 + numbers.below(30)),
    };
    let hour = match numbers.below(4) {
        0 => numbers.below(24).to_string(),
        1 => "*".to_owned(),
        2 => format!("*/{}", 1 + numbers.below(6)),
        _ => format!("0-{}", numbers.below(24)),
    };
    let days = ["* * *", "* * *", "* * *", "*/2 * *", "* * SAT", "* * 0", "1-15 * *", "L * SUN"];
    format!("{minute} {hour} {}", pick(numbers, &days))
}

/// Compares all six policies for one expression around one change of the offset. Returns how many moments it compared.
fn compare(zone: &TimeZone, name: &str, change: i64, expression: &str) -> u64 {
    let fields: Fields = Expression::parse(expression).expect("it is good").fields;
    let (from, to) = (change - DAY, change + DAY);
    // No clock differs from UTC by a day.
    let matching = |from| fields.first_within(from, to + DAY);
    let times = std::iter::successors(matching(from - DAY), |time| matching(time + 1));
    let shown = |time| zone.to_ambiguous_timestamp(civil(time)).offset();
    let times: Vec<_> = times.map(|time| (time, shown(time))).collect();
    let mut compared = 0;
    for policy in POLICIES {
        let mut expected = by_brute_force(&times, policy, zone);
        expected.retain(|moment| (from..=to).contains(moment));
        let found = moments(&fields, policy, zone, from, to);
        compared += found.len() as u64;
        let same = found.iter().eq(&expected);
        assert!(same, "`{expression}` in {name} at {change}, {policy:?}: {found:?}, {expected:?}");
    }
    compared
}

/// Every change of the offset in every zone from 1970 to 2040; a random tenth of the changes unless all rounds were
/// asked for. Of zones that are alike in that time, only one is tested.
#[test]
fn the_walk_finds_what_brute_force_finds_in_every_zone() {
    let database = TimeZoneDatabase::bundled();
    let begin: Timestamp = "1970-01-01T00:00:00Z".parse().expect("a moment");
    let end = second("2040-01-01T00:00:00Z");
    let mut numbers = Numbers(2026);
    let (mut names, mut changes, mut compared) = (0, 0_u64, 0);
    let mut zones = BTreeSet::new();
    for name in database.available() {
        names += 1;
        let zone = database.get(name.as_str()).expect("it is available");
        let all = zone.following(begin);
        let all = all.map(|change| (change.timestamp().as_second(), change.offset().seconds()));
        let all: Vec<_> = all.take_while(|(change, _)| *change < end).collect();
        if !zones.insert((zone.to_offset(begin).seconds(), all.clone())) {
            continue;
        }
        for (change, _) in all {
            if is_long() || numbers.below(10) == 0 {
                changes += 1;
                compared += compare(&zone, name.as_str(), change, &dense(&mut numbers));
            }
        }
    }
    let zones = zones.len();
    println!("{names} names, {zones} different zones, {changes} changes, {compared} moments");
    assert!(names > 500 && zones > 200 && changes > 100 && compared > 10_000);
}

/// Makes an item of a field that both crates understand.
fn item(numbers: &mut Numbers, min: u64, max: u64) -> String {
    let mut value = || min + numbers.below(max - min + 1);
    let (one, other) = (value(), value());
    let (from, to) = (one.min(other), one.max(other));
    match numbers.below(4) {
        0 => format!("{from}-{to}"),
        1 if from < to => format!("{from}-{to}/{}", 1 + numbers.below(max - min)),
        _ => one.to_string(),
    }
}

fn field(numbers: &mut Numbers, min: u64, max: u64) -> String {
    match numbers.below(4) {
        0 => "*".to_owned(),
        1 => format!("*/{}", 1 + numbers.below(max - min)),
        _ => {
            let items = 1 + numbers.below(3);
            let items: Vec<_> = (0..items).map(|_| item(numbers, min, max)).collect();
            items.join(",")
        }
    }
}

/// Makes a day field that means the same to both crates. They differ on `*/2`, which here, as in cronie, restricts the
/// other day field and does not widen it.
fn day(numbers: &mut Numbers) -> String {
    match numbers.below(6) {
        0 | 1 => "*".to_owned(),
        2 => pick(numbers, &["L", "LW", "1W", "15W", "31W", "30W,L"]).to_owned(),
        _ => item(numbers, 1, 31),
    }
}

fn weekday(numbers: &mut Numbers) -> String {
    let choices = ["FRIL", "0L", "MON#1", "4#5", "TUE#2,THU#3", "MON-FRI", "6,0", "SUN", "7"];
    match numbers.below(5) {
        0..=2 => "*".to_owned(),
        3 => item(numbers, 0, 6),
        _ => pick(numbers, &choices).to_owned(),
    }
}

/// The next times of random expressions after random times, compared with another crate.
#[test]
fn the_fields_agree_with_another_crate() {
    let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
    let mut numbers = Numbers(7);
    let rounds = if is_long() { 50_000 } else { 1_000 };
    let (mut compared, mut never) = (0, 0);
    for _ in 0..rounds {
        let (seconds, minutes) = (field(&mut numbers, 0, 59), field(&mut numbers, 0, 59));
        let (hours, months) = (field(&mut numbers, 0, 23), field(&mut numbers, 1, 12));
        let (days, weekdays) = (day(&mut numbers), weekday(&mut numbers));
        let expression = format!("{seconds} {minutes} {hours} {days} {months} {weekdays}");
        let theirs = parser.parse(&expression).expect("both understand it");
        let start = second("1970-01-01T00:00:00Z") + numbers.below(130 * 365) as i64 * DAY;
        let mut at = start + numbers.below(DAY as u64) as i64;
        let Ok(ours) = Expression::parse(&expression) else {
            assert!(theirs.find_next_occurrence(&civil(at), false).is_err(), "{expression}");
            never += 1;
            continue;
        };
        for _ in 0..8 {
            let expected = theirs.find_next_occurrence(&civil(at), false).expect("there is one");
            let found = ours.fields.first_within(at + 1, i64::MAX).expect("there is one");
            assert_eq!(civil(found), expected, "`{expression}` after {}", civil(at));
            at = found;
            compared += 1;
        }
    }
    println!("{compared} times compared, {never} expressions never match");
    assert!(compared > 5_000 && never > 0);
}
