//! The views of the delay queue, and the removal of some of its elements.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use punctual::{
    DelayQueue,
    delay_queue::{Key, Queued},
};

use crate::{
    delay_queue::support::{
        DAY, Dice, drained, element, fill, listed, queue_by_hand, until_asleep,
    },
    support::{elsewhere, ms},
};

/// DQ-019: `retain` removes unwanted elements and returns their number; if all are wanted it does
/// nothing.
#[test]
fn retain_removes_unwanted_elements() {
    for size in 0..32 {
        let (_clock, queue) = queue_by_hand();
        queue.insert_all((0..32).map(|n| (ms(n % 4), n))).expect("the queue is open");
        let keys = queue.keys();
        assert_eq!(queue.retain(|_| true), 0);
        assert_eq!(queue.keys(), keys);
        assert_eq!(queue.retain(|n| *n < size), 32 - size as usize);
        assert_eq!(queue.len(), size as usize);
        assert!(listed(&queue).into_iter().all(|n| n < size));
        assert_eq!(queue.retain(|n| *n < size), 0);
    }
}

/// DQ-020: a list has every element, in the order in which they are taken afterwards.
#[test]
fn the_list_is_in_the_order_of_taking() {
    let (clock, queue) = queue_by_hand();
    let mut dice = Dice(20);
    queue.insert_all((0..32).map(|n| (ms(dice.roll(10)), n))).expect("the queue is open");
    let list = queue.to_vec();
    assert_eq!(list.iter().map(|queued| queued.key).collect::<Vec<_>>(), queue.keys());
    assert_eq!(queue.iter().collect::<Vec<_>>(), list);
    clock.advance(ms(10));
    for queued in list {
        let expired = queue.take().expect("it is there");
        let seen = (queued.element, queued.key, queued.deadline);
        assert_eq!((expired.element, expired.key, Some(expired.deadline)), seen);
    }
    assert!(queue.is_empty());
}

/// DQ-040, DQ-052, DQ-057: all views of an empty queue are empty, however it became empty, and stay
/// so when they are called again.
#[test]
fn all_views_of_an_empty_queue_are_empty() {
    let ways: [fn(&DelayQueue<u32>); 6] = [
        |_| (),
        |queue| fill(queue, []),
        |queue| {
            fill(queue, [1]);
            assert!(queue.take().is_some());
        },
        |queue| {
            let key = queue.insert(DAY, 1).expect("the queue is open");
            assert!(queue.remove(key).is_some());
        },
        |queue| {
            fill(queue, 0..100);
            queue.clear();
        },
        DelayQueue::close,
    ];
    for empty in ways {
        let (clock, queue) = queue_by_hand();
        empty(&queue);
        assert_eq!((queue.is_empty(), queue.len(), queue.retain(|_| false)), (true, 0, 0));
        assert!(queue.peek().is_none() && queue.peek_key().is_none() && queue.poll().is_none());
        let waiter = Arc::clone(&queue);
        let polled = elsewhere(move || waiter.take_within(ms(12)).ok().flatten());
        if !queue.is_closed() {
            until_asleep(&clock, ms(12));
            clock.advance(ms(12));
        }
        assert!(polled.get().is_none());
        let mut iter = queue.iter();
        assert_eq!((iter.len(), iter.next(), iter.next(), iter.next_back()), (0, None, None, None));
        assert!(queue.to_vec().is_empty() && queue.keys().is_empty());
        assert!(queue.drain().next().is_none() && queue.remove_all().is_empty());
        assert_eq!(queue.drain_to(9, |_| Ok(())), Ok(0));
    }
}

/// DQ-042, DQ-054: a list shows the queue at one moment: later changes do not alter it, and
/// removing an element that is already gone by its listed key does no harm.
#[test]
fn a_list_shows_the_queue_at_one_time() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..3);
    let mut iter = queue.iter();
    assert_eq!(iter.next().map(|queued| queued.element), Some(0));
    queue.clear();
    fill(&queue, 3..6);
    let rest: Vec<_> = iter.collect();
    assert_eq!(rest.iter().map(|queued| queued.element).collect::<Vec<_>>(), [1, 2]);
    for queued in rest {
        assert_eq!(queue.remove(queued.key), None);
    }
    let second = queue.iter().nth(1).expect("there are three");
    assert_eq!((queue.remove(second.key), listed(&queue)), (Some(4), vec![3, 5]));
}

