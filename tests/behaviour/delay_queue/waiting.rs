//! Threads that wait at the delay queue: for an element, a limit, or a token.

use std::{
    cell::RefCell,
    sync::{Arc, Barrier, mpsc},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    CancellationToken, DelayQueue, Limit, LimitReached, ManualClock, ScheduledThreadPoolExecutor,
};

use crate::{
    delay_queue::support::{
        DAY, Dice, OnDrop, drained, element, fill, listed, queue_by_hand, until_asleep,
    },
    support::{Elsewhere, LONG, elsewhere, ms, receive},
};

/// DQ-010: a take from an emptied queue blocks until the token is raised; the token stays raised,
/// and no later take with it blocks.
#[test]
fn a_take_blocks_until_the_token_is_raised() {
    let (clock, queue) = queue_by_hand();
    fill(&queue, 0..32);
    assert_eq!(drained(&queue).len(), 32);
    queue.insert(DAY, 32).expect("the queue is open");
    let token = CancellationToken::new();
    let (waiter, stop) = (Arc::clone(&queue), token.clone());
    let taken = elsewhere(move || waiter.take_within(&stop));
    until_asleep(&clock, DAY);
    token.cancel();
    assert!(taken.get().is_err());
    for _ in 0..2 {
        assert!(queue.take_within(&token).is_err());
        assert!(token.is_cancelled());
    }
    assert_eq!(queue.len(), 1);
}

/// DQ-013: a poll with a time limit returns at once if an element has expired, and otherwise waits
/// for its limit.
#[test]
fn a_poll_waits_no_longer_than_it_may() {
    let (clock, by_hand) = queue_by_hand();
    fill(&by_hand, 0..32);
    for n in 0..32 {
        assert_eq!(element(by_hand.take_within(LONG).ok().flatten()), Some(n));
        assert!(clock.elapsed().is_zero());
    }
    let queue = DelayQueue::new();
    for poll in [
        |queue: &DelayQueue<i32>| queue.take_within(ms(12)).ok().flatten(),
        |queue: &DelayQueue<i32>| queue.take_within(Instant::now() + ms(12)).ok().flatten(),
        |queue: &DelayQueue<i32>| {
            let limit = Limit::from(ms(12)).unless(&CancellationToken::new());
            queue.take_within(limit).ok().flatten()
        },
    ] {
        let start = Instant::now();
        assert_eq!(poll(&queue), None);
        assert!(start.elapsed() >= ms(12));
    }
    assert!(queue.is_empty() && queue.poll().is_none() && queue.to_vec().is_empty());
}

/// DQ-014, M32: a raised token ends a waiting poll and a take, both before it begins and while it
/// waits; it takes no time, and the queue keeps its elements.
#[test]
fn a_token_ends_every_wait() {
    type Wait = fn(&DelayQueue<i32>, &CancellationToken) -> bool;
    let waits: [Wait; 2] = [
        |queue, token| queue.take_within(token).is_err(),
        |queue, token| queue.take_within(Limit::from(2 * LONG).unless(token)).is_err(),
    ];
    for wait in waits {
        let (clock, queue) = queue_by_hand();
        queue.insert(LONG, 1).expect("the queue is open");
        let token = CancellationToken::new();
        let (waiter, stop) = (Arc::clone(&queue), token.clone());
        let ended = elsewhere(move || wait(&waiter, &stop));
        until_asleep(&clock, LONG);
        token.cancel();
        assert!(ended.get(), "raised while it waits");
        assert!(wait(&queue, &token), "raised before");
        fill(&queue, [2]);
        assert!(wait(&queue, &token), "raised before, and an element has expired");
        assert_eq!((listed(&queue), clock.elapsed()), (vec![2, 1], Duration::ZERO));
    }
}

