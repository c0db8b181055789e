//! The order in which elements come out while several threads offer into several stripes.

use std::sync::Barrier;

use super::*;

/// The number of different deadlines in tests where many are to be equal.
const DEADLINES: usize = 4;

/// The number of completed offers of each submitter at some moment.
type Over = [u64; 3];

/// An offered element, with enough to tell later what preceded it.
#[derive(Clone, Copy, Debug)]
struct Offered {
    by: usize,
    number: u64,
    deadline: u64,
    /// When the offer began.
    before: Over,
}

/// Lets `submitters` threads offer elements, all of them due, while one thread takes. Returns each
/// element taken with the offers that were complete when that `take` began. The submitters wait
/// while more than `backlog` elements are pending.
fn taken_while_offered(
    queue: &AnyQueue<Offered>,
    submitters: usize,
    each: u64,
    stripe: fn(usize, &mut Dice) -> usize,
    backlog: u64,
) -> Vec<(Offered, Over)> {
    let over = [const { AtomicU64::new(0) }; 3];
    let over_now = || over.each_ref().map(|count| count.load(Ordering::SeqCst));
    let taken = AtomicU64::new(0);
    let submit = |by: usize| {
        let mut dice = Dice::new();
        for number in 0..each {
            until(|| over_now().iter().sum::<u64>() <= taken.load(Ordering::SeqCst) + backlog);
            let stripe = stripe(by, &mut dice) % queue.stripes();
            let deadline = 1 + dice.below(DEADLINES as u64);
            let element = Offered { by, number, deadline, before: over_now() };
            let now = queue.clock().read();
            assert!(queue.offer(stripe, now, at(deadline), element).is_ok());
            over[by].store(number + 1, Ordering::SeqCst);
        }
    };
    let take = |_| {
        let over = over_now();
        let entry = queue.take().map(|(entry, _)| entry);
        taken.fetch_add(1, Ordering::SeqCst);
        entry.map(|entry| (entry.element, over))
    };
    thread::scope(|scope| {
        let _end = End(queue);
        for by in 0..submitters {
            let submit = &submit;
            scope.spawn(move || submit(by));
        }
        (0..each * submitters as u64).map(take).collect::<Option<_>>().expect("it is open")
    })
}

/// Asserts that no element was taken before one that had been submitted earlier and is due no
/// later, nor before one that was in the queue when the `take` began and is due earlier.
fn assert_in_order(taken: &[(Offered, Over)]) {
    // For each submitter and deadline: the first element that was taken later.
    let mut later = [[u64::MAX; DEADLINES]; 3];
    for (one, over) in taken.iter().rev() {
        let own = one.deadline as usize - 1;
        for (by, later) in later.iter().enumerate() {
            let first = later[..=own].iter().find(|first| **first < one.before[by]);
            assert_eq!(first, None, "of {by} was submitted before {one:?}");
            let first = later[..own].iter().find(|first| **first < over[by]);
            assert_eq!(first, None, "of {by} was there when {one:?} was taken");
        }
        later[one.by][own] = one.number;
    }
}

/// Returns a manual clock on which all [`DEADLINES`] have passed.
fn late() -> Clock {
    let clock = ManualClock::from_zero();
    clock.advance(Duration::from_nanos(DEADLINES as u64));
    Clock::from(clock)
}

/// One thread takes while others offer, each into its own stripe or one into all: an element that
/// was submitted earlier and is due no later comes first.
#[test]
fn an_earlier_submission_due_no_later_comes_first() {
    for clock in [Clock::system(), late()] {
        for (stripes, backlog) in [(1, 4), (1, 100), (STRIPES, 1), (STRIPES, 4), (STRIPES, 100)] {
            let clock = clock.clone();
            in_time(move || {
                let queue = queue_on(&clock, stripes);
                assert_in_order(&taken_while_offered(&queue, 3, 200, |by, _| by, backlog));
                let queue = queue_on(&clock, stripes);
                let any = |_, dice: &mut Dice| dice.stripe();
                assert_in_order(&taken_while_offered(&queue, 1, 600, any, backlog));
            });
        }
    }
}

