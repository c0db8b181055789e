//! The [`DelayedWorkQueue`]: several heaps, and one order over all of them.
//!
//! Each heap is in a *stripe* ([`stripe`]), which has its own lock. Each thread submits tasks to its assigned stripe,
//! so threads that submit at the same time seldom contend. An element's ticket names its stripe, so a removal need not
//! search the others. Each stripe also has a heap for *parked* elements, which do not wait for a deadline.
//!
//! ```text
//!   offer ──▶ stripe 0 ─┐
//!   offer ──▶ stripe 1 ─┼─▶ take: the first of all, and up to 32 ─▶ ready list ─▶ take
//!   offer ──▶ stripe 2 ─┘         that are due right behind it
//! ```
//!
//! While the [`ready`] list is empty, a thread that takes the first entry of a stripe also moves due entries behind it
//! to the list, in one batch. Any thread can take them from there, in order.
//!
//! # Order over all stripes
//!
//! The next entry is the one with the earliest deadline; of several with the same deadline, the one submitted first.
//!
//! `take` locks the ready list and reads the published heads. If the list's head is smaller than all others, it pops
//! from the list. Otherwise it locks the stripe with the smallest head, and **reads the other heads again** before it
//! pops. Why this is right: let A be due before B, and let A's submission end before B's begins, whichever threads
//! submit them. A thread that takes B, from a stripe or from the list, reads the other heads after B was admitted, and
//! so after A was admitted. A cannot be on its way from a stripe to the list meanwhile, because the thread holds the
//! list's lock. So the thread sees A, and does not take B first.
//!
//! If two heads are *equal*, the sequence numbers decide, and a thread needs the locks to read the numbers. If one of
//! the heads is the list's and the other a stripe's, the thread holds both locks anyway. Equal heads of two stripes are
//! rare, so `pop_among_equals` simply takes all locks.
//!
//! A thread takes the list's lock first, then the stripes' locks in numerical order. An offer locks only its stripe.

mod ready;
mod stripe;

use std::{task::Waker, time::Duration};

use crossbeam_utils::CachePadded;

use self::{
    ready::{LockedReady, Ready},
    stripe::{LockedStripe, Stripe},
};
use super::{
    Admission, AdmissionState, Drained, QueueEntry, RefusedElement, SnapshotEntry, UnderLock,
    Unwanted, in_order,
    priority_queue::{PriorityQueue, two_smallest},
    waiters::Waiters,
    waiting::Source,
};
use crate::{
    entry::{Moved, Requeue, Ticket, Timing},
    time::{Clock, Timestamp},
    unwind::wake_all,
};

pub(crate) struct DelayedWorkQueue<E> {
    clock: Clock,
    stripes: Box<[CachePadded<Stripe<E>>]>,
    ready: CachePadded<Ready<E>>,
    waiters: Waiters,
    admission: AdmissionState,
}

/// How many elements there are, and how many have come and gone. The stripes count admissions and the ready list counts
/// takes, each under its own lock. Removals need no count of their own:
///
/// ```text
///   offered + requeued = taken + removed + len
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) len: u64,
    pub(crate) offered: u64,
    pub(crate) requeued: u64,
    pub(crate) taken: u64,
}

impl QueueCounts {
    pub(crate) fn removed(&self) -> u64 {
        self.offered + self.requeued - self.taken - self.len
    }
}

/// The largest number of entries that move to the ready list in one batch.
const BATCH: usize = 32;

impl<E> DelayedWorkQueue<E> {
    /// Makes a queue of `stripes` stripes; that number is clamped to `1..=16`.
    pub(crate) fn new(clock: Clock, stripes: usize, lead: Duration) -> Self {
        let numbers = 0..stripes.clamp(1, stripe::MOST);
        let lead = if clock.is_manual() { Duration::ZERO } else { lead };
        Self {
            clock,
            stripes: numbers.map(|number| CachePadded::new(stripe::new(number))).collect(),
            ready: CachePadded::new(Ready::new()),
            waiters: Waiters::new(lead),
            admission: AdmissionState::new(),
        }
    }

