//! Callers that need the thread at the same moment: one of them starts it.

use super::*;
use crate::sync::{
    exhaustive::{Note, check},
    thread,
};

/// A caller that starts the thread if it is given the right to. Returns `true` if the thread runs then.
fn need(lazy: &LazyThread<Note>, starts: &Note, fails: bool) -> bool {
    if let Some(starting) = lazy.starting(Note::default) {
        // The thread factory works here.
        starts.add();
        if !fails {
            lazy.queue().expect("it is made").add();
            starting.succeed();
        }
    }
    lazy.running().is_some_and(|queue| {
        assert_eq!(queue.get(), 1, "a caller that sees the thread sees its queue");
        true
    })
}

/// Of two callers one starts the thread, and the thread is never started again.
#[test]
fn two_callers_start_one_thread() {
    check(|| {
        let (lazy, starts) = (Arc::new(LazyThread::new()), Note::default());
        let (also, counts) = (Arc::clone(&lazy), starts.clone());
        let other = thread::spawn(move || need(&also, &counts, false));
        let is_running = need(&lazy, &starts, false);
        assert!(other.join().expect("no thread panics") && is_running);
        assert_eq!(starts.get(), 1);
    });
}

/// A start that fails leaves the right to the next caller, which may wait for it, and the queue with it.
#[test]
fn a_start_that_fails_is_made_again() {
    check(|| {
        let (lazy, starts) = (Arc::new(LazyThread::new()), Note::default());
        let (also, counts) = (Arc::clone(&lazy), starts.clone());
        let other = thread::spawn(move || need(&also, &counts, true));
        let is_running = need(&lazy, &starts, false);
        assert!(is_running, "this one does not fail");
        other.join().expect("no thread panics");
    });
}
