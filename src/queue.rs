//! The `DelayedWorkQueue`: elements come in with a deadline and go out when it has come.
//!
//! It has several heaps, the *stripes* ([`stripe`]), each with its own lock. A thread offers into
//! one of them, always the same, so threads that submit at once do not meet; an element's ticket
//! says which it is in, so removal is exact and at once. With one stripe this is the plain queue
//! of one heap and one lock.
//!
//! ```text
//!   offer ──▶ stripe 0 ─┐
//!   offer ──▶ stripe 1 ─┼─▶ take: the first of all, and up to 32 ─▶ ready list ─▶ take
//!   offer ──▶ stripe 2 ─┘         that are due right behind it
//! ```
//!
//! So that submitter and worker do not meet at each element either, due entries leave a stripe
//! some at a time, to the [`ready`] list, where they wait in order, for all who take.
//!
//! * **When is a submission too late?** [`offer`](DelayedWorkQueue::offer) and
//!   [`close`](DelayedWorkQueue::close) meet at the stripe's lock. Whoever comes first is first:
//!   the element is in the heap when the closer looks, or it is given back.
//! * **Who wakes the next leader?** [`takers`], where the argument stands.
//! * **What is taken next?** The smallest deadline of all, and among equals what was submitted
//!   first: below.
//!
//! # Order over all of them
//!
//! `take` locks the ready list, reads the published heads, locks the stripe with the smallest,
//! unless the list has a smaller one, and **looks at the other heads again** before it pops. Say
//! A was submitted before B (the call was over, whichever thread it was) and is due before B.
//! Whoever takes B, from its stripe or from the list, reads the other heads after B was admitted,
//! and so after A was; and A is not on its way between stripe and list, for that takes the list's
//! lock. It sees A, and begins again. So B is never taken before A.
//!
//! If heads are exactly *equal*, the sequences decide, which stand behind the locks. Between the
//! list and one stripe both are held anyway; that two stripes have equal heads is rare, and
//! `pop_among_equals` simply takes all locks.
//!
//! Locks are taken in this order: the list's, then the stripes' in the order of their numbers, then
//! that of the takers. An offer takes its stripe's, and releases it before it looks whom to wake. All
//! nestings stand in `docs/locks.md`.
//!
//! # The plain queue
//!
//! A queue for values has one stripe and no ready list ([`plain`]). It can lend an element to
//! who may not want it ([`lending`]), and be awaited ([`awaiting`]).
//!
//! # What happens outside the locks
//!
//! The clock is read, elements are made and dropped, and threads are rung for outside. Under a
//! lock are only moves within one heap or list: no user code.
//!
//! # What it costs
//!
//! | | read-modify-writes | readings of the clock | wake-ups |
//! |---|---|---|---|
//! | `offer` | 2 for the lock, 1 more if the head comes nearer | the submitter's one | one, if the head comes nearer and nobody searches or is armed in time |
//! | `remove` | 2 | 0 | 0 |
//! | `take`, due | 2 for the list; 2 for a stripe, once for all that it moves | 1 | 0 |
//! | `take` that waits | the same, 2 to be counted, 4 for the gate if it sleeps | 2, and one for each look | its own |
//!
//! Nothing is allocated but when a table grows.

mod admission;
mod awaiting;
mod census;
mod chunks;
mod drained;
mod head;
mod heap;
mod lane;
mod lending;
mod plain;
mod ready;
mod slots;
mod stripe;
mod takers;

use std::{ops::Deref, task::Waker, time::Duration};

use crossbeam_utils::CachePadded;

pub(crate) use self::{
    admission::{Admission, Refusal, Refused},
    awaiting::Nap,
    census::Listed,
    drained::Drained,
    heap::{Entry, Ticket},
};
use self::{
    plain::Plain,
    ready::Ready,
    stripe::{Locked, Stripe},
    takers::Takers,
};
use crate::{
    sync::{
        Parker,
        atomic::{AtomicBool, Ordering},
        spin,
    },
    time::{Clock, Timestamp, Wait},
    unwind::wake_all,
};

/// See the [module](self).
pub(crate) struct DelayedWorkQueue<E> {
    clock: Clock,
    /// How long before a deadline a thread wakes, to await the rest awake.
    lead: Duration,
    stripes: Box<[CachePadded<Stripe<E>>]>,
    ready: CachePadded<Ready<E>>,
    takers: Takers,
    /// Set once every stripe is closed at least in part.
    closed: AtomicBool,
    /// Set for one whose only stripe is all there is.
    plain: Option<Plain>,
}

/// How many entries go to the ready list together.
const BATCH: usize = 32;

