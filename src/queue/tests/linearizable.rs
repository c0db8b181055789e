//! Histories: what threads have asked a queue to do at the same time, what it has answered, and whether a plain sorted
//! list could have given these answers in some order ([`search`]).
//!
//! "First come, first served", "an element that was removed is not taken" and "a closed queue admits nothing" are one
//! statement here, as is every property that no other test names. The requests of the threads are drawn from a seed.
//! The histories are short, since the number of orders grows quickly, and there are many of them.
//!
//! Each thread removes and resets only what it has offered itself, as a task's owner does, which alone knows the
//! ticket. All threads take.

#[path = "linearizable/search.rs"]
mod search;

use std::time::Duration;

use self::search::{Event, Key, Operation, is_linearizable};
use super::{Admission, QueueEntry, any_queue::AnyQueue};
use crate::{
    ManualClock,
    entry::Ticket,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Clock, Timestamp},
};

/// How many steps a search may take. The longest one seen took a few hundred.
const STEPS: usize = 1_000_000;
/// The largest number of requests that a thread makes.
const MOST: u64 = 4;
/// The clock's time at the beginning, and the latest moment at which anything but the last element is due.
const BEGIN: u64 = 100;
const LATER: u64 = 108;

/// A request of a thread.
#[derive(Clone, Copy, Debug)]
enum Act {
    Offer {
        stripe: usize,
        ahead: u64,
    },
    Take,
    /// Removes one of the elements that the thread has offered.
    Remove(usize),
    Reset(usize, u64),
    Drain,
    Close,
    /// Not a request to the queue: time passes.
    Advance(u64),
}

/// Random numbers from a seed: splitmix64.
#[derive(Clone, Copy, Debug)]
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    /// Returns the requests of one thread.
    fn script(&mut self) -> Vec<Act> {
        let length = 1 + self.below(MOST);
        (0..length).map(|_| self.act()).collect()
    }

    /// Returns one of few moments, so that many are equal.
    fn ahead(&mut self) -> u64 {
        [0, 0, 0, 1, 1, 2, LATER - BEGIN, 1 << 40][self.below(8) as usize]
    }

    fn act(&mut self) -> Act {
        let (which, ahead) = (self.below(4) as usize, self.ahead());
        match self.below(32) {
            0..12 => Act::Offer { stripe: which, ahead },
            12..20 => Act::Take,
            20..24 => Act::Remove(which),
            24..28 => Act::Reset(which, ahead),
            28..30 => Act::Advance(1 + ahead % 8),
            30 => Act::Drain,
            _ => Act::Close,
        }
    }
}

/// A queue whose history is recorded.
pub(super) struct Recorder {
    manual: Option<ManualClock>,
    queue: AnyQueue<()>,
    begin: u64,
    /// The number of the next call or return.
    next: AtomicU64,
}

/// One thread's tickets, and its requests so far with their answers.
#[derive(Default)]
pub(super) struct Asker {
    tickets: Vec<Ticket>,
    pub(super) events: Vec<Event>,
}

impl Recorder {
    /// Makes a single queue for `None`, or else a queue with that many stripes, on a manual clock or on the system
    /// clock.
    pub(super) fn new(stripes: Option<usize>, is_manual: bool) -> Arc<Self> {
        let manual = is_manual.then(ManualClock::from_zero);
        let clock = manual.clone().map_or_else(Clock::system, Clock::from);
        if let Some(manual) = &manual {
            manual.advance(Duration::from_nanos(BEGIN));
        }
        let begin = clock.read().as_nanos();
        let queue = AnyQueue::new(clock, stripes, Duration::ZERO);
        Arc::new(Self { manual, queue, begin, next: AtomicU64::new(0) })
    }

