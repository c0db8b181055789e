//! A delay queue beside the pool: some threads insert, remove and reset by key; others take, drain
//! and await, until the queue is closed and empty.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use punctual::{
    DelayQueue,
    delay_queue::{Expired, Key},
};

use crate::{
    dice::Dice,
    ledger::Capture,
    soak::{Count, Settle, Soak, block_on},
};

/// An element of the queue.
struct Parcel {
    capture: Capture,
    /// The element must not come out before this time, which a reset changes.
    due: Arc<Mutex<Instant>>,
}

/// The queue of one round, and counts of what became of its elements.
pub(crate) struct Shelf {
    queue: DelayQueue<Parcel>,
    inserted: Count,
    taken: Count,
    removed: Count,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let (inserted, taken, removed) = (Count::default(), Count::default(), Count::default());
        Self { queue: DelayQueue::new(), inserted, taken, removed }
    }

    /// Inserts a parcel, and leaves it there, removes it again, or changes its deadline.
    pub(crate) fn put(self: &Arc<Self>, soak: &Soak, dice: &mut Dice) -> Option<Settle> {
        let is_far = dice.one_in(4);
        let delay = if is_far { Duration::from_secs(3_600) } else { dice.up_to_ms(30) };
        let due = Instant::now() + delay;
        let capture = soak.ledger.enter("a parcel", (!is_far).then_some(due));
        let (id, due) = (capture.id(), Arc::new(Mutex::new(due)));
        let parcel = Parcel { capture, due: Arc::clone(&due) };
        let Ok(key) = self.queue.insert(delay, parcel) else {
            soak.ledger.complain("an open queue has refused a parcel");
            return None;
        };
        self.inserted.add(1);
        soak.elements.add(1);
        let shelf = Arc::clone(self);
        let settle: Settle = match dice.roll(3) {
            0 if !is_far => return None,
            0 | 1 => Box::new(move |soak, _| {
                soak.ledger.expect_soon(id);
                shelf.removed.add(shelf.queue.remove(key).is_some().into());
            }),
            _ => Box::new(move |soak, dice| {
                let delay = dice.up_to_ms(10);
                soak.ledger.expect_soon(id);
                shelf.reset(key, &due, delay);
            }),
        };
        Some(settle)
    }

    /// Takers may act in between: the time that they compare with is never too late.
    fn reset(&self, key: Key, due: &Mutex<Instant>, delay: Duration) {
        let new = Instant::now() + delay;
        {
            let mut due = lock(due);
            *due = new.min(*due);
        }
        if self.queue.reset(key, delay) {
            *lock(due) = new;
        }
    }

    /// Takes in one of the possible ways, until the queue is finished.
    pub(crate) fn take_all(&self, soak: &Soak, way: usize) {
        match way % 4 {
            0 => self.queue.expirations().for_each(|parcel| self.taken(soak, parcel)),
            1 => {
                while let Some(parcel) = block_on(&mut self.queue.next()) {
                    self.taken(soak, parcel);
                }
            }
            2 => {
                while !self.queue.is_finished() {
                    let parcel = self.queue.take_within(Duration::from_millis(3)).ok().flatten();
                    parcel.into_iter().for_each(|parcel| self.taken(soak, parcel));
                }
            }
            _ => {
                while !self.queue.is_finished() {
                    self.queue.drain().for_each(|parcel| self.taken(soak, parcel));
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    fn taken(&self, soak: &Soak, parcel: Expired<Parcel>) {
        self.taken.add(1);
        let due = *lock(&parcel.element.due);
        parcel.element.capture.begins(due);
        if Instant::now() < parcel.deadline {
            soak.ledger.complain("a parcel came out before its deadline");
        }
    }

    /// Closes the queue, so that the takers come to an end.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Checks, when all threads have ended, that each parcel was taken or removed.
    pub(crate) fn check(&self, soak: &Soak) {
        let (inserted, taken, removed) =
            (self.inserted.get(), self.taken.get(), self.removed.get());
        if inserted != taken + removed || !self.queue.is_empty() {
            soak.ledger.complain(format!("{inserted} parcels, {taken} taken, {removed} removed"));
        }
    }
}

fn lock(of: &Mutex<Instant>) -> std::sync::MutexGuard<'_, Instant> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
