//! Leader and followers on the manual clock, whose list of sleepers shows until when threads wait.

mod far;
mod history;
mod stress;

use std::{
    cell::Cell,
    sync::{Barrier, Weak, mpsc},
    thread,
    time::Duration,
};

use super::{any_queue::AnyQueue, striped::QueueCounts, *};
use crate::{
    ManualClock,
    patience::{LONG, Patience, receive},
    sync::{Arc, Parker},
    time::{Clock, Timestamp},
    unwind::wake_all,
};

pub(super) type Queue<E> = Arc<DelayedWorkQueue<E>>;

pub(super) const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

pub(super) fn queue<E>() -> (ManualClock, Queue<E>) {
    let clock = ManualClock::from_zero();
    let queue = Arc::new(DelayedWorkQueue::new(Clock::from(clock.clone()), 4, Duration::ZERO));
    (clock, queue)
}

impl<E> DelayedWorkQueue<E> {
    /// Offers as a program with many threads does: successive elements go into different stripes.
    fn put(&self, deadline: Timestamp, element: E) -> Result<Ticket, RefusedElement<E>> {
        let now = self.clock().read();
        let stripe = self.clock().submission_stamp(now) as usize % self.stripes();
        self.offer_at(stripe, now, deadline, element)
    }

    fn poll_timeout(&self, timeout: Duration) -> Option<(QueueEntry<E>, Timestamp)> {
        let limit = self.clock().read().after(timeout);
        self.take_until_by(Parker::current, |_| Some(limit))
    }
}

/// Runs `body` on a thread that the clock counts as a worker, and so waits for.
pub(super) fn worker<T: Send + 'static>(
    clock: &ManualClock,
    body: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<T> {
    let clock = Clock::from(clock.clone());
    let (sender, receiver) = mpsc::channel();
    clock.worker_starts();
    #[allow(clippy::disallowed_methods, reason = "a test")]
    thread::spawn(move || {
        clock.worker_begins(&Parker::current());
        let result = body();
        clock.worker_ended();
        let _ = sender.send(result);
    });
    receiver
}

/// Starts a thread that takes one element.
pub(super) fn taker<E: Send + 'static>(
    clock: &ManualClock,
    queue: &Queue<E>,
) -> mpsc::Receiver<Option<E>> {
    let queue = Arc::clone(queue);
    worker(clock, move || queue.take().map(|(entry, _)| entry.element))
}

/// Waits until `expected` threads have ended, and returns their results.
pub(super) fn results<T>(receivers: &[mpsc::Receiver<T>], expected: usize) -> Vec<T> {
    let (mut results, mut patience) = (Vec::new(), Patience::new());
    while results.len() < expected {
        patience.go_on(format_args!("{expected} results and not {}", results.len()));
        results.extend(receivers.iter().filter_map(|receiver| receiver.try_recv().ok()));
        thread::yield_now();
    }
    results
}

#[test]
fn elements_come_out_when_due_and_in_order() {
    let (clock, queue) = queue();
    for nanos in [30, 10, 20, 10] {
        queue.put(at(nanos), nanos).expect("it is open");
    }
    assert!(queue.try_take().is_none());
    clock.advance(Duration::from_nanos(20));
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_take()).map(|e| e.element).collect();
    assert_eq!(taken, [10, 10, 20]);
    assert_eq!(queue.len(), 1);
}

/// DQ-062: of many threads in `take`, one waits for the head, and the others wait without a limit.
#[test]
fn one_thread_leads_and_the_others_follow() {
    let (clock, queue) = queue();
    let takers: Vec<_> = (0..4).map(|_| taker(&clock, &queue)).collect();
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [Timestamp::NEVER; 4]);
    queue.put(at(10), 'a').expect("it is open");
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(10), Timestamp::NEVER, Timestamp::NEVER, Timestamp::NEVER]);
    clock.advance(Duration::from_nanos(10));
    assert_eq!(results(&takers, 1), [Some('a')]);
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [Timestamp::NEVER; 3]);
    queue.close(Admission::CLOSED);
    assert_eq!(results(&takers, 3), [None; 3]);
}

/// DQ-065: a thread that takes an element and leaves others behind ensures that another thread
/// waits for the next one.
#[test]
fn a_leaving_leader_passes_leadership_on() {
    let (clock, queue) = queue();
    let takers: Vec<_> = (0..3).map(|_| taker(&clock, &queue)).collect();
    queue.put(at(10), 'a').expect("it is open");
    queue.put(at(20), 'b').expect("it is open");
    clock.run_until_idle();
    clock.advance(Duration::from_nanos(10));
    assert_eq!(results(&takers, 1), [Some('a')]);
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(20), Timestamp::NEVER]);
    clock.advance(Duration::from_nanos(10));
    assert_eq!(results(&takers, 1), [Some('b')]);
    queue.close(Admission::CLOSED);
    assert_eq!(results(&takers, 1), [None]);
}