    pub(crate) fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// Queues an element to wait as `timing` says, unless the queue is closed or full. `now` is the time of submission,
    /// and `stripe` is the number of the stripe to which the element goes.
    #[inline(always)]
    pub(crate) fn offer(
        &self,
        stripe: usize,
        now: Timestamp,
        timing: Timing,
        element: E,
    ) -> Result<Ticket, RefusedElement<E>> {
        let element = UnderLock::new(element);
        let mut stripe = self.stripes[stripe].lock();
        // A stamp drawn before the lock is taken could be smaller than the stripe's last stamp. Raised above that, it
        // would sort behind later stamps of other stripes.
        let stamp = self.clock.submission_stamp(now);
        let (ticket, is_head) = stripe.offer(&self.admission, stamp, timing, element)?;
        drop(stripe);
        if is_head {
            wake_all(self.waiters.notify(timing.due()));
        }
        Ok(ticket)
    }

    /// Uses up and returns the sequence number that an element submitted now would get.
    pub(crate) fn next_sequence(&self, stripe: usize, now: Timestamp) -> u64 {
        let mut stripe = self.stripes[stripe].lock();
        stripe.next_sequence(self.clock.submission_stamp(now))
    }

    /// Queues a taken element again, under its sequence number. Returns its ticket, and the waker, if any, that the
    /// caller has to call once it holds no lock.
    pub(crate) fn requeue(
        &self,
        timing: Timing,
        sequence: u64,
        why: Requeue,
        element: E,
    ) -> Result<(Ticket, Option<Waker>), RefusedElement<E>> {
        let mut stripe = self.lock_of(sequence);
        let ticket = stripe.requeue(&self.admission, (timing, sequence), why, element)?;
        drop(stripe);
        Ok((ticket, self.notify(timing)))
    }

    #[inline]
    fn notify(&self, timing: Timing) -> Option<Waker> {
        match timing {
            Timing::At(deadline) => self.waiters.notify(deadline),
            Timing::Parked { .. } => None,
        }
    }

    /// Takes the first element if it was due at `now` and its sequence number is below `end`. The driver draws `end` at
    /// the start of each round, and so takes no element that is submitted during the round.
    pub(crate) fn take_due_before(&self, now: Timestamp, end: u64) -> Option<QueueEntry<E>> {
        if self.head() > now {
            return None;
        }
        let mut ready = self.ready.lock();
        let taken = self.pop_first_due(&mut ready, now, end);
        ready.contents.taken += u64::from(taken.is_some());
        taken
    }

    /// Takes the element with this ticket if it is still queued for exactly `deadline`, and not parked.
    pub(crate) fn take_at(&self, deadline: Timestamp, ticket: Ticket) -> Option<QueueEntry<E>> {
        // Every take holds this lock, so the element cannot be on its way to the list meanwhile.
        let mut ready = self.ready.lock();
        let mut stripe = self.lock_of(ticket.sequence);
        let taken = match stripe.deadline(ticket) {
            Some(found) if found == deadline => stripe.remove(ticket).map(QueueEntry::owned),
            None if ready.deadline(ticket) == Some(deadline) => ready.remove(ticket),
            _ => None,
        };
        ready.contents.taken += u64::from(taken.is_some());
        taken
    }

    /// Ends the search of the calling thread, whose `limit` in [`take_until_by`](Source::take_until_by) is about to
    /// return `None`. Returns the waker, if any, that the caller has to call for the elements left behind.
    pub(crate) fn end_search(&self) -> Option<Waker> {
        self.waiters.end_search(|| self.head())
    }

    /// Wakes every waiter, so that each thread that sleeps, or is about to, asks for its limit again.
    pub(crate) fn reconsider(&self) {
        wake_all(self.waiters.notify_all());
    }

    /// Takes the queue's first entry if it was due at `now` and its sequence number is below `end`. May also move
    /// entries behind it to the ready list.
    fn pop_first_due(
        &self,
        ready: &mut LockedReady<'_, E>,
        now: Timestamp,
        end: u64,
    ) -> Option<QueueEntry<E>> {
        loop {
            let heads = self.stripes.iter().map(|stripe| stripe.head()).enumerate();
            let (nearest, head) = heads.min_by_key(|(_, head)| *head)?;
            let first_ready = ready.first_key();
            let is_ready = first_ready.is_some_and(|(deadline, _)| deadline < head);
            if is_ready || head > now {
                return ready.pop_due(now, end);
            }
            let mut stripe = self.stripes[nearest].lock();
            let others = self.stripes.iter().enumerate().filter(|(number, _)| *number != nearest);
            let other =
                others.map(|(_, stripe)| stripe.head()).fold(Timestamp::NEVER, Timestamp::min);
            if !stripe.settle(now) {
                continue;
            }
            let Some(key) = stripe.first_key() else { continue };
            if key.0 > now || other < key.0 {
                continue;
            } else if other == key.0 {
                drop(stripe);
                return self.pop_among_equals(ready, now, end);
            } else if first_ready.is_some_and(|first| first < key) {
                return ready.pop_due(now, end);
            } else if key.1 >= end {
                return None;
            }
            let limit = if first_ready.is_some() { 0 } else { BATCH };
            let taken = stripe.pop_batch(limit, now, |entry| ready.push(entry));
            if limit > 0 && (1..BATCH).contains(&ready.len()) {
                self.ready.pause_after(now);
            }
            return taken;
        }
    }

