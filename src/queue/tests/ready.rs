//! The ready list: entries on it still wait, and are in order with all the others.

use super::*;

/// A queue in which all that was put into one stripe is due, in this order, and the first is
/// taken: the others are on the ready list.
fn with_ready<const N: usize>(elements: [char; N]) -> (ManualClock, Queue<char>, Vec<Ticket>) {
    let (clock, queue) = queue();
    let offer = |(n, element)| queue.offer(0, at(1), at(10 + n as u64), element);
    let tickets = elements.into_iter().enumerate().map(|numbered| offer(numbered).expect("open"));
    let tickets = tickets.collect();
    clock.advance(Duration::from_nanos(50));
    assert_eq!(queue.poll().map(|entry| entry.element), Some(elements[0]));
    assert_eq!(queue.ready.lock().len(), N - 1);
    (clock, queue, tickets)
}

fn rest(queue: &DelayedWorkQueue<char>) -> String {
    std::iter::from_fn(|| queue.poll()).map(|entry| entry.element).collect()
}

#[test]
fn what_is_ready_still_waits() {
    let (_, queue, tickets) = with_ready(['a', 'b', 'c', 'd']);
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
fn what_is_nearer_goes_first() {
    let (_, queue, _) = with_ready(['a', 'b', 'c']);
    for (stripe, deadline, element) in [(1, 12, 'z'), (0, 11, 'y'), (2, 10, 'x'), (3, 9, 'w')] {
        queue.offer(stripe, at(50), at(deadline), element).expect("it is open");
    }
    assert_eq!(rest(&queue), "wxbycz");
}

#[test]
fn among_equals_the_first_submitted_goes_first() {
    let (_, queue, _) = with_ready(['a', 'b']);
    // Submitted before the others, but it comes only now; in the stripe with the number 3.
    queue.offer_again(at(11), 3, 'x').expect("it is open");
    queue.offer(1, at(50), at(11), 'y').expect("it is open");
    assert_eq!(rest(&queue), "xby");
}

#[test]
fn it_can_be_moved_to_another_deadline() {
    let (clock, queue, tickets) = with_ready(['a', 'b', 'c', 'd']);
    let later = queue.reset(tickets[1], at(100)).expect("it is ready");
    assert_eq!(queue.deadline(later), Some(at(100)));
    let nearer = queue.reset(tickets[3], at(5)).expect("it is ready");
    assert_eq!(queue.deadline(nearer), Some(at(5)));
    assert_eq!(queue.reset(tickets[0], at(5)), None);
    assert_eq!(rest(&queue), "dc");
    clock.advance(Duration::from_nanos(50));
    assert_eq!(rest(&queue), "b");
}

#[test]
fn a_closed_queue_is_not_finished_before_it_is_empty() {
    let (clock, queue, tickets) = with_ready(['a', 'b']);
    queue.close(Admission::Closed);
    assert!(!queue.is_finished());
    let later = queue.reset(tickets[1], at(100)).expect("it is ready");
    assert!(!queue.is_finished());
    let taker = taker(&clock, &queue);
    clock.run_until_idle();
    assert_eq!(queue.remove(later), Some('b'));
    assert_eq!(taker.recv_timeout(LIMIT), Ok(None));
    assert!(queue.is_finished());
}

#[test]
fn it_is_drained_and_sifted_with_the_others() {
    let (_, queue, _) = with_ready(['a', 'b', 'c', 'd']);
    queue.offer(1, at(50), at(60), 'e').expect("it is open");
    let removed = queue.remove_where(|deadline, element| deadline == at(11) || *element == 'd');
    assert_eq!(removed.iter().map(|entry| entry.element).collect::<String>(), "bd");
    let drained = queue.drain();
    assert_eq!(drained.len(), 2);
    assert_eq!(drained.map(|entry| entry.element).collect::<String>(), "ce");
    assert_eq!(queue.len(), 0);
}
