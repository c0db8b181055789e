//! A token that is cancelled while a thread or a future begins to wait for it.

use std::{future::Future, pin::Pin, task::Context};

use super::*;
use crate::{
    ManualClock,
    sync::{
        exhaustive::{Note, check},
        thread,
    },
};

fn token() -> CancellationToken {
    CancellationToken::with_clock(ManualClock::new())
}

/// Cancels the token on a thread of its own, after writing a note.
fn raiser(token: &CancellationToken, note: &Note) -> thread::JoinHandle<()> {
    let (token, note) = (token.clone(), note.clone());
    thread::spawn(move || {
        note.add();
        token.cancel();
    })
}

/// M121, M122: a waiter is woken, and sees what was done before the token was cancelled.
#[test]
fn a_waiter_is_woken() {
    check(|| {
        let (token, note) = (token(), Note::default());
        let raiser = raiser(&token, &note);
        token.wait();
        assert_eq!(note.get(), 1);
        raiser.join().expect("nobody panics");
    });
}

/// A future has its own entry on the list, and is woken as well.
#[test]
fn an_async_waiter_is_woken() {
    check(|| {
        let (token, note) = (token(), Note::default());
        let raiser = raiser(&token, &note);
        let mut cancelled = token.cancelled();
        wait::block_on(&token.clock, |waker| {
            let mut context = Context::from_waker(waker);
            Pin::new(&mut cancelled).poll(&mut context).is_ready().then_some(())
        });
        assert_eq!(note.get(), 1);
        raiser.join().expect("nobody panics");
    });
}

/// M122: a child is cancelled by itself and through its parent at once: either wakes a waiter, and so do both together.
#[test]
fn a_child_and_its_parent_are_raised_at_once() {
    check(|| {
        let parent = token();
        let child = parent.child();
        let raisers = [parent, child.clone()].map(|one| thread::spawn(move || one.cancel()));
        child.wait();
        raisers.into_iter().for_each(|raiser| raiser.join().expect("nobody panics"));
    });
}

/// M122: cancelling the token once wakes two waiters.
#[test]
fn all_waiters_are_woken() {
    check(|| {
        let token = token();
        let waiters = [0, 1].map(|_| {
            let token = token.clone();
            thread::spawn(move || token.wait())
        });
        token.cancel();
        waiters.into_iter().for_each(|waiter| waiter.join().expect("nobody panics"));
    });
}

/// M121: a thread that only checks, and finds the token cancelled, sees what was done before.
#[test]
fn a_thread_that_finds_the_token_raised_sees_what_came_before() {
    check(|| {
        let (token, note) = (token(), Note::default());
        let raiser = raiser(&token, &note);
        if token.is_cancelled() {
            assert_eq!(note.get(), 1);
        }
        raiser.join().expect("nobody panics");
    });
}