impl<E> DelayedWorkQueue<E> {
    /// A queue of as many stripes, but at least one and at most sixteen.
    pub(crate) fn new(clock: Clock, stripes: usize, lead: Duration) -> Self {
        let numbers = 0..stripes.clamp(1, stripe::MOST);
        let lead = if clock.is_manual() { Duration::ZERO } else { lead };
        let stripes = numbers.map(|number| CachePadded::new(Stripe::new(number))).collect();
        let (ready, takers) = (CachePadded::new(Ready::new()), Takers::new());
        Self { clock, lead, stripes, ready, takers, closed: AtomicBool::new(false), plain: None }
    }

    pub(crate) fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// Admits an element, to be taken once `deadline` has come. `now` is when it is submitted,
    /// `stripe` the number of the stripe that this thread uses.
    #[inline]
    pub(crate) fn offer(
        &self,
        stripe: usize,
        now: Timestamp,
        deadline: Timestamp,
        element: E,
    ) -> Result<Ticket, Refused<E>> {
        let moment = self.clock.submission_stamp(now);
        let (ticket, is_head) = self.stripes[stripe].lock().offer(moment, deadline, element)?;
        if is_head {
            wake_all(self.takers.rouse(deadline));
        }
        Ok(ticket)
    }

    /// The number that an element would get that is submitted now; nobody else gets it.
    pub(crate) fn number(&self, stripe: usize, now: Timestamp) -> u64 {
        self.stripes[stripe].lock().number(self.clock.submission_stamp(now))
    }

    /// Admits an element that was taken before, with the number it had. Gives the ticket and
    /// whom the caller is to wake, once it holds no lock.
    pub(crate) fn offer_again(
        &self,
        deadline: Timestamp,
        sequence: u64,
        element: E,
    ) -> Result<(Ticket, Option<Waker>), Refused<E>> {
        let mut stripe = self.lock_of(sequence);
        let ticket = stripe.offer_again(deadline, sequence, element)?;
        drop(stripe);
        Ok((ticket, self.takers.rouse(deadline)))
    }

    /// Waits for an element to fall due and takes it. Nothing once the queue is closed and empty.
    /// The moment of taking comes with it.
    pub(crate) fn take(&self) -> Option<(Entry<E>, Timestamp)> {
        self.take_until(|_| Timestamp::NEVER)
    }

    /// Takes an element if one is due.
    pub(crate) fn poll(&self) -> Option<Entry<E>> {
        let (taken, _) = self.look();
        self.end_if_finished();
        taken
    }

    /// The same, but waits no longer than the limit that `limit` gives for who has waited since
    /// that moment. It is asked again if the thread wakes for nothing ([`reconsider`](Self::reconsider)).
    #[inline]
    pub(crate) fn take_until(
        &self,
        limit: impl Fn(Timestamp) -> Timestamp,
    ) -> Option<(Entry<E>, Timestamp)> {
        self.take_until_by(Parker::current, |since| Some(limit(since)))
    }

    /// The same for a thread that others may wake, too, to ask for the limit again: it is the
    /// `parker` they know that has to sleep. There is no limit if it [has left](Self::leave).
    #[inline]
    pub(crate) fn take_until_by<P: Deref<Target = Parker>>(
        &self,
        parker: impl FnOnce() -> P,
        limit: impl Fn(Timestamp) -> Option<Timestamp>,
    ) -> Option<(Entry<E>, Timestamp)> {
        let (taken, now) = self.look();
        if let Some(entry) = taken {
            self.end_if_finished();
            return Some((entry, now));
        }
        self.wait_until(limit, now, &parker())
    }

    /// Takes what is due, and says for which moment.
    #[inline]
    fn look(&self) -> (Option<Entry<E>>, Timestamp) {
        if let Some(plain) = &self.plain {
            return self.look_plainly(plain);
        }
        // Before the locks: a stale reading can only make this thread look once more.
        let now = self.ready.pause(&self.clock);
        (self.pop_due(now), now)
    }

    /// The same for a thread that has found nothing.
    fn wait_until(
        &self,
        limit: impl Fn(Timestamp) -> Option<Timestamp>,
        since: Timestamp,
        parker: &Parker,
    ) -> Option<(Entry<E>, Timestamp)> {
        let mut waker = None;
        let wait = self.clock.wait(parker);
        self.takers.arrive();
        loop {
            let now = self.clock.read();
            let taken = self.pop_due(now);
            let round = self.takers.round();
            let limit = if taken.is_none() { limit(since)? } else { now };
            if taken.is_some() || now >= limit || self.is_finished() {
                wake_all(self.leave());
                self.end_if_finished();
                if let Some(entry) = &taken {
                    parker.spin().learn(entry.deadline.since(since));
                }
                return taken.map(|entry| (entry, now));
            }
            if !self.spin_until(now, limit, parker) {
                waker = self.sleep(waker, limit, round, &wait);
            }
        }
    }

