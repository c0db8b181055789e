//! The ready list: entries that are due, on their way from a stripe to whoever takes them.
//!
//! Where one thread submits and others take, each element would bring them together at the
//! stripe's lock, and to hand a lock from core to core costs more than to run a small task. So
//! whoever takes the first element of a stripe, and finds more behind it that are due, moves
//! some of them here in one step. The next ones are taken from here, and the submitter has its
//! stripe for itself meanwhile.
//!
//! There is **one** list, for all who take: with one for each, a task would wait behind the one
//! that its worker runs, while others are idle or run what is due later. An entry here still
//! waits: it can be removed, it is counted, and what comes in and is nearer goes before it.
//!
//! # The pause
//!
//! Where worker and submitter are equally fast there would always be just one or two entries to
//! move, and the two would meet at each all the same. So when there were some, but not a full
//! batch, the stripes are left alone for a few microseconds ([`PAUSE`]) once the list is empty.
//! An entry that comes alone waits for nothing; in a stream of them one waits that long at most,
//! a tenth of what a wake-up takes. The manual clock knows no pause.
//!
//! # Who may touch what
//!
//! The list's lock is held during the whole of every taking, so nobody takes while an entry is
//! between a stripe and the list. Nothing is offered to the list, and entries only ever go from a
//! stripe to it; the one exception, an entry that is given another deadline, is in nobody's way,
//! because it has another ticket then.
//!
//! Whoever looks for an entry, or at the published heads, *without* that lock looks at the
//! stripes first and at the list afterwards; and an entry is here before it is gone there. So
//! whoever looks meets it at least once.

use std::{collections::VecDeque, time::Duration};

use super::{
    DelayedWorkQueue,
    head::Head,
    heap::{Entry, Ticket},
};
use crate::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
        rank, spin_loop,
    },
    time::{Clock, Timestamp},
};

/// How long the stripes are left alone.
const PAUSE: Duration = Duration::from_micros(3);

/// See the [module](self).
pub(super) struct Ready<E> {
    head: Head,
    /// Until when the stripes are left alone.
    pause: AtomicU64,
    inner: Mutex<Inner<E>, { rank::READY_LIST }>,
}

struct Inner<E> {
    list: VecDeque<Entry<E>>,
    /// How many elements have been taken from the queue, from here or not: who takes has the lock.
    taken: u64,
}

/// The list with its lock held. What changes the list also publishes the head.
pub(super) struct Locked<'a, E> {
    head: &'a Head,
    inner: MutexGuard<'a, Inner<E>>,
}

