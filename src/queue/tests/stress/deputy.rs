//! Who takes the next element while others are away, on the manual clock: exactly, and in
//! whatever order things happen.

use super::*;
use crate::ManualClock;

/// What a call of `take` gives.
type Taken = Option<(Entry<()>, Timestamp)>;

/// Threads that take one element each and then stay away until they are called back, as they
/// are to begin with.
struct Crew {
    clock: ManualClock,
    queue: Arc<AnyQueue<()>>,
    /// Who came back, and with what.
    returns: mpsc::Receiver<(usize, Taken)>,
    calls: Vec<mpsc::Sender<()>>,
    /// Who is away.
    away: Vec<usize>,
}

impl Crew {
    fn new(size: usize) -> Self {
        let clock = ManualClock::from_zero();
        let queue = Arc::new(queue_on(&Clock::from(clock.clone()), STRIPES));
        let (tell, returns) = mpsc::channel();
        let hire = |number| {
            let (call, called) = mpsc::channel();
            let (queue, tell, clock) = (Arc::clone(&queue), tell.clone(), queue.clock().clone());
            #[allow(clippy::disallowed_methods, reason = "a test")]
            thread::spawn(move || {
                clock.worker_begins(&Parker::current());
                // Whoever calls a thread back also says to the clock that it works.
                while called.recv().is_ok() {
                    let _ = tell.send((number, queue.take()));
                    clock.worker_ended();
                }
            });
            call
        };
        let calls = (0..size).map(hire).collect();
        Self { clock, queue, returns, calls, away: (0..size).collect() }
    }

    /// A crew that found elements due at 10 and 20: a leader, a deputy, perhaps followers.
    fn that_waits(size: usize) -> Self {
        let mut crew = Self::new(size);
        crew.put(0, 10);
        crew.put(1, 20);
        (0..size).for_each(|_| crew.call_back());
        assert_eq!(crew.armed(), [10, 20]);
        crew
    }

    /// The one who is away longest takes again.
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

    /// The deadline and the sequence of what was taken since the last question, all of it just now.
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

    /// The deadlines of what is taken when time has moved on.
    fn taken_after(&mut self, nanos: u64) -> Vec<u64> {
        self.clock.advance(Duration::from_nanos(nanos));
        self.taken().into_iter().map(|(deadline, _)| deadline).collect()
    }

    /// Until when those sleep who have a limit.
    fn armed(&self) -> Vec<u64> {
        let sleepers = self.clock.sleepers().into_iter();
        sleepers.filter(|until| *until < Timestamp::NEVER).map(Timestamp::as_nanos).collect()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        drop(End(&self.queue));
    }
}

/// The deputy is armed before the leader leaves, so nobody is woken then.
#[test]
fn the_deputy_takes_the_next_one_while_the_leader_is_away() {
    for size in [2, 3] {
        let mut crew = Crew::that_waits(size);
        let parks = crew.clock.parks();
        assert_eq!(crew.taken_after(10), [10]);
        assert_eq!((crew.armed(), crew.clock.parks()), (vec![20], parks));
        assert_eq!(crew.taken_after(9), []);
        assert_eq!(crew.taken_after(1), [20]);
    }
}

/// What comes between the two wakes nobody; when the leader goes with the first, somebody is
/// armed for it.
#[test]
fn an_element_before_the_deputys_is_taken_in_time() {
    for (size, armed) in [(2, vec![15]), (3, vec![15, 20])] {
        let mut crew = Crew::that_waits(size);
        let parks = crew.clock.parks();
        crew.put(2, 15);
        assert_eq!((crew.armed(), crew.clock.parks()), (vec![10, 20], parks));
        assert_eq!(crew.taken_after(10), [10]);
        assert_eq!(crew.armed(), armed);
        assert_eq!(crew.taken_after(5), [15]);
        crew.call_back();
        assert_eq!(crew.taken_after(5), [20]);
    }
}

