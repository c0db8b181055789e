//! Drains the delay queue into sinks that accept everything, are full, panic, or use the queue.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use punctual::{DelayQueue, delay_queue::Expired};

use crate::{
    delay_queue::support::{DAY, drained, element, fill, listed, queue_by_hand},
    support::{elsewhere, ms},
};

/// DQ-033: draining moves all expired elements in order, and the later ones the next time.
#[test]
fn draining_moves_expired_elements() {
    let (clock, queue) = queue_by_hand();
    for n in (0..32).rev() {
        queue.insert(ms(n), n).expect("the queue is open");
    }
    queue.insert(DAY, 99).expect("the queue is open");
    clock.advance(ms(32));
    let mut moved = Vec::new();
    let mut sink = |expired: Expired<u64>| {
        assert!(!queue.contains(expired.key));
        moved.push(expired.element);
        Ok(())
    };
    assert_eq!(queue.drain_to(usize::MAX, &mut sink), Ok(32));
    assert_eq!(queue.drain_to(usize::MAX, &mut sink), Ok(0));
    fill(&queue, [32, 33]);
    assert_eq!(queue.drain_to(usize::MAX, &mut sink), Ok(2));
    assert_eq!(moved, Vec::from_iter(0..34));
    assert_eq!(listed(&queue), [99]);
}

/// DQ-034: draining while another thread inserts moves what was in the queue, and loses nothing.
#[test]
fn draining_races_insertions() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..32);
    let (putter, start) = (Arc::clone(&queue), Arc::new(Barrier::new(2)));
    let go = Arc::clone(&start);
    let put = elsewhere(move || {
        go.wait();
        fill(&putter, 32..64);
    });
    start.wait();
    let mut moved = Vec::new();
    let count = queue.drain_to(usize::MAX, |expired| {
        moved.push(expired.element);
        Ok(())
    });
    put.get();
    assert!(count.is_ok_and(|count| count >= 32));
    moved.append(&mut drained(&queue));
    assert_eq!(moved, Vec::from_iter(0..64));
}

/// DQ-035: draining moves at most the given number of elements, and leaves the rest; a limit of
/// zero moves none.
#[test]
fn draining_has_a_limit() {
    for limit in 0..34 {
        let (_clock, queue) = queue_by_hand();
        fill(&queue, 0..32);
        let mut moved = Vec::new();
        let count = queue.drain_to(limit, |expired| {
            moved.push(expired.element);
            Ok(())
        });
        assert_eq!(count, Ok(limit.min(32)));
        let count = moved.len();
        assert_eq!(moved, Vec::from_iter(0..limit.min(32)));
        assert_eq!(queue.drain().take(3).count(), 3.min(32 - count));
        assert_eq!(queue.len(), 32 - count - 3.min(32 - count));
    }
}

/// DQ-043, G31: a sink that refuses an element, at whichever position, gets no more; the refused element
/// is handed back, and everything else stays in its place.
#[test]
fn a_refused_element_is_handed_back() {
    for room in 0..11 {
        let (_clock, queue) = queue_by_hand();
        fill(&queue, 0..10);
        queue.insert(DAY, 10).expect("the queue is open");
        let (keys, mut sink) = (queue.keys(), Vec::new());
        let moved = queue.drain_to(usize::MAX, |expired| {
            if sink.len() == room {
                return Err(expired.element);
            }
            sink.push(expired.element);
            Ok(())
        });
        let is_refused = room < 10;
        assert_eq!(moved, if is_refused { Err(room) } else { Ok(10) });
        assert_eq!(sink, Vec::from_iter(0..room.min(10)));
        assert_eq!(queue.keys(), keys[sink.len() + usize::from(is_refused)..]);
    }
}

/// DQ-043: if a sink panics, the element that it held is lost, and nothing else; the queue can
/// still be used.
#[test]
fn a_sink_that_panics_loses_the_element_it_has() {
    for position in 0..10 {
        let (_clock, queue) = queue_by_hand();
        fill(&queue, 0..10);
        let (keys, mut sink) = (queue.keys(), Vec::new());
        let drain = AssertUnwindSafe(|| {
            queue.drain_to(usize::MAX, |expired| {
                assert!(sink.len() < position, "the sink panics");
                sink.push(expired.element);
                Ok(())
            })
        });
        assert!(panic::catch_unwind(drain).is_err());
        assert_eq!(sink, Vec::from_iter(0..position));
        assert_eq!(queue.keys(), keys[position + 1..]);
        assert_eq!(queue.remove(keys[position]), None);
        fill(&queue, [10]);
        assert_eq!(drained(&queue), Vec::from_iter(position + 1..11));
    }
}

/// A sink may use the queue. The element that it holds is visible to no other thread; elements that it
/// inserts, resets and removes are changed at once.
#[test]
fn a_sink_may_use_the_queue() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..6);
    let (keys, mut moved) = (queue.keys(), Vec::new());
    let count = queue.drain_to(usize::MAX, |expired| {
        let key = expired.key;
        assert!(!queue.contains(key) && !queue.reset(key, DAY) && queue.remove(key).is_none());
        assert!(!listed(&queue).contains(&expired.element));
        match expired.element {
            0 => assert_eq!(queue.remove(keys[1]), Some(1)),
            2 => assert!(queue.reset(keys[3], DAY)),
            4 => assert_eq!(element(queue.poll()), Some(5)),
            _ => unreachable!("it is gone"),
        }
        queue.insert(DAY, expired.element + 10).expect("the queue is open");
        moved.push(expired.element);
        Ok(())
    });
    assert_eq!((count, moved), (Ok(3), vec![0, 2, 4]));
    assert_eq!(listed(&queue), [3, 10, 12, 14]);
}