    fn stamp(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn now(&self) -> Timestamp {
        self.queue.clock().read()
    }

    /// Makes a request to the queue, and notes the answer.
    fn ask(&self, asker: &mut Asker, act: Act) {
        let called = self.stamp();
        let operations = self.perform(&mut asker.tickets, act, called);
        let returned = self.stamp();
        let events = operations.into_iter().map(|operation| Event { operation, called, returned });
        asker.events.extend(events);
    }

    fn perform(&self, tickets: &mut Vec<Ticket>, act: Act, called: u64) -> Vec<Operation> {
        let (queue, since) = (&self.queue, self.now());
        vec![match act {
            Act::Offer { stripe, ahead } => {
                let deadline = self.begin + ahead;
                let stripe = stripe % queue.stripes();
                let offered = queue.offer(stripe, since, Timestamp::from_nanos(deadline), ()).ok();
                tickets.extend(offered);
                Operation::Offer { deadline, sequence: offered.map(|ticket| ticket.sequence) }
            }
            Act::Take => match (queue.try_take(), since.as_nanos()) {
                (Some(entry), _) => {
                    Operation::Take { taken: key(entry), until: self.now().as_nanos() }
                }
                (None, since) if queue.is_single() => Operation::FindNothing { since },
                (None, since) => {
                    let look = called;
                    return vec![Operation::BeginLook { look, since }, Operation::EndLook { look }];
                }
            },
            Act::Remove(which) => {
                let Some(ticket) = tickets.get(which) else { return Vec::new() };
                let is_found = queue.remove(*ticket).is_some();
                Operation::Remove { sequence: ticket.sequence, is_found }
            }
            Act::Reset(which, ahead) => {
                let Some(ticket) = tickets.get_mut(which) else { return Vec::new() };
                return self.reset(ticket, self.begin + ahead);
            }
            Act::Drain => {
                let mut drained: Vec<_> = queue.drain().map(key).collect();
                drained.sort_unstable();
                Operation::Drain { drained }
            }
            Act::Close => {
                queue.close(Admission::CLOSED);
                Operation::Close
            }
            Act::Advance(nanos) => {
                let manual = self.manual.iter();
                manual.for_each(|clock| clock.advance(Duration::from_nanos(nanos)));
                return Vec::new();
            }
        }]
    }

    fn reset(&self, ticket: &mut Ticket, deadline: u64) -> Vec<Operation> {
        let sequence = ticket.sequence;
        let moved = self.queue.reset(*ticket, Timestamp::from_nanos(deadline));
        let lift = Operation::Lift { sequence, is_found: moved.is_some() };
        let Some(moved) = moved else { return vec![lift] };
        *ticket = moved;
        vec![lift, Operation::Put { deadline, sequence }]
    }

    /// Performs a script, and returns its history.
    pub(super) fn run(&self, seed: u64) -> Asker {
        let mut asker = Asker::default();
        for act in Seeded(seed).script() {
            self.ask(&mut asker, act);
        }
        asker
    }
}

fn key(entry: QueueEntry<()>) -> Key {
    (entry.deadline.as_nanos(), entry.sequence)
}

/// Fails if a sorted list could not have had this history, or if the search has not decided that.
pub(super) fn check(seed: u64, parts: impl IntoIterator<Item = Asker>) {
    let mut history: Vec<Event> = parts.into_iter().flat_map(|asker| asker.events).collect();
    history.sort_unstable_by_key(|event| event.called);
    let verdict = is_linearizable(&history, STEPS);
    let lines = || history.iter().map(|event| format!("\n  {event:?}")).collect::<String>();
    assert_eq!(verdict, Ok(true), "seed {seed}:{}", lines());
}

#[cfg(not(any(shuttle, loom)))]
mod tests {
    use std::{env, hint, thread};

    use parking_lot::Mutex;

    use super::*;

    const THREADS: u64 = 3;

    /// A round of all threads: a queue, and what they have asked of it.
    struct Round {
        number: AtomicU64,
        over: AtomicU64,
        recorder: Mutex<Arc<Recorder>>,
        parts: Mutex<Vec<Asker>>,
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            hint::spin_loop();
            thread::yield_now();
        }
    }

    impl Round {
        /// Plays the part of a thread in the round with this number.
        fn take_part(&self, number: u64, thread: u64) {
            let recorder = Arc::clone(&self.recorder.lock());
            let asker = recorder.run(number * THREADS + thread);
            self.parts.lock().push(asker);
            self.over.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns the queue of a round: over the rounds, each kind on either clock.
    fn recorder(number: u64) -> Arc<Recorder> {
        let stripes = [None, Some(1), Some(2), Some(4)][(number / 2 % 4) as usize];
        Recorder::new(stripes, number % 2 == 0)
    }

    fn histories(from: u64, count: u64) {
        let round = Round {
            number: AtomicU64::new(from),
            over: AtomicU64::new(0),
            recorder: Mutex::new(recorder(from)),
            parts: Mutex::default(),
        };
        let end = from + count;
        thread::scope(|scope| {
            for thread in 1..THREADS {
                let round = &round;
                scope.spawn(move || {
                    for number in from..end {
                        until(|| round.number.load(Ordering::SeqCst) > number);
                        if round.number.load(Ordering::SeqCst) == u64::MAX {
                            return;
                        }
                        round.take_part(number, thread);
                    }
                });
            }
            let _end = Ends(&round.number);
            for number in from..end {
                *round.recorder.lock() = recorder(number);
                round.over.store(0, Ordering::SeqCst);
                round.number.store(number + 1, Ordering::SeqCst);
                round.take_part(number, 0);
                until(|| round.over.load(Ordering::SeqCst) == THREADS);
                check(number, round.parts.lock().drain(..));
            }
        });
    }

    /// Ends the rounds, even if a check has failed.
    struct Ends<'a>(&'a AtomicU64);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(u64::MAX, Ordering::SeqCst);
        }
    }

    /// G2: each history of three threads on real cores is one that a sorted list could have had. `PUNCTUAL_HISTORIES`
    /// sets how many, and `PUNCTUAL_SEED` which is the first.
    #[test]
    fn every_history_of_three_threads_is_that_of_a_sorted_list() {
        let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
        histories(
            number("PUNCTUAL_SEED").unwrap_or(0),
            number("PUNCTUAL_HISTORIES").unwrap_or(5_000),
        );
    }
}
