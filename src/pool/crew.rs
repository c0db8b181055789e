//! The crew: how many workers there are, how many there are to be, and who may start one.
//!
//! ```text
//!             turn, hire          begins, or the factory says yes
//!   nobody ────────────▶ tentative ────────────────────────────▶ settled ──▶ dismissed
//!                            └───────────────────────────────────────────────▲
//!                             the factory says no, or drops the worker
//! ```
//!
//! # Starting
//!
//! The thread factory is foreign code, so no lock is held while it works. In its place there is a
//! *turn*: one thread at a time starts a worker, and others who want one wait for their turn. So
//! nobody relies on a worker that never comes to be: what others see is the number of **settled**
//! workers, those that have begun, or whose factory has said that they will. A worker that works
//! is settled, whatever its factory is doing meanwhile; so every worker that looks whether it is
//! surplus is counted itself. Those who looked before it came look again if it makes a difference
//! to them ([`Crew::settle`]).
//!
//! # Going
//!
//! A worker is *surplus* if there are more than the core pool size, or if core threads may time
//! out. One that has been surplus and idle for the keep-alive asks to [retire](Crew::retire). The
//! last one must not leave a task behind, and a submission must not rely on one who is leaving.
//! So each writes first what the other reads:
//!
//! | who submits | the last worker |
//! |---|---|
//! | 1. puts the task into the queue | 1. says that there is no settled worker |
//! | 2. reads the number of settled workers; if zero, starts one | 2. looks into the queue; if there is a task, stays |
//!
//! The lock of a stripe orders the two: if the worker looks after the task came in it sees it, and
//! if it looked before, the submitter, who got that lock later, sees its zero. A last worker that
//! stays, because something waits, sleeps until that is due and not a keep-alive at a time; so an
//! idle pool makes no wake-ups, whatever its core size.

use std::{task::Waker, time::Duration};

use crate::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        is_finished,
        thread::JoinHandle,
    },
    task::{Desk, Tally},
    time::{Clock, saturating_nanos},
    unwind::{discard, wake_all},
    wait::{self, WaitList},
};

/// See the [module](self).
pub(crate) struct Crew {
    inner: Mutex<Inner>,
    /// How many workers can be relied on; written under the lock.
    settled: AtomicUsize,
    core: AtomicUsize,
    core_timeout: AtomicBool,
    /// In nanoseconds.
    keep_alive: AtomicU64,
}

#[derive(Default)]
struct Inner {
    /// One for each worker that lives, or is being started.
    seats: Vec<Seat>,
    /// How many of these are settled.
    settled: usize,
    /// The most that have ever been.
    largest: usize,
    /// Somebody starts a thread.
    starting: bool,
    /// How many have ever been hired.
    hired: usize,
    threads: Vec<JoinHandle<()>>,
    /// What those did who have gone.
    retired: Tally,
    /// Who wants to start a thread as well.
    queue: WaitList,
}

struct Seat {
    desk: Arc<Desk>,
    is_settled: bool,
}

/// The right to start a thread; ends with its drop.
pub(super) struct Turn<'a> {
    crew: &'a Crew,
}

/// What [`Crew::count`] counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headcount {
    pub(super) settled: usize,
    pub(super) largest: usize,
}

impl Inner {
    fn seat(&self, desk: &Arc<Desk>) -> Option<usize> {
        self.seats.iter().position(|seat| Arc::ptr_eq(&seat.desk, desk))
    }

    /// Whether the worker was not settled before, and is there.
    fn settle(&mut self, desk: &Arc<Desk>) -> bool {
        let Some(index) = self.seat(desk) else { return false };
        let was_settled = std::mem::replace(&mut self.seats[index].is_settled, true);
        self.settled += usize::from(!was_settled);
        self.largest = self.largest.max(self.settled);
        !was_settled
    }

    fn dismiss(&mut self, desk: &Arc<Desk>) {
        if let Some(index) = self.seat(desk) {
            let seat = self.seats.swap_remove(index);
            self.settled -= usize::from(seat.is_settled);
            self.retired = self.retired.plus(desk.tally());
        }
    }
}

impl Crew {
    pub(super) fn new(core: usize, core_timeout: bool, keep_alive: Duration) -> Self {
        Self {
            inner: Mutex::default(),
            settled: AtomicUsize::new(0),
            core: AtomicUsize::new(core),
            core_timeout: AtomicBool::new(core_timeout),
            keep_alive: AtomicU64::new(saturating_nanos(keep_alive)),
        }
    }

    // Ordering: these four are settings, and nothing else hangs on them.

    pub(crate) fn core(&self) -> usize {
        self.core.load(Ordering::Relaxed)
    }

    pub(super) fn set_core(&self, size: usize) -> usize {
        self.core.swap(size, Ordering::Relaxed)
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_nanos(self.keep_alive.load(Ordering::Relaxed))
    }

    pub(crate) fn core_timeout(&self) -> bool {
        self.core_timeout.load(Ordering::Relaxed)
    }

