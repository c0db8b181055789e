//! The golden rows: what runs when, in places whose clocks change in every known way. All moments are UTC, and a date
//! stands for all times up to the next date. Two other programs confirmed the rows from the zone data before they
//! became tests.

use super::{POLICIES, bundled, moments, second};
use crate::extra::cron::{Missing, Policy, Repeated, expression::Expression};

struct Row {
    number: u8,
    zone: &'static str,
    expression: &'static str,
    /// `true` if the expression means an interval, by how its fields begin.
    is_wildcard: bool,
    /// The moments under the default policy.
    moments: &'static str,
    /// The moments under the other policies, where they differ.
    others: &'static [(&'static str, &'static str)],
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // The plain gap.
    Row {
        number: 1, zone: "America/New_York", expression: "30 2 * * *", is_wildcard: false,
        moments: "2026-03-07 07:30, 2026-03-08 07:00, 2026-03-09 06:30",
        others: &[
            ("missing skip", "2026-03-07 07:30, 2026-03-09 06:30"),
        ],
    },
    // First minute of the gap.
    Row {
        number: 2, zone: "America/New_York", expression: "0 2 * * *", is_wildcard: false,
        moments: "2026-03-08 07:00",
        others: &[
            ("missing skip", "none"),
        ],
    },
    // First minute after the gap: exactly one run.
    Row {
        number: 3, zone: "America/New_York", expression: "0 3 * * *", is_wildcard: false,
        moments: "2026-03-08 07:00",
        others: &[],
    },
    // A list over the gap; 02:00 and 02:30 fall together with 03:00, which runs once.
    Row {
        number: 4, zone: "America/New_York", expression: "0,30 1-3 * * *", is_wildcard: false,
        moments: "2026-03-08 06:00, 06:30, 07:00, 07:30",
        others: &[],
    },
    // Every 15 minutes: none is missing, none comes twice.
    Row {
        number: 5, zone: "America/New_York", expression: "*/15 * * * *", is_wildcard: true,
        moments: "2026-03-08 06:30, 06:45, 07:00, 07:15, 07:30",
        others: &[],
    },
    // A step in the hour is a wildcard.
    Row {
        number: 6, zone: "America/New_York", expression: "0 */2 * * *", is_wildcard: true,
        moments: "2026-03-08 05:00, 08:00, 10:00",
        others: &[
            ("missing next", "2026-03-08 05:00, 07:00, 08:00, 10:00"),
        ],
    },
    // The plain fold.
    Row {
        number: 7, zone: "America/New_York", expression: "30 1 * * *", is_wildcard: false,
        moments: "2026-10-31 05:30, 2026-11-01 05:30, 2026-11-02 06:30",
        others: &[
            ("repeated last", "2026-10-31 05:30, 2026-11-01 06:30, 2026-11-02 06:30"),
            ("repeated both", "2026-10-31 05:30, 2026-11-01 05:30, 06:30, 2026-11-02 06:30"),
        ],
    },
    // 02:00 comes once.
    Row {
        number: 8, zone: "America/New_York", expression: "0 2 * * *", is_wildcard: false,
        moments: "2026-11-01 07:00",
        others: &[],
    },
    // An interval over the fold, in the order of real time.
    Row {
        number: 9, zone: "America/New_York", expression: "*/30 * * * *", is_wildcard: true,
        moments: "2026-11-01 04:30, 05:00, 05:30, 06:00, 06:30, 07:00, 07:30",
        others: &[
            ("repeated first", "2026-11-01 04:30, 05:00, 05:30, 07:00, 07:30"),
            ("repeated last", "2026-11-01 04:30, 06:00, 06:30, 07:00, 07:30"),
        ],
    },
    // A day of 25 hours.
    Row {
        number: 10, zone: "America/New_York", expression: "0 0 * * *", is_wildcard: false,
        moments: "2026-10-31 04:00, 2026-11-01 04:00, 2026-11-02 05:00",
        others: &[],
    },
    // With seconds, up to the edge.
    Row {
        number: 12, zone: "America/New_York", expression: "*/20 59 1 * * *", is_wildcard: true,
        moments: "2026-03-08 06:59, 06:59:20, 06:59:40",
        others: &[],
    },
    Row {
        number: 13, zone: "Europe/London", expression: "30 1 * * *", is_wildcard: false,
        moments: "2026-03-28 01:30, 2026-03-29 01:00, 2026-03-30 00:30",
        others: &[
            ("missing skip", "2026-03-28 01:30, 2026-03-30 00:30"),
        ],
    },
    Row {
        number: 14, zone: "Europe/London", expression: "30 1 * * *", is_wildcard: false,
        moments: "2026-10-24 00:30, 2026-10-25 00:30, 2026-10-26 01:30",
        others: &[
            ("repeated last", "2026-10-24 00:30, 2026-10-25 01:30, 2026-10-26 01:30"),
            ("repeated both", "2026-10-24 00:30, 2026-10-25 00:30, 01:30, 2026-10-26 01:30"),
        ],
    },
    // Same instants as G13, though Dublin's winter time is the DST (negative save).
    Row {
        number: 15, zone: "Europe/Dublin", expression: "30 1 * * *", is_wildcard: false,
        moments: "2026-03-28 01:30, 2026-03-29 01:00, 2026-03-30 00:30",
        others: &[
            ("missing skip", "2026-03-28 01:30, 2026-03-30 00:30"),
        ],
    },
    Row {
        number: 16, zone: "Europe/Dublin", expression: "30 1 * * *", is_wildcard: false,
        moments: "2026-10-24 00:30, 2026-10-25 00:30, 2026-10-26 01:30",
        others: &[
            ("repeated last", "2026-10-24 00:30, 2026-10-25 01:30, 2026-10-26 01:30"),
            ("repeated both", "2026-10-24 00:30, 2026-10-25 00:30, 01:30, 2026-10-26 01:30"),
        ],
    },
    // A gap of 30 minutes.
    Row {
        number: 17, zone: "Australia/Lord_Howe", expression: "15 2 * * *", is_wildcard: false,
        moments: "2026-10-03 15:30, 2026-10-04 15:15",
        others: &[
            ("missing skip", "2026-10-04 15:15"),
        ],
    },
    Row {
        number: 18, zone: "Australia/Lord_Howe", expression: "*/15 * * * *", is_wildcard: true,
        moments: "2026-10-03 15:00, 15:15, 15:30, 15:45, 16:00",
        others: &[],
    },
    // A fold of 30 minutes.
    Row {
        number: 19, zone: "Australia/Lord_Howe", expression: "45 1 * * *", is_wildcard: false,
        moments: "2026-04-04 14:45, 2026-04-05 15:15",
        others: &[
            ("repeated last", "2026-04-04 15:15, 2026-04-05 15:15"),
            ("repeated both", "2026-04-04 14:45, 15:15, 2026-04-05 15:15"),
        ],
    },
    // Offset of 12:45; the gap begins at 02:45.
    Row {
        number: 21, zone: "Pacific/Chatham", expression: "0 3 * * *", is_wildcard: false,
        moments: "2026-09-26 14:00, 2026-09-27 13:15",
        others: &[
            ("missing skip", "2026-09-27 13:15"),
        ],
    },
    // Midnight is missing.
    Row {
        number: 22, zone: "America/Sao_Paulo", expression: "0 0 * * *", is_wildcard: false,
        moments: "2018-11-03 03:00, 2018-11-04 03:00, 2018-11-05 02:00",
        others: &[
            ("missing skip", "2018-11-03 03:00, 2018-11-05 02:00"),
        ],
    },
    // The fold crosses midnight: Saturday 23:30 twice.
    Row {
        number: 23, zone: "America/Sao_Paulo", expression: "30 23 * * *", is_wildcard: false,
        moments: "2018-02-17 01:30, 2018-02-18 01:30, 2018-02-19 02:30",
        others: &[
            ("repeated last", "2018-02-17 01:30, 2018-02-18 02:30, 2018-02-19 02:30"),
            ("repeated both", "2018-02-17 01:30, 2018-02-18 01:30, 02:30, 2018-02-19 02:30"),
        ],
    },
    // Midnight is missing.
    Row {
        number: 24, zone: "America/Santiago", expression: "0 0 * * *", is_wildcard: false,
        moments: "2026-09-05 04:00, 2026-09-06 04:00, 2026-09-07 03:00",
        others: &[
            ("missing skip", "2026-09-05 04:00, 2026-09-07 03:00"),
        ],
    },
    // Weekly, at the missing midnight.
    Row {
        number: 27, zone: "Africa/Cairo", expression: "0 0 * * 5", is_wildcard: false,
        moments: "2026-04-23 22:00, 2026-04-30 21:00",
        others: &[
            ("missing skip", "2026-04-30 21:00"),
        ],
    },
    Row {
        number: 31, zone: "Pacific/Apia", expression: "0 */6 * * *", is_wildcard: true,
        moments: "2011-12-30 04:00, 10:00, 16:00, 22:00",
        others: &[],
    },
    // A gap of two hours.
    Row {
        number: 32, zone: "Antarctica/Troll", expression: "30 1 * * *", is_wildcard: false,
        moments: "2026-03-28 01:30, 2026-03-29 01:00, 23:30, 2026-03-30 23:30",
        others: &[
            ("missing skip", "2026-03-28 01:30, 2026-03-29 23:30, 2026-03-30 23:30"),
        ],
    },
    Row {
        number: 34, zone: "Antarctica/Troll", expression: "0 * * * *", is_wildcard: true,
        moments: "2026-10-24 22:00, 23:00, 2026-10-25 00:00, 01:00, 02:00, 03:00",
        others: &[
            ("repeated first", "2026-10-24 22:00, 23:00, 2026-10-25 00:00, 03:00"),
            ("repeated last", "2026-10-24 22:00, 2026-10-25 01:00, 02:00, 03:00"),
        ],
    },
    // Ramadan is over: a gap.
    Row {
        number: 36, zone: "Africa/Casablanca", expression: "30 2 * * *", is_wildcard: false,
        moments: "2026-03-21 02:30, 2026-03-22 02:00, 2026-03-23 01:30",
        others: &[
            ("missing skip", "2026-03-21 02:30, 2026-03-23 01:30"),
        ],
    },
    // No DST: the standard offset changes; the gap ends at midnight.
    Row {
        number: 37, zone: "Asia/Pyongyang", expression: "45 23 * * *", is_wildcard: false,
        moments: "2018-05-03 15:15, 2018-05-04 15:00, 2018-05-05 14:45",
        others: &[
            ("missing skip", "2018-05-03 15:15, 2018-05-05 14:45"),
        ],
    },
    // Offset of 5:45, no transition.
    Row {
        number: 38, zone: "Asia/Kathmandu", expression: "0 0 * * *", is_wildcard: false,
        moments: "2026-03-07 18:15, 2026-03-08 18:15",
        others: &[],
    },
    Row {
        number: 39, zone: "Europe/London", expression: "*/15 * * * *", is_wildcard: true,
        moments: "2026-10-25 00:30, 00:45, 01:00, 01:15, 01:30, 01:45",
        others: &[
            ("repeated first", "2026-10-25 00:30, 00:45"),
            ("repeated last", "2026-10-25 01:00, 01:15, 01:30, 01:45"),
        ],
    },
];