    /// A thread that waits does so no longer. Gives whom to wake for what is left.
    pub(crate) fn leave(&self) -> Option<Waker> {
        self.takers.leave(|| self.head())
    }

    /// Looks on until the next deadline if that is near, else for a while, unless somebody else
    /// does. Whether there is something due.
    fn spin_until(&self, now: Timestamp, limit: Timestamp, parker: &Parker) -> bool {
        let head = self.head();
        let until = if self.clock.is_manual() {
            return false;
        } else if head <= now.after(self.lead) && head < Timestamp::NEVER {
            head
        } else if self.takers.is_alone() {
            now.after(parker.spin().span())
        } else {
            return false;
        };
        spin::spin_until(|| {
            let (now, next) = (self.clock.read(), self.head());
            let is_due = next <= now;
            // If the head has gone away there may be more to it: the queue may be at its end.
            (is_due || next > head || now >= until.min(limit)).then_some(is_due)
        })
    }

    /// Sleeps until there may be something to take. The waker comes back if it was not used.
    fn sleep(
        &self,
        waker: Option<Waker>,
        limit: Timestamp,
        round: u64,
        wait: &Wait<'_>,
    ) -> Option<Waker> {
        let waker = waker.unwrap_or_else(|| wait.parker().waker().clone());
        let sleep = self.takers.lie_down(waker, self.first_two(), round);
        let has_changed = sleep.is_late || sleep.is_last && !self.takers.is_covered(self.head());
        if !has_changed {
            wait.park_until(sleep.until.before(self.lead).min(limit));
        }
        self.takers.get_up(sleep.id)
    }

    /// Takes the first element of all, if it is due; see the head of the module.
    #[inline(always)]
    fn pop_due(&self, now: Timestamp) -> Option<Entry<E>> {
        if self.plain.is_some() {
            self.pop_plainly(now)
        } else if self.head() <= now {
            self.pop_due_of_all(now)
        } else {
            None
        }
    }

    fn pop_due_of_all(&self, now: Timestamp) -> Option<Entry<E>> {
        let mut ready = self.ready.lock();
        let taken = self.pop_first_due(&mut ready, now);
        if taken.is_some() {
            ready.count_taken();
        }
        taken
    }

    fn pop_first_due(&self, ready: &mut ready::Locked<'_, E>, now: Timestamp) -> Option<Entry<E>> {
        loop {
            let heads = self.stripes.iter().map(|stripe| stripe.head()).enumerate();
            let (nearest, head) = heads.min_by_key(|(_, head)| *head)?;
            let first = ready.head();
            let is_ready = first.is_some_and(|(deadline, _)| deadline < head);
            if is_ready || head > now {
                return ready.pop_due(now);
            }
            let mut stripe = self.stripes[nearest].lock();
            let Some(key) = stripe.head() else { continue };
            let others = self.stripes.iter().enumerate().filter(|(number, _)| *number != nearest);
            let other =
                others.map(|(_, stripe)| stripe.head()).fold(Timestamp::NEVER, Timestamp::min);
            if key.0 > now || other < key.0 {
                continue;
            } else if other == key.0 {
                drop(stripe);
                return self.pop_among_equals(ready, now);
            } else if first.is_some_and(|first| first < key) {
                return ready.pop_due(now);
            }
            let room = if first.is_some() { 0 } else { BATCH };
            let is_due = |deadline| deadline <= now;
            let taken = stripe.pop_along(room, is_due, |entry| ready.push(entry));
            if room > 0 && (1..BATCH).contains(&ready.len()) {
                self.ready.pause_after(now);
            }
            return taken;
        }
    }

    /// The same with all locks held.
    #[cold]
    fn pop_among_equals(
        &self,
        ready: &mut ready::Locked<'_, E>,
        now: Timestamp,
    ) -> Option<Entry<E>> {
        let mut stripes: Vec<_> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
        let heads = stripes.iter_mut().filter_map(|stripe| stripe.head().zip(Some(stripe)));
        match heads.min_by_key(|(head, _)| *head) {
            Some((head, stripe)) if ready.head().is_none_or(|first| head < first) => {
                if head.0 <= now { stripe.pop() } else { None }
            }
            _ => ready.pop_due(now),
        }
    }

    /// Takes out the element that is due first, due or not.
    pub(crate) fn remove_first(&self) -> Option<Entry<E>> {
        let removed = self.pop_among_equals(&mut self.ready.lock(), Timestamp::NEVER);
        self.end_if_finished();
        removed
    }

