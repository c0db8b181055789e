//! The delay queues: an element is inserted with a deadline, and can be taken once the deadline has come. Two queues
//! share one wait loop.
//!
//! ```text
//!                         waiting   (the wait loop, the sleep protocol; parked or polled)
//!                            │   ──▶ waiters   (which threads search, which sleep, until when)
//!                            │
//!              Source: head, take_due, first_two, is_finished
//!                 │                               │
//!      striped: DelayedWorkQueue             single: SingleQueue
//!      (the executor, its timeouts)          (the public DelayQueue)
//!        several stripes, a ready list         one heap
//!                 └───────────────┬───────────────┘
//!                    shared_heap   (heap + lock + published head)
//!                                 │
//!                   priority_queue: PriorityQueue   (plain data: the heap itself)
//!              ┌──────────────────┼──────────────────┐
//!         array_heap          sorted_run          calendar
//!       out of order       arrives in order      17 ms ahead or more
//! ```
//!
//! * **When is a submission too late?** A submission and `close` race for the heap's lock. A submission that wins has
//!   reached the heap by the time `close` returns; one that loses is refused ([`AdmissionState`]).
//! * **Which thread is woken?** [`waiters`] has the protocol, and the argument that no wake-up is lost.
//! * **Which entry is taken next?** The entry with the earliest deadline; of several with the same deadline, the one
//!   submitted first. A single heap has this order; [`striped`] says why the order holds across heaps.
//! * A thread holds no lock while it reads the clock, drops an element, or wakes another thread.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | element | a value that the owner inserts |
//! | entry | an element with its deadline and sequence number |
//! | sequence number | orders submissions; no two elements ever have the same number |
//! | ticket | identifies an entry while it is in the queue |
//! | take | wait until an entry is due, then take it out |
//! | try to take | take an entry out only if one is due now |
//! | remove | take chosen entries out, due or not |
//! | drain | take all entries out |
//! | requeue | queue a taken element again, with the sequence number that it had |
//!
//! # Java's names
//!
//! Names inside `ScheduledThreadPoolExecutor`, its nested classes, `ThreadPoolExecutor` and `FutureTask`, with their
//! equivalents in this crate. A test checks that each equivalent is in the file named.
//!
//! | Java | here | in `src` |
//! |---|---|---|
//! | `siftUp` | `ArrayHeap::sift_up` | `queue/priority_queue/array_heap.rs` |
//! | `siftDown` | `ArrayHeap::sift_down` | `queue/priority_queue/array_heap.rs` |
//! | `grow` | `ArrayHeap::grow` | `queue/priority_queue/array_heap.rs` |
//! | `finishPoll` | `ArrayHeap::pop` | `queue/priority_queue/array_heap.rs` |
//! | `removeAt` | `ArrayHeap::remove_at` | `queue/priority_queue/array_heap.rs` |
//! | `setIndex` | `Positions::set_position` | `queue/priority_queue/array_heap.rs` |
//! | `heapIndex`, `indexOf` | `Slots::key_place` | `queue/priority_queue/slots.rs` |
//! | `compareTo` | `key` | `queue/priority_queue.rs` |
//! | `sequencer`, `sequenceNumber` | `LockedStripe::next_sequence` | `queue/striped/stripe.rs` |
//! | `offer` | `DelayedWorkQueue::offer` | `queue/striped.rs` |
//! | `take`, `poll` | `wait_until` | `queue/waiting.rs` |
//! | `leader` | `Waiters::begin_wait`, which chooses it | `queue/waiters.rs` |
//! | `available.await` | `Waiters::begin_wait` | `queue/waiters.rs` |
//! | `triggerTime`, `overflowFree` | `Timestamp::after`: it saturates, so nothing overflows | `time.rs` |
//! | `setNextRunTime` | `Schedule::plan` | `schedule.rs` |
//! | `runAndReset` | `Task::run` | `task/call.rs` |
//! | `delayedExecute` | `PoolRef::admit` | `pool/submitting.rs` |
//! | `ensurePrestart` | `Pool::ensure_worker` | `pool/submitting.rs` |
//! | `addWorker` | `Pool::start_worker` | `pool/staffing.rs` |
//! | `getTask` | `Runner::run_tasks` | `pool/worker.rs` |
//! | `reExecutePeriodic` | `Runner::requeue` | `pool/worker.rs` |
//! | `canRunInCurrentRunState` | `AdmissionState::is_closed_to` | `queue.rs` |
//! | `onShutdown` | `Pool::shutdown` | `pool/shutdown.rs` |

