//! The future that waits for the termination of an executor without blocking a thread. It has its
//! own place on the list of those that wait for the pool (`pool::shutdown`).

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::Handle;
use crate::{pool::Phase, wait::Place};

/// A future that completes when an executor has terminated: see [`Handle::termination`]. Like a
/// handle, it keeps no executor alive.
#[must_use = "it waits for nothing unless it is awaited"]
pub struct Termination {
    handle: Handle,
    place: Option<Place>,
}

impl Termination {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, place: None }
    }
}

impl Future for Termination {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { handle, place } = &mut *self;
        let answer = handle.pool().poll_terminated_at(place, context.waker());
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        self.handle.pool().forget_termination_at(&mut self.place);
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_terminated = self.handle.pool().phase() == Phase::Terminated;
        f.debug_struct("Termination").field("is_terminated", &is_terminated).finish()
    }
}