/// DQ-065: while a thread searches, an offer leaves the wake-up to it. If that thread then leaves, without an element
/// or with the first of two, it wakes a follower for what it leaves behind.
#[test]
fn a_searcher_that_leaves_wakes_a_thread_for_the_rest() {
    for takes in [false, true] {
        let (clock, queue) = queue();
        let follower = taker(&clock, &queue);
        clock.run_until_idle();
        assert_eq!(clock.sleepers(), [Timestamp::NEVER]);
        let is_first = Cell::new(true);
        let limit = |since| {
            if is_first.take() {
                queue.put(at(20), 'b').expect("it is open");
                if takes {
                    queue.put(since, 'a').expect("it is open");
                }
            }
            Some(if takes { Timestamp::NEVER } else { since })
        };
        let taken = queue.take_until_by(Parker::current, limit);
        assert_eq!(taken.map(|(entry, _)| entry.element), takes.then_some('a'));
        clock.run_until_idle();
        assert_eq!(clock.sleepers(), [at(20)], "the follower leads now");
        clock.advance(Duration::from_nanos(20));
        assert_eq!(results(&[follower], 1), [Some('b')]);
    }
}

/// Elements that are due together are taken together; the takers wait for each other before they leave.
#[test]
fn elements_that_are_due_together_wake_as_many_threads() {
    let (clock, queue) = queue();
    let meeting = Arc::new(Barrier::new(3));
    let takers: Vec<_> = (0..3)
        .map(|_| {
            let (queue, meeting) = (Arc::clone(&queue), Arc::clone(&meeting));
            worker(&clock, move || {
                queue.take();
                meeting.wait();
            })
        })
        .collect();
    clock.run_until_idle();
    (0..3).for_each(|n| assert!(queue.put(at(10), n).is_ok()));
    clock.run_until_idle();
    clock.advance(Duration::from_nanos(10));
    assert_eq!(results(&takers, 3).len(), 3);
}

/// F35: another thread is armed for an element that is nearer than the leader's, and the leader still waits for its
/// own.
#[test]
fn a_nearer_element_wakes_a_follower_and_the_leader_becomes_the_deputy() {
    let (clock, queue) = queue();
    let takers: Vec<_> = (0..2).map(|_| taker(&clock, &queue)).collect();
    queue.put(at(100), 'z').expect("it is open");
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(100), Timestamp::NEVER]);
    queue.put(at(10), 'a').expect("it is open");
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(10), at(100)]);
    clock.advance(Duration::from_nanos(10));
    assert_eq!(results(&takers, 1), [Some('a')]);
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(100)]);
    clock.advance(Duration::from_nanos(90));
    assert_eq!(results(&takers, 1), [Some('z')]);
}

/// F23: an offer wakes a thread only if the element becomes the head; a removal wakes none.
#[test]
fn later_offers_and_removals_wake_no_thread() {
    let (clock, queue) = queue();
    let takers: Vec<_> = (0..3).map(|_| taker(&clock, &queue)).collect();
    clock.run_until_idle();
    let head = queue.put(at(10), 0_u64).expect("it is open");
    clock.run_until_idle();
    let parks = clock.parks();
    let offer = |n| queue.put(at(10 + n), n).expect("it is open");
    let tickets: Vec<_> = (0..100).map(offer).collect();
    assert_eq!(queue.remove(head), Some(0));
    assert!(tickets.into_iter().all(|ticket| queue.remove(ticket).is_some()));
    // The leader wakes only at its own limit, which is still the deadline of the first head.
    queue.put(at(11), 1).expect("it is open");
    clock.run_until_idle();
    assert_eq!(clock.parks(), parks);
    clock.advance(Duration::from_nanos(11));
    assert_eq!(results(&takers, 1), [Some(1)]);
    queue.close(Admission::CLOSED);
    results(&takers, 2);
}

#[test]
fn a_poll_that_gives_up_passes_leadership_on() {
    let (clock, queue) = queue::<char>();
    let poller = {
        let queue = Arc::clone(&queue);
        worker(&clock, move || queue.poll_timeout(Duration::from_nanos(5)).is_some())
    };
    clock.run_until_idle();
    queue.put(at(100), 'z').expect("it is open");
    clock.run_until_idle();
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(5), Timestamp::NEVER]);
    clock.advance(Duration::from_nanos(5));
    assert!(!receive(&poller, "it returns"));
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(100)]);
    clock.advance(Duration::from_nanos(95));
    assert_eq!(receive(&taker, "it returns"), Some('z'));
}

