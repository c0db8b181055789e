//! The plain queue: one stripe, and nothing beside it.
//!
//! A queue of values is filled and emptied by the user's own threads, which do with each element
//! what they like; there are no workers whose tasks are so short that it would pay to keep them
//! away from the submitters. So this one has a single heap and no ready list: an element is in
//! the heap or it is not, and its ticket is good until it is taken.
//!
//! That makes three things cheaper than in a queue of several stripes.
//!
//! * **Taking** needs the stripe's lock alone: what stands first there is first of all.
//! * **Numbers** are a counter behind that lock; nobody has to read the clock for them.
//! * **What has been due stays due.** Time does not go back, so the last reading of the clock
//!   ([`Plain::known`]) says as well as a new one that a deadline before it has come. One who finds
//!   a head that is later reads the clock. So a queue that is behind is emptied without reading it
//!   at each element.
//!
//! Everything else is as in any queue: who sleeps, who is woken, when it is finished.

use std::{collections::VecDeque, time::Duration};

use super::{DelayedWorkQueue, Drained, Entry, Listed, Refusal, Refused, Ticket};
use crate::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Clock, Timestamp},
    unwind::wake_all,
};

/// What a plain queue has in place of several stripes. See the [module](self).
pub(super) struct Plain {
    /// A moment that has come.
    known: AtomicU64,
}

impl Plain {
    fn known(&self) -> Timestamp {
        // Ordering: any reading that was ever stored is in the past.
        Timestamp::from_nanos(self.known.load(Ordering::Relaxed))
    }
}

/// Elements that were not admitted.
#[derive(Debug)]
pub(crate) struct AllRefused<E> {
    pub(crate) why: Refusal,
    pub(crate) elements: Vec<(Timestamp, E)>,
}

impl<E> DelayedWorkQueue<E> {
    pub(crate) fn plain(clock: Clock) -> Self {
        let plain = Some(Plain { known: AtomicU64::new(0) });
        Self { plain, ..Self::new(clock, 1, Duration::ZERO) }
    }

    /// Admits an element, to be taken once `deadline` has come, after those of the same moment
    /// that were admitted before.
    #[inline(always)]
    pub(crate) fn insert(&self, deadline: Timestamp, element: E) -> Result<Ticket, Refused<E>> {
        let (ticket, is_head) = self.stripes[0].lock().offer(0, deadline, element)?;
        if is_head {
            wake_all(self.takers.rouse(deadline));
        }
        Ok(ticket)
    }

    /// Admits all, or none.
    pub(crate) fn insert_all(
        &self,
        elements: Vec<(Timestamp, E)>,
    ) -> Result<Vec<Ticket>, AllRefused<E>> {
        let mut tickets = Vec::with_capacity(elements.len());
        let Some(nearest) = elements.iter().map(|(deadline, _)| *deadline).min() else {
            return Ok(tickets);
        };
        let mut stripe = self.stripes[0].lock();
        if let Some(why) = stripe.refusal(elements.len()) {
            return Err(AllRefused { why, elements });
        }
        for (deadline, element) in elements {
            // None is refused: that was asked, and the lock is held since.
            tickets.extend(stripe.offer(0, deadline, element).ok().map(|(ticket, _)| ticket));
        }
        drop(stripe);
        wake_all(self.takers.rouse(nearest));
        Ok(tickets)
    }

    /// Takes an element if it was due at `now`.
    #[inline]
    pub(crate) fn poll_by(&self, now: Timestamp) -> Option<Entry<E>> {
        let taken = self.pop_due(now);
        self.end_if_finished();
        taken
    }

    /// Takes everything out, due or not, in no particular order. What is lent stays out.
    pub(crate) fn clear(&self) -> Drained<E> {
        let mut stripe = self.stripes[0].lock();
        let drained = if stripe.has_lent() {
            Drained::new(stripe.remove_where(|_, _| true).into(), Vec::new())
        } else {
            Drained::new(VecDeque::new(), vec![stripe.remove_all()])
        };
        drop(stripe);
        self.end_if_finished();
        drained
    }

    /// Takes what is due, and says for which moment.
    #[inline(always)]
    pub(super) fn look_plainly(&self, plain: &Plain) -> (Option<Entry<E>>, Timestamp) {
        let known = plain.known();
        let now = if self.stripes[0].head() <= known { known } else { self.read_clock(plain) };
        match self.pop_plainly(now) {
            // Another was faster, and what is first now may be due as well.
            None if now == known => self.look_again(plain),
            taken => (taken, now),
        }
    }

    #[cold]
    fn look_again(&self, plain: &Plain) -> (Option<Entry<E>>, Timestamp) {
        let now = self.read_clock(plain);
        (self.pop_plainly(now), now)
    }

    fn read_clock(&self, plain: &Plain) -> Timestamp {
        let now = self.clock.read();
        // Ordering: see `Plain::known`.
        plain.known.store(now.as_nanos(), Ordering::Relaxed);
        now
    }

    /// Takes the first entry, if it was due at `now`.
    // Always, as all on this way: see `DelayHeap::entry`.
    #[inline(always)]
    pub(super) fn pop_plainly(&self, now: Timestamp) -> Option<Entry<E>> {
        let [stripe] = &*self.stripes else { return None };
        if stripe.head() > now { None } else { stripe.lock().pop_due(now) }
    }

    /// The entry that is due first, due or not; of its element what `view` makes of it under the
    /// lock: no user code.
    pub(crate) fn first<V>(&self, view: impl Fn(&E) -> V) -> Option<Listed<V>> {
        let stripe = self.stripes[0].lock();
        let (deadline, ticket, element) = stripe.heap().first()?;
        Some(Listed { deadline, ticket, element: view(element) })
    }
}
