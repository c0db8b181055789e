//! The ready list: its entries are still pending, and in order with all others.

use super::*;
use crate::{
    ManualClock,
    entry::Requeue,
    patience::{LONG, receive},
    queue::{
        Admission, Source,
        striped::BATCH,
        tests::{Queue, at, queue, taker},
    },
};

/// A queue in which all elements were put into one stripe and are due in this order. The first has
/// been taken, so the others are on the ready list.
fn with_ready<const N: usize>(elements: [char; N]) -> (ManualClock, Queue<char>, Vec<Ticket>) {
    let (clock, queue) = queue();
    let offer = |(n, element)| queue.offer_at(0, at(1), at(10 + n as u64), element);
    let tickets = elements.into_iter().enumerate().map(|numbered| offer(numbered).expect("open"));
    let tickets = tickets.collect();
    clock.advance(Duration::from_nanos(50));
    assert_eq!(queue.try_take().map(|entry| entry.element), Some(elements[0]));
    assert_eq!(queue.ready.lock().len(), N - 1);
    (clock, queue, tickets)
}

fn rest(queue: &DelayedWorkQueue<char>) -> String {
    std::iter::from_fn(|| queue.try_take()).map(|entry| entry.element).collect()
}

/// M99, M105.
#[test]
fn a_ready_entry_is_still_pending() {
    let (_, queue, tickets) = with_ready(['a', 'b', 'c', 'd']);
    let listed = queue.snapshot();
    assert_eq!(listed.iter().map(|one| one.element).collect::<String>(), "bcd");
    assert_eq!(queue.len(), 3);
    assert_eq!(queue.deadline(tickets[0]), None);
    assert_eq!(queue.deadline(tickets[2]), Some(at(12)));
    assert_eq!(queue.remove(tickets[2]), Some('c'));
    assert_eq!(queue.remove(tickets[2]), None);
    assert_eq!(queue.deadline(tickets[2]), None);
    assert_eq!(queue.len(), 2);
    assert_eq!(rest(&queue), "bd");
}

#[test]
fn a_nearer_entry_goes_first() {
    let (_, queue, _) = with_ready(['a', 'b', 'c']);
    for (stripe, deadline, element) in [(1, 12, 'z'), (0, 11, 'y'), (2, 10, 'x'), (3, 9, 'w')] {
        queue.offer_at(stripe, at(50), at(deadline), element).expect("it is open");
    }
    assert_eq!(rest(&queue), "wxbycz");
}

#[test]
fn among_equal_deadlines_the_first_submitted_goes_first() {
    let (_, queue, _) = with_ready(['a', 'b']);
    // This entry was submitted before the others but arrives only now, in stripe 3.
    queue.requeue(at(11).into(), 3, Requeue::NextRun, 'x').expect("it is open");
    queue.offer_at(1, at(50), at(11), 'y').expect("it is open");
    assert_eq!(rest(&queue), "xby");
}

/// The same holds if heads on the list and in two stripes are equal, so that all locks are taken.
#[test]
fn equal_deadlines_in_stripes_and_list_go_in_submission_order() {
    let (_, queue, _) = with_ready(['a', 'b']);
    queue.offer_at(1, at(50), at(11), 'x').expect("it is open");
    queue.offer_at(2, at(50), at(11), 'y').expect("it is open");
    assert_eq!(rest(&queue), "bxy");
}

/// M102: the thread that put an entry on the list may have read the clock later than the one that
/// takes it.
#[test]
fn a_ready_entry_is_taken_by_a_thread_that_sees_it_due() {
    let (_, queue, _) = with_ready(['a', 'b']);
    assert!(queue.ready.lock().pop_due(at(10), u64::MAX).is_none());
    assert_eq!(queue.ready.lock().pop_due(at(11), u64::MAX).map(|entry| entry.element), Some('b'));
}

fn paused_until<E>(queue: &DelayedWorkQueue<E>) -> Timestamp {
    Timestamp::from_nanos(queue.ready.pause.load(Ordering::Relaxed))
}