    /// Sets when idle workers go. Whether it can be so: not if core threads would time out at
    /// once.
    pub(super) fn set_times(&self, keep_alive: Option<Duration>, timeout: Option<bool>) -> bool {
        let _inner = self.inner.lock();
        let keep_alive = keep_alive.unwrap_or_else(|| self.keep_alive());
        let timeout = timeout.unwrap_or_else(|| self.core_timeout());
        if timeout && keep_alive.is_zero() {
            return false;
        }
        self.keep_alive.store(saturating_nanos(keep_alive), Ordering::Relaxed);
        self.core_timeout.store(timeout, Ordering::Relaxed);
        true
    }

    // Who there is.

    /// How many workers can be relied on.
    #[inline]
    pub(super) fn settled(&self) -> usize {
        // Ordering: see the head of the module; the lock of a stripe orders it.
        self.settled.load(Ordering::Relaxed)
    }

    /// The same, not in the middle of a worker's making up its mind to go.
    pub(crate) fn size(&self) -> usize {
        self.inner.lock().settled
    }

    /// How many there are, with those that are being started.
    pub(super) fn live(&self) -> usize {
        self.inner.lock().seats.len()
    }

    pub(crate) fn largest(&self) -> usize {
        self.inner.lock().largest
    }

    /// Whether a worker may be surplus now.
    #[inline]
    pub(super) fn is_elastic(&self) -> bool {
        self.core_timeout() || self.settled() > self.core()
    }

    /// Counts heads, and while nobody comes or goes lets `count` work, which can ask for the sum
    /// of what has been done.
    pub(super) fn count<R>(&self, count: impl FnOnce(&dyn Fn() -> Tally) -> R) -> (Headcount, R) {
        let inner = self.inner.lock();
        let tally = || {
            let tallies = inner.seats.iter().map(|seat| seat.desk.tally());
            tallies.fold(inner.retired, Tally::plus)
        };
        let counted = count(&tally);
        (Headcount { settled: inner.settled, largest: inner.largest }, counted)
    }

    pub(super) fn desks(&self) -> Vec<Arc<Desk>> {
        self.inner.lock().seats.iter().map(|seat| Arc::clone(&seat.desk)).collect()
    }

    // Starting.

    /// The right to start a thread, as soon as nobody else has it. Nothing if that is not needed
    /// any more then: `is_needed` is asked with the number of settled workers.
    pub(super) fn turn(&self, is_needed: impl Fn(usize) -> bool) -> Option<Turn<'_>> {
        // The system's clock: on a manual one a worker that waits here would count as idle.
        let clock = Clock::system();
        wait::block_on(&clock, |waker| self.poll_turn(waker, &is_needed))
    }

    fn poll_turn(
        &self,
        waker: &Waker,
        is_needed: impl Fn(usize) -> bool,
    ) -> Option<Option<Turn<'_>>> {
        let waker = waker.clone();
        let mut inner = self.inner.lock();
        let (turn, unused) = if !is_needed(inner.settled) {
            (Some(None), Some(waker))
        } else if inner.starting {
            (None, inner.queue.register(waker))
        } else {
            inner.starting = true;
            (Some(Some(Turn { crew: self })), Some(waker))
        };
        drop(inner);
        discard(unused);
        turn
    }

    /// A worker can be relied on from now on: it has begun, or its factory has said that it will.
    /// Whether that makes a difference to others who are idle: there are too many now, or the one
    /// that stayed because it was the last is no longer that.
    pub(super) fn settle(&self, desk: &Arc<Desk>) -> bool {
        let mut inner = self.inner.lock();
        if !inner.settle(desk) {
            return false;
        }
        self.publish(&inner);
        let settled = inner.settled;
        // Perhaps there are enough now.
        let waiting = inner.queue.take();
        drop(inner);
        wake_all(waiting);
        settled > self.core() || settled == 2 && self.core_timeout()
    }

    // Going.

    /// Lets an idle worker go, if it is surplus; not if all others are among those that wait for
    /// tasks. `has_work` is asked if it is the last.
    pub(super) fn retire(
        &self,
        desk: &Arc<Desk>,
        waiting: impl FnOnce() -> usize,
        has_work: impl FnOnce() -> bool,
    ) -> bool {
        let mut inner = self.inner.lock();
        let waiting = waiting();
        if !self.is_elastic() || waiting > 0 && inner.settled <= waiting + 1 {
            return false;
        }
        if inner.settled <= 1 {
            self.settled.store(0, Ordering::Relaxed);
            if has_work() {
                self.publish(&inner);
                return false;
            }
        }
        inner.dismiss(desk);
        self.publish(&inner);
        true
    }

    /// A worker has ended, or never began.
    pub(super) fn dismiss(&self, desk: &Arc<Desk>) {
        let mut inner = self.inner.lock();
        inner.dismiss(desk);
        self.publish(&inner);
    }

    /// The threads, to be joined.
    pub(super) fn take_threads(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.inner.lock().threads)
    }

    fn publish(&self, inner: &Inner) {
        self.settled.store(inner.settled, Ordering::Relaxed);
    }
}

