//! These tests bring their own zone data, because a machine's may be of any year.

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};

use super::{Missing, Policy, Repeated, fields::Fields, first_from};

mod against_brute_force;
mod dialect;
mod golden;
mod interface;

const POLICIES: [Policy; 6] = [
    Policy { missing: Missing::Skip, repeated: Repeated::First },
    Policy { missing: Missing::Skip, repeated: Repeated::Last },
    Policy { missing: Missing::Skip, repeated: Repeated::Both },
    Policy { missing: Missing::Next, repeated: Repeated::First },
    Policy { missing: Missing::Next, repeated: Repeated::Last },
    Policy { missing: Missing::Next, repeated: Repeated::Both },
];

fn bundled(zone: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(zone).expect("a zone of the bundled data")
}

/// Returns the moments from `from` to `to`, both included.
fn moments(fields: &Fields, policy: Policy, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
    let next = |from| {
        let found = first_from(fields, policy, zone, from);
        assert!(found.is_none_or(|found| found >= from), "{found:?} is not from {from} on");
        found
    };
    let all = std::iter::successors(next(from), |last| next(last + 1));
    all.take_while(|moment| *moment <= to).collect()
}

fn second(text: &str) -> i64 {
    text.parse::<Timestamp>().expect("a moment").as_second()
}

/// Random numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