    #[cold]
    fn pop_among_equals(
        &self,
        ready: &mut LockedReady<'_, E>,
        now: Timestamp,
        end: u64,
    ) -> Option<QueueEntry<E>> {
        let mut stripes = self.lock_exact();
        let firsts = stripes.iter_mut().filter_map(|stripe| stripe.first_key().zip(Some(stripe)));
        match firsts.min_by_key(|(key, _)| *key) {
            Some((key, stripe)) if ready.first_key().is_none_or(|first| key < first) => {
                if key.0 <= now && key.1 < end { stripe.pop() } else { None }
            }
            _ => ready.pop_due(now, end),
        }
    }

    /// Removes the element that is due first, parked or not.
    pub(crate) fn remove_first(&self) -> Option<QueueEntry<E>> {
        let mut ready = self.ready.lock();
        let parked = self.remove_first_parked(&ready);
        let scheduled = || self.pop_among_equals(&mut ready, Timestamp::NEVER, u64::MAX);
        let removed = parked.or_else(scheduled);
        drop(ready);
        self.notify_all_if_finished();
        removed
    }

    /// Removes the element that is due first, but only if it is parked.
    fn remove_first_parked(&self, ready: &LockedReady<'_, E>) -> Option<QueueEntry<E>> {
        let mut stripes = self.lock_exact();
        let scheduled = stripes.iter().filter_map(|stripe| stripe.first_key());
        let scheduled = scheduled.chain(ready.first_key()).min();
        let parked =
            stripes.iter_mut().filter_map(|stripe| stripe.first_parked().zip(Some(stripe)));
        let (first, stripe) = parked.min_by_key(|(first, _)| *first)?;
        let is_first = scheduled.is_none_or(|other| first < other);
        if is_first { stripe.contents.state.parked.pop().map(QueueEntry::owned) } else { None }
    }