#[test]
fn a_poll_with_a_limit_takes_what_falls_due_within_it() {
    let (clock, queue) = queue();
    queue.put(at(3), 'a').expect("it is open");
    let poller = {
        let queue = Arc::clone(&queue);
        worker(&clock, move || queue.poll_timeout(LONG).map(|(entry, now)| (entry.element, now)))
    };
    clock.run_until_idle();
    clock.advance(Duration::from_nanos(4));
    assert_eq!(receive(&poller, "it returns"), Some(('a', at(4))));
}

/// DQ-067: a thread that waits for an element does not hold it.
#[test]
fn a_waiting_thread_holds_nothing() {
    let (clock, queue) = queue();
    let element = Arc::new(());
    let witness: Weak<()> = Arc::downgrade(&element);
    let ticket = queue.put(at(10), element).expect("it is open");
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(10)]);
    drop(queue.remove(ticket));
    assert!(witness.upgrade().is_none());
    queue.close(Admission::CLOSED);
    assert_eq!(receive(&taker, "it returns"), None);
}

#[test]
fn resetting_to_a_nearer_deadline_wakes_the_leader() {
    let (clock, queue) = queue();
    let ticket = queue.put(at(100), 'a').expect("it is open");
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    assert_eq!(queue.reset_to(ticket, at(10)), Some(ticket));
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(10)]);
    assert_eq!(queue.deadline(ticket), Some(at(10)));
    clock.advance(Duration::from_nanos(10));
    assert_eq!(receive(&taker, "it returns"), Some('a'));
    assert_eq!(queue.reset_to(ticket, at(20)), None);
    assert_eq!(queue.deadline(ticket), None);
}

#[test]
fn a_closed_queue_refuses_offers_and_is_taken_to_its_end() {
    let (clock, queue) = queue();
    queue.put(at(10), 'a').expect("it is open");
    queue.put(at(20), 'b').expect("it is open");
    let takers: Vec<_> = (0..3).map(|_| taker(&clock, &queue)).collect();
    clock.run_until_idle();
    queue.close(Admission::CLOSED);
    assert!(matches!(queue.put(at(5), 'c'), Err(RefusedElement { element: 'c', .. })));
    assert!(matches!(
        queue.requeue(at(5).into(), 0, Requeue::NextRun, 'c'),
        Err(RefusedElement { element: 'c', .. })
    ));
    clock.run_until_idle();
    clock.advance(Duration::from_nanos(20));
    let mut taken = results(&takers, 3);
    taken.sort_unstable();
    assert_eq!(taken, [None, Some('a'), Some('b')]);
}

#[test]
fn removing_the_last_element_of_a_closed_queue_ends_the_wait() {
    let (clock, queue) = queue();
    let ticket = queue.put(at(10), 'a').expect("it is open");
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    queue.close(Admission::CLOSED);
    clock.run_until_idle();
    assert_eq!(queue.remove(ticket), Some('a'));
    assert_eq!(receive(&taker, "it returns"), None);
}

#[test]
fn a_taken_element_may_return_until_the_queue_is_fully_closed() {
    let (clock, queue) = queue();
    queue.put(at(1), 'a').expect("it is open");
    queue.put(at(50), 'b').expect("it is open");
    clock.advance(Duration::from_nanos(1));
    let entry = queue.try_take().expect("it is due");
    queue.close(Admission::only([Requeue::NextRun]));
    assert!(queue.put(at(2), 'c').is_err());
    let (ticket, _) =
        queue.requeue(at(50).into(), entry.sequence, Requeue::NextRun, 'a').expect("it may return");
    clock.advance(Duration::from_nanos(49));
    assert_eq!(queue.try_take().map(|e| e.element), Some('a'), "it keeps its seniority");
    assert_eq!(queue.remove(ticket), None);
    let unwanted = queue.remove_where(&mut |_, element| *element == 'b');
    assert_eq!(unwanted.len(), 1);
    queue.close(Admission::CLOSED);
    assert!(queue.requeue(at(2).into(), entry.sequence, Requeue::NextRun, 'a').is_err());
    // A closed queue never opens again.
    queue.close(Admission(0));
    assert!(queue.put(at(2), 'c').is_err());
}

