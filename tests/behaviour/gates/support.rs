//! A gate that follows a script, a lease that notes what becomes of it, and what both have seen.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use punctual::{
    CancellationToken, ManualClock, RunGate,
    gate::{Entry, Lease, RunEnd, Tick, from_fn},
};

use crate::support::Log;

/// One question, in milliseconds of the manual clock: when it was asked, for which moment the run was
/// planned, which run it would be, and how often it has been asked of that tick.
pub type Question = (u64, u64, u64, u32);

/// Returns a gate that notes its questions and answers with what `answer` says.
pub fn script(
    clock: &ManualClock,
    asked: &Log<Question>,
    answer: impl Fn(&Tick<'_>) -> Entry + Send + Sync + 'static,
) -> impl RunGate {
    let (clock, asked) = (clock.clone(), asked.clone());
    from_fn(move |tick| {
        let planned = tick.planned().map_or(u64::MAX, |planned| millis(&clock, planned));
        let now = clock.elapsed().as_millis() as u64;
        asked.push((now, planned, tick.run_number(), tick.attempt()));
        answer(tick)
    })
}

/// Returns a gate that answers `Again` with this delay so many times for each tick, and lets the run pass
/// then.
pub fn patient(
    clock: &ManualClock,
    asked: &Log<Question>,
    times: u32,
    delay: Duration,
) -> impl RunGate {
    script(
        clock,
        asked,
        move |tick| {
            if tick.attempt() <= times { Entry::Again(delay) } else { Entry::Run }
        },
    )
}

/// The moment in milliseconds of the manual clock.
pub fn millis(clock: &ManualClock, moment: Instant) -> u64 {
    let begin = clock.now().checked_sub(clock.elapsed()).expect("it began");
    moment.duration_since(begin).as_millis() as u64
}

/// An event in the life of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Watched,
    Completed(Option<u64>),
    Failed(String, Option<u64>),
    NotRun(Option<u64>),
}

/// Leases with the fences 1, 2, ..., and what has become of them.
#[derive(Clone)]
pub struct Leases(Arc<Shared>);

struct Shared {
    clock: ManualClock,
    seen: Log<(u64, Seen)>,
    given: Mutex<u64>,
    /// The token and the state of the lease that was watched last.
    last: Mutex<Option<(CancellationToken, Arc<AtomicBool>)>>,
}

struct Given {
    leases: Leases,
    fence: u64,
    is_lost: Arc<AtomicBool>,
}

impl Leases {
    pub fn new(clock: &ManualClock) -> Self {
        let (seen, given, last) = (Log::new(), Mutex::new(0), Mutex::new(None));
        Self(Arc::new(Shared { clock: clock.clone(), seen, given, last }))
    }

    /// Gives a lease.
    pub fn give(&self) -> Entry {
        let mut given = self.0.given.lock().unwrap();
        *given += 1;
        let is_lost = Arc::default();
        Entry::Hold(Arc::new(Given { leases: self.clone(), fence: *given, is_lost }))
    }

    /// Returns a gate that gives one for each run.
    pub fn gate(&self) -> impl RunGate + use<> {
        let leases = self.clone();
        from_fn(move |_| leases.give())
    }

    /// Marks the last lease as lost.
    pub fn lose(&self) {
        let last = self.0.last.lock().unwrap();
        let (token, is_lost) = last.as_ref().expect("one is watched");
        is_lost.store(true, Ordering::SeqCst);
        token.cancel();
    }

    /// Returns the events of the leases, each with its fence.
    pub fn seen(&self) -> Vec<(u64, Seen)> {
        self.0.seen.entries()
    }

    /// Panics unless each lease that was given has been left once.
    pub fn assert_left_once(&self) {
        let given = *self.0.given.lock().unwrap();
        let mut left: Vec<_> =
            self.seen().into_iter().filter(|(_, seen)| *seen != Seen::Watched).collect();
        left.sort_by_key(|(fence, _)| *fence);
        let fences: Vec<_> = left.iter().map(|(fence, _)| *fence).collect();
        assert_eq!(fences, (1..=given).collect::<Vec<_>>(), "{left:?}");
    }
}

impl Lease for Given {
    fn fencing_token(&self) -> Option<u64> {
        Some(self.fence)
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    fn watch(&self, token: CancellationToken) {
        self.leases.0.seen.push((self.fence, Seen::Watched));
        *self.leases.0.last.lock().unwrap() = Some((token, Arc::clone(&self.is_lost)));
    }

    fn leave(&self, end: RunEnd<'_>, next: Option<Instant>) {
        let next = next.map(|next| millis(&self.leases.0.clock, next));
        let seen = match end {
            RunEnd::Completed => Seen::Completed(next),
            RunEnd::Failed(failure) => Seen::Failed(failure.message().to_owned(), next),
            RunEnd::NotRun => Seen::NotRun(next),
            end => panic!("there is no {end:?}"),
        };
        self.leases.0.seen.push((self.fence, seen));
    }
}
