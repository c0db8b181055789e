//! Awaiting a token: a waiter like a thread, with a place of its own on each list.
//!
//! Several futures that one task awaits have the same waker. So it is not the waker that names them
//! on the lists, and one that is dropped takes nothing away from the others.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::{CancellationToken, Signal};
use crate::{unwind::discard, wait::Place};

/// Ends when a token is raised: see [`CancellationToken::cancelled`]. Dropping it leaves nothing
/// on the token.
#[must_use = "it waits for nothing unless it is awaited"]
pub struct WaitForCancellation {
    token: CancellationToken,
    /// On the token's own list, and on that of its parent.
    places: [Option<Place>; 2],
}

impl WaitForCancellation {
    pub(super) fn new(token: CancellationToken) -> Self {
        Self { token, places: [None; 2] }
    }

    fn leave(&mut self) {
        for (signal, place) in self.token.signals().zip(&mut self.places) {
            signal.leave(place);
        }
    }
}

impl Future for WaitForCancellation {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { token, places } = &mut *self;
        if !token.is_cancelled() {
            for (signal, place) in token.signals().zip(places) {
                signal.watch_at(place, context.waker());
            }
            // Once more: see the head of the module above.
            if !token.is_cancelled() {
                return Poll::Pending;
            }
        }
        self.leave();
        Poll::Ready(())
    }
}

impl Drop for WaitForCancellation {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for WaitForCancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellation").field("token", &self.token).finish()
    }
}

impl Signal {
    fn watch_at(&self, place: &mut Option<Place>, waker: &std::task::Waker) {
        let waker = waker.clone();
        let replaced = self.waiters.lock().register_at(place, waker);
        discard(replaced);
    }

    fn leave(&self, place: &mut Option<Place>) {
        if place.is_some() {
            let left = self.waiters.lock().leave(place);
            discard(left);
        }
    }
}
