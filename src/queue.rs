//! The delay queues: elements are inserted with a deadline, and can be taken once it has come.
//!
//! There are two, over one wait loop.
//!
//! ```text
//!                         waiting   (the wait loop, the sleep protocol)
//!        async_waiter ──▶    │   ──▶ waiters   (who searches, who sleeps until when)
//!                            │
//!              Source: head, take_due, first_two, is_finished
//!                 │                               │
//!      striped: DelayedWorkQueue             single: SingleQueue
//!      (the executor, its timeouts)          (the public DelayQueue, its alarms)
//!        several stripes, a ready list         one heap, reservations
//!                 └───────────────┬───────────────┘
//!                     shared_heap (heap + lock + published head)
//!                                 │
//!                               heap   (plain data)
//! ```
//!
//! * **When does a submission come too late?** An insertion and `close` meet at the heap's lock: an
//!   insertion that gets it first is in the heap when `close` returns, and a later one is refused
//!   ([`admission`]).
//! * **Who is woken?** [`waiters`] has the protocol, and the argument why no wake-up is lost.
//! * **What is taken next?** The entry with the smallest deadline, and among equal ones that which
//!   was submitted first. For a single heap that is the heap's order; [`striped`] says why it holds
//!   over several of them.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | element, entry | what is queued; the same with its deadline and its sequence |
//! | sequence | a number that orders submissions and is never used twice |
//! | ticket | identifies an entry while it is in the queue |
//! | head | the deadline of a first entry, [published](published_head) to be read without a lock |
//! | take, try to take | take an entry that is due, with and without waiting |
//! | remove, drain | take entries out, due or not |
//! | search, wait | a thread in `take` is awake and looks, or sleeps and is listed |
//!
//! # Outside the locks
//!
//! The clock is read, elements are made and dropped, and threads are woken while no lock is held.
//! Under a lock entries only move within one heap or list, or between a stripe and the ready list.
//! No user code runs there.

mod admission;
mod async_waiter;
mod drained;
mod heap;
mod published_head;
mod shared_heap;
mod single;
mod snapshot;
mod striped;
mod waiters;
mod waiting;

pub(crate) use self::{
    admission::{Admission, AllRefused, Refusal, Refused},
    async_waiter::AsyncWaiter,
    drained::Drained,
    heap::{Entry, Ticket},
    single::SingleQueue,
    snapshot::SnapshotEntry,
    striped::DelayedWorkQueue,
};

#[cfg(test)]
#[path = "queue/tests/any_queue.rs"]
mod any_queue;
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