/// DQ-044: the same holds on the system clock, where another thread raises the token at about the
/// time when the wait begins.
#[test]
fn a_token_ends_every_wait_on_the_systems_clock() {
    for round in 0..200 {
        let (queue, token) = (DelayQueue::<i32>::new(), CancellationToken::new());
        thread::scope(|scope| {
            scope.spawn(|| token.cancel());
            if round % 2 == 0 {
                assert!(queue.take_within(&token).is_err());
            } else {
                assert!(queue.take_within(Limit::from(DAY).unless(&token)).is_err());
            }
        });
    }
    let (queue, token) = (DelayQueue::<i32>::new(), CancellationToken::new());
    let start = Instant::now();
    thread::scope(|scope| {
        let stop = CancellationToken::new();
        let (stop, token) = (stop, &token);
        scope.spawn(move || {
            assert!(stop.sleep(ms(20)).is_ok());
            token.cancel();
        });
        assert!(queue.take_within(token).is_err());
    });
    assert!(start.elapsed() >= ms(20));
}

/// DQ-025: a worker of an executor finds nothing, and then gets the element that another one
/// inserts.
#[test]
fn workers_hand_over() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let queue = Arc::new(DelayQueue::new());
    let both = Arc::new(Barrier::new(2));
    let (taker, meet) = (Arc::clone(&queue), Arc::clone(&both));
    let taken = executor.submit(move || {
        let before = taker.poll().is_some();
        meet.wait();
        (before, element(taker.take_within(LONG).ok().flatten()))
    });
    let putter = Arc::clone(&queue);
    let put = executor.submit(move || {
        both.wait();
        fill(&putter, [1]);
    });
    assert_eq!(taken.expect("it is open").join().expect("it ends"), (false, Some(1)));
    put.expect("it is open").join().expect("it ends");
    assert!(queue.is_empty());
}

/// DQ-026: on the system clock no element is taken before its time, and elements come in the order
/// of their deadlines.
#[test]
fn nothing_is_taken_early() {
    let (queue, mut dice) = (DelayQueue::new(), Dice(26));
    for n in 0..32 {
        queue.insert(Duration::from_micros(dice.roll(32)), n).expect("the queue is open");
    }
    for n in 32..64 {
        queue.insert(Duration::from_micros(500 + dice.roll(3_200)), n).expect("the queue is open");
    }
    let mut last = None;
    for _ in 0..64 {
        let expired = queue.take().expect("the queue is open");
        assert!(Instant::now() >= expired.deadline);
        assert!(last <= Some(expired.deadline));
        last = Some(expired.deadline);
    }
    assert!(queue.is_empty());
}

/// DQ-030: a poll with a time limit leaves elements that do not expire in time, and takes expired
/// ones at once.
#[test]
fn a_poll_leaves_elements_that_expire_after_its_limit() {
    let (clock, queue) = queue_by_hand();
    queue.insert(DAY, 1).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let polled = elsewhere(move || (waiter.take_within(ms(12)).ok().flatten(), waiter));
    until_asleep(&clock, ms(12));
    clock.advance(ms(12));
    assert_eq!(polled.get().0, None);
    fill(&queue, [2]);
    assert_eq!(element(queue.take_within(DAY).ok().flatten()), Some(2));
    assert!(queue.take_within(Duration::ZERO).ok().flatten().is_none());
    assert_eq!((clock.elapsed(), queue.len()), (ms(12), 1));
}

/// A poll whose limit equals a deadline takes the element.
#[test]
fn a_poll_takes_an_element_that_expires_at_its_limit() {
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(12), 1).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let polled = elsewhere(move || waiter.take_within(ms(12)).ok().flatten());
    until_asleep(&clock, ms(12));
    clock.advance(ms(12));
    assert_eq!(element(polled.get()), Some(1));
}

/// DQ-031: a taker that waits for a distant head takes a nearer element that is inserted, and
/// leaves the other.
#[test]
fn a_waiting_taker_takes_a_nearer_element() {
    let (clock, queue) = queue_by_hand();
    queue.insert(DAY, 1).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let taken = elsewhere(move || waiter.take());
    until_asleep(&clock, DAY);
    fill(&queue, [2]);
    assert_eq!(element(taken.get()), Some(2));
    assert_eq!(listed(&queue), [1]);
}

