//! The wake-ups that a manual clock counts, in every order.

use super::*;
use crate::{
    Clock,
    sync::{
        exhaustive::{Note, check},
        thread,
    },
};

/// M108: a worker that was woken and sleeps again has seen what it was woken for: the clock does
/// not count it as asleep before.
#[test]
fn a_woken_sleeper_does_not_count_as_asleep() {
    check(|| {
        let manual = ManualClock::from_zero();
        let (clock, news, seen) = (Clock::from(manual.clone()), Note::default(), Note::default());
        let wakers: Arc<Mutex<Option<Waker>>> = Arc::new(Mutex::new(None));
        clock.worker_starts();
        let sleeper = {
            let (clock, news, seen) = (clock.clone(), news.clone(), seen.clone());
            let wakers = Arc::clone(&wakers);
            thread::spawn(move || {
                let parker = Parker::current();
                clock.worker_begins(&parker);
                *wakers.lock() = Some(parker.waker().clone());
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
        let waker = wakers.lock().clone().expect("it is there when the worker sleeps");
        // The first wake-up is spurious, the second comes with news.
        waker.wake_by_ref();
        news.add();
        waker.wake_by_ref();
        manual.run_until_idle();
        assert!(seen.get() > 0, "it sleeps, and has not seen the news");
        news.add();
        waker.wake();
        sleeper.join().expect("nobody panics");
    });
}
