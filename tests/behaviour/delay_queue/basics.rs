//! The delay queue on one thread: insertion, removal and their order, bulk insertion, and closing.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{
    DelayQueue, Delayed, LimitReached, ManualClock,
    delay_queue::{InsertError, Queued},
};

use crate::{
    delay_queue::support::{DAY, drained, element, fill, listed, queue_by_hand},
    support::{LONG, in_time, ms},
};

/// An element with a deadline of its own.
#[derive(Debug, PartialEq, Eq)]
struct Letter(u32, Option<Instant>);

impl Delayed for Letter {
    fn deadline(&self) -> Option<Instant> {
        self.1
    }
}

fn letters(deadlines: impl IntoIterator<Item = Option<Instant>>) -> Vec<Letter> {
    (0..).zip(deadlines).map(|(number, deadline)| Letter(number, deadline)).collect()
}

/// DQ-001: there is always room, and the queue counts its elements.
#[test]
fn a_queue_has_room_for_ever_and_counts() {
    let (_clock, queue) = queue_by_hand();
    for _ in 0..2 {
        for n in 0..32 {
            assert_eq!((queue.len(), queue.remaining_capacity()), (n, usize::MAX));
            fill(&queue, [n]);
        }
        for n in (0..32).rev() {
            assert!(queue.poll().is_some());
            assert_eq!((queue.len(), queue.remaining_capacity()), (n, usize::MAX));
        }
    }
}

/// DQ-002: a queue made by `collect` returns its elements in order, with every kind of deadline.
#[test]
fn collected_elements_come_out_in_order() {
    let past = Instant::now();
    let delays: DelayQueue<u32> = (0..32).map(|n| (Duration::ZERO, n)).collect();
    let moments: DelayQueue<u32> = (0..32).map(|n| (past, n)).collect();
    let mixed: DelayQueue<u32> = (0..64).map(|n| ((n % 2 == 0).then_some(past), n)).collect();
    let own: DelayQueue<Letter> =
        letters([Some(past); 32]).into_iter().map(|one| (one.1, one)).collect();
    assert_eq!(drained(&delays), Vec::from_iter(0..32));
    assert_eq!(drained(&moments), Vec::from_iter(0..32));
    assert_eq!(drained(&mixed), Vec::from_iter((0..64).step_by(2)));
    assert_eq!(drained(&own), letters([Some(past); 32]));
    assert_eq!((mixed.len(), own.len()), (32, 0), "what has no deadline stays");
}

/// DQ-004: a queue is empty before the first insertion, not after it, and empty again when all
/// elements are removed.
#[test]
fn a_queue_is_empty_until_something_is_in_it() {
    let queue = DelayQueue::default();
    assert!(queue.is_empty());
    let first = queue.insert(DAY, 1).expect("the queue is open");
    assert!(!queue.is_empty());
    fill(&queue, [2]);
    assert_eq!((queue.remove(first), queue.is_empty()), (Some(1), false));
    assert_eq!((element(queue.poll()), queue.is_empty()), (Some(2), true));
}

/// DQ-005: every method of insertion succeeds, increases the length, and makes the queue contain
/// the element.
#[test]
fn every_insertion_counts_up() {
    let (clock, queue) = queue_by_hand();
    for n in 0..32 {
        let key = match n % 3 {
            0 => queue.insert(ms(n), Letter(0, None)),
            1 => queue.insert(clock.now() + ms(n), Letter(0, None)),
            _ => queue.put(Letter(0, Some(clock.now() + ms(n)))),
        };
        let key = key.expect("the queue is open");
        assert_eq!(queue.len() as u64, n + 1);
        assert!(queue.contains(key));
        assert_eq!(queue.deadline(key), Some(clock.now() + ms(n)));
    }
}

/// DQ-006: an insertion does not block, whether or not a thread takes.
#[test]
fn an_insertion_does_not_block() {
    let queue = Arc::new(DelayQueue::new());
    let filled = Arc::clone(&queue);
    in_time("four insertions", move || fill(&filled, 0..4));
    let taken: Vec<_> = (0..4).map(|_| element(queue.take_within(LONG).ok().flatten())).collect();
    assert_eq!(taken, [Some(0), Some(1), Some(2), Some(3)]);
}

