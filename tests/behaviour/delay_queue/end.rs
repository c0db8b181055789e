//! The end of the delay queue: a taker waits at a closed queue as long as it has an element, and no
//! longer.

use std::{sync::Arc, time::Duration};

use punctual::{CancellationToken, DelayQueue, Limit, ManualClock, delay_queue::Key};

use crate::{
    delay_queue::support::{DAY, element, queue_by_hand, until_asleep},
    support::awaiting::block_on,
    support::{Elsewhere, elsewhere, ms},
};

type Wait = fn(&DelayQueue<u32>) -> Option<u32>;

/// All the ways to wait for an element.
const WAITS: [Wait; 7] = [
    |queue| element(queue.take()),
    |queue| element(queue.take_within(30 * DAY).ok().flatten()),
    |queue| element(queue.take_within(CancellationToken::new()).expect("not raised")),
    |queue| {
        let token = CancellationToken::new();
        element(queue.take_within(Limit::from(30 * DAY).unless(&token)).expect("not raised"))
    },
    |queue| element(queue.expirations().next()),
    |queue| element(block_on(queue.next())),
    |queue| element(block_on(queue.stream().next())),
];

/// A queue with one element and its key, and threads that wait for the element; at least one of
/// them sleeps.
fn awaited(wait: Wait, threads: usize) -> (ManualClock, Arc<DelayQueue<u32>>, Key, Vec<Waiter>) {
    let (clock, queue) = queue_by_hand();
    let key = queue.insert(DAY, 1).expect("the queue is open");
    let waiters = (0..threads).map(|_| {
        let waiter = Arc::clone(&queue);
        elsewhere(move || wait(&waiter))
    });
    let waiters = waiters.collect();
    until_asleep(&clock, DAY);
    (clock, queue, key, waiters)
}

type Waiter = Elsewhere<Option<u32>>;

/// G32: however the last element leaves a closed queue, every waiting thread learns that there are
/// no more.
#[test]
fn the_waits_end_when_the_last_element_goes() {
    type Go = fn(&DelayQueue<u32>, Key);
    let ways: [Go; 4] = [
        |queue, key| assert_eq!(queue.remove(key), Some(1)),
        |queue, _| queue.clear(),
        |queue, _| assert_eq!(queue.retain(|_| false), 1),
        |queue, _| assert_eq!(queue.remove_all().len(), 1),
    ];
    for wait in WAITS {
        for go in ways {
            let (clock, queue, key, waiters) = awaited(wait, 3);
            queue.close();
            go(&queue, key);
            for waiter in waiters {
                assert_eq!(waiter.get(), None);
            }
            assert!(clock.elapsed().is_zero());
        }
    }
}

/// Threads that wait at a closed queue still get elements that expire; taking the last one ends the
/// waits of the others.
#[test]
fn taking_the_last_element_ends_the_other_waits() {
    for wait in WAITS {
        let (clock, queue, _, waiters) = awaited(wait, 4);
        queue.insert(DAY, 2).expect("the queue is open");
        queue.close();
        clock.advance(DAY);
        let mut taken: Vec<_> = waiters.into_iter().map(Waiter::get).collect();
        taken.sort_unstable();
        assert_eq!(taken, [None, None, Some(1), Some(2)]);
        assert!(queue.is_empty());
    }
}

/// A poll or a drain that takes the last element ends the waits as well.
#[test]
fn draining_the_last_element_ends_the_waits() {
    type Drain = fn(&DelayQueue<u32>) -> usize;
    let ways: [Drain; 3] = [
        |queue| usize::from(queue.poll().is_some()),
        |queue| queue.drain().count(),
        |queue| queue.drain_to(usize::MAX, |_| Ok(())).unwrap_or(0),
    ];
    for wait in WAITS {
        for drain in ways {
            let (_clock, queue, key, waiters) = awaited(wait, 1);
            queue.close();
            // Either this thread or the waiting one gets it; the waits end in any case.
            assert!(queue.reset(key, Duration::ZERO));
            let drained = drain(&queue);
            let taken = waiters.into_iter().filter_map(Waiter::get).count();
            assert_eq!(drained + taken, 1);
        }
    }
}

/// Closing a queue twice, also while a thread waits, has the effect of closing it once.
#[test]
fn closing_twice_is_closing_once() {
    for wait in WAITS {
        let (clock, queue, _, waiters) = awaited(wait, 2);
        queue.close();
        queue.close();
        clock.advance(DAY);
        let mut taken: Vec<_> = waiters.into_iter().map(Waiter::get).collect();
        taken.sort_unstable();
        assert_eq!(taken, [None, Some(1)]);
        queue.close();
        assert!(queue.is_closed() && queue.take().is_none());
    }
}

/// A take that begins after the end does not block, and neither does any other wait.
#[test]
fn no_call_waits_after_the_end() {
    let (clock, queue) = queue_by_hand::<u32>();
    queue.close();
    for wait in WAITS {
        for _ in 0..2 {
            assert_eq!(wait(&queue), None);
        }
    }
    assert!(queue.expirations().next().is_none() && queue.drain().next().is_none());
    assert_eq!(clock.next_deadline(), None);
}

/// When a close races insertions, each element is either refused or taken, and every wait ends.
#[test]
fn a_close_that_races_insertions_loses_nothing() {
    for wait in WAITS {
        for _ in 0..30 {
            let queue = Arc::new(DelayQueue::new());
            let taker = Arc::clone(&queue);
            let taken = elsewhere(move || std::iter::from_fn(|| wait(&taker)).count());
            let inserter = Arc::clone(&queue);
            let inserted = elsewhere(move || {
                let insert = |n| inserter.insert(Duration::from_micros(n), 1).is_ok();
                (0..50).map(insert).take_while(|is_in| *is_in).count()
            });
            queue.close();
            assert_eq!(taken.get(), inserted.get());
        }
    }
}

/// A queue whose only element never expires is finished when that element is removed.
#[test]
fn an_element_that_never_expires_holds_the_end_back() {
    let (clock, queue) = queue_by_hand();
    let never = queue.insert(Duration::MAX, 1).expect("the queue is open");
    queue.close();
    let waiter = Arc::clone(&queue);
    let polled = elsewhere(move || {
        (waiter.take_within(ms(10)).ok().flatten(), waiter.take_within(DAY).ok().flatten())
    });
    until_asleep(&clock, ms(10));
    clock.advance(ms(10));
    until_asleep(&clock, DAY);
    assert_eq!(queue.remove(never), Some(1));
    assert_eq!(polled.get(), (None, None));
    assert_eq!(clock.elapsed(), ms(10));
}