/// The first element of a view is the first one taken, through random insertions, resets and
/// removals, and both agree with the list.
#[test]
fn the_head_is_the_first_of_the_list() {
    let (clock, queue) = queue_by_hand();
    let (mut dice, mut keys) = (Dice(3), Vec::<Key>::new());
    for n in 0..2_000 {
        match dice.roll(6) {
            0..=2 => keys.push(queue.insert(ms(dice.roll(50)), n).expect("the queue is open")),
            3 if !keys.is_empty() => {
                let key = keys[dice.roll(keys.len() as u64) as usize];
                let was_there = queue.contains(key);
                assert_eq!(queue.reset(key, ms(dice.roll(50))), was_there);
            }
            4 if !keys.is_empty() => {
                let key = keys.swap_remove(dice.roll(keys.len() as u64) as usize);
                assert_eq!(queue.contains(key), queue.remove(key).is_some());
            }
            _ => clock.advance(ms(1)),
        }
        let (head, due) = (queue.peek(), queue.peek().and_then(|queued| queued.deadline));
        assert_eq!(queue.peek_key(), head.as_ref().map(|queued| queued.key));
        if n % 50 == 0 {
            assert_eq!(queue.iter().next(), head);
        }
        if due.is_some_and(|due| due <= clock.now()) {
            assert_eq!(element(queue.poll()), head.map(|queued| queued.element));
        } else {
            assert!(queue.poll().is_none());
        }
    }
}

/// DQ-053: a predicate that panics, at whichever element, removes nothing, and the queue can still
/// be used.
#[test]
fn a_predicate_that_panics_removes_nothing() {
    for size in 0..6 {
        for position in 0..size {
            let (_clock, queue) = queue_by_hand();
            fill(&queue, 0..size);
            let retain = AssertUnwindSafe(|| {
                queue.retain(|n| {
                    assert!(*n < position, "the predicate panics");
                    false
                })
            });
            assert!(panic::catch_unwind(retain).is_err());
            assert_eq!(listed(&queue), Vec::from_iter(0..size));
            assert_eq!(queue.retain(|n| n % 2 == 0), size / 2);
            assert_eq!(drained(&queue), Vec::from_iter((0..size).step_by(2)));
        }
    }
}

/// A predicate may use the queue: elements that are taken, removed or postponed meanwhile are
/// judged as they were listed, elements that are inserted meanwhile stay, and a concurrent taker
/// keeps its element.
#[test]
fn a_predicate_may_use_the_queue() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..6);
    let (keys, mut asked) = (queue.keys(), Vec::new());
    let removed = queue.retain(|n| {
        asked.push(*n);
        match n {
            0 => assert_eq!(element(queue.poll()), Some(0)),
            1 => assert_eq!(queue.remove(keys[2]), Some(2)),
            2 => assert!(queue.reset(keys[3], DAY)),
            3 => fill(&queue, [6]),
            _ => assert_eq!(queue.len(), 5),
        }
        n % 3 == 1
    });
    assert_eq!((asked, removed), (vec![0, 1, 2, 3, 4, 5], 2));
    assert_eq!(listed(&queue), [1, 4, 6]);
    queue.retain(|_| {
        queue.clear();
        queue.close();
        false
    });
    assert!(queue.is_empty() && queue.take().is_none());
}

/// DQ-060: the retained elements, of any number in any order, are all delivered, in order.
#[test]
fn retained_elements_are_delivered() {
    let mut dice = Dice(60);
    for size in 0..64 {
        let (clock, queue) = queue_by_hand();
        queue.insert_all((0..size).map(|n| (ms(dice.roll(9)), n))).expect("the queue is open");
        let all = queue.to_vec();
        let keep: Vec<_> = (0..size).map(|_| dice.roll(2) == 0).collect();
        let kept: Vec<_> = all.iter().filter(|queued| keep[queued.element]).cloned().collect();
        assert_eq!(queue.retain(|n| keep[*n]), size - kept.len());
        assert_eq!(queue.to_vec(), kept);
        clock.advance(ms(9));
        let expected: Vec<_> = kept.into_iter().map(|queued| queued.element).collect();
        assert_eq!(drained(&queue), expected);
    }
}

/// DQ-056: whatever happens concurrently, a view shows only inserted elements, whole, in order, and
/// none twice.
#[test]
fn views_show_only_inserted_elements_in_order() {
    let (queue, is_over) = (DelayQueue::new(), AtomicBool::new(false));
    let of = |n: u64| [n, n.wrapping_mul(31), !n];
    let check = |queued: &Queued<[u64; 3]>| assert_eq!(queued.element, of(queued.element[0]));
    thread::scope(|scope| {
        for seed in [1, 2] {
            let (queue, is_over) = (&queue, &is_over);
            scope.spawn(move || {
                let mut dice = Dice(seed);
                while !is_over.load(Ordering::SeqCst) {
                    let (delay, n) = (Duration::from_micros(dice.roll(100)), dice.roll(1_000));
                    let key = queue.insert(delay, of(n)).expect("the queue is open");
                    match dice.roll(4) {
                        0 => drop(queue.remove(key)),
                        1 => drop(queue.reset(key, delay)),
                        2 => drop(queue.retain(|element| element[0] % 2 == 0)),
                        _ => drop(queue.poll()),
                    }
                    if queue.len() > 100 {
                        queue.clear();
                    }
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < ms(50) {
            let list = queue.to_vec();
            list.iter().for_each(check);
            assert!(list.is_sorted_by(|a, b| a.key != b.key && a.deadline <= b.deadline));
            queue.peek().iter().for_each(check);
            assert!(queue.keys().into_iter().is_sorted_by(|a, b| a != b));
        }
        is_over.store(true, Ordering::SeqCst);
    });
}
