//! Room: a bound on how many elements are in the queue, and those that wait until there is room for theirs.
//!
//! The bound and the wakers of those that wait are under the heap's lock. One that waits finds no room and lists its waker
//! in one step ([`poll_insert`](SingleQueue::poll_insert)). A thread that has taken an element out takes the lock again,
//! and wakes as many as there is room for, those that came first ([`notify_of_exit`](SingleQueue::notify_of_exit)).
//! Whichever comes second at the lock sees the other, so nobody waits while there is room.
//!
//! One that was woken may find that another insertion was faster. It then gets its old place in the list back. One that was
//! woken and [gives up](SingleQueue::give_up) wakes others for the room that it leaves, like a thread that has taken an
//! element out. The thread that closes the queue takes all wakers off the list, and no thread waits at a closed queue.
//!
//! A queue with a bound never counts as open (`AdmissionState::is_open`): that is how its insertions and takes come here,
//! and what those of other queues ask in any case.

use std::task::Waker;

use super::{Refusal, RefusedElement, SingleQueue, SingleState};
use crate::{
    entry::Ticket,
    queue::{priority_queue::CAPACITY, shared_heap::LockedHeap},
    time::Timestamp,
    unwind::{discard, wake_all},
    wait::Place,
};

impl<E> SingleQueue<E> {
    /// Like [`insert`](Self::insert); but if the bound leaves no room, keeps the waker, leaves the element where it is, and
    /// returns `None`. It returns that also if there is no element.
    pub(crate) fn poll_insert(
        &self,
        place: &mut Place,
        waker: &Waker,
        deadline: Timestamp,
        element: &mut Option<E>,
    ) -> Option<Result<Ticket, RefusedElement<E>>> {
        let waker = waker.clone();
        let mut heap = self.heap.lock();
        let admitted = element.take().map(|element| self.admit(&mut heap, deadline, element));
        let (answer, unused) = match admitted {
            Some(Err(refused)) if refused.why == Refusal::Full && heap.state().bound < CAPACITY => {
                *element = Some(refused.element);
                (None, [heap.state_mut().submitters.register(place, waker), None])
            }
            answer => (answer, [heap.state_mut().submitters.leave(place), Some(waker)]),
        };
        drop(heap);
        discard(unused);
        answer.map(|admitted| admitted.map(|admitted| self.announce(deadline, admitted)))
    }

    /// Ends a wait for room that has no answer.
    pub(crate) fn give_up(&self, place: &mut Place) {
        if place.is_taken() {
            let kept = self.heap.lock().state_mut().submitters.leave(place);
            if kept.is_none() {
                self.notify_of_exit();
            }
            discard(kept);
        }
    }

    /// Returns how many more elements are admitted; `usize::MAX` if there is no bound.
    pub(crate) fn remaining_capacity(&self) -> usize {
        let heap = self.heap.lock();
        if heap.state().bound < CAPACITY { Self::room(&heap) } else { usize::MAX }
    }

    #[inline]
    fn room(heap: &LockedHeap<'_, E, SingleState>) -> usize {
        heap.state().bound - heap.len()
    }

    /// Returns why so many more elements are not admitted, if they are not.
    #[inline]
    pub(super) fn refusal(
        &self,
        heap: &LockedHeap<'_, E, SingleState>,
        count: usize,
    ) -> Option<Refusal> {
        if self.is_closed() {
            return Some(Refusal::Closed);
        }
        (Self::room(heap) < count).then_some(Refusal::Full)
    }

    /// Wakes those for which there is room, and every waiter if there never will be an element. Called for a queue that is
    /// not open when an element may have left.
    #[inline(never)]
    pub(super) fn notify_of_exit(&self) {
        let mut heap = self.heap.lock();
        let room = Self::room(&heap);
        let woken: Vec<_> =
            (0..room).map_while(|_| heap.state_mut().submitters.take_one()).collect();
        drop(heap);
        wake_all(woken);
        if self.is_finished() {
            wake_all(self.waiters.notify_all());
        }
    }
}
