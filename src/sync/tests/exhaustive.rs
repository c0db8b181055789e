//! The parker in every order of steps, and the tools that the other loom models share.
//!
//! Loom lets a load return each value that the memory model allows, so these models show what the
//! shuttle models cannot: that an `Ordering` is strong enough. What a thread does before it wakes
//! another is therefore a [`Note`], which by itself orders nothing.

use super::{
    atomic::{AtomicUsize, Ordering},
    process::AtomicU64,
    *,
};

/// Tries every order in which threads are preempted at most `LOOM_MAX_PREEMPTIONS` times, and
/// prints how many there are.
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

/// A count that orders nothing: a thread that sees an increment was ordered after the increment in some other way.
#[derive(Clone, Default)]
pub(crate) struct Note(Arc<AtomicUsize>);

impl Note {
    pub(crate) fn add(&self) {
        // Relaxed: orders no other access.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a value that is counted when it is dropped.
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

/// A thread that is woken while it is about to park does not sleep on, and sees why it was woken.
#[test]
fn a_wake_up_is_not_lost() {
    check(|| {
        let (parker, news) = (Parker::current(), Note::default());
        let (waker, told) = (parker.waker().clone(), news.clone());
        let notifier = thread::spawn(move || {
            told.add();
            waker.wake();
        });
        while news.get() == 0 {
            parker.park();
        }
        notifier.join().expect("nobody panics");
    });
}

/// Two threads wake a third at once: it sees what both did before, however few parks they ended.
#[test]
fn two_wake_ups_may_end_one_park() {
    check(|| {
        let (parker, news) = (Parker::current(), Note::default());
        let notifiers = [0, 1].map(|_| {
            let (waker, told) = (parker.waker().clone(), news.clone());
            thread::spawn(move || {
                told.add();
                waker.wake();
            })
        });
        while news.get() < 2 {
            parker.park();
        }
        notifiers.into_iter().for_each(|notifier| notifier.join().expect("nobody panics"));
    });
}
