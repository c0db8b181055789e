//! What threads take along in their hands, and then leave to others: nothing is lost with it.

use std::ops::Range;

use super::*;
use crate::sync::atomic::AtomicUsize;

const EACH: usize = 1_500;

/// A queue of numbers, and how often each has gone: was taken, removed or drained.
struct Stock {
    queue: DelayedWorkQueue<usize>,
    gone: [AtomicUsize; 2 * EACH],
    is_drained: AtomicBool,
}

impl Stock {
    fn count(&self, element: usize) {
        assert_eq!(self.gone[element].fetch_add(1, Ordering::SeqCst), 0, "twice");
    }

    fn take_all(&self, hand: usize) {
        let mut dice = Dice::new();
        loop {
            let was_drained = self.is_drained.load(Ordering::SeqCst);
            let Some((entry, _)) = self.queue.take(hand) else { break };
            assert!(!was_drained, "there was something left");
            self.count(entry.element);
            if dice.below(8) == 0 {
                dice.dawdle();
            }
        }
    }

    /// Offers these, and removes some that are still there.
    fn submit(&self, elements: Range<usize>) {
        let (mut dice, mut tickets) = (Dice::new(), Vec::new());
        for element in elements {
            let (now, stripe) = (self.queue.clock.now(), dice.stripe() % self.queue.stripes());
            let ticket = self.queue.offer(stripe, now, now, element).expect("it is open");
            tickets.push((ticket, element));
            if dice.below(4) == 0 {
                let recent = dice.below(tickets.len().min(20) as u64) as usize;
                let (ticket, element) = tickets[tickets.len() - 1 - recent];
                if let Some(removed) = self.queue.remove(ticket) {
                    assert_eq!(removed, element);
                    self.count(removed);
                }
            }
        }
    }

    fn drain(&self) {
        let drained = self.queue.drain();
        self.is_drained.store(true, Ordering::SeqCst);
        drained.for_each(|entry| self.count(entry.element));
    }
}

/// Threads offer, take, remove and drain at once: each element goes once, wherever it is just
/// then, and after the drain of a closed queue there is none.
#[test]
fn each_element_goes_once() {
    for (stripes, takers) in [(1, 1), (1, 2), (1, 3), (STRIPES, 2), (STRIPES, 3)] {
        in_time(move || {
            let stock = &Stock {
                queue: queue_on(&Clock::system(), stripes, takers),
                gone: [const { AtomicUsize::new(0) }; 2 * EACH],
                is_drained: AtomicBool::new(false),
            };
            thread::scope(|scope| {
                for hand in 0..takers {
                    scope.spawn(move || stock.take_all(hand));
                }
                let other = scope.spawn(|| stock.submit(0..EACH));
                stock.submit(EACH..2 * EACH);
                let _ = other.join();
                stock.queue.close(Admission::Closed);
                stock.drain();
            });
            assert!(stock.gone.iter().all(|count| count.load(Ordering::SeqCst) == 1));
        });
    }
}