/// A row of the calendar, with the first moments.
#[rustfmt::skip]
const CALENDAR: &[(u8, &str, &str, &str)] = &[
    // Leap day.
    (1, "Etc/UTC", "0 12 29 2 *",
        "2028-02-29 12:00, 2032-02-29 12:00, 2036-02-29 12:00"),
    // 2100 is not a leap year.
    (2, "Etc/UTC", "0 12 29 2 *",
        "2096-02-29 12:00, 2104-02-29 12:00"),
    // Months with 31 days; the offset changes in between.
    (3, "Europe/Berlin", "0 9 31 * *",
        "2026-01-31 08:00, 2026-03-31 07:00, 2026-05-31 07:00, 2026-07-31 07:00, 2026-08-31 07:00, 2026-10-31 08:00, 2026-12-31 08:00"),
    // Last day, also of December.
    (4, "Europe/Berlin", "0 0 L * *",
        "2026-10-30 23:00, 2026-11-29 23:00, 2026-12-30 23:00, 2027-01-30 23:00, 2027-02-27 23:00"),
    // Last Friday, also of December.
    (6, "America/New_York", "0 9 * * FRIL",
        "2026-10-30 13:00, 2026-11-27 14:00, 2026-12-25 14:00, 2027-01-29 14:00"),
    // First Monday.
    (7, "America/New_York", "0 9 * * MON#1",
        "2026-08-03 13:00, 2026-09-07 13:00, 2026-10-05 13:00, 2026-11-02 14:00, 2026-12-07 14:00"),
    // 1 August 2026 is a Saturday: Monday the 3rd.
    (8, "Europe/London", "0 9 1W * *",
        "2026-07-01 08:00, 2026-08-03 08:00, 2026-09-01 08:00, 2026-10-01 08:00, 2026-11-02 09:00, 2026-12-01 09:00"),
    // Both day fields: either (Vixie).
    (10, "Etc/UTC", "0 0 13 * FRI",
        "2026-02-06 00:00, 2026-02-13 00:00, 2026-02-20 00:00, 2026-02-27 00:00"),
];