/// Also if it comes only when the leader is away.
#[test]
fn an_element_offered_while_the_leader_is_away_is_taken_in_time() {
    for (size, armed) in [(2, vec![15]), (3, vec![15, 20])] {
        let mut crew = Crew::that_waits(size);
        assert_eq!(crew.taken_after(10), [10]);
        crew.put(2, 15);
        assert_eq!(crew.armed(), armed);
        assert_eq!(crew.taken_after(5), [15]);
        crew.call_back();
        assert_eq!(crew.taken_after(5), [20]);
    }
}

/// Threads that were ended, because only elements that return were admitted and none was there,
/// are not counted as if they still looked.
#[test]
fn elements_that_return_to_a_finished_queue_are_taken_in_time() {
    let mut crew = Crew::new(3);
    crew.put(0, 0);
    crew.put(1, 0);
    let mut entries = std::iter::from_fn(|| crew.queue.try_take()).collect::<Vec<_>>();
    (0..3).for_each(|_| crew.call_back());
    crew.queue.close(Admission::Returning);
    assert_eq!(crew.taken(), []);
    assert_eq!(crew.away.len(), 3);
    for deadline in [50, 20] {
        let Entry { sequence, .. } = entries.pop().expect("there were two");
        let AnyQueue::Striped(queue) = &*crew.queue else { unreachable!("it has several stripes") };
        let (_, waker) = queue.offer_again(at(deadline), sequence, ()).expect("it returns");
        wake_all(waker);
        if deadline == 50 {
            crew.call_back();
        }
        crew.clock.run_until_idle();
        assert_eq!(crew.armed(), [deadline]);
    }
    assert_eq!(crew.taken_after(20), [20]);
}

/// Whatever is put, removed and moved, and whoever is away: as much as can be is taken of what is
/// due, what is due first, and one of those who are there is armed for what comes next.
#[test]
fn the_threads_present_take_the_earliest_due_elements() {
    const CREW: usize = 3;
    let seed = RandomState::new().hash_one(());
    let (mut dice, mut crew) = (Dice(seed), Crew::new(CREW));
    let mut waiting: Vec<(u64, Ticket)> = Vec::new();
    for step in 0..300 {
        let deadline = crew.queue.clock().read().as_nanos() + dice.below(20);
        let one = dice.below(1 + waiting.len() as u64) as usize;
        match dice.below(8) {
            0..3 => waiting.push((deadline, crew.put(dice.stripe(), deadline))),
            3 if one < waiting.len() => {
                assert!(crew.queue.remove(waiting.swap_remove(one).1).is_some());
            }
            4 if one < waiting.len() => {
                let ticket = crew.queue.reset(waiting[one].1, at(deadline));
                waiting[one] = (deadline, ticket.expect("it waits"));
            }
            5 | 6 if !crew.away.is_empty() => crew.call_back(),
            _ => crew.clock.advance(Duration::from_nanos(dice.below(12))),
        }
        let here = CREW - crew.away.len();
        let now = crew.queue.clock().read().as_nanos();
        let mut keys: Vec<_> = waiting.iter().map(|(at, ticket)| (*at, ticket.sequence)).collect();
        keys.sort_unstable();
        let due = keys.iter().filter(|(deadline, _)| *deadline <= now).count();
        let taken = crew.taken();
        assert_eq!(taken.len(), due.min(here), "step {step} of {seed}");
        let is_due = |key| keys[..taken.len()].contains(key);
        assert!(taken.iter().all(is_due), "step {step} of {seed}: {taken:?} of {keys:?}");
        waiting.retain(|(_, ticket)| taken.iter().all(|(_, gone)| *gone != ticket.sequence));
        if let Some((next, _)) = keys.get(due).filter(|_| due < here) {
            let is_awaited = crew.armed().first().is_some_and(|first| first <= next);
            assert!(is_awaited, "step {step} of {seed}");
        }
    }
}
