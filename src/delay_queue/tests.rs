//! A full queue. Its capacity is too large to be reached from outside; in the crate's own tests it
//! is smaller.

use std::time::Duration;

use super::*;
use crate::ManualClock;

const FAR: Duration = Duration::from_secs(3_600);

/// F21, M16: a full queue refuses insertions, of one element or of several together, returns the elements,
/// and is unchanged. It has room again when an element has left.
#[test]
fn a_full_queue_returns_refused_elements() {
    let clock = ManualClock::new();
    let queue = DelayQueue::with_clock(clock.clone());
    let refused = (0..).find_map(|number| queue.insert(FAR, number).err()).expect("it has an end");
    let full = queue.len();
    assert!(refused.to_string().contains("is full"), "{refused}");
    assert_eq!((refused.error(), refused.into_element()), (InsertError::Full, full));
    assert_eq!((queue.len(), queue.poll()), (full, None));

    let first = queue.peek_key().expect("it is full");
    assert_eq!(queue.remove(first), Some(0));
    let together = queue.insert_all([(FAR, 1), (FAR, 2)]).expect_err("there is room for one");
    assert_eq!((together.error(), together.into_element()), (InsertError::Full, vec![1, 2]));
    queue.insert_all([(FAR, full)]).expect("there is room for one");
    clock.advance(FAR);
    assert!(queue.drain().map(|expired| expired.element).eq(1..=full));
}
