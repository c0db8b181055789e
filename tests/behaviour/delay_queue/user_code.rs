//! User code in the delay queue: elements that panic or use the queue when they are dropped, and
//! wakers that panic or use it when they are woken.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Weak},
    task::Wake,
    time::Duration,
};

use punctual::{DelayQueue, ManualClock};

use crate::{
    delay_queue::support::{DAY, OnDrop, drained, element, fill, poll, queue_by_hand},
    support::awaiting::Wakes,
    support::{Bomb, Counter, Drops, in_time, ms},
};

/// Elements that panic when they are dropped do not keep others from being dropped, nor the queue
/// from being used: neither when it is cleared nor when it is dropped.
#[test]
fn elements_that_panic_in_their_drop_are_contained() {
    let (drops, (_clock, queue)) = (Drops::new(), queue_by_hand());
    let insert = |queue: &DelayQueue<_>| {
        for n in 0..10 {
            let token = (drops.token(), (n % 3 == 0).then(|| Bomb("an element")));
            queue.insert(ms(n), token).expect("the queue is open");
        }
    };
    insert(&queue);
    queue.clear();
    assert_eq!((drops.count(), queue.len()), (10, 0));
    insert(&queue);
    assert_eq!(queue.len(), 10);
    drop(queue);
    assert_eq!(drops.count(), 20);
}

/// The same holds for elements that are not retained: all unwanted ones are dropped, and the call
/// returns their number.
#[test]
fn elements_that_panic_when_not_retained_are_contained() {
    let (drops, (_clock, queue)) = (Drops::new(), queue_by_hand());
    let bombs = (0..10).map(|n| {
        let bomb = (n % 3 == 0).then(|| Bomb("an element"));
        (ms(n), Arc::new((n, drops.token(), bomb)))
    });
    queue.insert_all(bombs).expect("the queue is open");
    assert_eq!(queue.retain(|element| element.0 > 6), 7);
    assert_eq!((drops.count(), queue.len()), (7, 3));
    assert_eq!(queue.retain(|element| element.0 != 9), 1);
    assert_eq!((drops.count(), queue.len()), (8, 2));
}

/// If a predicate panics while the elements that it was to judge are taken out and panic in their
/// drops, the call ends with the predicate's panic.
#[test]
fn a_predicate_may_panic_while_elements_do() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, (0..3).map(|_| Arc::new(Bomb("an element"))));
    let retain = AssertUnwindSafe(|| {
        queue.retain(|_| {
            queue.clear();
            panic::panic_any("the predicate");
        })
    });
    let payload = panic::catch_unwind(retain).expect_err("the predicate panics");
    assert_eq!(payload.downcast_ref(), Some(&"the predicate"));
    assert!(queue.is_empty());
}

/// The drop of an element may use the queue that drops it, and finds that a dropped queue is gone.
#[test]
fn the_drop_of_an_element_may_use_the_queue() {
    type Empty<T> = fn(&DelayQueue<T>);
    let used = Counter::new();
    let queue_of = |used: &Counter| {
        let queue = Arc::new(DelayQueue::with_clock(ManualClock::new()));
        for _ in 0..3 {
            let (weak, used) = (Arc::downgrade(&queue), used.clone());
            let element = Arc::new(OnDrop(Box::new(move || {
                let weak: &Weak<DelayQueue<_>> = &weak;
                let Some(queue) = weak.upgrade() else { return used.add() };
                let done: Arc<OnDrop<Box<dyn FnMut() + Send + Sync>>> =
                    Arc::new(OnDrop(Box::new(|| ())));
                let key = queue.insert(DAY, done).expect("the queue is open");
                assert!(queue.contains(key) && queue.reset(key, Duration::MAX));
                assert!(queue.remove(key).is_some() && queue.poll().is_none());
                queue.clear();
                used.add();
            }) as Box<dyn FnMut() + Send + Sync>));
            queue.insert(DAY, element).expect("the queue is open");
        }
        queue
    };
    let ways: [Empty<_>; 3] = [
        DelayQueue::clear,
        |queue| assert_eq!(queue.retain(|_| false), 3),
        |queue| drop(queue.remove_all()),
    ];
    let mut expected = 0;
    for empty in ways {
        let queue = queue_of(&used);
        in_time("to empty the queue", move || {
            empty(&queue);
            assert!(queue.is_empty());
        });
        expected += 3;
        assert_eq!(used.get(), expected);
    }
    drop(queue_of(&used));
    assert_eq!(used.get(), expected + 3);
}

/// The drop of a refused element may use the queue as well.
#[test]
fn the_drop_of_a_refused_element_may_use_the_queue() {
    let queue = Arc::new(DelayQueue::new());
    queue.close();
    let used = Counter::new();
    let busy = |_: i32| {
        let (queue, used) = (Arc::clone(&queue), used.clone());
        let on_drop: Box<dyn FnMut() + Send> = Box::new(move || {
            assert!(queue.is_empty() && queue.is_closed() && queue.poll().is_none());
            used.add();
        });
        OnDrop(on_drop)
    };
    drop(queue.insert(DAY, busy(0)));
    assert!(
        queue
            .insert_all((0..3).map(|n| (DAY, busy(n))))
            .map_err(|refused| refused.error())
            .is_err()
    );
    assert_eq!(used.get(), 4);
}