/// A sink that clears the queue, or takes everything out, gets nothing more; the element that it
/// holds is its own.
#[test]
fn a_sink_may_empty_the_queue() {
    let ways: [fn(&DelayQueue<u32>) -> usize; 4] = [
        |queue| {
            queue.clear();
            9
        },
        |queue| queue.remove_all().len(),
        |queue| queue.retain(|_| false),
        |queue| queue.drain().count() + usize::from(queue.remove(queue.keys()[0]).is_some()),
    ];
    for empty in ways {
        let (_clock, queue) = queue_by_hand();
        fill(&queue, 0..9);
        queue.insert(DAY, 9).expect("the queue is open");
        let moved = queue.drain_to(usize::MAX, |expired| {
            assert_eq!((expired.element, empty(&queue), queue.len()), (0, 9, 0));
            Ok(())
        });
        assert_eq!((moved, queue.is_empty()), (Ok(1), true));
    }
}

/// A sink that closes the queue still gets the remaining elements; one that it refuses then is
/// handed back.
#[test]
fn a_sink_may_close_the_queue() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..4);
    let moved = queue.drain_to(usize::MAX, |expired| {
        queue.close();
        if expired.element == 2 { Err(2) } else { Ok(()) }
    });
    assert_eq!((moved, queue.is_closed()), (Err(2), true));
    assert_eq!((element(queue.take()), queue.take()), (Some(3), None));
}

/// In a drain inside another drain, each sink holds an element.
#[test]
fn drainings_may_be_nested() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..4);
    let moved = queue.drain_to(usize::MAX, |outer| {
        let moved = queue.drain_to(usize::MAX, |inner| {
            assert_eq!((outer.element, inner.element, listed(&queue)), (0, 1, vec![2, 3]));
            Err(inner.element)
        });
        assert_eq!((moved, listed(&queue)), (Err(1), vec![2, 3]));
        Err(outer.element)
    });
    assert_eq!((moved, drained(&queue)), (Err(0), vec![2, 3]));
}

/// Elements that expire after a drain has begun stay in the queue, with either way of draining.
#[test]
fn elements_that_expire_meanwhile_are_not_drained() {
    let (clock, queue) = queue_by_hand();
    fill(&queue, 0..2);
    queue.insert(ms(1), 2).expect("the queue is open");
    let mut moved = Vec::new();
    let count = queue.drain_to(usize::MAX, |expired| {
        clock.advance(ms(1));
        queue.insert(Duration::ZERO, 3 + expired.element).expect("the queue is open");
        moved.push(expired.element);
        Ok(())
    });
    assert_eq!((count, moved, listed(&queue)), (Ok(2), vec![0, 1], vec![2, 3, 4]));
    let mut draining = queue.drain();
    assert_eq!(element(draining.next()), Some(2));
    queue.insert(ms(1), 5).expect("the queue is open");
    clock.advance(ms(1));
    fill(&queue, [6]);
    assert_eq!(draining.map(|expired| expired.element).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(drained(&queue), [5, 6]);
}

/// Elements inserted during a drain, ahead of the remaining ones, are drained as well, up to the
/// limit.
#[test]
fn elements_inserted_as_expired_are_drained() {
    let (clock, queue) = queue_by_hand();
    clock.advance(ms(1));
    fill(&queue, 0..3);
    let mut moved = Vec::new();
    let sink = |expired: Expired<u32>| {
        queue.insert(clock.now() - ms(1), expired.element + 10).expect("the queue is open");
        moved.push(expired.element);
        Ok(())
    };
    assert_eq!(queue.drain_to(3, sink), Ok(3));
    assert_eq!((moved, listed(&queue)), (vec![0, 10, 20], vec![30, 1, 2]));
}

/// Elements beyond what a drain was asked for stay; a drain that is dropped half-way, also by a
/// panic, has taken the elements that it returned.
#[test]
fn a_drain_that_is_given_up_leaves_the_rest() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, 0..10);
    assert_eq!(queue.drain().take(3).map(|expired| expired.element).sum::<i32>(), 3);
    assert_eq!(queue.drain().take(0).count(), 0);
    let consume = AssertUnwindSafe(|| {
        queue.drain().for_each(|expired| assert!(expired.element < 5, "the consumer panics"));
    });
    assert!(panic::catch_unwind(consume).is_err());
    assert_eq!(drained(&queue), [6, 7, 8, 9]);
}

/// Several threads drain concurrently into sinks that are often full, while others insert: each
/// element is moved once, and none is left.
#[test]
fn drainings_at_once_move_each_element_once() {
    const EACH: usize = 500;
    let (queue, moved) = (DelayQueue::new(), AtomicUsize::new(0));
    let seen: Vec<_> = (0..2 * EACH).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for inserter in 0..2 {
            let queue = &queue;
            scope.spawn(move || fill(queue, EACH * inserter..EACH * (inserter + 1)));
        }
        for _ in 0..3 {
            scope.spawn(|| {
                let mut asked = 0_usize;
                while moved.load(Ordering::SeqCst) < 2 * EACH {
                    let drained = queue.drain_to(7, |expired| {
                        asked += 1;
                        if asked % 3 == 0 {
                            return Err(expired.element);
                        }
                        seen[expired.element].fetch_add(1, Ordering::SeqCst);
                        moved.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    });
                    drained.err().into_iter().for_each(|refused| fill(&queue, [refused]));
                    thread::yield_now();
                }
            });
        }
    });
    assert!(queue.is_empty());
    assert!(seen.iter().all(|count| count.load(Ordering::SeqCst) == 1));
}