/// A thread has read the heads and waits for the lock of the nearest. Meanwhile A arrives in
/// another stripe and then B in this one: the thread finds B there, and yet takes A.
#[test]
fn an_element_offered_between_look_and_lock_is_seen() {
    const ROUNDS: u64 = 300;
    let (clock, mut dice) = (late(), Dice::new());
    let queue = striped_on(&clock);
    let [begun, looking, offered, over] = [const { AtomicU64::new(0) }; 4];
    let offer = |stripe, deadline, name: char| {
        assert!(queue.offer_at(stripe, clock.read(), at(deadline), name).is_ok());
    };
    let submit = |round| {
        let stripe = dice.stripe();
        let other = (stripe + 1 + dice.below(STRIPES as u64 - 1) as usize) % STRIPES;
        offer(stripe, 3, 'C');
        // This closure is called under the lock of C's stripe, and perhaps later under that of A's.
        queue.remove_where(&mut |_, name| {
            if *name == 'C' {
                begun.store(round, Ordering::SeqCst);
                until(|| looking.load(Ordering::SeqCst) == round);
                dice.dawdle();
                let deadline = 1 + dice.below(2);
                // This runs on a thread of its own because the calling one holds a stripe's lock, which may come later
                // in the order.
                thread::scope(|scope| _ = scope.spawn(|| offer(other, deadline, 'A')));
            }
            false
        });
        offer(stripe, 2, 'B');
        offered.store(round, Ordering::SeqCst);
        until(|| over.load(Ordering::SeqCst) == round);
    };
    let take = |round| {
        until(|| begun.load(Ordering::SeqCst) == round);
        looking.store(round, Ordering::SeqCst);
        let first = queue.take();
        until(|| offered.load(Ordering::SeqCst) == round);
        let all = [first, queue.take(), queue.take()];
        over.store(round, Ordering::SeqCst);
        all.into_iter().flatten().map(|(entry, _)| entry.element).collect()
    };
    let taken: Vec<String> = thread::scope(|scope| {
        let taker = scope.spawn(|| (1..=ROUNDS).map(take).collect());
        (1..=ROUNDS).for_each(submit);
        taker.join().expect("no panic")
    });
    assert_eq!(taken, vec!["ABC"; taken.len()]);
}

/// Threads offer in turn, each into a stripe of its own: equal deadlines come out in turn, whether
/// a thread takes from the beginning or later.
#[test]
fn equal_deadlines_of_several_stripes_come_out_in_the_order_of_submission() {
    const ALL: u64 = 400;
    for clock in [Clock::system(), late()] {
        for begin in [0, ALL / 2, ALL] {
            let clock = clock.clone();
            in_time(move || {
                let queue = queue_on(&clock, STRIPES);
                let turn = AtomicU64::new(0);
                let submit = |stripe: usize| {
                    for number in (stripe as u64..ALL).step_by(STRIPES) {
                        until(|| turn.load(Ordering::SeqCst) == number);
                        assert!(queue.offer(stripe, clock.read(), at(1), number).is_ok());
                        turn.store(number + 1, Ordering::SeqCst);
                    }
                };
                let taken: Vec<_> = thread::scope(|scope| {
                    let _end = End(&queue);
                    for stripe in 0..STRIPES {
                        let submit = &submit;
                        scope.spawn(move || submit(stripe));
                    }
                    until(|| turn.load(Ordering::SeqCst) >= begin);
                    (0..ALL).filter_map(|_| queue.take()).map(|(entry, _)| entry.element).collect()
                });
                assert!(taken.into_iter().eq(0..ALL));
            });
        }
    }
}

/// Elements that several threads offered at once come out by deadline, and then by sequence.
#[test]
fn concurrently_offered_elements_come_out_sorted() {
    const EACH: u64 = 300;
    let clock = ManualClock::from_zero();
    let queue = queue_on(&Clock::from(clock.clone()), STRIPES);
    let start = Barrier::new(STRIPES);
    thread::scope(|scope| {
        for stripe in 0..STRIPES {
            let (queue, start) = (&queue, &start);
            scope.spawn(move || {
                let mut dice = Dice::new();
                start.wait();
                for _ in 0..EACH {
                    let deadline = at(dice.below(100));
                    let ticket = queue.offer(stripe, at(0), deadline, ()).expect("it is open");
                    // Some are removed again, and some are reset.
                    match dice.below(8) {
                        0 => assert!(queue.remove(ticket).is_some()),
                        1 => assert!(queue.reset(ticket, at(dice.below(100))).is_some()),
                        _ => {}
                    }
                }
            });
        }
    });
    clock.advance(Duration::from_nanos(100));
    let len = queue.len();
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_take()).collect();
    assert_eq!(taken.len(), len);
    assert!(taken.is_sorted_by_key(|entry| (entry.deadline, entry.sequence)));
}