#[test]
fn drain_takes_everything() {
    let (_, queue) = queue();
    (0..1_000).for_each(|n| assert!(queue.put(at(n), n).is_ok()));
    let mut drained = queue.drain();
    let mut elements = Vec::from_iter(drained.next().map(|entry| entry.element));
    assert_eq!((drained.len(), queue.len()), (999, 0));
    elements.extend(drained.take_chunks().into_iter().flatten().flatten());
    elements.sort_unstable();
    assert_eq!(elements, (0..1_000).collect::<Vec<_>>());
}

/// A queue has at least one stripe, and no more than a sequence can name.
#[test]
fn a_queue_has_the_requested_number_of_stripes() {
    let stripes = |asked| {
        let clock = Clock::from(ManualClock::from_zero());
        DelayedWorkQueue::<()>::new(clock, asked, Duration::ZERO).stripes()
    };
    assert_eq!([0, 1, 4, 16, 17].map(stripes), [1, 1, 4, 16, 16]);
}

/// A sequence is used once, even if it was drawn without an element.
#[test]
fn a_sequence_is_unique_and_in_the_order_of_submission() {
    let (clock, queue) = queue();
    let now = Clock::from(clock).read();
    let offer = || queue.offer_at(2, now, at(10), 'a').expect("it is open").sequence;
    let numbers = [offer(), queue.next_sequence(2, now), queue.next_sequence(2, now), offer()];
    assert!(numbers.is_sorted_by(|before, after| before < after), "{numbers:?}");
    assert!(numbers.into_iter().all(|number| number & 15 == 2), "the stripe's number");
}

/// A caller that sheds load removes the element that would be taken first, due or not.
#[test]
fn remove_first_removes_the_head_due_or_not() {
    let (_, queue) = queue();
    assert!(queue.seems_empty() && queue.remove_first().is_none());
    for (stripe, nanos) in [(1, 30), (2, 10), (3, 20)] {
        queue.offer_at(stripe, at(1), at(nanos), nanos).expect("it is open");
    }
    assert!(!queue.seems_empty());
    let removed: Vec<_> = std::iter::from_fn(|| queue.remove_first()).collect();
    assert_eq!(removed.into_iter().map(|entry| entry.element).collect::<Vec<_>>(), [10, 20, 30]);
    assert!(queue.seems_empty() && !queue.is_closed());
    queue.close(Admission(0));
    assert!(!queue.is_closed(), "the call closes nothing");
    queue.close(Admission::only([Requeue::NextRun]));
    assert!(queue.is_closed());
}

/// M106: each step is counted where it is made, by the list or by a stripe.
#[test]
fn the_counts_match_what_was_offered_taken_and_removed() {
    let (clock, queue) = queue();
    let offer =
        |stripe, nanos| queue.offer_at(stripe, at(1), at(nanos), nanos).expect("it is open");
    let tickets: Vec<_> = (10..15).map(|nanos| offer(0, nanos)).collect();
    let far = offer(2, 100);
    clock.advance(Duration::from_nanos(50));
    let first = queue.try_take().expect("it is due");
    queue
        .requeue(at(200).into(), first.sequence, Requeue::NextRun, first.element)
        .expect("it is open");
    assert!(queue.remove(tickets[1]).is_some() && queue.remove(far).is_some());
    let (counts, meanwhile) = queue.counts(|| "meanwhile");
    assert_eq!(counts, QueueCounts { len: 4, offered: 6, requeued: 1, taken: 1 });
    assert_eq!((counts.removed(), meanwhile), (2, "meanwhile"));
}

/// ST-002: each element wakes about one of three hundred polling threads.
#[test]
fn each_element_wakes_about_one_of_many_consumers() {
    const ELEMENTS: usize = 1_000;
    const CONSUMERS: usize = 300;
    let (clock, queue) = queue();
    let limit = Duration::from_secs(10);
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|_| {
            let queue = Arc::clone(&queue);
            worker(&clock, move || std::iter::from_fn(|| queue.poll_timeout(limit)).count())
        })
        .collect();
    clock.run_until_idle();
    let step = Duration::from_nanos(10);
    (1..=ELEMENTS as u64).for_each(|n| drop(queue.put(at(10 * n), n)));
    clock.run_until_idle();
    let parks = clock.parks();
    for _ in 0..ELEMENTS {
        clock.advance(step);
        clock.run_until_idle();
    }
    assert_eq!(queue.len(), 0);
    let wake_ups = clock.parks() - parks;
    assert!(wake_ups <= 2 * ELEMENTS, "{wake_ups} wake-ups for {ELEMENTS} elements");
    clock.advance(limit);
    let taken: usize = consumers.iter().map(|it| it.recv().expect("it times out")).sum();
    assert_eq!(taken, ELEMENTS);
}
