//! The lanes alone.

use super::*;

impl Lanes {
    /// Asserts what the module says about its fields.
    pub(in super::super) fn check(&self) {
        let firsts = self.runs.iter().map(SortedRun::first);
        assert_eq!(self.first, firsts.min().unwrap_or(VACANT));
        assert_eq!(self.len, self.runs.iter().map(SortedRun::len).sum::<usize>());
        assert_eq!(self.len == 0, self.runs.is_empty());
    }
}

const fn at(nanos: u64, sequence: u64) -> u128 {
    (nanos as u128) << 64 | sequence as u128
}

/// Offers an entry, and returns `true` if there was a lane for it, with the entry that made way.
fn offer(lanes: &mut Lanes, key: u128) -> (bool, Option<u128>) {
    let mut displaced = None;
    let position = lanes.position_for(key, |entry| displaced = Some(entry.0));
    if let Some(position) = position {
        lanes.push(key, key as u32);
        assert_eq!(lanes.key(position), key);
    }
    lanes.check();
    (position.is_some(), displaced)
}

/// Returns lanes for which an entry that is due at this moment belongs to a burst.
fn after(nanos: u64) -> Lanes {
    Lanes { latest: nanos, ..Lanes::new() }
}

#[test]
fn a_burst_leaves_by_deadline_and_then_by_submission() {
    let mut lanes = after(1_000);
    let keys: Vec<_> = (0..500).map(|n| at(1_000 + n * n % 4, n)).collect();
    assert!(keys.iter().all(|key| offer(&mut lanes, *key) == (true, None)));
    let mut sorted = keys;
    sorted.sort_unstable();
    for key in sorted {
        assert_eq!(lanes.first, key);
        assert_eq!(lanes.pop(), Some((key, key as u32)));
        lanes.check();
    }
    assert_eq!((lanes.pop(), lanes.first), (None, VACANT));
}

#[test]
fn what_is_far_from_the_one_before_is_in_no_lane() {
    let mut lanes = Lanes::new();
    for nanos in [1_000, 2_000, 1_000, 50] {
        assert_eq!(offer(&mut lanes, at(nanos, nanos)), (false, None));
    }
}

/// An outlier closes no lane to the others: it makes way if it came first, and has no lane if it came later.
#[test]
fn a_lane_has_one_deadline() {
    let mut lanes = after(1_000);
    let (outlier, usual) = (1_000 + u64::from(LANES), 1_000);
    lanes.latest = outlier;
    assert_eq!(offer(&mut lanes, at(outlier, 1)), (true, None));
    lanes.latest = usual;
    assert_eq!(offer(&mut lanes, at(usual, 2)), (true, Some(at(outlier, 1))));
    lanes.latest = usual;
    assert_eq!(offer(&mut lanes, at(usual, 3)), (true, None));
    lanes.latest = outlier;
    assert_eq!(offer(&mut lanes, at(outlier, 4)), (false, None));
    assert_eq!(lanes.len, 2);
}

/// Removed entries leave holes, but not too many, and the last one leaves nothing.
#[test]
fn removals_leave_few_holes() {
    let mut lanes = after(1_000);
    let positions: Vec<_> = (0..1_000_u64)
        .map(|n| {
            let position = lanes.position_for(at(1_000, n), |_| panic!("none is alone"));
            lanes.push(at(1_000, n), n as u32);
            position.unwrap()
        })
        .collect();
    let mut displaced = Vec::new();
    for (n, position) in positions.iter().enumerate().filter(|(n, _)| n % 3 > 0) {
        if lanes.key(*position) == at(1_000, n as u64) {
            lanes.remove(*position, |entry| displaced.push(entry.0));
            lanes.check();
        }
    }
    let run = &lanes.runs[lane_of(at(1_000, 0))];
    assert!(run.holes() <= run.len() + sorted_run::TOLERANCE);
    assert!(!displaced.is_empty());
    let all: Vec<_> =
        std::iter::from_fn(|| lanes.pop()).map(|(key, _)| key).chain(displaced).collect();
    assert!((0..1_000).step_by(3).all(|n| all.contains(&at(1_000, n))));
    lanes.check();
}

/// When the first of all is removed or makes way, the next of its lane or of another lane becomes the first; other
/// removals change nothing.
#[test]
fn the_first_is_known_after_each_removal() {
    let mut lanes = after(1_000);
    let keys = [at(1_000, 1), at(1_000, 2), at(1_001, 3), at(1_001, 4), at(1_002, 5)];
    let positions = keys.map(|key| {
        let position = lanes.position_for(key, |_| panic!("none is alone"));
        lanes.push(key, key as u32);
        position.unwrap()
    });
    // One that is not the first, the first of two, the only one of its lane, another that is not the first, the last.
    for (removed, first) in [(3, 0), (0, 1), (1, 2), (4, 2), (2, 5)] {
        lanes.remove(positions[removed], |_| panic!("there are few holes"));
        lanes.check();
        assert_eq!(lanes.first, keys.get(first).copied().unwrap_or(VACANT));
    }
}
