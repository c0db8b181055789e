//! Which thread takes the next element while others are away: exact tests on the manual clock, which hold in whatever
//! order things happen.

use super::*;
use crate::ManualClock;

/// The result of a call of `take`.
type Taken = Option<(QueueEntry<()>, Timestamp)>;

/// Threads that take one element each and then stay away until they are called back. At first all are away.
struct Takers {
    clock: ManualClock,
    queue: Arc<AnyQueue<()>>,
    /// The number of each thread that came back, and what it took.
    returns: mpsc::Receiver<(usize, Taken)>,
    calls: Vec<mpsc::Sender<()>>,
    /// The numbers of the threads that are away.
    away: Vec<usize>,
}

impl Takers {
    fn new(size: usize) -> Self {
        let clock = ManualClock::from_zero();
        let queue = Arc::new(queue_on(&Clock::from(clock.clone()), STRIPES));
        let (tell, returns) = mpsc::channel();
        let spawn = |number| {
            let (call, called) = mpsc::channel();
            let (queue, tell, clock) = (Arc::clone(&queue), tell.clone(), queue.clock().clone());
            #[allow(clippy::disallowed_methods, reason = "a test")]
            thread::spawn(move || {
                clock.worker_begins(&Parker::current());
                // The thread that calls another back also registers it with the clock.
                while called.recv().is_ok() {
                    let _ = tell.send((number, queue.take()));
                    clock.worker_ended();
                }
            });
            call
        };
        let calls = (0..size).map(spawn).collect();
        Self { clock, queue, returns, calls, away: (0..size).collect() }
    }

    /// Makes `size` threads that found elements due at 10 and 20: a leader, a deputy, perhaps followers.
    fn waiting(size: usize) -> Self {
        let mut takers = Self::new(size);
        takers.put(0, 10);
        takers.put(1, 20);
        (0..size).for_each(|_| takers.call_back());
        assert_eq!(takers.armed(), [10, 20]);
        takers
    }

    /// Lets the thread that has been away longest take again.
    fn call_back(&mut self) {
        let number = self.away.remove(0);
        self.queue.clock().worker_starts();
        assert!(self.calls[number].send(()).is_ok());
        self.clock.run_until_idle();
    }

    fn put(&self, stripe: usize, deadline: u64) -> Ticket {
        let now = self.queue.clock().read();
        let ticket = self.queue.offer(stripe, now, at(deadline), ()).expect("it is open");
        self.clock.run_until_idle();
        ticket
    }

    /// Returns the deadlines and sequences of the elements taken since the last call.
    fn taken(&mut self) -> Vec<(u64, u64)> {
        self.clock.run_until_idle();
        let mut keys = Vec::new();
        for (number, taken) in self.returns.try_iter() {
            self.away.push(number);
            keys.extend(taken.map(|(entry, moment)| {
                assert_eq!(moment, self.queue.clock().read());
                (entry.deadline.as_nanos(), entry.sequence)
            }));
        }
        keys.sort_unstable();
        keys
    }

    /// Advances the clock and returns the deadlines of the elements taken then.
    fn taken_after(&mut self, nanos: u64) -> Vec<u64> {
        self.clock.advance(Duration::from_nanos(nanos));
        self.taken().into_iter().map(|(deadline, _)| deadline).collect()
    }

    /// Returns the deadlines of the sleepers that have a deadline.
    fn armed(&self) -> Vec<u64> {
        let sleepers = self.clock.sleepers().into_iter();
        sleepers.filter(|until| *until < Timestamp::NEVER).map(Timestamp::as_nanos).collect()
    }
}

impl Drop for Takers {
    fn drop(&mut self) {
        drop(End(&self.queue));
    }
}

/// The deputy is armed before the leader leaves, so no thread is woken then.
#[test]
fn the_deputy_takes_the_next_one_while_the_leader_is_away() {
    for size in [2, 3] {
        let mut takers = Takers::waiting(size);
        let parks = takers.clock.parks();
        assert_eq!(takers.taken_after(10), [10]);
        assert_eq!((takers.armed(), takers.clock.parks()), (vec![20], parks));
        assert_eq!(takers.taken_after(9), [0; 0]);
        assert_eq!(takers.taken_after(1), [20]);
    }
}