impl Turn<'_> {
    /// One worker more, tentatively. Gives its number and its desk.
    pub(super) fn hire(&self) -> (usize, Arc<Desk>) {
        let desk = Arc::new(Desk::default());
        let mut inner = self.crew.inner.lock();
        inner.hired += 1;
        inner.seats.push(Seat { desk: Arc::clone(&desk), is_settled: false });
        (inner.hired, desk)
    }

    /// The thread has been started.
    pub(super) fn succeed(self, thread: Option<JoinHandle<()>>) {
        let mut inner = self.crew.inner.lock();
        // Those that have gone need no join.
        let (gone, threads) =
            std::mem::take(&mut inner.threads).into_iter().partition::<Vec<_>, _>(is_finished);
        inner.threads = threads;
        inner.threads.extend(thread);
        drop(inner);
        discard(gone);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inner = self.crew.inner.lock();
        inner.starting = false;
        let waiting = inner.queue.take();
        drop(inner);
        wake_all(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crew(core: usize, core_timeout: bool) -> Crew {
        Crew::new(core, core_timeout, Duration::from_secs(1))
    }

    fn hire(crew: &Crew) -> Arc<Desk> {
        let turn = crew.turn(|_| true).expect("nobody else starts a worker");
        turn.hire().1
    }

    /// How many there are, how many can be relied on, and how many there were at most.
    fn heads(crew: &Crew) -> [usize; 3] {
        assert_eq!((crew.settled(), crew.live()), (crew.size(), crew.desks().len()));
        let (counted, ()) = crew.count(|_| ());
        assert_eq!((counted.settled, counted.largest), (crew.size(), crew.largest()));
        [crew.live(), crew.size(), crew.largest()]
    }

    #[test]
    fn a_worker_lives_from_the_attempt_and_is_relied_on_from_its_beginning() {
        let crew = crew(2, false);
        assert_eq!(heads(&crew), [0, 0, 0]);
        let desks = [hire(&crew), hire(&crew), hire(&crew)];
        assert_eq!(heads(&crew), [3, 0, 0]);
        crew.settle(&desks[0]);
        crew.settle(&desks[1]);
        assert_eq!(heads(&crew), [3, 2, 2]);
        crew.settle(&desks[1]);
        crew.dismiss(&desks[2]);
        assert_eq!(heads(&crew), [2, 2, 2]);
        crew.dismiss(&desks[0]);
        assert_eq!(heads(&crew), [1, 1, 2]);
        crew.dismiss(&desks[0]);
        crew.settle(&desks[2]);
        assert_eq!(heads(&crew), [1, 1, 2], "who has gone is gone");
    }

    /// Those who are idle look again if there are too many now, or if the one that stayed because
    /// it was the last is no longer that.
    #[test]
    fn who_settles_says_whether_that_makes_a_difference_to_others() {
        let differences = |core, core_timeout| {
            let crew = crew(core, core_timeout);
            [(); 4].map(|()| crew.settle(&hire(&crew)))
        };
        assert_eq!(differences(2, false), [false, false, true, true]);
        assert_eq!(differences(3, false), [false, false, false, true]);
        assert_eq!(differences(3, true), [false, true, false, true]);
        let (crew, desk) = (crew(0, false), Arc::default());
        assert!(!crew.settle(&desk), "nobody has hired it");
    }

    /// The last one looks for work when it no longer counts, so that a submission that saw it
    /// has put its task where it looks.
    #[test]
    fn who_is_surplus_may_go_and_the_last_only_if_there_is_no_work() {
        let crew = crew(1, false);
        let desks = [hire(&crew), hire(&crew)];
        desks.iter().for_each(|desk| _ = crew.settle(desk));
        assert!(crew.is_elastic());
        assert!(crew.retire(&desks[0], || 0, || unreachable!("another stays")));
        assert_eq!(heads(&crew), [1, 1, 2]);
        assert!(!crew.is_elastic());
        assert!(!crew.retire(&desks[1], || 0, || false), "it is the core");
        crew.set_core(0);
        let looks = |finds| {
            assert_eq!(crew.settled(), 0, "nobody relies on who may go");
            finds
        };
        assert!(!crew.retire(&desks[1], || 0, || looks(true)));
        assert_eq!(heads(&crew), [1, 1, 2]);
        assert!(crew.retire(&desks[1], || 0, || looks(false)));
        assert_eq!(heads(&crew), [0, 0, 2]);
    }

    /// Who waits for a task runs none meanwhile: one that does not wait has to stay.
    #[test]
    fn who_is_surplus_stays_if_all_others_wait_for_tasks() {
        let crew = crew(1, true);
        let desks = [hire(&crew), hire(&crew), hire(&crew)];
        desks.iter().for_each(|desk| _ = crew.settle(desk));
        assert!(!crew.retire(&desks[0], || 2, || false));
        assert!(crew.retire(&desks[0], || 1, || false));
        assert!(!crew.retire(&desks[1], || 1, || false));
        assert!(crew.retire(&desks[1], || 0, || false));
    }
}