impl<E> Ready<E> {
    pub(super) fn new() -> Self {
        let inner = Inner { list: VecDeque::new(), taken: 0 };
        Self { head: Head::new(), pause: AtomicU64::new(0), inner: Mutex::new(inner) }
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_, E> {
        Locked { head: &self.head, inner: self.inner.lock() }
    }

    /// Whether nothing is here. Who has looked for an entry in its stripe and then sees that
    /// nothing is here can be sure that the entry is gone.
    pub(super) fn is_empty(&self) -> bool {
        self.head() == Timestamp::NEVER
    }

    /// There were some entries at `now`, but no more than that.
    pub(super) fn pause_after(&self, now: Timestamp) {
        // Ordering: nothing hangs on it.
        self.pause.store(now.after(PAUSE).as_nanos(), Ordering::Relaxed);
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn paused_until(&self) -> Timestamp {
        Timestamp::from_nanos(self.pause.load(Ordering::Relaxed))
    }

    /// Waits for the end of the pause, or for something to be here. Gives the present.
    #[inline]
    pub(super) fn pause(&self, clock: &Clock) -> Timestamp {
        loop {
            let now = clock.read();
            // Ordering: as above.
            let is_over = now.as_nanos() >= self.pause.load(Ordering::Relaxed);
            if is_over || clock.is_manual() || !self.is_empty() {
                return now;
            }
            spin_loop();
        }
    }

    /// The deadline of the first entry.
    #[inline]
    pub(super) fn head(&self) -> Timestamp {
        self.head.deadline()
    }
}

/// What has left its stripe is found here.
impl<E> DelayedWorkQueue<E> {
    pub(super) fn deadline_ready(&self, ticket: Ticket) -> Option<Timestamp> {
        if self.ready.is_empty() { None } else { self.ready.lock().deadline(ticket) }
    }

    #[cold]
    pub(super) fn remove_ready(&self, ticket: Ticket) -> Option<Entry<E>> {
        if self.ready.is_empty() { None } else { self.ready.lock().remove(ticket) }
    }

    /// Moves an element from the ready list back into its stripe.
    #[cold]
    pub(super) fn take_back(&self, ticket: Ticket, deadline: Timestamp) -> Option<Ticket> {
        // Held to the end, or somebody might think that the queue is finished.
        let mut ready = self.ready.lock();
        let entry = ready.remove(ticket)?;
        let back = self.lock_of(ticket.sequence).put_back(deadline, entry);
        back.map_err(|entry| ready.put_back(entry)).ok()
    }
}

impl<E> Locked<'_, E> {
    /// The deadline and the sequence of the first entry.
    #[inline]
    pub(super) fn head(&self) -> Option<(Timestamp, u64)> {
        self.inner.list.front().map(|entry| (entry.deadline, entry.sequence))
    }

    /// The deadlines of the first two entries.
    pub(super) fn first_two(&self) -> [Timestamp; 2] {
        [0, 1].map(|index| {
            self.inner.list.get(index).map_or(Timestamp::NEVER, |entry| entry.deadline)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.inner.list.len()
    }

    /// An element has been taken from the queue.
    #[inline]
    pub(super) fn count_taken(&mut self) {
        self.inner.taken += 1;
    }

    /// How many elements have been taken from the queue.
    pub(super) fn taken(&self) -> u64 {
        self.inner.taken
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<E>> {
        self.inner.list.iter()
    }

    /// Adds an entry that is due after all that are here.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry<E>) {
        let is_first = self.inner.list.is_empty();
        self.inner.list.push_back(entry);
        if is_first {
            self.publish();
        }
    }

    /// Puts an entry back that was here.
    pub(super) fn put_back(&mut self, entry: Entry<E>) {
        let keys = self.inner.list.iter().map(|entry| (entry.deadline, entry.sequence));
        let key = (entry.deadline, entry.sequence);
        let index = keys.take_while(|other| *other < key).count();
        self.inner.list.insert(index, entry);
        self.publish();
    }

    /// Takes the first entry, if it is due for who read the clock at `now`: the one who put it
    /// here may have read it later.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Entry<E>> {
        if self.inner.list.front()?.deadline > now {
            return None;
        }
        let entry = self.inner.list.pop_front();
        self.publish();
        entry
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Entry<E>> {
        let index = self.index_of(ticket)?;
        let entry = self.inner.list.remove(index);
        self.publish();
        entry
    }

    pub(super) fn deadline(&self, ticket: Ticket) -> Option<Timestamp> {
        Some(self.inner.list[self.index_of(ticket)?].deadline)
    }

    pub(super) fn remove_all(&mut self) -> VecDeque<Entry<E>> {
        let removed = std::mem::take(&mut self.inner.list);
        self.publish();
        removed
    }

    pub(super) fn remove_where(
        &mut self,
        mut unwanted: impl FnMut(Timestamp, &E) -> bool,
    ) -> Vec<Entry<E>> {
        let mut removed = Vec::new();
        for entry in std::mem::take(&mut self.inner.list) {
            if unwanted(entry.deadline, &entry.element) {
                removed.push(entry);
            } else {
                self.inner.list.push_back(entry);
            }
        }
        self.publish();
        removed
    }

    fn index_of(&self, ticket: Ticket) -> Option<usize> {
        self.inner.list.iter().position(|entry| entry.sequence == ticket.sequence)
    }

    #[inline]
    fn publish(&self) {
        self.head.publish(self.head());
    }
}