mod priority_queue;
mod shared_heap;
mod single;
mod striped;
mod waiters;
mod waiting;

use self::priority_queue::{PriorityQueue, UnderLock};
pub(crate) use self::{
    priority_queue::{Drained, QueueEntry},
    single::SingleQueue,
    striped::DelayedWorkQueue,
    waiting::{AsyncWaiter, Source},
};
use crate::{
    entry::{Requeue, Ticket},
    sync::atomic::{AtomicUsize, Ordering},
    time::Timestamp,
};

/// Which elements a queue admits: all, none, or only those that are queued again for certain reasons. Each set bit
/// shuts out one class of elements, so setting another bit closes the queue further. No bit is ever cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admission(usize);

impl Admission {
    pub(crate) const CLOSED: Self = Self(1 | 2 | 4 | 8 | 16 | 32 | 64);

    /// Makes an admission that admits only elements queued again for one of these reasons.
    pub(crate) fn only(reasons: impl IntoIterator<Item = Requeue>) -> Self {
        let admitted = reasons.into_iter().fold(0, |bits, why| bits | why as usize);
        Self(Self::CLOSED.0 & !admitted)
    }
}

/// The [`Admission`] of one queue.
///
/// A thread writes it while it holds *all* heap locks of the queue, so the admission cannot change while any of them is
/// held. An inserting thread reads it under its heap's lock, so an insertion and a close take effect in the order in
/// which they get that lock. A thread that sees the queue closed without a lock knows that every admitted element has
/// reached its heap.
struct AdmissionState(AtomicUsize);

impl AdmissionState {
    fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    #[inline]
    fn is_open(&self) -> bool {
        // Ordering: see `Source::is_finished`; under a lock, any ordering would do.
        self.0.load(Ordering::SeqCst) == 0
    }

    #[inline]
    fn is_closed_to(&self, why: Requeue) -> bool {
        // Ordering: only read under a lock.
        self.0.load(Ordering::Relaxed) & why as usize != 0
    }

    /// Closes the queue to all elements that `admission` does not admit. The caller holds all heap locks of the queue.
    fn restrict_to(&self, admission: Admission) {
        // Ordering: no other thread can write now. For the sequentially consistent store, see `is_open`.
        let current = self.0.load(Ordering::Relaxed);
        self.0.store(current | admission.0, Ordering::SeqCst);
    }
}

/// A function that gets an entry's due time and element, and returns `true` if the entry is to be removed.
type Unwanted<'a, E> = &'a mut dyn FnMut(Timestamp, &E) -> bool;

#[derive(Debug)]
pub(crate) struct RefusedElement<E> {
    pub(crate) why: InsertError,
    /// The element's sequence number. No other element gets this number.
    pub(crate) sequence: u64,
    pub(crate) element: E,
}

/// The reason why a [`DelayQueue`](crate::DelayQueue) refused an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InsertError {
    /// The queue is closed.
    Closed,
    /// The queue would have more than a billion elements.
    Full,
}

/// An entry as it was when a snapshot was taken. `element` is a clone of the entry's element, a reference to it, a view
/// of it, or `()`.
#[derive(Debug)]
pub(crate) struct SnapshotEntry<V> {
    /// The moment at which the entry is due, even if it is parked.
    pub(crate) deadline: Timestamp,
    pub(crate) ticket: Ticket,
    pub(crate) element: V,
}

impl<E> SnapshotEntry<&E> {
    pub(crate) fn viewed<V>(self, view: impl FnOnce(&E) -> V) -> SnapshotEntry<V> {
        let Self { deadline, ticket, element } = self;
        SnapshotEntry { deadline, ticket, element: view(element) }
    }
}

/// Sorts the entries of a snapshot by due time, and then by submission. The caller holds no lock.
pub(crate) fn in_order<V>(mut entries: Vec<SnapshotEntry<V>>) -> Vec<SnapshotEntry<V>> {
    entries.sort_unstable_by_key(|entry| (entry.deadline, entry.ticket.sequence));
    entries
}

#[cfg(test)]
#[path = "queue/tests/any_queue.rs"]
mod any_queue;
#[cfg(test)]
#[cfg(loom)]
#[path = "queue/tests/exhaustive.rs"]
mod exhaustive;
#[cfg(test)]
#[cfg(not(loom))]
#[path = "queue/tests/linearizable.rs"]
mod linearizable;
#[cfg(test)]
#[cfg(shuttle)]
#[path = "queue/tests/model.rs"]
mod model;
#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests;
