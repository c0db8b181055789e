//! The smallest protocols of the queue in every order that loom finds within its bound.
//!
//! As in the shuttle models, a queue is closed only when everything has been taken, and time
//! advances one step at a time.

use std::time::Duration;

use super::*;
use crate::{
    ManualClock,
    sync::{
        Arc, Parker,
        exhaustive::{Note, check},
        thread::{self, JoinHandle},
    },
    time::{Clock, Timestamp},
};

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn single() -> (ManualClock, Arc<SingleQueue<char>>) {
    let clock = ManualClock::from_zero();
    (clock.clone(), Arc::new(SingleQueue::new(Clock::from(clock))))
}

fn striped(stripes: usize) -> Arc<DelayedWorkQueue<char>> {
    Arc::new(DelayedWorkQueue::new(Clock::from(ManualClock::from_zero()), stripes, Duration::ZERO))
}

/// Starts a thread that takes one element.
fn taker(queue: &Arc<SingleQueue<char>>) -> JoinHandle<Option<char>> {
    let queue = Arc::clone(queue);
    thread::spawn(move || queue.take().map(|(entry, _)| entry.element))
}

/// M110, M113, M118: a submission meets a thread that has found nothing and is about to sleep.
#[test]
fn no_thread_sleeps_through_a_submission() {
    check(|| {
        let (_, queue) = single();
        let taker = taker(&queue);
        queue.insert(at(0), 'a').expect("it is open");
        assert_eq!(taker.join().expect("nobody panics"), Some('a'));
    });
}

/// The same holds with two stripes.
#[test]
fn no_thread_sleeps_through_a_submission_to_another_stripe() {
    check(|| {
        let queue = striped(2);
        let other = Arc::clone(&queue);
        let taker = thread::spawn(move || other.take().map(|(entry, _)| entry.element));
        queue.offer_at(1, at(0), at(0), 'a').expect("it is open");
        assert_eq!(taker.join().expect("nobody panics"), Some('a'));
    });
}

/// Two threads submit at once, and each element is taken.
#[test]
fn two_submissions_wake_enough_takers() {
    check(|| {
        let (_, queue) = single();
        let other = Arc::clone(&queue);
        let submitter = thread::spawn(move || other.insert(at(0), 'b').is_ok());
        let taker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..2).all(|_| queue.take().is_some()))
        };
        queue.insert(at(0), 'a').expect("it is open");
        assert!(submitter.join().expect("nobody panics"));
        assert!(taker.join().expect("nobody panics"));
    });
}

/// The leader takes the element that it waited for and leaves; the other thread takes the next at
/// its own step.
#[test]
fn a_leader_that_leaves_is_replaced() {
    check(|| {
        let (clock, queue) = single();
        queue.insert(at(1), 'a').expect("it is open");
        queue.insert(at(2), 'b').expect("it is open");
        let taken = Note::default();
        let takers = [0, 1].map(|_| {
            let (queue, taken) = (Arc::clone(&queue), taken.clone());
            thread::spawn(move || {
                assert!(queue.take().is_some());
                taken.add();
            })
        });
        clock.advance(Duration::from_nanos(1));
        clock.advance(Duration::from_nanos(1));
        takers.into_iter().for_each(|taker| taker.join().expect("nobody panics"));
        assert_eq!((taken.get(), queue.len()), (2, 0));
    });
}

/// A nearer element arrives while the leader goes to sleep for a farther one.
#[test]
fn a_nearer_head_is_waited_for() {
    check(|| {
        let (clock, queue) = single();
        queue.insert(at(9), 'z').expect("it is open");
        let taker = taker(&queue);
        queue.insert(at(1), 'a').expect("it is open");
        clock.advance(Duration::from_nanos(1));
        assert_eq!(taker.join().expect("nobody panics"), Some('a'));
    });
}

/// M119: a queue is closed while a thread goes to sleep on it: the thread is woken.
#[test]
fn a_waiter_is_woken_when_the_queue_closes() {
    check(|| {
        let (_, queue) = single();
        let taker = taker(&queue);
        queue.close();
        assert_eq!(taker.join().expect("nobody panics"), None);
    });
}

/// M119: the last element is taken while the queue is being closed: the taker or the closer wakes the waiter.
#[test]
fn taking_the_last_element_wakes_the_other_waiters() {
    check(|| {
        let (_, queue) = single();
        queue.insert(at(0), 'a').expect("it is open");
        let takers = [taker(&queue), taker(&queue)];
        queue.close();
        let mut taken = takers.map(|taker| taker.join().expect("nobody panics"));
        taken.sort_unstable();
        assert_eq!(taken, [None, Some('a')]);
    });
}

/// M111: a batch that moves to the ready list can be seen in at least one place without a lock.
#[test]
fn a_batch_in_transit_is_seen() {
    check(|| {
        let queue = striped(1);
        queue.offer_at(0, at(0), at(0), 'a').expect("it is open");
        queue.offer_at(0, at(0), at(0), 'b').expect("it is open");
        let other = Arc::clone(&queue);
        let poller = thread::spawn(move || other.try_take().is_some());
        assert!(!queue.seems_empty());
        assert!(poller.join().expect("nobody panics"));
    });
}

/// M114: a waiter that is woken because its limit has changed asks for the limit again.
#[test]
fn a_waiter_reconsiders_its_limit_when_asked() {
    check(|| {
        let queue = striped(1);
        let (may_leave, other) = (Note::default(), Arc::clone(&queue));
        let noted = may_leave.clone();
        let waiter = thread::spawn(move || {
            let limit = |_| Some(if noted.get() > 0 { Timestamp::PAST } else { Timestamp::NEVER });
            other.take_until_by(Parker::current, limit).is_none()
        });
        may_leave.add();
        queue.reconsider();
        assert!(waiter.join().expect("nobody panics"));
    });
}

/// Lets the pool's models begin a search without doing anything else.
impl<E> DelayedWorkQueue<E> {
    pub(crate) fn begin_search(&self) {
        self.waiters().begin_search();
    }
}