    // Always inlined: a call would take a twentieth of the time of a cancellation, or of dropping a timer. Not in debug
    // builds: their stack frames are large, and drops that cancel other tasks nest.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn remove(&self, ticket: Ticket) -> Option<E> {
        // The element alone can be passed on in registers.
        let removed = self.lock_of(ticket.sequence).remove(ticket).map(|entry| entry.element);
        let removed = removed.or_else(|| self.remove_elsewhere(ticket).map(UnderLock::new));
        self.notify_all_if_finished();
        removed.map(UnderLock::into_inner)
    }

    #[inline(never)]
    pub(crate) fn withdraw(&self, ticket: Ticket) -> Option<E> {
        self.remove(ticket)
    }

    /// Like [`remove`](Self::remove), for an element that a first search missed. The element is parked or on the ready
    /// list, was moved back from there, or has left the queue.
    #[cold]
    fn remove_elsewhere(&self, ticket: Ticket) -> Option<E> {
        let removed = self.lock_of(ticket.sequence).take_out(ticket);
        let ready = || if self.ready.is_empty() { None } else { self.ready.lock().remove(ticket) };
        removed.or_else(ready).map(|entry| entry.element)
    }

    /// Moves an element as `choose` says, given when the element is due and whether the queue is open. `choose` runs
    /// under the locks, so it must not be user code. In a closed queue, `choose` must not postpone the element: no
    /// reset may delay the queue's end. Returns the outcome, and the waker, if any, to call with no lock held.
    pub(crate) fn reset(
        &self,
        ticket: Ticket,
        choose: &mut dyn FnMut(Timestamp, bool) -> Option<Timing>,
    ) -> (Moved, Option<Waker>) {
        let mut stripe = self.lock_of(ticket.sequence);
        let Some(before) = stripe.due(ticket) else {
            drop(stripe);
            return self.reset_ready(ticket, choose);
        };
        let Some(timing) = choose(before, self.admission.is_open()) else {
            return (Moved::Declined, None);
        };
        let moved = stripe.move_to(ticket, timing);
        drop(stripe);
        (moved, self.notify(timing))
    }

    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        let due = self.lock_of(ticket.sequence).due(ticket);
        due.or_else(
            || if self.ready.is_empty() { None } else { self.ready.lock().deadline(ticket) },
        )
    }

    /// Removes the elements for which `unwanted` returns `true`, one stripe after another. `unwanted` runs under the
    /// locks, so it must not be user code.
    pub(crate) fn remove_where(&self, unwanted: Unwanted<'_, E>) -> Vec<QueueEntry<E>> {
        let mut ready = self.ready.lock();
        let mut removed = Vec::new();
        ready.remove_where(unwanted, &mut removed);
        for stripe in &self.stripes {
            let mut stripe = stripe.lock();
            stripe.change(|heap| heap.remove_where(unwanted, &mut removed));
            stripe.contents.state.parked.remove_where(unwanted, &mut removed);
        }
        drop(ready);
        self.notify_all_if_finished();
        removed
    }

    /// Removes all elements, due or not, in one step under all locks: an element found afterwards was queued later.
    pub(crate) fn drain(&self) -> Drained<E> {
        let mut ready = self.ready.lock();
        let mut stripes = self.lock_all();
        let mut heaps = Vec::new();
        for stripe in &mut stripes {
            heaps.push(stripe.change(PriorityQueue::remove_all));
            heaps.push(stripe.contents.state.parked.remove_all());
        }
        heaps.push(ready.remove_all());
        drop(stripes);
        drop(ready);
        let drained = Drained::new(heaps);
        self.notify_all_if_finished();
        drained
    }

    /// Closes the queue to all elements except those that `admission` admits; another call can close it further.
    /// Elements inside can still be taken; once none are left, `take` returns `None`.
    pub(crate) fn close(&self, admission: Admission) {
        let stripes = self.lock_all();
        self.admission.restrict_to(admission);
        drop(stripes);
        self.notify_all_if_finished();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        !self.admission.is_open()
    }

    #[inline(never)]
    fn has_nothing_left(&self) -> bool {
        let ready = self.ready.lock();
        ready.len() == 0 && self.stripes.iter().all(|stripe| stripe.lock().pending() == 0)
    }

    #[inline]
    fn lock_of(&self, sequence: u64) -> LockedStripe<'_, E> {
        // A sequence of another queue, with more stripes, finds nothing in stripe 0.
        self.stripes.get(stripe::number_of(sequence)).unwrap_or(&self.stripes[0]).lock()
    }

    fn lock_all(&self) -> Vec<LockedStripe<'_, E>> {
        self.stripes.iter().map(|stripe| stripe.lock()).collect()
    }

    /// Locks all stripes; releases and locks them again until the first entry of each is known.
    fn lock_exact(&self) -> Vec<LockedStripe<'_, E>> {
        loop {
            let mut stripes = self.lock_all();
            if stripes.iter_mut().all(|stripe| stripe.settle(Timestamp::NEVER)) {
                return stripes;
            }
        }
    }
}

impl<E: Clone> DelayedWorkQueue<E> {
    /// Returns `true` if every published head is `NEVER`. Ignores parked entries, and takes no lock.
    pub(crate) fn seems_empty(&self) -> bool {
        self.head() == Timestamp::NEVER
    }

    /// Returns the first entry, with a clone of its element, if it was due at `now`.
    pub(crate) fn first_due(&self, now: Timestamp) -> Option<SnapshotEntry<E>> {
        let ready = self.ready.lock();
        let stripes = self.lock_exact();
        let firsts = stripes.iter().filter_map(|stripe| stripe.peek());
        let firsts = firsts.chain(ready.entries().next());
        let first = firsts.min_by_key(|first| (first.deadline, first.ticket.sequence))?;
        (first.deadline <= now).then(|| first.viewed(E::clone))
    }

    /// Lists the entries due at `now`, in the order in which they are due.
    pub(crate) fn list_due(&self, now: Timestamp) -> Vec<SnapshotEntry<()>> {
        let mut list = Vec::new();
        let ready = self.ready.lock();
        let due = ready.entries().filter(|entry| entry.deadline <= now);
        list.extend(due.map(|entry| entry.viewed(|_| ())));
        for stripe in &self.stripes {
            stripe.lock().change(|heap| heap.list_due(now, &mut list));
        }
        drop(ready);
        in_order(list)
    }

    pub(crate) fn len(&self) -> usize {
        self.count(|stripe| stripe.pending())
    }

    /// Returns the number of elements that are not parked.
    #[inline(never)]
    pub(crate) fn scheduled(&self) -> usize {
        self.count(|stripe| stripe.len())
    }

