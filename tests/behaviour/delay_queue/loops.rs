//! Producers, consumers and takers that give up run concurrently at one delay queue: nothing is
//! lost, nothing is delivered twice, and every taker gets its elements in order.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use punctual::{CancellationToken, DelayQueue};

use crate::{
    delay_queue::support::{Dice, element, fill},
    support::awaiting::block_on,
    support::{Counter, LONG},
};

const ITEMS: u64 = 1_000;

/// DQ-048: producers and consumers in pairs, half of which await: the sums are equal.
#[test]
fn pairs_of_producers_and_consumers() {
    for pairs in [1, 2, 4] {
        let (queue, put, taken) = (DelayQueue::new(), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for pair in 0..pairs {
                let (queue, put, taken) = (&queue, &put, &taken);
                scope.spawn(move || {
                    for n in 0..ITEMS {
                        fill(queue, [n * (pair + 1)]);
                        put.fetch_add(n * (pair + 1), Ordering::SeqCst);
                    }
                });
                scope.spawn(move || {
                    for _ in 0..ITEMS {
                        let got = if pair % 2 == 0 { queue.take() } else { block_on(queue.next()) };
                        let got = element(got).expect("the queue is open");
                        taken.fetch_add(got, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((put.into_inner(), queue.len()), (taken.into_inner(), 0));
    }
}

/// DQ-049: one producer, and several consumers, each of which sees increasing numbers.
#[test]
fn each_consumer_sees_growing_numbers() {
    for consumers in [1, 2, 4] {
        let queue = DelayQueue::new();
        let total: u64 = thread::scope(|scope| {
            let takers = (0..consumers).map(|n| {
                let queue = &queue;
                scope.spawn(move || {
                    let mut seen = Vec::new();
                    let next = || if n % 2 == 0 { queue.take() } else { block_on(queue.next()) };
                    seen.extend(std::iter::from_fn(next).map(|expired| expired.element));
                    assert!(seen.is_sorted_by(|a, b| a < b));
                    seen.into_iter().sum::<u64>()
                })
            });
            let takers: Vec<_> = takers.collect();
            fill(&queue, 0..ITEMS * consumers);
            queue.close();
            takers.into_iter().map(|taker| taker.join().expect("it ends")).sum()
        });
        let count = ITEMS * consumers;
        assert_eq!(total, count * (count - 1) / 2);
    }
}

/// DQ-050: several producers and one consumer, which gets every element, and those of each producer
/// in order.
#[test]
fn several_producers_and_one_consumer() {
    for producers in [1, 2, 4] {
        let queue = DelayQueue::new();
        thread::scope(|scope| {
            for producer in 0..producers {
                let queue = &queue;
                scope.spawn(move || fill(queue, (0..ITEMS).map(|n| (producer, n))));
            }
            let mut next = vec![0; producers];
            for _ in 0..ITEMS * producers as u64 {
                let (producer, n) = element(queue.take()).expect("the queue is open");
                assert_eq!(n, next[producer]);
                next[producer] += 1;
            }
            assert_eq!(next, vec![ITEMS; producers]);
        });
        assert!(queue.is_empty());
    }
}

/// As long as no element is postponed and none is inserted with a deadline in the past, each of
/// several takers sees non-decreasing deadlines.
#[test]
fn deadlines_never_go_back() {
    let queue = DelayQueue::new();
    thread::scope(|scope| {
        for taker in 0..4 {
            let queue = &queue;
            scope.spawn(move || {
                let next = || match taker {
                    0 => queue.take(),
                    1 => block_on(queue.next()),
                    2 => queue.expirations().next(),
                    _ => queue.take_within(LONG).ok().flatten(),
                };
                let deadlines: Vec<_> =
                    std::iter::from_fn(next).map(|expired| expired.deadline).collect();
                assert!(deadlines.is_sorted());
            });
        }
        // They are inserted in one step, so that none can arrive after a later one was taken.
        let delays = (0..2_000).map(|n| Duration::from_micros(n * 7 % 300));
        queue.insert_all(delays.map(|delay| (delay, ()))).expect("the queue is open");
        queue.close();
    });
    assert!(queue.is_empty());
}

/// The fate of each element.
struct Ends(Vec<AtomicUsize>);

impl Ends {
    fn ended(&self, element: usize) {
        self.0[element].fetch_add(1, Ordering::SeqCst);
    }

    fn all(&self) -> usize {
        self.0.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }
}

const PRODUCERS: usize = 2;
const EACH: usize = 1_500;

/// Inserts elements, one by one and in bulk, and removes or resets many of them.
fn produce(queue: &DelayQueue<usize>, ends: &Ends, number: usize) {
    let mut dice = Dice(number as u64 + 1);
    let mut element = number * EACH;
    while element < (number + 1) * EACH {
        let delay = Duration::from_micros(dice.roll(50));
        let keys = if dice.roll(3) == 0 {
            let count = (dice.roll(5) as usize).min((number + 1) * EACH - element);
            let some = (element..element + count).map(|element| (delay, element));
            queue.insert_all(some).expect("the queue is open")
        } else {
            vec![queue.insert(delay, element).expect("the queue is open")]
        };
        element += keys.len();
        for key in keys {
            let done = match dice.roll(6) {
                0 => queue.remove(key),
                1 => {
                    queue.reset(key, Duration::from_micros(dice.roll(80)));
                    None
                }
                _ => None,
            };
            done.into_iter().for_each(|element| ends.ended(element));
        }
    }
}

/// Takes in this way until the queue is finished.
fn consume(queue: &Arc<DelayQueue<usize>>, ends: &Ends, way: usize) {
    let mut dice = Dice(way as u64 + 100);
    match way {
        0 => queue.expirations().for_each(|expired| ends.ended(expired.element)),
        1 => block_on(async {
            let mut stream = queue.stream();
            while let Some(expired) = stream.next().await {
                ends.ended(expired.element);
            }
        }),
        2 => {
            while let Some(expired) = block_on(queue.next()) {
                ends.ended(expired.element);
            }
        }
        3 => {
            while !(queue.is_closed() && queue.is_empty()) {
                let taken = queue.take_within(Duration::from_micros(dice.roll(20))).ok().flatten();
                taken.into_iter().for_each(|expired| ends.ended(expired.element));
            }
        }
        4 => {
            while !(queue.is_closed() && queue.is_empty()) {
                let drained = queue.drain_to(dice.roll(9) as usize, |expired| {
                    if dice.roll(4) == 0 {
                        return Err(expired.element);
                    }
                    ends.ended(expired.element);
                    Ok(())
                });
                drained.err().into_iter().for_each(|refused| ends.ended(refused));
                thread::yield_now();
            }
        }
        _ => {
            while !(queue.is_closed() && queue.is_empty()) {
                let waker = Waker::noop();
                // Polls a future once and drops it, repeatedly: it takes an element only if it
                // returns one.
                let mut next = pin!(queue.next());
                let polled = next.as_mut().poll(&mut Context::from_waker(waker));
                if let Poll::Ready(Some(expired)) = polled {
                    ends.ended(expired.element);
                }
                thread::yield_now();
            }
        }
    }
}

/// Producers that remove and reset, and consumers of all kinds (threads, tasks, sinks that refuse,
/// takers that give up): each element ends exactly once, and every thread ends.
#[test]
fn each_element_has_one_end_whatever_happens() {
    for _ in 0..3 {
        let queue = Arc::new(DelayQueue::new());
        let ends = Ends((0..PRODUCERS * EACH).map(|_| AtomicUsize::new(0)).collect());
        thread::scope(|scope| {
            for way in 0..6 {
                let (queue, ends) = (&queue, &ends);
                scope.spawn(move || consume(queue, ends, way));
            }
            let producers = [0, 1].map(|number| {
                let (queue, ends) = (&queue, &ends);
                scope.spawn(move || produce(queue, ends, number))
            });
            producers.into_iter().for_each(|producer| producer.join().expect("it ends"));
            queue.close();
        });
        assert_eq!((ends.all(), queue.len()), (PRODUCERS * EACH, 0));
        assert!(ends.0.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    }
}

/// Takes one element in this way, or gives up after a while. The first taker waits until there is
/// one.
fn take_or_give_up(queue: &DelayQueue<u64>, way: usize, dice: &mut Dice) -> Option<u64> {
    let patience = Duration::from_micros(dice.roll(60));
    element(match way {
        0 => queue.take(),
        1 => queue.take_within(patience).ok().flatten(),
        2 => {
            let token = CancellationToken::new();
            thread::scope(|scope| {
                scope.spawn(|| token.cancel());
                queue.take_within(&token).ok().flatten()
            })
        }
        _ => {
            let unpark = Waker::from(Arc::new(Unpark(thread::current())));
            let mut next = pin!(queue.next());
            let mut context = Context::from_waker(&unpark);
            match next.as_mut().poll(&mut context) {
                Poll::Ready(taken) => taken,
                Poll::Pending => {
                    // Even if it is woken now, it gives up, half of the time.
                    thread::park_timeout(patience);
                    let polled = (dice.roll(2) == 0).then(|| next.as_mut().poll(&mut context));
                    polled.and_then(
                        |polled| if let Poll::Ready(taken) = polled { taken } else { None },
                    )
                }
            }
        }
    })
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Ends all waits when it is dropped, so that a failing test does not hang.
struct End<'a>(&'a DelayQueue<u64>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.close();
        self.0.clear();
    }
}

/// One element at a time, with takers of every kind that arrive, wait a little and give up: as long
/// as one of them stays, each element is taken, whichever taker was woken for it.
#[test]
fn no_element_is_lost_among_takers_that_give_up() {
    let (queue, taken) = (DelayQueue::new(), Counter::new());
    thread::scope(|scope| {
        for way in [0, 1, 2, 3, 3] {
            let (queue, taken) = (&queue, taken.clone());
            scope.spawn(move || {
                let mut dice = Dice(way as u64 + 1);
                while !queue.is_closed() {
                    if take_or_give_up(queue, way, &mut dice).is_some() {
                        taken.add();
                    }
                }
            });
        }
        let (_end, mut dice) = (End(&queue), Dice(9));
        for n in 0..1_000 {
            let delay = Duration::from_micros(dice.roll(40));
            queue.insert(delay, n).expect("the queue is open");
            taken.wait_for(n as usize + 1);
        }
        assert!(queue.is_empty());
    });
    assert_eq!(taken.get(), 1_000);
}