/// M107: a single entry is no sign of a stream, and a full batch keeps submitter and taker apart
/// anyway.
#[test]
fn the_stripes_are_paused_after_a_few_entries_but_not_after_one_or_a_full_batch() {
    for (count, is_paused) in [(1, false), (2, true), (BATCH, true), (BATCH + 1, false)] {
        let (clock, queue) = queue();
        (0..count).for_each(|n| drop(queue.offer_at(0, at(1), at(10), n)));
        clock.advance(Duration::from_nanos(50));
        assert!(queue.try_take().is_some());
        assert_eq!(queue.ready.lock().len(), count - 1);
        let until = if is_paused { at(3_050) } else { at(0) };
        assert_eq!(paused_until(&queue), until, "{count}");
    }
    // An element that is taken while the list has entries starts no pause either.
    let (clock, queue, _) = with_ready(['a', 'b']);
    queue.offer_at(1, at(50), at(9), 'z').expect("it is open");
    clock.advance(Duration::from_nanos(1));
    assert_eq!(queue.try_take().map(|entry| entry.element), Some('z'));
    assert_eq!(paused_until(&queue), at(3_050));
}

/// M100, M107: a taker waits for the end of a pause, unless the list has entries or the clock is a manual one, which
/// would never end it.
#[test]
fn a_taker_waits_for_the_end_of_a_pause() {
    let (manual, queue, tickets) = with_ready(['a', 'b']);
    let system = Clock::system();
    let now = system.read();
    queue.ready.pause_after(now.after(LONG));
    assert!(queue.ready.pause(&system) < now.after(LONG), "the list has an entry to take");
    assert_eq!(queue.remove(tickets[1]), Some('b'));
    assert_eq!(queue.ready.pause(&Clock::from(manual)), at(50), "a manual clock would not end it");
    queue.ready.pause_after(system.read());
    let end = paused_until(&queue);
    assert!(queue.ready.pause(&system) >= end);
}

#[test]
fn a_ready_entry_can_be_reset_to_another_deadline() {
    let (clock, queue, tickets) = with_ready(['a', 'b', 'c', 'd']);
    let later = queue.reset_to(tickets[1], at(100)).expect("it is ready");
    assert_eq!(queue.deadline(later), Some(at(100)));
    let nearer = queue.reset_to(tickets[3], at(5)).expect("it is ready");
    assert_eq!(queue.deadline(nearer), Some(at(5)));
    assert_eq!(queue.reset_to(tickets[0], at(5)), None);
    assert_eq!(rest(&queue), "dc");
    clock.advance(Duration::from_nanos(50));
    assert_eq!(rest(&queue), "b");
}

#[test]
fn a_closed_queue_is_not_finished_before_it_is_empty() {
    let (clock, queue, tickets) = with_ready(['a', 'b']);
    queue.close(Admission::CLOSED);
    assert!(!queue.is_finished());
    let later = queue.reset_to(tickets[1], at(100)).expect("it is ready");
    assert!(!queue.is_finished());
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    assert_eq!(queue.remove(later), Some('b'));
    assert_eq!(receive(&taker, "it returns"), None);
    assert!(queue.is_finished());
}

/// M101.
#[test]
fn ready_entries_are_drained_and_removed_with_the_others() {
    let (_, queue, _) = with_ready(['a', 'b', 'c', 'd']);
    queue.offer_at(1, at(50), at(60), 'e').expect("it is open");
    let removed =
        queue.remove_where(&mut |deadline, element| deadline == at(11) || *element == 'd');
    assert_eq!(removed.iter().map(|entry| entry.element).collect::<String>(), "bd");
    assert_eq!(queue.ready.head(), at(12));
    let drained = queue.drain();
    assert_eq!(drained.len(), 2);
    assert_eq!(drained.map(|entry| entry.element).collect::<String>(), "ce");
    assert_eq!((queue.len(), queue.ready.head()), (0, Timestamp::NEVER));
}