    /// Takes an element out, due or not.
    #[inline]
    pub(crate) fn remove(&self, ticket: Ticket) -> Option<E> {
        let removed = self.lock_of(ticket.sequence).remove(ticket);
        let removed = removed.or_else(|| self.remove_ready(ticket));
        self.end_if_finished();
        removed.map(|entry| entry.element)
    }

    /// Moves an element to another deadline. Gives the ticket it has from now on, or nothing if
    /// it was not there.
    pub(crate) fn reset(&self, ticket: Ticket, deadline: Timestamp) -> Option<Ticket> {
        let was_there = self.lock_of(ticket.sequence).reset(ticket, deadline);
        let ticket = if was_there { ticket } else { self.take_back(ticket, deadline)? };
        wake_all(self.takers.rouse(deadline));
        Some(ticket)
    }

    /// Until when the element waits; nothing if it is not there.
    pub(crate) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        let deadline = self.lock_of(ticket.sequence).deadline(ticket);
        deadline.or_else(|| self.deadline_ready(ticket))
    }

    /// Whether it admits no new elements.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: see `is_finished`.
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn len(&self) -> usize {
        let ready = self.ready.lock();
        ready.len() + self.stripes.iter().map(|stripe| stripe.lock().len()).sum::<usize>()
    }

    /// Takes out what is `unwanted`, each stripe in one step.
    pub(crate) fn remove_where(
        &self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<Entry<E>> {
        let mut ready = self.ready.lock();
        let mut removed = ready.remove_where(&mut unwanted);
        for stripe in &self.stripes {
            removed.append(&mut stripe.lock().remove_where(&mut unwanted));
        }
        drop(ready);
        self.end_if_finished();
        removed
    }

    /// Lets in no more than `admission` says from now on. What is inside will still be taken;
    /// when nothing is left `take` ends. May be called again, to close further.
    pub(crate) fn close(&self, admission: Admission) {
        for stripe in &self.stripes {
            stripe.lock().close(admission);
        }
        if admission != Admission::Open {
            // Ordering: see `is_finished`.
            self.closed.store(true, Ordering::SeqCst);
        }
        self.end_if_finished();
    }

    /// Lets everyone who waits ask for its limit again; also who has asked, and is about to sleep.
    pub(crate) fn reconsider(&self) {
        wake_all(self.takers.rouse_all());
    }

    /// Whether there is and will be nothing to take.
    ///
    /// Ordering: whoever closes the queue, or takes the last element out of one that is closed,
    /// asks this and then wakes everyone. Whoever is to sleep reads the round first and asks this
    /// then: if it is over only afterwards, the waking finds it listed, or makes its round old.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.is_closed() && self.has_nothing_left()
    }

    #[inline(never)]
    fn has_nothing_left(&self) -> bool {
        let ready = self.ready.lock();
        ready.len() == 0 && self.stripes.iter().all(|stripe| stripe.lock().is_finished())
    }

    /// Wakes everyone if there will be nothing more for anyone.
    #[inline]
    fn end_if_finished(&self) {
        if self.is_finished() {
            wake_all(self.takers.rouse_all());
        }
    }

    /// The stripe of an element that was admitted with this sequence.
    #[inline]
    fn lock_of(&self, sequence: u64) -> Locked<'_, E> {
        // A number from another queue, of more stripes, finds nothing in any of this one.
        self.stripes[stripe::number_of(sequence) % self.stripes.len()].lock()
    }

    /// The nearest of the published heads: the stripes' first, for from there entries go to the
    /// list.
    fn head(&self) -> Timestamp {
        let nearest =
            self.stripes.iter().map(|stripe| stripe.head()).fold(Timestamp::NEVER, Ord::min);
        nearest.min(self.ready.head())
    }

    /// The first two deadlines of all.
    fn first_two(&self) -> [Timestamp; 2] {
        let nearer = |[a, b]: [Timestamp; 2], [c, d]: [Timestamp; 2]| {
            if a <= c { [a, b.min(c)] } else { [c, a.min(d)] }
        };
        // What waits for ever, or not at all, needs no look behind the lock.
        let stripes = self.stripes.iter().filter(|stripe| stripe.head() < Timestamp::NEVER);
        let of_each = stripes.map(|stripe| stripe.lock().first_two());
        nearer(of_each.fold([Timestamp::NEVER; 2], nearer), self.ready.lock().first_two())
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "queue/tests/exhaustive.rs"]
mod exhaustive;
#[cfg(test)]
#[cfg(shuttle)]
#[path = "queue/tests/model.rs"]
mod model;
#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;
