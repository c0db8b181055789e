//! The single queue: what is due, and waiters that are polled.

use std::{
    cell::RefCell,
    hint,
    sync::{atomic::AtomicUsize, mpsc},
    task::{Poll, Wake, Waker},
    thread,
};

use super::*;
use crate::{
    ManualClock,
    patience::{Patience, receive},
    queue::{
        AsyncWaiter,
        tests::{at, results, worker},
    },
    sync::Arc,
};

fn single<E>() -> (ManualClock, Arc<SingleQueue<E>>) {
    let clock = ManualClock::from_zero();
    (clock.clone(), Arc::new(SingleQueue::new(Clock::from(clock))))
}

/// Starts a thread that takes one element.
fn taker<E: Send + 'static>(
    clock: &ManualClock,
    queue: &Arc<SingleQueue<E>>,
) -> mpsc::Receiver<Option<E>> {
    let queue = Arc::clone(queue);
    worker(clock, move || queue.take().map(|(entry, _)| entry.element))
}

impl<E> SingleQueue<E> {
    fn elements(&self) -> Vec<E>
    where
        E: Clone,
    {
        self.snapshot(E::clone).into_iter().map(|listed| listed.element).collect()
    }
}

/// A caller that takes what was due at a given time leaves the elements that become due later.
#[test]
fn an_element_not_due_at_the_given_time_is_left() {
    let (clock, queue) = single();
    assert!(queue.peek(|element| *element).is_none());
    queue.insert(at(2), 'b').expect("it is open");
    let ticket = queue.insert(at(1), 'a').expect("it is open");
    clock.advance(Duration::from_nanos(5));
    let first = queue.peek(|element| *element).expect("it is there");
    assert_eq!((first.deadline, first.ticket, first.element), (at(1), ticket, 'a'));
    assert_eq!(queue.try_take_by(at(1)).map(|entry| entry.element), Some('a'));
    assert!(queue.try_take_by(at(1)).is_none());
    assert_eq!(queue.try_take().map(|entry| entry.element), Some('b'));
}

fn spin_until(is_over: impl Fn() -> bool) {
    let mut patience = Patience::new();
    while !is_over() {
        patience.go_on("another thread has failed");
        (0..20).for_each(|_| hint::spin_loop());
        thread::yield_now();
    }
}

/// Both elements are due, one of them only since the clock was last read, so both threads find one.
#[test]
fn a_thread_that_loses_the_first_element_reads_the_clock_again() {
    const ROUNDS: usize = 3_000;
    let (clock, queue) = single();
    let arrived = AtomicUsize::new(0);
    let poll_with_the_other = |round: usize| {
        arrived.fetch_add(1, Ordering::SeqCst);
        spin_until(|| arrived.load(Ordering::SeqCst) >= 2 * round);
        assert!(queue.try_take().is_some(), "round {round}");
    };
    thread::scope(|scope| {
        let (told, tell) = mpsc::sync_channel(0);
        scope.spawn(move || tell.iter().for_each(poll_with_the_other));
        for round in 1..=ROUNDS {
            let now = clock.elapsed().as_nanos() as u64;
            assert!(queue.try_take().is_none(), "the queue has read the clock");
            clock.advance(Duration::from_nanos(1));
            queue.insert(at(now), 'a').expect("it is open");
            queue.insert(at(now + 1), 'b').expect("it is open");
            told.send(round).expect("it listens");
            poll_with_the_other(round);
            spin_until(|| queue.len() == 0);
        }
    });
}

/// M20.
#[test]
fn insert_all_inserts_all_or_none() {
    let (clock, queue) = single();
    let takers: Vec<_> = (0..2).map(|_| taker(&clock, &queue)).collect();
    clock.run_until_idle();
    let tickets = queue.insert_all(vec![(at(20), 'b'), (at(10), 'a'), (at(20), 'c')]);
    let tickets = tickets.expect("it is open");
    clock.run_until_idle();
    assert_eq!(
        clock.sleepers(),
        [at(10), Timestamp::NEVER],
        "a waiter is armed for the nearest of them"
    );
    assert_eq!(queue.elements(), ['a', 'b', 'c']);
    assert_eq!(queue.remove(tickets[2]), Some('c'));
    clock.advance(Duration::from_nanos(20));
    results(&takers, 2);
    assert!(queue.insert_all(Vec::new()).is_ok_and(|tickets| tickets.is_empty()));
    queue.close();
    let refused = queue.insert_all(vec![(at(1), 'x'), (at(2), 'y')]).expect_err("it is closed");
    assert_eq!(refused, (InsertError::Closed, vec![(at(1), 'x'), (at(2), 'y')]));
}