/// DQ-007, DQ-037: a queue's own elements can be inserted into it again, in bulk or one by one: the
/// elements that it yields are collected before any is admitted.
#[test]
fn a_queue_can_be_filled_from_itself() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..3);
    let again = queue.drain().map(|expired| (DAY, expired.element));
    assert_eq!(queue.insert_all(again).expect("the queue is open").len(), 3);
    assert!(drained(&queue).is_empty());
    assert_eq!(listed(&queue), [0, 1, 2]);
    fill(&queue, 3..6);
    let moved = queue.drain_to(usize::MAX, |expired| {
        queue.insert(DAY, expired.element).expect("the queue is open");
        Ok(())
    });
    assert_eq!((moved, listed(&queue)), (Ok(3), Vec::from_iter(0..6)));
}

/// DQ-008: extending by nothing changes nothing; elements that a queue is extended by come out in
/// order.
#[test]
fn a_queue_can_be_extended() {
    let mut queue = DelayQueue::with_clock(ManualClock::new());
    queue.extend([(Duration::ZERO, 0); 0]);
    assert!(queue.is_empty());
    queue.extend((0..32).map(|n| (Duration::ZERO, n)));
    assert_eq!(drained(&queue), Vec::from_iter(0..32));
}

/// DQ-011: polls return the elements one by one in order, and then `None`.
#[test]
fn a_poll_takes_an_expired_element() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..32);
    for n in 0..32 {
        assert_eq!(element(queue.poll()), Some(n));
    }
    assert!(queue.poll().is_none());
}

/// DQ-012: so does a poll with a time limit of zero.
#[test]
fn a_poll_without_time_is_a_poll() {
    let (clock, queue) = queue_by_hand();
    fill(&queue, 0..32);
    for n in 0..32 {
        assert_eq!(element(queue.take_within(Duration::ZERO).ok().flatten()), Some(n));
    }
    assert!(queue.take_within(Duration::ZERO).ok().flatten().is_none());
    assert_eq!(queue.take_within(clock.now()).err(), Some(LimitReached::TimedOut));
}

/// DQ-016: peeking at an empty queue is no error.
#[test]
fn an_empty_queue_has_no_head() {
    let (_clock, queue) = queue_by_hand();
    assert!(queue.peek().is_none() && queue.peek_key().is_none() && queue.poll().is_none());
    fill(&queue, [1]);
    assert_eq!(queue.peek().map(|queued| queued.element), Some(1));
    assert_eq!(element(queue.poll()), Some(1));
    assert!(queue.peek().is_none() && queue.peek_key().is_none() && queue.poll().is_none());
}

/// DQ-018: clearing removes expired and unexpired elements; the queue can be used again, and its
/// clock has no deadline left.
#[test]
fn a_cleared_queue_is_empty_and_usable() {
    let (clock, queue) = queue_by_hand();
    for _ in 0..2 {
        fill(&queue, 0..32);
        let key = queue.insert(DAY, 32).expect("the queue is open");
        queue.clear();
        assert_eq!((queue.len(), queue.peek_key()), (0, None));
        assert!(!queue.contains(key));
        queue.insert(ms(1), 33).expect("the queue is open");
        clock.advance(ms(1));
        assert_eq!(element(queue.poll()), Some(33));
    }
}

/// DQ-029: a poll takes an expired head, and never one that has not expired.
#[test]
fn a_poll_leaves_unexpired_elements() {
    let (_clock, queue) = queue_by_hand();
    let later = queue.insert(DAY, 1).expect("the queue is open");
    assert!(queue.poll().is_none());
    fill(&queue, [2]);
    assert_eq!(element(queue.poll()), Some(2));
    assert!(queue.poll().is_none());
    assert_eq!(queue.peek_key(), Some(later));
}

