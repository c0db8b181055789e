//! The shop: orders that wait for their payment, and the fate of the others.
//!
//! An order waits in a [`DelayQueue`], and leaves it in one of two ways: a payment removes it by
//! its key, or it expires and a worker takes it. The queue ensures that only one of the two
//! happens; no code here has to. (An expired order can be paid as long as no worker has got to it,
//! which is in the shop's interest.) The book records the fate of each order by its number.

use std::{
    collections::{HashMap, hash_map},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use punctual::{DelayQueue, Delayed, delay_queue::Key};

/// An unpaid order.
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) placed: Instant,
    pub(crate) time_to_pay: Duration,
}

impl Delayed for Order {
    fn deadline(&self) -> Option<Instant> {
        // `None`, which means never, for a time so long that no clock will show its end.
        self.placed.checked_add(self.time_to_pay)
    }
}

pub(crate) struct Shop {
    unpaid: DelayQueue<Order>,
    book: Mutex<HashMap<String, State>>,
}

#[derive(Clone, Copy)]
enum State {
    Unpaid(Key),
    Paid,
    Cancelled,
}

/// The reason why a customer's action was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    OrderedTwice,
    Closed,
    Unknown,
    PaidTwice,
    TooLate,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrderedTwice => "there was an order with this number already",
            Self::Closed => "the shop is closed",
            Self::Unknown => "there is no such order",
            Self::PaidTwice => "it was paid already",
            Self::TooLate => "too late, the time to pay it is over",
        })
    }
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self { unpaid: DelayQueue::new(), book: Mutex::default() }
    }

    pub(crate) fn order(&self, id: &str, time_to_pay: Duration) -> Result<(), Refusal> {
        // The book stays locked: no worker records the order's fate before the order is in the book.
        let mut book = self.book();
        let hash_map::Entry::Vacant(line) = book.entry(id.to_owned()) else {
            return Err(Refusal::OrderedTwice);
        };
        let order = Order { id: id.to_owned(), placed: Instant::now(), time_to_pay };
        let key = self.unpaid.put(order).map_err(|_| Refusal::Closed)?;
        line.insert(State::Unpaid(key));
        Ok(())
    }

    /// Pays an order, and returns it.
    pub(crate) fn pay(&self, id: &str) -> Result<Order, Refusal> {
        let mut book = self.book();
        let state = book.get_mut(id).ok_or(Refusal::Unknown)?;
        match *state {
            State::Paid => Err(Refusal::PaidTwice),
            State::Cancelled => Err(Refusal::TooLate),
            State::Unpaid(key) => {
                // An order that is not in the queue is with a worker, which is about to cancel it.
                let order = self.unpaid.remove(key).ok_or(Refusal::TooLate)?;
                *state = State::Paid;
                Ok(order)
            }
        }
    }

    /// The orders to cancel, as they expire; any number of workers may share the iterator. It ends
    /// when the shop is closed and has no unpaid order.
    pub(crate) fn overdue(&self) -> impl Iterator<Item = Order> {
        self.unpaid.expirations().map(|expired| {
            let order = expired.element;
            self.book().insert(order.id.clone(), State::Cancelled);
            order
        })
    }

    /// Closes the shop to new orders. Pending ones can still be paid.
    pub(crate) fn close(&self) {
        self.unpaid.close();
    }

    /// Ends the wait for the unpaid orders.
    pub(crate) fn forget_unpaid(&self) {
        self.unpaid.clear();
    }

    pub(crate) fn report(&self) -> Report {
        let mut report = Report::default();
        for state in self.book().values() {
            match state {
                State::Unpaid(_) => report.left_unpaid += 1,
                State::Paid => report.paid += 1,
                State::Cancelled => report.cancelled += 1,
            }
        }
        report
    }

    fn book(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of orders by their fate.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) paid: usize,
    pub(crate) cancelled: usize,
    pub(crate) left_unpaid: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { paid, cancelled, left_unpaid } = self;
        let all = paid + cancelled + left_unpaid;
        write!(f, "{all} orders: {paid} paid, {cancelled} cancelled, {left_unpaid} left unpaid")
    }
}