/// A waker that counts its calls.
#[derive(Default)]
struct Bells(AtomicUsize);

impl Wake for Bells {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An async waiter, and the alarms that the waiter has set.
struct Awaiting {
    waiter: AsyncWaiter<()>,
    bells: Arc<Bells>,
    alarms: RefCell<Vec<Timestamp>>,
}

impl Awaiting {
    fn new() -> Self {
        Self { waiter: AsyncWaiter::new(), bells: Arc::default(), alarms: RefCell::default() }
    }

    fn poll<E>(&mut self, queue: &SingleQueue<E>) -> Poll<Option<E>> {
        let waker = Waker::from(Arc::clone(&self.bells));
        let Self { waiter, alarms, .. } = self;
        let set_alarm = |moment, _| -> Option<()> {
            alarms.borrow_mut().push(moment);
            None
        };
        queue.poll_take(waiter, &waker, set_alarm).map(|taken| taken.map(|entry| entry.element))
    }

    fn rings(&self) -> usize {
        self.bells.0.load(Ordering::SeqCst)
    }

    fn alarms(&self) -> Vec<Timestamp> {
        self.alarms.take()
    }
}

/// M19, M29.
#[test]
fn an_async_waiter_is_leader_deputy_or_follower() {
    let (clock, queue) = single();
    queue.insert(at(10), 'a').expect("it is open");
    queue.insert(at(20), 'b').expect("it is open");
    let mut waiters: Vec<_> = (0..3).map(|_| Awaiting::new()).collect();
    assert!(waiters.iter_mut().all(|one| one.poll(&queue).is_pending()));
    let alarms: Vec<_> = waiters.iter().map(Awaiting::alarms).collect();
    assert_eq!(alarms, [vec![at(10)], vec![at(20)], vec![]], "no waiter is armed without need");
    // A nearer element wakes a follower, and no other waiter.
    queue.insert(at(5), 'c').expect("it is open");
    assert_eq!(waiters.iter().map(Awaiting::rings).collect::<Vec<_>>(), [0, 0, 1]);
    queue.insert(at(4), 'd').expect("it is open");
    assert_eq!(waiters.iter().map(Awaiting::rings).collect::<Vec<_>>(), [0, 0, 1], "it searches");
    clock.advance(Duration::from_nanos(4));
    assert_eq!(waiters[2].poll(&queue), Poll::Ready(Some('d')));
    assert_eq!(
        waiters.iter().map(Awaiting::rings).sum::<usize>(),
        2,
        "one more, for the elements that are left"
    );
    for (number, one) in waiters.iter_mut().enumerate() {
        assert_eq!(one.waiter.listed.is_some(), number < 2);
        queue.cancel_wait(&mut one.waiter);
    }
}

/// M28.
#[test]
fn a_cancelled_waiter_passes_its_wake_up_on() {
    let (clock, queue) = single();
    let (mut first, mut second) = (Awaiting::new(), Awaiting::new());
    assert!(first.poll(&queue).is_pending());
    assert!(second.poll(&queue).is_pending());
    queue.insert(at(0), 'a').expect("it is open");
    assert_eq!((first.rings(), second.rings()), (0, 1), "the last to begin its wait");
    queue.cancel_wait(&mut second.waiter);
    assert_eq!(first.rings(), 1);
    queue.cancel_wait(&mut first.waiter);
    assert_eq!(queue.try_take().map(|entry| entry.element), Some('a'));
    // The wake-up also goes to a thread, which would otherwise sleep forever.
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    assert!(first.poll(&queue).is_pending());
    queue.insert(at(0), 'b').expect("it is open");
    assert_eq!(first.rings(), 2, "the last to begin its wait");
    assert_eq!(clock.sleepers(), [Timestamp::NEVER]);
    queue.cancel_wait(&mut first.waiter);
    assert_eq!(receive(&taker, "it returns"), Some('b'));
}

#[test]
fn an_async_waiter_is_woken_when_a_closed_queue_finishes() {
    let (_, queue) = single();
    let ticket = queue.insert(Timestamp::NEVER, 'a').expect("it is open");
    let mut waiters: Vec<_> = (0..3).map(|_| Awaiting::new()).collect();
    assert!(waiters.iter_mut().all(|one| one.poll(&queue).is_pending()));
    queue.close();
    assert!(waiters.iter().all(|one| one.rings() == 0));
    queue.remove(ticket);
    assert!(waiters.iter().all(|one| one.rings() == 1));
    assert!(waiters.iter_mut().all(|one| one.poll(&queue) == Poll::Ready(None)));
}
