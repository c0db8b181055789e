//! The sorted run alone.

use super::*;

fn push(run: &mut SortedRun, key: u128, slot: u32) -> u32 {
    let position = run.next();
    run.push(key, slot);
    position
}

/// M84, M88, M90.
#[test]
fn what_goes_in_first_comes_out_first() {
    let mut run = SortedRun::numbered(0);
    for round in 0..3_u128 {
        let count = 3 * CHUNK as u32 + 5;
        for n in 0..count {
            let key = round << 32 | u128::from(n + 2);
            assert!(run.admits(key));
            let position = push(&mut run, key, n);
            assert_eq!(number(position), Some(0));
            assert_eq!(run.key(position), key);
        }
        assert!(!run.admits(1));
        for n in 0..count {
            assert_eq!(run.pop().map(|(_, slot)| slot), Some(n));
        }
        assert_eq!((run.len(), run.holes(), run.chunks.len()), (0, 0, 1));
        assert!(run.admits(0), "an empty run is open to all");
    }
}

/// M89: 17 million places later the numbers begin again.
#[test]
fn positions_go_round() {
    let mut run = SortedRun { base: PLACE - 1, ..SortedRun::numbered(0) };
    let count = 4 * CHUNK;
    let positions: Vec<_> = (0..count).map(|n| push(&mut run, n as u128, n as u32)).collect();
    for (n, position) in positions.iter().enumerate() {
        assert_eq!(number(*position), Some(0));
        assert_eq!(run.key(*position), n as u128);
    }
    for (n, position) in positions.into_iter().enumerate() {
        assert_eq!(run.key(position), n as u128);
        assert_eq!(run.pop(), Some((n as u128, n as u32)));
        assert_eq!(run.key(position), HOLE);
    }
}

/// M86, M87.
#[test]
fn holes_at_the_ends_are_taken_away() {
    let mut run = SortedRun::numbered(0);
    let count = 4 * CHUNK;
    let positions: Vec<_> = (0..count).map(|n| push(&mut run, n as u128, n as u32)).collect();
    for (n, position) in positions.iter().enumerate().skip(1).take(count - 2) {
        assert_eq!(run.key(*position), n as u128);
        run.remove(*position);
        assert_eq!(run.key(*position), HOLE);
    }
    assert_eq!((run.len(), run.holes()), (2, count - 2));
    assert_eq!(run.second(), HOLE, "that is further than a glance");
    run.remove(positions[count - 1]);
    assert_eq!(run.key(positions[count - 1]), HOLE);
    assert_eq!((run.len(), run.holes()), (1, 0));
    assert!(run.chunks.len() <= 2);
    assert!(run.admits(1), "it ends with the first now");
    assert_eq!(push(&mut run, 9, 7) & !IN_RUN, 1);
    assert_eq!(run.second(), 9);
    assert_eq!(run.pop(), Some((0, 0)));
    assert_eq!(run.pop(), Some((9, 7)));
    assert_eq!(run.pop(), None);
}
