//! A queue with a bound: what makes room, and who gets it.

use std::{
    panic::catch_unwind,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use punctual::{
    CancellationToken, DelayQueue, ManualClock,
    delay_queue::{InsertError, InsertWhenRoom, Key, Refused},
};

use super::support::{DAY, until_asleep};
use crate::support::{
    LONG,
    awaiting::{Wakes, block_on},
    elsewhere, eventually, ms,
};

/// A full queue with one element, on a clock that stands still.
fn full() -> (ManualClock, Arc<DelayQueue<u32>>, Key) {
    let clock = ManualClock::new();
    let queue = DelayQueue::bounded_with_clock(1, clock.clone());
    let key = queue.insert(Duration::ZERO, 0).unwrap();
    (clock, Arc::new(queue), key)
}

fn refused<R: std::fmt::Debug>(result: Result<R, Refused<u32>>) -> (InsertError, u32) {
    let refused = result.unwrap_err();
    (refused.error(), refused.into_element())
}

/// What makes room wakes the one that waits for it, and nothing else does.
#[test]
fn each_way_out_makes_room_and_no_other_change_does() {
    type Way = (&'static str, fn(&DelayQueue<u32>, Key), usize);
    let ways: [Way; 12] = [
        ("poll", |queue, _| assert!(queue.poll().is_some()), 1),
        ("take", |queue, _| assert!(queue.take().is_some()), 1),
        ("next", |queue, _| assert!(block_on(queue.next()).is_some()), 1),
        ("take_within", |queue, _| assert!(queue.take_within(DAY).unwrap().is_some()), 1),
        ("retain", |queue, _| assert_eq!(queue.retain(|_| false), 1), 1),
        ("remove", |queue, key| _ = queue.remove(key), 1),
        ("drain", |queue, _| queue.drain().for_each(drop), 1),
        ("remove_all", |queue, _| assert_eq!(queue.remove_all().len(), 1), 1),
        ("clear", |queue, _| queue.clear(), 1),
        ("drain_to", |queue, _| assert_eq!(queue.drain_to(9, |_| Ok(())), Ok(1)), 1),
        (
            "a sink that refuses",
            |queue, _| assert!(queue.drain_to(9, |it| Err(it.element)).is_err()),
            1,
        ),
        ("reset", |queue, key| assert!(queue.reset(key, ms(1))), 0),
    ];
    for (name, way, room) in ways {
        let (_clock, queue, key) = full();
        assert_eq!(queue.remaining_capacity(), 0);
        assert_eq!(refused(queue.insert(ms(1), 1)), (InsertError::Full, 1));
        let (mut waiting, wakes) = (queue.insert_when_room(ms(1), 3), Wakes::new());
        assert!(poll(&mut waiting, &wakes).is_pending());
        way(&queue, key);
        assert_eq!((queue.remaining_capacity(), wakes.count()), (room, room), "{name}");
        assert_eq!(queue.insert(ms(1), 2).is_ok(), room > 0, "{name}");
    }
}

/// Several elements are inserted together, or none.
#[test]
fn several_elements_need_room_for_all() {
    let queue = DelayQueue::bounded(3);
    queue.insert_all([(ms(1), 1), (ms(1), 2)]).unwrap();
    assert!(queue.insert_all([(ms(1), 3), (ms(1), 4)]).is_err());
    assert_eq!(queue.len(), 2);
    queue.insert_all([(ms(1), 3)]).unwrap();
    assert_eq!(queue.remaining_capacity(), 0);
}

#[test]
fn no_room_at_all_is_refused() {
    assert!(catch_unwind(|| DelayQueue::<u32>::bounded(0)).is_err());
}

/// A thread waits as long as its limit lets it, on the queue's clock, and has its element back.
#[test]
fn a_thread_waits_until_there_is_room_or_its_time_is_up() {
    let (clock, queue, key) = full();
    let waits = |limit| {
        let queue = Arc::clone(&queue);
        elsewhere(move || queue.insert_within(DAY, 1, limit))
    };
    let in_vain = waits(ms(5));
    until_asleep(&clock, ms(5));
    clock.advance(ms(5));
    assert_eq!(refused(in_vain.get()), (InsertError::Full, 1));
    let lucky = waits(ms(5));
    until_asleep(&clock, ms(5));
    clock.advance(ms(1));
    assert_eq!(queue.remove(key), Some(0));
    let inserted = lucky.get().unwrap();
    assert_eq!(queue.delay(inserted), Some(DAY - ms(1)), "counted from the call");
    assert_eq!(refused(queue.insert_within(DAY, 2, Duration::ZERO)), (InsertError::Full, 2));
    queue.remove(inserted);
    assert!(
        queue.insert_within(DAY, 2, Duration::ZERO).is_ok(),
        "a limit that is over is none where there is room"
    );
}

#[test]
fn a_clock_goes_on_by_itself_for_a_thread_that_waits_for_room() {
    let (clock, queue, _) = full();
    clock.set_auto_advance(true);
    assert!(queue.insert_within(DAY, 1, ms(5)).is_err());
    assert_eq!(clock.elapsed(), ms(5));
}

#[test]
fn a_token_and_a_close_end_a_wait() {
    let (_clock, queue, _) = full();
    let token = CancellationToken::new();
    let (waiting, limit) = (Arc::clone(&queue), token.clone());
    let call = elsewhere(move || waiting.insert_within(DAY, 1, limit));
    token.cancel();
    assert_eq!(refused(call.get()), (InsertError::Full, 1));
    let waiting = Arc::clone(&queue);
    let blocked = elsewhere(move || waiting.insert_within(DAY, 2, Duration::MAX));
    let (mut awaited, wakes) = (queue.insert_when_room(DAY, 3), Wakes::new());
    assert!(poll(&mut awaited, &wakes).is_pending());
    queue.close();
    assert_eq!(refused(blocked.get()), (InsertError::Closed, 2));
    assert_eq!(wakes.count(), 1);
    let Poll::Ready(answer) = poll(&mut awaited, &wakes) else { panic!("it is closed") };
    assert_eq!(refused(answer), (InsertError::Closed, 3));
    assert_eq!(queue.poll().map(|expired| expired.element), Some(0), "it was inside");
}

fn poll(
    insertion: &mut InsertWhenRoom<'_, u32>,
    wakes: &Arc<Wakes>,
) -> Poll<Result<Key, Refused<u32>>> {
    let waker = Waker::from(Arc::clone(wakes));
    Pin::new(insertion).poll(&mut Context::from_waker(&waker))
}

/// Room wakes one, in the order in which they came; one that leaves hands it to the next, and one that was overtaken keeps
/// its place.
#[test]
fn room_is_for_the_first_that_waits() {
    let (_clock, queue, key) = full();
    let mut waiting: Vec<_> =
        (1..=4).map(|n| (queue.insert_when_room(DAY, n), Wakes::new())).collect();
    let woken = |waiting: &[(InsertWhenRoom<'_, u32>, Arc<Wakes>)]| {
        waiting.iter().map(|(_, wakes)| wakes.count()).collect::<Vec<_>>()
    };
    for (insertion, wakes) in &mut waiting {
        assert!(poll(insertion, wakes).is_pending());
    }
    queue.remove(key);
    assert_eq!(woken(&waiting), [1, 0, 0, 0]);
    drop(waiting.remove(0)); // its element is dropped, and the room is the second's
    assert_eq!(woken(&waiting), [1, 0, 0]);
    let faster = queue.insert(DAY, 9).unwrap();
    let (second, wakes) = &mut waiting[0];
    assert!(poll(second, wakes).is_pending(), "another was faster");
    queue.remove(faster);
    assert_eq!(woken(&waiting), [2, 0, 0], "it has its place back");
    drop(waiting.pop()); // was not woken, so wakes nobody
    let (second, wakes) = &mut waiting[0];
    assert!(matches!(poll(second, wakes), Poll::Ready(Ok(_))));
    assert_eq!(woken(&waiting), [2, 0]);
    queue.clear();
    assert_eq!(woken(&waiting), [2, 1]);
}

/// Producers and consumers of both kinds: the bound holds, and each element arrives once.
#[test]
fn a_bound_holds_whoever_comes() {
    const EACH: usize = 100;
    const PRODUCERS: usize = 4;
    let queue = Arc::new(DelayQueue::bounded(3));
    let (most, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let queue = &queue;
                scope.spawn(move || {
                    for n in 0..EACH {
                        let element = producer * EACH + n;
                        let inserted = if producer % 2 == 0 {
                            queue.insert_within(Duration::ZERO, element, LONG)
                        } else {
                            block_on(queue.insert_when_room(Duration::ZERO, element))
                        };
                        inserted.expect("there is room in time");
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(expired) = queue.take() {
                    most.fetch_max(queue.len(), Ordering::SeqCst);
                    sum.fetch_add(expired.element, Ordering::SeqCst);
                }
            });
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        queue.close();
    });
    let all = PRODUCERS * EACH;
    assert_eq!(sum.into_inner(), all * (all - 1) / 2);
    assert!(most.into_inner() <= 3);
    eventually("nothing is left", || queue.is_empty());
}