    fn count(&self, of_stripe: fn(LockedStripe<'_, E>) -> usize) -> usize {
        let ready = self.ready.lock();
        ready.len() + self.stripes.iter().map(|stripe| of_stripe(stripe.lock())).sum::<usize>()
    }

    /// Returns `true` if at least `count` elements are not parked. Stops locking stripes once it has found that many.
    #[inline(never)]
    pub(crate) fn has_at_least(&self, count: usize) -> bool {
        let stripes = self.stripes.iter().filter(|stripe| stripe.head() < Timestamp::NEVER);
        let mut seen = 0;
        // An element may have moved from its stripe to the list meanwhile, so all are counted once more.
        stripes.map(|stripe| stripe.lock().len()).any(|len| {
            seen += len;
            seen >= count
        }) || self.scheduled() >= count
    }

    /// Returns how many threads are in `take`, asleep or awake.
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.count()
    }

    pub(crate) fn sleeping(&self) -> usize {
        self.waiters.listed()
    }

    /// Returns `true` if an element, parked or not, is due at `moment` or before.
    pub(crate) fn has_any_until(&self, moment: Timestamp) -> bool {
        let ready = self.ready.lock();
        let mut stripes = self.lock_exact();
        let comes = |first: Option<(Timestamp, u64)>| first.is_some_and(|(due, _)| due <= moment);
        let mut keys = stripes.iter_mut().map(|stripe| (stripe.first_key(), stripe.first_parked()));
        comes(ready.first_key()) || keys.any(|(first, parked)| comes(first) || comes(parked))
    }

    /// Returns the queue's counts, and the result of `meanwhile`, which runs under all locks: no count changes before
    /// `meanwhile` returns.
    pub(crate) fn counts<R>(&self, meanwhile: impl FnOnce() -> R) -> (QueueCounts, R) {
        let ready = self.ready.lock();
        let stripes = self.lock_all();
        let (len, taken) = (ready.len() as u64, ready.contents.taken);
        let mut counts = QueueCounts { len, taken, ..QueueCounts::default() };
        for stripe in &stripes {
            counts.len += stripe.pending() as u64;
            counts.offered += stripe.contents.state.offered;
            counts.requeued += stripe.contents.state.requeued;
        }
        (counts, meanwhile())
    }

    /// Returns all entries in the order in which they are due, with clones of their elements. The clones are made under
    /// the locks, so `clone` must not be user code.
    pub(crate) fn snapshot(&self) -> Vec<SnapshotEntry<E>> {
        let ready = self.ready.lock();
        let stripes = self.lock_all();
        let len = ready.len() + stripes.iter().map(|stripe| stripe.pending()).sum::<usize>();
        let mut entries = Vec::with_capacity(len);
        for heap in stripes.iter().flat_map(|stripe| [&**stripe, &stripe.contents.state.parked]) {
            heap.for_each(&mut |entry| entries.push(entry.viewed(E::clone)));
        }
        entries.extend(ready.entries().map(|entry| entry.viewed(E::clone)));
        drop(stripes);
        drop(ready);
        in_order(entries)
    }
}

impl<E> Source for DelayedWorkQueue<E> {
    type Element = E;

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Reads the stripes' heads before the ready list's, because entries move from the stripes to the list. If the
    /// caller misses an entry that is offered meanwhile, the submitter takes care of the wake-up.
    fn head(&self) -> Timestamp {
        let heads = self.stripes.iter().map(|stripe| stripe.head());
        heads.fold(Timestamp::NEVER, Timestamp::min).min(self.ready.head())
    }

    fn first_two(&self) -> [Timestamp; 2] {
        // A stripe that is empty, or has only parked entries, need not be locked.
        let stripes = self.stripes.iter().filter(|stripe| stripe.head() < Timestamp::NEVER);
        let of_each = stripes.map(|stripe| stripe.lock().change(PriorityQueue::first_two));
        of_each.fold(self.ready.lock().first_two(), two_smallest)
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.is_closed() && self.has_nothing_left()
    }

    #[inline(always)]
    fn take_due(&self, now: Timestamp) -> Option<QueueEntry<E>> {
        self.take_due_before(now, u64::MAX)
    }

    #[inline]
    fn take_now(&self) -> (Option<QueueEntry<E>>, Timestamp) {
        // The clock is read before the locks are taken: a stale time only costs one more search.
        let now = self.ready.pause(&self.clock);
        (self.take_due(now), now)
    }
}