/// Returns the moments of a list that names each date once.
fn listed(list: &str) -> Vec<i64> {
    let mut date = "";
    let times = list.split(", ").filter(|part| *part != "none").map(|part| {
        let time = part.rsplit(' ').next().expect("a time");
        if let Some((day, _)) = part.split_once(' ') {
            date = day;
        }
        second(&format!("{date}T{time}{}Z", if time.len() == 5 { ":00" } else { "" }))
    });
    times.collect()
}

impl Row {
    fn expected(&self, policy: Policy) -> Vec<i64> {
        let missing = match policy.missing {
            Missing::Skip => "missing skip",
            Missing::Next => "missing next",
        };
        let repeated = match policy.repeated {
            Repeated::First => "repeated first",
            Repeated::Last => "repeated last",
            Repeated::Both => "repeated both",
        };
        let other = self.others.iter().find(|(name, _)| *name == missing || *name == repeated);
        listed(other.map_or(self.moments, |(_, moments)| moments))
    }
}

/// Golden rows 01 to 39 under each of the six policies, from the first moment under any of them to the last.
#[test]
fn each_golden_row_holds() {
    for row in ROWS {
        let id = format!("golden row {:02}: `{}` in {}", row.number, row.expression, row.zone);
        let parsed = Expression::parse(row.expression).expect("it is good");
        assert_eq!(parsed.is_wildcard, row.is_wildcard, "{id}");
        let lists = row.others.iter().map(|(_, moments)| *moments).chain([row.moments]);
        let all: Vec<_> = lists.flat_map(listed).collect();
        let from = *all.iter().min().expect("there is one");
        let to = *all.iter().max().expect("there is one");
        let zone = bundled(row.zone);
        let default = Policy::of(&parsed);
        assert_eq!(moments(&parsed.fields, default, &zone, from, to), listed(row.moments), "{id}");
        for policy in POLICIES {
            let found = moments(&parsed.fields, policy, &zone, from, to);
            assert_eq!(found, row.expected(policy), "{id}, {policy:?}");
        }
    }
}

/// Golden calendar rows 01 to 10.
#[test]
fn each_golden_calendar_row_holds() {
    for (number, zone, expression, list) in CALENDAR {
        let parsed = Expression::parse(expression).expect("it is good");
        let (expected, zone) = (listed(list), bundled(zone));
        let (from, to) = (expected[0], expected[expected.len() - 1]);
        let found = moments(&parsed.fields, Policy::of(&parsed), &zone, from, to);
        assert_eq!(found, expected, "golden calendar row {number:02}: `{expression}`");
    }
}