/// An element between the leader's and the deputy's wakes no thread. When the leader leaves with its own, a thread is
/// armed for that element.
#[test]
fn an_element_before_the_deputys_is_taken_in_time() {
    for (size, armed) in [(2, vec![15]), (3, vec![15, 20])] {
        let mut takers = Takers::waiting(size);
        let parks = takers.clock.parks();
        takers.put(2, 15);
        assert_eq!((takers.armed(), takers.clock.parks()), (vec![10, 20], parks));
        assert_eq!(takers.taken_after(10), [10]);
        assert_eq!(takers.armed(), armed);
        assert_eq!(takers.taken_after(5), [15]);
        takers.call_back();
        assert_eq!(takers.taken_after(5), [20]);
    }
}

/// The same holds if the element arrives only once the leader is away.
#[test]
fn an_element_offered_while_the_leader_is_away_is_taken_in_time() {
    for (size, armed) in [(2, vec![15]), (3, vec![15, 20])] {
        let mut takers = Takers::waiting(size);
        assert_eq!(takers.taken_after(10), [10]);
        takers.put(2, 15);
        assert_eq!(takers.armed(), armed);
        assert_eq!(takers.taken_after(5), [15]);
        takers.call_back();
        assert_eq!(takers.taken_after(5), [20]);
    }
}

/// Takers return when only requeued elements are admitted and none is in the queue. They no longer count as searching.
#[test]
fn elements_that_return_to_a_finished_queue_are_taken_in_time() {
    let mut takers = Takers::new(3);
    takers.put(0, 0);
    takers.put(1, 0);
    let mut entries = std::iter::from_fn(|| takers.queue.try_take()).collect::<Vec<_>>();
    (0..3).for_each(|_| takers.call_back());
    takers.queue.close(Admission::only([Requeue::NextRun]));
    assert_eq!(takers.taken(), []);
    assert_eq!(takers.away.len(), 3);
    for deadline in [50, 20] {
        let QueueEntry { sequence, .. } = entries.pop().expect("there were two");
        let AnyQueue::Striped(queue) = &*takers.queue else {
            unreachable!("it has several stripes")
        };
        let (_, waker) =
            queue.requeue(at(deadline).into(), sequence, Requeue::NextRun, ()).expect("it returns");
        wake_all(waker);
        if deadline == 50 {
            takers.call_back();
        }
        takers.clock.run_until_idle();
        assert_eq!(takers.armed(), [deadline]);
    }
    assert_eq!(takers.taken_after(20), [20]);
}

/// Whatever is offered, removed and reset, and whichever threads are away: the threads present take
/// as many of the due elements as they can, the earliest first, and one of them is armed for the
/// next.
#[test]
fn the_threads_present_take_the_earliest_due_elements() {
    const TAKERS: usize = 3;
    let seed = RandomState::new().hash_one(());
    let (mut dice, mut takers) = (Dice(seed), Takers::new(TAKERS));
    let mut waiting: Vec<(u64, Ticket)> = Vec::new();
    for step in 0..300 {
        let deadline = takers.queue.clock().read().as_nanos() + dice.below(20);
        let one = dice.below(1 + waiting.len() as u64) as usize;
        match dice.below(8) {
            0..3 => waiting.push((deadline, takers.put(dice.stripe(), deadline))),
            3 if one < waiting.len() => {
                assert!(takers.queue.remove(waiting.swap_remove(one).1).is_some());
            }
            4 if one < waiting.len() => {
                let ticket = takers.queue.reset(waiting[one].1, at(deadline));
                waiting[one] = (deadline, ticket.expect("it waits"));
            }
            5 | 6 if !takers.away.is_empty() => takers.call_back(),
            _ => takers.clock.advance(Duration::from_nanos(dice.below(12))),
        }
        let here = TAKERS - takers.away.len();
        let now = takers.queue.clock().read().as_nanos();
        let mut keys: Vec<_> = waiting.iter().map(|(at, ticket)| (*at, ticket.sequence)).collect();
        keys.sort_unstable();
        let due = keys.iter().filter(|(deadline, _)| *deadline <= now).count();
        let taken = takers.taken();
        assert_eq!(taken.len(), due.min(here), "step {step} of {seed}");
        let is_due = |key| keys[..taken.len()].contains(key);
        assert!(taken.iter().all(is_due), "step {step} of {seed}: {taken:?} of {keys:?}");
        waiting.retain(|(_, ticket)| taken.iter().all(|(_, gone)| *gone != ticket.sequence));
        if let Some((next, _)) = keys.get(due).filter(|_| due < here) {
            let is_awaited = takers.armed().first().is_some_and(|first| first <= next);
            assert!(is_awaited, "step {step} of {seed}");
        }
    }
}