/// The same holds when the nearer element has not expired either, also by bulk insertion: a waiting
/// thread wakes for the nearest element.
#[test]
fn a_waiting_taker_follows_the_nearest_element() {
    let (clock, queue) = queue_by_hand();
    queue.insert(DAY, 1).expect("the queue is open");
    let waiter = Arc::clone(&queue);
    let taken = elsewhere(move || waiter.take());
    until_asleep(&clock, DAY);
    queue.insert(ms(20), 2).expect("the queue is open");
    until_asleep(&clock, ms(20));
    queue.insert_all([(DAY, 3), (ms(10), 4), (ms(15), 5)]).expect("the queue is open");
    until_asleep(&clock, ms(10));
    queue.insert(ms(11), 6).expect("the queue is open");
    clock.advance(ms(10));
    assert_eq!(element(taken.get()), Some(4));
    assert_eq!(listed(&queue), [6, 5, 2, 1, 3]);
}

/// DQ-038: a poll waits in vain, the next one gets an inserted element, and a raised token ends one
/// that waits and one that has not begun to wait.
#[test]
fn polls_that_wait_one_after_the_other() {
    let (clock, queue) = queue_by_hand();
    let token = CancellationToken::new();
    let (waiter, stop) = (Arc::clone(&queue), token.clone());
    let polled = elsewhere(move || {
        let first = waiter.take_within(Limit::from(ms(12)).unless(&stop)).map(element);
        let second = waiter.take_within(Limit::from(LONG).unless(&stop)).map(element);
        let third = waiter.take_within(Limit::from(LONG).unless(&stop)).map(element);
        let fourth = waiter.take_within(Limit::from(LONG).unless(&stop)).map(element);
        [first, second, third, fourth]
    });
    until_asleep(&clock, ms(12));
    clock.advance(ms(12));
    until_asleep(&clock, LONG);
    clock.advance(ms(1));
    fill(&queue, [1]);
    until_asleep(&clock, LONG);
    token.cancel();
    let (timed_out, cancelled) = (Err(LimitReached::TimedOut), Err(LimitReached::Cancelled));
    assert_eq!(polled.get(), [timed_out, Ok(Some(1)), cancelled, cancelled]);
}

/// A thread that polls, with a token.
type Poller = Elsewhere<Result<Option<u64>, LimitReached>>;

/// Starts this many threads that poll, each of which has been seen to sleep.
fn sleepers(
    count: u64,
    token: impl Fn(u64) -> CancellationToken,
) -> (ManualClock, Arc<DelayQueue<u64>>, Vec<Poller>) {
    let (clock, queue) = queue_by_hand();
    let threads = (0..count).map(|n| {
        // Each has a nearer limit than those before, so the clock shows it.
        let (waiter, stop, limit) = (Arc::clone(&queue), token(n), DAY - ms(n));
        let polled =
            elsewhere(move || waiter.take_within(Limit::from(limit).unless(&stop)).map(element));
        until_asleep(&clock, limit);
        polled
    });
    let threads = threads.collect();
    (clock, queue, threads)
}

/// A thread may wait for an element, or for a token, also while its thread-locals are dropped.
#[test]
fn a_token_reaches_a_thread_that_is_being_torn_down() {
    type AtTheEnd = OnDrop<Box<dyn FnMut()>>;
    thread_local! {
        static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    }
    let (clock, queue) = queue_by_hand();
    queue.insert(DAY, 1).expect("the queue is open");
    let (token, (tell, told)) = (CancellationToken::new(), mpsc::channel());
    let (waiter, stop) = (Arc::clone(&queue), token.clone());
    thread::spawn(move || {
        LAST.set(Some(OnDrop(Box::new(move || {
            tell.send(waiter.take_within(&stop).map(element)).expect("the test waits");
        }))));
        // The crate's own thread-locals are initialised after this one, and so are dropped before
        // it.
        assert!(DelayQueue::<i32>::new().take_within(ms(1)).ok().flatten().is_none());
    });
    until_asleep(&clock, DAY);
    token.cancel();
    assert!(receive(&told, "it is woken").is_err());
}

