//! Keys of the delay queue: which elements they find, which keys are equal, and elements that are
//! removed or reset, also while a thread waits for them.

use std::{
    collections::HashSet,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use punctual::{DelayQueue, ManualClock, delay_queue::Key};

use crate::{
    delay_queue::support::{
        DAY, Dice, drained, element, fill, listed, queue_by_hand, until_asleep,
    },
    support::{elsewhere, ms},
};

fn assert_finds_nothing<T: PartialEq + std::fmt::Debug>(queue: &DelayQueue<T>, key: Key) {
    assert!(!queue.contains(key));
    assert_eq!(queue.deadline(key), None);
    assert!(!queue.reset(key, DAY) && !queue.reset(key, Instant::now()));
    assert_eq!(queue.remove(key), None);
}

/// DQ-017: a queue contains an element until it is taken.
#[test]
fn a_queue_contains_elements_not_yet_taken() {
    let (_clock, queue) = queue_by_hand();
    let keys = queue.insert_all((0..32).map(|n| (Duration::ZERO, n))).expect("the queue is open");
    for (n, key) in keys.into_iter().enumerate() {
        assert!(queue.contains(key));
        assert_eq!(element(queue.poll()), Some(n));
        assert!(!queue.contains(key));
    }
}

/// DQ-028: each element is removed once by its key, whether it has expired or not.
#[test]
fn an_element_is_removed_once() {
    let clock = ManualClock::starting_at(10 * DAY);
    let queue = DelayQueue::with_clock(clock.clone());
    let insert = |days: i32| {
        let deadline = clock.now() - 8 * DAY + DAY * (days + 8).unsigned_abs();
        (queue.insert(deadline, days).expect("the queue is open"), days)
    };
    let keys: Vec<_> = (-8..8).map(insert).collect();
    for (key, days) in keys {
        assert_eq!(queue.remove(key), Some(days));
        assert_finds_nothing(&queue, key);
    }
    assert!(queue.is_empty());
}

/// DQ-039: elements are removed at random positions, each once; the others remain.
#[test]
fn elements_that_are_not_removed_stay() {
    let (_clock, queue) = queue_by_hand();
    let keys = queue.insert_all((0..32).map(|n| (Duration::ZERO, n))).expect("the queue is open");
    for n in (1..32).step_by(2) {
        assert!(queue.contains(keys[n]));
        assert_eq!(queue.remove(keys[n]), Some(n));
        assert_finds_nothing(&queue, keys[n]);
        assert!(queue.contains(keys[n - 1]));
    }
    for n in (0..32).step_by(2).rev() {
        assert_eq!(queue.remove(keys[n]), Some(n));
        assert_finds_nothing(&queue, keys[n]);
        assert_finds_nothing(&queue, keys[n + 1]);
    }
    assert!(queue.is_empty());
}

/// DQ-023: the first listed element is removed by its key; the others stay.
#[test]
fn listed_elements_can_be_removed() {
    let (_clock, queue) = queue_by_hand();
    for n in [2, 1, 3] {
        queue.insert(ms(n), n).expect("the queue is open");
    }
    let first = queue.iter().next().expect("there are three");
    assert_eq!((first.element, queue.remove(first.key)), (1, Some(1)));
    assert_eq!(listed(&queue), [2, 3]);
}

/// G30, M30: a key of one queue finds nothing in another, even if both have had exactly the same
/// operations, and is not equal to the other queue's key at the same position.
#[test]
fn a_key_of_another_queue_finds_nothing() {
    let (_clock, one) = queue_by_hand();
    let (_clock, other) = queue_by_hand();
    for n in 0..100 {
        let key = one.insert(ms(n), n).expect("the queue is open");
        let twin = other.insert(ms(n), n).expect("the queue is open");
        assert_ne!(key, twin);
        assert_finds_nothing(&one, twin);
        assert_finds_nothing(&other, key);
    }
    assert_eq!((one.len(), other.len()), (100, 100));
    assert_eq!(one.peek().and_then(|queued| queued.deadline), one.deadline(one.keys()[0]));
}

/// However an element leaves the queue, its key finds nothing afterwards; in particular it does not
/// find the element that reuses the slot.
#[test]
fn a_key_of_an_element_that_is_gone_finds_nothing() {
    type Go = fn(&DelayQueue<u32>, Key);
    let ways: [Go; 8] = [
        |queue, _| assert!(queue.poll().is_some()),
        |queue, _| assert!(queue.take().is_some()),
        |queue, key| assert!(queue.remove(key).is_some()),
        |queue, _| assert_eq!(queue.drain().count(), 1),
        |queue, _| assert_eq!(queue.drain_to(1, |_| Ok(())), Ok(1)),
        |queue, _| assert_eq!(queue.retain(|_| false), 1),
        |queue, _| assert_eq!(queue.remove_all().len(), 1),
        |queue, _| queue.clear(),
    ];
    let (_clock, queue) = queue_by_hand();
    let mut gone = Vec::new();
    for (n, go) in (0..).zip(ways.into_iter().cycle().take(64)) {
        let key = queue.insert(Duration::ZERO, n).expect("the queue is open");
        gone.iter().for_each(|old| assert_finds_nothing(&queue, *old));
        go(&queue, key);
        assert_finds_nothing(&queue, key);
        gone.push(key);
    }
    assert_eq!(gone.iter().collect::<HashSet<_>>().len(), 64, "no key is used twice");
}

/// The key that an insertion returns is the one under which the element is viewed and taken.
#[test]
fn keys_are_equal_wherever_they_come_from() {
    let (_clock, queue) = queue_by_hand();
    let insert = || queue.insert(Duration::ZERO, 0).expect("the queue is open");
    let keys = [(); 6].map(|()| insert());
    let known: HashSet<_> = keys.into_iter().collect();
    assert_eq!(queue.peek_key(), Some(keys[0]));
    assert_eq!(queue.peek().map(|queued| queued.key), Some(keys[0]));
    assert_eq!(queue.keys(), keys);
    assert_eq!(queue.iter().map(|queued| queued.key).collect::<Vec<_>>(), keys);
    assert_eq!(queue.take().map(|expired| expired.key), Some(keys[0]));
    assert_eq!(queue.poll().map(|expired| expired.key), Some(keys[1]));
    assert_eq!(queue.drain().next().map(|expired| expired.key), Some(keys[2]));
    let moved = queue.drain_to(1, |expired| {
        assert_eq!(expired.key, keys[3]);
        assert!(known.contains(&expired.key));
        Ok(())
    });
    assert_eq!((moved, queue.keys()), (Ok(1), keys[4..].to_vec()));
    let removed: Vec<_> = queue.remove_all().into_iter().map(|queued| queued.key).collect();
    assert_eq!(removed, keys[4..]);
}

/// An element is reset to a later time, to an earlier one, to the past and to never, and comes out
/// at the time of the last reset.
#[test]
fn the_last_reset_decides() {
    let (clock, queue) = queue_by_hand();
    let key = queue.insert(ms(10), 1).expect("the queue is open");
    assert!(queue.reset(key, ms(20)));
    clock.advance(ms(10));
    assert!(queue.poll().is_none(), "later");
    assert!(queue.reset(key, Duration::MAX));
    assert_eq!(queue.delay(key), Some(Duration::MAX));
    clock.advance(DAY);
    assert!(queue.poll().is_none(), "never");
    assert!(queue.reset(key, ms(5)));
    assert_eq!(queue.deadline(key), Some(clock.now() + ms(5)));
    assert!(queue.poll().is_none(), "sooner, not now");
    assert!(queue.reset(key, clock.now() - ms(1)));
    let expired = queue.poll().expect("in the past");
    assert_eq!((expired.key, expired.deadline), (key, clock.now() - ms(1)));
    assert_finds_nothing(&queue, key);
}

/// An element can be inserted without a deadline, lose the one it has, and get one: `None` means
/// never.
#[test]
fn an_element_without_a_deadline_never_expires() {
    let (clock, queue) = queue_by_hand();
    let never = queue.insert(Duration::MAX, 1).expect("the queue is open");
    let soon = queue.insert(Some(clock.now() + ms(1)), 2).expect("the queue is open");
    assert_eq!((queue.delay(never), queue.deadline(never)), (Some(Duration::MAX), None));
    assert!(queue.reset(soon, Duration::MAX));
    clock.advance(DAY);
    assert!(queue.poll().is_none());
    assert!(queue.reset(never, Some(clock.now())));
    assert_eq!(queue.poll().map(|expired| expired.element), Some(1));
    assert_eq!((queue.len(), queue.delay(soon)), (1, Some(Duration::MAX)));
}

/// An expired element that is reset before it is taken has not expired.
#[test]
fn an_expired_element_can_be_put_off() {
    let (clock, queue) = queue_by_hand();
    fill(&queue, [0, 1, 2]);
    let keys = queue.keys();
    assert!(queue.reset(keys[0], ms(1)) && queue.reset(keys[1], ms(1)));
    assert_eq!(drained(&queue), [2]);
    clock.advance(ms(1));
    assert_eq!(drained(&queue), [0, 1]);
}

/// Elements with equal deadlines keep the order of their insertion, in whichever order they were
/// reset.
#[test]
fn a_reset_keeps_the_order_of_insertion() {
    let (clock, queue) = queue_by_hand();
    let insert = |n: u64| queue.insert(ms(n % 3), n).expect("the queue is open");
    let keys: Vec<_> = (0..999).map(insert).collect();
    let deadline = clock.now() + ms(7);
    let mut dice = Dice(1);
    for _ in 0..2_000 {
        assert!(queue.reset(keys[dice.roll(999) as usize], deadline + ms(dice.roll(2))));
    }
    for key in keys.iter().rev() {
        assert!(queue.reset(*key, deadline));
    }
    clock.advance(ms(7));
    assert_eq!(drained(&queue), Vec::from_iter(0..999));
}

/// An element that never expires stays, however far time advances; it can be removed and reset.
#[test]
fn an_element_that_never_expires_stays() {
    let (clock, queue) = queue_by_hand();
    let keys = [(); 3].map(|()| queue.insert(Duration::MAX, 1).expect("the queue is open"));
    clock.advance(Duration::MAX);
    assert!(queue.poll().is_none());
    assert_eq!(queue.drain().count(), 0);
    assert_eq!(queue.to_vec().into_iter().filter_map(|queued| queued.deadline).count(), 0);
    assert_eq!(queue.remove(keys[0]), Some(1));
    assert!(queue.reset(keys[1], Duration::ZERO));
    assert!(queue.poll().is_some());
    assert_eq!((queue.poll().is_none(), queue.len()), (true, 1));
}

/// DQ-041: an element that never expires is not returned by a poll, nor by a poll that waits; the
/// queue keeps it.
#[test]
fn an_element_that_never_expires_is_not_polled() {
    for count in 0..3 {
        let (clock, queue) = queue_by_hand();
        for n in 0..count {
            queue.insert(Duration::MAX, n).expect("the queue is open");
        }
        assert!(queue.poll().is_none());
        let waiter = Arc::clone(&queue);
        let polled = elsewhere(move || waiter.take_within(ms(100)).ok().flatten());
        until_asleep(&clock, ms(100));
        clock.advance(ms(100));
        assert_eq!((polled.get(), queue.len()), (None, count));
    }
}

/// When the head is reset to a nearer deadline, the waiting taker wakes at that deadline.
#[test]
fn a_waiting_taker_follows_its_head_nearer() {
    let (clock, queue) = queue_by_hand();
    let key = queue.insert(DAY, 1).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let taken = elsewhere(move || waiter.take());
    until_asleep(&clock, DAY);
    for span in [ms(10), ms(5)] {
        assert!(queue.reset(key, span));
        until_asleep(&clock, span);
    }
    clock.advance(ms(5));
    let expired = taken.get().expect("the queue is open");
    assert_eq!((expired.element, expired.key, expired.deadline), (1, key, clock.now()));
}

/// When the head is reset to a later deadline, or to never, the waiting taker does not take it
/// before.
#[test]
fn a_waiting_taker_leaves_a_head_that_is_put_off() {
    let (clock, queue) = queue_by_hand();
    let key = queue.insert(ms(10), 1).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let polled = elsewhere(move || waiter.take_within(2 * DAY).ok().flatten());
    until_asleep(&clock, ms(10));
    assert!(queue.reset(key, DAY));
    clock.advance(ms(10));
    until_asleep(&clock, DAY - ms(10));
    assert!(queue.reset(key, Duration::MAX));
    clock.advance(DAY - ms(10));
    until_asleep(&clock, DAY);
    clock.advance(DAY);
    assert_eq!(polled.get(), None);
    assert_eq!(queue.remove(key), Some(1));
}

/// When the head is removed, the taker that waited for it takes the next element.
#[test]
fn a_waiting_taker_takes_the_next_if_its_head_is_removed() {
    let (clock, queue) = queue_by_hand();
    let head = queue.insert(ms(10), 1).expect("the queue is open");
    queue.insert(ms(20), 2).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let taken = elsewhere(move || waiter.take());
    until_asleep(&clock, ms(10));
    assert_eq!(queue.remove(head), Some(1));
    clock.advance(ms(10));
    until_asleep(&clock, ms(10));
    clock.advance(ms(10));
    assert_eq!(element(taken.get()), Some(2));
}

/// Insertions from several threads at one moment: elements with equal deadlines come out in the
/// order in which each thread inserted them, and an element whose insertion ended before another's
/// began comes first.
#[test]
fn equal_deadlines_of_several_threads_keep_their_order() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 100;
    let (clock, queue) = queue_by_hand();
    let (deadline, barrier) = (clock.now() + ms(1), Barrier::new(THREADS));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (queue, barrier) = (&queue, &barrier);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    barrier.wait();
                    for n in 0..3 {
                        let element = (round, thread, n);
                        queue.insert(deadline, element).expect("the queue is open");
                    }
                }
            });
        }
    });
    clock.advance(ms(1));
    let taken = drained(&queue);
    assert_eq!(taken.len(), 3 * THREADS * ROUNDS);
    assert!(taken.is_sorted_by_key(|(round, _, _)| *round));
    for of in 0..THREADS {
        let own = taken.iter().filter(|(_, thread, _)| *thread == of);
        assert!(own.map(|(round, _, n)| (round, n)).is_sorted());
    }
}

/// DQ-059: while some listed elements are removed, all others stay in the queue, and each is
/// delivered once.
#[test]
fn removals_while_listing_lose_no_element() {
    let mut dice = Dice(7);
    for size in 0..64 {
        let (clock, queue) = queue_by_hand();
        for n in 0..size {
            queue.insert(ms(dice.roll(8)), n).expect("the queue is open");
        }
        let mut left = listed(&queue);
        for queued in &*queue {
            if dice.roll(2) == 0 {
                assert_eq!(queue.remove(queued.key), Some(queued.element));
                left.retain(|n| *n != queued.element);
            }
            assert_eq!(listed(&queue), left);
            assert_eq!(queue.peek().map(|queued| queued.element), left.first().copied());
        }
        clock.advance(ms(8));
        assert_eq!(drained(&queue), left);
    }
}
