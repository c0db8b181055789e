//! The parker and its bell in every order, and what the other such models are made with.
//!
//! Loom lets a load see each value that the memory model lets it see, so these models show what
//! those of shuttle cannot: that an `Ordering` is strong enough. What a thread does before it tells
//! another is therefore a [`Note`], which by itself orders nothing.

use super::{atomic::AtomicUsize, process::AtomicU64, *};
use crate::{Clock, ManualClock, time::Timestamp};

/// Tries every order in which threads are preempted at most as often as `LOOM_MAX_PREEMPTIONS`
/// says, and says how many there are.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.max_branches = builder.max_branches.max(10_000);
    let orders = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&orders);
    builder.check(move || {
        count.fetch_add(1, process::Ordering::Relaxed);
        model();
    });
    let name = std::thread::current().name().map(str::to_owned).unwrap_or_default();
    println!("{name}: {} orders", orders.load(process::Ordering::Relaxed));
}

/// A count that orders nothing: who sees it has been told in some other way.
#[derive(Clone, Default)]
pub(crate) struct Note(Arc<AtomicUsize>);

impl Note {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Something that is counted when it is dropped.
    pub(crate) fn drop_of_one(&self) -> NotedDrop {
        NotedDrop(self.clone())
    }
}

/// Counts its drop.
pub(crate) struct NotedDrop(Note);

impl Drop for NotedDrop {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Who is about to park when it is rung does not sleep on, and sees why it was rung.
#[test]
fn a_ring_is_not_lost() {
    check(|| {
        let (parker, news) = (Parker::current(), Note::default());
        let (waker, told) = (parker.waker().clone(), news.clone());
        let ringer = thread::spawn(move || {
            told.add();
            waker.wake();
        });
        while news.get() == 0 {
            parker.park();
        }
        ringer.join().expect("nobody panics");
    });
}

/// Two ring at once: who sleeps sees what both had to tell, however few parks they ended.
#[test]
fn two_rings_may_be_one_wake_up() {
    check(|| {
        let (parker, news) = (Parker::current(), Note::default());
        let ringers = [0, 1].map(|_| {
            let (waker, told) = (parker.waker().clone(), news.clone());
            thread::spawn(move || {
                told.add();
                waker.wake();
            })
        });
        while news.get() < 2 {
            parker.park();
        }
        ringers.into_iter().for_each(|ringer| ringer.join().expect("nobody panics"));
    });
}

/// M108: a worker that has been rung for and sleeps again has seen what it was rung for: the clock
/// does not say that all rest before.
#[test]
fn who_is_rung_for_does_not_rest() {
    check(|| {
        let manual = ManualClock::from_zero();
        let (clock, news, seen) = (Clock::from(manual.clone()), Note::default(), Note::default());
        let bells = Arc::new(Mutex::new(None));
        clock.worker_starts();
        let sleeper = {
            let (clock, news, seen) = (clock.clone(), news.clone(), seen.clone());
            let bells = Arc::clone(&bells);
            thread::spawn(move || {
                let parker = Parker::current();
                clock.worker_begins(&parker);
                *bells.lock() = Some(parker.waker().clone());
                while news.get() < 2 {
                    clock.wait(&parker).park_until(Timestamp::NEVER);
                    if news.get() == 1 {
                        seen.add();
                    }
                }
                clock.worker_ended();
            })
        };
        manual.run_until_idle();
        let waker = bells.lock().clone().expect("it is there when it rests");
        // One ring about nothing, and one with news.
        waker.wake_by_ref();
        news.add();
        waker.wake_by_ref();
        manual.run_until_idle();
        assert!(seen.get() > 0, "it rests, and has not seen it");
        news.add();
        waker.wake();
        sleeper.join().expect("nobody panics");
    });
}