/// A token ends only the waits that were given it: the other waiters get the elements that are
/// inserted.
#[test]
fn a_token_does_not_concern_others() {
    let tokens = [CancellationToken::new(), CancellationToken::new()];
    let (clock, queue, threads) = sleepers(8, |n| tokens[n as usize % 2].clone());
    tokens[0].cancel();
    let (mut with_raised, mut others) = (Vec::new(), Vec::new());
    for (n, thread) in threads.into_iter().enumerate() {
        if n % 2 == 0 { with_raised.push(thread) } else { others.push(thread) }
    }
    assert!(with_raised.into_iter().all(|thread| thread.get().is_err()));
    fill(&queue, 0..4);
    let mut taken: Vec<_> = others.into_iter().map(|thread| thread.get()).collect();
    taken.sort_by_key(|outcome| outcome.ok());
    assert_eq!(taken, [0, 1, 2, 3].map(|n| Ok(Some(n))));
    assert!(queue.is_empty() && clock.elapsed().is_zero());
}

/// Many threads wait, and elements that arrive together go to them, one to each.
#[test]
fn each_waiting_taker_gets_one_element() {
    let (_clock, queue, threads) = sleepers(8, |_| CancellationToken::new());
    queue.insert_all((0..8).map(|n| (Duration::ZERO, n))).expect("the queue is open");
    let mut taken: Vec<_> = threads.into_iter().map(|thread| thread.get().ok().flatten()).collect();
    taken.sort_unstable();
    assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7].map(Some));
}

/// Closing an empty queue ends all waits, and takes no time.
#[test]
fn closing_an_empty_queue_ends_all_waits() {
    let (clock, queue, threads) = sleepers(8, |_| CancellationToken::new());
    queue.close();
    for thread in threads {
        assert_eq!(thread.get(), Ok(None));
    }
    assert!(clock.elapsed().is_zero());
}

/// A leader that gives up, by its limit or by its token, leaves the head to another waiter.
#[test]
fn a_taker_that_gives_up_leaves_the_head_to_another() {
    for by_token in [true, false] {
        let (clock, queue) = queue_by_hand();
        queue.insert(DAY, 1).expect("the queue is open");
        let token = CancellationToken::new();
        let (leader, stop) = (Arc::clone(&queue), token.clone());
        let gives_up =
            elsewhere(move || leader.take_within(Limit::from(ms(10)).unless(&stop)).ok().flatten());
        until_asleep(&clock, ms(10));
        let followers = [2, 3].map(|_| {
            let follower = Arc::clone(&queue);
            elsewhere(move || element(follower.take()))
        });
        if by_token {
            token.cancel()
        } else {
            clock.advance(ms(10))
        }
        assert_eq!(gives_up.get(), None);
        until_asleep(&clock, DAY - clock.elapsed());
        clock.advance(DAY);
        fill(&queue, [2]);
        let mut taken = followers.map(|follower| follower.get());
        taken.sort_unstable();
        assert_eq!(taken, [Some(1), Some(2)]);
    }
}

/// An element and a token arrive at once: the thread with the token takes the element, or leaves it
/// to another waiter. It is never lost, and never stays in the queue while a thread waits.
#[test]
fn an_element_that_meets_a_token_is_taken() {
    for round in 0..300 {
        let queue = Arc::new(DelayQueue::new());
        let (token, start) = (CancellationToken::new(), Arc::new(Barrier::new(3)));
        let (one, stop, go) = (Arc::clone(&queue), token.clone(), Arc::clone(&start));
        let with_token = elsewhere(move || {
            go.wait();
            one.take_within(&stop).map(element)
        });
        let other = Arc::clone(&queue);
        let without = elsewhere(move || element(other.take()));
        let go = Arc::clone(&start);
        let raised = elsewhere(move || {
            go.wait();
            token.cancel();
        });
        start.wait();
        queue.insert(Duration::from_micros(round % 3), 1).expect("the queue is open");
        match with_token.get() {
            Ok(taken) => {
                queue.close();
                assert_eq!((taken, without.get()), (Some(1), None));
            }
            // Nothing was taken, or the other was faster.
            Err(_) => assert_eq!(without.get(), Some(1)),
        }
        raised.get();
        assert!(queue.is_empty());
    }
}