/// Elements that panic when `extend` drops them do not replace its own panic.
#[test]
fn elements_that_panic_when_they_cannot_be_let_in_are_contained() {
    let mut queue = DelayQueue::new();
    queue.close();
    let bombs = (0..3).map(|_| (DAY, Bomb("an element")));
    let extended = panic::catch_unwind(AssertUnwindSafe(|| queue.extend(bombs)));
    let payload = extended.expect_err("the queue is closed");
    assert!(payload.downcast_ref::<String>().is_some_and(|text| text.contains("closed")));
}

/// A waker that panics.
struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        panic::panic_any("a waker");
    }
}

/// F8: a waker that panics does not disturb the thread that inserts, removes, resets, closes or
/// moves the clock; its task gets its element when it is polled.
#[test]
fn a_waker_that_panics_is_contained() {
    type Wakeup = fn(&DelayQueue<u32>, &ManualClock);
    let ways: [Wakeup; 6] = [
        |queue, _| fill(queue, [1]),
        |queue, _| drop(queue.insert_all([(Duration::ZERO, 1), (DAY, 2)])),
        |queue, _| assert!(queue.reset(queue.keys()[0], Duration::ZERO)),
        |_, clock| clock.advance(DAY),
        |queue, _| {
            queue.close();
            queue.clear();
        },
        |queue, _| {
            queue.close();
            assert!(queue.remove(queue.keys()[0]).is_some());
        },
    ];
    for wake_up in ways {
        let (clock, queue) = queue_by_hand();
        queue.insert(DAY, 1).expect("the queue is open");
        let mut next = queue.next();
        assert!(poll(&mut next, &Arc::new(Bad)).is_pending());
        wake_up(&queue, &clock);
        let expected = (!queue.is_closed()).then_some(1);
        assert_eq!(poll(&mut next, &Wakes::new()), std::task::Poll::Ready(expected));
    }
}

/// A waker that panics does not keep the others from being woken.
#[test]
fn a_waker_that_panics_does_not_keep_others_from_being_woken() {
    let (_clock, queue) = queue_by_hand::<u32>();
    let mut nexts = [(); 5].map(|()| queue.next());
    let wakes = Wakes::new();
    for (n, next) in nexts.iter_mut().enumerate() {
        let is_pending = if n % 2 == 0 {
            poll(next, &Arc::new(Bad)).is_pending()
        } else {
            poll(next, &wakes).is_pending()
        };
        assert!(is_pending);
    }
    queue.close();
    assert_eq!(wakes.count(), 2);
}

/// F8: the system clock's alarm thread survives a waker that panics.
#[test]
fn a_waker_that_panics_does_not_silence_the_alarm() {
    let queue = DelayQueue::new();
    let rung = Counter::new();
    struct Worse(Counter);
    impl Wake for Worse {
        fn wake(self: Arc<Self>) {
            self.0.add();
            panic::panic_any(Bomb("a waker"));
        }
    }
    for round in 1..=3 {
        queue.insert(ms(1), round).expect("the queue is open");
        let mut next = queue.next();
        if poll(&mut next, &Arc::new(Worse(rung.clone()))).is_pending() {
            rung.wait_for(round);
        } else {
            // The millisecond was over before the poll.
            fill(&queue, [round]);
            rung.add();
        }
        drop(next);
        assert_eq!(drained(&queue), [round]);
    }
}

/// A waker may use the queue when it is woken, and when it is dropped.
#[test]
fn a_waker_may_use_the_queue() {
    struct Busy(Arc<DelayQueue<u32>>, Counter);
    impl Busy {
        fn use_queue(&self) {
            let key = self.0.insert(Duration::MAX, 9).expect("the queue is open");
            assert_eq!((self.0.contains(key), self.0.remove(key)), (true, Some(9)));
            self.1.add();
        }
    }
    impl Wake for Busy {
        fn wake(self: Arc<Self>) {
            self.use_queue();
        }
    }
    impl Drop for Busy {
        fn drop(&mut self) {
            self.use_queue();
        }
    }
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(1), 1).expect("the queue is open");
    let uses = Counter::new();
    let (own, counted, moved) = (Arc::clone(&queue), uses.clone(), clock.clone());
    in_time("to wake", move || {
        let mut next = own.next();
        assert!(poll(&mut next, &Arc::new(Busy(Arc::clone(&own), counted.clone()))).is_pending());
        moved.advance(ms(1));
        assert_eq!(counted.get(), 1, "by the alarm");
        assert!(poll(&mut next, &Wakes::new()).is_ready());
        assert_eq!(counted.get(), 2, "and dropped");
        let mut next = own.next();
        assert!(poll(&mut next, &Arc::new(Busy(Arc::clone(&own), counted.clone()))).is_pending());
        fill(&own, [2]);
        assert_eq!(counted.get(), 4, "by the insertion, which let go of it");
        drop(next);
    });
    assert_eq!((uses.get(), element(queue.poll())), (4, Some(2)));
}