/// DQ-032: the head cannot be taken before it has expired; an expired element comes first.
#[test]
fn the_head_is_taken_only_when_it_has_expired() {
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(2), 2).expect("the queue is open");
    assert!(queue.poll().is_none());
    queue.insert(ms(1), 1).expect("the queue is open");
    clock.advance(ms(1) - Duration::from_nanos(1));
    assert!(queue.poll().is_none());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(element(queue.poll()), Some(1));
    assert!(queue.poll().is_none());
}

/// Insertions with mixed deadlines come out by deadline, and equal ones by insertion.
#[test]
fn equal_deadlines_come_out_as_they_went_in() {
    let (clock, queue) = queue_by_hand();
    for n in 0..5_000_u32 {
        queue.insert(ms(u64::from(n * 7 % 5)), n).expect("the queue is open");
    }
    clock.advance(ms(5));
    let taken = drained(&queue);
    let mut expected: Vec<_> = (0..5_000).collect();
    expected.sort_by_key(|n| n * 7 % 5);
    assert_eq!(taken, expected);
}

/// Elements that expired before the queue was created come out in the order of their deadlines too,
/// and keep these deadlines, on a manual clock as far back as its origin.
#[test]
fn elements_that_expired_long_ago_are_in_order() {
    let now = Instant::now();
    let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).expect("it was running");
    let late: DelayQueue<u64> =
        [2, 5, 0, 3].map(|seconds| (ago(seconds), seconds)).into_iter().collect();
    assert_eq!(late.peek().and_then(|queued| queued.deadline), Some(ago(5)));
    let taken: Vec<_> = late.drain().map(|expired| (expired.element, expired.deadline)).collect();
    assert_eq!(taken, [5, 3, 2, 0].map(|seconds| (seconds, ago(seconds))));
    let clock = ManualClock::starting_at(ms(10));
    let queue = DelayQueue::with_clock(clock.clone());
    for n in [10, 3, 5] {
        queue.insert(clock.now() - ms(n), n).expect("the queue is open");
    }
    assert_eq!(drained(&queue), [10, 5, 3]);
}

/// Elements inserted together get keys in their order, and come out after earlier insertions and
/// before later ones; their delays start at one time.
#[test]
fn bulk_insertion_keeps_the_order() {
    let (clock, queue) = queue_by_hand();
    fill(&queue, [0]);
    let keys = queue.insert_all((1..=1_000).map(|n| {
        clock.advance(ms(1));
        (ms(10), n)
    }));
    let keys = keys.expect("the queue is open");
    queue.insert(clock.now() - ms(990), 1_001).expect("the queue is open");
    let deadlines: Vec<_> = keys.iter().map(|key| queue.deadline(*key)).collect();
    assert_eq!(deadlines, [Some(clock.now() - ms(990)); 1_000]);
    assert_eq!(queue.keys()[1..=1_000], keys[..]);
    assert_eq!(drained(&queue), Vec::from_iter(0..=1_001));
}

/// A closed queue returns each refused insertion whole, gives the reason, and keeps its elements.
#[test]
fn a_closed_queue_gives_insertions_back() {
    let (clock, queue) = (ManualClock::new(), DelayQueue::with_clock(ManualClock::new()));
    queue.put(Letter(0, None)).expect("the queue is open");
    assert!(!queue.is_closed());
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    let one = || Letter(7, Some(clock.now()));
    let refusals = [queue.insert(ms(1), one()), queue.insert(clock.now(), one()), queue.put(one())];
    for refused in refusals.map(Result::unwrap_err) {
        assert_eq!(refused.error(), InsertError::Closed);
        assert_eq!(refused.into_element(), one());
    }
    let all = || letters([Some(clock.now()), None, Some(clock.now())]);
    let refused = queue.insert_all(all().into_iter().map(|letter| (ms(1), letter))).unwrap_err();
    assert_eq!(refused.error(), InsertError::Closed);
    assert_eq!(refused.into_element(), all());
    assert_eq!(queue.len(), 1);
}

/// Extending a closed queue panics, unless it is by nothing.
#[test]
fn a_closed_queue_cannot_be_extended() {
    let mut queue = DelayQueue::new();
    queue.close();
    queue.extend([(Duration::ZERO, 0); 0]);
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| queue.extend([(Duration::ZERO, 0)])));
    let payload = panicked.expect_err("it cannot give the element back");
    let text = payload.downcast_ref::<String>().expect("a text");
    assert!(text.contains("closed"), "{text}");
    assert!(queue.is_empty() && queue.poll().is_none());
}

/// An iterator that panics inserts nothing, and leaves the queue as it was.
#[test]
fn an_iterator_that_panics_inserts_nothing() {
    let mut queue = DelayQueue::with_clock(ManualClock::new());
    fill(&queue, [1]);
    let panics = || (0..10).map(|n| if n < 5 { (Duration::ZERO, n) } else { panic!("half-way") });
    let bulk = panic::catch_unwind(AssertUnwindSafe(|| queue.insert_all(panics()).is_ok()));
    assert!(bulk.is_err());
    assert!(panic::catch_unwind(AssertUnwindSafe(|| queue.extend(panics()))).is_err());
    fill(&queue, [2]);
    assert_eq!(drained(&queue), [1, 2]);
}

/// An iterator may use the queue: elements that it inserts itself come before those it yields, and
/// if it closes the queue, everything is returned to it.
#[test]
fn an_iterator_may_use_the_queue() {
    let (_clock, queue) = queue_by_hand();
    let busy = (10..13).map(|n| {
        fill(&queue, [n - 10]);
        assert_eq!(queue.len(), n - 9);
        (Duration::ZERO, n)
    });
    queue.insert_all(busy).expect("the queue is open");
    assert_eq!(drained(&queue), [0, 1, 2, 10, 11, 12]);
    let closing = (0..3).map(|n| {
        queue.close();
        (Duration::ZERO, n)
    });
    assert_eq!(queue.insert_all(closing).unwrap_err().into_element(), [0, 1, 2]);
}

/// A closed queue still allows taking, resetting, removing and draining; when it is empty it is
/// finished, for every caller.
#[test]
fn elements_of_a_closed_queue_can_still_be_taken() {
    let (clock, queue) = queue_by_hand();
    let keys: Vec<_> = (0..5).map(|n| queue.insert(ms(n), n).expect("the queue is open")).collect();
    queue.close();
    assert_eq!(element(queue.take()), Some(0));
    assert_eq!(queue.remove(keys[1]), Some(1));
    assert!(queue.reset(keys[4], Duration::ZERO));
    assert_eq!(element(queue.take()), Some(4));
    clock.advance(ms(2));
    assert_eq!(drained(&queue), [2]);
    assert!(queue.poll().is_none() && !queue.is_empty());
    clock.advance(ms(1));
    assert_eq!(queue.expirations().map(|expired| expired.element).collect::<Vec<_>>(), [3]);
    assert!(queue.take().is_none() && queue.take_within(DAY).ok().flatten().is_none());
}

/// `into_iter`, and every call that returns all elements at once, returns all of them, in order.
#[test]
fn everything_comes_out_in_order_at_once() {
    let clock = ManualClock::new();
    let queue = DelayQueue::with_clock(clock.clone());
    let delays = [ms(3), Duration::MAX, ms(1), ms(3), Duration::ZERO];
    let keys = queue.insert_all(delays.into_iter().zip(0..)).expect("the queue is open");
    let expected = [4, 2, 0, 3, 1].map(|n| {
        let after = |delay| clock.now() + delay;
        (n, keys[n], (delays[n] < Duration::MAX).then_some(delays[n]).map(after))
    });
    let shown = |one: Queued<usize>| (one.element, one.key, one.deadline);
    assert_eq!(queue.to_vec().into_iter().map(shown).collect::<Vec<_>>(), expected);
    let removed: Vec<_> = queue.remove_all().into_iter().map(shown).collect();
    assert_eq!((removed.as_slice(), queue.len()), (&expected[..], 0));
    fill(&queue, 0..3);
    assert_eq!(queue.into_iter().rev().map(|queued| queued.element).collect::<Vec<_>>(), [2, 1, 0]);
}
